"""Figures of README and docs: which command prints them, and whether text and output still have the same numbers.

``benchmarks/figures.toml`` lists for each command the pages that quote it and the numbers that they quote; the output
of the command on this version is kept in ``benchmarks/printed``. A page may round a number, and write a share as a
percentage. Numbers in doctests are not listed: the tests run them. Commands that measure time are marked ``idle``,
and are to be run on an idle machine. A whole table that a command prints as the page has it is listed in ``tables``
by its first line, in place of its numbers.

python tools/figures.py                    # list all figures, and what does not agree
python tools/figures.py --run NAME ...     # run commands and keep what they print
python tools/figures.py --run idle         # run all commands that measure time
"""

from __future__ import annotations

import argparse
import re
import resource
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
REGISTRY = ROOT / "benchmarks" / "figures.toml"
PRINTED = ROOT / "benchmarks" / "printed"
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]

NUMBER = re.compile(r"(?<![\w.])-?\d*\.?\d+(?:,\d{3})*(?:\.\d+)?(?:e-?\d+)?(?!\w)")


def figures() -> dict[str, dict[str, Any]]:
    """The registry: name -> command, pages and numbers."""
    return tomllib.loads(REGISTRY.read_text(encoding="utf-8"))


def value(number: str) -> float:
    return float(number.replace(",", ""))


def last_digit(number: str) -> float:
    """What the last digit of a number is worth: 0.01 of "0.25", 1 of "1,131"."""
    digits, _, exponent = number.replace(",", "").partition("e")
    return 10.0 ** (int(exponent or 0) - len(digits.partition(".")[2]))


def is_printed(number: str, printed: list[float]) -> bool:
    """Whether a number, or a percentage such as "55 %", is one of those printed, rounded to its digits, signs aside."""
    share = number.endswith("%")
    wanted = value(number.removesuffix("%").strip())
    slack = (0.5 + 1e-6) * last_digit(number.removesuffix("%").strip())
    scales = (1.0, 100.0) if share else (1.0,)
    return any(abs(abs(found) * scale - abs(wanted)) <= slack for found in printed for scale in scales)


def has(text: str, number: str) -> bool:
    return re.search(rf"(?<![\d.,]){re.escape(number)}(?![\d%]|[.,]\d)", text) is not None


def disagreements(name: str, figure: dict[str, Any]) -> list[str]:
    """Numbers that no page has, or that the kept output of the command on this version does not have."""
    lost = [page for page in figure["pages"] if not (ROOT / page).is_file()]
    if lost:
        return [f"{name}: there is no {page}" for page in lost]
    texts = {page: (ROOT / page).read_text(encoding="utf-8") for page in figure["pages"]}
    complaints = [
        f"{name}: {page} does not name the command" for page, text in texts.items() if not names(text, figure)
    ]
    complaints += [
        f"{name}: no page has {number}"
        for number in figure["numbers"]
        if not any(has(text, number) for text in texts.values())
    ]
    kept = PRINTED / f"{name}.txt"
    if not kept.is_file():
        return [*complaints, f"{name}: nothing is kept; run python tools/figures.py --run {name}"]
    head, of_version, *lines = kept.read_text(encoding="utf-8").splitlines()
    if head != f"$ {figure['command']}" or not of_version.startswith(f"# muhat {VERSION},"):
        complaints.append(f"{name}: what is kept was printed by another command or version")
    complaints += [
        f"{name}: the command prints another table {first!r}"
        for first in figure.get("tables", [])
        if not any(first in text and table(text, first) in "\n".join(lines) for text in texts.values())
    ]
    printed = [value(number) for number in NUMBER.findall("\n".join(lines))]
    return complaints + [
        f"{name}: the command does not print {number}"
        for number in figure["numbers"]
        if not is_printed(number, printed)
    ]


def table(text: str, first: str) -> str:
    """The table of a page that begins with a line."""
    return text[text.index(first) :].partition("\n\n")[0]


def names(text: str, figure: dict[str, Any]) -> bool:
    """Whether a page names the script of a command; options may be left out."""
    script = re.search(r"[\w/]+\.py|muhat \w+", figure["command"])
    return script is None or script[0] in " ".join(text.split())


def run(name: str, command: str) -> None:
    """Run a command of the registry, and keep what it prints."""
    words = [sys.executable if word == "python" else word for word in shlex.split(command)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)  # 1: a goal was missed
    if not done.stdout:
        raise RuntimeError(f"{command} printed nothing: {done.stderr.strip()}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    PRINTED.mkdir(exist_ok=True)
    head = f"$ {command}\n# muhat {VERSION}, {seconds:.0f} s of processor time\n"
    (PRINTED / f"{name}.txt").write_text(head + done.stdout, encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--run", nargs="*", metavar="NAME", default=[], help='commands to run again; "idle": all timings'
    )
    arguments = parser.parse_args()
    registry = figures()
    for name in arguments.run:
        for chosen in [key for key in registry if registry[key].get("idle")] if name == "idle" else [name]:
            print(f"running {registry[chosen]['command']}", flush=True)
            run(chosen, registry[chosen]["command"])
    complaints = []
    for name, figure in registry.items():
        print(f"{name}: {figure['command']}\n    {len(figure['numbers'])} numbers, in {', '.join(figure['pages'])}")
        complaints += disagreements(name, figure)
    print("\n".join(complaints) or "text and output agree")
    return bool(complaints)


if __name__ == "__main__":
    sys.exit(main())
