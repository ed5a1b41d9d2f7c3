"""Runner: cells over processes or a Dask cluster, each stored in a file as soon as it is finished."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from io import FileIO
from operator import methodcaller
from pathlib import Path
from typing import Any, NamedTuple, cast
from zlib import crc32

from joblib import Parallel, delayed, parallel_config
from threadpoolctl import threadpool_limits

from muhat.paper.experiment import Experiment, Plan, Row, RunCell, Setting, cell_key

FILE = "cells.jsonl"

if sys.platform != "win32":  # there, two runs in one folder are not told apart
    import fcntl


class StoreError(ValueError):
    """The folder of the results cannot be used as it is."""


class CellStore:
    """Rows of finished cells in ``folder/cells.jsonl``, by the key of the cell. See :func:`open_store`.

    A line is a checksum, a space and JSON. It is appended by one write, so that all lines before are kept, whatever
    ends the run. Lines that are cut off or damaged are dropped when the file is read, as are cells of another version
    of the library: ``dropped`` and ``outdated`` count them, and their cells run again.
    """

    def __init__(self, file: FileIO, path: Path, version: str):
        self.path = path
        self.version = version
        self.rows: dict[str, list[Row]] = {}
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
            cell = _parsed(line)
            key, rows, version = cell_key(cell["experiment"], cell["setting"]), cell["rows"], cell["version"]
            if version == self.version:
                self.rows[key] = [dict(row) for row in rows]
            else:
                self.outdated += 1
        except (ValueError, LookupError, TypeError, RecursionError):
            self.dropped += 1

    def add(self, experiment: Experiment, setting: Setting, rows: list[Row]) -> None:
        """Store a finished cell."""
        line = _line({"experiment": experiment.name, "setting": setting, "rows": rows, "version": self.version})
        end = self._file.seek(0, os.SEEK_END)
        try:
            if self._file.write(line) < len(line):
                raise OSError("only a part of the line was written")
        except OSError as error:
            self._file.truncate(end)
            reason = error.strerror or error
            raise StoreError(
                f"cannot write to {self.path} ({reason}); all cells finished before are kept: "
                "make room and run the same command, or choose another folder with --out"
            ) from error
        self.rows[cell_key(experiment.name, setting)] = rows

    def collected(self, experiment: Experiment, plan: Plan) -> list[Row] | None:
        """All rows of a finished experiment, in the order of its cells; None where a cell is missing."""
        keys = [cell_key(experiment.name, setting) for setting in experiment.cells(plan)]
        return [row for key in keys for row in self.rows[key]] if self.rows.keys() >= set(keys) else None


def _line(cell: dict[str, Any]) -> bytes:
    text = json.dumps(cell, separators=(",", ":"), allow_nan=False).encode()
    return b"%08x %s\n" % (crc32(text), text)


def _parsed(line: bytes) -> dict[str, Any]:
    checksum, _, text = line.partition(b" ")
    if checksum != b"%08x" % crc32(text):
        raise ValueError("the checksum is another")
    return cast(dict[str, Any], json.loads(text))


@contextmanager
def open_store(folder: str | os.PathLike[str], version: str) -> Iterator[CellStore]:
    """The store of a folder, which no other run may use until it is closed."""
    path = Path(folder) / FILE
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a+b", buffering=0)
    except OSError as error:
        reason = error.strerror or error
        raise StoreError(f"cannot write to {path} ({reason}); choose another folder with --out") from error
    with file:
        if sys.platform != "win32":
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                remedy = "wait for it, or choose another folder with --out"
                raise StoreError(f"{path.parent} is in use by another run; {remedy}") from error
        yield CellStore(file, path, version)


class Cell(NamedTuple):
    """A cell to run, and the folder of its data."""

    experiment: Experiment
    setting: Setting
    data: str | None = None

    @property
    def seconds(self) -> float:
        """About how long it takes on one core."""
        return self.experiment.seconds(self.setting)


def missing_cells(experiments: list[Experiment], plan: Plan, store: CellStore, data: str | None = None) -> list[Cell]:
    """Cells that the store lacks, the longest first, so that no worker ends long after the others."""
    cells = (Cell(experiment, setting, data) for experiment in experiments for setting in experiment.cells(plan))
    missing = [cell for cell in cells if cell_key(cell.experiment.name, cell.setting) not in store.rows]
    return sorted(missing, key=lambda cell: -cell.seconds)


def run(cells: list[Cell], store: CellStore, workers: int = 1, dask: str | None = None) -> Iterator[Cell]:
    """Run cells in this order, store each when it is finished, and yield it."""
    with _parallel(workers, dask) as parallel:
        tasks = (
            delayed(_perform)(number, cell.experiment.run, cell.setting, cell.data) for number, cell in enumerate(cells)
        )
        results: Generator[tuple[int, list[Row]], None, None] = parallel(tasks)
        with closing(results):
            for number, rows in results:
                store.add(cells[number].experiment, cells[number].setting, rows)
                yield cells[number]


@contextmanager
def _parallel(workers: int, dask: str | None) -> Iterator[Parallel]:
    """joblib over processes, or over the cluster of a Dask scheduler; results come as they finish."""
    if dask is None:
        yield Parallel(workers, return_as="generator_unordered")
        return
    from distributed import Client

    with Client(dask), parallel_config("dask"):
        yield Parallel(-1, return_as="generator_unordered")


def _perform(number: int, run_cell: RunCell, setting: Setting, data: str | None) -> tuple[int, list[Row]]:
    """Rows of a cell, on one thread, so that sums do not depend on how many cells run at a time."""
    with threadpool_limits(limits=1):
        rows = run_cell(setting, data)
    return number, json.loads(json.dumps(rows, default=methodcaller("item")))  # as they will be read again
