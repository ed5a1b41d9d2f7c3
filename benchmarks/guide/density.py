"""Likelihoods of matched mixtures and of EM, with outliers and on clean tables: the tables of docs/pca.md.

python benchmarks/guide/density.py
python benchmarks/guide/density.py --repetitions 1
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

import muhat as mh
from muhat.density.matched_mixture import MatchedGaussianMixture

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


def paper_table(repetitions: int) -> None:
    """Print what matching does to the likelihood of held-out rows, all estimators from one start of k-means."""
    print(f"\nTables: test negative log-likelihood (better than KME in how many of {repetitions} splits)\n")
    print(f"{'':<14}" + "".join(f"{name:>13}" for name in ("start", *MEANS, "EM")))
    for name, load in TABLES.items():
        X = StandardScaler().fit_transform(load().data)
        splits = [likelihoods(X, seed) for seed in range(repetitions)]
        for solver in splits[0]:
            values = np.array([rows[solver] for rows in splits])
            wins = (values < values[:, 1:2]).sum(axis=0)
            cells = [f"{value:.2f} ({count})" for value, count in zip(values.mean(axis=0), wins, strict=True)]
            print(f"{name + ', ' + solver:<14}" + "".join(f"{cell:>13}" for cell in cells))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=10, help="samples, and splits of a table")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)  # k-means puts components on single rows of these tables
    outlier_table(arguments.repetitions)
    paper_table(arguments.repetitions)


if __name__ == "__main__":
    main()
