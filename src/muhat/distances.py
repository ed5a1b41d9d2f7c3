"""Distances between rows, to the last digits, and the median of all pairs."""

from __future__ import annotations

import warnings
from typing import Literal

import numpy as np
from scipy.spatial.distance import cdist, pdist

from muhat.types import Array

Metric = Literal["sqeuclidean", "cityblock"]

MEDIAN_ROWS = 2000
"""Up to so many rows the median of pairwise distances is exact."""

_DIRECT_WIDTH = 4
_CHUNK = 256
_CLOSE = 1e-4
_MANY_CLOSE = 0.05


def power_of_two_near(scale: float) -> float:
    """The power of two next to ``scale``: dividing by it rounds nothing."""
    if not (np.isfinite(scale) and scale > 0):
        return 1.0
    exponent = int(np.clip(np.frexp(scale)[1], -1000, 1000))
    return float(np.ldexp(1.0, exponent))


def squared_distances(X: Array, Y: Array, scale: float = 1.0) -> Array:
    r"""Squared distances :math:`\|x - y\|^2 / scale^2`, exactly 0 for equal rows.

    The expanded form |x|² + |y|² − 2xᵀy runs at the speed of a matrix product but loses the digits of rows that
    lie close together far from the origin; such pairs are computed again from their differences.
    """
    unit = power_of_two_near(scale)
    same = X is Y
    X = X / unit
    Y = X if same else Y / unit
    distances = cdist(X, Y, "sqeuclidean") if X.shape[1] <= _DIRECT_WIDTH else _expanded(X, Y)
    distances *= (unit / scale) ** 2
    return distances


def _expanded(X: Array, Y: Array) -> Array:
    centre = X.mean(axis=0)
    A = X - centre
    B = A if Y is X else Y - centre
    a, b = np.einsum("ij,ij->i", A, A), np.einsum("ij,ij->i", B, B)
    distances = A @ B.T
    threshold = _CLOSE * max(a.max(initial=0.0), b.max(initial=0.0))
    for start in range(0, len(A), _CHUNK):
        rows = slice(start, start + _CHUNK)
        part = distances[rows]
        part *= -2.0
        part += np.add.outer(a[rows], b)
        _recompute_close(part, X[rows], Y, threshold)
    return distances


def _recompute_close(distances: Array, X: Array, Y: Array, threshold: float) -> None:
    close = distances <= threshold
    count = np.count_nonzero(close)
    if count > _MANY_CLOSE * close.size:
        distances[:] = cdist(X, Y, "sqeuclidean")
    elif count:
        i, j = np.nonzero(close)
        difference = X[i] - Y[j]
        distances[i, j] = np.einsum("ij,ij->i", difference, difference)


def median_distance(X: Array, metric: Metric, sample_weight: Array | None = None) -> float:
    """Median over all pairs i < j of the distance (for "sqeuclidean": root of the median squared distance).

    Exact up to 2,000 rows. Beyond, from 2,000 rows at equal steps of the rows in lexicographic order, so that
    the order of the rows does not matter. ``sample_weight`` counts repetitions of rows.
    """
    X, weights = _thinned(X, sample_weight)
    unit = power_of_two_near(float(np.abs(X - X[0]).max()))
    distances = pdist(X / unit, metric)
    multiplicity = None
    if weights is not None:
        i, j = np.triu_indices(len(X), 1)
        distances = np.append(distances, 0.0)
        multiplicity = np.append(weights[i] * weights[j], (weights * (weights - 1)).clip(0).sum() / 2)
    median = _positive_median(distances, multiplicity)
    return unit * float(np.sqrt(median) if metric == "sqeuclidean" else median)


def _thinned(X: Array, weights: Array | None) -> tuple[Array, Array | None]:
    if weights is not None:
        X, weights = X[weights > 0], weights[weights > 0]
    if len(X) <= MEDIAN_ROWS:
        return X, weights
    order = np.lexsort(X.T[::-1])
    steps = (np.arange(MEDIAN_ROWS) + 0.5) / MEDIAN_ROWS
    if weights is None:
        return X[order[(steps * len(X)).astype(int)]], None
    cumulative = np.cumsum(weights[order])
    return X[order[np.searchsorted(cumulative, steps * cumulative[-1])]], None


def _positive_median(distances: Array, multiplicity: Array | None) -> float:
    median = _median(distances, multiplicity)
    if median > 0:
        return median
    positive = distances > 0
    if not positive.any():
        raise ValueError(
            'bandwidth="median" needs two rows that differ, and all rows of X are equal; '
            "pass the bandwidth as a number, for example Gaussian(bandwidth=1.0)"
        )
    warnings.warn(
        'bandwidth="median": more than half of the pairs of rows coincide, so the median distance is 0; '
        "the median of the non-zero distances is used instead. Pass a number to choose the bandwidth yourself.",
        UserWarning,
        stacklevel=2,
    )
    return _median(distances[positive], None if multiplicity is None else multiplicity[positive])


def _median(values: Array, multiplicity: Array | None) -> float:
    if multiplicity is None:
        return float(np.median(values))
    order = np.argsort(values)
    cumulative = np.cumsum(multiplicity[order])
    half = cumulative[-1] / 2
    lower, upper = np.searchsorted(cumulative, half, "left"), np.searchsorted(cumulative, half, "right")
    return float(values[order[[lower, min(upper, len(values) - 1)]]].mean())
