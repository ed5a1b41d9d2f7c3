"""Tests of single columns of two tables, from counts of their values over all rows.

Counts have the shape (2, values): how many rows of each table have each value.
"""

from __future__ import annotations

import warnings
from math import comb

import numpy as np
from scipy import stats

from muhat.apps.compare.effects import Counts

MOST_ROWS_FOR_EXACT_KS = 1000
LEAST_EXPECTED = 5
"""Categories that are expected in fewer rows are tested together."""

FEW_ROWS = 10
"""Of fewer rows in a table, the dispersion is not tested."""


def numbers_pvalue(counts: Counts) -> float:
    """P-value of ordered values.

    Kolmogorov and Smirnov's test is sensitive to any difference, and Mood's test is more powerful against differences
    in dispersion; the p-value is twice the smaller one.
    """
    if counts.sum(axis=1).min() < FEW_ROWS:
        return smirnov_pvalue(counts)
    return min(1.0, 2.0 * min(smirnov_pvalue(counts), mood_pvalue(counts)))


def smirnov_pvalue(counts: Counts) -> float:
    """Kolmogorov and Smirnov's test for counts of ascending values; exact for few rows.

    >>> round(smirnov_pvalue(np.array([[3, 0], [0, 3]])), 3)
    0.1
    """
    n, m = (int(total) for total in counts.sum(axis=1))
    if max(n, m) <= MOST_ROWS_FOR_EXACT_KS:
        places = np.arange(counts.shape[1])
        with warnings.catch_warnings():  # scipy warns where rounding takes a p-value of 1 beyond it
            warnings.simplefilter("ignore", RuntimeWarning)
            exact = stats.ks_2samp(np.repeat(places, counts[0]), np.repeat(places, counts[1]), method="exact")
        return float(exact.pvalue)
    distance = np.abs((counts[0] / n - counts[1] / m).cumsum()).max()
    return float(np.clip(stats.kstwo.sf(distance, round(n * m / (n + m))), 0.0, 1.0))


def mood_pvalue(counts: Counts) -> float:
    """Mood's test of equal dispersion: are the ranks of one table farther from the middle?

    The statistic is the sum of squared distances of the mid-ranks from their mean. Under random splits its first three
    moments are known exactly, with ties, and a Pearson curve of type III has them.
    """
    counts = counts.astype(float)  # products of floats and whole numbers are slow
    pooled = counts.sum(axis=0)
    (n, m), total = counts.sum(axis=1), float(pooled.sum())
    ranks = (pooled.cumsum() - 0.5 * (pooled - 1)) / total
    scores = (ranks - (total + 1) / (2 * total)) ** 2
    scores -= (scores * pooled).sum() / total  # products by BLAS depend on the number of threads
    squares = scores * scores * pooled
    variance = n * m * squares.sum() / (total * (total - 1))
    if variance <= 1e-14:
        return 1.0
    third = n * m * (m - n) * (squares * scores).sum() / (total * (total - 1) * (total - 2))
    skewness = third / variance**1.5
    z = (scores * counts[0]).sum() / np.sqrt(variance)
    tails = stats.pearson3.cdf(z, skewness), stats.pearson3.sf(z, skewness)
    return float(min(1.0, 2.0 * min(tails)))


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
        return shares_pvalue(table)
    return float(stats.chi2_contingency(table, correction=False).pvalue)


def shares_pvalue(table: Counts) -> float:
    """P-value of two shares: Fisher's exact test for few rows, Pearson's χ² for many."""
    expected = table.sum(axis=1)[:, None] * table.sum(axis=0) / table.sum()
    if not expected.all():
        return 1.0
    if expected.min() < 20:
        return float(min(1.0, stats.fisher_exact(table).pvalue))
    return float(stats.chi2_contingency(table, correction=False).pvalue)


def smallest_pvalue(n: int, m: int) -> float:
    """The smallest p-value that a column of numbers can have with so few rows, without ties.

    >>> smallest_pvalue(3, 3)
    0.1
    """
    doubled = 1 if min(n, m) < FEW_ROWS else 2
    return min(1.0, doubled * 2 / comb(n + m, n)) if n + m < 200 else 0.0
