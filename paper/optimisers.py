"""MATLAB's ``fminbnd`` and ``fminsearch`` for λ of F-KMSE: how the paper minimised the score of Theorem 4.

The paper names the two routines and neither bounds nor start. Scipy has the same two algorithms; the tolerances here
are MATLAB's defaults, TolX = TolFun = 1e-4, and ``fminsearch`` begins with a second point 5 % away.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf

import numpy as np
from scipy.optimize import minimize, minimize_scalar

from paper.experiment import Array

TOLERANCE = 1e-4
Function = Callable[[float], float]

READINGS: dict[str, str] = {
    "F_fminbnd_1": "fminbnd on [0, 1]",
    "F_fminbnd_10": "fminbnd on [0, 10]",
    "F_fminsearch_01": "fminsearch from 0.01",
    "F_fminsearch_001": "fminsearch from 0.001",
}
"""Bounds and starts that one might choose."""


def fminbnd(function: Function, low: float, high: float) -> float:
    """Minimiser in [low, high] by golden section and parabolas (Brent)."""
    options = {"xatol": TOLERANCE, "maxiter": 500}
    return float(minimize_scalar(function, bounds=(low, high), method="bounded", options=options).x)


def fminsearch(function: Function, start: float) -> float:
    """Minimiser by Nelder and Mead's simplex, which in one dimension is an interval."""
    options = {"xatol": TOLERANCE, "fatol": TOLERANCE, "maxiter": 200, "maxfev": 200}
    return float(minimize(lambda x: function(x[0]), [start], method="Nelder-Mead", options=options).x[0])


def flexible_weights(K: Array, lam: float) -> Array:
    """Weights of F-KMSE, β = (K + λI)⁻¹K1ₙ."""
    return np.linalg.solve(K + lam * np.eye(len(K)), K.mean(axis=1))


def theorem4_score(K: Array) -> Function:
    """The score of Theorem 4 as a function of λ, after one decomposition K = U diag(γ) Uᵀ.

    With h = γ/(γ+λ) the columns βᵀK − Kᵢ of the theorem are Uγ(h·ones − uᵢ) with ones = Uᵀ1ₙ, and C_λ has in
    this basis the eigenvalues γ/(γ − γh/n)², so that no inverse of K is needed.
    """
    n = len(K)
    gammas, U = np.linalg.eigh(K)
    gammas = np.where(gammas > n * np.finfo(float).eps * gammas[-1], gammas, 0.0)
    ones = U.sum(axis=0) / n

    def score(lam: float) -> float:
        if lam < 0:
            return inf  # the paper's λ is not negative
        # Σᵢ (h·ones − uᵢ)² in each eigen-direction, where Σᵢ uᵢ = n·ones and Σᵢ uᵢ² = 1.
        h = np.divide(gammas, gammas + lam, out=np.zeros(n), where=gammas > 0)
        residuals = n * ones**2 * (h**2 - 2.0 * h) + 1.0
        return float((gammas * residuals / (1.0 - h / n) ** 2).sum() / n)

    return score


def weights_by_reading(K: Array) -> dict[str, Array]:
    """Weights of F-KMSE with λ by each reading of the paper's optimiser."""
    score = theorem4_score(K)
    lams = {
        "F_fminbnd_1": fminbnd(score, 0.0, 1.0),
        "F_fminbnd_10": fminbnd(score, 0.0, 10.0),
        "F_fminsearch_01": fminsearch(score, 0.01),
        "F_fminsearch_001": fminsearch(score, 0.001),
    }
    return {name: flexible_weights(K, lam) for name, lam in lams.items()}
