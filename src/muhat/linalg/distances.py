"""Distances between rows, to the last digits, and the median of all pairs."""

from __future__ import annotations

from math import frexp, inf, ldexp
from typing import Literal

import numpy as np
from scipy.spatial.distance import cdist, pdist

from muhat._support.types import Array
from muhat._support.validation import warn_caller
from muhat.linalg.blocks import columns_by_value, lexicographic_order, random_rows

Metric = Literal["euclidean", "cityblock"]

MEDIAN_ROWS = 2000
"""Up to this many rows the median of pairwise distances is exact."""

EXPANDABLE = 40.0
"""Half squared norms, in units of the scale, up to which ‖x − y‖² may be expanded: exp(−½‖x − y‖²) keeps 1e-13."""

_FAR = 1e140
"""Rows farther apart than this, in units of the scale, do not share a unit in which no square overflows or vanishes."""

_ORDINARY = 1e100
"""Squares of smaller numbers, and of scales between this and its inverse, neither overflow nor vanish."""

_SMALLER = 2.0**-40
"""Times this, sums of rows do not overflow, and a length scale does not vanish."""

_TINY_SHARE = 2.0**-1000
"""Rows divided by this share of their size do not overflow."""

_LARGEST = 1e300
"""Sums and differences of smaller numbers do not overflow."""

_DIRECT_WIDTH, _DIRECT_SIZE = 4, 2**17
"""Up to so many columns, or differences in all, sums of squared differences take no longer than a matrix product."""

_CHUNK = 256
"""Rows of a strip whose close pairs are looked for: it stays in the cache."""

_CLOSE = 1e-4
"""Squared distances below this share of the largest squared norm have lost 4 of 16 digits, and are computed again."""

_MANY_CLOSE = 0.05
"""With more close pairs than this share, computing all distances directly takes no longer."""


def power_of_two_near(scale: float) -> float:
    """The power of two next to ``scale``: dividing by it rounds nothing."""
    if not 0 < scale < inf:
        return 1.0
    return ldexp(1.0, min(max(frexp(scale)[1], -1000), 1000))


def powers_of_two(tops: Array) -> Array:
    """The powers of two next to many scales."""
    return np.ldexp(1.0, np.frexp(tops)[1].clip(-1000, 1000))


def squared_distances(X: Array, Y: Array, scale: float = 1.0) -> Array:
    r"""Squared distances :math:`\|x - y\|^2 / scale^2`: exactly 0 for equal rows, symmetric, inf where too large.

    The expanded form |x|² + |y|² − 2xᵀy runs at the speed of a matrix product but loses the digits of rows that
    lie close together far from the origin; such pairs are computed again from their differences.
    """
    given = X, Y
    same = X is Y
    direct = X.shape[1] <= _DIRECT_WIDTH or X.size * len(Y) <= _DIRECT_SIZE
    largest = max(float(np.abs(rows).max(initial=0.0)) for rows in ((X,) if same else (X, Y))) if direct else inf
    if largest < _ORDINARY and 1 / _ORDINARY < scale < _ORDINARY:
        distances = cdist(X, Y, "sqeuclidean")
        distances /= scale * scale
        return distances
    with np.errstate(over="ignore", invalid="ignore"):
        centre = X.mean(axis=0)
        A = X - centre
        B = A if same else Y - centre
        spread = float(max(np.abs(A).max(initial=0.0), np.abs(B).max(initial=0.0)))
    if not np.isfinite(spread):  # sums or differences of the rows overflow
        X = X * _SMALLER
        return squared_distances(X, X if same else Y * _SMALLER, scale * _SMALLER)
    unit = power_of_two_near(max(scale, spread, _TINY_SHARE * float(np.abs(centre).max(initial=0.0))))
    X = X / unit
    Y = X if same else Y / unit
    if direct:
        distances = cdist(X, Y, "sqeuclidean")
    else:
        A /= unit
        distances = _expanded(X, Y, A, A if same else B / unit)
    with np.errstate(over="ignore"):
        factor = min(unit / scale, np.finfo(np.float64).max)
        distances *= factor
        distances *= factor  # not by the square, which may be infinite where a distance is 0
    if spread / _FAR > scale:
        _measure_near_rows_again(distances, *given, scale)
    return distances


def _measure_near_rows_again(distances: Array, X: Array, Y: Array, scale: float) -> None:
    """Distances within each crowd of rows, which vanish in the unit of rows that are so far away."""
    left = np.ones(len(X), dtype=bool)
    while left.any():
        origin = X[np.argmax(left)]
        with np.errstate(over="ignore"):
            near_x, near_y = ((np.abs(rows - origin) <= _FAR * scale).all(axis=1) for rows in (X, Y))
        if near_x.all() and near_y.all():
            return
        near_x &= left
        A = X[near_x]
        B = A if X is Y else Y[near_y]
        distances[np.ix_(near_x, near_x if X is Y else near_y)] = squared_distances(A, B, scale)
        left &= ~near_x


def _expanded(X: Array, Y: Array, A: Array, B: Array) -> Array:
    """Squared distances of the rows of X and Y by way of the same rows about a centre, A and B."""
    a, b = np.einsum("ij,ij->i", A, A), np.einsum("ij,ij->i", B, B)
    distances = A @ B.T
    threshold = _CLOSE * max(a.max(initial=0.0), b.max(initial=0.0))
    chunks = [slice(start, start + _CHUNK) for start in range(0, len(A), _CHUNK)]
    counts = []
    for rows in chunks:
        part = distances[rows]
        part *= -2.0
        part += np.add.outer(a[rows], b)
        counts.append(np.count_nonzero(part <= threshold))
    if sum(counts) > _MANY_CLOSE * distances.size:
        return cdist(X, Y, "sqeuclidean")
    for rows, count in zip(chunks, counts, strict=True):
        if count:
            i, j = np.nonzero(distances[rows] <= threshold)
            difference = X[rows][i] - Y[j]
            distances[rows][i, j] = np.einsum("ij,ij->i", difference, difference)
    return distances


_SAME_ELEMENT = 1e-14
"""Squared distances of two elements below this share of their squared norms are rounding, and count as 0."""


def element_squared_distances(inner: Array, left: Array, right: Array) -> Array:
    """‖f_i − g_j‖² from the inner products ⟨f_i, g_j⟩ and the squared norms ‖f_i‖² and ‖g_j‖²."""
    sizes = np.add.outer(left, right)
    distances = sizes - 2.0 * inner
    distances[distances <= _SAME_ELEMENT * sizes] = 0.0
    return distances


def negative_half_squares(X: Array, Y: Array, scale: float) -> Array | None:
    """−‖x − y‖² / 2scale² by one matrix product, or None where that would lose more than 1e-13."""
    A, B = np.empty((len(X), X.shape[1] + 2)), np.empty((len(Y), Y.shape[1] + 2))
    a, b = A[:, :-2], B[:, :-2]
    with np.errstate(over="ignore", invalid="ignore"):
        centre = X.mean(axis=0)
        for rows, part in ((X, a), (Y, b)):
            np.subtract(rows, centre, out=part)
            part /= scale
        A[:, -2], A[:, -1] = -0.5 * np.einsum("ij,ij->i", a, a), 1.0
        B[:, -2], B[:, -1] = 1.0, -0.5 * np.einsum("ij,ij->i", b, b)
    if not min(A[:, -2].min(), B[:, -1].min()) >= -EXPANDABLE:  # or NaN
        return None
    return A @ B.T


def median_distance(X: Array, metric: Metric, sample_weight: Array | None = None) -> float:
    """Median over all pairs i < j of the distance (for "euclidean": root of the median squared distance).

    Exact up to 2,000 rows. Beyond, the rows are put in lexicographic order and cut into 2,000 steps, and from each
    step one row is taken at a place that a fixed seed chose: the order of the rows does not matter, nor that of the
    columns, which are compared in an order that their least, largest and summed values fix.
    ``sample_weight`` counts repetitions of rows.
    """
    if np.abs(X).max() > _LARGEST:
        median = median_distance(X * _SMALLER, metric, sample_weight) / _SMALLER
        if np.isinf(median):
            raise ValueError('bandwidth="median" overflows: the rows of X are too far apart. Rescale X first')
        return median
    X, weights = _thinned(X, sample_weight)
    unit, kind = power_of_two_near(float(np.abs(X - X[0]).max())), "sqeuclidean" if metric == "euclidean" else metric
    distances = pdist(X / unit, kind)
    if 2 * np.count_nonzero(distances) < len(distances):
        unit = _ordinary_unit(X, unit)
        with np.errstate(over="ignore"):
            distances = np.nan_to_num(pdist(X / unit, kind), nan=np.inf, posinf=np.inf)  # rows that are infinitely far
    multiplicity = None
    if weights is not None:
        i, j = np.triu_indices(len(X), 1)
        distances = np.append(distances, 0.0)
        multiplicity = np.append(weights[i] * weights[j], (weights * (weights - 1)).clip(0).sum() / 2)
    median = positive_median(distances, multiplicity)
    return unit * float(np.sqrt(median) if metric == "euclidean" else median)


def positive_median_distance(rows: Array, most: int, rng: np.random.Generator | None = None) -> float:
    """Median of the positive Euclidean distances of at most ``most`` rows, drawn at random; 1 where all are equal."""
    distances = pdist(random_rows(rows, most, np.random.default_rng(0) if rng is None else rng))
    positive = distances[distances > 0]
    return float(np.median(positive)) if len(positive) else 1.0


def _ordinary_unit(X: Array, unit: float) -> float:
    """A unit of ordinary distances, where some are so large that the squares of others vanish in theirs."""
    largest = pdist(X, "chebyshev")  # differences of columns, of which no squares are taken
    median = float(np.median(largest)) or float(np.median(largest[largest > 0])) if largest.any() else 0.0
    return power_of_two_near(median) if median > 0 else unit


def _thinned(X: Array, weights: Array | None) -> tuple[Array, Array | None]:
    """Up to 2,000 rows as they are; beyond, one row at a fixed random place of each of 2,000 steps in their order."""
    total = len(X) if weights is None else float(weights.sum())
    if total <= MEDIAN_ROWS:
        return (X, None) if weights is None else (X[weights > 0], weights[weights > 0])
    order = lexicographic_order(X[:, columns_by_value(X, weights)])
    places = (np.arange(MEDIAN_ROWS) + np.random.default_rng(0).random(MEDIAN_ROWS)) * (total / MEDIAN_ROWS)
    ends = np.arange(1.0, len(X) + 1) if weights is None else np.cumsum(weights[order])
    return X[order[np.searchsorted(ends, places, side="right").clip(max=len(X) - 1)]], None


def positive_median(
    distances: Array, multiplicity: Array | None = None, *, what: str = 'bandwidth="median"', of: str = "rows"
) -> float:
    """The median of distances, or that of the positive ones, with a warning, where it is 0."""
    median = _median(distances, multiplicity)
    if median > 0:
        return median
    positive = distances > 0
    if not positive.any():
        raise ValueError(
            f"{what} needs two {of} that differ, and all {of} of X are equal; pass the bandwidth as a number, for "
            f"example Gaussian(bandwidth=1.0)"
        )
    warn_caller(
        f"{what}: more than half of the pairs of {of} coincide, so the median distance is 0; the median of the "
        f"non-zero distances is used instead. Pass a number to choose the bandwidth yourself.",
    )
    return _median(distances[positive], None if multiplicity is None else multiplicity[positive])


def _median(values: Array, multiplicity: Array | None) -> float:
    if multiplicity is None:
        lower, upper = (len(values) - 1) // 2, len(values) // 2
        return float(np.partition(values, [lower, upper])[[lower, upper]].mean())
    order = np.argsort(values)
    cumulative = np.cumsum(multiplicity[order])
    half = cumulative[-1] / 2
    lower, upper = np.searchsorted(cumulative, half, "left"), np.searchsorted(cumulative, half, "right")
    return float(values[order[[lower, min(upper, len(values) - 1)]]].mean())
