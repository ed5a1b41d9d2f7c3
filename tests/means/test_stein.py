"""Stein's effect: James and Stein's estimator, the oracle of Theorem 1, and what links them to leave-one-out."""

import numpy as np
import oracles
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from tables import CLOSED_FORM, KERNELS, sample

import muhat as mh
from muhat.means.stein import james_stein_risk

THETAS = {"origin": np.zeros(5), "near": np.full(5, 0.3), "far": np.array([4.0, -3.0, 2.0, 0.0, 1.0])}
every_theta = pytest.mark.parametrize("theta", THETAS.values(), ids=THETAS)
few = settings(max_examples=20, deadline=None, derandomize=True, phases=[Phase.generate])
seeds = st.integers(0, 10**6)


def mixture():
    rng = np.random.default_rng(1)
    roots = rng.normal(size=(2, 3, 2)) * 0.6
    return [0.3, 0.7], rng.normal(size=(2, 3)), roots @ roots.transpose(0, 2, 1)


# ---------------------------------------------------------------- James and Stein


@pytest.mark.parametrize("target", [0.0, 0.7, np.array([1.0, 0.0, -1.0, 2.0])], ids=["zero", "number", "point"])
def test_james_stein_is_its_formula(target):
    X, v = sample(6, 4, seed=2), 0.8
    offset = X.mean(axis=0) - target
    factor = 1 - (4 - 2) * v / (6 * sum(offset**2))
    got = mh.james_stein(X, variance=v, target=target)
    assert_allclose(got, target + max(factor, 0.0) * offset, rtol=1e-10)


def test_rows_at_the_target_stay_there():
    assert_array_equal(mh.james_stein(np.ones((4, 3)), 1.0, target=1.0), np.ones(3))


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


@pytest.mark.slow
@every_theta
def test_the_estimator_has_that_risk(theta):
    n, v, rng = 4, 1.5, np.random.default_rng(4)
    samples = theta + np.sqrt(v) * rng.standard_normal((1500, n, 5))
    errors = [sum((mh.james_stein(X, v, positive_part=False) - theta) ** 2) for X in samples]
    estimate, error = oracles.monte_carlo(errors)
    assert abs(james_stein_risk(theta, v, n) - estimate) <= 4 * error


@few
@given(seed=seeds, d=st.integers(3, 12), n=st.integers(1, 5), v=st.floats(0.01, 10), shift=st.floats(-50, 50))
def test_the_target_is_a_change_of_origin(seed, d, n, v, shift):
    X = np.random.default_rng(seed).normal(size=(n, d))
    for positive_part in (True, False):
        about_zero = mh.james_stein(X, v, positive_part=positive_part)
        about_point = mh.james_stein(X + shift, v, target=shift, positive_part=positive_part)
        # x - target is known to 1e-16 of the shift, and the factor may amplify it.
        assert_allclose(about_point - shift, about_zero, rtol=1e-8, atol=1e-10)


@few
@given(d=st.integers(3, 40), n=st.integers(1, 50), v=st.floats(1e-3, 1e3), length=st.floats(0, 1e4))
def test_risk_lies_between_its_limits(d, n, v, length):
    """2V at the origin, dV far away, and in between below the plain mean."""
    theta = np.zeros(d)
    V = v / n
    assert_allclose(james_stein_risk(theta, v, n), 2 * V, rtol=1e-10)
    theta[-1] = length * np.sqrt(V)
    assert 2 * V * (1 - 1e-10) <= james_stein_risk(theta, v, n) <= d * V * (1 + 1e-10)
    theta[-1] = 1e4 * np.sqrt(V)
    # What is left of the gain is (d - 2)^2 / 1e8 of V.
    assert_allclose(james_stein_risk(theta, v, n), d * V, rtol=1e-6)


@pytest.mark.slow
def test_positive_part_is_never_worse_about_a_target():
    rng, theta, target = np.random.default_rng(2), np.full(6, 0.4), np.full(6, 0.1)
    samples = theta + rng.standard_normal((3000, 3, 6))
    losses = {
        part: np.array([sum((mh.james_stein(X, 1.0, target, positive_part=part) - theta) ** 2) for X in samples])
        for part in (True, False)
    }
    estimate, error = oracles.monte_carlo(losses[False])
    assert abs(estimate - james_stein_risk(theta - target, 1.0, 3)) <= 4 * error
    gain, error = oracles.monte_carlo(losses[False] - losses[True])
    assert gain > 4 * error


# ---------------------------------------------------------------- the link


@few
@given(seed=seeds, n=st.integers(2, 9), d=st.integers(1, 6))
def test_with_the_linear_kernel_the_mean_is_the_mean(seed, n, d):
    rng = np.random.default_rng(seed)
    X, points = rng.normal(size=(n, d)), rng.normal(size=(4, d))
    plain = mh.KernelMean(mh.Linear()).fit(X)
    assert_allclose(plain.mean_(points), points @ X.mean(axis=0), rtol=0, atol=1e-10)
    shrunk = mh.ShrunkKernelMean(mh.Linear()).fit(X)
    assert_allclose(shrunk.mean_(points), (1 - shrunk.shrinkage_) * points @ X.mean(axis=0), rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", KERNELS)
@few
@given(seed=seeds, n=st.integers(2, 12))
def test_leave_one_out_is_theorem_1_with_plug_ins(name, seed, n):
    """alpha = D / (D + m) at sample size n - 1, D = (mean_diag - m) / (n - 1), m the unbiased ||mu||^2."""
    X = np.random.default_rng(seed).normal(size=(n, 3)) + 0.3
    K = KERNELS[name](X)
    mean_diag = np.trace(K) / n
    m = (K.sum() - np.trace(K)) / (n * (n - 1))
    variance = (mean_diag - m) / (n - 1)
    expected = variance / (variance + m) if m > 0 else 1.0
    assert_allclose(mh.ShrunkKernelMean(KERNELS[name]).fit(X).shrinkage_, expected, rtol=1e-10, atol=1e-10)


# ---------------------------------------------------------------- the oracle


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
        exact = alpha * (alpha - 2 * best) * (kernel.expect_diag(P) - truth.norm() ** 2) / (n * best)
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
