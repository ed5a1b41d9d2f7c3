"""A column of one or two tables in counts: how often each value occurs, missing values, moments, a small histogram."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import hypot, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from muhat._support.types import Array
from muhat.apps.compare.effects import Counts
from muhat.tables.frames import Column, Kind

OTHERS = "(others)"
"""What all categories beyond the most frequent ones are counted as."""

MOST_CATEGORIES = 1000
THRESHOLDS = 1000
"""More numbers than this are kept as counts between quantiles; with strata they are tested so too."""

BINS = 20
SHOWN_CATEGORIES = 8


def are_sentences(texts: int, rows: int) -> bool:
    """Whether a column of so many different texts in so many rows holds names or sentences, not categories."""
    return texts > max(100, 0.1 * rows)


class Moments(NamedTuple):
    """Mean, standard deviation, smallest and largest value; NaN of a column without values."""

    mean: float
    standard_deviation: float
    smallest: float
    largest: float


@dataclass(frozen=True, eq=False)
class Tally:
    """How often each value of a column occurs in one table; tallies of parts of a table add up.

    ``counts[s, k]`` rows of stratum s hold ``values[k]``: numbers ascending (truth values are 0 and 1), or texts in
    their order. ``missing[s]`` rows hold none.
    """

    name: str
    kind: Kind
    values: NDArray[Any]
    counts: Counts
    missing: Counts
    moments: Moments

    def __add__(self, other: Tally) -> Tally:
        kinds = sorted({self.kind, other.kind} - {"missing"})
        if len(kinds) > 1:
            raise ValueError(f"column {self.name!r} holds {' and '.join(kinds)} values in different files")
        values, counts = _joined([self, other])
        sizes = int(self.counts.sum()), int(other.counts.sum())
        moments = _joined_moments((self.moments, other.moments), sizes)
        kind = kinds[0] if kinds else "missing"
        return Tally(self.name, kind, values, counts.sum(axis=1), self.missing + other.missing, moments)


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


def count_column(columns: Sequence[Column]) -> ColumnCounts:
    """Count the values of a column of one or more tables.

    All are of one kind; columns without values go with any kind, and truth values with numbers.

    >>> columns = [Column("x", "number", np.array(values)) for values in ([1.0, 3.0, 1.0], [np.nan, 2.0])]
    >>> count_column(columns).counts[0]
    array([[2, 0, 1],
           [0, 1, 0]])
    """
    return join_tallies([tally_column(column) for column in columns])


def tally_column(
    column: Column, strata: NDArray[np.intp] | None = None, n_strata: int = 1, thresholds: Array | None = None
) -> Tally:
    """Count the values of a column of one table, by stratum; numbers between two thresholds count as the larger one."""
    here = ~column.missing
    known = column.values[here]
    moments = Moments(*[np.nan] * 4) if column.kind == "category" else moments_of(known)
    if thresholds is not None and column.kind not in ("category", "boolean"):
        # sorted numbers find their thresholds ten times as fast; strata need the order of the rows
        known = _rounded_up(np.sort(known) if n_strata == 1 else known, thresholds)
    if strata is None:
        strata = np.zeros(len(here), dtype=np.intp)
    if column.kind == "category":
        places, values = known, np.array(column.levels, dtype=object)
    elif n_strata == 1:
        values, counts = np.unique(known, return_counts=True)  # much faster than with places
        lost = np.array([len(here) - len(known)], dtype=np.int64)
        return Tally(column.name, column.kind, values, counts[None].astype(np.int64), lost, moments)
    else:
        values, places = np.unique(known, return_inverse=True)
    flat = np.bincount(strata[here] * len(values) + places, minlength=n_strata * len(values))
    counts = flat.reshape(n_strata, len(values))
    lost = np.bincount(strata[~here], minlength=n_strata)
    occurs = counts.any(axis=0)
    return Tally(column.name, column.kind, values[occurs], counts[:, occurs], lost, moments)


def different_values(values: NDArray[Any]) -> NDArray[Any]:
    """The different values, sorted; asked for values alone, numpy takes a slow hash table."""
    return np.unique(values, return_counts=True)[0]


def _rounded_up(values: Array, thresholds: Array) -> Array:
    """Each number as the next threshold; those beyond the thresholds on either side stay as they are."""
    places = np.searchsorted(thresholds, values).clip(max=len(thresholds) - 1)
    inside = (values >= thresholds[0]) & (values <= thresholds[-1])
    return np.where(inside, thresholds[places], values)


def join_tallies(tallies: Sequence[Tally]) -> ColumnCounts:
    """The counts of a column in several tables."""
    kinds = {tally.kind for tally in tallies} - {"missing"}
    kind: Kind = "missing" if not kinds else "number" if len(kinds) > 1 else kinds.pop()
    values, counts = _joined(tallies)
    distinct = len(values)
    moments: tuple[Moments, ...] = ()
    if kind in ("category", "boolean"):
        if kind == "boolean":
            values = np.array(["False", "True"], dtype=object)[values.astype(np.intp)]
        values, counts = _most_frequent_first(values, counts)
    else:
        moments = tuple(tally.moments for tally in tallies)
    missing = np.stack([tally.missing for tally in tallies], axis=1)
    return ColumnCounts(tallies[0].name, kind, values, counts, missing, moments, distinct)


def _joined(tallies: Sequence[Tally]) -> tuple[NDArray[Any], Counts]:
    """The values of all tallies, and their counts with the shape (strata, tallies, values)."""
    known = [tally.values for tally in tallies if len(tally.values)]
    values = different_values(np.concatenate(known)) if known else np.empty(0)
    counts = np.zeros((len(tallies[0].missing), len(tallies), len(values)), dtype=np.int64)
    for i, tally in enumerate(tallies):
        counts[:, i, np.searchsorted(values, tally.values)] = tally.counts
    return values, counts


def _most_frequent_first(values: NDArray[Any], counts: Counts) -> tuple[NDArray[Any], Counts]:
    total = counts.sum(axis=(0, 1))
    order = np.argsort(-total, kind="stable")
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


def _joined_moments(moments: tuple[Moments, Moments], sizes: tuple[int, int]) -> Moments:
    """Moments of the numbers of two parts of a table (Chan, Golub and LeVeque 1979)."""
    if not all(sizes):
        return moments[0] if sizes[0] else moments[1]
    (a, b), (n, m) = moments, sizes
    mean = a.mean * (n / (n + m)) + b.mean * (m / (n + m))
    within = [
        part.standard_deviation * sqrt((size - 1) / (n + m - 1)) for part, size in zip((a, b), sizes, strict=True)
    ]
    between = (a.mean - b.mean) * sqrt(n / (n + m) * m / (n + m - 1))
    return Moments(mean, hypot(*within, between), min(a.smallest, b.smallest), max(a.largest, b.largest))


class Histogram(NamedTuple):
    """``heights[i, k]`` is the bar of table i in bin k, where the highest bar is 1; ``ends`` are both sides' values."""

    heights: Array
    ends: tuple[Any, Any]


def histogram(column: ColumnCounts) -> Histogram:
    """Histogram of the most frequent categories, or of numbers between the 1 % and 99 % quantiles of all tables."""
    shares, values = column.shares(), column.values
    if not column.is_ordered and len(values) > SHOWN_CATEGORIES:
        rest = shares[:, SHOWN_CATEGORIES:].sum(axis=1)
        shares = np.column_stack([shares[:, :SHOWN_CATEGORIES], rest])
        values = np.append(values[:SHOWN_CATEGORIES], OTHERS)
    if not column.is_ordered or len(values) <= BINS:
        return Histogram(shares / (shares.max(initial=0.0) or 1.0), (values[0], values[-1]))
    pooled = shares.sum(axis=0).cumsum() / shares.sum()
    low, high = (values[min(int(np.searchsorted(pooled, level)), len(values) - 1)] for level in (0.01, 0.99))
    steps = np.linspace(0.0, 1.0, BINS + 1)
    edges = low * (1.0 - steps) + high * steps  # a difference of the largest numbers would overflow
    places = np.searchsorted(edges[1:-1], values, side="left")
    binned = np.array([np.bincount(places, weights=row, minlength=BINS) for row in shares])
    return Histogram(binned / (binned.max() or 1.0), (edges[0], edges[-1]))
