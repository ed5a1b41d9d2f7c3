"""The promise, tested on the reference in its order: each sixth as a stream of a monitor of the other five.

Thresholds are calibrated as for independent rows, or for independent residuals of an autoregression. Real rows depend
on each other in more ways, over days and seasons, and no model of that is assumed: what alarms the six streams raise,
streams of the same kind will raise. Where there are more than promised, thresholds are raised until there are not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from math import log

import numpy as np
from scipy.stats import chi2, poisson

from muhat._support.types import Array
from muhat.apps.monitor.autoregression import stretches
from muhat.apps.monitor.stream import MonitorModel

SEGMENTS = 6
"""Five sixths of a reference are nearly as many rows as all, and a cycle of a year still leaves segments of months."""

FACTORS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1e3, 3e3, 1e4, 3e4)
"""Multiples of the run length that thresholds are calibrated for, one after another, until the backtest holds. Hourly
weather needed up to 10,000 (``benchmarks/monitor.py series``)."""

FEWEST_ALARMS = 5
"""Alarms that must be expected of a run length for a backtest to tell it from half of it."""

_EXPECTED = 10  # alarms that are expected at the run length at which dependence is looked for
_SHORTEST = 50.0  # rows of that run length: thresholds of shorter ones are those of the first rows after a reset
_CHANCE, _CHANCE_OF_REFUSAL = 0.95, 0.99  # more alarms than this quantile of the Poisson distribution are not chance


@dataclass(frozen=True)
class Backtest:
    """False alarms of a monitor on its own reference, in the order of its rows.

    Parameters
    ----------
    rows : int
        Rows of the reference, each of which was a row of a stream.
    run_length : float
        Run length that is vouched for: the one that was asked for, or a fifth of the rows if that is less.
    alarms : int
        Alarms at that run length.
    factor : float
        The multiple of the run length that thresholds are calibrated for.

    See Also
    --------
    muhat.DriftMonitor : Has it as ``backtest_``.

    Examples
    --------
    >>> import numpy as np, muhat as mh
    >>> rows = np.random.default_rng(0).normal(size=(500, 2))
    >>> tested = mh.DriftMonitor(run_length=100, random_state=0).fit(rows).backtest_
    >>> tested.rows, tested.run_length, tested.factor
    (500, 100.0, 1.0)
    """

    rows: int
    run_length: float
    alarms: int
    factor: float

    @property
    def interval(self) -> tuple[float, float]:
        """A 90 % interval of the run length: Garwood's for the mean of a Poisson number of alarms."""
        low = 2.0 * self.rows / float(chi2.ppf(0.95, 2 * self.alarms + 2))
        high = 2.0 * self.rows / float(chi2.ppf(0.05, 2 * self.alarms)) if self.alarms else float("inf")
        return low, high


def backtest(rows: Array, run_length: float, calibrated: Callable[[Array, float], MonitorModel]) -> Backtest:
    """Run each sixth of the rows past a monitor of the others, and find thresholds under which the promise holds."""
    n = len(rows)
    level, vouched = max(n / _EXPECTED, _SHORTEST), min(run_length, n / FEWEST_ALARMS)
    streams = []
    for segment in stretches(n, SEGMENTS):
        streams.append((calibrated(np.delete(rows, segment, axis=0), level), rows[segment]))

    def alarms(length: float, factor: float = 1.0) -> int:
        raised = log(factor * length / level)  # scores are logarithms of run lengths
        return sum(len(model.raised(raised).alarms(stream)) for model, stream in streams)

    # Short promises are looked at with ten alarms, so that dependence shows; long ones also as they are.
    checked = {length: alarms(length) for length in {min(run_length, level), vouched, run_length}}
    chance = _CHANCE if run_length == vouched else _CHANCE_OF_REFUSAL
    if all(found <= poisson.ppf(chance, n / length) for length, found in checked.items()):
        return Backtest(n, vouched, checked[vouched], FACTORS[0])
    if run_length == vouched:
        for factor in FACTORS[1:]:
            if (found := alarms(run_length, factor)) <= n / run_length:
                return Backtest(n, vouched, found, factor)
    worst = max(checked, key=lambda length: checked[length] * length)
    raise ValueError(_refusal(n, run_length, (checked[worst], worst), alarms, _at_fault(streams)))


def _at_fault(streams: list[tuple[MonitorModel, Array]]) -> str:
    """The column that changed most at the first alarm of most segments."""
    names = [drift.columns[0][0] for model, stream in streams if (drift := model.first_drift(stream)) is not None]
    return Counter(names).most_common(1)[0][0] if names else ""


def _refusal(
    n: int, run_length: float, worst: tuple[int, float], alarms: Callable[[float, float], int], column: str
) -> str:
    """What cannot be promised and why, and what can."""
    found, checked = worst
    length = min(run_length, n / FEWEST_ALARMS)
    while length >= 2 and alarms(length, FACTORS[-1]) > n / length:
        length *= 0.7
    where = f", most of all in column {column}" if column else ""
    why = (
        f"run_length={run_length:,.0f} cannot be promised: each sixth of the {n:,} reference rows was a stream of the "
        f"others, with {found} false alarms where {n / checked:.1f} are promised at {checked:,.0f} rows, so rows "
        f"depend on each other in time{where}"
    )
    shuffle = "block_length=1 if the order of the rows means nothing"
    if length < 2:
        return f"{why}. No run length holds: take trends and seasons out, leave that column out, or pass {shuffle}"
    more = f", {FEWEST_ALARMS * run_length:,.0f} rows or more" if run_length > n / FEWEST_ALARMS else ""
    return f"{why}; pass run_length={int(length):,} at most{more}, or {shuffle}"
