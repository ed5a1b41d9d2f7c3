"""Processor time of kernel tiles here and on a worker of Dask: the numbers of docs/scaling.md.

python benchmarks/guide/dask_workers.py
python benchmarks/guide/dask_workers.py --rounds 3
"""

from __future__ import annotations

import argparse
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from time import thread_time
from unittest.mock import patch

import numpy as np
from distributed import Client, LocalCluster

import muhat as mh
from muhat.distributed.cluster import fill_tile, pool_bags, weigh_rows

KEEPING = {"MALLOC_TRIM_THRESHOLD_": str(2**30), "MALLOC_MMAP_THRESHOLD_": str(2**25)}
"""glibc keeps 1 GB of freed memory, of arrays up to 32 MB. As Dask sets it, it keeps 64 kB, of large arrays nothing."""


def tile_seconds(seed: int, rows: int = 3000, columns: int = 10) -> float:
    """Processor time of the sum over one tile of rows × rows values of a Gaussian kernel, in one thread."""
    recipe = (mh.Gaussian(5.0), None)
    X, Y = np.random.default_rng(seed).normal(size=(2, rows, columns))
    parts = [weigh_rows(recipe, pool_bags([block])) for block in (X, Y)]
    start = thread_time()
    fill_tile(recipe, *parts)
    return thread_time() - start


@contextmanager
def worker(environment: dict[str, str]) -> Iterator[Client]:
    """A client of one worker of one thread; variables of the environment go before those that Dask sets."""
    options = {"dashboard_address": "127.0.0.1:0", "silence_logs": logging.CRITICAL}
    with (
        patch.dict(os.environ, environment),
        LocalCluster(n_workers=1, threads_per_worker=1, host="127.0.0.1", **options) as cluster,
        Client(cluster) as client,
    ):
        yield client


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=30)
    rounds = parser.parse_args().rounds
    with worker({}) as usual, worker(KEEPING) as keeping:
        runs = {
            "here": tile_seconds,
            "on a worker": lambda seed: usual.submit(tile_seconds, seed, pure=False).result(),
            "on a worker that keeps memory": lambda seed: keeping.submit(tile_seconds, seed, pure=False).result(),
        }
        seconds = np.array([[run(seed) for run in runs.values()] for seed in range(rounds + 1)][1:])
    print(f"Processor time of a tile of 3,000 × 3,000 values, {rounds} rounds in turn")
    for name, taken in zip(runs, seconds.T, strict=True):
        low, middle, high = np.quantile(taken, [0.0, 0.5, 1.0])
        ratio = np.median(taken / seconds[:, 0])
        print(f"{name:<30} median {middle:.3f} s ({low:.3f} to {high:.3f}), {ratio:.2f} times that here")


if __name__ == "__main__":
    main()
