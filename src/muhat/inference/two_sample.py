"""Do two samples come from the same distribution? MMD², and its permutation test."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from muhat.elements import Element
from muhat.inference.resampling import (
    EPS,
    PermutationResult,
    check_column_names,
    permutation_pvalue,
    pooled_gram,
    random_splits,
    sample_rows,
)
from muhat.kernels.base import Kernel, check_kernel
from muhat.kernels.radial import Gaussian
from muhat.means.base import BaseKernelMean
from muhat.means.recipes import check_recipe, mean_weights
from muhat.means.simple import KernelMean, ShrunkKernelMean
from muhat.measures import Atoms
from muhat.shrinkage.refits import simple_shrinkage
from muhat.types import Array, RandomState
from muhat.validation import check_count, check_number, check_rng


@dataclass(frozen=True, eq=False, repr=False)
class MMDResult(PermutationResult):
    """Result of :func:`mmd_test`: also the ``kernel`` with its bandwidth, and the ``witness`` function f − g."""

    kernel: Kernel
    witness: Element


def mmd_test(
    X: Any,
    Y: Any,
    kernel: Kernel = Gaussian(),
    n_resamples: int = 999,
    random_state: RandomState = None,
    *,
    mean: BaseKernelMean | None = None,
    unbiased: bool = False,
) -> MMDResult:
    r"""Test whether two samples come from one distribution.

    The statistic is the squared distance of the two estimated means, for the plain average

    .. math:: \mathrm{MMD}^2 = \frac1{n^2}\sum_{ij} k(x_i, x_j) + \frac1{m^2}\sum_{ij} k(y_i, y_j)
              - \frac2{nm}\sum_{ij} k(x_i, y_j),

    and its null distribution is that over random splits of the pooled sample into n and m rows.

    Parameters
    ----------
    X : array of shape (n, d), n >= 2
        The rows, one observation each.
    Y : array of shape (m, d), m >= 2
        The rows of the second sample.
    kernel : Kernel, default Gaussian()
        A bandwidth "median" is found once, on the pooled sample.
    n_resamples : int, default 999
        Number B of random splits. They cost (n+m)²·B operations of one matrix product.
    random_state : None, int, Generator, SeedSequence or RandomState
        The seed: the same number gives the same result.
    mean : mean estimator, optional
        A recipe for both means, default the plain average. ShrunkKernelMean costs no more than it; any other
        estimator is fitted twice for every split, on parts of the one Gram matrix: with SpectralKernelMean that is
        2B eigendecompositions.
    unbiased : bool, default False
        Leave k(xᵢ, xᵢ) and k(yᵢ, yᵢ) out and divide by n(n−1) and m(m−1): zero on average under the null
        hypothesis, and maybe negative. Only with the plain average. Use it where n and m differ much: the default
        also grows with the spread of the smaller sample, and hardly sees a difference in which that is the narrow one.

    Returns
    -------
    MMDResult

    References
    ----------
    Gretton, Borgwardt, Rasch, Schölkopf, Smola (2012). A kernel two-sample test. JMLR 13.

    Examples
    --------
    >>> import numpy as np
    >>> import muhat as mh
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(40, 2)), rng.laplace(size=(60, 2)) + 0.5
    >>> result = mh.mmd_test(X, Y, random_state=0)
    >>> result
    MMDResult(statistic=0.09..., pvalue=0.001, n_resamples=999)
    >>> bool(np.isclose(result.witness.norm() ** 2, result.statistic))
    True
    """
    check_column_names(X, Y)
    X, Y = sample_rows("X", X, 2), sample_rows("Y", Y, 2)
    if X.shape[1] != Y.shape[1]:
        raise ValueError(f"X has {X.shape[1]} columns and Y has {Y.shape[1]}; two samples need the same columns")
    check_kernel("kernel", kernel)
    check_recipe("mean", mean)
    n_resamples, rng = check_count("n_resamples", n_resamples), check_rng(random_state)
    pooled = np.concatenate([X, Y])
    kernel = kernel.resolve(pooled)
    K = pooled_gram(kernel, pooled)
    means = estimated_means(mean, K, len(X), unbiased)
    observed = np.repeat([1.0, 0.0], [len(X), len(Y)])
    statistic = float(means.statistics(observed[:, None])[0])
    null = np.concatenate([means.statistics(S) for S in random_splits(observed, n_resamples, rng)])
    pvalue = permutation_pvalue(statistic, null, EPS * float(np.trace(K)) / len(K))
    witness = Element(kernel, Atoms.trusted(pooled, means.weights(observed[:, None])[:, 0]))
    return MMDResult(statistic, pvalue, null, kernel, witness)


_ROWS = 256


def _quadratic_forms(K: Array, W: Array) -> Array:
    """The forms wᵀKw of the columns of W, each pair of rows multiplied once."""
    forms = np.zeros(W.shape[1])
    for start in range(0, len(K), _ROWS):
        rows, rest = slice(start, start + _ROWS), slice(start + _ROWS, None)
        products = K[rows, rest] @ W[rest]
        products *= 2.0
        products += K[rows, rows] @ W[rows]
        forms += np.einsum("ib,ib->b", W[rows], products)
    return forms


def is_plain(mean: Any, unbiased: bool) -> bool:
    """Whether a recipe is the plain average, the only one that a test can be unbiased with."""
    plain = mean is None or type(mean) is KernelMean
    if unbiased and not plain:
        raise ValueError(f"unbiased=True is a correction of the plain average; with mean={mean!r} use unbiased=False")
    return plain


def estimated_means(mean: Any, K: Array, n: int, unbiased: bool) -> SplitMeans:
    """The means that the recipe makes of both parts of every split of the rows of a Gram matrix."""
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


class _UnbiasedMeans(SplitMeans):
    def statistics(self, S: Array) -> Array:
        squared, diag_x, gram_x, diag_y, gram_y = self.averages(S)
        return squared - (diag_x - gram_x) / (self.n - 1) - (diag_y - gram_y) / (self.m - 1)


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
