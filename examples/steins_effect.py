"""Stein's effect, measured
========================

The paper's synthetic comparison at one setting. Draws mixtures of Gaussians as the paper does, estimates the kernel
mean of each from a small sample, and compares the exact losses: the plain average (KME), simple shrinkage (S-KMSE),
flexible shrinkage (F-KMSE) with λ by the paper's Theorem 4 and by true deletion, the two combined, and the oracle of
Theorem 1.

In a shell::

    python examples/steins_effect.py --out report
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import muhat as mh

KERNELS = {
    "linear": mh.Linear(),
    "polynomial 2": mh.Polynomial(degree=2),
    "polynomial 3": mh.Polynomial(degree=3),
    "Gaussian": mh.Gaussian(),
}
ESTIMATORS = {
    "KME": mh.KernelMean(),
    "S": mh.ShrunkKernelMean(),
    "F, Theorem 4": mh.SpectralKernelMean(lam="theorem4"),
    "F, deletion": mh.SpectralKernelMean(),
    "S and F": mh.SpectralKernelMean(scale="loo"),
}
COLUMNS = [*ESTIMATORS, "oracle"]


def losses(n: int, d: int, repetitions: int, seed: int) -> dict[str, np.ndarray]:
    """Exact losses ‖μ̂ − μ‖² by kernel: an array with a row a distribution and a column an estimator."""
    seeds = np.random.SeedSequence(seed).spawn(repetitions)
    rows = [_losses_once(n, d, np.random.default_rng(child)) for child in seeds]
    return {name: np.array([row[name] for row in rows]) for name in KERNELS}


def _losses_once(n: int, d: int, rng: np.random.Generator) -> dict[str, list[float]]:
    P = mh.paper_mixture(d, random_state=rng)
    X = P.sample(n, random_state=rng)
    row = {}
    for name, kernel in KERNELS.items():
        resolved = kernel.resolve(X)
        truth = mh.embed(resolved, P)
        means = [estimator.set_params(kernel=resolved).fit(X).mean_ for estimator in ESTIMATORS.values()]
        means.append((1 - mh.oracle_shrinkage(resolved, P, n).shrinkage) * means[0])
        row[name] = [mean.distance(truth) ** 2 for mean in means]
    return row


def relative(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean loss relative to KME's, and the standard error of that ratio."""
    base = values[:, :1].mean()
    ratios = values.mean(axis=0) / base
    return ratios, (values - ratios * values[:, :1]).std(axis=0, ddof=1) / np.sqrt(len(values)) / base


def print_table(results: dict[str, np.ndarray]) -> None:
    """Print losses relative to KME's, with the share of distributions improved."""
    print(f"{'kernel':<14}" + "".join(f"{name:>22}" for name in COLUMNS))
    for kernel, values in results.items():
        ratios, errors = relative(values)
        improved = (values < values[:, :1]).mean(axis=0)
        cells = [f"{r:.3f} ± {e:.3f} ({s:4.0%})" for r, e, s in zip(ratios, errors, improved, strict=True)]
        print(f"{kernel:<14}" + "".join(f"{cell:>22}" for cell in cells))


def draw(results: dict[str, np.ndarray], n: int, d: int, path: Path) -> None:
    """Save a picture of the relative losses."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(results), figsize=(11, 3.2), sharey=True, layout="constrained")
    colours = ["#888888", "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9"]
    for axis, (kernel, values) in zip(axes, results.items(), strict=True):
        ratios, errors = relative(values)
        axis.bar(range(len(ratios)), ratios, yerr=2 * errors, color=colours, capsize=2)
        axis.axhline(1, color="#444444", linewidth=1, linestyle=":")
        axis.set_title(kernel, fontsize=10)
        axis.set_xticks(range(len(ratios)), COLUMNS, rotation=55, ha="right", fontsize=8)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("loss relative to the plain average")
    repetitions = len(next(iter(results.values())))
    figure.suptitle(f"{n} rows in {d} dimensions, {repetitions} distributions, ± 2 standard errors", fontsize=10)
    figure.savefig(path, dpi=140)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(), help="folder of the picture")
    parser.add_argument("--rows", type=int, default=10)
    parser.add_argument("--features", type=int, default=30)
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="ten distributions only")
    arguments = parser.parse_args()
    n, d = arguments.rows, arguments.features
    repetitions = 10 if arguments.quick else arguments.repetitions
    results = losses(n, d, repetitions, arguments.seed)
    print(f"Loss relative to the plain average (share of {repetitions} distributions improved), n = {n}, d = {d}\n")
    print_table(results)
    arguments.out.mkdir(parents=True, exist_ok=True)
    path = arguments.out / "steins_effect.png"
    draw(results, n, d, path)
    print(f"\nPicture: {path}")


if __name__ == "__main__":
    main()
