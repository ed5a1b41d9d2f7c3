"""Data and checks that the tests of matched mixtures share."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import approx_fprime
from tables import sample

import muhat as mh
from muhat.density.matched_mixture import MatchedGaussianMixture
from muhat.density.objective import Mixture

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


def random_mixture(m, d, seed, covariance_type="diag"):
    rng = np.random.default_rng(seed)
    width = 1 if covariance_type == "spherical" else d
    variances = rng.uniform(0.2, 1.5, size=(m, width)) * np.ones(d)
    return Mixture(rng.dirichlet(np.ones(m)), rng.normal(size=(m, d)), variances)


def random_target(kernel, kind, d=3):
    """Signed weights, more and fewer atoms than d², and Gaussians with full covariances."""
    rng = np.random.default_rng(5)
    n = {"few_atoms": 6, "many_atoms": 40}.get(kind, 8)
    atoms = mh.embed(kernel, sample(n, d, seed=1), rng.normal(0.3, 1.0, size=n) / n)
    if kind in ("few_atoms", "many_atoms"):
        return atoms
    roots = rng.normal(size=(2, d, d))
    gaussians = mh.embed(kernel, mh.GaussianMixture([0.4, 0.6], sample(2, d, seed=2), roots @ roots.transpose(0, 2, 1)))
    return 0.7 * gaussians if kind == "gaussians" else atoms + 0.7 * gaussians


def assert_gradient(value, x, written):
    """Forward and backward differences of step h have opposite first errors: their mean errs by h²."""
    h = 1e-5
    differences = (approx_fprime(x, value, h) + approx_fprime(x, value, -h)) / 2
    assert_allclose(written, differences, rtol=0, atol=1e-7 * max(1.0, np.abs(written).max()))
