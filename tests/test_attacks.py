"""The attacks in small: a few seconds of each. The commands in tools/attacks run as many as one likes."""

import os
import runpy
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).parents[1] / "tools" / "attacks"


@pytest.mark.slow
def test_awkward_data_gives_numbers_or_a_word():
    tool = runpy.run_path(str(HERE / "awkward.py"))
    subjects = tool["subjects"]()
    for name, subject in subjects.items():
        assert tool["judged"](subject.call, np.random.default_rng(0).normal(size=(20, 3))).kind == "answered", name
    for name, data, X in tool["attacks"](list(subjects), 300, np.random.default_rng(0)):
        assert tool["judged"](subjects[name].call, X).fault is None, f"{name} on {data}"


def test_every_public_estimator_is_attacked():
    """A new one has to be added to the table."""
    text = (HERE / "awkward.py").read_text(encoding="utf-8")
    import muhat as mh

    classes = [
        name for name in mh.__all__ if hasattr(getattr(mh, name), "fit") and name not in ("Fourier", "BagScaler")
    ]
    functions = ["mmd_test", "hsic_test", "mmd_interval", "compare", "group_distances"]
    missing = [name for name in [*classes, *functions] if f"mh.{name}" not in text]
    assert missing == ["ShrunkKernelCenterer"]  # of Gram matrices only


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "npy", "parquet", "sketch", "monitor"])
def test_damaged_files_are_refused_by_name(kind, tmp_path):
    pytest.importorskip("duckdb")
    pytest.importorskip("polars")
    _, faults = runpy.run_path(str(HERE / "fuzz_files.py"))["fuzz"](kind, 15, 0, tmp_path)
    assert not faults


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sketch", "Fourier sketch", "monitor", "alarmed monitor"])
def test_forged_files_are_refused_by_name_or_work(kind, tmp_path):
    counts, faults = runpy.run_path(str(HERE / "fuzz_files.py"))["forge"](f"forged {kind}", 150, 0, tmp_path)
    assert not faults
    assert counts["refused"] > 75


def test_threads_that_share_a_monitor_a_sketch_or_a_file_lose_nothing():
    assert runpy.run_path(str(HERE / "threads.py"))["sharing"](rows=40, files=25) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["monitor", "reproduce"])
def test_what_is_killed_goes_on_to_the_same_bytes(name):
    kills, same = runpy.run_path(str(HERE / "kill_resume.py"))["attack"](name, 2, 0)
    assert same
    assert kills


COMMANDS = {
    "closed_streams": [],
    "odd_folders": [["it's a\"b?c*d[e]f{g,h};i%20j$HOME ä€"]],  # all signs in one name
    "endless_input": [],
    "signals": [],
    "hostile_names": [],
    "low_memory": [(700, 900)],
}


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals, closed streams and limits of POSIX")
@pytest.mark.parametrize("name", COMMANDS)
def test_commands_answer_or_end_with_two_and_one_line(name):
    pytest.importorskip("duckdb")
    assert runpy.run_path(str(HERE / "commands.py"))["attack"](name, *COMMANDS[name]) == []


@pytest.mark.slow
def test_the_order_of_groups_rows_and_columns_changes_nothing():
    """In a period of five, which weekdays have."""
    tool = runpy.run_path(str(HERE / "orders.py"))
    for name, (measured, most) in tool["subjects"]().items():
        value, order = tool["worst"](measured, periods=(5,))
        assert value <= most, f"{name}, {order}"


def test_every_public_estimator_is_put_in_other_orders():
    """A new one has to be added to a table."""
    import muhat as mh

    text = (HERE / "orders.py").read_text(encoding="utf-8")
    classes = [name for name in mh.__all__ if hasattr(getattr(mh, name), "fit")]
    left_out = ["DriftMonitor", "ShrunkKernelCenterer"]  # time; Gram matrices
    assert [name for name in classes if f"mh.{name}" not in text] == left_out
