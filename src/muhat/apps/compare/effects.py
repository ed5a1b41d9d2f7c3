r"""Effects of single columns (KS distance, total variation, difference of shares) with intervals and p-values.

Counts have the shape (strata, 2, values): how many rows of each of two tables have each value, per stratum; without
strata the first axis has length 1. Strata are weighted by :math:`w_s \propto n_s m_s / (n_s + m_s)`, and the weighted
difference of the shares is :math:`\Delta = \sum_s w_s (f_s - g_s)`. The KS distance is the largest
:math:`|\sum_{j \le k} \Delta_j|`, total variation is :math:`\frac12 \sum_j |\Delta_j|`.

An estimated effect exceeds the true one by at most the size of the sampling noise :math:`W`, the estimated minus the
true :math:`\Delta`, because both are seminorms of :math:`\Delta`. So P(noise ≥ estimate − δ) is a p-value of the
hypothesis "the effect is at most δ". The noise is Gaussian for many rows, and is simulated with the estimated shares.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import gammaincc, gammainccinv, ndtr, ndtri

from muhat._support.types import Array

Counts = NDArray[np.int64]

CELLS = 200
"""Values are pooled into at most this many cells where noise is simulated."""

DRAWS = 400
"""Simulated draws of the noise; the tail beyond them is that of a gamma distribution with the same moments."""

FEW_ROWS = 50
"""With fewer rows the bound of Dvoretzky, Kiefer and Wolfowitz replaces simulated noise."""

_LEAST_SKEWNESS = 0.05
_LARGEST_Z = 37.0  # the normal tail is below the smallest float there


class Interval(NamedTuple):
    """A confidence interval of an effect."""

    low: float
    high: float


def weighted_difference(counts: Counts) -> tuple[Array, Array, Array]:
    """Difference of the shares, the weights of the strata that both tables have, and the shares in those strata.

    >>> weighted_difference(np.array([[[3, 1], [1, 3]]]))[0]
    array([ 0.5, -0.5])
    """
    sizes = counts.sum(axis=2)
    kept = sizes.min(axis=1) > 0
    sizes, shares = sizes[kept], counts[kept] / sizes[kept][:, :, None]
    weights = sizes.prod(axis=1) / sizes.sum(axis=1)
    weights = weights / weights.sum() if len(weights) else weights
    difference = np.einsum("s,sk->k", weights, shares[:, 0] - shares[:, 1])
    return difference, weights, shares


def ks_distance(counts: Counts) -> float:
    """Kolmogorov and Smirnov's distance: the largest difference between shares of rows up to any value.

    >>> ks_distance(np.array([[[2, 1, 1], [1, 1, 2]]]))
    0.25
    """
    return float(np.abs(weighted_difference(counts)[0].cumsum()).max(initial=0.0))


def total_variation(counts: Counts) -> float:
    """The share of the rows of one table that would have to change their category to match the other.

    >>> total_variation(np.array([[[2, 1, 1], [1, 1, 2]]]))
    0.25
    """
    return float(0.5 * np.abs(weighted_difference(counts)[0]).sum())


# ---------------------------------------------------------------------------------------------------------- intervals


def ks_interval(effect: float, counts: Counts, alpha: float) -> Interval:
    r"""Interval of the KS distance by a joint bound of Dvoretzky, Kiefer and Wolfowitz, from the numbers of rows.

    With :math:`c = \sum_s w_s^2 (1/n_s + 1/m_s)` the covariance of the noise of :math:`F - G` is at most that of
    :math:`\sqrt c` times a Brownian bridge, so :math:`P(\sup |W| > x) \le 2 \exp(-2 x^2 / c)`.
    """
    return _around(effect, _uniform_margin(counts, alpha))


def variation_interval(counts: Counts, alpha: float) -> Interval:
    """Interval of total variation: Newcombe's for two categories, by simulated noise for more."""
    if counts.shape[2] <= 2:
        return share_interval(counts, alpha)
    few = _is_few(counts)
    margin = _uniform_margin(counts, alpha / _sets(counts)) if few else _gamma_quantile(_variation_noise(counts), alpha)
    return _around(total_variation(counts), margin)


def share_interval(counts: Counts, alpha: float) -> Interval:
    """Interval of the absolute difference of two shares, by Newcombe's interval of the difference.

    The shares are those of the first of two values.
    """
    z = float(ndtri(1.0 - alpha / 2.0))
    low, high = _newcombe(counts, z), -_newcombe(counts[:, ::-1], z)
    if low <= 0.0 <= high:
        return Interval(0.0, float(max(-low, high)))
    return Interval(*sorted((abs(low), abs(high))))


def _uniform_margin(counts: Counts, alpha: float) -> float:
    """The margin of the KS distance, or of the difference of the shares of one set of categories."""
    return float(np.sqrt(np.log(2.0 / alpha) * _noise_scale(counts) / 2.0))


def _sets(counts: Counts) -> float:
    """How many sets of categories there are up to complements; total variation is the largest difference over them."""
    return float(2.0 ** (min(counts.shape[2], 60) - 1) - 1.0)


def _around(effect: float, margin: float) -> Interval:
    return Interval(max(0.0, effect - margin), min(1.0, effect + margin))


def _noise_scale(counts: Counts) -> float:
    sizes = counts.sum(axis=2)
    sizes = sizes[sizes.min(axis=1) > 0]
    weights = weighted_difference(counts)[1]
    return float((weights**2 * (1.0 / sizes).sum(axis=1)).sum()) if len(sizes) else np.inf


def _newcombe(counts: Counts, z: float) -> float:
    """Newcombe's lower bound of the difference of shares: Wilson's bounds, added as squared margins."""
    _, weights, shares = weighted_difference(counts)
    sizes = counts.sum(axis=2)[counts.sum(axis=2).min(axis=1) > 0]
    p = shares[:, :, 0]
    centre = (p + z**2 / (2 * sizes)) / (1 + z**2 / sizes)
    margin = z * np.sqrt(p * (1 - p) / sizes + z**2 / (4 * sizes**2)) / (1 + z**2 / sizes)
    below = p[:, 0] - (centre - margin)[:, 0]
    above = (centre + margin)[:, 1] - p[:, 1]
    squares = weights**2 @ (below**2 + above**2)
    return float(weights @ (p[:, 0] - p[:, 1]) - np.sqrt(squares))


# -------------------------------------------------------------------------------- p-values of "the effect exceeds δ"


def ks_exceeds(counts: Counts, at_least: float) -> float:
    """P-value of the hypothesis that the KS distance is at most ``at_least``."""
    return _exceeds(counts, ks_distance(counts) - at_least, _ks_noise, 1.0)


def variation_exceeds(counts: Counts, at_least: float) -> float:
    """P-value of the hypothesis that total variation is at most ``at_least``."""
    if counts.shape[2] <= 2:
        return share_exceeds(counts, at_least)
    return _exceeds(counts, total_variation(counts) - at_least, _variation_noise, _sets(counts))


def _exceeds(counts: Counts, excess: float, noise: Callable[[Counts], Array], sets: float) -> float:
    """The probability of a noise beyond the excess of an effect; of few rows, a bound for each of the ``sets``."""
    if excess <= 0.0:
        return 1.0
    if _is_few(counts):
        return float(min(1.0, 2.0 * sets * np.exp(-2.0 * excess**2 / _noise_scale(counts))))
    return _gamma_tail(noise(counts), excess)


def share_exceeds(counts: Counts, at_least: float) -> float:
    """P-value of the hypothesis that two shares differ by at most ``at_least``: both tails of Newcombe's bounds."""
    difference = float(weighted_difference(counts)[0][0]) if counts.shape[2] else 0.0
    ordered = counts if difference >= 0 else counts[:, ::-1]
    if abs(difference) <= at_least:
        return 1.0
    return min(1.0, sum(_newcombe_tail(ordered, bound) for bound in (at_least, -at_least)))


def _newcombe_tail(counts: Counts, bound: float) -> float:
    """The one-sided level at which Newcombe's lower bound is ``bound``."""
    if _newcombe(counts, _LARGEST_Z) >= bound:
        return 0.0
    z = brentq(lambda z: _newcombe(counts, z) - bound, 0.0, _LARGEST_Z, xtol=1e-10)
    return float(ndtr(-z))


def stratified_pvalue(counts: Counts, ordered: bool) -> float:
    """P-value of the hypothesis that the shares are equal within every stratum.

    The statistic is the KS distance of ``ordered`` values and otherwise total variation, each of the weighted
    difference, and its noise is simulated with the pooled shares of a stratum.
    """
    pooled = counts.sum(axis=1, keepdims=True)
    effect = ks_distance(counts) if ordered else total_variation(counts)
    if effect <= 0.0:
        return 1.0
    noise = _ks_noise(counts, pooled) if ordered else _variation_noise(counts, pooled)
    return _gamma_tail(noise, effect)


def holm(pvalues: Sequence[float]) -> Array:
    """P-values adjusted so that the probability of any false finding stays below the level (Holm 1979).

    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    values = np.asarray(pvalues, dtype=float)
    order = np.argsort(values, kind="stable")
    steps = np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1)).clip(max=1.0)
    adjusted = np.empty(len(values))
    adjusted[order] = steps
    return adjusted


# -------------------------------------------------------------------------------------------------------------- noise


def _is_few(counts: Counts) -> bool:
    return bool(counts.sum(axis=(0, 2)).min() < FEW_ROWS)


def _ks_noise(counts: Counts, pooled: Counts | None = None) -> Array:
    """Draws of sup|W|, with values pooled into cells of about equal counts."""
    total = counts.sum(axis=(0, 1))
    if len(total) > CELLS:
        cells = np.minimum(CELLS * (total.cumsum() - total) // max(int(total.sum()), 1), CELLS - 1)
        starts = np.flatnonzero(np.diff(cells, prepend=-1))
        counts = np.add.reduceat(counts, starts, axis=2)
        pooled = None if pooled is None else np.add.reduceat(pooled, starts, axis=2)
    return np.asarray(np.abs(_noise(counts, pooled).cumsum(axis=1)).max(axis=1))


def _variation_noise(counts: Counts, pooled: Counts | None = None) -> Array:
    return np.asarray(0.5 * np.abs(_noise(counts, pooled)).sum(axis=1))


def _noise(counts: Counts, pooled: Counts | None) -> Array:
    r"""Draws of the noise of the weighted difference of shares, one per row.

    The shares of n rows have the covariance (diag f − f fᵀ) / n, which :math:`\sqrt f \varepsilon - f (\varepsilon
    \cdot \sqrt f)` has for standard normal ε. The shares that it is made from hold one row more, which is spread over
    all values as the rows of both tables are: a value that one table does not have may still occur in it.
    """
    rng = np.random.default_rng(0)
    sizes = counts.sum(axis=2)
    weights = weighted_difference(counts)[1]
    noise = np.zeros((DRAWS, counts.shape[2]))
    both = (s for s in range(len(counts)) if sizes[s].min() > 0)
    for s, weight in zip(both, weights, strict=True):
        together = counts[s].sum(axis=0) / sizes[s].sum()
        for which in (0, 1):
            rows = sizes[s, which]
            own = (counts[s, which] + together) / (rows + 1) if pooled is None else pooled[s, 0] / pooled[s, 0].sum()
            normal = rng.standard_normal((DRAWS, len(own)))
            root = np.sqrt(own)
            noise += weight / np.sqrt(rows) * (normal * root - np.outer(normal @ root, own))
    return noise


def _gamma(draws: Array) -> tuple[float, float, float]:
    """Shape, scale and start of the gamma distribution with the mean, variance and skewness of the draws."""
    mean, deviation = float(draws.mean()), float(draws.std())
    skewness = max(float(((draws - mean) ** 3).mean()) / max(deviation, 1e-300) ** 3, _LEAST_SKEWNESS)
    shape = 4.0 / skewness**2
    scale = deviation / np.sqrt(shape)
    return shape, float(scale), float(mean - shape * scale)


def _gamma_tail(draws: Array, value: float) -> float:
    shape, scale, start = _gamma(draws)
    if scale <= 0.0:
        return 0.0 if value > start else 1.0
    return float(gammaincc(shape, max(0.0, value - start) / scale))


def _gamma_quantile(draws: Array, alpha: float) -> float:
    shape, scale, start = _gamma(draws)
    return float(start + scale * gammainccinv(shape, alpha))
