"""Checks that the values of a kernel on rows are those of a kernel: finite, symmetric, positive semi-definite."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from muhat.types import Array
from muhat.validation import GRAM_TOLERANCE, check_gram

if TYPE_CHECKING:
    from muhat.kernels.base import Kernel

MAX_ROWS_TO_CHECK = 200
"""Whether a kernel is one is checked on this many rows of the data at most, evenly spaced."""


def check_values(kernel: Kernel, rows: Array) -> Array:
    """The values on some of the rows, or a ValueError where they show that this is not a kernel."""
    K = np.asarray(kernel.evaluate(rows, rows))
    if K.shape != (len(rows), len(rows)):
        found = f"evaluate gives the shape {K.shape}; return {(len(rows), len(rows))}"
        raise ValueError(f"{kernel!r} is not a kernel on these rows: {found}")
    if not np.isfinite(K).all():
        raise ValueError(f"{kernel!r} is not a kernel on these rows: it has values that are not finite; rescale X")
    try:
        check_gram(K, name="k(X, X)")
    except ValueError as error:
        smallest = f"smallest eigenvalue {np.linalg.eigvalsh(K).min():.3g}, trace {np.trace(K):.3g}"
        raise ValueError(f"{kernel!r} is not a kernel on these rows: {error} ({smallest})") from error
    return K


def check_diagonal(kernel: Kernel, rows: Array, K: Array) -> None:
    """Raise a ValueError where ``diagonal`` is not that of the values K on the rows."""
    diagonal = np.asarray(kernel.diagonal(rows))
    if diagonal.shape != (len(rows),):
        found = f"diagonal gives the shape {diagonal.shape}; return {(len(rows),)}"
        raise ValueError(f"{kernel!r} is not a kernel on these rows: {found}")
    apart = float(np.abs(diagonal - np.diag(K)).max())
    if apart > GRAM_TOLERANCE * float(np.abs(K).max()):
        raise ValueError(
            f"{kernel!r} is not a kernel on these rows: diagonal(X) and the diagonal of evaluate(X, X) differ by up to "
            f"{apart:.3g}; return k(x, x) from both"
        )


def some_rows(rows: Array) -> Array:
    """At most MAX_ROWS_TO_CHECK of the rows, evenly spaced."""
    return rows[:: -(-len(rows) // MAX_ROWS_TO_CHECK)]
