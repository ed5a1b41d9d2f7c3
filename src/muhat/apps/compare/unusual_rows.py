"""Rows that are most unlike the other table, explained by the columns in which few of its rows are as extreme."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from muhat._support.types import Array
from muhat.apps.compare.column_counts import ColumnCounts
from muhat.apps.compare.text_report import shown
from muhat.apps.files.tables import Source
from muhat.tables.encoder import fit_encoder
from muhat.tables.frames import Column, Kind, Table
from muhat.tables.scales import standard_deviations

MOST_REASONS = 3
SHOWN_ROWS = 5
"""How many rows of each table are shown."""

NEIGHBOURS = 5
"""A row is unlike a table where so many of the table's rows are all far from it."""

LARGEST_WHOLE = 2.0**53
"""Below it every whole number is a float."""

RARE = 0.1
"""A value is a reason where at most this share of the other table's rows is as extreme."""


class Sample(NamedTuple):
    """Sampled rows of a table; row i is the row number ``rows[i]`` of the source, counted from 0."""

    table: Table
    rows: NDArray[np.intp]
    source: Source
    indexed: bool = False

    def place(self, i: int) -> tuple[str, int, Any]:
        """What a row is found by ("line", "row" or "index"), its number, and the line, row or label itself."""
        row = int(self.rows[i])
        number = row + self.source.first
        if self.source.index is None:  # rows of both tables are found alike: by their index where one of them has one
            return "index" if self.indexed and not self.source.first else self.source.place, number, number
        return "index", number, self.source.index[[row]].tolist()[0]


class Reason(NamedTuple):
    """A value of a row, and the share of the other table's rows that are as low, as high or the same."""

    column: str
    kind: Kind
    value: Any
    share: float
    side: str
    is_year: bool = False


class UnusualRow(NamedTuple):
    """A row of a table: where it stands, its values, and those of them that are rare in the other table.

    ``place`` says what ``label`` is: a "line" or a "row" of a file, counted from 1; a "row" of an array or a data
    frame, counted from 0; or the "index" of a data frame of pandas, where it has one of its own. ``number`` is the line
    or row in each case. Dates among the ``values`` are texts such as "2024-01-31". ``score`` is
    the mean distance from the nearest five rows of the other table, in scaled features.
    """

    table: str
    place: str
    number: int
    label: Any
    score: float
    reasons: tuple[Reason, ...]
    values: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Numbers and texts for JSON."""
        label = self.label if isinstance(self.label, int | str) else str(self.label)
        return {**self._asdict(), "label": label, "reasons": [reason._asdict() for reason in self.reasons]}


def unusual_rows(samples: Sequence[Sample], counts: Sequence[ColumnCounts]) -> tuple[UnusualRow, ...]:
    """The rows of each table that are farthest from the other table, and their values that are rare there."""
    encoder = fit_encoder([sample.table for sample in samples], scaling=standard_deviations)
    points = [encoder.transform(sample.table) / encoder.scales for sample in samples]
    found = []
    for which, sample in enumerate(samples):
        scores = distances_to_nearest(points[which], points[1 - which])
        for i in np.argsort(-scores, kind="stable")[:SHOWN_ROWS].tolist():
            values = {column.name: as_written(column, i) for column in sample.table.columns}
            reasons = _reasons(sample.table.columns, i, 1 - which, counts)
            found.append(UnusualRow(sample.table.name, *sample.place(i), float(scores[i]), reasons, values))
    return tuple(found)


def distances_to_nearest(points: Array, others: Array) -> Array:
    """Mean distance of each point from the nearest few of the others.

    >>> distances_to_nearest(np.array([[0.0], [9.0]]), np.array([[0.0], [1.0], [2.0]]))
    array([1., 8.])
    """
    from sklearn.neighbors import NearestNeighbors  # which loads much

    nearest = NearestNeighbors(n_neighbors=min(NEIGHBOURS, len(others))).fit(others)
    return np.asarray(nearest.kneighbors(points)[0].mean(axis=1))


def plain_value(column: Column, i: int) -> Any:
    """A number, a text or None; dates and durations are days."""
    value = column.values[i]
    if column.missing[i]:
        return None
    return column.levels[value] if column.kind == "category" else (bool if column.kind == "boolean" else float)(value)


def as_written(column: Column, i: int) -> Any:
    """A value as the table has it: dates as texts, and whole numbers where the column has no others.

    >>> as_written(Column("n", "number", np.array([3.0, np.nan])), 0), as_written(Column("d", "date", np.ones(1)), 0)
    (3, '1970-01-02')
    """
    value = plain_value(column, i)
    if value is None or column.kind not in ("date", "number"):
        return value
    if column.kind == "date":
        return shown("date", value)
    known = column.values[~np.isnan(column.values)]
    return int(value) if abs(value) < LARGEST_WHOLE and (known == np.floor(known)).all() else value


def _reasons(columns: Sequence[Column], i: int, other: int, counts: Sequence[ColumnCounts]) -> tuple[Reason, ...]:
    """The values of which fewest rows of the other table are as extreme; of equally few, the farthest first."""
    found = []
    for column, summary in zip(columns, counts, strict=True):
        value = plain_value(column, i)
        share, side = _share(value, summary, other)
        if share <= RARE:
            far = 0.0
            if value is not None and summary.is_ordered and summary.moments[other].standard_deviation > 0:
                far = abs(value - summary.moments[other].mean) / summary.moments[other].standard_deviation
            found.append((share, -far, Reason(summary.name, summary.kind, value, share, side, summary.are_years)))
    return tuple(reason for _, _, reason in sorted(found, key=lambda each: each[:2])[:MOST_REASONS])


def _share(value: Any, summary: ColumnCounts, other: int) -> tuple[float, str]:
    counts = summary.counts[:, other].sum(axis=0)
    missing = int(summary.missing[:, other].sum())
    total = max(int(counts.sum()) + missing, 1)
    if value is None:
        return missing / total, "missing"
    if not summary.is_ordered:
        return int(counts[summary.values == str(value)].sum()) / total, "same"
    place = int(np.searchsorted(summary.values, value))
    low, high = int(counts[: place + 1].sum()), int(counts[place:].sum())
    return (low / total, "low") if low <= high else (high / total, "high")
