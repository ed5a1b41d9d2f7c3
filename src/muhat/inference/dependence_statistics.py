"""Statistics of the default test of independence, each sensitive to another kind of dependence, on all pairings.

Matrices of one side are transformed once, and every pair of an X matrix and a Y matrix then costs one product of
transforms. What is fitted (bandwidths, whitening) is fitted to each side alone, so that pairings stay exchangeable.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from math import isqrt
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist, squareform
from scipy.stats import rankdata

from muhat._support.types import Array
from muhat.features.nystroem import Nystroem
from muhat.inference.combine import Component
from muhat.inference.difference_statistics import PAIR_ROWS, normal_scores
from muhat.inference.permutations import EPS, Pairings
from muhat.kernels.radial import Gaussian
from muhat.linalg.blocks import blocks, rows_by_value
from muhat.linalg.centered_gram import center_gram
from muhat.linalg.distances import positive_median_distance
from muhat.linalg.whitening import Whitening, standardised

MULTIPLES = (0.125, 0.5, 2.0)
"""Bandwidths of each side, in units of its median distance, chosen by ``benchmarks/power.py``."""

MAX_COLUMNS_FOR_PAIRS = 12
"""Up to this many columns on both sides together, each pair of columns has a distance covariance of its own, and
each column a Gram matrix."""

MAX_PRODUCTS = 2**38
"""Products of two numbers, over all pairs of columns and all pairings, that one statistic of pairs of columns takes:
some ten seconds."""

MAX_EXACT_PAIRS = 3000
"""Beyond this many pairs, whose twelve matrices take 0.9 GB, the default test uses features."""

FEATURES = 50
"""Features of each kernel of large samples."""

WHITENED_WEIGHT = 2.0
"""Weight of the whitened rows, where each other group of components has 1, chosen by ``benchmarks/power.py``."""

_PRODUCTS = 2**20  # of columns that are in memory at a time: 8 MB


def default_dependences(X: Array, Y: Array, pairings: Pairings, rng: np.random.Generator) -> list[Component]:
    """All components of the default test; columns are in scales in which they can be compared."""
    pairs = pairings.permutations()
    left, right = some_columns(X, Y, len(pairs), rng)
    components = []
    for name, group, scores in (
        ("rank correlation", "wide", lambda rows: np.asarray(rankdata(rows, axis=0))),
        ("squared scores", "columns", lambda rows: normal_scores(rows) ** 2),
    ):
        A, C = standardised(scores(X[:, left])), standardised(scores(Y[:, right]))
        part = _largest_products(name, group, A, C, pairs)
        components.append(replace(part, value=(int(left[part.value[0]]), int(right[part.value[1]]))))
    if len(X) > MAX_EXACT_PAIRS:
        components += _feature_components(X, Y, pairs, rng)
        return equal_groups(components + _canonical_correlations(X, Y, pairs))
    medians = positive_median_distance(X, PAIR_ROWS, rng), positive_median_distance(Y, PAIR_ROWS, rng)
    of_x, of_y = _side_matrices(X, medians[0]), _side_matrices(Y, medians[1])
    sums = pairings.sums(of_x, of_y) / len(X) ** 2
    sizes = [[_rounding(K, L) for L in of_y] for K in of_x]
    components.append(Component("distance covariance", "wide", sums[-1, -1], sizes[-1][-1]))
    for k, x in enumerate(MULTIPLES):
        for m, y in enumerate(MULTIPLES):
            kernels = Gaussian(x * medians[0]), Gaussian(y * medians[1])
            components.append(Component(f"{x:g} x {y:g} medians", "scales", sums[k, m], sizes[k][m], value=kernels))
    components.append(_dispersion(_far_out(X, medians[0]), _far_out(Y, medians[1]), pairs))
    if X.shape[1] * Y.shape[1] > 1 and X.shape[1] + Y.shape[1] <= MAX_COLUMNS_FOR_PAIRS:
        components.append(_column_distances(X, Y, pairings))
    return equal_groups(components + _whitened_distances(X, Y, pairings))


def equal_groups(components: list[Component]) -> list[Component]:
    """The components with weights by which each group has the same, but that of whitened rows, and each component."""
    sizes = Counter(part.group for part in components)
    of_groups = {group: WHITENED_WEIGHT if group == "whitened" else 1.0 for group in sizes}
    return [replace(part, weight=of_groups[part.group] / sizes[part.group]) for part in components]


def _rounding(K: Array, L: Array) -> float:
    """The rounding error of the mean of products of two matrices of kernel values."""
    return EPS * float(np.linalg.norm(K) * np.linalg.norm(L)) / len(K)


def _whitened_distances(X: Array, Y: Array, pairings: Pairings) -> list[Component]:
    """The distance covariance of rows that are whitened on each side; none where both sides are one column.

    It sees dependence along directions in which correlated columns hardly vary, as canonical correlations do.
    """
    if X.shape[1] + Y.shape[1] <= 2:
        return []
    K, L = (center_gram(-squareform(pdist(Whitening.of(rows).principal_scores(rows)))) for rows in (X, Y))
    sums = pairings.sums([K], [L])[0, 0] / len(X) ** 2
    return [Component("whitened distance covariance", "whitened", sums, _rounding(K, L))]


def _canonical_correlations(X: Array, Y: Array, pairs: Any) -> list[Component]:
    """The sum of squared canonical correlations, with a ridge, which many pairs of rows can afford."""
    widths = X.shape[1], Y.shape[1]
    if sum(widths) <= 2 or columns_looked_at(len(X), *widths, len(pairs)) != widths:
        return []
    A, C = (Whitening.of(rows).principal_scores(rows) for rows in (X, Y))
    found = np.empty(len(pairs))
    for part, products in _cross_products(A, C, pairs):
        found[part] = (products**2).sum(axis=(1, 2))
    return [Component("canonical correlations", "whitened", found, EPS)]


def _side_matrices(rows: Array, median: float) -> list[Array]:
    """Centred Gram matrices of one side: Gaussian kernels from fine to wide, and the negative distance."""
    distances = squareform(pdist(rows))
    squares = -0.5 * (distances / median) ** 2
    return [center_gram(np.exp(squares / multiple**2)) for multiple in MULTIPLES] + [center_gram(-distances)]


def _far_out(rows: Array, median: float) -> Array:
    """The squared distance of each row from the mean in the space of the median Gaussian, but for a constant."""
    return np.asarray(-2.0 * np.exp(-0.5 * (squareform(pdist(rows)) / median) ** 2).mean(axis=1))


def _cross_products(A: Array, C: Array, pairs: Any) -> Iterator[tuple[slice, Array]]:
    """AᵀC/n for blocks of pairings, C permuted."""
    step = max(1, _PRODUCTS // max(C.size, A.shape[1] * C.shape[1]))
    for part in blocks(len(pairs), step):
        products = np.matmul(A.T, C[pairs[part]])
        products /= len(A)  # in place: it may be most of the memory
        yield part, products


def _largest_products(name: str, group: str, A: Array, C: Array, pairs: Any) -> Component:
    """The largest squared covariance of two columns."""
    found, strongest = np.empty(len(pairs)), 0
    for part, products in _cross_products(A, C, pairs):
        squares = np.square(products, out=products).reshape(len(products), -1)
        found[part] = squares.max(axis=1)
        if part.start == 0:
            strongest = int(squares[0].argmax())
    return Component(name, group, found, EPS, value=divmod(strongest, C.shape[1]))


def columns_looked_at(n: int, p: int, q: int, resamples: int) -> tuple[int, int]:
    """Of p and q columns on the two sides, those whose pairs are looked at: as many as MAX_PRODUCTS allows.

    >>> columns_looked_at(100, 1000, 20, 1000), columns_looked_at(100, 10_000, 10_000, 1000)
    ((1000, 20), (1657, 1658))
    """
    most = max(1, MAX_PRODUCTS // (n * resamples))
    left = min(p, max(isqrt(most), most // q))
    return left, min(q, most // left)


def product_bytes(n: int, p: int, q: int, resamples: int) -> float:
    """The memory of products of all pairs of columns, for as many pairings as a block holds."""
    left, right = columns_looked_at(n, p, q, resamples)
    each = max(n, left) * right
    return 3 * 8.0 * min(max(_PRODUCTS, each), resamples * each)


def some_columns(X: Array, Y: Array, resamples: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Numbers of the columns of both sides whose pairs are looked at.

    Where these are not all, they are drawn whatever the pairing of the rows is, so that the level stays as it is.
    """
    widths = X.shape[1], Y.shape[1]
    kept = columns_looked_at(len(X), *widths, resamples)
    drawn = [
        np.arange(width) if most == width else np.sort(rng.choice(width, most, replace=False))
        for width, most in zip(widths, kept, strict=True)
    ]
    return drawn[0], drawn[1]


def _dispersion(left: Array, right: Array, pairs: Any) -> Component:
    """|Σ (K̃ᵢᵢ − mean)(L̃ᵢᵢ − mean)|: whether rows far out on one side are far out on the other."""
    a, c = left - left.mean(), right - right.mean()
    products = c[pairs] @ a / len(a)
    rounding = EPS * float(np.linalg.norm(a) * np.linalg.norm(c)) / len(a)
    return Component("distance from the centre", "dispersion", np.abs(products), rounding, value=bool(products[0] > 0))


def _column_distances(X: Array, Y: Array, pairings: Pairings) -> Component:
    """The largest distance covariance of two columns, each column in units of its own distance variance."""
    sides = []
    for rows in (X, Y):
        matrices = [center_gram(-squareform(pdist(column[:, None]))) for column in rows.T]
        sides.append([K / (float(np.linalg.norm(K)) or 1.0) for K in matrices])
    sums = pairings.sums(*sides).reshape(X.shape[1] * Y.shape[1], -1)
    pair = divmod(int(sums[:, 0].argmax()), Y.shape[1])
    return Component("distance covariance of columns", "columns", sums.max(axis=0), EPS, value=pair)


def _feature_components(X: Array, Y: Array, pairs: Any, rng: np.random.Generator) -> list[Component]:
    """HSIC of Nyström features, Σ (φᵀψ)², for samples whose matrices would not fit."""
    components = []
    for multiple in (0.25, 1.0):
        features, kernels = [], []
        for rows in (X, Y):
            kernel = Gaussian(multiple * positive_median_distance(rows, PAIR_ROWS, rng))
            landmarks = rows[rows_by_value(rows, FEATURES, rng)]
            nystroem = Nystroem(kernel, landmarks=landmarks).fit(landmarks)
            Z = np.asarray(nystroem.transform(rows))
            features.append((Z - Z.mean(axis=0)).astype(np.float32))
            kernels.append(kernel)
        found = np.array([float(((features[0].T @ features[1][order]) ** 2).sum()) for order in pairs]) / len(X) ** 2
        rounding = float(np.finfo(np.float32).eps) * float(found.mean())
        components.append(
            Component(f"{multiple:g} x {multiple:g} medians", "scales", found, rounding, value=tuple(kernels))
        )
    return components
