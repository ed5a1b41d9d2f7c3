"""Sums over pairs of bags: tiles, threads and compiled code against one pair of bags after the other."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import oracles
import pytest
from numpy.testing import assert_array_equal

import muhat as mh
from muhat.bags import data as bags_module
from muhat.bags.bag_sums import bag_sums
from muhat.bags.data import Bags
from muhat.linalg import gram

SIZES = (1, 30, 2, 2, 17, 40, 1, 8)


def bags_of(sizes, seed=0, dtype=np.float64):
    rows = np.random.default_rng(seed).normal(size=(sum(sizes), 3)).astype(dtype)
    return Bags(rows, np.cumsum([0, *sizes]))


def weights_of(bags, seed=1):
    return np.random.default_rng(seed).normal(size=len(bags.rows))


@pytest.fixture
def small_tiles(monkeypatch):
    monkeypatch.setattr(bags_module, "BLOCK", 16)
    monkeypatch.setattr(gram, "THREADED", 0)


def sums_by_pairs(A, a, B, b):
    """Sums and magnitudes of the Gaussian kernel of width 1.5."""
    left, right = zip(A.parts(A.rows), A.parts(a), strict=True), list(zip(B.parts(B.rows), B.parts(b), strict=True))

    def k(x, y):
        return oracles.gaussian(x, y, 1.5)

    found = [[oracles.kernel_sum(k, X, Y, beta, gamma) for Y, gamma in right] for X, beta in left]
    return np.moveaxis(np.array(found), -1, 0)


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("compiled", [0, np.inf], ids=["compiled", "numpy"])
@pytest.mark.parametrize("far", [0.0, 100.0])
def test_sums_equal_those_of_pairs(compiled, far, monkeypatch):
    """With a far row some tiles are refused by the compiled code."""
    monkeypatch.setattr(gram, "COMPILED", compiled)
    A, B = bags_of(SIZES), bags_of(SIZES[::-1][:5], 2)
    A.rows[40, 1] += far
    a, b, kernel = weights_of(A), weights_of(B, 3), mh.Gaussian(1.5)
    for ours, (value, magnitude) in (
        (bag_sums(kernel, A, a, B, b), sums_by_pairs(A, a, B, b)),
        (bag_sums(kernel, A, a, A, a), sums_by_pairs(A, a, A, a)),
    ):
        assert (np.abs(ours - value) <= 2e-13 * magnitude + 1e-300).all()  # 1e-13 for the kernel values, and the sums


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("compiled", [0, np.inf], ids=["compiled", "numpy"])
@pytest.mark.parametrize("workers", [2, 5])
def test_the_number_of_threads_does_not_matter(workers, compiled, monkeypatch):
    monkeypatch.setattr(gram, "COMPILED", compiled)
    A, kernel = bags_of(SIZES), mh.Gaussian(1.5)
    a = weights_of(A)
    monkeypatch.setattr(gram, "effective_n_jobs", lambda _: 1)
    expected = bag_sums(kernel, A, a, A, a)
    monkeypatch.setattr(gram, "effective_n_jobs", lambda _: workers)
    assert_array_equal(bag_sums(kernel, A, a, A, a), expected)
    assert_array_equal(expected, expected.T)


@pytest.mark.skipif(find_spec("numba") is None, reason="numba is missing: pip install 'muhat[fast]'")
@pytest.mark.usefixtures("small_tiles")
def test_large_sums_are_compiled(monkeypatch):
    A, kernel = bags_of(SIZES), mh.Gaussian(1.5)
    values, a = [], weights_of(A)
    evaluate = mh.Gaussian.evaluate
    monkeypatch.setattr(
        "muhat.bags.bag_sums.evaluate_fast", lambda kernel, X, Y: values.append(X) or evaluate(kernel, X, Y)
    )
    bag_sums(kernel, A, a, A, a)
    assert values
    values.clear()
    monkeypatch.setattr(gram, "COMPILED", 0)
    bag_sums(kernel, A, a, A, a)
    assert not values


@pytest.mark.usefixtures("small_tiles")
def test_threads_keep_the_callers_settings_for_warnings(monkeypatch):
    """Values that overflow are reported once, by who asked for the sums."""
    monkeypatch.setattr(gram, "effective_n_jobs", lambda _: 2)
    huge = [1e200 * np.ones((20, 2)), -1e200 * np.ones((20, 2))]
    with pytest.raises(ValueError, match="overflows on these bags"):
        mh.DistributionKernel(mh.Linear()).fit(huge)
