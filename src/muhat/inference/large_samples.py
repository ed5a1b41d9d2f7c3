"""Two-sample tests beyond what matrices can hold: features of rows, summed in bins, and bins that are permuted.

A bin holds rows of one sample (and stratum): drawn at random in the default test, neighbours in a sketch. Under the
null hypothesis bins of equal size are exchangeable as independent rows are, so the level stays exact. Kernels are
replaced by features; the number of rows costs one pass.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from muhat.features.nystroem import Nystroem
from muhat.features.sketch import MeanSketch
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

FEWEST_BINS = 10
"""Each of two sketches has at least this many bins of several rows, so that at most a tenth of its rows is in none."""

FEATURES = 300
"""Features of each Gaussian kernel."""

MAX_COLUMNS_FOR_MOMENTS = 20
"""Up to this many columns all products of two columns are features."""

_BLOCK = 8192


def feature_components(
    means: Array, diagonal: Array, of_first: Array, n_resamples: int, rng: np.random.Generator
) -> list[Component]:
    """The unbiased MMD² and the difference in dispersion, from means of z(x) and of k(x, x) in bins of equal size.

    The dispersion of a sample is E‖k(x, ·) − μ‖² = E k(x, x) − ‖μ‖², where ‖μ‖² is the mean inner product of two
    different bins. Both terms are taken about the pooled mean c, on which their difference does not depend.
    """
    splits = centred_splits(of_first, list(other_splits(of_first, n_resamples, rng)), None)
    c = means.mean(axis=0)
    found = contrast(linear_sums(means - c, splits), splits)
    about_c = diagonal - 2.0 * means @ c  # E‖k(x, ·) − c‖² of each bin, up to the constant ‖c‖²
    dispersion = (about_c - about_c.mean()) @ splits.weights.astype(np.float64) - found.within
    dispersion -= dispersion.mean()  # over all splits, so that both signs are as likely
    wider = "X" if dispersion[0] > 0 else "Y"
    return [
        Component("features", "features", found.mmd, found.rounding),
        Component("spread", "spread", np.abs(dispersion), found.rounding, value=wider),
    ]


class SketchBins(NamedTuple):
    """Means of z(x) and k(x, x) in bins of ``size`` rows of two sketches; sample of each bin; rows in no bin."""

    means: Array
    diagonal: Array
    of_first: Array
    size: int
    unused: int

    @property
    def method(self) -> str:
        """Words that say what was done."""
        return f"sketches of {len(self.of_first):,} bins of {self.size:,} rows; {self.unused:,} rows are in no bin"


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
