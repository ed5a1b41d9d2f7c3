"""Functions that dispatch on the class of a kernel: registered for a new class, and combined for composed kernels."""

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import muhat as mh
from muhat.kernels import tiles
from muhat.kernels.between_elements import compares_elements
from muhat.kernels.expectations import expect_diag, has_gaussian_expectations


@dataclass(frozen=True)
class Cosine(mh.kernels.Kernel):
    """k(x, y) = Σⱼ cos(xⱼ − yⱼ), of which nearly everything is known."""

    def evaluate(self, X, Y):
        return np.cos(X[:, None] - Y).sum(axis=2)

    def diagonal(self, X):
        return np.full(len(X), float(X.shape[1]))


@mh.kernels.exact_feature_count.register(Cosine)
def cosine_feature_count(kernel, width):
    return 2 * width


@mh.kernels.exact_features.register(Cosine)
def cosine_features(kernel, X):
    return np.hstack([np.cos(X), np.sin(X)])


@mh.kernels.gaussian_expectations.register(Cosine)
def cosine_expectations(kernel, P, Q):
    """E cos(x − y) = exp(−(S + T)/2) cos(a − b) in each column."""
    centres = Q.points if isinstance(Q, mh.Atoms) else Q.means
    variances = np.einsum("ajj->aj", P.covariances)[:, None]
    if not isinstance(Q, mh.Atoms):
        variances = variances + np.einsum("bjj->bj", Q.covariances)
    return (np.exp(-variances / 2) * np.cos(P.means[:, None] - centres)).sum(axis=2)


@mh.kernels.gaussian_diagonal.register(Cosine)
def cosine_diagonal(kernel, P):
    return np.full(len(P), float(P.n_features))


@mh.kernels.is_stationary.register(Cosine)
def cosine_is_stationary(kernel):
    return True


@mh.kernels.evaluate_between_elements.register(Cosine)
def cosine_between_elements(kernel, inner, left, right):
    return np.cos(inner)


rng = np.random.default_rng(0)
X, Y = rng.normal(size=(2, 300, 2))
P = mh.GaussianMixture([0.4, 0.6], [[0.0, 1.0], [2.0, -1.0]], [[0.5, 0.2], [0.1, 1.0]])


def test_sums_over_rows_go_through_the_registered_features():
    beta = rng.normal(size=300)
    assert_allclose(tiles.quadratic_form(Cosine(), X, beta), beta @ Cosine()(X) @ beta, rtol=1e-10)
    assert_allclose(tiles.product(Cosine(), Y, X, beta), Cosine()(Y, X) @ beta, atol=1e-10)


@pytest.mark.parametrize("kernel", [Cosine(), 3.0 * Cosine(), Cosine() + 0.5 * mh.Gaussian(1.0)])
def test_expectations_are_those_of_a_large_sample(kernel):
    f, sample = mh.embed(kernel, P), P.sample(4000, random_state=0)
    values = kernel(sample, Y[:5])
    error = values.std(axis=0) / np.sqrt(len(sample))
    assert (np.abs(f(Y[:5]) - values.mean(axis=0)) < 4 * error).all()
    assert_allclose(expect_diag(kernel, P), kernel.diag(X[:1])[0], rtol=1e-12)
    assert has_gaussian_expectations(kernel)
    assert mh.AdaptiveKernelMean(kernel).fit(X[:20]).target_kind_ == "gaussian"


def test_a_product_has_no_closed_form():
    assert not has_gaussian_expectations(Cosine() * mh.Gaussian(1.0))
    with pytest.raises(ValueError, match="has no closed-form expectation under a Gaussian; use a sample"):
        mh.embed(Cosine() * mh.Gaussian(1.0), P).norm()


def test_a_composed_kernel_is_stationary_where_its_parts_are():
    assert mh.kernels.is_stationary(2.0 * (Cosine() * mh.Gaussian(1.0)))
    assert not mh.kernels.is_stationary(Cosine() + mh.Linear())
    assert mh.kernels.length_scales(mh.Gaussian(2.0) * Cosine() + 3.0 * mh.Laplace(5.0)) == (2.0, 5.0)


def test_between_elements():
    bags = [X[:30], X[30:50], Y[:40]]
    inner = mh.DistributionKernel(mh.Gaussian(1.0)).fit_transform(bags)
    for kernel, want in ((Cosine(), np.cos(inner)), (2.0 * Cosine() + mh.Linear(), 2.0 * np.cos(inner) + inner)):
        assert_allclose(mh.DistributionKernel(mh.Gaussian(1.0), level2=kernel).fit_transform(bags), want, rtol=1e-12)
    assert not compares_elements(Cosine() + mh.Categorical())


def test_without_a_registration_the_answer_is_modest():
    kernel = mh.Categorical()
    assert mh.kernels.exact_feature_count(kernel, 3) == np.inf
    with pytest.raises(TypeError, match="Categorical has no exact features"):
        mh.kernels.exact_features(kernel, X)
    assert_array_equal(mh.kernels.evaluate_fast(kernel, X, Y), kernel(X, Y))
    with pytest.raises(ValueError, match="does not compare elements; use a function of their distance"):
        mh.kernels.evaluate_between_elements(kernel, X, X[:, 0], X[:, 0])
    with pytest.raises(ValueError, match=r"registered with muhat\.kernels\.sample_frequencies"):
        mh.kernels.sample_frequencies(kernel, 2, 3, rng)


def test_a_reader_of_kernels_needs_ten_methods():
    methods = {name for name in dir(mh.kernels.Kernel) if not name.startswith("_")}
    assert methods == {
        *("evaluate", "diagonal", "resolve", "points", "diag", "check", "expect"),
        *("get_params", "with_params", "exact_repr"),
    }
