"""Covariance operators: their action, norms, distances and systems, against definitions."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.preprocessing import KernelCenterer
from sklearn.utils.estimator_checks import parametrize_with_checks

import muhat as mh
from muhat.kernels import tiles
from muhat.operators.covariance_operator import CovarianceOperator

MEANS = {
    "plain": None,
    "simple": mh.ShrunkKernelMean(),
    "spectral": mh.SpectralKernelMean(lam="theorem4"),
    "given": mh.SpectralKernelMean(lam=0.3),
}


@pytest.fixture
def rows() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(25, 3))


@pytest.fixture
def others() -> np.ndarray:
    return np.random.default_rng(1).normal(size=(7, 3))


@pytest.mark.parametrize("mean", MEANS.values(), ids=MEANS)
def test_cose_weights_are_the_estimators_on_the_product_of_centred_matrices(mean, rows):
    Y = np.sin(rows[:, :2])
    fitted = mh.KernelCovariance(mh.Gaussian(1.0), mh.Laplace(2.0), mean=mean).fit(rows, Y)
    Kx = KernelCenterer().fit_transform(mh.Gaussian(1.0)(rows))
    Ky = KernelCenterer().fit_transform(mh.Laplace(2.0)(Y))
    expected = np.full(25, 1 / 25) if mean is None else mean.set_params(kernel="precomputed").fit(Kx * Ky).weights_
    assert_allclose(fitted.weights_, expected, rtol=1e-9, atol=1e-14)
    assert_allclose(fitted.operator_.hsic(), expected @ (Kx * Ky) @ expected, rtol=1e-10)


def test_hsic_of_plain_weights(rows):
    Y = rows**2
    operator = mh.KernelCovariance().fit(rows, Y).operator_
    Kx = KernelCenterer().fit_transform(operator.kernel_x(rows))
    Ky = KernelCenterer().fit_transform(operator.kernel_y(Y))
    assert_allclose(operator.hsic(), np.trace(Kx @ Ky) / 25**2, rtol=1e-11)
    assert operator.kernel_x.bandwidth != operator.kernel_y.bandwidth


def test_operator_gives_covariances_of_functions(rows, others):
    Y = rows[:, :2] * 2
    operator = mh.KernelCovariance(mh.Gaussian(1.0), mh.Gaussian(3.0)).fit(rows, Y).operator_
    f, g = mh.embed(operator.kernel_x, others), mh.embed(operator.kernel_y, others[:, :2])
    expected = np.cov(f(rows), g(Y), bias=True)[0, 1]
    assert_allclose(operator.covariance(f, g), expected, rtol=1e-9)
    assert_allclose(operator(f).inner(g), expected, rtol=1e-9)


@pytest.mark.parametrize("centering", MEANS.values(), ids=MEANS)
def test_shrunken_centring_adds_the_outer_product_of_the_mean_difference(centering, rows, others):
    kernel = mh.Gaussian(1.5)
    plain = mh.KernelCovariance(kernel).fit(rows).operator_
    shifted = mh.KernelCovariance(kernel, centering=centering).fit(rows).operator_
    f, g = mh.embed(kernel, others), mh.embed(kernel, -others)
    difference = mh.embed(kernel, rows) - shifted.mean_x
    added = f.inner(difference) * g.inner(difference)
    assert_allclose(shifted.covariance(f, g), plain.covariance(f, g) + added, rtol=1e-9, atol=1e-13)


def test_distance_between_operators_of_different_samples(rows):
    kernel = mh.Linear()
    A = mh.KernelCovariance(kernel).fit(rows).operator_
    B = mh.KernelCovariance(kernel).fit(3 * rows[:20] + 1).operator_
    expected = np.linalg.norm(np.cov(rows.T, bias=True) - np.cov((3 * rows[:20] + 1).T, bias=True))
    assert_allclose(A.distance(B), expected, rtol=1e-10)
    assert_allclose(A.distance(A), 0, atol=1e-7)  # the root of a difference of squares
    with pytest.raises(ValueError, match="two spaces"):
        A.inner(mh.KernelCovariance(mh.Gaussian(1.0)).fit(rows).operator_)


def test_norms_and_distances_in_tiles(rows, monkeypatch):
    monkeypatch.setattr(tiles, "BLOCK", 7)
    Y = rows**2
    A = mh.KernelCovariance(mh.Gaussian(1.0), mh.Laplace(2.0), mean=mh.ShrunkKernelMean()).fit(rows, Y).operator_
    B = mh.KernelCovariance(mh.Gaussian(1.0), mh.Laplace(2.0)).fit(rows[:18] + 0.5, Y[:18]).operator_

    def by_hand(first, second):
        parts = [(first.x, first.mean_x, second.x, second.mean_x), (first.y, first.mean_y, second.y, second.mean_y)]
        kernels = [f.kernel(X, Z) - g(X)[:, None] - f(Z)[None] + f.inner(g) for X, f, Z, g in parts]
        return first.weights @ (kernels[0] * kernels[1]) @ second.weights

    for first, second in ((A, A), (A, B), (B, A)):
        assert_allclose(first.inner(second), by_hand(first, second), rtol=1e-11)


def test_a_norm_in_bounded_memory():
    X = np.random.default_rng(0).normal(size=(4000, 2))
    mean = mh.embed(mh.Gaussian(1.0), X[:50])
    operator = CovarianceOperator(X, X, mean, mean, np.full(4000, 1 / 4000))
    tracemalloc.start()
    operator.norm()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 4000**2 / 4


def test_singular_system(rows):
    operator = mh.KernelCovariance(mh.Gaussian(1.5), mh.Gaussian(2.0)).fit(rows, rows**2).operator_
    values, left, right = operator.singular_system(3)
    assert (np.diff(values) <= 0).all()
    for value, u, v in zip(values, left, right, strict=True):
        assert_allclose([u.norm(), v.norm()], 1, rtol=1e-7)
        assert_allclose(operator(v).distance(value * u), 0, atol=1e-7 * values[0])
    assert_allclose((operator.singular_system(25).values ** 2).sum(), operator.hsic(), rtol=1e-9)


def test_linear_singular_system_has_the_rank_of_the_covariance(rows):
    system = mh.KernelCovariance(mh.Linear()).fit(rows, rows[:, :2]).operator_.singular_system(10)
    expected = np.linalg.svd(np.cov(rows.T, rows[:, :2].T, bias=True)[:3, 3:], compute_uv=False)
    assert_allclose(system.values, expected, rtol=1e-9)


def test_two_rows_and_a_vector_for_y():
    fitted = mh.KernelCovariance(mean=mh.ShrunkKernelMean()).fit([[0.0], [1.0]], [0.0, 2.0])
    assert_allclose(fitted.weights_, 0.5)
    assert isinstance(fitted.operator_, CovarianceOperator)
    assert "2 pairs" in repr(fitted.operator_)


@pytest.mark.filterwarnings("ignore:bandwidth=.median.. more than half")  # the checks pass labels as Y
@parametrize_with_checks([mh.KernelCovariance()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


BAD = [
    (lambda X: mh.Centered(mh.Gaussian(1.0), mh.embed(mh.Gaussian(2.0), X)), "Element of the space"),
    (lambda X: mh.ShrunkKernelCenterer().fit(X), "square"),
    (lambda X: mh.ShrunkKernelCenterer(mean="S").fit(X @ X.T), "mean='S'"),
    (lambda X: mh.KernelCovariance(kernel_y="rbf").fit(X), "kernel_y='rbf'"),
    (lambda X: mh.KernelCovariance(centering=3).fit(X), "centering=3"),
    (lambda X: mh.KernelCovariance().fit(X, X[:3]), "3 rows"),
    (lambda X: mh.KernelCovariance().fit(X, np.full(len(X), np.nan)), "Y contains NaN"),
    (lambda X: mh.KernelCovariance().fit(X).operator_.singular_system(0), "n_components=0"),
]


@pytest.mark.parametrize(("call", "message"), BAD, ids=[message for _, message in BAD])
def test_bad_input(call, message, rows):
    with pytest.raises(ValueError, match=message):
        call(rows)
