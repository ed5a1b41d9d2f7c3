"""Kernel PCA: the plain case against scikit-learn, the others against the definition."""

from __future__ import annotations

from functools import partial

import numpy as np
import oracles
import pytest
from numpy.testing import assert_allclose
from sklearn.decomposition import KernelPCA as SklearnKernelPCA
from sklearn.utils.estimator_checks import parametrize_with_checks
from tables import KERNELS, sample

import muhat as mh
from muhat.operators import principal_components

SCENARIOS = {
    "standard": {},
    "centring by S": {"mean": mh.ShrunkKernelMean()},
    "centring by F": {"mean": mh.SpectralKernelMean(lam=1.0)},
    "S-COSE": {"covariance": mh.ShrunkKernelMean()},
    "F-COSE": {"covariance": mh.SpectralKernelMean(lam="theorem4")},
    "both": {"mean": mh.ShrunkKernelMean(), "covariance": mh.SpectralKernelMean(lam=0.1)},
}


@pytest.fixture
def rows() -> np.ndarray:
    return np.random.default_rng(0).standard_t(4, size=(40, 4))


@pytest.fixture
def others() -> np.ndarray:
    return np.random.default_rng(1).normal(size=(9, 4))


def directions(pca: mh.KernelPCA, rows: np.ndarray) -> list[mh.Element]:
    """The directions as elements of the space."""
    return [mh.embed(pca.kernel_, rows, weights=column) for column in pca.coefficients_.T]


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_plain_settings_are_sklearns(kernel, rows, others):
    ours = mh.KernelPCA(4, kernel).fit(rows)
    theirs = SklearnKernelPCA(4, kernel="precomputed", eigen_solver="dense").fit(kernel(rows))
    assert_allclose(ours.eigenvalues_, theirs.eigenvalues_, rtol=1e-9)
    mine, reference = ours.transform(others), theirs.transform(kernel(others, rows))
    signs = np.sign((mine * reference).sum(axis=0))
    assert_allclose(mine * signs, reference, rtol=0, atol=1e-8 * np.abs(reference).max())


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_directions_are_orthonormal_eigenfunctions(scenario, rows):
    pca = mh.KernelPCA(5, mh.Gaussian(2.0), **scenario).fit(rows)
    functions = directions(pca, rows)
    assert_allclose([[f.inner(g) for g in functions] for f in functions], np.eye(5), atol=1e-9)
    centre = mh.embed(pca.kernel_, rows, weights=pca.mean_weights_)
    for value, f in zip(pca.eigenvalues_, functions, strict=True):
        moved = pca.covariance_weights_ * (f(rows) - f.inner(centre))
        image = mh.embed(pca.kernel_, rows, weights=moved) - moved.sum() * centre
        assert image.distance(value / 40 * f) <= 1e-9 * pca.eigenvalues_[0]


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_scores_and_both_errors_follow_the_definition(scenario, rows, others):
    pca = mh.KernelPCA(5, mh.Gaussian(2.0), **scenario).fit(rows)
    functions = directions(pca, rows)
    centre = mh.embed(pca.kernel_, rows, weights=pca.mean_weights_)
    raw = np.column_stack([f(others) for f in functions])
    scores = raw - [f.inner(centre) for f in functions]
    assert_allclose(pca.transform(others), scores, atol=1e-10)
    length = 1 - 2 * centre(others) + centre.norm() ** 2
    centred = pca.reconstruction_error(others, of="centered", per_row=True)
    assert_allclose(centred, length - (scores**2).sum(axis=1), atol=1e-10)
    assert_allclose(pca.reconstruction_error(others, of="feature"), np.mean(1 - (raw**2).sum(axis=1)), atol=1e-10)
    assert_allclose(pca.reconstruction_error(others), centred.mean())


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_fit_transform_and_precomputed_agree(scenario, rows, others):
    kernel = mh.Gaussian(2.0)
    pca = mh.KernelPCA(3, kernel, **scenario).fit(rows)
    gram_pca = mh.KernelPCA(3, "precomputed", **scenario).fit(kernel(rows))
    assert_allclose(mh.KernelPCA(3, kernel, **scenario).fit_transform(rows), pca.transform(rows), atol=1e-11)
    assert_allclose(gram_pca.transform(kernel(others, rows)), pca.transform(others), atol=1e-9)
    assert_allclose(gram_pca.explained_variance_ratio_, pca.explained_variance_ratio_, rtol=1e-9)


def test_simple_shrinkage_of_the_covariance_only_rescales_eigenvalues(rows, others):
    plain, shrunk = (mh.KernelPCA(5, mh.Gaussian(2.0), covariance=c).fit(rows) for c in (None, mh.ShrunkKernelMean()))
    assert_allclose(shrunk.transform(others), plain.transform(others), atol=1e-11)
    assert np.ptp(shrunk.eigenvalues_ / plain.eigenvalues_) < 1e-10
    assert shrunk.eigenvalues_[0] < plain.eigenvalues_[0]


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_partial_solver_agrees_with_the_whole(scenario, monkeypatch):
    X = np.random.default_rng(0).normal(size=(150, 3))
    whole = mh.KernelPCA(5, mh.Gaussian(1.0), **scenario).fit(X)
    monkeypatch.setattr(principal_components, "PARTIAL_ROWS", 100)
    partial = mh.KernelPCA(5, mh.Gaussian(1.0), **scenario).fit(X)
    assert_allclose(partial.eigenvalues_, whole.eigenvalues_, rtol=1e-10)
    assert_allclose(partial.transform(X), whole.transform(X), atol=1e-8)


def test_explained_variance_sums_to_one_over_all_components(rows):
    pca = mh.KernelPCA(kernel=mh.Gaussian(2.0)).fit(rows)
    assert_allclose(pca.explained_variance_ratio_.sum(), 1, rtol=1e-10)
    assert pca.eigenvalues_.min() > 0
    assert pca.transform(rows).shape == (40, len(pca.eigenvalues_))


def test_components_beyond_the_rank_are_zero(rows):
    pca = mh.KernelPCA(6, mh.Linear()).fit(rows)
    assert_allclose(pca.transform(rows)[:, 4:], 0, atol=1e-12)
    assert (pca.eigenvalues_[4:] == 0).all()
    constant = mh.KernelPCA(2, mh.Linear()).fit(np.ones((5, 3)))
    assert np.isfinite(constant.transform(np.ones((2, 3)))).all()
    assert (constant.explained_variance_ratio_ == 0).all()


def test_ridge_pre_images_are_sklearns(rows, others):
    gamma = 0.5 / 2.0**2
    theirs = SklearnKernelPCA(4, kernel="rbf", gamma=gamma, fit_inverse_transform=True, alpha=0.1).fit(rows)
    ours = mh.KernelPCA(4, mh.Gaussian(2.0), pre_image_ridge=0.1).fit(rows)
    expected = theirs.inverse_transform(theirs.transform(others))
    assert_allclose(ours.inverse_transform(ours.transform(others)), expected, atol=1e-8)


def test_fixed_point_pre_images_are_stationary_and_return_rows(rows):
    pca = mh.KernelPCA(39, mh.Gaussian(1.0), pre_image="fixed-point").fit(rows)
    assert_allclose(pca.inverse_transform(pca.transform(rows)), rows, atol=1e-4)
    few = mh.KernelPCA(2, mh.Gaussian(2.0), pre_image="fixed-point").fit(rows)
    found = few.inverse_transform(few.transform(rows))
    projected = [mh.embed(few.kernel_, rows, weights=w) for w in few.transform(rows) @ few.coefficients_.T + 1 / 40]
    for row, f in zip(found, projected, strict=True):
        nudged = row + np.random.default_rng(0).normal(size=(20, 4)) * 0.05
        assert f(nudged).max() <= f(row[None])[0] + 1e-6


@pytest.mark.parametrize("cells", [1, 100, 2**20])
def test_fixed_point_pre_images_are_those_of_single_rows(cells, rows, monkeypatch):
    monkeypatch.setattr("muhat.operators.pca._CELLS", cells)
    pca = mh.KernelPCA(3, mh.Gaussian(2.0), mh.ShrunkKernelMean(), pre_image="fixed-point").fit(rows)
    scores = np.vstack([pca.transform(rows[:5]), 10.0 * pca.transform(rows[5:10])])
    k = partial(oracles.gaussian, bandwidth=2.0)
    expected = [oracles.fixed_point_preimage(k, rows, pca.coefficients_ @ s + pca.mean_weights_) for s in scores]
    # A row rests once a step is below 1e-8 of the bandwidth.
    assert_allclose(pca.inverse_transform(scores), expected, rtol=0, atol=1e-6)


@parametrize_with_checks(
    [mh.KernelPCA(2), mh.KernelPCA(2, mean=mh.ShrunkKernelMean(), covariance=mh.ShrunkKernelMean())]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


BAD = [
    (lambda X: mh.KernelPCA(0).fit(X), "n_components=0"),
    (lambda X: mh.KernelPCA(41).fit(X), "n_components=41 must not exceed the 40 rows"),
    (lambda X: mh.KernelPCA(2, "rbf").fit(X), "kernel='rbf'"),
    (lambda X: mh.KernelPCA(2, mean=mh.Gaussian()).fit(X), "mean="),
    (lambda X: mh.KernelPCA(2, covariance=1).fit(X), "covariance=1"),
    (lambda X: mh.KernelPCA(2, pre_image="nearest").fit(X), "pre_image='nearest'"),
    (lambda X: mh.KernelPCA(2, "precomputed").fit(X), "square"),
    (lambda X: mh.KernelPCA(2).fit(X).reconstruction_error(X, of="both"), "of='both'"),
    (lambda X: mh.KernelPCA(2, "precomputed").fit(X @ X.T).reconstruction_error(X @ X.T), "precomputed"),
    (lambda X: mh.KernelPCA(2, "precomputed").fit(X @ X.T).inverse_transform(X[:, :2]), "precomputed"),
    (lambda X: mh.KernelPCA(2).fit(X).inverse_transform(X), "4 columns"),
    (lambda X: mh.KernelPCA(2, pre_image_ridge=-1).fit(X).inverse_transform(X[:, :2]), "pre_image_ridge=-1"),
    (lambda X: mh.KernelPCA(2, mh.Laplace(), pre_image="fixed-point").fit(X).inverse_transform(X[:, :2]), "Gaussian"),
    (lambda X: mh.KernelPCA(2).transform(X), "not fitted"),
]


@pytest.mark.parametrize(("call", "message"), BAD, ids=[message for _, message in BAD])
def test_bad_input(call, message, rows):
    with pytest.raises(ValueError, match=message):
        call(rows)


@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_many_equal_rows_have_few_components(shift):
    points = sample(6, 10, seed=0) + shift
    X = points[np.random.default_rng(0).integers(6, size=1500)]
    pca = mh.KernelPCA(20).fit(X)
    assert np.count_nonzero(pca.eigenvalues_) == 5
    exact = mh.KernelPCA(20, "precomputed").fit(pca.kernel_(X, X))
    assert_allclose(pca.eigenvalues_, exact.eigenvalues_, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("pre_image", ["ridge", "fixed-point"])
@pytest.mark.parametrize("scale", [1e-300, 1e307])
def test_rows_come_back_from_both_ends_of_the_numbers(pre_image, scale):
    """Sums of the rows overflow, or nearly vanish; the rows are those of an ordinary scale."""
    X = sample(30, 2, seed=3)
    ordinary, far = (mh.KernelPCA(2, pre_image=pre_image).fit(rows) for rows in (X, scale * X))
    back = far.inverse_transform(far.transform(scale * X))
    assert_allclose(back / scale, ordinary.inverse_transform(ordinary.transform(X)), rtol=1e-6, atol=1e-6)
