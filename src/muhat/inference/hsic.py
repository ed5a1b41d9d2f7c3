r"""The Hilbert-Schmidt independence criterion (HSIC) of one pair of kernels, biased and unbiased, on all pairings.

.. math:: \mathrm{HSIC} = \|C_{XY}\|^2 = \mathrm{tr}(KHLH)/n^2, \qquad H = I - 11^\top/n.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from muhat.inference.pairings import Pairings
from muhat.inference.splits import EPS, permutation_pvalue
from muhat.linalg.centered_gram import center_gram, subtract_means
from muhat.linalg.distances import power_of_two_near
from muhat.means.base import BaseKernelMean
from muhat.means.nested import mean_weights
from muhat.types import Array


class HSIC(NamedTuple):
    """HSIC of the pairs as they are, its p-value, and HSIC on other pairings."""

    statistic: float
    pvalue: float
    null_distribution: Array


def permuted_hsic(
    K: Array, L: Array, pairings: Pairings, mean: BaseKernelMean | None = None, unbiased: bool = False
) -> HSIC:
    """HSIC on all pairings, from the Gram matrices of both sides, which are overwritten.

    Values may be infinite where the product of both sides overflows.
    """
    K, unit_x, size_x = _centred_in_units(K, mean, unbiased)
    L, unit_y, size_y = _centred_in_units(L, mean, unbiased)
    n, sums = len(K), pairings.sums([K], [L])[0, 0]
    if not unbiased:
        np.maximum(sums, 0.0, out=sums)  # what is negative is rounding
    rounding = EPS * float(size_x * np.linalg.norm(L) + size_y * np.linalg.norm(K))
    pvalue = permutation_pvalue(float(sums[0]), sums[1:], rounding)
    with np.errstate(over="ignore"):
        values = unit_x / (n * (n - 3) if unbiased else n**2) * unit_y * sums
    return HSIC(float(values[0]), pvalue, values[1:])


def _centred_in_units(K: Array, mean: BaseKernelMean | None, unbiased: bool) -> tuple[Array, float, float]:
    """K centred, in a unit in which products neither overflow nor vanish; the unit; and the norm of K before."""
    unit = power_of_two_near(float(np.abs(K).max()))
    weights = None if mean is None else mean_weights(mean, K)  # a given lam is in the unit of the kernel
    K = K / unit
    size = float(np.linalg.norm(K))
    return _centred(K, unbiased) if weights is None else center_gram(K, weights), unit, size


def _centred(K: Array, unbiased: bool) -> Array:
    """HKH, in place; or with a zero diagonal, and such that Σ KᵢⱼLᵢⱼ / n(n−3) is the unbiased HSIC."""
    if not unbiased:
        return center_gram(K)
    np.fill_diagonal(K, 0.0)
    means = K.sum(axis=1) / (len(K) - 2)
    subtract_means(K, means, means, float(means.sum()) / (len(K) - 1))
    np.fill_diagonal(K, 0.0)
    return K
