"""Combining statistics: the rule against a loop, duplicates, ties."""

import itertools

import numpy as np
from numpy.testing import assert_allclose
from scipy import stats

from muhat.inference import combine
from muhat.inference.combine import Component


def slow_combination(T, given):
    """A loop over components and splits, as the formulas read."""
    count, columns = T.shape
    log_p = np.empty(T.shape)
    for k, b in itertools.product(range(count), range(columns)):
        others = np.delete(T[k], b)
        m, v, g = others.mean(), others.var(), stats.skew(others)
        z, a = (T[k, b] - m) / np.sqrt(v), 4 / max(g, 0.05) ** 2
        q = 3 * np.sqrt(a) * (max(0, 1 + z / np.sqrt(a)) ** (1 / 3) - 1 + 1 / (9 * a))
        log_p[k, b] = stats.norm.logsf(q)
    alike = np.clip(np.corrcoef(log_p), 0, 1) ** 2
    w = given / alike.sum(axis=1)
    w /= w.sum()
    t = np.log((w[:, None] / np.exp(log_p)).sum(axis=0))
    return t, np.mean(t >= t[0] - 1e-12), w / np.exp(log_p[:, 0]) / np.exp(t[0])


def test_combining_is_the_slow_loop():
    rng = np.random.default_rng(0)
    T = rng.gamma(2.0, size=(4, 30))
    T[1] = T[0] + 0.1 * T[1]
    T[2, 0] += 8.0
    given = np.array([1.0, 1.0, 2.0, 5.0])
    found = combine.combine_statistics([Component("", "", row, weight=w) for row, w in zip(T, given, strict=True)])
    t, p, shares = slow_combination(T, given)
    assert_allclose(found.statistics, t, rtol=1e-9)
    assert found.pvalue == p
    assert_allclose(found.shares, shares, rtol=1e-9)
    assert_allclose(found.shares.sum(), 1.0)


def test_a_duplicate_changes_nothing():
    rng = np.random.default_rng(0)
    rows = [Component("", "", row) for row in rng.gamma(2.0, size=(3, 200))]
    plain, doubled = combine.combine_statistics(rows), combine.combine_statistics([*rows, rows[0]])
    assert_allclose(doubled.statistics, plain.statistics, atol=0.05)


def test_combining_treats_the_observed_split_as_any_other():
    T = np.random.default_rng(0).gamma(2.0, size=(3, 40))
    order = np.random.default_rng(1).permutation(40)
    plain, turned = (combine.combine_statistics([Component("", "", row) for row in part]) for part in (T, T[:, order]))
    assert_allclose(turned.statistics, plain.statistics[order], rtol=1e-10)


def test_ties_of_a_combined_statistic_are_relative_where_it_is_large():
    """With a tolerance of 1 all that is not negative is a tie of a large one."""
    statistics = np.random.default_rng(0).normal(size=400)
    statistics[0] = 4.0
    combined = combine.combine_statistics([Component("a", "a", statistics)], tolerance=1.0)
    assert combined.statistics[0] > 2
    assert combined.pvalue == (combined.statistics >= 0).mean()
