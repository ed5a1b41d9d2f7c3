"""Finished cells in one file: appended a line each, so that whatever ends the run, the lines before are kept."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from zlib import crc32

from muhat.reproduce.experiment import Row, Setting, cell_key

FILE = "cells.jsonl"

if sys.platform != "win32":  # there, two runs in one folder are not told apart
    import fcntl


class StoreError(ValueError):
    """The folder of the results cannot be used as it is."""


class Store:
    """Rows of finished cells in ``folder/cells.jsonl``, known by experiment and setting.

    A line is a checksum, a space and JSON. It is written by one call, and a line that is cut off or damaged is
    dropped when the file is read: ``dropped`` counts them, and their cells run again. So do cells of another
    version of the library.
    """

    def __init__(self, folder: str | os.PathLike[str], version: str):
        self.path = Path(folder) / FILE
        self.version = version
        self.dropped = 0
        self.outdated = 0
        self._rows: dict[str, list[Row]] = {}
        self._seconds: dict[str, float] = {}
        self._file = self._open()
        try:
            self._read()
        except BaseException:
            os.close(self._file)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._file)

    def __contains__(self, key: str) -> bool:
        return key in self._rows

    def rows(self, experiment: str, setting: Setting) -> list[Row]:
        """Rows of a finished cell."""
        return self._rows[cell_key(experiment, setting)]

    def seconds(self, experiment: str, setting: Setting) -> float | None:
        """How long a cell took, if it is finished."""
        return self._seconds.get(cell_key(experiment, setting))

    def add(self, experiment: str, setting: Setting, rows: list[Row], seconds: float) -> None:
        """Store a finished cell, in one write."""
        content = {
            "experiment": experiment,
            "setting": setting,
            "rows": rows,
            "seconds": seconds,
            "version": self.version,
        }
        line = _line(content)
        start = os.lseek(self._file, 0, os.SEEK_END)
        try:
            if os.write(self._file, line) < len(line):
                raise OSError("only a part of the line was written")
        except OSError as error:
            os.ftruncate(self._file, start)
            reason = error.strerror or error
            raise StoreError(
                f"cannot write to {self.path} ({reason}); all cells finished before are kept: "
                "make room and run the same command, or choose another folder with --out"
            ) from error
        self._keep(content)

    def _open(self) -> int:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        except OSError as error:
            reason = error.strerror or error
            raise StoreError(f"cannot write to {self.path} ({reason}); choose another folder with --out") from error
        if sys.platform != "win32":
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                os.close(file)
                remedy = "wait for it, or choose another folder with --out"
                raise StoreError(f"{self.path.parent} is in use by another run; {remedy}") from error
        return file

    def _read(self) -> None:
        content = self.path.read_bytes()
        for line in content.splitlines():
            cell = _parsed(line)
            if cell is None:
                self.dropped += 1
            elif cell["version"] != self.version:
                self.outdated += 1
            else:
                self._keep(cell)
        if content and not content.endswith(b"\n"):
            os.write(self._file, b"\n")

    def _keep(self, cell: dict[str, Any]) -> None:
        key = cell_key(cell["experiment"], cell["setting"])
        self._rows[key], self._seconds[key] = cell["rows"], cell["seconds"]


def _line(content: dict[str, Any]) -> bytes:
    text = json.dumps(content, separators=(",", ":"), allow_nan=False).encode()
    return b"%08x %s\n" % (crc32(text), text)


def _parsed(line: bytes) -> dict[str, Any] | None:
    checksum, _, text = line.partition(b" ")
    if not text or checksum != b"%08x" % crc32(text):
        return None
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return content if _is_cell(content) else None


def _is_cell(content: Any) -> bool:
    """Whether a line has all that ``Store.add`` writes: its checksum may be right and its content not ours."""
    kinds = {"experiment": str, "setting": dict, "rows": list, "seconds": int | float, "version": str}
    if not isinstance(content, dict) or not all(isinstance(content.get(name), kind) for name, kind in kinds.items()):
        return False
    return all(isinstance(row, dict) for row in content["rows"])
