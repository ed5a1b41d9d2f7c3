"""Data frames with categories, texts and dates in the tests between samples."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import muhat as mh
from muhat.inference.samples import MOST_CATEGORIES, coordinates


def wines(share, n=60, seed=0):
    rng = np.random.default_rng(seed)
    colour = rng.choice(["white", "red"], n, p=[share, 1 - share])
    return pd.DataFrame({"acid": rng.normal(size=n), "colour": colour, "sparkling": rng.random(n) < 0.5})


def test_a_change_of_shares_is_found_and_named():
    result = mh.mmd_test(wines(0.25), wines(0.75, seed=1), random_state=0)
    assert result.pvalue == 0.001
    assert result.column[0] in ("colour = white", "colour = red")
    words = next(finding.words for finding in result.components if finding.group == "columns")
    assert words in ("'colour = white' is more frequent in Y", "'colour = red' is more frequent in X")


def test_texts_categories_and_strings_of_polars_are_the_same():
    X, Y = wines(0.4), wines(0.5, seed=1)
    plain = mh.mmd_test(X, Y, random_state=0)
    typed = mh.mmd_test(*(frame.astype({"colour": "category"}) for frame in (X, Y)), random_state=0)
    assert_array_equal(typed.null_distribution, plain.null_distribution)
    polars = pytest.importorskip("polars")
    others = (polars.DataFrame({name: frame[name].to_numpy() for name in frame}) for frame in (X, Y))
    assert_array_equal(mh.mmd_test(*others, random_state=0).null_distribution, plain.null_distribution)


def test_categories_are_indicators_in_units_by_which_rows_differ_by_two():
    X, Y = wines(0.4), wines(0.5, seed=1)
    (first, second), names, units = coordinates(X, Y)
    assert names[0] == "acid"
    assert set(names[1:3]) == {"colour = white", "colour = red"}
    assert names[3] == "sparkling"
    assert_array_equal(first[:, names.index("colour = red")], X["colour"] == "red")
    part = np.concatenate([first, second])[:, 1:3] / units[1:3]
    assert_allclose(((part[:, None] - part) ** 2).sum(axis=2).mean(), 2.0)
    assert np.isnan(units[[0, 3]]).all()


def test_numbered_categories_are_not_numbers_and_object_numbers_are():
    codes = pd.DataFrame({"a": pd.Categorical([1, 2, 3, 1]), "b": pd.array([1, 2, 3, 4], dtype="Int64")})
    (rows,), names, _ = coordinates(codes)
    assert names == ["a = 1", "a = 2", "a = 3", "b"]
    assert_array_equal(rows[:, -1], [1, 2, 3, 4])


def test_gaps_among_categories_are_one_and_rare_ones_are_joined():
    letters = pd.DataFrame({"a": [None, "x", "x", np.nan], "b": ["p", "q", "p", None]})
    (_,), names, _ = coordinates(letters)
    assert names == ["a = (missing)", "a = x", "b = p", "b = (missing)", "b = q"]
    many = pd.DataFrame({"a": [f"id{i}" for i in range(50)]})
    (rows,), names, _ = coordinates(many)
    assert len(names) == MOST_CATEGORIES
    assert names[-1] == "a = (others)"
    assert_array_equal(rows.sum(axis=1), 1.0)


def test_dates_are_days():
    dates = pd.DataFrame({"when": pd.to_datetime(["2026-01-01", "2026-01-03"]), "x": [1.0, 2.0]})
    (rows,), names, units = coordinates(dates)
    assert_array_equal(np.diff(rows[:, 0]), [2.0])
    assert names == ["when", "x"]
    assert units is None
    late = dates.assign(when=[pd.NaT, pd.Timestamp("2026-01-03")])
    with pytest.raises(ValueError, match="Y contains NaN"):
        mh.mmd_test(dates, late)


def test_tables_of_numbers_and_arrays_stay_as_they_are():
    frame = pd.DataFrame({"a": [1.0, 2.0]})
    assert coordinates(frame, frame).samples[0] is frame
    rows = np.ones((2, 2))
    assert coordinates(rows).samples[0] is rows


def test_a_category_that_depends_on_a_number():
    rng = np.random.default_rng(0)
    x = rng.normal(size=80)
    side = pd.DataFrame({"side": np.where(x > 0, "right", "left"), "noise": rng.normal(size=80)})
    result = mh.hsic_test(pd.DataFrame({"x": x}), side, random_state=0)
    assert result.pvalue == 0.001
    assert result.columns[1] in ("side = right", "side = left")
