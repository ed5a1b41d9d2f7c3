"""Spectral shrinkage of a kernel mean: F-KMSE, and filters like it."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from muhat.features.nystroem import Nystroem, pivoted_cholesky
from muhat.features.plan import SketchPlan
from muhat.features.sums import MeanChoice
from muhat.kernels.base import Kernel
from muhat.kernels.radial import Gaussian
from muhat.linalg import gram
from muhat.linalg.resources import check_memory, memory_budget
from muhat.linalg.spectrum import Spectrum, low_rank_spectrum, whole_spectrum
from muhat.means.base import BaseKernelMean, multiplicities_or_ones
from muhat.shrinkage.filters import Filter, Tikhonov
from muhat.shrinkage.scores import DeletionScore, Theorem4Score, given_lam, given_scale
from muhat.types import Array
from muhat.validation import check_number

DENSE_ROWS = 3000
"""Up to so many rows ``solver="auto"`` decomposes the whole Gram matrix."""


DENSE_ARRAYS = 4
"""How many n x n arrays that takes: the matrix, which becomes its eigenvectors, two for LAPACK to work on; and another
one for the search over λ."""


FIRST_RANK = 256


_SEARCHED = 600  # numbers a row that the search takes, at 33 λ at a time


class SpectralKernelMean(BaseKernelMean):
    r"""Spectral shrinkage: :math:`\hat\mu_\lambda = c \sum_k h(g_k) \langle\hat\mu, v_k\rangle v_k`.

    Each eigen-direction of the Gram matrix is shrunk by a filter h; with Tikhonov's, h(g) = g/(g+λ), this is the
    paper's F-KMSE with weights :math:`\beta = (K + \lambda I)^{-1} K 1_n`.

    Differs from the paper: λ is chosen by true deletion, where row i leaves the data and the span. The paper's
    score (Theorem 4, ``lam="theorem4"``) leaves φ(xᵢ) in the span and shrinks too much.

    Parameters
    ----------
    kernel : Kernel or "precomputed", default Gaussian()
        The kernel, or "precomputed" where X is its Gram matrix. A bandwidth "median" becomes a number in ``fit``.
    filter : Filter, default Tikhonov()
        Tikhonov, IteratedTikhonov, TruncatedSVD, Landweber or NuMethod. Leave-one-out costs O(n²) for each λ with
        Tikhonov; the others name their cost.
    lam : "loo", "theorem4" or float in [0, inf], default "loo"
        λ in Gram units: 0 is the plain average and inf the zero element.
    scale : float >= 0 or "loo", default 1.0
        The constant c; "loo" takes the leave-one-out optimum in [0, 1], together with λ.
    solver : "auto", "dense" or "low-rank", default "auto"
        "dense" decomposes the whole Gram matrix, O(n³). "low-rank" decomposes r features of the rows, O(nr²): the exact
        ones of a linear or polynomial kernel where they are few, r ≤ n/4 and r ≤ 750, else a pivoted Cholesky factor
        that approximates the matrix, with a certificate. "auto" is low-rank where that is exact, else dense to 3,000
        rows, if they fit the memory, and beyond where no rank below n/2 meets ``tol``.
    tol : float, default 1e-4
        The largest error of a low-rank estimate, relative to its norm; the rank is raised until it is met.
    memory_limit : float, optional
        Bytes that the fit may take; default six tenths of what is free.
    features : Nystroem, optional
        See :class:`KernelMean`; with Tikhonov's filter. λ by deletion goes by 1,000 of the rows.

    Attributes
    ----------
    lam_, scale_ : float
    solver_ : str
        What "auto" took.
    rank_ : int
        Eigen-directions that the estimate rests on.
    spectrum_error_ : float
        A bound of the distance to the estimate from the whole spectrum at the same λ, relative to its norm.
    kernel_, mean_, weights_, loo_score_
        See :class:`KernelMean`; weights may be negative, or larger than 1/n. With ``lam="theorem4"`` the score is
        the paper's.
    loo_path_ : ScorePath
        The score over λ as the search saw it, both limits left out; only where λ was searched.

    Examples
    --------
    >>> import muhat as mh
    >>> P = mh.paper_mixture(10, random_state=0)
    >>> X = P.sample(20, random_state=1)
    >>> kernel = mh.Gaussian(bandwidth=10.0)
    >>> truth = mh.embed(kernel, P)
    >>> means = [mh.KernelMean(kernel), mh.SpectralKernelMean(kernel)]
    >>> [round(mean.fit(X).mean_.distance(truth) ** 2, 4) for mean in means]
    [0.0499, 0.0341]
    """

    def __init__(
        self,
        kernel: Kernel | Literal["precomputed"] = Gaussian(),
        filter: Filter = Tikhonov(),
        lam: float | Literal["loo", "theorem4"] = "loo",
        scale: float | Literal["loo"] = 1.0,
        *,
        solver: Literal["auto", "dense", "low-rank"] = "auto",
        tol: float = 1e-4,
        memory_limit: float | None = None,
        features: Nystroem | None = None,
    ) -> None:
        self.kernel = kernel
        self.filter = filter
        self.lam = lam
        self.scale = scale
        self.solver = solver
        self.tol = tol
        self.memory_limit = memory_limit
        self.features = features

    def _sketch_plan(self) -> SketchPlan:
        if not isinstance(self.filter, Tikhonov):
            raise ValueError(f"filter={self.filter!r} cannot be used with features; use Tikhonov()")
        self._given_lam()
        given_scale(self.scale, self.lam)
        return SketchPlan(self.lam, self.scale)

    def _store_choice(self, choice: MeanChoice) -> None:
        self.lam_, self.scale_, self._known_loo_score = choice.lam, choice.scale, choice.score
        self.loo_path_ = None

    def _estimate(self, points: Array, repetitions: Array) -> None:
        present = repetitions > 0
        rows, counts = points if present.all() else points[present], repetitions[present]
        self._check_parameters(counts)
        self.solver_ = self._chosen_solver(rows)
        weights = None if self.solver_ == "dense" or self._has_few_features(rows) else self._low_rank_weights(rows)
        weights = self._exact_weights(rows, counts) if weights is None else weights
        everywhere = np.zeros(len(points))
        everywhere[present] = self.scale_ * weights
        self._store(points, everywhere)

    def _chosen_solver(self, rows: Array) -> str:
        if self.solver not in ("auto", "dense", "low-rank"):
            raise ValueError(f'solver={self.solver!r} must be "auto", "dense" or "low-rank"')
        check_number("tol", self.tol, low=0, open_low=True)
        n, tikhonov = len(rows), isinstance(self.filter, Tikhonov)
        exact = tikhonov and self._has_few_features(rows)
        low_rank = exact or (tikhonov and self._multiplicities is None)
        if self.solver == "low-rank" and not low_rank:
            raise ValueError('solver="low-rank" works with Tikhonov() and without sample_weight; use "dense"')
        if self.solver != "auto":
            return self.solver
        small = n <= DENSE_ROWS and DENSE_ARRAYS * 8 * n**2 <= memory_budget(self.memory_limit)
        return "low-rank" if exact or (low_rank and not small) else "dense"

    def _has_few_features(self, rows: Array) -> bool:
        """Whether the kernel has exact features, far fewer than rows and than a whole spectrum is made of."""
        return 4 * self.kernel_.exact_feature_count(rows.shape[1]) <= min(len(rows), DENSE_ROWS)

    def _exact_weights(self, rows: Array, counts: Array) -> Array:
        spectrum = self._exact_spectrum(rows, counts)
        weights = self._chosen_weights(spectrum)
        self.rank_, self.spectrum_error_ = int(np.count_nonzero(spectrum.eigenvalues)), 0.0
        if not self._repeats_rows:
            return weights
        first_copies = np.cumsum(np.append(0, counts[:-1])).astype(int)
        return np.add.reduceat(weights, first_copies)

    def _exact_spectrum(self, rows: Array, counts: Array) -> Spectrum:
        """The spectrum of the Gram matrix: that of its few features, or of the matrix itself."""
        multiplicities = None if self._multiplicities is None or self._repeats_rows else counts
        if self.solver_ == "low-rank":
            self._check_low_rank_memory(len(rows), int(self.kernel_.exact_feature_count(rows.shape[1])))
            return low_rank_spectrum(self.kernel_.exact_features(rows), multiplicities)
        if self._repeats_rows:
            rows = np.repeat(rows, counts.astype(int), axis=0)
        check_memory(DENSE_ARRAYS * 8 * len(rows) ** 2, self.memory_limit, f"{len(rows):,} rows", _REMEDY)
        return whole_spectrum(gram.dense(self.kernel_, rows), multiplicities)

    @property
    def _repeats_rows(self) -> bool:
        """Whether weights are taken literally, for filters whose refits know no weights."""
        return self._multiplicities is not None and not self.filter.takes_multiplicities

    def _chosen_weights(self, spectrum: Spectrum) -> Array:
        """Choose λ and the scale on a spectrum; weights of the mean before it is scaled."""
        lam, scale = self._given_lam(), given_scale(self.scale, self.lam)
        self.loo_path_ = None
        if lam is None or scale is None:
            score = self._selection_score(spectrum, scale)
        if lam is None:
            lam, self._known_loo_score, self.loo_path_ = score.search()
        self.lam_ = lam
        self.scale_ = score.best_scale(lam) if scale is None else scale
        return self._filtered_weights(spectrum)

    def _low_rank_weights(self, points: Array) -> Array | None:
        """Raise the rank until the estimate is within ``tol`` of its norm; None where "auto" had better be dense.

        With K̂ = LLᵀ in place of K, and r = 1ₙ − β̂, the weights are off by (K + λI)⁻¹(K − K̂)r, an element of norm at
        most ‖(K − K̂)r‖ / 2√λ. The product with K costs O(n²) time, in tiles.
        """
        n, rank = len(points), FIRST_RANK
        while True:
            rank = min(rank, n)
            self._check_low_rank_memory(n, rank)
            spectrum, L = self._low_rank(points, rank)
            weights = self._chosen_weights(spectrum)
            self.rank_ = L.shape[1]
            self.spectrum_error_ = self._relative_error(points, L, weights)
            if self.spectrum_error_ <= self.tol:
                return weights
            if rank >= n / 2 and self.solver == "auto":
                self.solver_ = "dense"
                return None
            if rank >= n / 2:
                raise ValueError(
                    f"tol={self.tol:g} cannot be met: at rank {rank} of {n} rows the estimate is known to "
                    f'{self.spectrum_error_:.2g} of its norm; raise tol, widen the kernel, or use solver="dense"'
                )
            rank *= 2

    def _check_low_rank_memory(self, n: int, rank: int) -> None:
        """Of the factor, a copy of it, the eigenvectors and their squares."""
        needed = 8 * n * (4 * rank + _SEARCHED)
        check_memory(needed, self.memory_limit, f"{n:,} rows at rank {rank}", _REMEDY)

    def _low_rank(self, points: Array, rank: int) -> tuple[Spectrum, Array]:
        _, L, residual_trace = pivoted_cholesky(self.kernel_, points, rank)
        L = L if L.shape[1] else np.zeros((len(points), 1))
        return low_rank_spectrum(L, residual_trace=residual_trace), L

    def _relative_error(self, points: Array, L: Array, weights: Array) -> float:
        if self.lam_ == 0 or np.isinf(self.lam_):
            return 0.0
        residual = 1.0 / len(points) - weights
        products = gram.product(self.kernel_, points, points, np.column_stack([residual, weights]))
        norm = np.sqrt(max(float(weights @ products[:, 1]), np.finfo(float).tiny))
        return float(np.linalg.norm(products[:, 0] - L @ (L.T @ residual)) / (2.0 * np.sqrt(self.lam_)) / norm)

    def _given_lam(self) -> float | None:
        if not isinstance(self.filter, Filter):
            raise ValueError(f"filter={self.filter!r} must be a filter object such as muhat.Tikhonov()")
        if isinstance(self.lam, str) and self.lam == "theorem4" and not isinstance(self.filter, Tikhonov):
            raise ValueError(f'lam="theorem4" is a score of Tikhonov\'s filter; with {self.filter!r} use lam="loo"')
        return given_lam(self.lam)

    def _check_parameters(self, repetitions: Array) -> None:
        self._given_lam()
        given_scale(self.scale, self.lam)
        if self._repeats_rows and (repetitions != np.rint(repetitions)).any():
            raise ValueError(f"sample_weight must be whole numbers with {self.filter!r}; for others use Tikhonov()")
        if self._multiplicities is not None and (repetitions < 1).any():
            raise ValueError(
                f"sample_weight={repetitions.min():g} is too small: this estimator leaves whole rows out, so that "
                f"weights must be 0 or at least 1; multiply them by a constant"
            )

    def _selection_score(self, spectrum: Spectrum, scale: float | None) -> Any:
        if self.lam == "theorem4":
            return Theorem4Score(spectrum)
        return DeletionScore(spectrum, self.filter.refits(spectrum), scale)

    def _filtered_weights(self, spectrum: Spectrum) -> Array:
        if self.lam_ == 0:
            return spectrum.repetitions / spectrum.n
        if np.isinf(self.lam_):
            return np.zeros(len(spectrum.diagonal))
        return spectrum.weights(self.filter(spectrum.eigenvalues * spectrum.unit, self.lam_))

    def _compute_loo_score(self) -> float:
        points = self.mean_.measures[0].points
        repetitions = multiplicities_or_ones(points, self._multiplicities)
        present = repetitions > 0
        if self.solver_ == "dense" or self._has_few_features(points[present]):
            spectrum = self._exact_spectrum(points[present], repetitions[present])
        else:
            spectrum, _ = self._low_rank(points, self.rank_)
        score = DeletionScore(spectrum, self.filter.refits(spectrum), self.scale_)
        return float(score.at(self.lam_)[0])


_REMEDY = 'use solver="low-rank" with a larger tol, ShrunkKernelMean, or fewer rows; or raise memory_limit'
