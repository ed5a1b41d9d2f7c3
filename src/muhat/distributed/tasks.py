"""Tasks of workers: functions of their arguments alone, of one thread each, that need no Dask themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from joblib import parallel_config

from muhat.bags.bag_sums import bag_sums
from muhat.bags.data import Bags
from muhat.kernels.base import Kernel
from muhat.linalg import gram
from muhat.linalg.resources import one_blas_thread
from muhat.means.base import BaseKernelMean
from muhat.means.nested import mean_weights
from muhat.types import Array
from muhat.validation import check_rows

Part = tuple[Bags, Array]
"""Bags, and the weight of each row in the mean of its bag."""


@contextmanager
def _task(name: str = "") -> Iterator[None]:
    """One thread: how many tasks share a machine is for Dask to say. Errors of bad rows begin with a name."""
    with parallel_config(backend="sequential"), one_blas_thread(), np.errstate(all="ignore"):
        try:
            yield
        except ValueError as error:
            raise ValueError(f"{name}: {error}" if name else str(error)) from error


def pool_bags(bags: list[Any], first: int = 0) -> Bags:
    """Bags one below the other; ``first`` is the number of the first, for errors."""
    rows: list[Array] = []
    for i, bag in enumerate(bags, first):
        with _task(f"bags[{i}]"):
            rows.append(check_rows(bag))
            _check_same_width(rows[0], rows[-1])
    return Bags(np.concatenate(rows), np.cumsum([0, *map(len, rows)]))


def _check_same_width(A: Array, B: Array) -> None:
    if A.shape[1] != B.shape[1]:
        raise ValueError(
            f"some rows have {A.shape[1]} columns and others {B.shape[1]}; pass bags with the same columns"
        )


def weigh_rows(how: tuple[Kernel, BaseKernelMean | None], bags: Bags) -> Part:
    """Bags with the weights of their rows in the estimated means."""
    kernel, mean = how
    with _task():
        if mean is None:
            return bags, np.repeat(1.0 / bags.sizes, bags.sizes)
        grams = (gram.dense(kernel, rows) for rows in bags.parts(bags.rows))
        return bags, np.concatenate([mean_weights(mean, K) for K in grams])


def fill_tile(how: tuple[Kernel, Any], left: Part, right: Part) -> Array:
    """Inner products of the means of two groups of bags."""
    (A, a), (B, b), kernel = left, right, how[0]
    with _task():
        _check_same_width(A.rows, B.rows)
        G = bag_sums(kernel, A, a, B, b)
        if not np.isfinite(4.0 * np.abs(G).max()):  # squared distances add four of them
            raise ValueError(f"{kernel!r} overflows on these rows; rescale them first")
        return G


def run_cell(cell: Any, function: Callable[[Any], Any]) -> Any:
    """The function on one thread, whatever machine it is on."""
    with parallel_config(backend="sequential"), one_blas_thread():
        return function(cell)
