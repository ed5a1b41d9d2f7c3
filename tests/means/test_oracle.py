"""The oracle of Theorem 1: the best simple shrinkage of the average of n draws, and its risk."""

import numpy as np
import oracles
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from tables import CLOSED_FORM, KERNELS, sample

import muhat as mh
from muhat.kernels.expectations import expect_diag

few = settings(max_examples=20, deadline=None, derandomize=True, phases=[Phase.generate])
seeds = st.integers(0, 10**6)


def mixture():
    rng = np.random.default_rng(1)
    roots = rng.normal(size=(2, 3, 2)) * 0.6
    return [0.3, 0.7], rng.normal(size=(2, 3)), roots @ roots.transpose(0, 2, 1)


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
    plain = (expect_diag(kernel, P) - squared_truth) / n
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


@pytest.mark.slow
@pytest.mark.parametrize("with_target", [False, True])
@pytest.mark.parametrize("name", CLOSED_FORM)
def test_any_shrinkage_up_to_twice_the_oracle_improves(name, with_target):
    """On the same draws: the risk at alpha in (0, 2 alpha*) lies below the plain one, and beyond above."""
    kernel, P, n, rng = KERNELS[name], mh.GaussianMixture(*mixture()), 4, np.random.default_rng(3)
    truth = mh.embed(kernel, P)
    target = mh.embed(kernel, np.full((1, 3), 0.4)) if with_target else 0.0 * truth
    best, _ = mh.oracle_shrinkage(kernel, P, n, target=target if with_target else None)
    draws = P.sample(400 * n, random_state=rng).reshape(400, n, 3)
    # ||a t + (1-a) m - mu||^2 from the three inner products of t - mu and m - mu.
    pull = target - truth
    values = truth(draws.reshape(-1, 3)).reshape(400, n).mean(axis=1)
    squares = np.array([kernel(X).mean() for X in draws]) - 2 * values + truth.norm() ** 2
    crosses = pull(draws.reshape(-1, 3)).reshape(400, n).mean(axis=1) - pull.inner(truth)
    for share in (0.25, 1.0, 1.75, 2.5):
        alpha = share * best
        excess = (alpha**2 - 2 * alpha) * squares + 2 * alpha * (1 - alpha) * crosses + alpha**2 * pull.inner(pull)
        exact = alpha * (alpha - 2 * best) * (expect_diag(kernel, P) - truth.norm() ** 2) / (n * best)
        estimate, error = oracles.monte_carlo(excess)
        assert abs(estimate - exact) <= 4.5 * error
        assert (exact < 0) == (share < 2)


@few
@given(seed=seeds, n=st.integers(1, 100))
def test_the_oracle_of_atoms(seed, n):
    """P may be a sample itself: the bootstrap's oracle, by hand."""
    X = np.random.default_rng(seed).normal(size=(5, 2))
    kernel = KERNELS["laplace"]
    K = kernel(X)
    plain = (1 - K.mean()) / n
    alpha, risk = mh.oracle_shrinkage(kernel, mh.Atoms(X), n)
    assert_allclose([alpha, risk], [plain / (plain + K.mean()), plain * K.mean() / (plain + K.mean())], rtol=1e-10)


def test_the_oracle_of_a_point_needs_no_shrinkage():
    assert mh.oracle_shrinkage(mh.Gaussian(1.0), mh.Atoms(sample(1, 2, seed=1)), 3) == (0.0, 0.0)
