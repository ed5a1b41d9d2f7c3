"""The centred Gram matrix, and its principal components, with weights on its rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.linalg.blas import dsymv
from scipy.sparse.linalg import LinearOperator, eigsh

from muhat.linalg.gram import above_rounding
from muhat.types import Array

_STRIP = 256  # rows of a Gram matrix that stay in the cache


def center_gram(K: Array, weights: Array | None = None) -> Array:
    """Centre K, in place, about the mean with the given weights: K − 1βᵀK − Kβ1ᵀ + (βᵀKβ)11ᵀ; default equal weights."""
    offsets = K.mean(axis=1) if weights is None else K @ weights
    return subtract_means(K, offsets, offsets, float(offsets.mean() if weights is None else weights @ offsets))


def subtract_means(K: Array, at_rows: Array, at_columns: Array, inner: float) -> Array:
    """Centre k(x, y), in place, to ⟨φ(x) − μ, φ(y) − ν⟩ = k(x, y) − ν(x) − μ(y) + ⟨μ, ν⟩.

    Parameters
    ----------
    K : array of shape (n, m)
        Kernel values; overwritten.
    at_rows : array of shape (n,)
        ν(x) at the points of the rows.
    at_columns : array of shape (m,)
        μ(y) at the points of the columns.
    inner : float
        ⟨μ, ν⟩.
    """
    cuts = range(_STRIP, len(K), _STRIP)
    for part, own in zip(np.split(K, cuts), np.split(at_rows, cuts), strict=True):
        part -= np.add.outer(own, at_columns)
        part += inner
    return K


PARTIAL_COMPONENTS = 50


PARTIAL_ROWS = 500
"""From this many rows on, up to this many components come from a partial solver."""


class Components(NamedTuple):
    """Eigenvalues, descending, and coefficients c of orthonormal directions Σ c_j φ̃(x_j), a column each."""

    eigenvalues: Array
    coefficients: Array


def principal_components(K: Array, mean_weights: Array, B: Array, n_components: int | None) -> Components:
    """Eigenfunctions of Σ B_i φ̃(x_i) ⊗ φ̃(x_i), features centred about the mean with the given weights.

    Eigenvalues that are negative or vanish to rounding are set to 0, their coefficients too; with
    ``n_components=None`` they are dropped. The sign makes the largest coefficient of each direction positive.
    """
    if (B < 0).any():
        values, coefficients = _indefinite(K, mean_weights, B)
    elif n_components is not None and len(K) > PARTIAL_ROWS and n_components <= PARTIAL_COMPONENTS:
        values, coefficients = _partial(K, mean_weights, np.sqrt(B), n_components)
    else:
        values, coefficients = _whole(K, mean_weights, np.sqrt(B))
    positive = above_rounding(values, len(K))
    kept = max(np.count_nonzero(positive), 1) if n_components is None else n_components
    values, coefficients = np.where(positive, values, 0.0)[:kept], np.where(positive, coefficients, 0.0)[:, :kept]
    largest = coefficients[np.abs(coefficients).argmax(axis=0), np.arange(coefficients.shape[1])]
    return Components(values, coefficients * np.where(largest < 0, -1.0, 1.0))


def _whole(K: Array, mean_weights: Array, root: Array) -> Components:
    """All pairs of B^½ K^c B^½: for an eigenvector q to ν the direction has coefficients B^½ q/√ν."""
    scaled = K.copy()
    center_gram(scaled, mean_weights)
    scaled *= root
    scaled *= root[:, None]
    values, q = eigh(scaled.T, driver="evd", overwrite_a=True, check_finite=False)
    return _directions(values[::-1], q[:, ::-1], root)


def _partial(K: Array, mean_weights: Array, root: Array, n_components: int) -> Components:
    """The leading pairs of B^½ K^c B^½ by Lanczos' method, K^c never formed, one triangle of K read at each step."""
    triangle = K if K.flags.f_contiguous else K.T
    offsets = K @ mean_weights
    squared_norm = mean_weights @ offsets

    def multiply(q: Array) -> Array:
        v = root * q.ravel()
        total = v.sum()
        return root * (dsymv(1.0, triangle, v) - offsets * total - offsets @ v + squared_norm * total)

    operator = LinearOperator(K.shape, matvec=multiply, dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(len(K))
    values, q = eigsh(operator, k=n_components, which="LA", v0=start, ncv=max(3 * n_components, 20))
    order = np.argsort(-values)
    return _directions(values[order], q[:, order], root)


def _directions(values: Array, q: Array, root: Array) -> Components:
    scale = np.sqrt(np.where(values > 0, values, 1.0))
    return Components(values, root[:, None] * q / scale)


def _indefinite(K: Array, mean_weights: Array, B: Array) -> Components:
    """Weights of both signs: with K^c = LLᵀ, L = U g^½, the spectrum is that of LᵀBL, coefficients U g^(−½) w."""
    centred = K.copy()
    center_gram(centred, mean_weights)
    g, U = eigh(centred.T, driver="evd", overwrite_a=True, check_finite=False)
    kept = above_rounding(g, len(g))
    root, U = np.sqrt(g[kept]), U[:, kept]
    L = U * root
    values, w = eigh((L.T * B) @ L, driver="evd", overwrite_a=True, check_finite=False)
    coefficients = np.zeros_like(K)
    coefficients[:, : len(root)] = (U / root) @ w[:, ::-1]
    return Components(np.append(values[::-1], np.zeros(len(K) - len(root))), coefficients)
