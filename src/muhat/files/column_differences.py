"""Tests and effect sizes of single columns of two tables, from counts of values over all rows."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from muhat.files.summaries import Summary
from muhat.files.tables import Kind
from muhat.types import Array

MOST_ROWS_FOR_EXACT_KS = 1000
LEAST_EXPECTED = 5
"""Categories that are expected in fewer rows are tested together."""

FEW_ROWS = 10
"""Of fewer rows in a table, the spread is not tested."""

MEASURES: dict[Kind, str] = {"number": "KS distance", "date": "KS distance", "category": "total variation"}
"""What :func:`column_size` computes."""

Counts = NDArray[np.int64]


def column_pvalue(summary: Summary) -> float:
    """The p-value of one column by itself.

    Numbers and dates are tested by Kolmogorov and Smirnov's test, which sees any difference, and by Mood's, which sees
    spreads better; the p-value is twice the smaller one. Categories are tested by Pearson's χ².
    """
    counts = summary.counts
    if not counts.sum(axis=1).all():
        return 1.0
    if summary.kind == "category":
        return categories_pvalue(counts)
    if counts.sum(axis=1).min() < FEW_ROWS:
        return smirnov_pvalue(counts)
    return min(1.0, 2.0 * min(smirnov_pvalue(counts), mood_pvalue(counts)))


def column_size(summary: Summary) -> float:
    """How much a column differs, between 0 and 1; :data:`MEASURES` names it.

    For numbers this is the largest difference between the shares of rows up to any threshold, for categories the share
    of the rows that would have to change theirs.
    """
    counts = summary.counts
    if not counts.sum(axis=1).all():
        return 0.0
    shares = counts / counts.sum(axis=1, keepdims=True)
    gaps = shares[0] - shares[1]
    return float(0.5 * np.abs(gaps).sum() if summary.kind == "category" else np.abs(gaps.cumsum()).max())


def smirnov_pvalue(counts: Counts) -> float:
    """Kolmogorov and Smirnov's test for counts of ascending values; exact for few rows.

    >>> round(smirnov_pvalue(np.array([[3, 0], [0, 3]])), 3)
    0.1
    """
    n, m = (int(total) for total in counts.sum(axis=1))
    if max(n, m) <= MOST_ROWS_FOR_EXACT_KS:
        places = np.arange(counts.shape[1])
        return float(stats.ks_2samp(np.repeat(places, counts[0]), np.repeat(places, counts[1]), method="exact").pvalue)
    distance = np.abs((counts[0] / n - counts[1] / m).cumsum()).max()
    return float(np.clip(stats.kstwo.sf(distance, round(n * m / (n + m))), 0.0, 1.0))


def mood_pvalue(counts: Counts) -> float:
    """Mood's test of equal spreads: are the ranks of one table farther from the middle?

    The statistic is the sum of squared distances of the (middle) ranks from their mean. Under random splits its first
    three moments are known exactly, with ties, and a Pearson curve of type III has them.
    """
    pooled = counts.sum(axis=0)
    (n, m), total = counts.sum(axis=1).astype(float), float(pooled.sum())
    ranks = (pooled.cumsum() - 0.5 * (pooled - 1)) / total
    scores = (ranks - (total + 1) / (2 * total)) ** 2
    scores -= scores @ pooled / total
    squares, cubes = scores**2 @ pooled, scores**3 @ pooled
    variance = n * m * squares / (total * (total - 1))
    if variance <= 1e-14:
        return 1.0
    third = n * m * (m - n) * cubes / (total * (total - 1) * (total - 2))
    curve = stats.pearson3(third / variance**1.5)
    z = scores @ counts[0] / np.sqrt(variance)
    return float(min(1.0, 2.0 * min(curve.cdf(z), curve.sf(z))))


def categories_pvalue(counts: Counts) -> float:
    """Pearson's χ² where enough rows are expected of each category; Fisher's exact test where not.

    >>> round(categories_pvalue(np.array([[24, 65], [53, 36]])), 7)
    1.15e-05
    """
    pooled = counts.sum(axis=0)
    counts = counts[:, np.argsort(-pooled, kind="stable")]
    expected = counts.sum(axis=0) * counts.sum(axis=1).min() / counts.sum()
    frequent = expected >= LEAST_EXPECTED
    rare = counts[:, ~frequent].sum(axis=1, keepdims=True)
    table = np.column_stack([counts[:, frequent], rare]) if rare.sum() else counts[:, frequent]
    if rare.sum() and rare.sum() * counts.sum(axis=1).min() / counts.sum() < LEAST_EXPECTED and table.shape[1] > 2:
        table = np.column_stack([table[:, :-2], table[:, -2:].sum(axis=1)])
    if table.shape[1] < 2 and counts.shape[1] > 1:
        table = np.column_stack([counts[:, 0], counts[:, 1:].sum(axis=1)])
    if table.shape[1] < 2:
        return 1.0
    if table.shape[1] == 2:
        return two_by_two_pvalue(table)
    return float(stats.chi2_contingency(table, correction=False).pvalue)


def two_by_two_pvalue(table: Counts) -> float:
    """Of two shares: Fisher's exact test for few rows, Pearson's χ² for many."""
    expected = table.sum(axis=1)[:, None] * table.sum(axis=0) / table.sum()
    if not expected.all():
        return 1.0
    if expected.min() < 20:
        return float(min(1.0, stats.fisher_exact(table).pvalue))
    return float(stats.chi2_contingency(table, correction=False).pvalue)


def missing_pvalue(summary: Summary) -> float:
    """Are values missing in different shares of the rows?"""
    return two_by_two_pvalue(np.array([summary.missing, summary.present], dtype=np.int64).T)


def smallest_pvalue(n: int, m: int) -> float:
    """The smallest p-value that a column of numbers can have with so few rows, without ties.

    >>> smallest_pvalue(3, 3)
    0.1
    """
    doubled = 1 if min(n, m) < FEW_ROWS else 2
    return min(1.0, doubled * 2 / comb(n + m, n)) if n + m < 200 else 0.0


def holm(pvalues: Sequence[float]) -> Array:
    """P-values adjusted so that the chance of any false finding stays below the level (Holm 1979).

    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    values = np.asarray(pvalues, dtype=float)
    order = np.argsort(values, kind="stable")
    steps = np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1)).clip(max=1.0)
    adjusted = np.empty(len(values))
    adjusted[order] = steps
    return adjusted
