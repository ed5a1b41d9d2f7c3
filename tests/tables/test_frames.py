"""Tables of any library become the same columns of plain arrays."""

import datetime as dt
import uuid
from decimal import Decimal

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from errors import refused
from numpy.testing import assert_array_equal

import muhat as mh
from muhat.tables.frames import FrameType, as_table, without_column

duckdb = pytest.importorskip("duckdb")

BERLIN = dt.timezone(dt.timedelta(hours=1))
DATA = {
    "whole": [1, None, 3, 2**60 + 1],
    "fraction": [0.1, None, -2.5, 1e300],
    "truth": [True, None, False, True],
    "text": ["b", None, "a", "ä"],
    "day": [dt.date(2026, 1, 1), None, dt.date(1969, 12, 31), dt.date(2026, 3, 1)],
    "time": [dt.datetime(2026, 1, 1, 12, 0, 0, 7), None, dt.datetime(1969, 12, 31, 23), dt.datetime(2026, 3, 1)],
    "zoned": [
        dt.datetime(2026, 1, 1, 1, tzinfo=BERLIN),
        None,
        dt.datetime(1969, 12, 31, tzinfo=dt.UTC),
        dt.datetime(2026, 3, 1, tzinfo=dt.UTC),
    ],
    "duration": [dt.timedelta(days=1, microseconds=3), None, dt.timedelta(0), -dt.timedelta(hours=5)],
    "price": [Decimal("0.1"), None, Decimal("3"), Decimal("12345678901234567.8")],
    "clock": [dt.time(1, 30), None, dt.time(0), dt.time(23, 59, 59, 999999)],
    "empty": [None, None, None, None],
}
KINDS = {
    "whole": "number",
    "fraction": "number",
    "truth": "boolean",
    "text": "category",
    "day": "date",
    "time": "date",
    "zoned": "date",
    "duration": "duration",
    "price": "number",
    "clock": "duration",
    "empty": "missing",
}


def in_utc(values):
    return [value if value is None else value.astimezone(dt.UTC) for value in values]


def of_polars():
    zoned = pl.Series("zoned", in_utc(DATA["zoned"]), dtype=pl.Datetime("us", "UTC"))
    return pl.DataFrame({**DATA, "zoned": zoned})


def of_arrow():
    return pa.table({**DATA, "zoned": pa.array(in_utc(DATA["zoned"]), pa.timestamp("us", "UTC"))})


def of_pandas():
    return pd.DataFrame(
        {
            **DATA,
            "whole": pd.array(DATA["whole"], dtype="Int64"),
            "truth": pd.array(DATA["truth"], dtype="boolean"),
            "time": pd.Series(DATA["time"], dtype="datetime64[us]"),
            "zoned": pd.Series(in_utc(DATA["zoned"]), dtype="datetime64[us, UTC]"),
            "duration": pd.Series(DATA["duration"], dtype="timedelta64[us]"),
        }
    )


def of_objects():
    return pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in DATA.items()})


def of_duckdb():
    table = of_arrow()
    return duckdb.from_arrow(table)


FORMS = {
    "pandas": of_pandas,
    "pandas of objects": of_objects,
    "pandas of pyarrow": lambda: of_arrow().to_pandas(types_mapper=pd.ArrowDtype),
    "pandas with nanoseconds": lambda: of_pandas().astype({"time": "datetime64[ns]", "duration": "timedelta64[ns]"}),
    "pandas with categories": lambda: of_pandas().astype({"text": "category"}),
    "polars": of_polars,
    "polars with categories": lambda: of_polars().with_columns(pl.col("text").cast(pl.Categorical)),
    "polars with an Enum": lambda: of_polars().with_columns(pl.col("text").cast(pl.Enum(["ä", "c", "b", "a"]))),
    "LazyFrame": lambda: of_polars().lazy(),
    "pyarrow": of_arrow,
    "pyarrow with a dictionary": lambda: of_arrow().set_column(3, "text", of_arrow()["text"].dictionary_encode()),
    "DuckDB": of_duckdb,
    "dictionary": lambda: DATA,
    "dictionaries": lambda: [dict(zip(DATA, row, strict=True)) for row in zip(*DATA.values(), strict=True)],
    "dictionary of series": lambda: {name: of_pandas()[name] for name in DATA},
}


def assert_same(found, want):
    assert (found.n_rows, found.named, found.left_out) == (want.n_rows, want.named, want.left_out)
    assert found.names == want.names
    for one, other in zip(found.columns, want.columns, strict=True):
        assert (one.kind, one.levels, one.values.dtype) == (other.kind, other.levels, other.values.dtype), one.name
        assert_array_equal(one.values, other.values, err_msg=one.name)


@pytest.mark.parametrize("form", FORMS)
def test_the_same_data_of_any_library_are_the_same_table(form):
    found = as_table(FORMS[form]())
    assert {column.name: column.kind for column in found.columns} == KINDS
    assert_same(found, as_table(DATA))


def test_values():
    found = {column.name: column for column in as_table(DATA).columns}
    assert_array_equal(found["whole"].values, [1, np.nan, 3, float(2**60 + 1)])
    assert_array_equal(found["truth"].values, [1, np.nan, 0, 1])
    assert (found["text"].levels, found["text"].values.tolist()) == (("a", "b", "ä"), [1, -1, 0, 2])
    assert_array_equal(found["day"].values, [20454, np.nan, -1, 20513])
    assert_array_equal(found["zoned"].values, [20454, np.nan, -1, 20513])
    assert_array_equal(found["clock"].values[:3], [1.5 / 24, np.nan, 0])
    assert_array_equal(found["price"].values[[0, 3]], [0.1, 12345678901234567.8])
    for column in found.values():
        assert column.missing.tolist() == ([True] * 4 if column.name == "empty" else [False, True, False, False])


ARRAYS = {
    "matrix": lambda rows: rows,
    "Fortran's order": np.asfortranarray,
    "lists": lambda rows: rows.tolist(),
    "objects": lambda rows: rows.astype(object),
    "objects with None": lambda rows: np.where(np.isnan(rows), None, rows),
    "masked": lambda rows: np.ma.masked_invalid(rows),
    "a frame without its names": lambda rows: pl.DataFrame(rows).to_numpy(),
}


@pytest.mark.parametrize("form", ARRAYS)
def test_arrays_and_lists_of_rows_have_columns_by_number(form):
    rows = np.array([[1.0, np.nan], [2.0, 5.0], [3.0, 7.0]])
    found = as_table(ARRAYS[form](rows))
    assert (found.named, found.names) == (False, ["0", "1"])
    assert found.column_in_words("1") == "column 1"
    assert_array_equal(found.matrix, rows)


def test_a_matrix_of_numbers_is_not_copied():
    rows = np.ones((3, 2))
    assert as_table(rows).matrix is rows
    assert np.shares_memory(as_table(rows).columns[1].values, rows)
    assert as_table(as_table(rows)).matrix is rows


VECTORS = {
    "array": np.array([1.0, np.nan, 3.0]),
    "whole numbers": [1, None, 3],
    "series of pandas": pd.Series([1.0, None, 3.0], name="a", index=[7, 8, 9]),
    "series of polars": pl.Series("a", [1, None, 3]),
    "chunks of pyarrow": pa.chunked_array([[1], [None, 3]]),
}


@pytest.mark.parametrize("form", VECTORS)
def test_a_vector_is_one_column(form):
    found = as_table(VECTORS[form])
    assert not found.named
    assert_array_equal(found.columns[0].values, [1, np.nan, 3])


def test_other_forms():
    assert as_table({"a": 1, "b": "x", "c": None}).n_rows == 1
    records = np.array([(1.5, "x"), (2.5, "y")], dtype=[("a", float), ("b", "U1")])
    assert_same(as_table(records), as_table({"a": [1.5, 2.5], "b": ["x", "y"]}))
    mixed = as_table([[1, "x"], [2, "y"]])
    assert [column.kind for column in mixed.columns] == ["number", "category"]
    assert as_table(np.array([b"x", b"y"])).columns[0].levels == ("x", "y")
    gaps = as_table(np.array([[1.0, np.nan, np.nan], [2.0, 3.0, np.nan]]))
    assert [column.kind for column in gaps.columns] == ["number", "number", "missing"]
    assert as_table(np.array([[True], [False]])).columns[0].kind == "boolean"
    assert as_table(np.array(["2026-01-01", "NaT"], dtype="M8[D]")).columns[0].kind == "date"
    assert as_table([1, "x", None]).columns[0].levels == ("1", "x")


def test_types_of_pandas():
    frame = pd.DataFrame(
        {
            "period": pd.period_range("2026-01", periods=3, freq="M"),
            "interval": pd.interval_range(0, 3),
            "sparse": pd.arrays.SparseArray([0.0, 1.0, 2.0]),
            "numbered": pd.Categorical([1, None, 2]),
            "id": [uuid.UUID(int=i) for i in range(3)],
            7: [1, 2, 3],
        }
    )
    found = {column.name: column for column in as_table(frame).columns}
    assert_array_equal(found["period"].values, [20454, 20485, 20513])
    assert found["interval"].levels == ("(0, 1]", "(1, 2]", "(2, 3]")
    assert (found["sparse"].kind, found["numbered"].levels, found["7"].kind) == ("number", ("1", "2"), "number")
    assert found["id"].kind == "category"


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, pd.NaT, Decimal("NaN"), np.datetime64("NaT", "D")])
def test_what_is_missing(missing):
    for value in ("a", 1.5, True, dt.date(2026, 1, 1), dt.timedelta(1), Decimal(3)):
        found = as_table(pd.DataFrame({"a": pd.Series([value, missing, value], dtype=object)})).columns[0]
        assert found.missing.tolist() == [False, True, False], value


NESTED = {
    "lists": [[1], [2]],
    "dictionaries": [{"a": 1}, {"a": 2}],
    "bytes": [b"a", b"b"],
}


@pytest.mark.parametrize("form", [pd.DataFrame, pl.DataFrame, pa.table, dict])
@pytest.mark.parametrize("what", NESTED)
def test_columns_that_hold_no_values_are_left_out_with_a_reason(form, what):
    found = as_table(form({"a": [1, 2], "nested": NESTED[what]}))
    assert found.names == ["a"]
    assert [column.name for column in found.left_out] == ["nested"]
    assert found.left_out[0].reason.startswith("it holds ")


def test_complex_numbers_of_a_frame_are_left_out():
    assert as_table(pd.DataFrame({"a": [1], "b": [1j]})).left_out == (("b", "it holds complex numbers"),)


def test_columns_and_rows_are_chosen():
    table = as_table(DATA)
    chosen = table.select(["text", "whole"])
    assert (chosen.names, chosen.matrix) == (["text", "whole"], None)
    numbers = as_table({"a": [1, 2, 3], "b": [4, 5, 6]})
    assert_array_equal(numbers.select(["b"]).matrix, [[4], [5], [6]])
    for rows in (np.array([2, 0]), np.array([True, False, True, False])):
        part = table.take(rows)
        assert part.n_rows == 2
        assert part.columns[3].levels == ("a", "b", "ä")
    assert_array_equal(numbers.take(np.array([2, 0])).matrix, [[3, 6], [1, 4]])


def test_infinite_numbers_may_count_as_missing():
    for data in ({"a": [1.0, np.inf], "b": [1.0, 2.0]}, {"a": [1.0, np.inf], "b": ["x", "y"]}):
        found = as_table(data, infinite="missing")
        assert_array_equal(found.columns[0].values, [1.0, np.nan])


def test_sums_that_overflow_are_no_infinities():
    assert as_table(np.full((3, 2), 1e308)).n_rows == 3


TWICE = pd.DataFrame([[1, 2]], columns=["a", "a"])
ERRORS = [
    ("no rows", lambda: as_table(np.empty((0, 2)), "Y"), ValueError, "Y has no rows; pass a table that has"),
    ("no rows of a frame", lambda: as_table(pl.DataFrame({"a": []})), ValueError, "X has no rows"),
    ("nothing", lambda: as_table(None, "a"), ValueError, "a is None; pass a data frame, an array"),
    ("an empty list", lambda: as_table([]), ValueError, "X has no rows"),
    ("no columns", lambda: as_table(np.empty((2, 0))), ValueError, "X has no columns; pass"),
    ("a name twice", lambda: as_table(TWICE, "Y"), ValueError, "Y has .*'a'.* twice.*a name of its own|Y has a column"),
    ("a name twice as text", lambda: as_table({1: [1], "1": [2]}), ValueError, "X has the column '1' twice"),
    (
        "infinity",
        lambda: as_table({"a": [1.0, -np.inf]}, "Y"),
        ValueError,
        r"Y contains infinity: column 'a' has it first in row 1 \(counted from 0\); drop such rows, or clip",
    ),
    ("infinity of an array", lambda: as_table([[1, np.inf]]), ValueError, "X contains infinity: column 1"),
    ("lengths", lambda: as_table({"a": [1], "b": [1, 2]}), ValueError, "lengths {'a': 1, 'b': 2}; give all columns"),
    ("one value", lambda: as_table({"a": [1, 2], "b": 0}), ValueError, "lengths {'a': 2, 'b': 1}; give all columns"),
    ("a matrix as a column", lambda: as_table({"a": np.ones((2, 2))}), ValueError, "column .a. of X has the shape"),
    ("a path", lambda: as_table("x.csv"), ValueError, "X='x.csv' is not a matrix; read the file first"),
    ("ragged rows", lambda: as_table([[1], [1, 2]]), ValueError, "the rows of X have different lengths"),
    ("three dimensions", lambda: as_table(np.ones((2, 2, 2))), ValueError, "bags of rows go as a list"),
    ("a number", lambda: as_table(3.0), ValueError, "X is not a matrix; pass rows and columns"),
    ("complex", lambda: as_table(np.array([[1j]])), ValueError, "pass real and imaginary parts as columns"),
]

test_errors = refused(ERRORS)


@pytest.mark.parametrize("form", [pd.DataFrame, pl.DataFrame, pa.table])
def test_rows_become_frames_of_the_library_they_came_from(form):
    frame = form({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    made = FrameType.of(frame).made_of(np.array([[5.0, 6.0]]))
    assert type(made) is type(frame)
    assert_same(as_table(made), as_table({"a": [5.0], "b": [6.0]}))
    assert "with the columns ['a', 'b']" in FrameType.of(frame).described(np.ones((1, 2)))


def test_rows_of_arrays_stay_arrays_and_names_that_are_numbers_stay_numbers():
    rows = np.ones((2, 2))
    assert FrameType.of(rows).made_of(rows) is rows
    assert FrameType.of(rows).described(rows) == "an array of shape (2, 2)"
    assert list(FrameType.of(pd.DataFrame(rows)).made_of(rows).columns) == [0, 1]


def test_a_column_is_taken_out_with_its_own_type():
    for form in ("pandas", "polars", "LazyFrame", "pyarrow", "DuckDB", "dictionary", "pyarrow with a dictionary"):
        values, rest = without_column(FORMS[form](), "text")
        assert [None if value != value else value for value in values.tolist()] == DATA["text"]
        assert "text" not in as_table(rest).names
    with pytest.raises(ValueError, match=r"groups='c' must be the name of a column of X; it has the columns \['a'\]"):
        without_column({"a": [1]}, "c")


def test_wide_and_long_tables_take_moments():
    wide = as_table(pd.DataFrame(np.ones((2, 10_000))))
    assert len(wide.columns) == 10_000
    assert wide.names[-1] == "9999"


@pytest.mark.parametrize("wrapped", [lambda ids: ids[:, None], lambda ids: {"id": ids, "x": np.arange(len(ids))}])
def test_whole_numbers_that_double_precision_cannot_tell_apart_are_left_out(wrapped):
    ids = 2**60 + np.arange(5)
    (left,) = as_table(wrapped(ids)).left_out
    assert "whole numbers beyond 2^53" in left.reason
    assert not as_table(wrapped(2**60 + 2**20 * np.arange(5))).left_out
    with pytest.raises(ValueError, match="for identifiers make it text"):
        mh.mmd_test(wrapped(ids), wrapped(ids))


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_whole_numbers_keep_their_digits_beside_columns_of_floats(backend):
    ids = 2**60 + np.arange(5)
    frame = nw.from_dict({"x": np.arange(5.0), "id": ids.tolist()}, backend=backend).to_native()
    (left,) = as_table(frame).left_out
    assert left.name == "id"


def test_masked_cells_are_missing():
    x = np.ma.masked_array(np.random.default_rng(0).normal(size=(40, 2)), mask=np.arange(80).reshape(40, 2) % 5 == 0)
    x.data[x.mask] = 1e9
    for table in (x, {"a": x[:, 0], "b": x[:, 1]}):
        values = np.column_stack([column.values for column in as_table(table).columns])
        assert_array_equal(values, x.filled(np.nan))
    assert np.isfinite(mh.mmd_test(x, x + 1.0, random_state=0).pvalue)
