"""The default test beyond what matrices can hold: features of rows, summed in bins, and bins that are permuted.

A bin holds rows of one sample (and stratum), drawn at random. Under the null hypothesis bins are exchangeable as rows
are, so the level stays exact. Kernels are replaced by features; the number of rows costs one pass.
"""

from __future__ import annotations

import numpy as np

from muhat.features.nystroem import Nystroem
from muhat.inference.differences import (
    WIDE_WEIGHT,
    Splits,
    centred_splits,
    contrast,
    largest_column,
    linear_sums,
    mmd_component,
    normal_scores,
    pooled_bandwidths,
    spread_component,
    standardised,
)
from muhat.inference.joining import Component
from muhat.inference.resampling import random_splits
from muhat.inference.samples import in_units
from muhat.kernels.dot import Linear
from muhat.kernels.radial import Gaussian
from muhat.linalg.blocks import blocks
from muhat.types import Array

MAX_EXACT_ROWS = 12_000
"""Beyond this many pooled rows the default test uses features."""

BINS = 2000
"""About how many bins there are."""

FEATURES = 300
"""Features of each Gaussian kernel."""

MAX_COLUMNS_FOR_MOMENTS = 20
"""Up to this many columns all products of two columns are features."""

_BLOCK = 8192


def binned_components(
    rows: Array, observed: Array, n_resamples: int, rng: np.random.Generator, strata: Array | None
) -> tuple[list[Component], str]:
    """The components that exist for features, on splits of bins; and words that say what was done."""
    bins, of_first, bin_strata = _bins(observed, strata, rng)
    drawn = list(random_splits(of_first, n_resamples, rng, bin_strata))
    splits = centred_splits(of_first, drawn, bin_strata)
    used = int((bins >= 0).sum())
    method = (
        f"{FEATURES} features of each kernel, {len(of_first):,} bins of {used // len(of_first)} rows; "
        f"{len(rows) - used} rows are in no bin"
    )
    return _components(rows, bins, splits, rng), method


def feature_components(means: Array, of_first: Array, n_resamples: int, rng: np.random.Generator) -> list[Component]:
    """The unbiased MMD² and the difference of spreads of features whose means in bins of equal size are given."""
    splits = centred_splits(of_first, list(random_splits(of_first, n_resamples, rng)), None)
    found = contrast(linear_sums(means - means.mean(axis=0), splits), splits)
    wider = "Y" if found.within[0] > 0 else "X"
    return [
        Component("features", "features", found.mmd, found.rounding),
        Component("spread", "spread", np.abs(found.within), found.rounding, value=wider),
    ]


def _bins(observed: Array, strata: Array | None, rng: np.random.Generator) -> tuple[Array, Array, Array | None]:
    """The bin of each row, −1 for the rest of a division; the sample of each bin, and its stratum."""
    size = -(-len(observed) // BINS)
    keys = observed + 2.0 * (0.0 if strata is None else strata)
    bins, first, stratum, count = np.full(len(observed), -1), [], [], 0
    for key in np.unique(keys):
        members = rng.permutation(np.flatnonzero(keys == key))
        whole = len(members) // size
        bins[members[: whole * size]] = np.repeat(np.arange(count, count + whole), size)
        first += [key % 2] * whole
        stratum += [int(key // 2)] * whole
        count += whole
    return bins, np.array(first), None if strata is None else np.array(stratum)


def _components(rows: Array, bins: Array, splits: Splits, rng: np.random.Generator) -> list[Component]:
    bandwidths = pooled_bandwidths(rows, rng)
    finest, wide, widest = (float(bandwidths[i]) for i in (0, 6, 7))
    scores, linear = normal_scores(rows), standardised(rows)
    squares = standardised(scores**2)
    means = {name: _bin_means(features, bins) for name, features in (("scores", scores), ("squares", squares))}
    found = {
        h: contrast(linear_sums(_gaussian_means(rows, bins, h, rng), splits), splits) for h in (finest, wide, widest)
    }
    units = np.where(rows.std(axis=0) > 0, rows.std(axis=0), 1.0)
    line = contrast(linear_sums(_bin_means(linear, bins), splits), splits)
    components = [
        mmd_component("Gaussian", found[wide], Gaussian(wide), "wide", WIDE_WEIGHT),
        mmd_component("linear", line, in_units(Linear(), units), "wide", WIDE_WEIGHT),
        mmd_component("Gaussian", found[finest], Gaussian(finest), "fine"),
        spread_component(found[finest], Gaussian(finest), "close pairs"),
        spread_component(found[widest], Gaussian(widest)),
        largest_column(means["scores"], means["squares"], splits),
    ]
    if rows.shape[1] <= MAX_COLUMNS_FOR_MOMENTS:
        i, j = np.triu_indices(rows.shape[1])
        products = np.where(i == j, 1.0, np.sqrt(2.0)) / rows.shape[1] * scores[:, i] * scores[:, j]
        moments = contrast(linear_sums(_bin_means(products, bins), splits), splits)
        components.append(mmd_component("second moments", moments, None, "second moments"))
    return components


def _gaussian_means(rows: Array, bins: Array, bandwidth: float, rng: np.random.Generator) -> Array:
    landmarks = rows[np.sort(rng.choice(len(rows), min(10 * FEATURES, len(rows)), replace=False))]
    features = Nystroem(Gaussian(bandwidth), FEATURES, random_state=int(rng.integers(2**31))).fit(landmarks)
    parts = [
        _bin_sums(np.asarray(features.transform(rows[part])), bins[part], bins.max() + 1)
        for part in blocks(len(rows), _BLOCK)
    ]
    return np.asarray(sum(parts) / np.bincount(bins[bins >= 0])[:, None])


def _bin_means(features: Array, bins: Array) -> Array:
    return np.asarray(_bin_sums(features, bins, bins.max() + 1) / np.bincount(bins[bins >= 0])[:, None])


def _bin_sums(features: Array, bins: Array, count: int) -> Array:
    from scipy.sparse import csr_array

    inside = np.flatnonzero(bins >= 0)
    select = csr_array((np.ones(len(inside)), (bins[inside], inside)), shape=(count, len(bins)))
    return np.asarray(select @ features)
