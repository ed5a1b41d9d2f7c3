"""Explanations of unusual rows: the columns in which few rows of the other table are as extreme."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from muhat.files.rows import Sample, cell
from muhat.files.summaries import Summary

MOST_REASONS = 3
RARE = 0.1
"""A value is a reason where at most this share of the other table's rows is as extreme."""


@dataclass(frozen=True)
class Reason:
    """A value of a row, and the share of the other table's rows that are as low, as high or the same."""

    column: str
    value: Any
    share: float
    side: str

    def as_json(self, of: str = "share_of_other_file") -> dict[str, Any]:
        """For programs."""
        return {"column": self.column, "value": self.value, "side": self.side, of: self.share}


def reasons(sample: Sample, i: int, other: int, columns: Sequence[Summary]) -> list[Reason]:
    """The rarest values of row i of a sample, as table ``other`` of the summaries sees them, the rarest first."""
    found = []
    distance: dict[str, float] = {}
    for kind, values, summary in zip(sample.kinds, sample.values, columns, strict=True):
        value = cell(kind, values[i])
        share, side = _share(values[i], value is None, summary, other)
        if share <= RARE:
            found.append(Reason(summary.name, value, share, side))
            distance[summary.name] = _distance(values[i], summary, other)
    return sorted(found, key=lambda reason: (reason.share, -distance[reason.column]))[:MOST_REASONS]


def _distance(value: Any, summary: Summary, other: int) -> float:
    """How many standard deviations a number lies from the mean, for values of which equally few rows are as extreme."""
    if summary.kind == "category" or np.isnan(value) or not summary.moments[other].standard_deviation > 0:
        return 0.0
    return float(abs(value - summary.moments[other].mean) / summary.moments[other].standard_deviation)


def _share(value: Any, is_gap: bool, summary: Summary, other: int) -> tuple[float, str]:
    counts = summary.counts[other]
    total = int(counts.sum()) + summary.missing[other]
    if is_gap:
        return summary.missing[other] / total, "missing"
    if summary.kind == "category":
        return int(counts[summary.values == value].sum()) / total, "same"
    place = int(np.searchsorted(summary.values, value))
    low, high = int(counts[: place + 1].sum()), int(counts[place:].sum())
    return (low / total, "low") if low <= high else (high / total, "high")
