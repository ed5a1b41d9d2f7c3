"""Means from sums of features, against the estimators on the Gram matrix."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sketches import ESTIMATES, FEATURES, X, estimated
from tables import data_sets, sample

import muhat as mh


def feature_matrices():
    """Names and matrices with few and many columns, ties, zeros and no mean."""
    matrices = {f"linear, {name}": rows for name, rows in data_sets().items()}
    matrices |= {f"nystroem, {name}": f.transform(X[:40]) for name, f in FEATURES.items()}
    return matrices | {"wide": sample(6, 15, seed=8), "zero": np.zeros((4, 2)), "one column": sample(9, 1, seed=9)}


@pytest.mark.parametrize("estimate", ESTIMATES)
@pytest.mark.parametrize("name", feature_matrices())
def test_feature_means_are_those_of_the_gram_matrix(name, estimate):
    settings, estimator = ESTIMATES[estimate]
    Z = feature_matrices()[name]
    K = Z @ Z.T
    choice, mean = estimated(Z, **settings)
    fitted = estimator.fit(K)
    rho = max(np.trace(K) / len(K), 1e-300)
    assert_allclose(mean, Z.T @ fitted.weights_, atol=1e-9 * np.sqrt(rho))
    assert_allclose(choice.score / rho, fitted.loo_score_ / rho, atol=1e-9)
    if hasattr(fitted, "lam_") and estimate != "nested":  # not analytic: λ to half of the digits
        assert_allclose(choice.lam, fitted.lam_, rtol=1e-9)
    if hasattr(fitted, "shrinkage_"):
        assert_allclose(1 - choice.scale, fitted.shrinkage_, atol=1e-12)
    same = mh.SpectralKernelMean(mh.Linear(), **settings).fit(Z)
    assert_allclose(mean, Z.T @ same.weights_, atol=1e-9 * np.sqrt(rho))


@pytest.mark.parametrize("scale", [1e-140, 1e-5, 1e5, 1e140])
def test_the_scale_does_not_matter(scale):
    Z = FEATURES["nystroem"].transform(X[:40])
    for settings, _ in (ESTIMATES[name] for name in ("simple", "leave-one-out", "theorem4")):
        assert_allclose(estimated(scale * Z, **settings)[1], scale * estimated(Z, **settings)[1], rtol=1e-9)


@pytest.mark.parametrize("lam", [0.0, np.inf])
@pytest.mark.parametrize("scale", [1.0, 0.5, "loo"])
def test_the_scale_at_the_limits_of_the_ridge_is_that_of_the_rows(lam, scale):
    X, kernel = sample(12, 2, seed=0), mh.Gaussian(1.0)
    rows = mh.SpectralKernelMean(kernel, lam=lam, scale=scale).fit(X)
    features = mh.SpectralKernelMean(kernel, lam=lam, scale=scale, features=mh.Nystroem(kernel, 12)).fit(X)
    assert_allclose(features.scale_, rows.scale_, rtol=1e-7)
