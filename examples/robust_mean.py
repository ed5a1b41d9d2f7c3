"""Robust kernel means
===================

A tenth of the rows is far away, and the estimate should not follow. The tables compare losses ‖μ̂ − μ‖², exact for a
mixture of Gaussians, with and without bad rows. The bandwidth is the median of each sample, bad rows included. The
picture shows what the estimates make of one sample.

In a shell::

    python examples/robust_mean.py --out report
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import muhat as mh
from muhat.mean import BaseKernelMean
from muhat.robust import MedianOfMeans, RobustKernelMean

SHARES = (0.0, 0.05, 0.1, 0.2)
FAR = 30.0


def methods(kernel: mh.Gaussian) -> dict[str, BaseKernelMean]:
    """The estimators in the space of a kernel."""
    return {
        "plain average": mh.KernelMean(kernel),
        "simple shrinkage": mh.ShrunkKernelMean(kernel),
        "Huber": RobustKernelMean(kernel),
        "Hampel": RobustKernelMean(kernel, loss="hampel"),
        "Hampel, shrunk": RobustKernelMean(kernel, loss="hampel", shrinkage="loo"),
        "median of means": MedianOfMeans(kernel, random_state=0),
        "median of means, 10 blocks": MedianOfMeans(kernel, n_blocks=10, random_state=0),
    }


def kim_scott(kernel: mh.Gaussian, X: np.ndarray) -> RobustKernelMean:
    """Hampel's loss with knots at quantiles of the distances to the geometric median, as Kim and Scott have them."""
    median = MedianOfMeans(kernel, n_blocks=len(X)).fit(X).mean_
    distances = np.sqrt(kernel.diag(X) - 2 * median(X) + median.norm() ** 2)
    return RobustKernelMean(kernel, "hampel", tuple(np.quantile(distances, [0.5, 0.75, 0.85])))


def mixture(d: int) -> mh.GaussianMixture:
    """Two clusters, of 40 and 60 percent."""
    return mh.GaussianMixture([0.4, 0.6], [[-1.5] * d, [1.5] * d], [1.0, 1.0])


def spoiled_sample(P: mh.GaussianMixture, n: int, share: float, rng: np.random.Generator) -> np.ndarray:
    """Rows of P, of which the first ones are replaced by a cluster far away."""
    X = P.sample(n, random_state=rng)
    bad = round(share * n)
    X[:bad] = FAR + rng.normal(size=(bad, X.shape[1]))
    return X


def losses(d: int, n: int, share: float, seed: int) -> list[float]:
    """Squared distance of each estimate from the mean of the good rows' distribution."""
    P = mixture(d)
    X = spoiled_sample(P, n, share, np.random.default_rng([seed, d]))
    kernel = mh.Gaussian().resolve(X)
    truth = mh.embed(kernel, P)
    means = [*methods(kernel).values(), kim_scott(kernel, X)]
    return [mean.fit(X).mean_.distance(truth) ** 2 for mean in means]


def print_losses(d: int, n: int, draws: int, seed: int) -> None:
    """Print the mean loss of each estimator, relative to the plain average's, by the share of bad rows."""
    print(f"\n{n} rows in {d} dimension(s), {draws} draws: loss relative to the plain average (standard error)")
    print(f"{'bad rows':<30}" + "".join(f"{share:>10.0%}     " for share in SHARES))
    values = np.array([[losses(d, n, share, seed + draw) for draw in range(draws)] for share in SHARES])
    plain = values[:, :, 0].mean(axis=1)
    print(f"{'loss of the plain average':<30}" + "".join(f"{loss:>10.5f}     " for loss in plain))
    for j, name in enumerate([*methods(mh.Gaussian(1.0)), "Hampel, knots at quantiles"]):
        ratios = values[:, :, j].mean(axis=1) / plain
        spread = (values[:, :, j] - ratios[:, None] * values[:, :, 0]).std(axis=1, ddof=1) / np.sqrt(draws) / plain
        cells = "".join(f"{ratio:>7.3f} ({error:.3f})" for ratio, error in zip(ratios, spread, strict=True))
        print(f"{name:<30}{cells}")


def draw(n: int, seed: int, path: Path) -> None:
    """Save a picture: the estimates as functions, and the weight of each row by its distance."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    P = mixture(1)
    X = spoiled_sample(P, n, 0.1, np.random.default_rng(seed))
    X[: n // 10] += 15.0 - FAR  # near enough to be drawn
    kernel = mh.Gaussian(3.0)
    grid = np.linspace(-10, 24, 400)[:, None]
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    left.plot(grid, mh.embed(kernel, P)(grid), color="0.3", linewidth=4, alpha=0.4, label="truth")
    shown = {"plain average": "#d55e00", "Huber": "#0072b2", "Hampel": "#009e73", "median of means": "#cc79a7"}
    for name, colour in shown.items():
        mean = methods(kernel)[name].fit(X)
        left.plot(grid, mean.mean_(grid), color=colour, label=name)
        distances = [mh.embed(kernel, row[None]).distance(mean.mean_) for row in X]
        right.plot(distances, n * mean.weights_, "o", color=colour, markersize=4, alpha=0.6, label=name)
    left.plot(X[:, 0], np.full(n, -0.02), "|", color="0.3", markersize=8)
    left.set(xlabel="x", title=f"the mean as a function; {n} rows, a tenth of them around 15")
    right.set(xlabel="distance of the row from the estimate", ylabel="weight, times n", title="what a row counts")
    for ax in (left, right):
        ax.spines[["top", "right"]].set_visible(False)
        ax.title.set_fontsize(10)
    left.legend(fontsize=8, frameon=False)
    figure.savefig(path, dpi=140)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("."), help="folder of the picture")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="few draws in two dimensions only")
    arguments = parser.parse_args()
    for d, n in [(2, 100)] if arguments.quick else [(1, 100), (2, 100), (10, 100), (10, 300)]:
        print_losses(d, n, 10 if arguments.quick else 100, arguments.seed)
    arguments.out.mkdir(parents=True, exist_ok=True)
    path = arguments.out / "robust_mean.png"
    draw(100, arguments.seed, path)
    print(f"\nPicture: {path}")


if __name__ == "__main__":
    main()
