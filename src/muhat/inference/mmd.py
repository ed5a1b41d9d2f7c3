r"""The squared maximum mean discrepancy, biased and unbiased: from averages, kernel sums, features, estimated means.

.. math:: \mathrm{MMD}^2 = E\,k(x, x') + E\,k(y, y') - 2 E\,k(x, y) = \|\mu_X - \mu_Y\|^2.

The biased estimate :math:`\|\hat\mu_X - \hat\mu_Y\|^2` averages over all pairs of rows, a row and itself among
them. The unbiased one leaves those pairs out; its mean is 0 where the distributions are equal, and it may be negative.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from muhat._support.types import Array
from muhat._support.validation import check_number
from muhat.inference.permutations import Splits
from muhat.kernels.tiles import mapping
from muhat.linalg.blocks import blocks
from muhat.means.base import BaseKernelMean
from muhat.means.nested import mean_weights
from muhat.means.simple_shrinkage import KernelMean, ShrunkKernelMean, simple_shrinkage

PRODUCTS = 2**20
"""Products of features with splits that are kept at a time."""

_ROWS = 256
"""Rows of a Gram matrix that are multiplied with all splits at a time."""


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


def sums_from_features(features: Array, splits: Splits) -> KernelSums:
    """The sums of the matrix FFᵀ of inner products of features, without that matrix.

    Centred splits have the same products with centred features, in which constant ones vanish to the last digit.
    """
    exact = features.astype(np.float64, copy=False)
    total = exact.sum(axis=0)
    diagonal = np.einsum("ij,ij->i", exact, exact)
    S, centred = splits.centred.astype(features.dtype, copy=False), features - (total / len(features))
    forms = -(diagonal @ np.square(splits.exact))
    for part in product_blocks(features.shape[1], S.shape[1]):
        forms += ((centred[:, part].T.astype(S.dtype, copy=False) @ S) ** 2).sum(axis=0, dtype=np.float64)
    return KernelSums(forms, exact @ total - diagonal)


def product_blocks(columns: int, splits: int) -> Iterator[slice]:
    """Blocks of columns whose products with all splits take some megabytes."""
    return blocks(columns, max(1, PRODUCTS // splits))


# ---------------------------------------------------------------- distances of estimated means, for every split


def is_plain(mean: Any, unbiased: bool) -> bool:
    """Whether an estimator is the plain average, the only one that a test can be unbiased with."""
    plain = mean is None or type(mean) is KernelMean
    if unbiased and not plain:
        raise ValueError(f"unbiased=True is a correction of the plain average; with mean={mean!r} use unbiased=False")
    return plain


def split_means(mean: Any, K: Array, n: int, unbiased: bool) -> SplitMeans:
    """The means that an estimator makes of both parts of every split of the rows of a Gram matrix."""
    if is_plain(mean, unbiased):
        return _UnbiasedMeans(K, n) if unbiased else SplitMeans(K, n)
    return _ShrunkMeans(K, n, mean) if type(mean) is ShrunkKernelMean else _RefittedMeans(K, n, mean)


class SplitMeans:
    """The plain averages f and g of n and m rows, for every split in the columns of S."""

    def __init__(self, K: Array, n: int) -> None:
        self.K, self.n, self.m = K, n, len(K) - n

    def weights(self, S: Array) -> Array:
        """Signed weights of the pooled rows in f − g."""
        return _weights(S, 1.0 / self.n, 1.0 / self.m)

    def statistics(self, S: Array) -> Array:
        """‖f − g‖²."""
        return _quadratic_forms(self.K, self.weights(S)).clip(0)

    def averages(self, S: Array) -> tuple[Array, ...]:
        """MMD²; ϱ and ρ of the first part; ϱ and ρ of the second."""
        W = _weights(S, 1.0 / self.n, 1.0 / self.m)
        row_means, diagonal = self.K.mean(axis=1), np.diag(self.K)
        # With μ the mean of all rows and δ = f − g, the parts have the means f = μ + δ·m/(n+m), g = μ − δ·n/(n+m).
        squared, inner, overall = _quadratic_forms(self.K, W), row_means @ W, row_means.mean()
        x, y = self.m / len(self.K), self.n / len(self.K)
        gram_x = overall + 2.0 * x * inner + x**2 * squared
        gram_y = overall - 2.0 * y * inner + y**2 * squared
        trace = diagonal @ S
        return squared, trace / self.n, gram_x, (diagonal.sum() - trace) / self.m, gram_y


def _weights(S: Array, x: Any, y: Any) -> Array:
    return S * (x + y) - y


def _quadratic_forms(K: Array, W: Array) -> Array:
    """The forms wᵀKw of the columns of W, each pair of rows multiplied once."""

    def strip(rows: slice) -> Array:
        products = K[rows, rows.stop :] @ W[rows.stop :]
        products *= 2.0
        products += K[rows, rows] @ W[rows]
        return np.einsum("ib,ib->b", W[rows], products)

    with mapping(len(K) * W.size) as mapped:
        return sum(mapped(strip, blocks(len(K), _ROWS)), start=np.zeros(W.shape[1]))


class _UnbiasedMeans(SplitMeans):
    def statistics(self, S: Array) -> Array:
        squared, diag_x, gram_x, diag_y, gram_y = self.averages(S)
        return unbiased_squared_mmd(squared, self.n, diag_x - gram_x, self.m, diag_y - gram_y)


class _ShrunkMeans(SplitMeans):
    """Simple shrinkage to a·f and b·g; a = 1 − α depends on averages alone."""

    def __init__(self, K: Array, n: int, mean: ShrunkKernelMean) -> None:
        super().__init__(K, n)
        if mean.target is not None:
            raise ValueError(f"mean={mean!r} has a target; in this test shrink toward zero: target=None")
        loo = isinstance(mean.shrinkage, str) and mean.shrinkage == "loo"
        self.shrinkage = None if loo else check_number("shrinkage", mean.shrinkage, low=0, high=1, or_else='"loo"')

    def weights(self, S: Array) -> Array:
        _, diag_x, gram_x, diag_y, gram_y = self.averages(S)
        return _weights(S, self._kept(self.n, diag_x, gram_x) / self.n, self._kept(self.m, diag_y, gram_y) / self.m)

    def statistics(self, S: Array) -> Array:
        squared, diag_x, gram_x, diag_y, gram_y = self.averages(S)
        a, b = self._kept(self.n, diag_x, gram_x), self._kept(self.m, diag_y, gram_y)
        # ‖af − bg‖² from ‖f‖², ‖g‖² and ‖f − g‖².
        return (a * b * squared + (a - b) * (a * gram_x - b * gram_y)).clip(0)

    def _kept(self, n: int, mean_diag: Array, mean_gram: Array) -> Array:
        if self.shrinkage is not None:
            return np.full(len(mean_diag), 1.0 - self.shrinkage)
        pairs = zip(mean_diag, mean_gram.clip(0), strict=True)
        return np.array([1.0 - simple_shrinkage(n, *pair) for pair in pairs])


class _RefittedMeans(SplitMeans):
    def __init__(self, K: Array, n: int, mean: BaseKernelMean) -> None:
        super().__init__(K, n)
        self.mean = mean

    def weights(self, S: Array) -> Array:
        return np.column_stack([self._refit(split == 1) for split in S.T])

    def _refit(self, first: Any) -> Array:
        weights = np.empty(len(self.K))
        weights[first] = mean_weights(self.mean, self.K[np.ix_(first, first)])
        weights[~first] = -mean_weights(self.mean, self.K[np.ix_(~first, ~first)])
        return weights
