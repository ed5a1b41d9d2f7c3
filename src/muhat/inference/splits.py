"""Splits of pooled rows into two samples, at random or all of them, within strata; permutation p-values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import comb

from muhat.linalg.blocks import blocks
from muhat.types import Array

EPS = float(np.finfo(np.float64).eps)

SMALL = 256
"""Up to this many rows everything is float64; ties of small samples are then ties to the last digits."""

SPLIT_BYTES = 2**25
"""Size of a block of splits."""


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
