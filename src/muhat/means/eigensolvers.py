"""Solvers for the eigendecomposition of a Gram matrix: dense, exact features, and low rank with a certificate."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from muhat._support.types import Array
from muhat._support.validation import check_number, check_overflow
from muhat.features.nystroem import pivoted_cholesky
from muhat.kernels.base import Kernel
from muhat.linalg import gram
from muhat.linalg.gram import exact_feature_count, exact_features
from muhat.linalg.resources import check_memory, memory_budget
from muhat.linalg.spectrum import Spectrum, low_rank_spectrum, whole_spectrum

MAX_ROWS_FOR_WHOLE_SPECTRUM = 3000
"""Up to this many rows ``solver="auto"`` decomposes the whole Gram matrix."""


ARRAYS_OF_WHOLE_SPECTRUM = 4
"""How many n × n arrays that takes: the matrix, which becomes its eigenvectors, two for LAPACK to work on; and another
one for the search over λ."""


FIRST_RANK = 256
"""The rank at which the low-rank solver starts; it is doubled until the estimate is close enough."""


MAX_ROWS_TO_CERTIFY = 300_000
"""Up to this many rows ``solver="auto"`` certifies a low rank, by n² kernel values for each rank that it tries."""


_SEARCHED = 600  # numbers per row that the search takes, at 33 λ at a time


_REMEDY = 'use solver="low-rank" with a larger tol, ShrunkKernelMean, or fewer rows; or raise memory_limit'


class Decomposition(NamedTuple):
    """A spectrum, the solver that found it, and the factor L where it is that of LLᵀ ≈ K."""

    spectrum: Spectrum
    solver: str
    factor: Array | None = None

    @property
    def rank(self) -> int:
        """Number of eigen-directions."""
        return int(np.count_nonzero(self.spectrum.eigenvalues)) if self.factor is None else self.factor.shape[1]


def decompositions(
    kernel: Kernel,
    rows: Array,
    counts: Array | None,
    solver: str,
    tol: float,
    memory_limit: float | None,
    low_rank: bool = True,
) -> Iterator[Decomposition]:
    """Decompositions of the Gram matrix of the rows, which come closer and closer, to be tried in turn.

    What cannot be done is refused at once, before the first of them is computed. The solver "auto" is low-rank where
    that is exact, else dense where it suits, else low-rank and at last dense. A pivoted Cholesky factor takes no
    counts, and only Tikhonov's filter can make use of a ``low_rank``.
    """
    if solver not in ("auto", "dense", "low-rank"):
        raise ValueError(f'solver={solver!r} must be "auto", "dense" or "low-rank"')
    check_number("tol", tol, low=0, open_low=True)
    n = len(rows)
    few = low_rank and has_few_features(kernel, rows)
    possible = few or (low_rank and counts is None)
    if solver == "low-rank" and not possible:
        raise ValueError('solver="low-rank" works with Tikhonov() and without sample_weight. Use "dense"')
    tries = [("dense", n)]
    if solver == "low-rank" or (solver == "auto" and possible and (few or not _suits_dense(n, memory_limit))):
        ranks = [FIRST_RANK]
        while not few and ranks[-1] < n / 2:
            ranks.append(2 * ranks[-1])
        if not few:
            _check_certifiable(n, solver)
            _check_low_rank_memory(n, min(FIRST_RANK, n), memory_limit)
        tries = [("low-rank", rank) for rank in ranks] + ([] if few or solver == "low-rank" else tries)
    return (decompose(kernel, rows, counts, way, rank, memory_limit) for way, rank in tries)


def decompose(
    kernel: Kernel,
    rows: Array,
    counts: Array | None,
    solver: str,
    rank: int,
    memory_limit: float | None = None,
    more_arrays: int = 0,
) -> Decomposition:
    """One decomposition, by a solver: dense in O(n³), exact features or a Cholesky factor of rank r in O(nr²).

    ``more_arrays`` of n × n numbers must fit into the memory besides what a dense decomposition takes.
    """
    n = len(rows)
    if solver == "dense":
        arrays = ARRAYS_OF_WHOLE_SPECTRUM + more_arrays
        if memory_limit is not None or n >= gram.LARGE:
            check_memory(arrays * 8 * n**2, memory_limit, f"{n:,} rows", _REMEDY)
        return Decomposition(whole_spectrum(gram.dense(kernel, rows, arrays=arrays), counts), "dense")
    if has_few_features(kernel, rows):
        with np.errstate(over="ignore"):
            check_overflow(kernel, kernel.diagonal(rows))
        _check_low_rank_memory(n, int(exact_feature_count(kernel, rows.shape[1])), memory_limit)
        return Decomposition(low_rank_spectrum(exact_features(kernel, rows), counts), "low-rank")
    rank = min(max(rank, 1), n)
    _check_low_rank_memory(n, rank, memory_limit)
    _, L, residual_trace = pivoted_cholesky(kernel, rows, rank)
    L = L if L.shape[1] else np.zeros((n, 1))
    return Decomposition(low_rank_spectrum(L, residual_trace=residual_trace), "low-rank", L)


def has_few_features(kernel: Kernel, rows: Array) -> bool:
    """Whether the kernel has exact features, far fewer than rows and than a whole spectrum is made of."""
    return 4 * exact_feature_count(kernel, rows.shape[1]) <= min(len(rows), MAX_ROWS_FOR_WHOLE_SPECTRUM)


def certificate(kernel: Kernel, rows: Array, L: Array, weights: Array, lam: float) -> float:
    """A bound of the distance of Tikhonov's mean by K̂ = LLᵀ to that by K, relative to its norm."""
    # The weights β̂ solve (K̂ + λI) β̂ = K̂ 1ₙ. With r = 1ₙ − β̂ they are off by (K + λI)⁻¹(K − K̂) r, an element of norm
    # at most ‖(K − K̂) r‖ / 2√λ, because √g/(g + λ) ≤ 1/2√λ. The product with K costs O(n²) time, in tiles.
    if lam == 0 or np.isinf(lam):
        return 0.0
    residual = 1.0 / len(rows) - weights
    products = gram.product(kernel, rows, rows, np.column_stack([residual, weights]))
    norm = np.sqrt(max(float(weights @ products[:, 1]), np.finfo(float).tiny))
    missed = products[:, 0] - L @ (L.T @ residual)
    return float(np.linalg.norm(missed) / (2.0 * np.sqrt(lam)) / norm)


def too_inexact(tol: float, chosen: Any, n: int) -> str:
    """Message where no rank meets ``tol``."""
    return (
        f"tol={tol:g} cannot be met: at rank {chosen['rank']} of {n} rows the estimate is known to "
        f'{chosen["spectrum_error"]:.2g} of its norm. Raise tol, widen the kernel, or use solver="dense"'
    )


def _suits_dense(n: int, memory_limit: float | None) -> bool:
    """Whether this many rows are few enough, and fit into the memory."""
    if n > MAX_ROWS_FOR_WHOLE_SPECTRUM or (n <= gram.BLOCK and memory_limit is None):
        return n <= MAX_ROWS_FOR_WHOLE_SPECTRUM
    return ARRAYS_OF_WHOLE_SPECTRUM * 8 * n**2 <= memory_budget(memory_limit)


def _check_certifiable(n: int, solver: str) -> None:
    """Refuse rows that would take hours, unless the low rank was asked for by name."""
    if solver == "auto" and n > MAX_ROWS_TO_CERTIFY:
        raise ValueError(
            f"{n:,} rows would take {float(n) ** 2:.0e} kernel values for each rank that is tried; use "
            "SpectralKernelMean(features=Nystroem()), ShrunkKernelMean or a random part of the rows, or wait for it "
            'with solver="low-rank"'
        )


def _check_low_rank_memory(n: int, rank: int, memory_limit: float | None) -> None:
    """Of the factor, a copy of it, the eigenvectors and their squares."""
    check_memory(8 * n * (4 * rank + _SEARCHED), memory_limit, f"{n:,} rows at rank {rank}", _REMEDY)
