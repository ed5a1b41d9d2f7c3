"""Which estimator wins where
==========================

A map over the number of rows and the bandwidth. In each cell the same samples go to all estimators, and the colour
says by how much the best of them lowers the loss of the plain average; the letter says which it is: S simple, F
flexible, A adaptive shrinkage. Losses are exact. A dot says that nobody is better than the plain average by two
standard errors.

In a shell::

    python examples/which_estimator.py --out report
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import muhat as mh

ESTIMATORS = {
    "S": mh.ShrunkKernelMean(),
    "F": mh.SpectralKernelMean(),
    "A": mh.AdaptiveKernelMean(),
}
POPULATIONS = {
    "a chain of three": mh.GaussianMixture([0.4, 0.3, 0.3], [[-2.0] * 5, [0.0] * 5, [2.0] * 5], [1.0] * 3),
    "far clusters": mh.paper_mixture(5, random_state=1),
}


def losses(P: mh.GaussianMixture, n: int, width: float, samples: int, seed: int) -> np.ndarray:
    """Losses by sample: the plain average's, and those of the estimators."""
    rows = []
    for sample in range(samples):
        X = P.sample(n, random_state=np.random.default_rng([seed, n, sample]))
        kernel = mh.Gaussian(width * mh.Gaussian().resolve(X).bandwidth)
        truth = mh.embed(kernel, P)
        means = [mh.KernelMean(), *ESTIMATORS.values()]
        rows.append([mean.set_params(kernel=kernel).fit(X).mean_.distance(truth) ** 2 for mean in means])
    return np.array(rows)


def winner(values: np.ndarray) -> tuple[float, str]:
    """Mean loss of the best estimator relative to the plain average's, and its letter, or a dot."""
    gains = values[:, :1] - values[:, 1:]
    best = int(np.argmax(gains.mean(axis=0)))
    gain, error = gains[:, best].mean(), gains[:, best].std(ddof=1) / np.sqrt(len(gains))
    return float(values[:, best + 1].mean() / values[:, 0].mean()), list(ESTIMATORS)[best] if gain > 2 * error else "·"


def draw(maps: dict[str, list[list[tuple[float, str]]]], sizes: list[int], widths: list[float], path: Path) -> None:
    """Save a map for each population."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(maps), figsize=(9.5, 4), layout="constrained", sharey=True)
    for axis, (name, cells) in zip(axes, maps.items(), strict=True):
        ratios = np.array([[ratio for ratio, _ in row] for row in cells])
        image = axis.imshow(ratios, cmap="YlGnBu_r", vmin=0, vmax=1, origin="lower", aspect="auto")
        for i, row in enumerate(cells):
            for j, (ratio, letter) in enumerate(row):
                ink = "white" if ratio < 0.55 else "#222222"
                axis.text(j, i + 0.1, letter, ha="center", va="center", color=ink, fontsize=12, fontweight="bold")
                axis.text(j, i - 0.28, f"{ratio:.2f}", ha="center", va="center", color=ink, fontsize=7)
        axis.set_xticks(range(len(sizes)), [str(n) for n in sizes])
        axis.set(xlabel="rows")
        axis.set_title(name, fontsize=10)
        axis.tick_params(length=0)
        axis.spines[:].set_visible(False)
    axes[0].set_yticks(range(len(widths)), [f"{width:g}" for width in widths])
    axes[0].set_ylabel("bandwidth / median distance")
    figure.colorbar(image, ax=axes, shrink=0.9, label="loss of the winner / plain average's")
    figure.savefig(path, dpi=140)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(), help="folder of the picture")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="6 samples a cell in place of 100, and fewer cells")
    arguments = parser.parse_args()
    samples, sizes = (6, [5, 10, 20, 40]) if arguments.quick else (100, [5, 10, 20, 40, 80, 160])
    widths = [0.2, 0.4, 1.0, 2.0] if arguments.quick else [0.1, 0.2, 0.4, 0.7, 1.0, 2.0]  # over the median distance
    maps = {}
    print(f"Loss of the best estimator relative to the plain average's, and which it is; {samples} samples a cell")
    for name, P in POPULATIONS.items():
        print(f"\n{name:<24}" + "".join(f"{f'n = {n}':>10}" for n in sizes))
        maps[name] = [[winner(losses(P, n, width, samples, arguments.seed)) for n in sizes] for width in widths]
        for width, row in zip(widths, maps[name], strict=True):
            print(f"{f'{width:g} × median':<24}" + "".join(f"{f'{ratio:.2f} {letter}':>10}" for ratio, letter in row))
    arguments.out.mkdir(parents=True, exist_ok=True)
    path = arguments.out / "which_estimator.png"
    draw(maps, sizes, widths, path)
    print(f"\nPicture: {path}")


if __name__ == "__main__":
    main()
