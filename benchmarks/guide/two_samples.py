"""Powers of the tests on two samples and on pairs: the tables of docs/two_samples.md.

python benchmarks/guide/two_samples.py
python benchmarks/guide/two_samples.py --draws 20
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial

import numpy as np
from scipy import stats

import muhat as mh
from muhat.inference.independence import hsic_test
from muhat.inference.two_sample import mmd_test

TESTS = {
    "default": {},
    "unbiased": {"unbiased": True},
    "shrunk means": {"mean": mh.ShrunkKernelMean()},
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


def with_one_width(X: np.ndarray, noise: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Rows of X and of the noise, each pair multiplied by one random number."""
    width = np.exp(0.4 * rng.normal(size=(len(X), 1)))
    return width * X, width * noise


DEPENDENCES = {
    "none": lambda X, noise, rng: (X, noise),
    "y = 0.5 x + noise": lambda X, noise, rng: (X, 0.5 * X + noise),
    "y = 0.8 x² + noise": lambda X, noise, rng: (X, 0.8 * X**2 + noise),
    "one random width for x and y": with_one_width,
}


def statistics_compared(n: int, m: int, shift: float, width: float, rng: np.random.Generator) -> list[float]:
    """P-values of the three statistics for Gaussian samples in 10 dimensions."""
    X, Y = rng.normal(size=(n, 10)), shift + width * rng.normal(size=(m, 10))
    return [mmd_test(X, Y, mh.Gaussian(), 99, rng, **settings).pvalue for settings in TESTS.values()]


def centrings_compared(
    dependence: Callable[..., tuple[np.ndarray, np.ndarray]], rng: np.random.Generator
) -> list[float]:
    """P-values of the three statistics for 20 pairs of rows in 5 dimensions."""
    X, Y = dependence(*rng.normal(size=(2, 20, 5)), rng)
    return [hsic_test(X, Y, mh.Gaussian(), mh.Gaussian(), 99, rng, **settings).pvalue for settings in TESTS.values()]


def with_t(shift: float, width: float, rng: np.random.Generator) -> list[float]:
    """P-values of the t-test and of MMD for 50 + 50 numbers."""
    X, Y = rng.normal(size=(50, 1)), shift + width * rng.normal(size=(50, 1))
    return [stats.ttest_ind(X[:, 0], Y[:, 0]).pvalue, mmd_test(X, Y, mh.Gaussian(), 99, rng).pvalue]


def with_correlation(slope: float, power: int, rng: np.random.Generator) -> list[float]:
    """P-values of the correlation and of HSIC for 50 pairs."""
    X = rng.normal(size=(50, 1))
    Y = slope * X**power + rng.normal(size=(50, 1))
    return [stats.pearsonr(X[:, 0], Y[:, 0]).pvalue, hsic_test(X, Y, mh.Gaussian(), mh.Gaussian(), 99, rng).pvalue]


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
    """Print the three tables of shares."""
    print(f"Share of {draws} draws in which a test at level 5 % rejects: MMD, Gaussian samples in 10 dimensions")
    print(f"{'difference':<40}" + "".join(f"{name:>20}" for name in TESTS))
    for name, settings in DIFFERENCES.items():
        shares = rejected(partial(statistics_compared, *settings), draws, seed)
        print(f"{name:<40}" + "".join(f"{share:>20.2f}" for share in shares))
    print("\nThe same share: HSIC, 20 pairs of rows in 5 dimensions")
    for name, dependence in DEPENDENCES.items():
        shares = rejected(partial(centrings_compared, dependence), draws, seed)
        print(f"{name:<40}" + "".join(f"{share:>20.2f}" for share in shares))
    print("\nThe same share, two tests side by side")
    for name, (first, second, pvalues) in COMPARISONS.items():
        a, b = rejected(pvalues, draws, seed)
        print(f"{name:<40}{first:>20} {a:.2f}{second:>20} {b:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    print_rejections(arguments.draws, arguments.seed)


if __name__ == "__main__":
    main()
