"""Samples of a test or an interval as rows of features, with their scales."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from muhat._support.types import Array
from muhat._support.validation import warn_caller
from muhat.tables.encoder import TableEncoder, fit_encoder
from muhat.tables.frames import Table, as_table
from muhat.tables.scales import given_scales, mean_absolute_deviations, warn_of_dominant_column
from muhat.tables.ties import merge_ties

BYTES_PER_COLUMN = 300.0
"""Bytes that the name, the kind and the feature of a column take, beside its values."""

FARTHEST = 1e100
"""Squares of smaller numbers, and sums of their products, do not overflow."""


class Samples(NamedTuple):
    """Samples as rows of features, one below the other."""

    pooled: Array  # (n, n_features): the rows of all samples
    sizes: tuple[int, ...]  # how many rows each sample has
    encoder: TableEncoder  # with ``features`` that know their column
    # (n_features,), or None: what a test divides the features by; None where they stay as they are
    scales: Array | None

    @property
    def parts(self) -> list[Array]:
        """The rows of each sample."""
        return np.split(self.pooled, np.cumsum(self.sizes)[:-1])

    @property
    def scaled(self) -> Array:
        """The pooled rows in their scales."""
        return self.pooled if self.scales is None else self.pooled / self.scales

    @property
    def centred(self) -> Array:
        """The pooled rows in their scales, about their medians."""
        halves = self.pooled / 2 - np.median(self.pooled / 2, axis=0)  # which do not overflow
        with np.errstate(over="ignore"):
            rows = halves * 2 if self.scales is None else halves / (self.scales / 2)
        farthest = np.abs(rows).max(axis=0, initial=0.0)
        if (farthest > FARTHEST).any():
            column = int(farthest.argmax())
            raise ValueError(
                f"{self.in_words(column)} has values as far as {farthest[column]:.1g} of its scale from its median, "
                'whose squares overflow; pass scale="auto", or divide the columns first'
            )
        return rows

    def in_words(self, column: int) -> str:
        """Name of a column in sentences."""
        return self.encoder.features[column].in_words


def encode_samples(
    samples: Mapping[str, Any], scale: Any = None, *, default: bool = False, min_rows: int = 2, told: bool = False
) -> Samples:
    """The samples as rows of features, by an encoder of all of them.

    ``samples`` has tables by the names that messages have for them. Columns are divided by ``scale``: "columns" is the
    mean absolute deviation of a column of numbers from its median, and what :class:`~muhat.tables.encoder.TableEncoder`
    says for other features; "auto" is "columns" in the ``default`` test, which has no kernel of the user's, and no
    scale elsewhere, with a warning where one column dominates. The caller may have ``told`` of texts that are numbers.
    """
    if isinstance(scale, str) and scale not in ("auto", "columns"):
        raise ValueError(f'scale={scale!r} must be "auto", "columns", None, or one positive number per column')
    tables = [as_table(X, name) for name, X in samples.items()]
    for table in tables:
        if table.n_rows < min_rows:
            raise ValueError(
                f"{table.name} has {table.n_rows} row{'s' * (table.n_rows != 1)} and at least {min_rows} are needed; "
                "pass all rows of a sample at once"
            )
    by_columns = isinstance(scale, str) and (default or scale == "columns")
    if not told:
        warn_of_numbers_as_text(tables[0])
    encoder = fit_encoder(tables, scaling=mean_absolute_deviations if by_columns else None)
    pooled = np.concatenate(merge_ties(*(encoder.transform(table) for table in tables)))
    scales = encoder.scales if by_columns else None
    if scale is not None and not isinstance(scale, str):
        scales = given_scales(scale, pooled.shape[1])
    elif scale is not None and not by_columns:
        remedy = 'pass scale="columns", or scale=None to keep the columns as they are'
        warn_of_dominant_column(pooled, [feature.in_words for feature in encoder.features], remedy)
    return Samples(pooled, tuple(table.n_rows for table in tables), encoder, scales)


def warn_of_numbers_as_text(table: Table) -> None:
    """Warn of a column of texts such as "1.5". Whole numbers may well be codes of categories."""
    for column in table.columns:
        if column.kind == "category" and all(map(_FRACTION.fullmatch, column.levels)):
            warn_caller(
                f"{table.column_in_words(column.name)} of {table.name} is taken as categories, and its texts are "
                f"numbers, such as {column.levels[0]!r}; convert them, for example by astype(float)"
            )


_FRACTION = re.compile(r"\s*[-+]?\d*\.\d+([eE][-+]?\d+)?\s*")
