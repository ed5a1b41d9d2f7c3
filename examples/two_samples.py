"""Two samples with the same mean and covariance
=============================================

The MMD test tells them apart, and its witness shows where. X is Gaussian and Y lies about a ring of width 0.3. A
difference that fine needs a bandwidth of its own size: the median bandwidth, which is as wide as the samples are,
misses it. Two more tables show how often tests at level 5 % find other differences, and how the classical tests do.

In a shell::

    python examples/two_samples.py --out report
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from scipy import stats

import muhat as mh
from muhat.hypothesis_tests import MMDResult, hsic_test, mmd_test

COLOURS = {"X": "#0072b2", "Y": "#e69f00"}
TESTS = {
    "MMD": {},
    "MMD, unbiased": {"unbiased": True},
    "MMD, shrunk means": {"mean": mh.ShrunkKernelMean()},
}
DIFFERENCES = {
    "none, 20 + 20 rows": (20, 20, 0.0, 1.0),
    "means differ by 0.3, 20 + 20 rows": (20, 20, 0.3, 1.0),
    "Y is 1.5 times as wide, 20 + 20 rows": (20, 20, 0.0, 1.5),
    "Y is 1.5 times as wide, 10 + 40 rows": (10, 40, 0.0, 1.5),
    "Y is 1.5 times as wide, 40 + 10 rows": (40, 10, 0.0, 1.5),
}


def gaussian_and_ring(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Two samples of n rows with mean 0 and covariance I."""
    noise = 0.3
    angle = rng.uniform(0, 2 * np.pi, size=n)
    ring = np.sqrt(2 * (1 - noise**2)) * np.column_stack([np.cos(angle), np.sin(angle)])
    return rng.normal(size=(n, 2)), ring + noise * rng.normal(size=(n, 2))


def print_tests(X: np.ndarray, Y: np.ndarray, n_resamples: int, seed: int) -> MMDResult:
    """Print what the tests say of the two samples, and of the two coordinates of Y; return the narrow MMD test."""
    settings = {"n_resamples": n_resamples, "random_state": seed}
    wide, narrow = (mmd_test(X, Y, kernel, **settings) for kernel in (mh.Gaussian(), mh.Gaussian(bandwidth=0.5)))
    rows = {
        "t, first coordinate of X and Y": stats.ttest_ind(X[:, 0], Y[:, 0]),
        "t, second coordinate of X and Y": stats.ttest_ind(X[:, 1], Y[:, 1]),
        f"MMD, X and Y, median bandwidth {wide.kernel.bandwidth:.2f}": wide,
        "MMD, X and Y, bandwidth 0.5": narrow,
        "correlation, the coordinates of Y": stats.pearsonr(*Y.T),
        "HSIC, the coordinates of Y": hsic_test(Y[:, :1], Y[:, 1:], **settings),
    }
    print(f"{'test':<40}{'statistic':>12}{'p':>9}")
    for name, result in rows.items():
        print(f"{name:<40}{result.statistic:12.4f}{result.pvalue:9.4f}")
    return narrow


def statistics_compared(n: int, m: int, shift: float, width: float, rng: np.random.Generator) -> list[float]:
    """P-values of the three statistics for Gaussian samples in 10 dimensions."""
    X, Y = rng.normal(size=(n, 10)), shift + width * rng.normal(size=(m, 10))
    return [mmd_test(X, Y, n_resamples=99, random_state=rng, **settings).pvalue for settings in TESTS.values()]


def with_t(shift: float, width: float, rng: np.random.Generator) -> list[float]:
    """P-values of the t-test and of MMD for 50 + 50 numbers."""
    X, Y = rng.normal(size=(50, 1)), shift + width * rng.normal(size=(50, 1))
    return [stats.ttest_ind(X[:, 0], Y[:, 0]).pvalue, mmd_test(X, Y, n_resamples=99, random_state=rng).pvalue]


def with_correlation(slope: float, power: int, rng: np.random.Generator) -> list[float]:
    """P-values of the correlation and of HSIC for 50 pairs."""
    X = rng.normal(size=(50, 1))
    Y = slope * X**power + rng.normal(size=(50, 1))
    return [stats.pearsonr(X[:, 0], Y[:, 0]).pvalue, hsic_test(X, Y, n_resamples=99, random_state=rng).pvalue]


def with_narrow_kernel(n: int, rng: np.random.Generator) -> list[float]:
    """P-values of MMD with the median bandwidth and with 0.5 for the Gaussian and the ring."""
    X, Y = gaussian_and_ring(n, rng)
    return [mmd_test(X, Y, k, n_resamples=99, random_state=rng).pvalue for k in (mh.Gaussian(), mh.Gaussian(0.5))]


COMPARISONS = {
    "50 + 50 numbers, means differ by 0.5": ("t", "MMD", partial(with_t, 0.5, 1.0)),
    "50 + 50 numbers, Y is 1.8 times as wide": ("t", "MMD", partial(with_t, 0.0, 1.8)),
    "50 pairs, y = 0.4 x + noise": ("correlation", "HSIC", partial(with_correlation, 0.4, 1)),
    "50 pairs, y = 0.6 x² + noise": ("correlation", "HSIC", partial(with_correlation, 0.6, 2)),
    "Gaussian and ring, 150 + 150 rows": ("MMD, median", "MMD, 0.5", partial(with_narrow_kernel, 150)),
}


def rejected(pvalues: Callable[[np.random.Generator], list[float]], draws: int, seed: int) -> np.ndarray:
    """Share of draws in which each test rejects at level 5 %."""
    seeds = np.random.SeedSequence(seed).spawn(draws)
    return np.mean([np.array(pvalues(np.random.default_rng(child))) <= 0.05 for child in seeds], axis=0)


def print_rejections(draws: int, seed: int) -> None:
    """Print both tables of shares."""
    print(f"\nShare of {draws} draws in which a test at level 5 % rejects: Gaussian samples in 10 dimensions")
    print(f"{'difference':<40}" + "".join(f"{name:>20}" for name in TESTS))
    for name, settings in DIFFERENCES.items():
        shares = rejected(partial(statistics_compared, *settings), draws, seed)
        print(f"{name:<40}" + "".join(f"{share:>20.2f}" for share in shares))
    print("\nThe same share, two tests side by side")
    for name, (first, second, pvalues) in COMPARISONS.items():
        a, b = rejected(pvalues, draws, seed)
        print(f"{name:<40}{first:>20} {a:.2f}{second:>20} {b:.2f}")


def draw(X: np.ndarray, Y: np.ndarray, result: MMDResult, path: Path) -> None:
    """Save a picture of the samples, the witness function and the null distribution."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.colors import LinearSegmentedColormap

    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
    for name, rows in (("X", X), ("Y", Y)):
        left.scatter(*rows.T, s=9, color=COLOURS[name], label=name, alpha=0.8, linewidths=0)
    left.legend(loc="upper right", fontsize=8, frameon=False)
    left.set_title("two samples, equal mean and covariance", fontsize=10)

    side = np.linspace(-3.2, 3.2, 81)
    grid = np.stack(np.meshgrid(side, side), axis=-1)
    values = result.witness(grid.reshape(-1, 2)).reshape(81, 81)
    limit = np.abs(values).max()
    colours = LinearSegmentedColormap.from_list("witness", [COLOURS["Y"], "white", COLOURS["X"]])
    shades = middle.contourf(side, side, values, np.linspace(-limit, limit, 22), cmap=colours)
    middle.contour(side, side, values, [0.0], colors="#444444", linewidths=0.8)
    bar = figure.colorbar(shades, ax=middle, ticks=[-limit, 0.0, limit])
    bar.ax.set_yticklabels(["more Y", "0", "more X"], fontsize=8)
    middle.set_title(f"witness f − g, bandwidth {result.kernel.bandwidth:g}", fontsize=10)
    for axis in (left, middle):
        axis.set(xlim=(-3.2, 3.2), ylim=(-3.2, 3.2), aspect="equal")

    right.hist(result.null_distribution, bins=40, color="#bbbbbb")
    right.axvline(result.statistic, color="#d55e00", linewidth=2)
    note = f"  MMD² = {result.statistic:.4f}  \n  p = {result.pvalue:.3g}  "
    side_of_line = "right" if result.statistic > result.null_distribution.max() / 2 else "left"
    height = 0.95 * right.get_ylim()[1]
    right.text(result.statistic, height, note, color="#d55e00", ha=side_of_line, va="top", fontsize=9)
    right.set_title(f"null distribution, {len(result.null_distribution):,} random splits", fontsize=10)
    right.set_yticks([])
    right.spines[["top", "right", "left"]].set_visible(False)
    figure.savefig(path, dpi=140)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("."), help="folder of the picture")
    parser.add_argument("--rows", type=int, default=150, help="rows of each sample")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="ten draws only, and 199 permutations")
    arguments = parser.parse_args()
    draws, n_resamples = (10, 199) if arguments.quick else (300, 999)
    X, Y = gaussian_and_ring(arguments.rows, np.random.default_rng(arguments.seed))
    result = print_tests(X, Y, n_resamples, arguments.seed)
    print_rejections(draws, arguments.seed)
    arguments.out.mkdir(parents=True, exist_ok=True)
    path = arguments.out / "two_samples.png"
    draw(X, Y, result, path)
    print(f"\nPicture: {path}")


if __name__ == "__main__":
    main()
