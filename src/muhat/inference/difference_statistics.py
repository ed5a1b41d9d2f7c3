r"""Statistics of the default two-sample test, each sensitive to another kind of difference, on all splits at once.

Everything depends on the pooled rows and on the splits alone, never on which rows are whose, which keeps the level of
the combined test exact. Up to ``MAX_EXACT_ROWS`` rows kernels are exact, beyond it Gaussians become Nyström features.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, eigh, solve_triangular
from scipy.spatial.distance import pdist
from scipy.special import ndtri
from scipy.stats import rankdata

from muhat._support.types import Array
from muhat.inference.combine import Component
from muhat.inference.kernel_sums import (
    Binned,
    ByColumn,
    Family,
    GaussianFamily,
    KernelSums,
    SecondMoments,
    kernel_sums,
    mean_similarities,
    product_blocks,
    single_precision,
    sums_from_features,
)
from muhat.inference.permutations import Splits, bin_means
from muhat.kernels.dot import Linear
from muhat.kernels.radial import Gaussian
from muhat.linalg.blocks import blocks, random_rows, rows_by_value
from muhat.linalg.distances import power_of_two_near
from muhat.linalg.whitening import Whitening, standardised

MAX_EXACT_ROWS = 12_000
"""Beyond this many rows, whose pairs take seconds, Gaussian kernels are replaced by features."""

PAIR_ROWS = 500
"""Rows whose 125,000 distances give the bandwidths; a random part of larger samples."""

USED_BANDWIDTHS, _GAUSSIANS = (0, 7), ("Gaussian", "widest Gaussian")
"""Places of the bandwidths of Gaussian kernels among the ten, chosen by ``benchmarks/power.py``, and names of the
kernels."""

LEAST_BANDWIDTH = 1e-12
"""The least bandwidth, in units of the widest: differences so far apart are left to the statistics of ranks."""

LANDMARKS = 512
"""Rows that span the regularised kernel Fisher statistic; a random part of larger samples."""

RIDGE = 0.01
"""The regularisation of the kernel Fisher statistic, relative to the largest eigenvalue (``benchmarks/power.py``)."""

FEATURES = 300
"""Nyström features of each Gaussian kernel of large samples."""

LEVELS, LEVEL_FEATURES = 64, 24
"""Quantiles to which columns are rounded in bins, and features of a kernel between them."""

MAX_COLUMNS_FOR_MOMENTS = 40
"""Up to this many columns all products of two columns are features of large samples."""

MEANS_WEIGHT, HOTELLING_WEIGHT, SHAPES_WEIGHT = 8.0, 4.0, 2.0
"""Weights of differences of means, plain and whitened, the most common ones, and of residuals and local
structure, chosen on half of the pairs of ``benchmarks/real_pairs.py`` with the cells of ``power.py`` watched."""

# ---------------------------------------------------------------- scores and scales of the pooled rows


def normal_scores(rows: Array) -> Array:
    """Each column as quantiles of the normal distribution by its ranks, with mean 0 and variance 1; constants 0."""
    return standardised(np.asarray(ndtri(rankdata(rows, axis=0) / (len(rows) + 1))))


def pooled_bandwidths(rows: Array) -> Array:
    """Ten bandwidths, from half the 5 % quantile of the positive distances to twice their 95 % quantile."""
    distances = pdist(rows)
    distances = distances[distances > 0]
    low, high = np.quantile(distances, [0.05, 0.95]) * [0.5, 2.0] if len(distances) else (1.0, 1.0)
    low = max(low, LEAST_BANDWIDTH * high)
    return np.asarray(low * (high / low) ** (np.arange(10) / 9))


def column_medians(rows: Array) -> Array:
    """For each column the median distance of two values, their mean where that is 0, and 1 for constants."""
    gaps = (pdist(column[:, None], "cityblock") for column in rows.T)
    return np.array([float(np.median(each)) or float(each.mean()) or 1.0 for each in gaps])


def scaled_columns(rows: Array, steepness: float, rng: np.random.Generator) -> Array:
    """Columns in their median distances, times ``steepness``: for kernels that sum exp(−|x − y|) over columns."""
    with np.errstate(over="ignore"):  # a value beyond all numbers is as far as the largest
        scaled = rows / column_medians(random_rows(rows, PAIR_ROWS, rng)) * steepness
    return np.clip(scaled, -_FARTHEST, _FARTHEST)


_FARTHEST = 1e30  # which single precision holds, with differences


# ---------------------------------------------------------------- components


def default_components(rows: Array, size: int, splits: Splits, rng: np.random.Generator) -> list[Component]:
    """All components of the default test.

    Row i·bins + b of the pooled ``rows``, in scales in which columns can be compared, is member i of bin b; ``size`` is
    1 where rows are permuted. ``rng`` draws the rows that scales and landmarks are taken from.
    """
    # Residuals of each column given all others; where fewer than two columns vary, they are the columns themselves.
    whitening, scores = Whitening.of(rows), normal_scores(rows)
    related = np.count_nonzero(np.isfinite(whitening.deviations)) > 1
    residuals = standardised(whitening.residuals(rows) if related else rows)
    bandwidths = pooled_bandwidths(random_rows(rows, PAIR_ROWS, rng))
    fine, widest = (Gaussian(float(bandwidths[i])) for i in USED_BANDWIDTHS)
    moments = {"second moments": scores}
    if related:
        moments["whitened second moments"] = normal_scores(whitening.whiten(rows))
    columns = {
        "sum over columns": scaled_columns(rows, 4.0, rng),
        "sum over residuals": scaled_columns(residuals, 1.0, rng),
    }
    sums = kernel_sums_of(rows, size, [fine.width, widest.width], moments, columns, splits, rng)
    sums["linear"] = sums_from_features(bin_means(standardised(rows), size), splits)
    found = {name: mean_similarities(each, splits) for name, each in sums.items()}
    deviations = np.where(rows.std(axis=0) > 0, rows.std(axis=0), 1.0)
    mmds = [
        ("linear", "means", MEANS_WEIGHT, (Linear(), deviations)),
        ("Gaussian", "fine", 1.0, fine),
        ("sum over columns", "by column", 1.0, None),
        ("sum over residuals", "relations" if related else "by column", SHAPES_WEIGHT, None),
        ("second moments", "second moments", 1.0, None),
        ("whitened second moments", "relations", 1.0, None),
    ]
    components = [
        Component(name, group, found[name].mmd, found[name].rounding, weight, kernel)
        for name, group, weight, kernel in mmds
        if name in found
    ]
    # The difference of the mean similarities within the samples: of a wide kernel dispersion, of a fine one ties.
    for name, kernel, group in (("Gaussian", fine, "close pairs"), ("widest Gaussian", widest, "dispersion")):
        within, rounding = found[name].within, found[name].rounding
        value = kernel, "Y" if within[0] > 0 else "X"
        components.append(Component(group, group, np.abs(within), rounding, value=value))
    # In single columns: a shift or another scale.
    kinds = {"location": scores, "scale": standardised(scores**2)}
    components.append(largest_difference("largest column", "columns", kinds, size, splits))
    if len(rows) <= MAX_EXACT_ROWS:
        components.append(kernel_fisher(rows, float(bandwidths[2]), size, splits, rng))
    if related:
        # Hotelling's statistic with a ridge, dᵀ(S + λ)⁻¹d, d the difference of the means. S is the pooled correlation
        # matrix and does not depend on the split; the value with a refitted within-covariance has the same p-value.
        lengths = squared_lengths(bin_means(whitening.principal_scores(rows), size), splits)
        components.append(Component("Hotelling", "relations", lengths, splits.rounding, HOTELLING_WEIGHT))
        # A column that is off, or noisier, by little of its own spread and by much of what others do not explain.
        kinds = {"location": residuals, "scale": standardised(normal_scores(residuals) ** 2)}
        part = largest_difference("residuals", "relations", kinds, size, splits)
        components.append(replace(part, value=(*part.value, whitening.partner(part.value[0]))))
    return components


def kernel_sums_of(
    rows: Array,
    size: int,
    bandwidths: list[float],
    moments: dict[str, Array],
    columns: dict[str, Array],
    splits: Splits,
    rng: np.random.Generator,
) -> dict[str, KernelSums]:
    """Sums of all kernels: exact, but for those by column where rows come in bins, and by features for many rows.

    Gaussians of two bandwidths; (q·q′/d)² of the scores in ``moments``; Σ exp(−|x − y|) over ``columns``.
    """
    dtype = splits.centred.dtype.type
    if len(rows) > MAX_EXACT_ROWS:
        features = dict(zip(_GAUSSIANS, gaussian_bin_means(rows, bandwidths, size, rng), strict=True))
        if rows.shape[1] <= MAX_COLUMNS_FOR_MOMENTS:
            features |= {name: product_bin_means(scores, size) for name, scores in moments.items()}
        sums = {name: sums_from_features(each, splits) for name, each in features.items()}
    else:
        families: list[Family] = [GaussianFamily(rows, bandwidths, dtype, exact=size == 1)]
        families += [SecondMoments(scores, dtype) for scores in moments.values()]
        names = [*_GAUSSIANS, *moments]
        if size == 1:
            families += [ByColumn(each, dtype) for each in columns.values()]
            return dict(zip([*names, *columns], kernel_sums(families, splits), strict=True))
        binned = [Binned(family, size, len(rows) // size) for family in families]
        sums = dict(zip(names, kernel_sums(binned, splits), strict=True))
    return sums | {name: by_column_sums(each, size, splits) for name, each in columns.items()}


def largest_difference(name: str, group: str, kinds: dict[str, Array], size: int, splits: Splits) -> Component:
    """The largest squared difference of means over all columns; its value is column, kind and the larger sample."""
    weights = splits.weights
    largest, value = np.full(weights.shape[1], -np.inf), (0, "location", "X")
    for kind, columns in kinds.items():
        features = bin_means(columns, size)
        for part in product_blocks(features.shape[1], weights.shape[1]):
            differences = features[:, part].T @ weights
            squares = differences**2
            strongest = int(squares[:, 0].argmax())
            if squares[strongest, 0] > largest[0]:
                value = (part.start + strongest, kind, "Y" if differences[strongest, 0] < 0 else "X")
            np.maximum(largest, squares.max(axis=0), out=largest)
    return Component(name, group, largest, splits.rounding, value=value)


def squared_lengths(features: Array, splits: Splits) -> Array:
    """‖Fᵀw‖² for the signed weights w of every split."""
    found, weights = np.zeros(splits.centred.shape[1]), splits.weights.astype(features.dtype, copy=False)
    for part in product_blocks(features.shape[1], len(found)):
        found += ((features[:, part].T @ weights) ** 2).sum(axis=0, dtype=np.float64)
    return found


# ---------------------------------------------------------------- features of kernels


def kernel_fisher(rows: Array, bandwidth: float, size: int, splits: Splits, rng: np.random.Generator) -> Component:
    r"""The regularised kernel Fisher statistic, spanned by some of the rows.

    With Z the kernel values of all rows at the landmarks, centred, and L those among landmarks, the statistic is
    :math:`w^\top Z (Z^\top Z + \lambda L)^{-1} Z^\top w`. It weighs all directions of the space more evenly than MMD.
    """
    some = rows_by_value(rows, LANDMARKS, rng)
    Z = Gaussian(bandwidth).evaluate(rows, rows[some])
    L = Z[some]
    lam = RIDGE * largest_eigenvalue(L - L.mean(axis=0) - L.mean(axis=1)[:, None] + L.mean()) * len(rows) / len(some)
    Z = Z - Z.mean(axis=0)
    A = Z.T @ Z + lam * 0.5 * (L + L.T)
    A[np.diag_indices_from(A)] += 1e-9 * np.trace(A)
    root = cholesky(A, lower=True, check_finite=False) if A.any() else np.eye(len(A))
    features = solve_triangular(root, bin_means(Z, size).T, lower=True, check_finite=False)
    features = features.T.astype(splits.centred.dtype)
    return Component("kernel Fisher", "fine", squared_lengths(features, splits), splits.rounding, SHAPES_WEIGHT)


def largest_eigenvalue(K: Array, steps: int = 30) -> float:
    """The largest eigenvalue of a positive semi-definite matrix, nearly, by powers; it is never 0."""
    vector = np.diag(K) - np.diag(K).mean() + K[int(np.diag(K).argmax())]
    for _ in range(steps):
        product = K @ vector
        length = float(np.linalg.norm(product))
        if length == 0:
            return 1.0
        vector = product / length
    return float(vector @ (K @ vector)) or 1.0


def gaussian_bin_means(rows: Array, bandwidths: list[float], size: int, rng: np.random.Generator) -> list[Array]:
    """Means over bins of Nyström features of Gaussian kernels, with the same landmarks for all bandwidths."""
    count = len(rows) // size
    unit = power_of_two_near(min(bandwidths))
    bandwidths = [bandwidth / unit for bandwidth in bandwidths]
    landmarks = single_precision(rows[rows_by_value(rows, FEATURES, rng)], unit)
    squares = np.einsum("ij,ij->i", landmarks, landmarks)
    totals = [np.zeros((count, len(landmarks))) for _ in bandwidths]
    for part in blocks(len(rows), count):  # one member of each bin at a time
        X = single_precision(rows[part], unit)
        halves = np.minimum(X @ landmarks.T - 0.5 * squares - 0.5 * np.einsum("ij,ij->i", X, X)[:, None], 0.0)
        for total, bandwidth in zip(totals, bandwidths, strict=True):
            total += np.exp(halves / np.float32(bandwidth**2))
    found = []
    for total, bandwidth in zip(totals, bandwidths, strict=True):
        values, vectors = eigh(Gaussian(bandwidth).evaluate(landmarks.astype(float), landmarks.astype(float)))
        kept = values > 1e-6 * values[-1]
        found.append(((total / size) @ (vectors[:, kept] / np.sqrt(values[kept]))).astype(np.float32))
    return found


def by_column_sums(columns: Array, size: int, splits: Splits) -> KernelSums:
    """The kernel sums of Σ exp(−|x − y|) over columns, from features of columns rounded to quantiles.

    With v the quantiles and c their shares, the features of level l are √μ u_l / √c_l, where (μ, u) are eigenpairs of
    diag(√c) exp(−|v_k − v_l|) diag(√c): the best of their number for rows with these shares.
    """
    count = len(columns) // size
    bins = np.tile(np.arange(count), size)
    forms, row_sums = np.zeros(splits.centred.shape[1]), np.zeros(count)
    for column in columns.T:
        values, levels = _rounded_to_quantiles(column)
        counts = np.bincount(bins * len(values) + levels, minlength=count * len(values)).reshape(count, -1)
        shares = np.sqrt(counts.sum(axis=0) / len(columns))
        mu, u = eigh(shares[:, None] * np.exp(-np.abs(values[:, None] - values)) * shares)
        mu, u = mu[-LEVEL_FEATURES:].clip(0.0), u[:, -LEVEL_FEATURES:]
        features = (counts @ (np.sqrt(mu) * u / shares[:, None]) / size).astype(np.float32)
        found = sums_from_features(features, splits)
        forms += found.forms
        row_sums += found.row_sums
    return KernelSums(forms, row_sums)


def _rounded_to_quantiles(column: Array) -> tuple[Array, NDArray[np.intp]]:
    """At most LEVELS values, and the number of the value that is nearest to each entry."""
    values = (
        np.unique(column)
        if len(column) <= LEVELS
        else np.unique(np.quantile(column, (np.arange(LEVELS) + 0.5) / LEVELS))
    )
    levels = np.searchsorted(0.5 * (values[1:] + values[:-1]), column)
    used, levels = np.unique(levels, return_inverse=True)
    return values[used], levels


def product_bin_means(scores: Array, size: int) -> Array:
    """Means over bins of all products of two columns: features of the kernel (q·q′/d)²."""
    d = scores.shape[1]
    i, j = np.triu_indices(d)
    factors = np.where(i == j, 1.0, np.sqrt(2.0)) / d
    count = len(scores) // size
    total = np.zeros((count, len(i)))
    for part in blocks(len(scores), count):  # one member of each bin at a time
        total += scores[part][:, i] * scores[part][:, j]
    return np.asarray(factors * total / size)
