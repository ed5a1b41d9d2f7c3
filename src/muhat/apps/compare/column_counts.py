"""A column of two tables in counts: how often each value occurs, missing values, moments, a small histogram."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from muhat._support.types import Array
from muhat.apps.compare.bounds import Counts
from muhat.tables.frames import Column, Kind

OTHERS = "(others)"
"""What all categories beyond the most frequent ones are counted as."""

MOST_CATEGORIES = 1000
MOST_VALUES = 2**13
"""More numbers than this are counted between so many quantiles."""

BINS = 20
SHOWN_CATEGORIES = 8
EARLIEST_YEAR, LATEST_YEAR = 1500, 2100
"""A column of whole numbers in this range is shown as years are."""


class Grid(NamedTuple):
    """The values of a column that are told apart: numbers ascending, or texts, the most frequent first.

    ``pooled`` is how many rows of the sample that the grid was made of have each of them.
    """

    kind: Kind
    values: NDArray[Any]
    pooled: Array

    @classmethod
    def of(cls, sample: Column) -> Grid:
        """The grid of the values in some rows of both tables."""
        known = sample.values[~sample.missing]
        if sample.kind == "category":
            counts = np.bincount(known, minlength=len(sample.levels))
            order = np.argsort(-counts, kind="stable")
            order, rest = order[:MOST_CATEGORIES], order[MOST_CATEGORIES:]
            values = np.array([*(sample.levels[k] for k in order), *([OTHERS] if len(rest) else [])], dtype=object)
            return cls(sample.kind, values, np.append(counts[order], counts[rest].sum())[: len(values)].astype(float))
        values, counts = np.unique(known, return_counts=True)
        if len(values) > MOST_VALUES:
            steps = len(known) * np.arange(1, MOST_VALUES + 1) / MOST_VALUES
            ends = np.unique(np.searchsorted(counts.cumsum(), steps))
            values, counts = values[ends], np.add.reduceat(counts, np.append(0, ends[:-1] + 1))
        return cls(sample.kind, values, counts.astype(float))

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


class Moments(NamedTuple):
    """Mean, standard deviation, smallest and largest value; NaN of a column without values."""

    mean: float
    standard_deviation: float
    smallest: float
    largest: float


class Rows:
    """What is seen of a column of one table as its rows come: moments, and whether values never fall."""

    def __init__(self, grid: Grid) -> None:
        self.ordered = grid.kind != "category"
        half = grid.values.astype(float) / 2 if self.ordered else np.arange(2.0)  # whose differences do not overflow
        self.centre = float(np.median(half)) if len(half) else 0.0
        self.scale = float(np.abs(half - self.centre).max(initial=0.0)) or 1.0
        self.sums = np.zeros(3)
        self.smallest, self.largest = np.inf, -np.inf
        self.increases = self.counts_rows = True
        self.last = np.empty(0)

    def add(self, values: Array) -> None:
        """Go on with more rows: numbers, or the places of texts; NaN where a value is missing."""
        known = values[~np.isnan(values)]
        if not len(known):
            self.counts_rows = False
            return
        with np.errstate(over="ignore"):
            steps = np.diff(np.append(self.last, known))
        self.increases &= bool(((steps >= 0) if self.ordered else (steps == 0)).all())
        self.counts_rows &= bool((steps == 1).all()) and len(known) == len(values)
        self.last = known[-1:]
        scaled = (known / 2 - self.centre) / self.scale
        self.sums += len(known), scaled.sum(), (scaled * scaled).sum()
        self.smallest, self.largest = min(self.smallest, float(known.min())), max(self.largest, float(known.max()))

    @property
    def moments(self) -> Moments:
        """Moments of all rows."""
        n, total, squares = self.sums
        if not n:
            return Moments(np.nan, np.nan, np.nan, np.nan)
        deviation = 2 * self.scale * np.sqrt(max(squares - total**2 / n, 0.0) / max(n - 1, 1))
        mean = 2 * (self.centre + self.scale * total / n)
        return Moments(float(mean), float(deviation), self.smallest, self.largest)


@dataclass(frozen=True, eq=False)
class ColumnCounts:
    """Counts of the values of a column in both tables and in all strata.

    ``counts[s, i, k]`` rows of table i in stratum s hold ``values[k]``: numbers ascending, or categories, the most
    frequent first. ``missing[s, i]`` rows hold none. ``moments`` are those of numbers, dates and durations.
    """

    name: str
    kind: Kind
    values: NDArray[Any]
    counts: Counts
    missing: Counts
    moments: tuple[Moments, ...]

    @property
    def is_ordered(self) -> bool:
        """Whether values are numbers, dates or durations."""
        return self.kind not in ("category", "boolean")

    @property
    def are_years(self) -> bool:
        """Whether the values look like years: whole numbers in their range."""
        whole = self.kind == "number" and bool((self.values == np.floor(self.values)).all())
        return whole and all(m.smallest >= EARLIEST_YEAR and m.largest <= LATEST_YEAR for m in self.moments)

    @property
    def present(self) -> list[int]:
        """How many rows of each table have a value."""
        return [int(count) for count in self.counts.sum(axis=(0, 2))]

    @property
    def missing_shares(self) -> tuple[float, ...]:
        """The share of the rows of each table that have none."""
        lost = self.missing.sum(axis=0)
        return tuple(float(lost[i] / max(lost[i] + count, 1)) for i, count in enumerate(self.present))

    def shares(self) -> Array:
        """Share of each value among the rows of each table that have one, over all strata."""
        counts = self.counts.sum(axis=0)
        return np.asarray(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1))


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
