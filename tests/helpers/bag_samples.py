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
