"""Paired comparisons of estimators: ratios and differences with standard errors, as numbers and as text."""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite, nan
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import binomtest, norm

from paper.experiment import Array, Row

_SHOWN = {
    "KME": ("KME", "#6b7280"),
    "S": ("S-KMSE", "#2563eb"),
    "F_theorem4": ("F-KMSE (Theorem 4)", "#d97706"),
    "F_loo": ("F-KMSE (leave-one-out)", "#059669"),
    "F_fminbnd_1": ("F-KMSE (fminbnd on [0, 1])", "#db2777"),
    "oracle": ("oracle (Theorem 1)", "#a855f7"),
}
LABELS, COLOURS = ({name: shown[i] for name, shown in _SHOWN.items()} for i in (0, 1))
"""Label and colour of each estimator in all pictures and tables; colours are legible on white and on black."""

PAPERS = ("S", "F_theorem4")
"""Shrinkage estimators as the paper defines them."""

SHRUNK = (*PAPERS, "F_loo")
"""These, and F-KMSE with λ by true leave-one-out, which is ours."""

ROUNDING = 1e-9
"""Relative differences up to this are rounding errors."""


class Estimate(NamedTuple):
    """A number and its standard error, which is NaN for a single measurement."""

    value: float
    error: float

    def __str__(self) -> str:
        return f"{self.value:.3f} ± {self.error:.3f}" if isfinite(self.error) else f"{self.value:.3f}"


def select(rows: Iterable[Row], **setting: object) -> list[Row]:
    """Rows of a setting."""
    return [row for row in rows if all(row[name] == value for name, value in setting.items())]


def grouped(rows: Iterable[Row], *names: str) -> dict[tuple[Any, ...], list[Row]]:
    """Rows by their values of these names, in order of first occurrence.

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


def standard_error(values: Array) -> float:
    """Standard error of the mean; NaN for a single value."""
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else nan


def mean_difference(values: Array, baseline: Array) -> Estimate:
    """Mean of the paired differences."""
    return Estimate(float((values - baseline).mean()), standard_error(values - baseline))


def mean_ratio(values: Array, baseline: Array) -> Estimate:
    """Mean of the values over the mean of the baseline, on pairs."""
    ratio, influences = _linearised(values, baseline)
    return Estimate(ratio, standard_error(influences))


def ratio_difference(rows: list[Row], others: list[Row], estimator: str) -> Estimate:
    """Difference of two losses relative to KME's, where rows and others are paired one by one."""
    (ratio, influences), (other, other_influences) = (
        _linearised(column(part, estimator), column(part, "KME")) for part in (rows, others)
    )
    return Estimate(ratio - other, standard_error(influences - other_influences))


def _linearised(values: Array, baseline: Array) -> tuple[float, Array]:
    """The ratio of two means, and what each pair adds to its error: (value − ratio · baseline) / mean baseline."""
    base = baseline.mean()
    ratio = float(values.mean() / base)
    return ratio, (values - ratio * baseline) / base


def relative(rows: list[Row], estimator: str, baseline: str = "KME") -> Estimate:
    """Mean loss of an estimator relative to the baseline's, over the rows in which both are known."""
    known = [row for row in rows if row[estimator] is not None and row[baseline] is not None]
    return mean_ratio(column(known, estimator), column(known, baseline)) if known else Estimate(nan, nan)


def share_below(values: Array, baseline: Array) -> float:
    """Share of pairs in which the value is smaller, by more than rounding."""
    return float((baseline - values > ROUNDING * np.abs(baseline)).mean())


def sign_test(values: Array, baseline: Array) -> float:
    """Two-sided paired sign test as a normal score, negative where values are smaller; ties are left out.

    Beyond ±1.96 the test decides at 5 %.
    """
    below, above = int((values < baseline).sum()), int((values > baseline).sum())
    if below == above:
        return 0.0
    score = float(norm.isf(binomtest(below, below + above).pvalue / 2.0))
    return -score if below > above else score


def compared(rows: list[Row], estimators: Iterable[str]) -> Row:
    """Loss relative to KME's, its standard error and the share of rows improved, per estimator; None where unknown."""
    summary: Row = {}
    for estimator in estimators:
        known = [row for row in rows if row[estimator] is not None]
        improved = share_below(column(known, estimator), column(known, "KME")) if known else None
        summary[estimator] = {**summarised(relative(rows, estimator)), "improved": improved}
    return summary


def setting_summary(rows: list[Row], names: Iterable[str], averaged: Iterable[str], estimators: Iterable[str]) -> Row:
    """The setting by its names, the number of distributions, means of columns, and losses relative to KME's."""
    head = {**{name: rows[0][name] for name in names}, "distributions": len(rows)}
    return {**head, **{name: float(column(rows, name).mean()) for name in averaged}, **compared(rows, estimators)}


def summarised(estimate: Estimate, name: str = "ratio") -> Row:
    """An estimate as a summary keeps it: value and standard error, None where JSON has no number for them."""
    return {name: _finite(estimate.value), "error": _finite(estimate.error)}


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None


def decided(summaries: Iterable[Row], part: str = "ratio", level: float = 1.0) -> tuple[int, int]:
    """How many summarised estimates lie below the level by two standard errors, and how many above it."""
    known = [summary for summary in summaries if summary[part] is not None and summary["error"] is not None]
    distances = [(summary[part] - level, 2.0 * summary["error"] + ROUNDING) for summary in known]
    return sum(distance < -margin for distance, margin in distances), sum(d > margin for d, margin in distances)


def shown(comparison: Row) -> str:
    """A relative loss as a table shows it: 0.953 ± 0.010, 72 %."""
    ratio, error = comparison["ratio"], comparison["error"]
    if ratio is None:
        return "–"
    return f"{Estimate(ratio, nan if error is None else error)}, {100 * comparison['improved']:.0f} %"
