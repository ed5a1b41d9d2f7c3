"""The default test beyond what matrices can hold: features of rows, summed in bins, and bins that are permuted.

A bin holds rows of one sample (and stratum), drawn at random. Under the null hypothesis bins of equal size are
exchangeable as rows are, so the level stays exact. Kernels are replaced by features; the number of rows costs one pass.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from muhat.features.nystroem import Nystroem
from muhat.inference.combine import Component
from muhat.inference.difference_statistics import (
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
from muhat.inference.resampling import other_splits
from muhat.kernels.dot import Linear
from muhat.kernels.mixed import rescaled
from muhat.kernels.radial import Gaussian
from muhat.linalg.blocks import blocks
from muhat.types import Array

MAX_EXACT_ROWS = 12_000
"""Beyond this many pooled rows the default test uses features."""

BINS = 2000
"""About how many bins there are."""

MOST_UNEQUAL = 40
"""The smaller sample has at least the 40th part of BINS, or as many bins as rows; the other has at most 40 times as
many. Then what is left of the larger one adds a fortieth to the variance of a difference."""

FEATURES = 300
"""Features of each Gaussian kernel."""

MAX_COLUMNS_FOR_MOMENTS = 20
"""Up to this many columns all products of two columns are features."""

_BLOCK = 8192


def feature_components(means: Array, of_first: Array, n_resamples: int, rng: np.random.Generator) -> list[Component]:
    """The unbiased MMD² and the difference of spreads of features whose means in bins of equal size are given."""
    splits = centred_splits(of_first, list(other_splits(of_first, n_resamples, rng)), None)
    found = contrast(linear_sums(means - means.mean(axis=0), splits), splits)
    wider = "Y" if found.within[0] > 0 else "X"
    return [
        Component("features", "features", found.mmd, found.rounding),
        Component("spread", "spread", np.abs(found.within), found.rounding, value=wider),
    ]


class Bins(NamedTuple):
    """The bin of each row, −1 for rows in no bin; the sample of each bin, and its stratum; the rows of a bin."""

    of_rows: Any
    of_first: Array
    strata: Any
    size: int

    @property
    def method(self) -> str:
        """Words that say what was done."""
        outside = int(np.count_nonzero(self.of_rows < 0))
        return (
            f"{FEATURES} features of each kernel, {len(self.of_first):,} bins of {self.size} rows; "
            f"{outside:,} rows are in no bin"
        )


def draw_bins(observed: Array, strata: Any, rng: np.random.Generator) -> Bins:
    """Bins of equal size, each of rows of one sample and stratum, drawn at random."""
    numbers = np.zeros(len(observed), dtype=np.intp) if strata is None else strata
    cells = np.stack([np.bincount(numbers, weights=1.0 - observed), np.bincount(numbers, weights=observed)])
    mixed = cells.min(axis=0) > 0  # permuted rows are all in these strata
    size = bin_size(*cells[:, mixed].astype(np.intp))
    counts = cells.astype(np.intp) // size
    # More bins of one sample than these make a test hardly more powerful, and cost as much as the others.
    counts = np.minimum(counts, np.maximum(max(2, BINS // len(mixed)), MOST_UNEQUAL * counts.min(axis=0)))
    bins, samples, found, start = np.full(len(observed), -1), [], [], 0
    for first, stratum in np.argwhere(counts):
        count = counts[first, stratum]
        members = rng.permutation(np.flatnonzero((observed == first) & (numbers == stratum)))[: count * size]
        bins[members] = np.repeat(np.arange(start, start + count), size)
        samples += [float(first)] * count
        found += [stratum] * count
        start += count
    return Bins(bins, np.array(samples), None if strata is None else np.unique(found, return_inverse=True)[1], size)


def bin_size(first: Any, second: Any) -> int:
    """The size of bins that cut two samples, given the numbers of rows in the parts of each that bins may not cross.

    It makes about BINS bins in all. Where that leaves one of the samples too few of them, or more than a tenth of its
    rows in none, bins are smaller: down to single rows, which suit samples of any size.
    """
    fewest, largest = max(2, BINS // MOST_UNEQUAL), -(-int(first.sum() + second.sum()) // BINS)
    for size in range(largest, 1, -1):
        if all((sample // size).sum() >= max(fewest, 0.9 * sample.sum() / size) for sample in (first, second)):
            return size
    return 1


def at_most(bins: Any, most: int) -> Any:
    """As many of the bins in each part of a sample, up to rounding, as make at most so many in all."""
    share = min(1.0, most / max(int(bins.sum()), 1))
    return np.diff(np.floor(share * np.cumsum(bins) + 1e-9).astype(np.intp), prepend=0)


def binned_components(rows: Array, bins: Any, splits: Splits, rng: np.random.Generator) -> list[Component]:
    """The components that exist for features, on splits of bins."""
    bandwidths = pooled_bandwidths(rows, rng)
    finest, wide, widest = (float(bandwidths[i]) for i in (0, 6, 7))
    scores, linear = normal_scores(rows), standardised(rows)
    squares = standardised(scores**2)
    found = {
        h: contrast(linear_sums(_gaussian_means(rows, bins, h, rng), splits), splits) for h in (finest, wide, widest)
    }
    units = np.where(rows.std(axis=0) > 0, rows.std(axis=0), 1.0)
    line = contrast(linear_sums(_bin_means(linear.__getitem__, bins), splits), splits)
    components = [
        mmd_component("Gaussian", found[wide], Gaussian(wide), "wide", WIDE_WEIGHT),
        mmd_component("linear", line, rescaled(Linear(), units), "wide", WIDE_WEIGHT),
        mmd_component("Gaussian", found[finest], Gaussian(finest), "fine"),
        spread_component(found[finest], Gaussian(finest), "close pairs"),
        spread_component(found[widest], Gaussian(widest)),
        largest_column(_bin_means(scores.__getitem__, bins), _bin_means(squares.__getitem__, bins), splits),
    ]
    if rows.shape[1] <= MAX_COLUMNS_FOR_MOMENTS:
        i, j = np.triu_indices(rows.shape[1])
        factors = np.where(i == j, 1.0, np.sqrt(2.0)) / rows.shape[1]
        means = _bin_means(lambda part: factors * scores[part][:, i] * scores[part][:, j], bins)
        moments = contrast(linear_sums(means, splits), splits)
        components.append(mmd_component("second moments", moments, None, "second moments"))
    return components


def _gaussian_means(rows: Array, bins: Array, bandwidth: float, rng: np.random.Generator) -> Array:
    landmarks = rows[np.sort(rng.choice(len(rows), min(10 * FEATURES, len(rows)), replace=False))]
    features = Nystroem(Gaussian(bandwidth), FEATURES, random_state=int(rng.integers(2**31))).fit(landmarks)
    return _bin_means(lambda part: np.asarray(features.transform(rows[part])), bins)


def _bin_means(features: Callable[[slice], Array], bins: Any) -> Array:
    """Means over bins of the features of some rows at a time."""
    count = int(bins.max()) + 1
    sums = sum(_bin_sums(features(part), bins[part], count) for part in blocks(len(bins), _BLOCK))
    return np.asarray(sums / np.bincount(bins[bins >= 0])[:, None])


def _bin_sums(features: Array, bins: Array, count: int) -> Array:
    from scipy.sparse import csr_array

    inside = np.flatnonzero(bins >= 0)
    select = csr_array((np.ones(len(inside)), (bins[inside], inside)), shape=(count, len(bins)))
    return np.asarray(select @ features)
