"""Figures of README and docs: which command prints them, and whether text and output still have the same numbers.

``benchmarks/figures.toml`` lists for each command the pages that quote it and the numbers that they quote; the output
of the command on this version is kept in ``benchmarks/printed``. Numbers in doctests are not listed: the tests run
them.

python tools/figures.py               # list all figures, and what does not agree
python tools/figures.py --run NAME    # run a command and keep what it prints
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
REGISTRY = ROOT / "benchmarks" / "figures.toml"
PRINTED = ROOT / "benchmarks" / "printed"


def figures() -> dict[str, dict[str, Any]]:
    """The registry: name -> command, pages and numbers."""
    return tomllib.loads(REGISTRY.read_text(encoding="utf-8"))


def disagreements(name: str, figure: dict[str, Any]) -> list[str]:
    """Numbers that a page or the kept output of the command does not have."""
    kept = PRINTED / f"{name}.txt"
    places = {page: ROOT / page for page in figure["pages"]} | {f"benchmarks/printed/{name}.txt": kept}
    missing = [f"{name}: there is no {place}" for place, path in places.items() if not path.is_file()]
    texts = {place: path.read_text(encoding="utf-8") for place, path in places.items() if path.is_file()}
    return missing + [
        f"{name}: {place} does not have {number}"
        for place, text in texts.items()
        for number in figure["numbers"]
        if number not in text
    ]


def run(name: str, command: str) -> None:
    """Run a command of the registry, and keep what it prints."""
    words = [sys.executable if word == "python" else word for word in shlex.split(command)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    PRINTED.mkdir(exist_ok=True)
    (PRINTED / f"{name}.txt").write_text(f"$ {command}\n{done.stdout}", encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--run", nargs="*", metavar="NAME", default=[], help="commands to run again")
    arguments = parser.parse_args()
    registry = figures()
    for name in arguments.run:
        run(name, registry[name]["command"])
    complaints = []
    for name, figure in registry.items():
        print(f"{name}: {figure['command']}\n    {', '.join(figure['numbers'])} in {', '.join(figure['pages'])}")
        complaints += disagreements(name, figure)
    print("\n".join(complaints) or "text and output agree")
    return bool(complaints)


if __name__ == "__main__":
    sys.exit(main())
