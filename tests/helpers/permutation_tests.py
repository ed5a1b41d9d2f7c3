"""Oracles and null distributions of permutation tests."""

import itertools

import numpy as np
from numpy.testing import assert_allclose
from scipy import stats

from muhat.inference.permutations import centred_splits, other_splits


def all_of_scipy(statistic, *indices, kind="independent"):
    settings = {"vectorized": False, "alternative": "greater", "n_resamples": np.inf, "permutation_type": kind}
    return stats.permutation_test(indices, statistic, **settings)


def assert_same_test(result, oracle):
    """Both list every permutation; scipy has the observed one among them."""
    assert_allclose(result.statistic, oracle.statistic, rtol=1e-10)
    everything = np.sort([result.statistic, *result.null_distribution])
    assert_allclose(everything, np.sort(oracle.null_distribution), rtol=0, atol=1e-10 * abs(oracle.statistic))
    assert_allclose(result.pvalue, oracle.pvalue, rtol=1e-12)


def splits_of(n, m, count=7, seed=0, strata=None):
    """The observed split and others, as columns of zeros and ones; and the same, centred."""
    observed = np.repeat([1.0, 0.0], [n, m])
    drawn = list(other_splits(observed, count, np.random.default_rng(seed), strata))
    return np.column_stack([observed, *drawn]), centred_splits(observed, count, np.random.default_rng(seed), strata)


def all_splits(n, total):
    """Every choice of n among so many rows, as columns of zeros and ones."""
    chosen = list(itertools.combinations(range(total), n))
    return np.array([[float(i in part) for part in chosen] for i in range(total)])


def permuted(L, order):
    """Rows and columns of a Gram matrix in another order."""
    return L[np.ix_(order, order)]
