"""``muhat watch``: a reference in a file, a stream in a file or a pipe, and one line at the alarm."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from io import TextIOWrapper
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from muhat.files.command import check_page, write_page
from muhat.files.lines import NumberedLines, batch_size, batches, is_file
from muhat.files.opening import STANDARD_INPUT, standard_input
from muhat.monitor.drift_monitor import DriftMonitor
from muhat.progress import printable, printable_json, repeated
from muhat.tables.scales import ColumnScales
from muhat.types import Array

QUIET, DRIFTED, INTERRUPTED = 0, 1, 130
"""Exit codes."""


@dataclass(frozen=True)
class Watching:
    """How a stream is watched: see ``muhat watch --help``."""

    run_length: int = 10_000
    block_length: float = 1
    columns: Sequence[str] | None = None
    exclude: Sequence[str] | None = None
    delimiter: str | None = None
    raw: bool = False
    seed: int = 0
    as_json: bool = False
    html: str | None = None


@repeated()
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
        table = NumberedLines(text, _full_name(reference), how.delimiter)
        names, rows = _reference_rows(table, how)
    with _opened(stream) as text:
        code, monitor, units = _watch_stream(text, stream, how, names, rows, [n for n in table.names if n not in names])
    if how.html is not None:
        from muhat.files.watch_page import watch_page

        write_page(how.html, watch_page(monitor, (Path(reference).name, stream_name(stream)), units))
    return code


def _watch_stream(
    text: TextIO, stream: str, how: Watching, names: list[str], rows: Array, left_out: list[str]
) -> tuple[int, DriftMonitor, ColumnScales]:
    """Calibrate on the rows, then watch; a file is looked at before, a pipe after the calibration."""
    table = _checked_stream(text, stream, how, names) if is_file(text) else None
    units = ColumnScales.none(rows.shape[1]) if how.raw or not len(rows) else ColumnScales.of(rows)
    monitor = _calibrated(how, names, units.divide(rows))
    facts: dict[str, Any] = {"reference_rows": len(rows), "run_length": how.run_length, "columns": names}
    ready = f"{_full_name(stream)}: watched with {len(rows):,} reference rows; columns: {_some(names)}"
    out = f"; left out: {_some(left_out)}" if left_out else ""
    _say(how, "ready", ready + out, sys.stderr, **facts, left_out=left_out)
    table = table or _checked_stream(text, stream, how, names)
    try:
        code = _watch_rows(monitor, table, batch_size(text), units, how)
    except KeyboardInterrupt:
        seen = monitor.rows_seen_
        _say(how, "stopped", f"stopped after {seen:,} rows without drift", sys.stderr, rows=seen)
        code = INTERRUPTED
    return code, monitor, units


def _checked_stream(text: TextIO, stream: str, how: Watching, names: list[str]) -> NumberedLines:
    table = NumberedLines(text, _full_name(stream), how.delimiter)
    table.check_columns(names)
    if is_file(text):
        table.first_row()
    return table


def _some(names: Sequence[str], most: int = 20) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _calibrated(how: Watching, names: list[str], rows: Array) -> DriftMonitor:
    monitor = DriftMonitor(how.run_length, block_length=how.block_length, random_state=how.seed)
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        monitor.fit(rows)
    monitor.feature_names_in_ = np.array(names, dtype=object)
    for note in notes:
        _note(str(note.message))
    return monitor


def _full_name(path: str) -> str:
    return "standard input" if path == "-" else path


def stream_name(stream: str) -> str:
    """The name of a stream for people."""
    return "standard input" if stream == "-" else Path(stream).name


@contextmanager
def _opened(path: str) -> Iterator[TextIO]:
    if path == STANDARD_INPUT:
        text = standard_input()
        if isinstance(text, TextIOWrapper):
            text.reconfigure(encoding="utf-8-sig")  # as files are opened, whatever the locale says
        yield text
        return
    with Path(path).open(encoding="utf-8-sig", newline="") as file:
        yield file


def _reference_rows(table: NumberedLines, how: Watching) -> tuple[list[str], Array]:
    """Names of the columns that hold numbers, by all rows, and their rows without gaps."""
    table.first_row()
    cells = list(table.cells())
    names = table.columns_of_numbers(cells) if how.columns is None else list(how.columns)
    for pattern in how.exclude or ():
        if not any(fnmatchcase(name, pattern) for name in table.names):
            raise ValueError(f"--exclude {pattern}: {table.name} has no such column; it has {_some(table.names)}")
        names = [name for name in names if not fnmatchcase(name, pattern)]
    if not names:
        raise ValueError(f"{table.name}: no columns are left to watch; exclude fewer")
    found = [row.numbers for row in table.rows(names, cells)]
    passed = [row for row, numbers in zip(cells, found, strict=True) if numbers is None]
    if passed:
        gaps = {name: sum(row.numbers is None for row in table.rows([name], passed)) for name in names}
        worst = max(names, key=lambda name: gaps[name])
        _note(
            f"{table.name}: {len(passed):,} of {len(cells):,} rows have gaps and are passed over, {gaps[worst]:,} of "
            f"them in {worst!r}, which --exclude would leave out"
        )
    rows = [numbers for numbers in found if numbers is not None]
    return names, np.array(rows).reshape(len(rows), len(names))


def _watch_rows(monitor: DriftMonitor, table: NumberedLines, size: int, units: ColumnScales, how: Watching) -> int:
    gaps = 0
    names: list[str] = list(monitor.feature_names_in_)
    for batch in batches(table.rows(names), size):
        whole = [row for row in batch if row.numbers is not None]
        if len(whole) < len(batch) and gaps == 0:
            _note(f"{table.name} has rows with gaps, which are passed over")
        gaps += len(batch) - len(whole)
        before = monitor.rows_seen_
        if whole and monitor.update(units.divide(np.array([row.numbers for row in whole]))):
            _alarm(monitor, whole[monitor.rows_seen_ - before - 1].line, table.name, how)
            return DRIFTED
    seen = monitor.rows_seen_
    if not seen:
        raise ValueError(f"{table.name} has no whole rows, so that nothing was watched; pass a table with rows")
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


def _note(text: str) -> None:
    print(printable(f"note: {text}"), file=sys.stderr, flush=True)


def _say(how: Watching, event: str, text: str, where: TextIO, **facts: Any) -> None:
    """A line of text, or of JSON on standard output."""
    if how.as_json:
        print(printable_json({"event": event, **facts}), flush=True)
    else:
        print(printable(text), file=where, flush=True)
