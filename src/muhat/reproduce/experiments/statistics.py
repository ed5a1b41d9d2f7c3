"""Comparisons of estimators on paired rows."""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import binomtest

from muhat.reproduce.experiment import Row
from muhat.types import Array

ROUNDING = 1e-12
"""Relative differences up to this are those of rounding."""


class Estimate(NamedTuple):
    """A number and its standard error, NaN where one measurement has none."""

    value: float
    error: float

    def __str__(self) -> str:
        return f"{self.value:.3f} ± {self.error:.3f}" if isfinite(self.error) else f"{self.value:.3f}"


def select(rows: Iterable[Row], **setting: object) -> list[Row]:
    """Rows of a setting."""
    return [row for row in rows if all(row[name] == value for name, value in setting.items())]


def grouped(rows: Iterable[Row], *names: str) -> dict[tuple[Any, ...], list[Row]]:
    """Rows by their values of these names, in the order in which they first occur.

    >>> grouped([{"n": 2, "S": 0.1}, {"n": 1, "S": 0.2}, {"n": 2, "S": 0.3}], "n")
    {(2,): [{'n': 2, 'S': 0.1}, {'n': 2, 'S': 0.3}], (1,): [{'n': 1, 'S': 0.2}]}
    """
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in names), []).append(row)
    return groups


def column(rows: Iterable[Row], name: str) -> Array:
    """Values of one estimator, or of one part of the setting."""
    return np.array([row[name] for row in rows], dtype=np.float64)


def mean_ratio(values: Array, baseline: Array) -> Estimate:
    """Mean of the values over the mean of the baseline, on pairs; standard error by linearisation."""
    base = baseline.mean()
    ratio = values.mean() / base
    return Estimate(float(ratio), float(standard_error(values - ratio * baseline) / base))


def mean_difference(values: Array, baseline: Array) -> Estimate:
    """Mean of the paired differences."""
    return Estimate(float((values - baseline).mean()), standard_error(values - baseline))


def share_below(values: Array, baseline: Array) -> float:
    """Share of pairs in which the value is smaller, by more than rounding."""
    return float((baseline - values > ROUNDING * np.abs(baseline)).mean())


def sign_test(values: Array, baseline: Array) -> float:
    """p-value of the two-sided paired sign test; pairs that tie are left out."""
    below, above = int((values < baseline).sum()), int((values > baseline).sum())
    return float(binomtest(below, below + above).pvalue) if below + above else 1.0


def standard_error(values: Array) -> float:
    """That of the mean; NaN for a single value, which has none."""
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")
