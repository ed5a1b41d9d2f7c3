"""The fitted family that conditional means are shrunk toward: location and scale by ridge regression on x."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from muhat._support.types import Array
from muhat.conditional.centred_ridge import RIDGES, TIE, CentredRidge, NewRows, last_lowest
from muhat.kernels.base import Kernel
from muhat.linalg.blocks import blocks, lexicographic_order
from muhat.tables.scales import ColumnScales

ATOMS = 40
"""Quantiles of the residuals that stand for their distribution; as many residuals where y has several columns."""

FLOOR = 0.05
"""Squared residuals are raised by this share of their median before the logarithm, as that of 0 says nothing."""

CLIP = (0.05, 0.95)
"""Log-scales are kept between these quantiles of the log-residuals, from which they were fitted."""

_BLOCK = 2**21
"""Values of a kernel between atoms and rows that are in memory at a time: 16 MB."""


class Fitted(NamedTuple):
    """One column that a regression predicts."""

    ridge: CentredRidge
    lam: float  # in its units
    values: Array  # what it was fitted to

    def left_out(self) -> Array:
        """Errors of the fits without each row."""
        return self.ridge.left_out(self.values[:, None], np.array([self.lam]))[:, 0]

    def predicted(self, new: Mapping[CentredRidge, NewRows]) -> Array:
        """Predictions at new rows, from the kernel values of every regression that is used."""
        return self.ridge.predicted(new[self.ridge].values, self.values[:, None], np.array([self.lam]))[:, 0]


class LocationScale(NamedTuple):
    r"""The family :math:`y = m(x) + v(x)\, s(x)\, r`, with r one of the ``shape`` vectors.

    m is the posterior mean and v the posterior standard deviation of a Gaussian process, whose kernel and noise have
    the largest restricted likelihood: v grows where rows are far off. log s is a ridge regression on the logarithms of
    the left-out residuals over v, by leave-one-out. The residuals over the left-out v and s are the shape: where a
    normal distribution would do, they are close to one, and heavy tails stay heavy.
    """

    locations: tuple[Fitted, ...]
    scales: tuple[Fitted, ...]
    limits: Array  # (2, q), of log-scales
    shape: Array  # (atoms, q)
    centres: Array  # (n, q), m without each row
    spreads: Array  # (n, q), v·s without each row

    def left_out_atoms(self, rows: slice) -> Array:
        """Atoms (b, atoms, q) of the family at some of the rows, fitted without each."""
        return self.centres[rows, None, :] + self.spreads[rows, None, :] * self.shape

    def atoms(self, new: Mapping[CentredRidge, NewRows]) -> Array:
        """Atoms (m, atoms, q) at new rows, all of equal weight."""
        centres = np.column_stack([fitted.predicted(new) for fitted in self.locations])
        logs = np.column_stack([fitted.predicted(new) for fitted in self.scales])
        known = np.column_stack([ridge.variances(new[ridge], lam) for ridge, lam, _ in self.locations])
        return centres[:, None, :] + (np.sqrt(known) * np.exp(logs.clip(*self.limits)))[:, None, :] * self.shape


def fit_location_scale(ridges: Sequence[CentredRidge], Y: Array) -> LocationScale:
    """Fit the family to standardised columns of Y; each regression is the best of the candidates."""
    locations = tuple(_lowest(ridges, y, [ridge.evidences(y) for ridge in ridges], TIE * len(y)) for y in Y.T)
    errors = np.column_stack([fitted.left_out() for fitted in locations])
    known = np.sqrt(np.column_stack([ridge.left_out_variances(lam) for ridge, lam, _ in locations]))
    logs = np.column_stack([_log_sizes(e) for e in (errors / known).T])
    scales = tuple(_lowest(ridges, log, [ridge.losses(log[:, None])[:, 0] for ridge in ridges]) for log in logs.T)
    limits = np.quantile(logs, CLIP, axis=0)
    left_out = logs - np.column_stack([fitted.left_out() for fitted in scales])
    spreads = known * np.exp(left_out.clip(*limits))
    return LocationScale(locations, scales, limits, _shape(errors / spreads), Y - errors, spreads)


def _lowest(ridges: Sequence[CentredRidge], y: Array, scores: Sequence[Array], tie: float | None = None) -> Fitted:
    """The regression of y with the lowest of the scores, which has an array over ``RIDGES`` for each candidate."""
    table = np.array(scores)
    tie = TIE * float(table.min()) if tie is None else tie
    number = int(last_lowest(table.min(axis=1), tie))
    return Fitted(ridges[number], float(RIDGES[last_lowest(table[number], tie)]), y)


def _log_sizes(errors: Array) -> Array:
    """Logarithms of the sizes of residuals, those near 0 raised; 0 for all where all are 0."""
    squares = np.square(errors)
    typical = max(float(np.median(squares)), 1e-6 * float(squares.mean()))
    return np.asarray(0.5 * np.log(squares + FLOOR * typical)) if typical > 0 else np.zeros(len(errors))


def _shape(residuals: Array) -> Array:
    """Quantiles of the residuals of one column; of several columns some residuals, or all where they are few."""
    if residuals.shape[1] == 1:
        # Weibull's places k/(n + 1) are those that a further residual has on average, so that tails are not too short.
        return np.quantile(residuals, (np.arange(ATOMS) + 0.5) / ATOMS, axis=0, method="weibull")
    some = np.unique(np.linspace(0, len(residuals) - 1, ATOMS).round().astype(int))
    return residuals[lexicographic_order(residuals)[some]]


class TargetMoments(NamedTuple):
    """Inner products of left-out targets in a space of functions of y."""

    at_rows: Array
    """Entry (i, j): the target without row i, as a function, at row j."""
    squares: Array
    """Squared norms of the targets."""


def target_moments(target: LocationScale, kernel: Kernel, Y: Array, units: ColumnScales) -> TargetMoments:
    """Those of the left-out targets under a kernel on y, which sees rows in their own units."""
    n, atoms = len(Y), len(target.shape)
    at_rows, squares = np.empty((n, n)), np.empty(n)
    for rows in blocks(n, max(_BLOCK // (n * atoms), 1)):
        placed = units.restore(target.left_out_atoms(rows))
        values = kernel.evaluate(placed.reshape(-1, Y.shape[1]), Y)
        at_rows[rows] = values.reshape(len(placed), atoms, n).mean(axis=1)
        squares[rows] = [kernel.evaluate(each, each).mean() for each in placed]
    return TargetMoments(at_rows, squares)
