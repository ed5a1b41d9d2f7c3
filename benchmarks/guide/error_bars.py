"""How often balls, bands and intervals hold the truth: the table of docs/error_bars.md.

python benchmarks/guide/error_bars.py
python benchmarks/guide/error_bars.py --draws 20
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np

import muhat as mh
from muhat.inference.error_bars import confidence_ball, mean_bands
from muhat.inference.mmd_intervals import mmd_difference_interval, mmd_interval

P = mh.GaussianMixture([0.4, 0.6], [[-1.5, 0.0], [1.5, 0.5]], [1.0, 0.5])
HEAVY = mh.GaussianMixture([0.98, 0.02], [[0.0, 0.0], [0.0, 0.0]], [1.0, 400.0])
Q = mh.GaussianMixture([1.0], [[0.5, -0.5]], [1.5])
R = mh.GaussianMixture([1.0], [[0.8, -1.0]], [1.0])
POINTS = np.array([[-1.5, 0.0], [0.0, 0.5], [3.0, 2.5]])
LEVELS = (0.95, 0.8)
SIZES = (10, 30, 100, 300)
GAUSSIAN, QUADRATIC = mh.Gaussian(1.5), mh.Polynomial(2)

Held = Callable[[int, float, int, int], object]


def ball(measure: mh.GaussianMixture, kernel: mh.kernels.Kernel, method: str) -> Held:
    """Whether a ball holds the mean element of a distribution."""
    truth = mh.embed(kernel, measure)

    def held(n: int, level: float, seed: int, resamples: int) -> object:
        mean = mh.embed(kernel, measure.sample(n, random_state=seed))
        return confidence_ball(mean, level, method, n_resamples=resamples, random_state=seed).contains(truth)

    return held


def bands(measure: mh.GaussianMixture, kernel: mh.kernels.Kernel) -> Held:
    """Whether the bands hold the mean as a function, at each of three points."""
    truth = mh.embed(kernel, measure)(POINTS)

    def held(n: int, level: float, seed: int, resamples: int) -> object:
        mean = mh.embed(kernel, measure.sample(n, random_state=seed))
        found = mean_bands(mean, POINTS, level)
        return (found.low <= truth) & (truth <= found.high)

    return held


def mmd(other: mh.GaussianMixture) -> Held:
    """Whether an interval holds the squared MMD between P and another distribution."""
    truth = mh.embed(GAUSSIAN, P).distance(mh.embed(GAUSSIAN, other)) ** 2

    def held(n: int, level: float, seed: int, resamples: int) -> object:
        X, Y = P.sample(n, random_state=[seed, 0]), other.sample(n, random_state=[seed, 1])
        found = mmd_interval(X, Y, GAUSSIAN, level)
        return found.low <= truth <= found.high

    return held


def difference() -> Held:
    """Whether an interval holds the difference of two squared MMDs."""
    first, second, third = (mh.embed(GAUSSIAN, measure) for measure in (P, Q, R))
    truth = first.distance(second) ** 2 - first.distance(third) ** 2

    def held(n: int, level: float, seed: int, resamples: int) -> object:
        samples = [measure.sample(n, random_state=[seed, k]) for k, measure in enumerate((P, Q, R))]
        found = mmd_difference_interval(*samples, GAUSSIAN, level)
        return found.low <= truth <= found.high

    return held


ROWS: dict[str, Held] = {
    "ball, Gaussian kernel, Bernstein": ball(P, GAUSSIAN, "bernstein"),
    "ball, Gaussian kernel, bootstrap": ball(P, GAUSSIAN, "bootstrap"),
    "ball, quadratic kernel, bootstrap": ball(P, QUADRATIC, "bootstrap"),
    "ball, quadratic kernel, bootstrap, heavy tails": ball(HEAVY, QUADRATIC, "bootstrap"),
    "bands, Gaussian kernel": bands(P, GAUSSIAN),
    "bands, quadratic kernel, heavy tails": bands(HEAVY, QUADRATIC),
    "MMD²": mmd(Q),
    "MMD² of equal distributions": mmd(P),
    "difference of two MMD²": difference(),
}


def print_coverage(draws: int, resamples: int, seed: int) -> None:
    """Print how often each error bar holds the truth."""
    for level in LEVELS:
        error = np.sqrt(level * (1 - level) / draws)
        print(f"\nShare of {draws} draws that hold the truth, level {level:g} (standard error at most {error:.3f})")
        print(f"{'rows of each sample':<50}" + "".join(f"{n:>8}" for n in SIZES))
        for name, held in ROWS.items():
            shares = [np.mean([held(n, level, seed + k, resamples) for k in range(draws)]) for n in SIZES]
            print(f"{name:<50}" + "".join(f"{share:>8.3f}" for share in shares))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--resamples", type=int, default=199)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    print_coverage(arguments.draws, arguments.resamples, arguments.seed)


if __name__ == "__main__":
    main()
