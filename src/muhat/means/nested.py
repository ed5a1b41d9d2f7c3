"""Mean estimators passed to other estimators as ``mean=``: the kernel is that of the other, None the plain average."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muhat._support.types import Array
from muhat._support.validation import check_overflow
from muhat.grams import MatrixGram, RowsGram
from muhat.kernels import tiles
from muhat.kernels.base import Kernel
from muhat.linalg.blocks import blocks
from muhat.means.base import BaseKernelMean, MeanFit
from muhat.rkhs.elements import Element, embed


def check_mean(name: str, mean: Any) -> None:
    """Raise a ValueError unless ``mean`` is None or a mean estimator."""
    if mean is not None and not isinstance(mean, BaseKernelMean):
        raise ValueError(f"{name}={mean!r} must be None (the plain average) or an estimator such as ShrunkKernelMean()")


def mean_weights(mean: BaseKernelMean | None, K: Array) -> Array:
    """Weights β that the estimator gives the rows of a Gram matrix, taken as valid; a single row has weight 1."""
    return mean_from_gram(mean, K).weights


def mean_from_gram(mean: BaseKernelMean | None, K: Array) -> MeanFit:
    """As :func:`mean_weights`, with what the estimator chose; the result does not keep the matrix."""
    if mean is None or len(K) == 1:
        return MeanFit(np.full(len(K), 1.0 / len(K)))
    check_overflow("the Gram matrix", np.diag(K))
    return replace(mean.estimate(MatrixGram(K)), gram=None)


def bag_weights(mean: BaseKernelMean | None, kernel: Kernel, rows: Array, offsets: NDArray[np.intp]) -> Array:
    """Weights β that the estimator gives the rows of each bag, where bag i is ``rows[offsets[i]:offsets[i + 1]]``.

    Bags of one size are estimated together, from a stack of their Gram matrices. A single row has weight 1.
    """
    sizes = np.diff(offsets)
    weights = np.repeat(1.0 / sizes, sizes)
    if mean is None:
        return weights
    for size in np.unique(sizes[sizes > 1]).tolist():
        firsts = offsets[:-1][sizes == size]
        at_once = max(_STACKED // size**2, 1) if size <= tiles.BLOCK else 1
        for part in blocks(len(firsts), at_once):
            members = firsts[part, None] + np.arange(size)
            weights[members] = mean.stack_weights(tiles.dense_stack(kernel, rows[members]))
    return weights


_STACKED = 2**20
"""Numbers of a stack of Gram matrices: 8 MB."""


def mean_element(mean: BaseKernelMean | None, kernel: Kernel, X: Array) -> Element:
    """The estimate in the space of a resolved kernel, from checked rows; a single row is its own mean."""
    return embed(kernel, X) if mean is None or len(X) == 1 else mean.estimate_weighted(RowsGram(kernel, X)).mean
