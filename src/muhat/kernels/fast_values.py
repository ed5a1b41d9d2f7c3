"""Kernel values for sums over many rows, of composed kernels and of kernels on some of the columns, by their parts."""

from __future__ import annotations

from muhat.kernels.base import Composed
from muhat.kernels.mixed import OnColumns
from muhat.linalg.gram import evaluate_fast
from muhat.types import Array

__all__ = ["evaluate_fast"]


@evaluate_fast.register(Composed)
def _composed_values(kernel: Composed, X: Array, Y: Array) -> Array:
    return kernel.combine(evaluate_fast(part, X, Y) for part in kernel.parts)


@evaluate_fast.register(OnColumns)
def _values_on_columns(kernel: OnColumns, X: Array, Y: Array) -> Array:
    return evaluate_fast(kernel.kernel, kernel.chosen(X), kernel.chosen(Y))
