r"""Serial dependence of a reference: a permutation test, the autocorrelation time, and vector autoregressions.

Rows of a real stream depend on the rows before them. A monitor that is calibrated on independent rows would alarm far
too often, so ``fit`` looks at the reference in its order. Where neighbouring rows depend on each other, a vector
autoregression takes out what can be predicted, and the monitor runs on its residuals. What dependence is left in them,
such as spells of high variance, is kept in the simulated streams by drawing blocks of consecutive rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from muhat._support.types import Array
from muhat.apps.monitor.reference import Reference
from muhat.tables.scales import ColumnScales

LAGS = 10
"""Lags of the portmanteau statistic."""

PERMUTATIONS = 999
"""Dependence is found where one of two statistics exceeds those of all permuted rows: in 1 of 500 references of
independent rows."""

MOST_LAGS = 3
"""Largest order of an autoregression."""

FOLDS = 10
"""Stretches of the reference that are left out in turn, where rows depend on each other."""

BLOCK_TIMES = 5.0
"""Mean length of blocks, in autocorrelation times."""

_MOST_ROWS = 4000
_RIDGE = 1e-3  # of an autoregression, in variances of a column
_CLEAR = 3.0  # standard errors from which on an autocorrelation counts


@dataclass(frozen=True)
class Dependence:
    """Dependence of neighbouring rows.

    Parameters
    ----------
    column : int
        The column whose neighbouring values are most alike.
    correlation : float
        Its correlation with the row before, of normal scores of ranks.
    time : float
        Integrated autocorrelation time: how many dependent rows are worth one independent row, at least 1.

    See Also
    --------
    muhat.DriftMonitor : Its ``block_length`` allows for dependent rows.

    Examples
    --------
    >>> import warnings, numpy as np, muhat as mh
    >>> walk = np.random.default_rng(0).normal(size=(300, 1)).cumsum(axis=0)
    >>> with warnings.catch_warnings(action="ignore"):  # fit says that rows depend on each other
    ...     found = mh.DriftMonitor(run_length=500, random_state=0).fit(walk).dependence_
    >>> found.column, round(found.correlation, 2)
    (0, 0.96)
    """

    column: int
    correlation: float
    time: float


def serial_dependence(reference: Reference, rng: np.random.Generator) -> Dependence | None:
    r"""Dependence of the rows of a reference in their order; None where it may be chance.

    Of normal scores of the columns, of whitened columns and of log(1 + ‖z‖²/d), the largest lag-1 autocorrelation
    :math:`|a_1|` and the largest :math:`\sum_{k \le 10} a_k^2` are compared with those of permuted rows. O(nd) for
    each of 999 permutations, of which independent rows need about 14 until both were exceeded.

    Parameters
    ----------
    reference : Reference
        Rows in the order of time.
    rng : Generator
        For the permutations.
    """
    scores, views = reference.rank_metric.rows[-_MOST_ROWS:], reference.views
    d = scores.shape[1]
    dispersion = np.log1p((views.whitened[-_MOST_ROWS:] ** 2).sum(axis=1) / d)
    features = _standardised(np.column_stack([scores, views.whitened[-_MOST_ROWS:], dispersion]))
    n = len(features)
    lags = min(LAGS, n // 4)
    found = _autocorrelations(features, lags)
    observed, unequalled = _largest(found) * (1.0 - 1e-9), np.ones(2, bool)
    for _ in range(PERMUTATIONS):
        unequalled &= observed > _largest(_autocorrelations(features[rng.permutation(n)], lags))
        if not unequalled.any():
            return None
    clear = (np.abs(found) > _CLEAR / np.sqrt(n)).any(axis=0)
    time = max((autocorrelation_time(column) for column in features.T[clear]), default=1.0)
    column = int(np.abs(found[0, :d]).argmax())
    return Dependence(column, float(found[0, column]), time)


def _autocorrelations(features: Array, lags: int) -> Array:
    """a_1, …, a_lags of standardised columns: shape (lags, columns)."""
    n = len(features)
    return np.array([(features[k:] * features[: n - k]).sum(axis=0) / n for k in range(1, lags + 1)])


def _largest(correlations: Array) -> Array:
    """The largest |a_1| and the largest sum of squares."""
    return np.array([np.abs(correlations[0]).max(), (correlations**2).sum(axis=0).max()])


def _standardised(columns: Array) -> Array:
    centred = columns - columns.mean(axis=0)
    deviation = np.sqrt((centred**2).mean(axis=0))
    varies = deviation > 1e-12
    return np.where(varies, centred / np.where(varies, deviation, 1.0), 0.0)


def autocorrelation_time(x: Array) -> float:
    r""":math:`\tau = 1 + 2 \sum_{k \le M} a_k` with the smallest M of at least 5 τ (Sokal, 1997), at least 1.

    It is divided by 1 − 2M/n, the share of the sum that a sample of n shows where its mean is unknown. ``x`` has mean 0
    and variance 1.
    """
    n = len(x)
    spectrum = np.abs(np.fft.rfft(x, 2 * n)) ** 2  # of a column with as many zeros behind it: no lag wraps around
    correlations = np.fft.irfft(spectrum)[:n] / n
    times = 2.0 * np.cumsum(correlations) - 1.0  # the correlation at lag 0 is 1
    enough = np.flatnonzero(np.arange(n) >= 5.0 * times)
    window = int(enough[0]) if len(enough) else n - 1
    return max(float(times[window]) / max(1.0 - 2.0 * window / n, 0.2), 1.0)


@dataclass(frozen=True, eq=False)
class Autoregression:
    """One-step predictions of rows from the p rows before.

    Parameters
    ----------
    scales : ColumnScales
        Centre and scale of the columns.
    coefficients : array of shape (p · d, d)
        Of the row before, then of the one before that, and so on.
    """

    scales: ColumnScales
    coefficients: Array

    @property
    def order(self) -> int:
        """p, the number of rows before that a prediction needs."""
        return len(self.coefficients) // self.coefficients.shape[1]

    def residuals(self, rows: Array) -> Array:
        """Scaled rows minus their predictions, each row by itself: shape (T, d) for rows of shape (p + T, d)."""
        scaled, p = self.scaled(rows), self.order
        lagged = lagged_rows(scaled, p)
        found = [row - before @ self.coefficients for row, before in zip(scaled[p:], lagged, strict=True)]
        return np.array(found).reshape(-1, rows.shape[1])

    def scaled(self, rows: Array) -> Array:
        """Columns in standard deviations, clipped where their squares would overflow."""
        with np.errstate(over="ignore"):
            return np.clip((rows - self.scales.centre) / self.scales.scale, -1e60, 1e60)


def lagged_rows(rows: Array, p: int) -> Array:
    """The p rows before each row from the (p + 1)-th on, the nearest first: shape (n − p, p · d)."""
    n = len(rows)
    return np.hstack([rows[p - k : n - k] for k in range(1, p + 1)]) if p else np.empty((n, 0))


def autoregression(rows: Array) -> tuple[Autoregression, Array] | None:
    """A vector autoregression whose order Schwarz's criterion chooses, and cross-fitted residuals; None for order 0.

    The residuals of each of ten stretches of the reference are those of coefficients that were fitted to the others, as
    the rows of a stream will be predicted by coefficients that they had no part in.

    Parameters
    ----------
    rows : array of shape (n, d)
        In the order of time.
    """
    n, d = rows.shape
    model = Autoregression(ColumnScales.of(rows), np.empty((0, d)))
    scaled = model.scaled(rows)
    orders = [p for p in range(MOST_LAGS + 1) if p * d <= n / 5]
    p = min(orders, key=lambda p: _schwarz(scaled[orders[-1] - p :], p))
    if p == 0:
        return None
    targets, lagged = scaled[p:], lagged_rows(scaled, p)
    residuals = np.empty_like(targets)
    for fold in stretches(len(targets), FOLDS):
        kept = np.ones(len(targets), bool)
        kept[fold] = False
        residuals[fold] = targets[fold] - lagged[fold] @ _ridge(lagged[kept], targets[kept])
    return Autoregression(model.scales, _ridge(lagged, targets)), residuals


def _ridge(lagged: Array, targets: Array) -> Array:
    """Coefficients of a regression with a small ridge."""
    gram = lagged.T @ lagged
    gram[np.diag_indices_from(gram)] += _RIDGE * len(lagged)
    return np.asarray(np.linalg.solve(gram, lagged.T @ targets))


def _schwarz(scaled: Array, p: int) -> float:
    """log det of the covariance of the residuals, plus log(n)/n for each coefficient."""
    targets, lagged = scaled[p:], lagged_rows(scaled, p)
    left = targets - lagged @ _ridge(lagged, targets) if p else targets
    n, d = left.shape
    covariance = left.T @ left / n
    covariance[np.diag_indices_from(covariance)] += _RIDGE
    return float(np.linalg.slogdet(covariance)[1] + np.log(n) / n * p * d * d)


def stretches(n: int, count: int) -> list[slice]:
    """Consecutive stretches of n rows, of about equal length."""
    bounds = np.linspace(0, n, min(count, n) + 1).astype(int)
    return [slice(int(a), int(b)) for a, b in pairwise(bounds)]
