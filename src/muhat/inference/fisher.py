"""The spectral statistic: kernel Fisher with the pooled covariance; one eigendecomposition for all regularisations."""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh

from muhat.inference.combine import EPS, Component
from muhat.inference.difference_statistics import Splits
from muhat.linalg.centered_gram import center_gram
from muhat.types import Array

REGULARISATIONS = 10.0 ** -np.arange(7)
"""λ, in units of the largest eigenvalue of the pooled covariance operator."""


def spectrum(K: Array) -> tuple[Array, Array]:
    """Eigenvalues γ of the centred Gram matrix over its number of rows, from large to small, and eigenvectors."""
    centred = K.copy()
    center_gram(centred)
    values, vectors = eigh(0.5 * (centred + centred.T), driver="evd", check_finite=False)
    kept = values > len(K) * EPS * max(float(values[-1]), 0.0)
    return values[kept][::-1] / len(K), vectors[:, kept][:, ::-1]


def fisher_statistics(spectrum: tuple[Array, Array], lam: float, weights: Array) -> Array:
    r"""The form :math:`d^\top (S_T + \lambda)^{-1} d` for the difference d of the means with each column of weights.

    With γ and u the eigenpairs and w the weights it is :math:`\sum_k N\gamma_k (u_k^\top w)^2 / (\gamma_k + \lambda)`.
    """
    values, vectors = spectrum
    return np.asarray((len(weights) * values / (values + lam)) @ (vectors.T @ weights) ** 2)


def spectral_components(K: Array, splits: Splits) -> list[Component]:
    """The statistic at every regularisation."""
    found, weights = spectrum(K), splits.weights.astype(np.float64)
    largest = float(found[0][0]) if len(found[0]) else 1.0
    rounding = EPS * len(K) ** 2 / splits.n / splits.m
    return [
        Component(
            f"λ = {share:g}",
            "spectral",
            fisher_statistics(found, share * largest, weights),
            rounding,
            value=share * largest,
        )
        for share in REGULARISATIONS
    ]


def spectral_weights(K: Array, difference: Array, lam: float) -> Array:
    r"""Weights of the rows in the witness :math:`(S_T + \lambda)^{-1} d`; they sum to 0."""
    values, vectors = spectrum(K)
    # On the span of the rows S_T is HKH/N: (HKH/N + λ)⁻¹ w, and w/λ where HKH vanishes, which no function sees.
    return np.asarray(vectors @ ((vectors.T @ difference) / (values + lam)))
