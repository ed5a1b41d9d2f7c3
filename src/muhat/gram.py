"""Gram products in bounded memory: the n x m matrix is visited a tile at a time.

``kernel`` is anything that maps two row blocks to their matrix of kernel values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from muhat.types import Array

KernelFunction = Callable[[Array, Array], Array]

BLOCK = 512
"""Rows and columns of a tile: 2 MB of float64."""


def _blocks(n: int) -> Iterator[slice]:
    return (slice(start, start + BLOCK) for start in range(0, n, BLOCK))


def dense(kernel: KernelFunction, X: Array) -> Array:
    """The symmetric matrix k(X, X), each pair computed once."""
    if len(X) <= BLOCK:
        return kernel(X, X)
    K = np.empty((len(X), len(X)))
    for rows in _blocks(len(X)):
        part = X[rows]
        K[rows, rows] = kernel(part, part)
        for start in range(rows.stop, len(X), BLOCK):
            columns = slice(start, start + BLOCK)
            K[rows, columns] = kernel(part, X[columns])
            K[columns, rows] = K[rows, columns].T
    return K


def product(kernel: KernelFunction, X: Array, Y: Array, W: Array) -> Array:
    """k(X, Y) @ W for a vector or a matrix W."""
    out = np.zeros((len(X), *W.shape[1:]))
    for rows in _blocks(len(X)):
        for columns in _blocks(len(Y)):
            out[rows] += kernel(X[rows], Y[columns]) @ W[columns]
    return out


def quadratic_form(kernel: KernelFunction, X: Array, beta: Array) -> float:
    """The form βᵀ k(X, X) β, each pair computed once."""
    total = 0.0
    for rows in _blocks(len(X)):
        part = X[rows]
        total += float(beta[rows] @ kernel(part, part) @ beta[rows])
        for start in range(rows.stop, len(X), BLOCK):
            columns = slice(start, start + BLOCK)
            total += 2.0 * float(beta[rows] @ kernel(part, X[columns]) @ beta[columns])
    return total


def bilinear_form(kernel: KernelFunction, X: Array, Y: Array, beta: Array, gamma: Array) -> float:
    """The form βᵀ k(X, Y) γ."""
    return float(beta @ product(kernel, X, Y, gamma))
