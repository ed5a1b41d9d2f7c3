"""Pairs of columns: correlations against scipy, missing values, level, and effects beyond a bound."""

import numpy as np
import pytest
from scipy import stats
from sklearn.datasets import load_digits

from muhat.apps.compare.pair_tests import pair_changes, strongest_pairs
from muhat.tables.frames import as_table


def columns(X):
    return as_table(X).columns


def test_correlations_of_pairs_against_scipy():
    rng = np.random.default_rng(0)
    X, Y = (rng.normal(size=(n, 3)) @ rng.normal(size=(3, 3)) for n in (200, 150))
    for change in pair_changes(columns(X), columns(Y)):
        expected = [stats.spearmanr(*Z[:, list(change.columns)].T).statistic for Z in (X, Y)]
        np.testing.assert_allclose(change.correlations, expected, rtol=0, atol=1e-12)


def test_rows_of_missing_values_change_no_pair():
    rng = np.random.default_rng(0)
    X, Y = (rng.normal(size=(n, 3)) @ rng.normal(size=(3, 3)) for n in (60, 50))
    longer = [np.vstack([np.full((9, 3), np.nan), Z, np.full((30, 3), np.nan)]) for Z in (X, Y)]
    found, expected = (pair_changes(*map(columns, pair)) for pair in (longer, (X, Y)))
    for with_missing, without in zip(found, expected, strict=True):
        assert with_missing.columns == without.columns
        numbers = [[change.pvalue, *change.correlations] for change in (with_missing, without)]
        np.testing.assert_allclose(*numbers, rtol=1e-9)


@pytest.mark.slow
def test_pairs_keep_their_level_and_ignore_marginal_changes():
    """Of 300 pairs of one dependence and other marginals, more than 32 p-values up to 0.05 have a chance of 0.1 %."""
    rng = np.random.default_rng(1)
    pvalues = []
    for _ in range(300):
        X, Y = (rng.normal(size=(n, 2)) @ [[1.0, 0.8], [0.0, 0.6]] for n in (120, 80))
        Y = np.exp(3 * Y)
        Y[rng.random(Y.shape) < 0.2] = np.nan
        pvalues.append(pair_changes(columns(X), columns(Y))[0].pvalue)
    assert np.sum(np.array(pvalues) <= 0.05) <= 32


@pytest.mark.slow
def test_columns_that_nearly_always_hold_one_value_keep_the_level():
    """Halves of the digits, whose outer pixels are nearly always 0: more than 9 of 60 at 5 % have a chance of 0.1 %."""
    digits = load_digits().data
    found = 0
    for seed in range(60):
        order = np.random.default_rng(seed).permutation(len(digits))
        changes = pair_changes(*(columns(digits[half]) for half in np.array_split(order, 2)))
        found += min(change.pvalue for change in changes) * len(changes) <= 0.05
    assert found <= 9


def test_a_change_that_two_rows_make_is_not_certain():
    rng = np.random.default_rng(4)
    X, Y = np.zeros((2, 500, 2))
    for Z in (X, Y):
        Z[rng.permutation(500)[:6], 0] = 1.0
    X[X[:, 0] == 0, 1] = np.arange(494) < 4
    Y[np.flatnonzero(Y[:, 0])[:2], 1] = 1.0
    (change,) = pair_changes(columns(X), columns(Y))
    assert change.freedom < 10
    assert change.pvalue > 0.01
    assert change.interval(0.005).low == 0.0


@pytest.mark.slow
def test_a_change_of_exactly_the_bound_is_named_rarely():
    """Of 300 pairs whose correlations are 0 and 0.3, more than 28 above 0.3 at level 0.05 have a chance of 0.1 %."""
    rng = np.random.default_rng(2)
    r = 2 * np.sin(np.pi * 0.3 / 6)  # the correlation of normal numbers whose rank correlation is 0.3
    edge, changed = [], []
    for _ in range(300):
        X, Y = rng.normal(size=(2, 200, 2))
        Y[:, 1] = r * Y[:, 0] + np.sqrt(1 - r**2) * Y[:, 1]
        found = pair_changes(columns(X), columns(Y))[0]
        edge.append(found.exceeds(0.3))
        changed.append(found.interval(0.05))
    assert np.sum(np.array(edge) <= 0.05) <= 28
    assert np.mean([low <= 0.3 <= high for low, high in changed]) > 0.9


def test_categories_take_part_by_their_levels():
    rng = np.random.default_rng(3)
    x = rng.normal(size=400)
    first = as_table({"x": x, "c": np.where(x > 0, "red", "blue")}).columns
    second = as_table({"x": x, "c": rng.choice(["red", "blue", "green"], 400)}).columns
    (found,) = pair_changes(first, second)
    assert found.parts[0] == ""
    assert found.parts[1] in ("red", "blue")
    assert found.pvalue < 1e-6
    assert found.exceeds(0.2) < 0.01
    assert strongest_pairs(first, 3)[0][0] == (0, 1)
    assert pair_changes(first[:1], second[:1]) == []


@pytest.mark.parametrize("n", [60, 400, 2000])
def test_equal_columns_of_one_table_are_seen(n):
    rng = np.random.default_rng(5)
    X, Y = rng.normal(size=(2, n, 2))
    X[:, 1] = X[:, 0]
    (change,) = pair_changes(columns(X), columns(Y))
    assert change.correlations[0] == pytest.approx(1.0)
    assert change.pvalue < 1e-4
    assert pair_changes(columns(X), columns(X))[0].pvalue == 1.0
