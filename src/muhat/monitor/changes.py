"""What changed at an alarm: columns by themselves, and their relations to the other columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from muhat.monitor.reference import Reference
from muhat.types import Array

_MOST_ROWS = 1000


@dataclass(frozen=True)
class Drift:
    """Alarm of a monitor: its rows, and the columns and relations that changed.

    Parameters
    ----------
    row : int
        The row of the alarm, counted from 1 since ``fit`` or ``reset``.
    since : int
        The first row of the window that raised it: the stream differs from the reference at least since about then.
    window : int
        How many rows that window has.
    score : float
        Minus the logarithm of a tail probability: the larger, the less like the reference.
    threshold : float
        What the score exceeded.
    component : str
        The statistic that raised it, such as "whitened means" or "larger dispersion".
    columns : tuple of (str, float) pairs
        The columns by themselves, those that changed most first. The number compares the distance of the column's two
        kernel means with its size under chance, which is about 1.
    relations : tuple of (str, str, float) triples
        Columns in their relation to all others, those that changed most first, each with the column that predicts it
        best. The number is that of what is left of the column when the others have predicted it, about 1 by chance.

    See Also
    --------
    muhat.DriftMonitor : The monitor that has it as ``result_``.
    muhat.plotting.DriftDisplay : Draws the score around the alarm.
    muhat.plotting.FunctionDisplay : Draws where a column changed, by ``from_monitor``.

    Examples
    --------
    >>> import numpy as np, muhat as mh
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> monitor = mh.DriftMonitor(run_length=300, random_state=0).fit(X)
    >>> monitor.update(X[:50] + [0.0, 3.0])
    True
    >>> monitor.result_.columns[0][0]
    'x1'
    """

    row: int
    since: int
    window: int
    score: float
    threshold: float
    component: str
    columns: tuple[tuple[str, float], ...]
    relations: tuple[tuple[str, str, float], ...]

    def __str__(self) -> str:
        rows = f"row {self.row:,} differs" if self.window == 1 else f"rows {self.since:,} to {self.row:,} differ"
        return (
            f"drift at row {self.row:,}: {rows} from the reference in {self.component} (score {self.score:.1f}, "
            f"threshold {self.threshold:.1f}); most changed: {self.most_changed()}, with about 1 by chance"
        )

    def most_changed(self, most: int = 3) -> str:
        """The columns that changed most, after the relation that did if that changed more.

        Parameters
        ----------
        most : int, default 3
            How many columns are named.

        Returns
        -------
        str
            Text for a message.
        """
        words = [f"{name} ({number:.1f})" for name, number in self.columns[:most]]
        if self.relations and self.relations[0][2] > self.columns[0][1]:
            name, other, number = self.relations[0]
            words = [f"the relation of {name} to {other} ({number:.1f})", *words[:-1]]
        return ", ".join(words)


def changed_columns(reference: Array, rows: Array, names: Sequence[str]) -> tuple[tuple[str, float], ...]:
    """Columns and how much they changed, the most changed first; a column with several features by the largest.

    The number of a feature is MMD² of the two samples, with a Gaussian kernel of the width of the feature's standard
    deviation, over its expectation without a change, (1/n + 1/L) (1 − mean k): about 1 by chance.

    Parameters
    ----------
    reference : array of shape (n, d)
    rows : array of shape (L, d)
    names : sequence of str
        The column of each feature.

    Examples
    --------
    >>> import numpy as np
    >>> reference = np.column_stack([np.arange(50.0), np.arange(50.0)])
    >>> [name for name, _ in changed_columns(reference, np.array([[90.0, 20.0]]), ["a", "b"])]
    ['a', 'b']
    """
    some = _some_rows(reference)
    largest: dict[str, float] = {}
    for name, x, y in zip(names, some.T, rows.T, strict=True):
        largest[name] = max(largest.get(name, 0.0), _change(x, y))
    return tuple(sorted(largest.items(), key=lambda item: -item[1]))


def changed_relations(reference: Reference, rows: Array, names: Sequence[str]) -> tuple[tuple[str, str, float], ...]:
    """Columns, the column that predicts each best, and how much their relation changed, the most changed first.

    For the metric P = (S + ρI)⁻¹ of standardised columns y, column j of Py is what the other columns leave of column j,
    up to a factor: y_j − Σ_k b_jk y_k with b_jk = −P_jk / P_jj. It is compared as a column by itself is.

    Parameters
    ----------
    reference : Reference
    rows : array of shape (L, d)
    names : sequence of str
        The column of each feature.
    """
    if len(set(names)) < 2:
        return ()
    metric = reference.metric
    P = metric.factor @ metric.factor.T
    old, new = (y @ P for y in (metric.rows, reference.standardised(rows)))
    # Without row i in the fit its residuals are larger by the factor 1 / (1 − yᵢᵀPyᵢ/n), up to terms of order 1/n.
    old = old / np.maximum(1.0 - (old * metric.rows).sum(axis=1, keepdims=True) / len(old), 0.1)
    some = _some_rows(old)
    found: dict[str, tuple[str, float]] = {}
    for j, name in enumerate(names):
        others = [k for k, other in enumerate(names) if other != name]
        partner = names[max(others, key=lambda k: abs(P[j, k]))]
        number = _change(some[:, j], new[:, j])
        if name not in found or number > found[name][1]:
            found[name] = (partner, number)
    triples = [(name, partner, number) for name, (partner, number) in found.items()]
    return tuple(sorted(triples, key=lambda triple: -triple[2]))


def _some_rows(rows: Array) -> Array:
    if len(rows) <= _MOST_ROWS:
        return rows
    return rows[np.random.default_rng(0).choice(len(rows), _MOST_ROWS, replace=False)]


def _change(x: Array, y: Array) -> float:
    with np.errstate(over="ignore"):
        centre = x.mean()
        width = float(np.sqrt(((x - centre) ** 2).mean()))
    if not (np.isfinite(width) and width > 0):
        return 0.0 if (y == x[0]).all() else float(len(x))
    x, y = (np.clip((values - centre) / width, -1e9, 1e9) for values in (x, y))

    def mean_kernel(a: Array, b: Array) -> float:
        return float(np.exp(-0.5 * (a[:, None] - b) ** 2).mean())

    within = mean_kernel(x, x)
    squared = within + mean_kernel(y, y) - 2.0 * mean_kernel(x, y)
    return squared / ((1.0 / len(x) + 1.0 / len(y)) * max(1.0 - within, np.finfo(np.float64).tiny))
