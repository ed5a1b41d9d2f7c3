"""The result of a comparison: dictionary, frame, page, picture, notebook, and the assertion for tests."""

import json
import re

import numpy as np
import pytest

import muhat as mh


@pytest.fixture(scope="module")
def result():
    rng = np.random.default_rng(0)
    tables = []
    for mean, sign, lost in ((0, 1, 0.05), (2, -1, 0.5)):
        x = rng.normal(mean, 1, size=120)
        table = {"x": x, "y": sign * x + rng.normal(size=120), "<b>&": rng.choice(list("uvw"), 120)}
        tables.append({**table, "z": np.where(rng.random(120) < lost, np.nan, x)})
    a, b = tables
    return mh.compare(a, b, names=("old & <tag>", "new"), random_state=0, n_resamples=99)


def test_the_dictionary_is_json(result):
    found = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert found["differs"] is True
    assert found["columns"][0]["effect_name"] in ("KS distance", "total variation")
    assert {pair["significant"] for pair in found["pairs"]} <= {True, False}
    assert found["joint"]["in_words"].startswith("the rows of old & <tag> and new differ")
    assert " Y" not in found["joint"]["in_words"]


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_the_frame_of_each_library(result, backend):
    pytest.importorskip(backend)
    frame = result.to_frame(backend)
    assert type(frame).__module__.startswith(backend)
    assert len(frame["effect"]) == 4


def test_html_is_escaped_and_draws_a_histogram_per_column(result, tmp_path):
    result.save_html(tmp_path / "r.html")
    for html in (result._repr_html_(), (tmp_path / "r.html").read_text(encoding="utf-8")):
        assert "old &amp; &lt;tag&gt;" in html
        assert "<tag>" not in html
        assert html.count("<svg") == 4
        assert "z and x" in html or "x and y" in html, "the changed pair"
        assert "http" not in re.sub(r"http-equiv", "", html)


def test_the_picture_has_a_histogram_per_column(result):
    plt = pytest.importorskip("matplotlib.pyplot")
    figure = result.plot(3)
    assert sum(bool(ax.patches) for ax in figure.axes) == 3
    plt.close(figure)


def test_a_column_is_found_by_its_name_and_shows_itself_in_a_line():
    rng = np.random.default_rng(0)
    a, b = ({"x": rng.normal(size=900), "income": rng.normal(size=900)} for _ in "ab")
    b["income"][:300] = np.nan
    result = mh.compare(a, b, random_state=0)
    column = result["income"]
    assert column.name == "income"
    assert result.columns["income"] is column
    assert repr(column).startswith("ColumnResult('income', KS distance 0.0")
    assert repr(column.missing).startswith("Finding(difference of shares 0.3333, ")
    assert repr(result.pairs[0]).startswith("PairResult('x' and 'income', rank correlation ")
    assert max(len(repr(found)) for found in (column, column.missing, result.pairs[0])) < 120
    with pytest.raises(KeyError, match="'age' is none of the columns"):
        result["age"]


def test_the_frame_says_whether_missing_values_differ():
    rng = np.random.default_rng(0)
    a, b = ({"x": rng.normal(size=900), "y": rng.normal(size=900)} for _ in "ab")
    b["y"][:300] = np.nan
    for at_least, differs in ((0.0, [True, False]), (0.5, [False, False])):
        frame = mh.compare(a, b, at_least, random_state=0).to_frame("pandas").set_index("column").loc[["y", "x"]]
        assert frame["missing_significant"].tolist() == [True, False]
        assert frame["missing_differs"].tolist() == differs
        assert not frame["significant"].any()


def test_the_assertion_says_what_differs():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 150, 2))
    mh.testing.assert_same_distribution(a, b)
    with pytest.raises(AssertionError, match=r"(?s)before and after differ by more than 5 %.*column 1 \(KS distance"):
        mh.testing.assert_same_distribution(a, b + np.array([0, 2]), at_least=0.05, names=("before", "after"))


def test_the_assertion_fails_where_columns_are_lost_or_changed_kind_unless_allowed():
    x, y = np.random.default_rng(0).normal(size=(2, 60))
    table = {"x": x, "y": y}
    for other in ({"x": x[::-1]}, {**table, "z": y}, {"x": x[::-1], "y": [f"{value:.0f} kg" for value in y]}):
        for at_least in (0.0, 0.1):
            with pytest.raises(
                AssertionError, match=r"'[yz]' could not be compared; pass exclude=\['[yz]'\] or strict"
            ):
                mh.testing.assert_same_distribution(table, other, at_least)
            mh.testing.assert_same_distribution(table, other, at_least, strict=False)
    with pytest.raises(AssertionError, match=r"in the columns that could be compared"):
        mh.testing.assert_same_distribution(table, {"x": x[::-1]}, 0.1)
    mh.testing.assert_same_distribution(table, {"x": x[::-1]}, exclude=["y"])
    mh.testing.assert_same_distribution({"x": x[::-1]}, table, exclude=["y"])
    mh.testing.assert_same_distribution(table, {**table, "y": y[::-1], "z": y}, columns=["x", "y"])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_notebook_shows_the_result():
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    code = [
        "import numpy as np, muhat as mh",
        "rng = np.random.default_rng(0)",
        'mh.compare(rng.normal(size=(80, 2)), rng.normal(1, 1, size=(80, 2)), names=("old", "new"), random_state=0)',
    ]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("\n".join(code))])
    done = nbclient.NotebookClient(book, timeout=120, kernel_name="python3").execute()
    (output,) = done.cells[0].outputs
    assert "old and new differ" in output["data"]["text/html"]
    assert "<svg" in output["data"]["text/html"]
    assert output["data"]["text/plain"].startswith("Comparison('old', 'new', differs=True")
