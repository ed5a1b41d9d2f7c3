r"""Effects of columns, and intervals that hold in finite samples whatever the distributions are.

Counts have the shape (strata, 2, values): how many rows of each table have each value. Differences are weighted sums
over strata with :math:`\omega_s \propto n_s m_s / (n_s + m_s)`, the weights that the permutation tests have too.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, inf, log, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from muhat._support.types import Array

Counts = NDArray[np.int64]


class Interval(NamedTuple):
    """A confidence interval."""

    low: float
    high: float


@dataclass(frozen=True)
class Effect:
    r"""An effect, and how far the estimate may be from the truth.

    With probability at least 1 − α the estimate errs by no more than :math:`r \sqrt{(c - \log\alpha)/2}`, where r is
    ``rate`` and c is ``cost``.
    """

    value: float
    rate: float
    cost: float

    def interval(self, alpha: float) -> Interval:
        """Confidence interval of level 1 − α."""
        margin = self.rate * sqrt(max(self.cost - log(alpha), 0.0) / 2) if self.rate < inf else 1.0
        return Interval(max(0.0, self.value - margin), min(1.0, self.value + margin))

    def exceeds(self, at_least: float) -> float:
        """The smallest α whose interval lies above ``at_least``: a p-value of a smaller effect."""
        if self.value <= at_least or self.rate == inf:
            return 1.0
        return min(1.0, exp(min(self.cost - 2.0 * ((self.value - at_least) / self.rate) ** 2, 0.0)))


def shares_difference(counts: Counts) -> Array:
    """Difference of the shares of each value, weighted over the strata that both tables have.

    >>> shares_difference(np.array([[[3, 1], [1, 3]]]))
    array([ 0.5, -0.5])
    """
    sizes = counts.sum(axis=2)
    kept = sizes.min(axis=1) > 0
    shares = counts[kept] / sizes[kept][:, :, None]
    return np.asarray(_weights(sizes) @ (shares[:, 0] - shares[:, 1]))


def _weights(sizes: Any) -> Array:
    """Weights of the strata that both tables have."""
    kept = sizes[sizes.min(axis=1) > 0]
    weights = kept.prod(axis=1) / kept.sum(axis=1)
    return np.asarray(weights / max(weights.sum(), 1e-300))


def ks_effect(counts: Counts, largest_cluster: tuple[int, int] | None = None) -> Effect:
    r"""Kolmogorov and Smirnov's distance, with the band of Dvoretzky, Kiefer, Wolfowitz and Massart for both tables.

    :math:`P(\sup|F_n - F| > \varepsilon) \le 2 e^{-2 n \varepsilon^2}` in each table (Massart 1990); half of α goes to
    each of them.
    """
    value = float(np.abs(shares_difference(counts).cumsum()).max(initial=0.0))
    rate, extra = _rate(counts.sum(axis=2), largest_cluster)
    return Effect(min(value, 1.0), rate, log(4.0) + extra)


def variation_effect(counts: Counts, largest_cluster: tuple[int, int] | None = None) -> Effect:
    r"""Total variation of K categories: the share of rows that would have to change their value.

    :math:`P(\|p_n - p\|_1 > 2\varepsilon) \le (2^K - 2) e^{-2 n \varepsilon^2}` (Weissman et al. 2003).
    """
    value = float(0.5 * np.abs(shares_difference(counts)).sum())
    rate, extra = _rate(counts.sum(axis=2), largest_cluster)
    categories = max(int((counts.sum(axis=(0, 1)) > 0).sum()), 2)
    sets = log(2.0**categories - 2.0) if categories < 50 else categories * log(2.0)
    return Effect(min(value, 1.0), rate, log(2.0) + sets + extra)


def _rate(sizes: Any, largest_cluster: tuple[int, int] | None) -> tuple[float, float]:
    r"""The sum over tables of :math:`n'^{-1/2}`, n' the effective number of rows; and what is added to the cost.

    A weighted mean with weights up to 1/n' is an average of plain means over n' rows. Exponential bounds of these hold
    for it with a factor e: it is smaller in the convex order (Jensen), and a tail :math:`2 e^{-2n\varepsilon^2}` of the
    larger variable bounds that of the smaller one e times (Kemperman). Strata weigh rows by :math:`\omega_s / n_s`, and
    a cluster has the weight of its rows, of which each is one draw of a distribution of its own.
    """
    kept = sizes[sizes.min(axis=1) > 0]
    if not len(kept):
        return inf, 0.0
    heaviest = (_weights(sizes)[:, None] / kept).max(axis=0)
    if largest_cluster is not None:
        heaviest = heaviest * np.array(largest_cluster)
    plain = len(kept) == 1 and largest_cluster is None
    rows = [float(kept[0, which]) if plain else max(1.0, np.floor(1.0 / heaviest[which] + 1e-9)) for which in (0, 1)]
    return sum(1.0 / sqrt(n) for n in rows), 0.0 if plain else 1.0
