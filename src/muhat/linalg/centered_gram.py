"""The centred Gram matrix, about a mean with any weights on the rows."""

from __future__ import annotations

import numpy as np

from muhat._support.types import Array

_STRIP = 256  # rows of a Gram matrix that stay in the cache


def center_gram(K: Array, weights: Array | None = None) -> Array:
    """Centre K, in place, about the mean with the given weights: K − 1βᵀK − Kβ1ᵀ + (βᵀKβ)11ᵀ; default equal weights."""
    offsets = K.mean(axis=1) if weights is None else K @ weights
    return subtract_means(K, offsets, offsets, float(offsets.mean() if weights is None else weights @ offsets))


def subtract_means(K: Array, at_rows: Array, at_columns: Array, inner: float) -> Array:
    """Centre k(x, y), in place, to ⟨φ(x) − μ, φ(y) − ν⟩ = k(x, y) − ν(x) − μ(y) + ⟨μ, ν⟩.

    ``at_rows`` is ν(x), ``at_columns`` is μ(y) and ``inner`` is ⟨μ, ν⟩.
    """
    cuts = range(_STRIP, len(K), _STRIP)
    for part, own in zip(np.split(K, cuts), np.split(at_rows, cuts), strict=True):
        part -= np.add.outer(own, at_columns)
        part += inner
    return K


def mean_off_diagonal(K: Array) -> float:
    """Mean of k(x, x') over pairs of different rows, the unbiased estimate of a squared norm of a kernel mean."""
    n = len(K)
    return (float(K.sum()) - float(np.trace(K))) / (n * (n - 1))
