"""What holds for every mean estimator of the table."""

import numpy as np
import oracles
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from tables import ESTIMATORS, FUNCTIONS, KERNELS, sample

import muhat as mh

every_estimator = pytest.mark.parametrize("name", ESTIMATORS)
X = sample(9, 3, seed=1)


def with_kernel(name, kernel):
    return clone(ESTIMATORS[name]).set_params(kernel=kernel)


def squared_difference(f, g):
    return (f - g).norm() ** 2


@every_estimator
def test_mean_is_made_of_kernel_and_weights(name):
    fitted = clone(ESTIMATORS[name]).fit(X)
    assert fitted.kernel_ == mh.Gaussian().resolve(X)
    assert fitted.weights_.shape == (len(X),)
    rebuilt = mh.embed(fitted.kernel_, X, weights=fitted.weights_)
    assert squared_difference(fitted.mean_, rebuilt) <= 1e-20


@pytest.mark.parametrize("kernel", ["linear", "gaussian", "laplace", "polynomial2"])
@every_estimator
def test_a_gram_matrix_stands_for_the_data(name, kernel):
    K = oracles.gram(FUNCTIONS[kernel], X, X)
    by_data, by_gram = with_kernel(name, KERNELS[kernel]).fit(X), with_kernel(name, "precomputed").fit(K)
    # Selection stops where the score is flat to rounding: lam, and so the weights, agree to half the digits.
    atol = 1e-10 if by_data.get_params().get("lam", 0.0) not in ("loo", "theorem4") else 1e-7
    assert_allclose(by_gram.weights_, by_data.weights_, rtol=0, atol=atol)
    assert_allclose(by_gram.loo_score_, by_data.loo_score_, rtol=1e-10)
    Z = sample(4, 3, seed=2)
    rows = oracles.gram(FUNCTIONS[kernel], Z, X)
    size = np.abs(rows).max()
    assert_allclose(by_gram.mean_(rows), rows @ by_gram.weights_, rtol=0, atol=1e-10 * size)
    assert_allclose(by_data.mean_(Z), rows @ by_data.weights_, rtol=0, atol=1e-10 * size)


@every_estimator
def test_score_is_minus_the_loss(name):
    fitted = with_kernel(name, KERNELS["gaussian"]).fit(X)
    Z = sample(5, 3, seed=3)
    losses = [squared_difference(mh.embed(fitted.kernel_, z[None]), fitted.mean_) for z in Z]
    assert_allclose(fitted.score(Z), -np.mean(losses), rtol=1e-10)


@every_estimator
def test_row_order_does_not_matter(name):
    order = np.random.default_rng(4).permutation(len(X))
    one, other = clone(ESTIMATORS[name]).fit(X), clone(ESTIMATORS[name]).fit(X[order])
    assert_allclose(other.loo_score_, one.loo_score_, rtol=1e-10)
    # As above: lam is known to half the digits.
    assert_allclose(other.weights_, one.weights_[order], rtol=0, atol=1e-7)


@pytest.mark.parametrize("factor", [1e-6, 0.5, 1e6])
@every_estimator
def test_shrinkage_does_not_change_with_the_unit_of_the_kernel(name, factor):
    estimator = with_kernel(name, KERNELS["gaussian"])
    scaled = with_kernel(name, factor * KERNELS["gaussian"])
    lam = estimator.get_params().get("lam")
    if isinstance(lam, float):
        scaled.set_params(lam=factor * lam)
    one, other = estimator.fit(X), scaled.fit(X)
    assert_allclose(other.loo_score_, factor * one.loo_score_, rtol=1e-10)
    assert_allclose(other.weights_, one.weights_, rtol=0, atol=1e-7)


@every_estimator
def test_a_zero_gram_matrix_gives_the_plain_average(name):
    fitted = with_kernel(name, mh.Linear()).fit(np.zeros((4, 2)))
    assert fitted.mean_.norm() == 0
    assert fitted.loo_score_ == 0
    if name in ("kernel_mean", "shrunk", "spectral", "spectral_theorem4"):
        assert_allclose(fitted.weights_, np.full(4, 0.25), rtol=0, atol=0)


def test_small_lam_gives_the_plain_mean_in_norm():
    """Where K is singular the weights tend elsewhere; the element does not."""
    for data in (sample(12, 2, seed=5), np.repeat(sample(4, 3, seed=6), 2, axis=0)):
        plain = mh.KernelMean(kernel=mh.Linear()).fit(data)
        K = oracles.gram(oracles.linear, data, data)
        lam = 1e-12 * np.linalg.eigvalsh(K)[-1]
        fitted = mh.SpectralKernelMean(kernel=mh.Linear(), lam=lam).fit(data)
        assert squared_difference(fitted.mean_, plain.mean_) <= 1e-20 * np.trace(K)
