"""How long does a call take, and how much memory? One table: rows, columns, call, seconds, MB.

    python benchmarks/sizes.py                  # three minutes or so
    python benchmarks/sizes.py --only 0 3       # some lines of the table
    python benchmarks/sizes.py --shrink 50      # a fiftieth of the rows, to try it

Each line runs in a process of its own: once on few rows, so that nothing is compiled or imported on the clock, and once
on all of them. Seconds are processor time on one thread, which a busy machine hardly changes. Memory is the peak above
what the process had before; the rows themselves are counted.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable
from time import process_time

import numpy as np
from timing import peak_memory

import muhat as mh

ONE_THREAD = {**os.environ, **{f"{name}_NUM_THREADS": "1" for name in ("OPENBLAS", "OMP", "MKL", "NUMBA")}}


def rows(n: int, d: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(n, d))


def two_samples(n: int, d: int) -> None:
    mh.mmd_test(rows(n, d), rows(n, d) + 0.1, random_state=0)


def classify_bags(n: int, d: int, size: int = 50) -> None:
    bags = list(rows(n, d).reshape(-1, size, d))
    mh.SupportMeasureClassifier().fit(bags, np.arange(len(bags)) % 2)


def read_stream(n: int, d: int, block: int = 10_000) -> None:
    sketch = mh.MeanSketch(mh.Nystroem(mh.Gaussian(), 300, random_state=0).fit(rows(1000, d)))
    rng = np.random.default_rng(1)
    for _ in range(max(n // block, 1)):
        sketch.update(rng.normal(size=(min(block, n), d)))


CALLS: list[tuple[int, int, str, Callable[[int, int], object]]] = [
    (1_000, 10, "`ShrunkKernelMean().fit(X)`", lambda n, d: mh.ShrunkKernelMean().fit(rows(n, d))),
    (10_000, 10, "`ShrunkKernelMean().fit(X)`", lambda n, d: mh.ShrunkKernelMean().fit(rows(n, d))),
    (
        100_000,
        10,
        "`ShrunkKernelMean(Gaussian(4.5)).fit(X)`",
        lambda n, d: mh.ShrunkKernelMean(mh.Gaussian(4.5)).fit(rows(n, d)),
    ),
    (1_000, 10, "`SpectralKernelMean().fit(X)`", lambda n, d: mh.SpectralKernelMean().fit(rows(n, d))),
    (3_000, 10, "`SpectralKernelMean().fit(X)`", lambda n, d: mh.SpectralKernelMean().fit(rows(n, d))),
    (20_000, 10, "`SpectralKernelMean().fit(X)`", lambda n, d: mh.SpectralKernelMean().fit(rows(n, d))),
    (200, 30, "`AdaptiveKernelMean().fit(X)`", lambda n, d: mh.AdaptiveKernelMean().fit(rows(n, d))),
    (1_000, 30, "`AdaptiveKernelMean().fit(X)`", lambda n, d: mh.AdaptiveKernelMean().fit(rows(n, d))),
    (1_000, 10, "`RobustKernelMean().fit(X)`", lambda n, d: mh.RobustKernelMean().fit(rows(n, d))),
    (500, 10, "`mmd_test(X, Y)`, 500 rows each", two_samples),
    (1_000, 10, "`mmd_test(X, Y)`, 1,000 rows each", two_samples),
    (1_000, 10, "`hsic_test(X, Y)`", lambda n, d: mh.hsic_test(rows(n, d), rows(n, d)[:, :2], random_state=0)),
    (4_000, 10, "`KernelPCA(20).fit(X)`", lambda n, d: mh.KernelPCA(20).fit(rows(n, d))),
    (15_000, 32, "`SupportMeasureClassifier().fit(bags, y)`, 300 bags of 50 rows", classify_bags),
    (
        1_000,
        10,
        "`MatchedGaussianMixture(5).fit(X)`",
        lambda n, d: mh.MatchedGaussianMixture(5, random_state=0).fit(rows(n, d)),
    ),
    (1_000_000, 10, "`MeanSketch(Nystroem(Gaussian(), 300)).update(X)` in blocks", read_stream),
]


def measure(line: int, shrink: int) -> tuple[float, float]:
    """Seconds and MB of one line, in this process."""
    n, d, _, call = CALLS[line]
    call(400, d)
    before, start = peak_memory(), process_time()
    call(max(n // shrink, 400), d)
    return process_time() - start, peak_memory() - before


def main() -> int:
    parser = argparse.ArgumentParser(description="Seconds and memory of common calls.")
    parser.add_argument("--only", nargs="+", type=int, default=range(len(CALLS)), help="numbers of lines")
    parser.add_argument("--shrink", type=int, default=1, help="divide the rows by this")
    parser.add_argument("--line", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.line is not None:
        print(json.dumps(measure(options.line, options.shrink)))
        return 0
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start", file=sys.stderr)
    print("| rows | columns | call | seconds of one core | MB |\n|---|---|---|---|---|")
    for line in options.only:
        command = [sys.executable, __file__, "--line", str(line), "--shrink", str(options.shrink)]
        done = subprocess.run(command, env=ONE_THREAD, capture_output=True, text=True, check=True)
        seconds, memory = json.loads(done.stdout.splitlines()[-1])
        n, d, words, _ = CALLS[line]
        print(f"| {n // options.shrink:,} | {d} | {words} | {seconds:.2g} | {memory:,.0f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
