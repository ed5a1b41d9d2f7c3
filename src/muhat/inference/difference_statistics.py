r"""Statistics of the default two-sample test, each sensitive to another kind of difference, on all splits at once.

Everything depends on the pooled rows and on the splits alone, never on which rows are whose, which keeps the level of
the combined test exact. Up to ``MAX_EXACT_ROWS`` rows kernels are exact, beyond it Gaussians become Nyström features.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, eigh, solve_triangular
from scipy.spatial.distance import cdist, pdist
from scipy.special import ndtri
from scipy.stats import rankdata

from muhat.inference.combine import Component
from muhat.inference.kernel_sums import (
    Binned,
    ByColumn,
    Family,
    FineByColumn,
    GaussianFamily,
    SecondMoments,
    Tick,
    kernel_sums,
)
from muhat.inference.mmd import KernelSums, MeanSimilarities, mean_similarities, product_blocks, sums_from_features
from muhat.inference.permutations import Splits, bin_means
from muhat.kernels.base import Kernel
from muhat.kernels.dot import Linear
from muhat.kernels.mixed import rescaled
from muhat.kernels.radial import Gaussian
from muhat.linalg.blocks import blocks, random_rows
from muhat.linalg.whitening import Whitening, column_deviations
from muhat.types import Array

MAX_EXACT_ROWS = 12_000
"""Beyond this many rows Gaussian kernels are replaced by features."""

PAIR_ROWS = 500
"""Rows whose distances give the bandwidths; a random part of larger samples."""

NEIGHBOUR_ROWS = 2000
"""Rows among which neighbours are looked for; a random part of larger samples."""

NEIGHBOURS = 11
"""The scale at a row is the distance to this neighbour."""

USED_BANDWIDTHS, _GAUSSIANS = (0, 6, 7), ("finest", "wide", "widest")
"""Those of the ten bandwidths that Gaussian kernels have, and what their similarities are called."""

LANDMARKS = 512
"""Rows that span the regularised kernel Fisher statistic; a random part of larger samples."""

RIDGE = 0.01
"""The regularisation of the kernel Fisher statistic, relative to the largest eigenvalue."""

FEATURES = 300
"""Nyström features of each Gaussian kernel of large samples."""

LEVELS, LEVEL_FEATURES = 64, 24
"""Quantiles to which columns are rounded in bins, and features of a kernel between them."""

MAX_COLUMNS_FOR_MOMENTS = 40
"""Up to this many columns all products of two columns are features of large samples."""

WIDE_WEIGHT, HOTELLING_WEIGHT = 8.0, 4.0
"""Weights of the components that see shifts of the whole distribution, the most common difference, over others."""

# ---------------------------------------------------------------- scores and scales of the pooled rows


def normal_scores(rows: Array) -> Array:
    """Each column as quantiles of the normal distribution by its ranks, with mean 0 and variance 1; constants 0."""
    return standardised(np.asarray(ndtri(rankdata(rows, axis=0) / (len(rows) + 1))))


def standardised(rows: Array) -> Array:
    """Columns with mean 0 and variance 1; constant ones are 0."""
    return np.asarray((rows - rows.mean(axis=0)) / column_deviations(rows))


def pooled_bandwidths(rows: Array) -> Array:
    """Ten bandwidths, from half the 5 % quantile of the positive distances to twice their 95 % quantile."""
    distances = pdist(rows)
    distances = distances[distances > 0]
    low, high = np.quantile(distances, [0.05, 0.95]) * [0.5, 2.0] if len(distances) else (1.0, 1.0)
    return np.asarray(low * (high / low) ** (np.arange(10) / 9))


def column_medians(rows: Array) -> Array:
    """For each column the median distance of two values, their mean where that is 0, and 1 for constants."""
    gaps = (pdist(column[:, None], "cityblock") for column in rows.T)
    return np.array([float(np.median(each)) or float(each.mean()) or 1.0 for each in gaps])


def neighbour_distances(rows: Array, least: float, rng: np.random.Generator) -> Array:
    """The distance of each row to a near neighbour; ``least`` where rows are repeated as often."""
    some = random_rows(rows, NEIGHBOUR_ROWS, rng)
    rank = max(1, min(round(NEIGHBOURS * len(some) / len(rows)), len(some) - 1))
    near = [np.partition(cdist(rows[part], some), rank, axis=1)[:, rank].copy() for part in blocks(len(rows), 256)]
    distances = np.concatenate(near)
    return np.where(distances > 0, distances, least)


# ---------------------------------------------------------------- components


class Pooled(NamedTuple):
    """The pooled rows, their normal scores, and the whitened rows of which columns vary together.

    Row i·bins + b is member i of bin b. ``relations`` is None where fewer than two columns vary.
    """

    rows: Array
    size: int
    scores: Array
    relations: Relations | None

    @classmethod
    def of(cls, rows: Array, size: int) -> Self:
        """Views of rows in scales in which columns can be compared; bins have ``size`` rows."""
        whitening = Whitening.of(rows)
        several = np.count_nonzero(np.isfinite(whitening.deviations)) > 1
        return cls(rows, size, normal_scores(rows), Relations.of(whitening, rows) if several else None)


class Relations(NamedTuple):
    """Whitened rows: principal components, standardised residuals of each column given the others, normal scores."""

    whitening: Whitening
    principal_scores: Array
    residuals: Array
    scores: Array

    @classmethod
    def of(cls, whitening: Whitening, rows: Array) -> Self:
        """The rows under a whitening."""
        scores, residuals = whitening.principal_scores(rows), standardised(whitening.residuals(rows))
        return cls(whitening, scores, residuals, normal_scores(whitening.whiten(rows)))


def default_components(
    rows: Array, size: int, splits: Splits, rng: np.random.Generator, tick: Tick = lambda share: None
) -> list[Component]:
    """All components of the default test.

    Parameters
    ----------
    rows : array of shape (size * bins, d)
        The pooled rows, in scales in which columns can be compared: row i·bins + b is member i of bin b.
    size : int
        Rows of a bin; 1 for a test that permutes rows.
    splits : Splits
        Splits of the bins.
    rng : numpy Generator
        Draws the rows that scales and landmarks are taken from.
    tick : callable
        Is told the share of the work that is done.
    """
    pooled = Pooled.of(rows, size)
    some = random_rows(rows, PAIR_ROWS, rng)
    bandwidths, medians = pooled_bandwidths(some), column_medians(some)
    if len(rows) <= MAX_EXACT_ROWS:
        found = exact_similarities(pooled, bandwidths, medians, splits, rng, tick)
    else:
        found = feature_similarities(pooled, bandwidths, medians, splits, rng)
    finest, wide, widest = (Gaussian(float(bandwidths[i])) for i in USED_BANDWIDTHS)
    deviations = np.where(rows.std(axis=0) > 0, rows.std(axis=0), 1.0)
    found["linear"] = mean_similarities(sums_from_features(bin_means(standardised(rows), size), splits), splits)
    mmds = [
        ("Gaussian", "wide", "wide", WIDE_WEIGHT, wide),
        ("linear", "linear", "wide", WIDE_WEIGHT, rescaled(Linear(), deviations)),
        ("nearest neighbours", "nearest neighbours", "wide", WIDE_WEIGHT, None),
        ("Gaussian", "finest", "fine", 1.0, finest),
        ("sum over columns", "sum over columns", "by column", 1.0, None),
        ("sum over columns, fine", "sum over columns, fine", "by column", 1.0, None),
        ("second moments", "second moments", "second moments", 1.0, None),
        ("whitened second moments", "whitened second moments", "relations", 1.0, None),
        ("sum over residuals, fine", "sum over residuals, fine", "relations", 1.0, None),
    ]
    components = [
        Component(name, group, found[key].mmd, found[key].rounding, weight, kernel)
        for name, key, group, weight, kernel in mmds
        if key in found
    ]
    components += [
        dispersion_component(found["finest"], finest, "close pairs"),
        dispersion_component(found["widest"], widest),
        largest_column(pooled.scores, size, splits),
    ]
    if len(rows) <= MAX_EXACT_ROWS:
        components.append(kernel_fisher(rows, float(bandwidths[2]), size, splits, rng))
    if pooled.relations is not None:
        components.append(hotelling(pooled.relations.principal_scores, size, splits))
        components.append(largest_residual(pooled.relations, size, splits))
    return components


def exact_similarities(
    pooled: Pooled, bandwidths: Array, medians: Array, splits: Splits, rng: np.random.Generator, tick: Tick
) -> dict[str, MeanSimilarities]:
    """Mean similarities by exact kernels, but for those by column, which are features where rows come in bins."""
    rows, size, relations, dtype = pooled.rows, pooled.size, pooled.relations, splits.centred.dtype.type
    used = [float(bandwidths[i]) for i in USED_BANDWIDTHS]
    at_rows = neighbour_distances(rows, used[0], rng)
    names = [*_GAUSSIANS, "nearest neighbours", "second moments"]
    families: list[Family] = [
        GaussianFamily(rows, used, at_rows, dtype, exact=size == 1),
        SecondMoments(pooled.scores, dtype),
    ]
    if relations is not None:
        names.append("whitened second moments")
        families.append(SecondMoments(relations.scores, dtype))
    if size > 1:
        sums = kernel_sums([Binned(family, size, len(rows) // size) for family in families], splits, tick)
        found = {name: mean_similarities(each, splits) for name, each in zip(names, sums, strict=True)}
        return found | by_column_similarities(pooled, medians, splits, rng)
    names += ["sum over columns", "sum over columns, fine"]
    families.append(ByColumn(rows, medians, dtype))
    if relations is not None:
        names.append("sum over residuals, fine")
        of_residuals = column_medians(random_rows(relations.residuals, PAIR_ROWS, rng))
        families.append(FineByColumn(relations.residuals, of_residuals, dtype))
    sums = kernel_sums(families, splits, tick)
    return {name: mean_similarities(each, splits) for name, each in zip(names, sums, strict=True)}


def feature_similarities(
    pooled: Pooled, bandwidths: Array, medians: Array, splits: Splits, rng: np.random.Generator
) -> dict[str, MeanSimilarities]:
    """Mean similarities by features alone, for samples whose kernel matrices would take too long."""
    rows, size = pooled.rows, pooled.size
    features = gaussian_bin_means(rows, [float(bandwidths[i]) for i in USED_BANDWIDTHS], size, rng)
    sums = {name: sums_from_features(means, splits) for name, means in zip(_GAUSSIANS, features, strict=True)}
    if rows.shape[1] <= MAX_COLUMNS_FOR_MOMENTS:
        sums["second moments"] = sums_from_features(product_bin_means(pooled.scores, size), splits)
        if pooled.relations is not None:
            sums["whitened second moments"] = sums_from_features(
                product_bin_means(pooled.relations.scores, size), splits
            )
    found = {name: mean_similarities(each, splits) for name, each in sums.items()}
    return found | by_column_similarities(pooled, medians, splits, rng)


def by_column_similarities(
    pooled: Pooled, medians: Array, splits: Splits, rng: np.random.Generator
) -> dict[str, MeanSimilarities]:
    """Mean similarities of the kernels by column, from features of columns that are rounded to quantiles."""
    names = ["sum over columns", "sum over columns, fine"]
    sums = by_column_sums(pooled.rows, medians, (1.0, 4.0), pooled.size, splits)
    if pooled.relations is not None:
        names.append("sum over residuals, fine")
        residuals = pooled.relations.residuals
        of_residuals = column_medians(random_rows(residuals, PAIR_ROWS, rng))
        sums += by_column_sums(residuals, of_residuals, (4.0,), pooled.size, splits)
    return {name: mean_similarities(each, splits) for name, each in zip(names, sums, strict=True)}


def dispersion_component(found: MeanSimilarities, kernel: Kernel, group: str = "dispersion") -> Component:
    """The difference of the mean similarities within the samples: of a wide kernel dispersion, of a fine one ties."""
    wider = "Y" if found.within[0] > 0 else "X"
    return Component(group, group, np.abs(found.within), found.rounding, value=(kernel, wider))


# ---------------------------------------------------------------- single columns and their relations


def largest_column(scores: Array, size: int, splits: Splits) -> Component:
    """The largest squared difference of the means of normal scores, or of their squares, over all columns."""
    kinds = {"location": scores, "scale": standardised(scores**2)}
    return _largest_difference("largest column", "columns", kinds, size, splits)


def largest_residual(relations: Relations, size: int, splits: Splits) -> Component:
    """The same of residuals of each column given all others, and of the squares of their normal scores.

    It sees a column that is off, or noisier, by little of its own spread and by much of what others do not explain.
    """
    residuals = relations.residuals
    kinds = {"location": residuals, "scale": standardised(normal_scores(residuals) ** 2)}
    found = _largest_difference("residuals", "relations", kinds, size, splits)
    return replace(found, value=(*found.value, relations.whitening.partner(found.value[0])))


def _largest_difference(name: str, group: str, kinds: dict[str, Array], size: int, splits: Splits) -> Component:
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
    return Component(name, group, largest, _rounding(splits), value=value)


def hotelling(principal_scores: Array, size: int, splits: Splits) -> Component:
    r"""Hotelling's statistic with a ridge, :math:`d^\top (S + \lambda)^{-1} d`, d the difference of the means.

    S is the pooled correlation matrix and does not depend on the split, so that the largest value over a refitted
    within-covariance would give the same p-value.
    """
    features = bin_means(principal_scores, size)
    statistics = _squared_lengths(features, splits)
    return Component("Hotelling", "relations", statistics, _rounding(splits), HOTELLING_WEIGHT)


def _squared_lengths(features: Array, splits: Splits) -> Array:
    """‖Fᵀw‖² for the signed weights w of every split."""
    found, weights = np.zeros(splits.centred.shape[1]), splits.weights.astype(features.dtype, copy=False)
    for part in product_blocks(features.shape[1], len(found)):
        found += ((features[:, part].T @ weights) ** 2).sum(axis=0, dtype=np.float64)
    return found


def _rounding(splits: Splits) -> float:
    """The rounding error of squared differences of means of standardised columns."""
    return splits.eps * (splits.n + splits.m) / splits.n / splits.m


# ---------------------------------------------------------------- features of kernels


def kernel_fisher(rows: Array, bandwidth: float, size: int, splits: Splits, rng: np.random.Generator) -> Component:
    r"""The regularised kernel Fisher statistic, spanned by some of the rows.

    With Z the kernel values of all rows at the landmarks, centred, and L those among landmarks, the statistic is
    :math:`w^\top Z (Z^\top Z + \lambda L)^{-1} Z^\top w`. It weighs all directions of the space more evenly than MMD.
    """
    some = np.sort(rng.choice(len(rows), LANDMARKS, replace=False)) if len(rows) > LANDMARKS else np.arange(len(rows))
    Z = Gaussian(bandwidth).evaluate(rows, rows[some])
    L = Z[some]
    lam = RIDGE * largest_eigenvalue(L - L.mean(axis=0) - L.mean(axis=1)[:, None] + L.mean()) * len(rows) / len(some)
    Z = Z - Z.mean(axis=0)
    A = Z.T @ Z + lam * 0.5 * (L + L.T)
    A[np.diag_indices_from(A)] += 1e-9 * np.trace(A)
    root = cholesky(A, lower=True, check_finite=False) if A.any() else np.eye(len(A))
    features = solve_triangular(root, bin_means(Z, size).T, lower=True, check_finite=False)
    features = features.T.astype(splits.centred.dtype)
    return Component("kernel Fisher", "fine", _squared_lengths(features, splits), _rounding(splits))


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
    landmarks = rows[np.sort(rng.choice(len(rows), min(FEATURES, len(rows)), replace=False))].astype(np.float32)
    squares = np.einsum("ij,ij->i", landmarks, landmarks)
    totals = [np.zeros((count, len(landmarks))) for _ in bandwidths]
    for part in blocks(len(rows), count):  # one member of each bin at a time
        X = rows[part].astype(np.float32)
        halves = np.minimum(X @ landmarks.T - 0.5 * squares - 0.5 * np.einsum("ij,ij->i", X, X)[:, None], 0.0)
        for total, bandwidth in zip(totals, bandwidths, strict=True):
            total += np.exp(halves / np.float32(bandwidth**2))
    found = []
    for total, bandwidth in zip(totals, bandwidths, strict=True):
        values, vectors = eigh(Gaussian(bandwidth).evaluate(landmarks.astype(float), landmarks.astype(float)))
        kept = values > 1e-6 * values[-1]
        found.append(((total / size) @ (vectors[:, kept] / np.sqrt(values[kept]))).astype(np.float32))
    return found


def by_column_sums(
    rows: Array, medians: Array, steepness: tuple[float, ...], size: int, splits: Splits
) -> list[KernelSums]:
    """The kernel sums of Σ exp(−t|x − y|/s) over columns, for each t, from features of columns rounded to quantiles.

    With v the quantiles and c their shares, the features of level l are √μ u_l / √c_l, where (μ, u) are eigenpairs of
    diag(√c) exp(−t|v_k − v_l|/s) diag(√c): the best of their number for rows with these shares.
    """
    count = len(rows) // size
    bins = np.tile(np.arange(count), size)
    totals = [KernelSums(np.zeros(splits.centred.shape[1]), np.zeros(count)) for _ in steepness]
    for column, median in zip(rows.T, medians, strict=True):
        values, levels = _rounded_to_quantiles(column / median)
        counts = np.bincount(bins * len(values) + levels, minlength=count * len(values)).reshape(count, -1)
        shares = np.sqrt(counts.sum(axis=0) / len(rows))
        gaps = np.abs(values[:, None] - values)
        for t, total in zip(steepness, totals, strict=True):
            mu, u = eigh(shares[:, None] * np.exp(-t * gaps) * shares)
            mu, u = mu[-LEVEL_FEATURES:].clip(0.0), u[:, -LEVEL_FEATURES:]
            features = (counts @ (np.sqrt(mu) * u / shares[:, None]) / size).astype(np.float32)
            found = sums_from_features(features, splits)
            np.add(total.forms, found.forms, out=total.forms)
            np.add(total.row_sums, found.row_sums, out=total.row_sums)
    return totals


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
