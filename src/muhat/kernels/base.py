"""What every kernel is, and sums, products and multiples of kernels."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from math import inf
from typing import Any

from muhat.linalg import gram
from muhat.measures import Atoms, Gaussians
from muhat.parameters import Value
from muhat.types import Array
from muhat.validation import check_number, check_rows

Measure = Atoms | Gaussians


class Kernel(Value):
    """Base of all kernels: ``k(X, Y)``, ``k.diag(X)``, ``k.resolve(X)``, ``k.expect(P, Q)``, sums and products.

    Kernels are values: two with equal parameters are equal, and none ever changes.
    """

    __array_ufunc__ = None  # so that np.float64(3.0) * kernel reaches __rmul__

    def __call__(self, X: Any, Y: Any = None) -> Array:
        """Kernel values of all pairs of rows.

        Parameters
        ----------
        X : array of shape (n, d)
        Y : array of shape (m, d), default X

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
        sample_weight : array of shape (n,), optional
            Repetitions of the rows.
        """
        return self

    def expect(self, P: Measure, Q: Measure) -> float:
        """The integral of k(x, y) over x ~ P and y ~ Q, exact; a ValueError where there is no closed form."""
        if isinstance(P, Atoms) and isinstance(Q, Atoms):
            if P is Q:
                return gram.quadratic_form(self.evaluate_fast, P.points, P.weights)
            return gram.bilinear_form(self.evaluate_fast, P.points, Q.points, P.weights, Q.weights)
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

    def evaluate(self, X: Array, Y: Array) -> Array:
        raise TypeError(f"{type(self).__name__} must define _gram(X, Y)")

    def evaluate_fast(self, X: Array, Y: Array) -> Array:
        """As ``_gram``, for sums: faster where that costs no more than rounding, 1e-13 of the values."""
        return self.evaluate(X, Y)

    def diagonal(self, X: Array) -> Array:
        raise TypeError(f"{type(self).__name__} must define _diag(X)")

    @property
    def upper_bound(self) -> float:
        """The supremum of k(x, x), for kernels known to have all their values in [0, supremum]; inf for others."""
        return inf

    def exact_feature_count(self, width: int) -> float:
        """How many exact features rows of so many columns have; inf where there are none to be had."""
        return inf

    def exact_features(self, X: Array) -> Array:
        """Exact features, k(x, y) = φ(x)ᵀφ(y), a row each, for kernels with a finite ``_feature_count``."""
        raise TypeError(f"{type(self).__name__} has no exact features")

    def gaussian_expectations(self, P: Gaussians, Q: Measure) -> Array:
        raise ValueError(self._no_closed_form())

    def gaussian_diagonal(self, P: Gaussians) -> Array:
        raise ValueError(self._no_closed_form())

    def _no_closed_form(self) -> str:
        return (
            f"{self!r} has no closed-form expectation under a Gaussian; go by Monte Carlo: "
            f"embed(kernel, P.sample(n)) in place of embed(kernel, P)"
        )

    def __add__(self, other: Kernel) -> Kernel:
        return Sum(self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: Kernel | float) -> Kernel:
        if isinstance(other, Kernel):
            return Product(self, other)
        return Scaled(float(other), self) if isinstance(other, numbers.Real) else NotImplemented

    def __rmul__(self, factor: float) -> Kernel:
        return Scaled(float(factor), self) if isinstance(factor, numbers.Real) else NotImplemented


@dataclass(frozen=True)
class Sum(Kernel):
    """k(x, y) = left(x, y) + right(x, y)."""

    left: Kernel
    right: Kernel

    def resolve(self, X: Any, sample_weight: Array | None = None) -> Kernel:
        return Sum(self.left.resolve(X, sample_weight), self.right.resolve(X, sample_weight))

    def evaluate(self, X: Array, Y: Array) -> Array:
        return self.left.evaluate(X, Y) + self.right.evaluate(X, Y)

    def evaluate_fast(self, X: Array, Y: Array) -> Array:
        return self.left.evaluate_fast(X, Y) + self.right.evaluate_fast(X, Y)

    def diagonal(self, X: Array) -> Array:
        return self.left.diagonal(X) + self.right.diagonal(X)

    @property
    def upper_bound(self) -> float:
        return self.left.upper_bound + self.right.upper_bound

    def gaussian_expectations(self, P: Gaussians, Q: Measure) -> Array:
        return self.left.gaussian_expectations(P, Q) + self.right.gaussian_expectations(P, Q)

    def gaussian_diagonal(self, P: Gaussians) -> Array:
        return self.left.gaussian_diagonal(P) + self.right.gaussian_diagonal(P)


@dataclass(frozen=True)
class Product(Kernel):
    """k(x, y) = left(x, y) · right(x, y)."""

    left: Kernel
    right: Kernel

    def resolve(self, X: Any, sample_weight: Array | None = None) -> Kernel:
        return Product(self.left.resolve(X, sample_weight), self.right.resolve(X, sample_weight))

    def evaluate(self, X: Array, Y: Array) -> Array:
        return self.left.evaluate(X, Y) * self.right.evaluate(X, Y)

    def evaluate_fast(self, X: Array, Y: Array) -> Array:
        return self.left.evaluate_fast(X, Y) * self.right.evaluate_fast(X, Y)

    def diagonal(self, X: Array) -> Array:
        return self.left.diagonal(X) * self.right.diagonal(X)

    @property
    def upper_bound(self) -> float:
        return self.left.upper_bound * self.right.upper_bound


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

    def gaussian_expectations(self, P: Gaussians, Q: Measure) -> Array:
        return self.factor * self.kernel.gaussian_expectations(P, Q)

    def gaussian_diagonal(self, P: Gaussians) -> Array:
        return self.factor * self.kernel.gaussian_diagonal(P)


def check_kernel(name: str, kernel: Any) -> None:
    """Raise a ValueError unless ``kernel`` is a kernel object."""
    if not isinstance(kernel, Kernel):
        raise ValueError(
            f"{name}={kernel!r} must be a kernel object such as muhat.Gaussian(); wrap other kernels by muhat.as_kernel"
        )
