"""The pages hold together: names, links and pictures are there, and the site builds where Sphinx is installed."""

import ast
import importlib
import inspect
import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import draw
import figures
import notebooks
import pytest
import subpackages

import muhat as mh

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.glob("*.md"), *DOCS.glob("notes/*.md")])
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
READ = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES]

WIDEST_CODE = 88

names_of = {"ids": lambda path: path.name}


def documented(pages=PAGES):
    """Dotted names below muhat that the pages list for the reference."""
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    return set(re.findall(r"^   ([\w.]+)$", text, flags=re.M))


def authors_only():
    """Names for people who write a kernel or an estimator of their own."""
    return documented([DOCS / "architecture.md"])


def test_the_reference_names_what_exists():
    assert documented()
    for name in documented():
        module, _, attribute = f"muhat.{name}".rpartition(".")
        assert getattr(importlib.import_module(module), attribute).__doc__, f"{name} has no docstring"


def test_every_public_name_is_in_the_reference():
    assert documented() >= set(mh.__all__)


@pytest.mark.parametrize("subpackage", [*mh._SUBPACKAGES, "apps.compare", "apps.monitor"])
def test_every_public_name_of_a_subpackage_is_in_the_reference(subpackage):
    names = getattr(importlib.import_module(f"muhat.{subpackage}"), "__all__", [])
    assert {name for name in names if name not in mh.__all__ and f"{subpackage}.{name}" not in documented()} == set()


SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["numpydoc_validation"]
OF_THEIR_CLASS = {"SA01", "EX01", "PR01", "RT01"}  # a method may have one sentence: its class says the rest
OF_THEIR_FUNCTION = {"SA01", "EX01"}  # a result has its fields: the function that makes it shows the rest


def public_methods(thing):
    for name in dir(thing) if inspect.isclass(thing) else ():
        method = inspect.getattr_static(thing, name)
        home = getattr(getattr(method, "__func__", method), "__module__", None) or ""
        own = inspect.getdoc(getattr(thing, name)) is None or getattr(thing, name).__doc__  # not inherited from a base
        if own and not name.startswith("_") and callable(getattr(thing, name)) and home.startswith("muhat"):
            yield name


def complaints(validate, name, left_out=frozenset()):
    """What numpydoc says against a docstring; fields of a result are its attributes, which numpydoc does not count."""
    found = validate(name)
    docstring = inspect.cleandoc(found["docstring"])
    attributes = re.search(r"^Attributes\n-+\n(.*?)(?:^[A-Z].*\n---|\Z)", docstring, flags=re.M | re.S)
    described = set(re.findall(r"^(?! ).*?$", attributes[1], flags=re.M)) if attributes else set()
    described = {name for line in described for name in re.findall(r"\w+", line.partition(" : ")[0])}
    for code, message in found["errors"]:
        fields = {name for name in re.findall(r"'(\w+)'", message) if not name.startswith("_")}
        if code not in {*SETTINGS["checks"], *left_out} and not (code == "PR01" and fields <= described):
            yield f"{name} {code}: {message}"


@pytest.mark.parametrize("name", sorted(documented() - authors_only()))
def test_the_reference_follows_numpydoc(name):
    validate = pytest.importorskip("numpydoc.validate").validate
    module, _, attribute = f"muhat.{name}".rpartition(".")
    thing = getattr(importlib.import_module(module), attribute)
    of_a_function = inspect.getdoc(thing).startswith("Result of :func:")
    found = list(complaints(validate, f"muhat.{name}", OF_THEIR_FUNCTION if of_a_function else set()))
    for method in public_methods(thing):
        if not any(re.search(pattern, f"{name}.{method}") for pattern in SETTINGS["exclude"]):
            found += complaints(validate, f"muhat.{name}.{method}", OF_THEIR_CLASS)
    assert found == []


@pytest.mark.parametrize("name", sorted(documented()))
def test_relations_lead_to_pages(name):
    """Names below See Also are entries of the reference, or belong to another library."""
    docscrape = pytest.importorskip("numpydoc.docscrape")
    module, _, attribute = f"muhat.{name}".rpartition(".")
    text = docscrape.NumpyDocString(inspect.getdoc(getattr(importlib.import_module(module), attribute)))
    related = [other for names, _ in text["See Also"] for other, _ in names]
    own = {f"muhat.{page}" for page in documented()}
    lost = [r for r in related if not {r, f"{module}.{r}"} & own and (r.startswith("muhat") or "." not in r)]
    assert lost == []


def code_lines(text):
    for block in re.findall(r"^```(?:python|sh|text)\n(.*?)^```$", text, flags=re.M | re.S):
        yield from block.splitlines()


@pytest.mark.parametrize("page", [page for page in READ if page.parent.name != "notes"], **names_of)
def test_code_fits_beside_both_sidebars(page):
    assert [line for line in code_lines(page.read_text(encoding="utf-8")) if len(line) > WIDEST_CODE] == []


@pytest.mark.parametrize("path", [*READ, *sorted(Path(mh.__file__).parent.rglob("*.py"))], **names_of)
def test_examples_do_not_name_files_of_the_package(path):
    """``mh.X`` stays true when a file moves."""
    text = path.read_text(encoding="utf-8")
    assert re.findall(r"^ *>>> (?:from|import) muhat\..*", text, flags=re.M) == []


@pytest.mark.parametrize("page", READ, **names_of)
def test_relative_links_resolve(page):
    text = page.read_text(encoding="utf-8")
    targets = [target for target in re.findall(r"\]\(([^)\s]+)\)", text) if not re.match(r"https?:|mailto:|#", target)]
    missing = [target for target in targets if not (page.parent / target.partition("#")[0]).exists()]
    assert missing == []


@pytest.mark.parametrize("page", READ, **names_of)
def test_files_that_pages_name_exist(page):
    """Files of the package may be named by their place below ``src/muhat``."""
    text = page.read_text(encoding="utf-8")
    paths = re.findall(r"\b((?:benchmarks|examples|tests|docs)/[\w/]+\.\w+)|`(\w+(?:/\w+)+\.\w+)`", text)
    roots = [ROOT, ROOT / "src", ROOT / "src" / "muhat", page.parent]
    assert [path for path in map("".join, paths) if not any((root / path).exists() for root in roots)] == []


def toctrees():
    """Documents named in any toctree."""
    for page in PAGES:
        for block in re.findall(r"^```\{toctree\}\n(.*?)^```$", page.read_text(encoding="utf-8"), flags=re.M | re.S):
            lines = [line for line in block.splitlines() if line and not line.startswith(":")]
            yield from (line.partition("<")[2].rstrip(">") or line for line in lines)


def test_every_page_is_in_one_toctree():
    listed = sorted(name for name in toctrees() if name != "gallery/index")
    pages = [str(page.relative_to(DOCS).with_suffix("")) for page in PAGES]
    assert listed == sorted(page for page in pages if page != "index")


def test_the_drawing_of_the_subpackages_is_the_one_that_is_drawn():
    stored = (DOCS / "images" / "modules.svg").read_text(encoding="utf-8")
    assert draw.modules() == stored, "the subpackages have changed: run python docs/draw.py"


def test_the_page_on_architecture_lists_the_subpackages():
    page = (DOCS / "architecture.md").read_text(encoding="utf-8")
    assert subpackages.with_table(page) == page, "the subpackages have changed: run python docs/subpackages.py"


def test_the_gallery_has_an_order_and_headings():
    order = ast.literal_eval(re.search(r"READING_ORDER = (\[.*?\])", (DOCS / "conf.py").read_text("utf-8"), re.S)[1])
    assert sorted(order) == [example.stem for example in EXAMPLES]
    for example in EXAMPLES:
        title, line, *_ = ast.get_docstring(ast.parse(example.read_text(encoding="utf-8"))).splitlines()
        assert line == "=" * len(title)


def test_every_picture_is_shown_by_a_page():
    pages = "".join(page.read_text(encoding="utf-8") for page in READ)
    assert [picture.name for picture in (DOCS / "images").iterdir() if f"images/{picture.name}" not in pages] == []
    assert all((DOCS / "images" / f"{name}.png").exists() for shown in draw.SHOWN.values() for name in shown.values())


@pytest.mark.slow
@pytest.mark.skipif(find_spec("sphinx_gallery") is None, reason='Sphinx is missing: pip install "muhat[docs]"')
def test_the_site_builds_without_warnings(tmp_path):
    """Pages and reference; examples are read and not run, as another test runs them."""
    leave_out = shutil.ignore_patterns("gallery", "generated", "report", "__pycache__")
    for name in ("docs", "examples"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=leave_out)
    for name in ("CHANGELOG.md", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-D", "plot_gallery=0", "docs", "site"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    pages = [page.read_text(encoding="utf-8") for page in (tmp_path / "site").rglob("*.html")]
    assert len(pages) > len(mh.__all__)
    loaded = re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="(https?://[^"]+)', "".join(pages))
    assert loaded == [], "the site loads from elsewhere"


@pytest.mark.parametrize("page", READ, **names_of)
def test_commands_that_pages_quote_are_in_the_registry(page):
    quoted = set(re.findall(r"benchmarks/[\w/]+\.py", page.read_text(encoding="utf-8")))
    known = {path for command, *_ in figures.kept().values() for path in command.split()}
    assert quoted <= known


def test_measured_numbers_are_those_that_commands_printed():
    """``python tools/figures.py`` writes them into the pages."""
    assert figures.complaints() == []


@pytest.mark.parametrize(
    ("number", "form", "text"),
    [("0.123", "0.10", "0.12"), ("0.97", ".5", "1.0"), ("0.47", ".5", ".5"), ("-3.5", "−1", "−4"), ("-3.4", "1", "3"),
     ("1234.5", "900", "1,234"), ("950", "1,000", "950")],
)  # fmt: skip
def test_a_number_keeps_its_form(number, form, text):
    assert figures.written(figures.value(number), form) == text


@pytest.fixture(scope="module")
def report():
    return json.loads((DOCS / "reproduction" / "results.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", ["README.md", "docs/index.md", "docs/paper.md"])
def test_pages_count_the_verdicts_of_the_report(page, report):
    count = Counter(claim["verdict"] for claim in report["claims"])
    said = f"Of {len(report['claims'])} claims {count['holds']} hold, {count['holds in part']} hold in part, "
    said += f"{count['does not hold']} do not hold and {count['cannot be checked']} cannot be checked"
    text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    assert said in text
    simple = next(claim for claim in report["claims"] if claim["id"] == "figure-2-outperform-kme")["parts"][0]
    assert f"{simple['support']} of {simple['total']} settings" in text


@pytest.mark.parametrize("verdict", ["holds", "holds in part", "does not hold", "cannot be checked"])
def test_the_page_on_the_paper_lists_the_verdicts_of_the_report(report, verdict):
    text = (DOCS / "paper.md").read_text(encoding="utf-8")
    listed = re.search(rf"^\| {verdict} \| (.+) \|$", text, flags=re.M)[1]
    assert re.findall("`(.+?)`", listed) == [claim["id"] for claim in report["claims"] if claim["verdict"] == verdict]


def test_what_to_expect_is_what_the_report_has(report):
    kernels = {"linear": "LIN", "degree 2": "POLY2", "degree 3": "POLY3", "Gaussian, median": "RBF"}
    found = {
        (row["kernel"], row["n"], row["d"]): row
        for row in report["experiments"]["figure2"]["summary"]
        if row["design"] is None
    }
    notes = (DOCS / "means.md").read_text(encoding="utf-8")
    table = re.findall(r"^\| (.+?) \| (\d+), (\d+) \| (.+) \|$", notes, flags=re.M)
    assert len(table) == 5
    for kernel, n, d, cells in table:
        row = found[kernels[kernel], int(n), int(d)]
        ratios = [row[name]["ratio"] for name in ("S", "F_theorem4", "F_loo", "oracle")]
        assert cells.split(" | ") == [f"{ratio:.3f}".removeprefix("0") for ratio in ratios]


@pytest.mark.slow
def test_the_tutorial_runs_as_a_notebook(tmp_path):
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    page = (DOCS / "tutorial.md").read_text(encoding="utf-8")
    made = nbformat.from_dict(notebooks.notebook(page))
    done = nbclient.NotebookClient(made, timeout=300, resources={"metadata": {"path": tmp_path}}).execute()
    outputs = [output for cell in done.cells if cell.cell_type == "code" for output in cell.outputs]
    assert any("AdaptiveKernelMean: " in output.get("text", "") for output in outputs)
