"""The encoder: features of numbers, dates, categories and missing values, and what is done with other tables."""

import json

import numpy as np
import pandas as pd
import pytest
from errors import refused
from numpy.testing import assert_allclose, assert_array_equal

from muhat.tables.encoder import (
    LEAST_DIFFERING,
    MISSING_SCALE,
    MOST_LEVELS,
    MOST_RARE,
    TableEncoder,
    as_categories,
    fit_encoder,
    match_tables,
)
from muhat.tables.frames import as_table
from muhat.tables.scales import mean_absolute_deviations, standard_deviations


def labels(encoder):
    return [feature.label for feature in encoder.features]


def encoder_of(*data, **options):
    return fit_encoder([as_table(each, name) for each, name in zip(data, "XYZ", strict=False)], **options)


def wines(n=60, seed=0):
    rng = np.random.default_rng(seed)
    acid = np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n))
    return pd.DataFrame({"acid": acid, "colour": rng.choice(["white", "red"], n), "sparkling": rng.random(n) < 0.5})


def test_features_know_where_they_come_from():
    data = {
        "age": [1, None, 3],
        "plan": ["a", None, "a"],
        "paid": [True, False, True],
        "none": [None, None, None],
        "day": pd.to_datetime(["2026-01-01", "2026-01-02", "2026-01-03"]),
    }
    encoder = encoder_of(data)
    assert [(f.column, f.kind, f.level) for f in encoder.features] == [
        ("age", "number", None),
        ("age", "number", "(missing)"),
        ("plan", "category", "a"),
        ("plan", "category", "(missing)"),
        ("paid", "boolean", None),
        ("none", "missing", "(missing)"),
        ("day", "date", None),
    ]
    assert [f.in_words for f in encoder.features[:3]] == ["column 'age'", "'age = (missing)'", "'plan = a'"]
    rows = encoder.transform(data)
    assert_array_equal(rows[:, :-1], [[1, 0, 1, 0, 1, 1], [2, 1, 0, 1, 0, 1], [3, 0, 1, 0, 1, 1]])
    assert_array_equal(np.diff(rows[:, -1]), 1.0)
    array = encoder_of([[1.0, None], [2.0, 3.0]])
    assert [f.in_words for f in array.features] == ["column 0", "column 1", "column 1 = (missing)"]
    assert labels(array) == ["0", "1", "1 = (missing)"]


def test_numbers_stay_as_they_are_and_are_not_copied():
    rows = np.random.default_rng(0).normal(size=(8, 3))
    encoder = encoder_of(rows, rows + 1)
    assert encoder.is_plain
    assert encoder.transform(rows) is rows


def test_a_missing_number_is_the_median_of_the_known_ones_of_all_tables():
    encoder = encoder_of({"a": [1.0, np.nan]}, {"a": [2.0, 10.0]})
    assert_array_equal(encoder.transform({"a": [np.nan, 5.0]}), [[2.0, 1.0], [5.0, 0.0]])


@pytest.mark.parametrize("scaling", [mean_absolute_deviations, standard_deviations])
def test_known_values_have_the_scale_of_a_column(scaling):
    data = wines()
    encoder = encoder_of(data, scaling=scaling)
    known = data["acid"].dropna().to_numpy()[:, None]
    assert encoder.scales[0] == scaling(known)[0]
    assert encoder.scales[1] == MISSING_SCALE
    # A missing and a known value differ by 2 in the square, plus what the known one differs from the median by.
    scaled = encoder.transform({"acid": [np.nan, np.median(known)], "colour": ["red"] * 2, "sparkling": [True] * 2})
    assert_allclose(np.sum(np.diff(scaled / encoder.scales, axis=0) ** 2), 2.0)
    assert_array_equal(encoder_of(data).scales, 1.0)


def test_rows_of_two_categories_differ_by_two_in_the_mean_square():
    data = wines()
    encoder = encoder_of(data, scaling=standard_deviations)
    part = (encoder.transform(data) / encoder.scales)[:, 2:4]
    assert_allclose(((part[:, None] - part) ** 2).sum(axis=2).mean(), 2.0)
    rare = encoder_of({"a": ["x"] * 99 + ["y"]}, scaling=standard_deviations)
    assert_allclose(rare.scales, np.sqrt(LEAST_DIFFERING))


def test_levels_are_ordered_by_frequency_and_rare_ones_are_pooled():
    assert labels(encoder_of({"a": [None, "x", "x", None], "b": ["p", "q", "p", None]})) == [
        "a = (missing)",
        "a = x",
        "b = p",
        "b = (missing)",
        "b = q",
    ]
    many = {"a": [f"id{i}" for i in range(50)] + ["common"] * 2}
    encoder = encoder_of(many)
    assert len(encoder.features) == MOST_LEVELS
    assert (labels(encoder)[0], labels(encoder)[-1]) == ("a = common", "a = (others)")
    rows = encoder.transform(many)
    assert_array_equal(rows.sum(axis=1), 1.0)
    assert rows[:, -1].sum() == 52 - 2 - (MOST_LEVELS - 2)


def test_missing_values_have_a_level_of_their_own_however_rare():
    values = [f"id{i}" for i in range(30) for _ in range(3)]
    encoder = encoder_of({"a": [*values, None]})
    assert labels(encoder)[-2:] == ["a = (missing)", "a = (others)"]
    assert len(encoder.features) == MOST_LEVELS
    assert_array_equal(encoder.transform({"a": [None]})[0], np.eye(MOST_LEVELS)[-2])


def test_new_categories_and_missing_ones_are_as_far_from_all_levels_as_two_levels():
    encoder = encoder_of({"a": ["x", "y", "z", "y"]})
    rows = encoder.transform({"a": ["x", "y", "z", "new", "newer", None]})
    distances = ((rows[:, None] - rows) ** 2).sum(axis=2)
    assert_allclose(distances[:5, :5][np.triu_indices(5, 1)], [2.0] * 9 + [0.0])
    assert_allclose(distances[5, :3], 2.0)
    assert distances[5, 3] > 2.0
    pooled = encoder_of({"a": [f"id{i}" for i in range(50)]})
    assert (pooled.transform({"a": ["new"]}) < 0).all()
    ids = encoder_of({"a": [f"id{i}" for i in range(2 * MOST_RARE)]})
    assert_array_equal(ids.transform({"a": ["new", "id1999"]})[:, -1], 1.0)


def test_a_number_that_is_missing_where_none_was_lies_beyond_the_largest():
    encoder = encoder_of({"a": [1.0, 3.0, 5.0]}, scaling=standard_deviations)
    (found,) = encoder.transform({"a": [np.nan]})[0]
    assert_allclose(found, 5.0 + np.sqrt(2.0) * np.std([1.0, 3.0, 5.0]))
    assert_allclose(encoder_of({"a": [1.0, 3.0, 5.0]}).transform({"a": [np.nan]}), [[found]])
    huge = np.finfo(np.float64).max
    assert np.isfinite(encoder_of([[huge], [-huge]], scaling=standard_deviations).transform([[np.nan]])).all()


def test_columns_are_matched_by_name_and_arrays_by_position():
    encoder = encoder_of({"a": [1, 2], "b": [3, 4]})
    assert_array_equal(encoder.transform({"b": [4], "a": [1]}), [[1, 4]])
    assert_array_equal(encoder.transform([[1, 4]]), [[1, 4]])
    mixed = encoder_of([[1, "x"], [2, "y"]], {"n": [1, 2], "t": ["x", "z"]})
    assert labels(mixed) == ["n", "t = x", "t = y", "t = z"]
    series = pd.Series([1.0, 2.0], name="before"), pd.Series([1.0, 2.0], name="after")
    assert labels(encoder_of(*series)) == ["before"]


def test_kinds_that_agree():
    assert encoder_of({"a": [True, False]}, {"a": [1, 2]}).features[0].kind == "number"
    assert encoder_of({"a": [None, None]}, {"a": ["x", "y"]}).features[0].kind == "category"
    assert_array_equal(encoder_of({"a": [None]}, {"a": [1]}).transform({"a": [None]}), [[1.0, 1.0]])
    only_missing = encoder_of({"a": [None, None]})
    assert_array_equal(only_missing.transform({"a": [1.0, None]}), [[0.0], [1.0]])
    assert_array_equal(only_missing.transform({"a": ["x", None]}), [[0.0], [1.0]])


def test_numbers_that_are_categories():
    table = as_table({"zip": [1.0, 2.5, np.nan], "x": [1, 2, 3]})
    assert labels(fit_encoder([table], categorical=["zip"])) == ["zip = (missing)", "zip = 1", "zip = 2.5", "x"]
    assert as_categories(table, ["zip"]).columns[0].levels == ("1", "2.5")
    encoder = fit_encoder([table], categorical=["zip"])
    encoder = TableEncoder.from_dict(json.loads(json.dumps(encoder.to_dict())))
    assert_array_equal(encoder.transform({"x": [7], "zip": [2.5]}), [[0, 0, 1, 7]])


def test_an_encoder_is_stored_as_json():
    data = wines()
    encoder = encoder_of(data, scaling=standard_deviations)
    again = TableEncoder.from_dict(json.loads(json.dumps(encoder.to_dict())))
    assert again.columns == encoder.columns
    assert_array_equal(again.scales, encoder.scales)
    assert_array_equal(again.transform(data), encoder.transform(data))


def test_any_order_of_rows_and_columns():
    data, order = wines(), np.random.default_rng(0).permutation(60)
    encoder = encoder_of(data, scaling=mean_absolute_deviations)
    shuffled = encoder_of(data.iloc[order], scaling=mean_absolute_deviations)
    assert shuffled.columns == encoder.columns
    assert_allclose(shuffled.scales, encoder.scales)
    assert_array_equal(shuffled.transform(data[["colour", "sparkling", "acid"]]), encoder.transform(data))


AGES = {"age": [31, 42], "plan": ["a", "b"]}
ERRORS = [
    (
        "other columns",
        lambda: encoder_of(AGES, {"age": [1, 2], "plans": ["a", "b"]}),
        ValueError,
        r"Y is missing the columns \['plan'\] and has the unexpected columns \['plans'\]; pass the columns",
    ),
    (
        "numbers as text",
        lambda: encoder_of(AGES, {**AGES, "age": ["31", "42"]}),
        ValueError,
        r"column 'age' holds numbers in X and text or categories in Y; give both one type, such as Y\['age'\] = "
        r"pandas.to_numeric\(Y\['age'\]\)",
    ),
    (
        "dates as text",
        lambda: encoder_of({"d": pd.to_datetime(["2026-01-01"])}, {"d": ["1.1.2026"]}),
        ValueError,
        r"holds dates in X and text or categories in Y.*Y\['d'\] = pandas.to_datetime\(Y\['d'\]\)",
    ),
    ("text in an array", lambda: encoder_of([["a"]], [[1.0]]), ValueError, "column 0 holds text .* in X and numbers"),
    ("width", lambda: encoder_of([[1, 2]], [[1, 2, 3]]), ValueError, "X has 2 columns and Y has 3; both need the same"),
    ("a vector", lambda: encoder_of([[1, 2]], [1, 2]), ValueError, r"Y has 1; .*pass Y.reshape\(1, -1\)"),
    (
        "lists",
        lambda: encoder_of({"a": [1], "b": [[1, 2]]}),
        ValueError,
        "column 'b' of X cannot be used: it holds nested values; drop it, or make numbers, dates or text of it",
    ),
    ("categorical", lambda: encoder_of(AGES, categorical=["b"]), ValueError, r"categorical=\['b'\] has \['b'\], and X"),
    (
        "another kind later",
        lambda: encoder_of(AGES).transform({**AGES, "age": ["a", "b"]}),
        ValueError,
        "column 'age' of X holds text or categories and held numbers before; convert it first",
    ),
]

test_errors = refused(ERRORS)


def test_match_tables_puts_columns_in_the_order_of_the_first_that_has_names():
    tables = match_tables([as_table([[1, 2]]), as_table({"b": [1], "a": [2]}), as_table({"a": [3], "b": [4]})])
    assert [table.names for table in tables] == [["b", "a"]] * 3
    assert_array_equal(tables[2].matrix, [[4, 3]])


def test_wide_tables_take_moments():
    rows = np.random.default_rng(0).normal(size=(10, 10_000))
    rows[3, ::100] = np.nan
    encoder = encoder_of(rows, scaling=mean_absolute_deviations)
    assert encoder.transform(rows).shape == (10, 10_100)
