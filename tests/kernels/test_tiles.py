"""Sums over kernel values: tiles against whole matrices, exact features against pairs, rows that are read in blocks."""

from __future__ import annotations

import tracemalloc

import numpy as np
import oracles
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from tables import KERNELS

import muhat as mh
from muhat.kernels import exact_feature_count, exact_features, tiles
from muhat.kernels.foreign import Precomputed

every_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(tiles, "BLOCK", 16)
    monkeypatch.setattr(tiles, "THREADED", 0)


def sample(n, d=6, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


@every_kernel
@pytest.mark.usefixtures("small_blocks")
def test_tiles_equal_the_whole_matrix(kernel):
    X, Y = sample(50), sample(37, seed=1)
    beta, W = sample(50, 1, seed=2)[:, 0], sample(37, 3, seed=3)
    K, L = kernel(X), kernel(X, Y)
    scale = 1e-12 * np.abs(K).max()
    assert_allclose(tiles.dense(kernel, X), K, atol=scale)
    assert_allclose(tiles.product(kernel, X, Y, W), L @ W, atol=50 * scale)
    assert_allclose(tiles.quadratic_form(kernel, X, beta), beta @ K @ beta, atol=2500 * scale)
    assert_allclose(tiles.bilinear_form(kernel, X, Y, beta, W[:, 0]), beta @ L @ W[:, 0], atol=2500 * scale)


@every_kernel
@pytest.mark.usefixtures("small_blocks")
def test_dense_is_symmetric_to_the_last_bit(kernel):
    K = tiles.dense(kernel, sample(50))
    assert_array_equal(K, K.T)


@pytest.mark.parametrize("bandwidth", [1e-6, 0.01, 0.3, 1.0, 30.0, 1e6])
@pytest.mark.parametrize("shift", [0.0, 1e8])
def test_the_fast_tile_of_the_gaussian_kernel_loses_no_digits(bandwidth, shift):
    X, Y = sample(40) + shift, sample(30, seed=1) + shift
    kernel = mh.Gaussian(bandwidth)
    assert_allclose(mh.kernels.evaluate_fast(kernel, X, Y), kernel(X, Y), rtol=0, atol=1e-13)


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_results_do_not_depend_on_the_number_of_threads(workers, monkeypatch):
    monkeypatch.setattr(tiles, "BLOCK", 16)
    monkeypatch.setattr(tiles, "THREADED", 0)
    X, W = sample(100), sample(100, 2, seed=1)
    kernel = mh.Gaussian(2.0)
    monkeypatch.setattr(tiles, "effective_n_jobs", lambda _: 1)
    expected = tiles.quadratic_form(kernel, X, W[:, 0]), tiles.product(kernel, X, X, W)
    monkeypatch.setattr(tiles, "effective_n_jobs", lambda _: workers)
    assert tiles.quadratic_form(kernel, X, W[:, 0]) == expected[0]
    assert_array_equal(tiles.product(kernel, X, X, W), expected[1])


def test_memory_is_bounded(monkeypatch):
    import tracemalloc

    monkeypatch.setattr(tiles, "BLOCK", 64)
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
        tiles.dense(mh.as_kernel(broken), sample(50))


# ---------------------------------------------------------------- by exact features

EXACT = [mh.Linear(), *(mh.Polynomial(degree, constant) for degree in (1, 2, 3, 4) for constant in (0.0, 0.7))]
every_exact_kernel = pytest.mark.parametrize("kernel", EXACT, ids=repr)


def pairs(kernel):
    """The oracle's function of two rows."""
    if isinstance(kernel, mh.Linear):
        return oracles.linear
    return lambda x, y: oracles.polynomial(x, y, kernel.degree, kernel.constant)


def by_tiles(monkeypatch, function, kernel, *arguments):
    with monkeypatch.context() as patch:
        patch.setattr(tiles, "_cheap_features", lambda *_: None)
        return function(kernel, *arguments)


@every_exact_kernel
@pytest.mark.parametrize("d", [1, 2, 5])
def test_features_are_exact(kernel, d):
    X, Y = sample(7, d), sample(6, d, 1)
    assert exact_features(kernel, X).shape == (7, exact_feature_count(kernel, d))
    assert_allclose(
        exact_features(kernel, X) @ exact_features(kernel, Y).T, kernel(X, Y), rtol=0, atol=1e-12 * kernel.diag(X).max()
    )


@every_exact_kernel
@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_sums_equal_those_over_pairs(kernel, shift):
    """Of weights that sum to 0 too, and at a distance from the origin: to 1e-10 of the absolute terms."""
    X, Y, beta, gamma = sample(40, 2) + shift, sample(30, 2, 1) + shift, sample(40, 1, 2)[:, 0], sample(30, 1, 3)[:, 0]
    beta -= beta.mean()
    k = pairs(kernel)
    value, magnitude = oracles.kernel_sum(k, X, X, beta, beta)
    assert abs(tiles.quadratic_form(kernel, X, beta) - value) <= 1e-10 * magnitude
    value, magnitude = oracles.kernel_sum(k, X, Y, beta, gamma)
    assert abs(tiles.bilinear_form(kernel, X, Y, beta, gamma) - value) <= 1e-10 * magnitude


@every_exact_kernel
@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_products_equal_those_of_tiles(kernel, shift, monkeypatch):
    X, Y, W = sample(700, 3) + shift, sample(600, 3, 1) + shift, sample(600, 2, 2)
    ours, expected = tiles.product(kernel, X, Y, W), by_tiles(monkeypatch, tiles.product, kernel, X, Y, W)
    assert (np.abs(ours - expected) <= 1e-10 * (np.abs(kernel(X, Y)) @ np.abs(W))).all()


def test_the_cheaper_way_is_taken(monkeypatch):
    """Features for many rows of few columns, tiles for few rows of many."""
    values = []
    monkeypatch.setattr(mh.Polynomial, "evaluate", lambda self, X, Y: values.append(X) or (X @ Y.T + 1.0) ** 2)
    tiles.quadratic_form(mh.Polynomial(2), sample(1000, 5), np.ones(1000))
    assert not values
    tiles.quadratic_form(mh.Polynomial(2), sample(20, 50), np.ones(20))
    assert len(values) == 1


def test_linear_in_linear_time():
    """Tiles of so many rows would take an hour."""
    X = sample(1_000_000, 2) + 3.0
    mean = X.mean(axis=0)
    assert_allclose(tiles.quadratic_form(mh.Linear(), X, np.full(len(X), 1e-6)), mean @ mean, rtol=1e-12)


@pytest.mark.parametrize("workers", [1, 3])
def test_sums_by_features_do_not_depend_on_the_number_of_threads(workers, monkeypatch):
    monkeypatch.setattr(tiles, "BLOCK", 16)
    monkeypatch.setattr(tiles, "THREADED", 0)
    X, W, kernel = sample(200, 3), sample(200, 2, 1), mh.Polynomial(3)
    monkeypatch.setattr(tiles, "effective_n_jobs", lambda _: 1)
    expected = tiles.quadratic_form(kernel, X, W[:, 0]), tiles.product(kernel, X, X, W)
    monkeypatch.setattr(tiles, "effective_n_jobs", lambda _: workers)
    assert tiles.quadratic_form(kernel, X, W[:, 0]) == expected[0]
    assert_array_equal(tiles.product(kernel, X, X, W), expected[1])


def test_overflow_is_reported_as_with_tiles():
    with pytest.raises(ValueError, match="overflows on X"):
        mh.ShrunkKernelMean(mh.Polynomial(3)).fit(1e80 * sample(100, 2))
    assert np.isfinite(mh.ShrunkKernelMean(mh.Polynomial(3)).fit(1e45 * sample(100, 2)).shrinkage_)


# ---------------------------------------------------------------- rows that are read a block at a time


def mapped(folder, X):
    file = np.memmap(folder / "rows", X.dtype, "w+", shape=X.shape)
    file[:] = X
    file.flush()
    return np.memmap(folder / "rows", X.dtype, "r", shape=X.shape)


@pytest.mark.parametrize("kernel", KERNELS)
def test_rows_of_a_file_give_the_sums_of_the_array(kernel, tmp_path, monkeypatch):
    monkeypatch.setattr(tiles, "BLOCK", 7)
    X, beta, W, kernel = sample(50), sample(50, 1, 1)[:, 0], sample(50, 2, 2), KERNELS[kernel]
    rows, K = mapped(tmp_path, X), kernel(X)
    tolerance = 1e-12 * 2500 * np.abs(K).max()
    assert_allclose(tiles.quadratic_form(kernel, rows, beta), beta @ K @ beta, rtol=0, atol=tolerance)
    assert_allclose(tiles.product(kernel, rows, X, W), K @ W, rtol=0, atol=tolerance)
    assert_allclose(tiles.bilinear_form(kernel, X, rows, beta, beta), beta @ K @ beta, rtol=0, atol=tolerance)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", [mh.Gaussian(20.0), mh.Linear(), mh.Polynomial(3)], ids=repr)
def test_a_file_is_never_in_memory_as_a_whole(kernel, tmp_path, monkeypatch):
    monkeypatch.setattr(tiles, "BLOCK", 64)
    X = mapped(tmp_path, sample(2000, 300))
    tracemalloc.start()
    tiles.quadratic_form(kernel, X, np.ones(2000))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.5 * X.nbytes


def test_numbers_of_training_rows(monkeypatch):
    monkeypatch.setattr(tiles, "BLOCK", 7)
    K = mh.Gaussian(1.0)(sample(30))
    kernel, beta = Precomputed(K), sample(30, 1, 1)[:, 0]
    assert_allclose(tiles.quadratic_form(kernel, kernel.training_points(), beta), beta @ K @ beta, rtol=1e-12)


def test_weights_that_do_not_fit_are_named():
    with pytest.raises(ValueError, match=r"beta has 39 entries and must have one for each of the 40 rows"):
        tiles.quadratic_form(mh.Gaussian(1.0), sample(40), np.ones(39))


@pytest.mark.parametrize("places", [[0, 1, 2, 3], [0, 2, 1, 3], [3, 2, 1, 0], [1, 1, 1, 4], [2], [5, 0]])
def test_rows_of_a_gram_matrix_in_any_order(places):
    K = np.arange(36.0).reshape(6, 6)
    K = K + K.T
    numbers = np.array(places)[:, None]
    found = Precomputed(K).evaluate(numbers, numbers[::-1])
    assert_array_equal(found, K[np.ix_(places, places[::-1])])
