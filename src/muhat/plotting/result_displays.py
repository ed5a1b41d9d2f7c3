"""Displays of results: components of a test, scores of a monitor, and distances between groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from muhat._support.types import Array
from muhat.plotting.display import Display

_MAX_BARS = 15  # as many as a picture can name

_MOST_GROUPS = 40  # that are drawn with their names: the largest distances


@dataclass(repr=False)
class ComponentsDisplay(Display):
    """The components of a combined test: the evidence of each by itself, and its share of the combined statistic.

    Bars are −log₁₀ p of each component alone, by the gamma approximation; they are not corrected for each other.

    Parameters
    ----------
    names : list of str
        Names of the components, strongest first.
    evidence : array of shape (m,)
        −log₁₀ p of each component.
    shares : array of shape (m,)
        Share of each component in the combined statistic.
    title : str
        The p-value of the test and its summary.

    See Also
    --------
    FunctionDisplay : The witness function of a test.

    Examples
    --------
    >>> import numpy as np
    >>> import muhat as mh
    >>> X, Y = np.random.default_rng(0).normal(size=(2, 40, 3))
    >>> display = mh.plotting.ComponentsDisplay.from_result(mh.mmd_test(X, 2 * Y, random_state=0))
    >>> bool(display.evidence[0] > 2)
    True
    """

    names: list[str]
    evidence: Array
    shares: Array
    title: str

    @classmethod
    def from_result(cls, result: Any, *, ax: Any = None, **style: Any) -> Self:
        """Draw the components of the result of ``mmd_test`` or ``hsic_test``."""
        if not result.components:
            raise ValueError("this test has one statistic and no components; pass kernel=None for the combined test")
        found = result.components[:_MAX_BARS]
        names = [f.name if f.name == f.group else f"{f.group}: {f.name}" for f in found]
        evidence = np.array([component.evidence for component in found]) / np.log(10.0)
        shares = np.array([component.share for component in found])
        return cls(names, evidence, shares, f"p = {result.pvalue:.3g}: {result.summary}").plot(ax, **style)

    def _draw(self, ax: Any, style: dict[str, Any]) -> None:
        places = np.arange(len(self.names))[::-1]
        bars = ax.barh(places, np.maximum(self.evidence, 0.0), **({"color": "C0"} | style))
        ax.bar_label(bars, [f"{share:.0%}" if share >= 0.005 else "" for share in self.shares], padding=3)
        ax.set_yticks(places, self.names)
        ax.margins(x=0.15)
        ax.set(xlabel="evidence of the component alone, −log₁₀ p (not corrected)", title=self.title)


@dataclass(repr=False)
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
    FunctionDisplay : Where a column changed, by ``from_monitor``.
    muhat.DriftMonitor : The monitor.

    Examples
    --------
    >>> import numpy as np, muhat as mh
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> monitor = mh.DriftMonitor(run_length=300, block_length=1, random_state=0).fit(X)
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
        """Draw the last scores of a fitted ``DriftMonitor``, at most 1,000."""
        check_is_fitted(monitor)
        found = monitor.result_
        alarm, since = (None, None) if found is None else (found.row, found.since)
        rows, scores, thresholds = monitor.recent_scores()
        return cls(rows, scores, thresholds, alarm, since).plot(ax, **style)

    def _draw(self, ax: Any, style: dict[str, Any]) -> None:
        ax.plot(self.rows, self.scores, **({"color": "#0072b2", "linewidth": 1.2, "label": "score"} | style))
        ax.plot(self.rows, self.thresholds, color="#444444", linestyle="--", linewidth=1.0, label="threshold")
        if self.alarm is not None and self.since is not None:
            ax.axvspan(self.since, self.alarm, color="#d55e00", alpha=0.2, linewidth=0)
            ax.plot(self.alarm, self.scores[-1], "o", color="#d55e00", label=f"alarm at row {self.alarm:,}")
        ax.set(xlabel="row", ylabel="score")
        ax.legend(edgecolor="none", framealpha=0.85)


@dataclass(repr=False)
class GroupDistancesDisplay(Display):
    """Distances of groups to a control as dots with intervals, significant ones in red; or all pairs as a heat map.

    The heat map has the groups in the order of a tree (average linkage), and shows the MMD, the root of the distances.

    Parameters
    ----------
    result : GroupDistances
        The distances.

    See Also
    --------
    muhat.group_distances : Makes the distances.

    Examples
    --------
    >>> import numpy as np, muhat as mh
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> result = mh.group_distances(X, np.repeat(["a", "b", "c"], 20), control="a", n_resamples=99)
    >>> display = mh.plotting.GroupDistancesDisplay.from_result(result)
    >>> display.ax_.get_xlabel()
    'squared distance to a'
    """

    result: Any

    @classmethod
    def from_result(cls, result: Any, *, ax: Any = None, **style: Any) -> Self:
        """Draw the result of ``group_distances``."""
        return cls(result).plot(ax, **style)

    def _draw(self, ax: Any, style: dict[str, Any]) -> None:
        order, names = self.result.order, [str(label) for label in self.result.groups]
        if self.result.control is None:
            roots = np.sqrt(self.result.matrix[np.ix_(order, order)])
            image = ax.imshow(roots, **({"cmap": "viridis"} | style))
            ax.figure.colorbar(image, ax=ax, label="MMD")
            if len(order) <= _MOST_GROUPS:
                labels = [names[g] for g in order]
                ax.set_xticks(range(len(order)), labels, rotation=90)
                ax.set_yticks(range(len(order)), labels)
            return
        order = order[:_MOST_GROUPS]
        places = np.arange(len(order))[::-1]
        ax.hlines(places, self.result.low[order], self.result.high[order], color="0.7")
        found = self.result.significant[order]
        for chosen, colour, label in ((found, "C3", "significant"), (~found, "C0", "not significant")):
            if chosen.any():
                ax.scatter(
                    self.result.distance[order][chosen],
                    places[chosen],
                    zorder=2,
                    **({"color": colour, "label": label} | style),
                )
        ax.set_yticks(places, [names[g] for g in order])
        ax.set_xlabel(f"squared distance to {self.result.control}")
        if self.result.adjusted is not None:
            ax.legend(loc="lower right")
