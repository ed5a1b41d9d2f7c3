"""The promise, tested on the reference in its order: each sixth as a stream of a monitor of the other five.

Thresholds are calibrated as for independent rows. Real rows depend on each other, from row to row, over days and over
seasons, and no model of that is assumed: what alarms the six streams raise, streams of the same kind will raise. Where
there are more than promised, thresholds are raised until there are not.
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
from muhat.apps.monitor.calibration import longest_promise
from muhat.apps.monitor.stream import MonitorModel

SEGMENTS = 6
"""Five sixths of a reference are nearly as many rows as all, and a cycle of a year still leaves segments of months."""

FACTORS = tuple(step * 10.0**decade for decade in range(6) for step in (1.0, 2.0, 5.0))
"""Multiples of the run length that thresholds are calibrated for, one after another, until the backtest holds."""

KEPT_BACK = 0.5
"""Where rows depend on each other, the backtest may raise this share of the alarms that are promised: alarms of seasons
and storms come in clusters, so that other stretches of one series have more or fewer of them than chance explains
(``benchmarks/monitor.py series``)."""

FEWEST_ALARMS = 5
"""Alarms that must be expected of a run length for a backtest to tell it from half of it."""

_EXPECTED = 10  # alarms that are expected at the run length at which dependence is looked for
_SHORTEST = 50.0  # rows of that run length: shorter ones hang on the first rows after a reset
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


class _Trial(NamedTuple):
    """Monitors of five sixths, each with its stream."""

    level: float  # the run length that they are calibrated for
    streams: list[tuple[MonitorModel, Array]]

    def alarms(self, length: float, factor: float = 1.0) -> int:
        """Alarms with thresholds of independent rows for a multiple of a run length; scores are their logarithms."""
        raised = log(factor * length / self.level)
        return sum(len(model.raised(raised).alarms(stream)) for model, stream in self.streams)

    def worst_column(self) -> str:
        """The column that changed most at the first alarm of most segments, or that the row before predicts best."""
        drifts = (model.first_drift(stream) for model, stream in self.streams)
        names = [drift.columns[0][0] for drift in drifts if drift is not None]
        fitted = ((model.names, model.autoregression) for model, _ in self.streams)
        names += [columns[int(found.spread.argmin())] for columns, found in fitted if found is not None]
        return f", most of all in column {Counter(names).most_common(1)[0][0]}" if names else ""


def backtest(rows: Array, run_length: float, calibrated: Callable[[Array, float, float], MonitorModel]) -> Backtest:
    """Run each sixth of the rows past a monitor of the others, and find thresholds under which the promise holds.

    ``calibrated(part, level, promised)`` is a monitor of some rows with the windows of a promise, and thresholds for
    the run length ``level``. Where the promise does not hold, the error names one that was found to hold.
    """
    n, longest = len(rows), longest_promise(len(rows))
    found, why = _tried(rows, min(run_length, longest), calibrated)
    if found is not None and run_length <= longest:
        return found
    offer = longest if found is not None else min(0.7 * run_length, n / FEWEST_ALARMS)
    while found is None and offer >= 2:
        found, _ = _tried(rows, int(offer), calibrated)
        offer *= 1.0 if found is not None else 0.7
    remedies = [f"run_length={int(offer):,}, which holds on them"] if found is not None else []
    remedies += ["block_length=1" + (f" and run_length={longest:,}" if run_length > longest else "")]
    raise ValueError(
        f"run_length={run_length:,.0f} cannot be promised from {n:,} reference rows{why}; pass "
        f"{', or '.join(remedies)} if the order of the rows means nothing"
    )


def _tried(
    rows: Array, run_length: float, calibrated: Callable[[Array, float, float], MonitorModel]
) -> tuple[Backtest | None, str]:
    """A backtest that holds, or why there is none."""
    n = len(rows)
    level, vouched = max(n / _EXPECTED, _SHORTEST), min(run_length, n / FEWEST_ALARMS)
    segments = np.array_split(np.arange(n), SEGMENTS)
    trial = _Trial(level, [(calibrated(np.delete(rows, s, axis=0), level, run_length), rows[s]) for s in segments])
    # Short promises are looked at with ten alarms, so that dependence shows; long ones also as they are.
    checked = {length: trial.alarms(length) for length in {min(run_length, level), vouched, run_length}}
    chance = _CHANCE if run_length == vouched else _CHANCE_OF_REFUSAL
    dependent = any(model.order for model, _ in trial.streams)
    if not dependent and all(found <= poisson.ppf(chance, n / length) for length, found in checked.items()):
        return Backtest(n, vouched, checked[vouched], FACTORS[0]), ""
    if run_length == vouched:
        for factor in FACTORS:
            if (found := trial.alarms(run_length, factor)) <= KEPT_BACK * n / run_length:
                return Backtest(n, vouched, found, factor), ""
    worst = max(checked, key=lambda length: checked[length] * length)
    why = f", which depend on each other in time{trial.worst_column()}"
    if checked[worst] > n / worst:
        why += (
            f": as streams of monitors of the others, their sixths raised {checked[worst]:,} alarms where "
            f"{n / worst:.1f} are promised at {worst:,.0f} rows"
        )
    return None, why
