"""Estimates of distances: noise, shrinkage, intervals and calibration against their formulas by loops."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import brentq

import muhat as mh
from muhat.groups import GroupSums, estimates
from muhat.groups.estimates import GroupEstimates, Noise, ScalarShrinkage, score_interval


def sums(seed=0, G=12, spread=0.5, sizes=(2, 40)):
    rng = np.random.default_rng(seed)
    n = rng.integers(*sizes, G)
    labels = np.repeat(np.arange(G), n)
    X = rng.normal(size=(len(labels), 3)) + spread * rng.normal(size=(G, 3))[labels]
    return GroupSums.of(X, labels, mh.Nystroem(mh.Gaussian(1.5), 30, random_state=0).fit(X)), X, labels


def test_noise_is_that_of_loops():
    found, X, labels = sums()
    fit = GroupEstimates.of(found)
    Z = found.features.transform(X)
    groups = [Z[labels == g] for g in range(12)]
    centred = np.concatenate([z - z.mean(axis=0) for z in groups])
    W = centred.T @ centred / (len(Z) - 12)
    unit = np.trace(W)
    tau = np.sum(W * W) / unit**2 - 1 / (len(Z) - 12)
    top, bottom = 0.0, 0.0
    for i in range(12):
        for j in range(i):
            d, h = groups[i].mean(axis=0) - groups[j].mean(axis=0), 1 / len(groups[i]) + 1 / len(groups[j])
            noise = sum(np.trace(np.cov(groups[g].T)) / len(groups[g]) for g in (i, j))
            bottom += (d @ d - noise) / unit / h**2
            top += (d @ W @ d / unit**2 - tau * h) / h**2
    assert_allclose(fit.unit, unit, rtol=1e-10)
    assert_allclose(fit.noise, (top / bottom, tau), rtol=1e-9)


def test_the_variance_is_that_of_unbiased_distances():
    """Over 2,000 draws of two normal samples whose features are the rows; four standard errors of a variance."""
    rng = np.random.default_rng(0)
    W, delta, n, m = np.diag([0.6, 0.3, 0.1]), np.array([0.5, 0.2, 0.0]), 12, 30
    U = []
    for _ in range(2000):
        x, y = (rng.normal(size=(k, 3)) @ np.sqrt(W) for k in (n, m))
        apart = x.mean(axis=0) + delta - y.mean(axis=0)
        U.append(apart @ apart - x.var(axis=0, ddof=1).sum() / n - y.var(axis=0, ddof=1).sum() / m)
    theta, h = delta @ delta, 1 / n + 1 / m
    expected = float(Noise(delta @ W @ delta / theta, np.sum(W * W)).variance(theta, h))
    # A squared norm of n rows is known by n - 1 degrees of freedom: terms of order 1/n³ are left out.
    assert_allclose(np.var(U), expected, rtol=0.1 + 4 * np.sqrt(3 / 2000))
    assert abs(np.mean(U) - theta) < 4 * np.sqrt(expected / 2000)


@pytest.mark.parametrize("U", [-0.2, 0.0, 0.05, 1.0])
def test_intervals_solve_the_equation_of_scores(U):
    slope, noise, z = 0.12, 0.004, 1.6448536269514722
    low, high = score_interval(np.array([U]), np.array([slope]), np.array([noise]), 0.9)

    def outside(theta):
        return (U - theta) ** 2 - z**2 * (slope * theta + noise)

    if outside(0.0) > 0 and U > 0:
        assert_allclose(low, brentq(outside, 0.0, U), rtol=1e-9)
    else:
        assert low == 0.0
    if U > 0 or outside(0.0) < 0:
        assert_allclose(high, brentq(outside, max(U, 0.0), 10.0), rtol=1e-9)


def test_intervals_hold_where_groups_differ_in_their_noise():
    """Distances are those of centres; rows of half of the groups have a fifth of the spread of the others."""
    inside, quiet = [], np.arange(11) % 2 == 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        centres, labels = 2 * rng.normal(size=(12, 2)), np.repeat(np.arange(12), [200, *[20] * 11])
        spreads = np.r_[1.0, np.where(quiet, 0.3, 1.5)]
        X = centres[labels] + spreads[labels, None] * rng.normal(size=(len(labels), 2))
        result = mh.group_distances(X, labels, control=0, kernel=mh.Linear(), scale=None, n_resamples=0)
        truth = np.square(centres[1:] - centres[0]).sum(axis=1)
        inside.append((result.low <= truth) & (truth <= result.high))
    covered = np.mean(inside, axis=0)
    for part in (quiet, ~quiet):
        assert 0.83 < covered[part].mean() < 0.97


@pytest.mark.slow
@pytest.mark.parametrize("spread", [0.0, 0.7])
def test_intervals_hold_for_sparse_counts_of_unequal_groups(spread):
    """90 % intervals of counts with four fifths of zeros, in groups of 8 to 150 rows, whose distances are known."""
    inside = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        labels = np.repeat(np.arange(12), [150, 8, 8, 10, 12, 15, 20, 25, 30, 50, 80, 120])
        rates = 0.2 * np.exp(spread * rng.normal(size=(12, 3)))
        X = rng.poisson(rates[labels]).astype(float)
        result = mh.group_distances(X, labels, control=0, kernel=mh.Linear(), scale=None, n_resamples=0)
        truth = np.square(rates[1:] - rates[0]).sum(axis=1)
        inside.append((result.low <= truth) & (truth <= result.high))
    assert 0.87 < np.mean(inside) < 0.98


def test_shrinkage_at_its_limits():
    rng = np.random.default_rng(0)
    noise, h = Noise(0.1, 0.1), np.full(200, 0.2)
    wide = rng.uniform(100, 1000, 200)
    assert_allclose(ScalarShrinkage.of(wide, noise, h, 200).apply(wide, noise, h), wide, rtol=0.01)
    alike = 1.0 + 1e-3 * rng.normal(size=200)
    rule = ScalarShrinkage.of(alike, noise, h, np.inf)
    assert_allclose(rule.apply(alike, noise, h), alike.mean(), rtol=1e-4)
    assert ScalarShrinkage.of(alike, noise, h, 4).share == 0.0  # as many as the rule needs to begin


@pytest.mark.parametrize("spread", [0.05, 0.5, 3.0])
def test_pooled_distances_are_calibrated_and_matrix_blocks_are_one(spread, monkeypatch):
    found = sums(1, 20, spread)[0]
    fit = GroupEstimates.of(found)
    i, j = np.triu_indices(20, 1)
    U, n = fit.unbiased(i, j)[np.arange(len(i)), np.arange(len(i))] / fit.unit, fit.sizes
    Q = fit.pooled.distances(i, j)[np.arange(len(i)), np.arange(len(i))]
    weights = 1 / (1 / n[i] + 1 / n[j] + max(U.mean(), 0) / np.sqrt(2 * fit.noise.tau)) ** 2
    if fit.pooled.share < 1.0:
        assert_allclose(weights @ Q, max(weights @ U, 0.0), atol=1e-9 * weights.sum())
    whole = fit.matrix()
    monkeypatch.setattr(estimates, "_GROUPS", 3)
    assert_allclose(fit.matrix(), whole, atol=1e-12)
    assert_allclose(whole[0, 1:].mean(), fit.to_one(0, np.arange(1, 20)).mean(), rtol=0.5)


def test_shrunk_distances_are_better_than_unbiased_ones():
    """Two columns of normal rows under the linear kernel: squared distances of their centres are known."""
    ratios = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        centres, labels = 0.4 * rng.normal(size=(30, 6)), np.repeat(np.arange(30), rng.integers(4, 60, 30))
        X = centres[labels] + rng.normal(size=(len(labels), 6))
        result = mh.group_distances(X, labels, kernel=mh.Linear(), n_resamples=0)
        truth = np.square(centres[:, None] - centres).sum(axis=2)
        ratios.append([np.square(D - truth).sum() for D in (result.matrix, result.unbiased_matrix)])
    better, plain = np.sum(ratios, axis=0)
    assert better < 0.75 * plain


def test_three_alike_groups_have_one_scale():
    """Their raw squared distances from the centre differ by noise: their roots by about 1.3 from each other."""
    found = [np.ptp(GroupEstimates.of(sums(seed, 3, 0.0, (14, 40))[0]).scales) for seed in range(4)]
    assert np.mean(found) < 0.3


def test_two_groups_have_nothing_to_borrow():
    found = sums(2, 2, 1.0, (10, 20))[0]
    fit = GroupEstimates.of(found)
    assert_allclose(fit.to_one(0, np.array([1])), fit.unbiased(np.array([0]), np.array([1]))[0], rtol=1e-8)
