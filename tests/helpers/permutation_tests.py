"""Oracles and null distributions of permutation tests."""

import numpy as np
from numpy.testing import assert_allclose
from scipy import stats


def all_of_scipy(statistic, *indices, kind="independent"):
    settings = {"vectorized": False, "alternative": "greater", "n_resamples": np.inf, "permutation_type": kind}
    return stats.permutation_test(indices, statistic, **settings)


def assert_same_test(result, oracle):
    """Both list every permutation; scipy has the observed one among them."""
    assert_allclose(result.statistic, oracle.statistic, rtol=1e-10)
    everything = np.sort([result.statistic, *result.null_distribution])
    assert_allclose(everything, np.sort(oracle.null_distribution), rtol=0, atol=1e-10 * abs(oracle.statistic))
    assert_allclose(result.pvalue, oracle.pvalue, rtol=1e-12)


def gaussian(rng, n):
    return rng.normal(size=(n, 2))


def tied(rng, n):
    return rng.integers(0, 3, size=(n, 2))


def heavy(rng, n):
    return rng.standard_cauchy(size=(n, 2))
