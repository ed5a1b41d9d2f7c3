"""Kernels given by a Gram matrix, by a function, or by a Gaussian-process kernel of scikit-learn."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.gaussian_process import kernels as gp
from sklearn.metrics import pairwise
from tables import sample

import muhat as mh

X = sample(12, 2, seed=0)


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


GP_KERNELS = {
    "rbf": gp.RBF(1.5),
    "anisotropic": gp.RBF([0.5, 1.0, 2.0]),
    "nested": gp.ConstantKernel(2.0) * gp.RBF(1.5) + gp.DotProduct(0.5),
    "rational": gp.RationalQuadratic(alpha=0.7, length_scale=2.0),
    "matern": gp.Matern(length_scale=1.3, nu=0.9),
}


@pytest.mark.parametrize("theirs", GP_KERNELS.values(), ids=GP_KERNELS)
def test_gaussian_process_kernels(theirs):
    X, Y = sample(8, 3, seed=8), sample(5, 3, seed=9)
    kernel = mh.as_kernel(theirs)
    assert_allclose(kernel(X, Y), theirs(X, Y), rtol=1e-13)
    assert_allclose(kernel(X), theirs(X), rtol=1e-13)
    assert_allclose(kernel.diag(X), theirs.diag(X), rtol=1e-13)
    assert kernel == pickle.loads(pickle.dumps(kernel))
    assert hash(kernel) == hash(mh.as_kernel(theirs))
    assert kernel.resolve(X) == kernel
    assert_allclose(mh.embed(kernel, X).norm() ** 2, theirs(X).mean(), rtol=1e-10)


def test_gaussian_process_kernels_have_nested_parameters():
    theirs = GP_KERNELS["nested"]
    kernel = mh.as_kernel(theirs)
    changed = kernel.with_params(kernel__k1__k2__length_scale=9.0)
    assert changed.get_params()["kernel__k1__k2__length_scale"] == 9.0
    assert kernel.get_params()["kernel__k1__k2__length_scale"] == 1.5
    assert changed != kernel
    mean = mh.KernelMean(kernel).set_params(kernel__kernel__k1__k2__length_scale=9.0)
    assert mean.kernel == changed


def test_a_gaussian_process_kernel_is_taken_as_it_is_now():
    """A kernel is a value: what happens to the object it was made from does not change it."""
    theirs = gp.RBF(1.0)
    kernel, X = mh.as_kernel(theirs), sample(4, 2, seed=10)
    before = kernel(X, X[:2])
    theirs.set_params(length_scale=5.0)
    assert_array_equal(kernel(X, X[:2]), before)


def test_noise_on_the_diagonal_stays_there_beyond_a_block():
    """White noise is k(x, x) alone: the squared norm of a mean of n rows holds 1/n of it, for every n."""
    kernel = mh.as_kernel(gp.WhiteKernel(1.0))
    for n in (10, 513, 600):
        mean = mh.KernelMean(kernel).fit(np.arange(n, dtype=float)[:, None]).mean_
        assert_allclose(mean.norm() ** 2, 1 / n, rtol=1e-10)
        spectral = mh.SpectralKernelMean(kernel, lam=1.0).fit(np.arange(n, dtype=float)[:, None])
        assert_allclose(spectral.weights_, np.full(n, 0.5 / n), rtol=1e-10)


def test_functions():
    X, Y = sample(8, 3, seed=8), sample(5, 3, seed=9)
    for function in (pairwise.cosine_similarity, pairwise.chi2_kernel):
        kernel = mh.as_kernel(function)
        A, B = (X, Y) if function is pairwise.cosine_similarity else (abs(X), abs(Y))
        assert_allclose(kernel(A, B), function(A, B), rtol=1e-13)
        assert_allclose(kernel.diag(A), np.diag(function(A)), rtol=1e-13)
        assert mh.as_kernel(function) == kernel == mh.as_kernel(kernel)
        assert pickle.loads(pickle.dumps(kernel)) == kernel


def test_a_function_of_two_rows_is_refused_with_the_remedy():
    kernel = mh.as_kernel(lambda x, y: float(np.sum(x[0] * y[0])))
    with pytest.raises(ValueError, match=r"must return .*lambda X, Y: pairwise_kernels\(X, Y, metric=f\)"):
        kernel(sample(3, 2, seed=1), sample(4, 2, seed=2))


@pytest.mark.parametrize("thing", ["rbf", "median", None, 3.0, mh.Gaussian, sample(2, 2, seed=1)])
def test_what_is_no_kernel(thing):
    with pytest.raises(ValueError, match=r"is not a kernel; use an object such as muhat\.Gaussian\(\)"):
        mh.as_kernel(thing)


def test_complex_values_are_refused():
    with pytest.raises(ValueError, match="its values are complex numbers; return real ones"):
        mh.as_kernel(lambda X, Y: 1j * (X @ Y.T))(sample(3, 2, seed=1), sample(4, 2, seed=2))
