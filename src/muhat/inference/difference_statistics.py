"""The ways in which two samples can differ, each as a statistic on all splits at once.

The default test joins them (``joining``). Every matrix is visited a strip at a time: the values of a kernel on some
rows and all later ones, times all splits, so that nothing of size n × n is kept. Everything here depends on the pooled
rows and on the splits alone, which keeps the level exact.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular
from scipy.spatial.distance import cdist, pdist
from scipy.special import ndtri
from scipy.stats import rankdata

from muhat.inference.combine import Component
from muhat.kernels.base import Kernel
from muhat.kernels.dot import Linear
from muhat.kernels.mixed import rescaled
from muhat.kernels.radial import Gaussian
from muhat.linalg.blocks import blocks
from muhat.linalg.distances import squared_distances
from muhat.linalg.gram import mapping
from muhat.linalg.resources import one_blas_thread
from muhat.types import Array

Floats = NDArray[Any]
Tick = Callable[[float], None]

STRIP = 256
"""Rows of a strip."""

COLUMNS = 4096
"""Columns of a strip that are computed at a time; at least as many as its rows."""

SMALL = 256
"""Up to this many rows matrices are float64; ties of small samples are then ties to the last digits."""

PRODUCTS = 2**20
"""Products of columns with splits that are kept at a time."""

PAIR_ROWS = 1000
"""Rows whose distances give the bandwidths; a random part of larger samples."""

LANDMARKS = 512
"""Rows that span the regularised statistic; a random part of larger samples."""

NEIGHBOURS = 11
"""The scale at a row is the distance to this neighbour."""

RIDGE = 0.01
"""The regularisation of the whitened statistic, in units of the largest eigenvalue."""

WIDE_WEIGHT = 8.0
"""Weight of the components that see shifts of the whole distribution, the most common difference, over others."""


class Splits(NamedTuple):
    """All splits as columns, the observed one first: 1 for a row of the first sample, less its mean over all splits."""

    centred: Floats
    n: int
    m: int

    @property
    def weights(self) -> Floats:
        """Signed weights of the pooled rows in the difference of two means."""
        return self.centred * (1.0 / self.n + 1.0 / self.m)


def centred_splits(observed: Array, splits: list[Array], strata: Array | None) -> Splits:
    n, total = int(observed.sum()), len(observed)
    dtype = np.float64 if total <= SMALL else np.float32
    if strata is None:
        means = np.full(total, n / total)
    else:
        means = (np.bincount(strata, weights=observed) / np.bincount(strata))[strata]
    everything = np.column_stack([observed, *splits])
    return Splits((everything - means[:, None]).astype(dtype), n, total - n)


# ---------------------------------------------------------------- quadratic forms of many matrices


class Matrix(NamedTuple):
    """A symmetric matrix of kernel values: the forms over all splits, and the row sums, without the diagonal."""

    forms: Array
    row_sums: Array


class Family(ABC):
    """Matrices that are computed together: ``strip(rows, rest)`` yields the values of each on rows × rest."""

    size: int = 1

    @abstractmethod
    def strip(self, rows: slice, rest: slice) -> Iterator[Floats]:
        """The values of each matrix on rows × rest, one after the other."""


def quadratic_forms(families: list[Family], splits: Splits, tick: Tick = lambda share: None) -> list[Matrix]:
    """The forms sᵀKs over all splits, and the row sums, of every matrix K with its diagonal set to 0.

    Strips are dealt to threads, and their sums are added in the order of the rows: results do not depend on the number
    of threads.
    """
    S = splits.centred
    total = len(S)
    strips = list(blocks(total, STRIP))
    count = sum(family.size for family in families)
    forms, sums = np.zeros((count, S.shape[1])), np.zeros((count, total))

    def visit(rows: slice) -> list[tuple[Array, Array, Array]]:
        sizes = (S.shape[1], rows.stop - rows.start, total - rows.stop)
        found = [(np.zeros(sizes[0]), np.zeros(sizes[1]), np.zeros(sizes[2])) for _ in range(count)]
        for rest in blocks(total, COLUMNS, rows.start):
            strips = (values for family in families for values in family.strip(rows, rest))
            for (form, own, later), values in zip(found, strips, strict=True):
                _add_strip(values, S, rows, rest, form, own, later)
        return found

    done = 0
    with one_blas_thread(), mapping(total * total) as mapped:
        for rows, found in zip(strips, mapped(visit, strips), strict=True):
            for k, (form, own, later) in enumerate(found):
                forms[k] += form
                sums[k, rows] += own
                sums[k, rows.stop :] += later
            done += (rows.stop - rows.start) * (2 * total - rows.stop - rows.start)
            tick(done / total**2)
    return [Matrix(form, row_sums) for form, row_sums in zip(forms, sums, strict=True)]


def _add_strip(values: Floats, S: Floats, rows: slice, rest: slice, form: Array, own: Array, later: Array) -> None:
    """Add the pairs of a tile: each pair of two rows once, times two; a row with itself never."""
    values = values.astype(S.dtype, copy=False)
    size = rows.stop - rows.start if rest.start == rows.start else 0  # columns that are the rows themselves
    square = values[:, :size]
    if size:
        np.fill_diagonal(square, 0.0)
    own += values.sum(axis=1, dtype=np.float64)
    start = rest.start + size - rows.stop
    later[start : start + values.shape[1] - size] += values[:, size:].sum(axis=0, dtype=np.float64)
    square *= 0.5
    form += 2.0 * np.einsum("ib,ib->b", S[rows], values @ S[rest], dtype=np.float64)


class Contrast(NamedTuple):
    """Unbiased MMD², and the difference of the mean similarities within the two samples, for every split."""

    mmd: Array
    within: Array
    rounding: float


def contrast(matrix: Matrix, splits: Splits) -> Contrast:
    r"""With α and β the mean similarities within and γ that between the samples: α + β − 2γ, and α − β."""
    n, m = splits.n, splits.m
    share, total = n / (n + m), float(matrix.row_sums.sum())
    first = matrix.row_sums @ splits.centred.astype(np.float64) + share * total
    both_first = matrix.forms + 2.0 * share * first - share**2 * total
    both_second, between = total - 2.0 * first + both_first, first - both_first
    alpha, beta = both_first / (n * (n - 1)), both_second / (m * (m - 1))
    within = alpha - beta
    eps = float(np.finfo(splits.centred.dtype).eps)
    rounding = eps * float(np.abs(matrix.row_sums).sum()) / (n + m) / n / m
    return Contrast(alpha + beta - 2.0 * between / (n * m), within - within.mean(), rounding)


# ---------------------------------------------------------------- families of kernels


class GaussianFamily(Family):
    """Gaussian kernels of several bandwidths, and one whose bandwidth follows the density, from one distance matrix."""

    def __init__(self, rows: Array, bandwidths: list[float], scales: Array, dtype: Any) -> None:
        self.rows, self.bandwidths, self.scales, self.dtype = rows, bandwidths, scales.astype(dtype), dtype
        self.size = len(bandwidths) + 1

    def strip(self, rows: slice, rest: slice) -> Iterator[Floats]:
        squares = squared_distances(self.rows[rows], self.rows[rest]).astype(self.dtype)
        squares *= -0.5
        for bandwidth in self.bandwidths:
            yield np.exp(squares * self.dtype(1.0 / bandwidth**2))
        squares /= self.scales[rows, None]
        squares /= self.scales[rest]
        yield np.exp(squares, out=squares)


class ByColumn(Family):
    """Sums over columns of exp(−|x − y| / s) and of its fourth power, s the median distance in the column."""

    size = 2

    def __init__(self, rows: Array, medians: Array, dtype: Any) -> None:
        self.columns = np.ascontiguousarray((rows / medians).T.astype(dtype))

    def strip(self, rows: slice, rest: slice) -> Iterator[Floats]:
        broad = np.zeros((rows.stop - rows.start, rest.stop - rest.start), dtype=self.columns.dtype)
        narrow, values = np.zeros_like(broad), np.empty_like(broad)
        for column in self.columns:
            np.subtract(column[rows, None], column[rest], out=values)
            np.abs(values, out=values)
            np.negative(values, out=values)
            np.exp(values, out=values)
            broad += values
            values *= values
            values *= values
            narrow += values
        yield broad
        yield narrow


class SecondMoments(Family):
    """(q·q′/d)² of normal scores q: the distance of two matrices of second moments."""

    def __init__(self, scores: Array, dtype: Any) -> None:
        self.scores = (scores / np.sqrt(scores.shape[1])).astype(dtype)

    def strip(self, rows: slice, rest: slice) -> Iterator[Floats]:
        yield (self.scores[rows] @ self.scores[rest].T) ** 2


class GivenKernel(Family):
    """A kernel object of the user's, in a unit in which its values fit single precision."""

    def __init__(self, kernel: Kernel, rows: Array, unit: float = 1.0) -> None:
        self.kernel, self.rows, self.unit = kernel, rows, unit

    def strip(self, rows: slice, rest: slice) -> Iterator[Floats]:
        yield self.kernel.evaluate(self.rows[rows], self.rows[rest]) / self.unit


# ---------------------------------------------------------------- what the pooled rows say about scales


def normal_scores(rows: Array) -> Array:
    """Each column as quantiles of the normal distribution by its ranks, with mean 0 and variance 1; constants 0."""
    return standardised(np.asarray(ndtri(rankdata(rows, axis=0) / (len(rows) + 1))))


def standardised(rows: Array) -> Array:
    """Columns with mean 0 and variance 1; constant ones are 0."""
    centred = rows - rows.mean(axis=0)
    deviations = centred.std(axis=0)
    varies = deviations > 1e-10 * np.abs(rows).max(axis=0, initial=0.0)
    return np.where(varies, centred, 0.0) / np.where(varies, deviations, 1.0)


@dataclass(frozen=True)
class Scales:
    """Bandwidths from fine to wide, the scale at each row, and the median distance in each column."""

    bandwidths: Array
    at_rows: Array
    medians: Array


def pooled_scales(rows: Array, rng: np.random.Generator) -> Scales:
    bandwidths = pooled_bandwidths(rows, rng)
    medians = np.array([_median_gap(column) for column in some_rows(rows, rng).T])
    return Scales(bandwidths, _neighbour_distances(rows, float(bandwidths[0])), medians)


def pooled_bandwidths(rows: Array, rng: np.random.Generator) -> Array:
    """Ten bandwidths, from half the 5 % quantile of the positive distances to twice their 95 % quantile."""
    distances = pdist(some_rows(rows, rng))
    distances = distances[distances > 0]
    low, high = np.quantile(distances, [0.05, 0.95]) * [0.5, 2.0] if len(distances) else (1.0, 1.0)
    return np.asarray(low * (high / low) ** (np.arange(10) / 9))


def some_rows(rows: Array, rng: np.random.Generator) -> Array:
    """Some rows, drawn without regard to the sample that they belong to."""
    return rows if len(rows) <= PAIR_ROWS else rows[np.sort(rng.choice(len(rows), PAIR_ROWS, replace=False))]


def _median_gap(column: Array) -> float:
    """The median distance of two values, their mean where that is 0, and 1 for constants."""
    gaps = pdist(column[:, None], "cityblock")
    return float(np.median(gaps)) or float(gaps.mean()) or 1.0


def _neighbour_distances(rows: Array, least: float) -> Array:
    """The distance of each row to a near neighbour; ``least`` where rows are repeated as often."""
    rank = min(NEIGHBOURS, len(rows) - 1)
    near = [np.partition(cdist(rows[part], rows), rank, axis=1)[:, rank].copy() for part in blocks(len(rows), STRIP)]
    distances = np.concatenate(near)
    return np.where(distances > 0, distances, least)


# ---------------------------------------------------------------- the default test's components


def default_components(
    rows: Array, splits: Splits, rng: np.random.Generator, tick: Tick = lambda share: None
) -> list[Component]:
    """All components of the default test; ``rows`` are pooled, in units in which columns can be compared."""
    scales, dtype = pooled_scales(rows, rng), splits.centred.dtype.type
    scores = normal_scores(rows)
    finest, wide, widest = (float(scales.bandwidths[i]) for i in (0, 6, 7))
    families = [
        GaussianFamily(rows, [finest, wide, widest], scales.at_rows, dtype),
        ByColumn(rows, scales.medians, dtype),
        SecondMoments(scores, dtype),
    ]
    sums = quadratic_forms(families, splits, tick)
    fine, broad, broadest, local, shapes, fine_shapes, moments = (contrast(matrix, splits) for matrix in sums)
    linear = contrast(linear_sums(standardised(rows), splits), splits)
    units = np.where(rows.std(axis=0) > 0, rows.std(axis=0), 1.0)
    return [
        mmd_component("Gaussian", broad, Gaussian(wide), "wide", WIDE_WEIGHT),
        mmd_component("linear", linear, rescaled(Linear(), units), "wide", WIDE_WEIGHT),
        mmd_component("nearest neighbours", local, None, "wide", WIDE_WEIGHT),
        mmd_component("Gaussian", fine, Gaussian(finest), group="fine"),
        whitened(rows, float(scales.bandwidths[2]), splits, rng),
        mmd_component("sum over columns", shapes, None, group="by column"),
        mmd_component("sum over columns, fine", fine_shapes, None, group="by column"),
        mmd_component("second moments", moments, None, group="second moments"),
        spread_component(fine, Gaussian(finest), "close pairs"),
        spread_component(broadest, Gaussian(widest)),
        largest_column(scores, standardised(scores**2), splits),
    ]


def mmd_component(name: str, found: Contrast, kernel: Kernel | None, group: str, weight: float = 1.0) -> Component:
    return Component(name, group, found.mmd, found.rounding, weight, kernel)


def spread_component(found: Contrast, kernel: Kernel, group: str = "spread") -> Component:
    """The difference of the mean similarities within the samples: a wide kernel sees spread, a fine one close pairs."""
    wider = "Y" if found.within[0] > 0 else "X"
    return Component(group, group, np.abs(found.within), found.rounding, value=(kernel, wider))


def linear_sums(features: Array, splits: Splits) -> Matrix:
    """The sums of :func:`quadratic_forms` for the matrix FFᵀ, through its features."""
    S = splits.centred.astype(np.float64)
    diagonal = np.einsum("ij,ij->i", features, features)
    forms = -(diagonal @ S**2)
    for part in _column_blocks(features, S):
        forms += ((features[:, part].T @ S) ** 2).sum(axis=0)
    return Matrix(forms, features @ features.sum(axis=0) - diagonal)


def largest_column(scores: Array, squares: Array, splits: Splits) -> Component:
    """The largest squared difference of the means of normal scores, or of their squares, over all columns."""
    weights = splits.weights.astype(np.float64)
    largest, value = np.full(weights.shape[1], -np.inf), (0, "location", "X")
    for kind, features in (("location", scores), ("scale", squares)):
        for part in _column_blocks(features, weights):
            differences = features[:, part].T @ weights
            found = differences**2
            strongest = int(found[:, 0].argmax())
            if found[strongest, 0] > largest[0]:
                value = (part.start + strongest, kind, "Y" if differences[strongest, 0] < 0 else "X")
            np.maximum(largest, found.max(axis=0), out=largest)
    rounding = float(np.finfo(splits.centred.dtype).eps) * len(scores) / splits.n / splits.m
    return Component("largest column", "columns", largest, rounding, value=value)


def _column_blocks(features: Array, splits: Array) -> Iterator[slice]:
    """Columns whose products with all splits take some megabytes."""
    return blocks(features.shape[1], max(1, PRODUCTS // splits.shape[1]))


def whitened(rows: Array, bandwidth: float, splits: Splits, rng: np.random.Generator) -> Component:
    r"""The regularised kernel Fisher statistic, spanned by some of the rows.

    With Z the kernel values of all rows at the landmarks, centred, and L those among landmarks, the statistic is
    :math:`w^\top Z (Z^\top Z + \lambda L)^{-1} Z^\top w`. It weighs all directions of the space more evenly than MMD.
    """
    some = np.sort(rng.choice(len(rows), LANDMARKS, replace=False)) if len(rows) > LANDMARKS else np.arange(len(rows))
    kernel = Gaussian(bandwidth)
    Z = kernel.evaluate(rows, rows[some])
    L = Z[some]
    lam = RIDGE * largest_eigenvalue(L - L.mean(axis=0) - L.mean(axis=1)[:, None] + L.mean()) * len(rows) / len(some)
    Z = Z - Z.mean(axis=0)
    A = Z.T @ Z + lam * 0.5 * (L + L.T)
    A[np.diag_indices_from(A)] += 1e-9 * np.trace(A)
    root = cholesky(A, lower=True, check_finite=False) if A.any() else np.eye(len(A))
    features = solve_triangular(root, Z.T, lower=True, check_finite=False).astype(splits.centred.dtype)
    statistics = ((features @ splits.weights) ** 2).sum(axis=0, dtype=np.float64)
    rounding = float(np.finfo(splits.centred.dtype).eps) * len(rows) / splits.n / splits.m
    return Component("whitened Gaussian", "fine", statistics, rounding)


def largest_eigenvalue(K: Array, steps: int = 30) -> float:
    """The largest eigenvalue of a positive semi-definite matrix, nearly, by powers; it is never 0."""
    vector = np.diag(K) - np.diag(K).mean() + K[int(np.diag(K).argmax())]
    for _ in range(steps):
        product = K @ vector
        length = float(np.linalg.norm(product))
        if length == 0:
            return 1.0
        vector = product / length
    return float(vector @ (K @ vector)) or 1.0
