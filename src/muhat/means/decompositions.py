"""Solvers for the eigendecomposition of a Gram matrix: dense, exact features, and low rank with a certificate."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, Protocol, Self

import numpy as np

from muhat.features.nystroem import pivoted_cholesky
from muhat.kernels.base import Kernel
from muhat.linalg import gram
from muhat.linalg.gram import exact_feature_count, exact_features
from muhat.linalg.resources import check_memory, memory_budget
from muhat.linalg.spectrum import Spectrum, dense_spectrum, low_rank_spectrum
from muhat.types import Array
from muhat.validation import check_overflow

MAX_ROWS_FOR_WHOLE_SPECTRUM = 3000
"""Up to this many rows ``solver="auto"`` decomposes the whole Gram matrix."""


ARRAYS_OF_WHOLE_SPECTRUM = 4
"""How many n × n arrays that takes: the matrix, which becomes its eigenvectors, two for LAPACK to work on; and another
one for the search over λ."""


FIRST_RANK = 256
"""The rank at which the low-rank solver starts; it is doubled until the estimate is close enough."""


_SEARCHED = 600  # numbers a row that the search takes, at 33 λ at a time


_REMEDY = 'use solver="low-rank" with a larger tol, ShrunkKernelMean, or fewer rows; or raise memory_limit'


class Decomposition(NamedTuple):
    """A spectrum, how many eigen-directions it has, and how far a mean that is made of it may be off.

    ``relative_error(weights, lam)`` bounds the distance of the filtered mean with these weights to that of the whole
    spectrum at the same λ, relative to its norm.
    """

    spectrum: Spectrum
    rank: int
    relative_error: Callable[[Array, float], float]


def exact(spectrum: Spectrum) -> Decomposition:
    """A spectrum that is the whole of it."""
    return Decomposition(spectrum, int(np.count_nonzero(spectrum.eigenvalues)), lambda weights, lam: 0.0)


class Solver(Protocol):
    """A way to the spectrum: one decomposition, or several that come closer and closer."""

    @property
    def name(self) -> str:
        """What ``solver_`` says."""

    def decompositions(self, kernel: Kernel, rows: Array, counts: Array | None) -> Iterator[Decomposition]:
        """Decompositions of the Gram matrix of the rows, the last one the best."""

    def at_rank(self, rank: int) -> Self:
        """This solver, such that its first decomposition has the given rank."""


@dataclass(frozen=True)
class DenseSolver:
    """The whole Gram matrix, in O(n³); ``arrays`` matrices of its size must fit into the memory."""

    memory_limit: float | None = None
    arrays: int = ARRAYS_OF_WHOLE_SPECTRUM
    name: ClassVar[str] = "dense"

    def suits(self, n: int) -> bool:
        """Whether this many rows are few enough, and fit into the memory."""
        if n > MAX_ROWS_FOR_WHOLE_SPECTRUM or (n <= gram.BLOCK and self.memory_limit is None):
            return n <= MAX_ROWS_FOR_WHOLE_SPECTRUM
        return ARRAYS_OF_WHOLE_SPECTRUM * 8 * n**2 <= memory_budget(self.memory_limit)

    def decompositions(self, kernel: Kernel, rows: Array, counts: Array | None) -> Iterator[Decomposition]:
        spectrum = dense_spectrum(
            kernel, rows, counts, arrays=self.arrays, memory_limit=self.memory_limit, remedy=_REMEDY
        )
        yield exact(spectrum)

    def at_rank(self, rank: int) -> Self:
        return self


def has_few_features(kernel: Kernel, rows: Array) -> bool:
    """Whether the kernel has exact features, far fewer than rows and than a whole spectrum is made of."""
    return 4 * exact_feature_count(kernel, rows.shape[1]) <= min(len(rows), MAX_ROWS_FOR_WHOLE_SPECTRUM)


@dataclass(frozen=True)
class FeatureSolver:
    """The r exact features of a kernel that has few, in O(nr²)."""

    memory_limit: float | None = None
    name: ClassVar[str] = "low-rank"

    def decompositions(self, kernel: Kernel, rows: Array, counts: Array | None) -> Iterator[Decomposition]:
        with np.errstate(over="ignore"):
            check_overflow(kernel, kernel.diagonal(rows))
        _check_low_rank_memory(len(rows), int(exact_feature_count(kernel, rows.shape[1])), self.memory_limit)
        yield exact(low_rank_spectrum(exact_features(kernel, rows), counts))

    def at_rank(self, rank: int) -> Self:
        return self


@dataclass(frozen=True)
class CholeskySolver:
    """A pivoted Cholesky factor L of rank r, K ≈ LLᵀ, in O(nr²); the rank is doubled up to n/2. It takes no counts."""

    memory_limit: float | None = None
    first_rank: int | None = None
    name: ClassVar[str] = "low-rank"

    def decompositions(self, kernel: Kernel, rows: Array, counts: Array | None) -> Iterator[Decomposition]:
        n = len(rows)
        rank = FIRST_RANK if self.first_rank is None else self.first_rank
        while True:
            rank = min(rank, n)
            _check_low_rank_memory(n, rank, self.memory_limit)
            _, L, residual_trace = pivoted_cholesky(kernel, rows, rank)
            L = L if L.shape[1] else np.zeros((n, 1))
            certificate = _Certificate(kernel, rows, L)
            yield Decomposition(low_rank_spectrum(L, residual_trace=residual_trace), L.shape[1], certificate)
            if rank >= n / 2:
                return
            rank *= 2

    def at_rank(self, rank: int) -> Self:
        return replace(self, first_rank=rank)


@dataclass(frozen=True)
class _Certificate:
    """How far Tikhonov's mean by K̂ = LLᵀ is from that by K.

    With r = 1ₙ − β̂, the weights are off by (K + λI)⁻¹(K − K̂)r, an element of norm at most ‖(K − K̂)r‖ / 2√λ. The
    product with K costs O(n²) time, in tiles.
    """

    kernel: Kernel
    rows: Array
    L: Array

    def __call__(self, weights: Array, lam: float) -> float:
        if lam == 0 or np.isinf(lam):
            return 0.0
        residual = 1.0 / len(self.rows) - weights
        both = np.column_stack([residual, weights])
        products = gram.product(self.kernel, self.rows, self.rows, both)
        norm = np.sqrt(max(float(weights @ products[:, 1]), np.finfo(float).tiny))
        missed = products[:, 0] - self.L @ (self.L.T @ residual)
        return float(np.linalg.norm(missed) / (2.0 * np.sqrt(lam)) / norm)


def _check_low_rank_memory(n: int, rank: int, memory_limit: float | None) -> None:
    """Of the factor, a copy of it, the eigenvectors and their squares."""
    check_memory(8 * n * (4 * rank + _SEARCHED), memory_limit, f"{n:,} rows at rank {rank}", _REMEDY)
