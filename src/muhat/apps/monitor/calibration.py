r"""The promise: what a reference can promise, and thresholds under which streams like it run for so many rows.

The promise is a mean over references and streams: of all references of n rows from one distribution, each with its own
thresholds, streams of that distribution run for ``run_length`` rows on average until a false alarm. A single reference
may keep more or less of it, and the fewer rows it has, the more so.

The reference x_1, …, x_n is what is known of a distribution P. What is not known, how P differs from the sample, is
simulated: each stream has a distribution of its own, n rows drawn with replacement from the reference, and consists of
rows of that. So the run length that is promised is an average over what P may be, and counts the error that a
reference of n rows makes. A stream's statistics are looked up in one Gram matrix: a row costs O(longest window).

Simulated streams do not know the values beyond the reference. What that costs is made up for by a small allowance on
the thresholds, and promises with which it would be much are refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, exp, log
from typing import Any

import numpy as np

from muhat._support.types import Array
from muhat.apps.monitor.windows import SimulatedStreams

ROWS_OF_ONE = 10.0
"""A promise of R rows needs 10 √R independent reference rows."""

HANDICAP = float(np.log(10.0))
"""What is taken off the scores of single rows, whose tails beyond the reference nobody knows, so that the promise does
not hang on the extrapolation of a tail. Real tables have rows far outside of all others, of which a reference of some
hundred rows may have none."""

_KNOTS = 64
_LOWEST = float(np.log(2.0))  # the score of a median; what is below counts as a median
_FARTHER = np.array([0.5, 1.0, 2.0, 3.0, 4.5, 6.0, 8.0, 10.0, 13.0, 16.0, 20.0])  # scores beyond the last known one
_FEW = 16  # rows up to which all statistics are looked up together
_TIE = 0.05  # standard deviations by which values that are ties may differ
_MANY = 0.25  # what so many ties add to the logarithm of a tail; a normal one grows by 0.2 over 0.05, 4 deviations out
_BEYOND = 30  # values that lie above the last quantile that counts as known

_PILOT = 400  # rows of each stream, after the longest window is full, that make the scale
_LONGEST_SIMULATED = 2_500  # run lengths beyond are extrapolated
_CLUSTER_LEVEL = 5.0  # score at which clusters are counted


def allowance(run_length: float) -> float:
    """What is added to thresholds: 0.05 log(R/20) for a promise of R rows.

    Its exponential makes run lengths longer. Measured, not derived: without it, references of 50 to 1,000 normal,
    heavy-tailed and real rows kept about all of promises of 100 rows and 80 per cent of promises of 1,000
    (``benchmarks/monitor.py promises``).
    """
    return max(0.05 * log(run_length / 20.0), 0.0)


def longest_promise(rows: int) -> int:
    """What so many rows can promise if they are independent: n rows promise n²/100."""
    return max(int((rows / ROWS_OF_ONE) ** 2), 2)


# ---------------------------------------------------------------- scores


@dataclass(frozen=True, eq=False)
class TailScale:
    r"""The score of a statistic s: :math:`-\log P(S \ge s)` under simulation, extrapolated beyond what is known."""

    quantiles: Array  # (c, knots): of each of c statistics, at the scores in ``scores``
    scores: Array  # (c, knots)
    handicaps: Array  # (c,): subtracted from the scores

    @classmethod
    def of(cls, statistics: Array, distinct: Array) -> TailScale:
        """The scale of simulated statistics, of shape (c, N), of which ``distinct`` many differ in each row.

        Statistics that are −inf do not exist, and keep the score −inf.
        """
        parts = [_knots(*pair) for pair in zip(statistics, distinct, strict=True)]
        quantiles, scores = (np.array(part) for part in zip(*parts, strict=True))
        return cls(quantiles, scores, np.zeros(len(scores)))

    @cached_property
    def slopes(self) -> Array:
        """Growth of the score from each knot to the next, and beyond the last one."""
        steps = np.diff(self.quantiles)
        slopes = np.divide(np.diff(self.scores), steps, out=np.zeros_like(steps), where=steps > 0)
        return np.column_stack([slopes, slopes[:, -1]])

    def __call__(self, statistics: Array, floor: float = -np.inf) -> tuple[Array, Any]:
        """The largest score of each set of c statistics, and whose it is, for statistics of shape (c, ...).

        Scores that cannot exceed the floor are not worth computing; they come out as −inf.
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


def _knots(values: Array, distinct: float) -> tuple[Array, Array]:
    """Quantiles of simulated statistics, and their scores.

    Beyond the last known quantile q there are m values of mean excess e. If excesses are exponential, the predictive
    probability of exceeding q by x, which counts the error of e, is (1 + x / (m e))^(−m) times that of exceeding q.
    """
    values = np.sort(np.zeros(2) if values[0] == -np.inf else values)
    top = max(float(np.log(min(len(values), distinct) / _BEYOND)), _LOWEST)
    known = np.linspace(_LOWEST, top, _KNOTS)
    at = np.interp((len(values) - 1) * -np.expm1(-known), np.arange(len(values)), values)  # quantiles
    # Of columns with few values a statistic has ties, and a new row has nearly but not exactly the value of its like in
    # a reference, whose metric it had no part in. So where many values lie just below a quantile, its score is that of
    # all of them.
    deviation = float(values.std())
    tie = _TIE * deviation
    together = -np.log1p(-np.searchsorted(values, at - tie) / len(values))
    tied = together < known - _MANY
    known = np.minimum.accumulate(np.where(tied, together, known)[::-1])[::-1]
    # Continuous statistics exceed a quantile by more than a tenth of their standard deviation.
    last, above = at[-1], values[values > at[-1] + (tie if tied[-1] else 0.0)]
    smallest = 0.1 * deviation + 1e-9 * (abs(last) + abs(at[0])) + 1e-300
    excess = max(float((above - last).mean()) if len(above) else deviation, smallest)
    scores = np.append(known, known[-1] + _FARTHER)
    at = np.append(at, last + excess * _BEYOND * np.expm1(_FARTHER / _BEYOND))
    return at, scores


# ---------------------------------------------------------------- thresholds


@dataclass(frozen=True, eq=False)
class Calibration:
    """What a monitor needs to raise alarms."""

    scale: TailScale  # puts the statistics of all windows and kernels on one scale
    threshold: float  # of the score

    def raised(self, by: float) -> Calibration:
        """The same with a higher threshold."""
        return replace(self, threshold=self.threshold + by)


def calibrate(streams: SimulatedStreams, run_length: float, say: Callable[[str], None]) -> Calibration:
    """Find the scale and the threshold with which simulated streams run for ``run_length`` rows on average."""
    say("calibrating: the scale of the scores")
    scale = _scale(streams)
    return Calibration(scale, _threshold(streams, scale, run_length, say))


def _scale(streams: SimulatedStreams) -> TailScale:
    """Scores that say how seldom a window alone would alarm: minus the logarithm of its alarms per row.

    Statistics of long windows move slowly, so that those above a level come in clusters. At one level in all windows
    the tails tell what a cluster counts for: the handicap of a window is the logarithm of its clusters to its rows.
    """
    longest = int(streams.lengths[-1])
    pieces = np.concatenate(list(streams.statistics(longest + _PILOT)), axis=2)[..., longest:]
    lengths = np.repeat(streams.lengths, streams.constants.shape[1])
    distinct = np.where(lengths == 1, len(streams.rows.singles), np.inf)
    scale = TailScale.of(pieces.reshape(len(pieces), -1), distinct)
    handicaps, (_, count, rows) = np.empty(len(lengths)), pieces.shape
    for j, length in enumerate(lengths):
        reached = (pieces[j] > np.interp(_CLUSTER_LEVEL, scale.scores[j], scale.quantiles[j])).any(axis=1).mean()
        alarms = -np.log1p(-min(max(reached, 0.5 / count), 1.0 - 0.5 / count)) / rows
        # Clusters have at most as many rows as their window; where no stream reaches the level, none are known.
        handicaps[j] = HANDICAP if length == 1 else max(np.log(alarms) + _CLUSTER_LEVEL, -np.log(length))
    return replace(scale, handicaps=handicaps)


def _threshold(streams: SimulatedStreams, scale: TailScale, run_length: float, say: Callable[[str], None]) -> float:
    """The threshold under which simulated streams run for so many rows on average, from their first rows on."""
    simulated = min(run_length, _LONGEST_SIMULATED)
    highest = np.full((streams.streams, ceil(5 * simulated)), np.inf)  # scores so far; infinite where nobody looks
    seen, enough, done = 0, np.inf, np.zeros(streams.streams, bool)
    for piece in streams.statistics(highest.shape[1], done):
        scores, _ = scale(piece, 0.0 if enough == np.inf else enough - 3.0)
        left, begin, seen = ~done, seen, seen + scores.shape[1]
        if begin:
            scores[:, 0] = np.maximum(scores[:, 0], highest[left, begin - 1])
        highest[left, begin:seen] = np.maximum.accumulate(scores, axis=1)
        if enough == np.inf and seen >= simulated / 2:
            # A score a little above the threshold to come: streams that reach it need no more rows.
            enough = 0.35 + float(np.quantile(highest[:, seen - 1], exp(-seen / simulated), method="higher"))
        done |= highest[:, seen - 1] > enough
        say(f"calibrating: {min(seen / (2.0 * simulated), 0.99):.0%}")
        if done.all():
            break
    threshold = _smallest_threshold(highest[:, :seen], simulated)
    if run_length > simulated:
        growth = (threshold - _smallest_threshold(highest[:, :seen], simulated / 4)) / log(4.0)
        threshold += growth * log(run_length / simulated)
    return threshold + 1e-9 * abs(threshold)  # a score that repeats a simulated one is not above it by rounding


def _smallest_threshold(highest: Array, run_length: float) -> float:
    """The smallest threshold under which streams with these largest scores so far run for so many rows on average."""
    low, high = 0.0, 1.0 + float(highest[np.isfinite(highest)].max(initial=0.0))
    while high - low > 1e-12 * high:
        middle = 0.5 * (low + high)
        quiet = (highest <= middle).sum(axis=1)
        alarms = max((quiet < highest.shape[1]).sum(), 1)
        enough = np.minimum(quiet + 1, highest.shape[1]).sum() / alarms >= run_length  # as of exponential run lengths
        low, high = (low, middle) if enough else (middle, high)
    return high
