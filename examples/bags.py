"""Bags of rows as samples
=======================

Three classes with the same mean and the same variances, which differ in correlation alone. The average of a bag says
nothing of its class, its mean element does. The table compares support measure machines with classifiers on summaries
of the bags, for bags of several sizes; the second one finds group anomalies.

In a shell::

    python examples/bags.py --out report
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.decomposition import KernelPCA
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC

import muhat as mh
from muhat.bags import DistributionKernel
from muhat.datasets import draw_bags
from muhat.support_measure import OneClassSupportMeasureMachine, SupportMeasureClassifier

Bags = list[np.ndarray]

CORRELATIONS = {"correlation −0.6": -0.6, "correlation 0": 0.0, "correlation 0.6": 0.6}
COLOURS = ["#0072b2", "#999999", "#d55e00"]
DIMENSIONS = 4
COSTS = [1.0, 10.0, 100.0, 1000.0]


def make_bags(n: int, size: int, rng: np.random.Generator) -> tuple[Bags, np.ndarray]:
    """Bags of about ``size`` rows; the first two coordinates correlate as the class says."""
    y = np.arange(n) % len(CORRELATIONS)
    bags = []
    for label in y:
        covariance = np.eye(DIMENSIONS)
        covariance[0, 1] = covariance[1, 0] = list(CORRELATIONS.values())[label]
        rows = rng.integers(max(size // 2, 2), size + size // 2 + 1)
        bags.append(rng.multivariate_normal(np.zeros(DIMENSIONS), covariance, size=rows))
    return bags, y


def averages(bags: Bags) -> np.ndarray:
    """The average of each bag."""
    return np.array([bag.mean(axis=0) for bag in bags])


def second_moments(bags: Bags) -> np.ndarray:
    """Averages and covariances of each bag: all that these classes differ in, for who knows it."""
    upper = np.triu_indices(DIMENSIONS)
    return np.array([np.append(bag.mean(axis=0), np.cov(bag.T)[upper]) for bag in bags])


def on_summaries(summary: Callable[[Bags], np.ndarray]) -> GridSearchCV:
    """A support vector machine on a vector for each bag, linear or Gaussian."""
    pipeline = make_pipeline(FunctionTransformer(summary), StandardScaler(), SVC())
    return GridSearchCV(pipeline, {"svc__C": [0.01, 0.1, 1.0, 10.0], "svc__kernel": ["linear", "rbf"]})


def machine(level2: mh.Gaussian | str, mean: object = None) -> GridSearchCV:
    """A support measure machine; the search over C computes each Gram matrix once."""
    return GridSearchCV(SupportMeasureClassifier(level2=level2, mean=mean), {"C": COSTS})


METHODS = {
    "SVM on averages": on_summaries(averages),
    "SVM on averages and covariances": on_summaries(second_moments),
    "SMM, linear": machine("linear"),
    "SMM, Gaussian": machine(mh.Gaussian()),
    "SMM, Gaussian, shrunk means": machine(mh.Gaussian(), mh.ShrunkKernelMean()),
}


def accuracies(size: int, seed: int, n_train: int, n_test: int) -> list[float]:
    """Accuracy of each method on new bags of one draw."""
    rng = np.random.default_rng([seed, size])
    (train, y), (test, z) = make_bags(n_train, size, rng), make_bags(n_test, size, rng)
    return [method.fit(train, y).score(test, z) for method in METHODS.values()]


def print_accuracies(sizes: list[int], draws: int, n_train: int, n_test: int, seed: int) -> None:
    """Print the mean accuracy of each method, with its standard error, by the size of bags."""
    print(f"Accuracy on {n_test} new bags, {n_train} training bags, mean of {draws} draws (standard error)")
    print(f"{'rows of a bag, about':<34}" + "".join(f"{size:>11}    " for size in sizes))
    values = np.array([[accuracies(size, seed + draw, n_train, n_test) for draw in range(draws)] for size in sizes])
    means, errors = values.mean(axis=1), values.std(axis=1, ddof=1) / np.sqrt(draws)
    for j, name in enumerate(METHODS):
        print(f"{name:<34}" + "".join(f"{means[i, j]:7.3f} ({errors[i, j]:.3f})" for i in range(len(sizes))))


def print_anomalies(draws: int, seed: int) -> None:
    """Print the area under the curve of one-class machines for bags whose rows are normal one by one."""
    print(f"\nGroup anomalies: one cluster of two alone, bags of 15 rows; area under the curve, {draws} draws")
    for name, level2 in {"linear": "linear", "Gaussian": mh.Gaussian()}.items():
        areas = []
        for draw in range(draws):
            rng = np.random.default_rng([seed + draw, 1])
            clusters = [rng.normal(side, 1.0, size=(500, 2)) for side in (-1.5, 1.5)]
            normal = np.concatenate(clusters)
            train, _ = draw_bags(normal, clusters[0], n_normal=60, n_anomalous=0, size=15, random_state=rng)
            test, labels = draw_bags(
                normal, clusters[0], n_normal=50, n_anomalous=50, size=15, share=0.6, random_state=rng
            )
            scores = OneClassSupportMeasureMachine(level2=level2).fit(train).score_samples(test)
            areas.append(roc_auc_score(labels, scores))
        print(f"OCSMM, {name:<27}{np.mean(areas):8.3f} ({np.std(areas, ddof=1) / np.sqrt(draws):.3f})")


def draw(size: int, n: int, seed: int, path: Path) -> None:
    """Save a picture of the Gram matrix of bags, sorted by class, and of a map of the bags."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    bags, y = make_bags(n, size, np.random.default_rng(seed))
    order = np.argsort(y, kind="stable")
    bags, y = [bags[i] for i in order], y[order]
    K = DistributionKernel(level2=mh.Gaussian()).fit_transform(bags)
    positions = KernelPCA(2, kernel="precomputed").fit_transform(K)

    figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 4.2), layout="constrained")
    off_diagonal = K[~np.eye(len(K), dtype=bool)]
    image = left.imshow(K, cmap="viridis", vmin=off_diagonal.min(), vmax=np.quantile(off_diagonal, 0.99))
    bounds = np.flatnonzero(np.diff(y)) + 0.5
    for bound in bounds:
        left.axhline(bound, color="white", linewidth=1)
        left.axvline(bound, color="white", linewidth=1)
    centres = [np.flatnonzero(y == label).mean() for label in range(len(CORRELATIONS))]
    left.set_yticks(centres, CORRELATIONS, rotation=90, va="center", fontsize=8)
    left.set_xticks(centres, CORRELATIONS, fontsize=8)
    left.tick_params(length=0)
    left.set_title(f"Gram matrix of {n} bags of about {size} rows", fontsize=10)
    figure.colorbar(image, ax=left, shrink=0.8, extend="max")

    for label, (name, colour) in enumerate(zip(CORRELATIONS, COLOURS, strict=True)):
        right.scatter(*positions[y == label].T, color=colour, label=name, s=24, alpha=0.85, linewidths=0)
    right.legend(fontsize=8, frameon=False)
    right.set(xlabel="first component", ylabel="second component")
    right.set_title("a map of the bags: kernel PCA of that matrix", fontsize=10)
    right.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=140)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("."), help="folder of the picture")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="two draws of few bags only")
    arguments = parser.parse_args()
    draws, n_train, n_test, sizes = (2, 45, 60, [10, 20]) if arguments.quick else (10, 90, 300, [5, 10, 20, 40])
    print_accuracies(sizes, draws, n_train, n_test, arguments.seed)
    print_anomalies(draws, arguments.seed)
    arguments.out.mkdir(parents=True, exist_ok=True)
    path = arguments.out / "bags.png"
    draw(100, 90, arguments.seed, path)
    print(f"\nPicture: {path}")


if __name__ == "__main__":
    main()
