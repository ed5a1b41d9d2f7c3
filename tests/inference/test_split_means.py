"""Means of both parts of every split."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose
from tables import KERNELS, sample

import muhat as mh
from muhat.inference import split_means, splits
from muhat.inference.two_sample import mmd_test
from muhat.means.nested import mean_element

MEANS = [None, mh.ShrunkKernelMean(), mh.SpectralKernelMean(lam=0.5)]


def all_splits(n, total):
    chosen = list(itertools.combinations(range(total), n))
    return np.array([[float(i in part) for part in chosen] for i in range(total)])


@pytest.mark.parametrize("mean", MEANS)
def test_blocks_do_not_matter(mean, monkeypatch):
    X, Y = sample(30, 2, seed=0), sample(21, 2, seed=1)
    whole = mmd_test(X, Y, mh.Gaussian(), 25, 3, mean=mean)
    monkeypatch.setattr(splits, "SPLIT_BYTES", 8 * 51 * 4)
    monkeypatch.setattr(split_means, "_ROWS", 8)
    blocked = mmd_test(X, Y, mh.Gaussian(), 25, 3, mean=mean)
    assert_allclose(blocked.null_distribution, whole.null_distribution, rtol=0, atol=1e-14)
    assert blocked.pvalue == whole.pvalue


@pytest.mark.parametrize("shrinkage", ["loo", 0.0, 0.3, 1.0])
@pytest.mark.parametrize("name", ["linear", "polynomial2", "gaussian", "gaussian_narrow"])
def test_shrunk_means_are_refits(name, shrinkage):
    Z = sample(9, 3, seed=0, shift=0.2)
    K, splits = KERNELS[name](Z), all_splits(4, 9)
    mean = mh.ShrunkKernelMean(shrinkage=shrinkage)
    fast, slow = split_means._ShrunkMeans(K, 4, mean), split_means._RefittedMeans(K, 4, mean)
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
