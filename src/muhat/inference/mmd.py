r"""The squared maximum mean discrepancy, biased and unbiased, from averages and from Gram matrices.

.. math:: \mathrm{MMD}^2 = E\,k(x, x') + E\,k(y, y') - 2 E\,k(x, y) = \|\mu_X - \mu_Y\|^2.

The biased estimate :math:`\|\hat\mu_X - \hat\mu_Y\|^2` averages over all pairs of rows, a row and itself among
them. The unbiased one leaves those pairs out; its mean is 0 where the distributions are equal, and it may be negative.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from muhat._support.types import Array
from muhat.kernels.tiles import mapping
from muhat.linalg.blocks import blocks
from muhat.linalg.centered_gram import mean_off_diagonal

_ROWS = 256
"""Rows of a Gram matrix that are multiplied with all splits at a time, and then are in the cache."""


def unbiased_squared_mmd(squared: Any, n: int, dispersion_x: Any, m: int, dispersion_y: Any) -> Any:
    r"""The unbiased estimate of MMD² from the biased one, :math:`\|\hat\mu_X - \hat\mu_Y\|^2`.

    To leave out pairs of a row and itself, and divide by n(n − 1) and m(m − 1), is the same as

    .. math:: \widehat{\mathrm{MMD}}^2_u = \|\hat\mu_X - \hat\mu_Y\|^2 - \frac{v_X}{n - 1} - \frac{v_Y}{m - 1},

    with the dispersion :math:`v_X = \frac1n\sum_i k(x_i, x_i) - \frac1{n^2}\sum_{ij} k(x_i, x_j)` of each sample.

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
    return np.array([[mean_off_diagonal(K[g, g]) if g == h else K[g, h].mean() for h in samples] for g in samples])


def split_statistics(K: Array, S: Array, unbiased: bool = False) -> Array:
    """MMD² of the two parts of each split, from the Gram matrix of all rows; S has 1 for a row of the first part."""
    n = int(S[:, 0].sum())
    m = len(K) - n
    W = signed_weights(S)
    squared = _quadratic_forms(K, W)
    if not unbiased:
        return squared.clip(0)
    # With μ the mean of all rows and δ = f − g, the parts have the means f = μ + δ·m/(n+m), g = μ − δ·n/(n+m).
    row_means, diagonal = K.mean(axis=1), np.diag(K)
    inner, overall = row_means @ W, row_means.mean()
    x, y = m / len(K), n / len(K)
    gram_x = overall + 2.0 * x * inner + x**2 * squared
    gram_y = overall - 2.0 * y * inner + y**2 * squared
    trace = diagonal @ S
    return unbiased_squared_mmd(squared, n, trace / n - gram_x, m, (diagonal.sum() - trace) / m - gram_y)


def signed_weights(S: Array) -> Array:
    """Weights of all rows in the difference f − g of the averages of the two parts of each split."""
    n = S[:, 0].sum()
    m = len(S) - n
    return np.asarray(S * (1.0 / n + 1.0 / m) - 1.0 / m)


def _quadratic_forms(K: Array, W: Array) -> Array:
    """The forms wᵀKw of the columns of W, each pair of rows multiplied once."""

    def strip(rows: slice) -> Array:
        products = K[rows, rows.stop :] @ W[rows.stop :]
        products *= 2.0
        products += K[rows, rows] @ W[rows]
        return np.einsum("ib,ib->b", W[rows], products)

    with mapping(len(K) * W.size) as mapped:
        return sum(mapped(strip, blocks(len(K), _ROWS)), start=np.zeros(W.shape[1]))
