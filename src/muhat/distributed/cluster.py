"""Work over the workers of Dask that is not a sum of sketches: Gram matrices of bags, and cells of experiments.

Tasks are functions of their arguments alone and each has one thread, and results have one fixed order, so that neither
the number of workers nor the loss of one changes a number. Dask is imported when a function needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from itertools import combinations_with_replacement, pairwise
from typing import Any

import numpy as np

from muhat.bags.data import Bags, check_bags
from muhat.bags.distribution_kernel import DistributionKernel, Level2, check_level2, evaluate_level2, resolve_level2
from muhat.distributed.clients import check_client, is_remote, load_module, one_copy
from muhat.distributed.tasks import fill_tile, pool_bags, run_cell, weigh_rows
from muhat.kernels.base import Kernel, check_kernel
from muhat.kernels.radial import Gaussian
from muhat.means.base import BaseKernelMean
from muhat.means.nested import check_mean
from muhat.types import Array
from muhat.validation import check_count

GROUPS, GROUP_ROWS = 32, 2048  # at most this many groups of bags, of at least this many rows; two make a tile


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
    inner = _inner_products(client, kernel, mean, groups)
    return evaluate_level2(resolve_level2(level2, inner), inner, np.diag(inner), np.diag(inner))


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
    return [delayed(pool_bags)(matrices[start:stop], start) for start, stop in pairwise(cuts)]


def _inner_products(client: Any, kernel: Kernel, mean: Any, groups: list[Any]) -> Array:
    """Inner products of the means of all bags, a task for each pair of groups."""
    delayed, shared, numbers = load_module("dask").delayed, one_copy(client, (kernel, mean)), range(len(groups))
    parts, pairs = [delayed(weigh_rows)(shared, group) for group in groups], combinations_with_replacement(numbers, 2)
    tasks = {(i, j): delayed(fill_tile)(shared, parts[i], parts[j]) for i, j in pairs}
    tiles = dict(zip(tasks, client.gather(client.compute(list(tasks.values()))), strict=True))
    return np.block([[tiles[i, j] if i <= j else tiles[j, i].T for j in numbers] for i in numbers])


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
