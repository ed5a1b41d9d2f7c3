"""Kernels at the edge of what they promise."""

from dataclasses import dataclass

import numpy as np
import pytest
from tables import sample

import muhat as mh
from muhat.kernels.base import Kernel
from muhat.kernels.expectations import expect_diag

X = sample(12, 2, seed=0)


@pytest.mark.parametrize("degree", [4, 7])
def test_polynomials_without_a_closed_form_say_so_for_means_and_diagonals(degree):
    P = mh.GaussianMixture([0.5, 0.5], [[0.0, 0.0], [1.0, 1.0]], [1.0, 2.0])
    kernel = mh.Polynomial(degree)
    for compute in (lambda: kernel.expect(P, P), lambda: expect_diag(kernel, P)):
        with pytest.raises(ValueError, match=rf"Polynomial\(degree={degree}.* has no closed-form expectation"):
            compute()


@dataclass(frozen=True)
class OneNumber(Kernel):
    """A kernel whose diagonal is a number in place of an array."""

    def evaluate(self, X, Y):
        return np.exp(-((X[:, None] - Y[None]) ** 2).sum(axis=2))

    def diagonal(self, X):
        return np.ones(1)


def test_a_diagonal_has_one_entry_a_row():
    with pytest.raises(ValueError, match=r"diagonal gives the shape \(1,\); return \(12,\)"):
        OneNumber().check(X)


def test_rows_of_a_precomputed_matrix_are_known_by_number_or_by_their_values():
    """k(i, j) of training rows, k(i, z) and k(z, i) of new rows z: one matrix, and its transpose."""
    K = mh.Gaussian(1.0)(X, X)
    kernel = mh.KernelMean("precomputed").fit(K[:8, :8]).kernel_
    numbers, new = np.array([[1], [3], [4]]), K[8:, :8]
    np.testing.assert_array_equal(kernel.points(numbers), numbers)
    np.testing.assert_array_equal(kernel.evaluate(numbers, numbers), K[np.ix_([1, 3, 4], [1, 3, 4])])
    np.testing.assert_array_equal(kernel.evaluate(new, numbers), K[8:, [1, 3, 4]])
    np.testing.assert_array_equal(kernel.evaluate(numbers, new), K[8:, [1, 3, 4]].T)


def test_a_precomputed_kernel_is_its_matrix():
    K = mh.Gaussian(1.0)(X, X)
    one, same, other = (mh.KernelMean("precomputed").fit(matrix).kernel_ for matrix in (K, K.copy(), K + np.eye(12)))
    assert one == same
    assert hash(one) == hash(same)
    assert one != other
    assert one != mh.Gaussian(1.0)
    assert repr(one) == "Precomputed(n=12)"
    with pytest.raises(ValueError, match="kernel='precomputed' has no expectation under a Gaussian; pass a kernel"):
        one.expect(mh.GaussianMixture([1.0], [[0.0]], [1.0]), mh.GaussianMixture([1.0], [[0.0]], [1.0]))
