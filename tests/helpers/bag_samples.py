"""Bags for tests, the table of estimators of bags, and a kernel that counts."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

import muhat as mh

SIZES = (1, 4, 9, 2, 30, 1, 3, 17)


def random_bags(sizes=SIZES, d=3, seed=0):
    """Bags of given sizes with means of their own."""
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(n, d)) + rng.normal(scale=0.5, size=d) for n in sizes]


def labelled_bags(n=24, n_classes=2, seed=0, d=2, low=1):
    """Bags around 0 which differ in scale, of many sizes; the labels are 0, 1, ..."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    return [rng.normal(scale=4.0**label, size=(rng.integers(low, 20), d)) for label in y], y


def moments_in_rows(bags, ridge, share=None):
    """Means, centre, W_ρ and B in the space of the rows, where the kernel is linear; ``share`` of W is in each mean."""
    sizes = np.array([len(bag) for bag in bags])
    share = 1 / sizes if share is None else share
    means = np.array([bag.mean(axis=0) for bag in bags])
    deviations = np.concatenate([bag - bag.mean(axis=0) for bag in bags])
    W = deviations.T @ deviations / (sizes - 1).sum()
    w = 1 / (max(np.trace(np.cov(means.T)) / np.trace(W) - share.mean(), 0) + share)
    w /= w.sum()
    centre = w @ means
    spread = sum(wi * np.outer(mean - centre, mean - centre) for wi, mean in zip(w, means, strict=True))
    g, V = np.linalg.eigh((spread - (w * (1 - w) * share).sum() * W) / (1 - w @ w))
    return means, centre, W + ridge * np.trace(W) / len(W) * np.eye(len(W)), (V * np.maximum(g, 0)) @ V.T


@dataclass(frozen=True)
class Counting(mh.Gaussian):
    """A Gaussian kernel that counts its values, and the largest matrix that it was asked for."""

    values: ClassVar[int] = 0
    largest: ClassVar[int] = 0

    def evaluate(self, X, Y):
        Counting.values += len(X) * len(Y)
        Counting.largest = max(Counting.largest, len(X) * len(Y))
        return super().evaluate(X, Y)


@mh.kernels.evaluate_fast.register(Counting)
def count_all_values(kernel, X, Y):
    return kernel.evaluate(X, Y)


MACHINES = {
    "classifier": mh.SupportMeasureClassifier(),
    "linear_classifier": mh.SupportMeasureClassifier(level2="linear", C=100.0),
    "shrunk_classifier": mh.SupportMeasureClassifier(mean=mh.ShrunkKernelMean()),
    "whitened_classifier": mh.SupportMeasureClassifier(whiten=True),
    "one_class": mh.OneClassSupportMeasureMachine(nu=0.3),
}
WHITENED = mh.DistributionKernel(
    level2=mh.Gaussian(), whiten=True, ridge=0.1, features=mh.Nystroem(n_components=10, random_state=0)
)
NEED_NOISE = {  # they compare bags with the noise of their rows, and refuse bags of one row each
    "prior": mh.BagPrior(random_state=0),
    "ridge": mh.DistributionRidge(),
    "ridge_classifier": mh.DistributionRidgeClassifier(),
    "anomaly": mh.GroupAnomalyDetector(alpha=0.2),
}
BAG_ESTIMATORS = {**MACHINES, "kernel": mh.DistributionKernel(level2=mh.Gaussian()), "whitened": WHITENED, **NEED_NOISE}
