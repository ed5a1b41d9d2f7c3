"""Eigenpairs of a Gram matrix, in units in which its mean diagonal is about 1."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.linalg import eigh, svd

from muhat.linalg.distances import power_of_two_near
from muhat.types import Array


@dataclass(frozen=True, eq=False)
class Spectrum:
    """K / unit = U diag(g) Uᵀ, K with entry (i, j) times the root of the multiplicities of rows i and j.

    ``unit`` is a power of two, so that no digit changes and no data is too large or too small to be squared.
    """

    eigenvalues: Array
    eigenvectors: Array
    diagonal: Array
    unit: float
    multiplicities: Array | None = None
    left_out: float = field(default=0.0, kw_only=True)
    """What a low-rank approximation leaves out of the mean of k(x, x): a constant of every score."""

    @property
    def n(self) -> float:
        """Number of rows, repetitions counted."""
        return float(len(self.diagonal) if self.multiplicities is None else self.multiplicities.sum())

    @property
    def repetitions(self) -> Array:
        """Multiplicity of each row."""
        return np.ones(len(self.diagonal)) if self.multiplicities is None else self.multiplicities

    @property
    def complete(self) -> bool:
        """Whether the eigenvectors are a basis, so that none with the eigenvalue 0 are left out."""
        return self.eigenvectors.shape[1] == len(self.diagonal)

    @property
    def top(self) -> float:
        """The largest eigenvalue."""
        return float(self.eigenvalues[-1])

    @property
    def mean_diag(self) -> float:
        """ϱ: the mean of k(x, x)."""
        return float(self.repetitions @ self.diagonal / self.n)

    @property
    def mean_gram(self) -> float:
        """ρ: the mean of k(x, x') over all pairs."""
        return float(self.eigenvalues @ self.ones**2 / self.n**2)

    @cached_property
    def ones(self) -> Array:
        """â: the vector of ones in the basis of eigenvectors."""
        return self.eigenvectors.T @ np.sqrt(self.repetitions)

    @cached_property
    def squared_eigenvectors(self) -> Array:
        """U∘U."""
        return self.eigenvectors**2

    def gram(self) -> Array:
        """The matrix that was decomposed, put together again."""
        return (self.eigenvectors * self.eigenvalues) @ self.eigenvectors.T

    def weights(self, factors: Array) -> Array:
        """Weights β of the mean whose share in each eigen-direction is multiplied by ``factors``."""
        return np.sqrt(self.repetitions) * (self.eigenvectors @ (factors * self.ones)) / self.n


def whole_spectrum(K: Array, multiplicities: Array | None = None) -> Spectrum:
    """Decompose K, which becomes the eigenvectors: besides it LAPACK works on two more arrays of that size."""
    diagonal = np.diag(K).copy()
    repetitions = np.ones(len(K)) if multiplicities is None else multiplicities
    unit = power_of_two_near(float(repetitions @ diagonal / repetitions.sum()))
    if unit != 1.0:
        K /= unit
    if multiplicities is not None:
        root = np.sqrt(multiplicities)
        K *= root
        K *= root[:, None]
    eigenvalues, eigenvectors = eigh(K.T, driver="evd", overwrite_a=True, check_finite=False)
    return Spectrum(_without_rounding(eigenvalues, len(K)), eigenvectors, diagonal / unit, unit, multiplicities)


def low_rank_spectrum(L: Array, multiplicities: Array | None = None, residual_trace: float = 0.0) -> Spectrum:
    """The spectrum of LLᵀ, which is K but for a part of the given trace, in O(nr²); L of shape (n, r), 1 ≤ r ≤ n.

    Of the eigenpairs with the eigenvalue 0 all but r are left out.
    """
    diagonal = np.einsum("ij,ij->i", L, L)
    repetitions = np.ones(len(L)) if multiplicities is None else multiplicities
    unit = power_of_two_near(float(repetitions @ diagonal / repetitions.sum()))
    U, singular, _ = svd(np.sqrt(repetitions)[:, None] * L, full_matrices=False, overwrite_a=True, check_finite=False)
    eigenvalues = _without_rounding((singular[::-1] / np.sqrt(unit)) ** 2, len(L))
    eigenvectors, left_out = np.ascontiguousarray(U[:, ::-1]), residual_trace / unit / len(L)
    return Spectrum(eigenvalues, eigenvectors, diagonal / unit, unit, multiplicities, left_out=left_out)


def _without_rounding(eigenvalues: Array, n: int) -> Array:
    """Ascending eigenvalues with those set to 0 that lie below the rounding error of the largest, n·ε."""
    rounding = n * np.finfo(np.float64).eps * max(eigenvalues[-1], 0.0)
    return np.where(eigenvalues > rounding, eigenvalues, 0.0)
