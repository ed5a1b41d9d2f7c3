"""NPY, Parquet and JSON lines: types, and files that are refused."""

import re
from datetime import datetime
from decimal import Decimal

import numpy as np
import pytest
from table_files import contents, kinds_of, opened, plain, run, values_of, write

X = np.random.default_rng(0).normal(size=(40, 3)).round(6) * [1.0, 20.0, 300.0]


def test_dates_of_parquet_are_those_of_csv(tmp_path):
    polars = pytest.importorskip("polars")
    days = np.array(["2026-01-02", "1969-12-31"], dtype="datetime64[D]")
    polars.DataFrame({"day": days, "list": [[1], [2]]}).write_parquet(tmp_path / "t.parquet")
    write(tmp_path / "t.csv", [[day] for day in days], ["day"])
    found, expected = (contents(tmp_path / f"t.{suffix}") for suffix in ("parquet", "csv"))
    assert found["day"].tolist() == expected["day"].tolist() == days.astype(int).tolist()
    polars.DataFrame({"day": days[:0]}).write_parquet(tmp_path / "t.parquet")
    with pytest.raises(ValueError, match="has no rows"):
        contents(tmp_path / "t.parquet")


def test_types_of_parquet(tmp_path):
    """What pandas, polars and pyarrow write: as numbers, dates or categories, or left out by the name of their type."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    noon = datetime(2024, 1, 1, 12)
    columns = {
        "date32": pa.array([noon.date(), None], pa.date32()),
        "date64": pa.array([noon.date(), None], pa.date64()),
    }
    for unit in ("s", "ms", "us", "ns"):
        columns[unit] = pa.array([noon, None], pa.timestamp(unit))
        columns[f"{unit}_zone"] = pa.array([noon, None], pa.timestamp(unit, tz="Asia/Tokyo"))
    for name in ("int8", "uint64", "float16", "float32"):
        columns[name] = pa.array([np.dtype(name).type(3), None], getattr(pa, name)())
    columns |= {
        "decimal": pa.array([Decimal("3.00"), None], pa.decimal128(9, 2)),
        "large_decimal": pa.array([Decimal("3.00"), None], pa.decimal256(50, 2)),
        "coded_numbers": pa.array([3, None]).dictionary_encode(),
        "coded": pa.array(["a", None]).dictionary_encode(),
        "bool": pa.array([True, None]),
        "large": pa.array(["a", None], pa.large_string()),
        "time": pa.array([noon.time(), None], pa.time64("us")),
        "bytes": pa.array([b"a", None]),
        "list": pa.array([[1], None]),
        "struct": pa.array([{"a": 1}, None]),
        "map": pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64())),
    }
    parquet.write_table(pa.table(columns), tmp_path / "t.parquet")
    with opened(tmp_path / "t.parquet") as table:
        assert [column.name for column in table.left_out] == ["large_decimal", "bytes", "list", "struct", "map"]
        assert table.left_out[0].reason == "it holds values of type DECIMAL with 50 digits"
        kinds = kinds_of(table)
        found = {name: values.tolist() for name, values in values_of(table).items()}
    day = 19723.0
    by_kind = {"category": "a", "number": 3.0, "boolean": 1.0, "duration": 0.5}
    for name, values in found.items():
        expected = by_kind.get(kinds[name], day if name.startswith("date") else day + 0.5)
        assert values[0] == expected, name
        assert values[1] is None or np.isnan(values[1])
    assert [name for name, kind in kinds.items() if kind == "category"] == ["coded", "large"]


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((2, 2, 2)), r"shape \(2, 2, 2\); save one of two dimensions"),
        (np.array([["a"]]), "type <U1; save real numbers"),
        (np.zeros((0, 2)), "no rows"),
        (np.ones(3) * 1j, "type complex128"),
        (np.array([{}]), "does not hold an array of numbers"),
    ],
)
def test_bad_arrays(array, message, tmp_path, capsys):
    np.save(tmp_path / "t.npy", array, allow_pickle=True)
    code, _, err = run(capsys, "compare", *2 * [str(tmp_path / "t.npy")])
    assert code == 2
    assert re.search(message, err), err


def test_twenty_million_columns_are_refused_before_they_are_read(tmp_path, capsys):
    """Header and length of the file say it; its 8 GB have no blocks on the disk."""
    shape, path = (50, 20_000_000), tmp_path / "t.npy"
    with open(path, "wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": shape})
        file.truncate(file.tell() + 8 * shape[0] * shape[1])
    code, out, err = run(capsys, "compare", *2 * [str(path)])
    assert (code, out) == (2, "")
    assert f"{path} has 20,000,000 columns, and a table may have up to 50,000; save fewer of them" in err


def test_parquet_of_too_many_columns(tmp_path, capsys, monkeypatch):
    polars = pytest.importorskip("polars")
    monkeypatch.setattr("muhat.apps.files.database.MOST_COLUMNS", 2)
    polars.DataFrame(X[:5]).write_parquet(tmp_path / "t.parquet")
    code, _, err = run(capsys, "compare", *2 * [str(tmp_path / "t.parquet")])
    assert code == 2
    assert "t.parquet has 3 columns, and a table may have up to 2; save fewer" in err


def test_all_formats_hold_the_same(tmp_path):
    polars = pytest.importorskip("polars")
    np.save(tmp_path / "t.npy", X)
    polars.DataFrame(dict(zip("xyz", X.T, strict=True)) | {"who": ["a"] * 40, "list": [[1]] * 40}).write_parquet(
        tmp_path / "t.parquet"
    )
    write(tmp_path / "t.csv", X.tolist())
    for path in ("t.npy", "t.parquet", "t.csv"):
        found = list(contents(tmp_path / path).values())
        np.testing.assert_array_equal(np.column_stack(found[:3]), X)
    with opened(tmp_path / "t.parquet") as table:
        assert list(kinds_of(table).values()) == ["number"] * 3 + ["category"]
        assert [column.name for column in table.left_out] == ["list"]


@pytest.mark.parametrize("name", ["x", "file_row_number"])
@pytest.mark.parametrize("form", ["parquet", "npy", "jsonl", "csv"])
def test_rows_of_a_column_are_read_by_their_numbers(name, form, tmp_path):
    polars = pytest.importorskip("polars")
    frame, path = polars.DataFrame({name: X[:, 0], "who": [f"{i % 4}" for i in range(40)]}), tmp_path / f"t.{form}"
    writers = {"parquet": frame.write_parquet, "jsonl": frame.write_ndjson, "csv": frame.write_csv}
    writers.get(form, lambda target: np.save(target, X))(path)
    with opened(path) as table:
        for rows in (slice(0, 40), slice(7, 19), slice(38, 99)):
            found = [table.column(own, rows) for own in table.names[:2]]
            np.testing.assert_array_equal(found[0].values, X[rows, 0])
            if form != "npy":
                assert plain(found[1]).tolist() == [str(i % 4) if form != "csv" else i % 4 for i in range(40)[rows]]


def test_json_lines(tmp_path):
    lines = [
        '{"x": 1, "who": "a", "ok": true, "day": "2024-01-01", "list": [1]}',
        '{"who": "b", "x": null, "ok": false, "day": "2024-01-01T12:00:00.000Z"}',
    ]
    (tmp_path / "t.jsonl").write_text("\n".join(lines))
    with opened(tmp_path / "t.jsonl") as table:
        assert kinds_of(table) == {"x": "number", "who": "category", "ok": "boolean", "day": "date"}
        assert [column.name for column in table.left_out] == ["list"]
        found = values_of(table)
    np.testing.assert_array_equal(found["x"], [1, np.nan])
    assert found["day"].tolist() == [19723.0, 19723.5]
    (tmp_path / "t.jsonl").write_text(lines[0] + "\n{no json\n")
    with pytest.raises(ValueError, match=r"t\.jsonl could not be read as JSON lines"):
        contents(tmp_path / "t.jsonl")
