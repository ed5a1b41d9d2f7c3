"""DriftMonitor: an alarm when the rows of a stream stop looking like a reference, with a promised run length."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import ceil, log, sqrt
from pathlib import Path
from typing import Any, Self

import numpy as np
from scipy.stats import spearmanr
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from muhat._support.parameters import ValueParametersMixin
from muhat._support.progress import progress
from muhat._support.types import Array, RandomState
from muhat._support.validation import (
    check_count,
    check_number,
    check_rng,
    check_rows,
    unchanged_on_error,
    warn_caller,
)
from muhat.apps.monitor.autoregression import autoregression
from muhat.apps.monitor.backtest import Backtest, backtest
from muhat.apps.monitor.calibration import ROWS_OF_ONE, allowance, calibrate, longest_promise
from muhat.apps.monitor.reference import Reference, population
from muhat.apps.monitor.saved import load_monitor, save_monitor
from muhat.apps.monitor.stream import Drift, MonitorModel, StreamState
from muhat.apps.monitor.windows import SimulatedStreams
from muhat.kernels.base import Kernel, check_kernel
from muhat.kernels.mixed import Rescaled
from muhat.linalg.resources import LockedMixin, one_blas_thread
from muhat.rkhs.elements import Element
from muhat.rkhs.measures import Atoms
from muhat.tables.encoder import TableEncoder, fit_encoder
from muhat.tables.frames import Column, as_table

WINDOWS = (1, 3, 10, 30, 100)
"""Lengths of the windows by default; those beyond a quarter of the reference, or half the run length, are left out."""

MOST_ROWS = 2000
"""Rows of a reference that streams are compared with and simulated from; of a longer one so many are taken."""

MOST_FEATURES = 4000
"""Numbers per row that a monitor takes: whitening by d of them takes d² numbers and d³ operations."""

FEWEST_ROWS = 10
"""Rows that a reference needs."""

LARGE_FACTOR = 10.0
"""Beyond this multiple of the run length ``fit`` warns that alarms come late."""

INCREASING, FEWEST_INCREASING = 0.99, 20
"""A named column of more than 20 values whose ranks have a larger correlation with those of the rows is a time: no
column of 20 independent values ever is."""


class DriftMonitor(LockedMixin, ValueParametersMixin, BaseEstimator):
    r"""Alarm when the rows of a stream stop looking like a reference, with a promised average run length.

    After each row the monitor compares the last 1, 3, 10, 30 and 100 rows with the reference by several statistics: the
    kernel two-sample statistic MMD² on scaled and on whitened rows, Hotelling's statistic on whitened rows and on
    ranks, and the dispersion. Whitened rows show changes along directions in which the reference hardly varies, such
    as a sensor that stops following the others. Each statistic is put on the scale of its tail under simulated streams
    without drift, and the largest is the score. Its threshold is such that streams without drift run for ``run_length``
    rows on average until a false alarm.

    Real streams depend on time. ``fit`` therefore predicts each row from the one before by a vector autoregression
    where that helps, and tests the promise on the reference itself, in its order: each sixth is a stream of a monitor
    of the others. Where rows depend on each other, it raises the threshold until they raise half of the alarms that are
    promised, so that streams that vary more than the reference keep the promise, too.

    Parameters
    ----------
    run_length : int, default 10_000
        Average number of rows until a false alarm, over references and streams of one distribution. It needs 10 √R
        reference rows, 1,000 for the default, and 5 R where neighbouring rows depend on each other; ``fit`` refuses
        more, and says what it can promise.
    kernel : Kernel, optional
        Compare rows by MMD² with this kernel alone, on columns divided by their standard deviations in the reference.
        By default all statistics are used.
    windows : sequence of int, optional
        Lengths of the windows, by default 1, 3, 10, 30 and 100. Those longer than a quarter of the reference, or than
        half the run length, are left out.
    block_length : "auto" or 1, default "auto"
        "auto" takes the order of the reference for the order of time, and tests the promise in it. 1 says that rows are
        independent, or in random order: then nothing is predicted, and nothing tested.
    n_simulations : int, default 300
        Simulated streams. The realised run length is off by about 1/√n_simulations on their account.
    random_state : None, int, Generator, SeedSequence or RandomState
        Seed of the simulations. The same seed gives the same thresholds.

    Attributes
    ----------
    encoder_ : TableEncoder
        How tables become rows of numbers, with the kinds of their columns.
    kernels_ : tuple of Kernel
        Kernels of scaled rows, with bandwidths as numbers.
    windows_ : array of int
        Lengths of the windows.
    threshold_ : float
        Threshold of the score.
    order_ : int
        1 where rows are predicted from those before, and 0 where they are compared as they are.
    backtest_ : Backtest or None
        False alarms on the reference in its order; None with ``block_length=1``.
    run_length_ : float
        Run length that the backtest vouches for: ``run_length``, or a fifth of the reference rows if that is less.
    run_length_interval_ : pair of float
        A 90 % interval of the run length at that promise, from the alarms of the backtest.
    left_out_ : tuple of str
        Columns of the reference that only increase with its rows, such as times; streams may have them or not.
    rows_seen_ : int
        Rows since ``fit`` or ``reset``.
    result_ : Drift or None
        What was found: rows, columns and relations; None before an alarm.
    witness_ : Element or None
        Mean of the reference minus that of the window of the alarm: high where rows are missing, low where new rows
        are. None before an alarm.
    n_features_in_ : int
        Columns of the reference.
    feature_names_in_ : array of str
        Only where the reference has column names.

    See Also
    --------
    mmd_test : Whether two finished samples differ.
    compare : Which columns and pairs of columns of two tables differ.

    Notes
    -----
    To take an updated reference, fit again: ``monitor.fit(rows)`` calibrates anew and counts from 1.

    Examples
    --------
    >>> import numpy as np, muhat as mh
    >>> rng = np.random.default_rng(0)
    >>> reference = rng.normal(size=(500, 3))
    >>> monitor = mh.DriftMonitor(run_length=1000, block_length=1, random_state=0).fit(reference)
    >>> monitor.update(rng.normal(size=(50, 3)))
    False
    >>> monitor.update(rng.normal(size=(50, 3)) + [0.0, 0.0, 2.0])
    True
    >>> monitor.result_.columns[0][0], 50 < monitor.result_.row < 70
    ('x2', True)
    """

    feature_names_in_: Any
    _stream: StreamState
    _result: Drift | None

    def __init__(
        self,
        run_length: int = 10_000,
        *,
        kernel: Kernel | None = None,
        windows: Sequence[int] | None = None,
        block_length: float | str = "auto",
        n_simulations: int = 300,
        random_state: RandomState = None,
    ) -> None:
        self.run_length = run_length
        self.kernel = kernel
        self.windows = windows
        self.block_length = block_length
        self.n_simulations = n_simulations
        self.random_state = random_state

    @unchanged_on_error
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the reference, rows without drift in the order of time, and calibrate the alarm.

        A reference is a table of any library, or an array. Columns may hold numbers, categories, dates and missing
        values.
        """
        run_length, streams = self._checked_settings()
        rng = check_rng(self.random_state)
        encoder, rows, left_out = self._encoded(X)
        n, in_time = len(rows), self.block_length != 1
        if run_length > longest_promise(n) and not in_time:
            raise ValueError(
                f"run_length={run_length:,.0f} cannot be promised from {n:,} reference rows; pass "
                f"{ceil(ROWS_OF_ONE * sqrt(run_length)):,} rows or more, or run_length={longest_promise(n):,} at most"
            )
        with progress() as say, one_blas_thread():

            def calibrated(
                rows: Array, level: float, promised: float, streams: int, rng: np.random.Generator
            ) -> MonitorModel:
                windows, modelled = self._window_lengths(n, promised), autoregression(rows) if in_time else None
                model, rows = (None, rows) if modelled is None else modelled
                if len(rows) > MOST_ROWS:
                    rows = rows[rng.choice(len(rows), MOST_ROWS, replace=False)]
                reference = Reference.of(rows, self.kernel)
                constants = reference.window_constants(windows)
                simulated = SimulatedStreams(population(reference), windows, constants, streams, rng)
                found = calibrate(simulated, level, say).raised(allowance(level))
                return MonitorModel(encoder, reference, model, windows, constants, found)

            def quickly_calibrated(part: Array, level: float, promised: float) -> MonitorModel:
                # By the same simulations for every seed, so that a run length that is offered is kept, and by fewer,
                # because errors of six thresholds nearly cancel.
                return calibrated(part, level, promised, max(streams // 3, 100), check_rng(0))

            tested = backtest(rows, run_length, quickly_calibrated) if in_time else None
            fitted = calibrated(rows, run_length, run_length, streams, rng)
        self._set(fitted if tested is None else fitted.raised(log(tested.factor)), tested, left_out)
        if tested is not None:
            self._warn_of_less(tested)
        return self

    def _checked_settings(self) -> tuple[float, int]:
        """Run length and simulated streams."""
        if self.windows is not None:
            _check_windows(self.windows)
        if self.kernel is not None:
            check_kernel("kernel", self.kernel)
        if isinstance(self.block_length, bool) or self.block_length not in ("auto", 1):
            raise ValueError(
                f'block_length={self.block_length!r} must be "auto", which tests the promise in the order of the rows, '
                f"or 1 if they are independent"
            )
        return check_number("run_length", self.run_length, low=2), check_count(
            "n_simulations", self.n_simulations, low=100
        )

    def _set(
        self,
        model: MonitorModel,
        tested: Backtest | None,
        left_out: Sequence[str],
        stream: StreamState | None = None,
    ) -> None:
        """Everything that a fitted monitor consists of, at the start or at some place of a stream."""
        encoder = model.encoder
        with self._lock:
            self._model, self._stream = model, model.start() if stream is None else stream
            self._result = model.explain(self._stream)
            self.encoder_, self.backtest_, self.left_out_ = encoder, tested, tuple(left_out)
            self.n_features_in_ = len(encoder.columns)
            if encoder.named:
                self.feature_names_in_ = np.array(encoder.names, dtype=object)
            elif hasattr(self, "feature_names_in_"):
                del self.feature_names_in_
            self.kernels_, self.windows_ = model.reference.plain, model.windows
            self.order_, self.threshold_ = model.order, model.calibration.threshold
            self.run_length_ = float(self.run_length) if tested is None else tested.run_length
            self.run_length_interval_ = (0.0, np.inf) if tested is None else tested.interval

    def _encoded(self, X: Any) -> tuple[TableEncoder, Array, list[str]]:
        """The encoder of a reference, its rows of numbers, and the columns that are left out."""
        if isinstance(X, np.ndarray) and (X.ndim != 2 or not X.size):
            check_rows(X)  # which has a message for each number of dimensions
        table = as_table(X)
        if table.n_rows < FEWEST_ROWS:
            raise ValueError(
                f"X has {table.n_rows} rows, n_samples={table.n_rows}, and a reference needs {FEWEST_ROWS} or more; "
                f"pass more rows without drift"
            )
        left_out = [column.name for column in table.columns if table.named and _counts_time(column)]
        if left_out and len(left_out) < len(table.names):
            table = table.select([name for name in table.names if name not in left_out])
        else:
            left_out = []
        encoder = fit_encoder([table])
        features = len(encoder.features)
        if features > MOST_FEATURES:
            raise ValueError(
                f"X has {len(encoder.columns):,} columns, which are {features:,} numbers per row; {MOST_FEATURES:,} "
                f"are the most, because whitening {features:,} takes matrices of {8e-9 * features**2:.1f} GB and many "
                f"minutes. Choose columns, or pass principal components, as of sklearn.decomposition.PCA(100)"
            )
        rows = encoder.transform(table)
        if (rows == rows[0]).all():
            raise ValueError("all rows of X are equal, so any other row is a drift; pass a reference that varies")
        return encoder, rows, left_out

    def _window_lengths(self, n: int, run_length: float) -> Any:
        given = WINDOWS if self.windows is None else self.windows
        lengths, most = _check_windows(given), max(min(n / 4, run_length / 2), 1)
        kept = lengths[lengths <= most]
        if not len(kept) or (self.windows is not None and len(kept) < len(lengths)):
            raise ValueError(
                f"windows={given!r} must have at most {int(most)} rows: a quarter of the {n} reference rows, and half "
                f"the run length"
            )
        return kept.astype(np.int64)

    def _warn_of_less(self, tested: Backtest) -> None:
        """Say where thresholds were raised, or less is vouched for than was asked for."""
        asked = f"run_length={self.run_length:,}"
        if tested.factor > LARGE_FACTOR:
            warn_caller(
                f"neighbouring rows of the reference depend on each other so much that the threshold is that of "
                f"independent rows for {tested.factor:,.0f} times {asked}, and only large changes raise an alarm. Take "
                f"seasons and trends out of the columns, or pass block_length=1 if the order of the rows means nothing."
            )
        elif tested.run_length < self.run_length:
            warn_caller(
                f"{asked} holds if the rows are independent. In their order {tested.rows:,} rows vouch for "
                f"{tested.run_length:,.0f} rows between false alarms, without a sign of dependence; pass "
                f"block_length=1 if the order of the rows means nothing."
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def update(self, X: Any) -> bool:
        """Take in one row or more, in effect one after the other.

        Rows after an alarm are checked and ignored, until ``reset``. A row that is refused changes nothing. Threads can
        share a monitor: each call takes in its rows without those of another in between. ``X`` is a table with the
        columns of the reference, or a row of it: an array, a series or a dictionary. Missing values and new categories
        are taken as they come. True from an alarm on, until ``reset``; ``result_`` then says what changed.
        """
        check_is_fitted(self, "threshold_")
        rows = stream_rows(X, self.encoder_, self.left_out_)
        with self._lock, one_blas_thread():
            state = self._model.take(self._stream, rows)
            if state.alarm is not None and self._result is None:
                self._result = self._model.explain(state)
            self._stream = state
            return self.drift_detected

    @property
    def rows_seen_(self) -> int:
        """Rows since ``fit`` or ``reset``."""
        return self._stream.rows

    @property
    def result_(self) -> Drift | None:
        """What was found at the alarm; None before it."""
        check_is_fitted(self, "threshold_")
        return self._result

    @property
    def witness_(self) -> Element | None:
        """Mean of the reference minus that of the window of the alarm; None before it."""
        check_is_fitted(self, "threshold_")
        state, reference = self._stream, self._model.reference
        if state.alarm is None:
            return None
        place, new = state.alarm.component, self.compared_rows()[1]
        kernel = self.kernels_[place if place < len(self.kernels_) else 0]
        kernel = Rescaled(kernel, tuple(map(float, reference.scales.scale)))
        parts = [(reference.rows, 1.0 / len(reference.rows)), (new, -1.0 / len(new))]
        return Element(kernel, *(Atoms.trusted(points, np.full(len(points), weight)) for points, weight in parts))

    @property
    def column_names_(self) -> list[str]:
        """Names of the reference's columns; x0, x1, … where it has none."""
        check_is_fitted(self, "threshold_")
        return list(dict.fromkeys(self._model.names))

    @property
    def drift_detected(self) -> bool:
        """Whether there has been an alarm since ``fit`` or ``reset``."""
        check_is_fitted(self, "threshold_")
        return self._stream.alarm is not None

    def reset(self) -> Self:
        """Count from 1 again, with the same thresholds."""
        check_is_fitted(self, "threshold_")
        with self._lock:
            self._stream, self._result = self._model.start(), None
        return self

    def recent_scores(self) -> tuple[Any, Array, Array]:
        """Rows, scores and thresholds of the last 1,000 rows at most: what a picture of the monitor shows."""
        check_is_fitted(self, "threshold_")
        state, model = self._stream, self._model
        first = state.rows - len(state.scores)
        numbers = first + 1 + np.arange(len(state.scores))
        return numbers, state.scores, np.full(len(state.scores), model.calibration.threshold)

    def compared_rows(self) -> tuple[Array, Array]:
        """Return rows of the reference, and those of the window that raised the alarm; none before an alarm.

        Where rows are predicted from those before, both are what the predictions leave.
        """
        check_is_fitted(self, "threshold_")
        return self._model.reference.rows, self._model.window(self._stream)

    def save(self, path: str | Path) -> None:
        """Write the monitor, with its thresholds and its place in the stream, to one file (``.npz``) without pickle."""
        check_is_fitted(self, "threshold_")
        with self._lock:
            saved = self.get_params(deep=False), self._model, self.backtest_, self.left_out_, self._stream
        save_monitor(path, *saved)

    @classmethod
    def load(cls, path: str | Path, kernels: Iterable[type[Kernel]] = ()) -> Self:
        """Read what ``save`` wrote; the monitor goes on where it was.

        Nothing in the file is executed. ``kernels`` are classes of kernels that you wrote yourself, if it names one.
        """
        return load_monitor(path, kernels, cls._of)

    @classmethod
    def _of(cls, params: dict[str, Any], *fitted: Any) -> Self:
        monitor = cls(**params)
        monitor._checked_settings()
        monitor._set(*fitted)
        return monitor


def stream_rows(X: Any, encoder: TableEncoder, left_out: Sequence[str] = ()) -> Array:
    """Rows of a stream as rows of numbers: a table, a single row of it, or a number where there is one column."""
    width = len(encoder.columns)
    if type(X) is np.ndarray and X.dtype == np.float64 and X.ndim in (1, 2) and X.shape[-1] == width:
        rows = np.ascontiguousarray(X.reshape(-1, width))
        if encoder.is_plain and len(rows) and np.isfinite(rows).all():
            return rows  # the encoder would change nothing, and take longer than all else
    if hasattr(X, "index") and hasattr(X, "items") and np.ndim(X) == 1:  # a series, such as a row of a data frame
        X = {str(name): value for name, value in X.items()} if encoder.named else X.to_numpy()
    if isinstance(X, Mapping):
        if not encoder.named:
            raise ValueError("X is a dictionary, and the reference has no column names; pass the row as a list")
    elif np.ndim(X) == 0 and width == 1 and not isinstance(X, str):
        X = [[X]]
    elif np.ndim(X) == 1 and len(X) > 0 and not isinstance(X[0], Mapping):
        X = np.array([*X], dtype=object).reshape(1, -1)
    if left_out:
        table = as_table(X)
        X = table.select([name for name in table.names if name not in left_out]) if table.named else table
    return encoder.transform(X)


def _counts_time(column: Column) -> bool:
    """Whether a column increases with the rows, so that later rows of a stream lie beyond it by themselves."""
    known = column.values[~column.missing]
    if column.kind not in ("date", "number") or len(known) <= FEWEST_INCREASING or np.ptp(known) == 0:
        return False
    # By rank correlation, because times of messages tie, and some come late.
    return float(spearmanr(np.arange(len(known)), known).statistic) > INCREASING


def _check_windows(windows: Any) -> Any:
    """The lengths in growing order, each once, or a ValueError."""
    if not isinstance(windows, Sequence | np.ndarray) or isinstance(windows, str) or len(windows) == 0:
        raise ValueError(f"windows={windows!r} must be a list of window lengths, such as [1, 10, 100]")
    return np.unique([check_count("windows", length) for length in windows])
