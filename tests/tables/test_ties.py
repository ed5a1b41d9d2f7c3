"""Values that agree to the precision of the coarser column are ties: storage changes no decision."""

import numpy as np
import pytest

import muhat as mh
from muhat.tables.ties import merge_ties

STORED = {
    "single precision": lambda x: x.astype(np.float32).astype(np.float64),
    "six digits": lambda x: np.vectorize(lambda value: float(f"{value:.6g}"))(x),
    "six decimals": lambda x: np.vectorize(lambda value: float(f"{value:.6f}"))(x),
    "times three, by three": lambda x: x * 3 / 3,
    "by seven, times seven": lambda x: x / 7 * 7,
}

COLUMNS = {
    "decimals": lambda rng, n: rng.integers(1, 8, n) / 10,
    "thirds": lambda rng, n: rng.integers(1, 8, n) / 3,
    "percentages": lambda rng, n: rng.integers(1, 40, n) / 700,
    "large": lambda rng, n: 1e5 + rng.integers(1, 40, n) / 7,
    "numbers": lambda rng, n: rng.normal(size=n),
    "whole": lambda rng, n: rng.integers(0, 1000, n).astype(float),
    "large whole": lambda rng, n: rng.integers(1, 30, n) * 12_345_677.0,
}

every_column = pytest.mark.parametrize("column", COLUMNS)
every_storage = pytest.mark.parametrize("storage", STORED)


@every_column
@every_storage
@pytest.mark.parametrize("first", [True, False])
def test_stored_values_are_ties(column, storage, first):
    x = COLUMNS[column](np.random.default_rng(0), 200)
    stored = STORED[storage](x)
    merged = merge_ties(stored, x) if first else merge_ties(x, stored)
    np.testing.assert_array_equal(*merged)
    assert len(np.unique(merged[0])) == len(np.unique(stored))


def test_the_least_value_has_ties_too():
    x = np.array([0.1, 0.5, 0.7])
    np.testing.assert_array_equal(*merge_ties(x, np.nextafter(x, 1)))


def test_values_of_the_coarser_column_stay_distinct():
    single = np.float32(1) + np.finfo(np.float32).eps * np.arange(50, dtype=np.float32)
    digits = np.array([1.00001, 1.00002, 9.99998, 9.99999, 10.0, 123.456, 123.457])
    for x in (single.astype(float), digits):
        fine = x * (1 + 2.0**-26)
        for merged in merge_ties(x, fine):
            assert len(np.unique(merged)) == len(x)


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ([20.0, 31.0, 47.0], [20.25, 30.5, 47.75]),  # whole years are not rounded ages
        ([0.1, 0.25], [0.1000001, 0.2500001]),
        ([2.0**53, 2.0**53 - 1], [2.0**53 - 2, 2.0**53 - 3]),
        ([0.0, 1e-300], [5e-324, 1.1e-300]),
        ([0.0, 1.0], [1e-9, 1.0 - 1e-9]),
    ],
)
def test_other_values_are_no_ties(x, y):
    merged = merge_ties(np.array(x), np.array(y))
    np.testing.assert_array_equal(merged, [x, y])


@pytest.mark.parametrize("top", [1e300, 1.79e308, 1e-300, 5e-324])
def test_ends_of_the_range(top):
    x = np.array([-top, -top / 2, 0.0, np.nan, top / 2, top])
    merged = merge_ties(x, x.astype(float))
    np.testing.assert_array_equal(merged[0], x)


def test_numbers_of_any_sizes_stay_themselves_up_to_the_coarser_precision():
    """Warnings are errors here; below the range of single precision such a column has zeros and few digits."""
    rng = np.random.default_rng(0)
    sizes = np.array([0.0, 5e-324, 1e-310, 1e-300, 1e-40, 1e-5, 0.3, 1.0, 1e22, 3.4e38, 1e39, 1e289, 1e300, 1.79e308])
    for _ in range(300):
        samples = []
        for n in rng.integers(2, 40, 2):
            x = rng.choice(sizes, n) * rng.choice([-1.0, -0.3, 0.7, 1.0], n)
            with np.errstate(over="ignore"):
                x = rng.choice([*STORED.values(), np.copy])(x)
            samples.append(x[np.isfinite(x)])
        for x, merged in zip(samples, merge_ties(*samples), strict=True):
            assert np.isfinite(merged).all()
            np.testing.assert_allclose(merged / 2, x / 2, rtol=6e-6, atol=6e-7 * (np.abs(x) < 1).any())


def test_missing_values_and_crowds():
    x = np.random.default_rng(0).random(20_000)
    x[::7] = np.nan
    x, y = merge_ties(x, np.round(x, 6))
    np.testing.assert_array_equal(np.isnan(x), np.isnan(y))
    assert np.nanmax(np.abs(x - y)) < 2e-6
    assert len(np.unique(x)) > 8000  # crowded values are not all one


@pytest.mark.parametrize("storage", STORED)
def test_storage_changes_no_decision_of_a_test(storage):
    """Of one of two tables, of one side of pairs, and of the rows of one group."""
    rng, options, store = np.random.default_rng(0), {"n_resamples": 99, "random_state": 0}, STORED[storage]
    X = np.column_stack([rng.integers(1, 8, 300) / 10, rng.integers(1, 8, 300) / 3])
    Y, Z = (np.column_stack([rng.integers(1, 8, 250) / 10, rng.integers(low, 8, 250) / 3]) for low in (1, 3))
    groups = np.repeat(["a", "b", "c"], [100, 80, 120])
    tests = [
        lambda change: mh.mmd_test(X, change(Y), **options).pvalue,
        lambda change: mh.mmd_test(X, change(Z), **options).pvalue,
        lambda change: mh.hsic_test(X[:80], change(X[80:160]), **options).pvalue,
        lambda change: mh.hsic_test(X[:80], change(X[:80, :1] + X[80:160]), **options).pvalue,
        lambda change: mh.group_distances(
            np.where((groups == "b")[:, None], change(X), X), groups, control="a", **options
        ).pvalue[0],
        lambda change: mh.group_distances(
            np.where((groups == "b")[:, None], change(X + 0.3), X), groups, control="a", **options
        ).pvalue[0],
    ]
    for test in tests:
        assert abs(test(np.copy) - test(store)) <= 0.01
