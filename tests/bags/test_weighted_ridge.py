"""Weighted ridge regression: leave-one-out against refits, variances, and noise by size."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import Ridge

from muhat.bags.weighted_ridge import SizeNoise, WeightedRidge


def small_problem(p=4, n=12):
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(n, p))
    return Z, Z @ rng.normal(size=p) + rng.normal(size=n), rng.integers(1, 50, size=n), rng.uniform(0.5, 2.0, size=n)


@pytest.mark.parametrize("noise", [SizeNoise(), SizeNoise(10.0, 5.0)])
@pytest.mark.parametrize("p", [4, 20])
def test_it_is_a_weighted_ridge_and_leaves_bags_out(noise, p):
    Z, y, sizes, weights = small_problem(p)
    fitted = WeightedRidge.fit(Z, y, sizes, weights, noise)
    precision = weights / noise(sizes)
    slow = Ridge(fitted.lam, solver="cholesky").fit(Z, y, sample_weight=precision)
    assert_allclose(fitted.predict(Z), slow.predict(Z), rtol=1e-8)
    residuals, variances = [], []
    for i in range(len(y)):
        kept = np.arange(len(y)) != i
        without = Ridge(fitted.lam, solver="cholesky").fit(Z[kept], y[kept], sample_weight=precision[kept])
        residuals.append(y[i] - without.predict(Z[[i]])[0])
        X = Z[kept] - precision[kept] @ Z[kept] / precision[kept].sum()
        z = Z[i] - precision[kept] @ Z[kept] / precision[kept].sum()
        inverse = np.linalg.inv((X.T * precision[kept]) @ X + fitted.lam * np.eye(p))
        variances.append(1 / precision[i] + 1 / precision[kept].sum() + z @ inverse @ z)
    assert_allclose(fitted.residuals, residuals, rtol=1e-7)
    shares = weights / weights.sum()
    scale = shares @ (np.square(residuals) / variances)
    assert_allclose(fitted.scale, scale, rtol=1e-7)
    score = 0.5 * shares @ (np.log(2 * np.pi * scale * np.array(variances)) + np.square(residuals) / variances / scale)
    assert_allclose(fitted.score, score, rtol=1e-7)


@pytest.mark.parametrize("p", [4, 20])
def test_the_variance_of_a_prediction(p):
    Z, y, sizes, weights = small_problem(p)
    noise = SizeNoise(10.0, 5.0)
    fitted = WeightedRidge.fit(Z, y, sizes, weights, noise)
    precision = weights / noise(sizes)
    centre = precision @ Z / precision.sum()
    inverse = np.linalg.inv(((Z - centre).T * precision) @ (Z - centre) + fitted.lam * np.eye(p))
    new = np.random.default_rng(1).normal(size=(3, p))
    want = [noise(np.array([7]))[0] + 1 / precision.sum() + (z - centre) @ inverse @ (z - centre) for z in new]
    got = fitted.variances(new, np.full(3, 7), np.zeros(3))
    assert_allclose(got, fitted.scale * np.array(want), rtol=1e-6)


def test_the_noise_by_size_is_found():
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 300, size=4000)
    truth = SizeNoise(30.0, 10.0)
    residuals = np.sqrt(truth(sizes)) * rng.normal(size=4000)
    found = SizeNoise.of(residuals, sizes, np.ones(4000))
    assert_allclose(np.log(found(sizes) / truth(sizes)), 0, atol=0.5)
    assert SizeNoise.of(rng.normal(size=4000), sizes, np.ones(4000)).excess <= 0.3
