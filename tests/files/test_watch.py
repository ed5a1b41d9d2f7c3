"""``muhat watch``: files and pipes, exit codes, and what it says."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from table_files import opened

from muhat.cli import command_line
from muhat.files.lines import NumberedLines, batch_size, batches

OPTIONS = ["--run-length", "300"]


def table(path, rows, names="a,b,c", delimiter=","):
    np.savetxt(path, rows, fmt="%.6f", delimiter=delimiter, header=names.replace(",", delimiter), comments="")
    return str(path)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("watch"), np.random.default_rng(0)
    quiet, drifting = rng.normal(size=(60, 3)), rng.normal(size=(60, 3))
    drifting[20:, 1] += 3
    return {
        "folder": folder,
        "reference": table(folder / "reference.csv", 100 * rng.normal(size=(200, 3)) * [1, 100, 1]),
        "quiet": table(folder / "quiet.csv", 100 * quiet * [1, 100, 1]),
        "drifting": table(folder / "drifting.csv", 100 * drifting * [1, 100, 1]),
        "reordered": table(folder / "reordered.csv", (100 * drifting * [1, 100, 1])[:, [2, 1, 0]], "c,b,a", ";"),
        "headless": table(folder / "headless.csv", 100 * quiet * [1, 100, 1], "0,0,0"),
    }


def watch(*arguments):
    return command_line.main(["watch", *arguments, *OPTIONS])


def test_an_alarm(files, capsys):
    assert watch(files["reference"], files["drifting"]) == 1
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    assert "drift at row 2" in out
    assert "columns that changed most: b (" in out


def test_the_end_without_an_alarm(files, capsys):
    assert watch(files["reference"], files["quiet"]) == 0
    assert capsys.readouterr().out == f"{files['quiet']}: no drift in 60 rows\n"


@pytest.mark.slow
def test_a_page_of_the_alarm_and_of_a_quiet_stream(files, capsys, monkeypatch):
    monkeypatch.setattr("muhat.files.watch_page.MOST_COLUMNS", 1)
    page = files["folder"] / "page.html"
    assert watch(files["reference"], files["drifting"], "--html", str(page)) == 1
    text = page.read_text(encoding="utf-8")
    assert "drifting.csv drifted" in text
    assert ">b<" in text, "the column that changed most comes first"
    assert ">a<" not in text
    assert "… and 2 more columns" in text
    assert "<svg" in text
    assert watch(files["reference"], files["quiet"], "--html", str(page)) == 0
    assert "No drift was found in 60 rows" in page.read_text(encoding="utf-8")
    assert watch(files["reference"], files["quiet"], "--html", files["quiet"]) == 2
    assert "would write over the table" in capsys.readouterr().err


@pytest.mark.slow
def test_columns_are_known_by_name(files, capsys):
    texts = []
    for name in ("drifting", "reordered"):
        assert watch(files["reference"], files[name]) == 1
        texts.append(capsys.readouterr().out.replace(files[name], ""))
    assert texts[0] == texts[1]


@pytest.mark.slow
def test_json_lines(files, capsys):
    assert watch(files["reference"], files["drifting"], "--json") == 1
    ready, drift = map(json.loads, capsys.readouterr().out.splitlines())
    assert ready["event"] == "ready"
    assert ready["columns"] == ["a", "b", "c"]
    assert drift["event"] == "drift"
    assert drift["line"] == drift["row"] + 1
    assert drift["columns"][0]["name"] == "b"
    assert watch(files["reference"], files["quiet"], "--json") == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1]) == {"event": "end", "rows": 60, "rows_with_gaps": 0}


@pytest.mark.slow
def test_rows_with_gaps_are_passed_over(files, capsys):
    lines = Path(files["quiet"]).read_text().splitlines()
    path = files["folder"] / "gaps.csv"
    path.write_text("\n".join([*lines[:10], "1.0,,2.0", "NA,1,1", "", *lines[10:]]) + "\n")
    assert watch(files["reference"], str(path)) == 0
    captured = capsys.readouterr()
    assert "no drift in 60 rows, 2 rows with gaps passed over" in captured.out
    assert captured.err.count("has rows with gaps") == 1


def with_gaps(path, name, gaps, folder):
    """The table at a path with some cells of a column empty."""
    head, *lines = (line.split(",") for line in Path(path).read_text().splitlines())
    place = head.index(name)
    for i in gaps:
        lines[i][place] = ""
    target = folder / "with_gaps.csv"
    target.write_text("\n".join(",".join(cells) for cells in [head, *lines]) + "\n")
    return str(target)


@pytest.mark.parametrize("gaps", [[0], range(40), [5, 9], [-1]])
def test_where_a_reference_has_gaps_does_not_decide_which_columns_are_watched(gaps, files, tmp_path, capsys):
    """A column is watched by all of its cells, and its drift is found."""
    assert watch(with_gaps(files["reference"], "b", gaps, tmp_path), files["drifting"], "--json") == 1
    captured = capsys.readouterr()
    ready, drift = map(json.loads, captured.out.splitlines())
    assert (ready["columns"], ready["left_out"]) == (["a", "b", "c"], [])
    assert drift["columns"][0]["name"] == "b"
    assert f"{len(gaps)} of 200 rows have gaps and are passed over, {len(gaps)} of them in 'b'" in captured.err


def test_columns_are_left_out_by_all_of_their_cells(tmp_path):
    rows = [("1", "", "x", "1", "NA"), ("", "2", "3", "?", ""), ("3", "b", "y", "5", " ")]
    path = tmp_path / "t.csv"
    for order in ([0, 1, 2], [1, 2, 0], [2, 0, 1]):
        path.write_text("\n".join(["a,half,less,d,empty", *(",".join(rows[i]) for i in order)]))
        with path.open() as file:
            table = NumberedLines(file, "t")
            assert table.columns_of_numbers(list(table.cells())) == ["a", "half", "d"]


CELLS = [
    "1_0",
    "1__0",
    "+-1",
    "１",
    "٣",
    "0x10",
    "1e3",
    "1E-3",
    "1.",
    ".5",
    "+1",
    " 1 ",
    "\t1",
    "1\u2003",
    "1,5",
    "1 000",
]
CELLS += ["1e400", "inf", "-Infinity", "nan", "NaN", "NA", "?", "true", "1/2", "1e", ".", "e5", "", "1e5_0", "+nan"]


@pytest.mark.parametrize("delimiter", [",", ";"])
@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("rows_before", [3, 300])
def test_all_commands_read_a_cell_alike(cell, delimiter, rows_before, tmp_path, monkeypatch):
    """As the same number, as a gap, or as text; the first rows of a file do not decide."""
    monkeypatch.setattr("muhat.files.text_format._LOOK_CELLS", 100)
    shown = f'"{cell}"' if delimiter in cell else cell
    path = tmp_path / "t.csv"
    path.write_text(f"x{delimiter}y\n" + rows_before * f"7{delimiter}1\n" + f"{shown}{delimiter}1\n")
    with opened(path) as table:
        values = table.values(table.columns)["x"]
        described = "text" if "x" in table.flaws else None if np.isnan(values[-1]) else values[-1]
    with path.open(encoding="utf-8") as file:
        try:
            numbers = list(NumberedLines(file, "t").rows("x"))[-1].numbers
            watched = None if numbers is None else numbers[0]
        except ValueError:
            watched = "text"
    assert watched == described
    assert described == "text" or cell.strip().isascii()
    assert described == "text" or not any(sign in cell for sign in ("_", "+-", "0x"))


def test_decimal_commas_and_a_byte_order_mark(files, tmp_path, capsys):
    """Of the reference, of a file and of standard input: the same as with points, in UTF-8 without a mark."""
    plain = []
    for how in ("points", "commas"):
        paths = [tmp_path / f"{how}_{name}.csv" for name in ("reference", "drifting")]
        for path in paths:
            text = Path(files[path.stem.split("_")[1]]).read_text()
            if how == "commas":
                text = "\ufeff" + text.replace(",", ";").replace(".", ",")
            path.write_text(text, encoding="utf-8")
        assert watch(*map(str, paths)) == 1
        plain.append(capsys.readouterr().out.split(": ")[1])
        with paths[1].open(encoding="latin-1") as stream, pytest.MonkeyPatch.context() as patched:
            patched.setattr(sys, "stdin", stream)
            assert watch(str(paths[0])) == 1
        plain.append(capsys.readouterr().out.split(": ")[1])
    assert len(set(plain)) == 1


@pytest.mark.parametrize("rows", [3, 40_000])
def test_a_quotation_mark_that_is_not_closed(rows, files, tmp_path, capsys):
    """A few lines end within the quotation marks, many exceed the longest cell: both name where it began."""
    path = tmp_path / "open.csv"
    path.write_text('a,b,c\n1,2,3\n"1,2,3\n' + rows * "1,2,3\n")
    for paths in ([str(path), files["quiet"]], [files["reference"], str(path)]):
        assert watch(*paths) == 2
        assert f"{path}, line 3: is a quotation mark not closed" in capsys.readouterr().err


def test_escape_sequences_do_not_reach_the_terminal(tmp_path, capsys):
    rng = np.random.default_rng(0)
    name = "b\x1b[31m\x9b2J\u202e"
    paths = [table(tmp_path / f"{n}.csv", rng.normal(size=(n, 3)) + (n == 60), f"a,{name},c") for n in (200, 60)]
    watch(*paths)
    captured = capsys.readouterr()
    assert "b�[31m�2J�" in captured.err
    watch(*paths, "--json")
    told = capsys.readouterr()
    assert json.loads(told.out.splitlines()[0])["columns"] == ["a", name, "c"]
    for text in (captured.out, captured.err, told.out, told.err):
        assert all(sign.isprintable() or sign == "\n" for sign in text)


WRONG = {
    "a missing column": ("a,b\n1,2\n", "lacks the column 'c'"),
    "text": ("a,b,c\n1,2,3\n1,red,3\n", "line 3: 'red' in the column 'b' is not a number"),
    "ragged": ("a,b,c\n1,2,3\n1,2\n", "line 3: 2 cells, and 3 in the first line"),
    "empty": ("", "is empty"),
    "a header alone": ("a,b,c\n", "has a header and no rows"),
    "gaps alone": ("a,b,c\n,1,2\n", "has no whole rows, so that nothing was watched"),
    "a name twice": ("a,a,c\n1,2,3\n", "has the column 'a' twice"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_streams(name, files, capsys):
    """What the first lines of a file show is said before the calibration."""
    text, message = WRONG[name]
    path = files["folder"] / "wrong.csv"
    path.write_text(text)
    assert watch(files["reference"], str(path)) == 2
    error = capsys.readouterr().err
    assert message in error
    assert ("watched with" in error) == (name in ("text", "ragged", "gaps alone"))


def test_columns_that_are_watched_and_left_out_are_named(files, capsys, monkeypatch):
    path = files["folder"] / "hosts.csv"
    lines = Path(files["reference"]).read_text().splitlines()
    path.write_text("\n".join(f"{line},{'host' if i == 0 else 'alpha'}" for i, line in enumerate(lines)) + "\n")
    with open(files["quiet"]) as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        assert watch(str(path), "--exclude", "b*") == 0
    captured = capsys.readouterr()
    assert captured.out == "standard input: no drift in 60 rows\n"
    assert "standard input: watched with 200 reference rows; columns: a, c; left out: b, host" in captured.err
    for options, message in {
        ("--exclude", "z"): "--exclude z: ",
        ("--exclude", "*"): "no columns are left to watch",
        ("--delimiter", "|"): "Its cells were split at '|': pass another --delimiter",
    }.items():
        assert watch(str(path), files["quiet"], *options) == 2
        assert message in capsys.readouterr().err


def test_wrong_references(files, capsys):
    path = files["folder"] / "wrong.csv"
    for text, message in {
        "a,b\n": "a header and no rows",
        "a\nred\n": "No column of",
        "a\n1\n": "minimum of 2",
    }.items():
        path.write_text(text)
        assert watch(str(path), files["quiet"]) == 2
        assert message in capsys.readouterr().err
    assert watch(str(files["folder"] / "none.csv"), files["quiet"]) == 2
    path.write_text("a,b\n1,\n2,\n")
    assert watch(str(path), files["quiet"], "--columns", "b") == 2
    assert "0 sample(s)" in capsys.readouterr().err


NOT_LINES = {
    "not text": ("a,b,c\n1,2,3\n".encode("utf-16"), "wrong.csv: this is not text in UTF-8 .*; pass CSV"),
    "not text further down": (
        b"a,b,c\n" + 9999 * b"1,2,3\n" + b"\xff",
        r"wrong.csv, after line \d{4}: this is not text",
    ),
    "20 million columns": (b"1," * 20_000_000, "line 1: more than 1,048,576 characters; pass CSV"),
    "other columns": (b"x," + b",".join(b"x%d" % j for j in range(9999)), "column 'a'; it has 'x', 'x0', .{,200}, …$"),
}


@pytest.mark.parametrize("name", NOT_LINES)
def test_what_cannot_be_read_as_lines(name, tmp_path):
    content, message = NOT_LINES[name]
    path = tmp_path / "wrong.csv"
    path.write_bytes(content)
    with path.open(encoding="utf-8-sig", newline="") as file, pytest.raises(ValueError, match=message):
        list(NumberedLines(file, path.name).rows("abc"))


def test_batches_hold_all_rows_in_order(files):
    with Path(files["quiet"]).open() as file:
        rows = list(NumberedLines(file, "quiet").rows("abc"))
        assert batch_size(file) > 1
    for size in (1, 7, 20, 60, 99):
        found = list(batches(iter(rows), size))
        assert [row for batch in found for row in batch] == rows
        assert {len(batch) for batch in found[:-1]} <= {size}
        assert 0 < len(found[-1]) <= size
    assert batch_size(io.StringIO()) == 1, "the next row may be long in coming"


def test_the_reader_asks_for_no_more_than_a_line():
    """A row of a pipe is there as soon as its line is."""

    class Pipe(io.StringIO):
        asked = 0

        def readline(self, size=-1):
            self.asked += 1
            return super().readline(size)

    pipe = Pipe("a;b\n1;2\n3;4\n")
    rows = NumberedLines(pipe, "pipe").rows(["b", "a"])
    assert pipe.asked == 1
    assert next(rows) == (2, [2.0, 1.0])
    assert pipe.asked == 2


@pytest.fixture
def process(files):
    command = [sys.executable, "-m", "muhat.cli.command_line", "watch", files["reference"], "--json", *OPTIONS]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"}, **pipes) as running:
        try:
            yield running
        finally:
            running.kill()


@pytest.mark.slow
def test_a_pipe_is_read_as_it_comes(process, files):
    """The alarm is there while the pipe is still open."""
    process.stdin.write(Path(files["drifting"]).read_text())
    process.stdin.flush()
    events = [json.loads(process.stdout.readline()) for _ in range(2)]
    assert [event["event"] for event in events] == ["ready", "drift"]
    assert process.wait(600) == 1


@pytest.mark.slow
def test_it_stops_politely(process):
    process.stdin.write("a,b,c\n1,2,3\n")
    process.stdin.flush()
    assert json.loads(process.stdout.readline())["event"] == "ready"
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    assert process.wait(600) == 130
    stopped = json.loads(process.stdout.readline())
    assert stopped["event"] == "stopped"
    assert stopped["rows"] in (0, 1)  # a busy machine may not have come to the row yet
    assert "Traceback" not in process.stderr.read()


def test_what_the_monitor_warns_of_is_a_note(tmp_path, capsys):
    rng = np.random.default_rng(0)
    paths = [table(tmp_path / f"{n}.csv", rng.normal(size=(n, 3))) for n in (60, 5)]
    assert command_line.main(["watch", *paths, "--run-length", "700"]) == 0
    captured = capsys.readouterr()
    assert "note: run_length=700 is long for 60 reference rows" in captured.err
    assert captured.out.endswith("no drift in 5 rows\n")
