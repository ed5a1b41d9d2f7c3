"""Shapes of data that estimators find hard, as ratios of one run: tiny fits, many columns with few rows, many rows.

python benchmarks/shapes.py              # tiny fits, many columns, memory, many rows
python benchmarks/shapes.py --laplace    # also a kernel that sees every column of a sampled target
"""

from __future__ import annotations

import argparse
import sys
import tracemalloc

import numpy as np
from threadpoolctl import threadpool_limits
from timing import best_times, report

import muhat as mh

TINY = {
    "AdaptiveKernelMean": (mh.AdaptiveKernelMean(), 8.0),
    "SpectralKernelMean": (mh.SpectralKernelMean(), 8.0),
    "RobustKernelMean": (mh.RobustKernelMean(), 8.0),
}
WIDE = {"Gaussian": mh.Gaussian(), "Polynomial(2)": mh.Polynomial(2), "Matern": mh.Matern()}


def tiny(estimator: mh.means.BaseKernelMean, n: int = 20, d: int = 5) -> float:
    """Time of a fit to 20 rows over that of ShrunkKernelMean."""
    X = mh.paper_mixture(d, random_state=0).sample(n, random_state=0)
    shrunk = mh.ShrunkKernelMean()
    fit, rival = best_times(lambda: estimator.fit(X), lambda: shrunk.fit(X), repeats=100)
    return fit / rival


def wide(kernel: mh.kernels.Kernel, n: int = 50, d: int = 5000, repeats: int = 10) -> float:
    """Time of AdaptiveKernelMean over that of SpectralKernelMean, with many columns."""
    X = np.random.default_rng(0).normal(size=(n, d))
    adaptive, spectral = mh.AdaptiveKernelMean(kernel), mh.SpectralKernelMean(kernel)
    fit, rival = best_times(lambda: adaptive.fit(X), lambda: spectral.fit(X), repeats=repeats)
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
    parser.add_argument("--laplace", action="store_true", help="also a kernel that sees every column of a sample")
    more = {"Laplace": mh.Laplace()} if parser.parse_args().laplace else {}
    met = True
    with threadpool_limits(1):
        for name, (estimator, limit) in TINY.items():
            ratio = tiny(estimator)
            met &= report(f"{name}().fit / ShrunkKernelMean().fit, 20 x 5", ratio, f"<= {limit:g}", ratio <= limit)
        for name, kernel in (WIDE | more).items():
            ratio = wide(kernel)
            met &= report(f"AdaptiveKernelMean({name}) / SpectralKernelMean, 50 x 5000", ratio, "<= 4", ratio <= 4)
        ratio = many_rows()
        met &= report("AdaptiveKernelMean() / SpectralKernelMean(), 6000 x 5", ratio, "<= 4", ratio <= 4)
        ratio = memory()
        met &= report("AdaptiveKernelMean, 50 x 20000: peak memory / rows", ratio, "<= 15", ratio <= 15)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
