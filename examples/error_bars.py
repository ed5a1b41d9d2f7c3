"""Error bars, and how often they hold
===================================

How far an estimated kernel mean is from the true one. The tables count how often balls, bands and intervals hold the
truth, which is exact for mixtures of Gaussians: at two levels, for small and larger samples, for a bounded kernel and
for one without bounds under heavy tails. The picture shows bands around one mean, and the radius of the ball by the
number of rows.

In a shell::

    python examples/error_bars.py --out report
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np

import muhat as mh
from muhat.errors import confidence_ball, mean_bands, mean_error
from muhat.mean_plotting import BandsDisplay
from muhat.mmd_intervals import mmd_difference_interval, mmd_interval

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


def bands(measure: mh.GaussianMixture, kernel: mh.kernels.Kernel, method: str) -> Held:
    """Whether the bands hold the mean as a function, at each of three points."""
    truth = mh.embed(kernel, measure)(POINTS)

    def held(n: int, level: float, seed: int, resamples: int) -> object:
        mean = mh.embed(kernel, measure.sample(n, random_state=seed))
        found = mean_bands(mean, POINTS, level, method, resamples, seed)
        return (found.low <= truth) & (truth <= found.high)

    return held


def mmd(other: mh.GaussianMixture, method: str) -> Held:
    """Whether an interval holds the squared MMD between P and another distribution."""
    truth = mh.embed(GAUSSIAN, P).distance(mh.embed(GAUSSIAN, other)) ** 2

    def held(n: int, level: float, seed: int, resamples: int) -> object:
        X, Y = P.sample(n, random_state=[seed, 0]), other.sample(n, random_state=[seed, 1])
        found = mmd_interval(X, Y, GAUSSIAN, level, method, resamples, seed)
        return found.low <= truth <= found.high

    return held


def difference(method: str) -> Held:
    """Whether an interval holds the difference of two squared MMDs."""
    first, second, third = (mh.embed(GAUSSIAN, measure) for measure in (P, Q, R))
    truth = first.distance(second) ** 2 - first.distance(third) ** 2

    def held(n: int, level: float, seed: int, resamples: int) -> object:
        samples = [measure.sample(n, random_state=[seed, k]) for k, measure in enumerate((P, Q, R))]
        found = mmd_difference_interval(*samples, GAUSSIAN, level, method, resamples, seed)
        return found.low <= truth <= found.high

    return held


ROWS: dict[str, Held] = {
    "ball, Gaussian kernel, Bernstein": ball(P, GAUSSIAN, "bernstein"),
    "ball, Gaussian kernel, bootstrap": ball(P, GAUSSIAN, "bootstrap"),
    "ball, quadratic kernel, bootstrap": ball(P, QUADRATIC, "bootstrap"),
    "ball, quadratic kernel, bootstrap, heavy tails": ball(HEAVY, QUADRATIC, "bootstrap"),
    "bands, Gaussian kernel, jackknife": bands(P, GAUSSIAN, "jackknife"),
    "bands, Gaussian kernel, bootstrap": bands(P, GAUSSIAN, "bootstrap"),
    "bands, quadratic kernel, jackknife, heavy tails": bands(HEAVY, QUADRATIC, "jackknife"),
    "MMD², jackknife": mmd(Q, "jackknife"),
    "MMD², bootstrap": mmd(Q, "bootstrap"),
    "MMD² of equal distributions, jackknife": mmd(P, "jackknife"),
    "MMD² of equal distributions, bootstrap": mmd(P, "bootstrap"),
    "difference of two MMD², jackknife": difference("jackknife"),
    "difference of two MMD², bootstrap": difference("bootstrap"),
}


def print_coverage(sizes: tuple[int, ...], draws: int, resamples: int, seed: int) -> None:
    """Print how often each error bar holds the truth."""
    for level in LEVELS:
        error = np.sqrt(level * (1 - level) / draws)
        print(f"\nShare of {draws} draws that hold the truth, level {level:g} (standard error at most {error:.3f})")
        print(f"{'rows of each sample':<50}" + "".join(f"{n:>8}" for n in sizes))
        for name, held in ROWS.items():
            shares = [np.mean([held(n, level, seed + k, resamples) for k in range(draws)]) for n in sizes]
            print(f"{name:<50}" + "".join(f"{share:>8.3f}" for share in shares))


def radii(sizes: tuple[int, ...], resamples: int, seed: int) -> dict[str, list[float]]:
    """Radius of the 95 % ball and its companions, by the number of rows."""
    samples = [mh.embed(GAUSSIAN, P.sample(n, random_state=seed)) for n in sizes]
    truth = mh.embed(GAUSSIAN, P)
    resampled = [confidence_ball(f, method="bootstrap", n_resamples=resamples, random_state=seed) for f in samples]
    return {
        "Bernstein, 95 %": [confidence_ball(f).radius for f in samples],
        "bootstrap, 95 %": [found.radius for found in resampled],
        "root mean squared error": [mean_error(f) for f in samples],
        "true distance": [f.distance(truth) for f in samples],
    }


def print_radii(sizes: tuple[int, ...], resamples: int, seed: int) -> None:
    """Print how large the balls are."""
    print("\nRadius of a ball, Gaussian kernel, one sample")
    print(f"{'rows':<50}" + "".join(f"{n:>8}" for n in sizes))
    for name, values in radii(sizes, resamples, seed).items():
        print(f"{name:<50}" + "".join(f"{value:>8.4f}" for value in values))


def draw(seed: int, path: Path) -> None:
    """Save a picture of bands around a mean in one dimension, and of radii."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    measure = mh.GaussianMixture([0.4, 0.6], [[-2.0], [1.5]], [0.6, 1.0])
    kernel = mh.Gaussian(0.8)
    X = measure.sample(60, random_state=seed)
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    label = "plain average, 60 rows"
    grid = BandsDisplay.from_estimator(mh.embed(kernel, X), X, ax=left, color="#0072b2", label=label).bands.points
    left.plot(grid, mh.embed(kernel, measure)(grid), color="0.2", linestyle="--", label="truth")
    left.set(title="a mean as a function, with its bands")
    sizes = (10, 20, 50, 100, 200, 500, 1000)
    for name, values in radii(sizes, 199, seed).items():
        right.loglog(sizes, values, "o:" if name == "true distance" else "-", label=name)
    right.set(xlabel="rows", ylabel="distance in the space", title="how far is the estimate from the truth?")
    for ax in (left, right):
        ax.spines[["top", "right"]].set_visible(False)
        ax.title.set_fontsize(10)
        ax.legend(fontsize=8, frameon=False)
    figure.savefig(path, dpi=140)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("."), help="folder of the picture")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="few draws of small samples only")
    arguments = parser.parse_args()
    sizes, draws, resamples = ((10, 30), 20, 99) if arguments.quick else (SIZES, 200, 199)
    print_coverage(sizes, draws, resamples, arguments.seed)
    print_radii(sizes, resamples, arguments.seed)
    arguments.out.mkdir(parents=True, exist_ok=True)
    path = arguments.out / "error_bars.png"
    draw(arguments.seed, path)
    print(f"\nPicture: {path}")


if __name__ == "__main__":
    main()
