"""Splits of pooled rows into two samples, within strata and of bins of rows, and the p-values of permutations.

Bins are equal numbers of rows of one sample (and stratum), drawn at random, which a test permutes as a whole. Under the
null hypothesis bins of equal size are exchangeable as independent rows are, so the level of a test stays exact, and
products with the splits cost less by the square of the size of a bin.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import comb

from muhat.linalg.blocks import blocks
from muhat.types import Array
from muhat.validation import first_missing

EPS = float(np.finfo(np.float64).eps)

SMALL = 256
"""Up to this many rows everything is float64; ties of small samples are then ties to the last digits."""

SPLIT_BYTES = 2**25
"""Size of a block of splits."""

MOST_UNEQUAL = 40
"""The smaller sample has at least the 40th part of all bins, or as many bins as rows; the other has at most 40 times as
many. Then what is left of the larger one adds a fortieth to the variance of a difference."""


@dataclass(frozen=True, eq=False)
class Splits:
    """All splits as columns, the observed one first: 1 for a row of the first sample, less its mean over all splits.

    ``n`` and ``m`` are the numbers of rows, or of bins of rows, in the two samples.
    """

    centred: NDArray[Any]
    n: int
    m: int

    @cached_property
    def exact(self) -> Array:
        """The centred splits in double precision."""
        return self.centred.astype(np.float64, copy=False)

    @cached_property
    def weights(self) -> Array:
        """Signed weights of the pooled rows in the difference of the two means."""
        return np.asarray(self.exact * (1.0 / self.n + 1.0 / self.m))

    @property
    def eps(self) -> float:
        """The rounding error of a number close to 1 in the precision of the splits."""
        return float(np.finfo(self.centred.dtype).eps)


def centred_splits(observed: Array, n_resamples: int, rng: np.random.Generator, strata: Array | None = None) -> Splits:
    """The observed split and others of :func:`other_splits`, in a precision that suits the number of rows."""
    n, total = int(observed.sum()), len(observed)
    if strata is None:
        means = np.full(total, n / total)
    else:
        means = (np.bincount(strata, weights=observed) / np.bincount(strata))[strata]
    others = list(other_splits(observed, n_resamples, rng, strata))
    count = 1 + sum(part.shape[1] for part in others)
    centred = np.empty((total, count), dtype=np.float64 if total <= SMALL else np.float32)
    np.concatenate([observed[:, None], *others], axis=1, out=centred, casting="same_kind")
    centred -= means[:, None].astype(centred.dtype)
    return Splits(centred, n, total - n)


def permutation_pvalue(statistic: float, null: Array, rounding: float) -> float:
    """The share of permutations that reach the statistic, itself among them; ties count up to rounding."""
    tolerance = max(100 * EPS * abs(statistic), 16 * rounding)
    return float((np.count_nonzero(null >= statistic - tolerance) + 1) / (len(null) + 1))


def other_splits(
    observed: Array, n_resamples: int, rng: np.random.Generator, strata: Array | None = None
) -> Iterator[Array]:
    """Blocks of splits, as columns, that permute the observed one, within strata if there are any.

    They are drawn at random, unless all splits are few: then every split but the observed one comes once.
    """
    block = max(1, SPLIT_BYTES // observed.nbytes)
    if number_of_splits(observed, strata) <= n_resamples + 1:
        everything = _every_split(observed, strata)
        others = everything[(everything != observed).any(axis=1)]
        for part in blocks(len(others), block):
            yield others[part].T
        return
    for part in blocks(n_resamples, block):
        rows = np.tile(observed, (part.stop - part.start, 1))
        yield _permuted(rows, rng, strata).T


def number_of_splits(observed: Array, strata: Array | None = None) -> float:
    """How many splits have the sizes of the observed one, in every stratum; infinite where there are very many."""
    with np.errstate(over="ignore"):
        return float(np.prod(comb(*_sizes(observed, strata))))


def smallest_pvalue(observed: Array, n_resamples: int, strata: Array | None = None) -> float:
    """The least p-value of a test on :func:`other_splits`.

    Where all splits are listed and both samples have the same size, a split and its mirror image are equal.
    """
    splits = number_of_splits(observed, strata)
    if splits > n_resamples + 1:
        return 1.0 / (n_resamples + 1)
    sizes, first = _sizes(observed, strata)
    return (2.0 if (2 * first == sizes).all() else 1.0) / splits


def _sizes(observed: Array, strata: Array | None) -> tuple[Any, Any]:
    """The number of rows in each stratum, and of those in the first sample."""
    numbers = np.zeros(len(observed), dtype=np.intp) if strata is None else strata
    return np.bincount(numbers), np.bincount(numbers, weights=observed)


def _every_split(observed: Array, strata: Array | None) -> Array:
    """All splits as rows: for each stratum, every choice of its rows with every choice in the strata before."""
    numbers = np.zeros(len(observed), dtype=np.intp) if strata is None else strata
    rows = observed[None]
    for stratum in np.unique(numbers):
        inside = np.flatnonzero(numbers == stratum)
        chosen = list(combinations(range(len(inside)), int(observed[inside].sum())))
        patterns = np.zeros((len(chosen), len(inside)))
        np.put_along_axis(patterns, np.array(chosen, dtype=np.intp), 1.0, axis=1)
        rows = np.repeat(rows, len(patterns), axis=0)
        rows[:, inside] = np.tile(patterns, (len(rows) // len(patterns), 1))
    return rows


def _permuted(rows: Array, rng: np.random.Generator, strata: Array | None) -> Array:
    if strata is None:
        return rng.permuted(rows, axis=1, out=rows)
    for stratum in np.unique(strata):
        inside = np.flatnonzero(strata == stratum)
        rows[:, inside] = rng.permuted(rows[:, inside], axis=1)
    return rows


# ---------------------------------------------------------------- strata and bins


def check_strata(strata: Any, observed: Array | None, n: int) -> Any:
    """Numbers of the strata of n rows, or None; ``observed`` says which rows are the first sample's."""
    if strata is None:
        return None
    labels = np.asarray(strata)
    if labels.shape != (n,):
        rows = "n + m rows, those of X first" if observed is not None else "rows"
        raise ValueError(f"strata has shape {labels.shape} and must have one label for each of the {n} {rows}")
    missing = first_missing(strata)
    if missing is not None:
        raise ValueError(f"strata[{missing}] is missing; leave rows without a stratum out, or give them a label")
    if len({type(label) for label in labels.tolist()}) > 1:
        labels = labels.astype(str)  # numbers and texts have no common order
    _, numbers, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    if sizes.min() < 2:
        alone = labels[np.flatnonzero(numbers == int(sizes.argmin()))[0]]
        raise ValueError(
            f"strata has the label {alone!r} on one row only, which cannot be permuted; drop that row, or join strata"
        )
    if observed is not None:
        shares = np.bincount(numbers, weights=observed) / sizes
        if not ((shares > 0) & (shares < 1)).any():
            raise ValueError(
                "no stratum holds rows of both X and Y, so that nothing can be permuted; use coarser strata, or None"
            )
    return numbers


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
