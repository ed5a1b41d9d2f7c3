"""Kernel PCA about a shrunken mean
================================

The paper's five scenarios on held-out rows, and a picture of de-noising.

In a shell::

    python examples/kernel_pca.py --out pictures
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

import muhat as mh
from muhat.plotting import KernelPCADisplay

SCENARIOS = {
    "standard": {},
    "centring by S-KMSE": {"mean": mh.ShrunkKernelMean()},
    "centring by F-KMSE": {"mean": mh.SpectralKernelMean(lam="theorem4")},
    "S-COSE": {"covariance": mh.ShrunkKernelMean()},
    "F-COSE": {"covariance": mh.SpectralKernelMean(lam="theorem4")},
}


def errors_on_wine(repetitions: int) -> dict[str, np.ndarray]:
    """Both readings of the reconstruction error on held-out rows, a pair for each repetition."""
    X = StandardScaler().fit_transform(load_wine().data)
    errors: dict[str, list[list[float]]] = {name: [] for name in SCENARIOS}
    for seed in range(repetitions):
        train, test = train_test_split(X, test_size=0.3, random_state=seed)
        for name, parts in SCENARIOS.items():
            pca = mh.KernelPCA(20, **parts).fit(train)
            errors[name].append([pca.reconstruction_error(test, of=of) for of in ("centred", "feature")])
    return {name: np.array(pairs) for name, pairs in errors.items()}


def noisy_moon(rng: np.random.Generator, n: int = 150) -> np.ndarray:
    """A half circle with noise."""
    angle = rng.uniform(0, np.pi, size=n)
    return np.column_stack([np.cos(angle), np.sin(angle)]) + 0.12 * rng.normal(size=(n, 2))


def draw(path: Path, rng: np.random.Generator) -> None:
    """Save a picture: the components of wine, and rows with their pre-images."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
    wine = load_wine()
    X = StandardScaler().fit_transform(wine.data)
    pca = mh.KernelPCA(2, mean=mh.ShrunkKernelMean()).fit(X)
    KernelPCADisplay.from_estimator(pca, X, y=wine.target_names[wine.target], ax=axes[0])
    axes[0].set_title("wine: three growers, shrinkage centring")
    moon = noisy_moon(rng)
    model = mh.KernelPCA(4, mh.Gaussian(0.7), mean=mh.ShrunkKernelMean(), pre_image="fixed-point").fit(moon)
    clean = model.inverse_transform(model.transform(moon))
    for row, image in zip(moon, clean, strict=True):
        axes[1].plot(*np.column_stack([row, image]), color="0.8", linewidth=0.7, zorder=0)
    axes[1].scatter(*moon.T, s=10, color="0.5", label="rows")
    axes[1].scatter(*clean.T, s=10, color="C1", label="pre-images of 4 components")
    axes[1].set_title("de-noising by pre-images")
    axes[1].set_aspect("equal")
    axes[1].legend(loc="lower center")
    figure.savefig(path, dpi=140)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(), help="folder of the picture")
    parser.add_argument("--quick", action="store_true", help="two repetitions only")
    arguments = parser.parse_args()
    errors = errors_on_wine(2 if arguments.quick else 10)
    plain = errors["standard"]
    print("wine, 20 components, held-out error relative to standard kernel PCA (better in how many repetitions)\n")
    print(f"{'scenario':<20}{'of the centred feature':>26}{'of the feature':>26}")
    for name, values in errors.items():
        ratios, wins = values.mean(axis=0) / plain.mean(axis=0), (values < plain * (1 - 1e-9)).sum(axis=0)
        cells = [f"{r:.4f} ({w} of {len(values)})" for r, w in zip(ratios, wins, strict=True)]
        print(f"{name:<20}{cells[0]:>26}{cells[1]:>26}")
    arguments.out.mkdir(parents=True, exist_ok=True)
    path = arguments.out / "kernel_pca.png"
    draw(path, np.random.default_rng(0))
    print(f"\nPicture: {path}")


if __name__ == "__main__":
    main()
