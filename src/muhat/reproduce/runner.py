"""Running the cells that are missing, over processes or a Dask cluster; results are stored as they come."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass
from operator import methodcaller
from time import perf_counter

from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from muhat.reproduce.experiment import Experiment, Plan, Row, Setting, cell_key
from muhat.reproduce.store import Store

Results = Generator[tuple[int, list[Row], float], None, None]
"""Number of the job, its rows, and the seconds that it took, as jobs finish."""


@dataclass(frozen=True)
class Job:
    """A cell to run."""

    experiment: Experiment
    setting: Setting
    data: str | None

    @property
    def key(self) -> str:
        """Its name in the store."""
        return cell_key(self.experiment.name, self.setting)

    @property
    def seconds(self) -> float:
        """About how long it takes on one core."""
        return self.experiment.seconds(self.setting)


def all_jobs(experiments: list[Experiment], plan: Plan, data: str | None) -> list[Job]:
    """Every cell of the plan."""
    return [Job(experiment, setting, data) for experiment in experiments for setting in experiment.cells(plan)]


def missing_jobs(jobs: list[Job], store: Store) -> list[Job]:
    """What the store lacks, the longest cells first, so that no worker ends long after the others."""
    return sorted((job for job in jobs if job.key not in store), key=lambda job: -job.seconds)


def run(jobs: list[Job], store: Store, workers: int, dask: str | None, finished: Callable[[Job], None]) -> None:
    """Run cells in this order, and store each when it is finished."""
    with closing(_results(jobs, workers, dask)) as results:
        for number, rows, seconds in results:
            job = jobs[number]
            store.add(job.experiment.name, job.setting, rows, seconds)
            finished(job)


def expected_seconds(jobs: list[Job], store: Store, workers: int) -> float:
    """Time that the missing cells will take; finished cells tell how fast this machine is."""
    times = [(job.seconds, store.seconds(job.experiment.name, job.setting)) for job in jobs]
    guessed = sum(guess for guess, taken in times if taken is not None)
    taken = sum(taken for _, taken in times if taken is not None)
    return sum(guess for guess, done in times if done is None) / workers * (taken / guessed if guessed > 1.0 else 1.0)


def collected_rows(experiment: Experiment, plan: Plan, store: Store) -> list[Row] | None:
    """All rows of a finished experiment, in the order of its cells; None where a cell is missing."""
    settings = experiment.cells(plan)
    if any(cell_key(experiment.name, setting) not in store for setting in settings):
        return None
    return [row for setting in settings for row in store.rows(experiment.name, setting)]


def _results(jobs: list[Job], workers: int, dask: str | None) -> Results:
    if dask is not None:
        yield from _over_dask(jobs, dask)
    elif workers == 1 or len(jobs) < 2:
        yield from map(_perform, enumerate(jobs))
    else:
        parallel = Parallel(n_jobs=workers, return_as="generator_unordered")
        yield from parallel(delayed(_perform)(numbered) for numbered in enumerate(jobs))


def _over_dask(jobs: list[Job], address: str) -> Results:
    from distributed import Client

    from muhat.distributed.cluster import map_cells

    with Client(address) as client:
        for _, result in map_cells(_perform, enumerate(jobs), client=client):
            yield result


def _perform(numbered: tuple[int, Job]) -> tuple[int, list[Row], float]:
    """On one thread, whose sums do not depend on how many cells run at a time."""
    number, job = numbered
    start = perf_counter()
    with threadpool_limits(limits=1):
        rows = job.experiment.run(job.setting, job.data)
    seconds = perf_counter() - start
    return number, json.loads(json.dumps(rows, default=methodcaller("item"))), seconds  # as they will be read again
