"""Tiles against whole matrices, whatever the block and the number of threads."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from tables import KERNELS

import muhat as mh
from muhat.linalg import gram

every_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(gram, "BLOCK", 16)
    monkeypatch.setattr(gram, "THREADED", 0)


def sample(n: int, d: int = 6, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, d))


@every_kernel
@pytest.mark.usefixtures("small_blocks")
def test_tiles_equal_the_whole_matrix(kernel):
    X, Y = sample(50), sample(37, seed=1)
    beta, W = sample(50, 1, seed=2)[:, 0], sample(37, 3, seed=3)
    K, L = kernel(X), kernel(X, Y)
    scale = 1e-12 * np.abs(K).max()
    assert_allclose(gram.dense(kernel, X), K, atol=scale)
    assert_allclose(gram.product(kernel, X, Y, W), L @ W, atol=50 * scale)
    assert_allclose(gram.quadratic_form(kernel, X, beta), beta @ K @ beta, atol=2500 * scale)
    assert_allclose(gram.bilinear_form(kernel, X, Y, beta, W[:, 0]), beta @ L @ W[:, 0], atol=2500 * scale)


@every_kernel
@pytest.mark.usefixtures("small_blocks")
def test_dense_is_symmetric_to_the_last_bit(kernel):
    K = gram.dense(kernel, sample(50))
    assert_array_equal(K, K.T)


@pytest.mark.parametrize("bandwidth", [1e-6, 0.01, 0.3, 1.0, 30.0, 1e6])
@pytest.mark.parametrize("shift", [0.0, 1e8])
def test_the_fast_tile_of_the_gaussian_kernel_loses_no_digits(bandwidth, shift):
    X, Y = sample(40) + shift, sample(30, seed=1) + shift
    kernel = mh.Gaussian(bandwidth)
    assert_allclose(kernel.evaluate_fast(X, Y), kernel(X, Y), rtol=0, atol=1e-13)


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_results_do_not_depend_on_the_number_of_threads(workers, monkeypatch):
    monkeypatch.setattr(gram, "BLOCK", 16)
    monkeypatch.setattr(gram, "THREADED", 0)
    X, W = sample(100), sample(100, 2, seed=1)
    kernel = mh.Gaussian(2.0)
    monkeypatch.setattr(gram, "effective_n_jobs", lambda _: 1)
    expected = gram.quadratic_form(kernel, X, W[:, 0]), gram.product(kernel, X, X, W)
    monkeypatch.setattr(gram, "effective_n_jobs", lambda _: workers)
    assert gram.quadratic_form(kernel, X, W[:, 0]) == expected[0]
    assert_array_equal(gram.product(kernel, X, X, W), expected[1])


def test_memory_is_bounded(monkeypatch):
    import tracemalloc

    monkeypatch.setattr(gram, "BLOCK", 64)
    X = sample(3000, 3)
    tracemalloc.start()
    mh.ShrunkKernelMean(mh.Gaussian(1.0)).fit(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3000**2 * 8 / 20


@pytest.mark.usefixtures("small_blocks")
def test_an_error_in_a_thread_reaches_the_caller():
    def broken(X, Y):
        raise ValueError("no values today")

    with pytest.raises(ValueError, match="no values today"):
        gram.dense(mh.as_kernel(broken), sample(50))
