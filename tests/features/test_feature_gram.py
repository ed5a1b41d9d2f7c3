"""Means from sums of features, against the estimators on the Gram matrix."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sketches import ESTIMATES, FEATURES, X, gram_of_features
from tables import data_sets, sample


def feature_matrices():
    """Names and matrices with few and many columns, ties, zeros and no mean."""
    matrices = {f"linear, {name}": rows for name, rows in data_sets().items()}
    matrices |= {f"nystroem, {name}": f.transform(X[:40]) for name, f in FEATURES.items()}
    return matrices | {"wide": sample(6, 15, seed=8), "zero": np.zeros((4, 2)), "one column": sample(9, 1, seed=9)}


@pytest.mark.parametrize("name", ESTIMATES)
@pytest.mark.parametrize("matrix", feature_matrices())
def test_feature_means_are_those_of_the_gram_matrix(matrix, name):
    Z = feature_matrices()[matrix]
    K = Z @ Z.T
    found, fitted = ESTIMATES[name].estimate(gram_of_features(Z)), ESTIMATES[name].fit(K)
    rho = max(np.trace(K) / len(K), 1e-300)
    assert_allclose(found.weights, Z.T @ fitted.weights_, atol=1e-9 * np.sqrt(rho))
    assert_allclose(found.loo_score / rho, fitted.loo_score_ / rho, atol=1e-9)
    if name != "nested":  # not analytic: λ to half of the digits
        for choice in {"lam", "scale", "shrinkage"} & found.chosen.keys():
            assert_allclose(found.chosen[choice], getattr(fitted, f"{choice}_"), rtol=1e-7)


@pytest.mark.parametrize("scale", [1e-140, 1e-5, 1e5, 1e140])
def test_the_scale_does_not_matter(scale):
    Z = FEATURES["nystroem"].transform(X[:40])
    for mean in (ESTIMATES[name] for name in ("simple", "leave-one-out", "theorem4")):
        found, expected = (mean.estimate(gram_of_features(each)).weights for each in (scale * Z, Z))
        assert_allclose(found, scale * expected, rtol=1e-9)
