"""Kernels of the inner product: linear and polynomial, with exact features and expectations."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import combinations_with_replacement, pairwise
from math import comb, factorial

import numpy as np

from muhat.kernels.base import Kernel, Measure
from muhat.measures import Atoms, Gaussians
from muhat.types import Array
from muhat.validation import check_count, check_number


@dataclass(frozen=True)
class Polynomial(Kernel):
    r"""k(x, y) = (xᵀy + ``constant``)^``degree``.

    Parameters
    ----------
    degree : int, default 2
        Expectations under Gaussians are closed-form for degrees 1 to 3.
    constant : float, default 1.0
        Non-negative.

    Examples
    --------
    >>> from muhat import Polynomial
    >>> Polynomial(degree=2)([[1.0, 2.0]], [[3.0, 4.0]])
    array([[144.]])
    """

    degree: int = 2
    constant: float = 1.0

    def __post_init__(self) -> None:
        check_count("degree", self.degree)
        check_number("constant", self.constant, low=0)

    def evaluate(self, X: Array, Y: Array) -> Array:
        return _power(X @ Y.T + self.constant, self.degree)

    def diagonal(self, X: Array) -> Array:
        return _power(np.einsum("ij,ij->i", X, X) + self.constant, self.degree)

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


def _power(values: Array, degree: int) -> Array:
    with np.errstate(over="ignore"):  # an infinite value is reported by who sums the matrix
        return values**degree if degree > 1 else values


@cache
def _roots_of_multiplicities(width: int, degree: int) -> Array:
    """Roots of degree! / ∏ⱼ αⱼ!, how often ∏ⱼ zⱼ^αⱼ occurs in (Σⱼ zⱼ)^degree, in the order of ``_features``."""
    chosen = np.array(list(combinations_with_replacement(range(width), degree)))
    orders = np.full(len(chosen), float(factorial(degree)))
    run = np.ones(len(chosen))
    for left, right in pairwise(chosen.T):
        run = np.where(left == right, run + 1, 1.0)
        orders /= run
    return np.sqrt(orders)


@dataclass(frozen=True)
class Linear(Kernel):
    """k(x, y) = xᵀy: the kernel mean is the ordinary mean.

    Examples
    --------
    >>> from muhat import Linear
    >>> Linear()([[1.0, 2.0]], [[3.0, 4.0]])
    array([[11.]])
    """

    def evaluate(self, X: Array, Y: Array) -> Array:
        return X @ Y.T

    def exact_feature_count(self, width: int) -> int:
        return width

    def exact_features(self, X: Array) -> Array:
        return X

    def diagonal(self, X: Array) -> Array:
        return np.einsum("ij,ij->i", X, X)

    def gaussian_expectations(self, P: Gaussians, Q: Measure) -> Array:
        return P.means @ (Q.points if isinstance(Q, Atoms) else Q.means).T

    def gaussian_diagonal(self, P: Gaussians) -> Array:
        return np.einsum("ai,ai->a", P.means, P.means) + np.einsum("aii->a", P.covariances)
