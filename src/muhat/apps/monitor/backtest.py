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
from typing import NamedTuple

import numpy as np
from scipy.stats import chi2, poisson

from muhat._support.types import Array
from muhat.apps.monitor.autoregression import stretches
from muhat.apps.monitor.calibration import longest_promise
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


def backtest(rows: Array, run_length: float, calibrated: Callable[[Array, float, float], MonitorModel]) -> Backtest:
    """Run each sixth of the rows past a monitor of the others, and find thresholds under which the promise holds.

    ``calibrated(part, level, promised)`` is a monitor of some rows with the windows of a promise, and thresholds for
    the run length ``level``. Where the promise does not hold, the error names the longest one that was found to hold.
    """
    n, most = len(rows), len(rows) / FEWEST_ALARMS
    if run_length > longest_promise(n):
        why, offer = f" from {n:,} reference rows", most
    else:
        found, trial = _tried(rows, run_length, calibrated)
        if found is not None:
            return found
        why, offer = trial.complaint(), min(0.7 * run_length, most)
    while offer >= 2 and _tried(rows, int(offer), calibrated)[0] is None:
        offer *= 0.7
    shuffle = "block_length=1 if the order of the rows means nothing"
    if offer < 2:
        remedy = f"No run length holds: take trends and seasons out, leave that column out, or pass {shuffle}"
        raise ValueError(f"run_length={run_length:,.0f} cannot be promised{why}. {remedy}")
    more = f", {FEWEST_ALARMS * run_length:,.0f} rows or more" if run_length > most else ""
    raise ValueError(
        f"run_length={run_length:,.0f} cannot be promised{why}; pass run_length={int(offer):,} at most{more}, or "
        f"{shuffle}"
    )


class _Trial(NamedTuple):
    """Monitors of five sixths, each with its stream, and the run length that was kept least."""

    level: float
    streams: list[tuple[MonitorModel, Array]]
    alarms: int = 0
    checked: float = 1.0

    def count(self, length: float, factor: float = 1.0) -> int:
        """Alarms with thresholds of independent rows for a multiple of a run length; scores are their logarithms."""
        raised = log(factor * length / self.level)
        return sum(len(model.raised(raised).alarms(stream)) for model, stream in self.streams)

    def complaint(self) -> str:
        """What is wrong, and the column that changed most at the first alarm of most segments."""
        drifts = (model.first_drift(stream) for model, stream in self.streams)
        names = Counter(drift.columns[0][0] for drift in drifts if drift is not None)
        n = sum(len(stream) for _, stream in self.streams)
        return (
            f": each sixth of the {n:,} reference rows was a stream of the others, with {self.alarms} false alarms "
            f"where {n / self.checked:.1f} are promised at {self.checked:,.0f} rows, so rows depend on each other in "
            "time" + (f", most of all in column {names.most_common(1)[0][0]}" if names else "")
        )


def _tried(rows: Array, run_length: float, calibrated: Callable[..., MonitorModel]) -> tuple[Backtest | None, _Trial]:
    """A backtest that holds, if any, and its monitors."""
    n = len(rows)
    level, vouched = max(n / _EXPECTED, _SHORTEST), min(run_length, n / FEWEST_ALARMS)
    parts = [(np.delete(rows, segment, axis=0), rows[segment]) for segment in stretches(n, SEGMENTS)]
    trial = _Trial(level, [(calibrated(others, level, run_length), stream) for others, stream in parts])
    # Short promises are looked at with ten alarms, so that dependence shows; long ones also as they are.
    checked = {length: trial.count(length) for length in {min(run_length, level), vouched, run_length}}
    chance = _CHANCE if run_length == vouched else _CHANCE_OF_REFUSAL
    if all(found <= poisson.ppf(chance, n / length) for length, found in checked.items()):
        return Backtest(n, vouched, checked[vouched], FACTORS[0]), trial
    if run_length == vouched:
        for factor in FACTORS[1:]:
            if (found := trial.count(run_length, factor)) <= n / run_length:
                return Backtest(n, vouched, found, factor), trial
    worst = max(checked, key=lambda length: checked[length] * length)
    return None, trial._replace(alarms=checked[worst], checked=worst)
