"""Into how many parts the rows are dealt where the target is not refitted without each of them: docs/adaptive.md.

Loss of the adaptive mean over the plain average's, Gaussian kernel with the median bandwidth and with a tenth of its
square, 100 rows of six populations; geometric means over the populations, with standard errors of the differences from
a refit for each row.

    python benchmarks/guide/adaptive_folds.py --samples 80   # about five minutes
    python benchmarks/guide/adaptive_folds.py --samples 4
"""

from __future__ import annotations

import argparse
from unittest.mock import patch

import numpy as np
from threadpoolctl import threadpool_limits

import muhat as mh
from muhat import targets

FOLDS = (5, 10, 20, 50)
ROWS, POPULATION = 100, 2000


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


def losses(kernel: mh.Gaussian, X: np.ndarray, truth: mh.Element) -> list[float]:
    """Of the plain average, of the adaptive mean with a refit for each row, and with each number of parts."""
    found = [mh.KernelMean(kernel).fit(X).mean_.distance(truth) ** 2]
    for parts in (ROWS, *FOLDS):
        with patch.multiple(targets, REFITS=ROWS - 1, FOLDS=parts):
            multiple = 1.0 * kernel  # the Gaussian kernel itself has a refit for each row at any n
            mean = mh.AdaptiveKernelMean(multiple).fit(X).mean_
        found.append(mean.distance(mh.Element(multiple, *truth.measures)) ** 2)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=30, help="samples of a population")
    samples = parser.parse_args().samples
    print("parts     " + "".join(f"{parts:>16}" for parts in (ROWS, *FOLDS)))
    for name, factor in {"median": 1.0, "narrow": 10**-0.5}.items():
        ratios, errors = [], []
        for number, rows in enumerate(populations().values()):
            kernel = mh.Gaussian(factor * mh.Gaussian().resolve(rows).bandwidth)
            truth = mh.embed(kernel, rows)
            rngs = [np.random.default_rng(seed) for seed in np.random.SeedSequence([40, number]).spawn(samples)]
            with threadpool_limits(1):
                L = np.array([losses(kernel, rows[rng.integers(POPULATION, size=ROWS)], truth) for rng in rngs])
            relative = L[:, 1:] / L[:, 0].mean()
            ratios.append(relative.mean(axis=0))
            errors.append((relative - relative[:, :1]).std(axis=0, ddof=1) / np.sqrt(samples))
        means = np.exp(np.log(ratios).mean(axis=0))
        spread = means * np.sqrt(np.square(np.divide(errors, ratios)).sum(axis=0)) / len(ratios)
        print(f"{name:<10}" + "".join(f"{m:9.3f} ±{e:.3f}" for m, e in zip(means, spread, strict=True)), flush=True)


if __name__ == "__main__":
    main()
