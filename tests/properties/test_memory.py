"""A call says what memory it needs before it takes any: no less than it then takes, and not many times as much."""

import re
import tracemalloc

import numpy as np
import pytest

import muhat as mh
from muhat.kernels import tiles
from muhat.linalg import resources

UNITS = {"bytes": 1.0, "kB": 1e3, "MB": 1e6}
rng = np.random.default_rng(0)
N = 640
X = rng.normal(size=(N, 2))
BAGS = [rng.normal(size=(2, 1)) for _ in range(N)]
GAUSSIAN = mh.Gaussian(1.0)
PRIOR = mh.BagPrior(GAUSSIAN, random_state=0).fit(BAGS[:50])
SPLITS = {"kernel": GAUSSIAN, "random_state": 0}

CALLS = {
    "KernelPCA": (2, lambda: mh.KernelPCA(2, GAUSSIAN, mean=mh.ShrunkKernelMean()).fit(X)),
    "KernelPCA, covariance": (5, lambda: mh.KernelPCA(2, GAUSSIAN, covariance=mh.ShrunkKernelMean()).fit(X)),
    "KernelCovariance": (4, lambda: mh.KernelCovariance(GAUSSIAN).fit(X)),
    "SpectralKernelMean": (4, lambda: mh.SpectralKernelMean(GAUSSIAN, solver="dense").fit(X)),
    "AdaptiveKernelMean": (4, lambda: mh.AdaptiveKernelMean(GAUSSIAN, solver="dense").fit(X)),
    "RobustKernelMean": (7, lambda: mh.RobustKernelMean(GAUSSIAN).fit(X)),
    "ConstrainedKernelMean": (8, lambda: mh.ConstrainedKernelMean(GAUSSIAN).fit(X)),
    "BlendedSample": (5, lambda: mh.BlendedSample(GAUSSIAN, n_resamples=3, random_state=0).fit(X)),
    "DistributionKernel": (4, lambda: mh.DistributionKernel(GAUSSIAN).fit(BAGS)),
    "BagPrior.log_odds": (3, lambda: PRIOR.log_odds(BAGS)),
    "mmd_test": (4, lambda: mh.mmd_test(X[: N // 2], X[N // 2 :] + 1.0, n_resamples=99, **SPLITS)),
    "hsic_test": (12, lambda: mh.hsic_test(X[:, :1], X[:, 1:], n_resamples=9, random_state=0)),
    "hsic_test, kernels": (5, lambda: mh.hsic_test(X[:, :1], X[:, 1:], GAUSSIAN, GAUSSIAN, n_resamples=9)),
    "DriftMonitor": (
        3,
        lambda: mh.DriftMonitor(
            100, windows=[1, 5], kernel=GAUSSIAN, n_simulations=100, block_length=1, random_state=0
        ).fit(X),
    ),
}
"""Calls, and how many arrays of n² numbers they ask for."""


@pytest.fixture
def free(monkeypatch):
    """Sets the memory that may be used."""
    monkeypatch.setattr(tiles, "LARGE", 1)
    monkeypatch.setattr(resources, "NEGLIGIBLE", 0)
    return lambda size: monkeypatch.setattr(resources, "free_memory", lambda: size / resources.SHARE)


@pytest.mark.parametrize("name", CALLS)
def test_what_is_asked_for_is_what_is_taken(name, free):
    """Constant parts do not count: tiles of a few hundred rows, and libraries that are loaded on the way."""
    arrays, call = CALLS[name]
    free(0.0)
    with pytest.raises(MemoryError, match="would need") as refused:
        call()
    number, unit = re.search(r"would need ([\d.]+) (\w+)", str(refused.value)).groups()
    assert float(number) * UNITS[unit] == pytest.approx(arrays * 8 * N**2, rel=0.01)
    free(arrays * 8 * N**2 * 1.01)
    call()
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= 1.05 * arrays * 8 * N**2 + 12e6  # with a tile of 1,024 rows


def test_splits_and_factors_are_counted_too(free):
    """99 and one splits, three numbers each, with their columns; and four factors of the rank that is tried first."""
    free(0.0)
    with pytest.raises(MemoryError, match=r"99 splits of 640 rows with 2 columns would need 1.66 MB"):
        mh.mmd_test(X[: N // 2], X[N // 2 :], n_resamples=99, random_state=0)
    with pytest.raises(MemoryError, match=r"640 rows at rank 256 would need 8.31 MB"):
        mh.SpectralKernelMean(GAUSSIAN, solver="low-rank").fit(X)


def test_little_memory_is_taken_without_a_look(monkeypatch):
    """Nothing of the system is read for a small test; what is a limit of yours holds all the same."""
    monkeypatch.setattr(resources, "free_memory", lambda: 0.0)
    assert mh.mmd_test(X[:50], X[50:90], random_state=0).pvalue > 0
    with pytest.raises(MemoryError, match=r"splits of 90 rows with 2 columns would need 2.23 MB and 1 kB may"):
        mh.mmd_test(X[:50], X[50:90], memory_limit=1e3)


def test_the_least_memory_that_will_do_is_enough():
    resources.check_memory(2e6, 2e6, "this", "do less")
    with pytest.raises(MemoryError, match="2 MB and 2 MB may"):
        resources.check_memory(2e6 + 1.0, 2e6, "this", "do less")
