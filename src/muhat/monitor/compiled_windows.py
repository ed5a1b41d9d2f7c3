"""Compiled loops over window sums, for where numba is installed: rows of one stream, and of many simulated ones.

The loops are plain Python, compiled at their first use. ``muhat.monitor.windows`` does the same in numpy: it runs
without numba, and it is the oracle with it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from muhat.linalg.compiled import compile_loop, numba_or_none


def _advance(values: Any, cross: Any, seen: int, pairs: Any, sums: Any, lengths: Any, constants: Any, out: Any) -> None:
    """Move the sums of one stream on by some rows, and note the statistics after each.

    ``values[t, j, i]`` is the kernel value of row t with the i-th of the at most ``longest`` − 1 rows before it, the
    oldest first. Shapes: cross (T, m); pairs and sums (m, longest); lengths (w,); constants (m,); out (T, w, m).
    """
    longest = pairs.shape[1]
    for t in range(len(cross)):
        reach = min(seen + t, longest - 1)
        for j in range(len(pairs)):
            total, pair, single = 0.0, 0.0, 0.0
            for before in range(longest):
                if 1 <= before <= reach:
                    total += values[t, j, reach - before]
                moved_pair, moved_single = pair + total, single + cross[t, j]
                pair, single = pairs[j, before], sums[j, before]
                pairs[j, before], sums[j, before] = moved_pair, moved_single
            for w in range(len(lengths)):
                size = lengths[w]
                out[t, w, j] = constants[j] - 2.0 * sums[j, size - 1] / size
                if size > 1:
                    out[t, w, j] += pairs[j, size - 1] / (0.5 * size * (size - 1))
                if size > seen + t + 1:
                    out[t, w, j] = -np.inf


def _simulate(
    K: Any, cross: Any, constants: Any, draws: Any, seen: int, pairs: Any, sums: Any, lengths: Any, out: Any
) -> None:
    """As ``_advance``, for streams whose rows are drawn from those of the matrices K.

    Shapes: K (m, N, N); cross (m, N); constants (m,); draws (B, longest − 1 + T), the first ones those before; pairs
    and sums (B, m, longest); lengths (w,); out (B, T, w, m).
    """
    longest = pairs.shape[2]
    for b in range(len(draws)):
        for t in range(out.shape[1]):
            now, reach = longest - 1 + t, min(seen + t, longest - 1)
            row = draws[b, now]
            for j in range(len(K)):
                total, pair, single = 0.0, 0.0, 0.0
                for before in range(longest):
                    if 1 <= before <= reach:
                        total += K[j, row, draws[b, now - before]]
                    moved_pair, moved_single = pair + total, single + cross[j, row]
                    pair, single = pairs[b, j, before], sums[b, j, before]
                    pairs[b, j, before], sums[b, j, before] = moved_pair, moved_single
                for w in range(len(lengths)):
                    size = lengths[w]
                    out[b, t, w, j] = constants[j] - 2.0 * sums[b, j, size - 1] / size
                    if size > 1:
                        out[b, t, w, j] += pairs[b, j, size - 1] / (0.5 * size * (size - 1))
                    if size > seen + t + 1:
                        out[b, t, w, j] = -np.inf


class Loops(NamedTuple):
    """The compiled functions."""

    advance: Callable[..., None]
    simulate: Callable[..., None]


@cache
def loops() -> Loops | None:
    """The compiled functions, or None without numba; the answer is remembered."""
    numba = numba_or_none()
    if numba is None:
        return None
    number, place = numba.float64, numba.int64
    one, two, three, four = number[::1], number[:, ::1], number[:, :, ::1], number[:, :, :, ::1]
    advance = compile_loop(_advance, (three, two, place, two, two, place[::1], one, three))
    simulate = compile_loop(_simulate, (three, two, one, numba.int32[:, ::1], place, three, three, place[::1], four))
    return Loops(advance, simulate)
