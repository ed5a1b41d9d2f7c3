"""Kernels of a distance: Gaussian, Laplace and Matérn, with the median heuristic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.spatial.distance import cdist

from muhat.kernels.base import Kernel, Measure
from muhat.linalg.distances import Metric, median_distance, negative_half_squares, squared_distances
from muhat.measures import Atoms, Gaussians
from muhat.types import Array
from muhat.validation import check_number, check_rows


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

    def diagonal(self, X: Array) -> Array:
        return np.ones(len(X))

    @property
    def upper_bound(self) -> float:
        return 1.0

    def gaussian_diagonal(self, P: Gaussians) -> Array:
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

    def evaluate(self, X: Array, Y: Array) -> Array:
        K = squared_distances(X, Y, scale=self._width)
        K *= -0.5
        return np.exp(K, out=K)

    def evaluate_fast(self, X: Array, Y: Array) -> Array:
        exponents = negative_half_squares(X, Y, scale=self._width)
        if exponents is None:
            return self.evaluate(X, Y)
        return np.exp(exponents, out=exponents)

    @property
    def _gaussian_width(self) -> float:
        """Offers ``gram`` to sum the values of ``_tile`` by compiled code."""
        return self._width

    def gaussian_expectations(self, P: Gaussians, Q: Measure) -> Array:
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

    def evaluate(self, X: Array, Y: Array) -> Array:
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

    def evaluate(self, X: Array, Y: Array) -> Array:
        r = np.sqrt(squared_distances(X, Y, scale=self._width / np.sqrt(2 * self.nu)))
        np.minimum(r, _VANISHING, out=r)
        decay = np.exp(-r)
        if self.nu == 0.5:
            return decay
        return decay * (1 + r if self.nu == 1.5 else 1 + r + r**2 / 3)
