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
from itertools import pairwise
from math import log
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
_STARTS = 6  # beginnings of each stream
_LONGEST_SIMULATED = 2_500  # run lengths beyond are extrapolated
_CLUSTER_LEVEL = 5.0  # score at which clusters are counted
_ALARMS = 50  # simulated alarms from which a threshold is read off


def allowance(run_length: float, predicted: bool) -> float:
    """What is added to thresholds: 0.05 log(R/20) for a promise of R rows, and 0.15 where rows are residuals.

    Its exponential makes run lengths longer. Measured, not derived: without it, references of 50 to 1,000 normal,
    heavy-tailed and real rows kept about all of promises of 100 rows and 80 per cent of promises of 1,000, and the
    error of an autoregression cost another tenth or more (``benchmarks/monitor.py promises``).
    """
    return max(0.05 * log(run_length / 20.0), 0.0) + (0.15 if predicted else 0.0)


def longest_promise(rows: int) -> int:
    """What so many rows can promise if they are independent: n rows promise n²/100."""
    return max(int((rows / ROWS_OF_ONE) ** 2), 2)


# ---------------------------------------------------------------- scores


@dataclass(frozen=True, eq=False)
class TailScale:
    r"""The score of a statistic s: :math:`-\log P(S \ge s)` under simulation, extrapolated beyond what is known."""

    quantiles: Array  # (c, knots): of each of c statistics, at the scores in ``scores``
    scores: Array  # (c, knots)
    slopes: Array  # (c, knots): growth of the score from each knot to the next, and beyond the last one
    handicaps: Array  # (c,): subtracted from the scores

    @classmethod
    def of(cls, statistics: Array, distinct: Array) -> TailScale:
        """The scale of simulated statistics, of shape (c, N), of which ``distinct`` many differ in each row.

        Statistics that are −inf do not exist, and keep the score −inf.
        """
        parts = [_knots(*pair) for pair in zip(statistics, distinct, strict=True)]
        quantiles, scores, slopes = (np.array(part) for part in zip(*parts, strict=True))
        return cls(quantiles, scores, slopes, np.zeros(len(slopes)))

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


def _knots(values: Array, distinct: float) -> tuple[Array, Array, Array]:
    """Quantiles of simulated statistics, their scores, and the growth of the score behind each.

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
    steps = np.diff(at)
    slopes = np.divide(np.diff(scores), steps, out=np.zeros(len(steps)), where=steps > 0)
    return at, scores, np.append(slopes, slopes[-1])


# ---------------------------------------------------------------- thresholds


@dataclass(frozen=True, eq=False)
class Calibration:
    """What a monitor needs to raise alarms."""

    scale: TailScale  # puts the statistics of all windows and kernels on one scale
    start: Array  # (longest window − 1,): threshold of the score at each of the first rows
    threshold: float  # from then on

    def raised(self, allowance: float) -> Calibration:
        """The same with higher thresholds."""
        return replace(self, start=self.start + allowance, threshold=self.threshold + allowance)

    def thresholds(self, seen: int, rows: int) -> Array:
        """The thresholds of the rows after the first ``seen``."""
        values = np.full(rows, self.threshold)
        known = self.start[seen : seen + rows]
        values[: len(known)] = known
        return values


def calibrate(streams: SimulatedStreams, run_length: float, say: Callable[[str], None]) -> Calibration:
    """Find the scale and the thresholds with which simulated streams run for ``run_length`` rows on average."""
    say("calibrating: the scale of the scores")
    scale = _scale(streams)
    say("calibrating: the first rows")
    start = _start_thresholds(streams, scale, run_length)
    threshold = _threshold(streams, scale, start, run_length, say)
    return Calibration(scale, start, threshold)


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


def _start_thresholds(streams: SimulatedStreams, scale: TailScale, run_length: float) -> Array:
    """From one window's first statistic to the next one's the threshold is constant.

    In each of these phases it lets as many of the streams alarm, of those that have not before, as a geometric run
    length has it (Cobb, Van Looveren and Klaise, 2022).
    """
    bounds = np.append(0, streams.lengths[1:] - 1)  # a phase lasts from one of these rows to the next
    thresholds = np.empty(int(bounds[-1]))
    if not len(thresholds):
        return thresholds
    highest = []
    for _ in range(_STARTS):
        scores = np.concatenate([scale(piece)[0] for piece in streams.statistics(len(thresholds))], axis=1)
        highest.append(np.maximum.reduceat(scores, bounds[:-1], axis=1))
    left = np.concatenate(highest)
    for phase, (begin, end) in enumerate(pairwise(bounds)):
        share = 1.0 - (1.0 - 1.0 / run_length) ** int(end - begin)
        scores = np.sort(left[:, phase])
        known = max(share, min(_ALARMS / len(scores), 0.5))
        level = scores[int(np.ceil((1.0 - known) * len(scores))) - 1] + np.log(known / share)
        thresholds[begin:end] = level
        left = left[left[:, phase] <= level]
    return thresholds


class _Records:
    """The rows at which streams reached a new largest score: enough for the run length under every threshold."""

    def __init__(self, streams: int) -> None:
        self.largest, self.rows = np.full(streams, -np.inf), 0
        self._found: list[tuple[Any, Any, Array]] = []

    def add(self, streams: Any, scores: Array) -> None:
        """The next scores of some streams, a row each."""
        running = np.maximum.accumulate(np.column_stack([self.largest[streams], scores]), axis=1)
        place, row = np.nonzero(running[:, 1:] > running[:, :-1])
        self._found.append((streams[place], self.rows + row + 1, running[place, row + 1]))
        self.largest[streams], self.rows = running[:, -1], self.rows + scores.shape[1]

    def threshold(self, run_length: float, default: float) -> float:
        """The smallest threshold that some score has, under which the mean run length is at least as promised.

        Where all streams alarmed in the start, no score is known, and the default is as good as any.
        """
        stream, row, score = (np.concatenate(part) for part in zip(*self._found, strict=True))
        candidates = np.unique(score[np.isfinite(score)])
        if not len(candidates):
            return default

        def mean_run(threshold: float) -> float:
            runs, above = np.full(len(self.largest), self.rows), score > threshold
            np.minimum.at(runs, stream[above], row[above])
            return float(runs.sum() / max(len(np.unique(stream[above])), 1))

        low, high = 0, len(candidates) - 1
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if mean_run(candidates[middle]) >= run_length else (middle + 1, high)
        return float(candidates[low])


def _threshold(
    streams: SimulatedStreams, scale: TailScale, start: Array, run_length: float, say: Callable[[str], None]
) -> float:
    """The constant threshold after the start that makes the mean run length as promised, starts included."""
    simulated = min(run_length, _LONGEST_SIMULATED)
    records, stop, floor = _Records(streams.streams), np.inf, 0.0
    done = np.zeros(streams.streams, bool)
    for piece in streams.statistics(int(np.ceil(5 * simulated)), done):
        scores, _ = scale(piece, floor)
        early = start[records.rows : records.rows + scores.shape[1]]
        scores[:, : len(early)] = np.where(scores[:, : len(early)] > early, np.inf, -np.inf)
        records.add(np.flatnonzero(~done), scores)
        if stop == np.inf and records.rows >= simulated / 2:
            # A score a little above the threshold to come: streams that reach it need no more rows. Those that alarmed
            # in the start have an infinite score, and count.
            level = float(np.quantile(records.largest, np.exp(-records.rows / simulated), method="higher"))
            if np.isfinite(level):
                stop, floor = level + 0.35, level - 2.65
        done |= records.largest > stop
        say(f"calibrating: {min(records.rows / (2.0 * simulated), 0.99):.0%}")
        if done.all():
            break
    default = float(start[-1]) if len(start) else 0.0
    threshold = records.threshold(simulated, default)
    if run_length > simulated:
        growth = (threshold - records.threshold(simulated / 4, default)) / np.log(4.0)
        threshold += growth * float(np.log(run_length / simulated))
    return threshold + 1e-9 * abs(threshold)  # a score that repeats a simulated one is not above it by rounding
