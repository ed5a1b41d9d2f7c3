"""Gram products in bounded memory: the n x m matrix is visited a tile at a time, by several threads.

Kernels have a numeric bandwidth, and rows are float64 arrays that were checked before; of an ``np.memmap`` each block
is read when its turn comes.

Results do not depend on the number of threads: each thread owns rows, and sums are added in the order of the rows.
Large sums of a Gaussian kernel are compiled where numba is installed (``muhat.linalg.compiled``); they agree to 1e-13
of the magnitude of their terms. Kernels with few exact features (linear, polynomial) are summed through those, in
O(n), where that costs less than tiles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
from joblib import effective_n_jobs

from muhat._support.types import Array
from muhat._support.validation import check_overflow
from muhat.kernels.base import Kernel
from muhat.kernels.capabilities import evaluate_fast, exact_feature_count, exact_features, gaussian_bandwidth
from muhat.linalg import compiled
from muhat.linalg.blocks import blocks
from muhat.linalg.resources import check_memory, one_blas_thread

TileProduct = Callable[[Array, Array, Array], "Array | None"]

Item = TypeVar("Item")

Result = TypeVar("Result")

BLOCK = 512
"""Rows and columns of a tile: 2 MB of float64, which stay in the cache."""

THREADED = 2**22
"""Matrices with fewer entries are not worth a second thread."""

LARGE = 4096
"""Gram matrices of this many rows are checked against the free memory."""

_REMEDY = "use muhat.Nystroem features, a random part of the rows, or ShrunkKernelMean, which works in tiles"

COMPILED = 2**24
"""Sums over fewer entries are not worth importing numba. What was imported before does not matter: equal calls give
equal results."""

_OVERHEAD = 16  # what a number costs beside its part of a matrix product, in multiplications

_CELLS = 2**20  # numbers of a block of features


def _check_weights(name: str, weights: Any, X: Any) -> Array:
    weights = np.asarray(weights, dtype=np.float64)
    if len(weights) != len(X):
        raise ValueError(f"{name} has {len(weights)} entries and must have one for each of the {len(X)} rows")
    return weights


@contextmanager
def mapping(entries: int) -> Iterator[Callable[[Callable[[Item], Result], Iterable[Item]], Iterable[Result]]]:
    """A ``map``: over threads, if there is enough to do, and with BLAS held to one thread each.

    Threads see what their caller set for warnings of numpy's.
    """
    workers = 1 if entries < THREADED else effective_n_jobs(-1)
    if workers == 1:
        with one_blas_thread():
            yield map
        return
    context = copy_context()
    with one_blas_thread(), ThreadPoolExecutor(workers) as pool:
        yield lambda function, items: pool.map(lambda item: context.copy().run(function, item), items)


def compiled_product(kernel: Kernel, entries: int, columns: int) -> TileProduct | None:
    """The compiled (X, Y, W) -> k(X, Y) @ W of a tile, where the kernel offers it and there is much to do.

    It returns None for tiles that it cannot sum to the last digits.
    """
    if entries < COMPILED or columns > compiled.FEW or (bandwidth := gaussian_bandwidth(kernel)) is None:
        return None
    sums = compiled.gaussian_sums()
    return None if sums is None else lambda X, Y, W: sums(X, Y, W, bandwidth)


def _tile_product(kernel: Kernel, entries: int, columns: int) -> tuple[Callable[..., Array], int]:
    """The function (X, Y, W) -> k(X, Y) @ W of a tile, and the rows of a tile that suit it."""
    fast = compiled_product(kernel, entries, columns)

    def times(X: Array, Y: Array, W: Array) -> Array:
        values = None if fast is None else fast(X, Y, W)
        return evaluate_fast(kernel, X, Y) @ W if values is None else values

    return times, BLOCK if fast is None else compiled.BLOCK


class _Features(NamedTuple):
    """Exact features of a kernel, φ with k(x, y) = φ(x)ᵀφ(y), and how many there are."""

    of: Callable[[Array], Array]
    size: int

    def blocks(self, X: Any) -> Iterator[slice]:
        """Blocks of rows whose features fit the cache."""
        return blocks(len(X), min(BLOCK, max(_CELLS // self.size, 1)))

    def moments(self, X: Any, W: Array) -> Array:
        """φ(X)ᵀ W, added in the order of the rows."""
        with mapping(len(X) * self.size) as mapped:
            return sum(mapped(lambda rows: self.of(X[rows]).T @ W[rows], self.blocks(X)), start=np.zeros(()))

    def product(self, X: Any, moments: Array) -> Array:
        """φ(X) @ moments."""
        with mapping(len(X) * self.size) as mapped:
            return np.concatenate(list(mapped(lambda rows: self.of(X[rows]) @ moments, self.blocks(X))))


def _cheap_features(kernel: Kernel, width: int, rows: int, entries: float, columns: int) -> _Features | None:
    """The features of the kernel, where those of that many rows cost less than that many entries of tiles."""
    count = exact_feature_count(kernel, width)
    if rows * count * (_OVERHEAD + columns) >= entries * (_OVERHEAD + width):
        return None
    features = exact_features.dispatch(type(kernel))  # looked up once for all blocks
    return _Features(partial(features, kernel), int(count))


def dense(kernel: Kernel, X: Array, *, arrays: int = 2) -> Array:
    """Compute the symmetric matrix k(X, X), each pair once.

    A ValueError says where sums over it would overflow, and a MemoryError, before anything is allocated, where it does
    not fit: the caller needs ``arrays`` of its size in all.
    """
    n = len(X)
    if n >= LARGE:
        check_memory(arrays * 8 * n**2, None, f"{arrays} Gram matrices of {n:,} rows", _REMEDY)
    with np.errstate(over="ignore", invalid="ignore"):
        K = kernel.evaluate(X, X) if n <= BLOCK else _dense_by_tiles(kernel, X)
    check_overflow(kernel, np.diag(K))
    return K


def dense_stack(kernel: Kernel, X: Array) -> Array:
    """Gram matrices of samples of one size: an array of shape (m, n, n) from rows of shape (m, n, d)."""
    if len(X) == 1:
        return dense(kernel, X[0])[None]
    K = np.empty((*X.shape[:2], X.shape[1]))
    with np.errstate(over="ignore", invalid="ignore"):
        for rows, values in zip(X, K, strict=True):
            values[:] = kernel.evaluate(rows, rows)
    check_overflow(kernel, K.diagonal(axis1=1, axis2=2).max(axis=0))
    return K


def _dense_by_tiles(kernel: Kernel, X: Array) -> Array:
    n = len(X)
    K = np.empty((n, n))

    def fill(rows: slice) -> None:
        part = X[rows]
        K[rows, rows] = kernel.evaluate(part, part)
        for columns in blocks(n, BLOCK, rows.stop):
            K[rows, columns] = kernel.evaluate(part, X[columns])
            K[columns, rows] = K[rows, columns].T

    with mapping(n * n) as mapped:
        list(mapped(fill, blocks(n, BLOCK)))
    return K


def product(kernel: Kernel, X: Array, Y: Array, W: Any) -> Array:
    """Compute the product k(X, Y) @ W of a Gram matrix and a vector or matrix, tile by tile."""
    W = _check_weights("W", W, Y)
    entries, columns = len(X) * len(Y), int(np.prod(W.shape[1:]))
    features = _cheap_features(kernel, X.shape[1], len(X) + len(Y), entries, columns)
    if features is not None:
        return features.product(X, features.moments(Y, W))
    out = np.zeros((len(X), *W.shape[1:]))
    times, size = _tile_product(kernel, entries, columns)

    def fill(rows: slice) -> None:
        part = X[rows]
        for columns in blocks(len(Y), size):
            out[rows] += times(part, Y[columns], W[columns])

    with mapping(entries) as mapped:
        list(mapped(fill, blocks(len(X), size)))
    return out


def quadratic_form(kernel: Kernel, X: Array, beta: Any) -> float:
    """Compute the form βᵀ k(X, X) β, each pair once."""
    beta, n = _check_weights("beta", beta, X), len(X)
    features = _cheap_features(kernel, X.shape[1], n, 0.5 * n * n, 1)
    if features is not None:
        moments = features.moments(X, beta)
        return float(moments @ moments)
    times, size = _tile_product(kernel, n * n, 1)

    def strip(rows: slice) -> float:
        part, left = X[rows], beta[rows]
        total = float(left @ times(part, part, left))
        for columns in blocks(n, size, rows.stop):
            total += 2.0 * float(left @ times(part, X[columns], beta[columns]))
        return total

    with mapping(n * n) as mapped:
        return float(sum(mapped(strip, blocks(n, size))))


def bilinear_form(kernel: Kernel, X: Array, Y: Array, beta: Any, gamma: Any) -> float:
    """Compute the form βᵀ k(X, Y) γ."""
    values = product(kernel, X, Y, gamma)
    return float(_check_weights("beta", beta, values) @ values)
