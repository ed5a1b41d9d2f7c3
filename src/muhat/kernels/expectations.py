"""Expectations of kernels, E k(x, y) and E k(x, x), under weighted samples and Gaussian mixtures, in closed form.

A mean element is known by these integrals. Under a sample they are sums for every kernel. Under a Gaussian they have
a closed form for the Gaussian, the linear and the polynomial kernel of degree up to 3, and for sums and multiples of
those, because an expectation is linear in the kernel.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from muhat._support.types import Array
from muhat.kernels import tiles
from muhat.kernels.base import Kernel, Measure, Scaled, Sum
from muhat.kernels.dot import Linear, Polynomial
from muhat.kernels.foreign import Precomputed
from muhat.kernels.radial import Gaussian, Radial
from muhat.rkhs.measures import Atoms, FactoredCovariance, Gaussians

LARGEST_DEGREE = 3
"""Polynomial kernels of higher degree have no closed form here."""


def expect(kernel: Kernel, P: Measure, Q: Measure) -> float:
    """The integral of k(x, y) over x ~ P and y ~ Q, exact; a ValueError where there is no closed form."""
    if isinstance(P, Atoms) and isinstance(Q, Atoms):
        if P is Q:
            return tiles.quadratic_form(kernel, P.points, P.weights)
        return tiles.bilinear_form(kernel, P.points, Q.points, P.weights, Q.weights)
    return float(P.weights @ expectations(kernel, P, Q) @ Q.weights)


def expectations(kernel: Kernel, P: Measure, Q: Measure) -> Array:
    """E k(x, y) for each pair of components of P and Q, weights left out: shape (len(P), len(Q))."""
    if isinstance(P, Gaussians):
        return gaussian_expectations(kernel, P, Q)
    if isinstance(Q, Gaussians):
        return gaussian_expectations(kernel, Q, P).T
    return kernel.evaluate(P.points, Q.points)


def expect_diag(kernel: Kernel, P: Measure) -> float:
    """The integral of k(x, x) over x ~ P, exact; a ValueError where there is no closed form."""
    if isinstance(P, Atoms):
        return float(P.weights @ kernel.diagonal(P.points))
    return float(P.weights @ gaussian_diagonal(kernel, P))


# ---------------------------------------------------------------- the two functions that kernels register with


@singledispatch
def gaussian_expectations(kernel: Kernel, P: Gaussians, Q: Measure) -> Array:
    """E k(x, y) with x from each Gaussian of P, and y from each Gaussian of Q or at each atom of Q.

    An array of shape (p, q), where P has p means and covariances; weights are ignored.
    """
    raise ValueError(_no_closed_form(kernel))


@singledispatch
def gaussian_diagonal(kernel: Kernel, P: Gaussians) -> Array:
    """E k(x, x) with x from each of the p Gaussians of P, an array of shape (p,)."""
    raise ValueError(_no_closed_form(kernel))


_UNKNOWN = gaussian_expectations.dispatch(object)


def has_gaussian_expectations(kernel: Kernel) -> bool:
    """Whether expectations under Gaussians are known in closed form."""
    if isinstance(kernel, Sum | Scaled):
        return all(map(has_gaussian_expectations, kernel.parts))
    if isinstance(kernel, Polynomial):
        return kernel.degree <= LARGEST_DEGREE
    return gaussian_expectations.dispatch(type(kernel)) is not _UNKNOWN


def _no_closed_form(kernel: Kernel) -> str:
    if isinstance(kernel, Precomputed):
        return "kernel='precomputed' has no expectation under a Gaussian; pass a kernel and the data instead"
    return (
        f"{kernel!r} has no closed-form expectation under a Gaussian; use a sample: "
        f"embed(kernel, P.sample(n)) in place of embed(kernel, P)"
    )


# ---------------------------------------------------------------- sums and multiples


@gaussian_expectations.register(Sum)
@gaussian_expectations.register(Scaled)
def _combined_expectations(kernel: Sum | Scaled, P: Gaussians, Q: Measure) -> Array:
    return kernel.combine(gaussian_expectations(part, P, Q) for part in kernel.parts)


@gaussian_diagonal.register(Sum)
@gaussian_diagonal.register(Scaled)
def _combined_diagonal(kernel: Sum | Scaled, P: Gaussians) -> Array:
    return kernel.combine(gaussian_diagonal(part, P) for part in kernel.parts)


# ---------------------------------------------------------------- functions of the distance


gaussian_diagonal.register(Radial, lambda kernel, P: np.full(len(P), kernel.value_at_zero))


@gaussian_expectations.register(Gaussian)
def _gaussian_expectations(kernel: Gaussian, P: Gaussians, Q: Measure) -> Array:
    # x − y is normal with mean a − b and covariance S + T, and an atom has T = 0.
    if isinstance(Q, Atoms):
        return np.stack([_smoothed(kernel.width, Q.points - mean, S) for mean, S in P.components()])
    pairs = [[_smoothed(kernel.width, b - a, S + T) for b, T in Q.components()] for a, S in P.components()]
    return np.array(pairs)


def _smoothed(s: float, offsets: Array, covariance: Any) -> Array:
    """|I + Σ/s²|^(−½) exp(−½ rᵀ(Σ + s²I)⁻¹r) for each offset r."""
    if isinstance(covariance, FactoredCovariance):
        return covariance.smoothed(np.atleast_2d(offsets), s).reshape(offsets.shape[:-1])
    # With LLᵀ = I + Σ/s² the form rᵀ(Σ + s²I)⁻¹r is ‖L⁻¹r/s‖², and the root of the determinant is ∏ᵢ Lᵢᵢ.
    root = cholesky(np.eye(len(covariance)) + covariance / s / s, lower=True)
    standardised = solve_triangular(root, offsets.T / s, lower=True)
    return np.exp(-0.5 * (standardised**2).sum(axis=0) - np.log(np.diag(root)).sum())


# ---------------------------------------------------------------- functions of the inner product


gaussian_expectations.register(Linear, lambda kernel, P, Q: P.means @ _centres(Q).T)


@gaussian_diagonal.register(Linear)
def _linear_diagonal(kernel: Linear, P: Gaussians) -> Array:
    return np.einsum("ai,ai->a", P.means, P.means) + np.einsum("aii->a", P.covariances)


@gaussian_expectations.register(Polynomial)
def _polynomial_expectations(kernel: Polynomial, P: Gaussians, Q: Measure) -> Array:
    """Moments of t = xᵀy + c about M = aᵀb + c: E t² = M² + q, E t³ = M³ + 3Mq + E (t − M)³."""
    if kernel.degree > LARGEST_DEGREE:
        raise ValueError(_no_closed_form(kernel))
    points = _centres(Q)
    M = P.means @ points.T + kernel.constant
    if kernel.degree == 1:
        return M
    # The variance of xᵀy for independent x ~ N(a, S) and y ~ N(b, T): q = bᵀSb + aᵀTa + tr ST.
    q = np.stack([np.einsum("bi,ij,bj->b", points, S, points, optimize=True) for S in P.covariances])
    if isinstance(Q, Gaussians):
        q += np.einsum("ai,bij,aj->ab", P.means, Q.covariances, P.means, optimize=True)
        q += np.einsum("aij,bij->ab", P.covariances, Q.covariances, optimize=True)
    if kernel.degree == 2:
        return M**2 + q
    values = M**3 + 3 * M * q
    if isinstance(Q, Gaussians):
        # The third central moment of xᵀy is 6 aᵀTSb; where y is a point, xᵀy is normal and has none.
        values += 6 * np.einsum("ai,bij,ajk,bk->ab", P.means, Q.covariances, P.covariances, Q.means, optimize=True)
    return values


@gaussian_diagonal.register(Polynomial)
def _polynomial_diagonal(kernel: Polynomial, P: Gaussians) -> Array:
    """Moments of t = xᵀx + c by its cumulants: the mean T, the variance V and the third one."""
    if kernel.degree > LARGEST_DEGREE:
        raise ValueError(_no_closed_form(kernel))
    S, theta = P.covariances, P.means
    T = np.einsum("ai,ai->a", theta, theta) + np.einsum("aii->a", S) + kernel.constant
    if kernel.degree == 1:
        return T
    Stheta = np.einsum("aij,aj->ai", S, theta)
    V = 2 * np.einsum("aij,aij->a", S, S) + 4 * np.einsum("ai,ai->a", theta, Stheta)
    if kernel.degree == 2:
        return T**2 + V
    third = 8 * np.einsum("aij,aij->a", S @ S, S) + 24 * np.einsum("ai,ai->a", Stheta, Stheta)
    return T**3 + 3 * T * V + third


def _centres(Q: Measure) -> Array:
    """Points of a sample, or means of Gaussians."""
    return Q.points if isinstance(Q, Atoms) else Q.means
