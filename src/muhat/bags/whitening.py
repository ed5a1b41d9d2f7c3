"""Whitening of bags in explicit features: means, covariance within bags, and the whitening map."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from sklearn.base import clone

from muhat.bags.data import Bags
from muhat.features.base import BaseFeatures
from muhat.features.nystroem import Nystroem
from muhat.kernels.base import Kernel
from muhat.linalg.blocks import blocks, random_rows
from muhat.linalg.distances import power_of_two_near
from muhat.types import Array, RandomState
from muhat.validation import warn_caller

FEATURES = (500, 1000)
"""Fewest and most landmarks of the default features; between them 5√N for N rows, so that the work stays that of an
exact Gram matrix, O(N²). A whitened kernel sees what the features see, and more rows tell more of it from noise."""


RIDGE = 0.05
"""Default ridge of W, in units of its mean eigenvalue. Not derived: accuracy is flat below it and falls above in large
bags, and neither a search nor an estimate of W's noise did clearly better (figures: docs/notes/bags.md)."""


LIGHT_LANDMARKS = 200
"""Default landmarks where regression or detection needs the means of bags, not their metric."""


LIGHT_ROWS = 20_000
"""Rows, drawn at random, from which those landmarks and a bandwidth "median" come."""


LIGHT_ROWS_WITHIN = 100_000
"""Rows from which the covariance within bags comes there; its error is that of this many rows."""


_ROWS = 1024


_ROUNDING = 1e-13
"""Centred means below so much of the means themselves are rounding, and count as 0."""


def check_features(features: Any) -> None:
    """Raise a ValueError unless ``features`` is None or an estimator of features."""
    if features is not None and not isinstance(features, BaseFeatures):
        raise ValueError(f"features={features!r} must be None, or features such as Nystroem(500, random_state=0)")


def fit_features(features: BaseFeatures | None, kernel: Kernel, rows: Array, seed: RandomState = 0) -> BaseFeatures:
    """A fitted copy of the features, with the host's kernel; by default landmarks drawn with a fixed seed."""
    if features is None:
        landmarks = int(np.clip(5.0 * np.sqrt(len(rows)), *FEATURES))
        return Nystroem(kernel, min(landmarks, len(rows)), random_state=seed).fit(rows)
    return clone(features).set_params(kernel=kernel).fit(rows)


def with_widths(kernel: Kernel, rows: Array, factors: tuple[float, ...]) -> list[Kernel]:
    """The kernel with each multiple of the median where its bandwidth is "median", else the kernel itself."""
    resolved = kernel.resolve(rows)
    if getattr(kernel, "bandwidth", None) != "median":
        return [resolved]
    median = float(resolved.get_params(deep=False)["bandwidth"])
    return [resolved.with_params(bandwidth=factor * median) for factor in factors]


def light_sample(bags: Bags, rng: np.random.Generator) -> Array:
    """Rows in random order, all or LIGHT_ROWS of them."""
    return bags.rows[rng.permutation(len(bags.rows))[:LIGHT_ROWS]]


def light_features(features: BaseFeatures | None, kernel: Kernel, rows: Array) -> BaseFeatures:
    """Features fitted to rows in random order; by default the first LIGHT_LANDMARKS of them are landmarks."""
    if features is not None:
        return fit_features(features, kernel, rows)
    return Nystroem(kernel, landmarks=rows[:LIGHT_LANDMARKS]).fit(rows)


class BagMoments(NamedTuple):
    """Means of bags in m features, and the pooled covariance of the rows within them."""

    means: Array  # (n, m), by the weights of the rows
    within: Array  # (m, m)
    degrees: int  # of freedom of ``within``: rows less bags

    def plus(self, other: BagMoments) -> BagMoments:
        """The moments of the bags of both, these first."""
        degrees = self.degrees + other.degrees
        scatter = self.degrees * self.within + other.degrees * other.within
        return BagMoments(np.concatenate([self.means, other.means]), scatter / max(degrees, 1), degrees)


def bag_moments(
    features: BaseFeatures, rows: Array, offsets: NDArray[np.intp], weights: Array, *, within: bool
) -> BagMoments:
    r"""Weighted means Σ_a β_a z(x_a) of each bag, and :math:`W = \sum_i\sum_a (z_{ia} - \bar z_i)(·)^\top / (N - n)`.

    One pass over blocks of rows. A block is centred about the averages of the pieces of bags in it, and the scatter of
    the pieces about their bag is added at the end, so that nothing large is subtracted. W is 0 where not asked for.
    """
    sizes, m = np.diff(offsets), features.n_features_out_
    owners = np.repeat(np.arange(len(sizes)), sizes)
    means, averages = np.zeros((2, len(sizes), m))
    scatter, degrees = np.zeros((m, m) if within else (0, 0)), len(rows) - len(sizes)
    pieces: list[tuple[NDArray[Any], ...]] = []
    for block in blocks(len(rows), _ROWS):
        Z = features.evaluate(rows[block])
        bags, firsts, counts = np.unique(owners[block], return_index=True, return_counts=True)
        means[bags] += np.add.reduceat(weights[block, None] * Z, firsts)
        if not within:
            continue
        centres = np.add.reduceat(Z, firsts) / counts[:, None]
        averages[bags] += centres * (counts / sizes[bags])[:, None]
        Z -= np.repeat(centres, counts, axis=0)
        scatter += Z.T @ Z
        pieces.append((bags, counts, centres))
    if not within:
        return BagMoments(means, scatter, degrees)
    bags, counts, centres = (np.concatenate(parts) for parts in zip(*pieces, strict=True))
    apart = np.sqrt(counts)[:, None] * (centres - averages[bags])
    return BagMoments(means, (scatter + apart.T @ apart) / max(degrees, 1), degrees)


def plain_moments(features: BaseFeatures, bags: Bags, *, within: bool = True) -> BagMoments:
    """The moments with the plain average of each bag."""
    weights = np.repeat(1.0 / bags.sizes, bags.sizes)
    return checked_moments(features.kernel_, bag_moments(features, bags.rows, bags.offsets, weights, within=within))


def light_moments(features: BaseFeatures, bags: Bags, *, within: bool = True) -> BagMoments:
    """The same with less work where rows are many: O(rows · m), and W from some rows of each bag.

    Landmarks see averages of kernel values, which are mapped to features once a bag. W comes from random rows,
    LIGHT_ROWS_WITHIN in all or a few more.
    """
    if isinstance(features, Nystroem):
        kernel, landmarks = features.kernel_, features.landmarks_
        means = np.zeros((len(bags), len(landmarks)))
        owners = np.repeat(np.arange(len(bags)), bags.sizes)
        for block in blocks(len(bags.rows), _ROWS):
            met, firsts = np.unique(owners[block], return_index=True)
            means[met] += np.add.reduceat(kernel.evaluate(bags.rows[block], landmarks), firsts)
        moments = BagMoments(means / bags.sizes[:, None] @ features.projection_, np.zeros((0, 0)), 0)
    else:
        moments = plain_moments(features, bags, within=False)
    checked_moments(features.kernel_, moments)
    if not within:
        return moments
    thinned = plain_moments(features, thin(bags, max(2, LIGHT_ROWS_WITHIN // len(bags))))
    return BagMoments(moments.means, thinned.within, thinned.degrees)


def thin(bags: Bags, most: int) -> Bags:
    """Random rows of each bag, at most the given number; a fixed seed draws them."""
    rng = np.random.default_rng(0)
    parts = [random_rows(rows, most, rng) for rows in bags.parts(bags.rows)]
    return Bags(np.concatenate(parts), np.cumsum([0, *map(len, parts)]))


def checked_moments(kernel: Kernel, moments: BagMoments) -> BagMoments:
    """The moments, or a ValueError where they overflow."""
    with np.errstate(over="ignore", invalid="ignore"):
        if not np.isfinite(4.0 * np.square(moments.means).sum()) or not np.isfinite(moments.within).all():
            raise ValueError(f"{kernel!r} overflows on these bags; rescale them first")
    return moments


def regularised_eigenpairs(within: Array, ridge: float) -> tuple[Array, Array]:
    """Eigenvalues of W + ρ tr(W)/m I, and eigenvectors of W."""
    unit = power_of_two_near(float(np.trace(within)))
    g, V = eigh(within / unit, driver="evd", check_finite=False)
    g = g.clip(0.0)
    return (g + ridge * g.mean()) * unit, V


class Whitening(NamedTuple):
    r"""The map :math:`m \mapsto (m - \bar m)(W + \rho \operatorname{tr}(W)/m\, I)^{-1/2}`, up to a rotation."""

    centre: Array
    map: Array

    @classmethod
    def of(cls, moments: BagMoments, ridge: float) -> Whitening:
        """Centred at the mean of the bags; where W = 0 nothing but the centre is known, and the map is the identity."""
        centre = moments.means.mean(axis=0)
        if not np.trace(moments.within) > 0:
            warn_caller(
                "no bag has two rows that differ, so there is no covariance within bags to whiten by; mean elements "
                "are only centred. Pass whiten=False and pool=False, or bags of several rows.",
            )
            return cls(centre, np.eye(len(centre)))
        g, V = regularised_eigenpairs(moments.within, ridge)
        return cls(centre, V / np.sqrt(g))

    def __call__(self, means: Array, sizes: Any = None) -> Array:
        """Whitened means, one a row, whatever the sizes of the bags."""
        centred = means - self.centre
        sizes = np.linalg.norm(means, axis=1) + np.linalg.norm(self.centre)
        centred[np.linalg.norm(centred, axis=1) <= _ROUNDING * sizes] = 0.0
        return centred @ self.map
