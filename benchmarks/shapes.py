"""Shapes of data that estimators find hard: tiny fits, many columns with few rows, many rows.

python benchmarks/shapes.py                  # tiny fits in milliseconds of CPU, then ratios of one run
python benchmarks/shapes.py --against src    # tiny fits also with the package of another folder, beside this one
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tracemalloc
from time import process_time

import numpy as np
from threadpoolctl import threadpool_limits
from timing import best_times, report

import muhat as mh

TINY = {
    "KernelMean": (mh.KernelMean(), None),
    "ShrunkKernelMean": (mh.ShrunkKernelMean(), 0.12),
    "SpectralKernelMean": (mh.SpectralKernelMean(), 0.6),
    "AdaptiveKernelMean": (mh.AdaptiveKernelMean(), 1.0),
    "AdaptiveKernelMean, Laplace": (mh.AdaptiveKernelMean(mh.Laplace()), None),
    "AdaptiveKernelMean, Matern": (mh.AdaptiveKernelMean(mh.Matern()), None),
    "RobustKernelMean": (mh.RobustKernelMean(), None),
}
"""Estimators, and the milliseconds that a fit to 20 rows may take."""

WIDE = {
    "Gaussian": (mh.Gaussian(), 4.0),
    "Polynomial(2)": (mh.Polynomial(2), 4.0),
    "Matern": (mh.Matern(), 4.0),
    "Laplace": (mh.Laplace(), 6.0),
}
"""Kernels, and how many times as long as SpectralKernelMean a fit with many columns may take."""


def tiny(n: int = 20, d: int = 5) -> dict[str, float]:
    """Milliseconds of CPU of a fit to 20 rows."""
    X = mh.paper_mixture(d, random_state=0).sample(n, random_state=0)
    calls = [lambda mean=mean: [mean.fit(X) for _ in range(10)] for mean, _ in TINY.values()]
    times = best_times(*calls, repeats=30, clock=process_time)
    return {name: 100.0 * time for name, time in zip(TINY, times, strict=True)}


def tiny_of(folder: str) -> dict[str, float]:
    """The same with the package in another folder."""
    environment = {**os.environ, "PYTHONPATH": folder}
    command = [sys.executable, __file__, "--tiny"]
    return json.loads(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)


def wide(kernel: mh.kernels.Kernel, n: int = 50, d: int = 5000, repeats: int = 10) -> float:
    """Time of AdaptiveKernelMean over that of SpectralKernelMean, with many columns."""
    X = np.random.default_rng(0).normal(size=(n, d))
    adaptive, spectral = mh.AdaptiveKernelMean(kernel), mh.SpectralKernelMean(kernel)
    fit, rival = best_times(lambda: adaptive.fit(X), lambda: spectral.fit(X), repeats=repeats, clock=process_time)
    return fit / rival


def many_rows(n: int = 6000, d: int = 5) -> float:
    """Time of AdaptiveKernelMean over that of SpectralKernelMean, both by a low rank."""
    X = mh.paper_mixture(d, random_state=0).sample(n, random_state=0)
    adaptive, spectral = mh.AdaptiveKernelMean(), mh.SpectralKernelMean()
    fit, rival = best_times(lambda: adaptive.fit(X), lambda: spectral.fit(X), repeats=1)
    assert adaptive.solver_ == spectral.solver_ == "low-rank"
    return fit / rival


def memory(n: int = 50, d: int = 20_000) -> float:
    """Peak memory of a fit, an evaluation and a norm over that of the rows."""
    X = np.random.default_rng(0).normal(size=(n, d))
    tracemalloc.start()
    mean = mh.AdaptiveKernelMean().fit(X).mean_
    mean(X)
    mean.norm()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak / X.nbytes


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", metavar="FOLDER", help="the folder of another version of the package")
    parser.add_argument("--tiny", action="store_true", help="print the times of tiny fits alone, as JSON")
    options = parser.parse_args()
    with threadpool_limits(1):
        if options.tiny:
            print(json.dumps(tiny()))
            return 0
        met, others = True, tiny_of(options.against) if options.against else {}
        for name, time in tiny().items():
            goal = TINY[name][1]
            beside = f", there {others[name]:.3f}" if name in others else ""
            verdict = "" if goal is None else f"   goal {goal:g} {'met' if time <= goal else 'MISSED'}"
            print(f"{name}().fit, 20 x 5, ms of CPU: {time:.3f}{beside}{verdict}", flush=True)
            met &= goal is None or time <= goal
        for name, (kernel, limit) in WIDE.items():
            ratio = wide(kernel)
            what = f"AdaptiveKernelMean({name}) / SpectralKernelMean, 50 x 5000"
            met &= report(what, ratio, f"<= {limit:g}", ratio <= limit)
        ratio = many_rows()
        met &= report("AdaptiveKernelMean() / SpectralKernelMean(), 6000 x 5", ratio, "<= 4", ratio <= 4)
        ratio = memory()
        met &= report("AdaptiveKernelMean, 50 x 20000: peak memory / rows", ratio, "<= 15", ratio <= 15)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
