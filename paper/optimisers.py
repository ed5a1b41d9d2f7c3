"""MATLAB's ``fminbnd`` and ``fminsearch`` for λ of F-KMSE: how the paper minimised the score of Theorem 4.

The paper names the two routines and neither bounds nor start. Scipy has the same two algorithms; the tolerances here
are MATLAB's defaults, TolX = TolFun = 1e-4, and ``fminsearch`` begins with a second point 5 % away.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh
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


class Eigenpairs(NamedTuple):
    """K = U diag(γ) Uᵀ, with eigenvalues at the size of rounding errors set to zero."""

    gammas: Array
    U: Array


def eigenpairs(K: Array) -> Eigenpairs:
    """Eigenvalues and eigenvectors of a Gram matrix."""
    gammas, U = eigh(K, driver="evd")
    return Eigenpairs(np.where(gammas > len(K) * np.finfo(np.float64).eps * gammas[-1], gammas, 0.0), U)


def flexible_weights(pairs: Eigenpairs, lam: float) -> Array:
    """Weights of F-KMSE, β = (K + λI)⁻¹K1ₙ; at λ = 0 those of the average."""
    gammas, U = pairs
    n = len(U)
    return U @ (gammas / (gammas + lam) * (U.T @ np.ones(n))) / n if lam > 0 else np.full(n, 1.0 / n)


def theorem4_score(pairs: Eigenpairs, lam: float) -> float:
    """The score of Theorem 4 in eigenvalues, which needs no inverse of K; infinite for λ < 0.

    With h = γ/(γ+λ) and a = Uᵀ1ₙ the columns βᵀK − Kᵢ of the theorem are Uγ(ha − uᵢ), and C_λ has in this basis the
    eigenvalues 1/γ(1 − h/n)². The sum over i of (ha − uᵢ)² is 1 − na² + na²(1 − h)².
    """
    if lam < 0:
        return inf
    gammas, U = pairs
    n = len(U)
    a2 = (U.T @ np.ones(n) / n) ** 2
    h = gammas / (gammas + lam)
    return float((gammas * (1.0 / n - a2 + a2 * (1.0 - h) ** 2) / (1.0 - h / n) ** 2).sum())


def weights_by_reading(pairs: Eigenpairs) -> dict[str, Array]:
    """Weights of F-KMSE with λ by each reading of the paper's optimiser."""
    score = partial(theorem4_score, pairs)
    lams = {
        "F_fminbnd_1": fminbnd(score, 0.0, 1.0),
        "F_fminbnd_10": fminbnd(score, 0.0, 10.0),
        "F_fminsearch_01": fminsearch(score, 0.01),
        "F_fminsearch_001": fminsearch(score, 0.001),
    }
    return {name: flexible_weights(pairs, lam) for name, lam in lams.items()}
