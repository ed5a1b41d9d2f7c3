"""Size and shape of the code: what a call visits, hidden state, shared names, and lines with comments.

python tools/visits.py            # files and functions that main calls visit, and counts over the package
python tools/visits.py --names    # and the names of the functions
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

import muhat as mh

PACKAGE = Path(mh.__file__).parent
HIDDEN = re.compile(r"__dict__|vars\(self\)|def __dir__|def __getattr__")


class Visits(NamedTuple):
    """The files of muhat that a call visited, and the functions, as (file, name) pairs."""

    files: set[str]
    functions: set[tuple[str, str]]


def visits(call: Callable[[], Any]) -> Visits:
    """Run a call under a profiler, and note each function of muhat that is entered."""
    functions: set[tuple[str, str]] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        comprehension = code.co_name.startswith("<")
        if event == "call" and code.co_filename.startswith(str(PACKAGE)) and not comprehension:
            functions.add((code.co_filename.removeprefix(f"{PACKAGE}/"), code.co_qualname))

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return Visits({file for file, _ in functions}, functions)


def calls() -> dict[str, Callable[[], Any]]:
    """Main calls, on data that are made before."""
    import pandas as pd

    from muhat.apps.cli.command_line import main

    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(2, 60, 3))
    frames = [pd.DataFrame(rows, columns=["a", "b", "c"]) for rows in (X, Y)]
    bags, targets = [rng.normal(size=(8, 2)) for _ in range(30)], rng.normal(size=30)

    def compare() -> None:
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            paths = [str(Path(folder) / f"{name}.csv") for name in "xy"]
            for frame, path in zip(frames, paths, strict=True):
                frame.to_csv(path, index=False)
            main(["compare", *paths, "--resamples", "19"])

    return {
        "ShrunkKernelMean().fit(X).mean_(Y)": lambda: mh.ShrunkKernelMean().fit(X).mean_(Y),
        "AdaptiveKernelMean().fit(X)": lambda: mh.AdaptiveKernelMean().fit(X),
        "KernelPCA(mean=ShrunkKernelMean()).fit(X)": lambda: mh.KernelPCA(2, mean=mh.ShrunkKernelMean()).fit(X),
        "mmd_test(frame, frame)": lambda: mh.mmd_test(*frames, n_resamples=19, random_state=0),
        "DistributionRidge: fit, predict": lambda: mh.DistributionRidge().fit(bags, targets).predict(bags),
        "DriftMonitor: fit, update": lambda: mh.DriftMonitor(20, random_state=0).fit(frames[0]).update(frames[1]),
        "muhat compare x.csv y.csv": compare,
    }


def sources() -> dict[str, str]:
    return {str(path.relative_to(PACKAGE)): path.read_text(encoding="utf-8") for path in sorted(PACKAGE.rglob("*.py"))}


def hidden_state() -> list[str]:
    """Places that reach behind attributes; the package's own lazy import is none."""
    found = sources().items()
    lines = ((name, i, line) for name, text in found for i, line in enumerate(text.splitlines(), 1))
    return [f"{name}:{i}" for name, i, line in lines if HIDDEN.search(line) and name != "__init__.py"]


def shared_names() -> list[str]:
    """Names of files or classes that the package has twice."""
    files = Counter(Path(name).name for name in sources() if Path(name).name not in ("__init__.py", "base.py"))
    parsed = [ast.parse(text) for text in sources().values()]
    classes = Counter(node.name for tree in parsed for node in tree.body if isinstance(node, ast.ClassDef))
    return sorted(name for counter in (files, classes) for name, times in counter.items() if times > 1)


def private_accesses() -> list[str]:
    """Private attributes that only another subpackage has, and private names of it, by the place that uses them."""
    trees = {name: ast.parse(text) for name, text in sources().items()}
    homes: dict[str, set[str]] = {}
    for name, tree in trees.items():
        for attribute in _own_names(tree):
            homes.setdefault(attribute, set()).add(name.partition("/")[0])
    nodes = ((name, node) for name, tree in trees.items() for node in ast.walk(tree))
    return [
        f"{name}:{node.lineno} {attribute}"
        for name, node in nodes
        for attribute in _used_names(node)
        if attribute not in ("_replace", "_fields", "_asdict")
        and homes.get(attribute)
        and name.partition("/")[0] not in homes[attribute]
    ]


def line_kinds() -> Counter[str]:
    """Lines of the package by what they hold: code, docstrings, comments, imports, or nothing."""
    kinds: Counter[str] = Counter()
    for text in sources().values():
        of_line = dict[int, str]()
        for node in ast.walk(ast.parse(text)):
            documents = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            if documents or isinstance(node, ast.Import | ast.ImportFrom):
                kind = "docstrings" if documents else "imports"
                of_line |= dict.fromkeys(range(node.lineno, (node.end_lineno or node.lineno) + 1), kind)
        for number, line in enumerate(text.splitlines(), 1):
            other = "comments" if line.strip().startswith("#") else "code" if line.strip() else "blank"
            kinds[of_line.get(number, other)] += 1
    return kinds


def _own_names(tree: ast.AST) -> Iterator[str]:
    """Private names that a module defines, or sets on ``self``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
            yield node.attr


def _used_names(node: ast.AST) -> Iterator[str]:
    """Private names that an expression asks for as an attribute, or that a line imports."""
    names = [node.attr] if isinstance(node, ast.Attribute) else []
    names += [alias.name for alias in node.names] if isinstance(node, ast.ImportFrom) else []
    yield from (name for name in names if re.match(r"_[a-zA-Z]", name))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--names", action="store_true", help="print the names of the functions too")
    names = parser.parse_args().names
    for name, call in calls().items():
        call()  # imports are no part of it
        files, functions = visits(call)
        print(f"{name:<42} {len(files):3} files, {len(functions):3} functions")
        if names:
            print(*(f"    {file}: {function}" for file, function in sorted(functions)), sep="\n")
    kinds = line_kinds()
    counted = ", ".join(f"{number:,} {kind}" for kind, number in kinds.most_common())
    print(f"{kinds.total():,} lines in {len(sources())} files: {counted}")
    for title, found in (
        ("hidden state", hidden_state()),
        ("names that stand twice", shared_names()),
        ("private attributes of other subpackages", private_accesses()),
    ):
        print(f"{title}: {len(found)}", *(f"    {place}" for place in found), sep="\n")


if __name__ == "__main__":
    main()
