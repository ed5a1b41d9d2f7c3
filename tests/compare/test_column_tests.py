"""Tests of single columns against scipy and permutations, and their level."""

import numpy as np
import pytest
from scipy import stats

from muhat.apps.compare.column_counts import count_column
from muhat.apps.compare.column_tests import (
    categories_pvalue,
    mood_pvalue,
    numbers_pvalue,
    shares_pvalue,
    smallest_pvalue,
    smirnov_pvalue,
)
from muhat.tables.frames import as_table


def counts_of(x, y):
    return count_column([as_table({"x": values}).columns[0] for values in (x, y)]).counts[0]


def mood_statistic(x, y, axis=-1):
    ranks = stats.rankdata(np.concatenate([x, y], axis=axis), axis=axis)
    size = ranks.shape[axis]
    return np.sum((np.take(ranks, range(x.shape[axis]), axis=axis) - (size + 1) / 2) ** 2, axis=axis)


def test_column_tests_against_their_oracles():
    rng = np.random.default_rng(0)
    x, y = rng.integers(9, size=70) * 1.0, rng.integers(9, size=45) ** 1.1
    counts = counts_of(x, y)
    assert smirnov_pvalue(counts) == pytest.approx(stats.ks_2samp(x, y, method="exact").pvalue, rel=1e-10)
    large = [np.repeat(x, 40), np.repeat(y, 40)]
    assert smirnov_pvalue(counts * 40) == pytest.approx(stats.ks_2samp(*large, method="asymp").pvalue)
    draws = stats.permutation_test((x, y), mood_statistic, n_resamples=4000, rng=1, permutation_type="independent")
    assert mood_pvalue(counts) == pytest.approx(draws.pvalue, abs=4 * np.sqrt(0.25 / 4000))
    table = np.array([[50, 30, 20], [40, 45, 15]])
    assert categories_pvalue(table) == pytest.approx(stats.chi2_contingency(table).pvalue)
    few = np.array([[3, 9], [8, 2]])
    assert shares_pvalue(few) == pytest.approx(stats.fisher_exact(few).pvalue)


def test_columns_that_cannot_differ():
    for counts in ([[5], [7]], [[3, 0], [2, 0]], [[1, 1, 1], [1, 1, 1]]):  # one category; an absent one; rare ones
        assert categories_pvalue(np.array(counts)) == 1.0
    assert mood_pvalue(np.array([[4], [5]])) == 1.0
    assert smirnov_pvalue(np.array([[1, 399], [0, 400]])) == 1.0


def test_the_smallest_pvalue_is_that_of_samples_far_apart():
    for n, m in ((3, 4), (9, 9), (12, 30)):
        counts = counts_of(np.arange(n) * 1.0, 99.0 + np.arange(m))
        assert smirnov_pvalue(counts) * (2 if min(n, m) >= 10 else 1) == pytest.approx(smallest_pvalue(n, m))


@pytest.mark.slow
def test_the_level_is_kept():
    """Of 200 pairs of samples of one distribution, at level 0.1, more than 34 findings have a chance of 0.1 %."""
    rng = np.random.default_rng(0)
    found = np.zeros(2)
    for _ in range(200):
        numbers = counts_of(*(rng.exponential(size=n).round(1) for n in (25, 60)))
        texts = counts_of(*(rng.integers(3, size=n).astype(str) for n in (25, 60)))
        found += [numbers_pvalue(numbers) <= 0.1, categories_pvalue(texts) <= 0.1]
    assert (found <= 34).all()
