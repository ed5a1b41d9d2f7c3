"""Pivoted Cholesky decomposition of a Gram matrix from its diagonal and some of its columns."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from muhat._support.types import Array


def pivoted_factor(
    diagonal: Array, column: Callable[[int], Array], rank: int, tol: float = 0.0
) -> tuple[NDArray[np.intp], Array, float]:
    """Pivots, the factor L of shape (n, r) with K ≈ LLᵀ, and the trace of K − LLᵀ; ``column(i)`` is column i of K.

    It stops before ``rank`` steps where the trace of the residual is down to ``tol`` times that of K, or to rounding.
    """
    left = diagonal.copy()
    trace, rounding = left.sum(), len(left) * np.finfo(np.float64).eps * left.max()
    columns = np.empty((min(rank, len(left)), len(left)))
    pivots: list[int] = []
    for step, new in enumerate(columns):
        pivot = int(np.argmax(left))
        if left[pivot] <= rounding or left.sum() <= tol * trace:
            break
        np.subtract(column(pivot), columns[:step, pivot] @ columns[:step], out=new)
        new /= np.sqrt(left[pivot])
        left -= new**2
        left[pivot] = 0.0
        left.clip(0.0, out=left)
        pivots.append(pivot)
    return np.array(pivots, dtype=np.intp), columns[: len(pivots)].T, float(left.sum())
