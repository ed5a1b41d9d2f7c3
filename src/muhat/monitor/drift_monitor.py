"""DriftMonitor: an alarm when the rows of a stream stop looking like a reference."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, log, sqrt
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from muhat.elements import Element
from muhat.features.base import BaseFeatures
from muhat.features.sketch import MeanSketch
from muhat.kernels.base import Kernel, check_kernel
from muhat.kernels.mixed import rescaled
from muhat.kernels.radial import Gaussian
from muhat.linalg.blocks import blocks
from muhat.linalg.resources import LockedMixin
from muhat.measures import Atoms
from muhat.monitor.calibration import POPULATION, Calibration, SimulatedStreams, calibrate
from muhat.monitor.changed_columns import changed_columns
from muhat.monitor.dependence import serial_dependence
from muhat.monitor.reference import FeatureReference, Reference, RowReference, population_grams
from muhat.monitor.rows_by_name import ordered_rows
from muhat.monitor.windows import WindowSums
from muhat.parameters import ValueParametersMixin
from muhat.progress import progress
from muhat.tables.scales import ColumnScales, dominant_column
from muhat.types import Array, RandomState
from muhat.validation import (
    check_count,
    check_flag,
    check_number,
    check_rng,
    check_rows,
    unchanged_on_error,
    warn_caller,
)

WINDOWS = (1, 3, 10, 30, 100)
"""Lengths of the windows by default; those beyond a quarter of the reference, or half the run length, are left out."""

BANDWIDTHS = (1.0, 0.25)
"""Bandwidths of the default kernels, in units of the median distance."""

HISTORY = 1000
"""How many of the last scores are kept for pictures."""

FEWEST_ROWS = 10
"""Rows that a reference needs."""

_STRETCH = 10  # blocks that are taken from the reference in one piece


@dataclass(frozen=True)
class Drift:
    """What a monitor found at its alarm.

    Parameters
    ----------
    row : int
        The row of the alarm, counted from 1 since ``fit`` or ``reset``.
    since : int
        The first row of the window that raised it: the stream is unlike the reference at least since about then.
    window : int
        How many rows that window has.
    score : float
        Minus the logarithm of a tail probability: the larger, the more unlike the reference.
    threshold : float
        What the score exceeded.
    columns : tuple of (str, float) pairs
        The columns by themselves, those that changed most first. The number compares the distance of the column's two
        kernel means with its size under chance, which is about 1.
    kernel : Kernel
        The kernel that saw it.
    """

    row: int
    since: int
    window: int
    score: float
    threshold: float
    columns: tuple[tuple[str, float], ...]
    kernel: Kernel

    def __str__(self) -> str:
        names = ", ".join(f"{name} ({number:.1f})" for name, number in self.columns[:3])
        return (
            f"drift at row {self.row:,}: the last {self.window:,} row(s), since row {self.since:,}, are unlike the "
            f"reference (score {self.score:.1f}, threshold {self.threshold:.1f}); most changed: {names}, with about 1 "
            f"by chance"
        )


class DriftMonitor(LockedMixin, ValueParametersMixin, BaseEstimator):
    r"""An alarm when the rows of a stream stop looking like a reference, with a promised run length.

    After each row the monitor compares the last L rows with the reference, for several window lengths L, by the
    unbiased MMD²,

    .. math:: \frac1{n(n-1)} \sum_{i \ne j} k(x_i, x_j) + \frac1{L(L-1)} \sum_{s \ne t} k(y_s, y_t)
              - \frac2{nL} \sum_{i, t} k(x_i, y_t).

    Each is put on the scale of its tail under simulated streams without drift, and the largest is the score. The
    threshold is such that streams without drift run for ``run_length`` rows on average until a false alarm.

    Parameters
    ----------
    run_length : int, default 10_000
        Mean number of rows until a false alarm.
    scale : bool, default False
        Divide each column by its standard deviation in the reference: use it for columns in different units. A constant
        column keeps its unit. Bandwidths then count standard deviations.
    kernel : Kernel or sequence of Kernel, optional
        By default Gaussian kernels whose bandwidths come from the median distance of the reference.
    windows : sequence of int, optional
        Lengths of the windows, by default 1, 3, 10, 30 and 100. Those longer than a quarter of the reference, or than
        half the run length, are left out.
    features : Nystroem or Fourier, optional
        Compare features instead of all rows: for references of more rows than a stream has time for. The kernel is
        theirs.
    block_length : float, default 1
        Mean number of consecutive reference rows that simulated streams take together. Use more than 1 if neighbouring
        rows depend on each other, and pass the reference in the order of time: with blocks the order of its rows
        changes the thresholds. ``fit`` warns of correlated neighbours and suggests a length; in a sketch the rows have
        no order, and it cannot.
    n_simulations : int, default 500
        Simulated streams. The realised run length is off by about 1/√n_simulations on their account.
    random_state : None, int, Generator, SeedSequence or RandomState
        Seed of the simulations. The same seed gives the same thresholds.

    Attributes
    ----------
    kernels_ : tuple of Kernel
        With bandwidths as numbers.
    windows_ : array of int
    threshold_ : float
        Threshold of the score, once the longest window is full.
    rows_seen_ : int
        Rows since ``fit`` or ``reset``.
    result_ : Drift or None
        What was found; None before an alarm.
    witness_ : Element or None
        The mean of the reference minus that of the window of the alarm: high where rows are missing, low where new rows
        are. None before an alarm.
    n_features_in_ : int
    feature_names_in_ : array of str
        Only where the reference has column names.

    References
    ----------
    Cobb, Van Looveren, Klaise (2022). Sequential multivariate change detection with calibrated and memoryless false
    detection rates. AISTATS.

    Examples
    --------
    >>> import numpy as np, muhat as mh
    >>> rng = np.random.default_rng(0)
    >>> reference = rng.normal(size=(500, 3))
    >>> monitor = mh.DriftMonitor(run_length=1000, random_state=0).fit(reference)
    >>> monitor.update(rng.normal(size=(50, 3)))
    False
    >>> monitor.update(rng.normal(size=(50, 3)) + [0.0, 0.0, 2.0])
    True
    >>> monitor.result_.columns[0][0], 50 < monitor.result_.row < 70
    ('x2', True)
    """

    feature_names_in_: Any
    rows_seen_: int
    result_: Drift | None
    witness_: Element | None
    _sums: WindowSums
    _recent: Array
    _alarm_rows: Array | None

    def __init__(
        self,
        run_length: int = 10_000,
        *,
        scale: bool = False,
        kernel: Kernel | Sequence[Kernel] | None = None,
        windows: Sequence[int] | None = None,
        features: BaseFeatures | None = None,
        block_length: float = 1,
        n_simulations: int = 500,
        random_state: RandomState = None,
    ) -> None:
        self.run_length = run_length
        self.scale = scale
        self.kernel = kernel
        self.windows = windows
        self.features = features
        self.block_length = block_length
        self.n_simulations = n_simulations
        self.random_state = random_state

    @unchanged_on_error
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the reference and calibrate the alarm.

        Parameters
        ----------
        X : array of shape (n, d), or MeanSketch
            Rows without drift; independent ones, unless ``block_length`` says otherwise. ``fit`` warns where
            neighbouring rows are correlated, and where the rows are too few for the run length. A sketch needs a
            reservoir of rows, for the simulations.
        y : ignored
        """
        run_length, block_length, streams = self._checked_settings()
        rng = check_rng(self.random_state)
        reference = self._reference_of(X)
        _check_promise(run_length, len(reference.rows) if isinstance(X, MeanSketch) else reference.n, block_length)
        windows = self._window_lengths(reference.n, run_length)
        if not isinstance(X, MeanSketch):  # which keeps no order of its rows
            names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(reference.width)])
            _warn_of_dependence(reference.rows, names, run_length, block_length)
        rows = _population(reference.rows, block_length, rng)
        with progress() as say:
            say("calibrating: the Gram matrix")
            K = population_grams(reference, rows)
            simulated = SimulatedStreams(K, reference.n, windows, block_length, streams, rng)
            calibration = calibrate(simulated, run_length, say)
        self._set(reference, windows, calibration)
        return self

    def _checked_settings(self) -> tuple[float, float, int]:
        """Run length, block length and simulated streams."""
        check_flag("scale", self.scale)
        if self.windows is not None:
            _check_windows(self.windows)
        run_length = check_number("run_length", self.run_length, low=2)
        block_length = check_number("block_length", self.block_length, low=1)
        return run_length, block_length, check_count("n_simulations", self.n_simulations, low=100)

    def _set(self, reference: Reference, windows: Any, calibration: Calibration) -> None:
        """Everything that a fitted monitor consists of."""
        empty = WindowSums.empty(windows, reference.constants())
        with self._lock:
            self.n_features_in_ = reference.width
            self.kernels_, self.windows_ = reference.kernels, windows
            self._reference, self._calibration, self.threshold_ = reference, calibration, calibration.threshold
            self._empty = empty
            self.reset()

    def _reference_of(self, X: Any) -> Reference:
        if isinstance(X, MeanSketch):
            if self.scale:
                raise ValueError("scale=True cannot change the units of a sketch; pass rows, or sketch scaled rows")
            kept = X.state_.kept.rows
            if len(kept) < FEWEST_ROWS:
                raise ValueError(
                    f"the sketch keeps {len(kept)} rows, and simulations need {FEWEST_ROWS} or more; make it "
                    f"with reservoir_size=1000"
                )
            if hasattr(self, "feature_names_in_"):
                del self.feature_names_in_
            if hasattr(X.features, "feature_names_in_"):
                self.feature_names_in_ = X.features.feature_names_in_
            return FeatureReference(X, kept)
        rows = check_rows(X, estimator=self, min_rows=2)
        if len(rows) < FEWEST_ROWS:
            raise ValueError(
                f"X has {len(rows)} rows, n_samples={len(rows)}, and a reference needs {FEWEST_ROWS} or more; pass "
                f"more rows without drift"
            )
        if (rows == rows[0]).all():
            raise ValueError("all rows of X are equal, so any other row is a drift; pass a reference that varies")
        units = ColumnScales.of(rows).scale if self.scale else None
        scaled = rows if units is None else rows / units
        if units is None:
            _warn_of_units(rows, list(getattr(self, "feature_names_in_", range(rows.shape[1]))))
        if self.features is not None:
            if not isinstance(self.features, BaseFeatures):
                raise ValueError(f"features={self.features!r} must be Nystroem or Fourier features, or None")
            return FeatureReference(MeanSketch(clone(self.features).fit(scaled)).update(scaled), rows, units)
        return RowReference(rows, self._kernels_for(scaled), units)

    def _kernels_for(self, rows: Array) -> tuple[Kernel, ...]:
        if self.kernel is None:
            median = Gaussian().resolve(rows).bandwidth
            return tuple(Gaussian(factor * float(median)) for factor in BANDWIDTHS)
        kernels = (self.kernel,) if isinstance(self.kernel, Kernel) else self.kernel
        if not isinstance(kernels, Sequence) or not kernels:
            check_kernel("kernel", kernels)
        for kernel in kernels:
            check_kernel("kernel", kernel)
        return tuple(kernel.resolve(rows) for kernel in kernels)

    def _window_lengths(self, n: int, run_length: float) -> Any:
        given = WINDOWS if self.windows is None else self.windows
        lengths = _check_windows(given)
        kept = lengths[lengths <= max(min(n / 4, run_length / 2), 1)]
        if not len(kept) or (self.windows is not None and len(kept) < len(lengths)):
            raise ValueError(
                f"windows={given!r} must have at most {int(max(min(n / 4, run_length / 2), 1))} rows: a quarter of the "
                f"{n} reference rows, and half the run length"
            )
        return kept.astype(np.int64)

    def update(self, X: Any) -> bool:
        """Take in one row or more, in effect one after the other.

        Rows after an alarm are checked and ignored, until ``reset``. A row that is refused changes nothing. Threads can
        share a monitor: each call takes in its rows without those of another in between.

        Parameters
        ----------
        X : array of shape (T, d) or (d,), data frame, series or dictionary
            Columns with names are put in the order of the reference's.

        Returns
        -------
        bool
            Whether there has been an alarm since ``fit`` or ``reset``.
        """
        check_is_fitted(self, "threshold_")
        with self._lock:
            seen = self.rows_seen_
            held = self._sums, self._recent, seen
            rows = ordered_rows(X, self.n_features_in_, getattr(self, "feature_names_in_", None))
            scores: list[Array] = []
            size = self._reference.block_size(self._sums.longest)
            try:
                for block in blocks(len(rows), size):
                    if self.result_ is not None:
                        break
                    scores.append(self._take(rows[block]))
            except BaseException:
                self._sums, self._recent, self.rows_seen_ = held
                raise
            self._history.extend(np.concatenate(scores) if scores else [])
            return self.drift_detected

    def _take(self, rows: Array) -> Array:
        """Take in a piece of a block, up to an alarm; the scores."""
        longest, reference = self._sums.longest, self._reference
        stretch = np.concatenate([self._recent, rows])
        with np.errstate(over="ignore", invalid="ignore"):  # refused with a word
            cross, values = reference.cross(rows), reference.recent(stretch, self._sums.seen, longest)
        if not np.isfinite(cross.sum() + values.sum()):
            raise ValueError(f"{self.kernels_[0]!r} overflows on X; rescale the columns, or drop rows with such values")
        sums = self._sums.copy()
        statistics = sums.advance(values, cross)
        scores, largest = self._calibration.scale(statistics.reshape(len(rows), -1))
        thresholds = self._calibration.thresholds(self._sums.seen, len(rows))
        alarms = np.flatnonzero(scores > thresholds)
        if len(alarms):
            taken = int(alarms[0]) + 1
            if taken < len(rows):
                sums = self._sums.copy()
                sums.advance(values[:taken], cross[:taken])
            scores, stretch = scores[:taken], stretch[: longest - 1 + taken]
            self._found(sums.seen, stretch, float(scores[-1]), float(thresholds[taken - 1]), int(largest[taken - 1]))
        self._sums, self._recent, self.rows_seen_ = sums, stretch[len(stretch) - (longest - 1) :], sums.seen
        return scores

    def _found(self, row: int, stretch: Array, score: float, threshold: float, component: int) -> None:
        """Note the alarm: what raised it, and which columns changed."""
        place, which = divmod(component, len(self.kernels_))
        window, kernel = int(self.windows_[place]), self.kernels_[which]
        rows, reference = stretch[-window:], self._reference.rows
        columns = changed_columns(reference, rows, self.column_names_)
        self.result_ = Drift(row, row - window + 1, window, score, threshold, columns, kernel)
        self._alarm_rows = rows
        self.witness_ = witness(rescaled(kernel, self._reference.units), reference, rows)

    @property
    def column_names_(self) -> list[str]:
        """Names of the reference's columns; x0, x1, … where it has none."""
        names = getattr(self, "feature_names_in_", None)
        return [f"x{j}" for j in range(self.n_features_in_)] if names is None else [str(name) for name in names]

    @property
    def drift_detected(self) -> bool:
        """Whether there has been an alarm since ``fit`` or ``reset``."""
        check_is_fitted(self, "threshold_")
        return self.result_ is not None

    def reset(self) -> Self:
        """Count from 1 again, with the same thresholds."""
        check_is_fitted(self, "threshold_")
        with self._lock:
            self._sums = self._empty.copy()
            self._recent = np.zeros((self._sums.longest - 1, self.n_features_in_))
            self._history: deque[float] = deque(maxlen=HISTORY)
            self.rows_seen_, self.result_, self.witness_, self._alarm_rows = 0, None, None, None
        return self

    def __getstate__(self) -> dict[str, Any]:
        """The state between two updates; only the scores are kept in an object that changes in place."""
        with self._lock:
            state = super().__getstate__()
            return state | {name: state[name].copy() for name in ("_history",) if name in state}

    def recent_scores(self) -> tuple[Any, Array, Array]:
        """The last rows, at most 1,000, by number, their scores and thresholds: what a picture of the monitor shows."""
        check_is_fitted(self, "threshold_")
        with self._lock:
            scores = np.array(self._history)
            first = self.rows_seen_ - len(scores)
            return first + 1 + np.arange(len(scores)), scores, self._calibration.thresholds(first, len(scores))

    def compared_rows(self) -> tuple[Array, Array]:
        """Rows of the reference, and the rows of the window that raised the alarm; none before an alarm."""
        check_is_fitted(self, "threshold_")
        none = np.empty((0, self.n_features_in_))
        return self._reference.rows, none if self._alarm_rows is None else self._alarm_rows

    def save(self, path: str | Path) -> None:
        """Write the monitor, with its thresholds and where it is in the stream, to one file (``.npz``) without pickle.

        Parameters
        ----------
        path : str or Path
            The file, an ``.npz`` archive.
        """
        from muhat.monitor.saved import save_monitor

        check_is_fitted(self, "threshold_")
        save_monitor(self, path)

    @classmethod
    def load(cls, path: str | Path, kernels: Iterable[type[Kernel]] = ()) -> DriftMonitor:
        """Read what ``save`` wrote; the monitor goes on where it was. Nothing in the file is executed.

        Parameters
        ----------
        path : str or Path
            The file, an ``.npz`` archive.
        kernels : classes of kernels, optional
            Kernels that you wrote yourself, if the file names one: ``kernels=[MyKernel]``.
        """
        from muhat.monitor.saved import load_monitor

        return load_monitor(path, kernels)


def witness(kernel: Kernel, reference: Array, rows: Array) -> Element:
    """The mean element of the reference, minus that of the rows."""
    parts = [(reference, 1.0 / len(reference)), (rows, -1.0 / len(rows))]
    atoms = [Atoms.trusted(points, np.full(len(points), weight)) for points, weight in parts]
    return Element(kernel, *atoms)


def _check_windows(windows: Any) -> Any:
    """The lengths in growing order, each once, or a ValueError."""
    if not isinstance(windows, Sequence | np.ndarray) or isinstance(windows, str) or len(windows) == 0:
        raise ValueError(f"windows={windows!r} must be a list of window lengths, such as [1, 10, 100]")
    return np.unique([check_count("windows", length) for length in windows])


def _warn_of_units(rows: Array, names: list[Any]) -> None:
    """Warn where one column makes up nearly all of the distances between rows."""
    found = dominant_column(rows)
    if found is not None:
        others = [str(name) for j, name in enumerate(names) if j != found[0]]
        shown = ", ".join(others[:3]) + (f" and {len(others) - 3} more" if len(others) > 3 else "")
        warn_caller(
            f"column {names[found[0]]} makes up {found[1]:.1%} of the squared distances between rows, so that changes "
            f"of {shown} are hardly seen; pass scale=True, or divide the columns by numbers of your own",
        )


SAFE_ROWS = 10.0
"""Rows that one reference row can promise: at twice as many, 50 normal rows kept only 58 per cent of the promise."""

FEWEST_KEPT = 0.75
"""Share of the promised run length below which a warning says what to expect."""

COVERED_TIMES, SUGGESTED_TIMES = 2.0, 5.0
"""Block lengths, in integrated autocorrelation times τ, that account for the dependence, and that are suggested.

For autoregressions of order 1 and blocks of mean length b, the variance of a mean of simulated rows is too small by the
share 2ρ/((1 − ρ²) b), about τ/2b: a tenth of it at 5 τ. With 3,000 rows, 500 promised and correlations of 0.5 and 0.9,
the run length was 33 and 7 without blocks, 244 and 231 at 2 τ, 279 and 217 at 5 τ (``python benchmarks/monitor.py
block_lengths``).
"""


def kept_share(rows: float, run_length: float) -> float:
    """Share of the promised run length that references of so many independent rows keep, on average.

    The formula n / (n + 5 log R) was fitted to simulated references of normal and heavy-tailed rows, with 20 to 200
    rows and promises from 10 to 1,000 (``python benchmarks/monitor.py few_rows``).
    """
    return rows / (rows + 5.0 * log(run_length))


def _warn_of_dependence(rows: Array, names: Sequence[str], run_length: float, block_length: float) -> None:
    """Warn where neighbouring rows depend on each other for longer than the blocks account for."""
    found = serial_dependence(rows)
    if found is None or block_length >= COVERED_TIMES * found.rows:
        return
    length = ceil(SUGGESTED_TIMES * found.rows)
    needed = ceil(length * sqrt(run_length))
    more = f", which needs {needed:,} reference rows or more" if needed > len(rows) else ""
    warn_caller(
        f"neighbouring rows of the reference are correlated, by {found.correlation:.2f} in column "
        f"{names[found.column]}, so that false alarms come more often than once in {run_length:,.0f} rows. If the rows "
        f"are in the order of time, pass block_length={length}{more}: about half of the run length is kept then. If "
        f"their order means nothing, shuffle them."
    )


def _check_promise(run_length: float, rows: int, block_length: float) -> None:
    """Refuse what so few rows cannot promise, and warn where the realised run length will be short or vary much."""
    independent = rows / block_length
    most, safe = independent**2, SAFE_ROWS * independent
    in_blocks = f" in blocks of {block_length:g}" if block_length > 1 else ""
    if run_length > most:
        raise ValueError(
            f"run_length={run_length:,.0f} cannot be promised from {rows:,} reference rows{in_blocks}; pass more rows, "
            f"or run_length={max(int(most), 2):,} at most"
        )
    kept = kept_share(rows, run_length)
    if run_length > safe or kept < FEWEST_KEPT:
        fewest = rows * (1.0 / kept - 1.0) * FEWEST_KEPT / (1.0 - FEWEST_KEPT)  # of which FEWEST_KEPT is kept
        expected = "" if block_length > 1 else f"expect a false alarm once in about {kept * run_length:,.0f} rows, and "
        enough = ceil(max(run_length * block_length / SAFE_ROWS, fewest))
        warn_caller(
            f"run_length={run_length:,.0f} is long for {rows:,} reference rows{in_blocks}: {expected}much depends on "
            f"which rows they are. Pass {enough:,} rows or more, or a shorter run_length.",
        )


def _population(rows: Array, block_length: float, rng: np.random.Generator) -> Array:
    """The rows that simulated streams are drawn from: all, or this many in stretches of consecutive rows."""
    if len(rows) <= POPULATION:
        return rows
    stretch = 1 if block_length == 1 else min(int(_STRETCH * block_length), POPULATION)
    starts = np.sort(rng.choice(len(rows) // stretch, POPULATION // stretch, replace=False)) * stretch
    return rows[(starts[:, None] + np.arange(stretch)).ravel()]
