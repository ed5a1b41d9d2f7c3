"""Do threads change a result?

The number of BLAS threads must not change a bit of fits of up to 1,000 rows and of tests. Threads that share a monitor
or a sketch must not lose rows, and writers and readers of one file must see whole files only.

python tools/attacks/threads.py            # all of it, with processes of 1, 2 and 4 BLAS threads; names what differs
python tools/attacks/threads.py --digests  # the digests of this process alone
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
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
        "hsic_test": lambda: tested(mh.hsic_test(ROWS, ROWS**2, **few)),
        "hsic_test, one kernel": lambda: tested(mh.hsic_test(ROWS, ROWS**2, gaussian, gaussian, **few)),
        "KernelPCA": lambda: [mh.KernelPCA(4, mean=mh.ShrunkKernelMean()).fit(ROWS).transform(ROWS)],
        "KernelCovariance": lambda: [mh.KernelCovariance(mean=mh.SpectralKernelMean()).fit(ROWS).weights_],
        "BlendedSample": lambda: [mh.BlendedSample().fit(ROWS).share_],
        "BagPrior": lambda: [mh.BagPrior(random_state=0).fit(BAGS).transform(BAGS)],
        "DistributionRidge": lambda: [mh.DistributionRidge().fit(BAGS, TARGETS).predict(BAGS)],
        "GroupAnomalyDetector": lambda: [mh.GroupAnomalyDetector().fit(BAGS).score_samples(BAGS)],
        "DistributionKernel": lambda: [mh.DistributionKernel(level2=gaussian, pool=True).fit_transform(BAGS)],
    }
    for mean in MEANS:
        found[mean.__name__] = lambda mean=mean: fitted(mean(), ROWS)
    for mean in (mh.KernelMean, mh.ShrunkKernelMean):
        found[f"{mean.__name__}, 90 rows"] = lambda mean=mean: fitted(mean(), ROWS[:90])
    for kernel in (mh.Polynomial(2), mh.Matern(), mh.Laplace()):
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


@contextmanager
def restless() -> Iterator[None]:
    """Threads that take turns as often as they can."""
    held = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(held)


def together(tasks: list[Callable[[], Any]]) -> list[Any]:
    """What the tasks return, each in a thread of its own."""
    with restless(), ThreadPoolExecutor(len(tasks)) as pool:
        return [future.result() for future in [pool.submit(task) for task in tasks]]


def silent_monitor() -> mh.DriftMonitor:
    """A monitor whose thresholds are out of reach."""
    monitor = mh.DriftMonitor(100, n_simulations=100, block_length=1, random_state=0).fit(ROWS)
    monitor._model = replace(monitor._model, calibration=monitor._model.calibration.raised(1e9))
    return monitor


def shared_sketch() -> mh.MeanSketch:
    features = mh.Nystroem(mh.Gaussian(1.0), 200, random_state=0).fit(ROWS)
    return mh.MeanSketch(features, second_moment=True, reservoir_size=200, bins=20)


def rows_lost(shared: Any, threads: int, rows: int) -> int:
    """Rows that a shared object has not counted, of those that the threads passed to it one by one."""

    def pass_rows() -> None:
        for row in ROWS[:rows]:
            shared.update(row[None])

    together([pass_rows] * threads)
    counted = shared.n_ if isinstance(shared, mh.MeanSketch) else shared.rows_seen_
    return threads * rows - int(counted)


def files_lost(shared: Any, path: Path, files: int) -> list[str]:
    """What went wrong where two threads write one file, and two read it, while a fifth goes on with the stream."""
    faults: list[str] = []

    def noted(act: Callable[[], Any]) -> Callable[[], None]:
        def repeat() -> None:
            for _ in range(files):
                try:
                    act()
                except Exception as error:
                    faults.append(f"{type(error).__name__}: {error}")

        return repeat

    def consistent() -> None:
        loaded = type(shared).load(path)
        if isinstance(loaded, mh.DriftMonitor) and len(loaded.recent_scores()[1]) != loaded.rows_seen_:
            raise AssertionError(f"{len(loaded._history)} scores of {loaded.rows_seen_} rows")

    shared.save(path)
    save = noted(lambda: shared.save(path))
    together([save, save, noted(consistent), noted(consistent), noted(lambda: shared.update(ROWS[:1]))])
    left = [file.name for file in path.parent.iterdir() if file != path]
    return faults + [f"left behind: {name}" for name in left]


def sharing(rows: int, files: int) -> list[str]:
    """What threads that share a monitor, a sketch or a file have lost."""
    faults = []
    for make in (silent_monitor, shared_sketch):
        if lost := rows_lost(make(), 8, rows):
            faults.append(f"{make.__name__}: {lost} of {8 * rows} rows lost")
        with tempfile.TemporaryDirectory() as folder:
            faults += [f"{make.__name__}: {fault}" for fault in files_lost(make(), Path(folder) / "saved.npz", files)]
    return faults


def main() -> int:
    if "--digests" in sys.argv:
        for name, call in calls().items():
            print(name, digest(call()))
        return 0
    one, *others = (digests_of_a_process(threads) for threads in (1, 2, 4))
    differ = [name for name in one if any(other[name] != one[name] for other in others)]
    print("\n".join(f"differs: {name}" for name in differ) or f"all {len(one)} are equal, bit for bit")
    lost = sharing(rows=125, files=90)
    print("\n".join(lost) or "threads that share a monitor, a sketch or a file lose nothing")
    return 1 if differ or lost else 0


if __name__ == "__main__":
    sys.exit(main())
