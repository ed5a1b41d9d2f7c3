"""The promise: thresholds under which a stream like the reference runs for the promised number of rows, by simulation.

The reference x_1, …, x_n is what is known of a distribution P. What is not known, how P differs from the sample, is
simulated: each stream has a distribution of its own, n rows drawn with replacement from the reference, and consists of
rows of that. So the run length that is promised is an average over what P may be, and counts the error that a
reference of n rows makes. A stream's statistics are looked up in one Gram matrix: a row costs O(longest window).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muhat.monitor.reference import Population
from muhat.monitor.tail_scale import TailScale
from muhat.monitor.windows import WindowSums, simulated_statistics
from muhat.types import Array

_CHUNK = 200  # rows of all streams that are simulated at a time
_PILOT = 400  # rows of each stream, after the longest window is full, that make the scale
_STARTS = 6  # beginnings of each stream
_LONGEST_SIMULATED = 2_500  # run lengths beyond are extrapolated
_CLUSTER_LEVEL = 5.0  # score at which clusters are counted
_BEYOND = 50  # simulated alarms from which a threshold is read off

HANDICAP = float(np.log(10.0))
"""What is taken off the scores of single rows, whose tails beyond the reference nobody knows, so that the promise does
not hang on the extrapolation of a tail. Real tables have rows far outside of all others, of which a reference of some
hundred rows may have none."""


@dataclass(frozen=True, eq=False)
class Calibration:
    """What a monitor needs to raise alarms.

    Parameters
    ----------
    scale : TailScale
        Puts the statistics of all windows and kernels on one scale.
    start : array of shape (longest window − 1,)
        Threshold of the score at each of the first rows.
    threshold : float
        From then on.
    """

    scale: TailScale
    start: Array
    threshold: float

    def raised(self, allowance: float) -> Calibration:
        """The same with higher thresholds."""
        return replace(self, start=self.start + allowance, threshold=self.threshold + allowance)

    def thresholds(self, seen: int, rows: int) -> Array:
        """The thresholds of the rows after the first ``seen``."""
        values = np.full(rows, self.threshold)
        known = self.start[seen : seen + rows]
        values[: len(known)] = known
        return values


class SimulatedStreams:
    """Streams of rows that are drawn from those of a reference.

    Parameters
    ----------
    rows : Population
        The values of all pairs of rows and of all rows.
    lengths : array of shape (w,)
        Of the windows.
    constants : array of shape (w, c)
        Of the statistics.
    block_length : float
        Mean number of consecutive rows that are drawn together.
    streams : int
        How many.
    rng : Generator
    """

    def __init__(
        self,
        rows: Population,
        lengths: NDArray[np.int64],
        constants: Array,
        block_length: float,
        streams: int,
        rng: np.random.Generator,
    ) -> None:
        self.rows, self.lengths, self.block_length, self.streams, self.rng = rows, lengths, block_length, streams, rng
        self.constants = constants
        n = len(rows.singles)
        self._table = self._draw(np.arange(n, dtype=np.int32)[None], n)

    def _draw(self, table: Any, rows: int) -> Any:
        """Rows from each row of a table, neighbours together (stationary bootstrap).

        Rows are drawn twice, the distribution of a stream and then the stream: each has half of the breaks.
        """
        shape, size = (self.streams, rows), table.shape[1]
        places = self.rng.integers(0, size, shape)
        if self.block_length > 1:
            jumps = self.rng.random(shape) < 0.5 / self.block_length
            jumps[:, 0] = True
            steps = np.arange(rows)
            last = np.maximum.accumulate(np.where(jumps, steps, 0), axis=1)
            places = (np.take_along_axis(places, last, axis=1) + steps - last) % size
        return np.take_along_axis(np.broadcast_to(table, (self.streams, size)), places, axis=1)

    def statistics(self, rows: int, done: NDArray[np.bool_] | None = None) -> Iterator[Array]:
        """Statistics of the first rows, in pieces of shape (w · c, streams of interest, rows of a piece).

        Parameters
        ----------
        rows : int
        done : array of bool, of shape (streams,), optional
            Which streams are of no interest any more; the caller sets them from piece to piece.
        """
        sums = WindowSums.empty(self.lengths, self.constants, self.rows.values.shape[2], self.streams)
        before = np.zeros((self.streams, sums.longest - 1), np.int32)
        chosen = np.arange(self.streams)
        while sums.seen < rows:
            size = min(_CHUNK, rows - sums.seen)
            draws = np.concatenate([before, self._draw(self._table, size)], axis=1)
            if done is not None and done[chosen].any():  # a stream that is done stays so
                left = ~done[chosen]
                chosen, sums = chosen[left], sums.chosen(left)
            part = np.ascontiguousarray(draws[chosen])
            sums, out = simulated_statistics(sums, self.rows.values, self.rows.singles, part)
            before = draws[:, size:]
            yield out


def calibrate(streams: SimulatedStreams, run_length: float, say: Callable[[str], None]) -> Calibration:
    """Find the scale and the thresholds with which simulated streams run for ``run_length`` rows on average.

    Parameters
    ----------
    streams : SimulatedStreams
    run_length : float
    say : callable
        Is told how far the work has come.
    """
    say("calibrating: the scale of the scores")
    scale = _scale(streams)
    say("calibrating: the first rows")
    start = _start_thresholds(streams, scale, run_length)
    threshold = _threshold(streams, scale, start, run_length, say)
    return Calibration(scale, start, threshold)


def _scale(streams: SimulatedStreams) -> TailScale:
    """Scores that say how seldom a window alone would alarm: minus the logarithm of its alarms a row.

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
        handicaps[j] = HANDICAP if length == 1 else np.log(alarms) + _CLUSTER_LEVEL
    return replace(scale, handicaps=handicaps)


def _start_thresholds(streams: SimulatedStreams, scale: TailScale, run_length: float) -> Array:
    """From one window's first statistic to the next one's the threshold is constant.

    In each of these phases it lets as many of the streams alarm, of those that have not before, as a geometric run
    length has it (Cobb, Van Looveren and Klaise, 2022).
    """
    ends = streams.lengths[1:] - 1
    begins = np.concatenate([[0], ends[:-1]]) if len(ends) else ends
    highest = np.concatenate([_phase_maxima(streams, scale, begins, ends) for _ in range(_STARTS)])
    alive, thresholds = np.ones(len(highest), bool), np.empty(int(streams.lengths[-1]) - 1)
    for phase, (begin, end) in enumerate(zip(begins, ends, strict=True)):
        share = 1.0 - (1.0 - 1.0 / run_length) ** int(end - begin)
        scores = np.sort(highest[alive, phase])
        known = max(share, min(_BEYOND / len(scores), 0.5))
        level = scores[int(np.ceil((1.0 - known) * len(scores))) - 1] + np.log(known / share)
        thresholds[begin:end] = level
        alive &= highest[:, phase] <= level
    return thresholds


def _phase_maxima(streams: SimulatedStreams, scale: TailScale, begins: Any, ends: Any) -> Array:
    if not len(ends):
        return np.empty((streams.streams, 0))
    scores = np.concatenate([scale(piece)[0] for piece in streams.statistics(int(ends[-1]))], axis=1)
    return np.stack([scores[:, a:b].max(axis=1) for a, b in zip(begins, ends, strict=True)], axis=1)


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
            stop = _stop(records.largest, np.exp(-records.rows / simulated))
            floor = stop - 3.0
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


def _stop(largest: Array, surviving: float) -> float:
    """A score a little above the threshold to come: streams that reach it need no more rows.

    Streams that alarmed in the start have an infinite score, and count.
    """
    level = float(np.quantile(largest, min(surviving, 1.0), method="higher"))
    return level + 0.35 if np.isfinite(level) else np.inf
