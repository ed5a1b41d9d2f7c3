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


# ---------------------------------------------------------------- many questions at once


def step_down(evidence: Array, families: Sequence[Any], tolerance: float = 1e-6) -> Array:
    r"""Adjusted p-values of many questions in families that count alike, by Westfall and Young's step-down procedure.

    ``evidence[k, b]`` is that of question k on split b, such as −log p, the observed split first. With
    :math:`G_f(v)` the share of splits whose largest evidence in family f reaches v, :math:`u_{kb} = G_f(e_{kb})` is on
    one scale for all families. The questions are taken in the order of :math:`u_{k0}`, and the p-value of each is the
    share of splits on which the smallest u among the questions not yet taken reaches it, or that of the question before
    it if that is larger. The probability that any true hypothesis has an adjusted p-value up to α is at most α,
    whichever of the others are true (Westfall and Young 1993, section 2.8); the smallest one is that of the whole.
    Values of the evidence within ``tolerance`` are ties.
    """
    splits = evidence.shape[1]
    numbers = np.unique(np.asarray(families), return_inverse=True)[1]
    reached = np.empty(evidence.shape, dtype=np.float32)  # u times the number of splits
    for family in range(int(numbers.max()) + 1):
        inside = np.flatnonzero(numbers == family)
        largest = np.sort(evidence[inside].max(axis=0))
        for k in inside:
            reached[k] = splits - np.searchsorted(largest, evidence[k] - tolerance)
    order = np.lexsort((-evidence[:, 0], reached[:, 0]))
    adjusted, smallest = np.empty(len(order)), np.full(splits, np.float32(splits))
    for k in order[::-1]:
        np.minimum(smallest, reached[k], out=smallest)
        adjusted[k] = permutation_pvalue(-smallest.astype(np.float64))
    adjusted[order] = np.maximum.accumulate(adjusted[order])
    return adjusted


def order_pvalue(rows: Array, n_resamples: int, rng: np.random.Generator) -> float:
    """P-value of the hypothesis that standardised rows are in random order, by the likeness of neighbours.

    The statistic is the sum of the inner products of consecutive rows, which is n times the sum of the columns'
    autocorrelations at lag 1; it is compared with that of random orders of the rows.
    """
    K = rows @ rows.T
    orders = rng.permuted(np.tile(np.arange(len(rows)), (n_resamples + 1, 1)), axis=1)
    orders[0] = np.arange(len(rows))
    return float(permutation_pvalue(K[orders[:, :-1], orders[:, 1:]].sum(axis=1), TIED * EPS * float(np.trace(K))))
