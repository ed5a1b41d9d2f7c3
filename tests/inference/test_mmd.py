"""MMD against its slow formula and scipy's permutation test, and its witness."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from permutation_tests import all_of_scipy, all_splits, assert_same_test
from tables import KERNELS, sample

import muhat as mh
from muhat.inference import mmd, permutations
from muhat.inference.mmd import split_statistics, unbiased_mean_similarities
from muhat.inference.two_sample import mmd_test

every_kernel = pytest.mark.parametrize("name", KERNELS)

either_bias = pytest.mark.parametrize("unbiased", [False, True])


def slow_mmd(K, first, second, unbiased):
    def average(rows, columns):
        pairs = [(i, j) for i in rows for j in columns if not unbiased or i != j]
        return sum(K[i, j] for i, j in pairs) / len(pairs)

    return average(first, first) + average(second, second) - 2 * average(first, second)


@either_bias
@every_kernel
def test_mmd_is_the_slow_formula(name, unbiased):
    X, Y = sample(7, 3, seed=0), sample(5, 3, seed=1, shift=0.0)
    K = KERNELS[name](np.concatenate([X, Y]))
    result = mmd_test(X, Y, KERNELS[name], 9, 0, unbiased=unbiased)
    want = slow_mmd(K, range(7), range(7, 12), unbiased)
    assert_allclose(result.statistic, want, rtol=0, atol=1e-10 * np.trace(K) / len(K))


@either_bias
def test_all_splits_are_those_of_scipy(unbiased):
    X, Y = sample(4, 2, seed=0), sample(5, 2, seed=1, shift=1.2)
    kernel = mh.Gaussian(1.5)
    K = kernel(np.concatenate([X, Y]))
    oracle = all_of_scipy(lambda x, y: slow_mmd(K, x, y, unbiased), np.arange(4), np.arange(4, 9))
    null = split_statistics(K, all_splits(4, 9), unbiased)
    assert_allclose(np.sort(null), np.sort(oracle.null_distribution), rtol=0, atol=1e-14)
    assert_same_test(mmd_test(X, Y, kernel, 9999, 0, unbiased=unbiased), oracle)


def test_mean_similarities_of_samples_give_the_unbiased_mmd():
    K = mh.Gaussian(1.0)(sample(12, 2, seed=0))
    means = unbiased_mean_similarities(K, [slice(0, 5), slice(5, 12)])
    want = slow_mmd(K, np.arange(5), np.arange(5, 12), True)
    assert_allclose(means[0, 0] + means[1, 1] - 2 * means[0, 1], want, rtol=1e-12)


@either_bias
def test_blocks_do_not_matter(unbiased, monkeypatch):
    X, Y = sample(30, 2, seed=0), sample(21, 2, seed=1)
    whole = mmd_test(X, Y, mh.Gaussian(), 25, 3, unbiased=unbiased)
    monkeypatch.setattr(permutations, "SPLIT_BYTES", 8 * 51 * 4)
    monkeypatch.setattr(mmd, "_ROWS", 8)
    blocked = mmd_test(X, Y, mh.Gaussian(), 25, 3, unbiased=unbiased)
    assert_allclose(blocked.null_distribution, whole.null_distribution, rtol=0, atol=1e-14)
    assert blocked.pvalue == whole.pvalue


def test_witness_is_the_difference_of_the_means():
    X, Y = sample(8, 2, seed=0), sample(11, 2, seed=1, shift=0.0)
    result = mmd_test(X, Y, mh.Gaussian(), 3, 0)
    assert result.kernel == mh.Gaussian().resolve(np.concatenate([X, Y]))
    witness = mh.embed(result.kernel, X) - mh.embed(result.kernel, Y)
    assert_allclose(result.witness(X), witness(X), rtol=0, atol=1e-12)
    assert_allclose(result.statistic, result.witness.norm() ** 2, rtol=1e-10)
