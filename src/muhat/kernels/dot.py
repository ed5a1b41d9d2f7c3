"""Kernels of the inner product: linear and polynomial, with exact features and expectations."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cache
from itertools import combinations_with_replacement, pairwise
from math import comb, factorial
from typing import Any

import numpy as np

from muhat.kernels.base import Kernel, Measure
from muhat.measures import Atoms, Gaussians
from muhat.types import Array
from muhat.validation import check_count, check_number


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
        """The kernel as a function of the inner product.

        Parameters
        ----------
        t : array
            Inner products, in an array of any shape that the method may overwrite.

        Returns
        -------
        array of the same shape
        """

    def evaluate(self, X: Array, Y: Array) -> Array:
        return self.profile(X @ Y.T)

    def diagonal(self, X: Array) -> Array:
        return self.profile(np.einsum("ij,ij->i", X, X))

    @property
    def has_level2(self) -> bool:
        return True

    def evaluate_level2(self, inner: Array, left: Array, right: Array) -> Array:
        return self.profile(inner.copy())


def _check_powers(kernel: Kernel, X: Any, power: int) -> None:
    """Raise a ValueError where the values k(x, x), about this power of the data, underflow to 0."""
    largest = np.abs(np.asarray(X)).max(initial=0.0)
    if largest > 0 and power * np.log2(largest) < np.finfo(np.float64).minexp:
        raise ValueError(
            f"{kernel!r} underflows on X, whose largest entry is {largest:.3g}: all values would be 0. Multiply X by a "
            f"constant, or divide each column by its standard deviation"
        )


@dataclass(frozen=True)
class Polynomial(InnerProduct):
    r"""The polynomial kernel of degree p = ``degree`` with c = ``constant``: it sees moments up to p.

    .. math:: k(x, y) = (x^\top y + c)^p

    Parameters
    ----------
    degree : int, default 2
        Expectations under Gaussians are closed-form for degrees 1 to 3.
    constant : float, default 1.0
        Non-negative.

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

    @property
    def polynomial_form(self) -> tuple[int, float]:
        return self.degree, self.constant

    def exact_feature_count(self, width: int) -> int:
        return comb(width + bool(self.constant) + self.degree - 1, self.degree)

    def exact_features(self, X: Array) -> Array:
        """The monomials of the columns and of a column √constant."""
        columns = [*X.T, np.full(len(X), np.sqrt(self.constant))] if self.constant else [*X.T]
        Z = np.ascontiguousarray(columns)
        monomials = Z
        for degree in range(2, self.degree + 1):  # of lower degree, those without the first i columns are the last ones
            kept = [comb(len(Z) - i + degree - 2, degree - 1) for i in range(len(Z))]
            with np.errstate(over="ignore"):
                monomials = np.concatenate([Z[i] * monomials[-last:] for i, last in enumerate(kept)])
        return (_roots_of_multiplicities(len(Z), self.degree)[:, None] * monomials).T

    @property
    def has_gaussian_expectations(self) -> bool:
        return self.degree <= 3

    def gaussian_expectations(self, P: Gaussians, Q: Measure) -> Array:
        points = Q.points if isinstance(Q, Atoms) else Q.means
        M = P.means @ points.T + self.constant
        if self.degree == 1:
            return M
        q = np.stack([np.einsum("bi,ij,bj->b", points, S, points, optimize=True) for S in P.covariances])
        if isinstance(Q, Gaussians):
            q += np.einsum("ai,bij,aj->ab", P.means, Q.covariances, P.means, optimize=True)
            q += np.einsum("aij,bij->ab", P.covariances, Q.covariances, optimize=True)
        if self.degree == 2:
            return M**2 + q
        if self.degree == 3:
            values = M**3 + 3 * M * q
            if isinstance(Q, Gaussians):
                values += 6 * np.einsum(
                    "ai,bij,ajk,bk->ab", P.means, Q.covariances, P.covariances, Q.means, optimize=True
                )
            return values
        raise ValueError(self._no_closed_form())

    def gaussian_diagonal(self, P: Gaussians) -> Array:
        S, theta = P.covariances, P.means
        T = np.einsum("ai,ai->a", theta, theta) + np.einsum("aii->a", S) + self.constant
        if self.degree == 1:
            return T
        Stheta = np.einsum("aij,aj->ai", S, theta)
        V = 2 * np.einsum("aij,aij->a", S, S) + 4 * np.einsum("ai,ai->a", theta, Stheta)
        if self.degree == 2:
            return T**2 + V
        if self.degree == 3:
            cubes = 8 * np.einsum("aij,aij->a", S @ S, S) + 24 * np.einsum("ai,ai->a", Stheta, Stheta)
            return T**3 + 3 * T * V + cubes
        raise ValueError(self._no_closed_form())


@cache
def _roots_of_multiplicities(width: int, degree: int) -> Array:
    """Roots of degree! / ∏ⱼ αⱼ!, how often ∏ⱼ zⱼ^αⱼ occurs in (Σⱼ zⱼ)^degree, in the order of ``exact_features``."""
    chosen = np.array(list(combinations_with_replacement(range(width), degree)))
    orders = np.full(len(chosen), float(factorial(degree)))
    run = np.ones(len(chosen))
    for left, right in pairwise(chosen.T):
        run = np.where(left == right, run + 1, 1.0)
        orders /= run
    return np.sqrt(orders)


@dataclass(frozen=True)
class Linear(InnerProduct):
    r"""The linear kernel :math:`k(x, y) = x^\top y`: the kernel mean is the ordinary mean.

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

    @property
    def polynomial_form(self) -> tuple[int, float]:
        return 1, 0.0

    def exact_feature_count(self, width: int) -> int:
        return width

    def exact_features(self, X: Array) -> Array:
        return X

    def gaussian_expectations(self, P: Gaussians, Q: Measure) -> Array:
        return P.means @ (Q.points if isinstance(Q, Atoms) else Q.means).T

    def gaussian_diagonal(self, P: Gaussians) -> Array:
        return np.einsum("ai,ai->a", P.means, P.means) + np.einsum("aii->a", P.covariances)
