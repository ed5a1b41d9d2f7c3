"""Do the tests notice a change of the code? ``make mutants``, or ``python tests/mutants.py --room means --count 5``.

Of every module a random sample of small changes is made, one at a time, in a copy of the sources: an operator, a
comparison, a constant, a condition, a sign. Constants of a module are left alone: most of them tune the speed. The
quick tests of the room run on the copy; with ``--whole`` those of all rooms follow where they pass. A change that
nobody notices survives. ``accepted_mutants.txt`` lists survivors that change nothing a user can see, each with its
reason; the command ends with 1 where another one survives.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "muhat"
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
    line: int
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


def expressions(node: ast.AST, function: str = "") -> list[tuple[str, ast.expr]]:
    """Expressions that compute, with the function they are in: no annotations, messages or constants of a module."""
    if isinstance(node, ast.Raise | ast.JoinedStr | ast.Assert | ast.Import | ast.ImportFrom):
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
    own = [(function, node)] if isinstance(node, ast.expr) and function else []
    return own + [found for child in children for found in expressions(child, function)]


def mutants(path: Path) -> list[Mutant]:
    """All mutants of a file."""
    text, found = path.read_text(encoding="utf-8"), []
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    lines = text.splitlines()

    def place(line: int, column: int) -> int:  # columns of the parser are bytes
        return starts[line - 1] + len(lines[line - 1].encode()[:column].decode())

    for function, node in expressions(ast.parse(text)):
        for change in changes(node):
            span = place(node.lineno, node.col_offset), place(node.end_lineno or 0, node.end_col_offset or 0)
            after = f"({ast.unparse(ast.fix_missing_locations(change))})"
            module = path.relative_to(PACKAGE).as_posix()
            found.append(Mutant(module, function, node.lineno, span, " ".join(text[slice(*span)].split()), after))
    return found


def tests_of(module: str) -> list[str]:
    """Where a change of the module should be noticed: the room's folder, or the file's own tests."""
    room = module.partition("/")[0].removesuffix(".py")
    own = [ROOT / "tests" / room, ROOT / "tests" / f"test_{room}.py"]
    return [str(path.relative_to(ROOT)) for path in own if path.exists()]


def noticed(mutant: Mutant, copy: Path, tests: list[str], limit: float) -> bool:
    """Whether a test fails on the copy; one that never ends is noticed too."""
    path = copy / "muhat" / mutant.module
    original = path.read_text(encoding="utf-8")
    path.write_text(mutant.apply(original), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-m", "not slow", "-p", "no:cacheprovider", *tests]
    settings = {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1", "OPENBLAS_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=os.environ | settings, capture_output=True, timeout=limit, check=False
        )
        return done.returncode != 0
    except subprocess.TimeoutExpired:
        return True
    finally:
        path.write_text(original, encoding="utf-8")


def accepted() -> dict[str, str]:
    """Mutant -> the reason why it may survive."""
    rows = [line for line in ACCEPTED.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    return dict(line.split(" | ") for line in rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--room", nargs="*", help="rooms, or paths such as means/robust.py; all of them by default")
    parser.add_argument("--count", type=int, default=2, help="mutants of each module")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--whole", action="store_true", help="show survivors of the room to the quick tests of all rooms"
    )
    parser.add_argument("--limit", type=float, default=600.0, help="seconds after which a run counts as noticed")
    options = parser.parse_args()
    known, survivors, tried = accepted(), [], 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(
            shutil.copytree(PACKAGE, Path(folder) / "muhat", ignore=shutil.ignore_patterns("__pycache__"))
        ).parent
        for path in sorted(PACKAGE.rglob("*.py")):
            module = path.relative_to(PACKAGE).as_posix()
            if options.room and not any(module == room or module.startswith(f"{room}/") for room in options.room):
                continue
            found = mutants(path)
            chosen = random.Random(f"{options.seed} {module}").sample(found, min(options.count, len(found)))
            for mutant in chosen:
                tried += 1
                if noticed(mutant, copy, tests_of(module), options.limit) or (
                    options.whole and noticed(mutant, copy, ["tests"], options.limit)
                ):
                    continue
                reason = known.get(str(mutant))
                print(f"line {mutant.line} of {mutant}" + (f"  (accepted: {reason})" if reason else ""), flush=True)
                if reason is None:
                    survivors.append(mutant)
    print(f"{tried} mutants, {len(survivors)} survive without a reason")
    return bool(survivors)


if __name__ == "__main__":
    sys.exit(main())
