"""Permutations and splits: what every test of this room shares."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from muhat.kernels.base import Kernel
from muhat.linalg import gram
from muhat.types import Array
from muhat.validation import check_overflow, check_rows

EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False, repr=False)
class PermutationResult:
    """What a permutation test found: ``statistic``, ``pvalue`` and ``null_distribution``, as in scipy.stats.

    The p-value is (b + 1)/(B + 1), where b of the B permutations reach the statistic. It is never 0, and under the
    null hypothesis it is at most α with probability at most α, at every sample size.
    """

    statistic: float
    pvalue: float
    null_distribution: Array

    def __repr__(self) -> str:
        found = f"statistic={self.statistic:.4g}, pvalue={self.pvalue:.4g}"
        return f"{type(self).__name__}({found}, n_resamples={len(self.null_distribution):,})"


def sample_rows(name: str, X: Any, min_rows: int) -> Array:
    rows = check_rows(X, name=name)
    if len(rows) < min_rows:
        raise ValueError(
            f"{name} has {len(rows)} row(s) and this test needs at least {min_rows}; pass all rows of a sample at once"
        )
    return rows


def check_column_names(X: Any, Y: Any) -> None:
    x, y = (list(getattr(sample, "columns", ())) for sample in (X, Y))
    if x and y and x != y:
        raise ValueError(f"X has the columns {x} and Y has {y}; reorder or rename them, Y[X.columns]")


def pooled_gram(kernel: Kernel, points: Array) -> Array:
    check_overflow(kernel, kernel.diagonal(points))
    K = gram.dense(kernel, points, arrays=4)
    if not np.isfinite(K.sum()):  # no comparison with NaN holds, which would look like a small p-value
        raise ValueError(f"{kernel!r} gives values that are not finite; correct the kernel, or rescale the data")
    return K


def permutation_pvalue(statistic: float, null: Array, rounding: float) -> float:
    """The share of permutations that reach the statistic, itself among them; ties count up to rounding."""
    tolerance = max(100 * EPS * abs(statistic), 16 * rounding)
    return float((np.count_nonzero(null >= statistic - tolerance) + 1) / (len(null) + 1))


SPLIT_BYTES = 2**25
"""Size of a block of splits."""


def random_splits(observed: Array, n_resamples: int, rng: np.random.Generator) -> Iterator[Array]:
    """Blocks of splits that permute the observed one."""
    block = max(1, SPLIT_BYTES // observed.nbytes)
    for start in range(0, n_resamples, block):
        rows = np.tile(observed, (min(block, n_resamples - start), 1))
        yield rng.permuted(rows, axis=1, out=rows).T
