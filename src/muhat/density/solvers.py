"""Solvers of kernel mean matching: SLSQP and L-BFGS-B on the parameters of a mixture, and weights alone."""

from __future__ import annotations

import warnings
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import softmax

from muhat._support.types import Array
from muhat.density.objective import Mixture, Objective
from muhat.linalg.resources import one_blas_thread

Solver = Literal["slsqp", "lbfgs", "weights"]

_ALIVE = 1e-3
"""Least weight, as a share of 1/m, at which the softmax starts: from 0 it could never move."""

_WIDEST = 1e6
"""Largest variance over the largest at the start: a bound that only a failing line search meets."""


class Settings(NamedTuple):
    """Settings of a minimisation: ``scale`` is that of the data, ``size`` that of the objective."""

    spherical: bool
    floor: float
    scale: float
    size: float
    tol: float
    max_iter: int


class Solution(NamedTuple):
    """The mixture found, the iterations taken, whether they converged, and why they ended."""

    mixture: Mixture
    n_iter: int
    converged: bool
    message: str


def solve(objective: Objective, start: Mixture, solver: Solver, settings: Settings) -> Solution:
    """Minimise the objective from ``start``; the result is finite and never worse than the start."""
    solvers = {"slsqp": _by_slsqp, "lbfgs": _by_lbfgs, "weights": _by_weights}
    # The matrices are small: threads of BLAS would cost more than they bring.
    with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
        solution = solvers[solver](objective, start, settings)
        if objective.value(solution.mixture) <= objective.value(start):
            return solution
    return solution._replace(mixture=start)


def _by_weights(objective: Objective, start: Mixture, settings: Settings) -> Solution:
    """The weights alone; those of the start where they are as good, for the best need not be unique."""
    best = start._replace(weights=objective.best_weights(start))
    gain = objective.value(start) - objective.value(best)
    return Solution(best if gain > settings.tol * settings.size else start, 1, True, "the programme is solved")


def _by_slsqp(objective: Objective, start: Mixture, settings: Settings) -> Solution:
    """Sequential quadratic programmes on (π, θ, σ), with π ≥ 0, Σπ = 1 and σ² ≥ floor."""
    parameters = _Parameters(start, settings)
    m, low = parameters.m, parameters.lowest()
    normal = (np.arange(len(low)) < m).astype(np.float64)
    return parameters.minimise(
        objective,
        start,
        method="SLSQP",
        bounds=np.column_stack([low, np.full(len(low), np.inf)]),
        constraints={"type": "eq", "fun": lambda x: x[:m].sum() - 1.0, "jac": lambda x: normal},
        options={"ftol": settings.tol, "maxiter": settings.max_iter},
    )


def _by_lbfgs(objective: Objective, start: Mixture, settings: Settings) -> Solution:
    """L-BFGS-B on (log π, θ, log σ²), from the best weights of the start's components."""
    parameters = _FreeParameters(start, settings)
    weights = np.maximum(_by_weights(objective, start, settings).mixture.weights, _ALIVE / parameters.m)
    low = parameters.lowest()
    widest = _WIDEST * max(start.variances.max() / settings.scale**2, 1.0)
    high = np.where(np.isfinite(low), np.log(widest), np.inf)
    options = {"ftol": settings.tol, "gtol": 1e-10, "maxiter": settings.max_iter, "maxfun": 10 * settings.max_iter}
    return parameters.minimise(
        objective,
        start._replace(weights=weights / weights.sum()),
        method="L-BFGS-B",
        bounds=np.column_stack([low, high]),
        options=options,
    )


class _Parameters:
    """The mixture as one vector (π, θ, σ), lengths over the scale of the data."""

    def __init__(self, start: Mixture, settings: Settings) -> None:
        self.m, self.d = start.means.shape
        self.width = 1 if settings.spherical else self.d
        self.settings = settings

    def split(self, x: Array) -> tuple[Array, Array, Array]:
        """The three blocks of a vector, means in the scale of the data."""
        weights, means, scales = np.split(x, [self.m, self.m + self.m * self.d])
        return weights, self.settings.scale * means.reshape(self.m, self.d), scales.reshape(self.m, self.width)

    def join(self, weights: Array, means: Array, scales: Array) -> Array:
        """One vector of three blocks."""
        return np.concatenate([weights, means.ravel(), scales.ravel()])

    def by_scales(self, by_variances: Array) -> Array:
        """Derivatives by the variances of features, summed where they are one variance."""
        return by_variances.sum(axis=1, keepdims=True) if self.settings.spherical else by_variances

    def encode(self, mixture: Mixture) -> Array:
        scale = self.settings.scale
        deviations = np.sqrt(mixture.variances[:, : self.width]) / scale
        return self.join(mixture.weights, mixture.means / scale, deviations)

    def decode(self, x: Array) -> Mixture:
        weights, means, deviations = self.split(x)
        return Mixture(weights, means, (self.settings.scale * deviations) ** 2 * np.ones(self.d))

    def gradient(self, x: Array, by: Mixture) -> Array:
        # By the chain rule, with θ = scale·x and σ² = (scale·x)²: ∂σ²/∂x = 2·scale²·x.
        scale, deviations = self.settings.scale, self.split(x)[2]
        return self.join(by.weights, scale * by.means, 2 * scale**2 * deviations * self.by_scales(by.variances))

    def lowest(self) -> Array:
        deviation = np.sqrt(self.settings.floor) / self.settings.scale
        free = np.full((self.m, self.d), -np.inf)
        return self.join(np.zeros(self.m), free, np.full(self.m * self.width, deviation))

    def minimise(self, objective: Objective, start: Mixture, **how: Any) -> Solution:
        """Run scipy's ``minimize``; rounding may leave the simplex and the floor by a last digit."""
        size = self.settings.size

        def value(x: Array) -> tuple[float, Array]:
            F, by = objective.with_gradient(self.decode(x))
            return F / size, self.gradient(x, by) / size

        low, high = how["bounds"].T
        with warnings.catch_warnings():  # older scipy tells of steps that leave the bounds by a last digit
            warnings.filterwarnings("ignore", "Values in x were outside bounds", RuntimeWarning)
            result = minimize(value, self.encode(start).clip(low, high), jac=True, **how)
        weights, means, variances = self.decode(result.x)
        weights = weights.clip(0)
        found = Mixture(weights / weights.sum(), means, np.maximum(variances, self.settings.floor))
        return Solution(found, int(result.nit), bool(result.success), str(result.message))


class _FreeParameters(_Parameters):
    """The mixture as one vector (log π, θ, log σ²) without constraints: the weights are a softmax."""

    def encode(self, mixture: Mixture) -> Array:
        scale = self.settings.scale
        logs = np.log(mixture.variances[:, : self.width] / scale**2)
        return self.join(np.log(mixture.weights), mixture.means / scale, logs)

    def decode(self, x: Array) -> Mixture:
        logits, means, logs = self.split(x)
        return Mixture(softmax(logits), means, self.settings.scale**2 * np.exp(logs) * np.ones(self.d))

    def gradient(self, x: Array, by: Mixture) -> Array:
        scale, (logits, _, logs) = self.settings.scale, self.split(x)
        weights = softmax(logits)
        # ∂π_a/∂x_b = π_a(δ_ab − π_b) for the softmax, and ∂σ²/∂log σ² = σ².
        by_logits = weights * (by.weights - weights @ by.weights)
        return self.join(by_logits, scale * by.means, scale**2 * np.exp(logs) * self.by_scales(by.variances))

    def lowest(self) -> Array:
        free = np.full(self.m * (self.d + 1), -np.inf)
        return np.append(free, np.full(self.m * self.width, np.log(self.settings.floor / self.settings.scale**2)))
