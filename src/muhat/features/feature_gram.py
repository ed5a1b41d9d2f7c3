"""Kernel means from features alone: n, Zᵀ1 and ZᵀZ in place of the Gram matrix ZZᵀ."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from muhat._support.types import Array
from muhat.linalg.distances import power_of_two_near
from muhat.linalg.gram import above_rounding
from muhat.linalg.spectrum import Spectrum
from muhat.shrinkage.leave_one_out import LooMoments, TikhonovLoo, plain_loo_moments, times
from muhat.shrinkage.scores import Lam, LooScore, Scale, Theorem4Score, given_lam, given_scale


class FeatureLoo(TikhonovLoo):
    """Leave-one-out moments of F-KMSE from ZᵀZ, Zᵀ1 and some of the rows: O(rows·r) for each λ."""

    def moments(self, lams: Array) -> LooMoments:
        # The letters are those of TikhonovLoo.moments: R = λ(K + λI)⁻¹, W = R1, V = RK(1 − R1), H = R_ii, D1 = (KR)_ii,
        # D2 = (RKR)_ii and t = W/H. Only r of the n eigenvectors are known; on the others g = 0 and e = 1, so that W
        # and H gain what of 1 and of a row lies outside of the known ones.
        # Averages without t are sums over eigenvalues, known for all rows: mean of H = 1 − Σs/n, and so on. Averages
        # with t are split into t̄ times a known average and a correction by t − t̄, which is averaged over the rows at
        # hand. The correction is of the order 1/n, so that a sample of the rows is enough.
        sp, n = self.spectrum, self.spectrum.n
        g, ones = sp.eigenvalues[:, None], sp.ones[:, None]
        e, s = lams / (g + lams), g / (g + lams)
        W, V = np.split(times(sp.eigenvectors, np.hstack([e * ones, g * e * s * ones])), 2, axis=1)
        H, D1, D2 = np.split(times(sp.squared_eigenvectors, np.hstack([e, g * e, g * e**2])), 3, axis=1)
        W += 1.0 - sp.eigenvectors @ ones
        H += (1.0 - sp.squared_eigenvectors.sum(axis=1, keepdims=True)).clip(0)
        Kb_mean, V_mean, W_mean = ((f * ones**2).sum(axis=0) / n for f in (g * s, g * e * s, -s))
        H_mean, D1_mean, D2_mean = (f.sum(axis=0) / n for f in (-s, g * e, g * e**2))
        t, t_mean = W / H, (1.0 + W_mean) / (1.0 + H_mean)
        share = sp.counts / sp.counts.sum()
        tD1 = t_mean * D1_mean + share @ ((t - t_mean) * D1)
        tV = t_mean * V_mean + share @ ((t - t_mean) * V)
        ttD2 = t_mean**2 * D2_mean + share @ ((t**2 - t_mean**2) * D2)
        squared_norm = (g * (s * ones) ** 2).sum(axis=0)
        square = squared_norm + sp.mean_diag + ttD2 - 2 * Kb_mean + 2 * tV - 2 * tD1
        return LooMoments((Kb_mean - sp.mean_diag + tD1) / (n - 1), square / (n - 1) ** 2)


class MeanChoice(NamedTuple):
    """How a mean is shrunk: ``scale`` times F-KMSE with ``lam``, and its ``score``, None where it is unknown."""

    lam: float
    scale: float
    score: float | None


@dataclass(frozen=True, eq=False)
class FeatureSums:
    """What a mean needs of the rows: n, Zᵀ1, tr ZᵀZ and, for spectral shrinkage, ZᵀZ."""

    n: int
    total: Array
    squares: float
    moment: Array | None = None

    def plus(self, other: FeatureSums, sign: int = 1) -> FeatureSums:
        """The sums of both, or of the difference; without a row they are exactly 0."""
        n = self.n + sign * other.n
        if n == 0:
            return FeatureSums(0, 0.0 * self.total, 0.0, None if self.moment is None else 0.0 * self.moment)
        moment = None if self.moment is None or other.moment is None else self.moment + sign * other.moment
        return FeatureSums(n, self.total + sign * other.total, self.squares + sign * other.squares, moment)

    @cached_property
    def _eigen(self) -> tuple[float, Array, Array]:
        """Unit, eigenvalues in that unit and eigenvectors of ZᵀZ, those below rounding left out."""
        if self.moment is None:
            raise ValueError("lam needs the matrix ZᵀZ; make the sketch with second_moment=True, or use lam=0.0")
        unit = power_of_two_near(self.squares / self.n)
        g, V = eigh(self.moment / unit, driver="evd", check_finite=False)
        kept = above_rounding(g, len(g))
        return unit, g[kept], V[:, kept]

    def spectrum(self, Z: Array | None = None, counts: Array | None = None) -> Spectrum:
        """Spectrum of the Gram matrix of all rows, whose eigenvectors are known on the rows of Z."""
        unit, g, V = self._eigen
        root = V / np.sqrt(unit * g)
        U = np.empty((1, len(g))) if Z is None else Z @ root
        diagonal = self.squares / self.n / unit
        ones = root.T @ self.total
        return Spectrum(g, U, np.full(len(U), diagonal), unit, counts, n=float(self.n), ones=ones, mean_diag=diagonal)

    def choose(self, lam: Lam, scale: Scale, Z: Array | None = None, counts: Array | None = None) -> MeanChoice:
        """Find λ and the scale; leave-one-out is scored on the rows of Z."""
        value, c = given_lam(lam), given_scale(scale, lam)
        if self.n < 2 and (value is None or c is None):
            raise ValueError(
                f"lam={lam!r}, scale={scale!r}: a choice by the data needs 2 rows, not {self.n}; pass numbers"
            )
        if value == 0.0 or value == np.inf or self.squares == 0.0:
            return self._limit(value or 0.0, c)
        if lam == "theorem4":
            found = Theorem4Score(self.spectrum()).search()
            return MeanChoice(found.lam, 1.0, found.score)
        if Z is not None and self.n >= 2:
            return _by_leave_one_out(self.spectrum(Z, counts), value, c)
        if value is None or c is None:
            raise ValueError(
                'lam="loo" needs single rows; make the sketch with reservoir_size=1000, or use lam="theorem4"'
            )
        return MeanChoice(value, c, None)

    def _limit(self, lam: float, scale: float | None) -> MeanChoice:
        """The plain average, simple shrinkage or zero: no spectrum is needed."""
        mean_diag = self.squares / self.n
        if lam == np.inf or self.n < 2:
            return MeanChoice(lam, 1.0 if scale is None else scale, None if self.n < 2 else mean_diag)
        means = plain_loo_moments(self.n, mean_diag, float(self.total @ self.total) / self.n**2)
        scale = float(means.best_scale()) if scale is None else scale
        return MeanChoice(lam, scale, float(means.scores(mean_diag, scale)))

    def coefficients(self, choice: MeanChoice) -> Array:
        """The mean in features: w = c·ZᵀZ(ZᵀZ + λI)⁻¹ z̄."""
        mean = choice.scale * self.total / self.n
        if choice.lam == 0 or choice.lam == np.inf:
            return mean if choice.lam == 0 else 0.0 * mean
        unit, g, V = self._eigen
        return V @ (g / (g + choice.lam / unit) * (V.T @ mean))


def _by_leave_one_out(spectrum: Spectrum, lam: float | None, scale: float | None) -> MeanChoice:
    """λ and scale, where they are not given, by leave-one-out, and the score."""
    score = LooScore(spectrum, FeatureLoo(spectrum), scale)
    lam, best, _ = score.search() if lam is None else (lam, float(score.at(lam)[0]), None)
    return MeanChoice(lam, score.best_scale(lam) if scale is None else scale, best)


def check_sums(sums: FeatureSums) -> FeatureSums:
    """Return the sums, or raise a ValueError where they overflow."""
    if not np.isfinite(sums.squares * max(sums.n, 1)):
        raise ValueError("the features overflow on these rows; rescale them first")
    return sums
