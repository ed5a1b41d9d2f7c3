"""Intervals of squared MMDs: estimates, jackknife, coverage."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import t as student
from tables import sample

import muhat as mh
from muhat.inference.mmd_intervals import mmd_difference_interval, mmd_interval

KERNEL = mh.Gaussian(1.5)

P = mh.GaussianMixture([0.4, 0.6], [[-1.0, 0.0], [1.0, 0.5]], [1.0, 0.5])

X, Y, Z = sample(14, 2, seed=1), sample(11, 2, seed=2) * 1.5, sample(9, 2, seed=3) + 0.4


def unbiased_mmd(X, Y, kernel):
    n, m = len(X), len(Y)
    K, L, M = kernel(X), kernel(Y), kernel(X, Y)
    within = (K.sum() - np.trace(K)) / (n * (n - 1)) + (L.sum() - np.trace(L)) / (m * (m - 1))
    return within - 2 * M.mean()


def test_the_estimates_are_unbiased_mmds():
    found = mmd_interval(X, Y, KERNEL)
    assert_allclose(found.estimate, unbiased_mmd(X, Y, KERNEL), rtol=1e-10)
    difference = mmd_difference_interval(X, Y, Z, KERNEL)
    expected = unbiased_mmd(X, Y, KERNEL) - unbiased_mmd(X, Z, KERNEL)
    assert_allclose(difference.estimate, expected, rtol=1e-10)
    swapped = mmd_difference_interval(X, Z, Y, KERNEL)
    assert_allclose([swapped.low, swapped.high], [-difference.high, -difference.low], rtol=1e-10)
    assert_allclose(swapped.pvalue, 1 - difference.pvalue, rtol=1e-10)


def variance_by_deletion(samples, statistic):
    total = 0.0
    for g, rows in enumerate(samples):
        n = len(rows)
        values = [statistic(*samples[:g], np.delete(rows, i, axis=0), *samples[g + 1 :]) for i in range(n)]
        total += (n - 1) * np.var(values)
    return total


def test_the_jackknife_leaves_out_each_row():
    by_hand = variance_by_deletion([X, Y], lambda A, B: unbiased_mmd(A, B, KERNEL))
    assert_allclose(mmd_interval(X, Y, KERNEL).standard_error, np.sqrt(by_hand), rtol=1e-9)
    by_hand = variance_by_deletion([X, Y, Z], lambda A, B, C: unbiased_mmd(A, B, KERNEL) - unbiased_mmd(A, C, KERNEL))
    assert_allclose(mmd_difference_interval(X, Y, Z, KERNEL).standard_error, np.sqrt(by_hand), rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("level", [0.95, 0.5])
def test_intervals_cover_the_mmd(level):
    Q = mh.GaussianMixture([1.0], [[0.8, -0.5]], [1.0])
    truth = mh.embed(KERNEL, P).distance(mh.embed(KERNEL, Q)) ** 2
    covered = []
    for seed in range(300):
        found = mmd_interval(P.sample(60, random_state=seed), Q.sample(50, random_state=1000 + seed), KERNEL, level)
        covered.append(found.low <= truth <= found.high)
    assert_allclose(np.mean(covered), level, rtol=0, atol=0.03 + 3 * np.sqrt(level * (1 - level) / 300))


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(60, 50, 40), (200, 15, 30)])
def test_intervals_cover_mmds_of_discrete_values(sizes):
    """And differences of two such, but these at .85: errors grow with the MMD, and the jackknife is at the estimate."""
    values, rng = np.arange(3.0)[:, None], np.random.default_rng(0)
    shares = [np.array(p) for p in ([0.7, 0.2, 0.1], [0.4, 0.3, 0.3], [0.8, 0.1, 0.1])]
    squared = [(shares[0] - q) @ KERNEL(values, values) @ (shares[0] - q) for q in shares[1:]]
    covered = []
    for _ in range(200):
        samples = [values[rng.choice(3, n, p=p)] for n, p in zip(sizes, shares, strict=True)]
        one = mmd_interval(*samples[:2], KERNEL, 0.95)
        both = mmd_difference_interval(*samples, KERNEL, 0.95)
        covered.append((one.low <= squared[0] <= one.high, both.low <= squared[0] - squared[1] <= both.high))
    squared, difference = np.mean(covered, axis=0)
    assert squared >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / 200)
    assert difference >= 0.85 - 3 * np.sqrt(0.85 * 0.15 / 200)


def covariance(features):
    return np.cov(features, rowvar=False)


def test_the_ends_are_those_values_that_their_own_error_does_not_exclude():
    """Under the linear kernel covariance operators are matrices."""
    found = mmd_interval(X, Y, mh.Linear(), 0.9)
    q, (n, m) = student.ppf(0.95, 10), (len(X), len(Y))
    S = covariance(X) / n + covariance(Y) / m
    delta = X.mean(axis=0) - Y.mean(axis=0)

    def excluded(theta):
        variance = 2 * trace_of_square() + 4 * theta * delta @ S @ delta / (delta @ delta)
        return (max(found.estimate, 0) - theta) ** 2 - q**2 * variance

    def trace_of_square():
        Kx, Ky = (np.square((A - A.mean(axis=0)) @ (A - A.mean(axis=0)).T) for A in (X, Y))
        own = [(K.sum() - np.trace(K)) / ((k - 1) * (k - 2) * k**2) for K, k in ((Kx, n), (Ky, m))]
        return sum(own) + 2 * np.trace(covariance(X) @ covariance(Y)) / (n * m)

    for end in (found.low, found.high):
        assert end == 0.0 or abs(excluded(end)) <= 1e-9 * found.high**2
    assert excluded(1.01 * found.high) > 0 > excluded(0.99 * found.high)


def test_the_relative_test_keeps_its_level():
    """Y and Z at the same distance from X, on two sides of it."""
    rejected = []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        rows, left, right = rng.normal(size=(40, 1)), rng.normal(size=(40, 1)) - 0.7, rng.normal(size=(40, 1)) + 0.7
        rejected.append(mmd_difference_interval(rows, left, right, KERNEL).pvalue <= 0.05)
    assert np.mean(rejected) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 300)
    assert mmd_difference_interval(rows, left - 1.0, rows[:30] + 0.1, KERNEL).pvalue < 0.01
