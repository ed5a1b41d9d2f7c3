"""How far a run has come: bars with the time left in a terminal, a line now and then elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from muhat.reproduce.runner import Job

_PAUSE = 10.0  # seconds between two plain lines


def duration(seconds: float) -> str:
    """A time as people say it.

    >>> duration(20), duration(170), duration(9000)
    ('20 s', '3 min', '2.5 h')
    """
    if seconds < 100:
        return f"{max(round(seconds), 1)} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


@contextmanager
def progress(console: Console, missing: list[Job]) -> Iterator[Callable[[Job], None]]:
    """A function to be told of each finished cell."""
    if console.is_terminal:
        with _bars(console, missing) as finished:
            yield finished
    else:
        yield _lines(console, missing)


@contextmanager
def _bars(console: Console, missing: list[Job]) -> Iterator[Callable[[Job], None]]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TextColumn("left"), TimeRemainingColumn(), console=console) as bars:
        counts = Counter(job.experiment.name for job in missing)
        whole = bars.add_task("all", total=len(missing))
        tasks = {name: bars.add_task(name, total=count) for name, count in counts.items()}

        def finished(job: Job) -> None:
            bars.advance(tasks[job.experiment.name])
            bars.advance(whole)

        yield finished


def _lines(console: Console, missing: list[Job]) -> Callable[[Job], None]:
    start = last = monotonic()
    done, whole = 0.0, sum(job.seconds for job in missing)
    cells = 0

    def finished(job: Job) -> None:
        nonlocal last, done, cells
        done, cells, now = done + job.seconds, cells + 1, monotonic()
        if now - last >= _PAUSE or cells == len(missing):
            last = now
            left = (now - start) * (whole - done) / done
            console.print(f"{cells:,} of {len(missing):,} cells, about {duration(left)} left", highlight=False)

    return finished
