"""Test of independence (HSIC) by permutations, with several combined statistics by default."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from muhat._support.types import Array, RandomState
from muhat._support.validation import check_count, check_rng
from muhat.inference.combine import Component
from muhat.inference.dependence_statistics import (
    FEATURES,
    MAX_EXACT_PAIRS,
    columns_looked_at,
    default_dependences,
    product_bytes,
)
from muhat.inference.permutations import EPS, TIED, Pairings, check_strata, draw_pairings, permutation_pvalue
from muhat.inference.results import Explanation, PermutationResult, combined_fields
from muhat.inference.two_sample import COPIES, pooled_gram
from muhat.kernels.base import Kernel, check_kernel
from muhat.kernels.mixed import rescaled, without_scales
from muhat.kernels.radial import Gaussian
from muhat.linalg.centered_gram import center_gram, subtract_means
from muhat.linalg.distances import power_of_two_near
from muhat.linalg.resources import check_memory, one_blas_thread
from muhat.means.base import BaseKernelMean
from muhat.means.nested import check_mean, mean_weights
from muhat.means.simple_shrinkage import KernelMean
from muhat.rkhs.elements import Element
from muhat.tables.encoder import Feature, Samples, encode_samples

_PAIRS_OF_COLUMNS = {
    "rank correlation": "are correlated",
    "squared scores": "have dependent dispersions",
    "distance covariance of columns": "depend on each other",
}
"""Components that look at one column of each side, and what they see."""


@dataclass(frozen=True, eq=False, repr=False)
class HSICResult(PermutationResult):
    """Result of :func:`hsic_test`.

    Attributes
    ----------
    statistic, pvalue, null_distribution, components, method, smallest_pvalue
        See :class:`MMDResult`.
    kernel_x, kernel_y : Kernel
        The kernels of both sides with their bandwidths; in the default test, the strongest pair of kernels.
    columns : tuple of str or None
        The columns of X and of Y that depend on each other most.
    """

    kernel_x: Any = None
    kernel_y: Any = None
    columns: tuple[str, ...] | None = None
    _nothing: ClassVar[str] = "no dependence found"

    @property
    def _of_one_statistic(self) -> str:
        kernels = " and ".join(repr(without_scales(kernel)) for kernel in (self.kernel_x, self.kernel_y))
        return f"X and Y depend on each other under {kernels}"


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

    There is nothing to tune by default: the test combines distance covariance, plain and of whitened rows, the largest
    rank correlation, HSIC at nine pairs of scales, dependent dispersions and the strongest pair of columns, on the same
    random pairings of the rows. It combines them as :func:`mmd_test` does. The type I error is controlled for pairs
    that are drawn independently of each other.

    With ``kernel_x`` or ``kernel_y`` the statistic is the squared norm of the cross-covariance operator, HSIC
    :math:`= \mathrm{tr}(KHLH)/n^2` with :math:`H = I - 11^\top/n`.

    The pairings come in families of n: a random one and its cyclic shifts, along a random order of the rows. The
    statistics of a family are one circular correlation of the diagonals of K and L, O(n² log n) by the fast Fourier
    transform in place of O(n³). The observed pairing has a family too, and under independence each member of each
    family is equally likely to be the observed one: the level is exact, as it is with independent draws.

    With ``mean`` the rows of each side are centred about the mean that it estimates on that side, with weights β and γ,
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
        Kernels of the two sides; None for both combines all components, and None for one of them is Gaussian(). A
        bandwidth "median" is found once, on X and on Y.
    n_resamples : int, default 999
        Number of random pairings; where there are no more pairings than that, each is taken once and the test is exact.
    random_state : None, int, Generator, SeedSequence or RandomState
        The seed: the same number gives the same result.
    mean : mean estimator, optional
        The estimator of the means about which X and Y are centred, each fitted once; default the plain average. It asks
        for a single HSIC, with Gaussian() for kernels that are not given.
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
        The p-value and components.

    See Also
    --------
    mmd_test : Whether two samples come from one distribution.
    KernelCovariance : The cross-covariance operator whose norm is tested.

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
    HSICResult(statistic=0.0086..., pvalue=0.001, n_resamples=999: X and Y depend on each other under ...)
    """
    for name, kernel in (("kernel_x", kernel_x), ("kernel_y", kernel_y)):
        if kernel is not None:
            check_kernel(name, kernel)
    check_mean("mean", mean)
    if isinstance(getattr(mean, "target", None), Element):
        raise ValueError(f"mean={mean!r} has a target in one space, and X and Y have a space each; use target=None")
    centring = None if type(mean) is KernelMean else mean
    if unbiased and centring is not None:
        raise ValueError(f"unbiased=True is a correction of the plain average; with mean={mean!r} use unbiased=False")
    n_resamples, rng = check_count("n_resamples", n_resamples), check_rng(random_state)
    default = kernel_x is None and kernel_y is None and mean is None and not unbiased
    if not (scale is None or isinstance(scale, str)):
        raise ValueError(f'scale={scale!r} must be "auto", "columns" or None; divide the columns first for other units')
    x = encode_samples({"X": X}, scale, default=default, min_rows=4 if unbiased else 2)
    y = encode_samples({"Y": Y}, scale, default=default, min_rows=1)
    n, p, q = len(x.pooled), x.pooled.shape[1], y.pooled.shape[1]
    if n != len(y.pooled):
        raise ValueError(f"X has {n} rows and Y has {len(y.pooled)}; row i of X and row i of Y must be a pair")
    strata = check_strata(strata, None, n)
    _check_memory(n, p, q, n_resamples, default, memory_limit)
    pairings, smallest = draw_pairings(n, strata, n_resamples, rng)
    if default:
        components = default_dependences(x.centred, y.centred, pairings, rng)
        method = _method(n, p, q, len(components[0].statistics))
        return _combined_result(components, (x, y), method, smallest)
    kernels = [(kernel or Gaussian()).resolve(side.scaled) for kernel, side in ((kernel_x, x), (kernel_y, y))]
    K, L = (pooled_gram(kernel, side.scaled, memory_limit) for kernel, side in zip(kernels, (x, y), strict=True))
    found = permuted_hsic(K, L, pairings, centring, unbiased)
    if not all(np.isfinite(values).all() for values in found):
        raise ValueError(f"HSIC of {kernels[0]!r} and {kernels[1]!r} overflows on X and Y; rescale them first")
    outer = [rescaled(kernel, side.scales) for kernel, side in zip(kernels, (x, y), strict=True)]
    return HSICResult(*found, tuple, "exact", outer[0], outer[1], smallest_pvalue=smallest)


def _check_memory(n: int, p: int, q: int, n_resamples: int, default: bool, memory_limit: float | None) -> None:
    features = default and n > MAX_EXACT_PAIRS
    matrices = 16.0 * n * (n_resamples + 1 + FEATURES) if features else (12 if default else 5) * 8.0 * n**2
    products = product_bytes(n, p, q, n_resamples + 1) if default else 0.0
    check_memory(
        matrices + products + 8.0 * COPIES * n * (p + q),
        memory_limit,
        f"the matrices of {n:,} pairs of {p:,} and {q:,} columns",
        "use a random part of the rows or columns, or a larger memory_limit",
    )


def _method(n: int, p: int, q: int, pairings: int) -> str:
    """How the default test was done, in words."""
    method = "exact" if n <= MAX_EXACT_PAIRS else f"{FEATURES} features of each kernel"
    looked_at = columns_looked_at(n, p, q, pairings)
    if looked_at == (p, q):
        return method
    counts = " and ".join(f"{kept:,} of {width:,}" for kept, width in zip(looked_at, (p, q), strict=True))
    return f"{method}; pairs of single columns: of {counts}, drawn at random"


def _combined_result(
    components: list[Component], sides: tuple[Samples, Samples], method: str, smallest: float
) -> HSICResult:
    fields = combined_fields(components, partial(explain_dependence, sides=sides), discount=False)
    kernels = max((part for part in components if part.group == "scales"), key=lambda part: -part.pvalue).value
    outer = [rescaled(kernel, side.scales) for kernel, side in zip(kernels, sides, strict=True)]
    of_columns = {part.name: part.value for part in components if part.name in _PAIRS_OF_COLUMNS}
    strongest = next((part.name for part in fields[-1]() if part.name in of_columns), None)
    columns = None if strongest is None else tuple(each.label for each in _features(of_columns[strongest], sides))
    return HSICResult(*fields, method, outer[0], outer[1], columns, smallest_pvalue=smallest)


def explain_dependence(part: Component, sides: tuple[Samples, Samples]) -> Explanation:
    """Explain a component of :func:`hsic_test`, with the names of columns."""
    if part.name in _PAIRS_OF_COLUMNS:
        x, y = _features(part.value, sides)
        text = f"{x.in_words} of X and {y.in_words} of Y {_PAIRS_OF_COLUMNS[part.name]}"
        return Explanation(text, None, f"{x.label}, {y.label}")
    if part.group == "dispersion":
        where = "far out in Y" if part.value else "near the centre of Y"
        return Explanation(f"rows that are far out in X are {where}")
    if part.group == "whitened":
        return Explanation("X and Y depend on each other along combinations of their columns")
    return Explanation("X and Y depend on each other")


def _features(columns: tuple[int, int], sides: tuple[Samples, Samples]) -> list[Feature]:
    return [side.encoder.features[j] for side, j in zip(sides, columns, strict=True)]


# ---------------------------------------------------------------- one pair of kernels


def permuted_hsic(
    K: Array, L: Array, pairings: Pairings, mean: BaseKernelMean | None = None, unbiased: bool = False
) -> tuple[float, float, Array]:
    """HSIC of the pairs as they are, its p-value, and HSIC on other pairings, from Gram matrices that are overwritten.

    Values may be infinite where the product of both sides overflows.
    """
    K, unit_x, size_x = _centred_in_units(K, mean, unbiased)
    L, unit_y, size_y = _centred_in_units(L, mean, unbiased)
    n, sums = len(K), pairings.sums([K], [L])[0, 0]
    if not unbiased:
        np.maximum(sums, 0.0, out=sums)  # what is negative is rounding
    rounding = EPS * float(size_x * np.linalg.norm(L) + size_y * np.linalg.norm(K))
    pvalue = float(permutation_pvalue(sums, TIED * rounding))
    with np.errstate(over="ignore"):
        values = unit_x / (n * (n - 3) if unbiased else n**2) * unit_y * sums
    return float(values[0]), pvalue, values[1:]


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
