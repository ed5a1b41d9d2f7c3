"""Does the number of BLAS threads change a bit of any result? Fits of up to 1,000 rows and all tests must not.

python tests/attacks/threads.py            # a process with 1 thread, one with 2 and one with 4; names what differs
python tests/attacks/threads.py --digests  # the digests of this process alone
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import muhat as mh

RNG = np.random.default_rng(0)
ROWS, OTHERS, WIDE = RNG.normal(size=(300, 5)), RNG.normal(size=(280, 5)) + 0.2, RNG.normal(size=(60, 400))
BAGS = [RNG.normal(size=(int(n), 4)) + RNG.normal() for n in RNG.integers(2, 40, size=60)]
TARGETS = np.array([bag.mean() for bag in BAGS])
MEANS = [mh.KernelMean, mh.ShrunkKernelMean, mh.SpectralKernelMean, mh.AdaptiveKernelMean, mh.RobustKernelMean]


def fitted(estimator: Any, rows: Any) -> list[Any]:
    """The numbers that a fit leaves, and values of the mean."""
    estimator.fit(rows)
    kept = [value for name, value in sorted(vars(estimator).items()) if name.endswith("_")]
    return [*(value for value in kept if isinstance(value, float | np.ndarray)), estimator.mean_(rows[:20])]


def tested(result: Any) -> list[Any]:
    return [result.statistic, result.pvalue, result.null_distribution]


def calls() -> dict[str, Callable[[], list[Any]]]:
    """What is computed, by name."""
    gaussian, few = mh.Gaussian(), {"n_resamples": 99, "random_state": 0}
    found: dict[str, Callable[[], list[Any]]] = {
        "mmd_test": lambda: tested(mh.mmd_test(ROWS, OTHERS, **few)),
        "mmd_test, one kernel": lambda: tested(mh.mmd_test(ROWS, OTHERS, gaussian, **few)),
        "mmd_test, wide": lambda: tested(mh.mmd_test(WIDE, WIDE[:50] + 0.1, gaussian, **few)),
        "mmd_test, shrunk": lambda: tested(mh.mmd_test(ROWS, OTHERS, mean=mh.ShrunkKernelMean(), **few)),
        "mmd_test, spectral": lambda: tested(mh.mmd_test(ROWS, OTHERS, statistic="spectral", **few)),
        "hsic_test": lambda: tested(mh.hsic_test(ROWS, ROWS**2, **few)),
        "hsic_test, one kernel": lambda: tested(mh.hsic_test(ROWS, ROWS**2, gaussian, gaussian, **few)),
        "KernelPCA": lambda: [mh.KernelPCA(4, mean=mh.ShrunkKernelMean()).fit(ROWS).transform(ROWS)],
        "KernelCovariance": lambda: [mh.KernelCovariance(mean=mh.SpectralKernelMean()).fit(ROWS).weights_],
        "BlendedSample": lambda: [mh.BlendedSample().fit(ROWS).share_],
        "BagPrior": lambda: [mh.BagPrior(random_state=0).fit(BAGS).transform(BAGS)],
        "DistributionRidge": lambda: [mh.DistributionRidge().fit(BAGS, TARGETS).predict(BAGS)],
        "GroupAnomalyDetector": lambda: [mh.GroupAnomalyDetector().fit(BAGS).score_samples(BAGS)],
        "DistributionKernel": lambda: [mh.DistributionKernel(level2=gaussian, pool=True).fit_transform(BAGS)],
        "features": lambda: fitted(mh.SpectralKernelMean(features=mh.Nystroem(100, random_state=0)), ROWS),
    }
    for mean in MEANS:
        found[mean.__name__] = lambda mean=mean: fitted(mean(), ROWS)
    for kernel in (mh.Polynomial(2), mh.Matern()):
        found[f"AdaptiveKernelMean({kernel!r}), wide"] = lambda k=kernel: fitted(mh.AdaptiveKernelMean(k), WIDE)
    return found


def digest(values: list[Any]) -> str:
    return hashlib.sha256(b"".join(np.asarray(value, dtype=np.float64).tobytes() for value in values)).hexdigest()[:16]


def digests_of_a_process(threads: int) -> dict[str, str]:
    """The digests that a new process with this many threads prints."""
    environment = os.environ | {"OPENBLAS_NUM_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)}
    command = [sys.executable, __file__, "--digests"]
    printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    return dict(line.rsplit(" ", 1) for line in printed.splitlines())


def main() -> int:
    if "--digests" in sys.argv:
        for name, call in calls().items():
            print(name, digest(call()))
        return 0
    one, *others = (digests_of_a_process(threads) for threads in (1, 2, 4))
    differ = [name for name in one if any(other[name] != one[name] for other in others)]
    print("\n".join(f"differs: {name}" for name in differ) or f"all {len(one)} are equal, bit for bit")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
