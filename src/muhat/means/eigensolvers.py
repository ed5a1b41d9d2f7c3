"""Choice among eigensolvers of a Gram matrix: dense, exact features, or low rank with a certificate."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeVar

import numpy as np

from muhat._support.types import Array
from muhat._support.validation import check_number
from muhat.grams import ARRAYS_OF_WHOLE_SPECTRUM, Gram, PairGram, check_low_rank_memory
from muhat.kernels.tiles import BLOCK
from muhat.linalg.resources import memory_budget
from muhat.linalg.spectrum import Spectrum
from muhat.means.base import MeanFit

MAX_ROWS_FOR_WHOLE_SPECTRUM = 3000
"""Up to this many rows ``solver="auto"`` decomposes the whole Gram matrix, which takes seconds."""

FIRST_RANK = 256
"""The rank at which the low-rank solver starts; it is doubled until the estimate is close enough."""

MAX_ROWS_TO_CERTIFY = 300_000
"""Up to this many rows ``solver="auto"`` certifies a low rank, by n² kernel values for each rank that it tries."""

Fit = TypeVar("Fit", bound=MeanFit)


class Eigensolver(NamedTuple):
    """How a Gram matrix is decomposed.

    The solver "auto" is low-rank where that is exact, else dense where it suits, else low-rank and at last dense.
    ``tol`` is the largest error of an estimate, relative to its norm, and ``memory_limit`` the bytes that may be taken.
    """

    solver: str = "auto"
    tol: float = 1e-4
    memory_limit: float | None = None

    def spectra(self, G: Gram, low_rank: bool = True) -> Iterator[Spectrum]:
        """Return spectra of G that come closer and closer, to be tried in turn; refuse at once what cannot be done.

        A pivoted Cholesky factor takes no counts, and only Tikhonov's filter can make use of a ``low_rank``.
        """
        if self.solver not in ("auto", "dense", "low-rank"):
            raise ValueError(f'solver={self.solver!r} must be "auto", "dense" or "low-rank"')
        check_number("tol", self.tol, low=0, open_low=True)
        if not isinstance(G, PairGram):
            return iter([G.spectrum()])
        n, few = len(G), low_rank and G.few_features() is not None
        possible = few or (low_rank and G.counts is None)
        if self.solver == "low-rank" and not possible:
            raise ValueError('solver="low-rank" works with Tikhonov() and without sample_weight. Use "dense"')
        tries = [("dense", n)]
        if self.solver == "low-rank" or (self.solver == "auto" and possible and (few or not self._suits_dense(n))):
            ranks = [FIRST_RANK]
            while not few and ranks[-1] < n / 2:
                ranks.append(2 * ranks[-1])
            if not few:
                self._check_certifiable(n)
                check_low_rank_memory(n, min(FIRST_RANK, n), self.memory_limit)
            tries = [("low-rank", rank) for rank in ranks] + ([] if few or self.solver == "low-rank" else tries)
        return (G.spectrum(solver, rank, memory_limit=self.memory_limit) for solver, rank in tries)

    def first(self, spectra: Iterable[Spectrum], estimate: Callable[[Spectrum], Fit]) -> Fit:
        """Return the first estimate from the spectra whose ``spectrum_error`` is within ``tol``."""
        for spectrum in spectra:
            fit = estimate(spectrum)
            if fit.chosen["spectrum_error"] <= self.tol:
                return fit
        raise ValueError(
            f"tol={self.tol:g} cannot be met: at rank {fit.chosen['rank']} of {len(fit.weights)} rows the estimate is "
            f"known to {fit.chosen['spectrum_error']:.2g} of its norm. Raise tol, widen the kernel, or use "
            f'solver="dense"'
        )

    def _suits_dense(self, n: int) -> bool:
        """Whether this many rows are few enough, and fit into the memory."""
        if n > MAX_ROWS_FOR_WHOLE_SPECTRUM or (n <= BLOCK and self.memory_limit is None):
            return n <= MAX_ROWS_FOR_WHOLE_SPECTRUM
        return ARRAYS_OF_WHOLE_SPECTRUM * 8 * n**2 <= memory_budget(self.memory_limit)

    def _check_certifiable(self, n: int) -> None:
        """Refuse rows that would take hours, unless the low rank was asked for by name."""
        if self.solver == "auto" and n > MAX_ROWS_TO_CERTIFY:
            raise ValueError(
                f"{n:,} rows would take {float(n) ** 2:.0e} kernel values for each rank that is tried; use "
                "MeanSketch(Nystroem()), ShrunkKernelMean or a random part of the rows, or wait for it "
                'with solver="low-rank"'
            )


AUTO = Eigensolver()


def certificate(G: Gram, L: Array, weights: Array, lam: float) -> float:
    """A bound of the distance of Tikhonov's mean by K̂ = LLᵀ to that by K, relative to its norm."""
    # The weights β̂ solve (K̂ + λI) β̂ = K̂ 1ₙ. With r = 1ₙ − β̂ they are off by (K + λI)⁻¹(K − K̂) r, an element of norm
    # at most ‖(K − K̂) r‖ / 2√λ, because √g/(g + λ) ≤ 1/2√λ. The product with K costs O(n²) time, in tiles.
    if lam == 0 or np.isinf(lam):
        return 0.0
    residual = G.average() - weights
    products = G.matmul(np.column_stack([residual, weights]))
    norm = np.sqrt(max(float(weights @ products[:, 1]), np.finfo(float).tiny))
    missed = products[:, 0] - L @ (L.T @ residual)
    return float(np.linalg.norm(missed) / (2.0 * np.sqrt(lam)) / norm)
