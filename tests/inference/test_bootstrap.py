"""Rare values that a sample lacks are allowed for."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from tables import sample

import muhat as mh
from muhat.inference.bootstrap import carrying_rows
from muhat.inference.error_bars import confidence_ball, mean_bands, mean_error
from muhat.inference.mmd_intervals import mmd_difference_interval, mmd_interval

KERNEL = mh.Gaussian(1.5)

X, Y, Z = sample(14, 2, seed=1), sample(11, 2, seed=2) * 1.5, sample(9, 2, seed=3) + 0.4

METHODS = ("jackknife", "bootstrap")


@pytest.mark.parametrize("method", METHODS)
def test_equal_rows_leave_room_for_others(method):
    """Of 40 equal rows a share of up to about 3/40 may be missing; without a bound a warning says so."""
    rows = np.ones((40, 2))
    assert mean_error(mh.embed(KERNEL, rows)) < 1e-8
    bands = mean_bands(mh.embed(KERNEL, rows), np.array([[1.0, 1.0], [9.0, 9.0]]), method=method)
    assert_allclose(bands.high[0], 1.0)
    assert_allclose([1.0 - bands.low[0], bands.high[1]], 2.8 / 40, rtol=0.05)
    assert_allclose(bands.low[1], 0.0, atol=1e-12)
    found = mmd_interval(rows, rows, KERNEL, method=method)
    assert_allclose([found.estimate, found.low], 0.0, atol=1e-12)
    assert 0.005 < found.high < 0.02
    assert 0 < mmd_difference_interval(rows, rows, rows + 1, KERNEL, method=method).pvalue < 1
    for ball in ("bernstein", "bootstrap"):
        assert confidence_ball(mh.embed(KERNEL, rows), method=ball).radius > 0.05
    for call in (lambda f: mean_bands(f, rows, method=method), lambda f: confidence_ball(f, method="bootstrap")):
        with pytest.warns(UserWarning, match=r"rests on the deviations of one row or none.*Linear\(\).*pass more rows"):
            call(mh.embed(mh.Linear(), rows))
    with pytest.warns(UserWarning, match="the interval rests on"):
        mmd_interval(rows, rows, mh.Linear(), method=method)


def rare(rng, n, share):
    return np.where(rng.random((n, 1)) < share, rng.normal(3.0, 1.0, size=(n, 1)), 0.0)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [10, 20, 50, 100])
def test_a_rare_value_is_covered(n, method):
    """A column that is nonzero in few rows, which most samples lack."""
    rng = np.random.default_rng(0)
    kernel, points = mh.Gaussian(1.0), np.array([[0.0], [3.0]])
    truth = [0.98 * kernel(points, np.zeros((1, 1)))[:, 0] + 0.02 * kernel(points, rare(rng, 4000, 1.0)).mean(axis=1)]
    many = [rare(rng, 3000, 1.0), rare(rng, 3000, 1.0)]
    inner = [kernel(A, B).mean() for A, B in ((many[0], many[1]), (many[0], np.zeros((1, 1))))]
    squared = (0.03 - 0.02) ** 2 * (inner[0] + 1.0 - 2.0 * inner[1])  # of shares .02 and .03
    held, intervals = [], []
    for seed in range(200):
        X, Y = rare(rng, n, 0.02), rare(rng, n, 0.03)
        bands = mean_bands(mh.embed(kernel, X), points, method=method, n_resamples=99, random_state=seed)
        held.append((bands.low <= truth[0]) & (truth[0] <= bands.high))
        found = mmd_interval(X, Y, kernel, method=method, n_resamples=99, random_state=seed)
        intervals.append(found.low <= squared <= found.high)
    assert np.min(np.mean(held, axis=0)) >= 0.93
    assert np.mean(intervals) >= 0.93


def test_rows_that_carry_a_variance_are_counted():
    for k in range(1, 8):
        deviations = np.repeat([1.0, 0.0], [k, 100 * k])
        assert_allclose(carrying_rows(deviations), k)
    assert carrying_rows(np.zeros(5)) == 0.0
    assert_allclose(carrying_rows(np.array([[1e-200, -1e-200], [3e200, 0.0]])), [2.0, 1.0])
