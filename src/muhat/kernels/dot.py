"""Kernels of the inner product of two rows: linear and polynomial."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from muhat._support.types import Array
from muhat._support.validation import check_count, check_number
from muhat.kernels.base import Kernel


class InnerProduct(Kernel):
    r"""A kernel of the inner product: :math:`k(x, y) = \mathrm{profile}(x^\top y)`.

    To write your own, derive a frozen dataclass and define :meth:`profile`. The matrix, its diagonal and the kernel
    between mean elements of bags follow.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> import muhat as mh
    >>> @dataclass(frozen=True)
    ... class Exponential(mh.kernels.InnerProduct):
    ...     "k(x, y) = exp(xᵀy)."
    ...
    ...     def profile(self, t):
    ...         return np.exp(t)
    >>> Exponential()([[0.0, 1.0]], [[1.0, 0.0]])
    array([[1.]])
    """

    @abstractmethod
    def profile(self, t: Array) -> Array:
        """Compute the kernel from inner products t, an array of any shape that may be overwritten."""

    def evaluate(self, X: Array, Y: Array) -> Array:
        return self.profile(X @ Y.T)

    def diagonal(self, X: Array) -> Array:
        return self.profile(np.einsum("ij,ij->i", X, X))


def _check_powers(kernel: Kernel, X: Any, power: int) -> None:
    """Raise a ValueError where the values k(x, x), about this power of the data, underflow to 0."""
    largest = np.abs(np.asarray(X)).max(initial=0.0)
    if largest > 0 and power * np.log2(largest) < np.finfo(np.float64).minexp:
        raise ValueError(
            f"{kernel!r} underflows on X, whose largest entry is {largest:.3g}: all values would be 0. Multiply X by a "
            f"constant, or divide each column by its standard deviation"
        )


@dataclass(frozen=True, repr=False)
class Polynomial(InnerProduct):
    r"""The polynomial kernel of degree p = ``degree`` with c = ``constant``: it sees moments up to p.

    .. math:: k(x, y) = (x^\top y + c)^p

    Parameters
    ----------
    degree : int, default 2
        Expectations under Gaussians are closed-form for degrees 1 to 3.
    constant : float, default 1.0
        Non-negative.

    See Also
    --------
    Linear : Degree 1 without constant.
    Gaussian : Sees the whole distribution.

    Examples
    --------
    >>> import muhat as mh
    >>> mh.Polynomial(degree=2)([[1.0, 2.0]], [[3.0, 4.0]])
    array([[144.]])
    """

    degree: int = 2
    constant: float = 1.0

    def __post_init__(self) -> None:
        check_count("degree", self.degree)
        check_number("constant", self.constant, low=0)

    def resolve(self, X: Any, sample_weight: Array | None = None) -> Polynomial:
        if self.constant == 0:
            _check_powers(self, X, 2 * self.degree)
        return self

    def profile(self, t: Array) -> Array:
        t += self.constant
        with np.errstate(over="ignore"):  # the caller that sums the values reports infinities
            return t**self.degree if self.degree > 1 else t


@dataclass(frozen=True, repr=False)
class Linear(InnerProduct):
    r"""The linear kernel :math:`k(x, y) = x^\top y`: the kernel mean is the ordinary mean.

    See Also
    --------
    Polynomial : Higher moments.
    james_stein : Shrinkage of an ordinary mean.

    Examples
    --------
    >>> import muhat as mh
    >>> mh.Linear()([[1.0, 2.0]], [[3.0, 4.0]])
    array([[11.]])
    """

    def resolve(self, X: Any, sample_weight: Array | None = None) -> Linear:
        _check_powers(self, X, 2)
        return self

    def profile(self, t: Array) -> Array:
        return t


def polynomial_form(kernel: Kernel) -> tuple[int, float] | None:
    """The numbers (p, c) if k(x, y) = (xᵀy + c)^p, or None."""
    if isinstance(kernel, Linear):
        return 1, 0.0
    return (kernel.degree, kernel.constant) if isinstance(kernel, Polynomial) else None
