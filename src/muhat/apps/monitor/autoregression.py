"""Vector autoregressions: what of a row can be predicted from the rows before it is taken out."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from muhat._support.types import Array
from muhat.tables.scales import ColumnScales

MOST_LAGS = 3
"""Largest order: the coefficients of three rows before already take a fifth of 15 d reference rows."""

_FOLDS = 10  # stretches that are predicted by coefficients of the others
_RIDGE = 1e-3  # in variances of a column, so that collinear columns have finite coefficients


@dataclass(frozen=True, eq=False)
class Autoregression:
    """One-step predictions of rows from the p rows before."""

    scales: ColumnScales  # centre and scale of the columns
    coefficients: Array  # (p · d, d): of the row before, then of the one before that, and so on
    spread: Array  # (d,): standard deviation of a residual over that of its column

    @property
    def order(self) -> int:
        """p, the number of rows before that a prediction needs."""
        return len(self.coefficients) // self.coefficients.shape[1]

    def residuals(self, rows: Array, first: int) -> Array:
        """Scaled rows minus their predictions, each row by itself: shape (T, d) for rows of shape (p + T, d).

        Row number ``first`` of the stream, counted from 0, is the first one with a residual. The first p rows of a
        stream have no p rows before: they are their own residuals, shrunk to the spread of the others (Prais and
        Winsten, 1954).
        """
        scaled, p = _scaled(rows, self.scales), self.order
        found = [row - before @ self.coefficients for row, before in zip(scaled[p:], _lagged(scaled, p), strict=True)]
        found[: max(p - first, 0)] = scaled[p : max(2 * p - first, p)] * self.spread
        return np.array(found).reshape(-1, rows.shape[1])


def autoregression(rows: Array) -> tuple[Autoregression, Array] | None:
    """A vector autoregression whose order Schwarz's criterion chooses, and cross-fitted residuals; None for order 0.

    The residuals of each of ten stretches of the rows are those of coefficients that were fitted to the others, as the
    rows of a stream will be predicted by coefficients that they had no part in.
    """
    n, d = rows.shape
    scales = ColumnScales.of(rows)
    scaled = _scaled(rows, scales)
    orders = [p for p in range(MOST_LAGS + 1) if p * d <= n / 5]
    p = min(orders, key=lambda p: _schwarz(scaled[orders[-1] - p :], p))
    if p == 0:
        return None
    targets, lagged = scaled[p:], _lagged(scaled, p)
    residuals = np.empty_like(targets)
    for fold in stretches(len(targets), _FOLDS):
        kept = np.ones(len(targets), bool)
        kept[fold] = False
        residuals[fold] = targets[fold] - lagged[fold] @ _ridge(lagged[kept], targets[kept])
    varies = scaled.std(axis=0)
    spread = np.divide(residuals.std(axis=0), varies, out=np.ones(d), where=varies > 0.0)
    return Autoregression(scales, _ridge(lagged, targets), spread), residuals


def stretches(n: int, count: int) -> list[slice]:
    """Consecutive stretches of n rows, of about equal length."""
    bounds = np.linspace(0, n, min(count, n) + 1).astype(int)
    return [slice(int(a), int(b)) for a, b in pairwise(bounds)]


def _scaled(rows: Array, scales: ColumnScales) -> Any:
    """Columns in standard deviations, clipped where their squares would overflow."""
    with np.errstate(over="ignore"):
        return np.clip(scales.divide(rows), -1e60, 1e60)


def _lagged(rows: Array, p: int) -> Array:
    """The p rows before each row from the (p + 1)-th on, the nearest first: shape (n − p, p · d)."""
    n = len(rows)
    return np.hstack([rows[p - k : n - k] for k in range(1, p + 1)]) if p else np.empty((n, 0))


def _ridge(lagged: Array, targets: Array) -> Array:
    """Coefficients of a regression with a small ridge."""
    gram = lagged.T @ lagged
    gram[np.diag_indices_from(gram)] += _RIDGE * len(lagged)
    return np.asarray(np.linalg.solve(gram, lagged.T @ targets))


def _schwarz(scaled: Array, p: int) -> float:
    """log det of the covariance of the residuals, plus log(n)/n for each coefficient."""
    targets, lagged = scaled[p:], _lagged(scaled, p)
    left = targets - lagged @ _ridge(lagged, targets) if p else targets
    n, d = left.shape
    covariance = left.T @ left / n
    covariance[np.diag_indices_from(covariance)] += _RIDGE
    return float(np.linalg.slogdet(covariance)[1] + np.log(n) / n * p * d * d)
