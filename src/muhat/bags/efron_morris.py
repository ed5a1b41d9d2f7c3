"""Empirical Bayes for bag means in features: Efron and Morris's rule with noise by size, its centre and covariance."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from muhat.bags.bag_whitening import regularised_eigenpairs
from muhat.bags.moments import BagMoments
from muhat.linalg.blocks import random_folds
from muhat.types import Array

_ROUNDING = 1e-14
"""Ratios below this share of the largest are rounding: bags do not differ there."""


BLENDS = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0)


FOLDS = 5


class BetweenMoments(NamedTuple):
    """What bags have in common: the centre μ̄, and a root R of the covariance B = RRᵀ of the means about it."""

    centre: Array
    root: Array  # (m, k), of full rank k

    @property
    def between(self) -> Array:
        """B."""
        return self.root @ self.root.T


def estimate_between(means: Array, sizes: NDArray[np.number], within: Array) -> BetweenMoments:
    r"""Moments of bags of any sizes: :math:`\sum_i w_i (m_i - \bar m)(·)^\top` less its part of noise, positive part.

    A mean of n_i rows varies by B + W/n_i; bags are weighted by 1/(s + 1/n_i), s the ratio of the traces of B and W.
    """
    trace = np.trace(within)
    if len(means) == 1:
        return BetweenMoments(means[0], np.zeros((len(within), 0)))
    spread = np.square(means - means.mean(axis=0)).sum() / (len(means) - 1)
    ratio = max(spread / trace - (1.0 / sizes).mean(), 0.0)
    w = 1.0 / (ratio + 1.0 / sizes)
    w /= w.sum()
    centre = w @ means
    X = np.sqrt(w)[:, None] * (means - centre)
    noise = (w * (1.0 - w) / sizes).sum()
    return BetweenMoments(centre, positive_root((X.T @ X - noise * within) / (1.0 - w @ w)))


def positive_root(M: Array) -> Array:
    """R with RRᵀ the symmetric matrix M with negative eigenvalues replaced by 0; one column per positive eigenvalue."""
    g, V = eigh(M, driver="evd", check_finite=False)
    positive = g > 0
    return np.asarray(V[:, positive] * np.sqrt(g[positive]))


@dataclass(frozen=True, eq=False)
class Pool:
    r"""The prior N(μ̄, B) of the mean of a bag, with noise W/n, in the coordinates in which both are diagonal.

    Its posterior mean is Efron and Morris's rule with operators in place of numbers: :math:`B(B + W/n)^{-1}`.

    ``into`` maps a centred mean to coordinates u, in which :math:`W_\rho` is the identity and B is diag(r), r the
    ``ratios``; ``back`` maps coordinates back. Only the k directions along which bags differ have coordinates: fewer
    than bags, and often much fewer than features. All is in units such that tr W = 1: ``unit`` is the length of that.
    """

    unit: float
    centre: Array
    within: Array
    between: Array
    ratios: Array
    common: float  # tr B / tr W_ρ: the ratio of all directions at blend 1
    into: Array
    back: Array

    @classmethod
    def of(
        cls, means: Array, sizes: NDArray[np.number], within: Array, noise: tuple[Array, Array], unit: float = 1.0
    ) -> Pool:
        """The prior of means with tr W = 1; ``noise`` are the eigenpairs of W_ρ."""
        return cls.with_moments(*estimate_between(means, sizes, within), within, noise, unit)

    @classmethod
    def with_moments(
        cls, centre: Array, root: Array, within: Array, noise: tuple[Array, Array], unit: float = 1.0
    ) -> Pool:
        """The prior with given centre and covariances, that between bags as a root R."""
        # W_ρ = V diag(g) Vᵀ is the identity in the coordinates g^(−½)Vᵀx. There B is GGᵀ with G = g^(−½)VᵀR, and
        # GᵀG = Q diag(r) Qᵀ, which is small, gives its eigenvalues r and eigenvectors E = GQ r^(−½).
        g, V = noise
        G = (V.T @ root) / np.sqrt(g)[:, None]
        ratios, Q = eigh(G.T @ G, driver="evd", check_finite=False) if root.size else (np.empty(0), np.empty((0, 0)))
        kept = np.flatnonzero(ratios > _ROUNDING * ratios.max(initial=0.0))[::-1]  # what differs most comes first
        E, ratios = G @ (Q[:, kept] / np.sqrt(ratios[kept])), ratios[kept]
        if not len(kept):  # bags do not differ along any direction
            E, ratios = np.eye(len(g))[:, :1], np.zeros(1)
        into, back = (V / np.sqrt(g)) @ E, E.T @ (V * np.sqrt(g)).T
        common = float(np.square(root).sum() / g.sum())
        return cls(unit, centre, within, root @ root.T, ratios, common, into, back)

    def coordinates(self, means: Array) -> Array:
        """Whitened coordinates u of means, about the centre."""
        return (means / self.unit - self.centre) @ self.into

    def factors(self, sizes: NDArray[np.number], blend: float = 0.0) -> Array:
        """What is kept of each coordinate, r/(r + 1/n): shape (bags, k)."""
        ratios = (1.0 - blend) * self.ratios + blend * self.common
        return ratios / (ratios + 1.0 / sizes[:, None])

    def common_factors(self, sizes: NDArray[np.number], blend: float) -> Array:
        """What is kept along all other directions, in which r is that of the blend alone: shape (bags,)."""
        return np.asarray(blend * self.common / (blend * self.common + 1.0 / sizes), dtype=np.float64)

    def shrunk(self, X: Array, sizes: NDArray[np.number], blend: float) -> Array:
        """B_θ(B_θ + W_ρ/n)⁻¹x for the rows of X: centred means in the unit of this prior."""
        # Every direction keeps the common factor, and those along which bags differ keep more.
        others = self.common_factors(sizes, blend)[:, None]
        kept = (X @ self.into * (self.factors(sizes, blend) - others)) @ self.back
        return kept + others * X if blend > 0 else kept

    def means(self, means: Array, sizes: NDArray[np.number], blend: float = 0.0) -> Array:
        """Pooled means, in the unit of the given ones."""
        X = means / self.unit - self.centre
        return self.unit * (self.centre + self.shrunk(X, sizes, blend))

    @cached_property
    def noise(self) -> Array:
        """The part of tr W along each coordinate."""
        return np.asarray(np.einsum("ij,ji->i", self.back, self.within @ self.into))

    def gains(self, sizes: NDArray[np.number], blend: float) -> Array:
        """What the noise of each mean loses, tr((I − A)W)/n for the map A: the gain in risk where B_θ is right."""
        # tr((I − A)W), whose part along a coordinate is the noise there; all coordinates together have tr W.
        others = self.common_factors(sizes, blend)
        more = self.factors(sizes, blend) - others[:, None]
        return ((1.0 - others) * np.trace(self.within) - more @ self.noise) / sizes

    def risk(self, X: Array, sizes: NDArray[np.number], blend: float) -> float:
        """Estimate, without bias for bags that B does not come from, of the sum of the squared errors."""
        optimism = np.trace(self.within) / sizes - 2.0 * self.gains(sizes, blend)
        return float(np.square(X - self.shrunk(X, sizes, blend)).sum() + optimism.sum())


def fit_pool(moments: BagMoments, sizes: NDArray[np.number], ridge: float) -> Pool:
    """The prior of bags from their moments; W must not vanish."""
    unit = float(np.sqrt(np.trace(moments.within)))
    within = moments.within / unit**2
    return Pool.of(moments.means / unit, sizes, within, regularised_eigenpairs(within, ridge), unit)


def mean_keys(means: Array) -> Array:
    """Keys that order bags whatever the basis of the features is: the distance of each mean from their average."""
    return np.square(means - means.mean(axis=0)).sum(axis=1, keepdims=True)


def fold_pools(
    moments: BagMoments, sizes: NDArray[np.number], ridge: float
) -> Iterator[tuple[NDArray[np.bool_], Pool]]:
    """Which bags are left out, and the prior of the others, for each of at most FOLDS random folds."""
    unit = float(np.sqrt(np.trace(moments.within)))
    means, within = moments.means / unit, moments.within / unit**2
    noise = regularised_eigenpairs(within, ridge)
    folds = random_folds(mean_keys(means), FOLDS)
    for fold in range(min(FOLDS, len(means))):
        out = folds == fold
        yield out, Pool.of(means[~out], sizes[~out], within, noise, unit)


def choose_blend(
    moments: BagMoments, sizes: NDArray[np.number], ridge: float, blend: float | Literal["cv"] = "cv"
) -> float:
    """The blend with the smallest risk on bags left out, in folds."""
    if blend != "cv":
        return blend
    risks = np.zeros(len(BLENDS))
    for out, pool in fold_pools(moments, sizes, ridge):
        X = moments.means[out] / pool.unit - pool.centre
        risks += [pool.risk(X, sizes[out], each) for each in BLENDS]
    return BLENDS[int(np.argmin(risks))]


class PooledMap(NamedTuple):
    """From means of bags and their sizes to pooled means, or to those in units of the noise."""

    pool: Pool
    blend: float
    whiten: bool

    @classmethod
    def of(cls, moments: BagMoments, sizes: NDArray[np.number], ridge: float, whiten: bool) -> PooledMap:
        """The map learned from bags; B is blended with the noise where means keep their own metric."""
        return cls(fit_pool(moments, sizes, ridge), 0.0 if whiten else choose_blend(moments, sizes, ridge), whiten)

    def __call__(self, means: Array, sizes: NDArray[np.number]) -> Array:
        """One vector a bag."""
        if self.whiten:
            return self.pool.coordinates(means) * self.pool.factors(sizes, self.blend)
        return self.pool.means(means, sizes, self.blend)
