"""Statistics of different windows and kernels on one scale: minus the logarithm of their upper tail."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from muhat.types import Array

_KNOTS = 64
_LOWEST = float(np.log(2.0))  # the score of a median; what is below counts as a median
_SLOPE = 1.0  # over so much of the score the slope of the extrapolation is taken
_ROWS_BEYOND = 50  # statistics that must lie above a quantile for it to be known


@dataclass(frozen=True, eq=False)
class TailScale:
    r"""The score of a statistic s: :math:`-\log P(S \ge s)` under simulation, linear beyond the last known quantile.

    Parameters
    ----------
    quantiles : array of shape (c, knots)
        Of each of c statistics, at the scores in ``scores``.
    scores : array of shape (c, knots)
    slopes : array of shape (c,)
        Growth of the score beyond the last knot.
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
            slopes.append((top - knots[below]) / max(at[-1] - at[below], smallest))
            quantiles.append(at)
            scores.append(knots)
        return cls(np.array(quantiles), np.array(scores), np.array(slopes), np.zeros(len(slopes)))

    def __call__(self, statistics: Array, floor: float = 0.0) -> tuple[Array, Any]:
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
        scores = np.stack([self._scored(statistics[..., j].ravel(), j, floor) for j in range(c)], axis=1)
        largest = scores.argmax(axis=1)
        return scores[np.arange(len(scores)), largest].reshape(shape), largest.reshape(shape)

    def _scored(self, values: Array, j: int, floor: float) -> Array:
        """Scores of one statistic; where it has no window yet, or the floor is out of reach, −inf."""
        knots, least = self.quantiles[j], floor + self.handicaps[j]
        low = -np.finfo(np.float64).max
        if least > self.scores[j, 0]:
            low = knots[max(int(np.searchsorted(self.scores[j], least)) - 1, 0)]
        reached = values >= low
        chosen = values[reached]
        scores = np.full(len(values), -np.inf)
        beyond = self.slopes[j] * np.maximum(chosen - knots[-1], 0.0)
        scores[reached] = np.interp(chosen, knots, self.scores[j]) + beyond - self.handicaps[j]
        return scores
