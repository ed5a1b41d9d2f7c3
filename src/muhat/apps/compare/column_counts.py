"""A column of two tables in counts: how often each value occurs, missing values, moments, a small histogram."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import hypot, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from muhat._support.types import Array
from muhat.apps.compare.bounds import Counts
from muhat.tables.frames import Column, Kind

OTHERS = "(others)"
"""What all categories beyond the most frequent ones are counted as."""

MOST_CATEGORIES = 1000
MOST_VALUES = 1000
"""More numbers than this are kept as counts between quantiles; in long tables and with strata they are read so too."""

BINS = 20
SHOWN_CATEGORIES = 8
EARLIEST_YEAR, LATEST_YEAR = 1500, 2100
"""A column of whole numbers in this range is shown as years are."""


class Moments(NamedTuple):
    """Mean, standard deviation, smallest and largest value; NaN of a column without values."""

    mean: float
    standard_deviation: float
    smallest: float
    largest: float

    @classmethod
    def of(cls, values: Array) -> Moments:
        """Moments of numbers of any size.

        >>> Moments.of(np.array([1e200, 3e200])).mean
        2e+200
        """
        if not len(values):
            return cls(np.nan, np.nan, np.nan, np.nan)
        scale = float(np.abs(values).max()) or 1.0
        scaled = values / scale
        deviation = scale * float(scaled.std(ddof=1)) if len(values) > 1 else 0.0
        return cls(scale * float(scaled.mean()), deviation, float(values.min()), float(values.max()))

    def joined(self, n: int, other: Moments, m: int) -> Moments:
        """Moments of n and m numbers together (Chan, Golub and LeVeque 1979)."""
        if not (n and m):
            return self if n else other
        mean = self.mean * (n / (n + m)) + other.mean * (m / (n + m))
        within = [part.standard_deviation * sqrt((size - 1) / (n + m - 1)) for part, size in ((self, n), (other, m))]
        between = (self.mean - other.mean) * sqrt(n / (n + m) * m / (n + m - 1))
        smallest, largest = min(self.smallest, other.smallest), max(self.largest, other.largest)
        return Moments(mean, hypot(*within, between), smallest, largest)


@dataclass(frozen=True, eq=False)
class ColumnCounts:
    """Counts of the values of a column in both tables and in all strata.

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

    @cached_property
    def are_years(self) -> bool:
        """Whether the values look like years: whole numbers in their range."""
        return (
            self.kind == "number"
            and bool((self.values == np.floor(self.values)).all())
            and all(m.smallest >= EARLIEST_YEAR and m.largest <= LATEST_YEAR for m in self.moments)
        )

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
        if not self.is_ordered or len(self.values) <= MOST_VALUES:
            return self
        total = self.counts.sum(axis=(0, 1)).cumsum()
        ends = np.unique(np.searchsorted(total, total[-1] * np.arange(1, MOST_VALUES + 1) / MOST_VALUES))
        starts = np.concatenate([[0], ends[:-1] + 1])
        return replace(self, values=self.values[ends], counts=np.add.reduceat(self.counts, starts, axis=2))

    def shares(self) -> Array:
        """Share of each value among the rows of each table that have one, over all strata."""
        counts = self.counts.sum(axis=0)
        return np.asarray(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1))


def are_sentences(texts: int, rows: int) -> bool:
    """Whether a column of so many different texts in so many rows holds names or sentences, not categories."""
    return texts > max(100, 0.1 * rows)


class Grid(NamedTuple):
    """The values of a column that are told apart: numbers ascending, or texts, the most frequent first."""

    kind: Kind
    values: NDArray[Any]

    def places(self, column: Column) -> NDArray[np.intp]:
        """The place of each value, −1 where it is missing; of a number in between, that of the next larger one."""
        if column.kind == "missing":
            return np.full(len(column.values), -1)
        if column.kind == "category":
            last = len(self.values) - 1  # "(others)", where there are more texts
            rank = {text: k for k, text in enumerate(self.values)}
            order = np.array([*(rank.get(level, last) for level in column.levels), -1], dtype=np.intp)
            return np.asarray(order[column.values])
        places = np.searchsorted(self.values, column.values).clip(max=len(self.values) - 1)
        return np.where(np.isnan(column.values), -1, places)


def number_grid(kind: Kind, values: Array, most: int | None) -> Grid:
    """The different numbers, or about ``most`` quantiles where there are more, and the smallest and the largest."""
    known = np.sort(values[~np.isnan(values)])
    different = known[np.concatenate([[True], known[1:] != known[:-1]])] if len(known) else known
    if most is not None and len(different) > most:
        different = np.unique(known[np.linspace(0, len(known) - 1, most).astype(np.intp)])
    return Grid(kind, different)


def text_grid(kind: Kind, levels: Sequence[str], columns: Sequence[Column]) -> Grid:
    """All texts, those most frequent in some columns first; beyond 1,000 the rarer ones are one."""
    totals = dict.fromkeys(levels, 0)
    for column in columns:
        counts = np.bincount(column.values + 1, minlength=len(column.levels) + 1)[1:]
        for level, count in zip(column.levels, counts.tolist(), strict=True):
            totals[level] += count
    ranked = sorted(totals, key=lambda text: (-totals[text], text))
    return Grid(
        kind, np.array(ranked if len(ranked) <= MOST_CATEGORIES else [*ranked[:MOST_CATEGORIES], OTHERS], object)
    )


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
