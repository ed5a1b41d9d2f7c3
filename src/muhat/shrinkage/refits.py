r"""Leave-one-out refits: what a mean would be without each row, for every filter.

For the mean :math:`\mu^{(-i)}` estimated without row i, at the same λ, two averages hold everything that a
leave-one-out score needs: cross, the mean of :math:`\langle\phi(x_i), \mu^{(-i)}\rangle`, and square, the mean of
:math:`\|\mu^{(-i)}\|^2`. The score of c times the estimate is ϱ − 2c·cross + c²·square.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

import numpy as np
from scipy.linalg import eigh

from muhat.linalg.spectrum import Spectrum
from muhat.types import Array


class RefitMeans(NamedTuple):
    """Averages over the refits, an entry for each λ: all that the score of c times the estimate needs."""

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


class Refits(Protocol):
    """What a filter offers to the search: means at any λ; ``values`` are all that differ, None if a continuum."""

    @property
    def values(self) -> Array | None: ...

    @property
    def analytic(self) -> bool: ...

    def means(self, lams: Array) -> RefitMeans: ...


def plain_refit_means(n: float, mean_diag: float, mean_gram: float) -> RefitMeans:
    """The limit λ → 0, whatever the filter: refits of the plain average."""
    cross = (n * mean_gram - mean_diag) / (n - 1)
    square = ((n * n - 2 * n) * mean_gram + mean_diag) / (n - 1) ** 2
    return RefitMeans(np.array(cross), np.array(square))


def times(A: Array, C: Array) -> Array:
    """A @ C for a real A, also where C is complex, without a complex copy of A."""
    if not np.iscomplexobj(C):
        return A @ C
    return (A @ np.ascontiguousarray(C).view(np.float64)).view(C.dtype)


def tikhonov_factors(eigenvalues: Array, lam: float) -> Array:
    """h(g) = g / (g + λ): what Tikhonov's filter, the paper's F-KMSE, keeps of each eigen-direction."""
    return eigenvalues / (eigenvalues + lam)


@dataclass(frozen=True, eq=False)
class TikhonovRefits:
    """F-KMSE without row i from one eigendecomposition: O(n²) for each λ, duplicates and singular K included.

    Analytic in λ: ``means`` takes complex λ, whose imaginary part carries a derivative.
    """

    spectrum: Spectrum
    values: ClassVar[Array | None] = None
    analytic: ClassVar[bool] = True

    def means(self, lams: Array) -> RefitMeans:
        sp = self.spectrum
        n, counts = sp.n, sp.counts[:, None]
        g, ones = sp.eigenvalues[:, None], sp.ones[:, None]
        e = lams / (g + lams)
        s = g / (g + lams)
        first = e if sp.complete else -s  # eigenvalues 0 that are left out have e = 1: there 1 − s must serve
        linear = times(sp.eigenvectors, np.hstack([first * ones, g * s * ones, g * e * s * ones]))
        quadratic = times(sp.squared_eigenvectors, np.hstack([first, g * e, g * e**2]))
        W, Kb, V = np.split(linear / np.sqrt(counts), 3, axis=1)
        H, D1, D2 = np.split(quadratic / counts, 3, axis=1)
        t = W / (H + (counts - 1) / counts) if sp.complete else (1 + W) / (1 + H)
        diagonal = sp.diagonal[:, None]
        cross = counts * (Kb - diagonal + t * D1)
        square = counts * (diagonal + t**2 * D2 - 2 * Kb + 2 * t * V - 2 * t * D1)
        squared_norm = (g * (s * ones) ** 2).sum(axis=0)
        return RefitMeans(
            cross.sum(axis=0) / (n * (n - 1)),
            (squared_norm + square.sum(axis=0) / n) / (n - 1) ** 2,
        )


def _leave_one_out_uniform(n: int) -> Array:
    """Column i holds the plain weights without row i: 1/(n−1), and 0 at i."""
    uniform = np.full((n, n), 1.0 / (n - 1))
    np.fill_diagonal(uniform, 0.0)
    return uniform


def _means_of_weights(K: Array, B: Array) -> tuple[float, float]:
    KB = K @ B
    return float(np.trace(KB) / len(K)), float(np.vdot(B, KB) / len(K))


class DowndatedRefits:
    """Iterated Tikhonov: (K₋ᵢ + λI)⁻¹ is a rank-one change of (K + λI)⁻¹, for all i at once."""

    values: Array | None = None
    analytic = False

    def __init__(self, spectrum: Spectrum, n_iter: int) -> None:
        self.spectrum, self.K, self.n_iter = spectrum, spectrum.gram(), n_iter

    def means(self, lams: Array) -> RefitMeans:
        pairs = [_means_of_weights(self.K, self._weights(lam)) for lam in np.atleast_1d(lams)]
        return RefitMeans(*np.array(pairs).T)

    def _weights(self, lam: float) -> Array:
        U = self.spectrum.eigenvectors
        A = (U * (lam / (self.spectrum.eigenvalues + lam))) @ U.T
        uniform = _leave_one_out_uniform(len(A))
        residual = uniform
        for _ in range(self.n_iter):
            residual = A @ residual
            residual -= A * (np.diag(residual) / np.diag(A))
            np.fill_diagonal(residual, 0.0)
        return uniform - residual


class SteppedRefits:
    """Truncated SVD: both means are step functions of λ, known at every step after n eigendecompositions."""

    analytic = False

    def __init__(self, K: Array) -> None:
        n = len(K)
        steps, cross, square = np.empty((3, n, n - 1))
        for i in range(n):
            others = np.delete(np.arange(n), i)
            g, U = eigh(K[np.ix_(others, others)], driver="evd", overwrite_a=True, check_finite=False)
            a = U.sum(axis=0) / (n - 1)
            steps[i], cross[i], square[i] = g, a * (K[i, others] @ U), g.clip(0) * a**2
        order = np.argsort(-steps, axis=None)
        self.values: Array | None = steps.ravel()[order]
        self._ascending = -self.values
        self._cross = np.append(0.0, np.cumsum(cross.ravel()[order]) / n)
        self._square = np.append(0.0, np.cumsum(square.ravel()[order]) / n)

    def means(self, lams: Array) -> RefitMeans:
        kept = np.searchsorted(self._ascending, -np.atleast_1d(lams), side="right")
        return RefitMeans(self._cross[kept], self._square[kept])


def landweber_steps() -> Iterator[tuple[float, float]]:
    """Momentum and step length of plain gradient descent."""
    while True:
        yield 0.0, 1.0


def nu_steps(nu: float) -> Iterator[tuple[float, float]]:
    """Momentum and step length of the ν-method."""
    yield 0.0, (4 * nu + 2) / (4 * nu + 1)
    t = 2
    while True:
        divisor = (t + 2 * nu - 1) * (2 * t + 4 * nu - 1)
        momentum = (t - 1) * (2 * t - 3) * (2 * t + 2 * nu - 1) / (divisor * (2 * t + 2 * nu - 3))
        yield momentum, 4 * (2 * t + 2 * nu - 1) * (t + nu - 1) / divisor
        t += 1


class IterativeRefits:
    """Iterative filters: all refits as the columns of one matrix, one matrix product a step.

    After t steps λ is g_max / t^power.
    """

    analytic = False

    def __init__(self, spectrum: Spectrum, steps: Iterator[tuple[float, float]], max_iter: int, power: int) -> None:
        self._top, self._power = spectrum.top, power
        K = spectrum.gram()
        path = [(0.0, 0.0)]
        uniform = _leave_one_out_uniform(len(K))
        target = K @ uniform
        B, before, KB = np.zeros_like(K), np.zeros_like(K), np.zeros_like(K)
        for _, (momentum, length) in zip(range(max_iter if self._top > 0 else 0), steps, strict=False):
            ascent = length / self._top * (target - KB)
            np.fill_diagonal(ascent, 0.0)
            B, before = B + momentum * (B - before) + ascent, B
            KB = K @ B
            path.append((float(np.trace(KB) / len(K)), float(np.vdot(B, KB) / len(K))))
        self._path = np.array(path)
        self.values: Array | None = self._top / np.arange(1.0, len(path)) ** power

    def means(self, lams: Array) -> RefitMeans:
        steps = (self._top / np.atleast_1d(lams)) ** (1.0 / self._power)
        return RefitMeans(*self._path[np.rint(steps).astype(int)].T)
