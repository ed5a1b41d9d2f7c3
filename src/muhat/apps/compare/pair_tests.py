"""Tests of pairs of columns whose dependence changed, by rank correlations in both tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.special import stdtrit

from muhat._support.types import Array
from muhat.apps.compare.effects import Interval
from muhat.tables.frames import Column

LEAST_ROWS = 50
"""Pairs are compared where both tables have at least this many rows."""

MOST_FEATURES = 1000
LEAST_IN_CATEGORY = 20
MOST_CATEGORIES = 10


class PairChange(NamedTuple):
    """Two columns by their numbers, with the rank correlations of both tables and the p-value of a change.

    ``parts`` are the categories that the correlations are of, "" for a column of numbers. The p-value is corrected for
    the number of ``parts_tried``. ``error`` is the standard error of the difference of the correlations, and
    ``freedom`` the degrees of freedom with which it is estimated.
    """

    columns: tuple[int, int]
    parts: tuple[str, str]
    correlations: tuple[float, float]
    error: float
    freedom: float
    pvalue: float
    parts_tried: int

    @property
    def effect(self) -> float:
        """Absolute difference of the rank correlations."""
        return abs(self.correlations[0] - self.correlations[1])

    def interval(self, alpha: float) -> Interval:
        """Confidence interval of the effect."""
        margin = float(stdtrit(self.freedom, 1.0 - alpha / (2 * self.parts_tried))) * self.error
        return Interval(max(0.0, self.effect - margin), min(2.0, self.effect + margin))

    def exceeds(self, at_least: float) -> float:
        """P-value of the hypothesis that the correlations differ by at most ``at_least``."""
        if self.effect <= at_least:
            return 1.0
        tails = stats.t.sf((self.effect + np.array([-at_least, at_least])) / self.error, self.freedom).sum()
        return float(min(1.0, max(self.pvalue, self.parts_tried * tails)))


class _PairFeatures(NamedTuple):
    """Ranks and indicators of a table, NaN where a value is missing, with the column and category of each."""

    sources: NDArray[np.intp]
    parts: list[str]
    values: Array


def pair_changes(first: Sequence[Column], second: Sequence[Column]) -> list[PairChange]:
    r"""Compare the dependence of every pair of columns between two tables.

    Numbers become ranks within their table, so that a change of the columns themselves does not count, and a category
    becomes an indicator. For a pair with correlations :math:`r` and :math:`s` the statistic is
    :math:`\operatorname{artanh} r - \operatorname{artanh} s` divided by its standard error, which is estimated from
    fourth moments and holds for dependent columns too. It is compared with Student's distribution, whose degrees of
    freedom say how well the standard error is known: where both columns nearly always hold one value, it rests on a few
    rows. Rows with a missing value in one of the two columns are left out of that pair.

    Returns
    -------
    list of PairChange
        For every pair of columns, the most changed one of its parts.
    """
    if sum(column.kind != "category" for column in first) > MOST_FEATURES:
        return []
    a, b = _features(first, second)
    if not 2 <= len(a.sources) <= MOST_FEATURES:
        return []
    tables = [_correlations(side.values) for side in (a, b)]
    (r, r_error), (s, s_error) = (table[:2] for table in tables)
    rows = np.minimum(*(table.rows for table in tables))
    freedom = _degrees_of_freedom(*tables)
    with np.errstate(divide="ignore", invalid="ignore"):
        # a correlation of 1 has no transform: none is taken as closer to 1 than one part in the number of rows
        u, v = (table.values.clip(1 / table.rows - 1, 1 - 1 / table.rows) for table in tables)
        z = (np.arctanh(u) - np.arctanh(v)) / np.sqrt(r_error / (1 - u**2) ** 2 + s_error / (1 - v**2) ** 2)
    usable = (rows >= LEAST_ROWS) & np.isfinite(z)
    pvalues = np.where(usable, 2 * stats.t.sf(np.abs(np.where(usable, z, 0.0)), freedom), 1.0)
    return _best(a.sources, a.parts, pvalues, r, s, np.sqrt(r_error + s_error), freedom)


def strongest_pairs(columns: Sequence[Column], count: int) -> list[tuple[tuple[int, int], tuple[str, str], float]]:
    """The pairs of columns of one table with the largest rank correlations, each with its parts."""
    features, _ = _features(columns, columns)
    if not 2 <= len(features.sources) <= MOST_FEATURES:
        return []
    r, _, rows, *_ = _correlations(features.values)
    strength = np.where((rows >= LEAST_ROWS) & np.isfinite(r), np.abs(r), 0.0)
    found: dict[tuple[int, int], tuple[tuple[str, str], float]] = {}
    above = np.triu_indices(len(r), 1)
    for k in np.argsort(-strength[above], kind="stable"):
        i, j = int(above[0][k]), int(above[1][k])
        pair = (int(features.sources[i]), int(features.sources[j]))
        if len(found) == count or not strength[i, j]:
            break
        if pair[0] != pair[1]:
            found.setdefault(pair, ((features.parts[i], features.parts[j]), float(r[i, j])))
    return [(pair, parts, value) for pair, (parts, value) in found.items()]


def _best(
    sources: NDArray[np.intp], parts: Sequence[str], pvalues: Array, r: Array, s: Array, errors: Array, freedom: Array
) -> list[PairChange]:
    """Of all features of two columns, the pair with the smallest p-value."""
    i, j = np.triu_indices(len(sources), 1)
    different = sources[i] != sources[j]
    i, j = i[different], j[different]
    order = np.argsort(pvalues[i, j], kind="stable")
    keys = sources[i] * (int(sources.max()) + 1) + sources[j]
    _, first, counts = np.unique(keys[order], return_index=True, return_counts=True)
    return [
        PairChange(
            (int(sources[a]), int(sources[b])),
            (parts[a], parts[b]),
            (float(r[a, b]), float(s[a, b])),
            float(errors[a, b]),
            float(freedom[a, b]),
            min(1.0, float(count * pvalues[a, b])),
            int(count),
        )
        for a, b, count in zip(i[order][first], j[order][first], counts, strict=True)
    ]


def _features(first: Sequence[Column], second: Sequence[Column]) -> tuple[_PairFeatures, _PairFeatures]:
    sources: list[int] = []
    parts: list[str] = []
    sides: tuple[list[Array], list[Array]] = ([], [])
    for j, columns in enumerate(zip(first, second, strict=True)):
        if any(column.kind == "category" for column in columns):
            labels = _frequent(*columns)
            found = [[_indicator(column, label) for label in labels] for column in columns]
        else:
            labels = [""]
            found = [[np.asarray(stats.rankdata(column.values, nan_policy="omit"))] for column in columns]
        sources += [j] * len(labels)
        parts += labels
        for side, features in zip(sides, found, strict=True):
            side += features
    values = [np.column_stack(side) if side else np.empty((0, 0)) for side in sides]
    place = np.array(sources, dtype=np.intp)
    return _PairFeatures(place, parts, values[0]), _PairFeatures(place, parts, values[1])


def _indicator(column: Column, level: str) -> Array:
    code = column.levels.index(level) if level in column.levels else -2
    return np.where(column.missing, np.nan, (column.values == code).astype(float))


def _frequent(a: Column, b: Column) -> list[str]:
    """Categories that both tables have often enough, of two exhaustive ones the first."""
    found = []
    for level in set(a.levels) & set(b.levels):
        here = [int((column.values == column.levels.index(level)).sum()) for column in (a, b)]
        rest = [int((~column.missing).sum()) - count for column, count in zip((a, b), here, strict=True)]
        if min(*here, *rest) >= LEAST_IN_CATEGORY:
            found.append((-sum(here), level))
    chosen = [level for _, level in sorted(found)[:MOST_CATEGORIES]]
    return chosen[:1] if len(chosen) == 2 else chosen


class _Correlations(NamedTuple):
    """Correlations of all pairs of features, their squared standard errors, and the number of rows that have both.

    ``squares`` and ``fourths`` are the sums of the second and fourth powers of the products that a correlation is the
    mean of.
    """

    values: Array
    squared_errors: Array
    rows: Array
    squares: Array
    fourths: Array


def _degrees_of_freedom(a: _Correlations, b: _Correlations) -> Array:
    r"""Degrees of freedom of the variance of a difference of correlations, by Satterthwaite's rule.

    The variance of a mean of n products with kurtosis :math:`\kappa` has :math:`2 n / (\kappa - 1)` of them. The
    kurtosis is that of both tables together, since one table alone may lack the rare rows that matter.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        kurtosis = (a.rows + b.rows) * (a.fourths + b.fourths) / (a.squares + b.squares) ** 2
        rows = (1 / a.rows + 1 / b.rows) ** 2 / (1 / a.rows**3 + 1 / b.rows**3)
        freedom = 2 * rows / np.maximum(kurtosis - 1, np.finfo(float).eps)
    most = np.maximum(np.minimum(a.rows, b.rows) - 2, 1)
    return np.asarray(np.where(np.isfinite(freedom), np.clip(freedom, 1, most), 1.0))


def _correlations(values: Array) -> _Correlations:
    present = ~np.isnan(values)
    counts = np.maximum(present.sum(axis=0), 1)
    centred = np.where(present, values - np.where(present, values, 0.0).sum(axis=0) / counts, 0.0)
    scale = np.sqrt((centred**2).sum(axis=0) / counts)
    X = centred / np.where(scale > 0, scale, 1.0)
    M = present.astype(float)
    rows = M.T @ M
    with np.errstate(divide="ignore", invalid="ignore"):
        a = (X**2).T @ M / rows  # mean square of the first column over the rows of the pair; a.T of the second
        r = (X.T @ X / rows / np.sqrt(a * a.T)).clip(-1.0, 1.0)
        squares = (X**2).T @ X**2
        both = squares / rows / (a * a.T)
        cubes = (X**3).T @ X / rows / np.sqrt(a**3 * a.T)
        fourth = (X**4).T @ M / rows / a**2
        variance = both - r * (cubes + cubes.T) + 0.25 * r**2 * (fourth + fourth.T + 2 * both)
    squared_errors = variance.clip(0) / rows + 1.0 / np.maximum(rows, 1.0) ** 2
    return _Correlations(r, squared_errors, rows, squares, (X**4).T @ X**4)
