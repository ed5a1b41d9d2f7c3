"""Gaussians fitted to rows, against scikit-learn's OAS and dense matrices."""

import numpy as np
import oracles
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.covariance import OAS
from tables import data_sets, sample

import muhat as mh
from muhat.rkhs.measures import FactoredGaussian
from muhat.rkhs.oas_gaussian import SAMPLE_POINTS, FittedGaussian, normal_points, oas_amount

DATA = data_sets()
every_data_set = pytest.mark.parametrize("data", DATA)


def fitted(X):
    return FittedGaussian.of(X).measure()


def oas_mixture(X):
    return mh.GaussianMixture([1.0], X.mean(axis=0)[None], oracles.oas_covariance(X)[None])


@every_data_set
def test_the_covariance_is_scikit_learns(data):
    X = DATA[data]
    expected = OAS().fit(X).covariance_
    assert_allclose(
        FittedGaussian.of(X).measure().covariances[0], expected, rtol=1e-12, atol=1e-14 * np.abs(X).max() ** 2
    )


def test_a_factored_covariance_is_the_matrix():
    X, Y = (sample(6, 40, seed=seed) * np.linspace(0.2, 2, 40) for seed in (32, 33))
    kernel = mh.Gaussian(4.0)
    factored, dense = ([mh.embed(kernel, make(rows)) for rows in (X, Y)] for make in (fitted, oas_mixture))
    assert type(factored[0].measures[0]) is FactoredGaussian
    assert_allclose(factored[0].measures[0].covariances, dense[0].measures[0].covariances, rtol=1e-10, atol=1e-12)
    points = sample(5, 40, seed=34)
    assert_allclose(factored[0](points), dense[0](points), rtol=1e-10)
    assert_allclose(factored[0].norm(), dense[0].norm(), rtol=1e-10)
    for left in (factored, dense):
        for right in (factored, dense):
            assert_allclose(left[0].inner(right[1]), dense[0].inner(dense[1]), rtol=1e-10)
    assert_allclose(factored[0].distance(factored[1]), dense[0].distance(dense[1]), rtol=1e-8)
    assert (0.5 * factored[0] + factored[0] - 1.5 * factored[0]).norm() < 1e-7
    assert len((factored[0] + 2.0 * factored[0]).measures[0]) == 1


def test_a_point_too_far_for_squares_has_the_value_zero():
    f = mh.embed(mh.Gaussian(1.0), fitted(sample(6, 40, seed=35)))
    assert_array_equal(f(np.full((1, 40), 1e200)), 0.0)


@every_data_set
def test_the_sample_is_that_of_the_symmetric_root(data):
    X = DATA[data]
    base = normal_points(X.shape[1], SAMPLE_POINTS)
    expected = oracles.normal_sample(X.mean(axis=0), oracles.oas_covariance(X), base)
    assert_allclose(
        FittedGaussian.of(X).at(base), expected, rtol=1e-10, atol=1e-7 * np.ptp(X)
    )  # roots lose half the digits


@pytest.mark.parametrize("n", [2, 5, 40])
@pytest.mark.parametrize("d", [1, 2, 7])
def test_the_amount_of_shrinkage_is_that_of_oas(n, d):
    """One column has nothing to be shrunk toward: its variance stays what it is."""
    X = sample(n, d, seed=n + d) * np.arange(1, d + 1)
    S = np.cov(X.T, bias=True).reshape(d, d)
    amount = float(oas_amount(n, d, np.asarray(np.trace(S)), np.asarray((S**2).sum())))
    if d == 1:
        assert amount == 0.0
        assert_allclose(fitted(X).covariances[0], [[X.var()]], rtol=1e-12)
    else:
        assert_allclose(amount, OAS().fit(X).shrinkage_, rtol=1e-9)
        assert_allclose(oas_amount(n, d, *np.zeros((2, 1))), 1.0)
