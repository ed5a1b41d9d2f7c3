"""Running the paper's experiments: stored at once, resumed, equal with any number of workers; errors that lead on."""

import io
import json
import os
import resource
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from time import sleep
from zlib import crc32

import numpy as np
import pytest
from rich.console import Console

from muhat.command_line import main
from muhat.reproduce import progress
from muhat.reproduce.experiment import Experiment, Plan, Section, cell_key, generator
from muhat.reproduce.registry import EXPERIMENTS
from muhat.reproduce.runner import all_jobs, collected_rows, expected_seconds, missing_jobs, run
from muhat.reproduce.store import Store, StoreError


def _cells(plan):
    return [{"seed": plan.seed, "repetition": i} for i in range(plan.times(full=6, quick=2))]


def _run(setting, data):
    rng = generator("toy", setting)
    return [{"repetition": setting["repetition"], "value": rng.normal(), "threads": np.float64(0.1)}]


def _seconds(setting):
    return 1.0 + setting["repetition"]


def _section(rows):
    return Section([{"rows": len(rows)}])


TOY = Experiment("toy", "A toy", ("none",), _cells, _run, _seconds, _section)


TOY_WITH_DATA = replace(TOY, data_sets=lambda plan: ("hep",))


def run_toy(folder, workers=1, plan=Plan()):
    with Store(folder, "1") as store:
        finished = []
        run(missing_jobs(all_jobs([TOY], plan, None), store), store, workers, None, finished.append)
        return [job.setting["repetition"] for job in finished], collected_rows(TOY, plan, store)


def test_finished_cells_are_not_run_again(tmp_path):
    first, rows = run_toy(tmp_path, plan=Plan(repetitions=4))
    assert first == [3, 2, 1, 0]  # the longest first
    second, more = run_toy(tmp_path)
    assert second == [5, 4]
    assert more[:4] == rows
    assert len(more) == 6


def test_rows_are_equal_with_any_number_of_workers(tmp_path):
    assert run_toy(tmp_path / "one")[1] == run_toy(tmp_path / "two", workers=2)[1]


def test_seeds_make_rows_differ_and_repetitions_too(tmp_path):
    values = [row["value"] for seed in (0, 1) for row in run_toy(tmp_path, plan=Plan(seed=seed))[1]]
    assert len(set(values)) == len(values)


def test_an_experiment_with_a_missing_cell_has_no_rows(tmp_path):
    run_toy(tmp_path, plan=Plan(repetitions=2))
    with Store(tmp_path, "1") as store:
        assert collected_rows(TOY, Plan(), store) is None


@pytest.mark.parametrize("damage", [lambda text: text[:-9], lambda text: text.replace(b"value", b"volue", 1)])
def test_a_damaged_line_is_dropped_and_its_cell_runs_again(tmp_path, damage):
    _, rows = run_toy(tmp_path)
    path = tmp_path / "cells.jsonl"
    path.write_bytes(damage(path.read_bytes()))
    with Store(tmp_path, "1") as store:
        assert store.dropped == 1
    again, repaired = run_toy(tmp_path)
    assert len(again) == 1
    assert repaired == rows
    assert run_toy(tmp_path)[0] == []


def test_cells_of_another_version_run_again(tmp_path):
    run_toy(tmp_path)
    with Store(tmp_path, "2") as store:
        assert store.outdated == 6
        assert cell_key("toy", {"seed": 0, "repetition": 0}) not in store


def test_two_runs_in_one_folder_are_refused(tmp_path):
    with Store(tmp_path, "1"), pytest.raises(StoreError, match="in use by another run"):
        Store(tmp_path, "1")


def test_a_full_disk_loses_nothing(tmp_path):
    _, rows = run_toy(tmp_path, plan=Plan(repetitions=3))
    size = (tmp_path / "cells.jsonl").stat().st_size
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20, before[1]))
        with pytest.raises(StoreError, match="all cells finished before are kept"):
            run_toy(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert (tmp_path / "cells.jsonl").stat().st_size == size
    assert run_toy(tmp_path)[1][:3] == rows


def test_the_time_expected_follows_the_speed_of_this_machine(tmp_path):
    jobs = all_jobs([TOY], Plan(), None)
    with Store(tmp_path, "1") as store:
        assert expected_seconds(jobs, store, 2) == pytest.approx(21 / 2)
        store.add("toy", jobs[5].setting, [], seconds=60.0)
        assert expected_seconds(jobs, store, 2) == pytest.approx(15 * 10 / 2)


def test_few_finished_cells_say_nothing_of_the_speed(tmp_path):
    """The first cell, which is guessed at one second, may have taken ten for what it loads."""
    jobs = all_jobs([TOY], Plan(), None)
    with Store(tmp_path, "1") as store:
        store.add("toy", jobs[0].setting, [], seconds=10.0)
        assert expected_seconds(jobs, store, 1) == pytest.approx(20)
        store.add("toy", jobs[1].setting, [], seconds=20.0)
        assert expected_seconds(jobs, store, 1) == pytest.approx(18 * 30 / 3)


def lines_of_progress(moments, monkeypatch):
    """What is said of cells that take 1 to 6 by the guess and end at these seconds."""
    times = iter([0.0, *moments])
    monkeypatch.setattr(progress, "monotonic", lambda: next(times))
    console, jobs = Console(file=io.StringIO(), width=80), all_jobs([TOY], Plan(), None)
    with progress.progress(console, jobs) as finished:
        for job, _ in zip(jobs, moments, strict=True):
            finished(job)
    return console.file.getvalue().splitlines()


def test_the_time_left_follows_the_cells_that_are_done(monkeypatch):
    """After 1, 6 and 15 of 21 guessed seconds; a line is said after ten seconds, and at the end."""
    said = lines_of_progress([10.0, 15.0, 19.9, 20.0, 25.0, 30.0], monkeypatch)
    assert said == [
        f"1 of 6 cells, about {progress.duration(10 * 20 / 1)} left",
        f"4 of 6 cells, about {progress.duration(20 * 11 / 10)} left",
        "6 of 6 cells, about 1 s left",
    ]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0, "1 s"), (99.0, "99 s"), (100.0, "2 min"), (5999.0, "100 min"), (6000.0, "1.7 h"), (36000.0, "10.0 h")],
)
def test_times_as_people_say_them(seconds, text):
    assert progress.duration(seconds) == text


def test_bars_in_a_terminal_count_every_cell():
    console, jobs = Console(file=io.StringIO(), force_terminal=True, width=100), all_jobs([TOY], Plan(), None)
    with progress.progress(console, jobs) as finished:
        for job in jobs:
            finished(job)
    said = console.file.getvalue()
    assert said.count("6/6") >= 2
    assert "toy" in said


def command(out, *more):
    names = ["figure1", "--quick", "--repetitions", "40", "--out", str(out), *more]
    return [sys.executable, "-m", "muhat.command_line", "reproduce", *names]


def result_of(out):
    return (out / "results.json").read_bytes(), (out / "index.html").read_bytes()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The files of a run that nothing disturbed."""
    out = tmp_path_factory.mktemp("whole")
    subprocess.run(command(out, "--jobs", "1"), check=True, capture_output=True)
    return result_of(out)


def test_the_report_is_equal_with_any_number_of_jobs(whole, tmp_path):
    subprocess.run(command(tmp_path, "--jobs", "2"), check=True, capture_output=True)
    assert result_of(tmp_path) == whole


def test_the_report_is_equal_over_dask(whole, tmp_path):
    distributed = pytest.importorskip("distributed")
    local = {"n_workers": 1, "threads_per_worker": 1, "processes": False}
    with distributed.LocalCluster(
        **local, dashboard_address="127.0.0.1:0", worker_dashboard_address="127.0.0.1:0"
    ) as cluster:
        arguments = command(tmp_path, "--dask", cluster.scheduler_address)[3:]
        assert main(arguments) == 0
    assert result_of(tmp_path) == whole


def test_killed_at_random_moments_the_run_goes_on_to_the_same_report(whole, tmp_path):
    rng = np.random.default_rng(0)
    kills, finished = 0, False
    while not finished:
        run = subprocess.Popen(
            command(tmp_path, "--jobs", "2"),
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        store = tmp_path / "cells.jsonl"
        start = store.stat().st_size if store.exists() else 0
        growth = int(rng.integers(1, 60_000)) if kills < 2 else 10**9
        while run.poll() is None and not (store.exists() and store.stat().st_size > start + growth):
            sleep(0.002)
        finished = run.poll() == 0
        if not finished:
            os.killpg(run.pid, signal.SIGKILL)
            run.wait()
            kills += 1
    assert kills >= 1
    assert result_of(tmp_path) == whole


def test_the_results_have_the_form_that_was_promised(whole):
    results = json.loads(whole[0])
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
    assert main(["reproduce", *arguments]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [["reproduce", "--jobs", "0"], ["reproduce", "--seed", "-1"], ["reproduce", "--repetitions", "x"]]
)
def test_a_wrong_call_ends_with_two(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2


def test_data_with_a_wrong_checksum_is_refused(data_folder, tmp_path, capsys):
    (tmp_path / "uci").mkdir()
    for path in Path(data_folder, "uci").glob("*.csv"):
        text = path.read_text(encoding="utf-8")
        (tmp_path / "uci" / path.name).write_text(text.replace("1", "2", 40) if path.stem == "glass" else text)
    assert main(["reproduce", "table1", "--data", str(tmp_path), "--out", str(tmp_path / "out")]) == 2
    assert "the values of the table 'glass' differ from the published ones" in capsys.readouterr().err


def test_version_and_claims(whole, tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out.startswith("muhat 0.")
    (tmp_path / "results.json").write_bytes(whole[0])
    assert main(["claims", "--out", str(tmp_path)]) == 0
    assert "cannot be checked" in capsys.readouterr().out
    assert main(["claims", "--out", str(tmp_path / "nothing")]) == 2
    assert "muhat reproduce --out" in capsys.readouterr().err
    for damaged in (whole[0][:100], b"[]", b'{"claims": 3}', b'{"claims": [[]]}', b"\xff"):
        (tmp_path / "results.json").write_bytes(damaged)
        assert main(["claims", "--out", str(tmp_path)]) == 2
        assert "is damaged" in capsys.readouterr().err


def test_lines_with_a_right_checksum_and_wrong_content_are_dropped(tmp_path):
    good = {"experiment": "figure1", "setting": {"seed": 0}, "rows": [{"x": 1.0}], "seconds": 0.1, "version": "0"}
    wrong = [
        [],
        {},
        3,
        None,
        *(
            {**good, name: value}
            for name, value in [
                ("rows", None),
                ("rows", [1]),
                ("setting", []),
                ("seconds", "1"),
                ("version", 0),
                ("experiment", 1),
            ]
        ),
    ]
    texts = [json.dumps(content).encode() for content in [*wrong, good]] + [b"{", b"[" * 100_000]
    (tmp_path / "cells.jsonl").write_bytes(b"".join(b"%08x %s\n" % (crc32(text), text) for text in texts))
    with Store(tmp_path, "0") as store:
        assert store.dropped == len(wrong) + 2
        assert store.rows("figure1", {"seed": 0}) == [{"x": 1.0}]


def test_what_was_dropped_is_said(tmp_path, capsys):
    """A damaged line, a cell of another version, and cells that are there already."""
    few = ["reproduce", "figure1", "--quick", "--repetitions", "3", "--jobs", "1", "--out", str(tmp_path)]
    assert main(few) == 0
    assert "damaged" not in capsys.readouterr().out
    path = tmp_path / "cells.jsonl"
    first, second, third = path.read_bytes().splitlines(keepends=True)
    other = json.dumps(json.loads(second.partition(b" ")[2]) | {"version": "0"}).encode()
    path.write_bytes(first.replace(b"KME", b"KMO", 1) + b"%08x %s\n" % (crc32(other), other) + third)
    assert main(few) == 0
    said = capsys.readouterr().out
    assert f"{path}: 1 damaged line(s) dropped; their cells run again" in said
    assert f"{path}: 1 cell(s) of another version; they run again" in said
    assert f"3 cells, 1 of them found in {path}; about 1 s" in said


def test_the_report_names_data_that_were_made_by_a_recipe():
    from muhat.reproduce.command import _noted

    section = _noted(TOY_WITH_DATA, Plan(), [{"repetition": 0}], ["hep", "other"])
    assert section.notes == [
        "The numbers of hep come from a file made by `muhat prepare`, not from the file of the published run."
    ]


def test_cells_that_no_report_can_be_made_of(tmp_path, capsys):
    subprocess.run(command(tmp_path, "--jobs", "1"), check=True, capture_output=True)
    lines = (tmp_path / "cells.jsonl").read_bytes().splitlines()
    contents = [json.loads(line.partition(b" ")[2]) for line in lines]
    texts = [json.dumps({**content, "rows": [{"other": 1}]}).encode() for content in contents]
    (tmp_path / "cells.jsonl").write_bytes(b"".join(b"%08x %s\n" % (crc32(text), text) for text in texts))
    assert main(command(tmp_path)[3:]) == 2
    assert "cells.jsonl holds cells that cannot be read" in capsys.readouterr().err


def test_every_experiment_has_cells_of_both_forms_and_unique_keys():
    for experiment in EXPERIMENTS.values():
        for plan in (Plan(), Plan(quick=True)):
            keys = [cell_key(experiment.name, setting) for setting in experiment.cells(plan)]
            assert keys
            assert len(set(keys)) == len(keys)
        assert not experiment.data_sets(Plan(quick=True)) or set(experiment.data_sets(Plan(quick=True))) <= {
            "wine",
            "wdbc",
        }
