"""Data and checks that the tests of matched mixtures share."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import muhat as mh
from muhat.density.matched_mixture import MatchedGaussianMixture

SOLVERS = ("slsqp", "lbfgs", "weights")
every_solver = pytest.mark.parametrize("solver", SOLVERS)
spherical_and_diag = pytest.mark.parametrize("covariance_type", ["spherical", "diag"])


def two_clusters(n=80, d=2, seed=0):
    P = mh.GaussianMixture([0.3, 0.7], np.eye(d)[:2] * 4, [0.5, 1.0])
    return P.sample(n, random_state=seed)


def matched(n_components=3, **settings):
    return MatchedGaussianMixture(**{"n_components": n_components, "n_init": 2, "random_state": 0, **settings})


def is_valid(fitted):
    m, d = fitted.n_components, fitted.n_features_in_
    assert fitted.weights_.shape == (m,)
    assert fitted.means_.shape == (m, d)
    assert fitted.variances_.shape == ((m,) if fitted.covariance_type == "spherical" else (m, d))
    assert fitted.weights_.min() >= 0
    assert_allclose(fitted.weights_.sum(), 1, rtol=1e-12)
    assert fitted.variances_.min() >= fitted.variance_floor
    assert all(np.isfinite(part).all() for part in (fitted.weights_, fitted.means_, fitted.variances_))
    return True
