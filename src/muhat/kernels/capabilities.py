"""Capabilities of kernels: exact features, values for sums, bounds, invariance, length scales, spectral measures.

Each is a function that looks at the type of the kernel; bounds, invariance, length scales and values for sums combine
the answers for the parts of a sum, a product or a multiple. A kernel of a user registers with the same functions:
``@sample_frequencies.register(MyKernel)``.
"""

from __future__ import annotations

from functools import cache, singledispatch
from itertools import combinations_with_replacement, pairwise
from math import comb, factorial, inf
from operator import attrgetter

import numpy as np

from muhat._support.types import Array
from muhat.kernels.base import Composed, Kernel
from muhat.kernels.dot import Linear, Polynomial
from muhat.kernels.mixed import Categorical, OnColumns, Rescaled
from muhat.kernels.radial import Gaussian, Laplace, Matern, Radial
from muhat.linalg.distances import negative_half_squares

__all__ = [
    "evaluate_fast",
    "exact_feature_count",
    "exact_features",
    "is_isotropic",
    "is_stationary",
    "length_scales",
    "sample_frequencies",
    "upper_bound",
]


@singledispatch
def gaussian_bandwidth(kernel: Kernel) -> float | None:
    """The number s if k(x, y) = exp(−‖x − y‖² / 2s²), for which many things are known in closed form; or None."""
    return None


@singledispatch
def evaluate_fast(kernel: Kernel, X: Array, Y: Array) -> Array:
    """Kernel values (n, m) for sums: as ``kernel.evaluate``, or faster and within 1e-13 of the values."""
    bandwidth = gaussian_bandwidth(kernel)
    exponents = None if bandwidth is None else negative_half_squares(X, Y, scale=bandwidth)
    return kernel.evaluate(X, Y) if exponents is None else np.exp(exponents, out=exponents)


@singledispatch
def exact_feature_count(kernel: Kernel, width: int) -> float:
    """Number of exact features of a row of ``width`` columns; infinity for a kernel without a finite number of them."""
    return inf


@singledispatch
def exact_features(kernel: Kernel, X: Array) -> Array:
    """Exact features φ(x), with k(x, y) = φ(x)ᵀφ(y), one row each: shape (n, exact_feature_count(kernel, d))."""
    raise TypeError(f"{type(kernel).__name__} has no exact features")


gaussian_bandwidth.register(Gaussian, attrgetter("width"))


# ---------------------------------------------------------------- exact features, with k(x, y) = φ(x)ᵀφ(y)


exact_feature_count.register(Linear, lambda kernel, width: width)
exact_features.register(Linear, lambda kernel, X: X)


@exact_feature_count.register(Polynomial)
def _polynomial_feature_count(kernel: Polynomial, width: int) -> float:
    return comb(width + bool(kernel.constant) + kernel.degree - 1, kernel.degree)


@exact_features.register(Polynomial)
def _polynomial_features(kernel: Polynomial, X: Array) -> Array:
    """The monomials of the columns and of a column √constant."""
    columns = [*X.T, np.full(len(X), np.sqrt(kernel.constant))] if kernel.constant else [*X.T]
    Z = np.ascontiguousarray(columns)
    monomials = Z
    for degree in range(2, kernel.degree + 1):
        # Each monomial is made once, with its columns in ascending order: column i is multiplied with those monomials
        # of one degree less that have no column before i, which are the last ones.
        kept = [comb(len(Z) - i + degree - 2, degree - 1) for i in range(len(Z))]
        with np.errstate(over="ignore"):
            monomials = np.concatenate([Z[i] * monomials[-last:] for i, last in enumerate(kept)])
    return (_roots_of_multiplicities(len(Z), kernel.degree)[:, None] * monomials).T


@cache
def _roots_of_multiplicities(width: int, degree: int) -> Array:
    """Roots of degree! / ∏ⱼ αⱼ!, how often ∏ⱼ zⱼ^αⱼ occurs in (Σⱼ zⱼ)^degree, in the order of the features."""
    chosen = np.array(list(combinations_with_replacement(range(width), degree)))
    orders = np.full(len(chosen), float(factorial(degree)))
    run = np.ones(len(chosen))
    for left, right in pairwise(chosen.T):
        run = np.where(left == right, run + 1, 1.0)
        orders /= run
    return np.sqrt(orders)


# ---------------------------------------------------------------- values for sums over many rows


@evaluate_fast.register(Composed)
def _composed_values(kernel: Composed, X: Array, Y: Array) -> Array:
    return kernel.combine(evaluate_fast(part, X, Y) for part in kernel.parts)


@evaluate_fast.register(OnColumns)
def _values_on_columns(kernel: OnColumns, X: Array, Y: Array) -> Array:
    return evaluate_fast(kernel.kernel, kernel.chosen(X), kernel.chosen(Y))


# ---------------------------------------------------------------- upper bounds, which concentration inequalities need


@singledispatch
def upper_bound(kernel: Kernel) -> float:
    """The supremum of k(x, x), for kernels with all their values in [0, supremum]; infinity for others."""
    return inf


upper_bound.register(Radial, lambda kernel: kernel.value_at_zero)
upper_bound.register(Categorical, lambda kernel: 1.0)
upper_bound.register(OnColumns, lambda kernel: upper_bound(kernel.kernel))
upper_bound.register(Rescaled, lambda kernel: upper_bound(kernel.kernel))
upper_bound.register(Composed, lambda kernel: kernel.combine(map(upper_bound, kernel.parts)))


# ---------------------------------------------------------------- invariance under translations and rotations


@singledispatch
def is_stationary(kernel: Kernel) -> bool:
    """Whether k(x, y) is a bounded function of x − y, and so can be evaluated at any point of the space."""
    return False


@singledispatch
def is_isotropic(kernel: Kernel) -> bool:
    """Whether k(x, y) is a function of the distance ‖x − y‖ alone, for rows of any width: no rotation changes it."""
    return False


@singledispatch
def length_scales(kernel: Kernel) -> tuple[float, ...]:
    """The numbers that rows are divided by: one for each part of the kernel that has a bandwidth."""
    return ()


is_stationary.register(Radial, lambda kernel: True)
is_stationary.register(Composed, lambda kernel: all(map(is_stationary, kernel.parts)))
is_isotropic.register(Radial, lambda kernel: kernel.metric == "euclidean")
is_isotropic.register(Composed, lambda kernel: all(map(is_isotropic, kernel.parts)))
length_scales.register(Radial, lambda kernel: (kernel.width,))
length_scales.register(Composed, lambda kernel: tuple(scale for part in kernel.parts for scale in length_scales(part)))


# ---------------------------------------------------------------- spectral measures (Bochner), for Fourier features


@singledispatch
def sample_frequencies(kernel: Kernel, width: int, count: int, rng: np.random.Generator) -> Array:
    """Draw frequencies w from the spectral measure: E cos wᵀ(x − y) = k(x, y), for rows divided by the bandwidth.

    The rows have ``width`` columns; ``count`` frequencies are an array of shape (width, count).
    """
    raise ValueError(
        f"kernel={kernel!r} is not registered with muhat.kernels.sample_frequencies, which Fourier features need; "
        f"use Nystroem"
    )


@sample_frequencies.register(Gaussian)
def _gaussian_frequencies(kernel: Gaussian, width: int, count: int, rng: np.random.Generator) -> Array:
    """Standard normal."""
    return rng.standard_normal((width, count))


@sample_frequencies.register(Laplace)
def _laplace_frequencies(kernel: Laplace, width: int, count: int, rng: np.random.Generator) -> Array:
    """Cauchy in each column."""
    return rng.standard_cauchy((width, count))


@sample_frequencies.register(Matern)
def _matern_frequencies(kernel: Matern, width: int, count: int, rng: np.random.Generator) -> Array:
    """Student's t with 2ν degrees of freedom."""
    normal = rng.standard_normal((width, count))
    return normal / np.sqrt(rng.chisquare(2 * kernel.nu, count) / (2 * kernel.nu))
