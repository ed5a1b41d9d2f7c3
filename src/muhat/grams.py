"""Gram matrices in any representation: a matrix, rows and a kernel, or sums of features.

A :class:`Gram` is all that an estimator knows of the data, so that what is written as a function of one runs on every
representation. Tiles, memory checks and exact features are behind it.

- :class:`MatrixGram`: a given matrix, as for ``kernel="precomputed"`` and for means inside other estimators.
- :class:`RowsGram`: rows and a kernel. The matrix is computed when it is asked for, and sums over it go by tiles.
- :class:`FeaturesGram`: n, Zᵀ1 and ZᵀZ in place of ZZᵀ, the sums of a sketch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.linalg import eigh

from muhat._support.types import Array
from muhat._support.validation import check_gram, check_overflow, check_precomputed
from muhat.kernels import tiles
from muhat.kernels.base import Kernel
from muhat.kernels.capabilities import exact_feature_count, exact_features
from muhat.kernels.foreign import Precomputed
from muhat.linalg.distances import power_of_two_near
from muhat.linalg.pivoted_cholesky import pivoted_factor
from muhat.linalg.resources import check_memory
from muhat.linalg.spectrum import SampledSpectrum, Spectrum, above_rounding, low_rank_spectrum, whole_spectrum
from muhat.rkhs.elements import Element
from muhat.rkhs.measures import Atoms

ARRAYS_OF_WHOLE_SPECTRUM = 4
"""How many n × n arrays a whole spectrum takes: the matrix, which becomes its eigenvectors, two for LAPACK to work on,
and one for the search over λ."""

MAX_FEATURES = 750
"""Exact features are decomposed in place of the matrix up to this many: a quarter of the rows of a whole spectrum."""

SEARCHED = 600
"""Numbers per row that the search for λ takes: 33 λ at a time, 18 arrays of them."""

_REMEDY = 'use solver="low-rank" with a larger tol, ShrunkKernelMean, or fewer rows; or raise memory_limit'


class GramAverages(NamedTuple):
    """Number of rows n, mean of the diagonal ϱ, and mean of all entries ρ of a Gram matrix, repetitions counted."""

    n: float
    mean_diag: float
    mean_gram: float


class Gram(ABC):
    """A Gram matrix K, and the space that its rows lie in.

    Weights w stand for the element Σ wᵢ φ(xᵢ), with one weight per row (per feature for :class:`FeaturesGram`). A Gram
    never changes, and what it returns must not be changed.
    """

    kind: ClassVar[str]
    """The representation, for messages."""

    solver: ClassVar[str] = "tiles"
    """How sums over the matrix are computed, as ``solver_`` reports it."""

    kernel: Kernel
    """The kernel of the space."""

    points: Array
    """The points that elements are made of."""

    @property
    @abstractmethod
    def n(self) -> float:
        """Number of rows, repetitions counted."""

    @abstractmethod
    def averages(self) -> GramAverages:
        """Compute n, ϱ and ρ."""

    @abstractmethod
    def average(self, total: float = 1.0) -> Array:
        """Return the weights of the empirical average, times ``total``."""

    @abstractmethod
    def matmul(self, W: Array) -> Array:
        """Compute K @ W, the inner products of the rows with the elements of weights W."""

    def squared_norm(self, weights: Array) -> float:
        """Compute wᵀKw, the squared norm of the element with weights w."""
        return float(weights @ self.matmul(weights))

    @abstractmethod
    def spectrum(
        self, solver: str = "dense", rank: int = 0, *, memory_limit: float | None = None, more_arrays: int = 0
    ) -> Spectrum:
        """Decompose K into eigenvalues and eigenvectors, by a solver and of a rank where there are several."""

    @abstractmethod
    def element(self, weights: Array) -> Element:
        """Return the element with these weights."""


class PairGram(Gram):
    """A Gram matrix whose entries are known; ``counts`` says how often each row counts, None for once each."""

    counts: Array | None = None
    names: Any = None

    def __len__(self) -> int:
        return len(self.points)

    @property
    def n(self) -> float:
        return float(len(self) if self.counts is None else self.counts.sum())

    @abstractmethod
    def diagonal(self) -> Array:
        """Return the values k(x, x), or raise a ValueError where sums over all pairs would overflow."""

    @abstractmethod
    def dense(self, arrays: int = 2, *, own: bool = False) -> Array:
        """Return the matrix if ``arrays`` of its size fit into memory; the caller may change it as its ``own``."""

    @abstractmethod
    def column(self, i: int) -> Array:
        """Return column i of K."""

    @abstractmethod
    def take(self, index: Any, counts: Array | None = None) -> PairGram:
        """Return the Gram matrix of some rows, perhaps several times each, with counts of their own."""

    def averages(self) -> GramAverages:
        return matrix_averages(self.dense(), self.counts)

    def average(self, total: float = 1.0) -> Array:
        n = len(self.points)
        return np.full(n, total / n) if self.counts is None else total / self.counts.sum() * self.counts

    def element(self, weights: Array) -> Element:
        return Element(self.kernel, Atoms.trusted(self.points, weights), feature_names=self.names)

    def few_features(self) -> int | None:
        """Return the number of exact features where they are far fewer than rows, else None."""
        return None

    def exact_features(self) -> Array:
        """Compute Z with K = ZZᵀ, where there are few exact features."""
        raise TypeError(f"{self.kind} has no exact features")

    def spectrum(
        self, solver: str = "dense", rank: int = 0, *, memory_limit: float | None = None, more_arrays: int = 0
    ) -> Spectrum:
        """Decompose K: "dense" in O(n³), or "low-rank" in O(nr²), by exact features or a Cholesky factor of rank r.

        ``more_arrays`` of n × n numbers must fit into memory besides what a dense decomposition takes.
        """
        n = len(self)
        if solver == "dense":
            arrays = ARRAYS_OF_WHOLE_SPECTRUM + more_arrays
            if memory_limit is not None or n >= tiles.LARGE:
                check_memory(arrays * 8 * n**2, memory_limit, f"{n:,} rows", _REMEDY)
            return whole_spectrum(self.dense(arrays, own=True), self.counts)
        diagonal, few = self.diagonal(), self.few_features()
        rank = min(max(rank, 1), n) if few is None else few
        check_low_rank_memory(n, rank, memory_limit)
        if few is not None:
            return low_rank_spectrum(self.exact_features(), self.counts)
        _, L, residual_trace = pivoted_factor(diagonal, self.column, rank)
        return low_rank_spectrum(L if L.shape[1] else np.zeros((n, 1)), residual_trace=residual_trace)


def check_low_rank_memory(n: int, rank: int, memory_limit: float | None) -> None:
    """Raise a MemoryError where the factor, a copy of it, the eigenvectors and their squares do not fit."""
    check_memory(8 * n * (4 * rank + SEARCHED), memory_limit, f"{n:,} rows at rank {rank}", _REMEDY)


class MatrixGram(PairGram):
    """A symmetric positive semi-definite matrix, taken as valid.

    Parameters
    ----------
    matrix : array of shape (n, n)
        Finite float64 numbers.
    counts : array of shape (n,), optional
        How often each row counts, positive numbers; default once each.
    names : sequence of str, optional
        Names of the columns.

    Examples
    --------
    >>> import numpy as np
    >>> import muhat as mh
    >>> mh.means.simple_mean(mh.grams.MatrixGram(np.array([[2.0, 1.0], [1.0, 2.0]]))).weights
    array([0.25, 0.25])
    """

    kind = "a Gram matrix"

    def __init__(self, matrix: Array, counts: Array | None = None, names: Any = None) -> None:
        self.matrix, self.counts, self.names = matrix, counts, names

    @cached_property
    def kernel(self) -> Kernel:  # type: ignore[override]  # a field above
        """The space of the matrix."""
        return Precomputed(self.matrix)

    @cached_property
    def points(self) -> Any:  # type: ignore[override]  # a field above
        """The rows, by number."""
        return np.arange(len(self.matrix))[:, None]

    def __len__(self) -> int:
        return len(self.matrix)

    def diagonal(self) -> Array:
        diagonal = np.diagonal(self.matrix)
        check_overflow("the Gram matrix", diagonal)
        return diagonal

    def dense(self, arrays: int = 2, *, own: bool = False) -> Array:
        return self.matrix.copy() if own else self.matrix

    def matmul(self, W: Array) -> Array:
        return self.matrix @ W

    def column(self, i: int) -> Array:
        return self.matrix[i]

    def take(self, index: Any, counts: Array | None = None) -> MatrixGram:
        part = MatrixGram(self.matrix[np.ix_(index, index)], counts, self.names)
        part.kernel, part.points = self.kernel, self.points[index]  # still points of the space of the whole matrix
        return part


class RowsGram(PairGram):
    """Rows in the space of a kernel.

    Parameters
    ----------
    kernel : Kernel
        With numbers for all its parameters: ``kernel.resolve(points)``.
    points : array of shape (n, d)
        The rows, finite float64 numbers.
    counts, names
        As for :class:`MatrixGram`.

    Examples
    --------
    >>> import numpy as np
    >>> import muhat as mh
    >>> G = mh.grams.RowsGram(mh.Linear(), np.array([[1.0], [3.0]]))
    >>> G.averages()
    GramAverages(n=2.0, mean_diag=5.0, mean_gram=4.0)
    """

    kind = "rows"

    def __init__(self, kernel: Kernel, points: Array, counts: Array | None = None, names: Any = None) -> None:
        self.kernel, self.points, self.counts, self.names = kernel, points, counts, names

    def diagonal(self) -> Array:
        with np.errstate(over="ignore"):
            diagonal = self.kernel.diagonal(self.points)
        check_overflow(self.kernel, diagonal)
        return diagonal

    def averages(self) -> GramAverages:
        if len(self.points) <= tiles.BLOCK:
            return matrix_averages(self.dense(), self.counts)
        share, diagonal = self.average(), self.diagonal()
        return GramAverages(self.n, float(share @ diagonal), max(self.squared_norm(share), 0.0))

    def dense(self, arrays: int = 2, *, own: bool = False) -> Array:
        if len(self.points) > tiles.BLOCK:
            return tiles.dense(self.kernel, self.points, arrays=arrays)
        with np.errstate(over="ignore", invalid="ignore"):
            K = self.kernel.evaluate(self.points, self.points)
        check_overflow(self.kernel, np.diagonal(K))
        return K

    def matmul(self, W: Array) -> Array:
        return tiles.product(self.kernel, self.points, self.points, W)

    def squared_norm(self, weights: Array) -> float:
        return tiles.quadratic_form(self.kernel, self.points, weights)

    def column(self, i: int) -> Array:
        return self.kernel.evaluate(self.points[[i]], self.points)[0]

    def take(self, index: Any, counts: Array | None = None) -> RowsGram:
        return RowsGram(self.kernel, self.points[index], counts, self.names)

    def few_features(self) -> int | None:
        count = exact_feature_count(self.kernel, self.points.shape[1])
        return int(count) if count <= min(len(self.points) / 4, MAX_FEATURES) else None

    def exact_features(self) -> Array:
        return exact_features(self.kernel, self.points)


def matrix_averages(K: Array, counts: Array | None = None) -> GramAverages:
    """n, ϱ and ρ of a matrix."""
    if counts is None:
        return GramAverages(float(len(K)), float(K.trace() / len(K)), max(float(K.mean()), 0.0))
    share = counts / counts.sum()
    return GramAverages(float(counts.sum()), float(share @ np.diagonal(K)), max(float(share @ K @ share), 0.0))


@dataclass(frozen=True, eq=False)
class FeatureSums:
    """Sums over n rows z of features: Zᵀ1, tr ZᵀZ and, for spectral shrinkage, ZᵀZ."""

    n: int
    total: Array
    squares: float
    moment: Array | None = None

    def plus(self, other: FeatureSums) -> FeatureSums:
        """Add other sums."""
        moment = None if self.moment is None or other.moment is None else self.moment + other.moment
        return FeatureSums(self.n + other.n, self.total + other.total, self.squares + other.squares, moment)


class FeaturesGram(Gram):
    """The matrix ZZᵀ of n rows of features, known by their sums; ``MeanSketch.gram()`` makes it.

    Weights are coefficients of features, Zᵀ1/n for the empirical average.

    Parameters
    ----------
    sums : FeatureSums
        With ZᵀZ for spectral shrinkage.
    features : BaseFeatures, optional
        Nyström features, whose landmarks carry the elements.
    rows : array of shape (r, m), optional
        Features of some of the rows, for leave-one-out.
    counts : array of shape (r,), optional
        How often each of them counts.
    """

    kind = "features"
    solver = "features"

    def __init__(
        self, sums: FeatureSums, features: Any = None, rows: Array | None = None, counts: Array | None = None
    ) -> None:
        self.sums, self.features, self.rows, self.counts = sums, features, rows, counts
        if hasattr(features, "landmarks_"):
            self.kernel, self.points = features.kernel_, features.landmarks_

    @property
    def n(self) -> float:
        return float(self.sums.n)

    def averages(self) -> GramAverages:
        n, total = self.n, self.sums.total
        return GramAverages(n, self.sums.squares / n, float(total @ total) / n**2)

    def average(self, total: float = 1.0) -> Array:
        return total * self.sums.total / self.n

    def matmul(self, W: Array) -> Array:
        return W  # features are coordinates in an orthonormal basis

    def spectrum(
        self, solver: str = "features", rank: int = 0, *, memory_limit: float | None = None, more_arrays: int = 0
    ) -> Spectrum:
        """Decompose ZᵀZ, whose eigenvalues above rounding are those of ZZᵀ."""
        if self.sums.moment is None:
            raise ValueError(
                "spectral shrinkage needs the matrix ZᵀZ; make the sketch with second_moment=True, or use "
                "ShrunkKernelMean()"
            )
        mean_diag = self.sums.squares / self.n
        unit = power_of_two_near(mean_diag)
        g, V = eigh(self.sums.moment / unit, driver="evd", check_finite=False)
        kept = above_rounding(g, len(g))
        rows = np.empty((0, len(V))) if self.rows is None else self.rows
        return SampledSpectrum(g[kept], V[:, kept], unit, self.average(), self.n, mean_diag / unit, rows, self.counts)

    def element(self, weights: Array) -> Element:
        if not hasattr(self, "points"):
            raise ValueError(
                f"{type(self.features).__name__} features are not elements of the kernel's space; use mean_features() "
                f"of a sketch or the weights of an estimate, which are coefficients of features, or Nystroem features"
            )
        names = getattr(self.features, "feature_names_in_", None)
        return RowsGram(self.kernel, self.points, names=names).element(self.features.projection_ @ weights)


def check_sums(sums: FeatureSums) -> FeatureSums:
    """Return the sums, or raise a ValueError where they overflow."""
    if not np.isfinite(sums.squares * max(sums.n, 1)):
        raise ValueError("the features overflow on these rows; rescale them first")
    return sums


def gram_of(kernel: Any, rows: Array, counts: Array | None = None, names: Any = None) -> MatrixGram | RowsGram:
    """Return the Gram matrix of checked rows, or that which stands for them where the kernel is "precomputed"."""
    if isinstance(kernel, Kernel):
        return RowsGram(kernel.resolve(rows, counts), rows, counts, names)
    check_precomputed(kernel)
    return MatrixGram(check_gram(rows, name="X"), counts, names)
