"""How far a fit wanders: the files and functions of muhat that it visits, counted by a profiler.

python tools/visits.py           # a line for each estimator
python tools/visits.py --names   # and the names of what was visited
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import muhat as mh

PACKAGE = str(Path(mh.__file__).parent)

FITS = {
    "KernelMean()": mh.KernelMean(),
    "ShrunkKernelMean()": mh.ShrunkKernelMean(),
    "SpectralKernelMean()": mh.SpectralKernelMean(),
    "AdaptiveKernelMean()": mh.AdaptiveKernelMean(),
    "RobustKernelMean()": mh.RobustKernelMean(),
    "KernelPCA(mean=ShrunkKernelMean())": mh.KernelPCA(mean=mh.ShrunkKernelMean()),
}


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
        if event == "call" and code.co_filename.startswith(PACKAGE) and not comprehension:
            functions.add((code.co_filename.removeprefix(PACKAGE + "/"), code.co_qualname))

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return Visits({file for file, _ in functions}, functions)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--names", action="store_true", help="print the names of the functions too")
    names = parser.parse_args().names
    X = mh.paper_mixture(5, random_state=0).sample(20, random_state=0)
    for name, estimator in FITS.items():
        files, functions = visits(lambda estimator=estimator: estimator.fit(X))
        print(f"{name:36} {len(files):3} files {len(functions):4} functions")
        if names:
            for file in sorted(files):
                print(f"    {file}: {', '.join(sorted(f for where, f in functions if where == file))}")


if __name__ == "__main__":
    main()
