"""Mutation testing: ``make mutants``, or ``python tools/mutants.py --subpackage means --count 5``.

Of every module a random sample of small changes is made, one at a time, in a copy of the sources: an operator, a
comparison, a constant, a condition, a sign. Constants of a module are left alone: most of them tune the speed. So are
assertions, among them ``zip(..., strict=True)``. The quick tests that reach the changed line run on the copy; a first
run of all tests under ``coverage`` says which these are, and ``--map FILE`` keeps what it finds. Where none is quick,
all tests of the subpackage run. A change that nobody notices survives. ``accepted_mutants.txt`` lists survivors that
change nothing a user can see, each with its reason; the command ends with 1 where another one survives. It needs a
system that can fork.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

import pytest
from coverage import CoverageData

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "muhat"
LOADED = ("scipy.stats", "scipy.optimize", "sklearn.svm", "sklearn.utils.estimator_checks", "pandas", "numba", "duckdb")
LOADED += ("polars", "matplotlib.pyplot", "joblib", "dask.array")
"""What takes long to load; each run has it already."""
_NO_TESTS = (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.NO_TESTS_COLLECTED)
"""All are slow, or have other names by now."""
_BROKEN, _ENDLESS = 70, 71
ACCEPTED = Path(__file__).with_name("accepted_mutants.txt")
SWAPS = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
NAMES = {"any": "all", "all": "any", "min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum"}
NAMES |= {"argmin": "argmax", "argmax": "argmin", "zeros": "ones", "ones": "zeros"}


@dataclass(frozen=True)
class Mutant:
    """One change: where it is, and the two texts."""

    module: str
    function: str
    lines: range  # from the start of its statement
    span: tuple[int, int]
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.module}::{self.function}: {self.before} -> {self.after}"

    def apply(self, text: str) -> str:
        return text[: self.span[0]] + self.after + text[self.span[1] :]


def changes(node: ast.AST) -> list[ast.expr]:
    """What an expression may become."""
    found: list[ast.expr] = []
    if isinstance(node, ast.BinOp) and type(node.op) in SWAPS:
        found.append(ast.BinOp(node.left, SWAPS[type(node.op)](), node.right))
    elif isinstance(node, ast.BoolOp):
        found.append(ast.BoolOp(SWAPS[type(node.op)](), node.values))
    elif isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in SWAPS:
        found.append(ast.Compare(node.left, [SWAPS[type(node.ops[0])]()], node.comparators))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not):
        found.append(node.operand)
    elif isinstance(node, ast.Constant) and type(node.value) is bool:
        found.append(ast.Constant(not node.value))
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        found.append(ast.Constant(node.value + 1))
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
        name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
        if name in NAMES:
            other = NAMES[name]
            func = ast.Name(other) if isinstance(node.func, ast.Name) else ast.Attribute(node.func.value, other)
            found.append(ast.Call(func, node.args, node.keywords))
    elif isinstance(node, ast.IfExp):
        found.append(ast.IfExp(node.test, node.orelse, node.body))
    return found


def expressions(node: ast.AST, function: str = "", start: int = 0) -> list[tuple[str, int, ast.expr]]:
    """Expressions that compute, with their function and the line where their statement starts.

    Annotations, messages, assertions and constants of a module are left out.
    """
    start = node.lineno if isinstance(node, ast.stmt) else start
    if isinstance(node, ast.Raise | ast.JoinedStr | ast.Assert | ast.Import | ast.ImportFrom):
        return []
    if isinstance(node, ast.keyword) and node.arg == "strict":
        return []
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        function = f"{function}.{node.name}".lstrip(".")
        children: list[ast.AST] = list(node.body)
        if isinstance(node, ast.FunctionDef):
            children += [default for default in (*node.args.defaults, *node.args.kw_defaults) if default]
    elif isinstance(node, ast.AnnAssign):
        children = [node.value] if node.value else []
    else:
        children = list(ast.iter_child_nodes(node))
    own = [(function, start, node)] if isinstance(node, ast.expr) and function else []
    return own + [found for child in children for found in expressions(child, function, start)]


def mutants(path: Path) -> list[Mutant]:
    """All mutants of a file."""
    text, found = path.read_text(encoding="utf-8"), []
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    lines = text.splitlines()

    def place(line: int, column: int) -> int:  # columns of the parser are bytes
        return starts[line - 1] + len(lines[line - 1].encode()[:column].decode())

    for function, start, node in expressions(ast.parse(text)):
        for change in changes(node):
            span = place(node.lineno, node.col_offset), place(node.end_lineno or 0, node.end_col_offset or 0)
            after = f"({ast.unparse(ast.fix_missing_locations(change))})"
            module = path.relative_to(PACKAGE).as_posix()
            reached = range(start, (node.end_lineno or start) + 1)
            found.append(Mutant(module, function, reached, span, " ".join(text[slice(*span)].split()), after))
    return found


def subpackage_of(module: str) -> str:
    """The folder of a module; that of an application is below ``apps``."""
    return module.removeprefix("apps/").partition("/")[0].removesuffix(".py")


def own_tests(module: str) -> list[str]:
    """The folder of the module's subpackage, or the file's own tests."""
    own = [ROOT / "tests" / subpackage_of(module)]
    own += [ROOT / "tests" / f"test_{name}.py" for name in (subpackage_of(module), Path(module).stem)]
    return [str(path.relative_to(ROOT)) for path in own if path.exists()]


def make_map(path: Path) -> None:
    """Run all tests of the folder once, and write down which lines each of them reaches."""
    settings = {"COVERAGE_FILE": str(path), "PYTHONPATH": str(PACKAGE.parent), "OPENBLAS_NUM_THREADS": "1"}
    skipped = [f"--ignore=tests/test_{name}.py" for name in ("benchmarks", "examples", "docs")]
    command = [sys.executable, "-m", "pytest", "-q", "--cov=muhat", "--cov-context=test", "--cov-report=", *skipped]
    subprocess.run([*command, "tests"], cwd=ROOT, env=os.environ | settings, check=True)


class Reach:
    """Which tests reach a line."""

    def __init__(self, path: Path) -> None:
        self.data = CoverageData(str(path))
        self.data.read()
        self.files = {file.rpartition("src/muhat/")[2]: file for file in self.data.measured_files()}

    def tests(self, mutant: Mutant) -> list[str]:
        """Tests that reach the mutant: stored answers, then its subpackage; None where another process runs it."""
        file = self.files.get(mutant.module)
        contexts = self.data.contexts_by_lineno(file) if file else {}
        found = {context.rpartition("|")[0] for line in mutant.lines for context in contexts.get(line, [])}
        first = ["tests/test_snapshots.py", *own_tests(mutant.module)]
        return sorted(
            (test for test in found if test.startswith("tests/")),
            key=lambda test: next((i for i, place in enumerate(first) if test.startswith(place)), len(first)),
        )


def _run_here(copy: Path, tests: list[str]) -> int:
    """The exit code of the tests, in this process, which says nothing."""
    os.setsid()
    with open(os.devnull, "w") as silence:
        os.dup2(silence.fileno(), 1)
        os.dup2(silence.fileno(), 2)
    os.chdir(ROOT)
    os.environ |= {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(copy))
    return pytest.main(["-x", "-q", "-p", "no:cacheprovider", *tests])


def run(copy: Path, tests: list[str], limit: float) -> int:
    """The exit code of the tests on the copy, ``_ENDLESS`` where they do not end.

    They run in a fork of this process, which has loaded all but the package itself.
    """
    child = os.fork()
    if child == 0:
        code = _BROKEN
        try:
            code = _run_here(copy, tests)
        finally:
            os._exit(code)
    end = time.monotonic() + limit
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done and (code := os.waitstatus_to_exitcode(status)) == _BROKEN:
            raise RuntimeError(f"pytest does not run {tests}")
        if done:
            return code
        time.sleep(0.05)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return _ENDLESS


def outcome(mutant: Mutant, copy: Path, reach: Reach, limit: float) -> str:
    """Killed where one of the quick tests that reach the line fails, or where there are none, one of the subpackage's.

    Tests that do not end notice the change too, and are counted apart: a loaded machine needs a larger limit.
    """
    path = copy / "muhat" / mutant.module
    original = path.read_text(encoding="utf-8")
    path.write_text(mutant.apply(original), encoding="utf-8")
    try:
        reaching, own = reach.tests(mutant), own_tests(mutant.module)
        code = run(copy, ["-m", "not slow", *reaching], limit) if reaching else pytest.ExitCode.NO_TESTS_COLLECTED
        if code in _NO_TESTS and own:
            code = run(copy, own, limit)
        if code in (pytest.ExitCode.OK, *_NO_TESTS):
            return "survive"
        return "endless" if code == _ENDLESS else "killed"
    finally:
        path.write_text(original, encoding="utf-8")


def accepted() -> dict[str, str]:
    """Mutant -> the reason why it may survive."""
    rows = [line for line in ACCEPTED.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    return dict(line.split(" | ") for line in rows)


def chosen(subpackages: list[str], count: int, seed: int) -> list[Mutant]:
    """A random sample of the mutants of each module."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        module = path.relative_to(PACKAGE).as_posix()
        if not subpackages or any(
            module == subpackage or module.startswith(f"{subpackage}/") for subpackage in subpackages
        ):
            every = mutants(path)
            found += random.Random(f"{seed} {module}").sample(every, min(count, len(every)))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--subpackage", nargs="*", default=[], help="subpackages, or paths such as means/robust.py; all by default"
    )
    parser.add_argument("--count", type=int, default=2, help="mutants of each module")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--map", type=Path, help="which test reaches which line; made there where it does not exist")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds after which a run counts as noticed")
    options = parser.parse_args()
    known, counts = accepted(), defaultdict(Counter)
    with tempfile.TemporaryDirectory() as folder:
        where = options.map or Path(folder) / "reach"
        if not where.exists():
            make_map(where)
        reach = Reach(where)
        for library in LOADED:
            importlib.import_module(library)
        copy = Path(folder) / "copy"
        shutil.copytree(PACKAGE, copy / "muhat", ignore=shutil.ignore_patterns("__pycache__"))
        for mutant in chosen(options.subpackage, options.count, options.seed):
            subpackage = subpackage_of(mutant.module)
            reason = known.get(str(mutant))
            found = outcome(mutant, copy, reach, options.limit)
            found = "accepted" if found == "survive" and reason else found
            counts[subpackage][found] += 1
            if found != "killed":
                print(f"{found}: line {mutant.lines[-1]} of {mutant}" + (f"  ({reason})" if reason else ""), flush=True)
    every = {str(mutant) for path in PACKAGE.rglob("*.py") for mutant in mutants(path)}
    for gone in known.keys() - every:
        print(f"accepted, and there is no such change any more: {gone}")
    for subpackage, count in (*counts.items(), ("all", total := sum(counts.values(), Counter()))):
        numbers = (f"{count[name]:4} {name}" for name in ("killed", "endless", "accepted", "survive"))
        print(f"{subpackage:20}", *numbers)
    return bool(total["survive"])


if __name__ == "__main__":
    sys.exit(main())
