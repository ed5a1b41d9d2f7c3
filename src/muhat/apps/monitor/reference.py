r"""A reference and the components that compare rows of a stream with it: kernels, whitened means, dispersions.

Rows are seen in three ways, with d columns: *scaled*, y = (x − mean) / sd; *whitened*, z = Wᵀy with WWᵀ = (S + ρI)⁻¹,
where S is the correlation matrix of the reference and ρ = 0.1 d/n; and *ranked*, normal scores of the ranks of x among
the reference rows, whitened in the same way. The components, in the order of their columns in all arrays, are

- the unbiased MMD² of the scaled rows, with Gaussian kernels at one and at a quarter of their median distance;
- the unbiased MMD² of the whitened rows, with a Gaussian kernel at the median distance;
- Hotelling's statistic as a U-statistic, the mean of zᵀz′ over the pairs of a window, of whitened and of ranked rows;
- the dispersion, plus and minus the mean of log(1 + ‖z‖²/d), of whitened and of ranked rows;
- log(1 + ‖z‖²/d) of a single whitened row.

How far out a row may be is not known from a reference. In Hotelling's statistic and in the dispersions rows are
therefore held at the norm of the farthest row of the reference: then a window is extreme by many rows, of which
simulations know, and a single far row is left to the last component.

Each row of a stream is evaluated by itself, in arrays whose shapes do not depend on how the stream is cut into blocks,
and on one thread. So its values are the same to the last bit in any block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import ndtri

from muhat._support.types import Array
from muhat.kernels.base import Kernel
from muhat.kernels.capabilities import gaussian_bandwidth
from muhat.kernels.radial import Gaussian
from muhat.linalg.centered_gram import mean_off_diagonal
from muhat.linalg.distances import positive_median_distance
from muhat.linalg.resources import check_memory
from muhat.linalg.whitening import FARTHEST, Whitening, leave_one_out, leave_two_out
from muhat.tables.scales import ColumnScales

RIDGE = 0.1
"""ρ n/d: the ridge of the metric, small beside what a direction with variance must have to be estimated at all."""

BANDWIDTHS = (1.0, 0.25)
"""Bandwidths of the kernels of scaled rows, in scales of the median distance."""

CELLS = 2**18
"""Kernel values of one piece of a block: 2 MB."""

COMPONENTS = (
    "distribution",
    "fine structure",
    "whitened distribution",
    "whitened means",
    "whitened means of ranks",
    "larger dispersion",
    "smaller dispersion",
    "larger dispersion of ranks",
    "smaller dispersion of ranks",
    "a far row",
)
"""Names of the components; the first five compare pairs of rows, and the last judges single rows."""

_MEDIAN_ROWS = 1000
_SINGLE = 2.0**-23  # a unit in the last place of single precision


class Views(NamedTuple):
    """Rows of a stream as the components see them: shapes (T, d)."""

    scaled: Array
    whitened: Array
    ranked: Array


@dataclass(frozen=True, eq=False)
class Metric:
    """The whitening of standardised columns."""

    rows: Array  # (n, d): the standardised rows that it was fitted to
    ridge: float  # ρ
    factor: Array  # (d, d): W, the symmetric square root of the inverse of S + ρI
    farthest: float  # the largest norm of a whitened row under a metric that was fitted without it

    @classmethod
    def of(cls, rows: Array) -> Metric:
        """Fit to standardised rows."""
        n, d = rows.shape
        ridge = RIDGE * d / n
        factor = Whitening.of_standardised(rows, ridge).root()
        own = float(((rows @ factor) ** 2).sum(axis=1).max())
        # Without the row itself in the fit its squared norm is larger, up to terms of order 1/n (Sherman and Morrison).
        return cls(rows, ridge, factor, sqrt(own / max(1.0 - own / n, 1.0 / n)))

    def held(self, whitened: Array) -> Array:
        """Whitened rows, drawn in to the distance of the farthest one of the reference."""
        norms = np.sqrt((whitened**2).sum(axis=1, keepdims=True))
        return whitened * (self.farthest / np.maximum(norms, self.farthest))

    def whiten(self, rows: Array) -> Array:
        """Whitened rows, each by itself."""
        return np.array([row @ self.factor for row in rows]).reshape(rows.shape)


@dataclass(frozen=True, eq=False)
class Ranks:
    """Normal scores of ranks among the rows of a reference, standardised."""

    columns: Array  # (d, n): the sorted columns of the reference
    # centre, scale: (d,): of the scores of the reference
    centre: Array
    scale: Array

    @classmethod
    def of(cls, rows: Array) -> tuple[Ranks, Array]:
        """The ranks of a reference, and its own standardised scores, each row ranked among the others."""
        columns = np.ascontiguousarray(np.sort(rows, axis=0).T)
        own = _normal_scores(columns, rows, itself=True)
        centre, scale = own.mean(axis=0), own.std(axis=0)
        scale = np.where(scale > 0.0, scale, 1.0)
        return cls(columns, centre, scale), (own - centre) / scale

    def __call__(self, rows: Array) -> Array:
        """Standardised scores of new rows."""
        return np.asarray((_normal_scores(self.columns, rows) - self.centre) / self.scale)


def _normal_scores(columns: Array, rows: Array, itself: bool = False) -> Array:
    """Normal scores of the share of N values that are less, ties counted half, held off 0 and 1: shape (T, d).

    The share is (c_< + c_=/2 + 1/2) / (N + 1). A new row is ranked among all N = n rows of a reference, and a row of
    the reference among the N = n − 1 others, without itself among its ties. Values are equal where they agree in
    single precision, in which either side may have been stored.
    """
    near = _SINGLE * np.abs(rows)
    with np.errstate(over="ignore"):
        low, high = (rows - near).T, (rows + near).T
    if len(rows) == 1:  # one comparison with all values takes less time than two searches in each column
        twice = ((columns < low).sum(axis=1) + (columns <= high).sum(axis=1))[None]
    else:
        pairs = zip(columns, low, high, strict=True)
        twice = np.stack([np.searchsorted(c, x) + np.searchsorted(c, y, "right") for c, x, y in pairs], axis=1)
    n = columns.shape[1]
    return np.asarray(ndtri(twice / (2.0 * n) if itself else (twice + 1.0) / (2.0 * n + 2.0)))


def kernel_values(kernels: Sequence[Kernel], rows: Array, points: Array) -> Array:
    """Values of each kernel between rows and points, each pair by itself: shape (m, T, N)."""
    widths = [gaussian_bandwidth(kernel) for kernel in kernels]
    if None in widths:
        with np.errstate(over="ignore", invalid="ignore"):  # refused with a word
            return np.stack([[kernel.evaluate(row[None], points)[0] for row in rows] for kernel in kernels])
    rates = -0.5 / np.array(widths, dtype=float) ** 2
    return np.asarray(np.exp(rates[:, None, None] * cdist(rows, points, "sqeuclidean")))


@dataclass(frozen=True, eq=False)
class Reference:
    """Rows that a stream is compared with, and what the components know of them."""

    rows: Array  # (n, d): in the order of time, where it has a meaning
    scales: ColumnScales  # centre and scale of the columns
    # whether there are the whitened, ranked and dispersion components; without them there are only the kernels
    whitens: bool
    # plain, whitened: kernels of scaled and of whitened rows
    plain: tuple[Kernel, ...]
    whitened: tuple[Kernel, ...]
    # metric, rank_metric: the whitening of scaled and of ranked rows
    metric: Metric
    rank_metric: Metric
    ranks: Ranks  # normal scores of ranks
    views: Views  # the reference itself, under the metrics that it was fitted to

    @classmethod
    def of(cls, rows: Array, kernel: Kernel | None = None) -> Reference:
        """Fit to rows."""
        scales = ColumnScales.of(rows)
        metric = Metric.of(held(rows, scales))
        ranks, scores = Ranks.of(rows)
        rank_metric = Metric.of(scores)
        views = Views(metric.rows, metric.rows @ metric.factor, scores @ rank_metric.factor)
        median = positive_median_distance(views.scaled, _MEDIAN_ROWS)
        plain: tuple[Kernel, ...] = tuple(Gaussian(factor * median) for factor in BANDWIDTHS)
        if kernel is not None:
            plain = (kernel.resolve(views.scaled),)
        whitened = (Gaussian(positive_median_distance(views.whitened, _MEDIAN_ROWS)),)
        return cls(rows, scales, kernel is None, plain, whitened, metric, rank_metric, ranks, views)

    @property
    def paired(self) -> int:
        """How many components compare pairs of rows."""
        return len(self.plain) + (3 if self.whitens else 0)

    def view(self, rows: Array) -> Views:
        """Rows as the components see them, each by itself."""
        scaled = held(rows, self.scales)
        if not self.whitens:
            return Views(scaled, scaled[:, :0], scaled[:, :0])
        return Views(scaled, self.metric.whiten(scaled), self.rank_metric.whiten(self.ranks(rows)))

    def kernel_values(self, rows: Views, points: Views) -> Array:
        """Values of all kernels between rows and points: shape (m, T, N)."""
        found = kernel_values(self.plain, rows.scaled, points.scaled)
        if not self.whitens:
            return found
        return np.concatenate([found, kernel_values(self.whitened, rows.whitened, points.whitened)])

    def window_constants(self, lengths: Any) -> Array:
        """Constants of the statistics of windows of these lengths: shape (w, c).

        Hotelling's statistics, which only compare pairs, do not exist for a window of one row, and that of a far row
        for no other window: −inf.
        """
        means = [*map(mean_off_diagonal, self.kernel_values(self.views, self.views))]
        table = np.repeat([[*means, *np.zeros(7)] if self.whitens else means], len(lengths), axis=0)
        if self.whitens:
            table[lengths == 1, self.paired - 2 : self.paired] = -np.inf
            table[lengths > 1, -1] = -np.inf
        return table

    def singles(self, views: Views) -> Array:
        """s of each row for each component: shape (T, c)."""
        kernels = -2.0 * self.kernel_values(views, self.views).mean(axis=2)
        norms = [(rows**2).sum(axis=1) for rows in (views.whitened, views.ranked)]
        return np.column_stack([*kernels, *(self.means_and_dispersions(norms) if self.whitens else [])])

    def means_and_dispersions(self, squared_norms: Sequence[Array]) -> list[Array]:
        """s of the last components, from squared norms of whitened and of ranked rows.

        There is nothing for the means, plus and minus log(1 + ‖z‖²/d) of rows that are held, and that of rows as they
        are for the far row.
        """
        d, none = self.rows.shape[1], np.zeros(len(squared_norms[0]))
        metrics = (self.metric, self.rank_metric)
        first, second = (
            np.log1p(np.minimum(squares, metric.farthest**2) / d)
            for metric, squares in zip(metrics, squared_norms, strict=True)
        )
        return [none, none, first, -first, second, -second, np.log1p(squared_norms[0] / d)]

    def pairs(self, views: Views, before: int) -> Array:
        """h of each row but the first ones, which are before, with all rows for each component: (T, before + T, m)."""
        values = [*self.kernel_values(Views(*(rows[before:] for rows in views)), views)]
        if self.whitens:
            held = self.metric.held(views.whitened), self.rank_metric.held(views.ranked)
            values += [np.einsum("td,sd->ts", rows[before:], rows) for rows in held]
        return np.stack(values, axis=2)

    def block_size(self, longest: int) -> int:
        """Rows of a stream that are evaluated at a time."""
        return max(1, min(1024, CELLS // max(self.paired * max(len(self.rows), longest), longest * self.rows.shape[1])))


class Population(NamedTuple):
    """What simulated streams of reference rows are looked up in."""

    values: Any  # (n, n, m): h of all pairs of rows, under metrics that were fitted without the two
    singles: Array  # (n, c): s of all rows, under metrics that were fitted without the row


def population(reference: Reference) -> Population:
    """Values of the components between the rows of a reference, as if none of them had been in the reference.

    A row drawn twice is not a pair of independent rows. Its h(x, x), larger than any other value, would make all
    statistics noisier; the mean of h(x, ·) over the other rows stands in its place.
    """
    n, m = len(reference.rows), reference.paired
    check_memory(
        8.0 * n * n * (1.5 * m + 1.5 + (8.0 if reference.whitens else 0.0)),
        None,
        f"calibration with {n:,} rows and {m} components",
        "pass kernel=muhat.Gaussian(), a single kernel",
    )
    grams = kernel_values(reference.plain, reference.views.scaled, reference.views.scaled)
    if not np.isfinite(grams).all():
        raise ValueError(f"{reference.plain[0]!r} gives values that are not finite; rescale the reference")
    values, means = [*grams], [(K.sum(axis=0) - np.diag(K)) / (n - 1.0) for K in grams]
    parts = _cross_fitted_parts(reference, values, means) if reference.whitens else []
    singles = np.column_stack([*(-2.0 * np.array(means)), *parts])
    table = np.empty((n, n, m), np.float32)
    for j, K in enumerate(values):
        np.fill_diagonal(K, 0.0)
        np.fill_diagonal(K, K.sum(axis=1) / (n - 1))
        table[..., j] = K
    return Population(table, np.ascontiguousarray(singles))


def _cross_fitted_parts(reference: Reference, values: list[Array], means: list[Array]) -> list[Array]:
    """Add the whitened matrices to ``values`` and r of the whitened kernel to ``means``; s of the other components."""
    norms, products = [], []
    for metric in (reference.metric, reference.rank_metric):
        pairs, rows = leave_two_out(metric.rows, metric.ridge), leave_one_out(metric.rows, metric.ridge)
        products.append(pairs.products)
        norms.append(rows.squared_norms)
        if metric is reference.metric:
            rate = -0.5 / float(gaussian_bandwidth(reference.whitened[0]) or 1.0) ** 2
            values.append(np.exp(rate * pairs.squared_distances))
            kernel = np.exp(rate * rows.squared_distances)
            means.append((kernel.sum(axis=0) - np.diag(kernel)) / (len(kernel) - 1.0))
    values += products
    return reference.means_and_dispersions(norms)


def held(rows: Array, scales: ColumnScales) -> Array:
    """Columns from their centres in their scales; values are held where their squares are finite."""
    with np.errstate(over="ignore"):
        return np.clip(scales.divide(rows), -FARTHEST, FARTHEST)
