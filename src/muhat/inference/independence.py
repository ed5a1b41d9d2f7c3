"""Are two sets of columns independent? HSIC, and its permutation test."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy import fft

from muhat.elements import Element
from muhat.inference.resampling import EPS, PermutationResult, permutation_pvalue, pooled_gram
from muhat.inference.samples import sample_rows
from muhat.inference.two_sample import is_plain
from muhat.kernels.base import Kernel, check_kernel
from muhat.kernels.radial import Gaussian
from muhat.linalg.distances import power_of_two_near
from muhat.linalg.gram import center_gram
from muhat.means.base import BaseKernelMean
from muhat.means.recipes import check_recipe, mean_weights
from muhat.types import Array, RandomState
from muhat.validation import check_count, check_rng

_DIAGONALS = 64


@dataclass(frozen=True, eq=False, repr=False)
class HSICResult(PermutationResult):
    """Result of :func:`hsic_test`: also ``kernel_x`` and ``kernel_y`` with their bandwidths."""

    kernel_x: Kernel
    kernel_y: Kernel


# ---------------------------------------------------------------- independence


def hsic_test(
    X: Any,
    Y: Any,
    kernel_x: Kernel = Gaussian(),
    kernel_y: Kernel = Gaussian(),
    n_resamples: int = 999,
    random_state: RandomState = None,
    *,
    mean: BaseKernelMean | None = None,
    unbiased: bool = False,
) -> HSICResult:
    r"""Test whether the rows of X and of Y, taken in pairs, are independent.

    The statistic is the squared norm of the cross-covariance operator, HSIC :math:`= \mathrm{tr}(KHLH)/n^2` with
    :math:`H = I - 11^\top/n`, and its null distribution is that over random pairings of the rows.

    The pairings come in families of n: a random one and its cyclic shifts, along a random order of the rows. The
    statistics of a family are one circular correlation of the diagonals of K and L, O(n² log n) by the fast Fourier
    transform in place of O(n³). The observed pairing has a family too, and under independence each member of each
    family is equally likely to be the observed one: the level is exact, as it is with independent draws.

    With ``mean`` the rows of each side are centred about what the recipe makes of that side, with weights β and γ,
    once, and the statistic is :math:`\mathrm{tr}(\tilde K \tilde L)/n^2`, that of
    ``KernelCovariance(centering=mean)``. The level stays exact: γ depends on Y alone and goes with the rows, so that
    to pair the rows again is to permute rows and columns of :math:`\tilde L`, and under independence that matrix is
    exchangeable whatever X and β are.

    Parameters
    ----------
    X : array of shape (n, p), n >= 2
        The rows, one observation each.
    Y : array of shape (n, q)
        Row i belongs to row i of X.
    kernel_x, kernel_y : Kernel, default Gaussian()
        A bandwidth "median" is found once, on X and on Y.
    n_resamples : int, default 999
        Number of random pairings.
    random_state : None, int, Generator, SeedSequence or RandomState
        The seed: the same number gives the same result.
    mean : mean estimator, optional
        A recipe for the means about which X and Y are centred, each fitted once; default the plain average.
    unbiased : bool, default False
        The estimate of Song et al., zero on average under independence, and maybe negative; it needs n >= 4. Only with
        the plain average.

    Returns
    -------
    HSICResult

    References
    ----------
    Gretton, Fukumizu, Teo, Song, Schölkopf, Smola (2008). A kernel statistical test of independence. NIPS 20.
    Song, Smola, Gretton, Bedo, Borgwardt (2012). Feature selection via dependence maximization. JMLR 13.
    Hemerik, Goeman (2018). Exact testing with random permutations. TEST 27.

    Examples
    --------
    >>> import numpy as np
    >>> import muhat as mh
    >>> angle = np.random.default_rng(0).uniform(0, 2 * np.pi, size=(200, 1))
    >>> mh.hsic_test(np.cos(angle), np.sin(angle), random_state=0)  # no correlation, but no independence either
    HSICResult(statistic=0.0086..., pvalue=0.001, n_resamples=999)
    """
    X, Y = sample_rows("X", X, 4 if unbiased else 2), sample_rows("Y", Y, 1)
    if len(X) != len(Y):
        raise ValueError(f"X has {len(X)} rows and Y has {len(Y)}; row i of X and row i of Y must be a pair")
    check_kernel("kernel_x", kernel_x)
    check_kernel("kernel_y", kernel_y)
    _check_centring(mean)
    recipe = None if is_plain(mean, unbiased) else mean
    n_resamples, rng = check_count("n_resamples", n_resamples), check_rng(random_state)
    kernel_x, kernel_y = kernel_x.resolve(X), kernel_y.resolve(Y)
    K, unit_x, size_x = _centred_in_units(pooled_gram(kernel_x, X), recipe, unbiased)
    L, unit_y, size_y = _centred_in_units(pooled_gram(kernel_y, Y), recipe, unbiased)
    n = len(X)
    orders = rng.permuted(np.tile(np.arange(n), (-(-(n_resamples + 1) // n), 1)), axis=1)
    sums = _pairing_sums(K, L, orders).ravel()
    sums[0] = np.vdot(K, L)
    if not unbiased:
        np.maximum(sums, 0.0, out=sums)  # what is negative is rounding
    statistic, null = float(sums[0]), rng.choice(sums[1:], n_resamples, replace=False)
    pvalue = permutation_pvalue(statistic, null, EPS * float(size_x * np.linalg.norm(L) + size_y * np.linalg.norm(K)))
    scale = unit_x / (n * (n - 3) if unbiased else n**2) * unit_y
    if not np.isfinite(scale * float(np.abs(sums).max())):
        raise ValueError(f"HSIC of {kernel_x!r} and {kernel_y!r} overflows on X and Y; rescale them first")
    return HSICResult(scale * statistic, pvalue, scale * null, kernel_x, kernel_y)


def _check_centring(mean: Any) -> None:
    check_recipe("mean", mean)
    if isinstance(getattr(mean, "target", None), Element):
        raise ValueError(f"mean={mean!r} has a target in one space, and X and Y have a space each; use target=None")


def _centred_in_units(K: Array, mean: BaseKernelMean | None, unbiased: bool) -> tuple[Array, float, float]:
    """K centred, in a unit in which products neither overflow nor vanish; the unit; and the norm of K before."""
    unit = power_of_two_near(float(np.abs(K).max()))
    weights = None if mean is None else mean_weights(mean, K)  # a given lam is in the units of the kernel
    K = K / unit
    size = float(np.linalg.norm(K))
    if weights is None:
        return _centred(K, unbiased), unit, size
    center_gram(K, weights)
    return K, unit, size


def _centred(K: Array, unbiased: bool) -> Array:
    """HKH, in place; or with a zero diagonal, and such that Σ KᵢⱼLᵢⱼ / n(n−3) is the unbiased HSIC."""
    n = len(K)
    if unbiased:
        np.fill_diagonal(K, 0.0)
    means = K.sum(axis=1) / (n - 2 if unbiased else n)
    K -= means
    K -= means[:, None]
    K += means.sum() / (n - 1 if unbiased else n)
    if unbiased:
        np.fill_diagonal(K, 0.0)
    return K


def _pairing_sums(K: Array, L: Array, orders: Any) -> Array:
    """Entry (b, t) is Σᵢⱼ K[a(i), a(j)] L[b(i+t), b(j+t)], where b is row b of ``orders`` and a is its row 0.

    Entry (0, 0) is the observed sum. The pairs j = i + d of one d are a diagonal, and all shifts t of two diagonals
    are their circular correlation. K and L are symmetric, hence d and n − d give the same.
    """
    n = len(K)
    last = n // 2
    spectra = np.zeros((len(orders), last + 1), dtype=np.complex128)
    for start in range(0, last + 1, _DIAGONALS):
        offsets = np.arange(start, min(start + _DIAGONALS, last + 1))
        times = np.where((offsets == 0) | (2 * offsets == n), 1.0, 2.0)
        of_K = fft.rfft(times * _diagonals(K, orders[0], offsets), axis=0).conj()
        for spectrum, order in zip(spectra, orders, strict=True):
            spectrum += np.einsum("fd,fd->f", of_K, fft.rfft(_diagonals(L, order, offsets), axis=0))
    return fft.irfft(spectra, n, axis=1)


def _diagonals(K: Array, order: Any, offsets: Any) -> Array:
    """Column d holds K[order(i), order(i + d)] for all i, indices modulo n."""
    n = len(order)
    shifted = sliding_window_view(np.concatenate([order, order])[offsets[0] :], len(offsets))[:n]
    return K.ravel().take(shifted + n * order[:, None])
