"""Centred kernels, and centring of precomputed Gram matrices about any mean."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.preprocessing import KernelCenterer
from sklearn.utils.estimator_checks import parametrize_with_checks
from tables import KERNELS

import muhat as mh
from muhat.kernels.expectations import expect_diag

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


def centred_by_hand(
    kernel: mh.Gaussian, X: np.ndarray, Y: np.ndarray, rows: np.ndarray, beta: np.ndarray
) -> np.ndarray:
    """⟨φ(x) − Σβφ, φ(y) − Σβφ⟩ from four kernel matrices."""
    at_x, at_y = kernel(X, rows) @ beta, kernel(Y, rows) @ beta
    return kernel(X, Y) - at_x[:, None] - at_y[None] + beta @ kernel(rows) @ beta


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_centered_is_the_inner_product_of_residuals(kernel, rows, others):
    beta = np.random.default_rng(2).normal(size=len(rows))
    centred = mh.Centered(kernel, mh.embed(kernel, rows, weights=beta))
    scale = np.abs(kernel(rows)).max()
    for X, Y in [(rows, rows), (others, rows), (others, others)]:
        assert_allclose(centred(X, Y), centred_by_hand(kernel, X, Y, rows, beta), rtol=0, atol=1e-11 * scale)
    assert_allclose(centred.diag(others), np.diag(centred(others)), rtol=0, atol=1e-11 * scale)


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_plain_centering_is_sklearns(kernel, rows, others):
    mean = mh.KernelMean(kernel).fit(rows)
    ours = mh.Centered(mean.kernel_, mean.mean_)
    theirs = KernelCenterer().fit(kernel(rows))
    scale = np.abs(kernel(rows)).max()
    assert_allclose(ours(rows), theirs.transform(kernel(rows)), rtol=0, atol=1e-12 * scale)
    assert_allclose(ours(others, rows), theirs.transform(kernel(others, rows)), rtol=0, atol=1e-12 * scale)
    centerer = mh.ShrunkKernelCenterer().fit(kernel(rows))
    assert_allclose(centerer.transform(kernel(others, rows)), ours(others, rows), rtol=0, atol=1e-12 * scale)


def test_centered_integrates_gaussians_exactly(rows):
    kernel = mh.Gaussian(1.5)
    P = mh.GaussianMixture([0.4, 0.6], [[0.0, 1.0, 0.0], [1.0, -1.0, 0.5]], [0.5, 1.0])
    centred = mh.Centered(kernel, mh.embed(kernel, rows))
    residual = mh.embed(kernel, P) - centred.mean
    assert_allclose(centred.expect(P, P), residual.norm() ** 2, rtol=1e-10)
    assert_allclose(mh.embed(centred, P)(rows), residual(rows) - residual.inner(centred.mean), atol=1e-10)
    assert_allclose(expect_diag(centred, P), 1 - 2 * mh.embed(kernel, P).inner(centred.mean) + centred.mean.norm() ** 2)


@pytest.mark.parametrize("mean", MEANS.values(), ids=MEANS)
def test_centerer_equals_the_kernel_about_the_same_mean(mean, rows, others):
    kernel = mh.Gaussian(2.0)
    centerer = mh.ShrunkKernelCenterer(mean).fit(kernel(rows))
    centred = mh.Centered(kernel, mh.embed(kernel, rows, weights=centerer.weights_))
    assert_allclose(centerer.transform(kernel(others, rows)), centred(others, rows), atol=1e-12)


@parametrize_with_checks([mh.ShrunkKernelCenterer()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)
