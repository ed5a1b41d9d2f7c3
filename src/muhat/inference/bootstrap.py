"""Quantiles for intervals: the bootstrap, and an allowance for rare values that a sample may lack.

Where few rows carry the variance, resamples of these rows say little, and intervals allow for rows not seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.stats import t as student

from muhat.kernels.base import Kernel
from muhat.linalg.blocks import blocks
from muhat.types import Array
from muhat.validation import warn_caller

COUNT_BYTES = 2**25
"""Size of a block of bootstrap counts; each column is one resample."""

FEW_ROWS = 4.0
"""Where fewer rows than this carry a variance, values that the sample lacks may matter more than those it has."""

UNSEEN_ROWS = 2.0
"""How many rows with the most extreme value are then added to the variance: without variance, a share of unseen rows of
up to 2.8/n is covered at the level .95, for which the probability to see none of them is .06."""


def bootstrap_counts(
    rng: np.random.Generator, n: int, share: Array, n_resamples: int, width: int = 0
) -> Iterator[Array]:
    """Blocks of columns, each of which says how often a resample of n rows holds every row."""
    block = max(1, COUNT_BYTES // (8 * max(width, len(share))))
    for part in blocks(n_resamples, block):
        yield rng.multinomial(n, share, size=part.stop - part.start).T.astype(np.float64)


def upper_quantile(draws: Array, level: float) -> Any:
    """The ⌈level·(B + 1)⌉-th smallest of B draws along the first axis, at most the largest."""
    ordered = np.sort(draws, axis=0)
    return ordered[min(int(np.ceil(level * (len(draws) + 1))), len(draws)) - 1]


def tails(draws: Array, level: float) -> tuple[Any, Any]:
    """The lower and upper quantile between which a share ``level`` of the draws lies."""
    outer = 0.5 + 0.5 * level
    return -upper_quantile(-draws, outer), upper_quantile(draws, outer)


def carrying_rows(deviations: Array) -> Array:
    """How many rows carry a variance, (Σd²)² / Σd⁴ along the last axis: n where all d² are equal, 1 for one outlier."""
    squares = (deviations / np.maximum(np.abs(deviations).max(axis=-1, keepdims=True), 1e-300)) ** 2
    return np.asarray(squares.sum(axis=-1) ** 2 / np.maximum((squares**2).sum(axis=-1), 1e-300))


def few_rows_carry(deviations: Array, rounding: float, bound: float) -> Any:
    """Whether few rows carry a variance; or one or none of them, where no bound tells what others could change."""
    fewest = FEW_ROWS if np.isfinite(bound) else 1.5
    return (carrying_rows(deviations) < fewest) | (np.abs(deviations).max(axis=-1) <= rounding)


def quantile_of_unseen(n: float, level: float) -> float:
    """How far, in units of a row's largest deviation, an interval reaches for the sake of rows that were not seen."""
    return float(student.ppf(0.5 + 0.5 * level, n - 1.0) * np.sqrt(UNSEEN_ROWS) / n)


def warn_of_few_rows(what: str, kernel: Kernel) -> None:
    warn_caller(
        f"{what} rests on the deviations of one row or none, and {kernel!r} has no bound by which rows that the sample "
        "lacks could be allowed for; pass more rows, or use a bounded kernel such as muhat.Gaussian()"
    )
