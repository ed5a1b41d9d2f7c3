"""The pages hold together: names, links and pictures are there, and the site builds where Sphinx is installed."""

import ast
import importlib
import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import draw
import pytest
from rooms import ROOMS

import muhat as mh

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
READ = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES]

names_of = {"ids": lambda path: path.name}


def documented():
    """Pairs of module and name that the reference lists."""
    module, found = None, set()
    for line in (DOCS / "reference.md").read_text(encoding="utf-8").splitlines():
        if line.startswith(".. currentmodule::"):
            module = line.split()[-1]
        elif re.fullmatch(r"   \w+", line):
            found.add((module, line.strip()))
    return found


def test_the_reference_names_what_exists():
    assert documented()
    for module, name in documented():
        assert getattr(importlib.import_module(module), name).__doc__, f"{module}.{name} has no docstring"


def test_every_public_name_is_in_the_reference():
    assert {name for module, name in documented() if module == "muhat"} >= set(mh.__all__)


@pytest.mark.parametrize("room", ROOMS)
def test_the_public_names_of_a_room_are_in_the_reference(room):
    public = getattr(importlib.import_module(f"muhat.{room}"), "__all__", ())
    assert set(public) <= {name for _, name in documented()}


@pytest.mark.parametrize("page", READ, **names_of)
def test_what_pages_import_is_in_the_reference(page):
    """A user who copies a line from a page must find the name."""
    known = {name for _, name in documented()} | {module.split(".")[-1] for module, _ in documented()} | set(ROOMS)
    inside = {"squared_distances", "check_number"}  # of the page on adding a kernel
    found = re.findall(r"^>>> from muhat[\w.]* import (.+)$", page.read_text(encoding="utf-8"), flags=re.M)
    names = {name.strip() for line in found for name in line.split(",")}
    assert names - known - (inside if page.name == "extending.md" else set()) == set()


@pytest.mark.parametrize("page", READ, **names_of)
def test_relative_links_resolve(page):
    text = page.read_text(encoding="utf-8")
    targets = [target for target in re.findall(r"\]\(([^)\s]+)\)", text) if not re.match(r"https?:|mailto:|#", target)]
    missing = [target for target in targets if not (page.parent / target.partition("#")[0]).exists()]
    assert missing == []


@pytest.mark.parametrize("page", READ, **names_of)
def test_files_that_pages_name_exist(page):
    paths = re.findall(r"\b((?:benchmarks|examples|tests|docs)/[\w/]+\.\w+)", page.read_text(encoding="utf-8"))
    assert [path for path in paths if not (ROOT / path).exists()] == []


def toctrees():
    """Documents named in any toctree."""
    for page in PAGES:
        for block in re.findall(r"^```\{toctree\}\n(.*?)^```$", page.read_text(encoding="utf-8"), flags=re.M | re.S):
            yield from (line for line in block.splitlines() if line and not line.startswith(":"))


def test_every_page_is_in_one_toctree():
    listed = sorted(name for name in toctrees() if name != "gallery/index")
    assert listed == sorted(page.stem for page in PAGES if page.name not in {"index.md", "README.md"})


def test_the_plain_index_lists_every_page():
    text = (DOCS / "README.md").read_text(encoding="utf-8")
    inner = {"index.md", "README.md", "guide.md", "project.md", "reference.md"}
    assert [page.name for page in PAGES if page.name not in inner and f"]({page.name})" not in text] == []


def test_the_picture_of_the_rooms_is_the_one_that_is_drawn():
    stored = (DOCS / "images" / "modules.svg").read_text(encoding="utf-8")
    assert draw.modules() == stored, "the rooms have changed: run python docs/draw.py"


def heading(example):
    lines = ast.get_docstring(ast.parse(example.read_text(encoding="utf-8"))).splitlines()
    return len(lines) > 1 and lines[1] == "=" * len(lines[0])


def test_the_gallery_has_a_dozen_examples():
    assert sum(heading(example) for example in EXAMPLES) >= 12


@pytest.mark.slow
@pytest.mark.skipif(find_spec("sphinx_gallery") is None, reason='Sphinx is missing: pip install "muhat[docs]"')
def test_the_site_builds_without_warnings(tmp_path):
    """Pages and reference; examples are read and not run, as another test runs them."""
    leave_out = shutil.ignore_patterns("gallery", "generated", "report", "__pycache__")
    for name in ("docs", "examples"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=leave_out)
    shutil.copy(ROOT / "CHANGELOG.md", tmp_path)
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-D", "plot_gallery=0", "docs", "site"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    pages = [page.read_text(encoding="utf-8") for page in (tmp_path / "site").rglob("*.html")]
    assert len(pages) > len(mh.__all__)
    loaded = re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="(https?://[^"]+)', "".join(pages))
    assert loaded == [], "the site loads from elsewhere"


@pytest.fixture(scope="module")
def report():
    return json.loads((DOCS / "reproduction" / "results.json").read_text(encoding="utf-8"))


def test_the_readme_counts_the_verdicts_of_the_report(report):
    count = Counter(claim["verdict"] for claim in report["claims"])
    said = f"Of {len(report['claims'])} claims, {count['holds']} hold, {count['holds in part']} hold in part and "
    assert f"{said}{count['does not hold']} do not hold" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert count["cannot be checked"] == 0


@pytest.mark.parametrize("verdict", ["holds", "holds in part", "does not hold"])
def test_the_page_on_reproduction_lists_the_verdicts_of_the_report(report, verdict):
    text = (DOCS / "reproduction.md").read_text(encoding="utf-8")
    listed = re.search(rf"^\| {verdict} \| (.+) \|$", text, flags=re.M)[1]
    assert re.findall("`(.+?)`", listed) == [claim["id"] for claim in report["claims"] if claim["verdict"] == verdict]


def test_what_to_expect_is_what_the_report_has(report):
    kernels = {"linear": "LIN", "degree 2": "POLY2", "degree 3": "POLY3", "Gaussian, median": "RBF"}
    found = {(row["kernel"], row["n"], row["d"]): row for row in report["experiments"]["figure2"]["summary"]}
    table = re.findall(r"^\| (.+?) \| (\d+), (\d+) \| (.+) \|$", (DOCS / "choosing.md").read_text("utf-8"), flags=re.M)
    assert len(table) == 5
    for kernel, n, d, cells in table:
        row = found[kernels[kernel], int(n), int(d)]
        ratios = [row[name]["ratio"] for name in ("S", "F_theorem4", "F_deletion", "oracle")]
        assert cells.split(" | ") == [f"{ratio:.3f}".removeprefix("0") for ratio in ratios]


def test_the_landing_page_shows_what_the_readme_shows():
    """Comments apart: a stranger who goes from one to the other meets the same lines and the same gain."""
    pages = [page.read_text(encoding="utf-8") for page in (ROOT / "README.md", DOCS / "index.md")]
    readme, landing = (re.sub(" +#.*", "", re.search("```python\n(.*?)```", page, flags=re.S)[1]) for page in pages)
    assert readme == landing
