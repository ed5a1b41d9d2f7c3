"""Test of independence (HSIC) by permutations, with several combined statistics by default."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from muhat.elements import Element
from muhat.inference.combine import Component, combine_statistics
from muhat.inference.dependence_statistics import (
    FEATURES,
    MAX_EXACT_PAIRS,
    Families,
    Listed,
    columns_looked_at,
    default_dependences,
    draw_pairings,
    product_bytes,
)
from muhat.inference.resampling import EPS, permutation_pvalue, pooled_gram
from muhat.inference.results import CombinedResult, observed_and_null, ranked
from muhat.inference.strata import check_strata
from muhat.inference.two_sample import COPIES, is_plain
from muhat.kernels.base import Kernel, check_kernel
from muhat.kernels.mixed import rescaled, without_scales
from muhat.kernels.radial import Gaussian
from muhat.linalg.centered_gram import center_gram, subtract_means
from muhat.linalg.distances import power_of_two_near
from muhat.linalg.resources import check_memory, one_blas_thread
from muhat.means.base import BaseKernelMean
from muhat.means.nested import check_mean, mean_weights
from muhat.tables.encoder import TableEncoder
from muhat.tables.samples import encode_samples
from muhat.types import Array, RandomState
from muhat.validation import check_count, check_rng


@dataclass(frozen=True, eq=False, repr=False)
class HSICResult(CombinedResult):
    """Result of :func:`hsic_test`: also ``kernel_x`` and ``kernel_y`` with their bandwidths.

    In the default test they belong to the strongest pair of kernels. ``columns`` are the columns of X and of Y that
    depend on each other most, or None.
    """

    kernel_x: Any = None
    kernel_y: Any = None
    columns: tuple[str, ...] | None = None
    _nothing: ClassVar[str] = "no dependence found"

    @property
    def _in_one_word(self) -> str:
        kernels = " and ".join(repr(without_scales(kernel)) for kernel in (self.kernel_x, self.kernel_y))
        return f"X and Y depend on each other under {kernels}"


# ---------------------------------------------------------------- independence


@one_blas_thread()
def hsic_test(
    X: Any,
    Y: Any,
    kernel_x: Kernel | None = None,
    kernel_y: Kernel | None = None,
    n_resamples: int = 999,
    random_state: RandomState = None,
    *,
    mean: BaseKernelMean | None = None,
    unbiased: bool = False,
    strata: Any = None,
    scale: Any = "auto",
    memory_limit: float | None = None,
) -> HSICResult:
    r"""Test whether the rows of X and of Y, taken in pairs, are independent.

    There is nothing to choose by default: the test joins distance covariance, the largest rank correlation, HSIC at
    nine pairs of scales, dependent spreads and the strongest pair of columns, on the same random pairings of the rows.
    It joins them as :func:`mmd_test` does. The level is exact for pairs that are drawn independently of each other.

    With ``kernel_x`` or ``kernel_y`` the statistic is the squared norm of the cross-covariance operator, HSIC
    :math:`= \mathrm{tr}(KHLH)/n^2` with :math:`H = I - 11^\top/n`.

    The pairings come in families of n: a random one and its cyclic shifts, along a random order of the rows. The
    statistics of a family are one circular correlation of the diagonals of K and L, O(n² log n) by the fast Fourier
    transform in place of O(n³). The observed pairing has a family too, and under independence each member of each
    family is equally likely to be the observed one: the level is exact, as it is with independent draws.

    With ``mean`` the rows of each side are centred about what the recipe makes of that side, with weights β and γ,
    once, and the statistic is :math:`\mathrm{tr}(\tilde K \tilde L)/n^2`, that of
    ``KernelCovariance(centering=mean)``. The level stays exact: γ depends on Y alone and goes with the rows, so that
    another pairing permutes rows and columns of :math:`\tilde L`, and under independence that matrix is
    exchangeable whatever X and β are.

    Parameters
    ----------
    X : array of shape (n, p) or (n,), n >= 2
        The rows, one observation each; a vector is one column. Texts, categories, dates and missing values of data
        frames count too, as in :func:`mmd_test`.
    Y : array of shape (n, q) or (n,)
        Row i belongs to row i of X.
    kernel_x, kernel_y : Kernel, default None
        Kernels of the two sides; None for both joins all components, and None for one of them is Gaussian(). A
        bandwidth "median" is found once, on X and on Y.
    n_resamples : int, default 999
        Number of random pairings; where there are no more pairings than that, each is taken once and the test is exact.
    random_state : None, int, Generator, SeedSequence or RandomState
        The seed: the same number gives the same result.
    mean : mean estimator, optional
        A recipe for the means about which X and Y are centred, each fitted once; default the plain average. It asks for
        a single HSIC, with Gaussian() for kernels that are not given.
    unbiased : bool, default False
        The estimate of Song et al., zero on average under independence, and maybe negative; it needs n >= 4. Only with
        the plain average, and for a single HSIC.
    strata : array of n labels, optional
        Rows are paired within strata only. None may be missing.
    scale : "auto", "columns" or None, default "auto"
        What columns are divided by, on each side: as in :func:`mmd_test`.
    memory_limit : float, optional
        Bytes that may be used, by default a share of what is free; more is refused before it is allocated.

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
    >>> angle = np.random.default_rng(0).uniform(0, 2 * np.pi, size=200)
    >>> mh.hsic_test(np.cos(angle), np.sin(angle), random_state=0).pvalue  # no correlation, but no independence either
    0.001
    >>> mh.hsic_test(np.cos(angle), np.sin(angle), mh.Gaussian(), mh.Gaussian(), random_state=0)
    HSICResult(statistic=0.0086..., pvalue=0.001, n_resamples=999)
    """
    for name, kernel in (("kernel_x", kernel_x), ("kernel_y", kernel_y)):
        if kernel is not None:
            check_kernel(name, kernel)
    _check_centring(mean)
    recipe = None if is_plain(mean, unbiased) else mean
    n_resamples, rng = check_count("n_resamples", n_resamples), check_rng(random_state)
    default = kernel_x is None and kernel_y is None and mean is None and not unbiased
    if not (scale is None or isinstance(scale, str)):
        raise ValueError(f'scale={scale!r} must be "auto", "columns" or None; divide the columns first for other units')
    x = encode_samples({"X": X}, scale, default=default, min_rows=4 if unbiased else 2)
    y = encode_samples({"Y": Y}, scale, default=default, min_rows=1)
    X, Y, units = x.pooled, y.pooled, (x.scales, y.scales)
    if len(X) != len(Y):
        raise ValueError(f"X has {len(X)} rows and Y has {len(Y)}; row i of X and row i of Y must be a pair")
    strata = check_strata(strata, None, len(X))
    features = default and len(X) > MAX_EXACT_PAIRS
    widths = X.shape[1], Y.shape[1]
    matrices = 16.0 * len(X) * (n_resamples + 1 + FEATURES) if features else (10 if default else 4) * 8.0 * len(X) ** 2
    products = product_bytes(len(X), *widths, n_resamples + 1) if default else 0.0
    check_memory(
        matrices + products + 8.0 * COPIES * len(X) * sum(widths),
        memory_limit,
        f"the matrices of {len(X):,} pairs of {widths[0]:,} and {widths[1]:,} columns",
        "use a random part of the rows or columns, or a larger memory_limit",
    )
    pairings, smallest = draw_pairings(len(X), strata, n_resamples, rng)
    sides = [rows if unit is None else rows / unit for rows, unit in zip((X, Y), units, strict=True)]
    if default:
        sides = [(rows - np.median(rows, axis=0)) for rows in sides]
        found = _combined(default_dependences(sides[0], sides[1], pairings, rng), units, (x.encoder, y.encoder), len(X))
        looked_at = columns_looked_at(len(X), *widths, len(found.null_distribution) + 1)
        if looked_at != widths:
            counts = " and ".join(f"{kept:,} of {width:,}" for kept, width in zip(looked_at, widths, strict=True))
            found = replace(found, method=f"{found.method}; pairs of single columns: of {counts}, drawn at random")
        return replace(found, smallest_pvalue=smallest)
    kernel_x, kernel_y = (kernel_x or Gaussian()).resolve(sides[0]), (kernel_y or Gaussian()).resolve(sides[1])
    found = _single(sides[0], sides[1], kernel_x, kernel_y, pairings, recipe, unbiased, units, memory_limit)
    return replace(found, smallest_pvalue=smallest)


def _single(
    X: Array,
    Y: Array,
    kernel_x: Kernel,
    kernel_y: Kernel,
    pairings: Families | Listed,
    recipe: BaseKernelMean | None,
    unbiased: bool,
    units: tuple[Any, ...],
    memory_limit: float | None,
) -> HSICResult:
    """HSIC of one pair of kernels."""
    K, unit_x, size_x = _centred_in_units(pooled_gram(kernel_x, X, memory_limit), recipe, unbiased)
    L, unit_y, size_y = _centred_in_units(pooled_gram(kernel_y, Y, memory_limit), recipe, unbiased)
    n, sums = len(X), pairings.sums([K], [L])[0, 0]
    if not unbiased:
        np.maximum(sums, 0.0, out=sums)  # what is negative is rounding
    statistic, null = float(sums[0]), sums[1:]
    pvalue = permutation_pvalue(statistic, null, EPS * float(size_x * np.linalg.norm(L) + size_y * np.linalg.norm(K)))
    scale = unit_x / (n * (n - 3) if unbiased else n**2) * unit_y
    if not np.isfinite(scale * float(np.abs(sums).max())):
        raise ValueError(f"HSIC of {kernel_x!r} and {kernel_y!r} overflows on X and Y; rescale them first")
    kernels = rescaled(kernel_x, units[0]), rescaled(kernel_y, units[1])
    return HSICResult(scale * statistic, pvalue, scale * null, (), "exact", *kernels)


def _combined(
    components: list[Component], units: tuple[Any, ...], encoders: tuple[TableEncoder, TableEncoder], n: int
) -> HSICResult:
    combined = combine_statistics(components, discount=False)
    features = {
        part.name: [encoder.features[j] for encoder, j in zip(encoders, part.value, strict=True)]
        for part in components
        if part.name in _OF_COLUMNS
    }

    def describe(part: Component) -> tuple[Kernel | None, str | None, str]:
        if part.name in _OF_COLUMNS:
            x, y = features[part.name]
            return None, f"{x.label}, {y.label}", f"{x.in_words} of X and {y.in_words} of Y {_OF_COLUMNS[part.name]}"
        if part.group == "spread":
            where = "far out in Y" if part.value else "near the centre of Y"
            return None, None, f"rows that are far out in X are {where}"
        return None, None, "X and Y depend on each other"

    found = ranked(components, combined, describe)
    kernels = max((part for part in components if part.group == "scales"), key=lambda part: float(-part.pvalue)).value
    strongest = next((finding for finding in found if finding.name in features), None)
    method = "exact" if n <= MAX_EXACT_PAIRS else f"{FEATURES} features of each kernel"
    columns = None if strongest is None else tuple(feature.label for feature in features[strongest.name])
    outer_x, outer_y = (rescaled(kernel, unit) for kernel, unit in zip(kernels, units, strict=True))
    return HSICResult(*observed_and_null(combined), found, method, outer_x, outer_y, columns)


_OF_COLUMNS = {
    "rank correlation": "are correlated",
    "squared scores": "have dependent spreads",
    "distance covariance of columns": "depend on each other",
}


def _check_centring(mean: Any) -> None:
    check_mean("mean", mean)
    if isinstance(getattr(mean, "target", None), Element):
        raise ValueError(f"mean={mean!r} has a target in one space, and X and Y have a space each; use target=None")


def _centred_in_units(K: Array, mean: BaseKernelMean | None, unbiased: bool) -> tuple[Array, float, float]:
    """K centred, in a unit in which products neither overflow nor vanish; the unit; and the norm of K before."""
    unit = power_of_two_near(float(np.abs(K).max()))
    weights = None if mean is None else mean_weights(mean, K)  # a given lam is in the units of the kernel
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
