"""Bins of rows: their numbers, their sums, and merging as binary addition."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sketches import FEATURES, X

from muhat.features.row_bins import RowBins, last_level
from muhat.features.sketch import MeanSketch

Z = np.random.default_rng(0).integers(-9, 10, size=(1000, 3)).astype(float)  # sums of whole numbers are exact


def of_rows(rows):
    return RowBins.of_rows(20, rows, 2.0 * rows[:, 0])


def parts_of(cuts):
    return [of_rows(part) for part in np.split(Z, cuts)]


@pytest.mark.parametrize("n", [0, 1, 19, 20, 21, 40, 41, 639, 640, 1000])
def test_the_number_of_rows_decides_on_the_bins(n):
    bins = of_rows(Z[:n])
    assert bins.n == n
    assert bins.size == 1 << last_level(n, 20)
    assert len(bins.levels[-1]) == n // bins.size <= 20
    assert n < 20 or len(bins.levels[-1]) >= 10
    assert [len(sums) for sums in bins.levels[:-1]] == [n >> level & 1 for level in range(len(bins.levels) - 1)]


def test_bins_hold_neighbouring_rows():
    bins = of_rows(Z)
    expected = Z[: 15 * 64].reshape(15, 64, 3)
    assert bins.size == 64
    assert_array_equal(bins.levels[-1][:, :-1], expected.sum(axis=1))
    assert_array_equal(bins.levels[-1][:, -1], 2.0 * expected[:, :, 0].sum(axis=1))
    assert_allclose(bins.means(64)[:, :-1], expected.mean(axis=1))
    assert_allclose(bins.means(128)[:, :-1], Z[: 7 * 128].reshape(7, 128, 3).mean(axis=1))


@pytest.mark.parametrize("cuts", [[500], [1, 2, 3], [7, 300, 301, 999], list(range(0, 1000, 13))], ids=str)
def test_merged_bins_have_the_sums_of_all_rows_in_bins_of_equal_size(cuts):
    """Whatever the parts: only which rows share a bin depends on them."""
    parts, whole = parts_of(cuts), of_rows(Z)
    merged = parts[0]
    for part in parts[1:]:
        merged = merged.plus(part)
    backwards = parts[-1]
    for part in parts[-2::-1]:
        backwards = part.plus(backwards)
    for found in (merged, backwards):
        assert found.n == 1000
        assert [len(sums) for sums in found.levels] == [len(sums) for sums in whole.levels]
        assert_array_equal(sum(sums.sum(axis=0) for sums in found.levels), [*Z.sum(axis=0), 2.0 * Z[:, 0].sum()])


def test_every_bin_of_a_merge_has_its_number_of_rows():
    """With a feature that is 1 for all rows, each sum counts its rows."""
    ones = [RowBins.of_rows(20, np.ones((n, 1)), np.ones(n)) for n in (3, 77, 21, 640, 1, 258)]
    merged = ones[0]
    for part in ones[1:]:
        merged = merged.plus(part)
    assert merged.n == 1000
    for level, sums in enumerate(merged.levels):
        assert_array_equal(sums, np.full((len(sums), 2), 2.0**level))


def test_memory_is_bounded():
    sketch = MeanSketch(FEATURES["nystroem"], bins=20)
    for _ in range(30):
        sketch.update(X)
    held = sketch.state_.bins
    assert held.n == 9000
    assert sum(map(len, held.levels)) <= 20 + 10
    assert all(sums.base is None or sums.base.nbytes <= 2 * 20 * 21 * 8 for sums in held.levels)


def test_bins_of_a_sketch_are_sums_of_features():
    Z = FEATURES["nystroem"].transform(X)
    bins = MeanSketch(FEATURES["nystroem"], bins=50).update(X).state_.bins
    assert bins.size == 8
    assert_allclose(bins.means(8)[:, :-1], Z[:296].reshape(37, 8, 20).mean(axis=1), atol=1e-12)
    assert_allclose(sum(sums[:, :-1].sum(axis=0) for sums in bins.levels), Z.sum(axis=0), atol=1e-10)
