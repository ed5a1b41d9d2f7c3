r"""The squared maximum mean discrepancy, biased and unbiased: from averages, from kernel sums of splits, from features.

.. math:: \mathrm{MMD}^2 = E\,k(x, x') + E\,k(y, y') - 2 E\,k(x, y) = \|\mu_X - \mu_Y\|^2.

The biased estimate :math:`\|\hat\mu_X - \hat\mu_Y\|^2` averages over all pairs of rows, a row and itself among
them. The unbiased one leaves those pairs out; its mean is 0 where the distributions are equal, and it may be negative.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from muhat.inference.splits import Splits
from muhat.linalg.blocks import blocks
from muhat.types import Array

PRODUCTS = 2**20
"""Products of features with splits that are kept at a time."""


def unbiased_squared_mmd(squared: Any, n: int, dispersion_x: Any, m: int, dispersion_y: Any) -> Any:
    r"""The unbiased estimate of MMD² from the biased one, :math:`\|\hat\mu_X - \hat\mu_Y\|^2`.

    To leave out pairs of a row and itself, and divide by n(n − 1) and m(m − 1), is the same as

    .. math:: \widehat{\mathrm{MMD}}^2_u = \|\hat\mu_X - \hat\mu_Y\|^2 - \frac{v_X}{n - 1} - \frac{v_Y}{m - 1},

    with the dispersion :math:`v_X = \frac1n\sum_i k(x_i, x_i) - \frac1{n^2}\sum_{ij} k(x_i, x_j)` of each sample.

    Parameters
    ----------
    squared : float or array
        The biased estimate.
    n, m : int
        Numbers of rows.
    dispersion_x, dispersion_y : float or array
        The dispersions of the two samples.

    References
    ----------
    A. Gretton, K. Borgwardt, M. Rasch, B. Schölkopf, A. Smola. A kernel two-sample test. JMLR 2012, Lemma 6.
    """
    return squared - dispersion_x / (n - 1) - dispersion_y / (m - 1)


def unbiased_mean_similarities(K: Array, samples: Sequence[slice]) -> Array:
    r"""Mean similarities of samples from their Gram matrix: U within each on the diagonal, C between two off it.

    :math:`U_g = \sum_{i \ne j \in g} K_{ij} / n_g(n_g - 1)` leaves out pairs of a row and itself, so that
    :math:`U_g + U_h - 2C_{gh}` is the unbiased estimate of MMD².
    """
    sizes = np.array([part.stop - part.start for part in samples])
    sums = np.array([[K[g, h].sum() for h in samples] for g in samples])
    sums[np.diag_indices_from(sums)] -= [np.trace(K[g, g]) for g in samples]
    pairs = np.outer(sizes, sizes)
    pairs[np.diag_indices_from(pairs)] -= sizes
    return np.asarray(sums / pairs)


class KernelSums(NamedTuple):
    """Of a symmetric matrix K of kernel values without its diagonal: sᵀKs for all centred splits s, and row sums."""

    forms: Array
    row_sums: Array


class MeanSimilarities(NamedTuple):
    """For every split: unbiased MMD², and the difference of the mean similarities within the two samples, centred."""

    mmd: Array
    within: Array
    rounding: float


def mean_similarities(sums: KernelSums, splits: Splits) -> MeanSimilarities:
    """With α and β the mean similarities within the samples and γ that between them: α + β − 2γ, and α − β."""
    n, m = splits.n, splits.m
    share, total = n / (n + m), float(sums.row_sums.sum())
    # With s = c + n/(n + m) the indicator of the first sample and c the centred split: 1ᵀKs, then sᵀKs from cᵀKc.
    first = sums.row_sums @ splits.exact + share * total
    both_first = sums.forms + 2.0 * share * first - share**2 * total
    both_second, between = total - 2.0 * first + both_first, first - both_first
    alpha, beta = both_first / (n * (n - 1)), both_second / (m * (m - 1))
    within = alpha - beta
    rounding = splits.eps * float(np.abs(sums.row_sums).sum()) / (n + m) / n / m
    return MeanSimilarities(alpha + beta - 2.0 * between / (n * m), within - within.mean(), rounding)


def feature_sums(features: Array, splits: Splits) -> KernelSums:
    """The sums of the matrix FFᵀ of inner products of features, without that matrix."""
    diagonal = np.einsum("ij,ij->i", features, features, dtype=np.float64)
    S = splits.centred.astype(features.dtype, copy=False)
    forms = -(diagonal @ np.square(splits.exact))
    for part in product_blocks(features.shape[1], S.shape[1]):
        forms += ((features[:, part].T @ S) ** 2).sum(axis=0, dtype=np.float64)
    return KernelSums(forms, features @ features.sum(axis=0) - diagonal)


def product_blocks(columns: int, splits: int) -> Iterator[slice]:
    """Blocks of columns whose products with all splits take some megabytes."""
    return blocks(columns, max(1, PRODUCTS // splits))
