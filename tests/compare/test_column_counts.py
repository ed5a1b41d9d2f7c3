"""Counts of the values of columns: grids, moments, compressed counts and small histograms."""

import numpy as np
import pytest

import muhat as mh
from muhat.apps.compare.column_counts import Moments, histogram, number_grid, text_grid
from muhat.tables.frames import as_table


def column(values):
    return as_table({"x": values}).columns[0]


def counted(a, b, **options):
    rest = {"other": np.arange(len(a)) % 7}, {"other": np.arange(len(b)) % 5}
    tables = {"x": a, **rest[0]}, {"x": b, **rest[1]}
    return mh.compare(*tables, n_resamples=9, random_state=0, **options)["x"].counts


def test_numbers_categories_and_truth_values_are_counted():
    numbers = counted([1.0, 3.0, None, 1.0], [2.0, None])
    assert numbers.values.tolist() == [1.0, 2.0, 3.0]
    assert numbers.counts[0].tolist() == [[2, 0, 1], [0, 1, 0]]
    assert numbers.missing.tolist() == [[1, 1]]
    assert numbers.missing_shares == [0.25, 0.5]
    texts = counted(["b", "a", "b", None], ["c", "b"])
    assert texts.values.tolist() == ["b", "a", "c"], "the most frequent first, then by name"
    assert texts.counts[0].tolist() == [[2, 1, 0], [1, 0, 1]]
    truth = counted([True, False, True], [None, True])
    assert (truth.values.tolist(), truth.counts[0].tolist()) == (["False", "True"], [[1, 2], [0, 1]])
    empty = counted([None, None], ["a", None])
    assert (empty.kind, empty.present) == ("category", [0, 1])


def test_places_of_values():
    grid = number_grid("number", np.array([3.0, np.nan, 1.0, 3.0]), None)
    assert grid.values.tolist() == [1.0, 3.0]
    assert grid.places(column([0.5, 1.0, 2.0, None, 9.0])).tolist() == [0, 0, 1, -1, 1], "the next larger one"
    assert len(number_grid("number", np.arange(5000.0), 100).values) == 100
    texts = column([f"{i % 1500}" for i in range(4000)])
    grid = text_grid("category", texts.levels, [texts])
    assert (len(grid.values), grid.values[-1]) == (1001, "(others)")
    assert grid.places(column(["0", None, "1499"])).tolist() == [grid.values.tolist().index("0"), -1, 1000]


def test_many_values_are_compressed_without_losing_rows():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=5000), rng.normal(size=3000)
    small = counted(a, b)
    assert len(small.values) <= 1000
    assert small.present == [5000, 3000]
    upto = [np.searchsorted(np.sort(part), small.values, side="right") for part in (a, b)]
    np.testing.assert_array_equal(small.counts[0].cumsum(axis=1), upto)


def test_moments_of_numbers_of_any_size_and_in_parts():
    values = np.array([1.0, 4.0, 5.5])
    for scale in (1e-200, 1.0, 1e200):
        expected = scale * np.array([values.mean(), values.std(ddof=1), 1.0, 5.5])
        np.testing.assert_allclose(Moments.of(scale * values), expected, rtol=1e-14)
        joined = Moments.of(scale * values[:2]).joined(2, Moments.of(scale * values[2:]), 1)
        np.testing.assert_allclose(joined, expected, rtol=1e-14)
    assert np.isnan(Moments.of(np.empty(0))).all()


def test_histograms_of_many_categories_and_of_few_numbers():
    letters = list("aaabcdefghijk")
    shown = histogram(counted(letters, [*letters[1:], "b"]))
    assert shown.heights.shape == (2, 9), "eight categories, and the others as one"
    assert shown.ends == ("a", "(others)"), "the last bar is named as what it shows"
    rng = np.random.default_rng(0)
    few = histogram(counted(rng.permutation(np.arange(5.0)), rng.permutation(np.arange(3.0))))
    assert few.heights.shape == (2, 5)
    many = histogram(counted(rng.permutation(np.arange(1000.0)), rng.permutation(np.arange(500.0))))
    assert many.heights.max() == 1.0
    assert many.ends == pytest.approx((7.0, 985.0), abs=8)
