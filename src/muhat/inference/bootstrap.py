"""The bootstrap: counts of resamples, and quantiles of what they give."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from muhat.linalg.blocks import blocks
from muhat.types import Array

COUNT_BYTES = 2**25
"""Size of a block of bootstrap counts; each column is one resample."""


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
