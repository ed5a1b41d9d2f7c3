"""CSV: dialects, kinds of columns, missing values, and lines that are refused."""

import numpy as np
import pytest
from table_files import contents, kinds_of, opened, values_of, write

from muhat.apps.files.tables import MISSING
from muhat.apps.files.text_format import hint_for, is_header

X = np.random.default_rng(0).normal(size=(40, 3)).round(6) * [1.0, 20.0, 300.0]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_separators_and_encodings(encoding, delimiter, tmp_path):
    lines = ["größe 1", "b"], ["1.5", "2"], [" 2.5 ", "-1e3"], ['"4"', "0"]
    (tmp_path / "t.csv").write_text("\r\n".join(delimiter.join(line) for line in lines), encoding=encoding)
    with opened(tmp_path / "t.csv") as table:
        found = values_of(table)
        assert (table.place, table.first, table.n_rows) == ("line", 2, 3)
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
    ("cells", "expected"),
    [
        (["1.050", "-12.345,5", "1.234.567"], [1050, -12345.5, 1234567]),
        (["1.050", "0.125", "2.5"], [1.05, 0.125, 2.5]),  # points that are decimal in one cell are in all
        (["1050", "1.050", "7"], [1050, 1050, 7]),
    ],
)
@pytest.mark.parametrize("commas", ["first", "far down"])
def test_points_between_thousands(cells, expected, commas, tmp_path):
    rows = [[cell, "1,5"] for cell in cells]
    if commas == "far down":
        rows = [*([cell, "2"] for cell in cells * 500), ["7", "1,5"]]
    found = contents(write(tmp_path / "t.csv", rows, ("a", "b"), ";"))
    np.testing.assert_array_equal(found["a"][: len(cells)], expected)


def test_points_are_decimal_without_decimal_commas(tmp_path):
    found = contents(write(tmp_path / "t.csv", [["1.050", "2"], ["2.000", "3"]], ("a", "b"), ";"))
    np.testing.assert_array_equal(found["a"], [1.05, 2])


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


def test_a_header_of_numbers_is_one_if_asked(tmp_path):
    path = write(tmp_path / "t.csv", [[20, 25], [1, 2], [3, 4]])
    assert len(contents(path)["column 1"]) == 3
    assert contents(path, header=True)["20"].tolist() == [1, 3]


def test_kinds_of_columns(tmp_path):
    rows = [[1.5, "Oslo", "2024-01-31", "true", "2024-01-31 12:00:00"], [None, "Rome, IT", "2024-02-01", "false", None]]
    (tmp_path / "t.csv").write_text(
        "x,city,day,flag,time\n" + "\n".join(",".join(f'"{c}"' if c else "" for c in row) for row in rows)
    )
    with opened(tmp_path / "t.csv") as table:
        kinds = kinds_of(table)
        found = values_of(table)
    assert kinds == {"x": "number", "city": "category", "day": "date", "flag": "boolean", "time": "date"}
    assert found["city"].tolist() == ["Oslo", "Rome, IT"]
    np.testing.assert_array_equal(found["x"], [1.5, np.nan])
    assert np.diff(found["day"]).tolist() == [1.0]
    assert found["time"][0] - found["day"][0] == 0.5
    assert found["flag"].tolist() == [1.0, 0.0]


@pytest.mark.parametrize("word", [*sorted(MISSING), "NaN", " NA ", "inf", "-Infinity"])
def test_missing_values(word, tmp_path):
    rows = [[1.0, word, "a"], [2.0, 3.0, "b"], [2.0, 3.0, word]]
    found = contents(write(tmp_path / "t.csv", rows, ("x", "y", "z")))
    np.testing.assert_array_equal(found["y"], [np.nan, 3.0, 3.0])
    assert found["z"].tolist() == ["a", "b", word if "inf" in word.lower() else None]


@pytest.mark.parametrize("comment", ["# a, comment", "#"])
def test_comment_lines(comment, tmp_path):
    (tmp_path / "t.csv").write_text(f"{comment}\n\n{comment}\nx,y\n1,2\n3,4\n5,6\n")
    np.testing.assert_array_equal(contents(tmp_path / "t.csv")["y"], [2, 4, 6])


def test_a_sign_of_comments_within_lines_is_text(tmp_path):
    (tmp_path / "t.csv").write_text("# note\ncolour,x\n#ff0000,1\n#00ff00,2\nred #2,3\nblue,4\n#0000ff,5\n")
    assert contents(tmp_path / "t.csv")["colour"].tolist() == ["#ff0000", "#00ff00", "red #2", "blue", "#0000ff"]


def test_half_of_a_column_of_numbers_are_numbers(tmp_path):
    write(tmp_path / "t.csv", [[1, 1], ["a", "a"], [2, "b"], ["b", "c"]], ["half", "less"])
    with opened(tmp_path / "t.csv") as table:
        assert kinds_of(table) == {"less": "category"}
        assert list(table.flaws) == ["half"]


def test_the_size_of_chunks_does_not_matter(tmp_path, monkeypatch):
    """Characters of several bytes may be cut by their ends."""
    path = write(tmp_path / "t.csv", [[f"{i}", "é€😀"[i % 3]] for i in range(30)], ("numéro", "ß"))
    whole = contents(path)
    for size in range(1, 9):
        monkeypatch.setattr("muhat.apps.files.text_format._CHUNK", size)
        found = contents(path)
        assert list(found) == ["numéro", "ß"]
        assert all((found[name] == whole[name]).all() for name in found)


def test_a_line_far_down_is_refused_as_one_at_the_top(tmp_path, monkeypatch):
    monkeypatch.setattr("muhat.apps.files.text_format._LOOK_CELLS", 4)
    (tmp_path / "t.csv").write_text("x,y\n" + 50 * "1,2\n" + "1,2,3\n")
    with pytest.raises(ValueError, match=r"t.csv, line 52: 3 cells, and 2 in the first row"):
        contents(tmp_path / "t.csv")


def test_a_line_that_is_much_longer_than_the_first_ones(tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n" + 50 * "1,2\n" + f"1,{'2' * 2**22}\n")
    with pytest.raises(
        ValueError, match=r"t.csv, line 52: more than 2,097,152 characters; is this CSV, and is every quot"
    ):
        contents(tmp_path / "t.csv")


def test_the_first_rows_do_not_decide_that_a_column_is_text(tmp_path, monkeypatch):
    """Numbers and decimal commas may begin further down."""
    rows = [["n.d.", "1"]] * 40 + [[f"{i}", f"{i},5"] for i in range(60)]
    path = write(tmp_path / "t.csv", rows, ("x", "y"), ";")
    for look in (20, 10_000):
        monkeypatch.setattr("muhat.apps.files.text_format._LOOK_CELLS", look)
        with opened(path) as table:
            assert kinds_of(table) == {"y": "number"}
            assert list(table.flaws) == ["x"]
            assert table.column("y").values[-1] == 59.5


@pytest.mark.parametrize(
    ("cells", "hint"),
    [
        (["1", "2"], "'1'"),
        (["$1,200", "$3", "x"], "'$1,200'"),
        (["-4.5 km/h", "3 km/h"], "'-4.5 km/h'"),
        (["x", "31/12/2025", "1.2.25"], "'31/12/2025'"),
        (["1 kg", "x"], ""),
        (["4a", "5a"], ""),
        (["a", "b"], ""),
    ],
)
def test_texts_that_look_like_numbers_or_dates_get_a_hint_where_most_do(cells, hint):
    assert hint_for(cells).removeprefix("texts such as ").split(" look")[0] == hint


@pytest.mark.parametrize("delimiter", [",", ";"])
def test_commas_are_decimal_only_where_they_do_not_separate(delimiter, tmp_path):
    path = write(tmp_path / "t.csv", [['"1,5"', "a"], ['"2,25"', "b"]], ("x", "y"), delimiter)
    with opened(path) as table:
        assert kinds_of(table)["x"] == ("number" if delimiter == ";" else "category")


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_whole_numbers_that_double_precision_makes_equal_are_left_out(form, tmp_path):
    pandas = pytest.importorskip("pandas")
    large = 2**60 + np.arange(4)
    for ids, lost in ((large, True), (large * 2**8, False), (2**53 - np.arange(4), False)):
        table, path = pandas.DataFrame({"id": ids, "x": range(4)}), tmp_path / f"t.{form}"
        if form == "jsonl":
            table.to_json(path, orient="records", lines=True)
        else:
            table.to_csv(path, index=False) if form == "csv" else table.to_parquet(path)
        with opened(path) as found:
            assert [column.name for column in found.left_out] == ["id"] * lost
            assert ("id" in found.names) != lost
            assert found.column("x").values.tolist() == [0, 1, 2, 3]


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
        assert len(table.names) == cells
        last = table.column(f"gene {cells - 1}").values
    np.testing.assert_allclose(last, rows[:, -1], rtol=0, atol=1e-9)


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
        ([["2019", "2020"], ["35", "2.5"]], True),
        ([["2019", "2020"], ["2020", "2021"]], False),
        ([["2019", "2021"], ["35", "2.5"]], False),
        ([["19", "20"], ["35", "2.5"]], False),
        ([["2019"], ["35"]], False),
        ([["2019", "2020"]], False),
        ([["a", "b"]], True),
        ([["a", "1"]], False),
    ],
)
def test_a_header_is_all_text_or_text_above_a_number_or_counts_columns_or_years(rows, expected):
    assert is_header(rows) is expected
