"""Measured numbers of README and docs: taken from what benchmarks printed, and written where pages name them.

``benchmarks/printed/NAME.txt`` keeps what a command printed, below the command and the version. A page names its
numbers in comments that readers do not see:

    RMSE ratio 0.92<!--few_groups 1 = spreads-->
    | 5 % within ±15 | 4.11 | 4.00 | 3.70<!--density 1 2 3 = 5% within ±15-->|
    <!--table growth = | call | 1,000 rows |-->

The numbers before the first comment are the first number, and so on, of the line of few_groups.txt that begins with
"spreads"; numbers within that beginning do not count. ``3%`` is the third number times 100, and ``HEAD > LINE`` takes
the first such line after one that has HEAD. A number keeps its form: digits, commas, no zero before the point. The
third comment stands before a table that is taken as it was printed.

python tools/figures.py                    # write the numbers into the pages, and say which have changed
python tools/figures.py --run NAME ...     # first run the commands again, and keep what they print
python tools/figures.py --run idle         # all commands that measure time, on an idle machine
python tools/figures.py --new NAME COMMAND # keep a command of yours; --new NAME "COMMAND" --idle if it measures time
"""

from __future__ import annotations

import argparse
import re
import resource
import shlex
import subprocess
import sys
from contextlib import suppress
from decimal import ROUND_HALF_EVEN, Decimal
from pathlib import Path

import muhat

ROOT = Path(__file__).parents[1]
PRINTED = ROOT / "benchmarks" / "printed"
VERSION = muhat.__version__
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

MARK = re.compile(r"<!--(?P<name>\w+) (?P<places>\d+%?(?: \d+%?)*) = (?P<line>.*?)-->")
TABLE = re.compile(r"<!--table (?P<name>\w+) = (?P<line>.*?)-->\n\n(?P<table>(?:\|.*\n)+)")
NUMBER = re.compile(r"(?<![\w.])[-−]?(?:\d+(?:,\d{3})+(?:\.\d+)?|\d*\.?\d+)(?:e-?\d+)?(?!\w)")


def kept() -> dict[str, tuple[str, str, list[str]]]:
    """Command, head with the version, and lines that were printed, by name."""
    texts = {path.stem: path.read_text(encoding="utf-8").splitlines() for path in sorted(PRINTED.glob("*.txt"))}
    return {name: (lines[0].removeprefix("$ "), lines[1], lines[2:]) for name, lines in texts.items()}


def printed_line(name: str, place: str) -> str:
    """What follows the beginning of a line, within the part of the output that HEAD opens."""
    lines = [" ".join(line.split()) for line in kept()[name][2]]
    *heads, start = place.split(" > ")
    for head in heads:
        lines = lines[next((i for i, line in enumerate(lines) if head in line), len(lines)) + 1 :]
    found = [line.removeprefix(start) for line in lines if line.startswith(start)]
    if not found or (len(found) > 1 and not heads):
        raise LookupError(f"{name}.txt has {len(found)} lines that begin with {start!r}; write HEAD > LINE")
    return found[0]


def quoted(mark: re.Match[str]) -> list[Decimal]:
    """The numbers that a comment names."""
    numbers = NUMBER.findall(printed_line(mark["name"], mark["line"]))
    places = mark["places"].split()
    if max(int(place.rstrip("%")) for place in places) > len(numbers):
        raise LookupError(f"{mark[0]}: the line has {len(numbers)} numbers")
    return [value(numbers[int(place.rstrip("%")) - 1]) * (100 if "%" in place else 1) for place in places]


def value(number: str) -> Decimal:
    return Decimal(number.replace(",", "").replace("−", "-"))


def written(number: Decimal, form: str) -> str:
    """The number with as many digits as the form has; a form without a sign stands for the size."""
    rounded = abs(number).quantize(Decimal(1).scaleb(-len(form.partition(".")[2])), ROUND_HALF_EVEN)
    text = f"{rounded:{',' if rounded >= 1000 else ''}f}"
    text = text.removeprefix("0") if form.lstrip("-−").startswith(".") else text
    return ("−" if number < 0 else "") + text if form[0] in "-−" else text


def renewed(page: str) -> str:
    """The page with all numbers and tables as they were printed."""
    page = TABLE.sub(lambda found: found[0].removesuffix(found["table"]) + printed_table(found), page)
    parts, end = [], 0
    for mark in MARK.finditer(page):
        text, numbers = page[end : mark.start()], quoted(mark)
        places = list(NUMBER.finditer(text))[-len(numbers) :]
        if len(places) < len(numbers):
            raise LookupError(f"{mark[0]} stands behind {len(places)} numbers")
        for number, place in reversed(list(zip(numbers, places, strict=True))):
            text = text[: place.start()] + written(number, place[0]) + text[place.end() :]
        parts += [text, mark[0]]
        end = mark.end()
    return "".join([*parts, page[end:]])


def printed_table(found: re.Match[str]) -> str:
    text = "\n".join(kept()[found["name"]][2])
    return text[text.index(found["line"]) :].partition("\n\n")[0].rstrip("\n") + "\n"


def complaints() -> list[str]:
    """Pages whose numbers are not those printed, or that do not name the command."""
    found = []
    for path in PAGES:
        page = path.read_text(encoding="utf-8")
        try:
            new = renewed(page)
        except LookupError as error:
            found.append(f"{path.name}: {error}")
            continue
        found += [
            f"{path.name}: {old} -> {now}"
            for old, now in zip(page.splitlines(), new.splitlines(), strict=False)
            if old != now
        ]
        for name in {mark["name"] for mark in [*MARK.finditer(page), *TABLE.finditer(page)]}:
            script = re.search(r"[\w/]+\.py|paper \w+", kept()[name][0])
            if script and script[0] not in " ".join(page.split()):
                found.append(f"{path.name} does not name the command of {name}")
    return found


def earlier() -> list[str]:
    """Outputs that an earlier version printed: their heads say which."""
    return [name for name, (_, head, _) in kept().items() if not head.startswith(f"# muhat {VERSION},")]


def run(name: str, command: str, idle: bool) -> None:
    """Run a command, and keep what it prints."""
    words = [sys.executable if word == "python" else word for word in shlex.split(command)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)  # 1: a goal was missed
    if not done.stdout:
        raise RuntimeError(f"{command} printed nothing: {done.stderr.strip()}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    head = f"$ {command}\n# muhat {VERSION}, {seconds:.0f} s of processor time{', idle machine' if idle else ''}\n"
    (PRINTED / f"{name}.txt").write_text(head + done.stdout, encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--run", nargs="*", metavar="NAME", default=[], help='commands to run again; "idle": all that measure time')
    add("--new", nargs=2, metavar=("NAME", "COMMAND"), help="a command to run and keep")
    add("--idle", action="store_true", help="the new command measures time")
    arguments = parser.parse_args()
    if arguments.new:
        run(*arguments.new, arguments.idle)
    known = {name: (command, head.endswith("idle machine")) for name, (command, head, _) in kept().items()}
    names = [name for name, (_, idle) in known.items() if idle] if arguments.run == ["idle"] else arguments.run
    for name in names:
        print(f"running {known[name][0]}", flush=True)
        run(name, *known[name])
    found = complaints()
    print("\n".join(found) or "pages have the numbers that were printed")
    if old := earlier():
        print(f"printed by an earlier version, as their heads say: {', '.join(old)}")
    for path in PAGES:
        with suppress(LookupError):  # a complaint above
            path.write_text(renewed(path.read_text(encoding="utf-8")), encoding="utf-8")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
