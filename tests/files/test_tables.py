"""Reading tables: what is understood, what is refused, and in which words."""

import gzip
import io
import os
import re
import sys
from datetime import datetime
from decimal import Decimal

import numpy as np
import pytest
from table_files import contents, opened, run, write

from muhat.files.pictures import _plain
from muhat.files.rows import shown_date
from muhat.files.tables import MISSING, shortened
from muhat.files.text_format import _guess, is_header

X = np.random.default_rng(0).normal(size=(40, 3)).round(6) * [1.0, 20.0, 300.0]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_separators_and_encodings(encoding, delimiter, tmp_path):
    lines = ["größe 1", "b"], ["1.5", "2"], [" 2.5 ", "-1e3"], ['"4"', "0"]
    (tmp_path / "t.csv").write_text("\r\n".join(delimiter.join(line) for line in lines), encoding=encoding)
    with opened(tmp_path / "t.csv") as table:
        found = table.values(table.columns)
        assert (table.place, table.first, table.total) == ("line", 2, 3)
    assert list(found) == ["größe 1", "b"]
    np.testing.assert_array_equal(np.column_stack(list(found.values())), [[1.5, 2], [2.5, -1000], [4, 0]])


@pytest.mark.parametrize("delimiter", [";", "\t"])
@pytest.mark.parametrize("other", ["2", "2.5"])
def test_decimal_commas(delimiter, other, tmp_path):
    path = write(tmp_path / "t.csv", [["1,5", other], ["-3,25", "4"]], ("a", "b"), delimiter)
    found = contents(path)
    np.testing.assert_array_equal(found["a"], [1.5, -3.25])
    np.testing.assert_array_equal(found["b"], [float(other), 4])


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a,b\n1,2\n", ["a", "b"]),
        ("1,2\n3,4\n", ["column 1", "column 2"]),
        ("a,,a\n1,2,3\n", ["a (column 1)", "column 2", "a (column 3)"]),
        ("\n\na,b\n\n1,2\n\n", ["a", "b"]),
        ("x\n1\n2\n", ["x"]),
        ("0,1,2,3\n.5,.5,.5,1\n", ["0", "1", "2", "3"]),
        ("# made by hand\n# , really\na,b\n1,2\n", ["a", "b"]),
        ("a\x1b[31m,b\x07\n1,2\n", ["a�[31m", "b�"]),
    ],
)
def test_names_of_columns(text, names, tmp_path):
    (tmp_path / "t.csv").write_text(text)
    assert list(contents(tmp_path / "t.csv")) == names


def test_a_header_of_years_is_one_if_asked(tmp_path):
    path = write(tmp_path / "t.csv", [[2019, 2020], [1, 2], [3, 4]])
    assert len(contents(path)["column 1"]) == 3
    assert contents(path, header=True)["2019"].tolist() == [1, 3]


def test_kinds_of_columns(tmp_path):
    rows = [[1.5, "Oslo", "2024-01-31", "true", "2024-01-31 12:00:00"], [None, "Rome, IT", "2024-02-01", "false", None]]
    (tmp_path / "t.csv").write_text(
        "x,city,day,flag,time\n" + "\n".join(",".join(f'"{c}"' if c else "" for c in row) for row in rows)
    )
    with opened(tmp_path / "t.csv") as table:
        kinds = {column.name: column.kind for column in table.columns}
        found = table.values(table.columns)
    assert kinds == {"x": "number", "city": "category", "day": "date", "flag": "category", "time": "date"}
    assert found["city"].tolist() == ["Oslo", "Rome, IT"]
    np.testing.assert_array_equal(found["x"], [1.5, np.nan])
    assert np.diff(found["day"]).tolist() == [86400.0]
    assert found["time"][0] - found["day"][0] == 43200.0


@pytest.mark.parametrize("word", [*sorted(MISSING), "NaN", " NA ", "inf", "-Infinity"])
def test_missing_values(word, tmp_path):
    rows = [[1.0, word, "a"], [2.0, 3.0, "b"], [2.0, 3.0, word]]
    found = contents(write(tmp_path / "t.csv", rows, ("x", "y", "z")))
    np.testing.assert_array_equal(found["y"], [np.nan, 3.0, 3.0])
    assert found["z"].tolist() == ["a", "b", word if "inf" in word.lower() else None]


@pytest.mark.parametrize("comment", ["# a, comment", "#"])
def test_comment_lines(comment, tmp_path):
    (tmp_path / "t.csv").write_text(f"{comment}\nx,y\n1,2\n{comment}\n3,4\n5,6\n")
    np.testing.assert_array_equal(contents(tmp_path / "t.csv")["y"], [2, 4, 6])


def test_a_sign_of_comments_within_lines_is_text(tmp_path):
    (tmp_path / "t.csv").write_text("# note\ncolour,x\n#ff0000,1\n#00ff00,2\nred #2,3\nblue,4\n#0000ff,5\n")
    assert contents(tmp_path / "t.csv")["colour"].tolist() == ["#ff0000", "#00ff00", "red #2", "blue", "#0000ff"]


def test_half_of_a_column_of_numbers_are_numbers(tmp_path):
    write(tmp_path / "t.csv", [[1, 1], ["a", "a"], [2, "b"], ["b", "c"]], ["half", "less"])
    with opened(tmp_path / "t.csv") as table:
        assert [column.kind for column in table.columns] == ["number", "category"]
        assert list(table.flaws) == ["half"]


def test_the_size_of_chunks_does_not_matter(tmp_path, monkeypatch):
    """Characters of several bytes may be cut by their ends."""
    path = write(tmp_path / "t.csv", [[f"{i}", "é€😀"[i % 3]] for i in range(30)], ("numéro", "ß"))
    whole = contents(path)
    for size in range(1, 9):
        monkeypatch.setattr("muhat.files.text_format._CHUNK", size)
        found = contents(path)
        assert list(found) == ["numéro", "ß"]
        assert all((found[name] == whole[name]).all() for name in found)


def test_a_line_far_down_is_refused_as_one_at_the_top(tmp_path, monkeypatch):
    monkeypatch.setattr("muhat.files.text_format._LOOK_CELLS", 4)
    (tmp_path / "t.csv").write_text("x,y\n" + 50 * "1,2\n" + "1,2,3\n")
    with pytest.raises(ValueError, match=r"t.csv, line 52: 3 cells, and 2 in the first row"):
        contents(tmp_path / "t.csv")


def test_a_line_that_is_much_longer_than_the_first_ones(tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n" + 50 * "1,2\n" + f"1,{'2' * 2**22}\n")
    with pytest.raises(
        ValueError, match=r"t.csv, line 52: more than 2,097,152 characters; is this CSV, and is every quot"
    ):
        contents(tmp_path / "t.csv")


def test_dates_of_parquet_are_those_of_csv(tmp_path):
    polars = pytest.importorskip("polars")
    days = np.array(["2026-01-02", "1969-12-31"], dtype="datetime64[D]")
    polars.DataFrame({"day": days, "list": [[1], [2]]}).write_parquet(tmp_path / "t.parquet")
    write(tmp_path / "t.csv", [[day] for day in days], ["day"])
    found, expected = (contents(tmp_path / f"t.{suffix}") for suffix in ("parquet", "csv"))
    assert found["day"].tolist() == expected["day"].tolist() == days.astype("datetime64[s]").astype(int).tolist()
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
        columns[name] = pa.array([3, None], getattr(pa, name)())
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
        assert list(table.unusable) == ["large_decimal", "time", "bytes", "list", "struct", "map"]
        assert table.unusable["large_decimal"] == "values of type DECIMAL with 50 digits"
        kinds = {column.name: column.kind for column in table.columns}
        found = {name: values.tolist() for name, values in table.values(table.columns).items()}
    day, moment = 1704067200.0, 1704067200.0 + 43200
    for name, values in found.items():
        expected = (
            {"bool": "true"}.get(name, "a")
            if kinds[name] == "category"
            else 3.0
            if kinds[name] == "number"
            else day
            if name.startswith("date")
            else moment
        )
        assert values[0] == expected, name
        assert values[1] is None or np.isnan(values[1])
    assert [name for name, kind in kinds.items() if kind == "category"] == ["coded", "bool", "large"]


def test_the_first_rows_do_not_decide_that_a_column_is_text(tmp_path, monkeypatch):
    """Numbers and decimal commas may begin further down."""
    rows = [["n.d.", "1"]] * 40 + [[f"{i}", f"{i},5"] for i in range(60)]
    path = write(tmp_path / "t.csv", rows, ("x", "y"), ";")
    for look in (20, 10_000):
        monkeypatch.setattr("muhat.files.text_format._LOOK_CELLS", look)
        with opened(path) as table:
            assert [column.kind for column in table.columns] == ["number", "number"]
            assert list(table.flaws) == ["x"]
            assert table.values(table.columns[1:])["y"][-1] == 59.5


GUESSES = [
    (["1", "2"], ("number", True, "")),
    (["1", "a"], ("number", False, "")),
    (["1", "a", "b"], ("category", True, "")),
    (["1", "2", "a", None, "NA", "?"], ("number", False, "")),
    ([None, "", "-"], ("number", True, "")),
    (["2024-01-31", "2024-02-01 12:00"], ("date", True, "")),
    (["2024-01-31", "2024-02-01", "1"], ("category", True, "")),
    (["2024-01-31", None], ("date", True, "")),
    (["$1,200", "$3", "x"], ("category", True, "write '$1,200' as 1200")),
    (["$1,200", "x"], ("category", True, "")),
    (["$1", "$2", "5", "x"], ("category", True, "write '$1' as 1")),
    (["x", "31/12/2025", "1/2/25"], ("category", True, "write dates such as '31/12/2025' as 2025-12-31")),
    (["31/12/2025", "x"], ("category", True, "")),
    (["a", "b"], ("category", True, "")),
]


@pytest.mark.parametrize(("column", "expected"), GUESSES)
def test_what_the_first_rows_of_a_column_look_like(column, expected):
    """Half are enough for numbers, all are needed for dates, and more than half for a hint."""
    found = _guess(column, False)
    assert (found.kind, found.sure) == expected[:2]
    assert found.hint.startswith(expected[2])
    assert bool(found.hint) == bool(expected[2])


@pytest.mark.parametrize("decimal_comma", [True, False])
def test_commas_are_decimal_only_where_they_are_said_to_be(decimal_comma):
    assert _guess(["1,5", "2,25"], decimal_comma).kind == ("number" if decimal_comma else "category")


def test_lines_are_counted_where_rows_have_one_each(tmp_path):
    (tmp_path / "t.csv").write_text('x,y\n1,"a\nb"\n2,c\n')
    with opened(tmp_path / "t.csv") as table:
        assert (table.place, table.first) == ("row", 1)


@pytest.mark.slow
def test_many_columns(tmp_path):
    cells = 13_000
    rows = np.arange(3 * cells).reshape(3, cells) % 1000 / 7
    path = write(tmp_path / "t.csv", [[f"{x:.10f}" for x in row] for row in rows], [f"gene {j}" for j in range(cells)])
    assert len((tmp_path / "t.csv").read_text().splitlines()[1]) > 131_072
    with opened(path) as table:
        assert len(table.columns) == cells
        last = table.values(table.columns[-1:])[f"gene {cells - 1}"]
    np.testing.assert_allclose(last, rows[:, -1], rtol=0, atol=1e-9)


def test_gzip_pipes_and_standard_input(tmp_path, monkeypatch):
    text = "x,city\n1,Oslo\n2,Bergen\n".encode("utf-16")
    (tmp_path / "t.csv").write_bytes(text)
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(text))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    paths = [tmp_path / "t.csv", tmp_path / "t.csv.gz", "-"]
    if os.name == "posix":
        reader, writer = os.pipe()
        os.write(writer, text)
        os.close(writer)
        paths.append(f"/dev/fd/{reader}")
    for path in paths:
        found = contents(path)
        assert found["x"].tolist() == [1, 2]
        assert found["city"].tolist() == ["Oslo", "Bergen"]


@pytest.mark.parametrize("name", ["a*.csv", "it's [1].csv", "a b;--.csv"])
def test_awkward_file_names(name, tmp_path):
    (tmp_path / "ab.csv").write_text("x\n7\n")
    assert contents(write(tmp_path / name, [[1], [2]], ["x"]))["x"].tolist() == [1, 2]


@pytest.mark.skipif(sys.platform != "linux", reason="file names are bytes there")
def test_a_file_name_that_is_not_text(tmp_path, capsys):
    folder = os.fsencode(tmp_path)
    for name, rows in ((b"\xff\x1b[31m.csv", X), (b"b.csv", X + 100)):
        with open(os.path.join(folder, name), "w") as file:
            np.savetxt(file, rows, delimiter=",")
    paths = [os.fsdecode(os.path.join(folder, name)) for name in (b"\xff\x1b[31m.csv", b"b.csv")]
    page = tmp_path / "p.html"
    code, out, _ = run(capsys, "compare", *paths, "--html", str(page), "--resamples", "19")
    assert code == 1
    assert "��[31m.csv" in out
    assert "\x1b" not in out
    assert "��[31m.csv" in page.read_text(encoding="utf-8")


NUMBERS = "".join(f"{i * 0.37 % 1},{i * 0.71 % 1}\n" for i in range(20))
BAD_FILES = {
    "empty": (b"", "is empty"),
    "blank": (b"\n \n\n", "is empty"),
    "header alone": (b"x,y\n", "has a header and no rows; .*--no-header"),
    "a word among numbers": (f"x,y\n{NUMBERS}0.3,twelve\n".encode(), "line 22, column 'y': 'twelve' is not a number"),
    "a word far down": (f"x,y\n{NUMBERS * 9000}.3,twelve\n".encode(), "line 180,002, column 'y': 'twelve' is not a"),
    "ragged": (b"x,y\n1,2\n3,4,5\n", "line 3: 3 cells, and 2 in the first row; give every row the same number"),
    "ragged at the end": (f"x,y\n{NUMBERS}1,2,3\n1\n".encode(), "line 22: 3 cells, and 2 in the first row"),
    "short": (f"x,y\n{NUMBERS}1\n".encode(), "line 22: 1 cells, and 2 in the first row"),
    "spaces": (b"1.0 2.0\n3.0 4.0\n", "separate its columns by commas, or say --delimiter"),
    "open quote": (b'x,y\n"1,2\n' + b"3,4\n" * 40_000, "quotation mark not closed"),
    "bytes": (bytes(range(256)), "is not text; save the table as CSV"),
    "UTF-16 without its mark": ("x,y\n1,2\n3,4\n".encode("utf-16-le"), "is not text"),
    "half of UTF-16": ("x,y\n1,2\n3,4\n".encode("utf-16")[:-1], "begins as UTF-16 and is damaged"),
    "Excel": (b"PK\x03\x04", "Excel files .* save the table as CSV"),
    "JSON": (b'{"x": [1, 2], "y": [3, 4]}', "is JSON; save the table as CSV"),
    "a page": (b"<!doctype html><table><tr><td>1</td></tr></table>", "is HTML or XML; export the table as CSV"),
    "half a gzip": (gzip.compress(b"x\n1\n2\n")[:-9], "damaged gzip file .* compress the table again"),
    "bzip2": (b"BZh91AY", "compressed by bzip2; unpack it first"),
    "too many columns": (b"1," * 600_000, "has 600,001 columns, and a table may have up to 50,000"),
    "endless line": (b"1" * (2**24 + 1), "line 1: more than 16,777,216 characters"),
    "half an NPY": (b"\x93NUMPY\x01\x00", "does not hold an array of numbers"),
    "half a Parquet": (b"PAR1xxxx", r"could not be read as Parquet \(.*\); write it again"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_files_are_named_with_a_remedy(name, tmp_path, capsys):
    content, message = BAD_FILES[name]
    (tmp_path / "t.csv").write_bytes(content)
    code, out, err = run(capsys, "describe", str(tmp_path / "t.csv"))
    assert (code, out) == (2, "")
    assert err.startswith("muhat describe: ")
    assert str(tmp_path / "t.csv") in err
    assert re.search(message, err), err
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"], "nothing is written unless asked"


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
    code, _, err = run(capsys, "describe", str(tmp_path / "t.npy"))
    assert code == 2
    assert re.search(message, err), err


def test_twenty_million_columns_are_refused_before_they_are_read(tmp_path, capsys):
    """Header and length of the file say it; its 8 GB have no blocks on the disk."""
    shape, path = (50, 20_000_000), tmp_path / "t.npy"
    with open(path, "wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": shape})
        file.truncate(file.tell() + 8 * shape[0] * shape[1])
    for command in (["describe", str(path)], ["compare", str(path), str(path)]):
        code, out, err = run(capsys, *command)
        assert (code, out) == (2, "")
        assert f"{path} has 20,000,000 columns, and a table may have up to 50,000; save fewer of them" in err


def test_parquet_of_too_many_columns(tmp_path, capsys, monkeypatch):
    polars = pytest.importorskip("polars")
    monkeypatch.setattr("muhat.files.database.MOST_COLUMNS", 2)
    polars.DataFrame(X[:5]).write_parquet(tmp_path / "t.parquet")
    code, _, err = run(capsys, "describe", str(tmp_path / "t.parquet"))
    assert code == 2
    assert "t.parquet has 3 columns, and a table may have up to 2; save fewer" in err


@pytest.mark.parametrize("suffix", ["npy", "parquet", "csv"])
def test_damaged_files_end_in_a_message(suffix, tmp_path, capsys):
    """Bytes changed, taken out and cut off: the file is read, or refused by name, and nothing else happens."""
    polars = pytest.importorskip("polars")
    whole = tmp_path / f"whole.{suffix}"
    if suffix == "npy":
        np.save(whole, X[:12])
    elif suffix == "parquet":
        polars.DataFrame(X[:12]).write_parquet(whole)
    else:
        write(whole, X[:12].tolist(), "xyz")
    content, rng = whole.read_bytes(), np.random.default_rng(0)
    damaged = tmp_path / f"damaged.{suffix}"
    for _ in range(12):
        altered = bytearray(content)
        for place in rng.integers(len(altered), size=3):
            altered[place] = rng.integers(256)
        damaged.write_bytes(bytes(altered[: rng.integers(len(altered) // 2, len(altered))]))
        code, out, err = run(capsys, "describe", str(damaged), "--rows", "5", "--json")
        assert code in (0, 2)
        assert (code == 0) == bool(out)
        assert code == 0 or str(damaged) in err or "--" in err


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
        assert [column.kind for column in table.columns] == ["number"] * 3 + ["category"]
        assert list(table.unusable) == ["list"]


def test_chosen_rows_come_in_order(tmp_path):
    path = write(tmp_path / "t.csv", np.arange(20_000)[:, None], ["x"])
    with opened(path) as table:
        rows = table.sampled(500, np.random.default_rng(1))
        values = table.values(table.columns, rows)["x"]
    np.testing.assert_array_equal(values, rows)
    assert len(np.unique(rows)) == 500
    assert abs(values.mean() - 10_000) < 4 * 20_000 / np.sqrt(12 * 500)


def test_a_folder_and_nothing(tmp_path, capsys):
    assert "is a folder; name a file in it" in run(capsys, "describe", str(tmp_path))[2]
    code, _, err = run(capsys, "describe", str(tmp_path / "none.csv"))
    assert code == 2
    assert "cannot be read: No such file" in err
    assert "can be read once" in run(capsys, "compare", "-", "-")[2]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([["a", "b"], ["x", "y"]], True),
        ([["a", "1"], ["x", "2"]], False),
        ([["a", "b"], ["x", "2"]], True),
        ([["", "b"], ["1", "2"]], True),
        ([["NA", "1"], ["3", "2"]], False),
        ([["2020-01-01", "3"], ["2020-01-02", "4"]], False),
        ([["day", "3"], ["2020-01-02", "4"]], True),
        ([["1,5"], ["2,5"]], False),
        ([["0", "1", "2"], ["3", "4", "5"]], False),
        ([["0", "1", "2", "3"], ["3", "4", "5", "6"]], True),
        ([["1", "2", "3", "4"], ["3", "4", "5", "6"]], True),
        ([["2", "3", "4", "5"], ["3", "4", "5", "6"]], False),
        ([["1", "2", "3", "5"], ["3", "4", "5", "6"]], False),
        ([["a", "b"]], True),
        ([["a", "1"]], False),
    ],
)
def test_a_header_is_all_text_or_text_above_a_number_or_counts_the_columns(rows, expected):
    assert is_header(rows) is expected


@pytest.mark.parametrize(("cut", "most"), [(shortened, 30), (_plain, 28)])
def test_long_texts_are_cut_and_others_are_whole(cut, most):
    """The sign of the cut takes the place of the last character that would fit."""
    whole, long = "x" * most, "x" * (most + 1)
    assert whole in cut(whole)
    assert "…" not in cut(whole)
    assert "x" * (most - 1) + "…" in cut(long)
    assert whole not in cut(long)


def test_dates_that_no_calendar_has_are_shown_in_seconds():
    assert [shown_date(seconds) for seconds in (1e15, -1e13, 0.0)] == ["1e+15 s", "-1e+13 s", "1970-01-01"]
