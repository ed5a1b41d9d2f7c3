"""How many refits, and points of a sample, the target of the adaptive mean needs: numbers of docs/means.md.

Folds: into how many parts the rows are dealt where the target is not refitted without each of them; Gaussian kernel
with the median bandwidth and with a tenth of its square, 100 rows. Points: how many stand for a Gaussian where the
kernel has no closed form; Laplace kernel, 20 rows. Loss over the plain average's, geometric means over six populations,
with standard errors of the differences from the first column.

    python benchmarks/guide/adaptive.py --samples 80   # about ten minutes
    python benchmarks/guide/adaptive.py --samples 4 --part points
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from unittest.mock import patch

import numpy as np
from threadpoolctl import threadpool_limits

import muhat as mh
from muhat.kernels.base import Kernel
from muhat.means import targets
from muhat.rkhs import oas_gaussian as gaussian

PARTS = (100, 5, 10, 20, 50)
POINTS = (256, 64, 1024)
POPULATION = 2000
Fits = Callable[[Kernel, np.ndarray], Iterator[mh.Element]]


def populations() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    shape = (POPULATION, 5)
    centres = rng.normal(size=(5, 5)) * 5
    return {
        "Gaussian": rng.normal(size=shape) * [1, 1, 2, 3, 4],
        "uniform": rng.uniform(size=shape),
        "clusters": centres[rng.integers(5, size=POPULATION)] + 0.5 * rng.normal(size=shape),
        "Student t": rng.standard_t(3, size=shape),
        "log-normal": np.exp(rng.normal(size=shape)),
        "binary": (rng.random(shape) < 0.4).astype(float),
    }


def by_parts(kernel: Kernel, X: np.ndarray) -> Iterator[mh.Element]:
    """Adaptive means with a refit for each row, and with fewer parts."""
    for parts in PARTS:
        with patch.multiple(targets, MAX_ROWS_LEFT_OUT_ONE_BY_ONE=len(X) - 1, PARTS_LEFT_OUT=parts):
            yield mh.AdaptiveKernelMean(kernel).fit(X).mean_


def by_points(kernel: Kernel, X: np.ndarray) -> Iterator[mh.Element]:
    """Adaptive means with samples of several sizes for the target."""
    for points in POINTS:
        with patch.multiple(gaussian, SAMPLE_POINTS=points):
            yield mh.AdaptiveKernelMean(kernel).fit(X).mean_


def print_losses(name: str, kernel: Kernel, factor: float, n: int, samples: int, fits: Fits) -> None:
    ratios, errors = [], []
    for number, rows in enumerate(populations().values()):
        resolved = kernel.resolve(rows)
        width = 1.0 * resolved.with_params(bandwidth=factor * resolved.bandwidth)  # a multiple has no short cut
        truth = mh.embed(width, rows)
        losses = []
        for seed in np.random.SeedSequence([40, number]).spawn(samples):
            X = rows[np.random.default_rng(seed).integers(POPULATION, size=n)]
            means = [mh.embed(width, X), *fits(width, X)]
            losses.append([mean.distance(truth) ** 2 for mean in means])
        relative = np.array(losses)[:, 1:] / np.mean(losses, axis=0)[0]
        ratios.append(relative.mean(axis=0))
        errors.append((relative - relative[:, :1]).std(axis=0, ddof=1) / np.sqrt(samples))
    means = np.exp(np.log(ratios).mean(axis=0))
    spread = means * np.sqrt(np.square(np.divide(errors, ratios)).sum(axis=0)) / len(ratios)
    print(f"{name:<10}" + "".join(f"{m:9.3f} ±{e:.3f}" for m, e in zip(means, spread, strict=True)), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=30, help="samples of a population")
    parser.add_argument("--part", choices=["folds", "points"], help="both by default")
    arguments = parser.parse_args()
    with threadpool_limits(1):
        if arguments.part != "points":
            print("parts     " + "".join(f"{parts:>16}" for parts in PARTS))
            print_losses("median", mh.Gaussian(), 1.0, 100, arguments.samples, by_parts)
            print_losses("narrow", mh.Gaussian(), 10**-0.5, 100, arguments.samples, by_parts)
        if arguments.part != "folds":
            print("points    " + "".join(f"{points:>16}" for points in POINTS))
            print_losses("Laplace", mh.Laplace(), 1.0, 20, arguments.samples, by_points)


if __name__ == "__main__":
    main()
