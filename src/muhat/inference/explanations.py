"""Explanations in words of what the components of a two-sample test saw, with the names of columns."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from muhat.inference.combine import Component
from muhat.inference.results import Explanation, percent
from muhat.kernels.mixed import rescaled
from muhat.tables.encoder import MISSING, Feature, TableEncoder
from muhat.types import Array

MOST_CORRELATED = 300
"""Up to this many columns the pair whose correlation changed most is named."""

_GROUPS = {
    "wide": "X and Y lie in different places",
    "fine": "X and Y differ in their fine structure",
    "by column": "the shapes of single columns differ",
    "relations": "the relations between the columns differ",
}


class Samples(NamedTuple):
    """Two samples as pooled rows of features: which are the first's, the scales, the encoder, and the strata.

    A Gram matrix has no encoder.
    """

    pooled: Array
    observed: Array
    scales: Array | None
    encoder: TableEncoder | None
    strata: Any

    @property
    def sizes(self) -> tuple[int, int]:
        """Numbers of rows."""
        n = int(self.observed.sum())
        return n, len(self.observed) - n

    @property
    def scaled(self) -> Array:
        """The pooled rows in their scales."""
        return self.pooled if self.scales is None else self.pooled / self.scales

    @property
    def centred(self) -> Array:
        """The pooled rows in their scales, about their medians."""
        halves = self.pooled / 2 - np.median(self.pooled / 2, axis=0)  # which do not overflow
        return halves * 2 if self.scales is None else halves / (self.scales / 2)

    @property
    def difference(self) -> Array:
        """Weights of the pooled rows in the difference of the two averages."""
        n, m = self.sizes
        return self.observed / n - (1.0 - self.observed) / m

    def feature(self, column: int) -> Feature:
        """What is known of a column of the pooled rows."""
        assert self.encoder is not None
        return self.encoder.features[column]

    def in_words(self, column: int) -> str:
        """What sentences call a column."""
        return self.feature(column).in_words


def explain_difference(part: Component, samples: Samples) -> Explanation:
    """What a component of :func:`muhat.mmd_test` saw."""
    if part.name == "residuals":
        return _relation(part, samples)
    if part.group == "columns":
        return _column(part, samples)
    if part.group in ("dispersion", "close pairs"):
        kernel, wider = part.value
        what = "is more spread out" if part.group == "dispersion" else "has fewer close pairs of rows"
        return Explanation(f"{wider} {what}", rescaled(kernel, samples.scales))
    if part.name in ("second moments", "whitened second moments"):
        return Explanation(_correlations(samples))
    kernel = None if part.value is None else rescaled(part.value, samples.scales)
    return Explanation(_GROUPS.get(part.group, f"X and Y differ under {part.group}"), kernel)


def _column(part: Component, samples: Samples) -> Explanation:
    column, kind, larger = part.value
    label = samples.feature(column).label
    if np.isin(samples.pooled[:, column], (0.0, 1.0)).all():
        return Explanation(_share(column, samples), None, label, "share")
    what = "is more spread out" if kind == "scale" else "is higher"
    return Explanation(f"{samples.in_words(column)} {what} in {larger}", None, label, kind)


def _relation(part: Component, samples: Samples) -> Explanation:
    column, kind, larger, partner = part.value
    what = "varies more" if kind == "scale" else "is higher"
    others, given = f"the other columns, above all {samples.in_words(partner)},", "them"
    if samples.pooled.shape[1] == 2:
        others, given = samples.in_words(partner), "it"
    text = f"the relation of {samples.in_words(column)} to {others} changed: given {given}, it {what} in {larger}"
    return Explanation(text, None, samples.feature(column).label, "relation")


def _correlations(samples: Samples) -> str:
    """The two columns whose correlation differs most between the samples, where there are not too many pairs."""
    if samples.pooled.shape[1] > MOST_CORRELATED:
        return "the correlations of the columns differ"
    first = samples.observed == 1
    found = [np.nan_to_num(_correlation_matrix(samples.scaled[rows])) for rows in (first, ~first)]
    change = np.triu(np.abs(found[1] - found[0]), 1)
    if not change.any():
        return "the correlations of the columns differ"
    i, j = divmod(int(change.argmax()), len(change))
    x, y = (matrix[i, j] for matrix in found)
    pair = f"{samples.in_words(i)} and {samples.in_words(j)}"
    return f"the correlations of the columns differ, most that of {pair}: {x:.2f} → {y:.2f}"


def _correlation_matrix(rows: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):  # of constant columns
        return np.atleast_2d(np.corrcoef(rows, rowvar=False))


def _share(column: int, samples: Samples) -> str:
    """How often a feature of zeros and ones is 1 in either sample."""
    ones, (n, m) = samples.pooled[:, column], samples.sizes
    x, y = float(samples.observed @ ones) / n, float((1.0 - samples.observed) @ ones) / m
    more, shares = "more" if y > x else "less", f"{percent(x)} → {percent(y)}"
    feature = samples.feature(column)
    name = repr(feature.column) if feature.named else f"column {feature.column}"
    if feature.level == MISSING:
        return f"{name} is missing {more} often in Y: {shares}"
    if feature.level is not None:
        return f"{feature.in_words} is {more} frequent in Y: {shares}"
    return f"{name} is {'true' if feature.kind == 'boolean' else '1'} {more} often in Y: {shares}"
