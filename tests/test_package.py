"""The package as a whole: imports go one way, stay light, and the public names are what they say."""

import ast
import importlib
import inspect
import runpy
import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path

import pytest
import visits
from subpackages import SUBPACKAGES, subpackage_of

import muhat as mh
from muhat.apps.cli import command_line

ROOT = Path(mh.__file__).parent
PROJECT = Path(__file__).parents[1] / "pyproject.toml"

HEAVY = ["matplotlib", "dask", "jinja2", "rich", "numba", "polars", "duckdb"]


def modules():
    """Dotted path below the package -> file."""
    files = (path for path in ROOT.rglob("*.py") if path.name != "__init__.py" or path.parent != ROOT)
    return {path.relative_to(ROOT).with_suffix("").as_posix(): path for path in files}


def imported(path):
    """Modules below ``muhat`` that a file imports, wherever the import stands, as paths."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} imports relatively; write `from muhat...`"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        yield from (name.removeprefix("muhat.").replace(".", "/") for name in names if name.startswith("muhat."))


def test_imports_go_one_way():
    for name, path in modules().items():
        if path.name == "__init__.py" and subpackage_of(name) is None:
            continue  # the folder of several subpackages
        own = subpackage_of(name)
        assert own is not None, f"muhat/{name} has no place in the order of subpackages; add it to docs/subpackages.py"
        for module in set(imported(path)):
            other = subpackage_of(module)
            assert other is not None, f"{name} imports muhat/{module}, which has no place in SUBPACKAGES"
            assert SUBPACKAGES.index(other) <= SUBPACKAGES.index(own), (
                f"muhat/{name} imports muhat/{other}, which comes after it"
            )


def test_nothing_depends_on_the_applications():
    for name, path in modules().items():
        if not name.startswith(("apps/", "testing", "__main__")):
            assert not [module for module in imported(path) if module.startswith("apps")], name


def test_every_room_is_there_and_opens_with_its_sentence():
    assert set(SUBPACKAGES) == {subpackage_of(name) for name in modules()} - {None}
    for name, path in modules().items():
        assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))), f"{name} does not say what it is"


@pytest.fixture(scope="module")
def loaded():
    """Names of the modules that a fresh interpreter has loaded after an import."""

    def after(module):
        code = f"import sys, {module}; print(*sys.modules)"
        return set(
            subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
        )

    return {module: after(module) for module in ("muhat", "sklearn.svm")}


@pytest.mark.slow
def test_import_is_light(loaded):
    assert not set(HEAVY) & loaded["muhat"]
    assert not [module for module in loaded["muhat"] if module.startswith(("muhat.apps", "muhat.plotting", "paper"))]


@pytest.mark.slow
def test_import_costs_a_tenth_more_than_scikit_learn_at_most(loaded):
    """Modules are counted: seconds depend on what else the machine does."""
    assert len(loaded["muhat"]) <= 1.1 * len(loaded["sklearn.svm"])
    assert {name.partition(".")[0] for name in loaded["muhat"] - loaded["sklearn.svm"]} <= {"muhat"}


def test_public_names():
    assert list(mh.__all__) == sorted(set(mh.__all__))
    extra = set(dir(mh)) - set(mh.__all__) - {"__version__"}
    assert extra <= set(mh._SUBPACKAGES), f"{sorted(extra)} are visible and not in __all__"
    assert all(inspect.ismodule(getattr(mh, name)) for name in extra)
    for name in mh.__all__:
        thing = getattr(mh, name)
        assert thing.__module__.startswith("muhat."), name
        assert thing.__doc__, f"{name} has no docstring"


def test_no_name_stands_twice_and_subpackages_keep_their_private_names():
    assert visits.shared_names() == []
    assert visits.private_accesses() == []


def test_star_import_brings_the_public_names():
    found = {}
    exec("from muhat import *", found)
    assert set(found) - {"__builtins__"} == set(mh.__all__)


def test_annotations_are_for_users_too():
    """The marker of PEP 561; without it type checkers see no annotation of ours."""
    assert (ROOT / "py.typed").is_file()


def test_every_public_name_has_one_home():
    defined = chain.from_iterable(
        (node.name for node in ast.parse(path.read_text(encoding="utf-8")).body if hasattr(node, "name"))
        for path in modules().values()
    )
    names = list(defined)
    assert [name for name in mh.__all__ if names.count(name) != 1] == []


def test_version():
    """The build takes it from ``muhat/__init__.py``; programs that cite read another file."""
    assert tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["dynamic"] == ["version", "readme"]
    assert f"\nversion: {mh.__version__}\n" in (PROJECT.parent / "CITATION.cff").read_text(encoding="utf-8")


def test_the_command_alone_prints_help_with_examples(capsys):
    assert command_line.main([]) == 0
    assert "muhat compare january.csv february.csv" in capsys.readouterr().out


def test_commands_name_an_extra_that_exists():
    extras = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert "files" in extras


def test_the_package_is_a_command(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["muhat", "--version"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("muhat", run_name="__main__")
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("muhat 0.")


def test_rooms_are_found_where_nobody_imported_them():
    for subpackage in mh._SUBPACKAGES:
        assert mh.__getattr__(subpackage) is importlib.import_module(f"muhat.{subpackage}")
    with pytest.raises(AttributeError, match="module 'muhat' has no attribute 'subpackages'"):
        mh.__getattr__("subpackages")


@pytest.mark.parametrize(("old", "name"), [("comparison", "Comparison"), ("monitor", "Drift")])
def test_moved_subpackages_are_found_with_a_warning(old, name):
    with pytest.warns(DeprecationWarning, match=rf"muhat\.{old} is muhat\.apps\."):
        assert inspect.isclass(getattr(mh.__getattr__(old), name))
