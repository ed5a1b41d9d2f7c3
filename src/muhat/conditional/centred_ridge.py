"""Centred ridge regression in a kernel on x, for numbers and for kernel features of y, with exact leave-one-out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from muhat._support.types import Array
from muhat.kernels.base import Kernel
from muhat.linalg.centered_gram import center_gram

RIDGES = np.append(np.logspace(-4, 2, 19), np.inf)
"""The λ that are tried, in units of tr(K^c)/n. Minima are flat: between neighbours, of ratio 2.15, little is lost.
Smaller λ would fit rows exactly, and rounding would be seen in the predictions."""

STEP = float(np.log(RIDGES[1] / RIDGES[0]))

GROWTHS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""The γ that are tried: λ grows as the power −γ of the variance of an output direction."""

DIRECTIONS = 60
"""Output directions that are fitted; what lies in the others stays at its average over all rows."""

TIE = 1e-9
"""Scores this close, relative to their size, are ties, which the larger λ wins: rounding cannot change the choice."""

_SMALLEST_PIVOT = 1e-9
"""1 − H_ii is at least this: below, a row is fitted exactly, and nothing can be said of the fit without it."""


def last_lowest(scores: Array, tie: Array | float) -> NDArray[np.intp]:
    """The last index along the first axis whose score is within ``tie`` of the lowest."""
    near = scores <= scores.min(axis=0) + tie
    return np.asarray(len(scores) - 1 - np.argmax(near[::-1], axis=0))


class NewRows(NamedTuple):
    """Kernel values of m new rows with n rows of a fit, and with themselves."""

    values: Array  # (m, n)
    squares: Array  # (m,)


class CentredRidge:
    r"""Ridge regression with a free intercept on a Gram matrix K, for any number of outputs.

    With C = I − 11ᵀ/n and :math:`K^c = CKC`, the fit at the rows is Hz, where
    :math:`H = 11^\top/n + K^c (K^c + \lambda I)^{-1}` has rows that sum to one. The fit without row i misses it by
    exactly :math:`(z_i - (Hz)_i) / (1 - H_{ii})`. ``kernel`` is that of K, if there is one.
    """

    def __init__(self, K: Array, kernel: Kernel | None = None) -> None:
        n, self.kernel = len(K), kernel
        self.row_means, self.square = K.mean(axis=0), float(np.diagonal(K).mean())
        eigenvalues, eigenvectors = eigh(center_gram(K.copy()), driver="evd", overwrite_a=True, check_finite=False)
        kept = eigenvalues > n * np.finfo(np.float64).eps * float(np.abs(K).max(initial=0.0))
        self.eigenvalues, self.eigenvectors = eigenvalues[kept], np.ascontiguousarray(eigenvectors[:, kept])
        self.unit = float(self.eigenvalues.sum() / n) or 1.0

    def shares(self, ridges: Array) -> Array:
        """The share g/(g + λ) that is left of each eigen-direction, of shape (r, len(ridges))."""
        return self.eigenvalues[:, None] / (self.eigenvalues[:, None] + ridges * self.unit)

    def _pivots(self, ridges: Array) -> Array:
        """1 − H_ii, for every ridge."""
        left = 1.0 - 1.0 / len(self.row_means) - self.eigenvectors**2 @ self.shares(ridges)
        return np.asarray(np.maximum(left, _SMALLEST_PIVOT))

    def left_out(self, Z: Array, ridges: Array) -> Array:
        """By how much the fit without a row misses it, for every row of Z and every column, each with its own ridge."""
        fitted = self.eigenvectors @ (self.shares(ridges) * (self.eigenvectors.T @ Z))
        return (Z - Z.mean(axis=0) - fitted) / self._pivots(ridges)

    def left_out_variances(self, ridge: float) -> Array:
        """Variances of the rows, each given the others, in a Gaussian process with noise of variance 1."""
        return np.asarray(1.0 / self._pivots(np.array([ridge]))[:, 0])

    def _scores(self, values: Array) -> Array:
        """New rows along the eigenvectors of K^c."""
        # Centred values at new rows are k(x, x_j) less their mean over j, less the row means of K, up to a constant
        # that the eigenvectors, which sum to zero, do not see.
        centred = values - values.mean(axis=1, keepdims=True) - (self.row_means - self.row_means.mean())
        return np.asarray(centred @ self.eigenvectors)

    def predicted(self, values: Array, Z: Array, ridges: Array) -> Array:
        """The fit at new rows with the kernel values k(new, rows), of shape (m, n)."""
        factors = (self.eigenvectors.T @ Z) / (self.eigenvalues[:, None] + ridges * self.unit)
        return Z.mean(axis=0) + self._scores(values) @ factors

    def variances(self, new: NewRows, ridge: float) -> Array:
        """Variances of new rows given the rows, in a Gaussian process with noise of variance 1."""
        n, lam = len(self.row_means), ridge * self.unit
        if np.isinf(lam):
            return np.full(len(new.values), 1.0 + 1.0 / n)
        before = new.squares - 2.0 * new.values.mean(axis=1) + self.row_means.mean()
        told = (np.square(self._scores(new.values)) / (self.eigenvalues + lam)).sum(axis=1)
        return np.asarray(1.0 + 1.0 / n + np.maximum(before - told, 0.0) / lam)

    def losses(self, Z: Array) -> Array:
        """Sums over the rows of squared left-out errors, for all of ``RIDGES`` and columns."""
        return np.array([np.square(self.left_out(Z, np.full(Z.shape[1], ridge))).sum(axis=0) for ridge in RIDGES])

    def evidences(self, z: Array) -> Array:
        """Twice the negative restricted log-likelihood of z as a Gaussian process with noise, for all of ``RIDGES``."""
        # Contrasts of z have the covariance σ²(K^c + λI); σ² is profiled out. At λ = ∞ this tends to white noise.
        n, z = len(z) - 1, z - z.mean()
        squares, total = (self.eigenvectors.T @ z) ** 2, float(z @ z)
        if total == 0:
            return np.zeros(len(RIDGES))
        outside, found = max(total - float(squares.sum()), 0.0), []
        for lam in RIDGES[:-1] * self.unit:
            variance = float((squares / (self.eigenvalues + lam)).sum()) + outside / lam
            logs = float(np.log(self.eigenvalues + lam).sum()) + (n - len(self.eigenvalues)) * np.log(lam)
            found.append(n * np.log(variance / n) + logs)
        return np.array([*found, n * np.log(total / n)])


class Directions(NamedTuple):
    """Centred features of y in the basis of their principal directions, and what lies beside these.

    Row j has the coordinates ``coordinates[j]``, and ``weights[k]`` are the weights on the rows of direction k. The
    signs of directions do not matter, and equal variances are never cut apart, so that any basis does as well.
    """

    coordinates: Array  # (n, D)
    weights: Array  # (D, n)
    beside: Array  # (n,), squared lengths

    @property
    def variances(self) -> Array:
        """Sums of squares of the coordinates."""
        return np.square(self.coordinates).sum(axis=0)


def output_directions(L: Array) -> Directions:
    """The principal directions of the rows of y, from their Gram matrix."""
    centred = center_gram(L.copy())
    own = np.diagonal(centred).copy()
    variances, vectors = eigh(centred, driver="evd", overwrite_a=True, check_finite=False)
    variances, vectors = variances[::-1], vectors[:, ::-1]
    count = int((variances > 1e-10 * max(float(variances[0]), len(L) * 1e-12 * float(np.abs(L).max()))).sum())
    if count > DIRECTIONS:
        count = int((variances[:count] > variances[DIRECTIONS - 1] * (1.0 - 1e-8)).sum())
    roots = np.sqrt(variances[:count])
    coordinates = vectors[:, :count] * roots
    beside = (own - np.square(coordinates).sum(axis=1)).clip(0.0)
    return Directions(coordinates, (vectors[:, :count] / roots).T, beside)


@dataclass(frozen=True, eq=False)
class FittedEmbedding:
    """The mean of features of y given x: a ridge regression on x, with a ridge for each output direction."""

    ridge: CentredRidge
    ridges: Array
    directions: Directions
    score: float
    """Mean squared distance of a row from the mean that is fitted without it."""

    @property
    def lams(self) -> Array:
        """λ in the units of the Gram matrix, one per output direction."""
        return self.ridges * self.ridge.unit

    def weights(self, values: Array) -> Array:
        """Weights on the rows, at new rows with these kernel values; they sum to one."""
        Z, back, _ = self.directions
        return 1.0 / len(Z) + self.ridge.predicted(values, Z, self.ridges) @ back

    def left_out_weights(self) -> Array:
        """Row i: weights of the mean at x_i that is fitted without row i."""
        Z, back, _ = self.directions
        n = len(Z)
        fitted = 1.0 / n + (Z - self.ridge.left_out(Z, self.ridges)) @ back
        # Beside the directions the mean is the average of the others: −1/(n − 1) times what row i has there.
        beside = np.eye(n) - 1.0 / n - Z @ back
        return fitted - beside / (n - 1)


def fit_embedding(ridges: Sequence[CentredRidge], L: Array) -> FittedEmbedding:
    r"""Choose the regression, and λ for each output direction, by the leave-one-out loss in the space of y.

    Direction k of variance :math:`v_k` has :math:`\lambda_k = \lambda (v_1/v_k)^\gamma`: directions of little variance
    are noisier. λ and γ are common to all: a λ chosen for each direction alone fits noise, and on mixtures of Gaussians
    had a larger loss than one λ for all.

    The candidates ``ridges`` have different bandwidths; L is the Gram matrix of the rows of y.
    """
    directions = output_directions(L)
    Z, n = directions.coordinates, len(L)
    variances = directions.variances
    steps = np.log(variances.max(initial=0.0) / variances) / STEP
    ladder = np.arange(len(RIDGES))[:, None]
    columns = np.arange(Z.shape[1])
    best: tuple[float, CentredRidge, Array] | None = None
    for ridge in ridges:
        losses = ridge.losses(Z)
        for growth in GROWTHS:
            places = np.minimum(ladder + np.rint(growth * steps).astype(int), len(RIDGES) - 1)
            totals = losses[places, columns].sum(axis=1)
            lowest = int(last_lowest(totals, TIE * float(totals.min())))
            if best is None or totals[lowest] < best[0] * (1.0 - TIE):
                best = float(totals[lowest]), ridge, RIDGES[places[lowest]]
    assert best is not None, "there is a candidate"
    total, ridge, chosen = best
    score = (total + float(directions.beside.sum()) * (n / (n - 1.0)) ** 2) / n
    return FittedEmbedding(ridge, chosen, directions, score)
