"""A fitted monitor as one value that never changes, and its place in a stream as another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from muhat.linalg.blocks import blocks
from muhat.monitor.calibration import Calibration, SimulatedStreams, calibrate
from muhat.monitor.changes import Drift, changed_columns, changed_relations
from muhat.monitor.dependence import FOLDS, Autoregression, stretches
from muhat.monitor.promise import allowance
from muhat.monitor.reference import COMPONENTS, Reference, Views, population
from muhat.monitor.windows import WindowSums
from muhat.types import Array

HISTORY = 1000
"""How many of the last scores are kept for pictures."""


@dataclass(frozen=True, eq=False)
class StreamState:
    """What a monitor knows of a stream.

    Parameters
    ----------
    sums : WindowSums
        Sums over the last rows.
    recent : array of shape (p + longest − 1, d)
        The last rows, the newest last, zeros where there are none; p is the order of the autoregression.
    views : Views
        The last longest − 1 of them as the components see them.
    rows : int
        Rows so far.
    scores : array
        The last scores, at most 1,000.
    result : Drift or None
        The first alarm.
    alarm_rows : array of shape (window, d)
        The rows of its window as the reference sees them; none before an alarm.
    """

    sums: WindowSums
    recent: Array
    views: Views
    rows: int
    scores: Array
    result: Drift | None
    alarm_rows: Array


@dataclass(frozen=True, eq=False)
class MonitorModel:
    """Everything that a monitor knows before the first row of a stream.

    Parameters
    ----------
    names : tuple of str
        The column of each feature.
    reference : Reference
        Rows of the reference, or the residuals of their autoregression.
    autoregression : Autoregression or None
        Where neighbouring rows depend on each other.
    windows : array of int
        Lengths of the windows.
    constants : array of shape (w, c)
        Constants of the statistics.
    calibration : Calibration
        Scale of the scores and thresholds.
    """

    names: tuple[str, ...]
    reference: Reference
    autoregression: Autoregression | None
    windows: NDArray[np.int64]
    constants: Array
    calibration: Calibration

    @property
    def order(self) -> int:
        """Rows at the beginning of a stream that only serve to predict the next."""
        return 0 if self.autoregression is None else self.autoregression.order

    @property
    def components(self) -> tuple[str, ...]:
        """Names of the components."""
        if self.reference.whitens:
            return COMPONENTS
        return tuple(repr(kernel) for kernel in self.reference.plain.kernels)

    def raised(self, allowance: float) -> MonitorModel:
        """The same with higher thresholds."""
        return replace(self, calibration=self.calibration.raised(allowance))

    def start(self) -> StreamState:
        """The state before the first row."""
        longest = int(self.windows[-1])
        sums = WindowSums.empty(self.windows, self.constants, self.reference.paired)
        recent = np.zeros((self.order + longest - 1, self.reference.rows.shape[1]))
        return StreamState(sums, recent, self._views(recent), 0, np.empty(0), None, recent[:0])

    def _views(self, recent: Array) -> Views:
        return self.reference.view(self.seen_as(recent)) if len(recent) > self.order else self.reference.view(recent)

    def seen_as(self, rows: Array) -> Array:
        """Rows after the first p as the reference sees them: themselves, or their residuals."""
        return rows if self.autoregression is None else self.autoregression.residuals(rows)

    def restored(self, state: StreamState) -> StreamState:
        """A state of which only the views are missing."""
        return replace(state, views=self._views(state.recent))

    def take_blocks(self, state: StreamState, rows: Array) -> StreamState:
        """As ``take``, in pieces that fit into the memory; rows after an alarm are ignored."""
        for block in blocks(len(rows), self.reference.block_size(state.sums.longest)):
            if state.result is None:
                state = self.take(state, rows[block])
        return state

    def take(self, state: StreamState, rows: Array) -> StreamState:
        """The state after some rows, in effect one after the other, up to an alarm."""
        filling = min(max(self.order - state.rows, 0), len(rows))
        if filling:  # rows that no prediction can be made for
            recent = np.concatenate([state.recent, rows[:filling]])[filling:]
            scores = np.append(state.scores, np.full(filling, -np.inf))
            state = replace(state, recent=recent, rows=state.rows + filling, scores=scores[-HISTORY:])
            state = self.restored(state)
        return self._take(state, rows[filling:]) if filling < len(rows) else state

    def _take(self, state: StreamState, rows: Array) -> StreamState:
        before, p = state.sums.longest - 1, self.order
        stretch = np.concatenate([state.recent, rows])
        seen = rows if not p else self.seen_as(stretch[len(stretch) - len(rows) - p :])
        new = self.reference.view(seen)
        views = Views(*(np.concatenate(pair) for pair in zip(state.views, new, strict=True)))
        with np.errstate(over="ignore", invalid="ignore"):  # refused with a word
            singles, pairs = self.reference.singles(new), self.reference.pairs(views, state.sums.seen, before)
            total = singles.sum() + pairs.sum()
        if not np.isfinite(total):
            kernel = self.reference.plain.kernels[0]
            raise ValueError(f"{kernel!r} overflows on X; rescale the columns, or drop rows with such values")
        sums, statistics = state.sums.after(pairs, singles)
        scores, largest = self.calibration.scale(statistics)
        thresholds = self.calibration.thresholds(state.sums.seen, len(rows))
        alarms = np.flatnonzero(scores > thresholds)
        taken, result, shown = len(rows), None, rows[:0]
        if len(alarms):
            taken = int(alarms[0]) + 1
            if taken < len(rows):
                sums, _ = state.sums.after(pairs[:taken], singles[:taken])
            place, component = divmod(int(largest[taken - 1]), self.constants.shape[1])
            shown = self.seen_as(stretch[: p + before + taken])[-int(self.windows[place]) :]
            raised = (float(scores[taken - 1]), float(thresholds[taken - 1]))
            result = self.drift(state.rows + taken, component, shown, *raised)
        kept = slice(taken, taken + before)
        return StreamState(
            sums,
            stretch[taken : taken + p + before],
            Views(*(view[kept] for view in views)),
            state.rows + taken,
            np.append(state.scores, scores[:taken])[-HISTORY:],
            result,
            shown,
        )

    def drift(self, row: int, component: int, rows: Array, score: float, threshold: float) -> Drift:
        """What the rows of a window show that raised an alarm."""
        window, name = len(rows), self.components[component]
        # The change may be younger than the window, so columns are compared in that of the shorter windows, too, which
        # shows them best.
        ends = [rows[-int(length) :] for length in self.windows if length <= window]
        shown = max(ends, key=lambda end: changed_columns(self.reference.rows, end, self.names)[0][1])
        columns = changed_columns(self.reference.rows, shown, self.names)
        relations = changed_relations(self.reference, shown, self.names)
        return Drift(row, row - window + 1, window, score, threshold, name, columns, relations)


class SimulationPlan(NamedTuple):
    """How thresholds are found.

    Parameters
    ----------
    run_length : float
        Average number of rows until a false alarm.
    windows : array of int
        Lengths of the windows.
    streams : int
        Simulated streams.
    rng : Generator
        Draws them.
    say : callable
        Is told how far the work has come.
    block_length : float
        Mean number of consecutive rows that are drawn together.
    time : float
        How many rows are worth an independent one.
    """

    run_length: float
    windows: NDArray[np.int64]
    streams: int
    rng: np.random.Generator
    say: Callable[[str], None]
    block_length: float = 1.0
    time: float = 1.0


def fitted_model(
    names: tuple[str, ...], reference: Reference, plan: SimulationPlan, autoregression: Autoregression | None
) -> MonitorModel:
    """A monitor whose thresholds come from simulated streams of the reference.

    Where its rows depend on each other, the metrics of simulated streams leave out stretches of rows in place of single
    ones, and rows are not compared with their neighbours.
    """
    dependent = plan.block_length > 1.0
    folds = stretches(len(reference.rows), FOLDS) if dependent else None
    rows = population(reference, folds, int(3 * plan.time) if dependent else 0)
    constants = reference.window_constants(plan.windows)
    simulated = SimulatedStreams(rows, plan.windows, constants, plan.block_length, plan.streams, plan.rng)
    calibration = calibrate(simulated, plan.run_length, plan.say)
    raised = calibration.raised(allowance(plan.run_length, autoregression is not None))
    return MonitorModel(names, reference, autoregression, plan.windows, constants, raised)
