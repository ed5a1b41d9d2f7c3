"""``muhat describe``: kinds, missing values, extremes, pairs that depend, unusual rows, and its page."""

import json
from pathlib import Path

import numpy as np
import pytest
from table_files import run, write


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    y, kind = 2 * x + 0.1 * rng.normal(size=200), rng.choice(list("abc"), 200)
    rows = [[f"{x[i]:.4f}", f"{y[i]:.4f}", kind[i], 7] for i in range(200)]
    for i in range(20):
        rows[i][1] = None
    rows[50][0] = "99"
    rows[60] = rows[61]
    return write(tmp_path_factory.mktemp("describe") / "t.csv", rows, ("x", "y", "kind", "seven"))


def test_a_profile_of_what_the_table_holds(path, capsys):
    code, out, err = run(capsys, "describe", path)
    assert (code, err) == (0, "")
    assert out.startswith("t.csv: 200 rows of 4 columns; 1 row repeats another.")
    assert "1 column has missing values, most of them y (10 %)." in out
    assert "1 column holds a single value: seven." in out
    assert "Pairs that depend on each other" in out
    assert "x = 99 (0.5 % of all rows as high)" in out


def test_json_holds_the_numbers(path, capsys):
    found = json.loads(run(capsys, "describe", path, "--json")[1])
    columns = {column["name"]: column for column in found["columns"]}
    x = np.array([float(line.split(",")[0]) for line in Path(path).read_text().splitlines()[1:]])
    assert columns["x"]["mean"] == pytest.approx(x.mean(), rel=1e-12)
    assert columns["x"]["standard_deviation"] == pytest.approx(x.std(ddof=1), rel=1e-12)
    assert (columns["x"]["largest"], columns["y"]["missing"]) == (99.0, 20)
    assert sum(count["rows"] for count in columns["kind"]["counts"]) == 200
    assert found["pairs"][0]["names"] == ["x", "y"]
    assert found["pairs"][0]["rank_correlation"] > 0.9
    assert found["unusual_rows"][0]["number"] == 52, "the line of the file"
    assert found["unusual_rows"][0]["reasons"][0]["column"] == "x"
    assert json.loads(run(capsys, "describe", path, "--json")[1]) == found


def test_options_and_page(path, tmp_path, capsys):
    target = tmp_path / "page.html"
    out = run(capsys, "describe", path, "--columns", "x", "k*", "--rows", "50", "--html", str(target))[1]
    assert "seven" not in out
    assert "pairs and unusual rows are of 50 of the 200 rows" in " ".join(out.split())
    assert "<svg" in target.read_text(encoding="utf-8")
    code, _, err = run(capsys, "describe", path, "--columns", "none")
    assert code == 2
    assert "t.csv has no such column; it has 'x', 'y', 'kind', 'seven'" in err


def test_columns_without_names_have_numbers(tmp_path, capsys):
    out = run(capsys, "describe", write(tmp_path / "t.csv", [[1, 2], [3, 4], [5, 7]]))[1]
    assert "column 1" in out
    assert "column 2" in out
