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
        """The scale of simulated statistics, of shape (N, c), of which ``distinct`` many differ in each column."""
        quantiles, scores, slopes = [], [], []
        for values, count in zip(statistics.T, distinct, strict=True):
            top = max(float(np.log(min(len(values) / _ROWS_BEYOND, count))), _LOWEST + _SLOPE)
            knots = np.linspace(_LOWEST, top, _KNOTS)
            at = np.quantile(values, 1.0 - np.exp(-knots))
            below = np.flatnonzero(knots <= top - _SLOPE)[-1]
            smallest = 1e-9 * (abs(at[-1]) + abs(at[0])) + 1e-300  # where the last quantiles are equal
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
        statistics : array of shape (..., c)
        floor : float
            Scores that cannot exceed this are not worth computing; they come out as −inf.

        Returns
        -------
        scores : array of shape (...)
        largest : array of int, of shape (...)
        """
        shape, c = statistics.shape[:-1], statistics.shape[-1]
        flat = statistics.reshape(-1, c)
        if len(flat) <= _FEW:
            places = (self.quantiles <= flat[..., None]).sum(axis=2) - 1
            scores = self._scored(flat, places, np.arange(c))
        else:
            scores = np.stack([self._column(flat[:, j], j, floor) for j in range(c)], axis=1)
        largest = scores.argmax(axis=1)
        return scores[np.arange(len(flat)), largest].reshape(shape), largest.reshape(shape)

    def _column(self, values: Array, j: int, floor: float) -> Array:
        """Scores of one statistic."""
        knots, least = self.quantiles[j], floor + self.handicaps[j]
        low = -np.inf
        if least > self.scores[j, 0]:
            low = knots[max(int(np.searchsorted(self.scores[j], least)) - 1, 0)]
        scores = np.full(len(values), -np.inf)
        reached = values >= low
        chosen = values[reached]
        scores[reached] = self._scored(chosen, np.searchsorted(knots, chosen, side="right") - 1, j)
        return scores

    def _scored(self, values: Array, places: Any, j: Any) -> Array:
        """Scores of statistics j, whose last knots below are given; −inf where there is no window yet."""
        places = np.maximum(places, 0)
        first = self.quantiles[j, 0]
        gained = self.slopes[j, places] * (np.maximum(values, first) - self.quantiles[j, places])
        return np.where(values == -np.inf, -np.inf, self.scores[j, places] + gained - self.handicaps[j])
