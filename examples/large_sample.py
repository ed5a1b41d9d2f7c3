"""Large samples in bounded memory
===============================

What a kernel mean costs as rows are added. The plain way holds the Gram matrix, n² numbers. muhat's tiles do the same
sum in a few megabytes, and a sketch of Nyström features passes once over the rows: its time grows with n, not with n².
Time is wall time, memory what Python allocates at most beyond the data. Asked for more memory than there is, an
estimator refuses before it allocates, and says what to do instead.

In a shell::

    python examples/large_sample.py --out report
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np

import muhat as mh

KERNEL = mh.Gaussian(bandwidth=3.0)
COLOURS = {"Gram matrix": "#999999", "tiles": "#0072b2", "sketch": "#d55e00"}


def by_gram_matrix(X: np.ndarray) -> float:
    """‖μ̂‖² from the whole matrix."""
    return float(KERNEL(X).mean())


def by_tiles(X: np.ndarray) -> float:
    """‖μ̂‖² a tile at a time, to the same digits."""
    return float(mh.KernelMean(KERNEL).fit(X).mean_.norm() ** 2)


def by_sketch(X: np.ndarray) -> float:
    """‖μ̂‖² in the span of 200 landmarks, in one pass."""
    features = mh.Nystroem(KERNEL, 200, "k-means++", random_state=0).fit(X[:1000])
    return float(np.linalg.norm(mh.MeanSketch(features).update(X).mean_features()) ** 2)


METHODS = {"Gram matrix": by_gram_matrix, "tiles": by_tiles, "sketch": by_sketch}


def cost(method: Callable[[np.ndarray], float], X: np.ndarray) -> tuple[float, float, float]:
    """Result, seconds and megabytes. Time is taken on a run of its own, as tracing slows it down."""
    start = time.perf_counter()
    result = method(X)
    seconds = time.perf_counter() - start
    tracemalloc.start()
    method(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return result, seconds, peak / 1e6


def draw(results: dict[str, np.ndarray], path: Path) -> None:
    """Save time and memory against n, each curve with its name."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for axis, column, label in zip(axes, (2, 3), ("seconds", "megabytes beyond the data"), strict=True):
        for name, values in results.items():
            axis.plot(values[:, 0], values[:, column], color=COLOURS[name], marker="o", markersize=4, linewidth=2)
            place = (values[-1, 0], values[-1, column])
            axis.annotate(name, place, (0, 8), textcoords="offset points", color=COLOURS[name], ha="right", fontsize=9)
        axis.set(xscale="log", yscale="log", xlabel="rows", ylabel=label)
        axis.set_xlim(right=2 * max(values[-1, 0] for values in results.values()))
        axis.yaxis.set_major_formatter("{x:g}")
        axis.yaxis.set_minor_formatter("")
        axis.grid(color="#eeeeee")
        axis.spines[["top", "right"]].set_visible(False)
    rows = results["sketch"][:, 0]
    axes[1].plot(rows, 8e-6 * rows**2, "--", color=COLOURS["Gram matrix"], linewidth=1)
    axes[1].text(rows[-1], 8e-6 * rows[-1] ** 2, " 8n² bytes", color="#777777", fontsize=9, ha="right", va="bottom")
    axes[1].set_ylim(bottom=0.5)
    figure.suptitle("the squared norm of a kernel mean in 10 dimensions", fontsize=10)
    figure.savefig(path, dpi=140)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(), help="folder of the picture")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    arguments = parser.parse_args()
    largest = {"Gram matrix": 3000, "tiles": 10_000, "sketch": 100_000}
    limits = {name: n if arguments.quick else 10 * n if name == "sketch" else 3 * n for name, n in largest.items()}
    rng = np.random.default_rng(arguments.seed)
    data = rng.normal(size=(max(limits.values()), 10)) @ np.diag(np.linspace(0.5, 1.5, 10))
    sizes = [int(n) for n in np.outer([1e3, 1e4, 1e5], [1, 3]).ravel()] + [1_000_000]
    for method in METHODS.values():
        method(data[:1000])  # what is loaded at the first call is no cost of the method
    print(f"{'rows':>9}  {'method':<12}{'squared norm':>14}{'seconds':>10}{'megabytes':>11}")
    results: dict[str, list[tuple[float, ...]]] = {name: [] for name in METHODS}
    for n in sizes:
        for name, method in METHODS.items():
            if n <= limits[name]:
                results[name].append((n, *cost(method, data[:n])))
                _, value, seconds, megabytes = results[name][-1]
                print(f"{n:9,}  {name:<12}{value:14.6f}{seconds:10.3f}{megabytes:11.1f}")
    try:
        mh.SpectralKernelMean(KERNEL, solver="dense", memory_limit=1e9).fit(data[:20_000])
    except (MemoryError, ValueError) as refusal:
        print(f"\nAsked for too much: {refusal}")
    arguments.out.mkdir(parents=True, exist_ok=True)
    path = arguments.out / "large_sample.png"
    draw({name: np.array(rows) for name, rows in results.items()}, path)
    print(f"\nPicture: {path}")


if __name__ == "__main__":
    main()
