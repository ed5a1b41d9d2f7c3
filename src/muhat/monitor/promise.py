r"""What a reference can promise: refusals, and the allowance for the error of a reference of few rows.

Simulated streams consist of reference rows, so that they know no values beyond those of the reference. What that costs
is small with many rows, and is made up for by an allowance on the thresholds. With few rows the reference tells its own
shortfall (an iterated smoothed bootstrap): pseudo-references are drawn from a smoothed version of it, each is
calibrated as the reference itself is, and streams of the smoothed version run on it. The allowance is what makes their
mean run length as promised.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, sqrt
from typing import Any

import numpy as np

from muhat.types import Array

FEW_ROWS = 200
"""Independent rows below which the allowance comes from the iterated bootstrap."""

FEWEST_ROWS = 20
"""Independent rows that a reference in the order of time needs."""

MOST_FACTOR = 10.0
"""n independent rows promise at most n²/10 rows."""

_REFERENCES, _STREAMS = 8, 8
_MOST_RUNS = 2.0  # promised run lengths after which a stream is given up
_LARGEST = 12.0  # of an allowance


def most_promised(rows: int, time: float) -> int:
    """The longest run length that reference rows can promise, of which ``time`` are worth an independent one.

    n independent rows promise n²/10 rows. Where rows depend on each other for longer than an autoregression explains,
    rows that are worth n independent ones promise n: beyond that about half of the promise was kept on hourly weather.
    """
    independent = rows / time
    return max(int(independent**2 / MOST_FACTOR if time <= 1.0 else independent), 2)


def check_promise(run_length: float, rows: int, time: float) -> None:
    """Refuse what so few rows cannot promise.

    Parameters
    ----------
    run_length : float
    rows : int
        Reference rows.
    time : float
        Autocorrelation time: how many rows are worth an independent one.
    """
    if time > 1.0 and rows / time < FEWEST_ROWS:
        raise ValueError(
            f"run_length={run_length:,.0f} cannot be promised from {rows:,} reference rows, which depend on each other "
            f"for about {time:,.0f} rows; pass {ceil(FEWEST_ROWS * time):,} rows or more, or block_length=1 if their "
            f"order means nothing"
        )
    most = most_promised(rows, time)
    if run_length > most:
        worth = f" that are worth {rows / time:,.0f} independent ones" if time > 1.0 else ""
        enough = ceil(sqrt(MOST_FACTOR * run_length) if time <= 1.0 else run_length * time)
        raise ValueError(
            f"run_length={run_length:,.0f} cannot be promised from {rows:,} reference rows{worth}; pass {enough:,} "
            f"rows or more, or run_length={most:,} at most"
        )


ALLOWANCE = 90.0
"""What is added to thresholds of a reference of many rows, times its independent rows n.

Without it, references of 200, 600 and 1,000 normal and heavy-tailed rows kept about 65, 85 and 95 per cent of their
promises; a higher threshold by 90/n raises the run length by about the factor exp(90/n).
"""


def bootstrapped_allowance(
    rows: Array, run_length: float, rng: np.random.Generator, calibrated: Callable[[Array], RunLengths]
) -> float:
    """The allowance at which streams of a smoothed reference have the promised run length.

    Parameters
    ----------
    rows : array of shape (n, d)
    run_length : float
    rng : Generator
    calibrated : callable
        Makes of pseudo-reference rows a function that takes a stream of rows and gives its excess over the thresholds.
    """
    paths = []
    for _ in range(_REFERENCES):
        excess = calibrated(smoothed(rows, len(rows), rng))
        paths += [_records(excess, rows, run_length, rng) for _ in range(_STREAMS)]
    return _allowance(paths, run_length)


RunLengths = Callable[[Array], Array]


def _records(excess: RunLengths, rows: Array, run_length: float, rng: np.random.Generator) -> tuple[Any, Array]:
    """Rows at which a stream of the smoothed reference reached new largest excesses, and these."""
    stream = smoothed(rows, ceil(_MOST_RUNS * run_length), rng)
    running = np.maximum.accumulate(excess(stream))
    new = np.flatnonzero(np.diff(running, prepend=-np.inf) > 0.0)
    return new + 1, running[new]


def _allowance(paths: list[tuple[Any, Array]], run_length: float) -> float:
    """The smallest allowance of at least 0 with which rows over alarms reach the run length."""
    longest = ceil(_MOST_RUNS * run_length)

    def mean_run(allowance: float) -> float:
        runs = [next((int(t) for t, e in zip(*path, strict=True) if e > allowance), None) for path in paths]
        alarms = sum(run is not None for run in runs)
        return sum(longest if run is None else run for run in runs) / max(alarms, 1)

    low, high = 0.0, _LARGEST
    if mean_run(low) >= run_length:
        return low
    for _ in range(30):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if mean_run(middle) >= run_length else (middle, high)
    return high


def smoothed(rows: Array, size: int, rng: np.random.Generator) -> Array:
    """Rows drawn with replacement, plus normal noise of the shape of their covariance (Silverman's width).

    Columns of few values, such as categories and counts, get no noise.
    """
    n, d = rows.shape
    width = (4.0 / ((d + 2.0) * n)) ** (1.0 / (d + 4.0))
    drawn = rows[rng.integers(0, n, size)]
    centred = rows - rows.mean(axis=0)
    noise = rng.normal(size=(size, n)) @ centred / sqrt(n)
    distinct = np.array([len(np.unique(column)) for column in rows.T])
    return np.where(distinct > n / 2, drawn + width * noise, drawn)
