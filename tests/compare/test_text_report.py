"""Sentences of a comparison."""

import json

import numpy as np
import pandas as pd
import pytest

import muhat as mh
from muhat.apps.compare.text_report import table


def halves_of_a_ring(seed=0, n=400):
    """Two tables with equal columns: in one the rows lie on a ring, in the other its columns are shuffled."""
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0, 2 * np.pi, (2, n))
    ring, other = (np.stack([np.cos(t), np.sin(t)], axis=1) for t in angle)
    other[:, 1] = rng.permutation(other[:, 1])
    return pd.DataFrame(ring, columns=["x", "y"]), pd.DataFrame(other, columns=["x", "y"])


def test_all_columns_differ_as_well_only_where_something_else_does():
    ring, shuffled = halves_of_a_ring()
    text = str(mh.compare(ring, shuffled, random_state=0))
    assert "No single column can be named" in text
    assert "All columns together differ (p" in text
    moved = str(mh.compare(ring, ring.assign(x=ring["x"] + 1), random_state=0))
    assert "All columns together differ as well (p" in moved


@pytest.mark.parametrize(("at_least", "sentence"), [(0.0, "x and y differ"), (0.9, "is shown to exceed 90 %")])
def test_the_first_sentence_answers_the_question(at_least, sentence):
    rng = np.random.default_rng(0)
    a, b = (pd.DataFrame({"v": rng.normal(shift, size=300)}) for shift in (0, 1))
    result = mh.compare(a, b, at_least, names=("x", "y"), random_state=0)
    assert sentence in " ".join(str(result).splitlines()[:2])
    assert result.differs == (at_least == 0.0)


def columns_that_one_table_lacks():
    rng = np.random.default_rng(1)
    a, b = (pd.DataFrame({"x": rng.normal(size=100), "c": value, "e": 1.0}) for value in (1.0, 2.0))
    return a.assign(e=rng.normal(size=100)), b.assign(e=np.nan)


def test_no_effect_is_told_of_a_column_without_values_and_all_numbers_are_finite():
    result = mh.compare(*columns_that_one_table_lacks(), random_state=0)
    row = next(line.split() for line in str(result).splitlines() if line.startswith("  * e"))
    assert row[2:5] == ["–"] * 3
    json.dumps(result.to_dict(), allow_nan=False)


def test_the_joint_test_speaks_of_shares_and_of_columns_without_names():
    a, b = columns_that_one_table_lacks()
    told = mh.compare(a[["x", "e"]], b[["x", "e"]], names=("old", "new"), random_state=0).joint_explanation
    assert told.endswith("most clearly, 'e' is missing more often in new: 0 % → 100 %")
    assert mh.compare(a["x"].to_numpy(), b["x"] + 2, random_state=0).joint_explanation.endswith(
        ", column 0 is higher in b"
    )
    assert mh.compare(a["x"], b["x"] + 2, random_state=0).joint_explanation.endswith(", column 'x' is higher in b")


def test_the_joint_test_does_not_explain_categories_by_each_other():
    rng = np.random.default_rng(0)
    shares = (0.6, 0.3, 0.1), (0.3, 0.5, 0.2)
    a, b = ({"x": rng.normal(size=400), "plan": rng.choice(["a", "b", "c"], 400, p=p)} for p in shares)
    for seed in range(3):
        told = mh.compare(a, b, random_state=seed)
        assert "'plan = a' is less frequent in b" in told.joint_explanation
        assert "Columns (* differs): significant ones first, by their effect" in str(told)


def test_ranges_of_dates_are_shown_whole():
    rng = np.random.default_rng(2)
    times = [pd.Timestamp("2024-01-01 00:00:01") + pd.to_timedelta(rng.integers(0, 10**6, 60), unit="s") for _ in "ab"]
    text = str(mh.compare({"time": times[0]}, {"time": times[1]}, random_state=0))
    for moments in times:
        assert f"{moments.min()} to {moments.max()}" in text


def test_tables_of_the_terminal_are_cut_and_say_so():
    rows = [[f"name {k}", "x" * 60, str(k)] for k in range(15)]
    lines = table("Title", ("name", "word", "count"), rows, [k == 1 for k in range(15)]).splitlines()
    assert (lines[0], lines[-1], len(lines)) == ("Title", "  … and 3 more (JSON has all)", 15)
    assert lines[2].split() == ["name", "0", "x" * 47 + "…", "0"]
    assert [line.startswith("  * ") for line in lines[1:-1]] == [False, False, True, *[False] * 10]
    assert "more" not in table("Title", ("name", "word", "count"), rows[:12])
    assert table("Title", ("name", "count"), [("y" * 30, "1")]).splitlines()[2].split()[0] == "y" * 23 + "…"


def test_durations_and_truth_values_are_told_with_their_units():
    rng = np.random.default_rng(3)
    a, b = (
        pd.DataFrame({"wait": pd.to_timedelta(rng.normal(6, 1, 80), unit="h"), "paid": rng.random(80) < share})
        for share in (0.2, 0.9)
    )
    text = " ".join(str(mh.compare(a, b, random_state=0)).split())
    assert "hours ±" in text
    assert "minutes" in text or "hours" in text
    assert "paid (total variation" in text
    assert "shares: False" in text or "shares: True" in text


def test_a_page_of_many_columns_shows_sixty_and_counts_the_others():
    a, b = (pd.DataFrame(np.random.default_rng(k).normal(size=(30, 63))).add_prefix("x") for k in (0, 1))
    html = mh.compare(a, b, random_state=0, n_resamples=19)._repr_html_()
    assert html.count('class="spark"') == 60
    assert "… and 3 more." in html


def test_sentences_count_what_was_left_out_and_what_was_sampled():
    rng = np.random.default_rng(4)
    a, b = (pd.DataFrame({"x": rng.normal(size=4000), **{f"{k}{j}": 1.0 for j in range(7)}}) for k in "uv")
    text = " ".join(str(mh.compare(a, b, random_state=0, n_resamples=19)).split())
    assert "'u4' could not be compared: only a has it." in text
    assert "9 more columns could not be compared." in text
    assert "All 4,000 and 4,000 rows were used for single columns, 3,0" in text
    assert "of the 4,000 rows of b, drawn at random" in text
