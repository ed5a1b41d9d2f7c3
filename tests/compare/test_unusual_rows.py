"""Rows that are most unlike the other table, and the values that make them so."""

import numpy as np
import pandas as pd
import pytest

import muhat as mh
from muhat.apps.compare.unusual_rows import MOST_REASONS, SHOWN_ROWS


@pytest.fixture(scope="module")
def result():
    rng = np.random.default_rng(0)
    a, b = (
        pd.DataFrame({"x": rng.normal(size=300), "y": rng.normal(size=300), "kind": rng.choice(["p", "q"], 300)})
        for _ in "ab"
    )
    b.loc[:19, "x"] += 8.0
    b.loc[:19, "kind"] = "r"
    return mh.compare(a, b, random_state=0)


def test_a_region_without_rows_of_the_other_table_is_shown_with_its_values(result):
    for row in [row for row in result.rows if row.table == "b"]:
        assert row.number < 20
        reasons = {reason.column: reason for reason in row.reasons}
        assert (reasons["x"].share, reasons["x"].side) == (0.0, "high")
        assert (reasons["kind"].value, reasons["kind"].share, reasons["kind"].side) == ("r", 0.0, "same")
        assert row.values["x"] == reasons["x"].value


@pytest.mark.parametrize("index", [None, range(5000, 5080), [f"row {i}" for i in range(80)]])
def test_values_are_as_in_the_table_and_rows_are_found_by_their_index(index):
    rng = np.random.default_rng(3)
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(80) * 7 % 60, unit="D")
    whole = {"age": rng.integers(18, 80, 80), "bought": days, "cost": rng.normal(size=80)}
    table = pd.DataFrame(whole, index=index)
    result = mh.compare(table[:40], table[40:], random_state=0)
    assert [row["label"] for row in result.to_dict()["rows"]] == [row.label for row in result.rows]
    for row in result.rows:
        origin = table.iloc[row.number + 40 * (row.table == "b")]
        assert row.place == "index", "also in the table whose index counts its rows"
        assert row.label == origin.name
        assert row.values == {**origin, "bought": str(origin["bought"].date())}
        assert isinstance(row.values["age"], int)


def test_rows_and_reasons_are_few_and_in_order(result):
    for table in ("a", "b"):
        scores = [row.score for row in result.rows if row.table == table]
        assert len(scores) == SHOWN_ROWS
        assert scores == sorted(scores, reverse=True)
    assert max(len(row.reasons) for row in result.rows) <= MOST_REASONS


def test_shares_count_the_rows_of_the_other_table():
    """Oracle: the share of the other table's rows that are at least as high, counted directly."""
    rng = np.random.default_rng(1)
    a, b = (pd.DataFrame({"x": rng.normal(size=200), "y": rng.normal(size=200)}) for _ in "ab")
    tables = {"a": b, "b": a}
    for row in mh.compare(a, b, random_state=0).rows:
        for reason in row.reasons:
            other = tables[row.table][reason.column]
            extreme = other >= reason.value if reason.side == "high" else other <= reason.value
            assert reason.share == pytest.approx(extreme.mean())


@pytest.mark.parametrize("far", [{"x": 40.0}, {"x": 4.0, "y": -4.0}, {"x": 1e6, "y": None}])
def test_a_lone_far_row_comes_first(far):
    rng = np.random.default_rng(2)
    a, b = (pd.DataFrame(rng.multivariate_normal([0, 0], [[1, 0.9], [0.9, 1]], 400), columns=["x", "y"]) for _ in "ab")
    b.loc[123, list(far)] = list(far.values())
    first = next(row for row in mh.compare(a, b, random_state=0).rows if row.table == "b")
    assert first.number == 123
    assert {reason.column for reason in first.reasons} >= set(far)
