"""Gram products in bounded memory: the n x m matrix is visited a tile at a time, by several threads.

``kernel`` is anything that maps two row blocks to their matrix of kernel values. Results do not depend on the
number of threads: each thread owns rows, and sums are added in the order of the rows. Large sums of a Gaussian kernel
are compiled where numba is installed (``muhat.fast``); they agree to 1e-13 of the magnitude of their terms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import numpy as np
from joblib import effective_n_jobs

from muhat import fast
from muhat.memory import check_memory
from muhat.threads import one_blas_thread
from muhat.types import Array

KernelFunction = Callable[[Array, Array], Array]
TileProduct = Callable[[Array, Array, Array], Array]
Result = TypeVar("Result")

BLOCK = 512
"""Rows and columns of a tile: 2 MB of float64, which stay in the cache."""

THREADED = 2**22
"""Matrices with fewer entries are not worth a second thread."""

LARGE = 4096
"""Gram matrices of so many rows are checked against the free memory."""

_REMEDY = "use muhat.Nystroem features, a random part of the rows, or ShrunkKernelMean, which works in tiles"

COMPILED = 2**24
"""Sums over fewer entries are not worth importing numba. What was imported before does not matter: equal calls give
equal results."""


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


def _tile_product(kernel: KernelFunction, entries: int, columns: int) -> TileProduct:
    """The function (X, Y, W) -> k(X, Y) @ W of a tile: compiled, where the kernel offers it and there is much to do."""

    def plain(X: Array, Y: Array, W: Array) -> Array:
        return kernel(X, Y) @ W

    owner = getattr(kernel, "__self__", None)
    offered = entries >= COMPILED and columns <= fast.FEW and kernel == getattr(owner, "_tile", None)
    width = getattr(owner, "_gaussian_width", None) if offered else None
    sums = fast.gaussian_sums() if width is not None else None
    if sums is None or width is None:
        return plain

    def compiled(X: Array, Y: Array, W: Array) -> Array:
        values = sums(X, Y, W, width)
        return plain(X, Y, W) if values is None else values

    return compiled


def dense(kernel: KernelFunction, X: Array, *, arrays: int = 2) -> Array:
    """The symmetric matrix k(X, X), each pair computed once.

    The caller needs as many ``arrays`` of that size in all; where they do not fit the memory, a MemoryError says so
    before anything is allocated.
    """
    n = len(X)
    if n <= BLOCK:
        return kernel(X, X)
    if n >= LARGE:
        check_memory(arrays * 8 * n**2, None, f"{arrays} Gram matrices of {n:,} rows", _REMEDY)
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
    times = _tile_product(kernel, len(X) * len(Y), int(np.prod(W.shape[1:])))

    def fill(rows: slice) -> None:
        part = X[rows]
        for columns in _blocks(len(Y)):
            out[rows] += times(part, Y[columns], W[columns])

    with _mapping(len(X) * len(Y)) as mapped:
        list(mapped(fill, _blocks(len(X))))
    return out


def quadratic_form(kernel: KernelFunction, X: Array, beta: Array) -> float:
    """The form βᵀ k(X, X) β, each pair computed once."""
    n = len(X)
    times = _tile_product(kernel, n * n, 1)

    def strip(rows: slice) -> float:
        part, left = X[rows], beta[rows]
        total = float(left @ times(part, part, left))
        for columns in _blocks(n, rows.stop):
            total += 2.0 * float(left @ times(part, X[columns], beta[columns]))
        return total

    with _mapping(n * n) as mapped:
        return float(sum(mapped(strip, _blocks(n))))


def bilinear_form(kernel: KernelFunction, X: Array, Y: Array, beta: Array, gamma: Array) -> float:
    """The form βᵀ k(X, Y) γ."""
    return float(beta @ product(kernel, X, Y, gamma))
