"""Pairs of columns whose dependence changed, by rank correlations in both tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from muhat.files.tables import Kind
from muhat.types import Array

LEAST_ROWS = 50
"""Pairs are compared where both tables have at least this many rows."""

MOST_COORDINATES = 1000
LEAST_IN_CATEGORY = 20
MOST_CATEGORIES = 10


@dataclass(frozen=True)
class PairChange:
    """Two columns by their numbers, the p-value of a change, and the correlations of ranks in either table.

    ``parts`` names the categories that the correlations are of, "" for a column of numbers.
    """

    columns: tuple[int, int]
    parts: tuple[str, str]
    pvalue: float
    correlations: tuple[float, float]


def pair_changes(columns: Sequence[tuple[Kind, Sequence[NDArray[Any]]]]) -> list[PairChange]:
    r"""Compare the dependence of every pair of columns between two tables.

    Numbers become ranks within their table, so that a change of the columns themselves does not count; a category
    becomes an indicator. For a pair with correlations :math:`r` and :math:`s` the statistic is
    :math:`\operatorname{artanh} r - \operatorname{artanh} s`, relative to its standard error, which is estimated from
    the fourth moments and holds for dependent columns too. Rows with a gap in one of the two columns are left out of
    that pair.

    Parameters
    ----------
    columns : sequence of (kind, values of each of two tables)

    Returns
    -------
    list of PairChange
        For every pair of columns, the most changed one of its parts; the p-value is corrected for their number.
    """
    sources, parts, sides = _coordinates(columns)
    if len(sources) < 2 or len(sources) > MOST_COORDINATES:
        return []
    (r, r_error, r_rows), (s, s_error, s_rows) = (_correlations(side) for side in sides)
    rows = np.minimum(r_rows, s_rows)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = (np.arctanh(r) - np.arctanh(s)) / np.sqrt(r_error / (1 - r**2) ** 2 + s_error / (1 - s**2) ** 2)
    usable = (rows >= LEAST_ROWS) & np.isfinite(z)
    pvalues = np.where(usable, 2 * stats.t.sf(np.abs(np.where(usable, z, 0.0)), np.maximum(rows - 2, 1)), 1.0)
    return _best(sources, parts, pvalues, r, s)


def _best(sources: NDArray[np.int64], parts: Sequence[str], pvalues: Array, r: Array, s: Array) -> list[PairChange]:
    best: dict[tuple[int, int], tuple[float, int, int, int]] = {}
    for a, b in zip(*np.triu_indices(len(sources), 1), strict=True):
        pair = (int(sources[a]), int(sources[b]))
        if pair[0] != pair[1]:
            smallest, i, j, count = best.get(pair, (2.0, 0, 0, 0))
            found = (float(pvalues[a, b]), int(a), int(b))
            best[pair] = (*min((smallest, i, j), found), count + 1)
    return [
        PairChange(pair, (parts[i], parts[j]), min(1.0, count * smallest), (float(r[i, j]), float(s[i, j])))
        for pair, (smallest, i, j, count) in best.items()
    ]


def _coordinates(
    columns: Sequence[tuple[Kind, Sequence[NDArray[Any]]]],
) -> tuple[NDArray[np.int64], list[str], tuple[Array, Array]]:
    """Ranks and indicators of both tables, NaN for gaps, with the column and the category that each comes from."""
    sources: list[int] = []
    parts: list[str] = []
    first, second = [], []
    for j, (kind, (left, right)) in enumerate(columns):
        if kind != "category":
            coordinates = [("", _ranks(left), _ranks(right))]
        else:
            coordinates = [(text, _indicator(left, text), _indicator(right, text)) for text in _frequent(left, right)]
        for part, x, y in coordinates:
            sources.append(j)
            parts.append(part)
            first.append(x)
            second.append(y)
    empty = np.empty((0, 0))
    sides = (np.column_stack(first), np.column_stack(second)) if sources else (empty, empty)
    return np.array(sources, dtype=np.int64), parts, sides


def _ranks(values: Array) -> Array:
    return np.asarray(stats.rankdata(values, nan_policy="omit"), dtype=float)


def _indicator(texts: NDArray[Any], text: str) -> Array:
    return np.array([np.nan if found is None else float(found == text) for found in texts])


def _frequent(left: NDArray[Any], right: NDArray[Any]) -> list[str]:
    found = []
    known_values = [sum(value is not None for value in column) for column in (left, right)]
    for text in {text for text in left if text is not None}:
        counts = (int((left == text).sum()), int((right == text).sum()))
        others = [known - count for known, count in zip(known_values, counts, strict=True)]
        if min(*counts, *others) >= LEAST_IN_CATEGORY:
            found.append((-sum(counts), text))
    chosen = [text for _, text in sorted(found)[:MOST_CATEGORIES]]
    return chosen[:1] if len(chosen) == 2 else chosen  # the second is the opposite of the first


def _correlations(values: Array) -> tuple[Array, Array, Array]:
    """Correlations of all pairs, their squared standard errors, and the number of rows that have both."""
    present = ~np.isnan(values)
    counts = np.maximum(present.sum(axis=0), 1)
    centred = np.where(present, values - np.where(present, values, 0.0).sum(axis=0) / counts, 0.0)
    scale = np.sqrt((centred**2).sum(axis=0) / counts)
    X = centred / np.where(scale > 0, scale, 1.0)
    M = present.astype(float)
    rows = M.T @ M
    with np.errstate(divide="ignore", invalid="ignore"):
        a = (X**2).T @ M / rows  # mean square of the first column over the rows of the pair; a.T of the second
        r = (X.T @ X / rows / np.sqrt(a * a.T)).clip(-0.9999, 0.9999)
        both = (X**2).T @ X**2 / rows / (a * a.T)
        cubes = (X**3).T @ X / rows / np.sqrt(a**3 * a.T)
        fourth = (X**4).T @ M / rows / a**2
        variance = both - r * (cubes + cubes.T) + 0.25 * r**2 * (fourth + fourth.T + 2 * both)
    return r, variance.clip(0) / rows + 1.0 / np.maximum(rows, 1.0) ** 2, rows
