"""Clusters of Dask on this machine, and what test files ask of them."""

import logging
import multiprocessing
import sys
from contextlib import ExitStack, contextmanager

import numpy as np
import pytest
from bag_samples import random_bags
from tables import sample

import muhat as mh

X, Y = sample(230, 3, seed=0), sample(150, 3, seed=1) + 0.3
FEATURES = {
    "nystroem": mh.Nystroem(mh.Gaussian(1.0), 20, random_state=0).fit(X),
    "fourier": mh.Fourier(mh.Laplace(1.0), 30, random_state=0).fit(X),
}
BAGS = random_bags((1, 4, 9, 2, 30, 1, 3, 17) * 2)
CELLS = [(seed, 20 + 5 * seed) for seed in range(8)]
# With dashboard_address=None the scheduler would take port 8787, and warn where that is in use.
HERE = {"dashboard_address": "127.0.0.1:0", "silence_logs": logging.CRITICAL}


def require_dask():
    pytest.importorskip("distributed", reason='Dask is missing: pip install "muhat[dask]"')


@contextmanager
def processes(n_workers, **options):
    """A client of so many processes with one thread each, which listen to this machine alone."""
    require_dask()
    import dask
    from distributed import Client, LocalCluster
    from distributed.utils import get_mp_context

    settings = {"distributed.comm.timeouts.connect": "120s", "distributed.comm.timeouts.tcp": "120s"}
    if sys.platform != "win32":  # forks of one process that has imported all, which would take each worker seconds
        settings["distributed.worker.multiprocessing-method"] = "forkserver"
    with ExitStack() as stack:
        stack.enter_context(dask.config.set(settings))
        get_mp_context()  # chooses modules to import, once; the next line does it again
        multiprocessing.set_forkserver_preload(["distributed", "dask.array", "muhat.distributed"])
        cluster = LocalCluster(n_workers=n_workers, threads_per_worker=1, host="127.0.0.1", **HERE)
        yield stack.enter_context(Client(stack.enter_context(cluster), **options))


@contextmanager
def threads(count=1, **options):
    """A client of one worker inside this process."""
    require_dask()
    from distributed import Client

    inside = {"processes": False, "n_workers": 1, "worker_dashboard_address": "127.0.0.1:0"}
    with Client(threads_per_worker=count, **inside, **HERE, **options) as client:
        yield client


def chunked(rows, size=60):
    import dask.array as da

    return da.from_array(rows, chunks=(size, -1))


def delayed_blocks(rows, count=5):
    import dask

    return [dask.delayed(np.array)(part) for part in np.array_split(rows, count)]


def squared_mmd(kernel, X, Y, unbiased):
    """The definition."""
    K, L, M = kernel(X), kernel(Y), kernel(X, Y)
    if not unbiased:
        return K.mean() + L.mean() - 2 * M.mean()
    n, m = len(X), len(Y)
    return (K.sum() - np.trace(K)) / (n * (n - 1)) + (L.sum() - np.trace(L)) / (m * (m - 1)) - 2 * M.mean()


def shrinkage_of_cell(cell):
    seed, n = cell
    rows = np.random.default_rng(seed).normal(size=(n, 5)) + 0.1
    return mh.SpectralKernelMean(mh.Gaussian(2.0)).fit(rows).lam_
