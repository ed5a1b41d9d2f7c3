"""Objective of kernel mean matching for Gaussian mixtures, and its gradients. Arrays in, arrays out.

The mixture is three arrays: weights π (m,), means θ (m, d) and variances V (m, d), one a feature. The objective is
``constant − 2πᵀl + πᵀQπ``, with l the inner products of the target with the components, and Q those of the
components with each other. A term knows l and Q of one kernel, and their derivatives.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from muhat.linalg.simplex import simplex_minimiser
from muhat.types import Array

_TENSOR_WIDTH = 32
"""Up to this width the third moments are made once: it costs as much as d²/2m evaluations save."""


class Mixture(NamedTuple):
    """Weights (m,), means (m, d), variances (m, d); also the derivatives by these."""

    weights: Array
    means: Array
    variances: Array


class Term(Protocol):
    """What one kernel contributes."""

    def cross(self, means: Array, variances: Array) -> tuple[Array, Array, Array]:
        """l (m,), and its derivatives by each component's own mean and variances (m, d)."""
        ...

    def pairs(self, mixture: Mixture) -> tuple[Array, Array, Array]:
        """Q (m, m), and the derivatives of πᵀQπ by means and variances (m, d)."""
        ...


class GaussianTerm:
    """The kernel exp(−‖x − y‖²/2s²), against weighted points and weighted Gaussians of any covariance."""

    def __init__(self, bandwidth: float, points: Array, weights: Array) -> None:
        # The expanded squared distance loses digits far from the origin; a median ignores single far rows.
        self.centre = np.median(points, axis=0) if len(points) else np.zeros(points.shape[1])
        self.bandwidth, self.weights = bandwidth, weights
        self.points = (points - self.centre) / bandwidth
        self.squares = self.points**2
        self.gaussians: list[tuple[float, Array, Array]] = []

    def add_gaussian(self, weight: float, mean: Array, covariance: Array) -> None:
        """Let ``weight`` · N(mean, covariance) be part of the target."""
        s = self.bandwidth
        self.gaussians.append((weight, (mean - self.centre) / s, covariance / s / s))

    def cross(self, means: Array, variances: Array) -> tuple[Array, Array, Array]:
        theta, v = (means - self.centre) / self.bandwidth, variances / self.bandwidth**2
        parts = [self._points_cross(theta, v)]
        parts += [self._gaussian_cross(theta, v, *gaussian) for gaussian in self.gaussians]
        inner, by_theta, by_v = (np.sum(part, axis=0) for part in zip(*parts, strict=True))
        return inner, by_theta / self.bandwidth, by_v / self.bandwidth**2

    def _points_cross(self, theta: Array, v: Array) -> tuple[Array, Array, Array]:
        precisions = 1.0 / (1.0 + v)
        weighted = precisions * theta
        logs = self.points @ weighted.T
        logs -= 0.5 * (self.squares @ precisions.T)
        logs -= 0.5 * (weighted * theta + np.log1p(v)).sum(axis=1)
        values = np.exp(np.minimum(logs, 0.0, out=logs), out=logs)  # above 0 is rounding, of rows very far away
        values *= self.weights[:, None]
        inner, first, second = values.sum(axis=0), values.T @ self.points, values.T @ self.squares
        mass = inner[:, None]
        spread = second - 2 * theta * first + mass * theta**2
        return inner, precisions * (first - mass * theta), 0.5 * precisions * (precisions * spread - mass)

    def _gaussian_cross(
        self, theta: Array, v: Array, weight: float, mean: Array, covariance: Array
    ) -> tuple[Array, Array, Array]:
        widened = covariance + (1.0 + v)[:, :, None] * np.eye(len(mean))
        inverses, offsets = np.linalg.inv(widened), mean - theta
        slopes = np.einsum("jkl,jl->jk", inverses, offsets)
        inner = weight * np.exp(-0.5 * (np.linalg.slogdet(widened)[1] + (slopes * offsets).sum(axis=1)))
        mass = inner[:, None]
        return inner, mass * slopes, 0.5 * mass * (slopes**2 - np.einsum("jkk->jk", inverses))

    def pairs(self, mixture: Mixture) -> tuple[Array, Array, Array]:
        weights, theta, v = mixture.weights, mixture.means / self.bandwidth, mixture.variances / self.bandwidth**2
        sums = v[:, None] + v
        precisions = 1.0 / (1.0 + sums)
        offsets = theta[:, None] - theta
        slopes = precisions * offsets
        Q = np.exp(-0.5 * (slopes * offsets + np.log1p(sums)).sum(axis=2))
        shares = np.outer(weights, weights) * Q
        by_theta = -2.0 * np.einsum("ab,abk->ak", shares, slopes)
        by_v = np.einsum("ab,abk->ak", shares, slopes**2 - precisions)
        return Q, by_theta / self.bandwidth, by_v / self.bandwidth**2


class PolynomialTerm:
    """The kernel (xᵀy + c)^p, p ≤ 3: weighted points enter through their moments up to order p."""

    def __init__(self, degree: int, constant: float, points: Array, weights: Array) -> None:
        n, d = points.shape
        self.degree, self.constant = degree, constant
        self.points, self.weighted = points, weights[:, None] * points
        self.mass, self.first = weights.sum(), weights @ points
        self.second = points.T @ self.weighted if degree > 1 else np.empty((0, 0))
        self.squares = (points**2).T @ self.weighted if degree > 2 else np.empty((0, 0))
        self.third = None
        if degree > 2 and d <= _TENSOR_WIDTH and n > d**2:  # then m·d³ operations are fewer than 2·n·m·d
            moments = [(points * column[:, None]).T @ points for column in self.weighted.T]
            self.third = np.stack(moments).reshape(d, d * d)

    def cross(self, means: Array, variances: Array) -> tuple[Array, Array, Array]:
        c, linear = self.constant, means @ self.first
        if self.degree == 1:
            return linear + c * self.mass, np.tile(self.first, (len(means), 1)), np.zeros_like(means)
        curved, diagonal = means @ self.second, np.diag(self.second)
        quadratic = (curved * means).sum(axis=1) + variances @ diagonal
        if self.degree == 2:
            inner = quadratic + 2 * c * linear + c**2 * self.mass
            return inner, 2 * (curved + c * self.first), np.tile(diagonal, (len(means), 1))
        twice, own = self._third_moments(means), means @ self.squares.T
        inner = (twice * means + 3 * variances * own).sum(axis=1)
        inner += c * (3 * quadratic + c * (3 * linear + c * self.mass))
        by_means = 3 * (twice + variances @ self.squares + c * (2 * curved + c * self.first))
        return inner, by_means, 3 * (own + c * diagonal)

    def _third_moments(self, means: Array) -> Array:
        """The integral of (θᵀx)² x for each mean θ."""
        if self.third is None:
            return ((self.points @ means.T) ** 2).T @ self.weighted
        once = (means @ self.third).reshape(len(means), *self.second.shape)
        return np.einsum("jkl,jl->jk", once, means)

    def pairs(self, mixture: Mixture) -> tuple[Array, Array, Array]:
        weights, means, variances = mixture
        shares = np.outer(weights, weights)
        M = means @ means.T + self.constant
        if self.degree == 1:
            return M, 2 * shares @ means, np.zeros_like(means)
        squares, carried = means**2, variances * means
        q = variances @ squares.T
        q = q + q.T + variances @ variances.T
        if self.degree == 2:
            Q, by_M, by_q, by_carried = M**2 + q, 2 * M * shares, shares, np.zeros_like(means)
        else:
            Q = M**3 + 3 * M * q + 6 * carried @ carried.T
            by_M, by_q, by_carried = 3 * (M**2 + q) * shares, 3 * M * shares, 6 * shares @ carried
        by_means = by_M @ means + 2 * (by_q @ variances) * means + by_carried * variances
        by_variances = by_q @ (squares + variances) + by_carried * means
        return Q, 2 * by_means, 2 * by_variances


class Objective:
    """‖μ − μ_Q‖² for mixtures Q: the terms with their factors, and the squared norm of the target μ."""

    def __init__(self, terms: list[tuple[float, Term]], constant: float) -> None:
        self.terms, self.constant = terms, constant

    def value(self, mixture: Mixture) -> float:
        """The objective alone."""
        return self.with_gradient(mixture)[0]

    def with_gradient(self, mixture: Mixture) -> tuple[float, Mixture]:
        """The objective, and its derivatives."""
        weights, m = mixture.weights, len(mixture.weights)
        inner, Q = np.zeros(m), np.zeros((m, m))
        by_means, by_variances = np.zeros_like(mixture.means), np.zeros_like(mixture.means)
        for factor, term in self.terms:
            cross, cross_means, cross_variances = term.cross(mixture.means, mixture.variances)
            pairs, pairs_means, pairs_variances = term.pairs(mixture)
            inner += factor * cross
            Q += factor * pairs
            by_means += factor * (pairs_means - 2 * weights[:, None] * cross_means)
            by_variances += factor * (pairs_variances - 2 * weights[:, None] * cross_variances)
        value = float(self.constant - 2 * weights @ inner + weights @ Q @ weights)
        return value, Mixture(2 * (Q @ weights - inner), by_means, by_variances)

    def best_weights(self, mixture: Mixture) -> Array:
        r"""The weights on the simplex that minimise the objective, means and variances held.

        On the simplex the objective is πᵀMπ, M_ab = ⟨μ_a − μ, μ_b − μ⟩.
        """
        inner = np.sum([factor * term.cross(*mixture[1:])[0] for factor, term in self.terms], axis=0)
        Q = np.sum([factor * term.pairs(mixture)[0] for factor, term in self.terms], axis=0)
        M = Q - inner[:, None] - inner + self.constant
        try:
            return simplex_minimiser(M / max(np.abs(M).max(), 1e-300), np.ones(len(M)))
        except RuntimeError:  # the active set cycles, on a programme without a unique solution
            return mixture.weights
