"""Shrinkage targets against their definition: every value, norm and refit, the last ones included."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.covariance import OAS
from tables import sample

import muhat as mh
from muhat.gaussian import FittedGaussian, oas_amount
from muhat.means.targets import gaussian_target, given_target

KERNELS = [mh.Gaussian(1.5), mh.Polynomial(2), mh.Polynomial(3, 0.5), mh.Gaussian(1.0) + mh.Polynomial(2)]


def fitted_gaussian(X):
    return FittedGaussian.of(X).measure()


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("shape", [(9, 1), (9, 3), (5, 8), (3, 2)])
def test_refits_without_each_row(kernel, shape):
    X = sample(*shape, seed=1)
    found, whole = gaussian_target(kernel, X), mh.Element(kernel, fitted_gaussian(X))
    assert_allclose(found.at_rows, whole(X), rtol=1e-9)
    assert_allclose(found.squared_norm, whole.norm() ** 2, rtol=1e-9)
    for i in range(len(X)):
        left_out = mh.Element(kernel, fitted_gaussian(np.delete(X, i, axis=0)))
        assert_allclose(found.own[i], left_out(X)[i], rtol=1e-9)
        assert_allclose(found.values[found.parts[i]], left_out(X), rtol=1e-9)
        assert_allclose(found.squared_norms[found.parts[i]], left_out.norm() ** 2, rtol=1e-9)


def test_a_given_target_is_the_same_without_any_row():
    X, kernel = sample(7, 2, seed=2), mh.Gaussian(1.0)
    target = mh.embed(kernel, sample(3, 2, seed=3))
    found = given_target(target, kernel, X)
    for values in (found.at_rows, found.own, found.values[found.parts[-1]]):
        assert_allclose(values, target(X), rtol=1e-12)


@pytest.mark.parametrize("n", [2, 5, 40])
@pytest.mark.parametrize("d", [1, 2, 7])
def test_the_amount_of_shrinkage_is_that_of_oas(n, d):
    """One column has nothing to be shrunk toward: its variance stays what it is."""
    X = sample(n, d, seed=n + d) * np.arange(1, d + 1)
    S = np.cov(X.T, bias=True).reshape(d, d)
    amount = float(oas_amount(n, d, np.asarray(np.trace(S)), np.asarray((S**2).sum())))
    if d == 1:
        assert amount == 0.0
        assert_allclose(fitted_gaussian(X).covariances[0], [[X.var()]], rtol=1e-12)
    else:
        assert_allclose(amount, OAS().fit(X).shrinkage_, rtol=1e-9)
        assert_allclose(oas_amount(n, d, *np.zeros((2, 1))), 1.0)
