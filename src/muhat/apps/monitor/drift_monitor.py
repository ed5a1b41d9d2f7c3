"""DriftMonitor: an alarm when the rows of a stream stop looking like a reference, with a promised run length."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from muhat._support.parameters import ValueParametersMixin
from muhat._support.progress import progress
from muhat._support.types import Array, RandomState
from muhat._support.validation import (
    check_count,
    check_number,
    check_number_or,
    check_rng,
    check_rows,
    unchanged_on_error,
    warn_caller,
)
from muhat.apps.monitor.calibration import allowance, calibrate, check_promise
from muhat.apps.monitor.dependence import BLOCK_TIMES, FOLDS, Dependence, autoregression, serial_dependence, stretches
from muhat.apps.monitor.reference import Reference, population
from muhat.apps.monitor.saved import load_monitor, save_monitor
from muhat.apps.monitor.stream import Drift, MonitorModel, StreamState
from muhat.apps.monitor.windows import SimulatedStreams
from muhat.features.sketch import MeanSketch
from muhat.kernels.base import Kernel, check_kernel
from muhat.kernels.mixed import Rescaled
from muhat.linalg.resources import LockedMixin, one_blas_thread
from muhat.rkhs.elements import Element
from muhat.rkhs.measures import Atoms
from muhat.tables.encoder import TableEncoder, fit_encoder
from muhat.tables.frames import Table, as_table

WINDOWS = (1, 3, 10, 30, 100)
"""Lengths of the windows by default; those beyond a quarter of the reference, or half the run length, are left out."""

MOST_ROWS = 2000
"""Rows of a reference that streams are compared with and simulated from; of a longer one so many are taken."""

MOST_FEATURES = 4000
"""Numbers per row that a monitor takes: whitening by d of them takes d² numbers and d³ operations."""

FEWEST_ROWS = 10
"""Rows that a reference needs."""


class DriftMonitor(LockedMixin, ValueParametersMixin, BaseEstimator):
    r"""Alarm when the rows of a stream stop looking like a reference, with a promised average run length.

    After each row the monitor compares the last 1, 3, 10, 30 and 100 rows with the reference by several statistics: the
    kernel two-sample statistic MMD² on scaled and on whitened rows, Hotelling's statistic on whitened rows and on
    ranks, and the dispersion. Whitened rows show changes along directions in which the reference hardly varies, such
    as a sensor that stops following the others. Each statistic is put on the scale of its tail under simulated streams
    without drift, and the largest is the score. Its threshold is such that streams without drift run for ``run_length``
    rows on average until a false alarm.

    Real streams depend on time. ``fit`` tests the reference in its order, and where neighbouring rows depend on each
    other, the monitor runs on the residuals of a vector autoregression; simulated streams keep what dependence is left.

    Parameters
    ----------
    run_length : int, default 10_000
        Average number of rows until a false alarm, over references and streams of one distribution. It needs 10 √R
        independent reference rows, 1,000 for the default; ``fit`` refuses more, and says what it can promise.
    kernel : Kernel or sequence of Kernel, optional
        Compare rows by MMD² with these kernels alone, on columns divided by their standard deviations in the
        reference. By default all statistics are used.
    windows : sequence of int, optional
        Lengths of the windows, by default 1, 3, 10, 30 and 100. Those longer than a quarter of the reference, or than
        half the run length, are left out.
    block_length : "auto" or float, default "auto"
        "auto" looks at the reference in its order, and models the dependence of neighbouring rows where there is any.
        Pass the reference in the order of time, or shuffled if its order means nothing. A number is the mean length of
        the blocks of consecutive rows that simulated streams consist of, without a model; 1 is for independent rows.
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
        Threshold of the score, once the longest window is full.
    dependence_ : Dependence or None
        Dependence of neighbouring rows that was found in the reference.
    block_length_ : float
        Mean length of the blocks that simulated streams consist of.
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
    MeanSketch : Kernel means of streams that can be merged.

    Notes
    -----
    To take an updated reference, fit again: ``monitor.fit(rows)`` calibrates anew and counts from 1.

    References
    ----------
    Cobb, Van Looveren, Klaise (2022). Sequential multivariate change detection with calibrated and memoryless false
    detection rates. AISTATS. https://arxiv.org/abs/2108.00883

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
    _stream: StreamState

    def __init__(
        self,
        run_length: int = 10_000,
        *,
        kernel: Kernel | Sequence[Kernel] | None = None,
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
        """Learn the reference and calibrate the alarm.

        Parameters
        ----------
        X : table of any library, array of shape (n, d), or MeanSketch
            Rows without drift, in the order of time where it has a meaning. Columns may hold numbers, categories,
            dates and missing values. ``fit`` refuses run lengths that the rows cannot promise. Of a sketch the rows of
            its reservoir are the reference, in no order.
        y : ignored
            Not used; it is here for scikit-learn's pipelines.

        Returns
        -------
        self
            The fitted monitor.
        """
        run_length, block_length, streams = self._checked_settings()
        rng = check_rng(self.random_state)
        encoder, rows = self._encoded(X)
        with progress() as say, one_blas_thread():
            say("calibrating: the order of the rows")
            reference, found, model = self._reference(rows), None, None
            time, blocks = block_length or 1.0, block_length or 1.0
            if block_length is None and not isinstance(X, MeanSketch):
                found = left = serial_dependence(reference, rng)
                modelled = None if found is None else autoregression(rows)
                if modelled is not None:
                    model, residuals = modelled
                    reference = self._reference(residuals)
                    left = serial_dependence(reference, rng)
                if left is not None:
                    time, blocks = left.time, BLOCK_TIMES * left.time
            check_promise(run_length, len(rows), time)
            if len(reference.rows) > MOST_ROWS:
                reference = self._reference(some_rows(reference.rows, blocks, rng))
            windows = self._window_lengths(len(rows), run_length)
            constants = reference.window_constants(windows)
            # Where rows depend on each other, the metrics of simulated streams leave out stretches of rows in place of
            # single ones, and rows are not compared with their neighbours.
            folds = stretches(len(reference.rows), FOLDS) if blocks > 1.0 else None
            known = population(reference, folds, int(3 * time) if blocks > 1.0 else 0)
            simulated = SimulatedStreams(known, windows, constants, blocks, streams, rng)
            calibration = calibrate(simulated, run_length, say).raised(allowance(run_length, model is not None))
        self._set(MonitorModel(encoder, reference, model, found, blocks, windows, constants, calibration))
        if found is not None:
            self._warn_of_dependence(found)
        return self

    def _reference(self, rows: Array) -> Reference:
        return Reference.of(rows, self._kernels())

    def _checked_settings(self) -> tuple[float, float | None, int]:
        """Run length, block length (None for "auto") and simulated streams."""
        if self.windows is not None:
            _check_windows(self.windows)
        run_length = check_number("run_length", self.run_length, low=2)
        block_length = check_number_or("block_length", self.block_length, "auto", low=1)
        return run_length, block_length, check_count("n_simulations", self.n_simulations, low=100)

    def _set(self, model: MonitorModel, stream: StreamState | None = None) -> None:
        """Everything that a fitted monitor consists of, at the start or at some place of a stream."""
        encoder = model.encoder
        with self._lock:
            self._model, self._stream = model, model.start() if stream is None else stream
            self.encoder_, self.dependence_, self.block_length_ = encoder, model.dependence, model.block_length
            self.n_features_in_ = len(encoder.columns)
            if encoder.named:
                self.feature_names_in_ = np.array(encoder.names, dtype=object)
            elif hasattr(self, "feature_names_in_"):
                del self.feature_names_in_
            self.kernels_, self.windows_ = model.reference.plain.kernels, model.windows
            self.threshold_ = model.calibration.threshold

    def _encoded(self, X: Any) -> tuple[TableEncoder, Array]:
        """The encoder of a reference, and its rows of numbers."""
        if isinstance(X, MeanSketch):
            rows, names = X.state_.kept.rows, getattr(X.features, "feature_names_in_", None)
            if len(rows) < FEWEST_ROWS:
                raise ValueError(
                    f"the sketch keeps {len(rows)} rows, and simulations need {FEWEST_ROWS} or more; make it "
                    f"with reservoir_size=1000"
                )
            X = rows if names is None else {str(name): column for name, column in zip(names, rows.T, strict=True)}
        elif isinstance(X, np.ndarray) and (X.ndim != 2 or not X.size):
            check_rows(X)  # which has a message for each number of dimensions
        table = as_table(X)
        if table.n_rows < FEWEST_ROWS:
            raise ValueError(
                f"X has {table.n_rows} rows, n_samples={table.n_rows}, and a reference needs {FEWEST_ROWS} or more; "
                f"pass more rows without drift"
            )
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
        return encoder, rows

    def _kernels(self) -> tuple[Kernel, ...] | None:
        if self.kernel is None:
            return None
        kernels = (self.kernel,) if isinstance(self.kernel, Kernel) else self.kernel
        if not isinstance(kernels, Sequence) or not kernels:
            check_kernel("kernel", kernels)
        for kernel in kernels:
            check_kernel("kernel", kernel)
        return tuple(kernels)

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

    def _warn_of_dependence(self, found: Dependence) -> None:
        """Say what dependence was found, and what was done."""
        order, done = self._model.order, []
        if order:
            done.append(f"the monitor runs on the residuals of an autoregression of order {order}")
        if self.block_length_ > 1.0:
            done.append(f"simulated streams consist of blocks of about {self.block_length_:,.0f} rows")
        warn_caller(
            f"neighbouring rows of the reference depend on each other (correlation {found.correlation:.2f} in column "
            f"{self._model.names[found.column]}), so {' and '.join(done) or 'blocks are short'}. If their order means "
            f"nothing, shuffle them or pass block_length=1."
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def update(self, X: Any) -> bool:
        """Take in one row or more, in effect one after the other.

        Rows after an alarm are checked and ignored, until ``reset``. A row that is refused changes nothing. Threads can
        share a monitor: each call takes in its rows without those of another in between.

        Parameters
        ----------
        X : table with the columns of the reference, or a row of it
            A data frame, an array of shape (T, d) or (d,), a series or a dictionary. Columns with names are put in the
            order of the reference's. Missing values and new categories are taken as they come.

        Returns
        -------
        bool
            Whether there has been an alarm since ``fit`` or ``reset``; ``result_`` then says what changed.
        """
        check_is_fitted(self, "threshold_")
        rows = stream_rows(X, self.encoder_)
        with self._lock, one_blas_thread():
            self._stream = self._model.take(self._stream, rows)
            return self.drift_detected

    @property
    def rows_seen_(self) -> int:
        """Rows since ``fit`` or ``reset``."""
        return self._stream.rows

    @property
    def result_(self) -> Drift | None:
        """What was found at the alarm; None before it."""
        check_is_fitted(self, "threshold_")
        return self._stream.result

    @property
    def witness_(self) -> Element | None:
        """Mean of the reference minus that of the window of the alarm; None before it."""
        check_is_fitted(self, "threshold_")
        state, reference = self._stream, self._model.reference
        if state.result is None:
            return None
        place = self._model.components.index(state.result.component)
        kernel = self.kernels_[place if place < len(self.kernels_) else 0]
        kernel = Rescaled(kernel, tuple(map(float, reference.scales.scale)))
        parts = [(reference.rows, 1.0 / len(reference.rows)), (state.alarm_rows, -1.0 / len(state.alarm_rows))]
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
        return self._stream.result is not None

    def reset(self) -> Self:
        """Count from 1 again, with the same thresholds.

        Returns
        -------
        self
            The monitor.
        """
        check_is_fitted(self, "threshold_")
        with self._lock:
            self._stream = self._model.start()
        return self

    def recent_scores(self) -> tuple[Any, Array, Array]:
        """Rows, scores and thresholds of the last 1,000 rows at most: what a picture of the monitor shows.

        Returns
        -------
        rows, scores, thresholds : arrays of shape (m,)
            Numbers of the rows, and score and threshold after each.
        """
        check_is_fitted(self, "threshold_")
        state, model = self._stream, self._model
        first = state.rows - len(state.scores)
        numbers = first + 1 + np.arange(len(state.scores))
        return numbers, state.scores, model.calibration.thresholds(first - model.order, len(state.scores))

    def compared_rows(self) -> tuple[Array, Array]:
        """Return rows of the reference, and those of the window that raised the alarm; none before an alarm.

        Where the monitor runs on residuals of an autoregression, both are residuals.

        Returns
        -------
        reference, window : arrays of shape (n, d) and (m, d)
            The rows.
        """
        check_is_fitted(self, "threshold_")
        return self._model.reference.rows, self._stream.alarm_rows

    def save(self, path: str | Path) -> None:
        """Write the monitor, with its thresholds and its place in the stream, to one file (``.npz``) without pickle.

        Parameters
        ----------
        path : str or Path
            The file, an ``.npz`` archive.
        """
        check_is_fitted(self, "threshold_")
        with self._lock:
            saved = self.get_params(deep=False), self._model, self._stream
        save_monitor(path, *saved)

    @classmethod
    def load(cls, path: str | Path, kernels: Iterable[type[Kernel]] = ()) -> Self:
        """Read what ``save`` wrote; the monitor goes on where it was. Nothing in the file is executed.

        Parameters
        ----------
        path : str or Path
            The file, an ``.npz`` archive.
        kernels : classes of kernels, optional
            Kernels that you wrote yourself, if the file names one: ``kernels=[MyKernel]``.
        """
        return load_monitor(path, kernels, cls._of)

    @classmethod
    def _of(cls, params: dict[str, Any], model: MonitorModel, stream: StreamState) -> Self:
        monitor = cls(**params)
        monitor._checked_settings()
        monitor._set(model, stream)
        return monitor


def stream_rows(X: Any, encoder: TableEncoder) -> Array:
    """Rows of a stream as rows of numbers: a table, a single row of it, or a number where there is one column."""
    if isinstance(X, Table):
        return encoder.transform(X)
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
    return encoder.transform(X)


def some_rows(rows: Array, block_length: float, rng: np.random.Generator) -> Array:
    """Two thousand of the rows in their order: single ones, or stretches of ten blocks."""
    stretch = 1 if block_length == 1 else min(int(10 * block_length), MOST_ROWS)
    starts = np.sort(rng.choice(len(rows) // stretch, MOST_ROWS // stretch, replace=False)) * stretch
    return rows[(starts[:, None] + np.arange(stretch)).ravel()]


def _check_windows(windows: Any) -> Any:
    """The lengths in growing order, each once, or a ValueError."""
    if not isinstance(windows, Sequence | np.ndarray) or isinstance(windows, str) or len(windows) == 0:
        raise ValueError(f"windows={windows!r} must be a list of window lengths, such as [1, 10, 100]")
    return np.unique([check_count("windows", length) for length in windows])
