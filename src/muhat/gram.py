"""Gram products in bounded memory: the n x m matrix is visited a tile at a time, by several threads.

``kernel`` is anything that maps two row blocks to their matrix of kernel values. Results do not depend on the
number of threads: each thread owns rows, and sums are added in the order of the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import numpy as np
from joblib import effective_n_jobs

from muhat.threads import one_blas_thread
from muhat.types import Array

KernelFunction = Callable[[Array, Array], Array]
Result = TypeVar("Result")

BLOCK = 512
"""Rows and columns of a tile: 2 MB of float64, which stay in the cache."""

THREADED = 2**22
"""Matrices with fewer entries are not worth a second thread."""


def _blocks(n: int, start: int = 0) -> Iterator[slice]:
    return (slice(first, first + BLOCK) for first in range(start, n, BLOCK))


@contextmanager
def _mapping(entries: int) -> Iterator[Callable[[Callable[[slice], Result], Iterable[slice]], Iterable[Result]]]:
    """A ``map`` over row blocks: over threads, with BLAS held to one thread each, if there is enough to do."""
    workers = effective_n_jobs(-1)
    if workers == 1 or entries < THREADED:
        yield map
        return
    with one_blas_thread(), ThreadPoolExecutor(workers) as pool:
        yield pool.map


def dense(kernel: KernelFunction, X: Array) -> Array:
    """The symmetric matrix k(X, X), each pair computed once."""
    n = len(X)
    if n <= BLOCK:
        return kernel(X, X)
    K = np.empty((n, n))

    def fill(rows: slice) -> None:
        part = X[rows]
        K[rows, rows] = kernel(part, part)
        for columns in _blocks(n, rows.stop):
            K[rows, columns] = kernel(part, X[columns])
            K[columns, rows] = K[rows, columns].T

    with _mapping(n * n) as mapped:
        list(mapped(fill, _blocks(n)))
    return K


def product(kernel: KernelFunction, X: Array, Y: Array, W: Array) -> Array:
    """k(X, Y) @ W for a vector or a matrix W."""
    out = np.zeros((len(X), *W.shape[1:]))

    def fill(rows: slice) -> None:
        part = X[rows]
        for columns in _blocks(len(Y)):
            out[rows] += kernel(part, Y[columns]) @ W[columns]

    with _mapping(len(X) * len(Y)) as mapped:
        list(mapped(fill, _blocks(len(X))))
    return out


def quadratic_form(kernel: KernelFunction, X: Array, beta: Array) -> float:
    """The form βᵀ k(X, X) β, each pair computed once."""
    n = len(X)

    def strip(rows: slice) -> float:
        part, left = X[rows], beta[rows]
        total = float(left @ kernel(part, part) @ left)
        for columns in _blocks(n, rows.stop):
            total += 2.0 * float(left @ kernel(part, X[columns]) @ beta[columns])
        return total

    with _mapping(n * n) as mapped:
        return float(sum(mapped(strip, _blocks(n))))


def bilinear_form(kernel: KernelFunction, X: Array, Y: Array, beta: Array, gamma: Array) -> float:
    """The form βᵀ k(X, Y) γ."""
    return float(beta @ product(kernel, X, Y, gamma))
