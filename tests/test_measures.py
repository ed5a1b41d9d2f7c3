"""Gaussian mixtures as measures: what is refused, samples and densities."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_normal

import muhat as mh

BAD_MIXTURES = {
    "weights sum to two": ([1.0, 1.0], np.zeros((2, 2)), [1.0, 1.0], "weights=.* sum to 1; divide"),
    "negative weight": ([1.5, -0.5], np.zeros((2, 2)), [1.0, 1.0], "weights=.* non-negative"),
    "NaN weight": ([np.nan, 1.0], np.zeros((2, 2)), [1.0, 1.0], "weights must be finite"),
    "too few weights": ([1.0], np.zeros((2, 2)), [1.0, 1.0], r"weights has shape \(1,\)"),
    "NaN mean": ([1.0], [[np.nan, 0.0]], [1.0], "means contains NaN|NaN"),
    "flat means": ([1.0], [0.0, 0.0], [1.0], "2D"),
    "NaN covariance": ([1.0], np.zeros((1, 2)), [[[np.nan, 0], [0, 1.0]]], "covariances must be finite"),
    "negative variance": ([1.0], np.zeros((1, 2)), [-1.0], r"covariances\[0\] .* positive semi-definite"),
    "indefinite": ([1.0], np.zeros((1, 2)), [[[1.0, 2.0], [2.0, 1.0]]], r"covariances\[0\] .* semi-definite"),
    "asymmetric": ([1.0], np.zeros((1, 2)), [[[1.0, 0.5], [0.0, 1.0]]], r"covariances\[0\] must be symmetric"),
    "wrong shape": ([1.0], np.zeros((1, 2)), np.eye(2), r"covariances have shape \(2, 2\).*\(1, 2, 2\) \(full\)"),
}


def test_rounding_in_a_mixture_is_no_mistake():
    """Up to 1e-9 of the largest covariance, and 1e-8 of the weights; a hundred times that is refused."""
    for size in (1.0, 1e-6, 1e6):
        for rounding, fine in ((1e-11, True), (1e-6, False)):
            asymmetric = size * np.array([[1.0, 0.5], [0.5 + rounding, 1.0]])
            indefinite = size * np.array([[1.0, 1.0 + rounding], [1.0 + rounding, 1.0]])
            for covariance in (asymmetric, indefinite):
                if fine:
                    assert np.isfinite(mh.GaussianMixture([1.0], np.zeros((1, 2)), covariance[None]).sample(3, 0)).all()
                else:
                    with pytest.raises(ValueError, match=r"covariances\[0\]"):
                        mh.GaussianMixture([1.0], np.zeros((1, 2)), covariance[None])
    mh.GaussianMixture([0.5, 0.5 + 1e-10], np.zeros((2, 2)), [1.0, 1.0])
    with pytest.raises(ValueError, match="sum to 1"):
        mh.GaussianMixture([0.5, 0.5 + 1e-6], np.zeros((2, 2)), [1.0, 1.0])


@pytest.mark.parametrize(("weights", "means", "covariances", "message"), BAD_MIXTURES.values(), ids=BAD_MIXTURES)
def test_mixtures_are_checked(weights, means, covariances, message):
    with pytest.raises(ValueError, match=message):
        mh.GaussianMixture(weights, means, covariances)


def test_measures_add_up_and_are_multiplied_by_numbers():
    P, Q = mh.Atoms([[0.0], [1.0]]), mh.GaussianMixture([1.0], [[0.0]], [1.0])
    assert repr(np.float64(2.0) * P + P) == "Atoms(n=2, d=1, total_weight=3)"
    assert repr(P + mh.Atoms([[5.0]])) == "Atoms(n=3, d=1, total_weight=2)"
    assert repr(2 * Q + Q) == "Gaussians(n_components=1, d=1, total_weight=3)"
    with pytest.raises(TypeError, match="unsupported operand"):
        P + Q


def test_shapes_of_covariances_agree():
    means, variances = np.zeros((2, 3)), np.array([0.5, 2.0])
    forms = [variances, np.outer(variances, np.ones(3)), variances[:, None, None] * np.eye(3)]
    for covariances in forms:
        assert_array_equal(mh.GaussianMixture([0.5, 0.5], means, covariances).covariances, forms[-1])


@pytest.mark.parametrize("rank", [3, 1])
def test_moments_of_samples(rank):
    rng = np.random.default_rng(5)
    roots = rng.normal(size=(2, 3, rank))
    P = mh.GaussianMixture([0.3, 0.7], 2 * rng.normal(size=(2, 3)), roots @ roots.transpose(0, 2, 1))
    sample = P.sample(40_000, random_state=0)
    mean = P.weights @ P.means
    second = np.einsum("k,kij->ij", P.weights, P.covariances + P.means[:, :, None] * P.means[:, None, :])
    products = sample[:, :, None] * sample[:, None, :]
    for values, exact in [(sample, mean), (products, second)]:
        error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
        assert (np.abs(values.mean(axis=0) - exact) <= 4.5 * error).all()
    assert_array_equal(P.sample(5, random_state=3), P.sample(5, random_state=np.random.default_rng(3)))
    if rank == 1:  # every draw lies on one of two lines
        offsets = sample[:, None, :] - P.means
        lines = roots[:, :, 0] / np.linalg.norm(roots[:, :, 0], axis=1, keepdims=True)
        along = np.einsum("nki,ki->nk", offsets, lines)[:, :, None] * lines
        assert np.linalg.norm(offsets - along, axis=2).min(axis=1).max() <= 1e-6


def test_log_density():
    rng = np.random.default_rng(6)
    roots = rng.normal(size=(3, 4, 4))
    P = mh.GaussianMixture([0.2, 0.3, 0.5], rng.normal(size=(3, 4)), roots @ roots.transpose(0, 2, 1))
    points = rng.normal(size=(10, 4)) * 3
    densities = [multivariate_normal(mean, S).pdf(points) for mean, S in P.components()]
    assert_allclose(P.log_density(points), np.log(P.weights @ densities), rtol=1e-10)
    assert np.isfinite(P.log_density(points * 1e3)).all()
    assert_allclose(
        mh.GaussianMixture([1.0, 0.0], np.zeros((2, 1)), [1.0, 1.0]).log_density([[0.0]]), -0.9189385332, rtol=1e-9
    )


def test_a_singular_covariance_has_no_density():
    for covariance in (np.zeros((2, 2)), np.ones((2, 2)), np.diag([1.0, 0.0])):
        with pytest.raises(ValueError, match=r"singular covariance .* add noise"):
            mh.GaussianMixture([1.0], [[0.0, 0.0]], [covariance]).log_density([[0.0, 0.0]])
    with pytest.raises(ValueError, match=r"1 columns .* has 2"):
        mh.GaussianMixture([1.0], [[0.0, 0.0]], [1.0]).log_density([[0.0]])
