"""``muhat describe``: what it says of a file, and of one that is not as it should be."""

import json
import os
import re
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from browser import Browser, require_chromium

import muhat as mh
from muhat.command_line import main
from muhat.files import csv_format
from muhat.files.csv_format import MISSING
from muhat.files.describe import effective_rank, estimated_gains
from muhat.files.pictures import _plane
from muhat.files.sheets import Reading, read_sheet

X = np.random.default_rng(0).normal(size=(40, 3)) * [1.0, 20.0, 300.0]


def write(path, rows, header="x,y,z"):
    path.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n", encoding="utf-8")
    return str(path)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    rows = X.tolist()
    rows[7] = [9.0, 200.0, -4000.0]
    return write(tmp_path_factory.mktemp("file") / "table.csv", [*rows, rows[0]])


def run(capsys, *arguments):
    code = main(list(arguments))
    out, err = capsys.readouterr()
    return code, out, err


# ------------------------------------------------------------------------------------------------------------ findings


def test_the_answer_comes_first(path, capsys):
    code, out, err = run(capsys, "describe", path)
    assert (code, err) == (0, "")
    assert out.startswith("table.csv: 41 rows of 3 columns; 1 repeats another.\nUse SpectralKernelMean: it saves")
    assert "an estimate" in out
    assert re.search(r"line +typicality.*\n +9 ", out), "the far row stands in line 9"
    assert "RobustKernelMean" in out


def test_json_holds_the_numbers_of_the_library(path, capsys):
    found = json.loads(run(capsys, "describe", path, "--json", "--raw")[1])
    rows = np.loadtxt(path, delimiter=",", skiprows=1)
    means = [mh.KernelMean(), mh.ShrunkKernelMean(), mh.SpectralKernelMean(), mh.AdaptiveKernelMean()]
    assert [e["loo_score"] for e in found["estimators"]] == [mean.fit(rows).loo_score_ for mean in means]
    assert [e["estimator"] for e in found["estimators"]] == [type(mean).__name__ for mean in means]
    assert found["bandwidth"] == means[0].kernel_.bandwidth
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
    out = run(capsys, "describe", write(tmp_path / "t.csv", rows, "x,y"), "--rows", "300")[1]
    assert f"Use {word}" in " ".join(out.split())
    assert ("300 of 3,000 rows, drawn at random; --rows N" in " ".join(out.split())) == (n > 300)


def test_the_seed_alone_decides(tmp_path, capsys):
    path = write(tmp_path / "t.csv", np.random.default_rng(1).normal(size=(300, 2)), "x,y")
    outs = [run(capsys, "describe", path, "--rows", "50", "--json", "--seed", seed)[1] for seed in "001"]
    assert outs[0] == outs[1] != outs[2]


# --------------------------------------------------------------------------------------------------------------- files


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_separators_and_encodings(encoding, delimiter, tmp_path):
    lines = ["größe 1", "b"], ["1.5", "2"], [" 2.5 ", "-1e3"], ['"4"', "0"]
    (tmp_path / "t.csv").write_text("\r\n".join(delimiter.join(line) for line in lines), encoding=encoding)
    sheet = read_sheet(str(tmp_path / "t.csv"), Reading())
    np.testing.assert_array_equal(sheet.values, [[1.5, 2], [2.5, -1000], [4, 0]])
    assert sheet.lines.tolist() == [2, 3, 4]
    assert sheet.names == ("größe 1", "b")


def test_decimal_commas_go_with_semicolons(tmp_path):
    (tmp_path / "t.csv").write_text("a;b\n1,5;2\n-3,25;4\n")
    np.testing.assert_array_equal(read_sheet(str(tmp_path / "t.csv"), Reading()).values, [[1.5, 2], [-3.25, 4]])


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a,b\n1,2\n", ("a", "b")),
        ("1,2\n3,4\n", ("column 1", "column 2")),
        ("a,,a\n1,2,3\n", ("a (column 1)", "column 2", "a (column 3)")),
        ("\n\na,b\n\n1,2\n \n", ("a", "b")),
        ("x\n1\n2\n", ("x",)),
    ],
)
def test_names_of_columns(text, names, tmp_path):
    (tmp_path / "t.csv").write_text(text)
    assert read_sheet(str(tmp_path / "t.csv"), Reading()).names == names


def test_a_header_of_years_is_one_if_asked(tmp_path):
    (tmp_path / "t.csv").write_text("2019,2020\n1,2\n3,4\n")
    assert read_sheet(str(tmp_path / "t.csv"), Reading()).total == 3
    sheet = read_sheet(str(tmp_path / "t.csv"), Reading(header=True))
    assert (sheet.total, sheet.names) == (2, ("2019", "2020"))


@pytest.mark.parametrize("word", [*sorted(MISSING), "NaN", " NA ", "inf"])
def test_rows_with_missing_values_are_dropped_with_a_count(word, tmp_path, capsys):
    path = write(tmp_path / "t.csv", [*X.tolist(), [1.0, word, 2.0]])
    out = run(capsys, "describe", path, "--json")[1]
    assert json.loads(out)["rows_with_missing_values"] == 1
    assert json.loads(out)["notes"] == [f"{path}: 1 of 41 rows (2.4 %) left out, for missing values"]


def test_text_dates_constants_and_counters_get_a_word(tmp_path, capsys):
    rows = [[i, "Oslo", f"2024-01-{i:02d}", 5, "", x] for i, x in enumerate(X[:28, 0], start=1)]
    path = write(tmp_path / "t.csv", rows, "id,city,when,five,empty,x")
    notes = json.loads(run(capsys, "describe", path, "--json")[1])["notes"]
    assert notes == [
        f"{path}: column 'city' is left out: it holds text such as 'Oslo'",
        f"{path}: column 'when' is left out: it holds text such as '2024-01-01'",
        f"{path}: left out, since all their values are missing: 'empty'",
        "left out, since they hold one value only: 'five'",
        f"{path}: column 'id' counts the rows; leave it out by --columns",
    ]
    code, _, err = run(capsys, "describe", path, "--columns", "x", "city")
    assert code == 2
    assert "--columns city" in err
    assert "holds text such as 'Oslo'; name columns of numbers" in err


def test_a_column_that_varies_in_dropped_rows_alone(tmp_path, capsys):
    path = write(tmp_path / "t.csv", [[1, 2, x] for x in X[:9, 0]] + [[7, "", 1]])
    code, out, _ = run(capsys, "describe", path, "--json")
    assert code == 0
    assert [column["name"] for column in json.loads(out)["columns"]] == ["z"]


def test_columns_without_names_have_numbers(tmp_path, capsys):
    np.save(tmp_path / "t.npy", X)
    out = run(capsys, "describe", str(tmp_path / "t.npy"), "--json", "--columns", "3")[1]
    assert [column["name"] for column in json.loads(out)["columns"]] == ["column 3"]


# ------------------------------------------------------------------------------------------------------------ failures

NUMBERS = "".join(f"{i * 0.37 % 1},{i * 0.71 % 1}\n" for i in range(20))
BAD_FILES = {
    "empty": (b"", "is empty"),
    "blank": (b"\n \n\n", "is empty"),
    "header alone": (b"x,y\n", "has a header and no rows; .*--no-header"),
    "a word among numbers": (f"x,y\n{NUMBERS}0.3,twelve\n".encode(), "line 22, column 'y': 'twelve' is not a number"),
    "ragged": (b"x,y\n1,2\n3,4,5\n", "line 3: 3 cells, and 2 in the first row; give every row the same number"),
    "text alone": (b"name,city\nbob,rome\nann,oslo\n", "no column of numbers: 'name' holds text such as 'bob'"),
    "spaces": (b"1.0 2.0\n3.0 4.0\n", "separated by commas, semicolons or tabs"),
    "open quote": (b'x,y\n"1,2\n' + b"3,4\n" * 40_000, "quotation mark not closed"),
    "bytes": (bytes(range(256)), "is not text; save the table as CSV"),
    "Excel": (b"PK\x03\x04", "Excel files .* save the table as CSV"),
    "JSON": (b'{"x": [1, 2], "y": [3, 4]}', "is JSON; save the table as CSV"),
    "a page": (b"<!doctype html><table><tr><td>1</td></tr></table>", "is HTML or XML; export the table as CSV"),
    "gzip": (b"\x1f\x8b\x08", "compressed; unpack it first"),
    "endless line": (b"1," * 600_000, "line 1: more than 1,048,576 characters"),
    "half an NPY": (b"\x93NUMPY\x01\x00", "holds no array of numbers"),
    "half a Parquet": (b"PAR1xxxx", "damaged Parquet file"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_files_are_named_with_a_remedy(name, tmp_path, capsys):
    content, message = BAD_FILES[name]
    if name == "half a Parquet":
        pytest.importorskip("polars")
    (tmp_path / "t.csv").write_bytes(content)
    code, out, err = run(capsys, "describe", str(tmp_path / "t.csv"))
    assert (code, out) == (2, "")
    assert err.startswith("muhat describe: ")
    assert str(tmp_path / "t.csv") in err
    assert re.search(message, err), err
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"], "nothing is written unless asked"


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((2, 2, 2)), r"shape \(2, 2, 2\); save one of two dimensions"),
        (np.array([["a"]]), "type <U1; save real numbers"),
        (np.zeros((0, 2)), "no rows"),
        (np.ones(3) * 1j, "type complex128"),
        (np.array([{}]), "holds no array of numbers"),
    ],
)
def test_bad_arrays(array, message, tmp_path, capsys):
    np.save(tmp_path / "t.npy", array, allow_pickle=True)
    code, _, err = run(capsys, "describe", str(tmp_path / "t.npy"))
    assert code == 2
    assert re.search(message, err), err


def test_nothing_is_written_unless_asked(path, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    beside = sorted(Path(path).parent.iterdir())
    run(capsys, "describe", path, "--json")
    run(capsys, "compare", path, path, "--resamples", "9")
    assert not list(tmp_path.iterdir())
    assert sorted(Path(path).parent.iterdir()) == beside


@pytest.mark.skipif(os.name != "posix", reason="pipes of POSIX")
def test_a_pipe_is_a_file(path, capsys):
    """As ``<(zcat FILE)`` in a shell: it cannot be rewound, and has no size."""
    reader, writer = os.pipe()
    os.write(writer, Path(path).read_bytes())
    os.close(writer)
    piped = json.loads(run(capsys, "describe", f"/dev/fd/{reader}", "--json")[1])
    os.close(reader)
    named = json.loads(run(capsys, "describe", path, "--json")[1])
    assert piped | {"path": path} == named


class Terminal(StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("last", ["1,2\n", "1,2,3\n"], ids=["good", "ragged"])
def test_a_large_file_shows_progress_on_a_terminal_and_leaves_no_trace(last, tmp_path, monkeypatch):
    path = tmp_path / "large.csv"
    path.write_text("x,y\n" + 9999 * "1,2\n3,5\n" + last)
    monkeypatch.setattr(csv_format, "_LINES", 1000)
    screen, quiet = Terminal(), StringIO()
    for stream in (screen, quiet):
        monkeypatch.setattr("sys.stderr", stream)
        assert main(["describe", str(path), "--rows", "20"]) == (0 if last == "1,2\n" else 2)
    progress, _, rest = screen.getvalue().rpartition("\r\x1b[K")
    shares = [int(share) for share in re.findall(r"large\.csv: (\d+)% read", progress.replace(f"{tmp_path}/", ""))]
    assert len(shares) == 20
    assert shares == sorted(shares)
    assert shares[-1] > 80
    assert rest == quiet.getvalue()


def test_a_folder_and_nothing(tmp_path, capsys):
    assert "is a folder; name a file in it" in run(capsys, "describe", str(tmp_path))[2]
    code, _, err = run(capsys, "describe", str(tmp_path / "none.csv"))
    assert code == 2
    assert "cannot be read: No such file" in err


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
