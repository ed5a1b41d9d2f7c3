"""``muhat compare``: what it finds, what it says of files that are not as they should be, and its page."""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from browser import Browser, require_chromium
from scipy import stats
from table_files import opened, run, write

import muhat as mh
from muhat.cli.command_line import main
from muhat.files import column_differences, summaries
from muhat.files.compare import normalised_squared_mmd
from muhat.files.encoding import MOST_CATEGORIES, encoded
from muhat.files.histograms import histogram
from muhat.files.pairs import LEAST_ROWS, pair_changes
from muhat.files.reasons import reasons
from muhat.files.rows import Sample
from muhat.files.summaries import summarised

NAMES = ("age", "height", "weight")


def rounded(X):
    return [[f"{value:.6g}" for value in row] for row in X]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Two files whose weights differ in spread alone, and a third like the first."""
    rng = np.random.default_rng(0)
    folder = tmp_path_factory.mktemp("files")
    A, B, C = (rng.normal(size=(n, 3)) * [10.0, 1.0, 5.0] + 50.0 for n in (80, 60, 70))
    B[:, 2] = 50 + 3 * (B[:, 2] - 50)
    return [write(folder / f"{name}.csv", rounded(X), NAMES) for name, X in zip("abc", (A, B, C), strict=True)]


def found_in(capsys, *arguments):
    """What ``muhat compare --json`` finds."""
    return json.loads(run(capsys, "compare", *arguments, "--json")[1])


def named(found):
    return {column["name"] for column in found["columns"] if column["differs"]}


# ------------------------------------------------------------------------------------------------------------ findings


def test_a_difference_is_found_and_named_first(files, capsys):
    code, out, err = run(capsys, "compare", *files[:2])
    assert (code, err) == (1, "")
    assert out.startswith("a.csv and b.csv differ (p = ")
    assert re.search(r"1 of 3 columns differs significantly: weight \(KS distance 0\.\d\d\)", out)
    assert out.index("* weight") < out.index("  age")
    assert "All 80 and 60 rows were used." in out


def test_no_difference_is_not_a_proof(files, capsys):
    code, out, _ = run(capsys, "compare", files[0], files[2])
    assert code == 0
    assert out.startswith("No difference found between a.csv and c.csv")
    assert "does not prove" in out
    assert "most unlike" not in out


def test_json_holds_the_numbers_of_the_libraries(files, capsys):
    found = found_in(capsys, *files[:2], "--raw", "--kernel", "gaussian", "--resamples", "99", "--seed", "3")
    X, Y = (np.loadtxt(path, delimiter=",", skiprows=1) for path in files[:2])
    test = mh.mmd_test(X, Y, mh.Gaussian(), n_resamples=99, random_state=3, unbiased=True, scale=None)
    together = found["all_columns_together"]
    assert (together["pvalue"], together["kernel"]) == (test.pvalue, repr(test.kernel))
    assert together["statistic"] == pytest.approx(test.statistic, rel=1e-12)
    assert together["normalised_squared_mmd"] == normalised_squared_mmd(test.kernel, X, Y)
    assert [file["rows_in_file"] for file in found["files"]] == [80, 60]
    assert [file["rows_used"] for file in found["files"]] == [80, 60]
    for which, values in enumerate((test.witness(X), -test.witness(Y))):
        rows = found["files"][which]["rows_most_unlike"]
        assert [row["line"] for row in rows] == (np.argsort(-values)[:5] + 2).tolist()
        assert rows[0]["witness"] == pytest.approx(values.max(), rel=1e-12)
        np.testing.assert_array_equal(list(rows[0]["values"].values()), (X, Y)[which][values.argmax()])
    weight = found["columns"][0]
    assert (weight["name"], weight["kind"], weight["differs"]) == ("weight", "number", True)
    smirnov, mood = stats.ks_2samp(X[:, 2], Y[:, 2]), stats.mood(X[:, 2], Y[:, 2])
    assert weight["size"] == pytest.approx(smirnov.statistic)
    assert weight["pvalue"] == pytest.approx(2 * min(smirnov.pvalue, mood.pvalue), rel=0.5)
    assert weight["mean"] == pytest.approx([X[:, 2].mean(), Y[:, 2].mean()], rel=1e-12)
    assert weight["standard_deviation"] == pytest.approx([X[:, 2].std(ddof=1), Y[:, 2].std(ddof=1)], rel=1e-12)
    assert weight["largest"] == [X[:, 2].max(), Y[:, 2].max()]


def test_reasons_name_rare_values():
    x, colour, y = np.arange(99.0), np.array(["red"] * 99, dtype=object), np.zeros(99)
    row = np.array([98.5]), np.array(["blue"], dtype=object), np.array([np.nan])
    kinds = ("number", "category", "number")
    other = [summarised(n, k, [r, c]) for n, k, r, c in zip("xcy", kinds, row, (x, colour, y), strict=True)]
    sample = Sample(("x", "c", "y"), kinds, row, np.empty((1, 0)), np.array([2]), "line")
    assert [(reason.column, reason.value, reason.side, reason.share) for reason in reasons(sample, 0, 1, other)] == [
        ("x", 98.5, "high", 0.0),
        ("c", "blue", "same", 0.0),
        ("y", None, "missing", 0.0),
    ]
    low = reasons(replace(sample, values=(np.array([3.0]), colour, y)), 0, 1, other)
    assert [(reason.column, reason.side, reason.share) for reason in low] == [("x", "low", 4 / 99)]


@pytest.mark.parametrize("shuffled", [False, True])
def test_identical_tables_are_said_to_be_identical(files, tmp_path, capsys, shuffled):
    """Also where other rows of either file are drawn for columns together; a moved row is another table."""
    head, *lines = Path(files[0]).read_text().splitlines()
    same = tmp_path / "same.csv"
    same.write_text("\n".join([head, *(lines[1:] + lines[:1] if shuffled else lines)]) + "\n\n")
    page = tmp_path / "page.html"
    for options in ([], ["--rows", "20", "--level", "0.99"]):
        code, out, _ = run(capsys, "compare", files[0], str(same), *options, "--html", str(page), "--resamples", "19")
        assert (
            out.startswith("a.csv and same.csv are identical: 80 rows hold the same values in every column") != shuffled
        )
        assert ("a.csv and same.csv are identical" in page.read_text(encoding="utf-8")) != shuffled
        assert shuffled or code == 0
        assert found_in(capsys, files[0], str(same), *options)["identical"] != shuffled


DIFFERENCES = {
    "location": ("age", lambda row, rng: [row[0] + 3, *row[1:]], "'age' is higher in b.csv"),
    "spread": ("age", lambda row, rng: [9 * row[0], *row[1:]], "'age' is more spread out in b.csv"),
    "category": ("colour", lambda row, rng: [*row[:2], "red"], "'colour' is more often 'red' in b.csv"),
    "gaps": (
        "size",
        lambda row, rng: [row[0], None if rng.random() < 0.8 else row[1], row[2]],
        "'size' is missing more",
    ),
}


@pytest.mark.parametrize("how", DIFFERENCES)
def test_all_columns_together_speak_of_the_columns_and_files(how, tmp_path, capsys):
    rng = np.random.default_rng(0)
    _, change, expected = DIFFERENCES[how]
    rows = [[[*rng.normal(size=2).round(3), rng.choice(["red", "white", "blue"])] for _ in range(150)] for _ in "ab"]
    rows[1] = [change(row, rng) for row in rows[1]]
    paths = [write(tmp_path / f"{n}.csv", X, ("age", "size", "colour")) for n, X in zip("ab", rows, strict=True)]
    words = found_in(capsys, *paths)["all_columns_together"]["in_words"]
    assert words.startswith("the rows of a.csv and b.csv differ; most clearly, ")
    assert expected in words
    assert " Y" not in words


def test_each_size_says_what_it_is(tmp_path, capsys):
    rng = np.random.default_rng(0)
    rows = [[[rng.normal() + shift, rng.choice(list("ab"[: 2 - shift]))] for _ in range(90)] for shift in (0, 1)]
    paths = [write(tmp_path / f"{n}.csv", X, ("x", "c")) for n, X in zip("ab", rows, strict=True)]
    measures = {column["name"]: column["measure"] for column in found_in(capsys, *paths)["columns"]}
    assert measures == {"x": "KS distance", "c": "total variation"}
    out = " ".join(run(capsys, "compare", *paths)[1].split())
    assert re.search(r"x \(KS distance 0\.\d\d\)", out)
    assert re.search(r"c\s+TV 0\.\d\d", out)
    assert "size is" not in out


def test_a_difference_of_gaps_has_its_own_pvalue(tmp_path, capsys):
    """The name is bold for the gaps, and the p-value beside it that is 1 is said to be of the values."""
    rng = np.random.default_rng(0)
    tables = [[[x if rng.random() > gaps else None, y] for x, y in rng.normal(size=(150, 2))] for gaps in (0, 0.5)]
    paths = [write(tmp_path / f"{n}.csv", X, "xy") for n, X in zip("ab", tables, strict=True)]
    page = tmp_path / "p.html"
    _, out, _ = run(capsys, "compare", *paths, "--html", str(page), "--resamples", "99")
    for text in (out, page.read_text(encoding="utf-8")):
        assert "p of values" in text
        assert "p of missing" in text
    assert re.search(r"\* x +KS 0\.\d\d +1 +0 % → \d+ % +\d.\d+e-\d\d", out)
    assert "No column differs significantly in its values." in out


def test_tiny_pvalues_are_bounds(tmp_path, capsys):
    paths = [write(tmp_path / f"{n}.csv", [[i + 9999 * n] for i in range(3000)], "x") for n in (0, 1)]
    out = run(capsys, "compare", *paths, "--columns", "x", "--resamples", "19", "--rows", "50")[1]
    assert "(p < 1e-300, level 0.05)" in out
    assert "= <" not in out


def test_json_has_both_files(files, capsys):
    """Each with its own rows; those that are typical of a file are more like it than like the other."""
    found = json.loads(run(capsys, "compare", *files[:2], "--json", "--raw")[1])["files"]
    assert [Path(file["path"]).name for file in found] == ["a.csv", "b.csv"]
    for file, path in zip(found, files[:2], strict=True):
        rows = np.loadtxt(path, delimiter=",", skiprows=1)
        assert file["rows_in_file"] == len(rows)
        for row in file["rows_most_unlike"]:
            np.testing.assert_array_equal(list(row["values"].values()), rows[row["line"] - 2])
            assert row["witness"] > 0


def test_units_do_not_matter_unless_asked(files, tmp_path, capsys):
    X, Y = (np.loadtxt(path, delimiter=",", skiprows=1) * [1000.0, 1.0, 1e-3] for path in files[:2])
    other = [write(tmp_path / f"{name}.csv", rounded(Z), NAMES) for name, Z in (("a", X), ("b", Y))]
    found = [found_in(capsys, *paths) for paths in (files[:2], other)]
    sizes = [one["all_columns_together"]["normalised_squared_mmd"] for one in found]
    assert found[0]["pvalue"] == found[1]["pvalue"]
    assert sizes[0] == pytest.approx(sizes[1], rel=1e-4)  # six digits in the files
    assert found_in(capsys, *other, "--raw")["all_columns_together"]["normalised_squared_mmd"] != pytest.approx(
        sizes[0], rel=0.1
    )


def test_the_normalised_mmd_is_the_share_of_the_squared_distance():
    rng = np.random.default_rng(1)
    X, Y = rng.normal(size=(12, 2)), rng.normal(size=(9, 2)) + 1
    test = mh.mmd_test(X, Y, mh.Gaussian(), n_resamples=1, unbiased=True)
    k = test.kernel
    between = np.mean([k([x], [x])[0, 0] + k([y], [y])[0, 0] - 2 * k([x], [y])[0, 0] for x in X for y in Y])
    assert normalised_squared_mmd(k, X, Y) == pytest.approx(test.statistic / between, rel=1e-12)
    assert normalised_squared_mmd(k, X, X) == 0.0


def mixed_rows(rng, n):
    """Two numbers that go together, a category that goes with them, and gaps."""
    x = rng.normal(size=n)
    y = x + 0.5 * rng.normal(size=n)
    colour = np.where(x + rng.normal(size=n) > 0, "red", "white")
    return [
        [f"{a:.4f}", None if gap else f"{b:.4f}", c]
        for a, b, c, gap in zip(x, y, colour, rng.random(n) < 0.1, strict=True)
    ]


def altered(rng, rows, how):
    rows = [list(row) for row in rows]
    if how == "category":
        for i in rng.choice(len(rows), len(rows) // 3, replace=False):
            rows[i][2] = "red"
    elif how == "missing":
        for i in rng.choice(len(rows), len(rows) // 4, replace=False):
            rows[i][1] = None
    elif how == "dependence":
        for row, other in zip(rows, rng.permutation([row[0] for row in rows]), strict=True):
            row[0] = other
    return rows


MIXED = {
    "category": r"1 of 3 columns differs significantly: colour \(total variation 0\.\d\d\)",
    "missing": r"y is missing in [\d.]+ % and [\d.]+ % of the rows \(p = .*\)\..* missing ",
    "dependence": r"The dependence of 2 pairs of columns changed: .* Pairs of columns whose dependence changed ",
    "nothing": "No difference found between ",
}


@pytest.mark.parametrize("how", MIXED)
def test_mixed_tables(how, tmp_path, capsys):
    rng = np.random.default_rng(5)
    A, B = mixed_rows(rng, 300), altered(rng, mixed_rows(rng, 300), how)
    paths = [write(tmp_path / f"{n}.csv", X, ("x", "y", "colour")) for n, X in (("a", A), ("b", B))]
    found = found_in(capsys, *paths)
    assert re.search(MIXED[how], " ".join(run(capsys, "compare", *paths)[1].split()))
    gaps = {column["name"] for column in found["columns"] if "missing" in column and column["missing"]["differs"]}
    pairs = {tuple(name.split(" = ")[0] for name in pair["names"]) for pair in found["pairs"] if pair["differs"]}
    assert found["differs"] == (how != "nothing")
    assert named(found) == ({"colour"} if how == "category" else set())
    assert gaps == ({"y"} if how == "missing" else set())
    assert pairs == ({("x", "y"), ("x", "colour")} if how == "dependence" else set())
    assert [file["rows_used"] for file in found["files"]] == [300, 300], "no row is left out for a gap"


def test_columns_that_cannot_differ():
    empty = summarised("x", "number", [np.full(3, np.nan), np.arange(3.0)])
    assert (column_differences.column_pvalue(empty), column_differences.column_size(empty)) == (1.0, 0.0)
    for counts in (
        [[5], [7]],
        [[3, 0], [2, 0]],
        [[1, 1, 1], [1, 1, 1]],
    ):  # one category; one and an absent one; rare ones
        assert column_differences.categories_pvalue(np.array(counts)) == 1.0


def test_histograms_of_many_categories_and_of_few_numbers():
    letters = np.array(list("aaabcdefghijk"), dtype=object)
    shown = histogram(summarised("x", "category", [letters, letters]))
    assert [len(heights) for heights in shown.heights] == [9, 9], "eight categories, and the others as one"
    assert shown.ends == ("a", "(others)"), "the last bar is named as what it shows"
    assert len(histogram(summarised("x", "number", [np.arange(5.0), np.arange(3.0)])).heights[0]) == 5


@pytest.mark.slow
def test_the_level_is_kept():
    """Of 200 pairs of samples of one distribution, at level 0.1, more than 34 findings have a chance of 0.1 %."""
    rng = np.random.default_rng(0)

    def finds():
        columns = (
            [rng.exponential(size=n).round(1) for n in (25, 60)],
            [rng.integers(3, size=n).astype(str).astype(object) for n in (25, 60)],
        )
        pvalues = [
            column_differences.column_pvalue(summarised("x", kind, values))
            for kind, values in zip(("number", "category"), columns, strict=True)
        ]
        return np.array(pvalues) <= 0.1

    assert (np.sum([finds() for _ in range(200)], axis=0) <= 34).all()


@pytest.mark.slow
def test_the_level_is_kept_as_a_whole(tmp_path, capsys):
    """Of 25 pairs at level 0.2, more than 12 findings have a chance below 0.1 %."""
    rng = np.random.default_rng(0)
    count = 0
    for _ in range(25):
        paths = [write(tmp_path / f"{n}.csv", mixed_rows(rng, 60), ("x", "y", "colour")) for n in "ab"]
        count += run(capsys, "compare", *paths, "--resamples", "99", "--level", "0.2")[0]
    assert count <= 12


def test_columns_that_are_mostly_missing(tmp_path, capsys):
    """Hardly a row is complete, and some pairs of columns have no row in common: the shift is found all the same."""
    rng = np.random.default_rng(0)
    tables = [np.where(rng.random((300, 6)) < 0.9, np.nan, rng.normal(size=(300, 6)) + shift) for shift in (0, 2)]
    tables[0][:, 0][~np.isnan(tables[0][:, 1])] = np.nan
    rows = [[[None if np.isnan(x) else x for x in row] for row in table] for table in tables]
    found = found_in(capsys, *[write(tmp_path / f"{n}.csv", Z, "uvwxyz") for n, Z in zip("ab", rows, strict=True)])
    assert named(found) == set("uvwxyz")
    assert [file["rows_used_together"] for file in found["files"]] == [300, 300]
    assert found["pairs"][-1]["pvalue"] == 1.0


def test_pvalues_of_gaps_do_not_depend_on_other_columns(tmp_path, capsys):
    """The adjusted ones do."""
    rng = np.random.default_rng(0)
    tables = [[[x if x < cut else None, y] for x, y in rng.normal(size=(60, 2))] for cut in (2.0, 0.8)]
    both = [write(tmp_path / f"{name}.csv", rows, "xy") for name, rows in zip("ab", tables, strict=True)]
    gaps = [
        next(column["missing"] for column in found_in(capsys, *both, *options)["columns"] if column["name"] == "x")
        for options in ([], ["--columns", "x"])
    ]
    assert gaps[0]["pvalue"] == gaps[1]["pvalue"] < gaps[1]["adjusted_pvalue"] < gaps[0]["adjusted_pvalue"]


def test_a_changed_dependence_dates_and_empty_columns_are_told(tmp_path, capsys):
    """The columns alone are alike; the day and the pair changed, and one file has no value of the last column."""
    rng = np.random.default_rng(0)
    paths = []
    for name, sign in (("a", 1), ("b", -1)):
        x = rng.normal(size=80)
        days = np.datetime64("2026-01-01" if sign > 0 else "2027-01-01") + rng.integers(0, 99, size=80).astype("m8[D]")
        rows = zip(x, sign * x + 0.1 * rng.normal(size=80), days, x if sign > 0 else [None] * 80, strict=True)
        paths.append(write(tmp_path / f"{name}.csv", rows, ("x", "y", "day", "gone")))
    page = tmp_path / "p.html"
    _, out, _ = run(capsys, "compare", *paths, "--html", str(page), "--resamples", "19")
    text = page.read_text(encoding="utf-8")
    assert "Pairs of columns whose dependence changed" in text
    assert ">missing</th>" in text
    for told in ("2026-01-0", "2027-0", "no values"):
        assert told in out
        assert told in text


def test_coordinates_of_columns_with_few_values():
    gap = np.nan
    columns = [
        ("category", [np.array(["a", "a"], dtype=object), np.array(["a"], dtype=object)]),
        ("number", [np.array([3.0, gap]), np.array([3.0])]),
        ("number", [np.array([3.0, 3.0]), np.array([3.0])]),
        ("number", [np.array([gap, gap]), np.array([gap])]),
        ("number", [np.array([1.0, gap]), np.array([2.0])]),
    ]
    found = encoded(columns)
    assert found.sources.tolist() == [1, 4, 4], "only what differs has coordinates: a gap, and a number and its gap"
    squares = np.sum((found.points[0][:1] - found.points[0][1:]) ** 2, axis=0)
    np.testing.assert_allclose(squares, [2, 1, 2], rtol=1e-12)
    raw = encoded(columns, raw=True).points
    np.testing.assert_allclose([raw[0][0, 1], raw[0][1, 1], raw[1][0, 1]], [1, 1.5, 2], rtol=1e-12)


def test_the_rarest_of_many_categories_are_taken_together():
    texts = np.repeat([f"{k:02}" for k in range(25)], np.arange(30, 5, -1)).astype(object)
    points = encoded([("category", [texts, texts[:1]])]).points[0]
    assert len(np.unique(points, axis=0)) == MOST_CATEGORIES
    assert len(np.unique(points[texts >= "19"], axis=0)) == 1
    assert len(np.unique(points[texts <= "19"], axis=0)) == MOST_CATEGORIES


def test_why_no_pairs_are_compared(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("muhat.files.pairs.MOST_COORDINATES", 1)
    for n, reason in ((LEAST_ROWS, "in tables of up to"), (LEAST_ROWS - 1, f"where both files have {LEAST_ROWS} rows")):
        paths = [
            write(tmp_path / f"{i}.csv", rounded(np.random.default_rng(i).normal(size=(n, 2))), "xy") for i in (1, 2)
        ]
        assert any(f"pairs of columns are compared {reason}" in note for note in found_in(capsys, *paths)["notes"])


def test_correlations_of_pairs_against_scipy():
    rng = np.random.default_rng(0)
    X, Y = (rng.normal(size=(n, 3)) @ rng.normal(size=(3, 3)) for n in (200, 150))
    changes = pair_changes([("number", (X[:, j], Y[:, j])) for j in range(3)])
    for change in changes:
        expected = [stats.spearmanr(*Z[:, list(change.columns)].T).statistic for Z in (X, Y)]
        np.testing.assert_allclose(change.correlations, expected, rtol=0, atol=1e-12)


def test_rows_of_gaps_change_no_pair():
    rng = np.random.default_rng(0)
    X, Y = (rng.normal(size=(n, 3)) @ rng.normal(size=(3, 3)) for n in (60, 50))
    longer = [np.vstack([np.full((9, 3), np.nan), Z, np.full((30, 3), np.nan)]) for Z in (X, Y)]
    found, expected = (
        pair_changes([("number", tuple(Z[:, j] for Z in pair)) for j in range(3)]) for pair in (longer, (X, Y))
    )
    for with_gaps, without in zip(found, expected, strict=True):
        assert with_gaps.columns == without.columns
        numbers = [[change.pvalue, *change.correlations] for change in (with_gaps, without)]
        np.testing.assert_allclose(*numbers, rtol=1e-9)


def test_pairs_keep_their_level_and_ignore_marginal_changes():
    """Of 300 pairs of one dependence and other marginals, more than 32 p-values up to 0.05 have a chance of 0.1 %."""
    rng = np.random.default_rng(1)
    pvalues = []
    for _ in range(300):
        X, Y = (rng.normal(size=(n, 2)) @ [[1.0, 0.8], [0.0, 0.6]] for n in (120, 80))
        Y = np.exp(3 * Y)
        Y[rng.random(Y.shape) < 0.2] = np.nan
        pvalues.append(pair_changes([("number", (X[:, j], Y[:, j])) for j in range(2)])[0].pvalue)
    assert np.sum(np.array(pvalues) <= 0.05) <= 32


def test_column_tests_against_their_oracles():
    rng = np.random.default_rng(0)
    x, y = rng.integers(9, size=70) * 1.0, rng.integers(9, size=45) ** 1.1
    counts = summarised("x", "number", [x, y]).counts
    assert column_differences.smirnov_pvalue(counts) == pytest.approx(
        stats.ks_2samp(x, y, method="exact").pvalue, rel=1e-10
    )
    large = [np.repeat(x, 40), np.repeat(y, 40)]
    assert column_differences.smirnov_pvalue(counts * 40) == pytest.approx(
        stats.ks_2samp(*large, method="asymp").pvalue
    )
    draws = stats.permutation_test((x, y), mood_statistic, n_resamples=4000, rng=1, permutation_type="independent")
    assert column_differences.mood_pvalue(counts) == pytest.approx(draws.pvalue, abs=4 * np.sqrt(0.25 / 4000))
    pvalue = column_differences.categories_pvalue(np.array([[50, 30, 20], [40, 45, 15]]))
    assert pvalue == pytest.approx(stats.chi2_contingency([[50, 30, 20], [40, 45, 15]]).pvalue)


def mood_statistic(x, y, axis=-1):
    ranks = stats.rankdata(np.concatenate([x, y], axis=axis), axis=axis)
    size = ranks.shape[axis]
    return np.sum((np.take(ranks, range(x.shape[axis]), axis=axis) - (size + 1) / 2) ** 2, axis=axis)


def test_holm_against_its_definition():
    pvalues = np.random.default_rng(0).uniform(size=9) ** 3
    order = np.argsort(pvalues)
    expected = [min(1.0, max((9 - j) * pvalues[order[j]] for j in range(rank + 1))) for rank in range(9)]
    np.testing.assert_allclose(column_differences.holm(pvalues)[order], expected, rtol=1e-14)


def test_the_engine_counts_as_numpy_does(tmp_path, monkeypatch):
    """Tables that are too long for memory: the same moments and categories, and sizes to within a threshold's share."""
    rng = np.random.default_rng(0)
    rows = [
        [x, c, "" if g else i]
        for i, (x, c, g) in enumerate(
            zip(rng.normal(size=5000).round(3), rng.choice(list("abc"), 5000), rng.random(5000) < 0.1, strict=True)
        )
    ]
    with opened(write(tmp_path / "t.csv", rows, ("x", "c", "i"))) as table:
        columns = [(column,) for column in table.columns]
        exact = list(summaries.summaries([table], columns))
        monkeypatch.setattr(summaries, "MOST_EXACT_ROWS", 1000)
        monkeypatch.setattr(summaries, "_QUANTILE_ROWS", 1000)
        counted = list(summaries.summaries([table], columns))
    for one, other in zip(exact, counted, strict=True):
        assert (one.missing, one.present, one.counting) == (other.missing, other.present, other.counting)
        for found, expected in zip(one.moments, other.moments, strict=True):
            np.testing.assert_allclose(list(vars(found).values()), list(vars(expected).values()), rtol=1e-12)
    assert exact[1].values.tolist() == counted[1].values.tolist()
    np.testing.assert_array_equal(exact[1].counts, counted[1].counts)
    for j in (0, 2):
        below = [exact[j].counts[0][exact[j].values <= threshold].sum() for threshold in counted[j].values]
        np.testing.assert_array_equal(counted[j].counts[0].cumsum(), below)


@pytest.mark.parametrize("kernel", ["auto", "gaussian", "laplace"])
def test_columns_of_few_values_and_of_huge_scale(tmp_path, capsys, kernel):
    rng = np.random.default_rng(0)
    X, Y = (
        [[float(rng.random() < p), 1e200 * rng.normal(), 1e-200 * rng.normal()] for _ in range(40)] for p in (0.1, 0.9)
    )
    paths = [write(tmp_path / f"{name}.csv", Z, NAMES) for name, Z in (("a", X), ("b", Y))]
    assert named(found_in(capsys, *paths, "--kernel", kernel)) == {"age"}


def test_many_columns_and_few_rows_are_told_honestly(tmp_path, capsys):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(5, 60)), rng.normal(size=(5, 60)) + 9
    paths = [write(tmp_path / f"{name}.csv", Z) for name, Z in (("a", X), ("b", Y))]
    code, out, _ = run(capsys, "compare", *paths)
    assert code == 1
    assert "Which columns differ cannot be told with this few rows." in out
    X, Y = rng.normal(size=(80, 100)), rng.normal(size=(80, 100))
    Y[:, :3] += 1
    paths = [write(tmp_path / f"{name}.csv", Z) for name, Z in (("a", X), ("b", Y))]
    assert named(found_in(capsys, *paths)) == {"column 1", "column 2", "column 3"}


def test_rows_by_seconds_and_by_number(tmp_path, capsys):
    rng = np.random.default_rng(0)
    paths = [write(tmp_path / f"{name}.csv", rng.normal(size=(3000, 2)).round(3)) for name in "ab"]
    found = found_in(capsys, *paths, "--seconds", "0.2", "--resamples", "9")
    used = [file["rows_used_together"] for file in found["files"]]
    assert used[0] == used[1] < 3000
    assert [file["rows_used"] for file in found["files"]] == [3000, 3000]
    assert "all columns together are compared in" in found["notes"][0]
    out = run(capsys, "compare", *paths, "--rows", "50", "--resamples", "9")[1]
    assert "All 3,000 and 3,000 rows were used for single columns, and 50 and 50 of them" in " ".join(out.split())


# --------------------------------------------------------------------------------------------------------------- files


def test_columns_are_counted_on_a_terminal(files, monkeypatch, capsys):
    class Terminal(StringIO):
        def isatty(self):
            return True

    plain = run(capsys, "compare", *files[:2], "--resamples", "9")
    monkeypatch.setattr("sys.stderr", screen := Terminal())
    code = main(["compare", *files[:2], "--resamples", "9"])
    said = [text for text in screen.getvalue().split("\r\x1b[K") if text]
    assert said[:2] == [f"{path}: reading" for path in files[:2]]
    assert said[2:5] == [f"column {j} of 3: {name}" for j, name in enumerate(NAMES, start=1)]
    assert screen.getvalue().endswith("\r\x1b[K")
    assert (code, capsys.readouterr().out) == plain[:2]


def test_columns_are_matched_by_name(files, tmp_path, capsys):
    X, Y = (np.loadtxt(path, delimiter=",", skiprows=1) for path in files[:2])
    left = write(tmp_path / "a.csv", np.column_stack([X, X[:, 0]]), (*NAMES, "extra"))
    right = write(tmp_path / "b.csv", Y[:, ::-1], NAMES[::-1], delimiter=";")
    found, expected = found_in(capsys, left, right), found_in(capsys, *files[:2])
    assert found["columns"] == expected["columns"]
    assert found["notes"] == []
    assert found["not_compared"] == [{"name": "extra", "reason": "only a.csv has it"}]


def test_some_columns_only(files, capsys):
    def names(*options):
        return sorted(column["name"] for column in found_in(capsys, *files[:2], *options)["columns"])

    assert names("--columns", "height", "age") == ["age", "height"]
    assert names("--columns", "*eight") == ["height", "weight"]
    assert names("--exclude", "*eight") == ["age"]
    assert names("--columns", "*e*", "--exclude", "height") == ["age", "weight"]
    assert "has no such column; it has 'age'" in run(capsys, "compare", *files[:2], "--exclude", "w")[2]


def test_columns_that_are_left_out_get_a_word(tmp_path, capsys):
    rng = np.random.default_rng(0)
    rows = [[i, 5, None, f"name {i}", f"${x:,.2f}", x] for i, x in enumerate(rng.uniform(1e3, 1e4, size=150))]
    quoted = [[*row[:4], f'"{row[4]}"', row[5]] for row in rows]
    names = ("id", "five", "empty", "who", "price", "x")
    paths = [write(tmp_path / f"{name}.csv", quoted, names) for name in "ab"]
    found = found_in(capsys, *paths)
    assert [column["name"] for column in found["columns"]] == ["x"]
    notes = "\n".join(found["notes"])
    plain = rows[0][4].replace("$", "").replace(",", "")
    assert f"{paths[0]}: column 'price' is taken as text; write '{rows[0][4]}' as {plain}" in notes
    reason = f"it holds 150 different texts; write '{rows[0][4]}' as {plain}"
    assert found["not_compared"] == [{"name": "price", "reason": reason}]
    assert "column 'who' is left out: it holds 150 different texts" in notes
    assert "all their values are missing: 'empty'" in notes
    assert "one value only: 'five'" in notes
    assert "count the rows (name them by --columns to use them): 'id'" in notes
    assert found_in(capsys, *paths, "--columns", "id", "x")["columns"][0]["name"] == "id"


def test_a_column_of_two_kinds(tmp_path, capsys):
    paths = [
        write(tmp_path / "a.csv", [[i, i % 3] for i in range(9)], "xy"),
        write(tmp_path / "b.csv", [[i * i, "abc"[i % 3]] for i in range(9)], "xy"),
    ]
    reason = "it holds numbers in a.csv and text such as 'a' in b.csv"
    assert found_in(capsys, *paths)["not_compared"] == [{"name": "y", "reason": reason}]
    assert "write the same kind of value in both files" in run(capsys, "compare", *paths, "--columns", "y")[2]
    assert found_in(capsys, *paths, "--exclude", "y")["notes"] == []


RENAMED = {
    "another name": ("Price", "{:.2f}", "only a.csv has it; 'Price' in b.csv may be 'price': give them one name"),
    "a blank": ("pri ce", "{:.2f}", "'pri ce' in b.csv may be 'price'"),
    "a sign": (
        "price",
        "€ {:.2f}",
        "it holds numbers in a.csv and text such as '€ 1.00' in b.csv; write '€ 1.00' as 1.00",
    ),
    "a date": ("price", "10/01/{:.0f}", "write dates such as '10/01/1' as 2025-12-31: year, month, day"),
}


@pytest.mark.parametrize("how", RENAMED)
def test_what_could_not_be_compared_stands_first(how, files, tmp_path, capsys):
    name, written, reason = RENAMED[how]
    first = write(tmp_path / "a.csv", [[i % 7, i] for i in range(40)], ("x", "price"))
    second = write(tmp_path / "b.csv", [[i % 7, written.format(3 * i + 1)] for i in range(40)], ("x", name))
    page = tmp_path / "page.html"
    code, out, _ = run(capsys, "compare", first, second, "--resamples", "19", "--html", str(page))
    text = " ".join(out.split())
    assert code == 0
    assert text.startswith("No difference found between a.csv and b.csv in the columns that could be compared (p = ")
    assert f"'price' could not be compared: {reason}" in text or reason in text
    assert text.index("could not be compared:") < text.index("All 40 and 40 rows")
    assert "no difference found in the columns that could be compared" in page.read_text(encoding="utf-8")
    found = found_in(capsys, first, second, "--resamples", "19")
    assert reason in found["not_compared"][0]["reason"]
    code, out, err = run(capsys, "compare", first, second, "--resamples", "19", "--strict")
    assert code == 2
    assert "--strict: 'price'" in err
    excluded = ["--exclude", "price", *([] if name == "price" else [name])]
    if name == "price":
        assert run(capsys, "compare", first, second, "--resamples", "19", "--strict", *excluded)[0] == 0


@pytest.mark.parametrize("sign", ["|", "^", ":", "\t"])
def test_other_separators(sign, files, tmp_path, capsys):
    """Found, or given by an option."""
    other = tmp_path / "other.csv"
    other.write_text(Path(files[1]).read_text().replace(",", sign))
    if sign == ":":
        assert "no column in common" in run(capsys, "compare", str(other), files[0])[2]
        third = tmp_path / "third.csv"
        third.write_text(Path(files[0]).read_text().replace(",", sign))
        assert run(capsys, "compare", str(third), str(other), "--delimiter", sign)[0] == 1
    else:
        assert run(capsys, "compare", files[0], str(other))[0] == 1


@pytest.mark.parametrize("arguments", [("--delimiter", "ab"), ("--delimiter", "x"), ("--no-such-option",)])
def test_a_wrong_option_shows_the_usage_of_its_command(arguments, files, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["compare", *files[:2], *arguments])
    assert ended.value.code == 2
    assert "usage: muhat compare" in capsys.readouterr().err


def test_files_of_one_name_are_told_apart(files, tmp_path, capsys):
    same = tmp_path / "b.csv"
    same.write_bytes(Path(files[0]).read_bytes())
    out = " ".join(run(capsys, "compare", str(same), files[1])[1].split())
    assert f"{same} and {files[1]} differ" in out


def test_all_formats_give_one_answer(files, tmp_path, capsys):
    polars = pytest.importorskip("polars")
    X, Y = (np.loadtxt(path, delimiter=",", skiprows=1) for path in files[:2])
    paths = {suffix: [tmp_path / f"{name}.{suffix}" for name in "ab"] for suffix in ("npy", "parquet", "csv")}
    for i, Z in enumerate((X, Y)):
        np.save(paths["npy"][i], Z)
        polars.DataFrame(dict(zip(NAMES, Z.T, strict=True)) | {"who": [[1.0]] * len(Z)}).write_parquet(
            paths["parquet"][i]
        )
        write(paths["csv"][i], Z)
    found = {suffix: found_in(capsys, *map(str, both)) for suffix, both in paths.items()}
    assert len({one["all_columns_together"]["normalised_squared_mmd"] for one in found.values()}) == 1
    assert len({one["pvalue"] for one in found.values()}) == 1
    assert found["csv"]["columns"][0]["name"] == "column 3"
    assert found["parquet"]["not_compared"][0]["reason"].startswith("it holds values of type DOUBLE[]")
    assert "row" in found["npy"]["files"][0]["rows_most_unlike"][0]


# ------------------------------------------------------------------------------------------------------------- failures

GOOD = "x,y\n1,2\n2,5\n3,3\n"
BAD_PAIRS = {
    "no common columns": (GOOD, "u,v\n1,2\n3,4\n", "in common: .*'x', 'y' and .*'u', 'v'; give columns of one meaning"),
    "header in one": (GOOD, "1,2\n3,4\n", "names its columns and .* does not; .*--no-header"),
    "two widths": ("1,2\n3,4\n", "1,2,3\n4,5,7\n", "b.csv have 2 and 3 columns; .*give both files a header"),
    "one row": (GOOD, "x,y\n1,2\n", "b.csv has 1 row; at least 2 are needed"),
    "gaps everywhere": ("x,y\n,\n,\n", "x,y\n,\n,\n", "nothing is left .* all their values are missing: 'x', 'y'"),
    "all rows equal": ("x\n1\n1\n", "x\n1\n1\n", "nothing is left to tell rows apart by; .* one value only: 'x'"),
    "words alone": ("x\na\nb\n", GOOD, "nothing is left|no columns are left"),
}


@pytest.mark.parametrize("name", BAD_PAIRS)
def test_two_files_that_do_not_go_together(name, tmp_path, capsys):
    first, second, message = BAD_PAIRS[name]
    (tmp_path / "a.csv").write_text(first)
    (tmp_path / "b.csv").write_text(second)
    code, out, err = run(capsys, "compare", str(tmp_path / "a.csv"), str(tmp_path / "b.csv"))
    assert (code, out) == (2, "")
    assert err.startswith("muhat compare: ")
    assert re.search(message, err), err


@pytest.mark.parametrize("arguments", [["--level", "1.5"], ["--level", "x"], ["--rows", "1"], ["--kernel", "rbf"], []])
def test_a_wrong_call_ends_with_two(arguments, files, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["compare", *(files[:2] if arguments else files[:1]), *arguments])
    assert ended.value.code == 2


def test_too_many_rows_for_the_memory(files, capsys, monkeypatch):
    for name, value in {"resources.free_memory": lambda: 1000.0, "gram.BLOCK": 10, "gram.LARGE": 10}.items():
        monkeypatch.setattr(f"muhat.linalg.{name}", value)
    code, _, err = run(capsys, "compare", *files[:2])
    assert code == 2
    assert err.rstrip().endswith("take fewer by --rows")


@pytest.mark.parametrize("package", ["duckdb", "jinja2", "matplotlib"])
def test_missing_packages_are_named(package, files, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, package, None)
    code, out, err = run(capsys, "compare", *files[:2], "--html", str(tmp_path / "page.html"))
    assert (code, out) == (2, "")
    assert f'needs {package}; pip install "muhat[files]"' in err
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.name != "posix", reason="pipes of POSIX")
@pytest.mark.slow
def test_nobody_reads_on(files):
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "muhat.cli.command_line", "compare", *files[:2], "--resamples", "9"]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (2, "muhat compare: [Errno 32] Broken pipe\n")


@pytest.mark.parametrize("error", [ZeroDivisionError, MemoryError, RuntimeError, AssertionError, KeyError])
def test_anything_unexpected_ends_with_two_and_one_line(error, files, capsys, monkeypatch):
    """1 would say that the files differ."""

    def fail(*_, **__):
        raise error("a\nSELECT b")

    monkeypatch.setattr("muhat.files.compare.mmd_test", fail)
    code, out, err = run(capsys, "compare", *files[:2])
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("muhat compare: ")
    monkeypatch.setenv("MUHAT_DEBUG", "1")
    assert "Traceback" in run(capsys, "compare", *files[:2])[2]


def test_what_is_being_done_is_repeated_where_there_is_no_terminal(files, capsys, monkeypatch):
    monkeypatch.setattr("muhat.progress.SECONDS", 0.01)
    assert "all columns together: 80 and 60 rows\n" in run(capsys, "compare", *files[:2])[2]
    assert "all columns together" not in capsys.readouterr().err, "a library call is silent"


# ----------------------------------------------------------------------------------------------------------------- page


@pytest.fixture(scope="module")
def page(files, tmp_path_factory):
    target = tmp_path_factory.mktemp("page") / "report.html"
    assert main(["compare", *files[:2], "--html", str(target), "--resamples", "99"]) == 1
    return target


def test_the_page_is_whole_alone_and_the_same_again(page, files, capsys):
    text = page.read_text(encoding="utf-8")
    assert [path.name for path in page.parent.iterdir()] == ["report.html"]
    assert not re.search(r'(?:src|href|xlink:href)="(?!#)', text)
    assert ">missing</th>" not in text, "where nothing is missing, there is no column for it"
    before = page.read_bytes()
    main(["compare", *files[:2], "--html", str(page), "--resamples", "99"])
    assert page.read_bytes() == before


def test_columns_that_a_page_does_not_show_are_counted(files, tmp_path, monkeypatch):
    monkeypatch.setattr("muhat.files.pages.MOST_COLUMNS", 2)
    target = tmp_path / "p.html"
    for command in (["compare", *files[:2], "--resamples", "19"], ["describe", files[0]]):
        main([*command, "--html", str(target)])
        text = target.read_text(encoding="utf-8")
        assert "… and 1 more columns" in text


@pytest.mark.parametrize(
    ("target", "message"), [("{a}", "would write over the table"), ("{folder}", "must be a file"), ("{a}/x", "must be")]
)
def test_a_page_that_cannot_be_written(files, target, message, capsys):
    before = Path(files[0]).read_bytes()
    named = target.format(a=files[0], folder=Path(files[0]).parent)
    code, out, err = run(capsys, "compare", *files[:2], "--html", named)
    assert (code, out) == (2, "")
    assert message in err
    assert Path(files[0]).read_bytes() == before


class Tags(HTMLParser):
    """The elements of a page and its text."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.text = set(), ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        assert not [name for name, _ in attrs if name.startswith("on")]

    def handle_data(self, data):
        self.text += data


@pytest.mark.skipif(os.name != "posix", reason="such names are not files there")
def test_names_and_values_are_text_not_markup(tmp_path, page):
    rng = np.random.default_rng(0)
    script = "<script>alert(1)</script>"
    rows = [[[x, f"<img src=x onerror=alert({int(x > 0)})>"] for x in rng.normal(size=40) + shift] for shift in (0, 3)]
    paths = [
        write(tmp_path / f"<b>{i}&.csv", part, (f"{script}$x$", '"<i>""c""</i>\x07"')) for i, part in enumerate(rows)
    ]
    target = tmp_path / "p.html"
    main(["compare", *paths, "--html", str(target), "--resamples", "19"])
    found = Tags(target.read_text(encoding="utf-8"))
    assert found.tags <= Tags(page.read_text(encoding="utf-8")).tags
    for text in (f"{script}$x$", '<i>"c"</i>�', "<img src=x onerror", "<b>0&.csv"):
        assert text in found.text


@pytest.fixture(scope="module")
def browser():
    require_chromium()
    with Browser() as opened:
        yield opened


@pytest.mark.slow
@pytest.mark.parametrize("width", [320, 1280])
def test_the_page_in_a_browser(browser, page, width):
    browser.open(page, width=width, dark=width == 320)
    assert browser.requests == [page.resolve().as_uri()]
    assert browser.complaints == []
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert browser.evaluate("document.querySelectorAll('figure svg').length") == 1
    assert browser.evaluate("document.querySelectorAll('.spark svg').length") == 3
    assert browser.evaluate("document.querySelector('h1').textContent") == "a.csv and b.csv differ"
