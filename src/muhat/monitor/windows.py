r"""Statistics of the last L rows of a stream for several L at once, from sums over pairs of rows and over single rows.

A component of the monitor is a function h of pairs of rows, a function s of single rows, or both. Its statistic for the
window of the last L rows y is

.. math:: c + \frac{2}{L (L - 1)} \sum_{i < j} h(y_i, y_j) + \frac1L \sum_i s(y_i).

The unbiased MMD² has h = k and s = −2r, with :math:`r(y) = \operatorname{mean}_i k(x_i, y)`; Hotelling's statistic as a
U-statistic has :math:`h(y, y') = z^\top z'`, and a dispersion has only s. For each of the last rows there is a sum over
all pairs since then: a new row y_t adds :math:`\sum_{s \le i < t} h(y_i, y_t)`, one cumulative sum, to the sum since s.
No sum is ever taken back, so that errors of rounding do not grow with the stream.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from muhat.linalg.compiled import compile_loop, numba_or_none
from muhat.types import Array


@dataclass(frozen=True, eq=False)
class WindowSums:
    """Sums since each of the last rows, for B streams.

    A row that came as number t, counted from 0, has its sums in place t modulo ``longest``.

    Parameters
    ----------
    lengths : array of shape (w,)
        Lengths of the windows, in growing order.
    constants : array of shape (w, c)
        Constants of the components, −inf where a component has no statistic of this window.
    pairs : array of shape (B, longest, m)
        Sums over pairs, of the first m components.
    singles : array of shape (B, longest, c)
        Sums over single rows.
    seen : int
        Rows so far.
    """

    lengths: NDArray[np.int64]
    constants: Array
    pairs: Array
    singles: Array
    seen: int = 0

    @classmethod
    def empty(cls, lengths: NDArray[np.int64], constants: Array, m: int, streams: int = 1) -> WindowSums:
        """Before the first row."""
        longest = int(lengths[-1])
        return cls(
            lengths, constants, np.zeros((streams, longest, m)), np.zeros((streams, longest, constants.shape[1]))
        )

    @property
    def longest(self) -> int:
        """Length of the longest window."""
        return int(self.lengths[-1])

    def chosen(self, streams: Any) -> WindowSums:
        """A copy of the sums of some of the streams."""
        return WindowSums(self.lengths, self.constants, self.pairs[streams], self.singles[streams], self.seen)

    def after(self, values: Array, singles: Array) -> tuple[WindowSums, Array]:
        """The sums after T more rows of a single stream, and the statistics after each: shape (w · c, T).

        Parameters
        ----------
        values : array of shape (T, m, longest − 1)
            h of each row with those before it, the oldest first; places without a row count for nothing.
        singles : array of shape (T, c)
            s of each row.
        """
        T, before = len(singles), self.longest - 1
        moved = self.chosen(slice(None)) if compiled_loops() is None else self._copy()
        out = np.empty((self.constants.size, 1, T))
        loops = compiled_loops()
        if loops is not None:
            values = np.ascontiguousarray(values)
            loops.advance(
                values, singles, self.seen, moved.pairs[0], moved.singles[0], self.lengths, self.constants, out
            )
        else:
            for t in range(T):
                reach = min(self.seen + t, before)
                newest_first = values[None, t, :, :reach][..., ::-1]
                out[..., t] = _step(moved, self.seen + t, newest_first, singles[None, t])
        return WindowSums(self.lengths, self.constants, moved.pairs, moved.singles, self.seen + T), out[:, 0]

    def _copy(self) -> WindowSums:
        return WindowSums(self.lengths, self.constants, self.pairs.copy(), self.singles.copy(), self.seen)


def simulated_statistics(sums: WindowSums, values: Array, singles: Array, draws: Any) -> tuple[WindowSums, Array]:
    """The sums after T more rows of every stream, rows that are drawn from N; the statistics, of shape (w · c, B, T).

    Parameters
    ----------
    sums : WindowSums
        Its arrays are moved on in place.
    values : array of float32, of shape (N, N, m)
        h of all pairs.
    singles : array of shape (N, c)
        s of all rows.
    draws : array of int32, of shape (B, longest − 1 + T)
        Which of the N rows; first those before.
    """
    T, before = draws.shape[1] - sums.longest + 1, sums.longest - 1
    out = np.empty((sums.constants.size, len(draws), T))
    loops = compiled_loops()
    if loops is not None:
        loops.simulate(values, singles, draws, sums.seen, sums.pairs, sums.singles, sums.lengths, sums.constants, out)
    else:
        for t in range(T):
            now, reach = before + t, min(sums.seen + t, before)
            row, earlier = draws[:, now], draws[:, now - reach : now][:, ::-1]
            newest_first = np.moveaxis(values[row[:, None], earlier], -1, 1)
            out[..., t] = _step(sums, sums.seen + t, newest_first, singles[row])
    return WindowSums(sums.lengths, sums.constants, sums.pairs, sums.singles, sums.seen + T), out


def _step(sums: WindowSums, t: int, values: Array, singles: Array) -> Array:
    """Add row number t of every stream in place, in numpy; the statistics, of shape (w · c, B).

    ``values`` has the shape (B, m, rows before) with the newest first, and ``singles`` (B, c).
    """
    longest, lengths = sums.longest, sums.lengths
    sums.pairs[:, t % longest] = 0.0
    sums.singles[:, t % longest] = 0.0
    places = (t - 1 - np.arange(values.shape[-1])) % longest
    sums.pairs[:, places] += np.moveaxis(np.cumsum(values, axis=-1, dtype=np.float64), 1, 2)
    sums.singles[...] += singles[:, None]
    begins = (t + 1 - lengths) % longest
    statistics = sums.constants + sums.singles[:, begins] / lengths[:, None]
    m = sums.pairs.shape[-1]
    statistics[..., :m] += sums.pairs[:, begins] / np.maximum(0.5 * lengths * (lengths - 1), 1.0)[:, None]
    statistics[:, lengths > t + 1] = -np.inf
    return statistics.reshape(len(statistics), -1).T


# The same in compiled loops, for where numba is installed: plain Python, compiled at first use. The sums of one row are
# added in the order of the numpy version, so that the two differ by no more than fused multiply-adds.


def _advance(
    values: Any, singles: Any, seen: int, pairs: Any, sums: Any, lengths: Any, constants: Any, out: Any
) -> None:
    """Rows of one stream. Shapes: values (T, m, longest − 1), pairs (longest, m), sums (longest, c), out (wc, 1, T)."""
    longest, m = pairs.shape
    total = np.zeros(m)
    for t in range(len(singles)):
        place, reach = (seen + t) % longest, min(seen + t, longest - 1)
        total[:] = 0.0
        pairs[place] = 0.0
        sums[place] = 0.0
        for before in range(1, reach + 1):
            place = place - 1 if place > 0 else longest - 1
            for j in range(m):
                total[j] += values[t, j, reach - before]
                pairs[place, j] += total[j]
        for place in range(longest):
            for j in range(sums.shape[1]):
                sums[place, j] += singles[t, j]
        for w in range(len(lengths)):
            size = lengths[w]
            begin = (seen + t + 1 - size) % longest
            for j in range(sums.shape[1]):
                k = w * sums.shape[1] + j
                out[k, 0, t] = constants[w, j] + sums[begin, j] / size
                if j < m and size > 1:
                    out[k, 0, t] += pairs[begin, j] / (0.5 * size * (size - 1))
                if size > seen + t + 1:
                    out[k, 0, t] = -np.inf


def _simulate(
    values: Any, singles: Any, draws: Any, seen: int, pairs: Any, sums: Any, lengths: Any, constants: Any, out: Any
) -> None:
    """Rows of many streams, drawn from N rows. Shapes: values (N, N, m), pairs (B, longest, m), out (wc, B, T)."""
    longest, m, c = pairs.shape[1], pairs.shape[2], sums.shape[2]
    total = np.zeros(m)
    for b in range(len(draws)):
        for t in range(out.shape[2]):
            now, place, reach = longest - 1 + t, (seen + t) % longest, min(seen + t, longest - 1)
            row = draws[b, now]
            total[:] = 0.0
            pairs[b, place] = 0.0
            sums[b, place] = 0.0
            for before in range(1, reach + 1):
                place = place - 1 if place > 0 else longest - 1
                other = draws[b, now - before]
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


class Loops(NamedTuple):
    """The compiled functions."""

    advance: Callable[..., None]
    simulate: Callable[..., None]


@cache
def compiled_loops() -> Loops | None:
    """The compiled functions, or None without numba; the answer is remembered."""
    numba = numba_or_none()
    if numba is None:
        return None
    number, place = numba.float64, numba.int64
    one, two, three = place[::1], number[:, ::1], number[:, :, ::1]
    advance = compile_loop(_advance, (three, two, place, two, two, one, two, three))
    pairs, draws = numba.float32[:, :, ::1], numba.int32[:, ::1]
    simulate = compile_loop(_simulate, (pairs, two, draws, place, three, three, one, two, three))
    return Loops(advance, simulate)
