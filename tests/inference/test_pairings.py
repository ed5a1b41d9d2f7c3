"""Pairings of rows, and their sums by Fourier transforms."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from tables import sample

import muhat as mh
from muhat.inference import pairings
from muhat.inference.independence import hsic_test
from muhat.inference.two_sample import mmd_test

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("strata", [None, [0, 0, 0, 0, 1, 1]])
def test_few_pairings_are_listed(strata):
    drawn, smallest = pairings.draw_pairings(6, None if strata is None else np.array(strata), 999, RNG)
    pairs = drawn.permutations()
    every = [p for p in itertools.permutations(range(6)) if strata is None or max(p[:4]) == 3]
    assert_array_equal(pairs[0], range(6))
    assert sorted(map(tuple, pairs)) == every
    assert_allclose(smallest, 1 / len(every))
    with_fewer, smallest = pairings.draw_pairings(6, None, 718, RNG)
    assert len(with_fewer.permutations()) == 719
    assert_allclose(smallest, 1 / 719)


def permuted(L, order):
    return L[np.ix_(order, order)]


@pytest.mark.parametrize("n", [2, 3, 4, 5, 8, 9, 131, 260])
def test_families_of_pairings_are_shifts(n):
    """260 rows have more diagonals than a block holds."""
    rng = np.random.default_rng(n)
    K, L = (A + A.T for A in rng.normal(size=(2, n, n)))
    orders = rng.permuted(np.tile(np.arange(n), (3, 1)), axis=1)
    sums = pairings.pairing_sums([K], [L], orders)[0, 0]
    for b, t in itertools.product(range(3), {0, 1, n // 2, n - 1}):
        want = (permuted(K, orders[0]) * permuted(L, np.roll(orders[b], -t))).sum()
        assert_allclose(sums[b, t], want, rtol=0, atol=1e-13 * n**2)


@pytest.mark.parametrize("n_resamples", [1, 6, 7, 8, 20, 50])
def test_the_number_of_resamples_is_kept(n_resamples):
    """Combined statistics within 1e-8 are ties: with this seed, one resample of HSIC is one, at 6e-9."""
    X, Y = sample(7, 2, seed=0), sample(7, 1, seed=1)
    options = {"n_resamples": n_resamples, "random_state": 295}
    for result in (hsic_test(X, Y, **options), mmd_test(X, X + 1, **options)):
        assert result.null_distribution.shape == (n_resamples,)
        reached = np.count_nonzero(result.null_distribution >= result.statistic * (1 - 1e-8))
        assert result.pvalue == (reached + 1) / (n_resamples + 1)


@pytest.mark.slow
def test_families_scatter_the_p_value_no_more_than_independent_draws():
    X = sample(40, 2, seed=0)
    Y = 0.25 * X + sample(40, 2, seed=1)
    pvalues = np.array([hsic_test(X, Y, mh.Gaussian(), None, 79, seed).pvalue for seed in range(400)])
    binomial = pvalues.mean() * (1 - pvalues.mean()) / 79
    low, high = stats.chi2.ppf([1e-4, 1 - 1e-4], 399) / 399
    assert low < pvalues.var(ddof=1) / binomial < high
