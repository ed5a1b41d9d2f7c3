"""A fitted monitor as a value that never changes, its place in a stream as another, and what an alarm shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from muhat._support.types import Array
from muhat.apps.monitor.autoregression import Autoregression
from muhat.apps.monitor.calibration import Calibration
from muhat.apps.monitor.reference import COMPONENTS, Reference, Views, held
from muhat.apps.monitor.windows import WindowSums
from muhat.linalg.blocks import blocks
from muhat.tables.encoder import MISSING, TableEncoder
from muhat.tables.scales import ColumnScales

HISTORY = 1000
"""How many of the last scores are kept for pictures."""

_SHOWN = 5  # columns, and relations, in a notebook
_FIRST_BLOCK = 32  # rows; twice as many each time, so that little is computed behind an alarm
_MOST_VALUES = 1e8  # kernel values of all columns that an explanation may take
_MOST_ROWS = 1000  # of the reference that columns are compared with


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
    missing : tuple of str
        Columns that changed by their missing values: the window has some, and the reference has none, or another share.

    See Also
    --------
    muhat.DriftMonitor : The monitor that has it as ``result_``.
    muhat.plotting.DriftDisplay : Draws the score around the alarm.
    muhat.plotting.FunctionDisplay : Draws where a column changed, by ``from_monitor``.

    Examples
    --------
    >>> import numpy as np, muhat as mh
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> monitor = mh.DriftMonitor(run_length=300, block_length=1, random_state=0).fit(X)
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
    missing: tuple[str, ...] = ()

    def __str__(self) -> str:
        rows = f"row {self.row:,} differs" if self.window == 1 else f"rows {self.since:,} to {self.row:,} differ"
        return (
            f"drift at row {self.row:,}: {rows} from the reference in {self.component} (score {self.score:.1f}, "
            f"threshold {self.threshold:.1f}); most changed: {self.most_changed()}, with about 1 by chance"
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """A table of what changed most."""
        rows = [(self._in_words(name), number) for name, number in self.columns[:_SHOWN]]
        rows += [(f"relation of {name} to {other}", number) for name, other, number in self.relations[:_SHOWN]]
        cells = "".join(f"<tr><td>{escape(name)}</td><td>{number:.1f}</td></tr>" for name, number in rows)
        table = f"<table><tr><th>what changed most</th><th>change, about 1 by chance</th></tr>{cells}</table>"
        return f"<div><p>{escape(str(self).partition('; most changed')[0])}</p>{table}</div>"

    def _in_words(self, column: str) -> str:
        return f"missing values of {column}" if column in self.missing else column

    def most_changed(self, most: int = 3) -> str:
        """Name the columns that changed most, after the relation that did if that changed more."""
        words = [f"{self._in_words(name)} ({number:.1f})" for name, number in self.columns[:most]]
        if self.relations and self.relations[0][2] > self.columns[0][1]:
            name, other, number = self.relations[0]
            words = [f"the relation of {name} to {other} ({number:.1f})", *words[: most - 1]]
        return ", ".join(words)


class Alarm(NamedTuple):
    """Which statistic exceeded the threshold: its component, the length of its window, and the score."""

    component: int
    window: int
    score: float


@dataclass(frozen=True, eq=False)
class StreamState:
    """What a monitor knows of a stream."""

    sums: WindowSums  # sums over the last rows
    # (longest, d): the last rows, the newest last, zeros where there are none; one more before an autoregression
    recent: Array
    views: Views  # the last longest − 1 of them as the components see them
    scores: Array  # the last scores, at most 1,000
    alarm: Alarm | None = None  # the first alarm, at the newest row

    @property
    def rows(self) -> int:
        """Rows so far."""
        return self.sums.seen


@dataclass(frozen=True, eq=False)
class MonitorModel:
    """Everything that a monitor knows before the first row of a stream."""

    encoder: TableEncoder  # how tables become rows of numbers
    reference: Reference  # rows of the reference, or the residuals of their autoregression
    autoregression: Autoregression | None  # where rows can be predicted from those before
    windows: NDArray[np.int64]  # lengths of the windows
    constants: Array  # (w, c): constants of the statistics
    calibration: Calibration  # scale of the scores, and threshold

    def raised(self, by: float) -> MonitorModel:
        """The same with a higher threshold."""
        return replace(self, calibration=self.calibration.raised(by))

    @property
    def names(self) -> list[str]:
        """The column of each feature."""
        return [f.column if self.encoder.named else f"x{f.column}" for f in self.encoder.features]

    def start(self, seen: int = 0) -> StreamState:
        """The state before the first row, or before a later one where the rows in between are to come again."""
        sums = replace(WindowSums.empty(self.windows, self.constants, self.reference.paired), seen=seen)
        recent = np.zeros((self.order + sums.longest, self.reference.rows.shape[1]))
        return StreamState(sums, recent, self.reference.view(recent[self.order + 1 :]), np.empty(0))

    @property
    def order(self) -> int:
        """Rows before each row that its prediction needs."""
        return int(self.autoregression is not None)

    def compared(self, rows: Array, first: bool) -> Array:
        """Rows, or their residuals given the row before, which then is the first of the array."""
        return rows if self.autoregression is None else self.autoregression.residuals(rows, first)

    def window(self, state: StreamState) -> Array:
        """The rows that raised an alarm, as they are compared with the reference."""
        if state.alarm is None:
            return self.reference.rows[:0]
        length = state.alarm.window
        return self.compared(state.recent[-length - self.order :], state.rows == length)

    def restored(self, seen: int, recent: Array, scores: Array, alarmed: bool) -> StreamState:
        """The state after so many rows, from the last rows and scores."""
        k = min(seen, int(self.windows[-1]))  # rows since which there are sums
        before = replace(self.start(seen - k), recent=np.roll(recent, k, axis=0))
        state, *found = self._advanced(before, recent[len(recent) - k :])
        return replace(state, scores=scores, alarm=self._alarm(*found) if alarmed else None)

    def take(self, state: StreamState, rows: Array) -> StreamState:
        """The state after some rows, in effect one after the other; rows after an alarm are ignored."""
        for block in blocks(len(rows), self.reference.block_size(state.sums.longest)):
            if state.alarm is None:
                state = self._take_block(state, rows[block])
        return state

    def _take_block(self, state: StreamState, rows: Array) -> StreamState:
        """The state after rows of which all values fit into the memory, up to an alarm."""
        after, scores, largest = self._advanced(state, rows)
        alarms, alarm = np.flatnonzero(scores > self.calibration.threshold), None
        if len(alarms):
            taken = int(alarms[0]) + 1
            scores, largest = scores[:taken], largest[:taken]
            after, alarm = self._advanced(state, rows[:taken])[0], self._alarm(scores, largest)
        return replace(after, scores=np.concatenate([state.scores, scores])[-HISTORY:], alarm=alarm)

    def _advanced(self, state: StreamState, rows: Array) -> tuple[StreamState, Array, Any]:
        """The state after some rows but for scores and alarm, their scores, and the statistics that have them."""
        stretch, longest = np.concatenate([state.recent, rows]), state.sums.longest
        new = self.reference.view(self.compared(stretch[longest:], state.rows == 0))
        views = Views(*(np.concatenate(pair) for pair in zip(state.views, new, strict=True)))
        with np.errstate(over="ignore", invalid="ignore"):  # refused with a word
            pairs, singles = self.reference.pairs(views, longest - 1), self.reference.singles(new)
            total = pairs.sum() + singles.sum()
        if not np.isfinite(total):
            kernel = self.reference.plain[0]
            raise ValueError(f"{kernel!r} overflows on X; rescale the columns, or drop rows with such values")
        sums, statistics = state.sums.after(pairs, singles)
        views = Views(*(view[len(rows) :] for view in views))
        after = StreamState(sums, stretch[len(rows) :], views, np.empty(0))
        return after, *self.calibration.scale(statistics[:, 0])

    def _alarm(self, scores: Array, largest: Any) -> Alarm:
        """The alarm of the last row."""
        place, component = divmod(int(largest[-1]), self.constants.shape[1])
        return Alarm(component, int(self.windows[place]), float(scores[-1]))

    def alarms(self, rows: Array, most: int | None = None) -> list[StreamState]:
        """The states at the alarms that a stream raises, with a reset after each; at most the first ones."""
        found: list[StreamState] = []
        while len(rows) and (most is None or len(found) < most):
            state, size = self.start(), _FIRST_BLOCK
            while len(rows) and state.alarm is None:
                before, block = state.rows, rows[:size]
                state, size = self.take(state, block), 2 * size
                rows = rows[state.rows - before :]
            found += [state] if state.alarm is not None else []
        return found

    def first_drift(self, rows: Array) -> Drift | None:
        """What is found at the first alarm of a stream."""
        return next((self.explain(state) for state in self.alarms(rows, 1)), None)

    def explain(self, state: StreamState) -> Drift | None:
        """What the rows of the window show that raised an alarm; None before one."""
        if state.alarm is None:
            return None
        component, window, score = state.alarm
        rows, names = self.window(state), self.names
        # The change may be younger than the window, so columns are compared in that of the shorter windows, too, which
        # shows them best.
        lengths = self.windows[self.windows <= window]
        changes = changed_features(self.reference.rows, rows, lengths)
        best = int(changes.max(axis=1).argmax())
        features = zip(self.encoder.features, names, changes[best].tolist(), strict=True)
        found = [(feature.level == MISSING, name, number) for feature, name, number in features]
        # The first missing values of a column are as large a change as another value of a constant one.
        known = {name for indicator, name, _ in found if indicator}
        found += [
            (True, name, float(len(self.reference.rows)))
            for name in self._missing(state.recent[-window:])
            if name not in known
        ]
        largest: dict[str, tuple[bool, str, float]] = {}
        for triple in sorted(found, key=lambda triple: -triple[2]):
            largest.setdefault(triple[1], triple)  # of a column with several features
        whitens = self.reference.whitens
        return Drift(
            row=state.rows,
            since=state.rows - window + 1,
            window=window,
            score=score,
            threshold=self.calibration.threshold,
            component=COMPONENTS[component] if whitens else repr(self.reference.plain[component]),
            columns=tuple((name, number) for _, name, number in largest.values()),
            relations=changed_relations(self.reference, rows[-int(lengths[best]) :], names),
            missing=tuple(name for indicator, name, _ in largest.values() if indicator),
        )

    def _missing(self, rows: Array) -> list[str]:
        """The columns of which a value is missing in encoded rows."""
        code = self.encoder.transform(np.full((1, len(self.encoder.columns)), np.nan))[0]  # a row without any value
        equal = rows == code
        groups = groupby(enumerate(self.names), key=itemgetter(1))  # the features of a column
        return [name for name, group in groups if equal[:, [place for place, _ in group]].all(axis=1).any()]


def changed_features(reference: Array, rows: Array, lengths: Sequence[int] | NDArray[np.int64]) -> Array:
    """How much each feature changed in the last L rows, for each length L: shape (w, d).

    The number of a feature is MMD² of the two samples, with a Gaussian kernel of the width of the feature's standard
    deviation, over its expectation without a change, (1/n + 1/L) (1 − mean k): about 1 by chance.

    Examples
    --------
    >>> import numpy as np
    >>> reference = np.column_stack([np.arange(50.0), np.arange(50.0)])
    >>> int(changed_features(reference, np.array([[90.0, 20.0]]), [1]).argmax())
    0
    """
    most = min(_MOST_ROWS, int(np.sqrt(_MOST_VALUES / reference.shape[1])))
    if len(reference) > most:
        reference = reference[np.random.default_rng(0).choice(len(reference), most, replace=False)]
    return np.array([_changes(x, y, lengths) for x, y in zip(reference.T, rows.T, strict=True)]).T


def _changes(x: Array, y: Array, lengths: Sequence[int] | NDArray[np.int64]) -> list[float]:
    """The numbers of one feature."""
    if (x == x[0]).all():
        return [0.0 if np.allclose(y[-length:], x[0], 1e-6, 0.0) else float(len(x)) for length in lengths]
    scales = ColumnScales.of(x[:, None])
    x, y = (held(values[:, None], scales)[:, 0] for values in (x, y))
    within, across, inside = (np.exp(-0.5 * (a[:, None] - b) ** 2) for a, b in ((x, x), (x, y), (y, y)))
    level, towards = float(within.mean()), across.mean(axis=0)
    by_chance = max(1.0 - level, np.finfo(np.float64).tiny)
    return [
        float(level + inside[-length:, -length:].mean() - 2.0 * towards[-length:].mean())
        / ((1.0 / len(x) + 1.0 / length) * by_chance)
        for length in lengths
    ]


def changed_relations(reference: Reference, rows: Array, names: Sequence[str]) -> tuple[tuple[str, str, float], ...]:
    """Columns, the column that predicts each best, and how much their relation changed, the most changed first.

    For the metric P = (S + ρI)⁻¹ of standardised columns y, column j of Py is what the other columns leave of column j,
    up to a factor: y_j − Σ_k b_jk y_k with b_jk = −P_jk / P_jj. It is compared as a column by itself is.
    """
    if len(set(names)) < 2:
        return ()
    metric, columns = reference.metric, np.array(names, dtype=object)
    P = metric.factor @ metric.factor.T
    old, new = (y @ P for y in (metric.rows, reference.view(rows).scaled))
    # Without row i in the fit its residuals are larger by the factor 1 / (1 − yᵢᵀPyᵢ/n), up to terms of order 1/n.
    old = old / np.maximum(1.0 - (old * metric.rows).sum(axis=1, keepdims=True) / len(old), 0.1)
    numbers = changed_features(old, new, [len(rows)])[0].tolist()
    partners = columns[np.where(columns[:, None] == columns, -1.0, np.abs(P)).argmax(axis=1)]
    found: dict[str, tuple[str, str, float]] = {}
    for triple in sorted(zip(names, partners, numbers, strict=True), key=lambda triple: -triple[2]):
        found.setdefault(triple[0], triple)  # of a column with several features the largest
    return tuple(found.values())
