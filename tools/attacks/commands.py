"""Hostile surroundings: commands as processes with closed streams, odd temporary folders, signals and little memory.

python tools/attacks/commands.py [--only NAME]

A command answers with 0 or 1, or ends with 2 and one line on standard error; never with a traceback, never with an
answer that it has not found, and it leaves nothing in the temporary folder. On systems of POSIX.
"""

from __future__ import annotations

import argparse
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

LIMIT = 120
"""Seconds that a command may take."""

SMALL_COPIES = "import sys; from muhat.apps.files import opening; opening.MOST_COPIED = 10**7; "
RUN = "import sys; from muhat.apps.cli.command_line import main; sys.exit(main(sys.argv[1:]))"

ODD_NAMES = ("it's", 'a"b', "a?b", "a*b", "a[b]c", "a b", "a{b,c}d", "a;b", "a%20b", "$HOME", "ä€")

Fault = str | None


def comparison(folder: Path) -> list[str]:
    """A command over small tables that differ."""
    rng = np.random.default_rng(0)
    for name, shift in (("a", 0.0), ("b", 1.0)):
        rows = rng.normal(size=(120, 3)) + shift
        np.savetxt(folder / f"{name}.csv", rows, fmt="%.4f", delimiter=",", header="x,y,z", comments="")
    return ["compare", str(folder / "a.csv"), str(folder / "b.csv"), "--resamples", "99"]


DIFFER = 1


def started(folder: Path, command: list[str], before: str = "", **options: Any) -> subprocess.Popen[str]:
    """A command whose temporary files lie in the folder ``tmp``."""
    (folder / "tmp").mkdir(exist_ok=True)
    environment = {**os.environ, "TMPDIR": str(folder / "tmp"), **options.pop("env", {})}
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    return subprocess.Popen([sys.executable, "-c", before + RUN, *command], env=environment, text=True, **streams)


def fault(folder: Path, process: subprocess.Popen[str], expected: int | tuple[int, ...]) -> Fault:
    """What is wrong with how a command ended."""
    try:
        out, err = process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return f"it did not end within {LIMIT} s"
    code = process.returncode
    codes = expected if isinstance(expected, tuple) else (expected,)
    said = [line for line in (err or "").splitlines() if line.startswith("muhat")]
    if code not in codes:
        return f"exit code {code}, not {expected}: {(err or '')[-300:]}"
    if "Traceback" in (err or "") or (code == 2 and err is not None and len(said) != 1):
        return f"not one line on standard error: {err[-300:]}"
    left = [path.name for path in folder.glob("tmp*/**/*")]
    if left:
        return f"left behind: {left}"
    return None if code == 2 or not out or out.isprintable() or "\x1b" not in out else "escape sequences in the output"


def closed_streams(folder: Path) -> Iterator[tuple[str, Fault]]:
    """Nobody reads the output, it is closed, the disk is full; standard error or input is closed."""
    command = comparison(folder)
    reader, writer = os.pipe()
    os.close(reader)
    yield "| head -0", fault(folder, started(folder, command, stdout=writer), 141)
    yield "2| head -0", fault(folder, started(folder, command, stderr=writer), (DIFFER, 141))
    os.close(writer)
    for number, expected in ((1, 2), (2, DIFFER), (0, DIFFER)):
        process = started(folder, command, preexec_fn=lambda number=number: os.close(number))
        yield f"{number}>&-", fault(folder, process, expected)
    if Path("/dev/full").exists():
        with open("/dev/full", "w") as full:
            yield "> /dev/full", fault(folder, started(folder, command, stdout=full), 2)
    short = [part if not part.endswith("b.csv") else "-" for part in command]
    process = started(folder, short, preexec_fn=lambda: os.close(0))
    yield "- <&-", fault(folder, process, 2)


def odd_folders(folder: Path, names: Sequence[str] = ODD_NAMES) -> Iterator[tuple[str, Fault]]:
    """Temporary folders whose names hold signs that shells, SQL and patterns interpret."""
    command = comparison(folder)
    for name in names:
        odd = folder / "odd" / name
        odd.mkdir(parents=True, exist_ok=True)
        found = fault(folder, started(folder, command, env={"TMPDIR": str(odd)}), DIFFER)
        left = [path.name for path in odd.iterdir()]
        yield name, found or (f"left behind: {left}" if left else None)


def endless_input(folder: Path) -> Iterator[tuple[str, Fault]]:
    """Devices and pipes without an end; the limit is lowered so that it is reached soon."""
    table = comparison(folder)[1]
    yield "compare /dev/zero", fault(folder, started(folder, ["compare", table, "/dev/zero"]), 2)
    yield "compare /dev/urandom", fault(folder, started(folder, ["compare", table, "/dev/urandom"], SMALL_COPIES), 2)
    for name, text in (("rows", "1,2,3"), ("one line", "1,")):
        source = f"import sys\nwhile True: sys.stdout.write({text!r} + {'chr(10)' if name == 'rows' else repr('')})"
        with subprocess.Popen(
            [sys.executable, "-c", source], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as endless:
            process = started(folder, ["compare", "-", table], SMALL_COPIES, stdin=endless.stdout)
            found = fault(folder, process, 2)
            endless.kill()
        yield f"compare of endless {name}", found


def signals(folder: Path) -> Iterator[tuple[str, Fault]]:
    """SIGTERM, SIGHUP and SIGINT while a table comes in and while rows are compared."""
    rng = np.random.default_rng(0)
    paths = [str(folder / f"long_{name}.csv") for name in "ab"]
    for path in paths:
        np.savetxt(path, rng.normal(size=(4000, 20)), fmt="%.4f", delimiter=",")
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        for name, command in {
            "a pipe": ["compare", "-", paths[0]],
            "a long test": ["compare", *paths, "--resamples", "20000"],
        }.items():
            process = started(folder, command, stdin=subprocess.PIPE)
            until = time.monotonic() + LIMIT
            while not list(folder.glob("tmp/muhat-*/*")) and time.monotonic() < until:
                time.sleep(0.05)
            time.sleep(1.0)
            process.send_signal(number)
            yield f"{number.name} in {name}", fault(folder, process, 128 + number)


def hostile_names(folder: Path) -> Iterator[tuple[str, Fault]]:
    """Escape sequences in names of columns, cells and files, and quotation marks that are not closed."""
    rng = np.random.default_rng(0)
    name = "x\x1b]0;owned\x07\x9b31m"
    paths = [str(folder / f"{part}\x1b[31m.csv") for part in "ab"]
    for path, shift in zip(paths, (0, 1), strict=True):
        rows = [f"{x:.3f},cell\x1b[2J{int(x > 0)},{y:.3f}" for x, y in rng.normal(size=(120, 2)) + shift]
        Path(path).write_text("\n".join([f"{name},c\x1b[2J,y", *rows]), encoding="utf-8")
    for options in ([], ["--json"]):
        yield "compare", fault(folder, started(folder, ["compare", *paths, "--resamples", "19", *options]), 1)
    opened = folder / "opened.csv"
    first = comparison(folder)[1]
    for rows in (5, 50_000):
        opened.write_text('x,y,z\n1,2,3\n"1,2,3\n' + rows * "1,2,3\n")
        process = started(folder, ["compare", first, str(opened)])
        yield "compare with an open quotation mark", fault(folder, process, 2)


def low_memory(
    folder: Path, megabytes: Sequence[int] = (700, 900, 1000, 1200, 1600, 2400)
) -> Iterator[tuple[str, Fault]]:
    """Bounds on the address space: the command answers, or ends with 2, in either case soon."""
    command = comparison(folder)
    for size in megabytes:
        bound = (size * 2**20, size * 2**20)
        start = "import resource; from muhat.apps.cli.command_line import main; "
        process = started(folder, command, f"{start}resource.setrlimit(resource.RLIMIT_AS, {bound}); ")
        yield f"{size} MB", fault(folder, process, (DIFFER, 2))


ATTACKS: dict[str, Callable[..., Iterator[tuple[str, Fault]]]] = {
    function.__name__: function
    for function in (closed_streams, odd_folders, endless_input, signals, hostile_names, low_memory)
}


def attack(name: str, *options: Any) -> list[str]:
    """The faults that an attack finds."""
    resource.getrlimit(resource.RLIMIT_AS)  # systems without it have no such limits
    with tempfile.TemporaryDirectory() as folder:
        return [f"{case}: {found}" for case, found in ATTACKS[name](Path(folder), *options) if found]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=list(ATTACKS))
    args = parser.parse_args()
    failed = 0
    for name in [args.only] if args.only else ATTACKS:
        faults = attack(name)
        print(f"{name}: {len(faults)} failures", *faults, sep="\n  ", flush=True)
        failed += len(faults)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
