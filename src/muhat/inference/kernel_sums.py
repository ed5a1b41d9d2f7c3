"""Sums of kernel matrices over all splits at once, a tile of each matrix at a time, and the unbiased MMD from them.

Nothing of size n × n is kept, and several matrices that are computed from the same distances are visited together.
Rows may come in bins: then the kernels are still evaluated on all pairs of rows, and each tile is summed over the
members of bins before it meets the splits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from muhat._support.types import Array
from muhat.inference.permutations import Splits
from muhat.kernels.tiles import mapping
from muhat.linalg.blocks import blocks
from muhat.linalg.distances import power_of_two_near, squared_distances

Floats = NDArray[Any]

PRODUCTS = 2**20
"""Products of features with splits that are kept at a time: 8 MB."""

STRIP = 256
"""Rows of a strip, whose products with the splits stay in the cache."""

FARTHEST = 1e15
"""The largest value in single precision: squares of 10,000 columns of such values still have a finite sum."""

COLUMNS = 4096
"""Columns of a strip that are computed at a time; at least as many as its rows."""


class KernelSums(NamedTuple):
    """Of a symmetric matrix K of kernel values without its diagonal: sᵀKs for all centred splits s, and row sums."""

    forms: Array
    row_sums: Array


class MeanSimilarities(NamedTuple):
    """For every split: unbiased MMD², and the difference of the mean similarities within the two samples, centred."""

    mmd: Array
    within: Array
    rounding: float


def mean_similarities(sums: KernelSums, splits: Splits) -> MeanSimilarities:
    """With α and β the mean similarities within the samples and γ that between them: α + β − 2γ, and α − β."""
    n, m = splits.n, splits.m
    share, total = n / (n + m), float(sums.row_sums.sum())
    # With s = c + n/(n + m) the indicator of the first sample and c the centred split: 1ᵀKs, then sᵀKs from cᵀKc.
    first = sums.row_sums @ splits.exact + share * total
    both_first = sums.forms + 2.0 * share * first - share**2 * total
    both_second, between = total - 2.0 * first + both_first, first - both_first
    alpha, beta = both_first / (n * (n - 1)), both_second / (m * (m - 1))
    within = alpha - beta
    rounding = splits.eps * float(np.abs(sums.row_sums).sum()) / (n + m) / n / m
    return MeanSimilarities(alpha + beta - 2.0 * between / (n * m), within - within.mean(), rounding)


def sums_from_features(features: Array, splits: Splits) -> KernelSums:
    """The sums of the matrix FFᵀ of inner products of features, without that matrix.

    Centred splits have the same products with centred features, in which constant ones vanish to the last digit.
    """
    exact = features.astype(np.float64, copy=False)
    total = exact.sum(axis=0)
    diagonal = np.einsum("ij,ij->i", exact, exact)
    S, centred = splits.centred.astype(features.dtype, copy=False), features - (total / len(features))
    forms = -(diagonal @ np.square(splits.exact))
    for part in product_blocks(features.shape[1], S.shape[1]):
        forms += ((centred[:, part].T.astype(S.dtype, copy=False) @ S) ** 2).sum(axis=0, dtype=np.float64)
    return KernelSums(forms, exact @ total - diagonal)


def product_blocks(columns: int, splits: int) -> Iterator[slice]:
    """Blocks of columns whose products with all splits take some megabytes."""
    return blocks(columns, max(1, PRODUCTS // splits))


class Family(ABC):
    """Kernel matrices that are computed together, ``size`` of them."""

    size: int = 1

    @abstractmethod
    def tile(self, rows: slice, rest: slice) -> Iterator[Floats]:
        """The values of each matrix on rows × rest, one after the other, in arrays that may be overwritten."""


class GaussianFamily(Family):
    """Gaussian kernels of several bandwidths, from one distance matrix in a unit near the least of them."""

    def __init__(self, rows: Array, bandwidths: list[float], dtype: Any, exact: bool = True) -> None:
        self.unit, self.dtype, self.exact = power_of_two_near(min(bandwidths)), dtype, exact
        self.bandwidths = [bandwidth / self.unit for bandwidth in bandwidths]
        self.rows: Floats = rows if exact else single_precision(rows, self.unit)
        self.half_squares = 0.5 * np.einsum("ij,ij->i", self.rows, self.rows)
        self.size = len(bandwidths)

    def tile(self, rows: slice, rest: slice) -> Iterator[Floats]:
        # −‖x − y‖²/2: to the last digits for few rows, by one product in single precision for many.
        if self.exact:
            halves: Floats = -0.5 * squared_distances(self.rows[rows], self.rows[rest], self.unit)
            with np.errstate(over="ignore"):  # infinitely far, where the kernel is 0
                halves = halves.astype(self.dtype, copy=False)
        else:
            halves = self.rows[rows] @ self.rows[rest].T
            halves -= self.half_squares[rows, None]
            halves -= self.half_squares[rest]
            np.minimum(halves, 0.0, out=halves)
        for bandwidth in self.bandwidths:
            with np.errstate(over="ignore"):  # infinitely far, where the kernel is 0
                values = halves * self.dtype(1.0 / bandwidth**2)
            yield np.exp(values, out=values)


def single_precision(rows: Array, unit: float) -> Floats:
    """Rows in a unit, in single precision; values whose squares it cannot hold are moved to the farthest that it can.

    The unit is near a bandwidth of at least ``LEAST_BANDWIDTH`` times the widest one, so that these stay far.
    """
    with np.errstate(over="ignore"):
        return np.clip(rows / unit, -FARTHEST, FARTHEST).astype(np.float32)


class ByColumn(Family):
    """The sum over columns of exp(−|x − y|)."""

    def __init__(self, columns: Array, dtype: Any) -> None:
        self.columns = np.ascontiguousarray(columns.T.astype(dtype))

    def tile(self, rows: slice, rest: slice) -> Iterator[Floats]:
        total = np.zeros((rows.stop - rows.start, rest.stop - rest.start), dtype=self.columns.dtype)
        values = np.empty_like(total)
        for column in self.columns:
            np.subtract(column[rows, None], column[rest], out=values)
            np.abs(values, out=values)
            np.negative(values, out=values)
            total += np.exp(values, out=values)
        yield total


class SecondMoments(Family):
    """(q·q′/d)² of scores q, whose MMD is the distance of two matrices of second moments."""

    def __init__(self, scores: Array, dtype: Any) -> None:
        self.scores = (scores / np.sqrt(scores.shape[1])).astype(dtype)

    def tile(self, rows: slice, rest: slice) -> Iterator[Floats]:
        values = self.scores[rows] @ self.scores[rest].T
        values *= values
        yield values


class Binned(Family):
    """Another family's kernels averaged over the pairs of rows of two bins.

    Member i of bin b is row i·count + b.
    """

    def __init__(self, family: Family, members: int, count: int) -> None:
        self.family, self.members, self.count, self.size = family, members, count, family.size

    def tile(self, rows: slice, rest: slice) -> Iterator[Floats]:
        totals: list[Floats] = []
        for i in range(self.members):
            for j in range(self.members):
                values = self.family.tile(_shifted(rows, i * self.count), _shifted(rest, j * self.count))
                if not totals:
                    totals = list(values)
                    continue
                for total, part in zip(totals, values, strict=True):
                    total += part
        for total in totals:
            total /= self.members**2
            yield total


def _shifted(part: slice, by: int) -> slice:
    return slice(part.start + by, part.stop + by)


def kernel_sums(families: Sequence[Family], splits: Splits) -> list[KernelSums]:
    """The forms sᵀKs over all splits, and the row sums, of every matrix K with its diagonal set to 0.

    A constant c is taken from the values of K before they meet the splits and added to the sums: as the splits are
    centred, c(11ᵀ − I) has the form −c‖s‖², the same for all. So kernels that hardly vary keep their digits, and a
    constant one has no difference at all between the observed split, whose rows are in order, and random ones.

    Strips are dealt to threads, and their sums are added in the order of the rows: results do not depend on the number
    of threads.
    """
    S = splits.centred
    total = len(S)
    strips = list(blocks(total, STRIP))
    count = sum(family.size for family in families)
    forms, sums = np.zeros((count, S.shape[1])), np.zeros((count, total))
    some = slice(0, min(total, STRIP))
    levels = [values.mean(dtype=np.float64) for family in families for values in family.tile(some, some)]

    def visit(rows: slice) -> list[tuple[Array, Array, Array]]:
        sizes = (S.shape[1], rows.stop - rows.start, total - rows.stop)
        found = [(np.zeros(sizes[0]), np.zeros(sizes[1]), np.zeros(sizes[2])) for _ in range(count)]
        for rest in blocks(total, COLUMNS, rows.start):
            tiles = (values for family in families for values in family.tile(rows, rest))
            size = sizes[1] if rest.start == rows.start else 0  # columns that are the rows themselves
            start = rest.start + size - rows.stop
            for (form, own, later), values, level in zip(found, tiles, levels, strict=True):
                values -= values.dtype.type(level)
                values = values.astype(S.dtype, copy=False)
                # Each pair of two rows counts once, times two; a row with itself never.
                square = values[:, :size]
                if size:
                    np.fill_diagonal(square, 0.0)
                own += values.sum(axis=1, dtype=np.float64)
                later[start : start + values.shape[1] - size] += values[:, size:].sum(axis=0, dtype=np.float64)
                square *= 0.5
                form += 2.0 * np.einsum("ib,ib->b", S[rows], values @ S[rest], dtype=np.float64)
        return found

    with mapping(total * total) as mapped:
        for rows, found in zip(strips, mapped(visit, strips), strict=True):
            for k, (form, own, later) in enumerate(found):
                forms[k] += form
                sums[k, rows] += own
                sums[k, rows.stop :] += later
    squares = np.square(splits.exact).sum(axis=0)
    return [
        KernelSums(form - level * squares, row_sums + level * (total - 1))
        for form, row_sums, level in zip(forms, sums, levels, strict=True)
    ]
