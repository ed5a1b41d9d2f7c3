"""More than one machine: sketches, distances and Gram matrices of data that lie with the workers of Dask.

Tasks are functions of their arguments alone and each has one thread, and results are added in one fixed order, so that
neither the number of workers nor the loss of one changes a number. Dask is imported when a function needs it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Sequence
from functools import reduce
from itertools import combinations_with_replacement, pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from muhat.bags.data import Bags, check_bags
from muhat.bags.distribution_kernel import DistributionKernel, Level2, check_level2, evaluate_level2, resolve_level2
from muhat.bags.prior import POOLING_RIDGE, BagPrior, OutsideSums
from muhat.bags.whitening import BagMoments
from muhat.distributed.collections import check_client, is_remote, load_module, one_copy, row_blocks
from muhat.distributed.tasks import (
    PartOfBags,
    bin_means,
    count_rows,
    fill_tile,
    group_moments,
    group_size,
    merge_sketches,
    pool_bags,
    run_cell,
    sketch_block,
    weigh_rows,
)
from muhat.features.base import BaseFeatures
from muhat.features.sketch import MeanSketch
from muhat.inference.combine import combine_statistics
from muhat.inference.large_samples import BINS, at_most, bin_size, feature_components
from muhat.inference.mmd import unbiased_squared_mmd
from muhat.inference.resampling import smallest_pvalue
from muhat.inference.results import observed_and_null, ranked
from muhat.inference.two_sample import MMDResult
from muhat.kernels.base import Kernel, check_kernel
from muhat.kernels.radial import Gaussian
from muhat.linalg.resources import one_blas_thread
from muhat.means.base import BaseKernelMean
from muhat.means.nested import check_mean
from muhat.types import Array, RandomState
from muhat.validation import check_count, check_rng

FAN_IN = 8  # sketches that are merged at a time: a worker holds no more of them


GROUPS, GROUP_ROWS = 32, 2048  # at most this many groups of bags, of at least this many rows; two make a tile


class MMD(NamedTuple):
    """Result of :func:`mmd_distance`: ``squared`` is MMD², ``distance`` its root, of ``n_x`` and ``n_y`` rows."""

    squared: float
    n_x: int
    n_y: int

    @property
    def distance(self) -> float:
        """The distance of the two means; 0 where an unbiased square is negative."""
        return math.sqrt(max(self.squared, 0.0))


def sketch_collection(
    features: BaseFeatures, data: Any, second_moment: bool = False, reservoir_size: int = 0, client: Any = None
) -> MeanSketch:
    """Sketch of a collection: each worker sketches its blocks, and the sketches are merged as a tree.

    The rows stay where they are. What travels are the features, once to each worker, and sums: m numbers a block, m²
    with ``second_moment``, and the rows of the reservoir.

    Parameters
    ----------
    features : fitted Nystroem or Fourier
    data : dask.array.Array of shape (n, d), or iterable of blocks of shape (n_i, d)
        An array is cut by rows alone. Blocks are delayed objects, futures, or arrays, which travel.
    second_moment, reservoir_size
        See :class:`MeanSketch`.
    client : distributed.Client, default the current one

    Examples
    --------
    >>> import dask.array as da, muhat as mh
    >>> from distributed import Client
    >>> import muhat as mh
    >>> rows = mh.paper_mixture(5, random_state=0).sample(3000, random_state=1)
    >>> features = mh.Nystroem(n_components=100, random_state=0).fit(rows[:500])
    >>> with Client(processes=False, dashboard_address="127.0.0.1:0", worker_dashboard_address="127.0.0.1:0"):
    ...     sketch = mh.distributed.sketch_collection(features, da.from_array(rows, chunks=(500, -1)))
    >>> sketch.n_, sketch.distance(mh.MeanSketch(features).update(rows)) < 1e-10
    (3000, True)
    """
    return _sketches(client, MeanSketch(features, second_moment, reservoir_size), data=data)[0]


def mmd_distance(X: Any, Y: Any, kernel: Kernel | BaseFeatures, unbiased: bool = False, client: Any = None) -> MMD:
    r"""Distance of the means of two collections, exact or in features.

    .. math:: \mathrm{MMD}^2 = \frac1{n^2}\sum_{ij} k(x_i, x_j) + \frac1{m^2}\sum_{ij} k(y_i, y_j)
              - \frac2{nm}\sum_{ij} k(x_i, y_j)

    With a kernel, a task adds the values of one pair of blocks, (n + m)²/2 values in all; blocks travel to each other.
    With features, both collections are sketched, in O(n + m), and no row travels.

    Parameters
    ----------
    X, Y : dask.array.Array of shape (n, d) and (m, d), or iterables of blocks
        See :func:`sketch_collection`.
    kernel : Kernel, or fitted Nystroem or Fourier
        A bandwidth must be a number.
    unbiased : bool, default False
        Leave k(xᵢ, xᵢ) and k(yᵢ, yᵢ) out and divide by n(n−1) and m(m−1); the square may be negative then.
    client : distributed.Client, default the current one

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from distributed import Client
    >>> import muhat as mh
    >>> rng, kernel = np.random.default_rng(0), mh.Gaussian(1.0)
    >>> X, Y = rng.normal(size=(400, 2)), rng.laplace(size=(600, 2)) + 0.5
    >>> with Client(processes=False, dashboard_address="127.0.0.1:0", worker_dashboard_address="127.0.0.1:0"):
    ...     blocks = [da.from_array(rows, chunks=(200, -1)) for rows in (X, Y)]
    ...     mmd = mh.distributed.mmd_distance(*blocks, kernel)
    >>> abs(mmd.distance - mh.embed(kernel, X).distance(mh.embed(kernel, Y))) < 1e-10
    True
    """
    if isinstance(kernel, BaseFeatures):
        a, b = (sketch._sums for sketch in _sketches(client, MeanSketch(kernel), X=X, Y=Y))
        _check_sizes(a.n, b.n, unbiased)
        f, g = a.total / a.n, b.total / b.n
        return _mmd((f - g) @ (f - g), (a.n, a.squares / a.n - f @ f), (b.n, b.squares / b.n - g @ g), unbiased)
    check_kernel("kernel", kernel)
    _check_resolved(kernel)
    client, blocks = check_client(client), {"X": row_blocks("X", X), "Y": row_blocks("Y", Y)}
    delayed = load_module("dask").delayed
    groups = [delayed(pool_bags)(name, [block], i, 0) for name in blocks for i, block in enumerate(blocks[name])]
    inner, sizes, diag = _inner_products(client, kernel, None, groups)
    in_x = np.arange(len(groups)) < len(blocks["X"])
    n, m = (int(sizes @ where) for where in (in_x, ~in_x))
    _check_sizes(n, m, unbiased)
    f, g = np.where(in_x, sizes / n, 0.0), np.where(in_x, 0.0, sizes / m)  # both means, in means of blocks
    return _mmd((f - g) @ inner @ (f - g), (n, f @ diag - f @ inner @ f), (m, g @ diag - g @ inner @ g), unbiased)


def two_sample_test(
    X: Any,
    Y: Any,
    features: BaseFeatures,
    n_resamples: int = 999,
    random_state: RandomState = None,
    client: Any = None,
) -> MMDResult:
    """Do two collections have the same distribution? A permutation test in features; no row travels.

    Each worker draws bins of equal size from its blocks, and sends the means of their features: 2,000 in all. Bins are
    exchangeable as rows are, so that the level is exact, as in :func:`muhat.mmd_test` beyond 12,000 rows. The unbiased
    MMD² and the difference of the spreads are combined.

    Parameters
    ----------
    X, Y : dask.array.Array of shape (n, d) and (m, d), or iterables of blocks
        See :func:`sketch_collection`. Rows of a block that fill no bin take no part. Bins are as small as the smaller
        collection and its blocks need, and the other collection fills at most 2,000 of them.
    features : fitted Nystroem or Fourier
        Fitted to rows of both collections alike; features of one of them would tell the samples apart.
    n_resamples : int, default 999
        Number of random splits.
    random_state : None, int, Generator, SeedSequence or RandomState
        The seed: the same number gives the same result, whatever the workers.
    client : distributed.Client, default the current one

    Returns
    -------
    MMDResult
        Without a kernel and a witness; ``method`` says what the bins were.

    Examples
    --------
    >>> import dask.array as da, numpy as np, muhat as mh
    >>> from distributed import Client
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(2000, 2)), 1.2 * rng.normal(size=(2000, 2))
    >>> features = mh.Nystroem(n_components=50, random_state=0).fit(np.vstack([X[:200], Y[:200]]))
    >>> with Client(processes=False, dashboard_address="127.0.0.1:0", worker_dashboard_address="127.0.0.1:0"):
    ...     blocks = [da.from_array(rows, chunks=(500, -1)) for rows in (X, Y)]
    ...     result = mh.distributed.two_sample_test(*blocks, features, random_state=0)
    >>> result.pvalue, result.summary.split(" (")[0]
    (0.001, 'Y is more spread out')
    """
    n_resamples, rng = check_count("n_resamples", n_resamples), check_rng(random_state)
    MeanSketch(features)  # refuses what is not fitted
    client, blocks = check_client(client), {"X": row_blocks("X", X), "Y": row_blocks("Y", Y)}
    delayed, shared = load_module("dask").delayed, one_copy(client, features)
    named = [(f"{name}[{i}]", block) for name, found in blocks.items() for i, block in enumerate(found)]
    rows = client.gather(client.compute([delayed(count_rows)(*each) for each in named]))
    first = len(blocks["X"])
    samples = np.array(rows[:first]), np.array(rows[first:])
    if min(map(sum, samples)) < 2:
        raise ValueError(f"X has {sum(samples[0])} rows and Y has {sum(samples[1])}; pass at least two of each")
    size = bin_size(*samples)
    counts = np.concatenate([at_most(sample // size, BINS) for sample in samples]).tolist()
    seeds = rng.integers(2**31, size=len(named)).tolist()
    plan = zip(named, counts, seeds, strict=True)
    tasks = [delayed(bin_means)(shared, *each, size, count, seed) for each, count, seed in plan]
    parts = client.gather(client.compute(tasks))
    of_first = np.repeat([1.0, 0.0], [sum(counts[:first]), sum(counts[first:])])
    components = feature_components(np.concatenate(parts), of_first, n_resamples, rng)
    combined = combine_statistics(components)
    words = {"features": "X and Y differ", "spread": f"{components[1].value} is more spread out"}
    found = ranked(components, combined, lambda part: (None, None, words[part.name]))
    method = f"{len(of_first):,} bins of {size} rows; {sum(rows) - len(of_first) * size} rows are in no bin"
    n = sum(rows[:first])
    smallest = smallest_pvalue(of_first, n_resamples)
    sizes = n, sum(rows) - n
    return MMDResult(*observed_and_null(combined), found, method, None, None, sizes, smallest_pvalue=smallest)


def bag_gram(
    bags: Any,
    kernel: Kernel = Gaussian(),
    mean: BaseKernelMean | None = None,
    level2: Level2 = "linear",
    client: Any = None,
) -> Array:
    """Gram matrix of bags, that of :class:`DistributionKernel`: groups of bags meet in tiles over the workers.

    Parameters
    ----------
    bags : sequence of arrays of shape (n_i, d), delayed objects, futures or Dask arrays
        Arrays travel, to the scheduler first; many or large bags are better delayed, so that workers read them.
    kernel : Kernel, default Gaussian()
        A bandwidth "median" is that of the pooled rows, and must be a number where bags are not arrays.
    mean, level2
        See :class:`DistributionKernel`.
    client : distributed.Client, default the current one

    Examples
    --------
    >>> import numpy as np
    >>> from distributed import Client
    >>> import muhat as mh
    >>> bags = [np.random.default_rng(n).normal(size=(n, 2)) for n in (5, 8, 1)]
    >>> with Client(processes=False, dashboard_address="127.0.0.1:0", worker_dashboard_address="127.0.0.1:0"):
    ...     G = mh.distributed.bag_gram(bags, level2=mh.Gaussian())
    >>> bool(np.allclose(G, mh.DistributionKernel(level2=mh.Gaussian()).fit_transform(bags), rtol=1e-10))
    True
    """
    check_kernel("kernel", kernel)
    check_mean("mean", mean)
    check_level2(level2)
    client = check_client(client)
    if _are_remote(bags):
        _check_resolved(kernel)
    else:
        data = check_bags(bags, DistributionKernel(), reset=True)
        kernel, bags = kernel.resolve(data.rows), data
    groups = _groups_of_bags(bags)
    inner = _inner_products(client, kernel, mean, groups)[0]
    return evaluate_level2(resolve_level2(level2, inner), inner, np.diag(inner), np.diag(inner))


def bag_prior(
    bags: Any,
    features: BaseFeatures,
    ridge: float = POOLING_RIDGE,
    blend: float | Literal["cv"] = "cv",
    client: Any = None,
) -> BagPrior:
    """A :class:`BagPrior` fitted to bags that lie with the workers; no row travels.

    Each worker sends the means of its bags in the features, m numbers a bag, and one covariance within bags. The prior
    is that of ``BagPrior(features.kernel_, features).fit(bags)`` up to rounding, for features that are fitted already.

    Parameters
    ----------
    bags : sequence of arrays of shape (n_i, d), delayed objects, futures or Dask arrays
        See :func:`bag_gram`; two or more.
    features : fitted Nystroem or Fourier
        Fitted to a sample of rows of many bags.
    ridge, blend
        See :class:`BagPrior`.
    client : distributed.Client, default the current one

    Returns
    -------
    BagPrior
        Fitted: its ``means``, ``transform`` and ``log_odds`` take bags that are here, and :func:`bag_vectors` others.

    Examples
    --------
    >>> import numpy as np
    >>> from distributed import Client
    >>> import muhat as mh
    >>> rng = np.random.default_rng(0)
    >>> bags = [rng.normal(rng.normal(size=2), size=(n, 2)) for n in rng.integers(3, 100, size=60)]
    >>> features = mh.Nystroem(n_components=50, random_state=0).fit(np.vstack(bags))
    >>> with Client(processes=False, dashboard_address="127.0.0.1:0", worker_dashboard_address="127.0.0.1:0"):
    ...     prior = mh.distributed.bag_prior(bags, features)
    ...     vectors = mh.distributed.bag_vectors(prior, bags)
    >>> vectors.shape == prior.transform(bags).shape
    True
    """
    prior = BagPrior(getattr(features, "kernel_", Gaussian()), features, ridge=ridge, blend=blend)
    prior._checked_parameters()
    MeanSketch(features)  # refuses what is not fitted
    parts = _moments_of_groups(bags, features, check_client(client), within=True)
    sizes = np.concatenate([part.sizes for part in parts])
    if len(sizes) < 2:
        raise ValueError("bags holds one bag, and a prior needs two or more; use KernelMean for one sample")
    degrees = sum(part.moments.degrees for part in parts)
    scatter = np.sum([part.moments.within * part.moments.degrees for part in parts], axis=0)
    moments = BagMoments(np.concatenate([part.moments.means for part in parts]), scatter / max(degrees, 1), degrees)
    outside = [part.outside for part in parts if part.outside is not None]
    prior.n_features_in_ = features.n_features_in_
    with one_blas_thread():
        return prior._fit_moments(features, moments, sizes, reduce(OutsideSums.plus, outside) if outside else None)


def bag_vectors(prior: BagPrior, bags: Any, client: Any = None) -> Array:
    """Vectors of bags for any classifier, those of ``prior.transform``, from bags that lie with the workers.

    Parameters
    ----------
    prior : fitted BagPrior
        By :func:`bag_prior`, or by ``BagPrior().fit`` on some bags.
    bags : sequence of arrays of shape (n_i, d), delayed objects, futures or Dask arrays
        See :func:`bag_gram`.
    client : distributed.Client, default the current one

    Returns
    -------
    array of shape (n_bags, n_components)
    """
    check_is_fitted(prior, "kernel_")
    parts = _moments_of_groups(bags, prior._features, check_client(client), within=False)
    means, sizes = (np.concatenate(each) for each in zip(*((p.moments.means, p.sizes) for p in parts), strict=True))
    with one_blas_thread():
        return prior._vectors(means, sizes)


def map_cells(
    function: Callable[[Any], Any], cells: Iterable[Any], client: Any = None, retries: int = 2
) -> Generator[tuple[int, Any], None, None]:
    """Run a function on independent cells of an experiment, and yield (number of the cell, result) as they finish.

    A cell carries all that its result depends on, its seed too, and has one thread: the numbers are the same with any
    number of workers. Cells that have not begun are called off when the iterator is closed.

    Parameters
    ----------
    function : callable of one cell
    cells : iterable
    client : distributed.Client, default the current one
    retries : int, default 2
        A cell that raises is run so often again before its error is raised here. Lost workers do not count.

    Examples
    --------
    >>> import numpy as np
    >>> from distributed import Client
    >>> import muhat as mh
    >>> def experiment(seed):
    ...     return float(np.random.default_rng(seed).normal(size=1000).mean())
    >>> with Client(processes=False, dashboard_address="127.0.0.1:0", worker_dashboard_address="127.0.0.1:0"):
    ...     results = dict(mh.distributed.map_cells(experiment, range(4)))
    >>> [results[i] == experiment(i) for i in range(4)]
    [True, True, True, True]
    """
    retries, given, client = check_count("retries", retries, low=0), list(cells), check_client(client)
    futures = client.map(run_cell, given, pure=False, retries=retries, function=function)
    return _finished(client, given, {future.key: (i, future) for i, future in enumerate(futures)})


def _check_resolved(kernel: Kernel) -> None:
    if kernel.resolve(np.array([[0.0], [1.0]])) != kernel:
        raise ValueError(
            f"kernel={kernel!r} needs a number as its bandwidth; pass kernel.resolve(rows) with a sample of the rows"
        )


def _are_remote(bags: Any) -> bool:
    return isinstance(bags, Sequence) and any(is_remote(bag) for bag in bags)


def _groups_of_bags(bags: Any) -> list[Any]:
    """Bags as delayed groups of them: by rows where these are here, else by number."""
    if isinstance(bags, Bags):
        matrices, offsets = bags.parts(bags.rows), bags.offsets
        count = min(GROUPS, 1 + len(bags.rows) // GROUP_ROWS)
    else:
        matrices, offsets, count = list(bags), np.arange(len(bags) + 1), GROUPS
    cuts = np.unique(np.searchsorted(offsets, np.linspace(0, offsets[-1], count + 1))).tolist()
    delayed = load_module("dask").delayed
    return [delayed(pool_bags)("bags", matrices[start:stop], start) for start, stop in pairwise(cuts)]


def _moments_of_groups(bags: Any, features: BaseFeatures, client: Any, *, within: bool) -> list[PartOfBags]:
    """What each group of bags says of means and noise, in the order of the bags."""
    given = bags if _are_remote(bags) else check_bags(bags, DistributionKernel(), reset=True)
    delayed, shared = load_module("dask").delayed, one_copy(client, features)
    tasks = [delayed(group_moments)(shared, group, within) for group in _groups_of_bags(given)]
    return client.gather(client.compute(tasks))


def _check_sizes(n: int, m: int, unbiased: bool) -> None:
    if min(n, m) < 1 + unbiased:
        raise ValueError(f"X has {n} and Y has {m} row(s); unbiased={unbiased!r} needs at least {1 + unbiased} of each")


def _sketches(client: Any, sketch: MeanSketch, **collections: Any) -> list[MeanSketch]:
    """Sketches of some collections, made as the empty one is."""
    client, delayed = check_client(client), load_module("dask").delayed
    blocks = {name: row_blocks(name, data) for name, data in collections.items()}
    empty, roots = one_copy(client, sketch), []
    for name, found in blocks.items():
        parts = [delayed(sketch_block)(empty, f"{name}[{i}]", block) for i, block in enumerate(found)]
        while len(parts) > 1:  # a tree that depends on the number of blocks alone
            parts = [delayed(merge_sketches)(parts[start : start + FAN_IN]) for start in range(0, len(parts), FAN_IN)]
        roots += parts
    sketches = [sketch._empty() for _ in roots]
    for filled, sums in zip(sketches, client.gather(client.compute(roots)), strict=True):
        filled._sums, filled._kept = sums
    return sketches


def _mmd(squared: Any, x: tuple[int, Any], y: tuple[int, Any], unbiased: bool) -> MMD:
    """From the distance of the averages; of each sample, n and its spread, mean k(x, x) − ‖average‖²."""
    if unbiased:  # the square of an average is too large by the variance of the average
        return MMD(float(unbiased_squared_mmd(squared, *x, *y)), x[0], y[0])
    return MMD(max(float(squared), 0.0), x[0], y[0])


def _inner_products(client: Any, kernel: Kernel, mean: Any, groups: list[Any]) -> tuple[Array, Array, Array]:
    """Inner products of the means of all bags, a task for each pair of groups; rows, mean k(x, x) of each group."""
    delayed, shared, numbers = load_module("dask").delayed, one_copy(client, (kernel, mean)), range(len(groups))
    parts, pairs = [delayed(weigh_rows)(shared, group) for group in groups], combinations_with_replacement(numbers, 2)
    tasks = {(i, j): delayed(fill_tile)(shared, parts[i], parts[j]) for i, j in pairs}
    sizes = [delayed(group_size)(shared, part) for part in parts]
    found = client.gather(client.compute([*sizes, *tasks.values()]))
    tiles = dict(zip(tasks, found[len(parts) :], strict=True))
    inner = np.block([[tiles[i, j] if i <= j else tiles[j, i].T for j in numbers] for i in numbers])
    return inner, *np.array(found[: len(parts)]).T


def _finished(
    client: Any, cells: list[Any], pending: dict[Any, tuple[int, Any]]
) -> Generator[tuple[int, Any], None, None]:
    """Results as they come; a future that has been read is let go, so that its worker may forget the result."""
    as_completed = load_module("distributed").as_completed
    try:
        for future in as_completed([future for _, future in pending.values()], loop=client.loop):
            number, _ = pending.pop(future.key)
            try:
                result = future.result()
            except Exception as error:
                error.add_note(f"in cell {number}: {cells[number]!r}")
                raise
            yield number, result
    finally:
        if pending and client.status == "running":
            client.cancel([future for _, future in pending.values()])
