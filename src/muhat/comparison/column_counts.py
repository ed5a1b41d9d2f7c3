"""A column of one or two tables in counts: how often each value occurs, missing values, moments, a small histogram."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from muhat.comparison.effects import Counts
from muhat.tables.frames import Column, Kind
from muhat.types import Array

OTHERS = "(others)"
"""What all categories beyond the most frequent ones are counted as."""

MOST_CATEGORIES = 1000
THRESHOLDS = 1000
"""More numbers than this are kept as counts between quantiles; with strata they are tested so too."""

BINS = 20
SHOWN_CATEGORIES = 8


class Moments(NamedTuple):
    """Mean, standard deviation, smallest and largest value; NaN of a column without values."""

    mean: float
    standard_deviation: float
    smallest: float
    largest: float


@dataclass(frozen=True, eq=False)
class ColumnCounts:
    """Counts of the values of a column in all tables and strata.

    ``counts[s, i, k]`` rows of table i in stratum s hold ``values[k]``: numbers ascending, or categories, the most
    frequent first. ``missing[s, i]`` rows hold none. ``distinct`` is the number of different values.
    """

    name: str
    kind: Kind
    values: NDArray[Any]
    counts: Counts
    missing: Counts
    moments: tuple[Moments, ...]
    distinct: int

    @property
    def is_ordered(self) -> bool:
        """Whether values are numbers, dates or durations."""
        return self.kind not in ("category", "boolean")

    @property
    def present(self) -> list[int]:
        """How many rows of each table have a value."""
        return [int(count) for count in self.counts.sum(axis=(0, 2))]

    @property
    def missing_shares(self) -> list[float]:
        """The share of the rows of each table that have none."""
        lost = self.missing.sum(axis=0)
        return [float(lost[i] / max(lost[i] + count, 1)) for i, count in enumerate(self.present)]

    def compressed(self) -> ColumnCounts:
        """The same counts with at most 1,000 values: of numbers in between, the next larger one that is kept counts."""
        if not self.is_ordered or len(self.values) <= THRESHOLDS:
            return self
        total = self.counts.sum(axis=(0, 1)).cumsum()
        ends = np.unique(np.searchsorted(total, total[-1] * np.arange(1, THRESHOLDS + 1) / THRESHOLDS))
        starts = np.concatenate([[0], ends[:-1] + 1])
        return replace(self, values=self.values[ends], counts=np.add.reduceat(self.counts, starts, axis=2))

    def shares(self) -> Array:
        """Share of each value among the rows of each table that have one, over all strata."""
        counts = self.counts.sum(axis=0)
        return np.asarray(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1))


def count_column(columns: Sequence[Column], strata: Sequence[NDArray[np.intp]] | None = None) -> ColumnCounts:
    """Count the values of a column of one or more tables.

    Parameters
    ----------
    columns : one Column per table
        Of one kind; columns without values go with any kind.
    strata : one array of stratum numbers per table, optional

    Examples
    --------
    >>> columns = [Column("x", "number", np.array(values)) for values in ([1.0, 3.0, 1.0], [np.nan, 2.0])]
    >>> count_column(columns).counts[0]
    array([[2, 0, 1],
           [0, 1, 0]])
    """
    name = columns[0].name
    kind: Kind = next((column.kind for column in columns if column.kind != "missing"), "missing")
    present = [~column.missing for column in columns]
    strata = [np.zeros(len(column.values), dtype=np.intp) for column in columns] if strata is None else strata
    n_strata = 1 + max(int(labels.max(initial=0)) for labels in strata)
    lost = np.array(
        [np.bincount(s[~here], minlength=n_strata) for s, here in zip(strata, present, strict=True)], dtype=np.int64
    ).T
    kept = [column.values[here] for column, here in zip(columns, present, strict=True)]
    moments: tuple[Moments, ...] = ()
    if kind in ("category", "boolean"):
        values, places = _categories(columns, kept, kind)
        distinct = len(values)
    else:
        values, places = _numbers(kept, n_strata)
        distinct = len(values)
        moments = tuple(map(moments_of, kept))
    counts = np.zeros((n_strata, len(columns), len(values)), dtype=np.int64)
    for i, (place, labels, here) in enumerate(zip(places, strata, present, strict=True)):
        flat = np.bincount(labels[here] * len(values) + place, minlength=n_strata * len(values))
        counts[:, i] = flat.reshape(n_strata, len(values))
    if not moments:
        values, counts = _most_frequent_first(values, counts)
    return ColumnCounts(name, kind, values, counts, lost, moments, distinct)


def _numbers(kept: Sequence[Array], n_strata: int) -> tuple[Array, list[NDArray[np.intp]]]:
    values, places = np.unique(np.concatenate(kept), return_inverse=True)
    if n_strata > 1 and len(values) > THRESHOLDS:
        chosen = np.unique(np.quantile(np.concatenate(kept), np.linspace(0, 1, THRESHOLDS + 1)[1:], method="lower"))
        values, places = chosen, np.searchsorted(chosen, np.concatenate(kept), side="left").clip(max=len(chosen) - 1)
    return values, np.split(places, np.cumsum([len(part) for part in kept])[:-1])


def _categories(
    columns: Sequence[Column], kept: Sequence[NDArray[Any]], kind: Kind
) -> tuple[NDArray[Any], list[NDArray[np.intp]]]:
    """The levels of all tables, and the place of each value among them."""
    if kind == "boolean":
        return np.array(["False", "True"], dtype=object), [part.astype(np.intp) for part in kept]
    levels = sorted({level for column in columns for level in column.levels})
    rank = {level: k for k, level in enumerate(levels)}
    orders = [np.array([rank[level] for level in column.levels], dtype=np.intp) for column in columns]
    codes = (part.astype(np.intp) for part in kept)  # of a column without values, an empty array of floats
    places = [order[code] if len(order) else code for order, code in zip(orders, codes, strict=True)]
    return np.array(levels, dtype=object), places


def _most_frequent_first(values: NDArray[Any], counts: Counts) -> tuple[NDArray[Any], Counts]:
    total = counts.sum(axis=(0, 1))
    order = np.argsort(-total, kind="stable")
    order = order[total[order] > 0]
    first, rest = order[:MOST_CATEGORIES], order[MOST_CATEGORIES:]
    if not len(rest):
        return values[first], counts[:, :, first]
    others = counts[:, :, rest].sum(axis=2, keepdims=True)
    return np.append(values[first], OTHERS), np.concatenate([counts[:, :, first], others], axis=2)


def moments_of(values: Array) -> Moments:
    """Moments of numbers of any size.

    >>> moments_of(np.array([1e200, 3e200])).mean
    2e+200
    """
    if not len(values):
        return Moments(np.nan, np.nan, np.nan, np.nan)
    scale = float(np.abs(values).max()) or 1.0
    scaled = values / scale
    deviation = scale * float(scaled.std(ddof=1)) if len(values) > 1 else 0.0
    return Moments(scale * float(scaled.mean()), deviation, float(values.min()), float(values.max()))


class Histogram(NamedTuple):
    """``heights[i, k]`` is the bar of table i in bin k, where the highest bar is 1; ``ends`` are both sides' values."""

    heights: Array
    ends: tuple[Any, Any]


def histogram(column: ColumnCounts) -> Histogram:
    """Histogram of the most frequent categories, or of numbers between the 1 % and 99 % quantiles of all tables."""
    shares, values = column.shares(), column.values
    if not column.is_ordered:
        if len(values) > SHOWN_CATEGORIES:
            rest = shares[:, SHOWN_CATEGORIES:].sum(axis=1)
            shares, values = (
                np.column_stack([shares[:, :SHOWN_CATEGORIES], rest]),
                np.append(values[:SHOWN_CATEGORIES], OTHERS),
            )
        return Histogram(shares / (shares.max(initial=0.0) or 1.0), (values[0], values[-1]))
    if len(values) <= BINS:
        return Histogram(shares / (shares.max(initial=0.0) or 1.0), (values[0], values[-1]))
    pooled = shares.sum(axis=0).cumsum() / shares.sum()
    low, high = (values[min(int(np.searchsorted(pooled, level)), len(values) - 1)] for level in (0.01, 0.99))
    steps = np.linspace(0.0, 1.0, BINS + 1)
    edges = low * (1.0 - steps) + high * steps  # a difference of the largest numbers would overflow
    places = np.searchsorted(edges[1:-1], values, side="left")
    binned = np.array([np.bincount(places, weights=row, minlength=BINS) for row in shares])
    return Histogram(binned / (binned.max() or 1.0), (edges[0], edges[-1]))
