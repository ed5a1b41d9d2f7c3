"""Common scale of statistics of different windows and kernels: minus the logarithm of their upper tail."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from muhat.types import Array

_KNOTS = 64
_LOWEST = float(np.log(2.0))  # the score of a median; what is below counts as a median
_SLOPE = 1.0  # over so much of the score the slope of the extrapolation is taken
_FEW = 16  # rows up to which all statistics are looked up together
_ROWS_BEYOND = 50  # statistics that must lie above a quantile for it to be known


@dataclass(frozen=True, eq=False)
class TailScale:
    r"""The score of a statistic s: :math:`-\log P(S \ge s)` under simulation, linear beyond the last known quantile.

    Parameters
    ----------
    quantiles : array of shape (c, knots)
        Of each of c statistics, at the scores in ``scores``.
    scores : array of shape (c, knots)
    slopes : array of shape (c, knots)
        Growth of the score from each knot to the next, and beyond the last one.
    handicaps : array of shape (c,)
        Subtracted from the scores.
    """

    quantiles: Array
    scores: Array
    slopes: Array
    handicaps: Array

    @classmethod
    def of(cls, statistics: Array, distinct: Array) -> TailScale:
        """The scale of simulated statistics, of shape (c, N), of which ``distinct`` many differ in each row.

        Statistics that are −inf do not exist, and keep the score −inf.
        """
        quantiles, scores, slopes = [], [], []
        for values, count in zip(statistics, distinct, strict=True):
            values = np.zeros(2) if values[0] == -np.inf else values
            top = max(float(np.log(min(len(values) / _ROWS_BEYOND, count))), _LOWEST + _SLOPE)
            knots = np.linspace(_LOWEST, top, _KNOTS)
            at = np.quantile(values, 1.0 - np.exp(-knots))
            below = np.flatnonzero(knots <= top - _SLOPE)[-1]
            # Where statistics take few values, the last quantiles may be equal, and the least excess over them would
            # be a huge score; continuous ones gain more than a tenth of their standard deviation per unit of the score.
            smallest = 0.1 * float(values.std()) + 1e-9 * (abs(at[-1]) + abs(at[0])) + 1e-300
            last = (top - knots[below]) / max(at[-1] - at[below], smallest)
            steps = np.diff(at)
            inner = np.divide(np.diff(knots), steps, out=np.zeros(len(steps)), where=steps > 0)
            slopes.append(np.append(inner, last))
            quantiles.append(at)
            scores.append(knots)
        return cls(np.array(quantiles), np.array(scores), np.array(slopes), np.zeros(len(slopes)))

    def __call__(self, statistics: Array, floor: float = -np.inf) -> tuple[Array, Any]:
        """The largest score of each set of c statistics, and whose it is.

        Parameters
        ----------
        statistics : array of shape (c, ...)
        floor : float
            Scores that cannot exceed this are not worth computing; they come out as −inf.

        Returns
        -------
        scores : array of shape (...)
        largest : array of int, of shape (...)
        """
        shape, c = statistics.shape[1:], len(statistics)
        flat = statistics.reshape(c, -1)
        if flat.shape[1] <= _FEW:
            places = (self.quantiles <= flat.T[..., None]).sum(axis=2) - 1
            scores = self._scored(flat.T, places, np.arange(c)).T
            largest = scores.argmax(axis=0)
            return scores[largest, np.arange(flat.shape[1])].reshape(shape), largest.reshape(shape)
        best, largest = np.full(flat.shape[1], -np.inf), np.zeros(flat.shape[1], np.int64)
        for j in range(c):
            reached = np.flatnonzero(flat[j] >= self._lowest(j, floor))
            values = flat[j, reached]
            scores = self._scored(values, np.searchsorted(self.quantiles[j], values, side="right") - 1, j)
            better = scores > best[reached]
            best[reached[better]], largest[reached[better]] = scores[better], j
        return best.reshape(shape), largest.reshape(shape)

    def _lowest(self, j: int, floor: float) -> float:
        """A quantile below which no statistic has a score above the floor."""
        least = floor + self.handicaps[j]
        if least <= self.scores[j, 0]:
            return -np.inf
        return float(self.quantiles[j, max(int(np.searchsorted(self.scores[j], least)) - 1, 0)])

    def _scored(self, values: Array, places: Any, j: Any) -> Array:
        """Scores of statistics j, whose last knots below are given; −inf where there is no window yet."""
        places = np.maximum(places, 0)
        first = self.quantiles[j, 0]
        gained = self.slopes[j, places] * (np.maximum(values, first) - self.quantiles[j, places])
        return np.where(values == -np.inf, -np.inf, self.scores[j, places] + gained - self.handicaps[j])
