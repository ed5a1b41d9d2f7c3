"""Two-sample test (MMD) by permutations, with several combined statistics by default."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from muhat.elements import Element
from muhat.features.nystroem import Nystroem
from muhat.features.sketch import MeanSketch
from muhat.inference import difference_statistics
from muhat.inference.combine import Component, combine_statistics
from muhat.inference.fisher import spectral_components, spectral_weights
from muhat.inference.large_samples import (
    MAX_EXACT_ROWS,
    binned_components,
    bins_of_sketches,
    draw_bins,
    feature_components,
)
from muhat.inference.mmd import unbiased_squared_mmd
from muhat.inference.resampling import EPS, other_splits, permutation_pvalue, pooled_gram, smallest_pvalue, ticking
from muhat.inference.results import CombinedResult, ComponentResult, observed_and_null, percent, ranked
from muhat.inference.strata import check_strata
from muhat.kernels.base import Kernel, check_kernel
from muhat.kernels.mixed import rescaled, without_scales
from muhat.kernels.radial import Gaussian
from muhat.linalg.blocks import blocks
from muhat.linalg.distances import power_of_two_near
from muhat.linalg.gram import mapping
from muhat.linalg.resources import check_memory, one_blas_thread
from muhat.means.base import BaseKernelMean
from muhat.means.nested import check_mean, mean_weights
from muhat.means.simple import KernelMean, ShrunkKernelMean, simple_shrinkage
from muhat.measures import Atoms
from muhat.tables.encoder import MISSING, TableEncoder, TableFunction
from muhat.tables.samples import BYTES_PER_COLUMN, encode_samples
from muhat.types import Array, RandomState
from muhat.validation import check_count, check_gram, check_number, check_overflow, check_rng

FLOAT32_TIE = 1e-4
"""Combined statistics this close, relatively, are ties where matrices are float32."""


COPIES = 8
"""Arrays of the size of the pooled rows that a test needs at a time: in units, as scores, their squares and others."""


@dataclass(frozen=True, eq=False, repr=False)
class MMDResult(CombinedResult):
    """Result of :func:`mmd_test`.

    ``kernel`` is the Kernel of the test with its bandwidth, and ``witness`` the Element f − g, the difference of the
    two means: large where X has more mass. It takes the tables that the test took. In the default test they belong to
    the strongest component that is a kernel. Both are None for a precomputed Gram matrix, and ``witness`` is None for
    sketches of Fourier features. ``sizes`` are the numbers of rows. ``muhat.plotting.ComponentsDisplay`` draws the
    components, ``ResultWitnessDisplay`` the witness.
    """

    kernel: Any = None
    witness: Any = None
    sizes: tuple[int, int] = (0, 0)

    @property
    def column(self) -> tuple[str, str] | None:
        """The column that differs most and in what; None where no column was tested.

        Such as ("age", "location") or ("age", "scale"), and ("colour = white", "share") for categories and truth
        values.
        """
        for finding in self.components:
            if finding.column is not None and finding.change is not None:
                return finding.column, finding.change
        return None

    @property
    def _in_one_word(self) -> str:
        return "X and Y differ" if self.kernel is None else f"X and Y differ under {without_scales(self.kernel)!r}"


@one_blas_thread()
def mmd_test(
    X: Any,
    Y: Any,
    kernel: Kernel | Sequence[Kernel] | Literal["precomputed"] | None = None,
    n_resamples: int = 999,
    random_state: RandomState = None,
    *,
    mean: BaseKernelMean | None = None,
    unbiased: bool = False,
    statistic: Literal["mmd", "spectral"] = "mmd",
    strata: Any = None,
    scale: Any = "auto",
    memory_limit: float | None = None,
    verbose: bool = False,
) -> MMDResult:
    r"""Test whether two samples come from one distribution.

    There is nothing to choose by default: the test joins statistics that see shifts, fine structure, shapes of columns,
    correlations, spread, and single columns, on the same random splits of the pooled rows into n and m rows. With
    :math:`p_{kb}` the p-value of component k on split b, the combined statistic of a split is
    :math:`t_b = \log \sum_k w_k / p_{kb}`, and the p-value is the share of splits, the observed one among them, that
    reach the observed one. For rows that are drawn independently of each other the level is exact at every n, m and
    number of splits, also with ties; for dependent rows, as in time series, it is not.

    With ``kernel`` the statistic is the squared distance of the two estimated means, for the plain average

    .. math:: \mathrm{MMD}^2 = \frac1{n^2}\sum_{ij} k(x_i, x_j) + \frac1{m^2}\sum_{ij} k(y_i, y_j)
              - \frac2{nm}\sum_{ij} k(x_i, y_j).

    Parameters
    ----------
    X : array of shape (n, d) or (n,), n >= 2, or MeanSketch
        The rows, one observation each; a vector is one column. With kernel="precomputed" the Gram matrix of all n + m
        rows. A sketch (made with ``bins=1000``) needs another one as Y: see the notes.
    Y : array of shape (m, d) or (m,), m >= 2
        The rows of the second sample. Data frames of any library are matched by the names of their columns. Their
        texts and categories are compared too, each category a feature, and dates count as days. A missing number is
        the median of its column, with a further feature that is 1 where it is missing; a missing category is a
        category. With kernel="precomputed" an array of n + m truth values, True for the rows of the second sample.
    kernel : None, Kernel, list of Kernels or "precomputed", default None
        None joins all components. A kernel asks for its MMD alone, and a list for the unbiased MMDs of its kernels,
        combined. A bandwidth "median" is found once, on the pooled sample.
    n_resamples : int, default 999
        Number B of random splits; where there are no more splits than that, each is taken once and the test is exact.
        They cost (n+m)²·B operations of one matrix product for each matrix.
    random_state : None, int, Generator, SeedSequence or RandomState
        The seed: the same number gives the same result.
    mean : mean estimator, optional
        A recipe for both means of a single kernel (Gaussian() where ``kernel`` is None), default the plain average.
        ShrunkKernelMean costs no more than it; any other estimator is fitted twice for every split.
    unbiased : bool, default False
        For a single kernel (Gaussian() where ``kernel`` is None): leave k(xᵢ, xᵢ) and k(yᵢ, yᵢ) out and divide by
        n(n−1) and m(m−1). It is zero on average under the null hypothesis, and maybe negative.
    statistic : "mmd" or "spectral", default "mmd"
        "spectral" is the kernel Fisher statistic of a single kernel, combined over its regularisations:
        :math:`d^\top (S_T + \lambda)^{-1} d` with d the difference of the means and S_T the pooled covariance.
    strata : array of n + m labels, optional
        Splits permute rows within strata only (X's rows first): centres, batches, years. None may be missing.
    scale : "auto", "columns", None or array of d positive numbers, default "auto"
        What columns are divided by. "columns" is the mean absolute deviation from the median of the pooled column, so
        that no unit matters. "auto" is "columns" in the default test; with kernels of yours columns stay as they are,
        and a warning says so where one column makes up nearly all of the distance.
    memory_limit : float, optional
        Bytes that may be used, by default a share of what is free; more is refused before it is allocated.
    verbose : bool, default False
        Show progress after some seconds, where standard error is a terminal.

    Returns
    -------
    MMDResult

    Notes
    -----
    Beyond 12,000 rows the default test works with features, and permutes bins of rows: see ``method`` of the result.
    Bins are as small as the smaller sample and the strata need, and of a much larger sample a random part is used.

    Two sketches of the same features are compared by their bins of 2^L neighbouring rows, with L that of the larger
    sample: the unbiased MMD² and the difference in dispersion of the features, combined. The level is exact where rows
    are independent and the features are not fitted to one of the samples alone. Dependence over distances much shorter
    than a bin hardly matters, and rows that are sorted cost power, not level.

    References
    ----------
    Gretton, Borgwardt, Rasch, Schölkopf, Smola (2012). A kernel two-sample test. JMLR 13.
    Song, Chen (2024). Generalized kernel two-sample tests. Biometrika 111.
    Hagrass, Sriperumbudur, Li (2024). Spectral regularized kernel two-sample tests. Annals of Statistics 52.

    Examples
    --------
    >>> import numpy as np, muhat as mh
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(100, 3)), 1.5 * rng.normal(size=(80, 3))
    >>> result = mh.mmd_test(X, Y, random_state=0)
    >>> result.pvalue
    0.001
    >>> result.summary.split(";")[0]
    'Y is more spread out'
    >>> statistic, pvalue = mh.mmd_test(X, Y, mh.Gaussian(), random_state=0)
    >>> bool(pvalue < 0.05)
    True
    """
    n_resamples, rng = check_count("n_resamples", n_resamples), check_rng(random_state)
    if isinstance(X, MeanSketch) or isinstance(Y, MeanSketch):
        _check_options_of_sketches(kernel, mean, unbiased, statistic, strata, scale)
        return _test_of_sketches(X, Y, n_resamples, rng, memory_limit)
    check_mean("mean", mean)
    if statistic not in ("mmd", "spectral"):
        raise ValueError(f'statistic={statistic!r} must be "mmd" or "spectral"')
    plain = is_plain(mean, unbiased)
    one_statistic = unbiased or not plain or mean is not None or statistic == "spectral"
    if statistic == "spectral" and (mean is not None or unbiased):
        option = f"mean={mean!r}" if mean is not None else "unbiased=True"
        raise ValueError(f'{option} is of statistic="mmd"; leave it out with statistic="spectral"')
    if isinstance(kernel, str) and kernel == "precomputed":
        if not (scale is None or (isinstance(scale, str) and scale == "auto")):
            raise ValueError(f'scale={scale!r} divides columns, and kernel="precomputed" has none; leave scale out')
        K, observed = _precomputed(X, Y)
        question = _Question(
            np.empty((len(K), 0)), observed, None, None, n_resamples, rng, strata, memory_limit, verbose
        )
        return question.spectral(None, K) if statistic == "spectral" else question.single(None, K, mean, unbiased)
    kernels = _kernels(kernel, one_statistic)
    samples = encode_samples({"X": X, "Y": Y}, scale, default=kernels is None)
    observed = np.repeat([1.0, 0.0], samples.sizes)
    question = _Question(
        samples.pooled, observed, samples.scales, samples.encoder, n_resamples, rng, strata, memory_limit, verbose
    )
    if kernels is None:
        return question.default()
    if isinstance(kernel, Kernel) or kernel is None:
        resolved = kernels[0].resolve(question.rows)
        K = pooled_gram(resolved, question.rows, memory_limit)
        return (
            question.spectral(resolved, K) if statistic == "spectral" else question.single(resolved, K, mean, unbiased)
        )
    return question.several([each.resolve(question.rows) for each in kernels])


def _check_options_of_sketches(kernel: Any, mean: Any, unbiased: Any, statistic: Any, strata: Any, scale: Any) -> None:
    given = {
        "kernel": (kernel, None),
        "mean": (mean, None),
        "unbiased": (unbiased, False),
        "statistic": (statistic, "mmd"),
        "strata": (strata, None),
        "scale": (scale, "auto"),
    }
    for name, (value, default) in given.items():
        if value is not default and not (isinstance(value, str) and value == default):
            raise ValueError(
                f"{name}={value!r} needs rows, and X or Y is a sketch, which holds sums of their features; leave "
                f"{name} out, or pass the rows of both samples"
            )


def _test_of_sketches(
    X: Any, Y: Any, n_resamples: int, rng: np.random.Generator, memory_limit: float | None
) -> MMDResult:
    """Permute the bins of two sketches."""
    bins = bins_of_sketches(X, Y)
    needed = 24.0 * (bins.means.size + len(bins.of_first) * (n_resamples + 1))
    name = f"{n_resamples:,} splits of {len(bins.of_first):,} bins"
    check_memory(needed, memory_limit, name, "use fewer resamples or bins, or a larger memory_limit")
    components = feature_components(bins.means, bins.diagonal, bins.of_first, n_resamples, rng)
    combined, kernel = combine_statistics(components), X.features.kernel_
    words = {"features": "X and Y differ", "spread": f"{components[1].value} is more spread out"}
    found = ranked(components, combined, lambda part: (kernel, None, words[part.name]))
    witness = X.mean_element() - Y.mean_element() if isinstance(X.features, Nystroem) else None
    smallest = smallest_pvalue(bins.of_first, n_resamples)
    results = observed_and_null(combined)
    return MMDResult(*results, found, bins.method, kernel, witness, (X.n_, Y.n_), smallest_pvalue=smallest)


def _kernels(kernel: Any, one_statistic: bool) -> list[Kernel] | None:
    """The kernels that were asked for, None for the default test."""
    if kernel is None:
        return [Gaussian()] if one_statistic else None
    if isinstance(kernel, list | tuple):
        if not kernel:
            raise ValueError("kernel=[] has no kernels; pass one or more, or None for the default test")
        for i, each in enumerate(kernel):
            check_kernel(f"kernel[{i}]", each)
        if one_statistic:
            raise ValueError(
                "a list of kernels joins unbiased MMDs of plain averages; pass a single kernel for mean=, "
                'unbiased=True and statistic="spectral"'
            )
        return list(kernel)
    check_kernel("kernel", kernel)
    return [kernel]


def _precomputed(K: Any, second: Any) -> tuple[Array, Array]:
    K = check_gram(K, name="X", definite=False)
    labels = np.asarray(second)
    if labels.shape != (len(K),) or labels.dtype != bool:
        raise ValueError(
            f"with kernel='precomputed' X is the Gram matrix of all {len(K)} rows and Y must have a truth value for "
            f"each of them, True for the second sample; Y has shape {labels.shape} and type {labels.dtype}"
        )
    if min(labels.sum(), (~labels).sum()) < 2:
        raise ValueError(f"Y marks {labels.sum()} of {len(K)} rows; both samples need at least two")
    return K, np.where(labels, 0.0, 1.0)


@dataclass
class _Question:
    """The pooled rows, the observed split, and how it is to be permuted."""

    pooled: Array
    observed: Array
    units: Array | None
    encoder: TableEncoder | None
    n_resamples: int
    rng: np.random.Generator
    strata: Any
    memory_limit: float | None
    verbose: bool

    def __post_init__(self) -> None:
        self.strata = check_strata(self.strata, self.observed, len(self.observed))
        self.n, self.m = int(self.observed.sum()), int((1.0 - self.observed).sum())

    @property
    def rows(self) -> Array:
        """The pooled rows in their units."""
        return self.pooled if self.units is None else self.pooled / self.units

    def splits(self) -> difference_statistics.Splits:
        return self._splits(self.observed, self.strata, "rows")

    def _splits(self, observed: Array, strata: Any, what: str) -> difference_statistics.Splits:
        rows, columns = self.pooled.shape
        products = min(difference_statistics.PRODUCTS, columns * (self.n_resamples + 1))
        needed = 24.0 * (len(observed) * (self.n_resamples + 1) + products) + 8.0 * COPIES * rows * columns
        needed += BYTES_PER_COLUMN * columns
        remedy = "use fewer resamples, a part of the rows or columns, or a larger memory_limit"
        name = f"{self.n_resamples:,} splits of {len(observed):,} {what} with {columns:,} columns"
        check_memory(needed, self.memory_limit, name, remedy)
        drawn = list(other_splits(observed, self.n_resamples, self.rng, strata))
        return difference_statistics.centred_splits(observed, drawn, strata)

    def default(self) -> MMDResult:
        centred = self.pooled / 2 - np.median(self.pooled / 2, axis=0)  # halves do not overflow
        rows = centred * 2 if self.units is None else centred / (self.units / 2)
        if len(rows) > MAX_EXACT_ROWS:
            bins = draw_bins(self.observed, self.strata, self.rng)
            splits = self._splits(bins.of_first, bins.strata, "bins")
            found = self.combined(binned_components(rows, bins.of_rows, splits, self.rng), bins.method)
            return replace(found, smallest_pvalue=smallest_pvalue(bins.of_first, self.n_resamples, bins.strata))
        splits = self.splits()
        with ticking("mmd_test", self.verbose) as tick:
            components = difference_statistics.default_components(rows, splits, self.rng, tick)
        return self.combined(components, "exact")

    def several(self, kernels: list[Kernel]) -> MMDResult:
        splits = self.splits()
        families: list[difference_statistics.Family] = []
        for kernel in kernels:
            diagonal = kernel.diagonal(self.rows)
            check_overflow(kernel, diagonal)
            unit = power_of_two_near(float(np.abs(diagonal).max()))
            families.append(difference_statistics.GivenKernel(kernel, self.rows, unit))
        with ticking("mmd_test", self.verbose) as tick:
            sums = difference_statistics.quadratic_forms(families, splits, tick)
        components = []
        for kernel, matrix in zip(kernels, sums, strict=True):
            if not np.isfinite(matrix.row_sums.sum()):
                raise ValueError(f"{kernel!r} gives values that are not finite; correct it, or rescale the data")
            found = difference_statistics.contrast(matrix, splits)
            components.append(Component(type(kernel).__name__, repr(kernel), found.mmd, found.rounding, value=kernel))
        return self.combined(components, "exact")

    def spectral(self, kernel: Kernel | None, K: Array) -> MMDResult:
        splits = self.splits()
        components = spectral_components(K, splits)
        combined = combine_statistics(components)
        found = ranked(components, combined, lambda part: (None, None, "X and Y differ"))
        strongest = components[int(combined.shares.argmax())]
        weights = spectral_weights(K, self._difference(), strongest.value)
        return self.result(*observed_and_null(combined), found, "exact", self.rescaled(kernel), weights)

    def single(self, kernel: Kernel | None, K: Array, mean: Any, unbiased: bool) -> MMDResult:
        means, observed = estimated_means(mean, K, self.n, unbiased), self.observed
        statistic = float(means.statistics(observed[:, None])[0])
        blocks = other_splits(observed, self.n_resamples, self.rng, self.strata)
        null = np.concatenate([means.statistics(S) for S in blocks])
        pvalue = permutation_pvalue(statistic, null, EPS * float(np.trace(K)) / len(K))
        weights = means.weights(observed[:, None])[:, 0]
        return self.result(statistic, pvalue, null, (), "exact", self.rescaled(kernel), weights)

    def combined(self, components: list[Component], method: str) -> MMDResult:
        tie = 1e-8 if len(self.observed) <= difference_statistics.SMALL else FLOAT32_TIE
        combined = combine_statistics(components, tie)
        found = ranked(components, combined, self._describe)
        kernel = next((finding.kernel for finding in found if finding.kernel is not None), None)
        return self.result(*observed_and_null(combined), found, method, kernel, self._difference())

    def rescaled(self, kernel: Kernel | None) -> Kernel | None:
        return None if kernel is None else rescaled(kernel, self.units)

    def result(
        self,
        statistic: float,
        pvalue: float,
        null: Array,
        found: tuple[ComponentResult, ...],
        method: str,
        kernel: Kernel | None,
        weights: Array,
    ) -> MMDResult:
        """The result, with the witness of the kernel that has these weights at the pooled rows."""
        witness = None if kernel is None else self._witness(kernel, weights)
        sizes, smallest = (self.n, self.m), smallest_pvalue(self.observed, self.n_resamples, self.strata)
        return MMDResult(statistic, pvalue, null, found, method, kernel, witness, sizes, smallest_pvalue=smallest)

    def _witness(self, kernel: Kernel, weights: Array) -> Element | TableFunction:
        """The element with these weights at the pooled rows, or, where rows were encoded, a function of tables."""
        assert self.encoder is not None
        atoms, names = Atoms.trusted(self.pooled, weights), self.encoder.names if self.encoder.named else None
        if self.encoder.is_plain:
            return Element(kernel, atoms, feature_names=names)
        return TableFunction(Element(kernel, atoms), self.encoder)

    def _difference(self) -> Array:
        """Weights of the pooled rows in f − g."""
        return self.observed / self.n - (1.0 - self.observed) / self.m

    def _describe(self, part: Component) -> tuple[Kernel | None, str | None, str, str | None]:
        """The kernel or the column of a component, what it saw, and what changed in the column."""
        if part.group in ("spread", "close pairs"):
            kernel, wider = part.value
            what = "is more spread out" if part.group == "spread" else "has fewer close pairs of rows"
            return self.rescaled(kernel), None, f"{wider} {what}", None
        if part.group == "columns":
            column, kind, larger = part.value
            assert self.encoder is not None
            feature = self.encoder.features[column]
            if np.isin(self.pooled[:, column], (0.0, 1.0)).all():
                return None, feature.label, self._share_in_words(column), "share"
            what = "is more spread out" if kind == "scale" else "is higher"
            return None, feature.label, f"{feature.in_words} {what} in {larger}", kind
        return self.rescaled(part.value), None, _WORDS.get(part.group, f"X and Y differ under {part.group}"), None

    def _share_in_words(self, column: int) -> str:
        """How often a coordinate of zeros and ones is 1 in either sample."""
        ones = self.pooled[:, column]
        x, y = float(self.observed @ ones) / self.n, float((1.0 - self.observed) @ ones) / self.m
        more, shares = "more" if y > x else "less", f"{percent(x)} → {percent(y)}"
        assert self.encoder is not None
        feature = self.encoder.features[column]
        name = repr(feature.column) if feature.named else f"column {feature.column}"
        if feature.level == MISSING:
            return f"{name} is missing {more} often in Y: {shares}"
        if feature.level is not None:
            return f"{feature.in_words} is {more} frequent in Y: {shares}"
        return f"{name} is {'true' if feature.kind == 'boolean' else '1'} {more} often in Y: {shares}"


_WORDS = {
    "wide": "X and Y lie in different places",
    "fine": "X and Y differ in their fine structure",
    "by column": "the shapes of single columns differ",
    "second moments": "the correlations of the columns differ",
}


_ROWS = 256


def _quadratic_forms(K: Array, W: Array) -> Array:
    """The forms wᵀKw of the columns of W, each pair of rows multiplied once."""

    def strip(rows: slice) -> Array:
        products = K[rows, rows.stop :] @ W[rows.stop :]
        products *= 2.0
        products += K[rows, rows] @ W[rows]
        return np.einsum("ib,ib->b", W[rows], products)

    with mapping(len(K) * W.size) as mapped:
        return sum(mapped(strip, blocks(len(K), _ROWS)), start=np.zeros(W.shape[1]))


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
