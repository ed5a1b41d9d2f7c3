"""Exact finite features of the linear and the polynomial kernel: φ with k(x, y) = φ(x)ᵀφ(y)."""

from __future__ import annotations

from functools import cache
from itertools import combinations_with_replacement, pairwise
from math import comb, factorial

import numpy as np

from muhat.kernels.dot import Linear, Polynomial
from muhat.linalg.gram import exact_feature_count, exact_features
from muhat.types import Array

__all__ = ["exact_feature_count", "exact_features"]


@exact_feature_count.register(Linear)
def _linear_feature_count(kernel: Linear, width: int) -> float:
    return width


@exact_features.register(Linear)
def _linear_features(kernel: Linear, X: Array) -> Array:
    return X


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
