"""Inner products of the mean elements of bags, a tile of rows at a time."""

from __future__ import annotations

import numpy as np

from muhat.bags.data import Bags, BagTile
from muhat.kernels.base import Kernel
from muhat.linalg import gram
from muhat.linalg.gram import evaluate_fast
from muhat.linalg.resources import one_blas_thread
from muhat.means.base import BaseKernelMean
from muhat.means.nested import mean_weights
from muhat.types import Array


def bag_sums(kernel: Kernel, A: Bags, a: Array, B: Bags, b: Array) -> Array:
    """Inner products of mean elements, aᵢᵀ k(Aᵢ, Bⱼ) bⱼ for all pairs of bags: shape (len(A), len(B)).

    The kernel is evaluated on tiles; where A is B, each pair of rows is computed once.
    """
    same = A is B
    G = np.zeros((len(A), len(B)))
    row_tiles = list(A.tiles(a))
    column_tiles = row_tiles if same else list(B.tiles(b))
    entries = len(A.rows) * len(B.rows)
    compiled = gram.compiled_product(kernel, entries, columns=1)

    def tile_sums(row: BagTile, column: BagTile) -> Array:
        X, Y = A.rows[row.rows], B.rows[column.rows]
        values = None if compiled is None else compiled(X, Y, column.weights.T.toarray())
        return (
            (column.weights @ (row.weights @ evaluate_fast(kernel, X, Y)).T).T
            if values is None
            else row.weights @ values
        )

    def strip(i: int) -> Array:
        row = row_tiles[i]
        sums = np.zeros((row.bags.stop - row.bags.start, len(B)))
        for column in column_tiles[i if same else 0 :]:
            part = tile_sums(row, column)
            sums[:, column.bags] += 0.5 * part if same and row is column else part
        return sums

    # Matrix products so small run on one thread: more cost more than they give, and much more on a busy machine.
    with one_blas_thread(), gram.mapping(entries) as mapped:
        for row, sums in zip(row_tiles, mapped(strip, range(len(row_tiles))), strict=True):
            G[row.bags] += sums
    return G + G.T if same else G


def checked_sums(kernel: Kernel, A: Bags, a: Array, B: Bags, b: Array) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):
        G = bag_sums(kernel, A, a, B, b)
        if not np.isfinite(4.0 * np.abs(G).max()):  # squared distances add four of them
            raise ValueError(f"{kernel!r} overflows on these bags; rescale them first")
    return G


def bag_weights(kernel: Kernel, mean: BaseKernelMean | None, bags: Bags) -> Array:
    """Weights β that the mean estimator gives the rows of each bag."""
    if mean is None:
        sizes = np.diff(bags.offsets)
        return np.repeat(1.0 / sizes, sizes)
    return np.concatenate([mean_weights(mean, gram.dense(kernel, rows)) for rows in bags.parts(bags.rows)])


def training_sums(kernel: Kernel, mean: BaseKernelMean | None, bags: Bags) -> tuple[Array, Array]:
    weights = bag_weights(kernel, mean, bags)
    return weights, checked_sums(kernel, bags, weights, bags, weights)


def squared_norms(kernel: Kernel, bags: Bags, weights: Array) -> Array:
    pairs = zip(bags.parts(bags.rows), bags.parts(weights), strict=True)
    return np.array([gram.quadratic_form(kernel, rows, beta) for rows, beta in pairs])
