"""Accuracies of classifiers of bags, and areas of one-class machines.

python benchmarks/guide/bags.py
python benchmarks/guide/bags.py --draws 2
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC

import muhat as mh
from muhat.bags.support_measure import OneClassSupportMeasureMachine, SupportMeasureClassifier
from paper.data import draw_bags

Bags = list[np.ndarray]

CORRELATIONS = [-0.6, 0.0, 0.6]
DIMENSIONS = 4
COSTS = [1.0, 10.0, 100.0, 1000.0]
SIZES = [5, 10, 20, 40]
TRAIN, TEST = 90, 300


def make_bags(n: int, size: int, rng: np.random.Generator) -> tuple[Bags, np.ndarray]:
    """Bags of about ``size`` rows; the first two coordinates correlate as the class says."""
    y = np.arange(n) % len(CORRELATIONS)
    bags = []
    for label in y:
        covariance = np.eye(DIMENSIONS)
        covariance[0, 1] = covariance[1, 0] = CORRELATIONS[label]
        rows = rng.integers(max(size // 2, 2), size + size // 2 + 1)
        bags.append(rng.multivariate_normal(np.zeros(DIMENSIONS), covariance, size=rows))
    return bags, y


def averages(bags: Bags) -> np.ndarray:
    """The average of each bag."""
    return np.array([bag.mean(axis=0) for bag in bags])


def second_moments(bags: Bags) -> np.ndarray:
    """Averages and covariances of each bag: all that these classes differ in."""
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


def accuracies(size: int, seed: int) -> list[float]:
    """Accuracy of each method on new bags of one draw."""
    rng = np.random.default_rng([seed, size])
    (train, y), (test, z) = make_bags(TRAIN, size, rng), make_bags(TEST, size, rng)
    return [method.fit(train, y).score(test, z) for method in METHODS.values()]


def print_accuracies(draws: int, seed: int) -> None:
    """Print the mean accuracy of each method, with its standard error, by the size of bags."""
    print(f"Accuracy on {TEST} new bags, {TRAIN} training bags, mean of {draws} draws (standard error)")
    print(f"{'rows of a bag, about':<34}" + "".join(f"{size:>11}    " for size in SIZES))
    values = np.array([[accuracies(size, seed + draw) for draw in range(draws)] for size in SIZES])
    means, errors = values.mean(axis=1), values.std(axis=1, ddof=1) / np.sqrt(draws)
    for j, name in enumerate(METHODS):
        print(f"{name:<34}" + "".join(f"{means[i, j]:7.3f} ({errors[i, j]:.3f})" for i in range(len(SIZES))))


def print_anomalies(draws: int, seed: int) -> None:
    """Print the area under the curve of one-class machines for bags whose rows are normal one by one."""
    print(f"\nGroup anomalies: one cluster of two alone, bags of 15 rows; area under the curve, {draws} draws")
    for name, level2 in {"linear": "linear", "Gaussian": mh.Gaussian()}.items():
        areas = []
        for draw in range(draws):
            rng = np.random.default_rng([seed + draw, 1])
            clusters = [rng.normal(side, 1.0, size=(500, 2)) for side in (-1.5, 1.5)]
            normal = np.concatenate(clusters)
            train, _ = draw_bags(normal, clusters[0], rng, n_normal=60, n_anomalous=0, size=15)
            test, labels = draw_bags(normal, clusters[0], rng, n_normal=50, n_anomalous=50, size=15, share=0.6)
            scores = OneClassSupportMeasureMachine(level2=level2).fit(train).score_samples(test)
            areas.append(roc_auc_score(labels, scores))
        print(f"OCSMM, {name:<27}{np.mean(areas):8.3f} ({np.std(areas, ddof=1) / np.sqrt(draws):.3f})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=10, help="at least 2")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    print_accuracies(arguments.draws, arguments.seed)
    print_anomalies(arguments.draws, arguments.seed)


if __name__ == "__main__":
    main()
