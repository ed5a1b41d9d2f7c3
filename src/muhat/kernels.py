"""Kernels: frozen values, checked at birth, with exact expectations where they exist."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import combinations_with_replacement, pairwise
from math import comb, factorial
from typing import Any, ClassVar, Literal, Self

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.spatial.distance import cdist

from muhat.distances import Metric, median_distance, negative_half_squares, squared_distances
from muhat.kernel_algebra import Kernel, Measure, Product, Scaled, Sum, check_kernel
from muhat.measures import Atoms, Gaussians
from muhat.types import Array
from muhat.validation import check_count, check_number, check_rows

__all__ = [
    "Gaussian",
    "Kernel",
    "Laplace",
    "Linear",
    "Matern",
    "Measure",
    "Polynomial",
    "Product",
    "Scaled",
    "Sum",
    "check_kernel",
]


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

    def _gram(self, X: Array, Y: Array) -> Array:
        return _power(X @ Y.T + self.constant, self.degree)

    def _diag(self, X: Array) -> Array:
        return _power(np.einsum("ij,ij->i", X, X) + self.constant, self.degree)

    def _feature_count(self, width: int) -> int:
        return comb(width + bool(self.constant) + self.degree - 1, self.degree)

    def _features(self, X: Array) -> Array:
        """The monomials of the columns and of a column √constant."""
        columns = [*X.T, np.full(len(X), np.sqrt(self.constant))] if self.constant else [*X.T]
        Z = np.ascontiguousarray(columns)
        monomials = Z
        for degree in range(2, self.degree + 1):  # of lower degree, those without the first i columns are the last ones
            kept = [comb(len(Z) - i + degree - 2, degree - 1) for i in range(len(Z))]
            with np.errstate(over="ignore"):
                monomials = np.concatenate([Z[i] * monomials[-last:] for i, last in enumerate(kept)])
        return (_roots_of_multiplicities(len(Z), self.degree)[:, None] * monomials).T

    def _gaussian_expectations(self, P: Gaussians, Q: Measure) -> Array:
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

    def _gaussian_diag(self, P: Gaussians) -> Array:
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

    def _gram(self, X: Array, Y: Array) -> Array:
        return X @ Y.T

    def _feature_count(self, width: int) -> int:
        return width

    def _features(self, X: Array) -> Array:
        return X

    def _diag(self, X: Array) -> Array:
        return np.einsum("ij,ij->i", X, X)

    def _gaussian_expectations(self, P: Gaussians, Q: Measure) -> Array:
        return P.means @ (Q.points if isinstance(Q, Atoms) else Q.means).T

    def _gaussian_diag(self, P: Gaussians) -> Array:
        return np.einsum("ai,ai->a", P.means, P.means) + np.einsum("aii->a", P.covariances)


class _Radial(Kernel):
    """Base of kernels with a bandwidth, a function of a distance, and k(x, x) = 1."""

    bandwidth: float | Literal["median"]
    _metric: ClassVar[Metric] = "sqeuclidean"

    def __post_init__(self) -> None:
        if not (isinstance(self.bandwidth, str) and self.bandwidth == "median"):
            check_number("bandwidth", self.bandwidth, low=0, open_low=True, or_else='"median"')

    def resolve(self, X: Any, sample_weight: Array | None = None) -> Self:
        if self.bandwidth != "median":
            return self
        median = median_distance(check_rows(X, min_rows=2), self._metric, sample_weight)
        return self.with_params(bandwidth=median)

    @property
    def _width(self) -> float:
        if self.bandwidth == "median":
            raise ValueError(f"{self!r}: the median needs data; call kernel.resolve(X) first, or pass a number")
        return self.bandwidth

    def _diag(self, X: Array) -> Array:
        return np.ones(len(X))

    @property
    def _largest_value(self) -> float:
        return 1.0

    def _gaussian_diag(self, P: Gaussians) -> Array:
        return np.ones(len(P))


@dataclass(frozen=True)
class Gaussian(_Radial):
    r"""k(x, y) = exp(−‖x − y‖² / 2s²), with s = ``bandwidth``.

    Parameters
    ----------
    bandwidth : float or "median", default "median"
        "median" is s² = median of ‖xᵢ − xⱼ‖² over the pairs i < j, found by ``resolve(X)`` or ``fit``.

    Examples
    --------
    >>> from muhat import Gaussian
    >>> Gaussian(bandwidth=1.0)([[0.0], [1.0]]).round(4)
    array([[1.    , 0.6065],
           [0.6065, 1.    ]])
    >>> Gaussian().resolve([[0.0], [1.0], [3.0]])
    Gaussian(bandwidth=2.0)
    """

    bandwidth: float | Literal["median"] = "median"

    def _gram(self, X: Array, Y: Array) -> Array:
        K = squared_distances(X, Y, scale=self._width)
        K *= -0.5
        return np.exp(K, out=K)

    def _tile(self, X: Array, Y: Array) -> Array:
        exponents = negative_half_squares(X, Y, scale=self._width)
        if exponents is None:
            return self._gram(X, Y)
        return np.exp(exponents, out=exponents)

    @property
    def _gaussian_width(self) -> float:
        """Offers ``gram`` to sum the values of ``_tile`` by compiled code."""
        return self._width

    def _gaussian_expectations(self, P: Gaussians, Q: Measure) -> Array:
        if isinstance(Q, Atoms):
            return np.stack([self._smoothed(Q.points - mean, S) for mean, S in P.components()])
        pairs = [[self._smoothed(b - a, S + T) for b, T in Q.components()] for a, S in P.components()]
        return np.array(pairs)

    def _smoothed(self, offsets: Array, covariance: Array) -> Array:
        """|I + Σ/s²|^(−½) exp(−½ rᵀ(Σ + s²I)⁻¹r) for each offset r."""
        s = self._width
        root = cholesky(np.eye(len(covariance)) + covariance / s / s, lower=True)
        standardised = solve_triangular(root, offsets.T / s, lower=True)
        return np.exp(-0.5 * (standardised**2).sum(axis=0) - np.log(np.diag(root)).sum())


@dataclass(frozen=True)
class Laplace(_Radial):
    r"""k(x, y) = exp(−‖x − y‖₁ / s), with s = ``bandwidth``.

    Parameters
    ----------
    bandwidth : float or "median", default "median"
        "median" is the median of the L1 distances ‖xᵢ − xⱼ‖₁ over the pairs i < j.

    Examples
    --------
    >>> from muhat import Laplace
    >>> Laplace(bandwidth=1.0)([[0.0]], [[1.0]]).round(4)
    array([[0.3679]])
    """

    bandwidth: float | Literal["median"] = "median"
    _metric: ClassVar[Metric] = "cityblock"

    def _gram(self, X: Array, Y: Array) -> Array:
        K = cdist(X / self._width, Y / self._width, "cityblock")
        np.negative(K, out=K)
        return np.exp(K, out=K)


_VANISHING = 1e3
"""exp(-r) is 0 here, and so is any power of r times it."""


@dataclass(frozen=True)
class Matern(_Radial):
    r"""The Matérn kernel of smoothness ``nu``, with r = √(2ν)·‖x − y‖ / ``bandwidth``.

    ν = ½: e^(−r);  ν = 3/2: (1 + r) e^(−r);  ν = 5/2: (1 + r + r²/3) e^(−r).

    Parameters
    ----------
    nu : {0.5, 1.5, 2.5}, default 1.5
    bandwidth : float or "median", default "median"
        "median" is s² = median of ‖xᵢ − xⱼ‖² over the pairs i < j.

    Examples
    --------
    >>> from muhat import Matern
    >>> Matern(nu=1.5, bandwidth=1.0)([[0.0]], [[1.0]]).round(4)
    array([[0.4834]])
    """

    nu: float = 1.5
    bandwidth: float | Literal["median"] = "median"

    def __post_init__(self) -> None:
        super().__post_init__()
        if check_number("nu", self.nu) not in (0.5, 1.5, 2.5):
            raise ValueError(f"nu={self.nu!r} must be 0.5, 1.5 or 2.5; for others use as_kernel(sklearn's Matern)")

    def _gram(self, X: Array, Y: Array) -> Array:
        r = np.sqrt(squared_distances(X, Y, scale=self._width / np.sqrt(2 * self.nu)))
        np.minimum(r, _VANISHING, out=r)
        decay = np.exp(-r)
        if self.nu == 0.5:
            return decay
        return decay * (1 + r if self.nu == 1.5 else 1 + r + r**2 / 3)
