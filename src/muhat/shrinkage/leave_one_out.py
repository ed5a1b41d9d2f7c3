r"""Leave-one-out cross-validation of filtered means, by true deletion: row i leaves the data and the span.

It is equation 7 of the paper. For the mean :math:`\mu^{(-i)}` estimated without row i, at the same λ, two averages hold
everything that the score needs: cross, the mean of :math:`\langle\phi(x_i), \mu^{(-i)}\rangle`, and square, the mean
of :math:`\|\mu^{(-i)}\|^2`. The score of c times the estimate is ϱ − 2c·cross + c²·square.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

import numpy as np
from scipy.linalg import eigh

from muhat._support.types import Array
from muhat.linalg.spectrum import Spectrum


class LooMoments(NamedTuple):
    """Averages over the means without a row, one entry per λ: all that the score of c times the estimate needs."""

    cross: Array
    square: Array

    def best_scale(self) -> Array:
        """The constant c in [0, 1] with the lowest score."""
        cross, square = self.cross.real, self.square.real
        ratio = np.divide(cross, square, out=np.ones_like(cross), where=square > 0)
        return np.clip(ratio, 0.0, 1.0)

    def scores(self, mean_diag: float, scale: Array | float) -> Array:
        """Leave-one-out scores of ``scale`` times the estimate."""
        return mean_diag - 2.0 * scale * self.cross + scale**2 * self.square


class LeaveOneOut(Protocol):
    """Leave-one-out moments at any λ; ``values`` are all λ that differ, None if they are a continuum."""

    @property
    def values(self) -> Array | None: ...

    @property
    def analytic(self) -> bool: ...

    def moments(self, lams: Array) -> LooMoments: ...


def plain_loo_moments(n: float, mean_diag: float, mean_gram: float) -> LooMoments:
    """Moments of the plain average, the limit λ → 0 of every filter."""
    cross = (n * mean_gram - mean_diag) / (n - 1)
    square = ((n * n - 2 * n) * mean_gram + mean_diag) / (n - 1) ** 2
    return LooMoments(np.array(cross), np.array(square))


def times(A: Array, C: Array) -> Array:
    """A @ C for a real A, also where C is complex, without a complex copy of A."""
    if not np.iscomplexobj(C):
        return A @ C
    return (A @ np.ascontiguousarray(C).view(np.float64)).view(C.dtype)


def tikhonov_factors(eigenvalues: Array, lam: float) -> Array:
    """Shrink factors h(g) = g / (g + λ) of Tikhonov's filter, the paper's F-KMSE (Theorem 2)."""
    return eigenvalues / (eigenvalues + lam)


@dataclass(frozen=True, eq=False)
class TikhonovLoo:
    """F-KMSE without row i from one eigendecomposition: O(n²) for each λ, duplicates and singular K included.

    Analytic in λ: ``moments`` takes complex λ, whose imaginary part carries a derivative.
    """

    spectrum: Spectrum
    values: ClassVar[Array | None] = None
    analytic: ClassVar[bool] = True

    def moments(self, lams: Array) -> LooMoments:
        # Without row i the weights solve (K₋ᵢ + λI) b = K₋ᵢ 1/(n−1). With R = λ(K + λI)⁻¹ = U e Uᵀ, e = λ/(g + λ),
        # deleting row i is a rank-one change of R with the pivot R_ii (Schur complement):
        #     (n−1) b_j = 1 − (R1)_j + t_i R_ij,   t_i = (R1)_i / R_ii,   which vanishes at j = i.
        # So the element is (n−1) μ₋ᵢ = nμ̂_λ − φ(x_i) + t_i Σ_j R_ij φ(x_j), where nμ̂_λ = Σ_j (1 − (R1)_j) φ(x_j),
        # and its value at row i and its squared norm need, besides K_ii, only these products per row:
        #     W = R1,  Kb = K(1 − R1),  V = (RK(1 − R1)),  H = R_ii,  D1 = (KR)_ii,  D2 = (RKR)_ii.
        # A row that counts c times loses one copy: the pivot is then R_ii/c + (c−1)/c.
        sp = self.spectrum
        n, m = sp.n, len(lams)
        g, ones, diagonal = sp.eigenvalues[:, None], sp.ones[:, None], sp.diagonal[:, None]
        e, s = lams / (g + lams), g / (g + lams)
        first = e if sp.complete else -s  # eigenvalues 0 that are left out have e = 1: there 1 − s must serve
        kept, cut = g * s * ones, g * e
        linear = times(sp.eigenvectors, np.concatenate([first * ones, kept, e * kept], axis=1))
        quadratic = times(sp.squared_eigenvectors, np.concatenate([first, cut, e * cut], axis=1))
        if sp.weighted:
            counts = sp.counts[:, None]
            linear, quadratic = linear / np.sqrt(counts), quadratic / counts
        W, Kb, V = linear[:, :m], linear[:, m : 2 * m], linear[:, 2 * m :]
        H, D1, D2 = quadratic[:, :m], quadratic[:, m : 2 * m], quadratic[:, 2 * m :]
        if sp.weighted and sp.complete:
            H = H + (counts - 1) / counts
        t = W / H if sp.complete else (1 + W) / (1 + H)
        cross = Kb - diagonal + t * D1
        square = diagonal - 2 * Kb + t * (t * D2 + 2 * (V - D1))
        if sp.weighted:
            cross, square = counts * cross, counts * square
        squared_norm = (ones * s * kept).sum(axis=0)
        return LooMoments(
            cross.sum(axis=0) / (n * (n - 1)),
            (squared_norm + square.sum(axis=0) / n) / (n - 1) ** 2,
        )


@dataclass(frozen=True, eq=False)
class SampledLoo(TikhonovLoo):
    """F-KMSE without row i from sums of features and some of the rows: O(rows·r) for each λ."""

    def __post_init__(self) -> None:
        if not len(self.spectrum.eigenvectors):
            raise ValueError(
                'lam="loo" needs single rows; make the sketch with reservoir_size=1000, or use lam="theorem4"'
            )

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


class FilteredLoo:
    r"""Leave-one-out moments of any filter, from the eigendecompositions of the n matrices without a row: O(n⁴).

    Without row i the mean is :math:`\sum_k h(g_k) a_k v_k`, with :math:`a = U^\top 1/(n-1)` and the eigenpairs of
    :math:`K_{-i}`. Its value at row i is :math:`\sum_k h(g_k)\,a_k\,(k_i^\top U)_k` and its squared norm
    :math:`\sum_k h(g_k)^2 g_k a_k^2`, so that three numbers per eigenpair serve every λ.

    The ``spectrum`` is that of the whole matrix: its largest eigenvalue gives an iterative filter its step length
    without a row too, and ``steps`` are the λ that differ for it, relative to that eigenvalue. A filter that jumps at
    the eigenvalues and is constant between them is ``stepped``.
    """

    analytic = False

    def __init__(
        self,
        filter: Callable[[Array, float], Array],
        spectrum: Spectrum,
        steps: Array | None = None,
        stepped: bool = False,
    ) -> None:
        K, self.filter, self.top, self.unit = spectrum.gram(), filter, spectrum.top, spectrum.unit
        n = len(K)
        self.eigenvalues, self.at_row, self.squares = np.empty((3, n, n - 1))
        for i in range(n):
            others = np.delete(np.arange(n), i)
            g, U = eigh(K[np.ix_(others, others)], driver="evd", overwrite_a=True, check_finite=False)
            a = U.sum(axis=0) / (n - 1)
            self.eigenvalues[i], self.at_row[i], self.squares[i] = g, a * (K[i, others] @ U), g.clip(0) * a**2
        self.stepped, self.values = stepped, None if steps is None else self.top * steps
        if stepped:  # h is 1 from λ on: sums over the largest eigenvalues, of all matrices together
            order = np.argsort(-self.eigenvalues, axis=None)
            self.values = self.eigenvalues.ravel()[order]
            sums = (np.cumsum(part.ravel()[order]) / n for part in (self.at_row, self.squares))
            self._cross, self._square = (np.append(0.0, part) for part in sums)

    values: Array | None

    def moments(self, lams: Array) -> LooMoments:
        """Both averages at each λ, in the units of the spectrum."""
        if self.stepped and self.values is not None:
            kept = np.searchsorted(-self.values, -np.atleast_1d(lams), side="right")
            return LooMoments(self._cross[kept], self._square[kept])
        pairs = []
        for lam in np.atleast_1d(lams).tolist():
            # Eigenvalues interlace: that of the whole matrix is the largest, and comes last as a filter expects.
            h = self.filter(np.append(self.eigenvalues, self.top).clip(0) * self.unit, lam * self.unit)[:-1]
            h = h.reshape(self.eigenvalues.shape)
            pairs.append(((h * self.at_row).sum() / len(h), (h**2 * self.squares).sum() / len(h)))
        return LooMoments(*np.array(pairs).T)
