"""Gram matrix of bags over the workers of Dask: the one computation on a cluster that is not a sum of states.

Everything else that muhat computes on many machines is a sum of :class:`muhat.MeanSketch` or :class:`muhat.BagSketch`
states, which needs no code of ours. Here groups of bags meet in tiles. A tile is a function of its arguments alone,
runs in one thread and has a fixed place in the result, so that neither the number of workers nor the loss of one
changes a number. Dask is imported when the function is called.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from itertools import combinations_with_replacement, pairwise
from typing import Any

import numpy as np
from joblib import parallel_config

from muhat._support.extras import load_extra
from muhat._support.types import Array
from muhat._support.validation import check_rows
from muhat.bags.data import Bags, check_bags
from muhat.bags.distribution_kernel import (
    DistributionKernel,
    Level2,
    bag_sums,
    check_level2,
    evaluate_level2,
    resolve_level2,
)
from muhat.kernels.base import Kernel, check_kernel
from muhat.kernels.radial import Gaussian
from muhat.linalg.resources import one_blas_thread
from muhat.means.base import BaseKernelMean
from muhat.means.nested import bag_weights, check_mean

GROUPS, GROUP_ROWS = 32, 2048  # at most this many groups of bags, of at least this many rows; two make a tile

WeightedBags = tuple[Bags, Array]
"""Bags, and the weight of each row in the mean of its bag."""


def bag_gram(
    bags: Any,
    kernel: Kernel = Gaussian(),
    mean: BaseKernelMean | None = None,
    level2: Level2 = "linear",
    client: Any = None,
) -> Array:
    """Gram matrix of bags as :class:`DistributionKernel` computes it, over the workers of a Dask cluster.

    Parameters
    ----------
    bags : sequence of arrays of shape (n_i, d), delayed objects, futures or Dask arrays
        Arrays are sent to the scheduler first, so many or large bags are better delayed: then the workers read them.
    kernel : Kernel, default Gaussian()
        A bandwidth "median" is that of the pooled rows, and must be a number where bags are not arrays.
    mean : mean estimator, optional
        Estimator of the kernel mean of each bag. Default the plain average.
    level2 : "linear" or Kernel, default "linear"
        Kernel between distributions, as in :class:`DistributionKernel`.
    client : distributed.Client, default the current one
        The cluster to compute on.

    Returns
    -------
    array of shape (n_bags, n_bags)
        Kernel values of all pairs of bags.

    See Also
    --------
    muhat.DistributionKernel : The same on one machine.
    muhat.BagSketch : Mergeable moments of bags, for more bags than fit a Gram matrix.

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
    inner = _inner_products(client, kernel, mean, _groups_of_bags(bags))
    return evaluate_level2(resolve_level2(level2, inner), inner, np.diag(inner), np.diag(inner))


def load_module(module: str) -> Any:
    """A module of Dask, or an ImportError that says how to install it."""
    return load_extra(module, "dask", "muhat.distributed")


def check_client(client: Any) -> Any:
    """Return a connected client, by default the current one, or raise a ValueError."""
    distributed = load_module("distributed")
    try:
        client = distributed.default_client() if client is None else client
    except ValueError as error:
        remedy = "distributed.Client() starts workers here, Client('tcp://host:8786') finds a scheduler elsewhere"
        raise ValueError(f"client=None, and there is no current client; make one: {remedy}") from error
    if not isinstance(client, distributed.Client) or client.asynchronous:
        raise ValueError(f"client={client!r} must be a distributed.Client that is not asynchronous")
    if client.status != "running":
        raise ValueError(f"client={client!r} has no scheduler (its status is {client.status!r}); make a new Client")
    return client


def _check_resolved(kernel: Kernel) -> None:
    if kernel.resolve(np.array([[0.0], [1.0]])) != kernel:
        raise ValueError(
            f"kernel={kernel!r} needs a number as its bandwidth; pass kernel.resolve(rows) with a sample of the rows"
        )


def _are_remote(bags: Any) -> bool:
    """Whether some of the bags stand for rows that workers have or will make."""
    is_collection, future = load_module("dask").is_dask_collection, load_module("distributed").Future
    return isinstance(bags, Sequence) and any(is_collection(bag) or isinstance(bag, future) for bag in bags)


def _groups_of_bags(bags: Any) -> list[Any]:
    """Delayed groups of bags: by their numbers of rows where these are known, else by number of bags."""
    if isinstance(bags, Bags):
        matrices, offsets = bags.parts(bags.rows), bags.offsets
        count = min(GROUPS, 1 + len(bags.rows) // GROUP_ROWS)
    else:
        matrices, offsets, count = list(bags), np.arange(len(bags) + 1), GROUPS
    cuts = np.unique(np.searchsorted(offsets, np.linspace(0, offsets[-1], count + 1))).tolist()
    delayed = load_module("dask").delayed
    return [delayed(pool_bags)(matrices[start:stop], start) for start, stop in pairwise(cuts)]


def _inner_products(client: Any, kernel: Kernel, mean: Any, groups: list[Any]) -> Array:
    """Inner products of the means of all bags, one task for each pair of groups."""
    # A list, because Dask before 2025 takes a tuple that begins with a callable, as kernels are, for a task of its own.
    delayed, shared, numbers = load_module("dask").delayed, _shared(client, [kernel, mean]), range(len(groups))
    parts, pairs = [delayed(weigh_rows)(shared, group) for group in groups], combinations_with_replacement(numbers, 2)
    tasks = {(i, j): delayed(fill_tile)(shared, parts[i], parts[j]) for i, j in pairs}
    tiles = dict(zip(tasks, client.gather(client.compute(list(tasks.values()))), strict=True))
    return np.block([[tiles[i, j] if i <= j else tiles[j, i].T for j in numbers] for i in numbers])


def _shared(client: Any, thing: Any) -> Any:
    """One copy for all tasks. It is a task's result, not scattered data, which a lost worker would take with it."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sending large graph", UserWarning)  # it is sent once, and has to be
        return client.submit(copy, thing, pure=False)


# The tasks of workers, which need no Dask themselves.


@contextmanager
def _task(name: str = "") -> Iterator[None]:
    """One thread: how many tasks share a machine is for Dask to say. Errors of bad rows begin with a name."""
    with parallel_config(backend="sequential"), one_blas_thread(), np.errstate(all="ignore"):
        try:
            yield
        except ValueError as error:
            raise ValueError(f"{name}: {error}" if name else str(error)) from error


def pool_bags(bags: list[Any], first: int = 0) -> Bags:
    """Bags stacked into one matrix; ``first`` is the number of the first bag, for errors."""
    rows: list[Array] = []
    for i, bag in enumerate(bags, first):
        with _task(f"bags[{i}]"):
            rows.append(check_rows(bag))
            _check_same_width(rows[0], rows[-1])
    return Bags(np.concatenate(rows), np.cumsum([0, *map(len, rows)]))


def _check_same_width(A: Array, B: Array) -> None:
    if A.shape[1] != B.shape[1]:
        raise ValueError(
            f"some rows have {A.shape[1]} columns and others {B.shape[1]}; pass bags with the same columns"
        )


def weigh_rows(how: Sequence[Any], bags: Bags) -> WeightedBags:
    """Bags with the weight of each row in the estimated mean of its bag."""
    kernel, mean = how
    with _task():
        return bags, bag_weights(mean, kernel, bags.rows, bags.offsets)


def fill_tile(how: Sequence[Any], left: WeightedBags, right: WeightedBags) -> Array:
    """Inner products of the means of two groups of bags."""
    (A, a), (B, b), kernel = left, right, how[0]
    with _task():
        _check_same_width(A.rows, B.rows)
        G = bag_sums(kernel, A, a, B, b)
        if not np.isfinite(4.0 * np.abs(G).max()):  # squared distances add four of them
            raise ValueError(f"{kernel!r} overflows on these rows; rescale them first")
        return G
