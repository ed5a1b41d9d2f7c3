"""Elements of a reproducing kernel Hilbert space, and their algebra."""

from __future__ import annotations

import numbers
from functools import cached_property, reduce
from operator import add
from textwrap import shorten
from typing import Any

import numpy as np

from muhat._support.types import Array
from muhat._support.validation import check_weights, column_names, in_column_order
from muhat.kernels import tiles
from muhat.kernels.base import Kernel, Measure, check_kernel
from muhat.kernels.expectations import expect, gaussian_expectations
from muhat.linalg.resources import NUMBERS_OF_ONE_THREAD, one_blas_thread
from muhat.rkhs.measures import Atoms, FactoredGaussian, Gaussians


def check_element(name: str, element: Any, kernel: Kernel, n_features: int | None = None, or_else: str = "") -> None:
    """Raise a ValueError unless ``element`` is one of the space of ``kernel``, over as many columns."""
    if not isinstance(element, Element) or element.kernel != kernel:
        raise ValueError(
            f"{name}={shorten(repr(element), 80)} must be {or_else}an Element of the space of {kernel!r}. Resolve the "
            f"kernel first, and use it for both: kernel = kernel.resolve(X); {name} = muhat.embed(kernel, ...)"
        )
    if n_features is not None and element.n_features != n_features:
        raise ValueError(
            f"{name}={element!r} is a function of {element.n_features} columns, and X has {n_features}. Pass an "
            f"element over the columns of X"
        )


class Element:
    r"""An element :math:`f = \int k(x, \cdot)\, dM(x)` of the space of a kernel, M a signed measure.

    Made by :func:`embed` and by the ``mean_`` of a fitted estimator. ``f(X)`` evaluates it as a function,
    ``f.inner(g)``, ``f.norm()`` and ``f.distance(g)`` are those of the space, and ``f + g``, ``f - g``,
    ``2 * f`` are elements again. The distance of two mean elements is the maximum mean discrepancy (MMD), and
    their difference is the witness function.

    Parameters
    ----------
    kernel : Kernel
        Without "median": call ``kernel.resolve(X)`` first.
    *measures : Atoms or GaussianMixture
        Summed.
    feature_names : sequence of str, optional
        Names of the columns. Data frames are then put in this order, and refused if they have other columns.

    See Also
    --------
    embed : Makes an element of a distribution or a sample.
    KernelMean : Estimators, whose ``mean_`` is an element.

    Examples
    --------
    >>> import muhat as mh
    >>> k = mh.Gaussian(bandwidth=1.0)
    >>> f = mh.embed(k, [[0.0], [1.0]])
    >>> g = mh.embed(k, mh.GaussianMixture([1.0], [[0.0]], [1.0]))
    >>> round(f.distance(g), 4)
    0.3504
    >>> f - g
    Element(Gaussian(bandwidth=1.0), 2 atoms + 1 Gaussian in 1 dimension, total weight 0)
    """

    __array_ufunc__ = None  # so that np.float64(2.0) * f reaches __rmul__

    def __init__(self, kernel: Kernel, *measures: Measure, feature_names: Any = None) -> None:
        if not isinstance(kernel, Kernel):
            check_kernel("kernel", kernel)
        if not measures:
            raise ValueError("an element needs at least one measure; see muhat.embed")
        self.kernel = kernel
        self.measures = measures if len(measures) == 1 and isinstance(measures[0], Atoms) else _collected(measures)
        self.feature_names = None if feature_names is None else tuple(map(str, feature_names))

    @property
    def n_features(self) -> int:
        """Width of the rows on which the element is a function."""
        return self.measures[0].n_features

    def __call__(self, X: Any) -> Array:
        """Values of the element, as a function, at the rows of X: an array of shape (n,)."""
        return self.values(self.kernel.points(in_column_order(X, self.feature_names), self.n_features))

    def values(self, points: Array) -> Array:
        """Values at rows that were checked before."""
        first = self.measures[0]
        if len(self.measures) == 1 and isinstance(first, Atoms) and len(points) * len(first.weights) <= _SMALL:
            return self.kernel.evaluate(points, first.points) @ first.weights
        with one_blas_thread():
            return np.sum([self._integral(points, measure) for measure in self.measures], axis=0)

    def _integral(self, points: Array, measure: Measure) -> Array:
        if isinstance(measure, Atoms):
            return tiles.product(self.kernel, points, measure.points, measure.weights)
        return measure.weights @ gaussian_expectations(self.kernel, measure, _unweighted(points))

    @one_blas_thread()
    def inner(self, other: Element) -> float:
        """Compute the inner product with an element of the same space."""
        self._check_same_space(other)
        pairs = [(P, Q) for P in self.measures for Q in other.measures]
        return float(sum(expect(self.kernel, P, Q) for P, Q in pairs))

    def norm(self) -> float:
        """Compute the norm in the space."""
        return float(np.sqrt(self._squared_norm))

    @cached_property
    def _squared_norm(self) -> float:
        return max(self.inner(self), 0.0)

    def distance(self, other: Element) -> float:
        """Compute the norm of the difference; for two mean elements it is the MMD."""
        self._check_same_space(other)
        return (self - other).norm()

    def __add__(self, other: Element) -> Element:
        if not isinstance(other, Element):
            return NotImplemented
        self._check_same_space(other)
        names = other.feature_names if self.feature_names is None else self.feature_names
        return Element(self.kernel, *self.measures, *other.measures, feature_names=names)

    def __radd__(self, other: Any) -> Element:
        return self if other == 0 else NotImplemented  # sum() starts at 0

    def __sub__(self, other: Element) -> Element:
        return self + (-1.0) * other if isinstance(other, Element) else NotImplemented

    def __neg__(self) -> Element:
        return -1.0 * self

    def __mul__(self, factor: float) -> Element:
        if not isinstance(factor, numbers.Real):
            return NotImplemented
        if not np.isfinite(factor):
            raise ValueError(f"an element can only be multiplied by a finite number, not {factor!r}")
        scaled = (float(factor) * measure for measure in self.measures)
        return Element(self.kernel, *scaled, feature_names=self.feature_names)

    __rmul__ = __mul__

    def __truediv__(self, divisor: float) -> Element:
        if not isinstance(divisor, numbers.Real):
            return NotImplemented
        if divisor == 0:
            raise ValueError("an element cannot be divided by zero")
        return self * (1.0 / float(divisor))

    def _check_same_space(self, other: Element) -> None:
        if not isinstance(other, Element):
            raise ValueError(
                f"{shorten(repr(other), 80)} is not an element; use the mean_ of a fitted estimator, or embed rows: "
                f"muhat.embed(kernel, X)"
            )
        if self.kernel != other.kernel:
            raise ValueError(
                f"the elements are in two spaces, {self.kernel.exact_repr()} and {other.kernel.exact_repr()}. "
                f"Resolve the kernel once, on the pooled data, and use it for both: "
                f"kernel = kernel.resolve(np.vstack([X, Y]))"
            )
        if self.n_features != other.n_features:
            raise ValueError(f"elements have {self.n_features} and {other.n_features} dimensions; use the same columns")
        if None not in (self.feature_names, other.feature_names) and self.feature_names != other.feature_names:
            raise ValueError(
                f"elements have the columns {self.feature_names} and {other.feature_names}; fit both to tables "
                f"with the same columns in one order, Y[X.columns]"
            )

    def __repr__(self) -> str:
        space = _counted(self.n_features, "dimension")
        return f"Element({self.kernel!r}, {self._parts} in {space}, total weight {self._total_weight:.4g})"

    @property
    def _parts(self) -> str:
        return " + ".join(_counted(len(measure), _NAMES[type(measure)]) for measure in self.measures)

    @property
    def _total_weight(self) -> float:
        return float(sum(measure.weights.sum() for measure in self.measures))


_SMALL = NUMBERS_OF_ONE_THREAD
"""Kernel values that are summed at once, without tiles and threads."""

_NAMES = {Atoms: "atom", Gaussians: "Gaussian", FactoredGaussian: "Gaussian"}


def _counted(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def _unweighted(points: Array) -> Atoms:
    return Atoms.trusted(points, np.ones(len(points)))


def _collected(measures: tuple[Measure, ...]) -> tuple[Measure, ...]:
    """All atoms as one measure, all Gaussians as another; Gaussians with factored covariances stay as they are."""
    widths = {measure.n_features for measure in measures}
    if len(widths) > 1:
        raise ValueError(f"the measures have {sorted(widths)} dimensions; pass measures with the same columns")
    atoms = [measure for measure in measures if isinstance(measure, Atoms)]
    factored = [measure for measure in measures if isinstance(measure, FactoredGaussian)]
    others = [measure for measure in measures if isinstance(measure, Gaussians) and measure not in factored]
    gaussians = [1.0 * measure for measure in others]
    summed: list[Measure] = []
    if atoms:
        summed.append(reduce(add, atoms))
    if gaussians:
        summed.append(reduce(add, gaussians))
    for measure in {id(measure.covariance): measure for measure in factored}.values():
        weights = np.sum([other.weights for other in factored if other.covariance is measure.covariance], axis=0)
        summed.append(FactoredGaussian(weights, measure.means, measure.covariance))
    return tuple(summed)


def embed(kernel: Kernel, P: Any, weights: Any = None) -> Element:
    r"""The mean element :math:`\mu_P = E_{x \sim P}\, k(x, \cdot)` of a distribution or of a sample.

    Parameters
    ----------
    kernel : Kernel
        A bandwidth "median" is resolved on the rows of P.
    P : GaussianMixture, Atoms, or array of shape (n, d)
        Gaussians are exact for Linear, Polynomial of degree 1 to 3, Gaussian, their sums and multiples. An array of
        float64 in C order is referred to, not copied, so that rows may stay in an ``np.memmap``: leave it unchanged.
    weights : array of shape (n,), default 1/n each
        Weights of the rows, of any sign; only with an array.

    Returns
    -------
    Element
        The kernel mean of the measure.

    See Also
    --------
    Element : What is returned.
    KernelMean : The same for rows, as an estimator.

    Examples
    --------
    >>> import muhat as mh
    >>> P = mh.paper_mixture(5, random_state=0)
    >>> X = P.sample(100, random_state=1)
    >>> k = mh.Gaussian().resolve(X)
    >>> loss = mh.embed(k, X).distance(mh.embed(k, P)) ** 2
    >>> round(loss, 4)
    0.0021
    """
    check_kernel("kernel", kernel)
    if isinstance(P, Atoms | Gaussians):
        if weights is not None:
            raise ValueError("weights= is for an array of rows, and a measure has its own; leave weights= out")
        measure: Measure = P
    else:
        points = kernel.points(P)
        uniform = np.full(len(points), 1.0 / len(points))
        measure = Atoms.trusted(points, uniform if weights is None else check_weights("weights", weights, len(points)))
    resolved = kernel.resolve(measure.points) if isinstance(measure, Atoms) else kernel
    return Element(resolved, measure, feature_names=column_names(P))
