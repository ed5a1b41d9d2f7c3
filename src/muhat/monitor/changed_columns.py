"""Columns that changed most at an alarm, by the kernel statistic of each column alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from muhat.linalg.blocks import random_rows
from muhat.types import Array

_MOST_ROWS = 1000


def changed_columns(reference: Array, rows: Array, names: Sequence[str]) -> tuple[tuple[str, float], ...]:
    """Columns and how much they changed, the most changed first.

    A column's number is MMD² of the two samples, with a Gaussian kernel of the width of the column's spread, over its
    expectation without a change, (1/n + 1/L) (1 − mean k): about 1 by chance.

    Parameters
    ----------
    reference : array of shape (n, d)
    rows : array of shape (L, d)
    names : sequence of str

    Examples
    --------
    >>> import numpy as np
    >>> reference = np.column_stack([np.arange(50.0), np.arange(50.0)])
    >>> [name for name, _ in changed_columns(reference, np.array([[90.0, 20.0]]), ["a", "b"])]
    ['a', 'b']
    """
    some = random_rows(reference, _MOST_ROWS, np.random.default_rng(0))
    numbers = [_change(x, y) for x, y in zip(some.T, rows.T, strict=True)]
    order = np.argsort(-np.array(numbers), kind="stable")
    return tuple((names[j], float(numbers[j])) for j in order)


def _change(x: Array, y: Array) -> float:
    with np.errstate(over="ignore"):
        centre = x.mean()
        width = float(np.sqrt(((x - centre) ** 2).mean()))
    if not (np.isfinite(width) and width > 0):
        return 0.0 if (y == x[0]).all() else float(len(x))
    x, y = (np.clip((values - centre) / width, -1e9, 1e9) for values in (x, y))

    def mean_kernel(a: Array, b: Array) -> float:
        return float(np.exp(-0.5 * (a[:, None] - b) ** 2).mean())

    within = mean_kernel(x, x)
    squared = within + mean_kernel(y, y) - 2.0 * mean_kernel(x, y)
    return squared / ((1.0 / len(x) + 1.0 / len(y)) * max(1.0 - within, np.finfo(np.float64).tiny))
