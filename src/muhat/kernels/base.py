"""What a kernel is, and sums, products and multiples of kernels."""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from muhat.linalg import gram
from muhat.measures import Atoms, Gaussians
from muhat.parameters import Value
from muhat.types import Array
from muhat.validation import GRAM_TOLERANCE, check_gram, check_number, check_rows

Measure = Atoms | Gaussians


class Kernel(Value, ABC):
    r"""A positive definite kernel :math:`k(x, y) = \langle\phi(x), \phi(y)\rangle`: the base class of all kernels.

    Users call ``k(X, Y)``, ``k.diag(X)``, ``k.resolve(X)`` and ``k.expect(P, Q)``, and add and multiply kernels.
    Kernels are values: two with equal parameters are equal, and none ever changes.

    To write your own kernel, derive a frozen dataclass from this class and define :meth:`evaluate` and
    :meth:`diagonal`; Python refuses to construct a kernel that lacks one of them. A function of the distance of two
    rows derives from :class:`muhat.kernels.Radial` instead, and a function of their inner product from
    :class:`muhat.kernels.InnerProduct`: each needs one method, ``profile``. All other methods below are optional. They
    make a kernel faster, or open subpackages that need to know more of it.

    ============================================================ ==========================================
    optional                                                     what it is for
    ============================================================ ==========================================
    :meth:`resolve`                                              a bandwidth "median"
    :meth:`evaluate_fast`                                        sums over many rows
    :meth:`exact_feature_count`, :meth:`exact_features`          sums in linear time
    :meth:`gaussian_expectations`, :meth:`gaussian_diagonal`     exact means of Gaussian mixtures
    :attr:`upper_bound`                                          confidence balls without ``bound=``
    :meth:`sample_frequencies`                                   random Fourier features
    :attr:`is_stationary`, :attr:`length_scales`                 sampled targets of ``AdaptiveKernelMean``
    :attr:`is_isotropic`                                         the same with far more columns than rows, fast
    :attr:`has_level2`, :meth:`evaluate_level2`                  kernels between mean elements of bags
    ============================================================ ==========================================

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> import muhat as mh
    >>> @dataclass(frozen=True)
    ... class Intersection(mh.kernels.Kernel):
    ...     "k(x, y) = Σᵢ min(xᵢ, yᵢ), for counts."
    ...
    ...     def evaluate(self, X, Y):
    ...         return np.minimum(X[:, None, :], Y).sum(axis=2)
    ...
    ...     def diagonal(self, X):
    ...         return X.sum(axis=1)
    >>> mh.embed(Intersection(), [[1.0, 2.0], [3.0, 0.0]])([[2.0, 1.0]])
    array([2.])
    """

    __array_ufunc__ = None  # so that np.float64(3.0) * kernel reaches __rmul__

    # What users call.

    def __call__(self, X: Any, Y: Any = None) -> Array:
        """Kernel values of all pairs of rows.

        Parameters
        ----------
        X : array of shape (n, d)
            The rows, one observation each.
        Y : array of shape (m, d), default X
            The rows of the second sample.

        Returns
        -------
        array of shape (n, m)
        """
        A = self.points(X)
        return self.evaluate(A, A if Y is None or Y is X else self.points(Y, A.shape[1]))

    def diag(self, X: Any) -> Array:
        """The values k(x, x), an array of shape (n,)."""
        return self.diagonal(self.points(X))

    def points(self, X: Any, n_features: int | None = None) -> Array:
        """The rows of X, checked, as this kernel takes them."""
        rows = check_rows(X)
        if n_features is not None and rows.shape[1] != n_features:
            raise ValueError(f"X has {rows.shape[1]} columns and must have {n_features}")
        return rows

    def resolve(self, X: Any, sample_weight: Array | None = None) -> Kernel:
        """This kernel with every "median" replaced by the number that X gives.

        Parameters
        ----------
        X : array of shape (n, d)
            The rows, one observation each.
        sample_weight : array of shape (n,), optional
            Repetitions of the rows.
        """
        return self

    def check(self, X: Any) -> Kernel:
        """This kernel, resolved, or a ValueError where its values on rows of X show that it is not a kernel.

        The matrix k(X, X) must be finite, symmetric and positive semi-definite, and its diagonal must be that of
        ``diag``. Rows can show that a function is not a kernel, and cannot prove that it is one.

        Parameters
        ----------
        X : array of shape (n, d)
            Rows as your data have them; 200 of them are taken, evenly spaced.

        Examples
        --------
        >>> import numpy as np, muhat as mh
        >>> mh.Gaussian(bandwidth=1.0).check(np.eye(3))
        Gaussian(bandwidth=1.0)
        """
        rows = self.points(X)
        kernel, some = self.resolve(rows), some_rows(rows)
        check_diagonal(kernel, some, check_values(kernel, some))
        return kernel

    def expect(self, P: Measure, Q: Measure) -> float:
        """The integral of k(x, y) over x ~ P and y ~ Q, exact; a ValueError where there is no closed form."""
        if isinstance(P, Atoms) and isinstance(Q, Atoms):
            if P is Q:
                return gram.quadratic_form(self, P.points, P.weights)
            return gram.bilinear_form(self, P.points, Q.points, P.weights, Q.weights)
        return float(P.weights @ self.expectations(P, Q) @ Q.weights)

    def expectations(self, P: Measure, Q: Measure) -> Array:
        """E k(x, y) for each pair of components of P and Q, weights left out: shape (len(P), len(Q))."""
        if isinstance(P, Gaussians):
            return self.gaussian_expectations(P, Q)
        if isinstance(Q, Gaussians):
            return self.gaussian_expectations(Q, P).T
        return self.evaluate(P.points, Q.points)

    def expect_diag(self, P: Measure) -> float:
        """The integral of k(x, x) over x ~ P, exact; a ValueError where there is no closed form."""
        if isinstance(P, Atoms):
            return float(P.weights @ self.diagonal(P.points))
        return float(P.weights @ self.gaussian_diagonal(P))

    # What every kernel defines.

    @abstractmethod
    def evaluate(self, X: Array, Y: Array) -> Array:
        """Kernel values of all pairs of rows that were checked before.

        Parameters
        ----------
        X : array of shape (n, d)
            Finite float64 numbers.
        Y : array of shape (m, d)
            The same object as X where the matrix is symmetric.

        Returns
        -------
        array of shape (n, m)
            A new array: callers write into it.
        """

    @abstractmethod
    def diagonal(self, X: Array) -> Array:
        """The values k(x, x) of rows that were checked before.

        Parameters
        ----------
        X : array of shape (n, d)
            The rows, one observation each.

        Returns
        -------
        array of shape (n,)
        """

    # What a kernel may define, for speed.

    def evaluate_fast(self, X: Array, Y: Array) -> Array:
        """As :meth:`evaluate`, for sums: faster, where that costs no more than 1e-13 of the values.

        Parameters
        ----------
        X : array of shape (n, d)
            The rows, one observation each.
        Y : array of shape (m, d)
            The rows of the second sample.

        Returns
        -------
        array of shape (n, m)
        """
        return self.evaluate(X, Y)

    def exact_feature_count(self, width: int) -> float:
        """How many exact features a row has; infinity for a kernel without a finite number of them.

        Parameters
        ----------
        width : int
            Columns of the rows.
        """
        return inf

    def exact_features(self, X: Array) -> Array:
        """Exact features φ(x), with k(x, y) = φ(x)ᵀφ(y), one row each.

        Parameters
        ----------
        X : array of shape (n, d)
            The rows, one observation each.

        Returns
        -------
        array of shape (n, exact_feature_count(d))
        """
        raise TypeError(f"{type(self).__name__} has no exact features")

    # What a kernel may know of itself.

    @property
    def upper_bound(self) -> float:
        """The supremum of k(x, x), for kernels with all their values in [0, supremum]; infinity for others."""
        return inf

    @property
    def evaluates_new_rows(self) -> bool:
        """Whether the kernel is known at every row, and not only between given ones."""
        return True

    @property
    def is_stationary(self) -> bool:
        """Whether k(x, y) is a bounded function of x − y, and so can be evaluated at any point of the space."""
        return False

    @property
    def is_isotropic(self) -> bool:
        """Whether k(x, y) is a function of the distance ‖x − y‖, which no rotation of the rows changes."""
        return False

    @property
    def length_scales(self) -> tuple[float, ...]:
        """The numbers that rows are divided by."""
        return ()

    @property
    def gaussian_bandwidth(self) -> float | None:
        """The number s if k(x, y) = exp(−‖x − y‖² / 2s²), for which many things are known in closed form."""
        return None

    @property
    def polynomial_form(self) -> tuple[int, float] | None:
        """The numbers (p, c) if k(x, y) = (xᵀy + c)^p."""
        return None

    def terms(self) -> list[tuple[float, Kernel]]:
        """The kernel as a sum of factors times other kernels: itself, unless it is a sum or a multiple."""
        return [(1.0, self)]

    # What a kernel may define for expectations under Gaussians.

    @property
    def has_gaussian_expectations(self) -> bool:
        """Whether expectations under Gaussians are known in closed form."""
        return type(self).gaussian_expectations is not Kernel.gaussian_expectations

    def gaussian_expectations(self, P: Gaussians, Q: Measure) -> Array:
        """E k(x, y) with x from each Gaussian of P, and y from each Gaussian of Q or at each atom of Q.

        Parameters
        ----------
        P : Gaussians
            Means of shape (p, d) and covariances of shape (p, d, d); weights are ignored.
        Q : Gaussians or Atoms

        Returns
        -------
        array of shape (p, q)
        """
        raise ValueError(self._no_closed_form())

    def gaussian_diagonal(self, P: Gaussians) -> Array:
        """E k(x, x) with x from each Gaussian of P.

        Parameters
        ----------
        P : Gaussians

        Returns
        -------
        array of shape (p,)
        """
        raise ValueError(self._no_closed_form())

    def _no_closed_form(self) -> str:
        return (
            f"{self!r} has no closed-form expectation under a Gaussian; use a sample: "
            f"embed(kernel, P.sample(n)) in place of embed(kernel, P)"
        )

    # What a kernel may define for random features, and for mean elements in place of rows.

    def sample_frequencies(self, width: int, count: int, rng: np.random.Generator) -> Array:
        """Draw frequencies w from the spectral measure: E cos wᵀ(x − y) = k(x, y), rows in units of the bandwidth.

        Parameters
        ----------
        width : int
            Columns of the rows.
        count : int
        rng : numpy.random.Generator

        Returns
        -------
        array of shape (width, count)
        """
        raise ValueError(f"kernel={self!r} has no sample_frequencies, which Fourier features need; use Nystroem")

    @property
    def has_level2(self) -> bool:
        """Whether the kernel also compares elements of a Hilbert space, such as the mean elements of bags."""
        return False

    def resolve_level2(self, inner: Array) -> Kernel:
        """This kernel with every "median" replaced by the median distance between elements.

        Parameters
        ----------
        inner : array of shape (n, n)
            Inner products of the elements.
        """
        return self

    def evaluate_level2(self, inner: Array, left: Array, right: Array) -> Array:
        """Kernel values between elements f and g of a Hilbert space.

        Parameters
        ----------
        inner : array of shape (n, m)
            Inner products ⟨f, g⟩.
        left : array of shape (n,)
            Squared norms ‖f‖².
        right : array of shape (m,)
            Squared norms ‖g‖².

        Returns
        -------
        array of shape (n, m)
        """
        raise ValueError(f"{self!r} does not compare elements; use a function of their distance or inner product")

    def __add__(self, other: Kernel) -> Kernel:
        return Sum(self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: Kernel | float) -> Kernel:
        if isinstance(other, Kernel):
            return Product(self, other)
        return Scaled(float(other), self) if isinstance(other, numbers.Real) else NotImplemented

    def __rmul__(self, factor: float) -> Kernel:
        return Scaled(float(factor), self) if isinstance(factor, numbers.Real) else NotImplemented


class _Pair(Kernel):
    """What sums and products of two kernels have in common."""

    left: Kernel
    right: Kernel

    def resolve(self, X: Any, sample_weight: Array | None = None) -> Kernel:
        return self.with_params(left=self.left.resolve(X, sample_weight), right=self.right.resolve(X, sample_weight))

    @property
    def evaluates_new_rows(self) -> bool:
        return self.left.evaluates_new_rows and self.right.evaluates_new_rows

    @property
    def is_stationary(self) -> bool:
        return self.left.is_stationary and self.right.is_stationary

    @property
    def is_isotropic(self) -> bool:
        return self.left.is_isotropic and self.right.is_isotropic

    @property
    def length_scales(self) -> tuple[float, ...]:
        return self.left.length_scales + self.right.length_scales

    @property
    def has_level2(self) -> bool:
        return self.left.has_level2 and self.right.has_level2

    def resolve_level2(self, inner: Array) -> Kernel:
        return self.with_params(left=self.left.resolve_level2(inner), right=self.right.resolve_level2(inner))


@dataclass(frozen=True)
class Sum(_Pair):
    """k(x, y) = left(x, y) + right(x, y)."""

    left: Kernel
    right: Kernel

    def evaluate(self, X: Array, Y: Array) -> Array:
        return self.left.evaluate(X, Y) + self.right.evaluate(X, Y)

    def evaluate_fast(self, X: Array, Y: Array) -> Array:
        return self.left.evaluate_fast(X, Y) + self.right.evaluate_fast(X, Y)

    def diagonal(self, X: Array) -> Array:
        return self.left.diagonal(X) + self.right.diagonal(X)

    @property
    def upper_bound(self) -> float:
        return self.left.upper_bound + self.right.upper_bound

    def terms(self) -> list[tuple[float, Kernel]]:
        return self.left.terms() + self.right.terms()

    @property
    def has_gaussian_expectations(self) -> bool:
        return self.left.has_gaussian_expectations and self.right.has_gaussian_expectations

    def gaussian_expectations(self, P: Gaussians, Q: Measure) -> Array:
        return self.left.gaussian_expectations(P, Q) + self.right.gaussian_expectations(P, Q)

    def gaussian_diagonal(self, P: Gaussians) -> Array:
        return self.left.gaussian_diagonal(P) + self.right.gaussian_diagonal(P)

    def evaluate_level2(self, inner: Array, left: Array, right: Array) -> Array:
        return self.left.evaluate_level2(inner, left, right) + self.right.evaluate_level2(inner, left, right)


@dataclass(frozen=True)
class Product(_Pair):
    """k(x, y) = left(x, y) · right(x, y)."""

    left: Kernel
    right: Kernel

    def evaluate(self, X: Array, Y: Array) -> Array:
        return self.left.evaluate(X, Y) * self.right.evaluate(X, Y)

    def evaluate_fast(self, X: Array, Y: Array) -> Array:
        return self.left.evaluate_fast(X, Y) * self.right.evaluate_fast(X, Y)

    def diagonal(self, X: Array) -> Array:
        return self.left.diagonal(X) * self.right.diagonal(X)

    @property
    def upper_bound(self) -> float:
        return self.left.upper_bound * self.right.upper_bound

    def evaluate_level2(self, inner: Array, left: Array, right: Array) -> Array:
        return self.left.evaluate_level2(inner, left, right) * self.right.evaluate_level2(inner, left, right)


@dataclass(frozen=True)
class Scaled(Kernel):
    """k(x, y) = factor · kernel(x, y), with factor > 0."""

    factor: float
    kernel: Kernel

    def __post_init__(self) -> None:
        check_number("factor", self.factor, low=0, open_low=True)

    def resolve(self, X: Any, sample_weight: Array | None = None) -> Kernel:
        return Scaled(self.factor, self.kernel.resolve(X, sample_weight))

    def evaluate(self, X: Array, Y: Array) -> Array:
        return self.factor * self.kernel.evaluate(X, Y)

    def evaluate_fast(self, X: Array, Y: Array) -> Array:
        return self.factor * self.kernel.evaluate_fast(X, Y)

    def diagonal(self, X: Array) -> Array:
        return self.factor * self.kernel.diagonal(X)

    @property
    def upper_bound(self) -> float:
        return self.factor * self.kernel.upper_bound

    @property
    def evaluates_new_rows(self) -> bool:
        return self.kernel.evaluates_new_rows

    @property
    def is_stationary(self) -> bool:
        return self.kernel.is_stationary

    @property
    def is_isotropic(self) -> bool:
        return self.kernel.is_isotropic

    @property
    def length_scales(self) -> tuple[float, ...]:
        return self.kernel.length_scales

    def terms(self) -> list[tuple[float, Kernel]]:
        return [(self.factor * factor, kernel) for factor, kernel in self.kernel.terms()]

    @property
    def has_gaussian_expectations(self) -> bool:
        return self.kernel.has_gaussian_expectations

    def gaussian_expectations(self, P: Gaussians, Q: Measure) -> Array:
        return self.factor * self.kernel.gaussian_expectations(P, Q)

    def gaussian_diagonal(self, P: Gaussians) -> Array:
        return self.factor * self.kernel.gaussian_diagonal(P)

    @property
    def has_level2(self) -> bool:
        return self.kernel.has_level2

    def resolve_level2(self, inner: Array) -> Kernel:
        return Scaled(self.factor, self.kernel.resolve_level2(inner))

    def evaluate_level2(self, inner: Array, left: Array, right: Array) -> Array:
        return self.factor * self.kernel.evaluate_level2(inner, left, right)


MAX_ROWS_TO_CHECK = 200
"""Whether a kernel is one is checked on this many rows of the data at most, evenly spaced."""


def check_values(kernel: Kernel, rows: Array) -> Array:
    """The values on some of the rows, or a ValueError where they show that this is not a kernel."""
    K = np.asarray(kernel.evaluate(rows, rows))
    if K.shape != (len(rows), len(rows)):
        found = f"evaluate gives the shape {K.shape}; return {(len(rows), len(rows))}"
        raise ValueError(f"{kernel!r} is not a kernel on these rows: {found}")
    if not np.isfinite(K).all():
        raise ValueError(f"{kernel!r} is not a kernel on these rows: it has values that are not finite; rescale X")
    try:
        check_gram(K, name="k(X, X)")
    except ValueError as error:
        smallest = f"smallest eigenvalue {np.linalg.eigvalsh(K).min():.3g}, trace {np.trace(K):.3g}"
        raise ValueError(f"{kernel!r} is not a kernel on these rows: {error} ({smallest})") from error
    return K


def check_diagonal(kernel: Kernel, rows: Array, K: Array) -> None:
    """Raise a ValueError where ``diagonal`` is not that of the values K on the rows."""
    diagonal = np.asarray(kernel.diagonal(rows))
    if diagonal.shape != (len(rows),):
        found = f"diagonal gives the shape {diagonal.shape}; return {(len(rows),)}"
        raise ValueError(f"{kernel!r} is not a kernel on these rows: {found}")
    apart = float(np.abs(diagonal - np.diag(K)).max())
    if apart > GRAM_TOLERANCE * float(np.abs(K).max()):
        raise ValueError(
            f"{kernel!r} is not a kernel on these rows: diagonal(X) and the diagonal of evaluate(X, X) differ by up to "
            f"{apart:.3g}; return k(x, x) from both"
        )


def some_rows(rows: Array) -> Array:
    """At most MAX_ROWS_TO_CHECK of the rows, evenly spaced."""
    return rows[:: -(-len(rows) // MAX_ROWS_TO_CHECK)]


def check_kernel(name: str, kernel: Any) -> None:
    """Raise a ValueError unless ``kernel`` is a kernel object."""
    if not isinstance(kernel, Kernel):
        raise ValueError(
            f"{name}={kernel!r} must be a kernel object such as muhat.Gaussian(); wrap other kernels by muhat.as_kernel"
        )
