"""Common scale of statistics of different windows and kernels: minus the logarithm of their upper tail."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from muhat.types import Array

_KNOTS = 64
_LOWEST = float(np.log(2.0))  # the score of a median; what is below counts as a median
_FARTHER = np.array([0.5, 1.0, 2.0, 3.0, 4.5, 6.0, 8.0, 10.0, 13.0, 16.0, 20.0])  # scores beyond the last known one
_FEW = 16  # rows up to which all statistics are looked up together
_BEYOND = 30  # values that lie above the last quantile that counts as known


@dataclass(frozen=True, eq=False)
class TailScale:
    r"""The score of a statistic s: :math:`-\log P(S \ge s)` under simulation, extrapolated beyond what is known.

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
        parts = [_knots(*pair) for pair in zip(statistics, distinct, strict=True)]
        quantiles, scores, slopes = (np.array(part) for part in zip(*parts, strict=True))
        return cls(quantiles, scores, slopes, np.zeros(len(slopes)))

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


def _knots(values: Array, distinct: float) -> tuple[Array, Array, Array]:
    """Quantiles of simulated statistics, their scores, and the growth of the score behind each.

    Beyond the last known quantile q there are m values of mean excess e. If excesses are exponential, the predictive
    probability of exceeding q by x, which counts the error of e, is (1 + x / (m e))^(−m) times that of exceeding q.
    """
    values = np.zeros(2) if values[0] == -np.inf else values
    top = max(float(np.log(min(len(values), distinct) / _BEYOND)), _LOWEST)
    known = np.linspace(_LOWEST, top, _KNOTS)
    at = np.quantile(values, 1.0 - np.exp(-known))
    last, above = at[-1], values[values > at[-1]]
    # Where statistics take few values, all that are beyond may be equal, and the least excess over them would be a
    # huge score; continuous ones exceed a quantile by more than a tenth of their standard deviation.
    smallest = 0.1 * float(values.std()) + 1e-9 * (abs(last) + abs(at[0])) + 1e-300
    excess = max(float((above - last).mean()) if len(above) else 0.0, smallest)
    scores = np.append(known, top + _FARTHER)
    at = np.append(at, last + excess * _BEYOND * np.expm1(_FARTHER / _BEYOND))
    steps = np.diff(at)
    slopes = np.divide(np.diff(scores), steps, out=np.zeros(len(steps)), where=steps > 0)
    return at, scores, np.append(slopes, slopes[-1])
