"""The base class of kernels, and sums, products and multiples of kernels."""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any

import numpy as np

from muhat._support.parameters import Value
from muhat._support.types import Array
from muhat._support.validation import GRAM_TOLERANCE, check_gram, check_number, check_rows
from muhat.rkhs.measures import Atoms, Gaussians

Measure = Atoms | Gaussians

MAX_ROWS_TO_CHECK = 200
"""Whether a kernel is one is checked on this many rows of the data at most, evenly spaced."""


def _checking_shape(method: Callable[..., Array]) -> Callable[..., Array]:
    """The method of a kernel, ``evaluate`` or ``diagonal``, with an error where its values have the wrong shape.

    Without it, values of a wrong shape could be broadcast, and an estimate from them would look like any other.
    """

    @wraps(method)
    def checked(kernel: Kernel, *rows: Array) -> Array:
        values = method(kernel, *rows)
        shape = tuple(map(len, rows))
        if np.shape(values) != shape:
            found = f"{method.__name__} gives the shape {np.shape(values)}; return {shape}"
            raise ValueError(f"{kernel!r} is not a kernel on these rows: {found}")
        return values

    return checked


class Kernel(Value, ABC):
    r"""A positive definite kernel :math:`k(x, y) = \langle\phi(x), \phi(y)\rangle`: the base class of all kernels.

    Users call ``k(X, Y)``, ``k.diag(X)``, ``k.resolve(X)`` and ``k.expect(P, Q)``, and add and multiply kernels.
    Kernels are values: two with equal parameters are equal, and none ever changes.

    To write your own kernel, derive a frozen dataclass from this class and define :meth:`evaluate` and
    :meth:`diagonal`; Python refuses to construct a kernel that lacks one of them. A function of the distance of two
    rows derives from :class:`muhat.kernels.Radial` instead, and a function of their inner product from
    :class:`muhat.kernels.InnerProduct`: each needs one method, ``profile``. Define :meth:`resolve` too if a parameter
    depends on the data.

    What else is known of a kernel (exact features, expectations under Gaussians, a bound, frequencies, invariance,
    values between elements) is told by functions of ``muhat.kernels``, each of which looks at the type of the kernel
    (``functools.singledispatch``) and combines the answers for sums, products and multiples. All are optional: register
    your class, ``@sample_frequencies.register(MyKernel)``, where you know the answer.
    """

    __array_ufunc__ = None  # so that np.float64(3.0) * kernel reaches __rmul__

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if not cls.__module__.startswith("muhat."):  # a kernel of yours; those of the library are tested
            for name in ("evaluate", "diagonal"):
                setattr(cls, name, _checking_shape(getattr(cls, name)))

    # What every kernel defines.

    @abstractmethod
    def evaluate(self, X: Array, Y: Array) -> Array:
        """Compute the values of all pairs of checked rows, X and Y perhaps one object, in a new array (n, m)."""

    @abstractmethod
    def diagonal(self, X: Array) -> Array:
        """Compute the values k(x, x) of rows that were checked before."""

    # What a kernel may define.

    def resolve(self, X: Any, sample_weight: Array | None = None) -> Kernel:
        """Replace every "median" of this kernel by the number that the rows of X give."""
        return self

    def points(self, X: Any, n_features: int | None = None) -> Array:
        """The rows of X, checked, as this kernel takes them."""
        rows = check_rows(X)
        if n_features is not None and rows.shape[1] != n_features:
            raise ValueError(f"X has {rows.shape[1]} columns and must have {n_features}")
        return rows

    # What users call.

    def __call__(self, X: Any, Y: Any = None) -> Array:
        """Compute the kernel values of all pairs of rows, of shape (n, m); Y is X by default."""
        A = self.points(X)
        return self.evaluate(A, A if Y is None or Y is X else self.points(Y, A.shape[1]))

    def diag(self, X: Any) -> Array:
        """Compute the values k(x, x), one per row."""
        return self.diagonal(self.points(X))

    def check(self, X: Any) -> Kernel:
        """Check on at most 200 rows of X that this is a kernel, and return it resolved.

        A ValueError says what is wrong: the matrix k(X, X) must be finite, symmetric and positive semi-definite, and
        its diagonal must be that of ``diag``. Rows can show that a function is not a kernel, and cannot prove that it
        is one.
        """
        rows = self.points(X)
        kernel, some = self.resolve(rows), some_rows(rows)
        check_diagonal(kernel, some, check_values(kernel, some))
        return kernel

    def expect(self, P: Measure, Q: Measure) -> float:
        """Compute the integral of k(x, y) over x ~ P and y ~ Q, or raise a ValueError where it has no closed form."""
        from muhat.kernels.expectations import expect  # which needs the classes of this module

        return expect(self, P, Q)

    def __add__(self, other: Kernel) -> Kernel:
        return Sum(self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: Kernel | float) -> Kernel:
        if isinstance(other, Kernel):
            return Product(self, other)
        return Scaled(float(other), self) if isinstance(other, numbers.Real) else NotImplemented

    def __rmul__(self, factor: float) -> Kernel:
        return Scaled(float(factor), self) if isinstance(factor, numbers.Real) else NotImplemented


class Composed(Kernel):
    """A kernel made of others, its :attr:`parts`: a sum, a product or a multiple.

    :meth:`combine` is the one rule by which its values, its diagonal, its bound and its expectations follow from those
    of the parts.
    """

    @property
    @abstractmethod
    def parts(self) -> tuple[Kernel, ...]:
        """The kernels that this one is made of."""

    @abstractmethod
    def combine(self, values: Iterable[Any]) -> Any:
        """The value of this kernel where the parts have these values, numbers or arrays of one shape."""

    @abstractmethod
    def with_parts(self, parts: Iterable[Kernel]) -> Kernel:
        """The same composition of other kernels."""

    def resolve(self, X: Any, sample_weight: Array | None = None) -> Kernel:
        return self.with_parts(part.resolve(X, sample_weight) for part in self.parts)

    def evaluate(self, X: Array, Y: Array) -> Array:
        return self.combine(part.evaluate(X, Y) for part in self.parts)

    def diagonal(self, X: Array) -> Array:
        return self.combine(part.diagonal(X) for part in self.parts)


@dataclass(frozen=True, repr=False)
class _Pair(Composed):
    """Sums and products of two kernels."""

    left: Kernel
    right: Kernel

    @property
    def parts(self) -> tuple[Kernel, ...]:
        return self.left, self.right

    def with_parts(self, parts: Iterable[Kernel]) -> Kernel:
        left, right = parts
        return self.with_params(left=left, right=right)


@dataclass(frozen=True, repr=False)
class Sum(_Pair):
    """Sum of two kernels, left(x, y) + right(x, y); written ``left + right``."""

    def combine(self, values: Iterable[Any]) -> Any:
        left, right = values
        return left + right


@dataclass(frozen=True, repr=False)
class Product(_Pair):
    """Product of two kernels, left(x, y) · right(x, y); written ``left * right``."""

    def combine(self, values: Iterable[Any]) -> Any:
        left, right = values
        return left * right


@dataclass(frozen=True, repr=False)
class Scaled(Composed):
    """Positive multiple of a kernel, factor · kernel(x, y); written ``factor * kernel``."""

    factor: float
    kernel: Kernel

    def __post_init__(self) -> None:
        check_number("factor", self.factor, low=0, open_low=True)

    @property
    def parts(self) -> tuple[Kernel, ...]:
        return (self.kernel,)

    def with_parts(self, parts: Iterable[Kernel]) -> Kernel:
        return Scaled(self.factor, *parts)

    def combine(self, values: Iterable[Any]) -> Any:
        (value,) = values
        return self.factor * value


def linear_terms(kernel: Kernel) -> list[tuple[float, Kernel]]:
    """The kernel as a sum of factors times other kernels: itself, unless it is a sum or a multiple."""
    if isinstance(kernel, Sum):
        return linear_terms(kernel.left) + linear_terms(kernel.right)
    if isinstance(kernel, Scaled):
        return [(kernel.factor * factor, term) for factor, term in linear_terms(kernel.kernel)]
    return [(1.0, kernel)]


def with_widths(kernel: Kernel, rows: Array, factors: tuple[float, ...]) -> list[Kernel]:
    """The kernel with each multiple of the median where its bandwidth is "median", else the kernel itself."""
    resolved: Any = kernel.resolve(rows)
    if getattr(kernel, "bandwidth", None) != "median":
        return [resolved]
    return [replace(resolved, bandwidth=factor * resolved.bandwidth) for factor in factors]


def check_kernel(name: str, kernel: Any) -> None:
    """Raise a ValueError unless ``kernel`` is a kernel object."""
    if not isinstance(kernel, Kernel):
        text = repr(kernel)
        shown = f"={text}" if len(text) < 80 and "\n" not in text else f" of type {type(kernel).__name__}"
        raise ValueError(
            f"{name}{shown} must be a kernel object such as muhat.Gaussian(); wrap other kernels by muhat.as_kernel"
        )


def check_values(kernel: Kernel, rows: Array) -> Array:
    """The values on some of the rows, or a ValueError where they show that this is not a kernel."""
    K = np.asarray(kernel.evaluate(rows, rows))
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
    apart = float(np.abs(diagonal - np.diag(K)).max())
    if apart > GRAM_TOLERANCE * float(np.abs(K).max()):
        raise ValueError(
            f"{kernel!r} is not a kernel on these rows: diagonal(X) and the diagonal of evaluate(X, X) differ by up to "
            f"{apart:.3g}; return k(x, x) from both"
        )


def some_rows(rows: Array) -> Array:
    """At most MAX_ROWS_TO_CHECK of the rows, evenly spaced."""
    return rows[:: -(-len(rows) // MAX_ROWS_TO_CHECK)]
