"""Columns that no method can use: left out with a word, and refused where they are asked for."""

import io
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from muhat.cli.command_line import main


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    folder = tmp_path_factory.mktemp("left_out")
    rng = np.random.default_rng(0)
    tables = {}
    for name, extra in (("a", "old"), ("b", "new")):
        columns = {"x": rng.normal(size=40), "y": rng.normal(size=40), "lists": [[1.0]] * 40, extra: np.arange(40.0)}
        tables[name] = str(folder / f"{name}.parquet")
        pl.DataFrame(columns).write_parquet(tables[name])
    return tables


def said(capsys, *arguments):
    main([*arguments])
    found = capsys.readouterr()
    return " ".join((found.out + found.err).split())


def test_they_are_named(paths, capsys):
    compared = said(capsys, "compare", paths["a"], paths["b"], "--resamples", "19")
    assert "'lists' could not be compared: it holds values of type DOUBLE[] in a.parquet" in compared
    assert "'old' could not be compared: only a.parquet has it" in compared
    assert compared.count("'lists'") == 1
    described = said(capsys, "describe", paths["a"])
    assert "column 'lists' is left out: it holds values of type DOUBLE[] in a.parquet" in described


def test_nothing_is_said_of_those_that_are_excluded(paths, capsys):
    compared = said(capsys, "compare", paths["a"], paths["b"], "--resamples", "19", "--exclude", "lists", "[on]??")
    assert "could not be compared" not in compared
    assert "lists" not in said(capsys, "describe", paths["a"], "--exclude", "lists")


def test_those_that_are_asked_for_are_refused(paths, capsys):
    both = ("compare", paths["a"], paths["b"], "--columns")
    assert f"--columns lists: in {paths['a']} it holds values of type DOUBLE[]" in said(capsys, *both, "lists")
    assert f"--columns old: {paths['b']} has no such column; it has 'x', 'y', 'new', 'lists'" in said(
        capsys, *both, "old"
    )
    assert f"--columns old: {paths['b']} has no such column; it has 'x', 'y', 'new'" in said(capsys, *both, "[xo]*")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full")
def test_a_page_that_cannot_be_written_is_named(paths, capsys):
    answer = said(capsys, "describe", paths["a"], "--html", "/dev/full")
    assert "--html /dev/full cannot be written: No space left" in answer


@pytest.mark.parametrize("seconds", ["x", "0", "-1", "inf", "nan"])
def test_seconds_are_a_number_above_zero(paths, capsys, seconds):
    with pytest.raises(SystemExit) as ended:
        main(["compare", paths["a"], paths["b"], "--seconds", seconds])
    assert ended.value.code == 2
    assert f"{seconds!r} must be a number above 0" in capsys.readouterr().err


def test_one_table_may_come_by_standard_input_and_two_may_not(tmp_path, capsys, monkeypatch):
    rows = "\n".join(f"{i % 7},{i % 5}" for i in range(40))
    path = tmp_path / "a.csv"
    path.write_text(f"x,y\n{rows}\n")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(path.read_bytes())))
    assert "standard input and a.csv are identical: 40 rows" in said(capsys, "compare", "-", str(path))
    assert "standard input" in said(capsys, "compare", "-", "-").lower()
    assert main(["compare", "-", "-"]) == 2
