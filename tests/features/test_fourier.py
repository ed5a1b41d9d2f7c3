"""Fourier features: frequencies of the spectral measure, cosines and sines, and their error."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from tables import KERNELS, sample

import muhat as mh
from muhat.features.fourier import Fourier, _half_angles

STATIONARY = ("gaussian", "gaussian_narrow", "laplace", "matern_half", "matern", "matern_smooth")
X = sample(60, 3, seed=0)


@pytest.mark.slow
@pytest.mark.parametrize("name", STATIONARY)
def test_frequencies_have_the_spectral_measure_of_the_kernel(name):
    """Each entry of ZZᵀ averages cosines; over independent features its mean is the kernel, within 4.5 errors."""
    rows, kernel = sample(7, 3, seed=2), KERNELS[name]
    draws = [Fourier(kernel, 300, random_state=seed).fit_transform(rows) for seed in range(60)]
    grams = np.array([Z @ Z.T for Z in draws])[:, *np.triu_indices(7, 1)]
    errors = grams.std(axis=0, ddof=1) / np.sqrt(len(grams))
    want = kernel(rows)[np.triu_indices(7, 1)]
    assert (np.abs(grams.mean(axis=0) - want) <= 4.5 * errors).all()
    assert errors.max() < 0.01


@pytest.mark.parametrize("name", STATIONARY)
def test_fourier_features_are_cosines_and_sines(name):
    rows, kernel = sample(3000, 3, seed=4), KERNELS[name]
    features = Fourier(kernel, 40, random_state=0).fit(rows)
    assert_allclose(features._centre, rows.mean(axis=0), rtol=1e-12)
    scaled = (rows - features._centre) / kernel.bandwidth
    phases = scaled @ features.frequencies_
    Z = features.transform(rows)
    assert_allclose((Z**2).sum(axis=1), 1.0, atol=1e-14)
    size = np.abs(scaled) @ np.abs(features.frequencies_) + 1
    want = np.hstack([np.cos(phases), np.sin(phases)]) / np.sqrt(20)
    assert (np.abs(Z - want) <= 1e-15 * np.hstack([size, size])).all()
    total, squares = features._totals(rows)
    assert_allclose(total, Z.sum(axis=0), atol=1e-11)
    assert_allclose(squares, len(rows))


def test_half_angles_to_the_last_digits():
    turns = np.concatenate([np.linspace(-3, 3, 4001), [0.5, -0.5, 1e6 + 0.25, 0.0]])[None]
    left = (turns - np.rint(turns)) * np.pi
    sine, cosine = _half_angles(turns.copy(), np.empty_like(turns), np.empty_like(turns))
    assert_allclose(sine, 2 * np.sin(left), rtol=0, atol=2e-15)
    assert_allclose(cosine, np.cos(left), rtol=0, atol=1e-15)


def test_the_fourier_error_is_that_of_the_entries():
    features = Fourier(mh.Gaussian(1.0), 200, random_state=0).fit(X)
    Z = features.transform(X)
    errors = (mh.Gaussian(1.0)(X) - Z @ Z.T)[np.triu_indices(60, 1)]
    assert_allclose(features.approximation_error_, np.sqrt(np.mean(errors**2)), rtol=1e-10)
    errors = [
        Fourier(n_components=m, random_state=0).fit(sample(200, 5, seed=1)).approximation_error_ for m in (40, 4000)
    ]
    assert 5 < errors[0] / errors[1] < 20
