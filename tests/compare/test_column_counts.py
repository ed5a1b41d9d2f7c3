"""Counts of the values of columns: kinds, strata, moments, compressed counts and small histograms."""

import numpy as np
import pytest

from muhat.apps.compare.column_counts import count_column, histogram, join_tallies, moments_of, tally_column
from muhat.tables.frames import as_table


def column(values):
    return as_table({"x": values}).columns[0]


def test_numbers_categories_and_truth_values_are_counted():
    numbers = count_column([column([1.0, 3.0, None, 1.0]), column([2.0, None])])
    assert numbers.values.tolist() == [1.0, 2.0, 3.0]
    assert numbers.counts[0].tolist() == [[2, 0, 1], [0, 1, 0]]
    assert numbers.missing.tolist() == [[1, 1]]
    assert numbers.missing_shares == [0.25, 0.5]
    texts = count_column([column(["b", "a", "b", None]), column(["c", "b"])])
    assert texts.values.tolist() == ["b", "a", "c"], "the most frequent first, then by name"
    assert texts.counts[0].tolist() == [[2, 1, 0], [1, 0, 1]]
    truth = count_column([column([True, False, True]), column([None, True])])
    assert (truth.values.tolist(), truth.counts[0].tolist()) == (["True", "False"], [[2, 1], [1, 0]])
    empty = count_column([column([None, None]), column(["a", None])])
    assert (empty.kind, empty.present) == ("category", [0, 1])


def test_strata_are_counted_apart():
    strata = [np.array([0, 1, 1]), np.array([2, 0])]
    columns = column([5.0, 5.0, None]), column([7.0, 5.0])
    found = join_tallies([tally_column(part, labels, 3) for part, labels in zip(columns, strata, strict=True)])
    assert found.counts.tolist() == [[[1, 0], [1, 0]], [[1, 0], [0, 0]], [[0, 0], [0, 1]]]
    assert found.missing.tolist() == [[0, 0], [1, 0], [0, 0]]
    assert found.present == [2, 2]


def test_many_values_are_compressed_without_losing_rows():
    rng = np.random.default_rng(0)
    whole = count_column([column(rng.normal(size=n)) for n in (5000, 3000)])
    small = whole.compressed()
    assert len(small.values) <= 1000
    assert small.counts.sum(axis=2).tolist() == whole.counts.sum(axis=2).tolist()
    places = np.searchsorted(whole.values, small.values)
    np.testing.assert_array_equal(whole.counts[0].cumsum(axis=1)[:, places], small.counts[0].cumsum(axis=1))
    texts = count_column([column([f"{i % 1500}" for i in range(4000)])])
    assert (len(texts.values), texts.values[-1], texts.counts.sum()) == (1001, "(others)", 4000)


def test_moments_of_numbers_of_any_size():
    values = np.array([1.0, 4.0, 5.5])
    for scale in (1e-200, 1.0, 1e200):
        found = moments_of(scale * values)
        expected = scale * np.array([values.mean(), values.std(ddof=1), 1.0, 5.5])
        np.testing.assert_allclose(found, expected, rtol=1e-14)
    assert np.isnan(moments_of(np.empty(0))).all()


def test_histograms_of_many_categories_and_of_few_numbers():
    letters = column(list("aaabcdefghijk"))
    shown = histogram(count_column([letters, letters]))
    assert shown.heights.shape == (2, 9), "eight categories, and the others as one"
    assert shown.ends == ("a", "(others)"), "the last bar is named as what it shows"
    assert histogram(count_column([column(np.arange(5.0)), column(np.arange(3.0))])).heights.shape == (2, 5)
    many = histogram(count_column([column(np.arange(1000.0)), column(np.arange(500.0))]))
    assert many.heights.max() == 1.0
    assert many.ends == pytest.approx((7.0, 985.0), abs=5)
