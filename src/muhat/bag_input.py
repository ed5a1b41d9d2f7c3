"""The check of bags: every message names the bag."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from muhat.types import Array
from muhat.validation import check_rows


def check_matrices(bags: Any, estimator: Any, *, reset: bool) -> list[Array]:
    """Return bags as finite matrices of one width, or raise a ValueError which names the bag."""
    if len(getattr(bags, "shape", ())) == 2:
        raise ValueError(
            f"bags must be a list of matrices, one of shape (n_i, d) for each bag, and not one matrix of shape "
            f"{tuple(bags.shape)}; rows with a column of labels become bags by bags_from_groups(X, groups)"
        )
    if isinstance(bags, dict):
        raise ValueError(
            "bags is a dict and must be a list of matrices, one of shape (n_i, d) for each bag; pass "
            "list(bags.values())"
        )
    if isinstance(bags, str | bytes) or not hasattr(bags, "__len__") or not hasattr(bags, "__iter__"):
        raise ValueError(f"bags={bags!r} must be a list of matrices, one of shape (n_i, d) for each bag")
    given = list(bags)
    if not given:
        raise ValueError("bags is empty; pass a list with at least one matrix of shape (n_i, d)")
    matrices = []
    for i, bag in enumerate(given):
        with _naming_bag(i):
            matrices.append(bag if _is_plain(bag) else check_rows(bag, name=f"bags[{i}]"))
    _check_widths([matrix.shape[1] for matrix in matrices], None if reset else estimator.n_features_in_)
    for i, bag in enumerate(given):
        if i == 0 or not isinstance(bag, np.ndarray):
            with _naming_bag(i):  # the names of columns, where bags are data frames
                validate_data(estimator, bag, reset=reset and i == 0, skip_check_array=True)
    return matrices


def _is_plain(bag: Any) -> bool:
    """A finite matrix that needs no conversion; scikit-learn's check of a small bag takes longer than its use."""
    matrix = type(bag) is np.ndarray and bag.ndim == 2 and bag.size > 0
    return matrix and bag.dtype in (np.float64, np.float32) and bool(np.isfinite(bag).all())


@contextmanager
def _naming_bag(i: int) -> Iterator[None]:
    try:
        yield
    except (TypeError, ValueError) as error:
        message = str(error)
        named = message.startswith((f"bags[{i}]", f"Input bags[{i}]"))
        raise ValueError(message if named else f"bags[{i}]: {message}") from error


def _check_widths(widths: list[int], fitted: int | None) -> None:
    expected, source = (widths[0], "bags[0] has") if fitted is None else (fitted, "the bags of fit have")
    for i, width in enumerate(widths):
        if width != expected:
            raise ValueError(
                f"bags[{i}] has {width} columns and {source} {expected}; all bags must share their columns"
            )
