"""Estimated means of both samples under every split of a Gram matrix: plain, unbiased, shrunk, or refitted."""

from __future__ import annotations

from typing import Any

import numpy as np

from muhat.inference.mmd import unbiased_squared_mmd
from muhat.linalg.blocks import blocks
from muhat.linalg.gram import mapping
from muhat.means.base import BaseKernelMean
from muhat.means.nested import mean_weights
from muhat.means.simple import KernelMean, ShrunkKernelMean, simple_shrinkage
from muhat.types import Array
from muhat.validation import check_number

_ROWS = 256


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
