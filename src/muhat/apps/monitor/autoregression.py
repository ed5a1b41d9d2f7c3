"""A vector autoregression: what of a row can be predicted from the row before it is taken out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from muhat._support.types import Array
from muhat.apps.monitor.reference import held
from muhat.tables.scales import ColumnScales

_FOLDS = 10  # stretches that are predicted by coefficients of the others
_RIDGE = 1e-3  # in variances of a column, so that collinear columns have finite coefficients


@dataclass(frozen=True, eq=False)
class Autoregression:
    """One-step predictions of rows from the row before."""

    scales: ColumnScales  # centre and scale of the columns
    coefficients: Array  # (d, d): of the row before
    spread: Array  # (d,): standard deviation of a residual over that of its column

    def residuals(self, rows: Array, first: bool) -> Array:
        """Scaled rows minus their predictions, each row by itself: shape (T, d) for rows of shape (1 + T, d).

        The first row of a stream has none before: it is its own residual, shrunk to the spread of the others (Prais and
        Winsten, 1954).
        """
        scaled = held(rows, self.scales)
        found = scaled[1:] - np.array([row @ self.coefficients for row in scaled[:-1]])
        if first:
            found[:1] = scaled[1:2] * self.spread
        return found


def autoregression(rows: Array) -> tuple[Autoregression, Array] | None:
    """A vector autoregression and its cross-fitted residuals; None where Schwarz's criterion prefers to have none.

    The residuals of each of ten stretches of the rows are those of coefficients that were fitted to the others, as the
    rows of a stream will be predicted by coefficients that they had no part in.
    """
    n, d = rows.shape
    scales = ColumnScales.of(rows)
    scaled = held(rows, scales)
    before, targets = scaled[:-1], scaled[1:]
    coefficients = _ridge(before, targets)
    gained = _log_determinant(targets) - _log_determinant(targets - before @ coefficients)
    if d > n / 5 or gained <= np.log(n - 1) / (n - 1) * d * d:
        return None
    residuals = np.empty_like(targets)
    for fold in np.array_split(np.arange(n - 1), _FOLDS):
        others = np.delete(before, fold, axis=0), np.delete(targets, fold, axis=0)
        residuals[fold] = targets[fold] - before[fold] @ _ridge(*others)
    varies = scaled.std(axis=0)
    spread = np.divide(residuals.std(axis=0), varies, out=np.ones(d), where=varies > 0.0)
    return Autoregression(scales, coefficients, spread), residuals


def _ridge(before: Array, targets: Array) -> Array:
    """Coefficients of a regression with a small ridge."""
    return np.asarray(np.linalg.solve(_with_ridge(before.T @ before, len(before)), before.T @ targets))


def _log_determinant(rows: Array) -> float:
    """log det of a covariance."""
    return float(np.linalg.slogdet(_with_ridge(rows.T @ rows, len(rows)) / len(rows))[1])


def _with_ridge(gram: Array, n: int) -> Any:
    return gram + _RIDGE * n * np.eye(len(gram))
