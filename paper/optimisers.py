"""MATLAB's ``fminbnd`` and ``fminsearch`` for λ of F-KMSE: how the paper minimised the score of Theorem 4.

The paper names the two routines and neither bounds nor start. Scipy has the same two algorithms; the tolerances here
are MATLAB's defaults, TolX = TolFun = 1e-4, and ``fminsearch`` begins with a second point 5 % away.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from scipy.optimize import minimize, minimize_scalar

from muhat._support.types import Array
from muhat.linalg.spectrum import Spectrum
from muhat.shrinkage.leave_one_out import tikhonov_factors
from muhat.shrinkage.scores import Theorem4Score

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


def flexible_weights(spectrum: Spectrum, lam: float) -> Array:
    """Weights of F-KMSE, β = (K + λI)⁻¹K1ₙ."""
    return spectrum.weights(tikhonov_factors, lam)


def weights_by_reading(spectrum: Spectrum) -> dict[str, Array]:
    """Weights of F-KMSE with λ by each reading of the paper's optimiser."""
    theorem4 = Theorem4Score(spectrum)

    def score(lam: float) -> float:
        return float(theorem4.at(lam)[0]) if lam >= 0 else inf  # the paper's λ is not negative

    lams = {
        "F_fminbnd_1": fminbnd(score, 0.0, 1.0),
        "F_fminbnd_10": fminbnd(score, 0.0, 10.0),
        "F_fminsearch_01": fminsearch(score, 0.01),
        "F_fminsearch_001": fminsearch(score, 0.001),
    }
    return {name: flexible_weights(spectrum, lam) for name, lam in lams.items()}
