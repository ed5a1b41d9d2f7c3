"""A ``fit`` that is refused or interrupted leaves every estimator as it was, the names of its columns included."""

from collections import deque
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
import pytest
from bag_samples import BAG_ESTIMATORS
from tables import sample

import muhat as mh
from muhat.kernels.base import Kernel

NAMES = ["a", "b"]


def frame(n=24, seed=0, columns=NAMES):
    return pd.DataFrame(sample(n, len(columns), seed), columns=columns)


def bags(seed=0, columns=NAMES, n_bags=24):
    return [frame(5 + i % 4, seed + i, columns) for i in range(n_bags)]


def gram(seed=0):
    X = sample(12, 2, seed)
    return mh.Gaussian(1.0)(X)


@dataclass(frozen=True)
class Interrupted(Kernel):
    """A kernel during whose evaluation somebody presses Ctrl-C."""

    def evaluate(self, X, Y):
        raise KeyboardInterrupt

    def diagonal(self, X):
        raise KeyboardInterrupt


ROWS = {
    "KernelMean": mh.KernelMean(),
    "ShrunkKernelMean": mh.ShrunkKernelMean(),
    "SpectralKernelMean": mh.SpectralKernelMean(),
    "AdaptiveKernelMean": mh.AdaptiveKernelMean(),
    "RobustKernelMean": mh.RobustKernelMean(),
    "MedianOfMeans": mh.MedianOfMeans(random_state=0),
    "ConstrainedKernelMean": mh.ConstrainedKernelMean(),
    "BlendedSample": mh.BlendedSample(),
    "KernelPCA": mh.KernelPCA(2),
    "KernelCovariance": mh.KernelCovariance(),
    "MatchedGaussianMixture": mh.MatchedGaussianMixture(2, n_init=1, random_state=0),
    "Nystroem": mh.Nystroem(n_components=4, random_state=0),
    "Fourier": mh.Fourier(n_components=4, random_state=0),
    "DriftMonitor": mh.DriftMonitor(2, n_simulations=100, block_length=1, random_state=0),
}
BAGS = {"BagScaler": mh.BagScaler(), **{type(e).__name__: e for e in reversed(BAG_ESTIMATORS.values())}}
UNSUPERVISED = ("BagScaler", "BagPrior", "DistributionKernel", "GroupAnomalyDetector", "OneClassSupportMeasureMachine")
Y = np.arange(24) % 2
OTHER = ["b", "c", "a"]
BAD_ROWS = frame(columns=OTHER).astype(object)
BAD_ROWS.iloc[-1, 2] = "n.d."
EMPTY = frame(columns=OTHER)
EMPTY.iloc[-1, 1] = np.nan
INFINITE = frame(columns=OTHER)
INFINITE.iloc[-1, 1] = np.inf


def changed(before, after):
    """Names of attributes that appeared, vanished or were replaced."""
    names, absent = before.keys() | after.keys(), object()
    pairs = {name: (before.get(name, absent), after.get(name, absent)) for name in names}
    return {name for name, (one, other) in pairs.items() if not same(one, other)}


def same(one, other):
    return one is other or (isinstance(one, deque) and one == other)  # a monitor pickles a copy of its scores


def assert_unchanged(estimator, error, call):
    before = dict(estimator.__getstate__())
    with pytest.raises(error):
        call()
    assert not changed(before, estimator.__getstate__())


def data_of(name, columns=NAMES):
    return (frame(columns=columns), None) if name in ROWS else (bags(columns=columns), Y)


def refused_data(name):
    """Rows or bags with text, missing values or nothing in them, and too few labels."""
    if name == "DriftMonitor":  # it takes tables with text and missing values
        return [(INFINITE, None), (frame(0), None), (frame(0, columns=OTHER), None)]
    if name in ROWS:
        return [(BAD_ROWS, None), (EMPTY, None), (frame(0, columns=OTHER), None)]
    others = bags(columns=OTHER)
    bad = [([*others[:-1], last], Y) for last in (BAD_ROWS, EMPTY)]
    return bad if name in UNSUPERVISED else [*bad, (others, Y[:-1])]


@pytest.mark.parametrize("fitted", [True, False], ids=["refit", "first fit"])
@pytest.mark.parametrize("name", [*ROWS, *BAGS])
def test_refused_fits(name, fitted):
    estimator = {**ROWS, **BAGS}[name]
    estimator = type(estimator)(**estimator.get_params(deep=False))
    if fitted:
        estimator.fit(*data_of(name))
    for data in refused_data(name):
        assert_unchanged(estimator, ValueError, partial(estimator.fit, *data))
    if "kernel" in estimator.get_params(deep=False):
        for kernel, error in ((Interrupted(), (KeyboardInterrupt, ValueError)), ("no kernel", ValueError)):
            estimator.set_params(kernel=kernel)
            assert_unchanged(estimator, error, partial(estimator.fit, *data_of(name, OTHER)))


@pytest.mark.parametrize("fitted", [True, False], ids=["refit", "first fit"])
def test_refused_gram_matrices(fitted):
    centerer = mh.ShrunkKernelCenterer()
    if fitted:
        centerer.fit(gram())
    assert_unchanged(centerer, ValueError, lambda: centerer.fit(gram(1)[:9]))
    centerer.set_params(mean="no mean")
    assert_unchanged(centerer, ValueError, lambda: centerer.fit(gram(1)[:9, :9]))


def test_columns_are_matched_after_a_refused_refit():
    """Columns in another order mean what their names say, and not what the refused table would have made of them."""
    monitor = mh.DriftMonitor(50, n_simulations=100, block_length=1, random_state=0).fit(frame(90))
    with pytest.raises(ValueError, match="infinit"):
        monitor.fit(INFINITE[["c", "b"]])
    rows = frame(9, seed=5)
    one, other = mh.KernelPCA(2).fit(frame()), mh.KernelPCA(2).fit(frame())
    with pytest.raises(ValueError, match="not numbers"):
        other.fit(BAD_ROWS[["b", "a"]])
    np.testing.assert_array_equal(one.transform(rows), other.transform(rows))
    monitor.update(rows)
    scores = monitor.recent_scores()
    monitor.reset()
    monitor.update(rows[["b", "a"]])
    np.testing.assert_array_equal(scores[0], monitor.recent_scores()[0])
