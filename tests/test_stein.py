"""James and Stein's estimator and the oracle of Theorem 1, against Monte Carlo."""

import numpy as np
import oracles
import pytest
from numpy.testing import assert_allclose
from tables import CLOSED_FORM, KERNELS, sample

import muhat as mh
from muhat.stein import james_stein_risk

THETAS = {"origin": np.zeros(5), "near": np.full(5, 0.3), "far": np.array([4.0, -3.0, 2.0, 0.0, 1.0])}
every_theta = pytest.mark.parametrize("theta", THETAS.values(), ids=THETAS)


def mixture():
    rng = np.random.default_rng(1)
    roots = rng.normal(size=(2, 3, 2)) * 0.6
    return [0.3, 0.7], rng.normal(size=(2, 3)), roots @ roots.transpose(0, 2, 1)


@pytest.mark.parametrize("target", [0.0, 0.7, np.array([1.0, 0.0, -1.0, 2.0])], ids=["zero", "number", "point"])
def test_james_stein_is_its_formula(target):
    X, v = sample(6, 4, seed=2), 0.8
    offset = X.mean(axis=0) - target
    factor = 1 - (4 - 2) * v / (6 * sum(offset**2))
    got = mh.james_stein(X, variance=v, target=target)
    assert_allclose(got, target + max(factor, 0.0) * offset, rtol=1e-10)


def test_positive_part():
    X = np.full((2, 5), 0.01)
    assert_allclose(mh.james_stein(X, variance=1.0), np.zeros(5), rtol=0, atol=0)
    factor = 1 - 3 / (2 * 5 * 0.01**2)
    assert_allclose(mh.james_stein(X, variance=1.0, positive_part=False), factor * X[0], rtol=1e-10)


@pytest.mark.parametrize("d", [1, 2])
def test_two_dimensions_are_too_few(d):
    with pytest.raises(ValueError, match="3"):
        mh.james_stein(np.ones((4, d)), variance=1.0)


@every_theta
def test_exact_risk(theta):
    n, v, rng = 4, 1.5, np.random.default_rng(3)
    estimate, error = oracles.james_stein_risk(theta, v, n, 200_000, rng)
    exact = james_stein_risk(theta, v, n)
    assert abs(exact - estimate) <= 4 * error
    assert exact < 5 * v / n
    positive, error = oracles.james_stein_risk(theta, v, n, 200_000, rng, positive_part=True)
    assert positive <= exact + 4 * error


def test_exact_risk_at_the_origin():
    assert_allclose(james_stein_risk(np.zeros(7), 1.5, 3), 2 * 1.5 / 3, rtol=1e-10)


@every_theta
def test_the_estimator_has_that_risk(theta):
    n, v, rng = 4, 1.5, np.random.default_rng(4)
    samples = theta + np.sqrt(v) * rng.standard_normal((1500, n, 5))
    errors = [sum((mh.james_stein(X, v, positive_part=False) - theta) ** 2) for X in samples]
    estimate, error = oracles.monte_carlo(errors)
    assert abs(james_stein_risk(theta, v, n) - estimate) <= 4 * error


@pytest.mark.parametrize("with_target", [False, True])
@pytest.mark.parametrize("name", CLOSED_FORM)
def test_oracle_shrinkage(name, with_target):
    """The promised risk is attained at the promised shrinkage, and the quadratic is lowest there."""
    parts, kernel, n, rng = mixture(), KERNELS[name], 5, np.random.default_rng(5)
    P = mh.GaussianMixture(*parts)
    truth = mh.embed(kernel, P)
    target = mh.embed(kernel, np.full((1, 3), 0.4)) if with_target else None
    alpha, risk = mh.oracle_shrinkage(kernel, P, n, target=target)
    bias = (truth if target is None else target - truth).norm() ** 2
    squared_truth = truth.norm() ** 2
    plain = (kernel.expect_diag(P) - squared_truth) / n
    grid = np.linspace(0, 1, 1001)
    risks = (1 - grid) ** 2 * plain + grid**2 * bias
    assert_allclose((1 - alpha) ** 2 * plain + alpha**2 * bias, risk, rtol=1e-10)
    assert risk <= risks.min() * (1 + 1e-10)

    def loss():
        mean = mh.embed(kernel, oracles.sample_mixture(*parts, n, rng))
        shrunk = (1 - alpha) * mean if target is None else (1 - alpha) * mean + alpha * target
        return shrunk.norm() ** 2 - 2 * shrunk.inner(truth) + squared_truth

    estimate, error = oracles.monte_carlo([loss() for _ in range(60)])
    assert abs(estimate - risk) <= 4 * error
