r"""Mixture prior over bags: bags come in K kinds, and the mean of a bag is shrunk toward the centre of its kind.

Means of bags are modelled as :math:`\hat\mu_i \sim \sum_k \pi_k N(c_k, B + W/n_i)`. Kinds are found by EM in the few
whitened directions in which bags differ most, and moments in all features follow from the responsibilities. Numbers of
kinds are combined by weights that minimise an unbiased estimate of the risk on bags left out.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from muhat._support.types import Array
from muhat.bags.efron_morris import Pool, between_weights, fold_pools, mean_keys, positive_root
from muhat.linalg.blocks import lexicographic_order
from muhat.linalg.simplex import simplex_minimiser

BLENDS = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0)  # half decades; the estimated risk is flat between them

NUMBERS = (2, 3, 4, 5, 7)
"""Numbers of kinds that are tried beside one, with five bags or more per kind."""

RESTARTS, ROUNDS = 3, 40  # starts of EM, the likeliest of which counts, and rounds, of which it takes fewer

SMALLEST_WEIGHT = 0.02
"""Numbers of kinds with less weight are dropped: they would cost as much as others at each new bag."""


class Kinds(NamedTuple):
    """A mixture of Gaussians with one diagonal covariance, in q whitened directions."""

    log_shares: Array  # (K,)
    centres: Array  # (K, q)
    dispersion: Array  # (q,)

    def responsibilities(self, u: Array, sizes: NDArray[np.number]) -> Array:
        """Probabilities of the kinds of bags with whitened means u, in proportion to π_k N(u_i; c_k, D + 1/n_i)."""
        variances = self.dispersion + 1.0 / sizes[:, None]
        squares = np.square(u[:, None, : len(self.dispersion)] - self.centres) / variances[:, None, :]
        return normalised(self.log_shares - 0.5 * squares.sum(axis=2))[0]


def normalised(logs: Array) -> tuple[Array, Array]:
    """Probabilities in proportion to exp(logs) along the last axis, and the logarithms of the sums."""
    top = logs.max(axis=-1, keepdims=True)
    shares = np.exp(logs - top)
    sums = shares.sum(axis=-1, keepdims=True)
    return shares / sums, (np.log(sums) + top)[..., 0]


def directions(count: int) -> int:
    """Directions in which kinds are told apart: the centres of K kinds span K − 1, and more find worse kinds."""
    return max(2, count - 1)


def fit_kinds(u: Array, sizes: NDArray[np.number], count: int, rng: np.random.Generator) -> Kinds:
    """EM for the given number of kinds, the likeliest of several starts.

    ``u`` holds whitened means of bags, directions in which they differ most first.
    """
    u = u[:, : directions(count)]
    n = len(u)
    noise = 1.0 / sizes[:, None]  # (n, 1)
    smallest = 1e-4 * noise.mean()
    centres = np.array([_seeds(u, sizes, count, rng) for _ in range(RESTARTS)])  # (R, K, q)
    log_shares = np.full((RESTARTS, count), -np.log(count))
    dispersion = np.tile(np.maximum(0.2 * u.var(axis=0), smallest), (RESTARTS, 1))  # (R, q)
    likelihoods = np.zeros(RESTARTS)
    for _ in range(ROUNDS):
        # E: ρ_ik ∝ π_k N(u_i; c_k, D + 1/n_i), for all starts at once.
        precision = 1.0 / (dispersion[:, None, :] + noise)  # P_i: (R, n, q)
        apart = u[None, :, None, :] - centres[:, None, :, :]  # (R, n, K, q)
        exponents = np.einsum("rnkq,rnq->rnk", np.square(apart), precision)
        joint = log_shares[:, None, :] - 0.5 * (exponents - np.log(precision).sum(axis=2)[:, :, None])
        before, (rho, totals) = likelihoods, normalised(joint)
        likelihoods = totals.sum(axis=1)
        # M: π_k with half a bag more for each kind; c_k weighs bags by P_i; D by the posterior of the true means, which
        # keep the share a_i = D P_i of their distance from the centre and vary by a_i/n_i.
        log_shares = np.log((rho.sum(axis=1) + 0.5) / (n + 0.5 * count))
        weighed = np.einsum("rnk,rnq->rkq", rho, precision)
        centres = np.einsum("rnk,rnq,nq->rkq", rho, precision, u) / np.maximum(weighed, np.finfo(float).tiny)
        kept = dispersion[:, None, :] * precision
        squares = np.einsum("rnk,rnkq->rnq", rho, np.square(u[None, :, None, :] - centres[:, None, :, :]))
        dispersion = np.maximum((kept * noise + np.square(kept) * squares).mean(axis=1), smallest)
        if np.abs(likelihoods - before).max() < 1e-6 * n:
            break
    best = int(np.argmax(likelihoods))
    return Kinds(log_shares[best], centres[best], dispersion[best])


def _seeds(u: Array, sizes: NDArray[np.number], count: int, rng: np.random.Generator) -> Array:
    """Bags as first centres, each drawn by its squared distance from the nearest one so far, in units of the noise."""
    chosen = [int(rng.integers(len(u)))]
    while len(chosen) < count:
        noise = 1.0 / sizes[:, None] + 1.0 / sizes[chosen]
        squares = (np.square(u[:, None] - u[chosen]).sum(axis=2) / noise - u.shape[1]).min(axis=1).clip(0.0)
        total = squares.sum()
        chosen.append(int(rng.choice(len(u), p=squares / total) if total > 0 else rng.integers(len(u))))
    return u[chosen]


class KindsPool(NamedTuple):
    """The prior of K kinds in all features: centres, and the covariance about them as a :class:`Pool`."""

    finder: Pool  # the prior of one kind, in whose first coordinates kinds are told apart
    kinds: Kinds
    centres: Array  # (K, m)
    pool: Pool  # its centre is 0

    def _deviations(self, means: Array, sizes: NDArray[np.number]) -> tuple[Array, Array]:
        """Responsibilities, and means from the centres that these give: shapes (n, K) and (n, m), where tr W = 1."""
        rho = self.kinds.responsibilities(self.finder.coordinates(means), sizes)
        return rho, means / self.pool.unit - rho @ self.centres

    def means(self, means: Array, sizes: NDArray[np.number], blend: float) -> Array:
        """Posterior means c̄_i + A_i(x_i − c̄_i), in the unit of the given ones."""
        _, X = self._deviations(means, sizes)
        return means - self.pool.unit * (X - self.pool.shrunk(X, sizes, blend))

    def gains(self, sizes: NDArray[np.number], blend: float) -> Array:
        """Reduction of the noise of each mean where its kind is known, as for :meth:`Pool.gains`."""
        return self.pool.gains(sizes, blend)

    def left_out(self, means: Array, sizes: NDArray[np.number], blend: float) -> tuple[Array, Array]:
        r"""Residuals and optimism of bags that the prior has not seen, as for :meth:`Pool.left_out`.

        δ_i = tr(A_i W)/n_i + Σ_k ρ_ik ‖(I − A_i)(c_k − c̄_i)‖² says how far the mean of a bag follows its noise. The
        second term is the derivative of the responsibilities, since ∇ log ρ_k = C⁻¹(c_k − c̄) and C⁻¹W/n = (I − A)ᵀ. It
        is exact where the responsibilities use all directions, and 0 where kinds are clear.
        """
        rho, X = self._deviations(means, sizes)
        optimism = np.trace(self.pool.within) / sizes - self.pool.gains(sizes, blend)
        for k, centre in enumerate(self.centres):
            apart = centre - rho @ self.centres
            optimism += rho[:, k] * np.square(apart - self.pool.shrunk(apart, sizes, blend)).sum(axis=1)
        return X - self.pool.shrunk(X, sizes, blend), optimism


def fit_kinds_pool(
    finder: Pool, means: Array, sizes: NDArray[np.number], count: int, rng: np.random.Generator
) -> KindsPool:
    r"""Find kinds among the bags of a prior of one kind, and moments in all features given their responsibilities.

    With :math:`w_{ik} = \rho_{ik} w_i`, centres are weighted means, and

    .. math:: B = \Big[\sum_{ik} w_{ik}(x_i - c_k)(·)^\top - \sum_{ik} \ell_{ik} W/n_i\Big]_+ \Big/ \sum_{ik}\ell_{ik},
              \qquad \ell_{ik} = w_{ik}(1 - w_{ik}/w_k);

    with one kind this is :func:`estimate_between`.
    """
    u = finder.coordinates(means)
    kinds = fit_kinds(u, sizes, count, rng)
    rho = kinds.responsibilities(u, sizes)
    x, within = means / finder.unit, finder.within
    plain = (rho / np.maximum(rho.sum(axis=0), np.finfo(float).tiny)).T @ x
    weights = rho * between_weights(x - rho @ plain, sizes, within, count)[:, None]
    totals = np.maximum(weights.sum(axis=0), np.finfo(float).tiny)
    centres = (weights / totals).T @ x
    left = weights * (1.0 - weights / totals)
    scatter = -(left.sum(axis=1) / sizes).sum() * within
    for k, centre in enumerate(centres):
        X = np.sqrt(weights[:, k])[:, None] * (x - centre)
        scatter += X.T @ X
    root = positive_root(scatter / max(left.sum(), np.finfo(float).tiny))
    pool = Pool.with_moments(np.zeros(len(within)), root, within, finder.noise, finder.unit)
    return KindsPool(finder, kinds, centres, pool)


class MixturePrior(NamedTuple):
    """Priors of several numbers of kinds, combined by weights; one kind is the :class:`Pool` itself."""

    parts: list[tuple[int, float, float, Pool | KindsPool]]  # number of kinds, weight, blend and prior

    @property
    def weights(self) -> dict[int, float]:
        """The weight of each number of kinds."""
        return {count: weight for count, weight, _, _ in self.parts}

    def means(self, means: Array, sizes: NDArray[np.number]) -> Array:
        """Pooled means, in the unit of the given ones."""
        return np.asarray(sum(weight * prior.means(means, sizes, blend) for _, weight, blend, prior in self.parts))

    def optimism(self, means: Array, sizes: NDArray[np.number]) -> Array:
        """How far the mean of each bag follows its noise, as for :meth:`Pool.left_out`, where tr W = 1."""
        return np.asarray(
            sum(weight * prior.left_out(means, sizes, blend)[1] for _, weight, blend, prior in self.parts)
        )

    def gains(self, sizes: NDArray[np.number]) -> Array:
        """Reduction of the noise of each mean, as for :meth:`Pool.gains`."""
        return np.asarray(sum(weight * prior.gains(sizes, blend) for _, weight, blend, prior in self.parts))


def least_risk(pools: list[Pool], means: Array, sizes: NDArray[np.number]) -> Pool:
    """The prior with the smallest estimated risk of the means of the bags that it was fitted to."""
    w = pools[0].weights(means, sizes)
    risks = [min(pool.own_risk(means, sizes, theta, w) for theta in BLENDS) for pool in pools]
    return pools[int(np.argmin(risks))]


def fit_mixture(
    pool: Pool,
    means: Array,
    sizes: NDArray[np.number],
    blend: float | Literal["cv"] = "cv",
    kinds: int | Literal["cv"] = "cv",
) -> MixturePrior:
    """Choose numbers of kinds, blends and weights by the estimated risk on bags left out.

    ``pool`` is the prior of one kind, fitted to bags of these means and sizes.
    """
    # The order of bags must not matter, so that EM starts from bags in the order of their keys.
    order = lexicographic_order(mean_keys(means))
    means, sizes, rng = means[order], sizes[order], np.random.default_rng(0)
    numbers = [1, *(count for count in NUMBERS if 5 * count <= len(means))] if kinds == "cv" else [kinds]
    blends = BLENDS if blend == "cv" else (blend,)

    def prior(one: Pool, part: Any, count: int) -> Pool | KindsPool:
        return one if count == 1 else fit_kinds_pool(one, means[part], sizes[part], count, rng)

    G = np.zeros((len(numbers) * len(blends),) * 2)  # inner products of residuals of all pairs of choices
    optimisms = np.zeros(len(G))
    for out, others in fold_pools(pool, means, sizes):
        priors = [prior(others, ~out, count) for count in numbers]
        left_out = [each.left_out(means[out], sizes[out], theta) for each in priors for theta in blends]
        residuals = np.array([residual.ravel() for residual, _ in left_out])
        G += residuals @ residuals.T
        optimisms += [optimism.sum() for _, optimism in left_out]
    risks = (np.diag(G) + 2.0 * optimisms).reshape(len(numbers), len(blends))
    best = risks.argmin(axis=1)
    chosen = np.arange(len(numbers)) * len(blends) + best
    weights = risk_weights(G[np.ix_(chosen, chosen)], optimisms[chosen])
    return MixturePrior(
        [
            (count, float(weight), float(blends[int(b)]), prior(pool, slice(None), count))
            for count, weight, b in zip(numbers, weights, best, strict=True)
            if weight > 0
        ]
    )


def risk_weights(G: Array, optimisms: Array) -> Array:
    """Weights on the simplex that minimise the estimated risk wᵀGw + 2dᵀw of the combination; small ones are dropped.

    G holds the inner products of the residuals of all bags, and d the sums of their optimism (Q-aggregation).
    """
    # On the simplex wᵀGw + 2dᵀw = wᵀ(G + d1ᵀ + 1dᵀ)w, and adding a multiple of 11ᵀ changes nothing but makes the
    # matrix positive semi-definite.
    M = G + optimisms[:, None] + optimisms
    least = float(np.linalg.eigvalsh(M)[0])
    M = (M + max(-least, 0.0) * len(M)) / max(float(np.abs(M).max()), np.finfo(float).tiny)
    weights = simplex_minimiser(M, np.ones(len(M)), floor=1e-12)
    weights = np.where(weights < SMALLEST_WEIGHT, 0.0, weights)
    return weights / weights.sum()
