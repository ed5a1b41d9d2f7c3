"""Runs and claims: the same report however a run went; errors that lead on."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from paper import reproduce
from paper.__main__ import main
from paper.experiment import Plan
from paper.registry import EXPERIMENTS


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0, "1 s"), (99.0, "99 s"), (100.0, "2 min"), (5999.0, "100 min"), (6000.0, "1.7 h"), (36000.0, "10.0 h")],
)
def test_times_as_people_say_them(seconds, text):
    assert reproduce.duration(seconds) == text


def command(out, *more):
    names = ["figure1", "--quick", "--repetitions", "40", "--out", str(out), *more]
    return [sys.executable, "-m", "paper", *names]


def result_of(out):
    """Results without what differs from run to run: the time that it took, and when and where it was."""
    results = json.loads((out / "results.json").read_bytes())
    del results["meta"]["run"]
    for experiment in results["experiments"].values():
        del experiment["seconds"]
    page = re.sub(r"<dt>Duration</dt>.*?</div>|Time: \d+ s", "", (out / "index.html").read_text(encoding="utf-8"))
    return results, page


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The files of a run that nothing disturbed."""
    out = tmp_path_factory.mktemp("whole")
    subprocess.run(command(out, "--jobs", "1"), check=True, capture_output=True)
    return result_of(out)


def test_the_report_is_equal_with_any_number_of_jobs(whole, tmp_path):
    subprocess.run(command(tmp_path, "--jobs", "2"), check=True, capture_output=True)
    assert result_of(tmp_path) == whole


def test_the_results_have_the_form_that_was_promised(whole):
    results = whole[0]
    assert set(results) == {"claims", "experiments", "meta"}
    assert {"id", "text", "verdict", "evidence"} <= set(results["claims"][0])
    assert set(results["experiments"]) == {"figure1"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["figure9"], "'figure9' is not an experiment; choose from figure1"),
        (["figure1", "--out", "/dev/null/report"], "choose another folder with --out"),
        (["table1", "--data", "nowhere"], "table1 cannot run: data='nowhere' must be a folder that holds uci/"),
    ],
)
def test_what_cannot_run_is_said(arguments, message, capsys):
    assert main([*arguments]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--jobs", "0"], ["--seed", "-1"], ["--repetitions", "x"]])
def test_a_wrong_call_ends_with_two(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2


def test_a_missing_package_is_said_before_a_cell_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(reproduce, "find_spec", lambda name: None)
    assert main(["figure1", "--quick", "--out", str(tmp_path)]) == 2
    assert 'needs jinja2 and matplotlib; in a clone: pip install -e ".[reproduce]"' in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_data_with_a_wrong_checksum_is_refused(data_folder, tmp_path, capsys):
    (tmp_path / "uci").mkdir()
    for path in Path(data_folder, "uci").glob("*.csv"):
        text = path.read_text(encoding="utf-8")
        (tmp_path / "uci" / path.name).write_text(text.replace("1", "2", 40) if path.stem == "glass" else text)
    assert main(["table1", "--data", str(tmp_path), "--out", str(tmp_path / "out")]) == 2
    assert "the values of the table 'glass' differ from the published ones" in capsys.readouterr().err


def test_claims(whole, tmp_path, capsys):
    (tmp_path / "results.json").write_text(json.dumps(whole[0]))
    assert main(["claims", "--out", str(tmp_path)]) == 0
    assert "cannot be checked" in capsys.readouterr().out
    assert main(["claims", "--out", str(tmp_path / "nothing")]) == 2
    assert "python -m paper --out" in capsys.readouterr().err


def test_what_was_dropped_is_said(tmp_path, capsys):
    """A damaged line, a cell of another version, and cells that are there already."""
    few = ["figure1", "--quick", "--repetitions", "3", "--jobs", "1", "--out", str(tmp_path)]
    assert main(few) == 0
    assert "damaged" not in capsys.readouterr().out
    path = tmp_path / "cells.jsonl"
    first, second, third = path.read_bytes().splitlines(keepends=True)
    other = json.dumps(json.loads(second) | {"version": "0"}).encode()
    path.write_bytes(first[:-9] + b"\n" + other + b"\n" + third)
    assert main(few) == 0
    said = capsys.readouterr().out
    assert f"{path}: 1 damaged line(s) dropped; their cells run again" in said
    assert f"{path}: 1 cell(s) of another version; they run again" in said
    assert f"3 cells, 1 of them found in {path}; about 1 s" in said


def test_the_report_names_data_that_muhat_prepare_made():
    section = EXPERIMENTS["figure1"].section
    experiment = replace(EXPERIMENTS["figure1"], data_sets=lambda plan: ("hep",))
    rows = EXPERIMENTS["figure1"].run({"seed": 0, "repetition": 0}, None)
    noted = reproduce.noted_section(experiment, Plan(), rows, {"hep": {"original": False}, "other": {}})
    said = "The numbers of hep come from a file made by `python -m paper prepare`, not from that of the published run."
    assert noted.notes == [*section(rows).notes, said]
