"""What rows of a stream are compared with: the rows of a reference, or features of them.

A row is evaluated by itself, in arrays whose shapes do not depend on how the stream is cut into blocks, and on one
thread. So its values are the same to the last bit in any block.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import Any

import numpy as np

from muhat.features.sketch import MeanSketch
from muhat.kernels.base import Kernel
from muhat.kernels.mixed import rescaled
from muhat.linalg import gram
from muhat.linalg.compiled import row_values
from muhat.linalg.gram import gaussian_bandwidth
from muhat.linalg.resources import check_memory, one_blas_thread
from muhat.types import Array
from muhat.validation import check_overflow

CELLS = 2**18
"""Kernel values of one piece of a block: 2 MB."""

_FARTHEST = 1e150  # of a row, in units of the bandwidth: its square is finite


class RowReference:
    """All rows of a reference, and one or more kernels.

    Parameters
    ----------
    rows : array of shape (n, d)
    kernels : sequence of Kernel
        Without "median"; of columns in the units.
    units : array of shape (d,), optional
        What columns are divided by.
    """

    def __init__(self, rows: Array, kernels: Sequence[Kernel], units: Array | None = None) -> None:
        self.rows, self.kernels, self.n, self.units = rows, tuple(kernels), len(rows), units
        self.width = rows.shape[1]
        self._kernels = tuple(rescaled(kernel, units) for kernel in self.kernels)
        widths = [gaussian_bandwidth(kernel) for kernel in self.kernels]
        compiled = row_values() if all(width is not None for width in widths) else None
        self._compiled = (
            None if compiled is None else _CompiledRows(compiled, rows, np.array(widths, dtype=float), units)
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Without the compiled loops, so that a pickle opens where there is no numba."""
        return RowReference, (self.rows, self.kernels, self.units)

    def block_size(self, longest: int) -> int:
        """Rows of a stream that are evaluated at a time."""
        return max(1, min(1024, CELLS // (len(self.kernels) * max(self.n, longest))))

    def constants(self) -> Array:
        """Mean of k(x_i, x_j) over the pairs i ≠ j, for each kernel: shape (m,)."""
        totals = np.array([self._total(kernel) for kernel in self._kernels])
        return totals / (self.n * (self.n - 1))

    def _total(self, kernel: Kernel) -> float:
        with np.errstate(over="ignore"):
            diagonal = kernel.diagonal(self.rows)
            check_overflow(kernel, diagonal)
        ones = np.ones(self.n)
        return gram.quadratic_form(kernel, self.rows, ones) - float(diagonal.sum())

    def cross(self, rows: Array) -> Array:
        """r(y) for each row y: shape (T, m)."""
        if self._compiled is not None:
            return self._compiled.cross(rows)
        with one_blas_thread():
            return np.array([[k.evaluate(self.rows, y[None]).mean() for k in self._kernels] for y in rows])

    def recent(self, rows: Array, seen: int, longest: int) -> Array:
        """Kernel values of rows with those before them: shape (T, m, longest − 1), the oldest first.

        Parameters
        ----------
        rows : array of shape (longest − 1 + T, d)
            The first ones are those before.
        seen : int
            How many of them there are.
        longest : int
        """
        before = longest - 1
        if self._compiled is not None:
            return self._compiled.recent(rows, seen, before)
        values = np.zeros((len(rows) - before, len(self.kernels), before))
        with one_blas_thread():
            for t in range(len(values)):
                reach, now = min(seen + t, before), before + t
                for j, kernel in enumerate(self._kernels):
                    if reach:
                        values[t, j, :reach] = kernel.evaluate(rows[now - reach : now], rows[None, now])[:, 0]
        return values

    def gram(self, rows: Array) -> Array:
        """Kernel values of all pairs of rows: shape (m, N, N)."""
        return np.stack([kernel.evaluate(rows, rows) for kernel in self._kernels])


class _CompiledRows:
    """Gaussian kernels by compiled loops: rows in columns, in units of the first bandwidth."""

    def __init__(self, values: Any, rows: Array, widths: Array, units: Array | None) -> None:
        self._values, self._unit = values, widths[0] if units is None else widths[0] * units
        self._rates = (widths[0] / widths) ** 2 / (2.0 * log(2.0))
        self._reference = self._columns(rows)

    def _columns(self, rows: Array) -> Array:
        with np.errstate(over="ignore"):
            scaled = rows / self._unit
        return np.ascontiguousarray(np.clip(scaled, -_FARTHEST, _FARTHEST).T)

    def _of(self, points: Array, starts: Any, stops: Any, rows: Array, places: int) -> Array:
        out = np.zeros((rows.shape[1], len(self._rates), places))
        self._values(points, starts, stops, rows, self._rates, out)
        return out

    def cross(self, rows: Array) -> Array:
        n, none = self._reference.shape[1], np.zeros(len(rows), np.int64)
        return self._of(self._reference, none, none + n, self._columns(rows), n).mean(axis=2)

    def recent(self, rows: Array, seen: int, before: int) -> Array:
        columns = self._columns(rows)
        now = np.arange(before, len(rows))
        reach = np.minimum(seen + now - before, before)
        return self._of(columns, now - reach, now, np.ascontiguousarray(columns[:, before:]), before)


class FeatureReference:
    """Features of the rows of a reference, summed in a sketch: m numbers in place of n rows.

    Parameters
    ----------
    sketch : MeanSketch
    rows : array of shape (n, d)
        Some rows of the reference, for what features cannot do: simulated streams, and the columns that changed.
    units : array of shape (d,), optional
        What columns are divided by before their features are taken.
    """

    def __init__(self, sketch: MeanSketch, rows: Array, units: Array | None = None) -> None:
        self.sketch, self.rows, self.n, self.units = sketch, rows, sketch.n_, units
        self.kernels: tuple[Kernel, ...] = (sketch.features.kernel_,)
        self.width = sketch.features.n_features_in_
        self._mean = sketch.mean_features()

    def block_size(self, longest: int) -> int:
        """Rows of a stream that are evaluated at a time."""
        return max(1, min(1024, CELLS // max(len(self._mean), longest)))

    def constants(self) -> Array:
        """Mean of z_iᵀz_j over the pairs i ≠ j: shape (1,)."""
        n, squares = self.n, self.sketch.state_.sums.squares
        return np.array([(n * n * float(self._mean @ self._mean) - squares) / (n * (n - 1.0))])

    def features(self, rows: Array) -> Array:
        """z(y), each row by itself."""
        rows = rows if self.units is None else rows / self.units
        with one_blas_thread():
            return np.concatenate([self.sketch.features.evaluate(y[None]) for y in rows])

    def cross(self, rows: Array) -> Array:
        """z(y)ᵀz̄ for each row y: shape (T, 1)."""
        return np.array([[(z * self._mean).sum()] for z in self.features(rows)])

    def recent(self, rows: Array, seen: int, longest: int) -> Array:
        """As that of :class:`RowReference`, by inner products of features."""
        before = longest - 1
        Z = self.features(rows)
        values = np.zeros((len(rows) - before, 1, before))
        for t in range(len(values)):
            reach, now = min(seen + t, before), before + t
            values[t, 0, :reach] = (Z[now - reach : now] * Z[now]).sum(axis=1)
        return values

    def gram(self, rows: Array) -> Array:
        """Inner products of the features of all pairs of rows: shape (1, N, N)."""
        Z = self.features(rows)
        return (Z @ Z.T)[None]


Reference = RowReference | FeatureReference


def population_grams(reference: Reference, rows: Array) -> Array:
    """Kernel values between the rows that simulated streams are drawn from: shape (m, N, N).

    A row drawn twice is not a pair of independent rows. Its k(x, x), larger than any other value, would make all
    statistics noisier; the mean of k(x, ·) over the other rows stands in its place.
    """
    N, m = len(rows), len(reference.kernels)
    check_memory(
        8.0 * m * N * N * 3,
        None,
        f"calibration with {N:,} rows and {m} kernel(s)",
        "pass kernel=muhat.Gaussian(), a single kernel",
    )
    K = reference.gram(rows)
    if not np.isfinite(K).all():
        raise ValueError(f"{reference.kernels[0]!r} gives values that are not finite; rescale the reference")
    diagonal = np.arange(N)
    K[:, diagonal, diagonal] = 0.0
    K[:, diagonal, diagonal] = K.sum(axis=2) / (N - 1)
    return np.ascontiguousarray(K)
