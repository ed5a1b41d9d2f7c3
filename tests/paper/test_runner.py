"""Running cells: stored at once, resumed after any end, equal with any number of workers; damaged lines run again."""

import json
from datetime import date

import numpy as np
import pytest

from paper.experiment import Experiment, Plan, Section, generator
from paper.runner import missing_cells, open_store, run


def _run(setting, data):
    rng = generator("toy", setting)
    return [{"repetition": setting["repetition"], "value": rng.normal(), "threads": np.float64(0.1)}]


TOY = Experiment(
    name="toy",
    title="A toy",
    protocol=("none",),
    cells=lambda plan: plan.repeated(full=6, quick=2),
    run=_run,
    seconds=lambda setting: 1.0 + setting["repetition"],
    section=lambda rows: Section([{"rows": len(rows)}]),
)


def run_toy(folder, workers=1, plan=Plan()):
    with open_store(folder, "1") as store:
        finished = list(run(missing_cells([TOY], plan, store), store, workers))
        return [cell.setting["repetition"] for cell, _ in finished], store.collected(TOY, plan)


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
    with open_store(tmp_path, "1") as store:
        assert store.collected(TOY, Plan()) is None


@pytest.mark.parametrize("damage", [lambda text: text[:-9], lambda text: text.replace(b'"rows"', b'"rowx"', 1)])
def test_a_damaged_line_is_dropped_and_its_cell_runs_again(tmp_path, damage):
    _, rows = run_toy(tmp_path)
    path = tmp_path / "cells.jsonl"
    path.write_bytes(damage(path.read_bytes()))
    with open_store(tmp_path, "1") as store:
        assert store.dropped == 1
    again, repaired = run_toy(tmp_path)
    assert len(again) == 1
    assert repaired == rows
    assert run_toy(tmp_path)[0] == []


def test_cells_of_another_version_run_again(tmp_path):
    run_toy(tmp_path)
    with open_store(tmp_path, "2") as store:
        assert store.outdated == 6
        assert len(missing_cells([TOY], Plan(), store)) == 6


def test_two_runs_in_one_folder_are_refused(tmp_path):
    second = open_store(tmp_path, "1")
    with open_store(tmp_path, "1"), pytest.raises(ValueError, match="in use by another run"), second:
        pass


def test_lines_of_wrong_content_are_dropped(tmp_path):
    about = {"experiment": "figure1", "setting": {"seed": 0}, "version": "0", "seconds": 1.0, "date": "2026-01-01"}
    good = {**about, "rows": [{"x": 1.0}]}
    wrong = [[], {}, 3, None, {**good, "rows": None}, {**good, "rows": [1]}, {**good, "seconds": "long"}]
    texts = [json.dumps(content).encode() for content in [*wrong, good]] + [b"{", b"[" * 100_000]
    (tmp_path / "cells.jsonl").write_bytes(b"\n".join(texts))
    with open_store(tmp_path, "0") as store:
        assert store.dropped == len(wrong) + 2
        assert list(store.rows.values()) == [[{"x": 1.0}]]
        assert list(store.costs.values()) == [(1.0, "2026-01-01")]


def test_the_cost_of_an_experiment_is_kept(tmp_path):
    run_toy(tmp_path)
    with open_store(tmp_path, "1") as store:
        seconds, day = store.cost(TOY, Plan())
    assert 0.0 <= seconds < 10.0
    assert day == date.today().isoformat()
