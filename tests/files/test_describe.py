"""``muhat describe``: what it says of a file, and of one that is not as it should be."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from browser import Browser, require_chromium
from table_files import run, write

import muhat as mh
from muhat.cli.command_line import main
from muhat.files.describe import effective_rank, estimated_gains
from muhat.files.pictures import _plane

X = np.random.default_rng(0).normal(size=(40, 3)) * [1.0, 20.0, 300.0]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    rows = X.tolist()
    rows[7] = [9.0, 200.0, -4000.0]
    return write(tmp_path_factory.mktemp("file") / "table.csv", [*rows, rows[0]], "xyz")


# ------------------------------------------------------------------------------------------------------------ findings


def test_the_answer_comes_first(path, capsys):
    code, out, err = run(capsys, "describe", path)
    assert (code, err) == (0, "")
    assert out.startswith("table.csv: 41 rows of 3 columns; 1 repeats another.\n1 row lies far from the others.\n")
    assert "\n\nUse SpectralKernelMean: it saves" in out
    assert out.index("Least typical rows") < out.index("What shrinkage would save") < out.index("Use Spectral")
    assert "an estimate" in out
    assert re.search(r"line +typicality.*\n +9 ", out), "the far row stands in line 9"
    assert "RobustKernelMean" in out


def test_json_holds_the_numbers_of_the_library(path, capsys):
    found = json.loads(run(capsys, "describe", path, "--json", "--raw")[1])
    rows = np.loadtxt(path, delimiter=",", skiprows=1)
    means = [mh.KernelMean(), mh.ShrunkKernelMean(), mh.SpectralKernelMean(), mh.AdaptiveKernelMean()]
    assert [e["loo_score"] for e in found["estimators"]] == [mean.fit(rows).loo_score_ for mean in means]
    assert [e["estimator"] for e in found["estimators"]] == [type(mean).__name__ for mean in means]
    assert found["kernel"] == repr(means[0].kernel_)
    assert found["least_typical_rows"][0]["line"] == 9
    assert found["duplicate_rows"] == 1
    summary = {"name": "y", "smallest": rows[:, 1].min(), "largest": rows[:, 1].max()}
    assert found["columns"][1] | summary == found["columns"][1]
    assert found["columns"][1]["standard_deviation"] == pytest.approx(rows[:, 1].std(ddof=1), rel=1e-12)


@pytest.mark.slow
def test_the_estimated_gains_are_right_on_average():
    """Against losses that are known exactly, over 60 samples; standard errors of the differences are about 0.02."""
    kernel = mh.Gaussian(4.0)
    P = mh.GaussianMixture([1.0], [np.zeros(10)], [1.0])
    truth = mh.embed(kernel, P)
    means = [mh.KernelMean(kernel), mh.ShrunkKernelMean(kernel), mh.SpectralKernelMean(kernel)]
    means.append(mh.AdaptiveKernelMean(kernel))
    gains, losses = [], []
    for seed in range(60):
        rows = P.sample(10, random_state=seed)
        losses.append([mean.fit(rows).mean_.distance(truth) ** 2 for mean in means])
        gains.append([choice.gain for choice in estimated_gains(means[0], rows)])
    average = np.mean(losses, axis=0)
    np.testing.assert_allclose(np.mean(gains, axis=0), 1 - average / average[0], atol=0.08)


def test_effective_rank_of_equal_directions():
    assert effective_rank(np.kron(np.eye(4), np.ones((3, 3)))) == pytest.approx(3.0, rel=1e-10)


@pytest.mark.parametrize("shift", [0.0, 1e8])
@pytest.mark.parametrize(("n", "d"), [(2, 2), (3, 7), (500, 4)])
def test_plane_of_most_variance(n, d, shift):
    """The picture's coordinates, up to their signs; 500 rows in 4 columns are where a covariance matrix is cheaper."""
    rows = np.random.default_rng(n).normal(size=(n, d)) * np.arange(1, d + 1) + shift
    left, sizes, _ = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)
    coordinates, shares = _plane(rows)
    np.testing.assert_allclose(np.abs(coordinates), np.abs(left * sizes)[:, :2], rtol=0, atol=1e-12 * sizes[0])
    np.testing.assert_allclose(shares, (sizes**2 / (sizes**2).sum())[:2], rtol=0, atol=1e-14)


@pytest.mark.parametrize(
    ("n", "draw", "word"),
    [
        (30, "normal", "AdaptiveKernelMean: it saves"),
        (300, "exponential", "KernelMean, the plain average: shrinkage would save less"),
        (3000, "normal", "KernelMean, the plain average: of 3,000 rows"),
    ],
)
def test_advice_follows_gains_and_rows(n, draw, word, tmp_path, capsys):
    rows = getattr(np.random.default_rng(1), draw)(size=(n, 2))
    out = run(capsys, "describe", write(tmp_path / "t.csv", rows, "xy"), "--rows", "300")[1]
    assert f"Use {word}" in " ".join(out.split())
    assert ("kernel means are of 300 of 3,000 rows, drawn at random; --rows N" in " ".join(out.split())) == (n > 300)


def test_odd_rows_are_shown_by_the_columns_that_make_them_odd(tmp_path, capsys):
    """The tenth column stands out by far, and the third holds the largest value by a hair."""
    rows = np.random.default_rng(0).normal(size=(60, 12))
    rows[30, 9], rows[30, 2] = 40.0, rows[:, 2].max() + 1e-3
    path = write(tmp_path / "t.csv", rows, [f"v{j}" for j in range(12)])
    out = run(capsys, "describe", path)[1]
    line = next(line for line in out.splitlines() if line.startswith("  32 "))
    assert line.split()[2:5] == ["v9", "=", "40"]
    assert line.index("v9") < line.index("v2")
    because = json.loads(run(capsys, "describe", path, "--json")[1])["least_typical_rows"][0]["because"]
    assert because[0] == {"column": "v9", "value": 40.0, "side": "high", "share_of_file": 1 / 60}


def test_the_seed_alone_decides(tmp_path, capsys):
    path = write(tmp_path / "t.csv", np.random.default_rng(1).normal(size=(300, 2)), "xy")
    outs = [run(capsys, "describe", path, "--rows", "50", "--json", "--seed", seed)[1] for seed in "001"]
    assert outs[0] == outs[1] != outs[2]


@pytest.mark.slow
def test_all_rows_count_and_no_row_is_left_out(tmp_path, capsys):
    """Extremes of the file, not of the sample; categories, dates and gaps."""
    rng = np.random.default_rng(0)
    rows = [
        [x, f"2024-01-{1 + i % 28:02d}", "ab"[i % 2], None if i % 4 else 1.5 * i]
        for i, x in enumerate(rng.normal(size=2000))
    ]
    found = json.loads(run(capsys, "describe", write(tmp_path / "t.csv", rows, ("x", "day", "c", "gap")), "--json")[1])
    x, day, c, gap = found["columns"]
    values = np.array([row[0] for row in rows])
    assert (found["rows_in_file"], found["rows_used"]) == (2000, 1000)
    assert (x["smallest"], x["largest"], x["missing"]) == (values.min(), values.max(), 0)
    assert [column["kind"] for column in (x, day, c, gap)] == ["number", "date", "category", "number"]
    assert c["counts"] == [{"value": "a", "rows": 1000}, {"value": "b", "rows": 1000}]
    assert (gap["missing"], gap["largest"]) == (1500, 1.5 * 1996)
    assert "2024-01-28" in run(capsys, "describe", str(tmp_path / "t.csv"))[1]


def test_columns_without_names_have_numbers(tmp_path, capsys):
    np.save(tmp_path / "t.npy", X)
    out = run(capsys, "describe", str(tmp_path / "t.npy"), "--json", "--columns", "3")[1]
    assert [column["name"] for column in json.loads(out)["columns"]] == ["column 3"]


# ------------------------------------------------------------------------------------------------------------- writing


def test_nothing_is_written_unless_asked(path, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    beside = sorted(Path(path).parent.iterdir())
    run(capsys, "describe", path, "--json")
    run(capsys, "compare", path, path, "--resamples", "9")
    assert not list(tmp_path.iterdir())
    assert sorted(Path(path).parent.iterdir()) == beside


def test_an_unknown_column(path, capsys):
    assert "has no such column; it has 'x', 'y', 'z'" in run(capsys, "describe", path, "--columns", "w")[2]


# ---------------------------------------------------------------------------------------------------------------- page


@pytest.mark.slow
def test_the_page_in_a_browser(path, tmp_path):
    require_chromium()
    target = tmp_path / "report.html"
    assert main(["describe", path, "--html", str(target)]) == 0
    with Browser() as browser:
        browser.open(target, width=390)
        assert browser.requests == [target.resolve().as_uri()]
        assert browser.complaints == []
        assert browser.evaluate("document.documentElement.scrollWidth") <= 390
        assert browser.evaluate("document.querySelectorAll('figure svg').length") == 2


def test_equal_rows_leave_nothing_to_save():
    points = np.ones((6, 2))
    gains = [choice.gain for choice in estimated_gains(mh.KernelMean(mh.Gaussian(1.0)).fit(points), points)]
    assert gains == [0.0] * 4
