"""Density by kernel mean matching
===============================

Outliers that a local kernel ignores, and the paper's comparison on two tables.

In a shell::

    python examples/density_matching.py --out pictures
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

import muhat as mh
from muhat.density import MatchedGaussianMixture

TRUTH = mh.GaussianMixture([0.3, 0.3, 0.4], [[-3.0, 0.0], [3.0, 0.0], [0.0, 4.0]], [0.5, 1.0, 0.8])
OUTLIERS = ((0.0, 15), (0.05, 15), (0.1, 15), (0.2, 15), (0.1, 40))
WIDTHS = ("median", 3.0, 1.5, 0.75)
TABLES = {"wine": load_wine, "wdbc": load_breast_cancer}
MEANS = {
    "KME": None,
    "S-KMSE": mh.ShrunkKernelMean(),
    "F, thm 4": mh.SpectralKernelMean(lam="theorem4"),
}


def contaminated(share: float, reach: float, seed: int, n: int = 300) -> np.ndarray:
    """Rows of three clusters, some of them replaced by outliers from the square [-reach, reach]²."""
    X = TRUTH.sample(n, random_state=seed)
    outliers = round(share * n)
    X[:outliers] = np.random.default_rng(seed).uniform(-reach, reach, size=(outliers, 2))
    return X


def fits(X: np.ndarray, seed: int) -> dict[str, object]:
    """Three components by EM, and matched with kernels from as wide as the data to as narrow as a cluster."""
    em = GaussianMixture(3, covariance_type="spherical", n_init=10, random_state=seed)
    matched = {
        f"matched, width {width}": MatchedGaussianMixture(3, mh.Gaussian(width), n_init=10, random_state=seed)
        for width in WIDTHS
    }
    return {name: model.fit(X) for name, model in {"EM": em, **matched}.items()}


def outlier_table(repetitions: int) -> None:
    """Print the negative log-likelihood of clean rows for densities fitted to contaminated ones."""
    clean = TRUTH.sample(5000, random_state=12345)
    truth = -TRUTH.log_density(clean).mean()
    print(f"Outliers: mean negative log-likelihood of clean rows (the truth has {truth:.2f})\n")
    print(f"{'outliers':<18}{'EM':>14}" + "".join(f"{f'width {width}':>14}" for width in WIDTHS))
    for share, reach in OUTLIERS:
        models = [fits(contaminated(share, reach, seed), seed) for seed in range(repetitions)]
        values = [np.mean([-found[name].score(clean) for found in models]) for name in models[0]]
        print(f"{f'{share:.0%} within ±{reach}':<18}" + "".join(f"{value:>14.2f}" for value in values))


def likelihoods(X: np.ndarray, seed: int) -> dict[str, np.ndarray]:
    """Test negative log-likelihoods on one split, a row for each solver: the start, each mean estimator, and EM."""
    train, test = train_test_split(X, test_size=0.3, random_state=seed)
    start = MatchedGaussianMixture(10, solver="weights", random_state=seed).fit(train).initial_density_
    em = GaussianMixture(10, covariance_type="spherical", n_init=50, random_state=seed).fit(train)
    rows = {}
    for solver in ("slsqp", "lbfgs"):
        matched = [MatchedGaussianMixture(10, mean=mean, solver=solver, init=start) for mean in MEANS.values()]
        scores = [model.fit(train).score(test) for model in matched]
        rows[solver] = -np.array([start.log_density(test).mean(), *scores, em.score(test)])
    return rows


def paper_table(tables: dict[str, Callable[[], Any]], repetitions: int) -> None:
    """Print what matching does to the likelihood of held-out rows, all estimators from one start of k-means."""
    print(f"\nTables: test negative log-likelihood (better than KME in how many of {repetitions} splits)\n")
    print(f"{'':<14}" + "".join(f"{name:>13}" for name in ("start", *MEANS, "EM")))
    for name, load in tables.items():
        X = StandardScaler().fit_transform(load().data)
        splits = [likelihoods(X, seed) for seed in range(repetitions)]
        for solver in splits[0]:
            values = np.array([rows[solver] for rows in splits])
            wins = (values < values[:, 1:2]).sum(axis=0)
            cells = [f"{value:.2f} ({count})" for value, count in zip(values.mean(axis=0), wins, strict=True)]
            print(f"{name + ', ' + solver:<14}" + "".join(f"{cell:>13}" for cell in cells))


def draw(path: Path) -> None:
    """Save a picture: contours of both densities over the same contaminated rows."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    X = contaminated(0.1, 15, seed=0)
    side = np.linspace(-9, 9, 181)
    grid = np.stack(np.meshgrid(side, side + 2), axis=-1)
    models = fits(X, seed=0)
    figure, axes = plt.subplots(1, 2, figsize=(10, 5), sharey=True, layout="constrained")
    for ax, name in zip(axes, ("EM", "matched, width 1.5"), strict=True):
        density = np.exp(models[name].score_samples(grid.reshape(-1, 2)).reshape(grid.shape[:2]))
        levels = np.geomspace(1e-4, 1e-1, 7)
        lines = ax.contour(grid[..., 0], grid[..., 1], density, levels, cmap="viridis", norm="log")
        ax.scatter(*X.T, s=8, color="0.45", alpha=0.7, linewidth=0)
        ax.set(title=name, xlim=(-9, 9), ylim=(-7, 11), aspect="equal", xlabel="$x_1$")
    axes[0].set_ylabel("$x_2$")
    figure.colorbar(lines, ax=axes, label="density", format="%.0e")
    figure.suptitle("Three components fitted to three clusters with 10 % outliers")
    figure.savefig(path, dpi=90)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(), help="folder of the picture")
    parser.add_argument("--quick", action="store_true", help="one repetition, one table")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)  # k-means puts components on single rows of these tables
    outlier_table(1 if arguments.quick else 10)
    paper_table({"wine": load_wine} if arguments.quick else TABLES, 1 if arguments.quick else 10)
    arguments.out.mkdir(parents=True, exist_ok=True)
    path = arguments.out / "density_matching.png"
    draw(path)
    print(f"\nPicture: {path}")


if __name__ == "__main__":
    main()
