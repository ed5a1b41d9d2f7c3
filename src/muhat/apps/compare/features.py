r"""Features of columns and of pairs, whose mean differences on all splits are the statistics of a comparison.

A feature is a number per row; its sums over the units that change sides, centred, times the centred splits are its mean
differences on every split, up to a factor. Everything here depends on the pooled rows alone, never on which rows are
whose, which keeps the p-values exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import rankdata

from muhat._support.types import Array
from muhat.apps.compare.column_counts import Grid
from muhat.inference.combine import Component, log_pvalues
from muhat.inference.permutations import Splits, Units
from muhat.linalg.blocks import blocks
from muhat.tables.frames import Column

THRESHOLDS = 32
"""Pooled quantiles at which shares of rows are compared."""

CATEGORIES = 40
"""The most frequent categories are compared each, and all others together."""

RARITIES = (0.5, 1.0)
"""A category of the share p counts p to these negative powers, one statistic each: 1 is Pearson's, which sees rare ones
that come or go, and is blind beside it to shares that move a little."""

MOST_PAIRED = 300
"""Pairs are compared where numbers and categories make no more features than this."""

PAIRED_CATEGORIES, LEAST_IN_CATEGORY = 4, 20
"""So many categories of a column are paired with other columns, of those that this many rows have and lack."""

LEAST_COMPLETE = 20
"""Pairs are compared where so many rows have both values."""

_PAIRS = 500  # whose statistics on all splits are in memory at a time


def evidence(statistics: Array, rounding: float = 0.0) -> Array:
    """−log p of rows of statistics on every split, by the gamma distribution of the other splits."""
    if not np.isfinite(statistics).all():
        raise ArithmeticError("a statistic of the comparison is not a number")
    return -log_pvalues([Component("", "", row, rounding * float(row.mean())) for row in statistics])


class Coding(NamedTuple):
    """What the places of a grid become: a code, and normal scores; the weights of the codes in their statistic."""

    codes: NDArray[np.intp]
    scores: Array
    n_codes: int


def coding(grid: Grid) -> Coding:
    """The coding of a grid, from how many rows of its sample have each of its values."""
    pooled = grid.pooled
    if grid.kind == "category" or not len(pooled):
        return Coding(np.minimum(np.arange(len(pooled)), CATEGORIES), np.zeros(0), min(len(pooled), CATEGORIES + 1))
    total, cumulated = pooled.sum(), pooled.cumsum()
    wanted = (np.arange(THRESHOLDS) + 0.5) / THRESHOLDS * total
    ends = np.unique(np.searchsorted(cumulated, wanted))
    ends = ends[cumulated[ends] < total]
    scores = ndtri((cumulated - (pooled - 1) / 2) / (total + 1))
    return Coding(np.searchsorted(ends, np.arange(len(pooled))), scores, len(ends) + 1)


class ColumnEvidence(NamedTuple):
    """Evidence of a column on every split, and standardised differences of place and spread of the tables."""

    values: Array
    missing: Array | None
    place: float
    spread: float


class ColumnSums:
    """Sums over units of the features of one column, to which parts of the tables are added."""

    def __init__(self, coding: Coding, units: Units) -> None:
        self.coding, self.units = coding, units
        self.count = len(units.of_first)
        self.codes = np.zeros((self.count, coding.n_codes + 1))  # the last one: missing
        self.scores = np.zeros((self.count, 2 if len(coding.scores) else 0))

    def add(self, places: NDArray[np.intp], units: NDArray[Any]) -> None:
        """Add rows with these places in these units."""
        used = units >= 0
        places, units = places[used], units[used].astype(np.intp)
        width = self.codes.shape[1]
        codes = np.append(self.coding.codes, width - 1)[places]  # −1 is missing
        flat = np.bincount(units * width + codes, minlength=self.codes.size)
        self.codes += flat.reshape(self.codes.shape)
        if len(self.coding.scores):
            known = places >= 0
            scores = self.coding.scores[places[known]]
            for power in (1, 2):
                self.scores[:, power - 1] += np.bincount(units[known], scores**power, self.count)

    def evidence(self, splits: Splits) -> ColumnEvidence:
        """The evidence on every split."""
        present, lost = self.codes[:, :-1], self.codes[:, -1:]
        here = present.sum(axis=1)
        shares = present.sum(axis=0) / max(here.sum(), 1.0)
        place = spread = 0.0
        if len(self.coding.scores):
            heights = shares.cumsum()[:-1].clip(1e-9, 1.0 - 1e-9)  # 0 where all rows of a value are in no bin
            D = self._differences(present.cumsum(axis=1)[:, :-1], here, splits)
            found = [(1.0 / (heights * (1.0 - heights))) @ D**2]
            D = self._differences(self.scores, here, splits)
            found.append(D[1] ** 2)
            deviations = D.std(axis=1)
            place, spread = (float(D[k, 0] / deviations[k]) if deviations[k] > 0 else 0.0 for k in (0, 1))
        else:
            D = self._differences(present, here, splits)
            found = [(np.where(shares > 0, shares, 1.0) ** -power) @ D**2 for power in RARITIES]
        missing = None
        if lost.any():
            missing = evidence(self._differences(lost, here + lost[:, 0], splits) ** 2, splits.eps)[0]
        return ColumnEvidence(evidence(np.stack(found), splits.eps).max(axis=0), missing, place, spread)

    def _differences(self, sums: Array, sizes: Array, splits: Splits) -> Array:
        """Mean differences of features on every split, up to a factor."""
        centred = centred_sums(sums, sizes, self.units.strata)
        largest = float(np.abs(centred).max(initial=0.0)) or 1.0
        return np.asarray(((centred / largest).astype(splits.centred.dtype).T @ splits.centred), dtype=np.float64)


def centred_sums(sums: Array, sizes: Array, strata: Any) -> Array:
    """Sums over units less what their numbers of rows and the means of their stratum make of them."""
    if strata is None:
        return np.asarray(sums - np.outer(sizes, sums.sum(axis=0) / max(sizes.sum(), 1.0)))
    totals = np.zeros((int(strata.max()) + 1, sums.shape[1]))
    np.add.at(totals, strata, sums)
    rows = np.bincount(strata, weights=sizes)
    return np.asarray(sums - sizes[:, None] * (totals / np.maximum(rows, 1.0)[:, None])[strata])


# ---------------------------------------------------------------- pairs of columns


@dataclass(frozen=True)
class PairedFeatures:
    """Normal scores of numbers and indicators of categories, NaN where a value is missing, with column and category."""

    columns: NDArray[np.intp]
    parts: list[str]
    values: Array


def paired_features(columns: Sequence[Column], strata: Any) -> PairedFeatures:
    """What pairs of the pooled columns are compared by; within strata it is taken from the mean of the stratum."""
    places: list[int] = []
    parts: list[str] = []
    values: list[Array] = []
    for j, column in enumerate(columns):
        for part, each in _features_of(column):
            places.append(j)
            parts.append(part)
            values.append(_standardised(each, strata))
    found = np.column_stack(values) if values else np.empty((0, 0))
    return PairedFeatures(np.array(places, dtype=np.intp), parts, found)


def _features_of(column: Column) -> list[tuple[str, Array]]:
    lost = column.missing
    if column.kind != "category":
        ranks = rankdata(column.values[~lost]) / (np.count_nonzero(~lost) + 1)
        found = np.full(len(lost), np.nan)
        found[~lost] = ndtri(ranks)
        return [("", found)]
    counts = np.bincount(column.values[~lost], minlength=len(column.levels))
    enough = np.flatnonzero((counts >= LEAST_IN_CATEGORY) & (counts.sum() - counts >= LEAST_IN_CATEGORY))
    kept = enough[np.argsort(-counts[enough], kind="stable")][:PAIRED_CATEGORIES]
    kept = kept[:1] if np.count_nonzero(counts) == 2 else kept  # one of two says all
    return [(column.levels[k], np.where(lost, np.nan, (column.values == k).astype(float))) for k in kept]


def _standardised(values: Array, strata: Any) -> Array:
    known = ~np.isnan(values)
    labels = np.zeros(len(values), dtype=np.intp) if strata is None else strata
    totals = np.bincount(labels[known], values[known], labels.max() + 1)
    centred = values - (totals / np.maximum(np.bincount(labels[known], minlength=len(totals)), 1))[labels]
    deviation = float(np.sqrt(np.mean(centred[known] ** 2))) if known.any() else 0.0
    return centred / deviation if deviation > 1e-9 else np.full(len(values), np.nan)


class PairEvidence(NamedTuple):
    """Evidence of two columns on every split, and the feature of each whose correlation changed most."""

    features: tuple[int, int]
    evidence: Array


def pair_evidence(
    features: PairedFeatures, members: NDArray[np.intp], units: Units, splits: Splits
) -> list[PairEvidence]:
    r"""Evidence that the correlation of two columns differs between both sides of every split.

    The statistic of two features is :math:`(r - s)^2 nm/(n + m)`, with r and s their correlations in the n and m rows
    of the two sides that have both. Since r and s do not depend on places and scales in their side, a change of the
    columns themselves hardly counts. Features of a category are added.
    """
    i, j = np.triu_indices(len(features.parts), 1)
    kept = features.columns[i] != features.columns[j]
    i, j = i[kept], j[kept]
    if not len(i):
        return []
    values = features.values[members.ravel()]
    known = ~np.isnan(values)
    filled = np.where(known, values, 0.0).astype(splits.centred.dtype)
    shares = np.zeros(len(units.of_first)) if units.strata is None else units.strata
    _, labels, sizes = np.unique(shares, return_inverse=True, return_counts=True)
    means = (np.bincount(labels, weights=units.of_first) / sizes)[labels]
    first = np.rint(splits.centred + means[:, None].astype(splits.centred.dtype))  # 1 in the first sample

    def sides(rows: Array) -> Array:
        """Sums over both sides of every split, of shape (2, columns, splits)."""
        sums = rows.reshape(len(members), -1, rows.shape[1]).sum(axis=0, dtype=rows.dtype)
        of_first = sums.T @ first
        return np.stack([of_first, sums.sum(axis=0)[:, None] - of_first])

    whole = known.all()
    single = [sides(each) for each in (known.astype(filled.dtype), filled, filled**2)] if whole else []
    found: list[PairEvidence] = []
    column_pairs = features.columns[i] * len(features.parts) + features.columns[j]
    starts = np.flatnonzero(np.append(True, np.diff(column_pairs) != 0))
    for part in blocks(len(starts), _PAIRS):
        own = slice(starts[part.start], starts[part.stop] if part.stop < len(starts) else len(i))
        u, v = i[own], j[own]
        both = (known[:, u] & known[:, v]).astype(filled.dtype)
        x, y = filled[:, u] * both, filled[:, v] * both
        if whole:
            n, *moments = single[0][:, u], single[1][:, u], single[1][:, v], single[2][:, u], single[2][:, v]
        else:
            n, *moments = (sides(each) for each in (both, x, y, x * x, y * y))
        r, s = correlation(n, moments, sides(x * y))
        changes = ((r - s) ** 2 * (n[0] * n[1] / np.maximum(n[0] + n[1], 1.0))).astype(np.float64)
        offsets = starts[part] - own.start
        enough = np.maximum.reduceat(both.sum(axis=0), offsets) >= LEAST_COMPLETE
        rows = evidence(np.add.reduceat(changes, offsets, axis=0) * enough[:, None], splits.eps)
        for offset, row, strengths in zip(offsets, rows, np.split(changes[:, 0], offsets[1:]), strict=True):
            strongest = offset + int(strengths.argmax())
            found.append(PairEvidence((int(u[strongest]), int(v[strongest])), row.astype(np.float32)))
    return found


def correlation(n: Array, moments: Sequence[Array], xy: Array) -> Array:
    """Correlations from sums of n values and of their squares and products; 0 where a column does not vary."""
    n = np.maximum(n, 1.0)
    x, y, xx, yy = (each / n for each in moments)
    variances = (xx - x * x).clip(0.0) * (yy - y * y).clip(0.0)
    r = (xy / n - x * y) / np.sqrt(np.where(variances > 1e-8, variances, np.inf))
    return np.asarray(r.clip(-1.0, 1.0))


def rank_correlations(columns: Sequence[Column], features: PairedFeatures, rows: slice, strata: Any) -> Array:
    """Rank correlations of the features in one table, from the rows that have both values."""
    labels = None if strata is None else strata[rows]
    values = []
    for j, part in zip(features.columns.tolist(), features.parts, strict=True):
        column = columns[j]
        own = column.values[rows].astype(float)
        if column.kind == "category":
            own = np.where(column.missing[rows], np.nan, own == column.levels.index(part))
        values.append(_standardised(np.asarray(rankdata(own, nan_policy="omit")), labels))
    X = np.column_stack(values)
    M = (~np.isnan(X)).astype(float)
    X = np.nan_to_num(X)
    sums, squares = X.T @ M, (X * X).T @ M
    return correlation(M.T @ M, (sums, sums.T, squares, squares.T), X.T @ X)
