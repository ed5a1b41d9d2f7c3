r"""The statistic: MMD² of a reference with the last L rows of a stream, for several L at once.

For a window of the last L rows y of a stream, with r(y) = mean_i k(x_i, y),

.. math:: \mathrm{MMD}^2_u(L) = \operatorname{mean}_{i \ne j} k(x_i, x_j) + \frac{2 A_L}{L (L - 1)}
          - \frac2L \sum_{y} r(y),

where A_L is the sum over the pairs inside the window, and is left out for L = 1. It obeys
:math:`A_L(t) = A_{L-1}(t-1) + \sum_{j<L} k(y_t, y_{t-j})`: all windows come from one vector that moves on by a place,
plus one cumulative sum. No sum is ever taken back, so that errors of rounding do not grow with the stream.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muhat.monitor.compiled_windows import loops
from muhat.types import Array


@dataclass
class WindowSums:
    """Sums over the last 1, 2, … rows of each of B streams, for m kernels.

    Parameters
    ----------
    lengths : array of shape (w,)
        Lengths of the windows, in growing order.
    constants : array of shape (m,)
        Mean of k(x_i, x_j) over the pairs of the reference.
    pairs, sums : array of shape (B, m, longest)
        A_L, and the sum of r(y), for L = 1, …, longest.
    seen : int
        Rows so far.
    """

    lengths: NDArray[np.int64]
    constants: Array
    pairs: Array
    sums: Array
    seen: int = 0

    @classmethod
    def empty(cls, lengths: NDArray[np.int64], constants: Array, streams: int = 1) -> WindowSums:
        """Before the first row."""
        shape = (streams, len(constants), int(lengths[-1]))
        return cls(lengths, constants, np.zeros(shape), np.zeros(shape))

    @property
    def longest(self) -> int:
        """Length of the longest window."""
        return int(self.lengths[-1])

    def chosen(self, streams: Any) -> WindowSums:
        """The sums of some of the streams."""
        return WindowSums(self.lengths, self.constants, self.pairs[streams], self.sums[streams], self.seen)

    def copy(self) -> WindowSums:
        """Sums that move on by themselves."""
        return WindowSums(self.lengths, self.constants, self.pairs.copy(), self.sums.copy(), self.seen)

    def advance(self, values: Array, cross: Array) -> Array:
        """Take in T rows of a single stream; the statistics after each, of shape (T, w, m).

        Parameters
        ----------
        values : array of shape (T, m, longest − 1)
            Kernel values of each row with those before it, the oldest first; places without a row count for nothing.
        cross : array of shape (T, m)
            r(y).
        """
        out = np.empty((len(cross), len(self.lengths), cross.shape[1]))
        compiled = loops()
        if compiled is not None:
            sums = (self.pairs[0], self.sums[0])
            compiled.advance(values, cross, self.seen, *sums, self.lengths, self.constants, out)
            self.seen += len(cross)
            return out
        for t in range(len(cross)):
            reach = min(self.seen, self.longest - 1)
            out[t] = self.step(values[None, t, :, :reach][..., ::-1], cross[None, t])[0]
        return out

    def step(self, values: Array, cross: Array) -> Array:
        """Take in one row of every stream; the statistics, of shape (B, w, m).

        Parameters
        ----------
        values : array of shape (B, m, rows before, at most longest − 1)
            Kernel values with the rows before, the newest first.
        cross : array of shape (B, m)
        """
        reached = np.cumsum(values, axis=-1)
        for sums in (self.pairs, self.sums):
            sums[..., 1:] = sums[..., :-1]
            sums[..., 0] = 0.0
        size = reached.shape[-1]
        self.pairs[..., 1 : size + 1] += reached
        if size:
            self.pairs[..., size + 1 :] += reached[..., -1:]
        self.sums += cross[..., None]
        self.seen += 1
        return self._statistics()

    def _statistics(self) -> Array:
        sizes = self.lengths.astype(np.float64)
        singles = self.constants[..., None] - 2.0 * self.sums[..., self.lengths - 1] / sizes
        statistics = singles + self.pairs[..., self.lengths - 1] / np.maximum(0.5 * sizes * (sizes - 1), 1.0)
        statistics[..., self.lengths > self.seen] = -np.inf
        return np.moveaxis(statistics, -1, -2)


def simulated_statistics(sums: WindowSums, K: Array, cross: Array, draws: Any, rows: int) -> Array:
    """Take in ``rows`` rows of every stream, drawn from those of K; the statistics, of shape (B, rows, w, m).

    Parameters
    ----------
    sums : WindowSums
        Moves on.
    K : array of shape (m, N, N)
    cross : array of shape (m, N)
        r at the rows of K.
    draws : array of int32, of shape (B, longest − 1 + rows)
        Rows of K; first those of the rows before.
    rows : int
    """
    out = np.empty((len(draws), rows, len(sums.lengths), len(K)))
    compiled = loops()
    if compiled is not None:
        compiled.simulate(K, cross, sums.constants, draws, sums.seen, sums.pairs, sums.sums, sums.lengths, out)
        sums.seen += rows
        return out
    kernels = np.arange(len(K))[:, None]
    for t in range(rows):
        now, reach = sums.longest - 1 + t, min(sums.seen, sums.longest - 1)
        row = draws[:, now]
        before = draws[:, now - reach : now][:, ::-1]
        values = K[kernels, row[:, None, None], before[:, None, :]]
        out[:, t] = sums.step(values, cross[:, row].T)
    return out
