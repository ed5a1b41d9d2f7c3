"""Sums of kernel matrices over all splits at once, a tile of each matrix at a time.

Nothing of size n × n is kept, and several matrices that are computed from the same distances are visited together.
Rows may come in bins: then the kernels are still evaluated on all pairs of rows, and each tile is summed over the
members of bins before it meets the splits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muhat._support.types import Array
from muhat.inference.mmd import KernelSums
from muhat.inference.permutations import Splits
from muhat.kernels.base import Kernel
from muhat.kernels.tiles import mapping
from muhat.linalg.blocks import blocks
from muhat.linalg.distances import power_of_two_near, squared_distances

Floats = NDArray[Any]
Tick = Callable[[float], None]

STRIP = 256
"""Rows of a strip."""

FARTHEST = 1e15
"""The largest value in single precision: squares of 10,000 columns of such values still have a finite sum."""

COLUMNS = 4096
"""Columns of a strip that are computed at a time; at least as many as its rows."""


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
        halves = self._negative_half_squares(rows, rest)
        for bandwidth in self.bandwidths:
            with np.errstate(over="ignore"):  # infinitely far, where the kernel is 0
                values = halves * self.dtype(1.0 / bandwidth**2)
            yield np.exp(values, out=values)

    def _negative_half_squares(self, rows: slice, rest: slice) -> Floats:
        """−‖x − y‖²/2: to the last digits for few rows, by one product in single precision for many."""
        if self.exact:
            halves = -0.5 * squared_distances(self.rows[rows], self.rows[rest], self.unit)
            with np.errstate(over="ignore"):  # infinitely far, where the kernel is 0
                return np.asarray(halves).astype(self.dtype, copy=False)
        values = self.rows[rows] @ self.rows[rest].T
        values -= self.half_squares[rows, None]
        values -= self.half_squares[rest]
        return np.minimum(values, 0.0, out=values)


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


class GivenKernel(Family):
    """A kernel object of the user's, in a unit in which its values fit single precision."""

    def __init__(self, kernel: Kernel, rows: Array, unit: float = 1.0) -> None:
        self.kernel, self.rows, self.unit = kernel, rows, unit

    def tile(self, rows: slice, rest: slice) -> Iterator[Floats]:
        yield self.kernel.evaluate(self.rows[rows], self.rows[rest]) / self.unit


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


def kernel_sums(families: Sequence[Family], splits: Splits, tick: Tick = lambda share: None) -> list[KernelSums]:
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
            for (form, own, later), values, level in zip(found, tiles, levels, strict=True):
                values -= values.dtype.type(level)
                _add_tile(values, S, rows, rest, form, own, later)
        return found

    done = 0
    with mapping(total * total) as mapped:
        for rows, found in zip(strips, mapped(visit, strips), strict=True):
            for k, (form, own, later) in enumerate(found):
                forms[k] += form
                sums[k, rows] += own
                sums[k, rows.stop :] += later
            done += (rows.stop - rows.start) * (2 * total - rows.stop - rows.start)
            tick(done / total**2)
    squares = np.square(splits.exact).sum(axis=0)
    return [
        KernelSums(form - level * squares, row_sums + level * (total - 1))
        for form, row_sums, level in zip(forms, sums, levels, strict=True)
    ]


def _add_tile(values: Floats, S: Floats, rows: slice, rest: slice, form: Array, own: Array, later: Array) -> None:
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
