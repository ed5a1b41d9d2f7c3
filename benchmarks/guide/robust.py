"""Losses of robust kernel means by the share of bad rows: the table of docs/error_bars.md.

python benchmarks/guide/robust.py
python benchmarks/guide/robust.py --draws 10
"""

from __future__ import annotations

import argparse

import numpy as np

import muhat as mh
from muhat.means.base import BaseKernelMean
from muhat.means.robust import MedianOfMeans, RobustKernelMean

SHARES = (0.0, 0.1, 0.2)
FAR = 30.0


def methods(kernel: mh.Gaussian) -> dict[str, BaseKernelMean]:
    """The estimators in the space of a kernel."""
    return {
        "plain average": mh.KernelMean(kernel),
        "simple shrinkage": mh.ShrunkKernelMean(kernel),
        "Huber": RobustKernelMean(kernel),
        "Hampel": RobustKernelMean(kernel, loss="hampel"),
        "Huber, contamination=0.25": RobustKernelMean(kernel, contamination=0.25),
        "Hampel, shrunk": RobustKernelMean(kernel, loss="hampel", shrinkage="loo"),
        "median of means": MedianOfMeans(kernel, random_state=0),
        "median of means, 10 blocks": MedianOfMeans(kernel, n_blocks=10, random_state=0),
    }


def without_setting_aside(kernel: mh.Gaussian, X: np.ndarray) -> dict[str, BaseKernelMean]:
    """The losses alone, their knots at quantiles of the distances to the geometric median; Kim and Scott's last."""
    median = MedianOfMeans(kernel, n_blocks=len(X)).fit(X).mean_
    q = np.quantile(np.sqrt(kernel.diag(X) - 2 * median(X) + median.norm() ** 2), [0.5, 0.75, 0.85])
    return {
        "Huber alone, a = 0.8 q": RobustKernelMean(kernel, threshold=0.8 * q[1]),
        "Hampel alone, knots at quantiles": RobustKernelMean(kernel, "hampel", tuple(q)),
    }


def mixture(d: int) -> mh.GaussianMixture:
    """Two clusters, of 40 and 60 percent."""
    return mh.GaussianMixture([0.4, 0.6], [[-1.5] * d, [1.5] * d], [1.0, 1.0])


def spoiled_sample(P: mh.GaussianMixture, n: int, share: float, rng: np.random.Generator) -> np.ndarray:
    """Rows of P, of which the first ones are replaced by a cluster far away."""
    X = P.sample(n, random_state=rng)
    bad = round(share * n)
    X[:bad] = FAR + rng.normal(size=(bad, X.shape[1]))
    return X


def losses(d: int, n: int, share: float, seed: int) -> dict[str, float]:
    """Squared distance of each estimate, and of the average of the good rows, from the truth."""
    P = mixture(d)
    X = spoiled_sample(P, n, share, np.random.default_rng([seed, d]))
    kernel = mh.Gaussian().resolve(X)
    fitted = {name: mean.fit(X) for name, mean in (methods(kernel) | without_setting_aside(kernel, X)).items()}
    found = {name: mean.mean_ for name, mean in fitted.items()}
    found["the good rows' average"] = mh.embed(kernel, X[round(share * n) :])
    truth = mh.embed(kernel, P)
    return {name: mean.distance(truth) ** 2 for name, mean in found.items()}


def print_losses(d: int, n: int, draws: int, seed: int) -> None:
    """Print the mean loss of each estimator, relative to the plain average's, by the share of bad rows."""
    print(f"\n{n} rows in {d} dimension(s), {draws} draws: loss relative to the plain average (standard error)")
    print(f"{'bad rows':<34}" + "".join(f"{share:>10.0%}     " for share in SHARES))
    found = [[losses(d, n, share, seed + draw) for draw in range(draws)] for share in SHARES]
    values = np.array([[list(each.values()) for each in row] for row in found])
    plain = values[:, :, 0].mean(axis=1)
    print(f"{'loss of the plain average':<34}" + "".join(f"{loss:>10.5f}     " for loss in plain))
    for j, name in enumerate(found[0][0]):
        ratios = values[:, :, j].mean(axis=1) / plain
        spread = (values[:, :, j] - ratios[:, None] * values[:, :, 0]).std(axis=1, ddof=1) / np.sqrt(draws) / plain
        cells = "".join(f"{ratio:>7.3f} ({error:.3f})" for ratio, error in zip(ratios, spread, strict=True))
        print(f"{name:<34}{cells}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    for d, n in [(1, 100), (2, 100), (10, 100), (10, 300)]:
        print_losses(d, n, arguments.draws, arguments.seed)


if __name__ == "__main__":
    main()
