"""``muhat compare``: what it finds, what it says of files that are not as they should be, and its page."""

import json
import os
import re
import subprocess
import sys
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from browser import Browser, require_chromium

import muhat as mh
from muhat.command_line import main
from muhat.files.compare import compare, holm, relative_size
from muhat.files.samples import Sample
from muhat.files.sheets import Reading, read_sheet, sampled

NAMES = ("age", "height", "weight")


def write(path, X, names=NAMES, delimiter=","):
    lines = [delimiter.join(names)] if names else []
    lines += [delimiter.join(f"{value:.6g}" for value in row) for row in X]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Two files whose weights differ in spread alone, and a third like the first."""
    rng = np.random.default_rng(0)
    folder = tmp_path_factory.mktemp("files")
    A, B, C = (rng.normal(size=(n, 3)) * [10.0, 1.0, 5.0] + 50.0 for n in (80, 60, 70))
    B[:, 2] = 50 + 3 * (B[:, 2] - 50)
    return [write(folder / f"{name}.csv", X) for name, X in zip("abc", (A, B, C), strict=True)]


def run(capsys, *arguments):
    code = main(list(arguments))
    out, err = capsys.readouterr()
    return code, out, err


# ------------------------------------------------------------------------------------------------------------ findings


def test_a_difference_is_found_and_named_first(files, capsys):
    code, out, err = run(capsys, "compare", *files[:2])
    assert (code, err) == (1, "")
    assert out.startswith("a.csv and b.csv differ (p = 0.0")
    assert re.search(r"1 of 3 columns differ: weight \(\d", out)
    assert out.index("* weight") < out.index("  age")
    assert "columns standardised" in " ".join(out.split())


def test_no_difference_is_no_proof(files, capsys):
    code, out, _ = run(capsys, "compare", files[0], files[2])
    assert code == 0
    assert out.startswith("No difference found between a.csv and c.csv")
    assert "no proof" in out
    assert "most unlike" not in out


def test_json_holds_the_numbers_of_the_library(files, capsys):
    code, out, _ = run(capsys, "compare", *files[:2], "--json", "--raw", "--resamples", "99", "--seed", "3")
    found = json.loads(out)
    X, Y = (np.loadtxt(path, delimiter=",", skiprows=1) for path in files[:2])
    test = mh.mmd_test(X, Y, n_resamples=99, random_state=3, unbiased=True)
    assert code == 1
    assert (found["pvalue"], found["mmd_squared"], found["bandwidth"]) == (
        test.pvalue,
        test.statistic,
        test.kernel.bandwidth,
    )
    rows = found["files"][0]["most_typical_rows"]
    values = test.witness(X)
    assert [row["line"] for row in rows] == (np.argsort(-values)[:5] + 2).tolist()
    assert rows[0]["witness"] == pytest.approx(values.max(), rel=1e-12)
    np.testing.assert_array_equal(rows[0]["values"], X[values.argmax()])
    weight = next(column for column in found["columns"] if column["name"] == "weight")
    single = mh.mmd_test(X[:, [2]], Y[:, [2]], n_resamples=99, random_state=3, unbiased=True)
    assert weight["pvalue"] == single.pvalue
    assert weight["means"] == pytest.approx([X[:, 2].mean(), Y[:, 2].mean()], rel=1e-12)


def test_json_has_both_files(files, capsys):
    """Each with its own rows; those that are typical of a file are more like it than like the other."""
    found = json.loads(run(capsys, "compare", *files[:2], "--json", "--raw")[1])["files"]
    assert [Path(file["path"]).name for file in found] == ["a.csv", "b.csv"]
    for file, path in zip(found, files[:2], strict=True):
        rows = np.loadtxt(path, delimiter=",", skiprows=1)
        assert file["rows_in_file"] == len(rows)
        for row in file["most_typical_rows"]:
            np.testing.assert_array_equal(row["values"], rows[row["line"] - 2])
            assert row["witness"] > 0


def test_units_do_not_matter_unless_asked(files, tmp_path, capsys):
    X, Y = (np.loadtxt(path, delimiter=",", skiprows=1) * [1000.0, 1.0, 1e-3] for path in files[:2])
    other = [write(tmp_path / "a.csv", X), write(tmp_path / "b.csv", Y)]
    found = [json.loads(run(capsys, "compare", *paths, "--json")[1]) for paths in (files[:2], other)]
    assert found[0]["pvalue"] == found[1]["pvalue"]
    assert found[0]["relative_size"] == pytest.approx(found[1]["relative_size"], rel=1e-4)  # six digits in the files
    raw = json.loads(run(capsys, "compare", *other, "--json", "--raw")[1])
    assert raw["relative_size"] != pytest.approx(found[0]["relative_size"], rel=0.1)


def test_relative_size_is_the_share_of_the_squared_distance():
    rng = np.random.default_rng(1)
    X, Y = rng.normal(size=(12, 2)), rng.normal(size=(9, 2)) + 1
    test = mh.mmd_test(X, Y, n_resamples=1, unbiased=True)
    k = test.kernel
    between = np.mean([k([x], [x])[0, 0] + k([y], [y])[0, 0] - 2 * k([x], [y])[0, 0] for x in X for y in Y])
    assert relative_size(test, X, Y) == pytest.approx(test.statistic / between, rel=1e-12)
    assert relative_size(mh.mmd_test(X, X, n_resamples=1, unbiased=True), X, X) == 0.0


def test_holm_against_its_definition():
    pvalues = np.random.default_rng(0).uniform(size=9) ** 3
    order = np.argsort(pvalues)
    expected = [min(1.0, max((9 - j) * pvalues[order[j]] for j in range(rank + 1))) for rank in range(9)]
    np.testing.assert_allclose(holm(pvalues)[order], expected, rtol=1e-14)


@pytest.mark.slow
def test_the_level_is_kept():
    """Of 200 pairs of files from one distribution, at level 0.1, more than 34 findings have a chance of 0.1 %."""
    rng = np.random.default_rng(0)

    def finds():
        samples = [
            Sample("", "", ("x", "y"), rng.exponential(size=(n, 2)), np.arange(n), "line", n, 0) for n in (8, 15)
        ]
        found = compare(*samples, mh.Gaussian(), resamples=19, level=0.1, seed=int(rng.integers(2**31)))
        return found.differs, bool(found.found)

    assert (np.sum([finds() for _ in range(200)], axis=0) <= 34).all()


@pytest.mark.parametrize("kernel", ["gaussian", "laplace"])
def test_columns_of_few_values_and_of_huge_scale(tmp_path, capsys, kernel):
    rng = np.random.default_rng(0)
    X, Y = (
        [[float(rng.random() < p), 1e200 * rng.normal(), 1e-200 * rng.normal()] for _ in range(40)] for p in (0.1, 0.9)
    )
    paths = [write(tmp_path / "a.csv", X), write(tmp_path / "b.csv", Y)]
    code, out, _ = run(capsys, "compare", *paths, "--json", "--kernel", kernel)
    found = json.loads(out)
    assert code == 1
    assert [column["name"] for column in found["columns"] if column["differs"]] == ["age"]


def test_too_few_resamples_for_so_many_columns_are_said(files, capsys):
    out = run(capsys, "compare", *files[:2], "--resamples", "40")[1]
    assert "take --resamples 59" in " ".join(out.split())
    assert "--resamples" not in run(capsys, "compare", *files[:2], "--resamples", "59")[1]


# --------------------------------------------------------------------------------------------------------------- files


def test_columns_are_counted_on_a_terminal(files, monkeypatch, capsys):
    class Terminal(StringIO):
        def isatty(self):
            return True

    plain = run(capsys, "compare", *files[:2], "--resamples", "9")
    monkeypatch.setattr("sys.stderr", screen := Terminal())
    code = main(["compare", *files[:2], "--resamples", "9"])
    said = [text for text in screen.getvalue().split("\r\x1b[K") if text]
    assert said == [f"column {j} of 3: {name}" for j, name in enumerate(NAMES, start=1)]
    assert screen.getvalue().endswith("\r\x1b[K")
    assert (code, capsys.readouterr().out) == plain[:2]


def test_columns_are_matched_by_name(files, tmp_path, capsys):
    X, Y = (np.loadtxt(path, delimiter=",", skiprows=1) for path in files[:2])
    left = write(tmp_path / "a.csv", np.column_stack([X, X[:, 0]]), (*NAMES, "extra"))
    right = write(tmp_path / "b.csv", Y[:, ::-1], NAMES[::-1], delimiter=";")
    code, out, _ = run(capsys, "compare", left, right, "--json")
    found, expected = json.loads(out), json.loads(run(capsys, "compare", *files[:2], "--json")[1])
    assert code == 1
    assert found["columns"] == expected["columns"]
    assert found["notes"] == [f"{left}: left out, since only this file has them: 'extra'"]


def test_some_columns_only(files, capsys):
    code, out, _ = run(capsys, "compare", *files[:2], "--json", "--columns", "height", "age")
    assert code == 0
    assert json.loads(out)["files"][0]["columns"] == ["height", "age"]


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
        polars.DataFrame(dict(zip(NAMES, Z.T, strict=True)) | {"who": ["x"] * len(Z)}).write_parquet(
            paths["parquet"][i]
        )
        write(paths["csv"][i], Z, names=None)
    found = {suffix: json.loads(run(capsys, "compare", *map(str, both), "--json")[1]) for suffix, both in paths.items()}
    assert len({found[suffix]["mmd_squared"] for suffix in paths}) == 1
    assert found["csv"]["columns"][0]["name"] == "column 3"
    assert "'who' is left out: it holds values of type String" in found["parquet"]["notes"][0]
    assert "row" in found["npy"]["files"][0]["most_typical_rows"][0]


def test_parquet_by_pandas_is_the_same(files, tmp_path, monkeypatch):
    pandas = pytest.importorskip("pandas")
    from muhat.files import binary_formats

    frame = pandas.read_csv(files[0]).assign(who="x", flag=True)
    frame.loc[3, "age"] = np.nan
    frame.to_parquet(tmp_path / "a.parquet")
    read = [read_sheet(str(tmp_path / "a.parquet"), Reading(rows=20))]
    monkeypatch.setattr(binary_formats, "find_spec", lambda name: name == "pandas")
    read.append(read_sheet(str(tmp_path / "a.parquet"), Reading(rows=20)))
    np.testing.assert_array_equal(read[0].values, read[1].values)
    assert read[0].names == read[1].names == (*NAMES, "flag")
    assert list(read[0].text) == list(read[1].text) == ["who"]


def test_a_sample_of_many_rows_is_fair_and_in_order(tmp_path):
    path = write(tmp_path / "long.csv", np.arange(20_000.0)[:, None], ("x",))
    sheet = read_sheet(path, Reading(rows=500, seed=1))
    assert (sheet.total, sheet.values.shape) == (20_000, (500, 1))
    np.testing.assert_array_equal(sheet.values[:, 0], sheet.lines - 2)
    assert (np.diff(sheet.lines) > 0).all()
    assert abs(sheet.values.mean() - 10_000) < 4 * 20_000 / np.sqrt(12 * 500)
    draws = [sampled(iter(range(12)), 3, np.random.default_rng(seed)) for seed in range(2000)]
    counts = np.bincount(np.concatenate(draws), minlength=12)
    assert (np.abs(counts - 500) < 4.5 * np.sqrt(2000 * 0.25 * 0.75)).all()


# ------------------------------------------------------------------------------------------------------------- failures

GOOD = "x,y\n1,2\n2,5\n3,3\n"
BAD_PAIRS = {
    "no common columns": (GOOD, "u,v\n1,2\n3,4\n", "in common: .*'x', 'y' and .*'u', 'v'; give columns of one meaning"),
    "header in one": (GOOD, "1,2\n3,4\n", "names its columns and .* does not; .*--no-header"),
    "two widths": ("1,2\n3,4\n", "1,2,3\n4,5,7\n", "b.csv have 2 and 3 columns; .*give both files a header"),
    "one row": (GOOD, "x,y\n1,2\n", "b.csv has 1 row; at least 2 are needed"),
    "gaps everywhere": (GOOD, "x,y\n1,\n,2\n3,\n", "0 rows without missing values; column 'y' is missing in 2 of 3"),
    "all rows equal": ("x\n1\n1\n", "x\n1\n1\n", "all rows are equal"),
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


@pytest.mark.slow
def test_the_hard_dependencies_are_enough_for_text(files):
    """A subprocess in which the optional packages cannot be imported; the page needs them and says so at once."""
    hide = (
        "import sys; sys.modules.update(dict.fromkeys(['jinja2', 'matplotlib', 'rich', 'polars', 'pandas', 'dask']));"
    )
    light = "assert not [name for name in sys.modules if name.startswith('muhat.files')];"
    code = f"{hide} import muhat; from muhat.command_line import main; {light} sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "compare", *files[:2], "--resamples", "99"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("a.csv and b.csv differ")
    page = Path(files[0]).parent / "page.html"
    done = subprocess.run([*command, "--html", str(page)], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert 'needs jinja2; pip install "muhat[reproduce]"' in done.stderr
    assert not page.exists()


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="pipes of POSIX")
def test_nobody_reads_on(files):
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "muhat.command_line", "compare", *files[:2], "--resamples", "9"]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, timeout=120, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


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
    before = page.read_bytes()
    main(["compare", *files[:2], "--html", str(page), "--resamples", "99"])
    assert page.read_bytes() == before


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


def test_names_are_text_not_markup(tmp_path):
    rng = np.random.default_rng(0)
    names = ("<b>x</b>", "cost in $ & $")
    paths = [write(tmp_path / f"{name}.csv", rng.normal(size=(20, 2)), names) for name in "ab"]
    main(["compare", *paths, "--html", str(tmp_path / "p.html"), "--resamples", "9"])
    text = (tmp_path / "p.html").read_text(encoding="utf-8")
    assert "<b>x" not in text
    assert "cost in $ &amp; $" in text


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
    assert browser.evaluate("document.querySelectorAll('figure svg').length") == 3
    assert browser.evaluate("document.querySelector('h1').textContent") == "a.csv and b.csv differ"
