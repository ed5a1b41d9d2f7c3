"""What a sum of Gaussian kernel values is made of, in nanoseconds a pair of rows on one core.

    python benchmarks/parts.py

The calls take turns in one thread on tiles of 512 × 512 pairs, and the best of 300 rounds counts: a call takes about a
millisecond, so that some go undisturbed on a busy machine too. Compiled sums need ``pip install 'muhat[fast]'``. The
time to load numba and to compile is processor time of a new process with an empty cache, and of a second one.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

import numpy as np
from threadpoolctl import threadpool_limits
from timing import best_times

from muhat.linalg import compiled

TILE, ROUNDS = 512, 300
FIRST_SUM = (
    "from time import process_time as t; from muhat.linalg import compiled; s = t(); "
    "compiled.gaussian_sums(); print(t() - s)"
)


def nanoseconds(d: int) -> dict[str, float]:
    """Time of each part for a tile of rows in d dimensions."""
    X, Y = np.random.default_rng(0).normal(size=(2, TILE, d))
    exponents = -np.random.default_rng(0).random((TILE, TILE))
    values = np.empty_like(exponents)
    calls = {
        "product of rows (BLAS)": lambda: np.dot(X, Y.T, out=values),
        "exponential (numpy)": lambda: np.exp(exponents, out=values),
    }
    sums = compiled.gaussian_sums()
    if sums is not None:
        width, weights = float(np.sqrt(2 * d)), np.full(TILE, 1 / TILE)
        calls["whole sum (compiled)"] = lambda: sums(X, Y, weights, width)
    with threadpool_limits(limits=1):
        times = best_times(*calls.values(), repeats=ROUNDS)
    return {name: 1e9 * time / TILE**2 for name, time in zip(calls, times, strict=True)}


def seconds_to_compile() -> list[float]:
    """Seconds of the first compiled sum in two processes, of which the second finds the code of the first."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", FIRST_SUM]
        environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
        runs = [subprocess.run(command, env=environment, capture_output=True, text=True, check=True) for _ in range(2)]
    return [float(run.stdout) for run in runs]


def main() -> None:
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    print(f"ns a pair of rows, one core{load}")
    found = {d: nanoseconds(d) for d in (3, 10, 50)}
    print(f"{'':<36}" + "".join(f"{f'd = {d}':>10}" for d in found))
    for name in found[3]:
        print(f"{name:<36}" + "".join(f"{parts[name]:10.2f}" for parts in found.values()))
    if compiled.gaussian_sums() is not None:
        first, second = seconds_to_compile()
        print(f"load numba and compile: {first:.1f} s, and {second:.1f} s in a later process")


if __name__ == "__main__":
    main()
