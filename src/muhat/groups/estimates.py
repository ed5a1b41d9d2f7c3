r"""Squared distances of kernel means of many groups: unbiased, by empirical Bayes, and intervals.

With mean features :math:`x_i`, the covariance W of rows within groups and :math:`h = 1/n_i + 1/n_j`, the unbiased
estimate of a squared distance θ is :math:`U = \|x_i - x_j\|^2 - b_i - b_j`, where :math:`b_i` is the noise of
:math:`\|x_i\|^2`. Its variance is

.. math:: \operatorname{Var}(U \mid \theta) = 4\kappa\theta h + 2\tau h^2, \qquad \tau = \operatorname{tr} W^2,

where κ is the average of :math:`\delta^\top W \delta/\theta` over pairs. The empirical-Bayes estimate is the mean of
two, which fail in different places: U shrunk toward the mean distance, and the distance of means that are shrunk toward
each other, calibrated so that its mean is that of U. Intervals use the noise of the two groups, as far as their rows
tell it. All is in units such that tr W = 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm, t

from muhat._support.types import Array
from muhat.bags.efron_morris import fit_pools
from muhat.bags.mixture_prior import fit_mixture, least_risk
from muhat.bags.moments import BagMoments
from muhat.bags.prior import RIDGES
from muhat.groups.sums import GroupSums
from muhat.linalg.blocks import blocks
from muhat.linalg.resources import check_memory

FIT_PAIRS = 20_000
"""Pairs of groups, drawn at random, from which the spread of distances is learned where there are more: the error of
20,000 pairs is far below that of the groups that they are made of."""

LEAST_SCALE, LARGEST_SCALE = 0.02, 50.0
"""Bounds of the scale of a group relative to the mean scale, so that no group is ignored and none unshrunk."""

OWN_ROWS = 4
"""Rows that the noise of all groups counts beside a group's own; coverage is the same from 0 to 10."""

_GROUPS = 512
_ROUNDS = 50

Index = NDArray[np.intp] | slice


class Noise(NamedTuple):
    """Var(U | θ) = 4κθh + 2τh²."""

    kappa: float
    tau: float

    @classmethod
    def of(cls, apart: Array, U: Array, h: Array, within: Array, degrees: int) -> Noise:
        """Moments of differences of means with unbiased squared lengths U; tr W = 1."""
        # tr W² of an estimated W is too large by tr²W/dof; a tenth of a percent is that of 1,000 equal directions.
        tau = max(float(np.square(within).sum()) - 1.0 / max(degrees, 2), 1e-3)
        # E dᵀWd = δᵀWδ + τh for a difference d of means. Pairs are weighted by 1/h², their precision at θ = 0.
        along = np.einsum("pm,pm->p", apart @ within, apart) - tau * h
        total = float((U / h**2).sum())
        if total <= 0:
            return cls(tau, tau)
        top = float(np.linalg.eigvalsh(within)[-1])
        return cls(float(np.clip((along / h**2).sum() / total, 0.2 * tau, max(top, 0.2 * tau))), tau)

    def variance(self, theta: Any, h: Array) -> Array:
        """Variance of U about θ."""
        return np.asarray(4.0 * self.kappa * theta * h + 2.0 * self.tau * h**2)


def score_interval(U: Array, slope: Array, noise: Array, level: float) -> tuple[Array, Array]:
    """All θ ≥ 0 with (U − θ)² ≤ z²(slope·θ + noise): between the roots of a quadratic."""
    z2 = norm.ppf(0.5 + 0.5 * level) ** 2
    a = 0.5 * z2 * slope
    root = np.sqrt(np.maximum(a**2 + 2.0 * a * U + z2 * noise, 0.0))
    return np.maximum(U + a - root, 0.0), np.maximum(U + a + root, 0.0)


class ScalarShrinkage(NamedTuple):
    """Efron and Morris's rule for numbers: U is shrunk toward the mean t of true values that vary by ω²."""

    centre: float
    spread: float
    share: float  # of the rule that the number of groups can bear

    @classmethod
    def of(cls, U: Array, noise: Noise, h: Array, groups: float) -> ScalarShrinkage:
        """Weighted moments; few groups do not determine ω², hence (G − 4)/(G − 2) of the rule (Morris, 1983)."""
        share = 1.0 if np.isinf(groups) else max(groups - 4, 0) / max(groups - 2, 1)
        t, spread = max(float(np.average(U, weights=1.0 / noise.variance(0.0, h))), 0.0), 0.0
        for _ in range(_ROUNDS):
            s = noise.variance(t, h)
            weights = 1.0 / (spread + s)
            t = max(float((weights * U).sum() / weights.sum()), 0.0)
            before = spread
            spread = max(float((weights**2 * (np.square(U - t) - s)).sum() / np.square(weights).sum()), 0.0)
            if abs(spread - before) <= 1e-8 * spread:
                break
        return cls(t, spread, share)

    def apply(self, U: Array, noise: Noise, h: Array) -> Array:
        """Shrunk values, their positive part."""
        s = noise.variance(self.centre, h)
        return np.maximum(U - self.share * s / (self.spread + s) * (U - self.centre), 0.0)


class PooledDistances(NamedTuple):
    """Squared distances of pooled means, f‖m_i − m_j‖² + a(v_i + v_j), v_i the posterior variances."""

    means: Array
    variances: Array
    factor: float
    share: float

    def distances(self, i: Index, j: Index) -> Array:
        """All distances of groups i to groups j."""
        return self.factor * _squares(self.means, i, j) + self.share * np.add.outer(
            self.variances[i], self.variances[j]
        )


@dataclass(frozen=True, eq=False)
class GroupEstimates:
    """Estimates for the pairs of some groups. ``unit`` is tr W; lengths and covariances are in its unit."""

    unit: float
    x: Array  # (G, m), centred
    sizes: Array
    bias: Array  # noise of ‖x_i‖², by the rows of the group itself
    within: Array
    degrees: int

    @classmethod
    def of(cls, sums: GroupSums) -> GroupEstimates:
        """From sums of groups of two rows and more."""
        n, degrees = sums.sizes.astype(float), int(sums.sizes.sum()) - len(sums.sizes)
        x, bias = sums.means - n @ sums.means / n.sum(), sums.spreads / (n * (n - 1.0))
        trace = float(np.trace(sums.scatter)) / degrees
        unit = trace if trace > 0 else 1.0
        return cls(unit, x / np.sqrt(unit), n, bias / unit, sums.scatter / degrees / unit, degrees)

    @property
    def noiseless(self) -> bool:
        """Rows of a group never differ, so that distances are known."""
        return not np.trace(self.within) > 0

    @cached_property
    def _pairs(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Pairs from which noise and calibration are learned."""
        G = len(self.sizes)
        if G * (G - 1) // 2 <= FIT_PAIRS:
            return np.triu_indices(G, 1)
        i, j = np.random.default_rng(0).integers(0, G, (2, 2 * FIT_PAIRS))
        return i[i != j][:FIT_PAIRS], j[i != j][:FIT_PAIRS]

    @cached_property
    def _pair_values(self) -> tuple[Array, Array, Array]:
        """Differences of means of those pairs, U and h."""
        i, j = self._pairs
        apart = self.x[i] - self.x[j]
        return (
            apart,
            np.square(apart).sum(axis=1) - self.bias[i] - self.bias[j],
            1.0 / self.sizes[i] + 1.0 / self.sizes[j],
        )

    @cached_property
    def noise(self) -> Noise:
        """The variance of U."""
        return Noise.of(*self._pair_values, self.within, self.degrees)

    @cached_property
    def _shrinkage(self) -> ScalarShrinkage:
        """Of the distances of all pairs."""
        _, U, h = self._pair_values
        return ScalarShrinkage.of(U, self.noise, h, len(self.sizes))

    @cached_property
    def scales(self) -> Array:
        """Scale of the prior of each group: half way between one prior for all and one of its own.

        The squared distance of a group from the centre, shrunk, is its scale θ_i; the prior has the root of θ_i over
        the mean in place of 1.
        """
        n, (_, U, _) = self.sizes, self._pair_values
        w = 1.0 / (1.0 / n + max(float(U.mean()) / 2.0, 0.0))
        w /= w.sum()
        own = np.square(self.x - w @ self.x).sum(axis=1) - ((1.0 - 2.0 * w) / n + (w * w / n).sum())
        few = len(n) <= 2  # whose distances from their centre are one number
        theta = own.clip(0.0)
        if not few:
            rule = ScalarShrinkage.of(own, self.noise, 1.0 / n, np.inf)
            theta = rule.apply(own, self.noise, 1.0 / n)
        mean = float(w @ theta)
        return np.sqrt(np.clip(theta / mean, LEAST_SCALE, LARGEST_SCALE)) if mean > 0 else np.ones(len(n))

    @cached_property
    def pooled(self) -> PooledDistances:
        """Pooled means, calibrated: the weighted mean of their distances is that of U."""
        # The prior gB in place of B has the posterior means of n·g rows in place of n: rg/(rg + 1/n) = r/(r + 1/(ng)).
        # The derivative of the posterior mean is its covariance over the noise, so that tr V_i = g_i·optimism(n g).
        moments = BagMoments(self.x, self.within, self.degrees)
        sizes = self.sizes * self.scales
        best = least_risk(fit_pools(moments, self.sizes, RIDGES), self.x, self.sizes)
        mixture = fit_mixture(best, self.x, self.sizes)
        means, variances = mixture.means(self.x, sizes), self.scales * mixture.optimism(self.x, sizes)
        i, j = self._pairs
        _, U, h = self._pair_values
        weights = 1.0 / (h + max(float(U.mean()), 0.0) / np.sqrt(2.0 * self.noise.tau)) ** 2
        P = np.square(means[i] - means[j]).sum(axis=1)
        gap, own = float(weights @ (U - P)), float(weights @ P)
        if gap < 0:  # P is 0 where all means are pooled into one
            return PooledDistances(means, variances, max(1.0 + gap / own, 0.0) if own > 0 else 1.0, 0.0)
        more = float(weights @ (variances[i] + variances[j]))
        return PooledDistances(means, variances, 1.0, min(gap / more, 1.0) if more > 0 else 0.0)

    def _unbiased(self, i: Index, j: Index) -> Array:
        return _squares(self.x, i, j) - np.add.outer(self.bias[i], self.bias[j])

    def _noise_sizes(self, i: Index, j: Index) -> Array:
        """h of all pairs."""
        return np.add.outer(1.0 / self.sizes[i], 1.0 / self.sizes[j])

    def unbiased(self, i: Index, j: Index) -> Array:
        """U of groups i to groups j."""
        return self.unit * self._unbiased(i, j)

    def to_one(self, control: int, others: NDArray[np.intp]) -> Array:
        """Empirical-Bayes distances to one group; U is shrunk toward the mean distance from it."""
        one = np.array([control])
        U = self._unbiased(one, others)[0]
        if self.noiseless:
            return self.unit * U
        h = self._noise_sizes(one, others)[0]
        rule = ScalarShrinkage.of(U, self.noise, h, len(self.sizes))
        return self.unit * 0.5 * (rule.apply(U, self.noise, h) + self.pooled.distances(one, others)[0])

    def interval(
        self, control: int, others: NDArray[np.intp], level: float, own: tuple[Array, Array] | None = None
    ) -> tuple[Array, Array]:
        """Score intervals of the distances to one group.

        ``own`` has the sums of squares of (z − x_i)ᵀδ over the rows of each group, and over those of the control, with
        δ the difference of their means. Without it, noise has the directions of W.
        """
        U = self._unbiased(np.array([control]), others)[0]
        if self.noiseless:
            return self.unit * U, self.unit * U
        # The covariance of group i is t_i W where nothing else is known, and t_i is its trace: h = t_i/n_i + t_j/n_j.
        n, m = self.sizes[others], self.sizes[control]
        traces = _few_known(self.bias * self.sizes * (self.sizes - 1.0), self.sizes, 1.0)
        h = traces[others] / n + traces[control] / m
        noise, slope = 2.0 * self.noise.tau * h**2, 4.0 * self.noise.kappa * h
        if own is not None:
            apart = self.x[others] - self.x[control]
            pooled = np.einsum("pm,pm->p", apart @ self.within, apart)
            theirs = _few_known(own[0], n, traces[others] * pooled) / n
            mine = _few_known(own[1], m, traces[control] * pooled) / m
            along = theirs + mine
            # Few rows: Welch's degrees of freedom, and Student's quantile in place of the normal one.
            parts = np.square(theirs) / (n - 1.0) + np.square(mine) / (m - 1.0)
            degrees = np.square(along) / np.maximum(parts, np.finfo(float).tiny)
            along *= np.square(t.ppf(0.5 + 0.5 * level, np.maximum(degrees, 1.0)) / norm.ppf(0.5 + 0.5 * level))
            # δᵀWδ/θ is known where θ is large beside the noise; elsewhere it stays near the κ of all pairs.
            known, little = np.maximum(along - 0.5 * noise, 0.0), 2.0 * np.sqrt(noise)
            slope = (4.0 * known + slope * little) / (np.maximum(U, 0.0) + little)
        low, high = score_interval(U, slope, noise, level)
        return self.unit * low, self.unit * high

    def matrix(self, *, unbiased: bool = False) -> Array:
        """Distances of all pairs, in blocks of groups."""
        G = len(self.sizes)
        check_memory(
            3 * 8.0 * G**2, None, f"{G:,} x {G:,} distances", "use fewer groups, or control= for one row of it"
        )
        found = np.empty((G, G))
        for block in blocks(G, _GROUPS):
            later = slice(block.start, G)
            U = self._unbiased(block, later)
            if not unbiased and not self.noiseless:
                shrunk = self._shrinkage.apply(U, self.noise, self._noise_sizes(block, later))
                U = 0.5 * (shrunk + self.pooled.distances(block, later))
            found[block, later] = U
            found[later, block] = U.T
            found[block, block] = 0.5 * (found[block, block] + found[block, block].T)
        np.fill_diagonal(found, 0.0)
        return self.unit * found


def _few_known(squares: Array, n: Any, prior: Any) -> Array:
    """Variances from sums of squares of n rows, and ``OWN_ROWS`` more that have the variance of all groups."""
    return np.asarray((squares + OWN_ROWS * prior) / (n - 1.0 + OWN_ROWS))


def _squares(x: Array, i: Index, j: Index) -> Array:
    """Squared distances of all pairs of rows i and rows j; rows are centred, so that little cancels."""
    if not isinstance(i, slice) and len(i) == 1:
        return np.asarray(np.square(x[j] - x[i]).sum(axis=1)[None])
    norms = np.square(x).sum(axis=1)
    return np.maximum(np.add.outer(norms[i], norms[j]) - 2.0 * x[i] @ x[j].T, 0.0)
