"""Counts of the values of columns: grids, moments, compressed counts and small histograms."""

import numpy as np
import pytest

import muhat as mh
from muhat.apps.compare.column_counts import MOST_VALUES, Grid, Rows, histogram
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
    assert numbers.missing_shares == (0.25, 0.5)
    texts = counted(["b", "a", "b", None], ["c", "b"])
    assert texts.values.tolist() == ["b", "a", "c"], "the most frequent first, then by name"
    assert texts.counts[0].tolist() == [[2, 1, 0], [1, 0, 1]]
    truth = counted([True, False, True], [None, True])
    assert (truth.values.tolist(), truth.counts[0].tolist()) == (["False", "True"], [[1, 2], [0, 1]])
    empty = counted([None, None], ["a", None])
    assert (empty.kind, empty.present) == ("category", [0, 1])


def test_places_of_values():
    grid = Grid.of(column([3.0, np.nan, 1.0, 3.0]))
    assert (grid.values.tolist(), grid.pooled.tolist()) == ([1.0, 3.0], [1.0, 2.0])
    assert grid.places(column([0.5, 1.0, 2.0, None, 9.0])).tolist() == [0, 0, 1, -1, 1], "the next larger one"
    texts = column([f"{i % 1500}" for i in range(4000)])
    grid = Grid.of(texts)
    assert (len(grid.values), grid.values[-1]) == (1001, "(others)")
    assert (grid.pooled[0], grid.pooled.sum()) == (3, 4000)
    assert grid.places(column(["0", None, "1499"])).tolist() == [grid.values.tolist().index("0"), -1, 1000]


def test_many_values_are_counted_between_quantiles():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=50_000), rng.normal(size=30_000)
    small = counted(a, b)
    assert MOST_VALUES / 2 < len(small.values) <= MOST_VALUES
    assert small.present == [50_000, 30_000]
    upto = [np.searchsorted(np.sort(part), small.values, side="right") for part in (a, b)]
    np.testing.assert_array_equal(small.counts[0].cumsum(axis=1), upto)


def test_moments_of_numbers_of_any_size_and_in_parts():
    values = np.array([1.0, 4.0, 5.5])
    for scale in (1e-200, 1.0, 1e200, -3e307):
        for values in (np.array([1.0, 4.0, 5.5]), np.array([1.0, 1.0 + 1e-9, 1.0 - 1e-9])):
            rows = Rows(Grid.of(column(scale * values)))
            rows.add(scale * values[:2])
            rows.add(np.array([np.nan, scale * values[2]]))
            deviation = abs(scale) * values.std(ddof=1)
            expected = scale * values.mean(), deviation, *sorted((scale * values.min(), scale * values.max()))
            np.testing.assert_allclose(rows.moments, expected, rtol=1e-6 if values[1] < 2 else 1e-14)
    assert np.isnan(Rows(Grid.of(column([None, None]))).moments).all()


@pytest.mark.parametrize(
    ("values", "increases", "counts"),
    [
        ([3.0, 4.0, 5.0, 6.0], True, True),
        ([3.0, 3.0, np.nan, 5.0], True, False),
        ([3.0, 4.0, 6.0, 7.0], True, False),
        ([3.0, 5.0, 4.0, 6.0], False, False),
        ([3.0, 4.0, np.nan, 5.0], True, False),
    ],
)
@pytest.mark.parametrize("cut", [0, 1, 2, 3])
def test_rows_that_increase_and_rows_that_count(values, increases, counts, cut):
    rows = Rows(Grid.of(column(values)))
    rows.add(np.array(values[:cut])) if cut else None
    rows.add(np.array(values[cut:]))
    assert (rows.increases, rows.counts_rows) == (increases, counts)


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
