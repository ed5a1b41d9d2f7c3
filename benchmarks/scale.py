"""Sums of sketches beyond one machine: time, memory, other partitions, a killed worker, by engine.

    python benchmarks/scale.py      # 10 million rows by a loop and by Dask, 100 million by two workers, and checks
    python benchmarks/scale.py --rows 1_000_000 --engines ray spark
    python benchmarks/scale.py --rows 1_000_000 --engines loop --checks

Every part of the rows is generated where it is sketched, as a worker would read it from a file, so that only states
travel, 0.8 MB per part with bins. The two samples differ by a shift of 0.002 standard deviations in one of ten columns.
Ray and Spark are run where they are installed. Memory is the peak of a process above what it had after the imports.
Workers of Dask keep freed memory (``KEEPING``): as Dask starts them they hand it back to the system after each block.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial, reduce
from importlib.util import find_spec
from operator import add
from time import perf_counter
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits
from timing import peak_memory

import muhat as mh

COLUMNS, LANDMARKS, BINS, SHIFT = 10, 100, 1000, 0.002
BLOCK = 10_000
"""Rows that one seed generates; a part is a whole number of such blocks."""

KEEPING = {"MALLOC_TRIM_THRESHOLD_": 2**30, "MALLOC_MMAP_THRESHOLD_": 2**25}
"""With these glibc keeps 1 GB of freed memory, of arrays up to 32 MB."""


def block_of_rows(sample: int, number: int) -> Any:
    """Block of rows of one of the two samples: the same wherever and in whatever part it is made."""
    rows = np.random.default_rng([sample, number]).standard_normal((BLOCK, COLUMNS))
    rows[:, 0] += SHIFT * sample
    return rows


def state(blocks: range, sample: int, features: mh.Nystroem) -> Any:
    """The state of one part: all that travels."""
    sketch = mh.MeanSketch(features, bins=BINS)
    with threadpool_limits(1):
        for number in blocks:
            sketch.update(block_of_rows(sample, number))
    return sketch.state_


def parts_of(rows: int, part: int) -> list[range]:
    """Blocks of each part."""
    count, size = rows // BLOCK, max(part // BLOCK, 1)
    return [range(start, min(start + size, count)) for start in range(0, count, size)]


# ---------------------------------------------------------------- engines: the sum of what a function makes of parts

Sum = Callable[[Callable[[range], Any], list[range]], Any]


@dataclass
class Engine:
    """How to sum states over parts, and the peaks of memory of those who compute them, in MB above the start."""

    sum: Sum
    peaks: Callable[[], list[float]]
    pids: Callable[[], list[int]] = field(default=list)


@contextmanager
def loop() -> Iterator[Engine]:
    """One process, one part after the other."""
    before = peak_memory()
    yield Engine(lambda state, parts: reduce(add, map(state, parts)), lambda: [peak_memory() - before])


@contextmanager
def dask_workers(workers: int) -> Iterator[Engine]:
    """Workers of Dask, processes of one thread each, which add up states in a tree."""
    import dask
    from dask.bag import from_sequence
    from distributed import Client, LocalCluster

    dask.config.set({"distributed.nanny.pre-spawn-environ": KEEPING})
    options = {"dashboard_address": "127.0.0.1:0", "silence_logs": logging.CRITICAL, "host": "127.0.0.1"}
    with LocalCluster(n_workers=workers, threads_per_worker=1, **options) as cluster, Client(cluster) as client:
        client.run(lambda: __import__("muhat"))
        before = client.run(peak_memory)
        yield Engine(
            lambda state, parts: from_sequence(parts).map(state).fold(add).compute(),
            lambda: [peak - before.get(worker, 0.0) for worker, peak in client.run(peak_memory).items()],
            lambda: list(client.run(os.getpid).values()),
        )


@contextmanager
def ray() -> Iterator[Engine]:
    """Two workers of Ray."""
    import ray as engine

    engine.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)

    def remote_sum(state: Callable[[range], Any], parts: list[range]) -> Any:
        task = engine.remote(lambda part: state(part))  # a function: Ray takes no partial
        return sum(engine.get([task.remote(part) for part in parts]))

    try:
        yield Engine(remote_sum, list)
    finally:
        engine.shutdown()


@contextmanager
def spark() -> Iterator[Engine]:
    """Two executor threads of Spark, each with a Python process."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    context = session.sparkContext
    context.setLogLevel("OFF")
    try:
        yield Engine(lambda state, parts: context.parallelize(parts, len(parts)).map(state).treeReduce(add), list)
    finally:
        session.stop()


ENGINES = {
    "loop": loop,
    "dask1": partial(dask_workers, 1),
    "dask2": partial(dask_workers, 2),
    "ray": ray,
    "spark": spark,
}
NEEDS = {"dask1": "distributed", "dask2": "distributed", "ray": "ray", "spark": "pyspark"}


WHOLE_RUN = (("loop", 10**7), ("dask1", 10**7), ("dask2", 10**7), ("dask2", 10**8))
"""What docs/scaling.md shows, in about three minutes of two cores."""

CHECKED = 10**6
"""Rows of each sample for the checks: other partitions, and a worker that is killed."""


# ---------------------------------------------------------------- what is measured


def fitted_features() -> mh.Nystroem:
    """Features that both samples share, fitted to some rows of each."""
    some = np.vstack([block_of_rows(sample, 0)[:1000] for sample in (0, 1)])
    return mh.Nystroem(n_components=LANDMARKS, random_state=0).fit(some)


def sketches(engine: Engine, features: mh.Nystroem, parts: list[range]) -> list[mh.MeanSketch]:
    """Sketches of both samples."""
    sums = [engine.sum(partial(state, sample=sample, features=features), parts) for sample in (0, 1)]
    return [mh.MeanSketch(features, bins=BINS) + total for total in sums]


def difference(a: list[mh.MeanSketch], b: list[mh.MeanSketch]) -> float:
    """Largest distance of the means of two pairs of sketches, relative to their norms."""
    return max(x.distance(y) / float(np.linalg.norm(y.mean_features())) for x, y in zip(a, b, strict=True))


def measure(name: str, rows: int, part: int, features: mh.Nystroem) -> list[mh.MeanSketch]:
    """Print time and memory of one engine, and the test of the merged sketches."""
    here = peak_memory()
    with ENGINES[name]() as engine:
        engine.sum(partial(state, sample=0, features=features), parts_of(2 * BLOCK, BLOCK))  # starts the workers
        start = perf_counter()
        found = sketches(engine, features, parts_of(rows, part))
        seconds = perf_counter() - start
        peaks = ", ".join(f"{peak:.0f}" for peak in engine.peaks())
    tested = mh.mmd_test(*found, random_state=0)
    print(
        f"{name:<6} 2 x {rows:>11,} rows  {seconds:7.1f} s  {2 * rows / seconds:>9,.0f} rows per second  "
        f"peak of workers {peaks or 'not measured'} MB, here {peak_memory() - here:.0f} MB  p = {tested.pvalue:.3f}",
        flush=True,
    )
    return found


def other_partitions(rows: int, features: mh.Nystroem, expected: list[mh.MeanSketch]) -> None:
    """Print how far results of other parts are, in the same process."""
    for part in (70_000, 510_000):
        with loop() as engine:
            found = sketches(engine, features, parts_of(rows, part))
        pvalue = mh.mmd_test(*found, random_state=0).pvalue
        apart = difference(found, expected)
        print(f"parts of {part:,} rows: means differ by {apart:.1e} of their norm, p = {pvalue:.3f}")


def killed_worker(rows: int, part: int, features: mh.Nystroem, expected: list[mh.MeanSketch]) -> None:
    """Print what changes when one of two workers of Dask is killed after a third of the time."""
    with dask_workers(2) as engine:
        start = perf_counter()
        sketches(engine, features, parts_of(rows, part))
        seconds = perf_counter() - start
        victim = engine.pids()[0]
        timer = threading.Timer(seconds / 3, os.kill, (victim, signal.SIGKILL))
        timer.start()
        start = perf_counter()
        found = sketches(engine, features, parts_of(rows, part))
        taken = perf_counter() - start
        alive = victim in engine.pids()
    print(
        f"worker killed after {seconds / 3:.1f} s: {taken:.1f} s in place of {seconds:.1f} s, "
        f"{'it lived on' if alive else 'another took over'}, means differ by {difference(found, expected):.1e}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", help="of each sample")
    parser.add_argument("--part", type=int, default=200_000, help="rows of a part")
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=["loop", "dask1", "dask2"])
    parser.add_argument("--checks", action="store_true", help="other partitions and a killed worker, too")
    options = parser.parse_args()
    features = fitted_features()
    chosen = WHOLE_RUN if options.rows is None else [(name, n) for name in options.engines for n in options.rows]
    for name, rows in chosen:
        if name in NEEDS and find_spec(NEEDS[name]) is None:
            print(f"{name}: not installed, not run")
        else:
            measure(name, rows, options.part, features)
    if options.checks or options.rows is None:
        found = measure("loop", CHECKED, options.part, features)
        other_partitions(CHECKED, features, found)
        killed_worker(CHECKED, options.part, features, found)


if __name__ == "__main__":
    main()
