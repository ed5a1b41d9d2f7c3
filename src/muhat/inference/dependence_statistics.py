"""The ways in which the two sides of pairs can depend on each other, each as a statistic on all pairings at once.

The default test of independence joins them (``joining``). Matrices of one side are transformed once, and every pair of
an X matrix and a Y matrix then costs one product of transforms.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import permutations
from math import isqrt
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy import fft
from scipy.spatial.distance import pdist, squareform
from scipy.special import factorial
from scipy.stats import rankdata

from muhat.features.nystroem import Nystroem
from muhat.inference.combine import EPS, Component
from muhat.inference.difference_statistics import normal_scores, some_rows, standardised
from muhat.kernels.radial import Gaussian
from muhat.linalg.blocks import blocks
from muhat.linalg.centered_gram import center_gram
from muhat.types import Array

MULTIPLES = (0.125, 0.5, 2.0)
"""Bandwidths of each side, in units of its median distance."""

MAX_COLUMNS_FOR_PAIRS = 12
"""Up to this many columns on both sides together, each pair of columns has a distance covariance of its own."""

MAX_PRODUCTS = 2**38
"""Products of two numbers, over all pairs of columns and all pairings, that one statistic of pairs of columns takes."""

MAX_EXACT_PAIRS = 3000
"""Beyond this many pairs the default test uses features."""

FEATURES = 50
"""Features of each kernel of large samples."""

_DIAGONALS = 64

_PRODUCTS = 2**20


# ---------------------------------------------------------------- pairings


class Families:
    """Pairings in families of n: a random one and its cyclic shifts, along a random order of the rows.

    The observed pairing is the first; the sums of a family are one circular correlation by the Fourier transform.
    """

    def __init__(self, n: int, n_resamples: int, rng: np.random.Generator) -> None:
        self.orders = rng.permuted(np.tile(np.arange(n), (-(-(n_resamples + 1) // n), 1)), axis=1)
        others = 1 + rng.choice(self.orders.size - 1, n_resamples, replace=False)
        self.chosen = np.concatenate([[0], others])

    def permutations(self) -> Any:
        """Row b holds, for each row of X, the row of Y that it is paired with."""
        n = self.orders.shape[1]
        family, shift = np.divmod(self.chosen, n)
        places = (np.arange(n) + shift[:, None]) % n
        pairs = np.empty_like(places)
        pairs[:, self.orders[0]] = self.orders[family[:, None], places]
        return pairs

    def sums(self, left: Sequence[Array], right: Sequence[Array]) -> Array:
        """Entry (k, l, b) is Σᵢⱼ K[i, j] L[b(i), b(j)] for matrix K of the left and L of the right."""
        every = pairing_sums(left, right, self.orders).reshape(len(left), len(right), -1)
        found = every[..., self.chosen]
        for k, K in enumerate(left):
            for m, L in enumerate(right):
                found[k, m, 0] = np.vdot(K, L)
        return found


class Listed:
    """Pairings one by one, the observed one first."""

    def __init__(self, pairs: Any) -> None:
        self.pairs = pairs

    @classmethod
    def within_strata(cls, strata: Any, n_resamples: int, rng: np.random.Generator) -> Listed:
        """Random pairings that permute the rows of Y within strata."""
        pairs = np.tile(np.arange(len(strata)), (n_resamples + 1, 1))
        for stratum in np.unique(strata):
            inside = np.flatnonzero(strata == stratum)
            pairs[1:, inside] = rng.permuted(pairs[1:, inside], axis=1)
        return cls(pairs)

    @classmethod
    def every(cls, strata: Any) -> Listed:
        """All pairings within strata; that of rows in their order is the first of :func:`itertools.permutations`."""
        pairs = np.arange(len(strata))[None]
        for stratum in np.unique(strata):
            inside = np.flatnonzero(strata == stratum)
            orders = np.array(list(permutations(inside)))
            pairs = np.repeat(pairs, len(orders), axis=0)
            pairs[:, inside] = np.tile(orders, (len(pairs) // len(orders), 1))
        return cls(pairs)

    def permutations(self) -> Any:
        return self.pairs

    def sums(self, left: Sequence[Array], right: Sequence[Array]) -> Array:
        flat = np.stack([K.ravel() for K in left])
        found = np.empty((len(left), len(right), len(self.pairs)))
        for b, order in enumerate(self.pairs):
            for m, L in enumerate(right):
                found[:, m, b] = flat @ L[np.ix_(order, order)].ravel()
        return found


def pairing_sums(left: Sequence[Array], right: Sequence[Array], orders: Any) -> Array:
    """Entry (k, l, b, t) is Σᵢⱼ K[a(i), a(j)] L[b(i+t), b(j+t)], where b is row b of ``orders`` and a is its row 0.

    The pairs j = i + d of one d are a diagonal, and all shifts t of two diagonals are their circular correlation. K and
    L are symmetric, hence d and n − d give the same.
    """
    n = orders.shape[1]
    last = n // 2
    spectra = np.zeros((len(left), len(right), len(orders), last + 1), dtype=np.complex128)
    for part in blocks(last + 1, _DIAGONALS):
        offsets = np.arange(part.start, part.stop)
        times = np.where((offsets == 0) | (2 * offsets == n), 1.0, 2.0)
        of_left = np.stack([fft.rfft(times * _diagonals(K, orders[0], offsets), axis=0).conj() for K in left], axis=1)
        for b, order in enumerate(orders):  # a product of matrices for each frequency: left × diagonals × right
            of_right = np.stack([fft.rfft(_diagonals(L, order, offsets), axis=0) for L in right], axis=2)
            spectra[:, :, b] += np.moveaxis(of_left @ of_right, 0, -1)
    return np.asarray(fft.irfft(spectra, n, axis=-1))


def _diagonals(K: Array, order: Any, offsets: Any) -> Array:
    """Column d holds K[order(i), order(i + d)] for all i, indices modulo n."""
    n = len(order)
    shifted = sliding_window_view(np.concatenate([order, order])[offsets[0] :], len(offsets))[:n]
    return K.ravel().take(shifted + n * order[:, None])


def draw_pairings(n: int, strata: Any, n_resamples: int, rng: np.random.Generator) -> tuple[Families | Listed, float]:
    """Pairings of n rows with one another, within strata if there are any, and the smallest p-value that they allow.

    They are drawn at random, unless all pairings are few: then each comes once.
    """
    numbers = np.zeros(n, dtype=np.intp) if strata is None else strata
    with np.errstate(over="ignore"):  # infinite where there are very many
        count = float(np.prod(factorial(np.bincount(numbers))))
    if count <= n_resamples + 1:
        return Listed.every(numbers), 1.0 / count
    drawn = Families(n, n_resamples, rng) if strata is None else Listed.within_strata(strata, n_resamples, rng)
    return drawn, 1.0 / (n_resamples + 1)


# ---------------------------------------------------------------- components


def default_dependences(X: Array, Y: Array, pairings: Families | Listed, rng: np.random.Generator) -> list[Component]:
    """All components of the default test; columns are in units in which they can be compared."""
    pairs = pairings.permutations()
    left, right = some_columns(X, Y, len(pairs), rng)
    components = [
        replace(part, value=(int(left[part.value[0]]), int(right[part.value[1]])))
        for part in (of_pairs(X[:, left], Y[:, right], pairs) for of_pairs in (_rank_correlation, _squared_scores))
    ]
    if len(X) > MAX_EXACT_PAIRS:
        return equal_groups(components + _feature_components(X, Y, pairs, rng))
    medians = _median_distance(X, rng), _median_distance(Y, rng)
    of_x, of_y = _side_matrices(X, medians[0]), _side_matrices(Y, medians[1])
    sums = pairings.sums(of_x, of_y) / len(X) ** 2
    sizes = [[EPS * float(np.linalg.norm(K) * np.linalg.norm(L)) / len(X) for L in of_y] for K in of_x]
    components.append(Component("distance covariance", "wide", sums[-1, -1], sizes[-1][-1]))
    for k, x in enumerate(MULTIPLES):
        for m, y in enumerate(MULTIPLES):
            kernels = Gaussian(x * medians[0]), Gaussian(y * medians[1])
            components.append(Component(f"{x:g} x {y:g} medians", "scales", sums[k, m], sizes[k][m], value=kernels))
    components.append(_spread(_far_out(X, medians[0]), _far_out(Y, medians[1]), pairs))
    if X.shape[1] * Y.shape[1] > 1 and X.shape[1] + Y.shape[1] <= MAX_COLUMNS_FOR_PAIRS:
        components.append(_column_distances(X, Y, pairings))
    return equal_groups(components)


def equal_groups(components: list[Component]) -> list[Component]:
    """The components with weights by which each group has the same, and each component of a group."""
    sizes = Counter(part.group for part in components)
    return [replace(part, weight=1.0 / sizes[part.group]) for part in components]


def _side_matrices(rows: Array, median: float) -> list[Array]:
    """Centred Gram matrices of one side: Gaussian kernels from fine to wide, and the negative distance."""
    distances = squareform(pdist(rows))
    squares = -0.5 * (distances / median) ** 2
    return [center_gram(np.exp(squares / multiple**2)) for multiple in MULTIPLES] + [center_gram(-distances)]


def _far_out(rows: Array, median: float) -> Array:
    """The squared distance of each row from the mean in the space of the median Gaussian, but for a constant."""
    return np.asarray(-2.0 * np.exp(-0.5 * (squareform(pdist(rows)) / median) ** 2).mean(axis=1))


def _median_distance(rows: Array, rng: np.random.Generator) -> float:
    """The median of the positive distances of some rows, drawn at random; 1 where there are none."""
    distances = pdist(some_rows(rows, rng))
    distances = distances[distances > 0]
    return float(np.median(distances)) if len(distances) else 1.0


def _cross_products(A: Array, C: Array, pairs: Any) -> Iterator[tuple[slice, Array]]:
    """AᵀC/n for blocks of pairings, C permuted."""
    step = max(1, _PRODUCTS // max(C.size, A.shape[1] * C.shape[1]))
    for part in blocks(len(pairs), step):
        yield part, np.matmul(A.T, C[pairs[part]]) / len(A)


def _largest_products(name: str, group: str, A: Array, C: Array, pairs: Any) -> Component:
    """The largest squared covariance of two columns."""
    found, strongest = np.empty(len(pairs)), 0
    for part, products in _cross_products(A, C, pairs):
        squares = products.reshape(len(products), -1) ** 2
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


def _rank_correlation(X: Array, Y: Array, pairs: Any) -> Component:
    left, right = (standardised(np.asarray(rankdata(rows, axis=0))) for rows in (X, Y))
    return _largest_products("rank correlation", "wide", left, right, pairs)


def _squared_scores(X: Array, Y: Array, pairs: Any) -> Component:
    left, right = (standardised(normal_scores(rows) ** 2) for rows in (X, Y))
    return _largest_products("squared scores", "columns", left, right, pairs)


def _spread(left: Array, right: Array, pairs: Any) -> Component:
    """|Σ (K̃ᵢᵢ − mean)(L̃ᵢᵢ − mean)|: whether rows far out on one side are far out on the other."""
    a, c = left - left.mean(), right - right.mean()
    products = c[pairs] @ a / len(a)
    rounding = EPS * float(np.linalg.norm(a) * np.linalg.norm(c)) / len(a)
    return Component("distance from the centre", "spread", np.abs(products), rounding, value=bool(products[0] > 0))


def _column_distances(X: Array, Y: Array, pairings: Families | Listed) -> Component:
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
            kernel = Gaussian(multiple * _median_distance(rows, rng))
            landmarks = rows[np.sort(rng.choice(len(rows), min(len(rows), 1000), replace=False))]
            nystroem = Nystroem(kernel, FEATURES, random_state=int(rng.integers(2**31))).fit(landmarks)
            Z = np.asarray(nystroem.transform(rows))
            features.append((Z - Z.mean(axis=0)).astype(np.float32))
            kernels.append(kernel)
        found = np.array([float(((features[0].T @ features[1][order]) ** 2).sum()) for order in pairs]) / len(X) ** 2
        rounding = float(np.finfo(np.float32).eps) * float(found.mean())
        components.append(
            Component(f"{multiple:g} x {multiple:g} medians", "scales", found, rounding, value=tuple(kernels))
        )
    return components
