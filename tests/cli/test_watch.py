"""``muhat watch``: files and pipes, exit codes, kinds of columns, and what it says."""

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

from muhat.apps.cli import command_line

OPTIONS = ["--run-length", "300"]


def table(path, rows, names="a,b,c", delimiter=","):
    np.savetxt(path, rows, fmt="%.6f", delimiter=delimiter, header=names.replace(",", delimiter), comments="")
    return str(path)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("watch"), np.random.default_rng(0)
    scale = [100, 10_000, 100]
    quiet, drifting = rng.normal(size=(60, 3)), rng.normal(size=(60, 3))
    drifting[20:, 1] += 3
    return {
        "folder": folder,
        "reference": table(folder / "reference.csv", rng.normal(size=(200, 3)) * scale),
        "quiet": table(folder / "quiet.csv", quiet * scale),
        "drifting": table(folder / "drifting.csv", drifting * scale),
        "reordered": table(folder / "reordered.csv", (drifting * scale)[:, [2, 1, 0]], "c,b,a", ";"),
    }


def watch(*arguments):
    return command_line.main(["watch", *arguments, *OPTIONS])


def test_an_alarm_and_the_end_without_one(files, capsys):
    assert watch(files["reference"], files["drifting"]) == 1
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    assert "drift at row 2" in out
    assert "b (" in out.partition("most changed: ")[2]
    assert watch(files["reference"], files["quiet"]) == 0
    assert capsys.readouterr().out == f"{files['quiet']}: no drift in 60 rows\n"


def test_a_saved_reference_gives_the_same_answer(files, capsys, tmp_path):
    saved = str(tmp_path / "reference.npz")
    assert watch(files["reference"], files["drifting"], "--save", saved) == 1
    first = capsys.readouterr().out
    assert watch(saved, files["drifting"]) == 1
    assert capsys.readouterr().out == first
    assert watch(saved, files["drifting"], "--html", str(tmp_path / "page.html")) == 2
    assert "pass the file of its rows" in capsys.readouterr().err


@pytest.mark.slow
def test_columns_are_known_by_name(files, capsys):
    texts = []
    for name in ("drifting", "reordered"):
        assert watch(files["reference"], files[name]) == 1
        texts.append(capsys.readouterr().out.replace(files[name], ""))
    assert texts[0] == texts[1]


@pytest.mark.slow
def test_events_scores_and_pages(files, capsys, monkeypatch):
    page = files["folder"] / "page.html"
    assert watch(files["reference"], files["drifting"], "--json", "--every", "7", "--html", str(page)) == 1
    ready, *scores, drift = map(json.loads, capsys.readouterr().out.splitlines())
    assert ready["event"] == "ready"
    assert ready["columns"] == ["a", "b", "c"]
    assert [(score["event"], score["rows"]) for score in scores] == [
        ("score", 7 * k) for k in range(1, len(scores) + 1)
    ]
    assert all(score["score"] < score["threshold"] for score in scores)
    assert (drift["event"], drift["line"]) == ("drift", drift["row"] + 1)
    assert "b" in [column["name"] for column in drift["columns"][:2]]
    text = page.read_text(encoding="utf-8")
    assert "drifting.csv drifted" in text
    assert text.index(">b<") < text.index(">a<"), "the column that changed most comes first"
    assert watch(files["reference"], files["quiet"], "--html", str(page)) == 0
    assert "No drift was found in 60 rows" in page.read_text(encoding="utf-8")
    assert watch(files["reference"], files["quiet"], "--html", files["quiet"]) == 2
    assert "would write over the table" in capsys.readouterr().err


def mixed(rng, n, start=0, share=0.5, lost=0.05):
    """Rows of categories, missing values, a time that goes on (two rows each, which come late), and a number."""
    minutes = [start + i // 4 * 4 + 2 - i % 4 // 2 for i in range(n)]
    return [
        {
            "when": f"2024-01-01T{minutes[i] // 60 % 24:02d}:{minutes[i] % 60:02d}:00",
            "kind": "red" if rng.random() < share else "blue",
            "x": None if rng.random() < lost else round(float(rng.normal()), 4),
        }
        for i in range(n)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("change", [{}, {"share": 0.0}, {"lost": 0.9}])
@pytest.mark.parametrize("form", ["parquet", "jsonl", "pipe"])
def test_categories_missing_values_and_dates(change, form, tmp_path, monkeypatch, capsys):
    """A category that is gone, and a column that stops coming, are drift; time that goes on is not."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(1)
    reference, stream = pd.DataFrame(mixed(rng, 300)), pd.DataFrame(mixed(rng, 60, 300, **change))
    for frame in (reference, stream):
        frame["when"] = pd.to_datetime(frame["when"])
    reference.to_parquet(tmp_path / "reference.parquet")
    if form == "parquet":
        stream.to_parquet(target := tmp_path / "stream.parquet")
    else:
        stream.to_json(target := tmp_path / "stream.jsonl", orient="records", lines=True, date_format="iso")
    if form == "pipe":
        monkeypatch.setattr(sys, "stdin", io.StringIO(target.read_text()))
        target = "-"
    arguments = ["--format", "jsonl"] if form == "pipe" else []
    assert watch(str(tmp_path / "reference.parquet"), str(target), *arguments) == int(bool(change))
    captured = capsys.readouterr()
    assert "column 'when' is left out, because it increases with the rows" in captured.err
    if change:
        assert ("kind" if "share" in change else "x") in captured.out.partition("most changed: ")[2].split(",")[0]


def test_decimal_commas_a_byte_order_mark_and_further_marks(files, tmp_path, capsys):
    for encoding in ("utf-8-sig", "utf-16"):
        text = Path(files["drifting"]).read_text().replace(",", ";").replace(".", ",").replace("\n", ";n.d.\n")
        path = tmp_path / "drifting.csv"
        path.write_text(text.replace(";n.d.", ";d", 1), encoding=encoding)
        assert watch(files["reference"], str(path)) == 1
    reference = Path(files["reference"]).read_text().splitlines()
    reference[3] = "n.d.," + reference[3].partition(",")[2]
    path = tmp_path / "reference.csv"
    path.write_text("\n".join(reference))
    assert watch(str(path), files["quiet"]) == 2
    assert "line 4, column 'a': 'n.d.' is not a number" in capsys.readouterr().err
    assert watch(str(path), files["quiet"], "--missing", "n.d.") == 0


def test_where_a_value_is_missing_does_not_decide_which_columns_are_watched(files, tmp_path, capsys):
    head, first, *lines = Path(files["reference"]).read_text().splitlines()
    a, _, c = first.split(",")
    path = tmp_path / "reference.csv"
    path.write_text("\n".join([head, f"{a},,{c}", *lines]))
    assert watch(str(path), files["drifting"]) == 1
    captured = capsys.readouterr()
    assert "columns: a, b, c" in captured.err
    assert "most changed: b (" in captured.out


def test_wrong_streams_and_references(files, tmp_path, capsys):
    text = table(tmp_path / "other.csv", np.zeros((4, 2)), "a,b")
    assert watch(files["reference"], text) == 2
    assert "has no column 'c', which the reference has" in capsys.readouterr().err
    (tmp_path / "words.csv").write_text("a,b,c\n" + "x,1,2\n" * 9)
    assert watch(files["reference"], str(tmp_path / "words.csv")) == 2
    assert "column 'a' holds text or categories, and numbers in the reference" in capsys.readouterr().err
    assert watch(files["reference"], files["quiet"], "--columns", "z") == 2
    assert "has no such column" in capsys.readouterr().err
    assert watch(files["reference"], files["quiet"], "--exclude", "a", "b", "c") == 2
    assert "no columns are left" in capsys.readouterr().err
    assert watch(str(tmp_path), files["quiet"]) == 2


def test_escape_sequences_do_not_reach_the_terminal(tmp_path, capsys):
    rng = np.random.default_rng(0)
    paths = [table(tmp_path / f"{k}.csv", rng.normal(size=(200, 1)) + 9 * k, "\x1b[31mred") for k in range(2)]
    assert watch(*paths) == 1
    captured = capsys.readouterr()
    assert "\x1b" not in captured.out + captured.err


@pytest.fixture
def process(files):
    command = [sys.executable, "-m", "muhat", "watch", files["reference"], "--json", *OPTIONS]
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
