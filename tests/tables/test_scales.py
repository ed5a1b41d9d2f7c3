"""Scales of columns at any size of the numbers, and columns that dominate the distance."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from muhat.tables.scales import (
    ColumnScales,
    dominant_column,
    given_scales,
    mean_absolute_deviations,
    standard_deviations,
)

ROWS = np.random.default_rng(0).normal(size=(50, 3)) * [1.0, 100.0, 0.01] + [0.0, 5.0, -3.0]


@pytest.mark.parametrize("size", [1.0, 1e-300, 1e304])
def test_scales_follow_the_numbers(size):
    deviations = np.abs(ROWS - np.median(ROWS, axis=0)).mean(axis=0)
    assert_allclose(mean_absolute_deviations(size * ROWS), size * deviations)
    assert_allclose(standard_deviations(size * ROWS), size * ROWS.std(axis=0))


def test_a_constant_column_has_the_scale_one():
    rows = np.column_stack([ROWS[:, 0], np.full(50, 7.0)])
    assert mean_absolute_deviations(rows)[1] == standard_deviations(rows)[1] == 1.0
    assert ColumnScales.of(rows).centre[1] == 7.0


def test_rows_are_divided_and_restored():
    scales = ColumnScales.of(ROWS)
    assert_allclose(scales.divide(ROWS).std(axis=0), 1.0)
    assert_allclose(scales.restore(scales.divide(ROWS)), ROWS)
    assert_array_equal(ColumnScales.none(3).divide(ROWS), ROWS)


@pytest.mark.parametrize("top", [np.finfo(float).max, 5e-324])
def test_scales_at_the_ends_of_the_range(top):
    """Warnings are errors here; rounding takes neither a centre nor a deviation beyond the largest number."""
    rows = top * np.column_stack([np.repeat([1.0, -1.0], 50), np.r_[np.zeros(1), np.ones(99)], np.ones(100)])
    for scales in (ColumnScales.of(rows), ColumnScales.of(np.tile(rows, (33, 1)))):
        assert (scales.scale > 0).all()
        assert np.isfinite(scales.divide(rows)).all()
    assert_allclose(scales.scale[0], top)


def test_given_scales_are_positive_numbers():
    assert_array_equal(given_scales([1, 2], 2), [1.0, 2.0])
    with pytest.raises(ValueError, match="scale has the entry 0; pass one positive number per column"):
        given_scales([1.0, 0.0], 2)
    with pytest.raises(ValueError, match="scale has shape"):
        given_scales([1.0], 2)


def test_a_dominant_column_is_named():
    column, share = dominant_column(ROWS)
    assert column == 1
    assert share > 0.99
    assert dominant_column(ROWS[:, :1]) is None
    assert dominant_column(np.ones((3, 2))) is None
    assert dominant_column(ROWS / ROWS.std(axis=0)) is None
    assert dominant_column(np.column_stack([np.ones(50), ROWS]))[0] == 2
