"""``muhat watch``: a reference in a file, a stream in a file or a pipe, and one line at the alarm."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from muhat.files.command import check_page, write_page
from muhat.files.lines import NumberedLines, batch_size, batches
from muhat.monitor.drift_monitor import DriftMonitor
from muhat.types import Array

QUIET, DRIFTED, INTERRUPTED = 0, 1, 130
"""Exit codes."""


@dataclass(frozen=True)
class Watching:
    """How a stream is watched: see ``muhat watch --help``."""

    run_length: int = 10_000
    block_length: float = 1
    columns: Sequence[str] | None = None
    delimiter: str | None = None
    raw: bool = False
    seed: int = 0
    as_json: bool = False
    html: str | None = None


def watch(reference: str, stream: str, how: Watching) -> int:
    """Watch a stream until it drifts or ends; 1 at an alarm, 0 at the end without one.

    Parameters
    ----------
    reference : str
        Path of a table.
    stream : str
        Path of a table, or "-" for standard input.
    how : Watching
        The options of the command.
    """
    check_page(how.html, [reference, stream])
    with _opened(reference) as text:
        names, rows = _reference_rows(NumberedLines(text, reference, how.delimiter), how.columns)
    centre, unit = _units(rows, how.raw)
    monitor = DriftMonitor(how.run_length, block_length=how.block_length, random_state=how.seed)
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        monitor.fit((rows - centre) / unit)
    monitor.feature_names_in_ = np.array(names, dtype=object)
    for note in notes:
        print(f"note: {note.message}", file=sys.stderr)
    facts: dict[str, Any] = {"reference_rows": len(rows), "run_length": how.run_length, "columns": names}
    _say(how, "ready", f"{stream}: watched with {len(rows):,} reference rows", sys.stderr, **facts)
    with _opened(stream) as text:
        try:
            code = _watch_rows(monitor, NumberedLines(text, stream, how.delimiter), batch_size(text), centre, unit, how)
        except KeyboardInterrupt:
            seen = monitor.rows_seen_
            _say(how, "stopped", f"stopped after {seen:,} rows without drift", sys.stderr, rows=seen)
            code = INTERRUPTED
    if how.html is not None:
        from muhat.files.watch_page import watch_page

        write_page(how.html, watch_page(monitor, (Path(reference).name, stream_name(stream)), centre, unit))
    return code


def stream_name(stream: str) -> str:
    """The name of a stream for people."""
    return "standard input" if stream == "-" else Path(stream).name


@contextmanager
def _opened(path: str) -> Iterator[TextIO]:
    if path == "-":
        yield sys.stdin
        return
    with Path(path).open(encoding="utf-8-sig", newline="") as file:
        yield file


def _reference_rows(table: NumberedLines, columns: Sequence[str] | None) -> tuple[list[str], Array]:
    """Names of the columns that hold numbers, and their rows without gaps."""
    names = table.columns_of_numbers() if columns is None else list(columns)
    rows = [row.numbers for row in table.rows(names) if row.numbers is not None]
    return names, np.array(rows).reshape(len(rows), len(names))


def _units(rows: Array, raw: bool) -> tuple[Array, Array]:
    """Mean and standard deviation of each column, or 0 and 1; a constant column keeps its unit."""
    if raw or not len(rows):
        return np.zeros(rows.shape[1]), np.ones(rows.shape[1])
    spread = rows.std(axis=0)
    return rows.mean(axis=0), np.where(spread > 0, spread, 1.0)


def _watch_rows(
    monitor: DriftMonitor, table: NumberedLines, size: int, centre: Array, unit: Array, how: Watching
) -> int:
    gaps = 0
    names: list[str] = list(monitor.feature_names_in_)
    for batch in batches(table.rows(names), size):
        whole = [row for row in batch if row.numbers is not None]
        if len(whole) < len(batch) and gaps == 0:
            print(f"note: {table.name} has rows with gaps, which are passed over", file=sys.stderr)
        gaps += len(batch) - len(whole)
        before = monitor.rows_seen_
        if whole and monitor.update((np.array([row.numbers for row in whole]) - centre) / unit):
            _alarm(monitor, whole[monitor.rows_seen_ - before - 1].line, table.name, how)
            return DRIFTED
    seen = monitor.rows_seen_
    text = f"{table.name}: no drift in {seen:,} rows{f', {gaps:,} rows with gaps passed over' if gaps else ''}"
    _say(how, "end", text, sys.stdout, rows=seen, rows_with_gaps=gaps)
    return QUIET


def _alarm(monitor: DriftMonitor, line: int, name: str, how: Watching) -> None:
    found = monitor.result_
    assert found is not None, "an alarm has a result"
    columns = ", ".join(f"{column} ({number:.1f})" for column, number in found.columns[:5])
    rows = "this row is" if found.window == 1 else f"the last {found.window:,} rows, since row {found.since:,}, are"
    text = (
        f"{name}: drift at row {found.row:,} (line {line:,}); {rows} unlike the reference (score {found.score:.1f}, "
        f"threshold {found.threshold:.1f}); columns that changed most: {columns}"
    )
    facts: dict[str, Any] = {name: getattr(found, name) for name in ("row", "since", "window", "score", "threshold")}
    changes = [{"name": column, "change": number} for column, number in found.columns]
    _say(how, "drift", text, sys.stdout, line=line, **facts, columns=changes)


def _say(how: Watching, event: str, text: str, where: TextIO, **facts: Any) -> None:
    """A line of text, or of JSON on standard output."""
    if how.as_json:
        print(json.dumps({"event": event, **facts}, ensure_ascii=False, allow_nan=False), flush=True)
    else:
        print(text, file=where, flush=True)
