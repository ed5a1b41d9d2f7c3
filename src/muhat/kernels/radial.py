"""Kernels of the distance of two rows: Gaussian, Laplace and Matérn, with the median heuristic."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from scipy.spatial.distance import cdist

from muhat._support.types import Array
from muhat._support.validation import check_number, check_rows
from muhat.kernels.base import Kernel
from muhat.linalg.distances import (
    Metric,
    median_distance,
    power_of_two_near,
    squared_distances,
)

FARTHEST = 1e100
"""Distances are cut here, so that their powers do not overflow."""

_REMEDIES = dict.fromkeys(("sigma", "scale", "length_scale", "lengthscale"), "pass the length as bandwidth=")
_REMEDIES["gamma"] = "for k(x, y) = exp(−γ‖x − y‖²) pass Gaussian(bandwidth=(2 * gamma) ** -0.5)"
"""Remedies for the parameter names of other libraries."""


class Radial(Kernel):
    r"""A kernel of a distance: :math:`k(x, y) = \mathrm{profile}(\|x - y\| / s)` with s = ``bandwidth``.

    To write your own, derive a frozen dataclass with a field ``bandwidth`` and define :meth:`profile`. The matrix, its
    diagonal and bound, the bandwidth "median", sampled targets and kernels between bags follow. Register with
    ``muhat.kernels.sample_frequencies`` too for Fourier features.

    The profile must be positive definite in every dimension. Schoenberg's theorem says that it is then a mixture of
    Gaussian profiles: it has no negative values, and it is largest at 0.

    Attributes
    ----------
    metric : {"euclidean", "cityblock"}
        The distance between rows, a class variable; "euclidean" unless a class says otherwise.

    References
    ----------
    I. J. Schoenberg. Metric spaces and completely monotone functions. Annals of Mathematics 1938.
    """

    bandwidth: float | Literal["median"]
    metric: ClassVar[Metric] = "euclidean"

    def __new__(cls, *values: Any, **params: Any) -> Self:
        """Refuse the names that other libraries have for a bandwidth, and say what to pass."""
        for name in params.keys() & _REMEDIES.keys() - getattr(cls, "__dataclass_fields__", {}).keys():
            raise TypeError(f"{cls.__name__} has no parameter {name!r}; {_REMEDIES[name]}")
        kernel = super().__new__(cls)
        fields, settings = (getattr(cls, f"__dataclass_{name}__", None) for name in ("fields", "params"))
        if fields is None or settings is None or not settings.frozen:
            raise TypeError(f"{cls.__name__} is not a frozen dataclass; write @dataclass(frozen=True) above the class")
        if "bandwidth" not in fields:
            raise TypeError(f"{cls.__name__} has no field bandwidth; add the line: bandwidth: float | str = 'median'")
        return kernel

    def __post_init__(self) -> None:
        if not (isinstance(self.bandwidth, str) and self.bandwidth == "median"):
            check_number("bandwidth", self.bandwidth, low=0, open_low=True, or_else='"median"')

    @abstractmethod
    def profile(self, r: Array) -> Array:
        """Compute the kernel from distances in units of the bandwidth, of any shape, which may be overwritten."""

    @property
    def width(self) -> float:
        """The bandwidth as a number; a ValueError for a "median" that was not resolved."""
        if self.bandwidth == "median":
            raise ValueError(f"{self!r}: the median needs data; call kernel.resolve(X) first, or pass a number")
        return self.bandwidth

    def resolve(self, X: Any, sample_weight: Array | None = None) -> Self:
        if self.bandwidth != "median":
            return self
        median = median_distance(check_rows(X, min_rows=2), self.metric, sample_weight)
        return replace(self, bandwidth=median)

    def evaluate(self, X: Array, Y: Array) -> Array:
        if self.metric == "cityblock":
            r = _cityblock_distances(X, Y, self.width)
        else:
            r = squared_distances(X, Y, scale=self.width)
            np.sqrt(r, out=r)
        return self.profile(np.minimum(r, FARTHEST, out=r))

    def diagonal(self, X: Array) -> Array:
        return np.full(len(X), self.value_at_zero)

    @property
    def value_at_zero(self) -> float:
        """The profile at distance 0: k(x, x) of every row, and the largest value of the kernel."""
        values = np.asarray(self.profile(np.zeros(1)))
        if values.shape != (1,):
            raise ValueError(
                f"{type(self).__name__}.profile gave the shape {values.shape} for distances of shape (1,); return an "
                f"array of the shape of r, one value for each distance"
            )
        return float(values[0])


def _cityblock_distances(X: Array, Y: Array, scale: float) -> Array:
    """Sums of |x − y| / scale over the columns; inf where too large, also for rows that are infinite over the scale."""
    unit = power_of_two_near(scale)  # which rounds no row, so that rows far from the origin keep their differences
    with np.errstate(over="ignore"):
        distances = np.asarray(cdist(X / unit, Y / unit, "cityblock"))
        distances *= unit / scale
        i, j = np.nonzero(np.isnan(distances))
        distances[i, j] = (np.abs(X[i] - Y[j]) / scale).sum(axis=1)
    return distances


@dataclass(frozen=True, repr=False)
class Gaussian(Radial):
    r"""Gaussian kernel of width s = ``bandwidth``.

    .. math:: k(x, y) = \exp\left(-\frac{\|x - y\|^2}{2s^2}\right)

    Parameters
    ----------
    bandwidth : float or "median", default "median"
        "median" sets :math:`s^2` to the median of :math:`\|x_i - x_j\|^2` over the pairs i < j, found by ``resolve(X)``
        or ``fit``.

    See Also
    --------
    Laplace : Pointed, of the L1 distance.
    Matern : Between the two in smoothness.
    muhat.kernels.Radial : Base class of kernels of the distance.

    Examples
    --------
    >>> import muhat as mh
    >>> mh.Gaussian(bandwidth=1.0)([[0.0], [1.0]]).round(4)
    array([[1.    , 0.6065],
           [0.6065, 1.    ]])
    >>> mh.Gaussian().resolve([[0.0], [1.0], [3.0]])
    Gaussian(bandwidth=2.0)
    """

    bandwidth: float | Literal["median"] = "median"

    def profile(self, r: Array) -> Array:
        r *= r
        r *= -0.5
        return np.exp(r, out=r)

    def evaluate(self, X: Array, Y: Array) -> Array:
        K = squared_distances(X, Y, scale=self.width)  # the profile takes roots, which this has no need of
        K *= -0.5
        return np.exp(K, out=K)


@dataclass(frozen=True, repr=False)
class Laplace(Radial):
    r"""Laplace kernel of the L1 distance, of width s = ``bandwidth``.

    .. math:: k(x, y) = \exp\left(-\frac{\|x - y\|_1}{s}\right)

    Parameters
    ----------
    bandwidth : float or "median", default "median"
        "median" is the median of the L1 distances :math:`\|x_i - x_j\|_1` over the pairs i < j.

    See Also
    --------
    Gaussian : Smooth, of the Euclidean distance.
    Matern : A kernel of chosen smoothness.

    Examples
    --------
    >>> import muhat as mh
    >>> mh.Laplace(bandwidth=1.0)([[0.0]], [[1.0]]).round(4)
    array([[0.3679]])
    """

    bandwidth: float | Literal["median"] = "median"
    metric: ClassVar[Metric] = "cityblock"

    def profile(self, r: Array) -> Array:
        np.negative(r, out=r)
        return np.exp(r, out=r)


@dataclass(frozen=True, repr=False)
class Matern(Radial):
    r"""The Matérn kernel of smoothness ν = ``nu`` and width s = ``bandwidth``.

    .. math:: k(x, y) = \begin{cases} e^{-r} & \nu = 1/2 \\ (1 + r)\, e^{-r} & \nu = 3/2 \\
              (1 + r + r^2/3)\, e^{-r} & \nu = 5/2 \end{cases}
              \qquad r = \sqrt{2\nu}\, \|x - y\| / s

    Parameters
    ----------
    nu : {0.5, 1.5, 2.5}, default 1.5
        Smoothness: the larger, the smoother.
    bandwidth : float or "median", default "median"
        "median" sets :math:`s^2` to the median of :math:`\|x_i - x_j\|^2` over the pairs i < j.

    See Also
    --------
    Gaussian : The limit of large ν.
    Laplace : Pointed, of the L1 distance.

    Examples
    --------
    >>> import muhat as mh
    >>> mh.Matern(nu=1.5, bandwidth=1.0)([[0.0]], [[1.0]]).round(4)
    array([[0.4834]])
    """

    nu: float = 1.5
    bandwidth: float | Literal["median"] = "median"

    def __post_init__(self) -> None:
        super().__post_init__()
        if check_number("nu", self.nu) not in (0.5, 1.5, 2.5):
            raise ValueError(f"nu={self.nu!r} must be 0.5, 1.5 or 2.5; for others use as_kernel(sklearn's Matern)")

    def profile(self, r: Array) -> Array:
        r *= np.sqrt(2 * self.nu)
        decay = np.exp(-r)
        if self.nu == 0.5:
            return decay
        return decay * (1 + r if self.nu == 1.5 else 1 + r + r**2 / 3)
