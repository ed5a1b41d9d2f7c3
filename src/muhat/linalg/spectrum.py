"""Eigendecomposition of a Gram matrix, rescaled so that its mean diagonal is about 1."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import svd
from scipy.linalg.lapack import dsyevd

from muhat._support.types import Array
from muhat.linalg.distances import power_of_two_near

NEAR_TIE = 1e-6
"""Magnitudes this close to the largest, relative to it, count as equal: far above rounding, and far below noise."""


def signs(vectors: Array) -> Array:
    """The sign, for each column, that makes its largest entry positive; of entries as large, to rounding, the first.

    Eigenvectors and singular vectors have no sign of their own, and processors return either. Every public coordinate
    that comes from them has this one.

    >>> vectors = np.array([[1.0, -2.0], [-3.0, 2.0]])
    >>> vectors * signs(vectors)
    array([[-1.,  2.],
           [ 3., -2.]])
    """
    sizes = np.abs(vectors)
    largest = (sizes >= (1.0 - NEAR_TIE) * sizes.max(axis=0, initial=0.0)).argmax(axis=0)
    return np.where(vectors[largest, np.arange(vectors.shape[1])] < 0, -1.0, 1.0)


def above_rounding(eigenvalues: Array, n: int) -> NDArray[np.bool_]:
    """Which eigenvalues of an n x n matrix lie above the rounding error of the largest, n·ε·g_max."""
    return eigenvalues > n * np.finfo(np.float64).eps * eigenvalues.max(initial=0.0)


class Spectrum:
    """K / unit = U diag(g) Uᵀ, K with entry (i, j) times the root of the counts of rows i and j.

    ``unit`` is a power of two, so that no digit changes and no data is too large or too small to be squared.

    The r eigenvalues g ascend. Where r < n, eigenvectors with the eigenvalue 0 are left out, and ``complete`` is false.
    ``diagonal`` holds k(x, x) / unit of each row, and ``left_out`` what a low-rank approximation leaves out of its mean
    ϱ = ``mean_diag``, a constant of every score; ρ = ``mean_gram`` is that over all pairs. ``ones`` is â, the vector
    of ones (of roots of counts) in the basis of eigenvectors, and n the number of rows, repetitions counted. ``factor``
    is L where K is known as LLᵀ up to an error.
    """

    solver = "dense"
    factor: Array | None = None

    def __init__(
        self,
        eigenvalues: Array,
        eigenvectors: Array,
        diagonal: Array,
        unit: float,
        counts: Array | None = None,
        left_out: float = 0.0,
    ) -> None:
        self.eigenvalues, self.eigenvectors, self.diagonal, self.unit = eigenvalues, eigenvectors, diagonal, unit
        self.weighted = counts is not None
        self.counts = np.ones(len(diagonal)) if counts is None else counts
        self.left_out = left_out
        self.n = float(self.counts.sum())
        self.ones: Array = eigenvectors.T @ np.sqrt(self.counts)
        self.top = float(eigenvalues.max(initial=0.0))
        self.mean_diag = float(self.counts @ diagonal / self.n)
        self.mean_gram = float(eigenvalues @ self.ones**2 / self.n**2)
        self.complete = eigenvectors.shape[1] == len(diagonal)

    @property
    def rank(self) -> int:
        """Number of eigen-directions."""
        return int(np.count_nonzero(self.eigenvalues)) if self.factor is None else self.factor.shape[1]

    @cached_property
    def squared_eigenvectors(self) -> Array:
        """U∘U."""
        return self.eigenvectors**2

    def gram(self) -> Array:
        """The matrix that was decomposed, put together again."""
        return (self.eigenvectors * self.eigenvalues) @ self.eigenvectors.T

    def squared_norm(self, weights: Array) -> float:
        """βᵀKβ, in the units of K, for weights β of rows that count once each."""
        return float(self.unit * (self.eigenvalues @ (self.eigenvectors.T @ weights) ** 2))

    def weights(self, filter: Callable[[Array, float], Array], lam: float) -> Array:
        """Weights β of the mean whose share in each eigen-direction is multiplied by ``filter(eigenvalues, lam)``.

        λ is in the units of the data. At λ = 0 they are those of the plain average, and at λ = ∞ zero. For Tikhonov's
        filter this is equation 5 of the paper, and in terms of elements Theorem 2.
        """
        if lam == 0:
            return self.counts / self.n
        if np.isinf(lam):
            return np.zeros(len(self.diagonal))
        factors = filter(self.eigenvalues * self.unit, lam)
        return np.sqrt(self.counts) * (self.eigenvectors @ (factors * self.ones)) / self.n


def whole_spectrum(K: Array, counts: Array | None = None) -> Spectrum:
    """Decompose K, which becomes the eigenvectors: besides it LAPACK works on two more arrays of that size."""
    diagonal = np.diag(K).copy()
    unit = power_of_two_near(float(np.average(diagonal, weights=counts)))
    if unit != 1.0:
        K /= unit
    if counts is not None:
        root = np.sqrt(counts)
        K *= root
        K *= root[:, None]
    eigenvalues, eigenvectors, failed = dsyevd(K.T, lower=1, overwrite_a=True)
    if failed:
        raise np.linalg.LinAlgError(f"the eigendecomposition of a {len(K)} x {len(K)} Gram matrix did not converge")
    eigenvalues = np.where(above_rounding(eigenvalues, len(K)), eigenvalues, 0.0)
    return Spectrum(eigenvalues, eigenvectors, diagonal / unit, unit, counts)


def low_rank_spectrum(L: Array, counts: Array | None = None, residual_trace: float | None = None) -> Spectrum:
    """The spectrum of LLᵀ in O(nr²), L of shape (n, r), 1 ≤ r ≤ n; K is LLᵀ, or that and a part of the given trace.

    Of the eigenpairs with the eigenvalue 0 all but r are left out.
    """
    diagonal = np.einsum("ij,ij->i", L, L)
    unit = power_of_two_near(float(np.average(diagonal, weights=counts)))
    root = np.ones(len(L)) if counts is None else np.sqrt(counts)
    U, singular, _ = thin_svd(root[:, None] * L)
    eigenvalues = (singular[::-1] / np.sqrt(unit)) ** 2
    eigenvalues = np.where(above_rounding(eigenvalues, len(L)), eigenvalues, 0.0)
    eigenvectors, left_out = np.ascontiguousarray(U[:, ::-1]), (residual_trace or 0.0) / unit / len(L)
    spectrum = Spectrum(eigenvalues, eigenvectors, diagonal / unit, unit, counts, left_out)
    spectrum.solver, spectrum.factor = "low-rank", None if residual_trace is None else L
    return spectrum


class SampledSpectrum(Spectrum):
    """Spectrum of ZZᵀ from ZᵀZ / unit = V diag(g) Vᵀ, with n, ϱ / unit and the average of the features of all rows.

    Its eigenvectors are known on some ``rows`` of Z, perhaps on none, and weights are coefficients of features.
    """

    solver = "features"

    def __init__(
        self,
        eigenvalues: Array,
        basis: Array,
        unit: float,
        average: Array,
        n: float,
        mean_diag: float,
        rows: Array,
        counts: Array | None = None,
    ) -> None:
        root = basis / np.sqrt(unit * eigenvalues)  # U = Z V g^(−½)
        self.basis, self.average = basis, average
        self.eigenvalues, self.eigenvectors, self.unit = eigenvalues, rows @ root, unit
        self.weighted, self.counts = counts is not None, np.ones(len(rows)) if counts is None else counts
        self.n, self.ones, self.mean_diag, self.left_out = n, root.T @ (n * average), mean_diag, 0.0
        self.diagonal = np.full(len(rows), mean_diag)
        self.top = float(eigenvalues.max(initial=0.0))
        self.mean_gram = float(eigenvalues @ self.ones**2 / n**2)
        self.complete = False

    def weights(self, filter: Callable[[Array, float], Array], lam: float) -> Array:
        if lam == 0 or np.isinf(lam):
            return self.average if lam == 0 else 0.0 * self.average
        weights: Array = self.basis @ (filter(self.eigenvalues * self.unit, lam) * (self.basis.T @ self.average))
        return weights


def thin_svd(A: Array) -> tuple[Array, Array, Array]:
    """U, the singular values and Vᵀ of a finite matrix, of its smaller size.

    LAPACK's fast driver (gesdd) does not converge for some valid matrices; the slower one (gesvd) finds those.
    """
    try:
        U, values, Vt = svd(A, full_matrices=False, check_finite=False)
    except np.linalg.LinAlgError:
        U, values, Vt = svd(A, full_matrices=False, check_finite=False, lapack_driver="gesvd")
    return U, values, Vt
