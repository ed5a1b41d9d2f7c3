"""Empirical Bayes for bag means in features: Efron and Morris's rule with noise by size, its centre and covariance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from muhat._support.types import Array
from muhat.bags.moments import BagMoments
from muhat.linalg.blocks import random_folds

_ROUNDING = 1e-14
"""Ratios below this share of the largest are rounding: bags do not differ there."""

_DIGITS = 9
"""Digits of keys that order bags: sums of squares in another basis agree to twelve or more of sixteen."""

FOLDS = 5  # of bags, in which blends and kinds are compared


def estimate_between(means: Array, sizes: NDArray[np.number], within: Array) -> tuple[Array, Array]:
    r"""The centre of bags of any sizes, and a root R (m, k) of the covariance B = RRᵀ of their true means about it.

    B is :math:`\sum_i w_i (m_i - \bar m)(·)^\top` less its part of noise, positive part.

    A mean of n_i rows varies by B + W/n_i, and has the weight w_i of :func:`between_weights`.
    """
    if len(means) == 1:
        return means[0], np.zeros((len(within), 0))
    w = between_weights(means - means.mean(axis=0), sizes, within)
    centre = w @ means
    X = np.sqrt(w)[:, None] * (means - centre)
    noise = (w * (1.0 - w) / sizes).sum()
    return centre, positive_root((X.T @ X - noise * within) / (1.0 - w @ w))


def between_weights(deviations: Array, sizes: NDArray[np.number], within: Array, centres: int = 1) -> Array:
    """Weights of bags in centre and covariance, 1/(s + 1/n_i) over their sum, s the ratio of the traces of B and W.

    s is estimated from the spread of the means about their plain centres, the sum of B and the average of W/n_i.
    """
    spread = np.square(deviations).sum() / max(len(deviations) - centres, 1)
    w = 1.0 / (max(spread / np.trace(within) - (1.0 / sizes).mean(), 0.0) + 1.0 / sizes)
    return np.asarray(w / w.sum())


def positive_root(M: Array) -> Array:
    """R with RRᵀ the symmetric matrix M with eigenvalues below rounding replaced by 0; one column for each other."""
    g, V = eigh(M, driver="evd", check_finite=False)
    positive = g > len(g) * np.finfo(np.float64).eps * np.abs(g).max(initial=0.0)
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
    noise: tuple[Array, Array]  # eigenvalues and eigenvectors of W_ρ
    root: Array  # R with B = RRᵀ
    ratios: Array
    common: float  # tr B / tr W: the ratio of all directions at blend 1
    into: Array
    back: Array

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
        common = float(np.square(root).sum() / np.trace(within))
        return cls(unit, centre, within, noise, root, ratios, common, into, back)

    @cached_property
    def between(self) -> Array:
        """B."""
        return np.asarray(self.root @ self.root.T)

    def turned(self, signs: Array) -> Pool:
        """The same prior with coordinates of other signs."""
        return replace(self, into=self.into * signs, back=self.back * signs[:, None])

    def coordinates(self, means: Array) -> Array:
        """Whitened coordinates u of means, about the centre."""
        return (means / self.unit - self.centre) @ self.into

    def factors(self, sizes: NDArray[np.number], blend: float = 0.0) -> Array:
        """Share of each coordinate that is kept, r/(r + 1/n): shape (bags, k)."""
        ratios = (1.0 - blend) * self.ratios + blend * self.common
        return ratios / (ratios + 1.0 / sizes[:, None])

    def common_factors(self, sizes: NDArray[np.number], blend: float) -> Array:
        """Share that is kept along all other directions, in which r is that of the blend alone: shape (bags,)."""
        return np.asarray(blend * self.common / (blend * self.common + 1.0 / sizes), dtype=np.float64)

    def shrunk(self, X: Array, sizes: NDArray[np.number], blend: float) -> Array:
        """B_θ(B_θ + W_ρ/n)⁻¹x for the rows of X: centred means in the unit of this prior."""
        # Every direction keeps the common factor, and those along which bags differ keep more.
        if blend == 0:
            return (X @ self.into * self.factors(sizes)) @ self.back
        others = self.common_factors(sizes, blend)[:, None]
        return (X @ self.into * (self.factors(sizes, blend) - others)) @ self.back + others * X

    def means(self, means: Array, sizes: NDArray[np.number], blend: float = 0.0) -> Array:
        """Pooled means, in the unit of the given ones."""
        X = means / self.unit - self.centre
        return self.unit * (self.centre + self.shrunk(X, sizes, blend))

    def weights(self, means: Array, sizes: NDArray[np.number]) -> Array:
        """Weights of the bags in centre and covariance, which do not depend on the ridge."""
        return between_weights((means - means.mean(axis=0)) / self.unit, sizes, self.within)

    @cached_property
    def _noise_of_coordinates(self) -> Array:
        """The part of tr W along each coordinate."""
        return np.asarray(np.einsum("ij,ji->i", self.back, self.within @ self.into))

    def gains(self, sizes: NDArray[np.number], blend: float) -> Array:
        """Reduction of the noise of each mean, tr((I − A)W)/n for the map A: the gain in risk where B_θ is right."""
        # tr((I − A)W), whose part along a coordinate is the noise there; all coordinates together have tr W.
        others = self.common_factors(sizes, blend)
        more = self.factors(sizes, blend) - others[:, None]
        return ((1.0 - others) * np.trace(self.within) - more @ self._noise_of_coordinates) / sizes

    def left_out(self, means: Array, sizes: NDArray[np.number], blend: float) -> tuple[Array, Array]:
        """Residuals x_i − m_i of bags that the prior has not seen, and their optimism δ_i = tr(A_i W)/n_i.

        The sum of ‖x_i − m_i‖² + 2δ_i − tr(W)/n_i is an unbiased estimate of the squared error (Stein), where tr W = 1.
        """
        X = means / self.unit - self.centre
        return X - self.shrunk(X, sizes, blend), np.trace(self.within) / sizes - self.gains(sizes, blend)

    def own_risk(self, means: Array, sizes: NDArray[np.number], blend: float, w: Array) -> float:
        r"""Estimate of the mean squared error of the bags that the prior was fitted to, where tr W = 1.

        Here B and the centre follow the noise of the bags, too. With the ``weights`` w_i and y = x_i − μ̄, moving x_i by
        e moves B by w_i(e yᵀ + y eᵀ), and A = B(B + W/n)⁻¹ by (I − A) dB (B + W/n)⁻¹. The larger of the two terms adds
        w_i q_i tr((I − A)W)/n_i to the optimism, q_i = yᵀ(B + W/n)⁻¹y, and the centre adds w_i tr((I − A)W)/n_i.
        """
        residuals, optimism = self.left_out(means, sizes, blend)
        ratios = (1.0 - blend) * self.ratios + blend * self.common
        q = (np.square(self.coordinates(means)) / (ratios + 1.0 / sizes[:, None])).sum(axis=1)
        optimism += w * ((1.0 - blend) * q + 1.0) * self.gains(sizes, blend)
        return float((np.square(residuals).sum(axis=1) + 2.0 * optimism - np.trace(self.within) / sizes).mean())


def fit_pools(moments: BagMoments, sizes: NDArray[np.number], ridges: Sequence[float]) -> list[Pool]:
    """The priors of bags from their moments with each of some ridges; W must not vanish."""
    unit = float(np.sqrt(np.trace(moments.within)))
    within = moments.within / unit**2
    common = estimate_between(moments.means / unit, sizes, within)
    g, V = eigh(within, driver="evd", check_finite=False)
    g = g.clip(0.0)
    return [Pool.with_moments(*common, within, (g + ridge * g.mean(), V), unit) for ridge in ridges]


def fold_pools(pool: Pool, means: Array, sizes: NDArray[np.number]) -> Iterator[tuple[NDArray[np.bool_], Pool]]:
    """Bags that are left out, and the prior of the others with the same noise, for each of at most FOLDS folds."""
    x = means / pool.unit
    folds = random_folds(mean_keys(x), FOLDS)
    for fold in range(min(FOLDS, len(x))):
        out = folds == fold
        common = estimate_between(x[~out], sizes[~out], pool.within)
        yield out, Pool.with_moments(*common, pool.within, pool.noise, pool.unit)


def mean_keys(means: Array) -> Array:
    """Keys that order bags whatever the basis of the features: distances of means from their average, then norms.

    Two means are equally far from their average, so distances are rounded, and where they tie the norms decide.
    """
    keys = np.column_stack([np.square(means - means.mean(axis=0)).sum(axis=1), np.square(means).sum(axis=1)])
    mantissas, exponents = np.frexp(keys)
    return np.ldexp(np.round(mantissas, _DIGITS), exponents)
