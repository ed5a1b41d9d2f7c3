"""Objective of kernel mean matching for Gaussian mixtures, and its gradients.

The mixture is three arrays: weights π (m,), means θ (m, d) and variances V (m, d), one per feature. The objective
‖μ − μ_Q‖² is ``constant − 2πᵀl + πᵀQπ``, with l the inner products of the target μ with the components, and Q those of
the components with each other. A term knows l and Q of one kernel, and their derivatives.
:func:`matching_objective` makes the objective of a target element, one term for each summand of its kernel.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from muhat._support.types import Array
from muhat.kernels.base import Kernel, linear_terms
from muhat.kernels.capabilities import gaussian_bandwidth
from muhat.kernels.dot import polynomial_form
from muhat.kernels.expectations import has_gaussian_expectations
from muhat.linalg.simplex import simplex_minimiser
from muhat.rkhs.elements import Element
from muhat.rkhs.measures import Atoms, Gaussians

_TENSOR_WIDTH = 32
"""Up to this width the third moments are made once: it costs as much as d²/2m evaluations save."""


class Mixture(NamedTuple):
    """Gaussian mixture with diagonal covariances as three arrays; also the derivatives by these."""

    weights: Array  # (m,): π, one per component
    means: Array  # (m, d): θ
    variances: Array  # (m, d): V, one per component and column


class Term(Protocol):
    """Contribution of one kernel to the objective."""

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
        """Return the objective alone."""
        return self.with_gradient(mixture)[0]

    def with_gradient(self, mixture: Mixture) -> tuple[float, Mixture]:
        """Return the objective, and its derivatives as a mixture."""
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


def check_matchable(kernel: Kernel) -> None:
    """Raise a ValueError unless all terms of a resolved kernel are Gaussian, or polynomial of degree 3 at most."""
    if all(_has_term(term) for _, term in linear_terms(kernel)):
        return
    raise ValueError(
        f"kernel={kernel!r} has no closed-form expectation under a Gaussian, with its gradient, that matching knows; "
        f"use Linear(), Polynomial of degree 1 to 3, Gaussian(), or their sums and multiples"
    )


def _has_term(kernel: Kernel) -> bool:
    if polynomial_form(kernel) is not None:
        return has_gaussian_expectations(kernel)
    return gaussian_bandwidth(kernel) is not None


def matching_objective(target: Element) -> Objective:
    """Objective of kernel mean matching: the squared distance of a mixture's kernel mean from the target.

    Parameters
    ----------
    target : Element
        The kernel mean to match, with a kernel that has exact means of Gaussian mixtures.

    Returns
    -------
    Objective
        Its ``value(mixture)`` and ``with_gradient(mixture)`` take a :class:`Mixture`.

    See Also
    --------
    muhat.MatchedGaussianMixture : Minimises it over all parameters.

    Examples
    --------
    >>> import numpy as np
    >>> import muhat as mh
    >>> objective = mh.density.matching_objective(mh.embed(mh.Linear(), [[3.0, 4.0]]))
    >>> value, by = objective.with_gradient(mh.density.Mixture(np.ones(1), np.zeros((1, 2)), np.ones((1, 2))))
    >>> value, by.means
    (25.0, array([[-6., -8.]]))
    """
    check_matchable(target.kernel)
    terms = [(factor, _term(kernel, target)) for factor, kernel in linear_terms(target.kernel)]
    return Objective(terms, target.norm() ** 2)


def kernel_size(kernel: Kernel, scale: float) -> float:
    """How the kernel grows with the scale of the data: for every part its factor at scale 1."""
    return sum(factor * _growth(part, scale) for factor, part in linear_terms(kernel))


def _growth(kernel: Kernel, scale: float) -> float:
    form = polynomial_form(kernel)
    if form is None:
        return 1.0
    p, c = form
    return _power_gain(scale**2, c, p) / _power_gain(1.0, c, p)


def _power_gain(x: float, c: float, p: int) -> float:
    """(x + c)^p − c^p, to the last digits also where x is small."""
    return x * sum((x + c) ** i * c ** (p - 1 - i) for i in range(p))


def _term(kernel: Kernel, target: Element) -> Term:
    atoms = [measure for measure in target.measures if isinstance(measure, Atoms)]
    gaussians = [measure for measure in target.measures if isinstance(measure, Gaussians)]
    form, bandwidth = polynomial_form(kernel), gaussian_bandwidth(kernel)
    if form is not None:
        atoms += [_cubature(measure) for measure in gaussians]
        return PolynomialTerm(*form, *_pooled(atoms, target.n_features))
    assert bandwidth is not None, "checked before"
    term = GaussianTerm(bandwidth, *_pooled(atoms, target.n_features))
    for measure in gaussians:
        for weight, (mean, covariance) in zip(measure.weights, measure.components(), strict=True):
            term.add_gaussian(float(weight), mean, covariance)
    return term


def _pooled(atoms: list[Atoms], d: int) -> tuple[Array, Array]:
    points = np.concatenate([np.empty((0, d)), *(measure.points for measure in atoms)])
    return points, np.concatenate([np.empty(0), *(measure.weights for measure in atoms)])


def _cubature(gaussians: Gaussians) -> Atoms:
    """Atoms θ ± √d·(columns of a root of Σ): the same moments up to order 3, so the same polynomial element."""
    d = gaussians.n_features
    points = []
    for mean, covariance in gaussians.components():
        eigenvalues, eigenvectors = np.linalg.eigh(covariance)
        steps = (np.sqrt(d * eigenvalues.clip(0)) * eigenvectors).T
        points += [mean + steps, mean - steps]
    return Atoms.trusted(np.concatenate(points), np.repeat(gaussians.weights / (2 * d), 2 * d))
