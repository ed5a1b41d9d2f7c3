"""Time and memory against the peers on the same work, as ratios of one run.

    python benchmarks/peers.py                  # ten minutes or so
    python benchmarks/peers.py --only tiles pca
    python benchmarks/peers.py --full           # 100,000 rows by both kinds of tiles, 10 million rows of a stream

Compiled tiles need ``pip install 'muhat[fast]'``, and PyKeOps, a peer, ``pip install pykeops`` and a C++ compiler; what
is missing is said and left out. Real bags are read from the folder in MUHAT_DATA. Memory is the peak of a process of
its own, above what it had after the imports.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter

import numpy as np
import sketch_speed
from scipy.linalg import eigh
from sklearn.decomposition import KernelPCA
from sklearn.metrics.pairwise import rbf_kernel
from timing import best_times, peak_memory, report

import muhat as mh
from muhat.bags.distribution_kernel import DistributionKernel
from muhat.features.fourier import Fourier
from muhat.features.sketch import MeanSketch
from muhat.kernels import tiles as sums_over_tiles
from muhat.linalg import compiled
from paper.data import load_bags

D = 10
SHORT = 6.0


def sample(n: int, d: int = D) -> tuple[np.ndarray, mh.Gaussian]:
    """Normal rows, and the Gaussian kernel of about the median bandwidth."""
    return np.random.default_rng(0).normal(size=(n, d)), mh.Gaussian(float(np.sqrt(2 * d)))


@contextmanager
def numpy_tiles() -> Iterator[None]:
    """Leave numba out, installed or not."""
    limit, sums_over_tiles.COMPILED = sums_over_tiles.COMPILED, sys.maxsize
    try:
        yield
    finally:
        sums_over_tiles.COMPILED = limit


# Jobs that a process of its own runs for n rows.


def fit_tiles(n: int) -> None:
    X, kernel = sample(n)
    mh.ShrunkKernelMean(kernel).fit(X)


def fit_numpy_tiles(n: int) -> None:
    with numpy_tiles():
        fit_tiles(n)


def fit_dense(n: int) -> None:
    X, kernel = sample(n)
    mh.SpectralKernelMean(kernel, solver="dense").fit(X)


def fit_low_rank(n: int) -> None:
    X, kernel = sample(n)
    mh.SpectralKernelMean(kernel, solver="low-rank", tol=1e-4).fit(X)


def read_stream(n: int, rows: int = 10_000) -> None:
    rng = np.random.default_rng(0)
    X, kernel = sample(rows)
    sketch = MeanSketch(Fourier(kernel, 1000, random_state=0).fit(X))
    for _ in range(n // rows):
        sketch.update(rng.normal(size=(rows, D)))


JOBS: dict[str, Callable[[int], None]] = {
    "tiles": fit_tiles,
    "numpy-tiles": fit_numpy_tiles,
    "dense": fit_dense,
    "low-rank": fit_low_rank,
    "sketch": read_stream,
}


def run_job(name: str, n: int, repeats: int) -> None:
    """What a process of its own does: the best time and the peak above the imports, as JSON.

    Short jobs are repeated for some seconds: their times suffer most from whatever else runs.
    """
    if name == "tiles":
        compiled.gaussian_sums()
    before, times = peak_memory(), []
    while len(times) < repeats or (repeats > 1 and sum(times) < SHORT):
        start = perf_counter()
        JOBS[name](n)
        times.append(perf_counter() - start)
    print(json.dumps([min(times), peak_memory() - before]))


def in_own_process(name: str, n: int, repeats: int = 1) -> tuple[float, float]:
    """Seconds and MB of a job."""
    command = [sys.executable, __file__, "--job", name, str(n), str(repeats)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{name}, n = {n}: {done.stderr.strip().splitlines()[-1]}")
    seconds, memory = json.loads(done.stdout.splitlines()[-1])
    return seconds, memory


def bounded(name: str, n: int, most_mb: float, most_seconds: float = np.inf) -> bool:
    """Report the peak, and the time, of a job against its limits."""
    seconds, memory = in_own_process(name, n)
    met = report(f"{name}, n = {n:,}: MB above the imports", memory, f"< {most_mb:g}", memory < most_mb)
    if np.isfinite(most_seconds):
        return report(f"{name}, n = {n:,}: s", seconds, f"< {most_seconds:g}", seconds < most_seconds) and met
    print(f"  took {seconds:.1f} s")
    return met


def keops_sum(X: np.ndarray, gamma: float) -> Callable[[], float] | None:
    """The same sum by PyKeOps, or None where it is not installed."""
    try:
        from pykeops.numpy import LazyTensor
    except ImportError:
        print("PyKeOps is missing (pip install pykeops; it needs a C++ compiler): not compared")
        return None
    x, y = LazyTensor(X[:, None, :]), LazyTensor(X[None, :, :])
    return lambda: float((-((x - y) ** 2).sum(-1) * gamma).exp().sum(1).sum())


def tiles(full: bool, n: int = 10_000) -> bool:
    met = True
    for d in (10, 50):
        X, kernel = sample(n, d)
        gamma = 0.5 / kernel.bandwidth**2

        def ours(X: np.ndarray = X, kernel: mh.Gaussian = kernel) -> object:
            return mh.ShrunkKernelMean(kernel).fit(X)

        def ours_by_numpy(ours: Callable[[], object] = ours) -> object:
            with numpy_tiles():
                return ours()

        rivals = [lambda X=X, gamma=gamma: rbf_kernel(X, gamma=gamma).sum()]
        keops = keops_sum(X, gamma) if d == 10 else None
        if keops is not None:
            assert abs(keops() / rivals[0]() - 1) < 1e-10
            rivals.append(keops)
        by_numpy, by_numba, whole, *others = best_times(ours_by_numpy, ours, *rivals)
        what = f"rbf_kernel(X).sum() / ShrunkKernelMean.fit, n = {n:,}, d = {d}"
        met &= report(f"{what}: numpy tiles", whole / by_numpy, ">= 5", whole / by_numpy >= 5)
        if compiled.gaussian_sums() is None:
            print("numba is missing (pip install 'muhat[fast]'): compiled tiles not measured")
            continue
        met &= report(f"{what}: compiled", whole / by_numba, ">= 12", whole / by_numba >= 12)
        report(f"numpy tiles / compiled, d = {d}", by_numpy / by_numba, "none", True)
        for other in others:
            met &= report("PyKeOps' LazyTensor / compiled, d = 10", other / by_numba, ">= 6", other / by_numba >= 6)
    if full:
        met &= bounded("numpy-tiles", 100_000, 500)
        met &= bounded("tiles", 100_000, 500)
    return met


def spectral(full: bool, n: int = 4000) -> bool:
    X, kernel = sample(n)
    gamma = 0.5 / kernel.bandwidth**2
    dense, low_rank, whole = best_times(
        lambda: mh.SpectralKernelMean(kernel, solver="dense").fit(X),
        lambda: mh.SpectralKernelMean(kernel, solver="low-rank", tol=1e-4).fit(X),
        lambda: eigh(rbf_kernel(X, gamma=gamma)),
        repeats=1,
    )
    met = report(
        f'fit(solver="dense") / (eigh + Gram matrix), n = {n:,}', dense / whole, "<= 1.15", dense <= 1.15 * whole
    )
    met &= report(
        '(eigh + Gram matrix) / fit(solver="low-rank", tol=1e-4)', whole / low_rank, ">= 5", whole >= 5 * low_rank
    )
    return bounded("low-rank", 20_000, 3000, 60) and met


def residual(K: np.ndarray, values: np.ndarray, vectors: np.ndarray) -> float:
    """Largest ‖K^c v − λv‖ over the components, relative to the largest λ; v of norm 1."""
    vectors = vectors / np.linalg.norm(vectors, axis=0)
    centred = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    return float(np.linalg.norm(centred @ vectors - values * vectors, axis=0).max() / values[0])


def pca(full: bool, n: int = 4000, n_components: int = 20) -> bool:
    """scikit-learn's dense solver is left out: it does what ``eigh`` does."""
    X, kernel = sample(n)
    gamma, solvers = 0.5 / kernel.bandwidth**2, ("arpack", "randomized")
    theirs = [KernelPCA(n_components, kernel="rbf", gamma=gamma, eigen_solver=s, random_state=0) for s in solvers]
    ours = mh.KernelPCA(n_components, kernel)
    own, *rivals = best_times(lambda: ours.fit(X), *(lambda pca=pca: pca.fit(X) for pca in theirs), repeats=3)
    K = kernel(X)
    print(f"residuals: muhat {residual(K, ours.eigenvalues_, ours.coefficients_):.1e}", end="")
    for solver, peer in zip(solvers, theirs, strict=True):
        print(f", {solver} {residual(K, peer.eigenvalues_, peer.eigenvectors_):.1e}", end="")
    print()
    met = True
    for solver, rival in zip(solvers, rivals, strict=True):
        target = ">= 2" if rival == min(rivals) else "none"
        what = f"scikit-learn ({solver}) / KernelPCA({n_components}), n = {n:,}, with the Gram matrix"
        met &= report(what, rival / own, target, rival >= 2 * own or target == "none")
    return met


def sketch(full: bool) -> bool:
    library, rival = sketch_speed.measure()
    rows = sketch_speed.BLOCKS * sketch_speed.ROWS
    print(f"rows per second, one thread: muhat {rows / library:,.0f}, RBFSampler and a mean {rows / rival:,.0f}")
    target = sketch_speed.TARGET
    met = report(
        "RBFSampler and a mean / MeanSketch.update", rival / library, f">= {target}", rival >= target * library
    )
    n = 10_000_000 if full else 1_000_000
    (_, few), (seconds, many) = in_own_process("sketch", n // 10), in_own_process("sketch", n)
    print(
        f"  stream of {n:,} rows in {seconds:.1f} s; MB above the imports: {few:.0f} after a tenth, {many:.0f} in all"
    )
    return report("stream: peak memory at the end / after a tenth", many / few, "<= 1.1", many <= 1.1 * few) and met


def read_bags() -> tuple[list[np.ndarray], str]:
    if os.environ.get("MUHAT_DATA"):
        return [bag.astype(float) for bag in load_bags("scenes4_indoor").bags], "scenes"
    rng = np.random.default_rng(0)
    return [rng.normal(size=(100, 32)) + rng.normal(size=32) for _ in range(914)], "synthetic: MUHAT_DATA is not set"


def bags(full: bool, step: int = 16) -> bool:
    data, source = read_bags()
    kernel = mh.Gaussian().resolve(np.concatenate(data))
    gamma, part = 0.5 / kernel.bandwidth**2, range(0, len(data), step)
    pairs = [(i, j) for i in part for j in range(i + 1)]

    found: dict[str, np.ndarray] = {}

    def ours() -> None:
        found["ours"] = DistributionKernel(kernel).fit_transform(data)

    def loop() -> None:
        found["loop"] = np.array([rbf_kernel(data[i], data[j], gamma=gamma).mean() for i, j in pairs])

    library, rival = best_times(ours, loop, repeats=1)
    assert np.abs(found["ours"][tuple(np.transpose(pairs))] - found["loop"]).max() < 1e-12
    rival *= len(data) * (len(data) + 1) / 2 / len(pairs)
    print(
        f"{len(data)} bags x {len(data[0])} rows x {data[0].shape[1]} columns ({source}): muhat {library:.2f} s", end=""
    )
    print(f", loop {rival:.1f} s, scaled from {len(pairs):,} pairs")
    return report("double loop of rbf_kernel / DistributionKernel", rival / library, ">= 15", rival >= 15 * library)


PARTS = {"tiles": tiles, "spectral": spectral, "pca": pca, "sketch": sketch, "bags": bags}


def main() -> int:
    parser = argparse.ArgumentParser(description="Time and memory against peers.")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--full", action="store_true", help="the largest sizes too")
    parser.add_argument("--job", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job:
        name, n, repeats = options.job
        run_job(name, int(n), int(repeats))
        return 0
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start")
    met = True
    for name in options.only:
        met &= PARTS[name](options.full)
    print(f"load {os.getloadavg()[0]:.1f} at the end")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
