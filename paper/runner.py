"""Runner of the experiments: cells over processes, each stored in a file when it is finished."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from datetime import date
from io import FileIO
from operator import methodcaller
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, NamedTuple

from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from paper.experiment import Experiment, Plan, Row, RunCell, Setting, cell_key

FILE = "cells.jsonl"

if sys.platform != "win32":  # there, two runs in one folder are not told apart
    import fcntl


class CellStore:
    """Rows of finished cells in ``folder/cells.jsonl``, by the key of the cell. See :func:`open_store`.

    A line of JSON is appended by one write, so that all lines before are kept, whatever ends the run. Lines that are
    cut off or damaged are dropped when the file is read, as are cells of another version of the library: ``dropped``
    and ``outdated`` count them, and their cells run again. ``costs`` has seconds of CPU and the date of each cell.
    """

    def __init__(self, file: FileIO, path: Path, version: str):
        self.path, self.version = path, version
        self.rows: dict[str, list[Row]] = {}
        self.costs: dict[str, tuple[float, str]] = {}
        self.dropped = self.outdated = 0
        self._file = file
        file.seek(0)
        content = file.readall()
        for line in content.splitlines():
            self._read(line)
        if content and not content.endswith(b"\n"):
            file.write(b"\n")

    def _read(self, line: bytes) -> None:
        try:
            cell = json.loads(line)
            if cell["version"] != self.version:
                self.outdated += 1
                return
            rows, cost = [dict(row) for row in cell["rows"]], (float(cell["seconds"]), str(cell["date"]))
            key = cell_key(cell["experiment"], cell["setting"])
            self.rows[key], self.costs[key] = rows, cost
        except (ValueError, LookupError, TypeError, RecursionError):
            self.dropped += 1

    def add(self, experiment: Experiment, setting: Setting, rows: list[Row], seconds: float) -> None:
        """Store a finished cell."""
        about = {"experiment": experiment.name, "setting": setting, "version": self.version}
        cost = round(seconds, 3), date.today().isoformat()
        cell = {**about, "seconds": cost[0], "date": cost[1], "rows": rows}
        line = json.dumps(cell, separators=(",", ":"), allow_nan=False).encode() + b"\n"
        self._file.write(line)
        key = cell_key(experiment.name, setting)
        self.rows[key], self.costs[key] = rows, cost

    def collected(self, experiment: Experiment, plan: Plan) -> list[Row] | None:
        """All rows of a finished experiment, in the order of its cells; None where a cell is missing."""
        keys = [cell_key(experiment.name, setting) for setting in experiment.cells(plan)]
        return [row for key in keys for row in self.rows[key]] if self.rows.keys() >= set(keys) else None

    def cost(self, experiment: Experiment, plan: Plan) -> tuple[float, str]:
        """Seconds of CPU that a finished experiment took, and the date of its last cell."""
        costs = [self.costs[cell_key(experiment.name, setting)] for setting in experiment.cells(plan)]
        return sum(seconds for seconds, _ in costs), max(day for _, day in costs)


@contextmanager
def open_store(folder: str | os.PathLike[str], version: str) -> Iterator[CellStore]:
    """The store of a folder, which no other run may use until it is closed."""
    path = Path(folder) / FILE
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a+b", buffering=0)
    except OSError as error:
        reason = error.strerror or error
        raise ValueError(f"cannot write to {path} ({reason}); choose another folder with --out") from error
    with file:
        if sys.platform != "win32":
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                remedy = "wait for it, or choose another folder with --out"
                raise ValueError(f"{path.parent} is in use by another run; {remedy}") from error
        yield CellStore(file, path, version)


class Cell(NamedTuple):
    """A cell to run, and the folder of its data."""

    experiment: Experiment
    setting: Setting
    data: str | None = None

    @property
    def seconds(self) -> float:
        """About how long it takes on one idle core."""
        return self.experiment.seconds(self.setting)


def missing_cells(experiments: list[Experiment], plan: Plan, store: CellStore, data: str | None = None) -> list[Cell]:
    """Cells that the store lacks, the longest first, so that no worker ends long after the others."""
    cells = (Cell(experiment, setting, data) for experiment in experiments for setting in experiment.cells(plan))
    missing = [cell for cell in cells if cell_key(cell.experiment.name, cell.setting) not in store.rows]
    return sorted(missing, key=lambda cell: -cell.seconds)


def run(cells: list[Cell], store: CellStore, workers: int = 1) -> Iterator[tuple[Cell, float]]:
    """Run cells in this order, store each when it is finished, and yield it with its seconds by the clock."""
    tasks = (
        delayed(_perform)(number, cell.experiment.run, cell.setting, cell.data) for number, cell in enumerate(cells)
    )
    results: Generator[tuple[int, list[Row], float, float], None, None]
    results = Parallel(workers, return_as="generator_unordered")(tasks)
    with closing(results):
        for number, rows, seconds, elapsed in results:
            store.add(cells[number].experiment, cells[number].setting, rows, seconds)
            yield cells[number], elapsed


def _perform(number: int, run_cell: RunCell, setting: Setting, data: str | None) -> tuple[int, Any, float, float]:
    """Rows of a cell, seconds of CPU and by the clock; on one thread, so that sums do not depend on the other cells."""
    before, started = process_time(), perf_counter()
    with threadpool_limits(limits=1):
        rows = run_cell(setting, data)
    plain = json.loads(json.dumps(rows, default=methodcaller("item")))  # as they will be read again
    return number, plain, process_time() - before, perf_counter() - started
