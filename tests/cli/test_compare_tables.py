"""``muhat compare``: exit codes, text, JSON, pages, and wrong calls."""

import io
import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
import pytest
from browser import Browser, require_chromium
from table_files import run, write

import muhat as mh
from muhat.apps.cli.command_line import main

NAMES = ("age", "height", "weight")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Two files whose weights differ in dispersion alone, and a third like the first."""
    rng = np.random.default_rng(0)
    folder = tmp_path_factory.mktemp("files")
    A, B, C = (rng.normal(size=(n, 3)) * [10.0, 1.0, 5.0] + 50.0 for n in (80, 60, 70))
    B[:, 2] = 50 + 3 * (B[:, 2] - 50)
    return [write(folder / f"{name}.csv", X.round(4).tolist(), NAMES) for name, X in zip("abc", (A, B, C), strict=True)]


def test_a_difference_is_found_and_named_first(files, capsys):
    code, out, err = run(capsys, "compare", *files[:2])
    assert (code, err) == (1, "")
    assert out.startswith("a.csv and b.csv differ (p = ")
    assert out.index("* weight") < out.index("  age")
    assert "All 80 and 60 rows were used." in out
    code, out, _ = run(capsys, "compare", files[0], files[2])
    assert code == 0
    assert out.startswith("No difference found between a.csv and c.csv")


def test_the_command_is_the_function(files, capsys):
    code, out, _ = run(capsys, "compare", *files[:2], "--json", "--seed", "3", "--resamples", "99", "--at-least", "5%")
    expected = mh.compare(*files[:2], at_least=0.05, random_state=3, n_resamples=99)
    assert json.loads(out) == json.loads(json.dumps(expected.to_dict()))
    assert code == expected.differs


@pytest.mark.parametrize(("effect", "code"), [("0%", 1), ("0.0", 1), ("60 %", 0), ("0.6", 0)])
def test_effects_that_matter(files, capsys, effect, code):
    assert run(capsys, "compare", *files[:2], "--resamples", "99", "--at-least", effect)[0] == code


def test_notes_and_errors_name_the_options_of_the_command(tmp_path, capsys):
    paths = [write(tmp_path / f"{k}.csv", [[i, i % 7, k] for i in range(200)], ("id", "x", "part")) for k in (1, 2)]
    code, out, _ = run(capsys, "compare", *paths, "--resamples", "9")
    told = " ".join(out.split())
    assert code == 0
    assert "name them in --columns to use them" in told
    assert "as in an index, a date or the column of a split: 'part'" in told
    assert "'part': name them in --columns to count them" in told
    assert "or take more permutations (--resamples)" in told
    for option, value, message in (
        ("--clusters", "week", "--clusters 'week': 1.csv has no such column"),
        ("--strata", "id", "--strata 'id' has no value in common"),
        ("--columns", "y", "--columns 'y': 1.csv has no such column"),
    ):
        if option == "--strata":
            write(tmp_path / "2.csv", [[i + 200, i % 7, 2] for i in range(200)], ("id", "x", "part"))
        assert message in run(capsys, "compare", *paths, option, value)[2]


def test_columns_strata_and_marks_reach_the_comparison(tmp_path, capsys):
    rng = np.random.default_rng(1)
    paths = [
        write(
            tmp_path / f"{name}.csv",
            [[rng.integers(3), "n.d." if i < 9 else rng.normal(), rng.choice(["u", "v"]), i] for i in range(90)],
            ("code", "dose", "site", "z"),
        )
        for name in "ab"
    ]
    options = ["--categorical", "code", "--missing", "n.d.", "--strata", "site", "--exclude", "z", "--resamples", "19"]
    found = json.loads(run(capsys, "compare", *paths, "--json", *options)[1])
    assert {column["name"]: column["kind"] for column in found["columns"]} == {"code": "category", "dose": "number"}
    assert found["columns"][[c["name"] for c in found["columns"]].index("dose")]["missing"]["shares"] == [0.1, 0.1]


def test_what_could_not_be_compared_stands_first(tmp_path, capsys):
    first = write(tmp_path / "a.csv", [[i % 7, i] for i in range(40)], ("x", "price"))
    second = write(tmp_path / "b.csv", [[i % 7, f"€ {3 * i + 1:.2f}"] for i in range(40)], ("x", "price"))
    third = write(tmp_path / "c.csv", [[i % 7, i] for i in range(40)], ("x", "Price"))
    code, out, _ = run(capsys, "compare", first, second, "--resamples", "19")
    text = " ".join(out.split())
    assert code == 0
    assert text.startswith("No difference found between a.csv and b.csv in the columns that could be compared (p = ")
    assert "'price' could not be compared: it holds numbers in a.csv and text such as '€ 1.00' in b.csv; texts" in text
    out = " ".join(run(capsys, "compare", first, third, "--resamples", "19")[1].split())
    assert "only a.csv has it; 'Price' in c.csv may be the same: give them one name" in out
    code, _, err = run(capsys, "compare", first, second, "--resamples", "19", "--strict")
    assert code == 2
    assert "--strict: 'price'" in err
    assert run(capsys, "compare", first, second, "--resamples", "19", "--strict", "--exclude", "price")[0] == 0


def test_one_table_may_come_by_standard_input_and_two_may_not(files, monkeypatch, capsys):
    with open(files[1], "rb") as file:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(file.read())))
    assert run(capsys, "compare", files[0], "-", "--resamples", "99")[0] == 1
    assert "can be read once" in run(capsys, "compare", "-", "-")[2]


WRONG_CALLS = [["--level", "1.5"], ["--level", "x"], ["--resamples", "0"], ["--at-least", "x"], []]


@pytest.mark.parametrize("arguments", [*WRONG_CALLS, ["--delimiter", "ab"]])
def test_a_wrong_call_ends_with_two(arguments, files, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["compare", *(files[:2] if arguments else files[:1]), *arguments])
    assert ended.value.code == 2


@pytest.mark.parametrize("error", [ZeroDivisionError, MemoryError, RuntimeError, AssertionError, KeyError])
def test_anything_unexpected_ends_with_two_and_one_line(error, files, capsys, monkeypatch):
    """1 would say that the files differ."""

    def fail(*_, **__):
        raise error("a\nSELECT b")

    monkeypatch.setattr("muhat.apps.compare.two_tables.default_test_of", fail)
    code, out, err = run(capsys, "compare", *files[:2])
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("muhat compare: ")
    monkeypatch.setenv("MUHAT_DEBUG", "1")
    assert "Traceback" in run(capsys, "compare", *files[:2])[2]


@pytest.mark.parametrize(("option", "target"), [("--html", "none/page.html"), ("--html", "."), ("--html", "itself")])
def test_a_target_that_cannot_be_written(option, target, files, capsys):
    code, out, err = run(capsys, "compare", *files[:2], option, files[0] if target == "itself" else target)
    assert (code, out) == (2, "")
    assert re.search("must be a file in a folder that exists|would write over the table", err)


def test_a_missing_engine_is_named(files, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    code, out, err = run(capsys, "compare", *files[:2])
    assert (code, out) == (2, "")
    assert re.search(r'needs duckdb .*; pip install "muhat\[files\]", or in a clone.*"\.\[files\]"', err)


def test_progress_is_counted_on_a_terminal_and_repeated_elsewhere(files, monkeypatch, capsys):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    with monkeypatch.context() as patched:
        patched.setattr("sys.stderr", screen := Terminal())
        main(["compare", *files[:2], "--resamples", "9"])
    said = [text for text in screen.getvalue().split("\r\x1b[K") if text]
    assert [f"column {j} of 3: {name}" in said for j, name in enumerate(NAMES, start=1)] == [True] * 3
    assert screen.getvalue().endswith("\r\x1b[K")
    monkeypatch.setattr("muhat._support.progress.SECONDS", 0.01)
    capsys.readouterr()
    assert "pairs of columns, and all columns together\n" in run(capsys, "compare", *files[:2])[2]
    mh.compare(*files[:2], n_resamples=9)
    assert capsys.readouterr().err == "", "a library call is silent"


@pytest.mark.skipif(os.name != "posix", reason="pipes of POSIX")
@pytest.mark.slow
def test_nobody_reads_on(files):
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "muhat", "compare", *files[:2], "--resamples", "9"]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


def test_wrong_calls_are_told_in_a_line(files, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["compare", "--columns", "x", *files[:2]])
    told = capsys.readouterr().err
    assert "required: FILE (before options that take several names, such as --columns); muhat compare --help" in told
    assert told.count("\n") == 1


# --------------------------------------------------------------------------------------------------------------- pages


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


@pytest.fixture(scope="module")
def page(files, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "page.html"
    main(["compare", *files[:2], "--html", str(path), "--resamples", "99"])
    return path


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


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_in_a_browser(page, width):
    require_chromium()
    with Browser() as browser:
        browser.open(page, width=width, dark=width == 390)
        assert browser.requests == [page.resolve().as_uri()]
        assert browser.complaints == []
        assert browser.evaluate("document.documentElement.scrollWidth") <= width
        assert browser.evaluate("document.querySelectorAll('.spark svg').length") == 3
        assert browser.evaluate("document.querySelector('h1').textContent") == "a.csv and b.csv differ"
