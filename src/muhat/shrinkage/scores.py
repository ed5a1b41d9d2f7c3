"""Scores of shrinkage: simple shrinkage, exact leave-one-out, Theorem 4; and the search for λ.

Theorem 3's α, the minimiser for simple shrinkage in closed form, is in ``muhat.means.simple_shrinkage``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.polynomial import chebyshev
from scipy.optimize import minimize_scalar

from muhat._support.types import Array
from muhat._support.validation import check_number_or
from muhat.linalg.spectrum import Spectrum, whole_spectrum
from muhat.shrinkage.leave_one_out import LeaveOneOut, LooMoments, TikhonovLoo, plain_loo_moments

Lam = float | Literal["loo", "theorem4"]

Scale = float | Literal["loo"]


def given_lam(lam: Lam) -> float | None:
    """A λ that is given as a number, None where it is to be found."""
    return check_number_or("lam", lam, "loo", "theorem4", low=0, finite=False)


def given_scale(scale: Scale, lam: Lam) -> float | None:
    """A scale that is given as a number and goes with λ, None where it is to be found."""
    c = check_number_or("scale", scale, "loo", low=0)
    if isinstance(lam, str) and lam == "theorem4" and c != 1.0:
        raise ValueError(
            f'scale={scale!r} cannot be used with lam="theorem4", whose score is that of the estimate as it is. '
            f'Use scale=1.0, lam="loo" or a number'
        )
    return c


GRID = np.logspace(-8, 4, 33)
"""The λ, relative to the largest eigenvalue, between which minima are bracketed."""

TIE = 1e-13
"""Scores this close (relative to ϱ) are ties, and a tie goes to λ = 0 or ∞."""

_ANGLES = np.pi * (np.arange(16) + 0.5) / 16
_NODES = np.cos(_ANGLES)
_TO_COEFFICIENTS = np.cos(np.outer(np.arange(16), _ANGLES)) / np.where(np.arange(16) == 0, 16.0, 8.0)[:, None]
"""Chebyshev's nodes on [−1, 1], and the matrix that makes coefficients of Chebyshev polynomials of values there."""

_NEAR = 1e-3  # of log λ: where rounding cannot hide the minimum from the slopes

_PROBES = 5  # values of λ that tell whether a bracket lies on one analytic piece

_ZOOMS = 4  # each narrows a bracket to a sixteenth: to 3e-5 of log λ


class ScorePath(NamedTuple):
    """Leave-one-out score as a curve: values of the parameter, ascending, and the score of each; the lowest is best."""

    values: Array
    scores: Array


class Choice(NamedTuple):
    """Result of the search for λ: the minimiser, its score, and the curve."""

    lam: float
    score: float
    path: ScorePath


class Shrinkage(NamedTuple):
    """How a filtered mean is shrunk: by λ and a factor c; score and curve are None where nothing was searched."""

    lam: float
    scale: float
    score: float | None
    path: ScorePath | None


def choose_shrinkage(
    spectrum: Spectrum, leave_one_out: Callable[[Spectrum], LeaveOneOut], lam: Lam = "loo", scale: Scale = 1.0
) -> Shrinkage:
    """λ and the scale of a filtered mean: each as it is given, or where its leave-one-out score is lowest."""
    value, c, best, path = given_lam(lam), given_scale(scale, lam), None, None
    if value is not None and c is not None:
        return Shrinkage(value, c, best, path)
    if lam == "theorem4":
        value, best, path = Theorem4Score(spectrum).search()
        return Shrinkage(value, 1.0, best, path)
    score = LooScore(spectrum, leave_one_out(spectrum), c)
    if value is None:
        value, best, path = score.search()
    return Shrinkage(value, score.best_scale(value) if c is None else c, best, path)


def simple_score(n: float, mean_diag: float, mean_gram: float, alpha: Any) -> Any:
    """Leave-one-out score of (1−α)·average (equation 7), from n, ϱ and ρ."""
    return plain_loo_moments(n, mean_diag, mean_gram).scores(mean_diag, 1.0 - alpha)


def simple_scores(K: Any, alphas: Any) -> Array:
    """Leave-one-out scores of simple shrinkage (S-KMSE).

    Parameters
    ----------
    K : array of shape (n, n)
        Gram matrix.
    alphas : array of shape (m,)
        Amounts of shrinkage; 0 is the plain average.

    Returns
    -------
    array of shape (m,)
        Score of each amount of shrinkage.

    See Also
    --------
    deletion_scores : The same for flexible shrinkage.
    muhat.ShrunkKernelMean : Minimises it.

    Examples
    --------
    >>> import numpy as np
    >>> import muhat as mh
    >>> mh.shrinkage.simple_scores(np.eye(2), [0.0, 0.5, 1.0])
    array([2.  , 1.25, 1.  ])
    """
    K = _gram_matrix(K)
    return simple_score(len(K), np.trace(K) / len(K), K.mean(), np.atleast_1d(np.asarray(alphas, dtype=float)))


def deletion_scores(K: Any, lams: Any) -> Array:
    """Leave-one-out scores of flexible shrinkage (F-KMSE, equation 7) by true deletion: row i leaves data and span.

    Parameters
    ----------
    K : array of shape (n, n)
        Gram matrix, singular or not.
    lams : array of shape (m,)
        Ridges in [0, inf]; 0 is the plain average and inf the zero element.

    Returns
    -------
    array of shape (m,)
        Leave-one-out score of each λ.

    See Also
    --------
    theorem4_scores : Scores of the paper.
    muhat.SpectralKernelMean : Minimises it.

    Examples
    --------
    >>> import numpy as np
    >>> import muhat as mh
    >>> mh.shrinkage.deletion_scores(np.eye(2), [0.0, 1.0, np.inf])
    array([2.  , 1.25, 1.  ])
    """
    spectrum = whole_spectrum(_gram_matrix(K))
    return LooScore(spectrum, TikhonovLoo(spectrum)).at(lams)


def theorem4_scores(K: Any, lams: Any) -> Array:
    r"""The paper's scores of flexible shrinkage (Theorem 4), without an inverse of K.

    Differs from the paper: valid for singular K. The score drops the loss of row i but leaves :math:`\phi(x_i)` in the
    span, so it is not a leave-one-out score, and it over-shrinks; see :func:`deletion_scores`.

    Parameters
    ----------
    K : array of shape (n, n)
        Gram matrix, singular or not.
    lams : array of shape (m,)
        Ridges in [0, inf].

    Returns
    -------
    array of shape (m,)
        Score of each λ by Theorem 4.

    See Also
    --------
    deletion_scores : Leave-one-out scores.
    muhat.SpectralKernelMean : Minimises it with ``lam="theorem4"``.

    Examples
    --------
    >>> import numpy as np
    >>> import muhat as mh
    >>> mh.shrinkage.theorem4_scores(np.eye(2), [0.0, 1.0, np.inf]).round(4)
    array([2.    , 1.1111, 1.    ])
    """
    return Theorem4Score(whole_spectrum(_gram_matrix(K))).at(lams)


def _gram_matrix(K: Any) -> Array:
    K = np.array(K, dtype=np.float64)
    if K.ndim != 2 or K.shape[0] != K.shape[1] or len(K) < 2:
        raise ValueError(f"K has shape {K.shape} and must be a square Gram matrix of at least 2 rows")
    if not np.isfinite(K).all():
        raise ValueError("K must be finite; it holds NaN or infinite values")
    return K


@dataclass(eq=False)
class SpectralScore(ABC):
    """A score of a filtered mean as a function of λ in [0, inf].

    ``values`` are all λ at which the score can differ, or None for a continuum. An ``analytic`` score is analytic in
    pieces, and takes complex λ too.
    """

    spectrum: Spectrum
    values: Array | None = field(default=None, init=False)
    analytic: bool = field(default=True, init=False)

    @abstractmethod
    def inside(self, lams: Array) -> Array:
        """Scores at λ in (0, inf), both in the units of the spectrum."""

    def pieces(self, lams: Array) -> Array | None:
        """Number of the analytic piece of the curve that each λ lies on; None for a curve of one piece."""
        return None

    def limits(self) -> tuple[float, float]:
        """Scores at λ = 0 (the plain average) and λ = inf (the zero element), in the units of the spectrum."""
        sp = self.spectrum
        return float(simple_score(sp.n, sp.mean_diag, sp.mean_gram, 0.0)), sp.mean_diag

    def at(self, lams: Any) -> Array:
        """Scores at any λ in [0, inf], in the units of the data."""
        lams = np.atleast_1d(np.asarray(lams, dtype=float))
        if np.isnan(lams).any() or (lams < 0).any():
            raise ValueError(f"lams={lams} must lie in [0, inf]")
        at_zero, at_infinity = self.limits()
        with np.errstate(over="ignore"):
            lams = lams / self.spectrum.unit
        inside = (lams > 0) & np.isfinite(lams)
        scores = np.where(lams > 0, at_infinity, at_zero)
        if inside.any():
            scores[inside] = self.inside(lams[inside])
        return self.in_data_units(scores)

    def search(self) -> Choice:
        """The λ in [0, inf] with the lowest score, and the curve that was seen, in the units of the data.

        A continuum is searched on a grid, then in the bracket of every local minimum: on the derivative where the
        score is analytic, else by Brent's method. ``values`` are searched one by one. Scores can have several minima,
        and minima at either end. A limit wins ties.
        """
        path = self._path()
        at_zero, at_infinity = self.limits()
        lam, score = (0.0, at_zero) if at_zero <= at_infinity else (np.inf, at_infinity)
        if path.scores.min(initial=np.inf) < score - TIE * self.spectrum.mean_diag:
            best = int(np.argmin(path.scores))
            lam, score = path.values[best], path.scores[best]
        in_data_units = ScorePath(path.values * self.spectrum.unit, self.in_data_units(path.scores))
        return Choice(float(lam * self.spectrum.unit), float(self.in_data_units(score)), in_data_units)

    def in_data_units(self, scores: Any) -> Any:
        """Scores in the units of the data, with what the spectrum leaves out."""
        return (scores + self.spectrum.left_out) * self.spectrum.unit

    def _path(self) -> ScorePath:
        if self.spectrum.top <= 0:
            return ScorePath(np.empty(0), np.empty(0))
        if self.values is None:
            return self._refined(GRID * self.spectrum.top)
        lams: Array = np.unique(self.values[self.values > 0])
        return ScorePath(lams, self.inside(lams))

    def _refined(self, grid: Array) -> ScorePath:
        scores = self.inside(grid)
        padded = np.concatenate([[np.inf], scores, [np.inf]])
        lowest = np.flatnonzero((scores < padded[:-2]) & (scores <= padded[2:])).tolist()  # a plateau counts once
        brackets = [(np.log(grid[max(j - 1, 0)]), np.log(grid[min(j + 1, len(grid) - 1)])) for j in lowest]
        found = np.exp(np.concatenate([self._minima(*bracket) for bracket in brackets]))
        lams, scores = np.append(grid, found), np.append(scores, self.inside(found) if len(found) else found)
        order = np.argsort(lams)
        return ScorePath(lams[order], scores[order])

    def _minima(self, low: float, high: float) -> Array:
        """Logarithms of λ at the minima in a bracket; none where the score falls all the way."""
        if self.analytic and self._in_one_piece(low, high):
            return _rising_zeros(self._slopes, low, high)
        if not self.analytic:
            found = minimize_scalar(
                lambda log_lam: self.inside(np.exp([log_lam]))[0],
                bounds=(low, high),
                method="bounded",
                options={"xatol": 1e-6},
            )
            return np.array([found.x])
        for _ in range(_ZOOMS):
            logs = np.linspace(low, high, len(GRID))
            best = logs[np.argmin(self.inside(np.exp(logs)))]
            low, high = max(low, best - logs[1] + logs[0]), min(high, best + logs[1] - logs[0])
        polished = _rising_zeros(self._slopes, best - _NEAR, best + _NEAR)
        return polished if len(polished) else np.array([best])

    def _in_one_piece(self, low: float, high: float) -> bool:
        pieces = self.pieces(np.exp(np.linspace(low, high, _PROBES)))
        return pieces is None or bool((pieces == pieces[0]).all())

    def _slopes(self, log_lams: Array) -> Array:
        """Derivatives by log λ, exact to rounding: the imaginary part of a step in the complex plane."""
        step = 1e-100
        return self.inside(np.exp(log_lams + 1j * step)).imag / step


def _rising_zeros(function: Callable[[Array], Array], low: float, high: float) -> Array:
    """Zeros in [low, high] at which an analytic function rises, from one batch of values at Chebyshev's nodes.

    The scores are analytic in log λ in a strip of half-width π, so the interpolation error on the bracket of a
    grid point is of the order of 1e-14.
    """
    # On [−1, 1] the interpolant at the nodes cos(θ_j) is Σ_k c_k T_k with c_k = (2/N) Σ_j f(cos θ_j) cos kθ_j, and half
    # of that for k = 0. Its zeros are the eigenvalues of the companion matrix.
    half = 0.5 * (high - low)
    coefficients = _TO_COEFFICIENTS @ function(low + half * (1.0 + _NODES))
    zeros = chebyshev.chebroots(coefficients)
    zeros = zeros[np.abs(zeros.imag) * half < 1e-9].real
    zeros = zeros[np.abs(zeros) <= 1.0]
    rising = chebyshev.chebval(zeros, chebyshev.chebder(coefficients)) > 0
    return low + half * (1.0 + zeros[rising])


def on_edges(share: Array) -> Array:
    """−1 at 0, 1 at 1, and 0 between them."""
    return 1.0 * (share >= 1.0) - 1.0 * (share <= 0.0)


class LooScore(SpectralScore):
    """Leave-one-out score of ``scale`` times the filtered mean; ``scale=None`` is the best scale for each λ."""

    def __init__(self, spectrum: Spectrum, leave_one_out: LeaveOneOut, scale: float | None = 1.0) -> None:
        super().__init__(spectrum)
        self.leave_one_out, self.scale = leave_one_out, scale
        self.values, self.analytic = leave_one_out.values, leave_one_out.analytic

    def inside(self, lams: Array) -> Array:
        return self._scored(self.leave_one_out.moments(lams))

    def pieces(self, lams: Array) -> Array | None:
        """The best scale is clipped, which breaks the curve."""
        return None if self.scale is not None else on_edges(self.leave_one_out.moments(lams).best_scale())

    def limits(self) -> tuple[float, float]:
        return float(self._scored(self._plain_moments())), self.spectrum.mean_diag

    def best_scale(self, lam: float) -> float:
        """The constant c in [0, 1] with the lowest score at λ, in the units of the data."""
        if np.isinf(lam):
            return 1.0
        inside = lam > 0
        means = self.leave_one_out.moments(np.array([lam / self.spectrum.unit])) if inside else self._plain_moments()
        return float(np.squeeze(means.best_scale()))

    def _plain_moments(self) -> LooMoments:
        return plain_loo_moments(self.spectrum.n, self.spectrum.mean_diag, self.spectrum.mean_gram)

    def _scored(self, means: LooMoments) -> Array:
        scale = means.best_scale() if self.scale is None else self.scale
        return means.scores(self.spectrum.mean_diag, scale)


class Theorem4Score(SpectralScore):
    """The paper's score of F-KMSE: O(n) for each λ, from the eigenvalues and â alone."""

    def inside(self, lams: Array) -> Array:
        # Theorem 4 is the mean over i of (Kβ − K_i)ᵀ C (Kβ − K_i) with C = M⁻¹KM⁻¹ and M = K − K(K + λI)⁻¹K/n. In the
        # basis of eigenvectors, with s = g/(g + λ) and a = Uᵀ1ₙ, M is g(1 − s/n), C is 1/(g(1 − s/n)²), Kβ is gsa and
        # K_i is gu_i. The mean of u_ik over i is a_k and that of u_ik² is 1/n: that of (sa − u_i)² is then
        # 1/n − a² + a²(1 − s)².
        n, g = self.spectrum.n, self.spectrum.eigenvalues[:, None]
        a2 = (self.spectrum.ones[:, None] / n) ** 2
        s = g / (g + lams)
        return (g * (1.0 / n - a2 + a2 * (1.0 - s) ** 2) / (1.0 - s / n) ** 2).sum(axis=0)
