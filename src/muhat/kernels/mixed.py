"""Kernels for rows of mixed columns: equal categories, kernels on some of the columns, and on rescaled columns."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from muhat._support.types import Array
from muhat._support.validation import check_rows
from muhat.kernels.base import Kernel, check_kernel


@dataclass(frozen=True, repr=False)
class Categorical(Kernel):
    r"""The share of the columns in which two rows have the same category.

    .. math:: k(x, y) = \frac1d \sum_{j=1}^d [x_j = y_j]

    Categories are written as numbers, such as scikit-learn's ``OrdinalEncoder`` gives; their order does not matter.

    See Also
    --------
    OnColumns : This kernel on some of the columns.

    Examples
    --------
    >>> import muhat as mh
    >>> mh.Categorical()([[0, 1], [0, 2]])
    array([[1. , 0.5],
           [0.5, 1. ]])
    """

    def evaluate(self, X: Array, Y: Array) -> Array:
        return 1.0 - cdist(X, Y, "hamming")

    def diagonal(self, X: Array) -> Array:
        return np.ones(len(X))


@dataclass(frozen=True, repr=False)
class OnColumns(Kernel):
    r"""A kernel that sees some of the columns only.

    .. math:: k(x, y) = \mathrm{kernel}(x_C, y_C)

    Products and sums of such kernels compare rows of mixed columns.

    Parameters
    ----------
    kernel : Kernel
        Its median bandwidth is found on these columns.
    columns : tuple of int
        The numbers C of the columns, from 0.

    See Also
    --------
    Categorical : A kernel for columns of categories.
    muhat.kernels.Rescaled : Columns divided by scales.

    Examples
    --------
    >>> import muhat as mh
    >>> mixed = mh.OnColumns(mh.Gaussian(1.0), (0,)) * mh.OnColumns(mh.Categorical(), (1, 2))
    >>> mixed([[0.0, 1, 1], [1.0, 1, 2]]).round(4)
    array([[1.    , 0.3033],
           [0.3033, 1.    ]])
    """

    kernel: Kernel
    columns: tuple[int, ...]

    def __post_init__(self) -> None:
        check_kernel("kernel", self.kernel)
        whole = isinstance(self.columns, tuple) and all(isinstance(column, numbers.Integral) for column in self.columns)
        if not whole or not self.columns or min(self.columns) < 0:
            raise ValueError(
                f"columns={self.columns!r} must be a tuple of numbers of columns; pass (0, 2), for example"
            )

    def resolve(self, X: Any, sample_weight: Array | None = None) -> OnColumns:
        return OnColumns(self.kernel.resolve(self.chosen(check_rows(X)), sample_weight), self.columns)

    def evaluate(self, X: Array, Y: Array) -> Array:
        return self.kernel.evaluate(self.chosen(X), self.chosen(Y))

    def diagonal(self, X: Array) -> Array:
        return self.kernel.diagonal(self.chosen(X))

    def chosen(self, X: Array) -> Array:
        """The columns of X that the kernel sees."""
        if max(self.columns) >= X.shape[1]:
            raise ValueError(f"columns={self.columns!r} has a number that X, with {X.shape[1]} columns, does not have")
        first, last = self.columns[0], self.columns[-1]
        if self.columns == tuple(range(first, last + 1)):
            return X[:, first : last + 1]  # which copies nothing
        return X[:, list(self.columns)]


@dataclass(frozen=True, repr=False)
class Rescaled(Kernel):
    r"""A kernel of columns that are divided by a scale each.

    .. math:: k(x, y) = \mathrm{kernel}(x_1 / s_1, …, x_d / s_d;\; y_1 / s_1, …, y_d / s_d)

    Tests with ``scale="columns"`` give it as their kernel, so that witness functions take rows in their own units. A
    median bandwidth is found on the rescaled columns.
    """

    kernel: Kernel
    scales: tuple[float, ...]

    def __post_init__(self) -> None:
        check_kernel("kernel", self.kernel)
        if not (isinstance(self.scales, tuple) and self.scales and all(scale > 0 for scale in self.scales)):
            raise ValueError(f"scales={self.scales!r} must be a tuple of positive numbers; pass one for each column")

    def resolve(self, X: Any, sample_weight: Array | None = None) -> Rescaled:
        return Rescaled(self.kernel.resolve(check_rows(X) / self.scales, sample_weight), self.scales)

    def evaluate(self, X: Array, Y: Array) -> Array:
        first = X / self.scales
        return self.kernel.evaluate(first, first if Y is X else Y / self.scales)

    def diagonal(self, X: Array) -> Array:
        return self.kernel.diagonal(X / self.scales)


def rescaled(kernel: Kernel, scales: Array | None) -> Kernel:
    """The kernel on columns divided by these scales; the kernel itself if no scales are given."""
    return kernel if scales is None else Rescaled(kernel, tuple(map(float, scales)))


def without_scales(kernel: Kernel) -> Kernel:
    """The kernel that sees the rescaled columns."""
    return kernel.kernel if isinstance(kernel, Rescaled) else kernel
