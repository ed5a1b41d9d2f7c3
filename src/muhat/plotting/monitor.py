"""Displays of a monitor: its score over time, and what changed along a column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from muhat.linalg.blocks import random_rows
from muhat.plotting.display import MARGIN, POINTS, Display, styled
from muhat.types import Array


@dataclass
class DriftDisplay(Display):
    """Score and threshold of a monitor over its last rows, with the alarm.

    Parameters
    ----------
    rows : array of shape (m,)
        Numbers of the rows.
    scores : array of shape (m,)
        Score after each row.
    thresholds : array of shape (m,)
        What the score must not exceed.
    alarm : int or None
        Row of the alarm.
    since : int or None
        First row of the window that raised it.

    See Also
    --------
    ColumnWitnessDisplay : Where a column changed.
    muhat.DriftMonitor : The monitor.

    Examples
    --------
    >>> import numpy as np, muhat as mh
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> monitor = mh.DriftMonitor(run_length=300, random_state=0).fit(X)
    >>> monitor.update(X[:50] + 3.0)
    True
    >>> display = mh.plotting.DriftDisplay.from_monitor(monitor)
    """

    rows: Any
    scores: Array
    thresholds: Array
    alarm: int | None = None
    since: int | None = None

    @classmethod
    def from_monitor(cls, monitor: Any, *, ax: Any = None, **style: Any) -> Self:
        """Draw the last scores of a fitted ``DriftMonitor``, at most 1,000.

        Parameters
        ----------
        monitor : DriftMonitor
            Has seen some rows.
        ax : matplotlib axes, optional
            Default: those of a new figure.
        **style
            Options of the line of scores.
        """
        check_is_fitted(monitor)
        found = monitor.result_
        alarm, since = (None, None) if found is None else (found.row, found.since)
        rows, scores, thresholds = monitor.recent_scores()
        return cls(rows, scores, thresholds, alarm, since).plot(ax, **style)

    def _draw(self, ax: Any, style: dict[str, Any]) -> None:
        ax.plot(self.rows, self.scores, **styled({"color": "#0072b2", "linewidth": 1.2, "label": "score"}, style))
        ax.plot(self.rows, self.thresholds, color="#444444", linestyle="--", linewidth=1.0, label="threshold")
        if self.alarm is not None and self.since is not None:
            ax.axvspan(self.since, self.alarm, color="#d55e00", alpha=0.2, linewidth=0)
            ax.plot(self.alarm, self.scores[-1], "o", color="#d55e00", label=f"alarm at row {self.alarm:,}")
        ax.set(xlabel="row", ylabel="score")
        ax.legend(edgecolor="none", framealpha=0.85)


@dataclass
class ColumnWitnessDisplay(Display):
    """The witness of an alarm along one column: high where the reference has more rows, low where the new rows are.

    The other columns are averaged over the rows of the reference.

    Parameters
    ----------
    values : array of shape (m,)
        Values of the column.
    witness : array of shape (m,)
        Mean of the witness over the reference, with the column set to each value.
    reference, new : array
        The column in the reference, and in the window of the alarm.
    name : str
        Of the column.

    See Also
    --------
    DriftDisplay : The score of the monitor over time.
    muhat.DriftMonitor : The monitor.

    Examples
    --------
    >>> import numpy as np, muhat as mh
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> monitor = mh.DriftMonitor(run_length=300, random_state=0).fit(X)
    >>> monitor.update(X[:50] + [0.0, 3.0])
    True
    >>> display = mh.plotting.ColumnWitnessDisplay.from_monitor(monitor, "x1")
    """

    values: Array
    witness: Array
    reference: Array
    new: Array
    name: str

    @classmethod
    def from_monitor(cls, monitor: Any, column: str | None = None, *, ax: Any = None, **style: Any) -> Self:
        """Draw the witness along a column, by default the one that changed most.

        Parameters
        ----------
        monitor : DriftMonitor
            Has raised an alarm.
        column : str, optional
            Name of the column; ``x0``, ``x1``, … where the reference has no names.
        ax : matplotlib axes, optional
            Default: those of a new figure.
        **style
            Options of the line of the witness.
        """
        check_is_fitted(monitor)
        if monitor.result_ is None:
            raise ValueError("the monitor has raised no alarm, so there is no witness; draw DriftDisplay instead")
        names = monitor.column_names_
        column = monitor.result_.columns[0][0] if column is None else column
        if column not in names:
            raise ValueError(f"column={column!r} must be one of the columns of the reference: {names}")
        place = names.index(column)
        reference, new = monitor.compared_rows()
        points = np.tile(random_rows(reference, _MOST_ROWS, np.random.default_rng(0)), (_VALUES, 1))
        both = np.concatenate([reference[:, place], new[:, place]])
        margin = MARGIN * (both.max() - both.min() or 1.0)
        values = np.linspace(both.min() - margin, both.max() + margin, _VALUES)
        points[:, place] = np.repeat(values, len(points) // _VALUES)
        witness = monitor.witness_(points).reshape(_VALUES, -1).mean(axis=1)
        return cls(values, witness, reference[:, place], new[:, place], column).plot(ax, **style)

    def _draw(self, ax: Any, style: dict[str, Any]) -> None:
        ax.plot(self.values, self.witness, **styled({"color": "#0072b2", "label": "witness"}, style))
        ax.axhline(0, color="0.5", linewidth=0.8)
        low, high = ax.get_ylim()
        for rows, height, colour, label in (
            (self.reference, high, "#444444", "reference"),
            (self.new, low, "#d55e00", "window of the alarm"),
        ):
            ax.plot(rows, np.full(len(rows), height), "|", color=colour, markersize=10, alpha=0.6, label=label)
        ax.set(xlabel=self.name, ylabel="witness")
        ax.legend(edgecolor="none", framealpha=0.85)


_VALUES = POINTS // 2
_MOST_ROWS = 200
