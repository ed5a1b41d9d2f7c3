"""The test of independence: HSIC against its slow formula and scipy, type I error, strata, summaries."""

import itertools

import numpy as np
import oracles
import pytest
from numpy.testing import assert_allclose
from permutation_tests import all_of_scipy, assert_same_test, permuted
from scipy import stats
from tables import KERNELS, sample

import muhat as mh
from muhat.inference import independence, permutations
from muhat.inference.independence import hsic_test
from muhat.means.nested import mean_weights

every_kernel = pytest.mark.parametrize("name", KERNELS)

MEANS = [None, mh.ShrunkKernelMean(), mh.SpectralKernelMean(lam=0.5)]

either_bias = pytest.mark.parametrize("unbiased", [False, True])


DEPENDENT = [
    (lambda x, e: x + e, "column 0 of X and column 0 of Y are correlated"),
    (lambda x, e: np.exp(0.8 * np.abs(x)) * e, "column 0 of X and column 0 of Y have dependent dispersions"),
]


@pytest.mark.parametrize(("change", "words"), DEPENDENT)
def test_words_say_what_depends(change, words):
    rng = np.random.default_rng(0)
    x, e = rng.normal(size=(2, 200, 1))
    result = mh.hsic_test(x, change(x, e), random_state=0)
    assert result.pvalue == 0.001
    assert result.summary.split(" (")[0] == words
    assert any(part.explanation == "rows that are far out in X are far out in Y" for part in result.components)
    assert "no dependence found" in repr(mh.hsic_test(x, e, random_state=0))


@pytest.mark.slow
def test_strata_of_pairs_keep_the_level():
    """Both sides differ between two centres, and are independent within."""

    def draw(rng, strata):
        centre = np.arange(40) % 2
        X, Y = rng.normal(size=(2, 40, 1)) + 3.0 * centre[:, None]
        return mh.hsic_test(X, Y, None, None, 19, rng, strata=centre if strata else None).pvalue

    rng = np.random.default_rng(0)
    assert np.sum([draw(rng, True) <= 0.05 for _ in range(200)]) <= stats.binom.ppf(0.9999, 200, 0.05)
    assert np.mean([draw(rng, False) <= 0.05 for _ in range(20)]) > 0.8


@either_bias
def test_dependence_without_correlation_is_found(unbiased):
    angle = np.random.default_rng(0).uniform(0, 2 * np.pi, size=(150, 1))
    X, Y = np.cos(angle), np.sin(angle)
    assert stats.pearsonr(X[:, 0], Y[:, 0]).pvalue > 0.05
    assert hsic_test(X, Y, random_state=0, unbiased=unbiased).pvalue < 0.01


def slow_hsic(K, L, unbiased):
    n = len(K)
    if not unbiased:
        H = np.eye(n) - 1 / n
        return np.trace(K @ H @ L @ H) / n**2
    K, L, one = K - np.diag(np.diag(K)), L - np.diag(np.diag(L)), np.ones(n)
    constant = (one @ K @ one) * (one @ L @ one) / ((n - 1) * (n - 2))
    return (np.trace(K @ L) + constant - 2 / (n - 2) * one @ K @ L @ one) / (n * (n - 3))


def slow_centred(K, mean):
    return oracles.centred_gram(K, K, mean_weights(mean, K))


@either_bias
@every_kernel
def test_hsic_is_the_slow_formula(name, unbiased):
    X = sample(9, 3, seed=0)
    Y = X[:, :1] ** 2 + sample(9, 1, seed=1)
    K, L = KERNELS[name](X), mh.Laplace(1.0)(Y)
    result = hsic_test(X, Y, KERNELS[name], mh.Laplace(1.0), 9, 0, unbiased=unbiased)
    assert_allclose(result.statistic, slow_hsic(K, L, unbiased), rtol=0, atol=1e-10 * np.trace(K) / len(K))


@either_bias
def test_all_pairings_are_those_of_scipy(unbiased):
    X = sample(6, 2, seed=3)
    Y = X[:, :1] + 0.3 * sample(6, 1, seed=4)
    kernel = mh.Gaussian(1.5)
    K, L = kernel(X), kernel(Y)
    oracle = all_of_scipy(lambda order: slow_hsic(permuted(K, order), L, unbiased), np.arange(6), kind="pairings")
    # Permutations that begin with 0, followed by their shifts, are all permutations.
    orders = np.array([(0, *rest) for rest in itertools.permutations(range(1, 6))])
    centred = [independence._centred(matrix.copy(), unbiased) for matrix in (K, L)]
    null = permutations.pairing_sums(*([K] for K in centred), orders)[0, 0] / (6 * 3 if unbiased else 6**2)
    assert_allclose(np.sort(null.ravel()), np.sort(oracle.null_distribution), rtol=0, atol=1e-14)
    assert_same_test(hsic_test(X, Y, kernel, kernel, 9999, 0, unbiased=unbiased), oracle)


@pytest.mark.parametrize("mean", [*MEANS[1:], mh.RobustKernelMean()])
def test_pairings_of_rows_centred_by_an_estimator_are_those_of_scipy(mean):
    """The estimator is fitted anew to every permuted Gram matrix here, and once in the test."""
    X = sample(5, 2, seed=3)
    Y = X[:, :1] + 0.3 * sample(5, 1, seed=4)
    kernel_x, kernel_y = mh.Gaussian(1.5), 3.0 * mh.Polynomial(2)
    K, L = slow_centred(kernel_x(X), mean), kernel_y(Y)

    def statistic(order):
        return (K * slow_centred(permuted(L, order), mean)).sum() / 25

    oracle = all_of_scipy(statistic, np.arange(5), kind="pairings")
    result = hsic_test(X, Y, kernel_x, kernel_y, 9999, 0, mean=mean)
    assert_same_test(result, oracle)
    centred = mh.KernelCovariance(kernel_x, kernel_y, centering=mean).fit(X, Y).operator_
    assert_allclose(result.statistic, centred.hsic(), rtol=1e-10)
