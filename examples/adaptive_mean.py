"""The adaptive mean
=================

Where shrinkage wins, and which: simple, flexible and adaptive, over populations of different shapes. Every population
is a mixture of Gaussians, so that losses are exact. Each sample is small; the kernel is Gaussian, with the bandwidth
by the median, and a narrow one (a tenth of its square).

In a shell::

    python examples/adaptive_mean.py --out report
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import muhat as mh
from muhat.adaptive import AdaptiveKernelMean

ESTIMATORS = {
    "KME": mh.KernelMean(),
    "S": mh.ShrunkKernelMean(),
    "F": mh.SpectralKernelMean(),
    "adaptive": AdaptiveKernelMean(),
}
BANDWIDTHS = {"median": 1.0, "narrow": np.sqrt(0.1)}


def populations() -> dict[str, mh.GaussianMixture]:
    """Mixtures by name."""
    rng = np.random.default_rng(0)
    angles = np.arange(24) * np.pi / 12
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    return {
        "one Gaussian": mh.GaussianMixture([1.0], np.ones((1, 5)), [[1.0, 1.0, 2.0, 4.0, 8.0]]),
        "the paper's mixture": mh.paper_mixture(10, random_state=rng),
        "outliers": mh.GaussianMixture([0.9, 0.1], np.zeros((2, 5)), [1.0, 100.0]),
        "a circle": mh.GaussianMixture(np.full(24, 1 / 24), circle, np.full(24, 0.01)),
        "tight clusters": mh.GaussianMixture(np.full(5, 0.2), rng.normal(size=(5, 5)) * 5, np.full(5, 0.05)),
    }


def losses(P: mh.GaussianMixture, n: int, factor: float, repetitions: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Exact losses ‖μ̂ − μ‖², a row a sample and a column an estimator; and the mean shares (a, b)."""
    rows, shares = [], []
    for child in np.random.SeedSequence(seed).spawn(repetitions):
        X = P.sample(n, random_state=child)
        kernel = mh.Gaussian(factor * mh.Gaussian().resolve(X).bandwidth)
        truth = mh.embed(kernel, P)
        fitted = [estimator.set_params(kernel=kernel).fit(X) for estimator in ESTIMATORS.values()]
        rows.append([estimator.mean_.distance(truth) ** 2 for estimator in fitted])
        shares.append(fitted[-1].shares_)
    return np.array(rows), np.mean(shares, axis=0)


def relative(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean loss relative to KME's, and the standard error of that ratio."""
    base = values[:, :1].mean()
    ratios = values.mean(axis=0) / base
    return ratios, (values - ratios * values[:, :1]).std(axis=0, ddof=1) / np.sqrt(len(values)) / base


def draw(results: dict[tuple[str, str], np.ndarray], n: int, path: Path) -> None:
    """Save a picture: a panel a bandwidth, a row a population."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names = list(dict.fromkeys(name for _, name in results))
    figure, axes = plt.subplots(1, len(BANDWIDTHS), figsize=(10, 4), sharey=True, layout="constrained")
    styles = {"S": ("#0072b2", "s", -0.2), "F": ("#e69f00", "^", 0.0), "adaptive": ("#d55e00", "o", 0.2)}
    for axis, bandwidth in zip(axes, BANDWIDTHS, strict=True):
        ratios, errors = zip(*(relative(results[bandwidth, name]) for name in names), strict=True)
        for estimator, (colour, marker, shift) in styles.items():
            column = list(ESTIMATORS).index(estimator)
            axis.errorbar(
                np.array(ratios)[:, column],
                np.arange(len(names)) + shift,
                xerr=2 * np.array(errors)[:, column],
                fmt=marker,
                color=colour,
                label=estimator,
                capsize=2,
            )
        axis.axvline(1, color="#444444", linewidth=1, linestyle=":")
        axis.set_title(f"{bandwidth} bandwidth", fontsize=10)
        axis.set_xlabel("loss relative to the plain average")
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_yticks(range(len(names)), names)
    axes[0].invert_yaxis()
    axes[-1].legend(frameon=False, loc="lower left")
    samples = len(next(iter(results.values())))
    figure.suptitle(f"{n} rows, {samples} samples, ± 2 standard errors", fontsize=10)
    figure.savefig(path, dpi=140)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(), help="folder of the picture")
    parser.add_argument("--rows", type=int, default=20)
    parser.add_argument("--repetitions", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="eight samples only")
    arguments = parser.parse_args()
    repetitions = 8 if arguments.quick else arguments.repetitions
    print(
        f"Loss relative to the plain average, {arguments.rows} rows, {repetitions} samples; a and b are mean shares\n"
    )
    print(f"{'bandwidth':<11}{'population':<21}" + "".join(f"{name:>16}" for name in ESTIMATORS) + f"{'a':>7}{'b':>6}")
    results = {}
    for bandwidth, factor in BANDWIDTHS.items():
        for name, P in populations().items():
            values, (a, b) = losses(P, arguments.rows, factor, repetitions, arguments.seed)
            results[bandwidth, name] = values
            cells = "".join(f"{f'{r:.3f} ± {e:.3f}':>16}" for r, e in zip(*relative(values), strict=True))
            print(f"{bandwidth:<11}{name:<21}{cells}{a:>7.2f}{b:>6.2f}")
    arguments.out.mkdir(parents=True, exist_ok=True)
    path = arguments.out / "adaptive_mean.png"
    draw(results, arguments.rows, path)
    print(f"\nPicture: {path}")


if __name__ == "__main__":
    main()
