"""Kernels against their formulas, and the median heuristic against a double loop."""

import numpy as np
import oracles
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from tables import FUNCTIONS, KERNELS, data_sets, sample

import muhat as mh

DATA = data_sets()
every_kernel = pytest.mark.parametrize("name", KERNELS)
SPREAD_DATA = [name for name in DATA if name != "two_equal_points"]


@every_kernel
@pytest.mark.parametrize("data", DATA)
def test_gram_and_diagonal(name, data):
    X = DATA[data]
    Y = sample(4, X.shape[1], seed=99)
    kernel, k = KERNELS[name], FUNCTIONS[name]
    # Matern's kernels take a root of the squared distance, which turns rounding 1e-16 of |x|^2 into its root.
    atol = 1e-10 * max(1.0, np.abs(oracles.gram(k, X, X)).max())
    assert_allclose(kernel(X, Y), oracles.gram(k, X, Y), rtol=1e-10, atol=atol)
    assert_allclose(kernel(X), oracles.gram(k, X, X), rtol=1e-10, atol=atol)
    assert_allclose(kernel.diag(X), k(X, X), rtol=1e-10)
    assert_array_equal(kernel(X), kernel(X).T)


@pytest.mark.parametrize("data", SPREAD_DATA)
def test_median_bandwidths(data):
    X = DATA[data]
    euclidean, cityblock = oracles.gaussian_median_bandwidth(X), oracles.laplace_median_bandwidth(X)
    assert_allclose(mh.Gaussian().resolve(X).bandwidth, euclidean, rtol=1e-10)
    assert_allclose(mh.Matern().resolve(X).bandwidth, euclidean, rtol=1e-10)
    assert_allclose(mh.Laplace().resolve(X).bandwidth, cityblock, rtol=1e-10)


@pytest.mark.parametrize("kernel", [mh.Gaussian(), mh.Laplace(), mh.Matern()])
def test_median_of_equal_points_is_refused(kernel):
    with pytest.raises(ValueError, match="bandwidth"):
        kernel.resolve(DATA["two_equal_points"])


@every_kernel
def test_a_number_is_resolved_already(name):
    assert KERNELS[name].resolve(DATA["generic"]) == KERNELS[name]


def test_composite_kernels_resolve_their_parts():
    X = DATA["generic"]
    s = mh.Gaussian().resolve(X)
    assert (mh.Gaussian() + mh.Linear()).resolve(X) == s + mh.Linear()
    assert (mh.Gaussian() * mh.Linear()).resolve(X) == s * mh.Linear()
    assert (2.0 * mh.Gaussian()).resolve(X) == 2.0 * s
