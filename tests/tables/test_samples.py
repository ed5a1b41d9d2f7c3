"""Samples of tests: tables with categories, dates and missing values, and what the tests say of their columns."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from errors import refused
from numpy.testing import assert_array_equal

import muhat as mh
from muhat.tables.encoder import encode_samples


def wines(share, n=60, seed=0):
    rng = np.random.default_rng(seed)
    colour = rng.choice(["white", "red"], n, p=[share, 1 - share])
    return pd.DataFrame({"acid": rng.normal(size=n), "colour": colour, "sparkling": rng.random(n) < 0.5})


def with_missing(frame, column="colour", every=3):
    return frame.assign(**{column: frame[column].where(np.arange(len(frame)) % every > 0, None)})


@pytest.mark.parametrize("form", [np.asarray, pd.DataFrame], ids=["array", "frame"])
def test_texts_that_are_numbers_are_told(form):
    texts = np.random.default_rng(0).normal(size=(2, 20, 1)).astype(str)
    with pytest.warns(UserWarning, match="is taken as categories, and its texts are numbers, such as '-0"):
        mh.mmd_test(*map(form, texts), n_resamples=19)
    codes = np.random.default_rng(0).integers(0, 3, size=(2, 20, 1)).astype(str)
    mh.mmd_test(*map(form, codes), n_resamples=19)  # a warning is an error here


def test_an_argument_in_the_place_of_the_kernel_is_not_printed():
    with pytest.raises(ValueError, match=r"^kernel of type Series must be a kernel object"):
        mh.mmd_test(np.ones((9, 1)), np.ones((9, 1)), pd.Series(np.arange(30)))


def test_parts_are_the_samples():
    rows = np.random.default_rng(0).normal(size=(12, 2))
    samples = encode_samples({"X": rows[:3], "Y": rows[3:8], "Z": rows[8:]}, min_rows=2)
    assert [len(part) for part in samples.parts] == [3, 5, 4]


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


def ones(frame):
    return fewer(frame).astype({"sparkling": int})


CHANGED = [
    (fewer, "'sparkling' is true less often in Y: "),
    (ones, "'sparkling' is 1 less often in Y: "),
    (with_missing, "'colour' is missing more often in Y: 0 % → 33 %"),
    (lambda frame: with_missing(frame, "acid"), "'acid' is missing more often in Y: 0 % → 33 %"),
    (lambda frame: frame.assign(acid=frame["acid"] + 2), "column 'acid' is higher in Y"),
]


@pytest.mark.parametrize(("change", "words"), CHANGED)
def test_the_column_that_changed_is_named(change, words):
    X, Y = (wines(0.5, 90, seed) for seed in (0, 1))
    result = mh.mmd_test(X.astype({"sparkling": int}) if change is ones else X, change(Y), random_state=0)
    assert words in result.summary
    if change is ones:
        arrays = mh.mmd_test(X[["sparkling"]].to_numpy(int), change(Y)[["sparkling"]].to_numpy(), random_state=0)
        assert arrays.summary.startswith("column 0 is 1 less often in Y: ")


def test_missing_values_of_arrays():
    X, Y = np.random.default_rng(0).normal(size=(2, 80, 2))
    Y[::3, 1] = np.nan
    result = mh.mmd_test(X, Y, random_state=0)
    assert result.column == ("1 = (missing)", "share")
    assert "column 1 is missing more often in Y: 0 % → 34 %" in result.summary


FORMS = {
    "polars": pl.from_pandas,
    "LazyFrame": lambda frame: pl.from_pandas(frame).lazy(),
    "pyarrow": pa.Table.from_pandas,
    "DuckDB": lambda frame: pytest.importorskip("duckdb").from_arrow(pa.Table.from_pandas(frame)),
    "categories": lambda frame: frame.astype({"colour": "category"}),
    "dictionary": lambda frame: frame.to_dict("list"),
    "other order": lambda frame: frame[list(frame.columns)],
}


@pytest.mark.parametrize("form", FORMS)
def test_every_library_gives_the_same_answer_to_the_last_digit(form):
    days = pd.to_datetime("2026-01-01") + pd.to_timedelta(np.arange(60) % 7, unit="D")
    X, Y = (with_missing(with_missing(wines(0.4, seed=seed)), "acid", 5).assign(day=days) for seed in (0, 1))
    want = mh.mmd_test(X, Y, n_resamples=99, random_state=0)
    found = mh.mmd_test(FORMS[form](X), FORMS[form](Y), n_resamples=99, random_state=0)
    assert (found.statistic, found.pvalue, found.summary) == (want.statistic, want.pvalue, want.summary)
    assert_array_equal(found.null_distribution, want.null_distribution)
    want = mh.hsic_test(X, X[["acid"]], n_resamples=99, random_state=0)
    found = mh.hsic_test(FORMS[form](X), X[["acid"]], n_resamples=99, random_state=0)
    assert (found.statistic, found.pvalue, found.columns) == (want.statistic, want.pvalue, want.columns)


def test_the_witness_takes_the_tables_of_the_test():
    X, Y = wines(0.25), with_missing(wines(0.75, seed=1))
    result = mh.mmd_test(X, Y, n_resamples=99, random_state=0)
    samples = encode_samples({"X": X, "Y": Y})
    element = result.witness.function
    assert_array_equal(result.witness(X), element(samples.parts[0]))
    assert_array_equal(result.witness(Y[["sparkling", "colour", "acid"]]), element(samples.parts[1]))
    assert_array_equal(result.witness(pl.from_pandas(X)), result.witness(X))
    assert np.isfinite(result.witness(Y.assign(colour="pink"))).all()
    with pytest.raises(ValueError, match=r"X is missing the columns \['acid', 'sparkling'\]"):
        result.witness(X[["colour"]])
    with pytest.raises(ValueError, match="column 'acid' of X holds text or categories and held numbers before"):
        result.witness(X.astype({"acid": str}))


def test_the_witness_of_tables_of_numbers_is_an_element():
    X, Y = (wines(0.5, seed=seed)[["acid", "sparkling"]] for seed in (0, 1))
    witness = mh.mmd_test(X, Y, n_resamples=9, random_state=0).witness
    assert isinstance(witness, mh.Element)
    assert_array_equal(witness(X[["sparkling", "acid"]]), witness(X))


def test_a_column_without_values_goes_with_text():
    X, Y = wines(0.5), wines(0.5, seed=1).assign(colour=None)
    assert "(missing)" in mh.mmd_test(X, Y, n_resamples=99, random_state=0).column[0]


def test_a_shift_of_dates_is_found():
    """As of the days themselves: 200 dates a sample, of which no two are often equal."""
    days = np.random.default_rng(0).integers(0, 2000, size=(2, 200)) + np.array([[0], [400]])
    X, Y = (pd.DataFrame({"when": pd.to_datetime(row, unit="D").date}) for row in days)
    result = mh.mmd_test(X, Y, random_state=0)
    assert result.pvalue == 0.001
    assert result.column == ("when", "location")
    assert result.pvalue == mh.mmd_test(*days, random_state=0).pvalue


def test_a_category_that_depends_on_a_number():
    rng = np.random.default_rng(0)
    x = rng.normal(size=80)
    side = pd.DataFrame({"side": np.where(x > 0, "right", "left"), "noise": rng.normal(size=80)})
    result = mh.hsic_test(pd.DataFrame({"x": x}), side, random_state=0)
    assert result.pvalue == 0.001
    assert result.columns[1] in ("side = right", "side = left")


def test_missing_values_that_depend_on_a_number():
    x = np.random.default_rng(0).normal(size=80)
    y = np.where(x > 0.5, np.nan, np.random.default_rng(1).normal(size=80))
    result = mh.hsic_test({"x": x}, {"y": y}, random_state=0)
    assert result.pvalue == 0.001
    assert result.columns == ("x", "y = (missing)")


def test_intervals_match_columns_by_name():
    rng = np.random.default_rng(0)
    X, Y, Z = (pd.DataFrame(rng.normal(size=(20, 2)) * [1, 9] + shift, columns=["a", "b"]) for shift in (0, 1, 2))
    kernel = mh.Gaussian(5.0)
    assert mh.mmd_interval(X, Y[["b", "a"]], kernel).estimate == mh.mmd_interval(X, Y, kernel).estimate
    want = mh.mmd_difference_interval(X, Y, Z, kernel)
    assert mh.mmd_difference_interval(X, Y, Z[["b", "a"]], kernel).estimate == want.estimate
    with pytest.raises(ValueError, match=r"Z is missing the columns \['b'\] and has the unexpected .*or pass arrays"):
        mh.mmd_difference_interval(X, Y, Z.rename(columns={"b": "c"}), kernel)


def test_scales():
    X = np.random.default_rng(0).normal(size=(20, 2)) * [1.0, 100.0]
    deviations = np.abs(X - np.median(X, axis=0)).mean(axis=0)
    np.testing.assert_allclose(encode_samples({"X": X}, "auto", default=True).scales, deviations)
    np.testing.assert_allclose(encode_samples({"X": X}, "columns").scales, deviations)
    assert encode_samples({"X": X}, None).scales is None
    assert encode_samples({"X": X}, [2.0, 3.0]).scales.tolist() == [2.0, 3.0]
    with pytest.warns(UserWarning, match="column 'b' makes up .* of the squared distances.*pass scale=.columns."):
        assert encode_samples({"X": {"a": X[:, 0], "b": X[:, 1]}}, "auto").scales is None


AGES = pd.DataFrame({"age": [31, 42, 53, 64], "plan": list("abab")})
ERRORS = [
    ("infinity", lambda: mh.mmd_test(AGES.assign(age=np.inf), AGES), ValueError, "X contains infinity: column 'age'"),
    ("a path", lambda: mh.mmd_test(AGES, "b.csv"), ValueError, "Y='b.csv' is not a matrix; read the file first"),
    ("a path of pairs", lambda: mh.hsic_test(AGES, "b.csv"), ValueError, "Y='b.csv' is not a matrix"),
    ("numbers as text", lambda: mh.mmd_test(AGES, AGES.astype({"age": str})), ValueError, "column 'age' holds numbers"),
    (
        "numbers as categories",
        lambda: mh.mmd_test(AGES.astype({"age": "category"}), AGES),
        ValueError,
        "column 'age' holds text or categories in X and numbers in Y",
    ),
    ("an array first", lambda: mh.mmd_test(AGES[["age"]].to_numpy(), AGES), ValueError, "Y has 2 columns and X has 1"),
    ("one row", lambda: encode_samples({"X": AGES[:1]}), ValueError, r"X has 1 row and at least 2 are needed"),
    ("a scale", lambda: encode_samples({"X": AGES}, "std"), ValueError, "scale='std' must be"),
]

test_errors = refused(ERRORS)


@pytest.mark.slow
def test_the_level_holds_with_categories_and_missing_values():
    rng, rejected = np.random.default_rng(0), 0
    for _ in range(400):
        frames = [
            {
                "a": np.where(rng.random(40) < 0.2, np.nan, rng.standard_t(3, size=40)),
                "b": rng.choice(["x", "y", "z", None], 40, p=[0.5, 0.3, 0.1, 0.1]).tolist(),
                "c": rng.normal(size=40),
            }
            for _ in range(2)
        ]
        rejected += mh.mmd_test(*frames, n_resamples=199, random_state=rng).pvalue <= 0.05
    assert 0.03 <= rejected / 400 <= 0.07
