"""Blocks, folds and random subsets of rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from muhat._support.types import Array


def blocks(n: int, size: int, start: int = 0) -> Iterator[slice]:
    """The slices of at most ``size`` rows that cover the rows from ``start`` to n.

    >>> list(blocks(5, 2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return (slice(first, min(first + size, n)) for first in range(start, n, size))


def random_folds(keys: Array, count: int) -> NDArray[np.intp]:
    """Numbers of ``count`` folds of nearly equal size, one per row: random, and the same in whatever order rows come.

    A fixed seed shuffles the folds over the rows in the order of their ``keys``, of shape (n, d). So neither a period
    nor a trend in the order of the rows puts like rows into one fold.

    >>> keys = np.array([[3.0], [1.0], [2.0], [5.0], [4.0]])
    >>> folds = random_folds(keys, 2)
    >>> sorted(folds.tolist()), bool((random_folds(keys[::-1], 2) == folds[::-1]).all())
    ([0, 0, 0, 1, 1], True)
    """
    folds = np.empty(len(keys), dtype=np.intp)
    folds[lexicographic_order(keys)] = np.random.default_rng(0).permutation(np.arange(len(keys)) % count)
    return folds


def lexicographic_order(X: Array) -> NDArray[np.intp]:
    """The order of the rows by their columns; the first alone tells it, in less time, where no two are equal there."""
    order = np.argsort(X[:, 0], kind="stable")
    first = X[order, 0]
    return order if (first[1:] > first[:-1]).all() else np.lexsort(X.T[::-1])


def columns_by_value(X: Array, sample_weight: Array | None = None) -> NDArray[np.intp]:
    """An order of the columns that their least, largest and summed values fix, in whatever order they come."""
    counted = X if sample_weight is None else X[sample_weight > 0]
    with np.errstate(over="ignore", invalid="ignore"):  # of the largest numbers
        sums = X.sum(axis=0) if sample_weight is None else sample_weight @ X
    return np.lexsort((sums, counted.max(axis=0), counted.min(axis=0)))


def rows_by_value(rows: Array, most: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Numbers of at most so many rows, drawn by their values: all of them where they are fewer.

    Landmarks of a permutation test are drawn so. By row number, a seed would give each sample a fixed number of
    landmarks, whose features are longer than those of other rows.
    """
    if len(rows) <= most:
        return np.arange(len(rows))
    return lexicographic_order(rows)[rng.choice(len(rows), most, replace=False)]


def random_rows(rows: Array, most: int, rng: np.random.Generator) -> Array:
    """At most so many of the rows, drawn without replacement and in their order; all of them where they are fewer.

    Evenly spaced rows would be alike where the rows have a period.
    """
    return rows if len(rows) <= most else rows[np.sort(rng.choice(len(rows), most, replace=False))]
