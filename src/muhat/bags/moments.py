"""Moments of bags in explicit features: the mean of each bag, and the covariance of rows within bags."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from muhat._support.types import Array, RandomState
from muhat.bags.data import Bags
from muhat.features.base import BaseFeatures
from muhat.features.nystroem import Nystroem
from muhat.kernels.base import Kernel
from muhat.linalg.blocks import blocks, random_rows

FEATURES = (500, 1000)
"""Fewest and most landmarks of the default features; between them 5√N for N rows, so that the work stays that of an
exact Gram matrix, O(N²). A whitened kernel sees what the features see, and more rows tell more of it from noise."""

RIDGE = 0.05
"""Default ridge of W, relative to its mean eigenvalue. Not derived: accuracy is flat below it and falls above in large
bags, and neither a search nor an estimate of W's noise did clearly better (``benchmarks/bags_accuracy.py``)."""

LIGHT_LANDMARKS = 200
"""Default landmarks where regression or detection needs the means of bags, not their metric: the time is O(200 N)."""

LIGHT_ROWS = 20_000
"""Rows, drawn at random, from which those landmarks and a bandwidth "median" come, in a time that does not grow."""

LIGHT_ROWS_WITHIN = 100_000
"""Rows from which the covariance within bags comes there; its error is that of this many rows."""

_ROWS = 1024  # whose features are in memory at a time

_ROUNDING = 1e-15  # of features, relative to their length


class RowFeatures(Protocol):
    """Features of rows that means of bags are taken in."""

    @property
    def kernel_(self) -> Kernel:
        """The kernel that they stand for."""

    @property
    def n_features_out_(self) -> int:
        """Number of features."""

    def evaluate(self, X: Array, /) -> Array:
        """Features of checked rows."""


def check_features(features: Any) -> None:
    """Raise a ValueError unless ``features`` is None or an estimator of features."""
    if features is not None and not isinstance(features, BaseFeatures):
        raise ValueError(f"features={features!r} must be None, or features such as Nystroem(500, random_state=0)")


def fit_features(
    features: BaseFeatures | None, kernel: Kernel, rows: Array, seed: RandomState = 0, landmarks: Array | None = None
) -> BaseFeatures:
    """A fitted copy of the features with the given kernel; by default those of the landmarks, or of random ones."""
    if features is not None:
        return clone(features).set_params(kernel=kernel).fit(rows)
    if landmarks is not None:
        return Nystroem(kernel, landmarks=landmarks).fit(rows)
    count = int(np.clip(5.0 * np.sqrt(len(rows)), *FEATURES))
    return Nystroem(kernel, min(count, len(rows)), random_state=seed).fit(rows)


class BagMoments(NamedTuple):
    """Means of bags in m features, and the pooled covariance of the rows within them."""

    means: Array  # (n, m), by the weights of the rows
    within: Array  # (m, m)
    degrees: int  # of freedom of ``within``: rows less bags
    spreads: Any = None  # (n,): Σ_a ‖z_a − z̄_i‖² of each bag

    @property
    def has_noise(self) -> bool:
        """Whether rows of one bag differ by more than the rounding of their features."""
        return bool(np.trace(self.within) > _ROUNDING**2 * np.square(self.means).sum(axis=1).max())

    def plus(self, other: BagMoments) -> BagMoments:
        """The moments of the bags of both, these first."""
        degrees = self.degrees + other.degrees
        scatter = self.degrees * self.within + other.degrees * other.within
        return BagMoments(np.concatenate([self.means, other.means]), scatter / max(degrees, 1), degrees)


def bag_moments(features: RowFeatures, bags: Bags, weights: Array | None = None, *, within: bool = True) -> BagMoments:
    r"""Weighted means Σ_a β_a z(x_a) of each bag, and :math:`W = \sum_i\sum_a (z_{ia} - \bar z_i)(·)^\top / (N - n)`.

    Without ``weights`` the means are plain averages. W takes O(rows · m²), and is 0 where it is not asked for.
    """
    # One pass over blocks of rows. A block is centred about the averages of the pieces of bags in it, and the scatter
    # of the pieces about the average of their bag is added at the end, so that nothing large is subtracted:
    #     Σ_a (z_a − z̄)(·)ᵀ = Σ_pieces [Σ_{a in piece} (z_a − z̄_piece)(·)ᵀ + n_piece (z̄_piece − z̄)(·)ᵀ].
    sizes, owners = bags.sizes, np.repeat(np.arange(len(bags)), bags.sizes)
    weights = np.repeat(1.0 / sizes, sizes) if weights is None else weights
    m = features.n_features_out_
    (means, averages), scatter, spreads = np.zeros((2, len(bags), m)), np.zeros((m, m)), np.zeros(len(bags))
    pieces: list[tuple[NDArray[Any], ...]] = []
    for block in blocks(len(bags.rows), _ROWS):
        Z = features.evaluate(bags.rows[block])
        met, firsts, counts = np.unique(owners[block], return_index=True, return_counts=True)
        means[met] += np.add.reduceat(weights[block, None] * Z, firsts)
        if within:
            centres = np.add.reduceat(Z, firsts) / counts[:, None]
            averages[met] += centres * (counts / sizes[met])[:, None]
            Z -= np.repeat(centres, counts, axis=0)
            scatter += Z.T @ Z
            spreads[met] += np.add.reduceat(np.einsum("ij,ij->i", Z, Z), firsts)
            pieces.append((met, counts, centres))
    degrees = len(bags.rows) - len(bags)
    if within:
        met, counts, centres = (np.concatenate(parts) for parts in zip(*pieces, strict=True))
        apart = np.sqrt(counts)[:, None] * (centres - averages[met])
        scatter += apart.T @ apart
        np.add.at(spreads, met, np.square(apart).sum(axis=1))
    check_finite(features.kernel_, means, scatter)
    return BagMoments(means, scatter / max(degrees, 1), degrees, spreads)


def light_means(features: RowFeatures, bags: Bags) -> Array:
    """Plain means of bags in O(rows · m): landmarks see averages of kernel values, mapped to features once per bag."""
    if not isinstance(features, Nystroem):
        return bag_moments(features, bags, within=False).means
    kernel, landmarks = features.kernel_, features.landmarks_
    means = np.zeros((len(bags), len(landmarks)))
    owners = np.repeat(np.arange(len(bags)), bags.sizes)
    for block in blocks(len(bags.rows), _ROWS):
        met, firsts = np.unique(owners[block], return_index=True)
        means[met] += np.add.reduceat(kernel.evaluate(bags.rows[block], landmarks), firsts)
    return check_finite(kernel, means / bags.sizes[:, None] @ features.projection_)


def light_moments(features: RowFeatures, bags: Bags) -> BagMoments:
    """Moments with less work where rows are many: W comes from random rows, about LIGHT_ROWS_WITHIN in all."""
    thinned, most = bags, max(2, LIGHT_ROWS_WITHIN // len(bags))
    if bags.sizes.max() > most:
        rng = np.random.default_rng(0)
        thinned = Bags.of([random_rows(rows, most, rng) for rows in bags.parts(bags.rows)])
    moments = bag_moments(features, thinned)
    return BagMoments(light_means(features, bags), moments.within, moments.degrees)


def check_finite(kernel: Kernel, means: Array, scatter: Array | float = 0.0) -> Array:
    """The means, or a ValueError where their squared distances or the scatter within bags overflow."""
    with np.errstate(over="ignore", invalid="ignore"):
        if not (np.isfinite(4.0 * np.square(means).sum()) and np.isfinite(scatter).all()):
            raise ValueError(f"{kernel!r} overflows on these bags; rescale them first")
    return means


def check_noise(moments: BagMoments) -> BagMoments:
    """The moments, or a ValueError where they do not determine the noise within bags."""
    if not moments.degrees:
        raise ValueError("all bags have one row, which says nothing of the noise; pass a bag of two rows or more")
    if not moments.has_noise:
        raise ValueError(
            "no bag has two rows that differ in their features, so there is no noise within bags to compare with; pass "
            "bags of several rows, compare their rows directly, or rescale rows where values are beyond 1e150 or all "
            "below 1e-150"
        )
    return moments
