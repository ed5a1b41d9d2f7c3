"""Sums of linear and polynomial kernels through their exact features, against pairs and against tiles."""

from __future__ import annotations

import numpy as np
import oracles
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import muhat as mh
from muhat.linalg import gram

KERNELS = [mh.Linear(), *(mh.Polynomial(degree, constant) for degree in (1, 2, 3, 4) for constant in (0.0, 0.7))]
every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=repr)


def rows(n, d, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def pairs(kernel):
    """The oracle's function of two rows."""
    if isinstance(kernel, mh.Linear):
        return oracles.linear
    return lambda x, y: oracles.polynomial(x, y, kernel.degree, kernel.constant)


def by_tiles(monkeypatch, function, kernel, *arguments):
    with monkeypatch.context() as patch:
        patch.setattr(gram, "_cheap_features", lambda *_: None)
        return function(kernel, *arguments)


@every_kernel
@pytest.mark.parametrize("d", [1, 2, 5])
def test_features_are_exact(kernel, d):
    X, Y = rows(7, d), rows(6, d, 1)
    assert kernel.exact_features(X).shape == (7, kernel.exact_feature_count(d))
    assert_allclose(
        kernel.exact_features(X) @ kernel.exact_features(Y).T, kernel(X, Y), rtol=0, atol=1e-12 * kernel.diag(X).max()
    )


@every_kernel
@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_sums_equal_those_over_pairs(kernel, shift):
    """Of weights that sum to 0 too, and at a distance from the origin: to 1e-10 of the absolute terms."""
    X, Y, beta, gamma = rows(40, 2) + shift, rows(30, 2, 1) + shift, rows(40, 1, 2)[:, 0], rows(30, 1, 3)[:, 0]
    beta -= beta.mean()
    k = pairs(kernel)
    value, magnitude = oracles.kernel_sum(k, X, X, beta, beta)
    assert abs(gram.quadratic_form(kernel, X, beta) - value) <= 1e-10 * magnitude
    value, magnitude = oracles.kernel_sum(k, X, Y, beta, gamma)
    assert abs(gram.bilinear_form(kernel, X, Y, beta, gamma) - value) <= 1e-10 * magnitude


@every_kernel
@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_products_equal_those_of_tiles(kernel, shift, monkeypatch):
    X, Y, W = rows(700, 3) + shift, rows(600, 3, 1) + shift, rows(600, 2, 2)
    ours, tiles = gram.product(kernel, X, Y, W), by_tiles(monkeypatch, gram.product, kernel, X, Y, W)
    assert (np.abs(ours - tiles) <= 1e-10 * (np.abs(kernel(X, Y)) @ np.abs(W))).all()


def test_the_cheaper_way_is_taken(monkeypatch):
    """Features for many rows of few columns, tiles for few rows of many."""
    values = []
    monkeypatch.setattr(mh.Polynomial, "evaluate", lambda self, X, Y: values.append(X) or (X @ Y.T + 1.0) ** 2)
    gram.quadratic_form(mh.Polynomial(2), rows(1000, 5), np.ones(1000))
    assert not values
    gram.quadratic_form(mh.Polynomial(2), rows(20, 50), np.ones(20))
    assert len(values) == 1


def test_linear_in_linear_time():
    """Tiles of so many rows would take an hour."""
    X = rows(1_000_000, 2) + 3.0
    mean = X.mean(axis=0)
    assert_allclose(gram.quadratic_form(mh.Linear(), X, np.full(len(X), 1e-6)), mean @ mean, rtol=1e-12)


@pytest.mark.parametrize("workers", [1, 3])
def test_results_do_not_depend_on_the_number_of_threads(workers, monkeypatch):
    monkeypatch.setattr(gram, "BLOCK", 16)
    monkeypatch.setattr(gram, "THREADED", 0)
    X, W, kernel = rows(200, 3), rows(200, 2, 1), mh.Polynomial(3)
    monkeypatch.setattr(gram, "effective_n_jobs", lambda _: 1)
    expected = gram.quadratic_form(kernel, X, W[:, 0]), gram.product(kernel, X, X, W)
    monkeypatch.setattr(gram, "effective_n_jobs", lambda _: workers)
    assert gram.quadratic_form(kernel, X, W[:, 0]) == expected[0]
    assert_array_equal(gram.product(kernel, X, X, W), expected[1])


def test_overflow_is_reported_as_with_tiles():
    with pytest.raises(ValueError, match="overflows on X"):
        mh.ShrunkKernelMean(mh.Polynomial(3)).fit(1e80 * rows(100, 2))
    assert np.isfinite(mh.ShrunkKernelMean(mh.Polynomial(3)).fit(1e45 * rows(100, 2)).shrinkage_)
