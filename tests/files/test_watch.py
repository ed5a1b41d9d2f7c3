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

from muhat import command_line
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
    command = [sys.executable, "-m", "muhat.command_line", "watch", files["reference"], "--json", *OPTIONS]
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
