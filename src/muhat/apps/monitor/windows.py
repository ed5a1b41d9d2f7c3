r"""Statistics of the last L rows of a stream for several L at once, of streams that come and of simulated ones.

A component of the monitor is a function h of pairs of rows, a function s of single rows, or both. Its statistic for the
window of the last L rows y is

.. math:: c + \frac{2}{L (L - 1)} \sum_{i < j} h(y_i, y_j) + \frac1L \sum_i s(y_i).

The unbiased MMD² has h = k and s = −2r, with :math:`r(y) = \operatorname{mean}_i k(x_i, y)`; Hotelling's statistic as a
U-statistic has :math:`h(y, y') = z^\top z'`, and a dispersion has only s. For each of the last rows there is a sum over
all pairs since then: a new row y_t adds :math:`\sum_{s \le i < t} h(y_i, y_t)`, one cumulative sum, to the sum since s.
No sum is ever taken back, so that errors of rounding do not grow with the stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muhat._support.types import Array
from muhat.apps.monitor.reference import Population
from muhat.linalg.compiled import compile_loop, numba_or_none

_CHUNK = 200  # rows of all streams that are simulated at a time


@dataclass(frozen=True, eq=False)
class WindowSums:
    """Sums since each of the last rows, for B streams.

    A row that came as number t, counted from 0, has its sums in place t modulo ``longest``.
    """

    lengths: NDArray[np.int64]  # (w,): lengths of the windows, in growing order
    constants: Array  # (w, c): constants of the components, −inf where a component has no statistic of this window
    pairs: Array  # (B, longest, m): sums over pairs, of the first m components
    singles: Array  # (B, longest, c): sums over single rows
    seen: int = 0  # rows so far

    @classmethod
    def empty(cls, lengths: NDArray[np.int64], constants: Array, m: int, streams: int = 1) -> WindowSums:
        """Before the first row."""
        pairs, singles = (np.zeros((streams, int(lengths[-1]), width)) for width in (m, constants.shape[1]))
        return cls(lengths, constants, pairs, singles)

    @property
    def longest(self) -> int:
        """Length of the longest window."""
        return int(self.lengths[-1])

    def after(self, values: Array, singles: Array, draws: Any = None) -> tuple[WindowSums, Array]:
        """The sums after T more rows of every stream, and the statistics after each: shape (w · c, B, T).

        ``values`` of shape (T, longest − 1 + T, m) is h of the rows with the rows before the first one and with each
        other, and ``singles`` (T, c) is s. With ``draws`` (B, longest − 1 + T), first those before, they are h and s of
        the N rows of which the streams consist: shapes (N, N, m) and (N, c).
        """
        before, offset = self.longest - 1, values.shape[1] - len(values)
        if draws is None:
            draws = np.arange(values.shape[1], dtype=np.int32)[None]
        moved = replace(
            self, pairs=self.pairs.copy(), singles=self.singles.copy(), seen=self.seen + draws.shape[1] - before
        )
        out = np.empty((self.constants.size, len(draws), moved.seen - self.seen))
        loop = compiled_loop()
        if loop is not None:
            loop(
                values, singles, draws, offset, self.seen, moved.pairs, moved.singles, self.lengths, self.constants, out
            )
            return moved, out
        for t in range(out.shape[2]):
            now, reach = before + t, min(self.seen + t, before)
            row, earlier = draws[:, now] - offset, draws[:, now - np.arange(1, reach + 1)]
            out[..., t] = _step(moved, self.seen + t, values[row[:, None], earlier], singles[row])
        return moved, out


def _step(sums: WindowSums, t: int, values: Array, singles: Array) -> Array:
    """Add row number t of every stream in place, in numpy; the statistics, of shape (w · c, B).

    ``values`` has the shape (B, rows before, m) with the newest first, and ``singles`` (B, c).
    """
    longest, lengths = sums.longest, sums.lengths
    sums.pairs[:, t % longest] = 0.0
    sums.singles[:, t % longest] = 0.0
    places = (t - 1 - np.arange(values.shape[1])) % longest
    sums.pairs[:, places] += np.cumsum(values, axis=1, dtype=np.float64)
    sums.singles[...] += singles[:, None]
    begins = (t + 1 - lengths) % longest
    statistics = sums.constants + sums.singles[:, begins] / lengths[:, None]
    m = sums.pairs.shape[-1]
    statistics[..., :m] += sums.pairs[:, begins] / np.maximum(0.5 * lengths * (lengths - 1), 1.0)[:, None]
    statistics[:, lengths > t + 1] = -np.inf
    return statistics.reshape(len(statistics), -1).T


def _advance(
    values: Any,
    singles: Any,
    draws: Any,
    offset: int,
    seen: int,
    pairs: Any,
    sums: Any,
    lengths: Any,
    constants: Any,
    out: Any,
) -> None:
    """The same in a loop that numba compiles. It adds in the order of the numpy version, but for multiply-adds.

    Shapes are those of ``WindowSums.after``: pairs (B, longest, m), sums (B, longest, c), out (w · c, B, T).
    """
    longest, m, c = pairs.shape[1], pairs.shape[2], sums.shape[2]
    total = np.zeros(m)
    for b in range(len(draws)):
        for t in range(out.shape[2]):
            now, place, reach = longest - 1 + t, (seen + t) % longest, min(seen + t, longest - 1)
            row = draws[b, now] - offset
            total[:] = 0.0
            pairs[b, place] = 0.0
            sums[b, place] = 0.0
            for lag in range(1, reach + 1):
                place = place - 1 if place > 0 else longest - 1
                other = draws[b, now - lag]
                for j in range(m):
                    total[j] += values[row, other, j]
                    pairs[b, place, j] += total[j]
            for place in range(longest):
                for j in range(c):
                    sums[b, place, j] += singles[row, j]
            for w in range(len(lengths)):
                size = lengths[w]
                begin = (seen + t + 1 - size) % longest
                for j in range(c):
                    k = w * c + j
                    out[k, b, t] = constants[w, j] + sums[b, begin, j] / size
                    if j < m and size > 1:
                        out[k, b, t] += pairs[b, begin, j] / (0.5 * size * (size - 1))
                    if size > seen + t + 1:
                        out[k, b, t] = -np.inf


@cache
def compiled_loop() -> Callable[..., None] | None:
    """The compiled ``_advance``, or None without numba; the answer is remembered."""
    numba = numba_or_none()
    if numba is None:
        return None
    number, place = numba.float64, numba.int64
    two, three, draws = number[:, ::1], number[:, :, ::1], numba.int32[:, ::1]
    rest = (two, draws, place, place, three, three, place[::1], two, three)
    signatures = [numba.void(values, *rest) for values in (three, numba.float32[:, :, ::1])]
    compiled: Callable[..., None] = compile_loop(_advance, signatures)
    return compiled


@dataclass(frozen=True, eq=False)
class SimulatedStreams:
    """Streams of rows that are drawn from those of a reference."""

    rows: Population  # the values of all pairs of rows and of all rows
    lengths: NDArray[np.int64]  # (w,): lengths of the windows
    constants: Array  # (w, c): constants of the statistics
    streams: int  # how many
    rng: np.random.Generator  # draws them

    @cached_property
    def distributions(self) -> Any:
        """The rows of the distribution of each stream, one of resamples of the reference."""
        n = len(self.rows.singles)
        return self._draw(np.arange(n, dtype=np.int32)[None], n)

    def _draw(self, table: Any, rows: int) -> Any:
        """Rows from each row of a table."""
        places = self.rng.integers(0, table.shape[1], (self.streams, rows))
        return np.take_along_axis(np.broadcast_to(table, (self.streams, table.shape[1])), places, axis=1)

    def statistics(self, rows: int, done: NDArray[np.bool_] | None = None) -> Iterator[Array]:
        """Statistics of the first rows, in pieces of shape (w · c, streams of interest, rows of a piece).

        ``done`` says which streams are of no interest any more; the caller sets it from piece to piece.
        """
        sums = WindowSums.empty(self.lengths, self.constants, self.rows.values.shape[2], self.streams)
        before = np.zeros((self.streams, sums.longest - 1), np.int32)
        chosen = np.arange(self.streams)
        while sums.seen < rows:
            size = min(_CHUNK, rows - sums.seen)
            draws = np.concatenate([before, self._draw(self.distributions, size)], axis=1)
            if done is not None and done[chosen].any():  # a stream that is done stays so
                left = ~done[chosen]
                chosen, sums = chosen[left], replace(sums, pairs=sums.pairs[left], singles=sums.singles[left])
            sums, found = sums.after(self.rows.values, self.rows.singles, np.ascontiguousarray(draws[chosen]))
            before = draws[:, size:]
            yield found
