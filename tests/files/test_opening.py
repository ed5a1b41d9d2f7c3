"""Opening files by their first bytes: compressed files, pipes, patterns, awkward names and damaged files."""

import gzip
import io
import os
import re
import sys

import numpy as np
import pytest
from table_files import contents, run, write

X = np.random.default_rng(0).normal(size=(40, 3)).round(6) * [1.0, 20.0, 300.0]


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
    code, out, _ = run(capsys, "compare", *paths, "--html", str(page), "--resamples", "99")
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
    "a word far down": (f"x,y\n{NUMBERS * 9000}.3,twelve\n".encode(), "line 180,002, column 'y': .*--missing"),
    "ragged": (b"x,y\n1,2\n3,4,5\n", "line 3: 3 cells, and 2 in the first row; give every row the same number"),
    "ragged at the end": (f"x,y\n{NUMBERS}1,2,3\n1\n".encode(), "line 22: 3 cells, and 2 in the first row"),
    "short": (f"x,y\n{NUMBERS}1\n".encode(), "line 22: 1 cells, and 2 in the first row"),
    "spaces": (b"1.0 2.0\n3.0 4.0\n", "separate its columns by commas, or say --delimiter"),
    "open quote": (b'x,y\n"1,2\n' + b"3,4\n" * 40_000, "quotation mark not closed"),
    "bytes": (bytes(range(256)), "is not text; save the table as CSV"),
    "UTF-16 without its mark": ("x,y\n1,2\n3,4\n".encode("utf-16-le"), "is not text"),
    "half of UTF-16": ("x,y\n1,2\n3,4\n".encode("utf-16")[:-1], "begins as UTF-16 and is damaged"),
    "Excel": (b"PK\x03\x04", "Excel files .* save the table as CSV"),
    "JSON": (2 * b'{"x": [1, 2], "y": [3, 4]}\n', "no column in common"),  # lists are left out
    "a page": (b"<!doctype html><table><tr><td>1</td></tr></table>", "is HTML or XML; export the table as CSV"),
    "half a gzip": (gzip.compress(b"x\n1\n2\n")[:-9], "damaged gzip file .* compress the table again"),
    "bzip2": (b"BZh91AY", "compressed otherwise than by gzip; unpack it first"),
    "too many columns": (b"1," * 600_000, "has 600,001 columns, and a table may have up to 50,000"),
    "endless line": (b"1" * (2**24 + 1), "line 1: more than 16,777,216 characters"),
    "half an NPY": (b"\x93NUMPY\x01\x00", "does not hold an array of numbers"),
    "half a Parquet": (b"PAR1xxxx", r"could not be read as Parquet \(.*\); write it again"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_files_are_named_with_a_remedy(name, tmp_path, capsys):
    content, message = BAD_FILES[name]
    (tmp_path / "t.csv").write_bytes(content)
    code, out, err = run(capsys, "compare", *2 * [str(tmp_path / "t.csv")])
    assert (code, out) == (2, "")
    assert re.search("^muhat compare: ", err, re.MULTILINE)
    assert "t.csv" in err or name == "JSON"  # where both tables are left without a column
    assert re.search(message, err), err
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"], "nothing is written unless asked"


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
        code, out, err = run(capsys, "compare", *2 * [str(damaged)], "--resamples", "9", "--json")
        assert code in (0, 2)
        assert (code == 0) == bool(out)
        assert code == 0 or str(damaged) in err or "--" in err


def test_a_folder_and_nothing(tmp_path, capsys):
    assert "is a folder; name a file in it, or files by a pattern" in run(capsys, "compare", *2 * [str(tmp_path)])[2]
    code, _, err = run(capsys, "compare", *2 * [str(tmp_path / "none.csv")])
    assert code == 2
    assert "cannot be read: No such file" in err
    assert "can be read once" in run(capsys, "compare", "-", "-")[2]


def test_patterns_take_all_files_in_order(tmp_path):
    for name, rows in (("b", [[3, "x"]]), ("a", [[1, "y"], [2, None]]), ("c", [[None, "x"]])):
        write(tmp_path / f"{name}.csv", rows, ("n", "t"))
    found = contents(tmp_path / "[a-c].csv")
    np.testing.assert_array_equal(found["n"], [1, 2, 3, np.nan])
    assert found["t"].tolist() == ["y", None, "x", "x"]
    with pytest.raises(ValueError, match=r"no file matches .*\.parquet; check"):
        contents(tmp_path / "*.parquet")
    write(tmp_path / "d.csv", [[3]], "q")
    with pytest.raises(ValueError, match="have other columns"):
        contents(tmp_path / "*.csv")
