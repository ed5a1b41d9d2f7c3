"""Simple shrinkage: toward zero and toward a target."""

import numpy as np
import oracles
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from tables import KERNELS, sample

import muhat as mh

few = settings(max_examples=5, deadline=None, derandomize=True, phases=[Phase.generate])
LINEAR = mh.Linear()
TARGETS = [np.array([[0.3, 0.1, -0.2]]), np.array([[2.0, 2.0, 2.0], [0.0, 1.0, 0.0]])]


def test_nothing_in_common_gives_zero():
    """Where the rows point in opposite directions, m <= 0: S shrinks to zero."""
    X = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    for data in (X, X[:2], np.eye(3)):
        fitted = mh.ShrunkKernelMean(LINEAR).fit(data)
        assert fitted.shrinkage_ == 1.0
        assert_array_equal(fitted.weights_, 0.0)
        assert fitted.mean_.norm() == 0.0


@pytest.mark.parametrize("points", TARGETS)
@pytest.mark.parametrize("kernel", ["linear", "gaussian", "polynomial2"])
@few
@given(seed=st.integers(0, 10**6))
def test_shrinkage_toward_a_target(kernel, points, seed):
    X, k = sample(7, 3, seed), KERNELS[kernel]
    n, target = len(X), mh.embed(k, points)
    plain = mh.embed(k, X)
    for alpha, limit in [(0.0, plain), (1.0, target), (0.4, 0.4 * target + 0.6 * plain)]:
        fitted = mh.ShrunkKernelMean(k, shrinkage=alpha, target=target).fit(X)
        assert_allclose(fitted.mean_(X), limit(X), rtol=1e-10, atol=1e-10)
    residual = k(X) - target(X)[:, None] - target(X)[None, :] + target.norm() ** 2
    best = mh.ShrunkKernelMean(k, target=target).fit(X)
    expected = np.clip(oracles.simple_shrinkage(residual), 0, 1)
    assert_allclose(best.shrinkage_, expected, rtol=0, atol=1e-9)
    assert_allclose(best.loo_score_, oracles.simple_score(residual, expected), rtol=1e-9)
    grid = [oracles.simple_score(residual, alpha) for alpha in np.linspace(0, 1, 101)]
    assert best.loo_score_ <= min(grid) + 1e-10 * abs(min(grid))
    assert_allclose(best.weights_, np.full(n, (1 - best.shrinkage_) / n), rtol=1e-12)


@pytest.mark.parametrize("kernel", ["linear", "gaussian", "polynomial2"])
def test_the_plain_mean_as_its_own_target(kernel):
    X, k = sample(7, 3, seed=1), KERNELS[kernel]
    target = mh.embed(k, X)
    fitted = mh.ShrunkKernelMean(k, target=target).fit(X)
    assert 0 <= fitted.shrinkage_ <= 1
    assert fitted.mean_.distance(target) <= 1e-7
    assert np.isfinite(fitted.loo_score_)
