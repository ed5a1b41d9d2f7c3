"""Principal components of a centred Gram matrix, with weights on its rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh, qr
from scipy.sparse.linalg import LinearOperator, eigsh

from muhat.types import Array

PARTIAL_COMPONENTS = 50
PARTIAL_ROWS = 500
"""From so many rows on, up to so many components come from a partial solver."""

_STRIP = 256
_EXTRA, _STEPS = 8, 16
_RESIDUAL = 1e-12


class Components(NamedTuple):
    """Eigenvalues, descending, and coefficients c of orthonormal directions Σ c_j φ̃(x_j), a column each."""

    eigenvalues: Array
    coefficients: Array


def centre_gram(K: Array, weights: Array) -> None:
    """Centre K, in place, about the mean with the given weights: K − 1βᵀK − Kβ1ᵀ + (βᵀKβ)11ᵀ."""
    offsets = K @ weights
    squared_norm = weights @ offsets
    for start in range(0, len(K), _STRIP):
        rows = slice(start, start + _STRIP)
        K[rows] -= np.add.outer(offsets[rows], offsets)
        K[rows] += squared_norm


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
    positive = values > len(K) * np.finfo(float).eps * max(values[0], 0.0)
    kept = max(np.count_nonzero(positive), 1) if n_components is None else n_components
    values, coefficients = np.where(positive, values, 0.0)[:kept], np.where(positive, coefficients, 0.0)[:, :kept]
    largest = coefficients[np.abs(coefficients).argmax(axis=0), np.arange(coefficients.shape[1])]
    return Components(values, coefficients * np.where(largest < 0, -1.0, 1.0))


def _whole(K: Array, mean_weights: Array, root: Array) -> Components:
    """All pairs of B^½ K^c B^½: for an eigenvector q to ν the direction has coefficients B^½ q/√ν."""
    scaled = K.copy()
    centre_gram(scaled, mean_weights)
    scaled *= root
    scaled *= root[:, None]
    values, q = eigh(scaled.T, driver="evd", overwrite_a=True, check_finite=False)
    return _directions(values[::-1], q[:, ::-1], root)


def _partial(K: Array, mean_weights: Array, root: Array, n_components: int) -> Components:
    """The leading pairs of B^½ K^c B^½, K^c never formed."""
    offsets = K @ mean_weights
    squared_norm = mean_weights @ offsets

    def multiply(Q: Array) -> Array:
        V = root[:, None] * Q
        totals = V.sum(axis=0)
        return root[:, None] * (K @ V - np.outer(offsets, totals) - offsets @ V + squared_norm * totals)

    values, q = leading_eigenpairs(multiply, len(K), n_components)
    return _directions(values, q, root)


def leading_eigenpairs(multiply: Callable[[Array], Array], n: int, k: int) -> tuple[Array, Array]:
    """The k largest eigenvalues, descending, of a symmetric operator that multiplies blocks, and their vectors.

    Block Lanczos with full orthogonalisation: a matrix product with many columns costs little more than with one, and
    the Krylov space of a block converges in a few products. ARPACK takes over where it does not.
    """
    size = k + _EXTRA
    steps = min(_STEPS, n // (2 * size))
    V, images = np.empty((n, steps * size)), np.empty((n, steps * size))
    T = np.zeros((steps * size, steps * size))
    block, _ = qr(np.random.default_rng(0).standard_normal((n, size)), mode="economic")
    width = 0
    for _ in range(steps):
        new = slice(width, width + block.shape[1])
        width = new.stop
        V[:, new], images[:, new] = block, multiply(block)
        T[:width, new] = V[:, :width].T @ images[:, new]
        T[new, :width] = T[:width, new].T
        values, S = eigh(T[:width, :width])
        values, S = values[::-1][:k], S[:, ::-1][:, :k]
        vectors = V[:, :width] @ S
        residuals = np.linalg.norm(images[:, :width] @ S - vectors * values, axis=0)
        block = _next_block(V[:, :width], images[:, new])
        if residuals.max() <= _RESIDUAL * np.abs(values).max() or not block.shape[1]:
            return values, vectors
    operator = LinearOperator((n, n), matvec=lambda v: multiply(v.reshape(-1, 1)).ravel(), dtype=np.float64)
    values, vectors = eigsh(operator, k=k, which="LA", v0=np.random.default_rng(0).standard_normal(n))
    return values[::-1], vectors[:, ::-1]


def _next_block(V: Array, image: Array) -> Array:
    """The part of an image outside of the span of V, orthonormal; columns that are rounding are left out."""
    size = np.linalg.norm(image)
    for _ in range(2):
        image = image - V @ (V.T @ image)
    block, R, _ = qr(image, mode="economic", pivoting=True)
    block = block[:, np.abs(np.diag(R)) > 1e-13 * size]
    return block - V @ (V.T @ block)


def _directions(values: Array, q: Array, root: Array) -> Components:
    scale = np.sqrt(np.where(values > 0, values, 1.0))
    return Components(values, root[:, None] * q / scale)


def _indefinite(K: Array, mean_weights: Array, B: Array) -> Components:
    """Weights of both signs: with K^c = LLᵀ, L = U g^½, the spectrum is that of LᵀBL, coefficients U g^(−½) w."""
    centred = K.copy()
    centre_gram(centred, mean_weights)
    g, U = eigh(centred.T, driver="evd", overwrite_a=True, check_finite=False)
    kept = g > len(g) * np.finfo(float).eps * g[-1]
    root, U = np.sqrt(g[kept]), U[:, kept]
    L = U * root
    values, w = eigh((L.T * B) @ L, driver="evd", overwrite_a=True, check_finite=False)
    coefficients = np.zeros_like(K)
    coefficients[:, : len(root)] = (U / root) @ w[:, ::-1]
    return Components(np.append(values[::-1], np.zeros(len(K) - len(root))), coefficients)
