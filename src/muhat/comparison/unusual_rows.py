"""Rows that are most unlike the other table, explained by the columns in which few of its rows are as extreme."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from muhat.comparison.column_counts import ColumnCounts
from muhat.tables.frames import Column, Kind, Table
from muhat.types import Array

MOST_REASONS = 3
SHOWN_ROWS = 5
"""How many rows of each table are shown."""

RARE = 0.1
"""A value is a reason where at most this share of the other table's rows is as extreme."""


class Sample(NamedTuple):
    """Sampled rows of a table; row i stands at ``places[i]`` of it, and ``place`` says what that counts."""

    table: Table
    places: NDArray[np.intp]
    place: str


class Reason(NamedTuple):
    """A value of a row, and the share of the other table's rows that are as low, as high or the same."""

    column: str
    kind: Kind
    value: Any
    share: float
    side: str


class UnusualRow(NamedTuple):
    """A row of a table: where it stands, its values, and those of them that are rare in the other table."""

    table: str
    place: str
    number: int
    score: float
    reasons: tuple[Reason, ...]
    values: dict[str, Any]


def unusual_rows(
    samples: Sequence[Sample], scores: Sequence[Array], counts: Sequence[ColumnCounts]
) -> tuple[UnusualRow, ...]:
    """The rows of each table with the largest scores, and their values that are rare in the other table.

    With a single table the reasons are the values that are rare in the table itself.
    """
    found = []
    for which, (sample, score) in enumerate(zip(samples, scores, strict=True)):
        other = len(samples) - 1 - which
        for i in np.argsort(-score, kind="stable")[:SHOWN_ROWS]:
            values = {column.name: plain_value(column, int(i)) for column in sample.table.columns}
            reasons = _reasons(sample.table.columns, int(i), other, counts)
            found.append(
                UnusualRow(sample.table.name, sample.place, int(sample.places[i]), float(score[i]), reasons, values)
            )
    return tuple(found)


def plain_value(column: Column, i: int) -> Any:
    """A number, a text or None; dates and durations are days."""
    value = column.values[i]
    if column.kind == "category":
        return column.levels[value] if value >= 0 else None
    return None if np.isnan(value) else bool(value) if column.kind == "boolean" else float(value)


def _reasons(columns: Sequence[Column], i: int, other: int, counts: Sequence[ColumnCounts]) -> tuple[Reason, ...]:
    found = []
    for column, summary in zip(columns, counts, strict=True):
        value = plain_value(column, i)
        share, side = _share(value, summary, other)
        if share <= RARE:
            found.append(
                (share, -_distance(value, summary, other), Reason(summary.name, summary.kind, value, share, side))
            )
    found.sort(key=lambda each: each[:2])
    return tuple(reason for _, _, reason in found[:MOST_REASONS])


def _distance(value: Any, summary: ColumnCounts, other: int) -> float:
    """Standard deviations from the mean, to order values of which equally few rows are as extreme."""
    if value is None or not summary.is_ordered or not summary.moments[other].standard_deviation > 0:
        return 0.0
    return float(abs(value - summary.moments[other].mean) / summary.moments[other].standard_deviation)


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
