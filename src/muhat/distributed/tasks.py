"""What workers do: functions of their arguments alone, of one thread each, that need no Dask themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from joblib import parallel_config
from numpy.typing import NDArray

from muhat.bags.bag_sums import bag_sums
from muhat.bags.data import Bags
from muhat.bags.prior import OutsideSums
from muhat.bags.whitening import BagMoments, plain_moments
from muhat.features.base import BaseFeatures
from muhat.features.feature_sums import FeatureSums, check_sums
from muhat.features.nystroem import Nystroem
from muhat.features.reservoir import Reservoir
from muhat.features.sketch import MeanSketch
from muhat.kernels.base import Kernel
from muhat.linalg import gram
from muhat.linalg.resources import one_blas_thread
from muhat.means.base import BaseKernelMean
from muhat.means.nested import mean_weights
from muhat.types import Array
from muhat.validation import check_rows

Sums = tuple[FeatureSums, Reservoir]


Part = tuple[Bags, Array]
"""Bags, and the weight of each row in the mean of its bag."""


@contextmanager
def _task(name: str = "") -> Iterator[None]:
    """One thread: how many tasks share a machine is for Dask to say. Errors of bad rows begin with a name."""
    with parallel_config(backend="sequential"), one_blas_thread(), np.errstate(all="ignore"):
        try:
            yield
        except ValueError as error:
            raise ValueError(f"{name}: {error}" if name else str(error)) from error


def sketch_block(empty: MeanSketch, name: str, block: Any) -> Sums:
    """Sums and rows of a block, without the features, which every worker has."""
    with _task(name):
        sketch = empty._empty().update(block)
    return sketch._sums, sketch._kept


def merge_sketches(parts: list[Sums]) -> Sums:
    """Sums and rows of all parts."""
    sums, kept = zip(*parts, strict=True)
    return check_sums(reduce(FeatureSums.plus, sums)), reduce(Reservoir.plus, kept)


def count_rows(name: str, block: Any) -> int:
    """The rows of a block."""
    with _task(name):
        return len(check_rows(block, name="X"))


def bin_means(features: BaseFeatures, name: str, block: Any, size: int, bins: int, seed: int) -> Array:
    """Means of the features in bins of ``size`` rows, drawn at random; other rows are in no bin."""
    with _task(name):
        rows = check_rows(block, name="X")
        chosen = np.random.default_rng(seed).permutation(len(rows))[: bins * size]
        width = len(features.transform(rows[:1])[0])
        means = [np.asarray(features.transform(rows[part])).mean(axis=0) for part in chosen.reshape(bins, size)]
        return np.array(means).reshape(bins, width)


def pool_bags(name: str, blocks: list[Any], first: int = 0, min_rows: int = 1) -> Bags:
    """Blocks one below the other, each a bag; ``first`` is the number of the first, for errors."""
    rows = []
    for i, block in enumerate(blocks, first):
        with _task(f"{name}[{i}]"):
            empty = min_rows == 0 and len(getattr(block, "shape", ())) == 2 and block.shape[0] == 0
            rows.append(np.empty(block.shape) if empty else check_rows(block))
            _check_same_width(rows[0], rows[-1])
    return Bags(np.concatenate(rows), np.cumsum([0, *map(len, rows)]))


def _check_same_width(A: Array, B: Array) -> None:
    if A.shape[1] != B.shape[1]:
        raise ValueError(
            f"some rows have {A.shape[1]} columns and others {B.shape[1]}; pass blocks with the same columns"
        )


def weigh_rows(recipe: tuple[Kernel, BaseKernelMean | None], bags: Bags) -> Part:
    """Bags with the weights that the recipe gives their rows."""
    kernel, mean = recipe
    with _task():
        if mean is None:
            return bags, np.repeat(1.0 / np.diff(bags.offsets), np.diff(bags.offsets))
        grams = (gram.dense(kernel, rows) for rows in bags.parts(bags.rows))
        return bags, np.concatenate([mean_weights(mean, K) for K in grams])


def group_size(recipe: tuple[Kernel, Any], part: Part) -> tuple[int, float]:
    """Number of rows, and mean of k(x, x)."""
    rows = part[0].rows
    with _task():
        return len(rows), float((recipe[0].diagonal(rows) / len(rows)).sum()) if len(rows) else 0.0


def fill_tile(recipe: tuple[Kernel, Any], left: Part, right: Part) -> Array:
    """Inner products of the means of two groups of bags."""
    (A, a), (B, b), kernel = left, right, recipe[0]
    with _task():
        _check_same_width(A.rows, B.rows)
        G = bag_sums(kernel, A, a, B, b)
        if not np.isfinite(4.0 * np.abs(G).max()):  # squared distances add four of them
            raise ValueError(f"{kernel!r} overflows on these rows; rescale them first")
        return G


class PartOfBags(NamedTuple):
    """What a group of bags says of all."""

    sizes: NDArray[np.intp]
    moments: BagMoments
    outside: OutsideSums | None


def group_moments(features: BaseFeatures, bags: Bags, within: bool) -> PartOfBags:
    """Means of bags in features, and with ``within`` the covariance there and what the features miss."""
    with _task():
        if bags.rows.shape[1] != features.n_features_in_:
            raise ValueError(
                f"bags have {bags.rows.shape[1]} columns and the features were fitted to {features.n_features_in_}; "
                f"pass bags with the same columns"
            )
        outside = OutsideSums.of(features, bags) if within and isinstance(features, Nystroem) else None
        return PartOfBags(bags.sizes, plain_moments(features, bags, within=within), outside)


def run_cell(cell: Any, function: Callable[[Any], Any]) -> Any:
    """The function on one thread, whatever machine it is on."""
    with parallel_config(backend="sequential"), one_blas_thread():
        return function(cell)
