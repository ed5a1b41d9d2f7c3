"""Data frames with categories, texts and dates in the tests between samples."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from errors import refused
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
    assert result.column in (("colour = white", "share"), ("colour = red", "share"))
    white = [100 * (wines(*each)["colour"] == "white").mean() for each in ((0.25,), (0.75, 60, 1))]
    assert result.summary.split(" (")[0] in (
        "'colour = white' is more frequent in Y: {:.0f} % → {:.0f} %".format(*white),
        "'colour = red' is less frequent in Y: {:.0f} % → {:.0f} %".format(*(100 - share for share in white)),
    )


def fewer(frame):
    return frame.assign(sparkling=frame["sparkling"] & (np.arange(len(frame)) % 4 == 0))


def gaps(frame):
    return frame.assign(colour=frame["colour"].where(np.arange(len(frame)) % 3 > 0, None))


def ones(frame):
    return fewer(frame).astype({"sparkling": int})


CHANGED = [
    (fewer, "'sparkling' is true less often in Y: "),
    (ones, "'sparkling' is 1 less often in Y: "),
    (gaps, "'colour' is missing more often in Y: 0 % → 33 %"),
    (lambda frame: frame.assign(acid=frame["acid"] + 2), "column 'acid' is higher in Y"),
]


@pytest.mark.parametrize(("change", "words"), CHANGED)
def test_the_column_that_changed_is_named(change, words):
    X, Y = (wines(0.5, 90, seed) for seed in (0, 1))
    result = mh.mmd_test(X.astype({"sparkling": int}) if change is ones else X, change(Y), random_state=0)
    assert words in result.summary
    if change is ones:
        arrays = mh.mmd_test(X[["sparkling"]].to_numpy(), change(Y)[["sparkling"]].to_numpy(), random_state=0)
        assert arrays.summary.startswith("column 0 is 1 less often in Y: ")


def test_the_witness_takes_the_tables_of_the_test():
    X, Y = wines(0.25), gaps(wines(0.75, seed=1))
    result = mh.mmd_test(X, Y, n_resamples=99, random_state=0)
    (x, y), *_ = coordinates(X, Y)
    for witness in (result.witness, -2 * result.witness):
        assert_array_equal(witness(X), witness(x))
        assert_array_equal(witness(Y[["sparkling", "colour", "acid"]]), witness(y))
    pink = Y.assign(colour="pink")
    assert_array_equal(
        result.witness(pink), result.witness(np.where([name[:6] == "colour" for name in result_names(X, Y)], 0, y))
    )
    with pytest.raises(ValueError, match="lacks the column 'acid'"):
        result.witness(X[["colour"]])
    with pytest.raises(ValueError, match="column 'acid' of X holds text or categories and held numbers in the test"):
        result.witness(X.astype({"acid": str}))


def result_names(X, Y):
    return coordinates(X, Y).names


def test_a_column_of_gaps_goes_with_text():
    X, Y = wines(0.5), wines(0.5, seed=1).assign(colour=None)
    assert "(missing)" in mh.mmd_test(X, Y, n_resamples=99, random_state=0).column[0]


AGES = pd.DataFrame({"age": [31, 42, 53, 64], "plan": list("abab")})
MISTAKES = [
    (
        "numbers as text",
        lambda: mh.mmd_test(AGES, AGES.astype({"age": str})),
        ValueError,
        r"column 'age' holds numbers in X \(int64\) and text or categories in Y \(.*\); give both one type, such as "
        r"Y\['age'\] = pandas.to_numeric\(Y\['age'\]\)",
    ),
    (
        "numbers as categories",
        lambda: mh.mmd_test(AGES.astype({"age": "category"}), AGES),
        ValueError,
        "column 'age' holds text or categories in X .* and numbers in Y",
    ),
    (
        "dates as text",
        lambda: mh.mmd_test(AGES.assign(age=pd.Timestamp("2026-01-01")), AGES.assign(age="1.1.2026")),
        ValueError,
        r"holds dates in X .* = pandas.to_datetime\(Y\['age'\]\)",
    ),
    (
        "a gap",
        lambda: mh.mmd_test(AGES, AGES.assign(age=[31, None, 53, None])),
        ValueError,
        r"Y contains NaN: column 'age' has it first in row 1 \(counted from 0\); drop such rows, Y.dropna\(\)",
    ),
    ("infinity", lambda: mh.mmd_test(AGES.assign(age=np.inf), AGES), ValueError, "X contains infinity: column 'age'"),
    (
        "a gap of a pair",
        lambda: mh.hsic_test(AGES, AGES.assign(age=np.nan)),
        ValueError,
        "Y contains NaN: column 'age'",
    ),
    ("a path", lambda: mh.mmd_test(AGES, "b.csv"), ValueError, "Y='b.csv' is not a matrix; read the file first"),
    ("a path of pairs", lambda: mh.hsic_test(AGES, "b.csv"), ValueError, "Y='b.csv' is not a matrix"),
    (
        "an array",
        lambda: mh.mmd_test(AGES, AGES.to_numpy()),
        ValueError,
        "Y is of type ndarray and X is a data frame .*'plan'.*; pass Y as a data frame with the same columns",
    ),
    (
        "an array first",
        lambda: mh.mmd_test(AGES[["age"]].to_numpy(), AGES),
        ValueError,
        "X is of type ndarray and Y is a data frame",
    ),
]

test_mistakes = refused(MISTAKES)


def test_gaps_in_tables_of_polars():
    polars = pytest.importorskip("polars")
    with pytest.raises(ValueError, match=r"Y.drop_nulls\(\).drop_nans\(\)"):
        mh.mmd_test(polars.DataFrame({"a": [1.0, 2.0]}), polars.DataFrame({"a": [1.0, None]}))


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
    (first, second), names, units, _ = coordinates(X, Y)
    assert names[0] == "acid"
    assert set(names[1:3]) == {"colour = white", "colour = red"}
    assert names[3] == "sparkling"
    assert_array_equal(first[:, names.index("colour = red")], X["colour"] == "red")
    part = np.concatenate([first, second])[:, 1:3] / units[1:3]
    assert_allclose(((part[:, None] - part) ** 2).sum(axis=2).mean(), 2.0)
    assert np.isnan(units[[0, 3]]).all()


def test_numbered_categories_are_not_numbers_and_object_numbers_are():
    codes = pd.DataFrame({"a": pd.Categorical([1, 2, 3, 1]), "b": pd.array([1, 2, 3, 4], dtype="Int64")})
    (rows,), names, *_ = coordinates(codes)
    assert names == ["a = 1", "a = 2", "a = 3", "b"]
    assert_array_equal(rows[:, -1], [1, 2, 3, 4])


def test_gaps_among_categories_are_one_and_rare_ones_are_joined():
    letters = pd.DataFrame({"a": [None, "x", "x", np.nan], "b": ["p", "q", "p", None]})
    (_,), names, *_ = coordinates(letters)
    assert names == ["a = (missing)", "a = x", "b = p", "b = (missing)", "b = q"]
    many = pd.DataFrame({"a": [f"id{i}" for i in range(50)]})
    (rows,), names, *_ = coordinates(many)
    assert len(names) == MOST_CATEGORIES
    assert names[-1] == "a = (others)"
    assert_array_equal(rows.sum(axis=1), 1.0)


STARTS = ["2026-01-01", "2026-01-03", "2026-03-01", "1969-12-31"]
DATES = {
    "datetime.date": lambda stamps: [stamp.date() for stamp in stamps],
    "datetime.datetime": lambda stamps: [stamp.to_pydatetime() for stamp in stamps],
    "pandas.Timestamp": list,
    "pandas.Timestamp, UTC": lambda stamps: [stamp.tz_localize("UTC") for stamp in stamps],
    "datetime.datetime, UTC": lambda stamps: [stamp.tz_localize("UTC").to_pydatetime() for stamp in stamps],
    "pandas.Period": lambda stamps: [stamp.to_period("D") for stamp in stamps],
    "another zone": lambda stamps: [stamp.tz_localize("UTC").tz_convert("Asia/Tokyo") for stamp in stamps],
}


@pytest.mark.parametrize("kind", DATES)
def test_objects_that_are_dates_are_days_too(kind):
    stamps = pd.to_datetime(STARTS)
    objects = pd.DataFrame({"when": pd.Series(DATES[kind](stamps), dtype=object)})
    (rows,), *_ = coordinates(pd.DataFrame({"when": stamps}))
    assert_array_equal(coordinates(objects).samples[0], rows)
    typed = pd.DataFrame({"when": pd.Series(DATES[kind](stamps))})  # such as datetime64[us, UTC], which gives objects
    assert_array_equal(coordinates(typed).samples[0], rows)
    for gap in (None, pd.NaT):
        missing = objects.copy()
        missing.loc[2, "when"] = gap
        with pytest.raises(ValueError, match=r"Y contains NaN: column 'when' has it first in row 2"):
            mh.mmd_test(objects, missing)


def test_a_shift_of_dates_is_found():
    """As of the days themselves: 200 dates a sample, of which no two are often equal."""
    days = np.random.default_rng(0).integers(0, 2000, size=(2, 200)) + np.array([[0], [400]])
    X, Y = (pd.DataFrame({"when": pd.to_datetime(row, unit="D").date}) for row in days)
    result = mh.mmd_test(X, Y, random_state=0)
    assert result.pvalue == 0.001
    assert result.column == ("when", "location")
    assert result.pvalue == mh.mmd_test(*days, random_state=0).pvalue


def test_decimals_are_numbers():
    prices = pd.DataFrame({"price": [Decimal("1.5"), Decimal("2"), None]}, dtype=object)
    with pytest.raises(ValueError, match="column 'price' has it first in row 2"):
        mh.mmd_test(prices, prices)
    (rows,), *_ = coordinates(prices[:2])
    assert_array_equal(np.asarray(rows, dtype=float), [[1.5], [2.0]])


@pytest.mark.parametrize("gap", [None, np.nan, pd.NaT, pd.NA, np.datetime64("NaT")])
@pytest.mark.parametrize("form", [list, lambda labels: pd.Series(labels, dtype=object)])
def test_missing_strata_are_refused(gap, form):
    rows = np.random.default_rng(0).normal(size=(8, 2))
    labels = form(["a", "b", "a", "b", gap, "a", "b", gap])
    for call in (
        lambda: mh.mmd_test(rows[:4], rows[4:], strata=labels),
        lambda: mh.hsic_test(rows, rows, strata=labels),
    ):
        with pytest.raises(ValueError, match=r"strata\[4\] is missing; leave rows without a stratum out, or give them"):
            call()


def test_strata_of_any_type():
    rows = np.random.default_rng(0).normal(size=(12, 2))
    want = mh.mmd_test(rows[:6], rows[6:], strata=[0, 1] * 6, random_state=0, n_resamples=99)
    days = pd.to_datetime(["2026-01-01", "2026-01-02"] * 6)
    for labels in (["a", "b"] * 6, days, pd.Series(days.date), pd.Series([1, "b"] * 6, dtype=object)):
        found = mh.mmd_test(rows[:6], rows[6:], strata=labels, random_state=0, n_resamples=99)
        assert_array_equal(found.null_distribution, want.null_distribution)
    with_gap = days.to_numpy().copy()
    with_gap[3] = np.datetime64("NaT")
    with pytest.raises(ValueError, match=r"strata\[3\] is missing"):
        mh.mmd_test(rows[:6], rows[6:], strata=with_gap)


def test_dates_are_days():
    dates = pd.DataFrame({"when": pd.to_datetime(["2026-01-01", "2026-01-03"]), "x": [1.0, 2.0]})
    (rows,), names, units, _ = coordinates(dates)
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


def test_intervals_match_columns_by_name():
    rng = np.random.default_rng(0)
    X, Y, Z = (pd.DataFrame(rng.normal(size=(20, 2)) * [1, 9] + shift, columns=["a", "b"]) for shift in (0, 1, 2))
    kernel = mh.Gaussian(5.0)
    assert mh.mmd_interval(X, Y[["b", "a"]], kernel).estimate == mh.mmd_interval(X, Y, kernel).estimate
    want = mh.mmd_difference_interval(X, Y, Z, kernel)
    assert mh.mmd_difference_interval(X, Y, Z[["b", "a"]], kernel).estimate == want.estimate
    with pytest.raises(
        ValueError,
        match=r"Z is missing the columns \['b'\] and has the unexpected .*or pass arrays",
    ):
        mh.mmd_difference_interval(X, Y, Z.rename(columns={"b": "c"}), kernel)
