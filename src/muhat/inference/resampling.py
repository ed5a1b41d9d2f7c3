"""Permutations and splits of rows, and permutation p-values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import combinations
from time import perf_counter
from typing import Any

import numpy as np
from scipy.special import comb

from muhat.kernels.base import Kernel
from muhat.linalg import gram
from muhat.linalg.blocks import blocks
from muhat.linalg.resources import check_memory
from muhat.progress import progress
from muhat.types import Array

EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False, repr=False)
class PermutationResult:
    """What a permutation test found: ``statistic``, ``pvalue`` and ``null_distribution``, as in scipy.stats.

    The p-value is (b + 1)/(B + 1), where b of the B permutations reach the statistic. It is never 0, and under the
    null hypothesis it is at most α with probability at most α, at every sample size. Where there are no more
    permutations than resamples, B counts all of them but the observed one, and nothing is drawn at random.
    """

    statistic: float
    pvalue: float
    null_distribution: Array

    def __iter__(self) -> Iterator[float]:
        """``statistic, pvalue = test(X, Y)``, as scipy's results unpack."""
        return iter((self.statistic, self.pvalue))

    def __repr__(self) -> str:
        found = f"statistic={self.statistic:.4g}, pvalue={self.pvalue:.4g}"
        return f"{type(self).__name__}({found}, n_resamples={len(self.null_distribution):,})"


def pooled_gram(kernel: Kernel, points: Array, memory_limit: float | None) -> Array:
    n, arrays = len(points), 4
    remedy = "use a random part of the rows, or a larger memory_limit"
    check_memory(arrays * 8.0 * n**2, memory_limit, f"{arrays} Gram matrices of {n:,} rows", remedy)
    K = gram.dense(kernel, points)
    if not np.isfinite(K.sum()):  # no comparison with NaN holds, which would look like a small p-value
        raise ValueError(f"{kernel!r} gives values that are not finite; correct the kernel, or rescale the data")
    return K


def permutation_pvalue(statistic: float, null: Array, rounding: float) -> float:
    """The share of permutations that reach the statistic, itself among them; ties count up to rounding."""
    tolerance = max(100 * EPS * abs(statistic), 16 * rounding)
    return float((np.count_nonzero(null >= statistic - tolerance) + 1) / (len(null) + 1))


SPLIT_BYTES = 2**25
"""Size of a block of splits."""


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


# ---------------------------------------------------------------- progress

QUIET_SECONDS = 3.0
"""Nothing is shown before."""


@contextmanager
def ticking(name: str, verbose: bool) -> Iterator[Callable[[float], None]]:
    """A function that shows the share that is done, in one line of a terminal, after some seconds."""
    started = perf_counter()
    with progress() as show:

        def tick(share: float) -> None:
            if verbose and perf_counter() - started > QUIET_SECONDS:
                show(f"{name}: {share:.0%}")

        yield tick
