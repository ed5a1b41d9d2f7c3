"""James and Stein's estimator, its exact risk, and its link to Theorem 1 and leave-one-out."""

import numpy as np
import oracles
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from tables import KERNELS, sample

import muhat as mh
from muhat.means import james_stein_risk

THETAS = {"origin": np.zeros(5), "near": np.full(5, 0.3), "far": np.array([4.0, -3.0, 2.0, 0.0, 1.0])}
every_theta = pytest.mark.parametrize("theta", THETAS.values(), ids=THETAS)
few = settings(max_examples=20, deadline=None, derandomize=True, phases=[Phase.generate])
seeds = st.integers(0, 10**6)


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
