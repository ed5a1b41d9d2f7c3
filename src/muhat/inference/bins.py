"""Bins of rows: equal numbers of rows of one sample (and stratum), drawn at random, which a test permutes as a whole.

Under the null hypothesis bins of equal size are exchangeable as independent rows are, so the level of a test stays
exact, and products with the splits cost less by the square of the size of a bin.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from muhat.types import Array

MOST_UNEQUAL = 40
"""The smaller sample has at least the 40th part of all bins, or as many bins as rows; the other has at most 40 times as
many. Then what is left of the larger one adds a fortieth to the variance of a difference."""


class Bins(NamedTuple):
    """Column b of ``members`` holds the numbers of the rows in bin b; sample and stratum of each bin; rows in none."""

    members: NDArray[np.intp]
    of_first: Array
    strata: Any
    unused: int = 0

    @property
    def size(self) -> int:
        """Rows of a bin."""
        return len(self.members)

    @property
    def rows(self) -> NDArray[np.intp]:
        """Numbers of all rows in bins: the first row of every bin, then the second row of every bin, and so on."""
        return self.members.ravel()

    def __str__(self) -> str:
        rows = "rows are" if self.unused != 1 else "row is"
        return f"{len(self.of_first):,} bins of {self.size} rows; {self.unused:,} {rows} in no bin"


def bins_of_one_row(observed: Array, strata: Any) -> Bins:
    """Every row is a bin."""
    return Bins(np.arange(len(observed))[None], observed, strata)


def draw_bins(observed: Array, strata: Any, count: int, rng: np.random.Generator) -> Bins:
    """About ``count`` bins of equal size, each of rows of one sample and stratum, drawn at random."""
    numbers = np.zeros(len(observed), dtype=np.intp) if strata is None else strata
    cells = np.stack([np.bincount(numbers, weights=1.0 - observed), np.bincount(numbers, weights=observed)])
    mixed = cells.min(axis=0) > 0  # permuted rows are all in these strata
    size = bin_size(cells[0, mixed].astype(np.intp), cells[1, mixed].astype(np.intp), count)
    counts = cells.astype(np.intp) // size
    # More bins of one sample than these make a test hardly more powerful, and cost as much as the others.
    counts = np.minimum(counts, np.maximum(max(2, count // len(mixed)), MOST_UNEQUAL * counts.min(axis=0)))
    members, samples, labels = [], [], []
    for first, stratum in np.argwhere(counts):
        inside = rng.permutation(np.flatnonzero((observed == first) & (numbers == stratum)))
        members.append(inside[: counts[first, stratum] * size].reshape(size, -1))
        samples += [float(first)] * counts[first, stratum]
        labels += [stratum] * counts[first, stratum]
    drawn = np.concatenate(members, axis=1)
    of_strata = None if strata is None else np.unique(labels, return_inverse=True)[1]
    return Bins(drawn, np.array(samples), of_strata, len(observed) - drawn.size)


def bin_size(first: Any, second: Any, count: int) -> int:
    """The size of bins that cut two samples, given the numbers of rows in the parts of each that bins may not cross.

    It makes about ``count`` bins in all. Where that leaves one of the samples too few of them, or more than a tenth of
    its rows in none, bins are smaller: down to single rows, which suit samples of any size.
    """
    fewest, largest = max(2, count // MOST_UNEQUAL), -(-int(first.sum() + second.sum()) // count)
    for size in range(largest, 1, -1):
        if all((sample // size).sum() >= max(fewest, 0.9 * sample.sum() / size) for sample in (first, second)):
            return size
    return 1


def bin_means(features: Array, size: int) -> Array:
    """Means of features over bins; rows are in the order of :attr:`Bins.rows`."""
    return features if size == 1 else features.reshape(size, len(features) // size, -1).mean(axis=0)
