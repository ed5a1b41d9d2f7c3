"""Combining several statistics into one permutation test with an exact level, and their shares of the evidence.

Every component has its statistic on the same splits of the rows, the observed one first. All that follows treats the
observed split as any other: under the null hypothesis the columns are exchangeable, so the level is exact at every
number of rows and of splits, whatever the components are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import log_ndtr, logsumexp

from muhat._support.types import Array
from muhat.inference.permutations import EPS, TIED, permutation_pvalue

LEAST_SKEWNESS = 0.05
"""Rows with less skewness are taken for this skew; below it the gamma distribution is the normal one."""

LEAST_VARIANCE = 1e-12
"""The smallest variance without a column, in units of the variance with it."""


@dataclass(frozen=True, eq=False)
class Component:
    """One statistic on every split, the observed split first; large values speak against the null hypothesis.

    ``rounding`` is the size of the rounding error of its values: a row that varies by no more is constant. ``weight``
    is the part that it has in the combined statistic before near duplicates are discounted. ``value`` is what the
    statistic is made from: a kernel, a number of a column.
    """

    name: str
    group: str
    statistics: Array
    rounding: float = 0.0
    weight: float = 1.0
    value: Any = None

    @property
    def pvalue(self) -> float:
        """The p-value of this component alone, as if no other had been looked at."""
        return float(permutation_pvalue(self.statistics, TIED * self.rounding))


class Combined(NamedTuple):
    """The combined statistic on every split, its p-value, and for each component its share and −log p of the gamma."""

    statistics: Array
    pvalue: float
    shares: Array
    evidence: Array


def combine_statistics(components: Sequence[Component], tolerance: float = 1e-8, discount: bool = True) -> Combined:
    r"""One test from several statistics.

    With :math:`p_{kb}` the p-value of component k on split b by a gamma approximation, the combined statistic is

    .. math:: t_b = \log \sum_k w_k / p_{kb}, \qquad p = \#\{b \ge 0 : t_b \ge t_0\} / (B + 1).

    The weight :math:`w_k` is that of the component over :math:`\sum_l \rho_{kl}^2`, where ρ is the correlation of
    log p over all splits where it is positive: components that are nearly the same count once. Without ``discount`` the
    weights stay as they are. Values of t within ``tolerance`` of the observed one are ties.
    """
    log_p = log_pvalues(components)
    terms = -log_p + np.log(weights(components, log_p, discount))[:, None]
    statistics = logsumexp(terms, axis=0)
    pvalue = float(permutation_pvalue(statistics, tolerance * max(1.0, abs(statistics[0]))))
    return Combined(statistics, pvalue, np.exp(terms[:, 0] - statistics[0]), -log_p[:, 0])


def log_pvalues(components: Sequence[Component]) -> Array:
    """log p of each component on each split: the upper tail of the gamma with the moments of all *other* splits.

    The gamma distribution has the mean, variance and skewness of the row without the split itself, and its tail is
    that of Wilson and Hilferty (1931).
    """
    z = np.stack([_standardised(component) for component in components])
    others = z.shape[1] - 1
    squares = z * z
    first, second, third = ((p.sum(axis=1, keepdims=True) - p) / others for p in (z, squares, squares * z))
    variance = np.maximum(second - first**2, LEAST_VARIANCE)
    skewness = (third - 3.0 * first * second + 2.0 * first**3) / variance**1.5
    deviation = (z - first) / np.sqrt(variance)
    root = 2.0 / np.maximum(skewness, LEAST_SKEWNESS)
    cubes = np.cbrt(np.maximum(0.0, 1.0 + deviation / root))
    return np.asarray(log_ndtr(-3.0 * root * (cubes - 1.0 + 1.0 / (9.0 * root**2))))


def _standardised(component: Component) -> Array:
    """The row with mean 0 and variance 1, or zeros where it varies by rounding alone."""
    row = component.statistics - component.statistics.mean()
    size = float(np.abs(row).max())
    if size <= 64 * max(component.rounding, EPS * float(np.abs(component.statistics).max())):
        return np.zeros(len(row))
    row = row / size
    return np.asarray(row / row.std())


def weights(components: Sequence[Component], log_p: Array, discount: bool) -> Array:
    """Weights that sum to 1, in which near duplicates share what one of them would have."""
    centred = log_p - log_p.mean(axis=1, keepdims=True)
    lengths = np.linalg.norm(centred, axis=1)
    centred /= np.where(lengths > 0, lengths, 1.0)[:, None]
    alike = np.clip(centred @ centred.T, 0.0, 1.0) ** 2
    np.fill_diagonal(alike, 1.0)
    given = np.array([component.weight for component in components])
    discounted = given / alike.sum(axis=1) if discount else given
    return np.asarray(discounted / discounted.sum())
