"""The quick tests and all doctests as other processors compute them: ``make portable``.

OpenBLAS, numpy and numba have code for each kind of processor, and choose it when they are loaded. Environment
variables choose it for them, so one machine shows what others answer. Each setting runs the numerical part of the quick
suite with the doctests of README, docs and docstrings, and prints one line. In the end the outputs of the doctests are
compared: no printed digit, p-value or decision may differ between two settings, but where a page prints dots.
``python tools/portable.py Haswell`` runs the settings whose names hold that word.
"""

from __future__ import annotations

import doctest
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]
RECORD = "MUHAT_DOCTEST_OUTPUTS"
"""The variable that names the folder in which the doctests of a setting leave what they printed."""
PINNED = ("OPENBLAS_", "NPY_", "NUMBA_", "OMP_", "MKL_", "BLIS_")
"""Beginnings of variables that choose code for a processor or a number of threads: no setting inherits them."""
PATHS = "tests", "README.md", "docs", "src"
TEXT_ONLY = (
    "cli",
    "files",
    "plotting",
    "report",
    "test_attacks.py",
    "test_docs.py",
    "test_newcomer.py",
    "test_package.py",
)
"""Tests of texts, files, imports and pictures, which read no last digit: ``make test`` runs them once."""


CASES = "3"
"""Cases of a property in each setting: with four settings they are the dozen of the quick suite, in the time of one."""


def settings() -> dict[str, dict[str, str]]:
    """Name of each setting that this machine can run, and the variables that make it."""
    from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__  # type: ignore[attr-defined]  # no stub

    # numpy refuses names that it does not know or that the machine lacks, and they differ between its versions.
    known = " ".join(name for name in __cpu_dispatch__ if __cpu_features__[name])
    other_code = {"NUMBA_CPU_NAME": "generic"} | ({"NPY_DISABLE_CPU_FEATURES": known} if known else {})
    two = {"OPENBLAS_NUM_THREADS": "2"}
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return {"own processor, numpy and numba without its instructions": other_code, "two threads": two}
    wide, widest = (__cpu_features__.get(name, False) for name in ("AVX2", "AVX512F"))
    found = {"Prescott, numpy and numba without vector instructions": {"OPENBLAS_CORETYPE": "Prescott", **other_code}}
    if wide:
        found["Haswell"] = {"OPENBLAS_CORETYPE": "Haswell"}
        found["Zen, two threads"] = {"OPENBLAS_CORETYPE": "Zen", **two}
    if widest:
        found["SkylakeX"] = {"OPENBLAS_CORETYPE": "SkylakeX"}
    return found


def run(variables: dict[str, str], outputs: Path) -> tuple[bool, str]:
    """Whether the tests pass under one setting, and what pytest printed; outputs of doctests go to a folder."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(PINNED)}
    environment |= {"OPENBLAS_NUM_THREADS": "1", **variables, RECORD: str(outputs), "MUHAT_CASES": CASES}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT / "tools"), os.environ.get("PYTHONPATH")]))
    left_out = [f"--ignore=tests/{name}" for name in TEXT_ONLY]
    command = [sys.executable, "-m", "pytest", "-p", "portable", "-n", "auto", "--dist", "worksteal", "-m", "not slow"]
    command += ["--tb=short", *left_out, *PATHS]
    pipe = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    done = subprocess.run(command, cwd=ROOT, env=environment, **pipe)
    return done.returncode == 0, done.stdout


def differing(outputs: dict[str, dict[str, list[tuple[str, str]]]]) -> list[str]:
    """Lines that name outputs of doctests which differ between settings; those with dots on the page are left out."""
    lines, (first, *others) = [], outputs
    for place, examples in outputs[first].items():
        for name in others:
            for (want, one), (_, other) in zip(examples, outputs[name].get(place, []), strict=False):
                if "..." not in want and one.split() != other.split():
                    lines.append(f"{place}: {one.strip()!r} with {first}, {other.strip()!r} with {name}")
    return lines


def recorded(folder: Path) -> dict[str, list[tuple[str, str]]]:
    """What each doctest should print and printed, in order."""
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for path in folder.iterdir():
        for line in path.read_text(encoding="utf-8").splitlines():
            place, want, got = json.loads(line)
            found[place].append((want, got))
    return found


def main(words: list[str]) -> int:
    """Run the settings and print a line for each; 1 if one fails or prints something else."""
    chosen = {name: each for name, each in settings().items() if all(word.lower() in name.lower() for word in words)}
    failed, outputs = False, {}
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, variables) in enumerate(chosen.items()):
            (place := Path(folder, str(number))).mkdir()
            start = time.monotonic()
            passed, printed = run(variables, place)
            counts = re.findall(r"\d+ (?:passed|failed|errors?|skipped)", printed)
            if not passed:
                failed = True
                print(printed)
            verdict, seconds = "passed" if passed else "FAILED", time.monotonic() - start
            print(f"{name}: {verdict} ({', '.join(counts) or 'no summary'}; {seconds:.0f} s)", flush=True)
            outputs[name] = recorded(place)
    lines = differing(outputs) if outputs else ["no setting of that name"]
    count = sum(map(len, next(iter(outputs.values()), {}).values()))
    print("\n".join(lines) if lines else f"{count:,} outputs of doctests are the same in {len(outputs)} settings")
    return 1 if failed or lines else 0


# ---------------------------------------------------------------- a plugin of pytest, in each setting


def pytest_configure() -> None:
    """Write down what each example of a doctest prints."""
    path = Path(os.environ[RECORD]) / f"{os.getpid()}.jsonl"
    check = doctest.OutputChecker.check_output

    def check_and_record(self: doctest.OutputChecker, want: str, got: str, flags: int) -> bool:
        place = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps([place, want, got]) + "\n")
        return check(self, want, got, flags)

    doctest.OutputChecker.check_output = check_and_record  # type: ignore[method-assign]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
