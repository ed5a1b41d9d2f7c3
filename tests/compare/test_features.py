"""Statistics of columns and pairs against loops, adjusted p-values against their definition, and false alarms."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import muhat as mh
from muhat.apps.compare import features
from muhat.apps.compare.column_counts import Grid
from muhat.apps.compare.features import ColumnSums, coding, evidence, pair_evidence, paired_features
from muhat.inference.combine import order_pvalue, step_down
from muhat.inference.permutations import centred_splits, draw_units
from muhat.tables.frames import as_table


def design(sizes, seed=0, strata=None, clusters=None, resamples=39):
    rng = np.random.default_rng(seed)
    units = draw_units(sizes, strata, clusters, 2000, 1000, rng)
    splits = centred_splits(units.of_first, resamples, rng, units.strata)
    means = np.full(len(units.of_first), sizes[0] / sum(sizes))
    if strata is not None:
        means = (np.bincount(strata, units.of_first) / np.bincount(strata))[strata]
    return units, splits, np.rint(splits.centred + means[:, None]).astype(bool)


def column(values):
    return as_table({"x": values}).columns[0]


def sums_of(values, units):
    each = column(values)
    grid = Grid.of(each)
    found = ColumnSums(coding(grid), units)
    found.add(grid.places(each), units.numbers)
    return found


def test_numbers_are_compared_by_shares_up_to_quantiles_and_by_spread():
    rng = np.random.default_rng(0)
    x = rng.normal(size=30)
    units, splits, first = design((12, 18))
    scores = stats.norm.ppf(stats.rankdata(x) / 31)
    tests = np.zeros((2, first.shape[1]))
    for b, side in enumerate(first.T):
        for threshold in np.sort(x)[:-1]:
            p = np.mean(x <= threshold)
            tests[0, b] += (np.mean(x[side] <= threshold) - np.mean(x[~side] <= threshold)) ** 2 / p / (1 - p)
        tests[1, b] = (np.mean(scores[side] ** 2) - np.mean(scores[~side] ** 2)) ** 2
    found = sums_of(x, units).evidence(splits)
    assert_allclose(found.values, evidence(tests).max(axis=0), rtol=1e-8)
    assert found.missing is None


def test_categories_and_missing_values_are_compared_by_shares():
    rng = np.random.default_rng(1)
    x = rng.choice(["a", "b", "c", None], 40, p=[0.5, 0.2, 0.1, 0.2]).tolist()
    units, splits, first = design((15, 25))
    values, missing = np.zeros((2, first.shape[1])), np.zeros(first.shape[1])
    known = np.array([v is not None for v in x])
    for b, side in enumerate(first.T):
        for level in "abc":
            own = np.array([v == level for v in x]) - known * np.mean([v == level for v in x if v is not None])
            p = np.mean([v == level for v in x if v is not None])
            values[:, b] += (own[side].mean() - own[~side].mean()) ** 2 / p ** np.array(features.RARITIES)
        missing[b] = (known[side].mean() - known[~side].mean()) ** 2
    found = sums_of(x, units).evidence(splits)
    assert_allclose(found.values, evidence(values).max(axis=0), rtol=1e-8)
    assert_allclose(found.missing, evidence(missing[None])[0], rtol=1e-8)


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("strata", [None, np.arange(60) % 2])
def test_pairs_are_compared_by_their_correlations_in_both_sides(gaps, strata):
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(2, 60))
    y += x
    if gaps:
        x[:5] = y[50:] = np.nan
    units, splits, first = design((25, 35), strata=strata)
    pairs = paired_features([column(x), column(y)], strata)
    (found,) = pair_evidence(pairs, np.arange(60)[None], units, splits)
    u, v = pairs.values.T
    both = ~np.isnan(u + v)
    tests = np.zeros(first.shape[1])
    for b, side in enumerate(first.T):
        a, c = side & both, ~side & both
        change = np.corrcoef(u[a], v[a])[0, 1] - np.corrcoef(u[c], v[c])[0, 1]
        tests[b] = change**2 * a.sum() * c.sum() / (a.sum() + c.sum())
    assert_allclose(found.evidence, evidence(tests[None])[0], rtol=1e-5, atol=1e-6)


def test_a_change_of_the_columns_is_none_of_their_dependence():
    """Both columns move and widen in the smaller table; their correlation stays."""
    rng = np.random.default_rng(3)
    found = 0
    for seed in range(40):
        x, y = rng.multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], 400).T
        small = np.arange(400) < 100
        tables = [pd.DataFrame({"x": 1.5 * x + 1, "y": 1.5 * y + 1})[small], pd.DataFrame({"x": x, "y": y})[~small]]
        result = mh.compare(*tables, random_state=seed, n_resamples=99)
        assert len(result.significant_columns) > 0
        found += len(result.significant_pairs)
    assert found <= stats.binom.ppf(0.999, 40, 0.05)


def slow_step_down(rows, families):
    """The definition, question by question."""
    splits = rows.shape[1]
    largest = {f: rows[np.array(families) == f].max(axis=0) for f in families}
    u = np.array([[np.mean(largest[f] >= value) for value in row] for row, f in zip(rows, families, strict=True)])
    left, adjusted, before = set(range(len(rows))), np.zeros(len(rows)), 0.0
    while left:
        k = min(left, key=lambda j: (u[j, 0], -rows[j, 0]))
        smallest = u[sorted(left)].min(axis=0)
        before = adjusted[k] = max(before, np.sum(smallest <= u[k, 0]) / splits)
        left.remove(k)
    return adjusted


@pytest.mark.parametrize("strong", [0, 3])
def test_step_down_is_that_of_its_definition(strong):
    rng = np.random.default_rng(4)
    rows = rng.exponential(size=(9, 50)).round(2)  # with ties
    rows[:strong, 0] += 5
    families = [0, 0, 0, 0, 1, 1, 1, 2, 2]
    adjusted = step_down(rows, families)
    assert_allclose(adjusted, slow_step_down(rows, families))
    assert (adjusted <= 0.07).sum() == strong


def test_step_down_names_a_true_hypothesis_as_rarely_as_the_level_says():
    """Of three families of different sizes; one question is false."""
    rng = np.random.default_rng(5)
    families = np.repeat([0, 1, 2], [12, 5, 1]).tolist()
    wrong = 0
    for _ in range(400):
        rows = rng.exponential(size=(18, 60)) * np.linspace(1, 3, 18)[:, None]  # scales of questions may differ
        rows[3, 0] += 50
        wrong += (np.delete(step_down(rows, families), 3) <= 0.1).any()
    assert wrong <= stats.binom.ppf(0.999, 400, 0.1)


def test_rows_in_order_are_told_from_rows_at_random():
    rng = np.random.default_rng(6)
    noise = rng.normal(size=(120, 3))
    walk = np.array([noise[: k + 1][-4:].mean(axis=0) for k in range(120)])
    pvalues = [order_pvalue(rng.normal(size=(60, 3)), 99, rng) for _ in range(100)]
    assert order_pvalue(walk - walk.mean(axis=0), 199, rng) == 1 / 200
    assert np.count_nonzero(np.array(pvalues) <= 0.1) <= stats.binom.ppf(0.999, 100, 0.1)


def sparse(rng, n):
    return pd.DataFrame(rng.normal(size=(n, 12)) * (rng.random((n, 12)) > 0.8))


def rare(rng, n):
    table = pd.DataFrame(rng.normal(size=(n, 8))).mask(rng.random((n, 8)) < 0.01)
    return table.assign(site=rng.choice(["u", "v"], n), kind=rng.zipf(1.5, n).clip(max=30).astype(str))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("draw", "sizes", "options"),
    [
        (sparse, (60, 400), {}),
        (rare, (30, 300), {"strata": "site"}),
        (rare, (5, 200), {}),
    ],
    ids=["sparse", "strata with rare values", "5 rows"],
)
def test_nothing_is_named_where_nothing_differs(draw, sizes, options):
    """Version 0.3 named something in 35 to 67 % of such draws."""
    rng, found = np.random.default_rng(7), 0
    for seed in range(60):
        a, b = (draw(rng, n).rename(columns=str) for n in sizes)
        found += mh.compare(a, b, level=0.1, random_state=seed, n_resamples=59, **options).differs
    assert found <= stats.binom.ppf(0.999, 60, 0.1)
