"""P-values of many groups: prefix sums against splits one by one, levels, the two stages."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import muhat as mh
from muhat.groups import group_tests
from muhat.groups.group_distances import _sums, _tests, _units
from muhat.groups.group_tests import Coordinates, Screen, adjusted_pvalues, global_pvalue


class Recorded:
    """A generator that keeps its draws."""

    def __init__(self, seed):
        self.rng, self.draws = np.random.default_rng(seed), []

    def __getattr__(self, name):
        def draw(*args, **options):
            value = getattr(self.rng, name)(*args, **options)
            self.draws.append(value)
            return value

        return draw


def coordinates(n, seed=0):
    values = np.random.default_rng(seed).normal(size=(n, 5))
    values -= values.mean(axis=0)
    return Coordinates(values, np.array([[1.0, 1, 1, 0, 0], [0, 0, 0, 1, 1], [0.5, 1, 2, 0, 0]]), 3)


@pytest.mark.parametrize("strata", [None, np.arange(40) % 3])
def test_prefix_sums_are_the_splits_one_by_one(strata, monkeypatch):
    """The same orders and numbers of own rows, with every split made by hand."""
    found, control = coordinates(40), np.arange(15)
    groups = [np.arange(15, 19), np.arange(19, 40)]
    monkeypatch.setattr(group_tests, "BLOCK", 7)
    rng = Recorded(0)
    result = Screen.of(found, control, groups, strata).statistics([0, 1], 20, rng)
    codes = np.zeros(40, int) if strata is None else strata
    cells = [control[codes[control] == s] for s in np.unique(codes)]
    draws, b = iter(rng.draws), 0
    while b < 21:
        orders = [np.argsort(next(draws), axis=1) for _ in cells]
        for g, rows in enumerate(groups):
            inside = [rows[codes[rows] == s] for s in np.unique(codes)]
            parts = [(next(draws), np.argsort(next(draws), axis=1)) for _ in inside]
            for k in range(len(orders[0])):
                total = np.zeros(5)
                for mine, theirs, order, (h, own) in zip(inside, cells, orders, parts, strict=True):
                    kept = len(mine) if b + k == 0 else h[k]
                    chosen = np.r_[mine[own[k][:kept]], theirs[order[k][: len(mine) - kept]]]
                    both = np.r_[mine, theirs]
                    total += found.values[chosen].sum(axis=0) - len(mine) * found.values[both].mean(axis=0)
                assert_allclose(result[g, :, b + k], found.weights @ total**2, rtol=1e-10)
        b += len(orders[0])


def test_the_global_statistic_is_that_of_loops():
    found, offsets = coordinates(30), np.array([0, 5, 9, 30])
    rng = Recorded(0)
    p = global_pvalue(found, offsets, None, 99, rng)
    everything = []
    for order in [np.arange(30), *rng.draws]:
        groups = [found.values[order[a:b]] for a, b in itertools.pairwise(offsets)]
        everything.append(found.weights @ sum(len(g) * g.mean(axis=0) ** 2 for g in groups))
    assert p == found.pvalue(np.array(everything).T, np.zeros(5), 0.0)


def test_each_of_three_distances_has_its_coordinates():
    """Mean squares of single rows are 1 in each; the third has weights by the variances, with a ridge."""
    rng = np.random.default_rng(0)
    features, columns, variances = rng.normal(size=(50, 3)), rng.normal(size=(50, 2)), np.array([3.0, 2.0, 1.0])
    found = group_tests.join(features, group_tests.Map(np.zeros(3), np.eye(3), variances, 2.0), columns)
    assert_array_equal(found.weights > 0, [[1, 1, 1, 0, 0], [0, 0, 0, 1, 1], [1, 1, 1, 0, 0]])
    assert_allclose((found.weights @ found.values.T**2).mean(axis=1), 1.0)
    assert_allclose(found.weights[2, :3] / found.weights[2, 0], 5.0 / (variances + 2.0))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ties_count_and_no_pvalue_is_below_its_floor(dtype):
    values = np.zeros((60, 5), dtype=dtype)
    values[:30, 0], values[30:, 0] = 1.0, -1.0
    found = Coordinates(values, coordinates(1).weights, 3)
    screen = Screen.of(found, np.arange(30), [np.arange(30, 60), np.arange(32, 34)], None)
    p = screen.pvalues([0, 1], 199, np.random.default_rng(0))
    assert p[0] == 1 / 200
    # Two rows of 32 are these two with probability 1/496: splits that draw just them are ties.
    assert 1 / 200 <= p[1] <= 0.03


def test_two_stages_keep_the_level(monkeypatch):
    """Uniform first p-values; the second are drawn given the true p-value, as the first were."""
    rng, B, more = np.random.default_rng(0), 99, 400
    truth = rng.random(40_000)

    class Simulated(Screen):
        def pvalues(self, chosen, n_resamples, rng):
            reached = rng.binomial(n_resamples, truth[chosen])
            return (reached + 1) / (n_resamples + 1)

    monkeypatch.setattr(group_tests, "MOST", more)
    screen = Simulated(coordinates(2), [], [[]] * len(truth))
    p = screen.two_stages(B, rng)
    for level in (0.005, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5):
        assert np.mean(p <= level) <= level + 3 * np.sqrt(level / len(truth))
    assert p.min() == 1 / (more + 1)


@pytest.mark.parametrize("correction", ["bh", "holm"])
def test_corrections_are_those_of_loops(correction):
    p = np.random.default_rng(0).random(20) ** 2
    p[3] = p[7]
    order, G = np.argsort(p), len(p)
    expected = np.empty(G)
    for rank, g in enumerate(order):
        if correction == "bh":
            expected[g] = min(1.0, min(p[order[r]] * G / (r + 1) for r in range(rank, G)))
        else:
            expected[g] = min(1.0, max(p[order[r]] * (G - r) for r in range(rank + 1)))
    assert_allclose(adjusted_pvalues(p, correction), expected)


@pytest.mark.slow
def test_the_level_is_exact_by_group_with_a_fixed_seed_and_rows_in_their_order():
    """Landmarks drawn by the number of a row gave a group of fixed rows .19 for .05; counts have many ties."""
    rng = np.random.default_rng(0)
    labels = np.repeat(["control", "a", "b", "c"], [40, 8, 8, 8])
    draws = [np.random.default_rng(s).poisson(0.3, size=(64, 4)).astype(float) for s in rng.integers(0, 2**31, 150)]
    p = []
    for X in draws:
        units = _units(X, labels, None, None, None)
        p.append(_tests(units, _sums(units, mh.Gaussian()), 3, 59, np.random.default_rng(0)).each)
    rejected = np.array(p) <= 0.1
    assert (rejected.mean(axis=0) <= stats.binom.ppf(0.999, 150, 0.1) / 150).all()
    assert rejected.mean() > 0.04


@pytest.mark.slow
@pytest.mark.parametrize("strata", [False, True])
def test_levels_of_groups_and_of_all_of_them_with_sparse_values(strata):
    """Unequal sizes, four fifths of zeros, and donors that differ where they are the strata."""
    labels, found = np.repeat([0, 1, 2, 3], [60, 5, 12, 40]), []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        donors = rng.permutation(np.arange(len(labels)) % 3)
        X = np.where(rng.random((len(labels), 3)) < 0.2, rng.exponential(size=(len(labels), 3)), 0.0)
        X[:, 0] += 2.0 * strata * donors
        given = {"strata": donors} if strata else {}
        result = mh.group_distances(X, labels, control=0, n_resamples=29, random_state=seed, **given)
        found.append([result.global_pvalue, *result.pvalue])
    rejected = np.mean(np.array(found) <= 0.1, axis=0)
    assert (rejected <= stats.binom.ppf(0.9999, 200, 0.1) / 200).all()


def test_columns_have_as_many_coordinates():
    X = np.random.default_rng(0).normal(size=(50, 4)) @ np.diag([1.0, 10.0, 0.1, 3.0])
    found = group_tests.column_coordinates(X)
    assert found.shape == (50, 4)
    assert np.linalg.cond(found) < 1.5  # whitened


def test_a_wide_table_uses_some_rows_for_its_metric(monkeypatch):
    monkeypatch.setattr(group_tests, "WIDE", 10)
    monkeypatch.setattr(group_tests, "WIDE_ROWS", 20)
    X = np.random.default_rng(0).normal(size=(50, 30))
    order = np.random.default_rng(1).permutation(50)
    one, other = group_tests.column_coordinates(X), group_tests.column_coordinates(X[order])
    assert one.shape[1] <= 20
    assert_allclose(np.abs(other), np.abs(one[order]), atol=1e-8)  # the rows are drawn by value
    assert_array_equal(np.isfinite(one), True)
