"""Kernel principal components as a pure function of a Gram matrix.

:class:`muhat.KernelPCA` validates, calls :func:`principal_components` and stores the result. Dense, partial (Lanczos)
and indefinite eigenproblems are told apart here.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh, eigvalsh_tridiagonal
from scipy.linalg.blas import dsymv
from scipy.sparse.linalg import LinearOperator, eigsh

from muhat._support.types import Array
from muhat.linalg.centered_gram import center_gram
from muhat.linalg.spectrum import above_rounding, signs

PARTIAL_ROWS, PARTIAL_COMPONENTS = 500, 50
"""From this many rows on, up to this many components come from a partial solver."""

_RESIDUAL = 1e-10
"""Residual of an eigenpair, relative to its eigenvalue, at which the partial solver stops.

The error of an eigenvalue is of the order of the square of its residual, so that 1e-5 would do for eigenvalues that
differ. Of equal ones, which rows on a grid have, one vector finds a single copy at first, and the others come in by
rounding while the iteration goes on: at 1e-6 it ends too early.
"""

_LANCZOS_STEPS = 12
"""Products with the matrix that find a large negative eigenvalue, at a fraction of the cost of the components."""


class PrincipalComponents(NamedTuple):
    """Principal components of features that are centred about a mean μ.

    Direction k is :math:`u_k = \\sum_j c_{jk}\\, \\phi(x_j)`, the centring written out.
    """

    eigenvalues: Array
    """Descending, in the scale of the Gram matrix: n times those of the covariance operator."""
    coefficients: Array
    """c, of shape (n, n_components)."""
    mean_weights: Array
    """Weights of μ at φ(x_j)."""
    shift: Array
    """⟨μ, u_k⟩: what scores of φ(x) lose by the centring."""
    squared_norm: float
    """‖μ‖²."""
    explained: Array
    """Share of each eigenvalue in the trace of the covariance operator."""


class _EigenPairs(NamedTuple):
    """Eigenvalues, descending, and coefficients of orthonormal directions Σ c_j φ̃(x_j) in the centred features."""

    values: Array
    coefficients: Array


def principal_components(
    K: Array, mean_weights: Array, covariance_weights: Array, n_components: int | None
) -> PrincipalComponents:
    """Eigenfunctions of Σ nβ_i (φ(x_i) − μ) ⊗ (φ(x_i) − μ) from a Gram matrix that is not centred, and not modified.

    The weights β of the covariance may have any sign; 1/n each is plain kernel PCA. Without ``n_components`` all
    components with a positive eigenvalue are found; where there are fewer, the others have eigenvalue and
    coefficients 0.
    """
    B = len(K) * covariance_weights
    pairs = _standard_form(_eigen_pairs(K, mean_weights, B, n_components), n_components)
    # A direction Σ_j c_j (φ(x_j) − μ) with μ = Σ_i β_i φ(x_i) has coefficients c − β·Σ_j c_j at φ(x_j).
    coefficients = pairs.coefficients - np.outer(mean_weights, pairs.coefficients.sum(axis=0))
    at_rows = K @ mean_weights  # μ(x_j)
    squared_norm = float(mean_weights @ at_rows)
    trace = float(B @ (np.diag(K) - 2.0 * at_rows + squared_norm))  # Σ_i B_i ‖φ(x_i) − μ‖²
    explained = pairs.values / trace if trace > 0 else np.zeros_like(pairs.values)
    shift = at_rows @ coefficients
    return PrincipalComponents(pairs.values, coefficients, mean_weights, shift, squared_norm, explained)


def is_partial(n: int, n_components: int | None) -> bool:
    """Whether so few components of so many rows come from a partial solver."""
    return n_components is not None and n > PARTIAL_ROWS and n_components <= PARTIAL_COMPONENTS


def smallest_ritz_value(K: Array) -> float:
    """The smallest of the values that a few steps of Lanczos' method find in the spectrum of a symmetric matrix.

    It bounds the smallest eigenvalue from above, and comes close to one that is well apart from the others: a matrix
    with a large negative eigenvalue is found for the price of twelve products, where a Cholesky decomposition would
    cost more than the components themselves.
    """
    basis = np.zeros((_LANCZOS_STEPS, len(K)))
    diagonal, beside = np.zeros(_LANCZOS_STEPS), np.zeros(_LANCZOS_STEPS)
    vector = np.random.default_rng(0).standard_normal(len(K))
    for step in range(_LANCZOS_STEPS):
        basis[step] = vector / np.linalg.norm(vector)
        vector = _symmetric_product(K, basis[step])
        diagonal[step] = basis[step] @ vector
        vector = vector - basis.T @ (basis @ vector)  # against all, since rounding brings earlier vectors back
        beside[step] = np.linalg.norm(vector)
        if beside[step] <= len(K) * np.finfo(np.float64).eps * np.abs(diagonal).max():
            break  # the vectors span all that the start has a part in
    return float(eigvalsh_tridiagonal(diagonal[: step + 1], beside[:step]).min())


def _standard_form(pairs: _EigenPairs, n_components: int | None) -> _EigenPairs:
    """Eigenvalues that are negative or vanish to rounding as 0, or left out; the largest coefficient positive."""
    values, coefficients = pairs
    positive = above_rounding(values, len(coefficients))
    kept = max(np.count_nonzero(positive), 1) if n_components is None else n_components
    values, coefficients = np.where(positive, values, 0.0)[:kept], np.where(positive, coefficients, 0.0)[:, :kept]
    return _EigenPairs(values, coefficients * signs(coefficients))


def _eigen_pairs(K: Array, mean_weights: Array, B: Array, n_components: int | None) -> _EigenPairs:
    if (B < 0).any():
        return _indefinite(K, mean_weights, B)
    if n_components is not None and is_partial(len(K), n_components):
        return _partial(K, mean_weights, np.sqrt(B), n_components)
    return _whole(K, mean_weights, np.sqrt(B))


def _whole(K: Array, mean_weights: Array, root: Array) -> _EigenPairs:
    """All pairs of B^½ K^c B^½: for an eigenvector q to ν the direction has coefficients B^½ q/√ν."""
    scaled = K.copy()
    center_gram(scaled, mean_weights)
    scaled *= root
    scaled *= root[:, None]
    values, q = eigh(scaled.T, driver="evd", overwrite_a=True, check_finite=False)
    return _directions(values[::-1], q[:, ::-1], root)


def _partial(K: Array, mean_weights: Array, root: Array, n_components: int) -> _EigenPairs:
    """The leading pairs of B^½ K^c B^½ by Lanczos' method with restarts, K^c never formed."""
    offsets = K @ mean_weights
    squared_norm = mean_weights @ offsets

    def multiply(q: Array) -> Array:
        # K^c v = K v − (Kβ)(1ᵀv) − 1(βᵀK v) + ‖μ‖² 1(1ᵀv), and βᵀKv is offsets @ v.
        v = root * q.ravel()
        total = v.sum()
        return root * (_symmetric_product(K, v) - offsets * total - offsets @ v + squared_norm * total)

    operator = LinearOperator(K.shape, matvec=multiply, dtype=np.float64)
    start, basis = np.random.default_rng(0).standard_normal(len(K)), max(2 * n_components + 1, 20)
    values, q = eigsh(operator, k=n_components, which="LA", v0=start, ncv=basis, tol=_RESIDUAL)
    order = np.argsort(-values)
    return _directions(values[order], q[:, order], root)


def _symmetric_product(K: Array, v: Array) -> Array:
    """Kv, for which one triangle of K is read."""
    return np.asarray(dsymv(1.0, K if K.flags.f_contiguous else K.T, v, lower=1))


def _directions(values: Array, q: Array, root: Array) -> _EigenPairs:
    scale = np.sqrt(np.where(values > 0, values, 1.0))
    return _EigenPairs(values, root[:, None] * q / scale)


def _indefinite(K: Array, mean_weights: Array, B: Array) -> _EigenPairs:
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
    return _EigenPairs(np.append(values[::-1], np.zeros(len(K) - len(root))), coefficients)
