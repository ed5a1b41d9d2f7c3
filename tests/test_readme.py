"""README: its commands are in the Makefile, and its examples need what its install line brings and nothing else."""

import re
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions
from itertools import chain
from pathlib import Path

import pytest
import readme
from index_readme import for_package_index

ROOT = Path(__file__).parents[1]

BLOCKED = """
import sys
class Refused:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in blocked:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Refused())
"""


REQUIREMENT = re.compile(r"([\w.-]+)(?:\[([\w,-]+)\])?")


def brought(lines):
    """Names of the distributions that requirements bring, with what these bring in turn."""
    found, waiting = set(), [(line, set()) for line in lines]
    while waiting:
        line, asked = waiting.pop()
        extra = re.search(r"extra == ['\"]([\w-]+)['\"]", line)
        if extra is not None and extra[1] not in asked:
            continue
        name, extras = REQUIREMENT.match(line).groups()
        try:
            declared = distribution(name).requires or []
        except PackageNotFoundError:  # for another system
            continue
        if normal(name) not in found or extras:
            found.add(normal(name))
            waiting += [(each, set((extras or "").split(","))) for each in declared]
    return found


def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def test_the_makefile_has_the_commands():
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    named = [line.removeprefix("make ") for line in readme.commands() if line.startswith("make ")]
    assert {"reproduce", "test"} <= set(named) <= set(targets)


@pytest.mark.parametrize("source", [None, "https://example.org/muhat"])
def test_a_package_index_has_no_links_into_a_clone(source):
    text = for_package_index(readme.README.read_text(encoding="utf-8"), source)
    targets = re.findall(r"\]\((.+?)\)|src=\"(.+?)\"", text)
    assert all("".join(target).startswith("https://") for target in targets)
    assert (len(targets) > 10) == (source is not None)
    assert "<!--" not in text
    assert "docs/paper.md" in text


@pytest.mark.slow
def test_examples_need_what_the_install_line_brings(tmp_path):
    """``make readme`` shows the same in an environment of its own."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = REQUIREMENT.match(readme.requirement().replace(".", "muhat", 1))[2].split(",")
    lines = [*project["dependencies"], *chain(*(project["optional-dependencies"][extra] for extra in extras))]
    here = brought(lines) | {"muhat", "pip", "setuptools"}
    blocked = {module for module, names in packages_distributions().items() if not here & set(map(normal, names))}
    assert {"pytest", "polars", "numba", "jinja2"} <= blocked
    assert not {"pandas", "duckdb", "matplotlib", "numpy", "muhat"} & blocked
    code = f"blocked = {blocked!r}\n{BLOCKED}\n{readme.RUN}"
    done = subprocess.run(
        [sys.executable, "-c", code, str(readme.README)], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
