"""Two-sample test (MMD) by permutations, with several combined statistics by default."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Literal, NamedTuple

import numpy as np

from muhat._support.types import Array, RandomState
from muhat._support.validation import check_count, check_gram, check_rng
from muhat.features.nystroem import Nystroem
from muhat.features.sketch import MeanSketch
from muhat.inference.combine import Component
from muhat.inference.difference_statistics import MAX_EXACT_ROWS, default_components
from muhat.inference.kernel_sums import PRODUCTS, mean_similarities, sums_from_features
from muhat.inference.mmd import signed_weights, split_statistics
from muhat.inference.permutations import (
    EPS,
    SMALL,
    TIED,
    Bins,
    Splits,
    centred_splits,
    check_clusters,
    check_strata,
    cluster_means,
    draw_bins,
    draw_units,
    other_splits,
    permutation_pvalue,
    smallest_pvalue,
)
from muhat.inference.results import Explanation, PermutationResult, combined_fields, explain_difference
from muhat.kernels import tiles
from muhat.kernels.base import Kernel, check_kernel
from muhat.kernels.mixed import rescaled, without_scales
from muhat.kernels.radial import Gaussian
from muhat.linalg.resources import check_memory, one_blas_thread
from muhat.rkhs.elements import Element
from muhat.rkhs.measures import Atoms
from muhat.tables.encoder import BYTES_PER_COLUMN, Samples, TableFunction, encode_samples

FLOAT32_TIE = 1e-4
"""Combined statistics this close, relatively, are ties where matrices are float32."""

COPIES = 12
"""Arrays of the size of the pooled rows that a test needs at a time: scaled, whitened, as scores, their squares."""

MAX_SINGLE_ROWS = 2000
"""Beyond this many pooled rows the default test permutes bins of rows, with less work per split."""

BINS, FEATURE_BINS = 1000, 2000
"""About how many bins there are with exact kernels, and with features of kernels."""

FEWEST_BINS = 10
"""Each of two sketches has at least this many bins of several rows, so that at most a tenth of its rows is in none."""


@dataclass(frozen=True, eq=False, repr=False)
class MMDResult(PermutationResult):
    """Result of :func:`mmd_test`.

    Attributes
    ----------
    statistic : float
        The statistic of the samples as they are.
    pvalue : float
        The share of permutations that reach it, the samples as they are counted among them.
    null_distribution : array of shape (B,)
        The statistic on every other permutation.
    components : tuple of ComponentResult
        One for each statistic, the strongest first; empty where one statistic was asked for.
    method : str
        How the statistics were computed.
    smallest_pvalue : float
        No smaller p-value is possible with these numbers of rows and of resamples.
    kernel : Kernel or None
        The kernel of the test with its bandwidth; in the default test, that of the strongest component that is a
        kernel. None for a precomputed Gram matrix.
    witness : Element or None
        The witness function f − g, the difference of the two means: large where X has more mass. It takes the tables
        that the test took. None for a precomputed Gram matrix and for sketches of Fourier features.
    sizes : tuple of int
        The numbers of rows.
    """

    sizes: tuple[int, int] = (0, 0)
    _kernel: Kernel | None = None  # None in the default test
    _witness: Any = None  # the element, or what makes it of the kernel

    @property
    def kernel(self) -> Kernel | None:
        """The kernel of the test, or of its strongest component that is a kernel."""
        if self._kernel is not None:
            return self._kernel
        return next((part.kernel for part in self.components if part.kernel is not None), None)

    @cached_property
    def witness(self) -> Any:
        """The difference of the two means, large where X has more mass."""
        return self._witness(self.kernel) if isinstance(self._witness, partial) else self._witness

    @property
    def column(self) -> tuple[str, str] | None:
        """The column that differs most and in what; None where no column was tested.

        Such as ("age", "location") or ("age", "scale"), ("age", "relation") where its relation to the other columns
        changed, and ("colour = white", "share") for categories and truth values.
        """
        found = self._clearest_column()
        return None if found is None or found.column is None or found.change is None else (found.column, found.change)

    @property
    def _of_one_statistic(self) -> str:
        return "X and Y differ" if self.kernel is None else f"X and Y differ under {without_scales(self.kernel)!r}"


@one_blas_thread()
def mmd_test(
    X: Any,
    Y: Any,
    kernel: Kernel | Literal["precomputed"] | None = None,
    n_resamples: int = 999,
    random_state: RandomState = None,
    *,
    unbiased: bool = False,
    strata: Any = None,
    clusters: Any = None,
    scale: Any = "auto",
    memory_limit: float | None = None,
) -> MMDResult:
    r"""Test whether two samples come from one distribution.

    There is nothing to tune by default: the test combines several statistics, each sensitive to a different kind of
    difference (shifts, fine structure, shapes of columns, correlations, dispersion, single columns, and the relations
    of columns to each other), on the same random splits of the pooled rows into n and m rows. With :math:`p_{kb}` the
    p-value of component k on split b, the combined statistic of a split is :math:`t_b = \log \sum_k w_k / p_{kb}`, and
    the p-value is the share of splits, the observed one among them, whose statistic reaches the observed one. For rows
    that are drawn independently of each other the type I error is controlled at every n, m and number of splits, also
    with ties. Where rows depend on each other, as in time series or with several rows per patient, ``clusters`` says
    which of them stay together; the clusters then have to be independent.

    With ``kernel`` the statistic is the squared distance of the two kernel means,

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
    kernel : None, Kernel or "precomputed", default None
        None combines all components. A kernel asks for its MMD alone; a bandwidth "median" is found once, on the pooled
        sample.
    n_resamples : int, default 999
        Number B of random splits (permutations, as in scipy); where there are no more splits than that, each is taken
        once and the test is exact.
        They cost (n+m)²·B operations of one matrix product for each matrix.
    random_state : None, int, Generator, SeedSequence or RandomState
        The seed: the same number gives the same result.
    unbiased : bool, default False
        For a single kernel (Gaussian() where ``kernel`` is None): leave k(xᵢ, xᵢ) and k(yᵢ, yᵢ) out and divide by
        n(n−1) and m(m−1). It is zero on average under the null hypothesis, and maybe negative.
    strata : array of n + m labels, optional
        Splits permute rows within strata only (X's rows first): centres, batches, years. None may be missing.
        Opposite differences in two strata cancel; a test per stratum finds them.
    clusters : array of n + m labels, optional
        Rows with the same label change samples together (X's rows first): weeks, patients, batches. A label lies in one
        sample, and every cluster counts alike, whatever the number of its rows. None may be missing.
    scale : "auto", "columns", None or array of d positive numbers, default "auto"
        What columns are divided by. "columns" is the mean absolute deviation from the median of the pooled column, so
        that no unit matters. "auto" is "columns" in the default test; with kernels of yours columns stay as they are,
        and a warning says so where one column makes up nearly all of the distance.
    memory_limit : float, optional
        Bytes that may be used, by default a share of what is free; more is refused before it is allocated.

    Returns
    -------
    MMDResult
        The p-value, components and the witness function.

    See Also
    --------
    hsic_test : Whether the rows of two tables, in pairs, are independent.
    mmd_interval : An interval for the distance of two distributions.
    muhat.compare : Two tables column by column, with effect sizes.
    DriftMonitor : The same question for rows that keep coming.

    Notes
    -----
    Beyond 2,000 rows in all, random bins of rows of each sample are permuted instead of rows, with exact kernels; and
    beyond 12,000 rows Gaussian kernels are replaced by features. ``method`` of the result says what was done. Bins are
    as small as the smaller sample and the strata need, and of a much larger sample a random part is used.

    Two sketches of the same features are compared by their bins of 2^L neighbouring rows, with L that of the larger
    sample: the unbiased MMD² and the difference in dispersion of the features, combined. The level is exact where rows
    are independent and the features are not fitted to one of the samples alone. Dependence over distances much shorter
    than a bin hardly matters, and rows that are sorted cost power, not level.

    References
    ----------
    Gretton, Borgwardt, Rasch, Schölkopf, Smola (2012). A kernel two-sample test. JMLR 13.
    Song, Chen (2024). Generalized kernel two-sample tests. Biometrika 111.
    Hotelling (1931). The generalization of Student's ratio. Annals of Mathematical Statistics 2.

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
        options = {"kernel": kernel, "unbiased": unbiased or None, "strata": strata, "clusters": clusters}
        return _sketched_test(X, Y, n_resamples, rng, memory_limit, options, scale)
    samples = None
    if isinstance(kernel, str) and kernel == "precomputed":
        K, observed = _precomputed_gram(X, Y, scale)
    else:
        if kernel is None and unbiased:
            kernel = Gaussian()
        if kernel is not None:
            check_kernel("kernel", kernel)
        samples = encode_samples({"X": X, "Y": Y}, scale, default=kernel is None)
        observed = np.repeat([1.0, 0.0], samples.sizes)
    strata = check_strata(strata, observed, len(observed))
    clusters = check_clusters(clusters, observed, strata)
    work = _Work(observed, strata, clusters, n_resamples, rng, memory_limit)
    if samples is None or isinstance(kernel, str):
        return _single_test(K, unbiased, work)
    if kernel is None:
        bins = work.bins(BINS if len(observed) <= MAX_EXACT_ROWS else FEATURE_BINS, MAX_SINGLE_ROWS)
        splits = work.splits(bins, *samples.pooled.shape)
        return default_test_of(samples, bins, splits, n_resamples, rng)
    rows = samples.scaled
    kernel = kernel.resolve(rows)
    return _single_test(pooled_gram(kernel, rows, memory_limit), unbiased, work, samples, kernel)


# ---------------------------------------------------------------- input


def _precomputed_gram(K: Any, second: Any, scale: Any) -> tuple[Array, Array]:
    """A Gram matrix of all rows, and 1 for the rows of the first sample."""
    if not (scale is None or (isinstance(scale, str) and scale == "auto")):
        raise ValueError(f'scale={scale!r} divides columns, and kernel="precomputed" has none; leave scale out')
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


def pooled_gram(kernel: Kernel, points: Array, memory_limit: float | None) -> Array:
    """The Gram matrix of all rows, or an error where it does not fit or is not finite."""
    n, arrays = len(points), 4
    remedy = "use a random part of the rows, or a larger memory_limit"
    check_memory(arrays * 8.0 * n**2, memory_limit, f"{arrays} Gram matrices of {n:,} rows", remedy)
    K = tiles.dense(kernel, points)
    if not np.isfinite(K.sum()):  # no comparison with NaN holds, which would look like a small p-value
        raise ValueError(f"{kernel!r} gives values that are not finite; correct the kernel, or rescale the data")
    return K


# ---------------------------------------------------------------- tests


class _Work(NamedTuple):
    """Rows of the first sample, numbers of strata and clusters; how often they are permuted; memory."""

    observed: Array
    strata: Any
    clusters: Any
    n_resamples: int
    rng: np.random.Generator
    memory_limit: float | None

    def bins(self, count: int, single: int) -> Bins:
        """Units to permute: clusters, or rows where there are no more than ``single``, or else about ``count`` bins."""
        total = len(self.observed)
        if self.clusters is not None:
            n = int(self.observed.sum())
            units = draw_units((n, total - n), self.strata, self.clusters, single, count, self.rng)
            return units.bins(-(-total // len(units.of_first)), self.rng)
        if total <= single:
            return Bins(np.arange(total)[None], self.observed, self.strata)
        return draw_bins(self.observed, self.strata, count, self.rng)

    def splits(self, bins: Bins, rows: int, columns: int) -> Splits:
        """Random splits of bins, if there is memory for them and for the rows."""
        products = min(PRODUCTS, columns * (self.n_resamples + 1))
        count = len(bins.of_first)
        needed = 24.0 * (count * (self.n_resamples + 1) + products) + 8.0 * COPIES * rows * columns
        needed += BYTES_PER_COLUMN * columns
        what = "bins" if bins.size > 1 else "rows"
        name = f"{self.n_resamples:,} splits of {count:,} {what} with {columns:,} columns"
        remedy = "use fewer resamples, a part of the rows or columns, or a larger memory_limit"
        check_memory(needed, self.memory_limit, name, remedy)
        return centred_splits(bins.of_first, self.n_resamples, self.rng, bins.strata)


def default_test_of(
    samples: Samples, bins: Bins, splits: Splits, n_resamples: int, rng: np.random.Generator
) -> MMDResult:
    """All statistics combined, on given splits of given bins of the pooled rows."""
    rows, method = samples.centred, "exact"
    if bins.size > 1 or bins.unused or bins.kind == "clusters":
        rows, method = rows[bins.rows], str(bins)
    components = default_components(rows, bins.size, splits, rng)
    if len(rows) > MAX_EXACT_ROWS:
        method = f"features of each kernel, {method}"
    smallest = smallest_pvalue(bins.of_first, n_resamples, bins.strata)
    tie = 1e-8 if len(splits.centred) <= SMALL else FLOAT32_TIE
    fields = combined_fields(components, partial(explain_difference, samples=samples), tie)
    n, m = samples.sizes
    witness = partial(_witness, samples, np.repeat([1.0 / n, -1.0 / m], [n, m]))
    return MMDResult(*fields, method, (n, m), _witness=witness, smallest_pvalue=smallest)


def _single_test(
    K: Array, unbiased: bool, work: _Work, samples: Samples | None = None, kernel: Kernel | None = None
) -> MMDResult:
    """Test by the squared distance of two means under one kernel, from samples or from a Gram matrix."""
    observed, strata, clusters, method = work.observed, work.strata, work.clusters, "exact"
    if clusters is not None:
        K, method = cluster_means(K, clusters), f"{int(clusters.max()) + 1:,} clusters"
        first_rows = np.unique(clusters, return_index=True)[1]
        observed, strata = observed[first_rows], None if strata is None else strata[first_rows]
    statistic = float(split_statistics(K, observed[:, None], unbiased)[0])
    splits = other_splits(observed, work.n_resamples, work.rng, strata)
    null = np.concatenate([split_statistics(K, S, unbiased) for S in splits])
    rounding = EPS * float(np.trace(K)) / len(K)
    pvalue = float(permutation_pvalue(np.append(statistic, null), TIED * rounding))
    outer, witness = None, None
    if samples is not None and kernel is not None:
        outer = rescaled(kernel, samples.scales)
        weights = signed_weights(observed[:, None])[:, 0]
        if clusters is not None:
            weights = (weights / np.bincount(clusters))[clusters]
        witness = _witness(samples, weights, outer)
    smallest = smallest_pvalue(observed, work.n_resamples, strata)
    n = int(work.observed.sum())
    sizes = n, len(work.observed) - n
    return MMDResult(statistic, pvalue, null, tuple, method, sizes, outer, witness, smallest_pvalue=smallest)


def _witness(samples: Samples, weights: Array, kernel: Kernel | None) -> Element | TableFunction | None:
    """The element with these weights at the pooled rows, or, where rows were encoded, a function of tables."""
    if kernel is None:
        return None
    atoms, encoder = Atoms.trusted(samples.pooled, weights), samples.encoder
    if encoder.is_plain:
        return Element(kernel, atoms, feature_names=encoder.names if encoder.named else None)
    return TableFunction(Element(kernel, atoms), encoder)


# ---------------------------------------------------------------- sketches


def _sketched_test(
    X: Any,
    Y: Any,
    n_resamples: int,
    rng: np.random.Generator,
    memory_limit: float | None,
    given: dict[str, Any],
    scale: Any,
) -> MMDResult:
    """Permute the bins of two sketches; ``given`` and ``scale`` are options that a test of sketches does not have."""
    options = {name: value for name, value in given.items() if value is not None}
    if not (isinstance(scale, str) and scale == "auto"):
        options["scale"] = scale
    for name, value in options.items():
        raise ValueError(
            f"{name}={value!r} needs rows, and X or Y is a sketch, which holds sums of their features; leave "
            f"{name} out, or pass the rows of both samples"
        )
    bins = bins_of_sketches(X, Y)
    needed = 24.0 * (bins.means.size + len(bins.of_first) * (n_resamples + 1))
    name = f"{n_resamples:,} splits of {len(bins.of_first):,} bins"
    check_memory(needed, memory_limit, name, "use fewer resamples or bins, or a larger memory_limit")
    components = sketch_components(bins, n_resamples, rng)
    kernel = X.features.kernel_
    differ = f"X and Y differ under {kernel!r}, and sketches do not tell in which columns"
    texts = {"features": differ, "dispersion": f"{components[1].value} is more spread out"}
    fields = combined_fields(components, partial(_explain_sketch, texts, kernel))
    witness = X.mean_element() - Y.mean_element() if isinstance(X.features, Nystroem) else None
    smallest = smallest_pvalue(bins.of_first, n_resamples)
    method = f"sketches of {len(bins.of_first):,} bins of {bins.size:,} rows; {bins.unused:,} rows are in no bin"
    return MMDResult(*fields, method, (X.n_, Y.n_), kernel, witness, smallest_pvalue=smallest)


def _explain_sketch(texts: dict[str, str], kernel: Kernel, part: Component) -> Explanation:
    return Explanation(texts[part.name], kernel)


class SketchBins(NamedTuple):
    """Means of z(x) and k(x, x) in bins of ``size`` rows of two sketches; sample of each bin; rows in no bin."""

    means: Array
    diagonal: Array
    of_first: Array
    size: int
    unused: int


def sketch_components(bins: SketchBins, n_resamples: int, rng: np.random.Generator) -> list[Component]:
    """The unbiased MMD² and the difference in dispersion, from means of z(x) and of k(x, x) in bins of equal size.

    The dispersion of a sample is E‖k(x, ·) − μ‖² = E k(x, x) − ‖μ‖², where ‖μ‖² is the mean inner product of two
    different bins. Both terms are taken about the pooled mean c, on which their difference does not depend.
    """
    splits = centred_splits(bins.of_first, n_resamples, rng)
    c = bins.means.mean(axis=0)
    found = mean_similarities(sums_from_features(bins.means - c, splits), splits)
    about_c = bins.diagonal - 2.0 * bins.means @ c  # E‖k(x, ·) − c‖² of each bin, up to the constant ‖c‖²
    dispersion = (about_c - about_c.mean()) @ splits.weights - found.within
    dispersion -= dispersion.mean()  # over all splits, so that both signs are as likely
    wider = "X" if dispersion[0] > 0 else "Y"
    return [
        Component("features", "features", found.mmd, found.rounding),
        Component("dispersion", "dispersion", np.abs(dispersion), found.rounding, value=wider),
    ]


def bins_of_sketches(X: Any, Y: Any) -> SketchBins:
    """Bins of equal size of two sketches of the same features, or a ValueError."""
    states = _binned_state("X", X), _binned_state("Y", Y)
    states[0].check_same_features(states[1])
    size = max(state.bins.size for state in states)
    first, second = (state.bins.means(size) for state in states)
    for name, state, means in (("X", states[0], first), ("Y", states[1], second)):
        if len(means) < (FEWEST_BINS if size > 1 else 2):
            raise ValueError(
                f"{name} is a sketch of {state.sums.n:,} rows, which fill {len(means)} bins of the {size:,} rows that "
                f"bins of the larger sample have; make both sketches with more bins=, sketch fewer rows of the larger "
                f"sample, or pass rows"
            )
    of_first = np.repeat([1.0, 0.0], [len(first), len(second)])
    rows = sum(state.sums.n for state in states)
    means = np.concatenate([first, second])
    return SketchBins(means[:, :-1], means[:, -1], of_first, size, rows - size * len(of_first))


def _binned_state(name: str, sketch: Any) -> Any:
    if not isinstance(sketch, MeanSketch):
        raise ValueError(
            f"{name} is of type {type(sketch).__name__} and the other sample is a MeanSketch; pass two sketches of the "
            f"same features, or the rows of both samples"
        )
    if sketch.state_.bins is None:
        raise ValueError(f"{name} is a sketch without bins of rows to permute; make it with MeanSketch(bins=1000)")
    return sketch.state_
