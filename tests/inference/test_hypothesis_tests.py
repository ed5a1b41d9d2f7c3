"""Tests between samples: against slow formulas, against scipy's permutations, and their level under the null."""

import itertools
from dataclasses import FrozenInstanceError
from fractions import Fraction

import numpy as np
import oracles
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from tables import KERNELS, sample

import muhat as mh
from muhat.inference import dependence_statistics, independence, resampling, two_sample
from muhat.inference.independence import hsic_test
from muhat.inference.two_sample import mmd_test
from muhat.means.nested import mean_element, mean_weights

every_kernel = pytest.mark.parametrize("name", KERNELS)
either_test = pytest.mark.parametrize("test", [mmd_test, hsic_test])
MEANS = [None, mh.ShrunkKernelMean(), mh.SpectralKernelMean(lam=0.5)]
either_bias = pytest.mark.parametrize("unbiased", [False, True])


# ---------------------------------------------------------------- slow, obvious versions


def slow_mmd(K, first, second, unbiased):
    def average(rows, columns):
        pairs = [(i, j) for i in rows for j in columns if not unbiased or i != j]
        return sum(K[i, j] for i, j in pairs) / len(pairs)

    return average(first, first) + average(second, second) - 2 * average(first, second)


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


def all_splits(n, total):
    chosen = list(itertools.combinations(range(total), n))
    return np.array([[float(i in part) for part in chosen] for i in range(total)])


def permuted(L, order):
    return L[np.ix_(order, order)]


def all_of_scipy(statistic, *indices, kind="independent"):
    settings = {"vectorized": False, "alternative": "greater", "n_resamples": np.inf, "permutation_type": kind}
    return stats.permutation_test(indices, statistic, **settings)


def assert_same_test(result, oracle):
    """Both list every permutation; scipy has the observed one among them."""
    assert_allclose(result.statistic, oracle.statistic, rtol=1e-10)
    everything = np.sort([result.statistic, *result.null_distribution])
    assert_allclose(everything, np.sort(oracle.null_distribution), rtol=0, atol=1e-10 * abs(oracle.statistic))
    assert_allclose(result.pvalue, oracle.pvalue, rtol=1e-12)


# ---------------------------------------------------------------- statistics


@either_bias
@every_kernel
def test_mmd_is_the_slow_formula(name, unbiased):
    X, Y = sample(7, 3, seed=0), sample(5, 3, seed=1, shift=0.0)
    K = KERNELS[name](np.concatenate([X, Y]))
    result = mmd_test(X, Y, KERNELS[name], 9, 0, unbiased=unbiased)
    want = slow_mmd(K, range(7), range(7, 12), unbiased)
    assert_allclose(result.statistic, want, rtol=0, atol=1e-10 * np.trace(K) / len(K))


@either_bias
@every_kernel
def test_hsic_is_the_slow_formula(name, unbiased):
    X = sample(9, 3, seed=0)
    Y = X[:, :1] ** 2 + sample(9, 1, seed=1)
    K, L = KERNELS[name](X), mh.Laplace(1.0)(Y)
    result = hsic_test(X, Y, KERNELS[name], mh.Laplace(1.0), 9, 0, unbiased=unbiased)
    assert_allclose(result.statistic, slow_hsic(K, L, unbiased), rtol=0, atol=1e-10 * np.trace(K) / len(K))


@pytest.mark.parametrize("shift", [1e3, 1e6])
def test_far_from_the_origin(shift):
    """The linear kernel reaches shift², of which the statistics are a tiny difference."""
    X, Y = sample(300, 2, seed=0, shift=0.0), sample(200, 2, seed=1, shift=1.0)
    want = ((X.mean(axis=0) - Y.mean(axis=0)) ** 2).sum()
    assert_allclose(mmd_test(X + shift, Y + shift, mh.Linear(), 9).statistic, want, rtol=1e-15 * shift**2)


# ---------------------------------------------------------------- null distributions, scipy as the oracle


@either_bias
def test_all_splits_are_those_of_scipy(unbiased):
    X, Y = sample(4, 2, seed=0), sample(5, 2, seed=1, shift=1.2)
    kernel = mh.Gaussian(1.5)
    K = kernel(np.concatenate([X, Y]))
    oracle = all_of_scipy(lambda x, y: slow_mmd(K, x, y, unbiased), np.arange(4), np.arange(4, 9))
    means = two_sample.estimated_means(None, K, 4, unbiased)
    null = means.statistics(all_splits(4, 9))
    assert_allclose(np.sort(null), np.sort(oracle.null_distribution), rtol=0, atol=1e-14)
    assert_same_test(mmd_test(X, Y, kernel, 9999, 0, unbiased=unbiased), oracle)


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
    null = dependence_statistics.pairing_sums(*([K] for K in centred), orders)[0, 0] / (6 * 3 if unbiased else 6**2)
    assert_allclose(np.sort(null.ravel()), np.sort(oracle.null_distribution), rtol=0, atol=1e-14)
    assert_same_test(hsic_test(X, Y, kernel, kernel, 9999, 0, unbiased=unbiased), oracle)


@pytest.mark.parametrize("mean", [*MEANS[1:], mh.RobustKernelMean()])
def test_pairings_of_rows_centred_by_a_recipe_are_those_of_scipy(mean):
    """The recipe is fitted anew to every permuted Gram matrix here, and once in the test."""
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


@either_bias
def test_the_plain_average_by_name_is_the_default(unbiased):
    X, Y = sample(30, 2, seed=0), sample(30, 1, seed=1)
    plain, named = (
        hsic_test(X, Y, mh.Gaussian(), random_state=0, mean=mean, unbiased=unbiased) for mean in (None, mh.KernelMean())
    )
    assert_array_equal([plain.statistic, *plain.null_distribution], [named.statistic, *named.null_distribution])


@pytest.mark.parametrize("n", [2, 3, 4, 5, 8, 9, 131, 260])
def test_families_of_pairings_are_shifts(n):
    """260 rows have more diagonals than a block holds."""
    rng = np.random.default_rng(n)
    K, L = (A + A.T for A in rng.normal(size=(2, n, n)))
    orders = rng.permuted(np.tile(np.arange(n), (3, 1)), axis=1)
    sums = dependence_statistics.pairing_sums([K], [L], orders)[0, 0]
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


def test_each_kernel_value_is_computed_once():
    seen = []

    class Counted(mh.kernels.Kernel):
        def evaluate(self, X, Y):
            seen.append(len(X) * len(Y))
            return np.exp(-((X[:, None] - Y[None]) ** 2).sum(axis=-1))

        def diagonal(self, X):
            return np.ones(len(X))

    kernel = Counted()
    X, Y = sample(30, 2, seed=0), sample(40, 2, seed=1)
    for mean in MEANS:
        seen.clear()
        mmd_test(X, Y, kernel, 19, 0, mean=mean)
        assert sum(seen) == 70**2
        seen.clear()
        hsic_test(X, Y[:30], kernel, kernel, 99, 0, mean=mean)
        assert sum(seen) == 2 * 30**2


@pytest.mark.parametrize("mean", MEANS)
def test_blocks_do_not_matter(mean, monkeypatch):
    X, Y = sample(30, 2, seed=0), sample(21, 2, seed=1)
    whole = mmd_test(X, Y, mh.Gaussian(), 25, 3, mean=mean)
    monkeypatch.setattr(resampling, "SPLIT_BYTES", 8 * 51 * 4)
    monkeypatch.setattr(two_sample, "_ROWS", 8)
    blocked = mmd_test(X, Y, mh.Gaussian(), 25, 3, mean=mean)
    assert_allclose(blocked.null_distribution, whole.null_distribution, rtol=0, atol=1e-14)
    assert blocked.pvalue == whole.pvalue


def test_ties_are_those_of_exact_arithmetic():
    """Rows of 0 and 1 under the linear kernel: the exact statistics are fractions, with many ties."""
    Z = np.random.default_rng(0).integers(0, 2, size=(9, 2))
    splits = all_splits(4, 9)
    exact = []
    for split in splits.T == 1:
        first, second = Z[split].sum(axis=0), Z[~split].sum(axis=0)
        exact.append(sum((Fraction(int(a), 4) - Fraction(int(b), 5)) ** 2 for a, b in zip(first, second, strict=True)))
    K = mh.Linear()(Z)
    null = two_sample.estimated_means(None, K, 4, False).statistics(splits)
    rounding = np.finfo(float).eps * np.trace(K) / 9
    for i in range(len(exact)):
        reached = sum(value >= exact[i] for value in exact)
        assert resampling.permutation_pvalue(null[i], null, rounding) == (reached + 1) / (len(exact) + 1)


@either_bias
@pytest.mark.parametrize("kernel", [mh.Gaussian(0.7), mh.Linear(), mh.Polynomial(3), 1e6 * mh.Laplace(1.0)])
def test_constant_rows_give_p_one(kernel, unbiased):
    constant, other = np.full((30, 2), 0.1), sample(30, 2, seed=0)
    assert mmd_test(constant, constant, kernel, 99, 0, unbiased=unbiased).pvalue == 1
    assert hsic_test(constant, other, kernel, kernel, 99, 0, unbiased=unbiased).pvalue == 1
    assert hsic_test(other, constant, kernel, kernel, 99, 0, unbiased=unbiased).pvalue == 1
    assert mmd_test(constant, constant, kernel, 99, 0, mean=mh.ShrunkKernelMean()).pvalue == 1
    assert hsic_test(constant, other, kernel, kernel, 99, 0, mean=mh.ShrunkKernelMean(shrinkage=0.3)).pvalue == 1


# ---------------------------------------------------------------- level and power


def mmd_pvalue(rng, **settings):
    return mmd_test(rng.normal(size=(7, 2)), rng.normal(size=(9, 2)), mh.Gaussian(1.5), 19, rng, **settings).pvalue


def hsic_pvalue(rng, n=8, **settings):
    X, Y = rng.normal(size=(n, 2)), rng.normal(size=(n, 1))
    return hsic_test(X, Y, mh.Gaussian(1.5), mh.Gaussian(1.0), 19, rng, **settings).pvalue


LEVELS = [
    (mmd_pvalue, {}),
    (mmd_pvalue, {"unbiased": True}),
    (mmd_pvalue, {"mean": mh.ShrunkKernelMean()}),
    (hsic_pvalue, {}),
    (hsic_pvalue, {"unbiased": True}),
    (hsic_pvalue, {"mean": mh.ShrunkKernelMean()}),
    (hsic_pvalue, {"mean": mh.MedianOfMeans(n_blocks=3, random_state=0)}),  # the same draw of blocks on both sides
    (hsic_pvalue, {"n": 20}),  # one whole family
    (hsic_pvalue, {"n": 31}),  # a part of one
]


@pytest.mark.slow
@pytest.mark.parametrize(("pvalue", "settings"), LEVELS)
def test_level_on_a_thousand_nulls(pvalue, settings):
    """A 5 % test rejects 5 % of 1,000 true hypotheses, within the central 99.99 % of the binomial."""
    rng = np.random.default_rng(12345)
    pvalues = np.array([pvalue(rng, **settings) for _ in range(1000)])
    for level in (0.05, 0.25, 0.5):
        low, high = stats.binom.interval(0.9999, 1000, level)
        assert low <= np.count_nonzero(pvalues <= level + 1e-9) <= high


@pytest.mark.parametrize("mean", MEANS)
def test_another_variance_is_found(mean):
    X, Y = sample(40, 2, seed=0, shift=0.0), 3.0 * sample(40, 2, seed=1, shift=0.0)
    assert stats.ttest_ind(X, Y).pvalue.min() > 0.05
    assert mmd_test(X, Y, n_resamples=39, random_state=0, mean=mean).pvalue == 1 / 40


@either_bias
def test_dependence_without_correlation_is_found(unbiased):
    angle = np.random.default_rng(0).uniform(0, 2 * np.pi, size=(150, 1))
    X, Y = np.cos(angle), np.sin(angle)
    assert stats.pearsonr(X[:, 0], Y[:, 0]).pvalue > 0.05
    assert hsic_test(X, Y, random_state=0, unbiased=unbiased).pvalue < 0.01


@pytest.mark.parametrize("shrinkage", ["loo", 0.0, 0.3, 1.0])
@pytest.mark.parametrize("name", ["linear", "polynomial2", "gaussian", "gaussian_narrow"])
def test_shrunk_means_are_refits(name, shrinkage):
    Z = sample(9, 3, seed=0, shift=0.2)
    K, splits = KERNELS[name](Z), all_splits(4, 9)
    mean = mh.ShrunkKernelMean(shrinkage=shrinkage)
    fast, slow = two_sample._ShrunkMeans(K, 4, mean), two_sample._RefittedMeans(K, 4, mean)
    assert_allclose(fast.weights(splits), slow.weights(splits), rtol=0, atol=1e-12)
    assert_allclose(fast.statistics(splits), slow.statistics(splits), rtol=0, atol=1e-12 * np.trace(K))


@pytest.mark.parametrize("mean", [*MEANS, mh.KernelMean(), mh.SpectralKernelMean(kernel=mh.Linear())])
def test_witness_is_the_difference_of_the_means(mean):
    """Of the recipe's means in the space of the test's kernel, whatever the recipe's own."""
    X, Y = sample(8, 2, seed=0), sample(11, 2, seed=1, shift=0.0)
    result = mmd_test(X, Y, mh.Gaussian(), 3, 0, mean=mean)
    assert result.kernel == mh.Gaussian().resolve(np.concatenate([X, Y]))
    witness = mean_element(mean, result.kernel, X) - mean_element(mean, result.kernel, Y)
    # The search over lam is repeated on values that differ in the last digits: 2e-7 of a weight.
    tolerance = 1e-6 if isinstance(mean, mh.SpectralKernelMean) else 1e-12
    assert_allclose(result.witness(X), witness(X), rtol=0, atol=tolerance)
    assert_allclose(result.statistic, result.witness.norm() ** 2, rtol=1e-10)


# ---------------------------------------------------------------- laws


@either_bias
def test_a_multiple_of_the_kernel_changes_no_p_value(unbiased):
    X, Y = sample(20, 2, seed=0), sample(20, 2, seed=1, shift=0.9)
    for factor in (1e-100, 0.3, 1e100):
        for test in (mmd_test, lambda *a, **k: hsic_test(*a[:2], a[2], mh.Laplace(1.0), *a[3:], **k)):
            plain = test(X, Y, mh.Gaussian(1.0), 99, 0, unbiased=unbiased)
            scaled = test(X, Y, factor * mh.Gaussian(1.0), 99, 0, unbiased=unbiased)
            assert scaled.pvalue == plain.pvalue
            assert_allclose(scaled.statistic, factor * plain.statistic, rtol=1e-10)
        plain, scaled = (
            hsic_test(X, Y, kernel, mh.Laplace(1.0), 99, 0, mean=mh.ShrunkKernelMean())
            for kernel in (mh.Gaussian(1.0), factor * mh.Gaussian(1.0))
        )
        assert scaled.pvalue == plain.pvalue
        assert_allclose(scaled.statistic, factor * plain.statistic, rtol=1e-10)


@either_test
@pytest.mark.parametrize("scale", [1e-150, 1e-30, 1e30, 1e150])
def test_scale_of_the_data(test, scale):
    X = sample(15, 2, seed=0, shift=0.0)
    Y = X + sample(15, 2, seed=1)
    plain, scaled = test(X, Y, random_state=0), test(scale * X, scale * Y, random_state=0)
    assert scaled.pvalue == plain.pvalue
    assert_allclose(scaled.statistic, plain.statistic, rtol=1e-10)


def test_values_too_large_or_small_to_multiply():
    """HSIC multiplies two kernels: 1e-200 times 1e-200 is 0, and the p-value still knows better."""
    X = sample(15, 1, seed=0, shift=0.0)
    plain, tiny = (hsic_test(s * X, s * X**2 + s * X, mh.Linear(), mh.Linear(), 99, 0) for s in (1.0, 1e-100))
    assert tiny.pvalue == plain.pvalue
    with pytest.raises(ValueError, match=r"[Rr]escale"):
        hsic_test(1e100 * X, 1e100 * X, mh.Linear(), mh.Linear(), 9)
    with pytest.raises(ValueError, match=r"[Rr]escale"):
        mmd_test(1e200 * X, 1e200 * X, mh.Linear(), 9)


@either_test
def test_two_rows_and_repeated_rows(test):
    two = np.array([[0.0, 1.0], [2.0, 5.0]])
    for X, Y in ((two, two + 1), (np.repeat(two, 3, axis=0), np.repeat(two[::-1], 3, axis=0))):
        result = test(X, Y, n_resamples=9, random_state=0)
        assert np.isfinite([result.statistic, *result.null_distribution]).all()
        assert 0.1 <= result.pvalue <= 1


@either_test
def test_input_types_and_seeds(test):
    X, Y = sample(12, 2, seed=0).astype(np.float32), sample(12, 2, seed=1).astype(np.float32)
    result = test(X, Y, random_state=5)
    frames = test(pd.DataFrame(X), pd.DataFrame(Y), random_state=np.random.default_rng(5))
    lists = test(X.tolist(), Y.tolist(), random_state=5)
    for other in (frames, lists):
        assert_array_equal(other.null_distribution, result.null_distribution)
    assert (test(X, Y, random_state=6).null_distribution != result.null_distribution).any()
    assert {type(result.statistic), type(result.pvalue)} == {float}


def test_results_are_frozen_and_say_what_was_found():
    X, Y = sample(12, 2, seed=0), 7.0 * sample(12, 3, seed=1)
    mmd, hsic = mmd_test(X, Y[:, :2]), hsic_test(X, Y, kernel_y=mh.Laplace())
    assert (hsic.kernel_x, hsic.kernel_y) == (mh.Gaussian().resolve(X), mh.Laplace().resolve(Y))
    for result, name in ((mmd, "MMDResult"), (hsic, "HSICResult")):
        assert repr(result).startswith(f"{name}(statistic=")
        assert f"pvalue={result.pvalue:.4g}, n_resamples=999" in repr(result)
        with pytest.raises(FrozenInstanceError):
            result.pvalue = 0.0
