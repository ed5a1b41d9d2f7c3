"""Rows of a stream in the order of the columns of the reference: a row, a block, a data frame, a dictionary."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from muhat.types import Array
from muhat.validation import check_columns, check_rows


def ordered_rows(X: Any, width: int, names: Any = None) -> Array:
    """Checked rows of shape (T, width); columns that have names are put in the order of ``names``.

    Parameters
    ----------
    X : array of shape (T, width) or (width,), data frame, series, dictionary, or a number where width is 1
    width : int
    names : sequence of str, optional
        Names of the reference's columns.
    """
    if type(X) is np.ndarray and X.dtype == np.float64 and X.ndim in (1, 2) and X.shape[-1] == width:
        rows = np.ascontiguousarray(X.reshape(-1, width))
        if len(rows) and np.isfinite(rows).all():
            return rows  # the checks below would find nothing, and take longer than all else
    found = _names(X)
    if names is not None and found is not None:
        X = _reordered(X, list(names), found)
    elif isinstance(X, Mapping):
        raise ValueError("X is a dictionary, and the reference has no column names; pass the row as a list of numbers")
    if hasattr(X, "__len__") and len(X) == 0:
        raise ValueError("X has no rows; pass one row or more")
    if np.ndim(X) == 0 and width == 1 and not isinstance(X, str):
        X = [[X]]
    elif np.ndim(X) == 1 and len(X) > 0 and np.ndim(X[0] if isinstance(X, list | tuple) else 0.0) == 0:
        X = np.asarray(X).reshape(1, -1)
    rows = check_rows(X)
    if rows.shape[1] != width:
        raise ValueError(
            f"X has {rows.shape[1]} columns and the reference has {width}; pass the same columns, one observation a row"
        )
    return rows


def _names(X: Any) -> list[Any] | None:
    """The names of the columns of a table or of the entries of a row, where it has names."""
    if isinstance(X, Mapping):
        return list(X)
    if hasattr(X, "columns"):
        return list(X.columns)
    if hasattr(X, "index") and hasattr(X, "to_numpy") and np.ndim(X) == 1:  # a series, such as a row of a data frame
        labels = list(X.index)
        return labels if all(isinstance(label, str) for label in labels) else None
    return None


def _reordered(X: Any, names: list[Any], found: list[Any]) -> Any:
    check_columns(found, names, "X", remedy="fit to these columns")
    if isinstance(X, Mapping):
        return [[X[name] for name in names]]
    if not hasattr(X, "columns"):
        return X[names].to_numpy()[None]
    return X if found == names else X[names]
