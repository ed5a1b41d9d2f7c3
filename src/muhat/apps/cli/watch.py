"""``muhat watch``: a reference in a file, a stream in a file or a pipe, and one line at the alarm."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from io import TextIOWrapper
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np
from scipy import stats

from muhat._support.progress import printable, printable_json, progress, repeated
from muhat._support.types import Array
from muhat.apps.cli.options import as_options, check_target, write_text
from muhat.apps.cli.watch_page import watch_page
from muhat.apps.compare.column_counts import are_sentences
from muhat.apps.compare.sources import chosen_names, open_sources, preparation, prepared
from muhat.apps.compare.text_report import listed
from muhat.apps.files.opening import STANDARD_INPUT, standard_input
from muhat.apps.files.streams import StreamReader
from muhat.apps.files.tables import Reading, Source
from muhat.apps.monitor.drift_monitor import DriftMonitor
from muhat.tables.frames import KIND_IN_WORDS, Column, Kind, Table

QUIET, DRIFTED, INTERRUPTED = 0, 1, 130
"""Exit codes."""

INCREASING = 0.99
"""A column whose rank correlation with the numbers of the rows exceeds this is a time or a counter."""

_BATCH = 512  # rows of a file that are taken together

Batches = Iterator[tuple[Table, list[int]]]


class _Watched(NamedTuple):
    """A calibrated monitor, and the rows of its reference with the names of the columns that were left out.

    A monitor that was saved has no rows.
    """

    monitor: DriftMonitor
    reference: Table | None = None
    left_out: Sequence[str] = ()

    @property
    def kinds(self) -> dict[str, Kind]:
        """The columns that are watched, with their kinds."""
        return {column.name: column.kind for column in self.monitor.encoder_.columns}


@repeated()
def watch(options: Any) -> int:
    """Watch a stream until it drifts or ends; 1 at an alarm, 0 at the end without one. See ``muhat watch --help``."""
    check_target("html", options.html, [options.reference, options.stream])
    check_target("save", options.save, [options.reference, options.stream])
    reading = Reading(options.header, options.delimiter, options.missing)
    watched = _saved(options) if options.reference.endswith(".npz") else _calibrated(options, reading)
    if options.save is not None:
        watched.monitor.save(options.save)
    name = "standard input" if options.stream == STANDARD_INPUT else options.stream
    recent: list[Table] = []
    with ExitStack() as stack:
        pipe = _pipe(options.stream, stack)
        batches = _from_file(options, reading, watched.kinds, stack) if pipe is None else None
        rows = options.reference if watched.reference is None else f"{watched.reference.n_rows:,} reference rows"
        out = f"; left out: {listed(watched.left_out, 20, str)}" if watched.left_out else ""
        facts = {
            "run_length": watched.monitor.run_length,
            "columns": list(watched.kinds),
            "left_out": [*watched.left_out],
        }
        _say(
            options,
            "ready",
            f"{name}: watched with {rows}; columns: {listed(list(watched.kinds), 20, str)}{out}",
            sys.stderr,
            **facts,
        )
        if batches is None:
            assert pipe is not None
            size = 1 if options.every is None else min(_BATCH, options.every)
            json_lines = None if options.format is None else options.format == "jsonl"
            batches = StreamReader(pipe, name, watched.kinds, reading, json_lines).tables(size)
        try:
            code = _watch_rows(watched.monitor, batches, name, options, recent)
        except KeyboardInterrupt:
            seen = watched.monitor.rows_seen_
            _say(options, "stopped", f"{name}: stopped after {seen:,} rows without drift", sys.stderr, rows=seen)
            code = INTERRUPTED
    if watched.reference is not None:
        reference = watched.reference
        names = Path(options.reference).name, "standard input" if pipe is not None else Path(options.stream).name
        write_text("html", options.html, lambda: watch_page(watched.monitor, names, reference, recent))
    return code


# --------------------------------------------------------------------------------------------------------- reference


def _saved(options: Any) -> _Watched:
    """A monitor that was saved, at the start of a stream."""
    if options.html is not None:
        raise ValueError("--html draws the rows of the reference, and a saved one has none; pass the file of its rows")
    return _Watched(DriftMonitor.load(options.reference).reset())


def _calibrated(options: Any, reading: Reading) -> _Watched:
    """A monitor that is calibrated on the rows of the reference."""
    with open_sources((options.reference,), None, reading) as (source,), progress() as say:
        say(f"{source.name}: reading")
        table, left_out = _reference(source, options)
        say(f"{source.name}: calibrating on {table.n_rows:,} rows")
        monitor = DriftMonitor(
            options.run_length, block_length=options.block_length or "auto", random_state=options.seed
        )
        with warnings.catch_warnings(record=True) as notes:
            warnings.simplefilter("always")
            monitor.fit(table)
    for note in notes:
        _note(as_options(str(note.message)))
    return _Watched(monitor, table, left_out)


def _reference(source: Source, options: Any) -> tuple[Table, list[str]]:
    """The columns that can be watched, and the names of those that were left out."""
    names = chosen_names([source], options.columns, options.exclude)
    prepare = preparation([source], options.categorical, options.missing)
    columns, left_out = [], [name for name in source.names if name not in names]
    for name in names:
        column = prepare(source.column(name))
        reason = None if options.columns is not None else _why_not(column)
        if reason is None:
            columns.append(column)
        else:
            left_out.append(name)
            _note(f"{source.name}: column {name!r} is left out, because {reason}; --columns can name it")
    left_out += [column.name for column in source.left_out]
    if not columns:
        raise ValueError(f"{source.name}: no columns are left to watch; exclude fewer")
    return Table(source.name, source.n_rows, tuple(columns)), left_out


def _why_not(column: Column) -> str | None:
    """Why a column says nothing about drift: later rows of a stream differ in it by themselves."""
    if column.kind == "missing":
        return "all its values are missing"
    known = column.values[~column.missing]
    if column.kind in ("date", "number") and len(known) > 20 and _increase(known) > INCREASING:
        return "it increases with the rows"
    if column.kind == "category" and are_sentences(len(column.levels), len(known)):
        return f"it holds {len(column.levels):,} different texts"
    return None


def _increase(values: Array) -> float:
    """Rank correlation with the number of the row: times of messages tie, and some come late."""
    return float(stats.spearmanr(np.arange(len(values)), values).statistic) if np.ptp(values) > 0 else 0.0


# ------------------------------------------------------------------------------------------------------------ stream


def _pipe(stream: str, stack: ExitStack) -> TextIO | None:
    """The stream as text that may be long in coming, None where it is a file."""
    if stream == STANDARD_INPUT:
        text = standard_input()
        if isinstance(text, TextIOWrapper):
            text.reconfigure(encoding="utf-8-sig")  # as files are opened, whatever the locale says
        return text
    path = Path(stream)
    if not path.exists() or path.is_file() or path.is_dir():
        return None
    return stack.enter_context(path.open(encoding="utf-8-sig", newline=""))


def _from_file(options: Any, reading: Reading, kinds: dict[str, Kind], stack: ExitStack) -> Batches:
    """Rows of a file in batches, with the columns and kinds of the reference."""
    (source,) = stack.enter_context(open_sources((options.stream,), None, reading))
    if not source.named and len(source.names) == len(kinds):
        own = dict(zip(kinds, source.names, strict=True))
    else:
        own = {name: name for name in kinds}
    lost = next((name for name in own.values() if name not in source.names), None)
    if lost is not None:
        raise ValueError(
            f"{source.name} has no column {lost!r}, which the reference has; it has {listed(source.names, 20, str)}"
        )
    columns = [
        _of_kind(prepared(source.column(own[name]), options.missing, kind == "category"), name, kind, source)
        for name, kind in kinds.items()
    ]
    table = Table(source.name, source.n_rows, tuple(columns))
    size = min(_BATCH, options.every or _BATCH)
    starts = range(0, table.n_rows, size)
    return (
        (table.take(np.arange(s, min(s + size, table.n_rows))), [source.first + i for i in range(s, s + size)])
        for s in starts
    )


def _of_kind(column: Column, name: str, kind: Kind, source: Source) -> Column:
    held = {"number" if each == "boolean" else each for each in (kind, column.kind)} - {"missing"}
    if len(held) > 1:
        raise ValueError(
            f"{source.name}: column {name!r} holds {KIND_IN_WORDS[column.kind]}, and {KIND_IN_WORDS[kind]} in the "
            "reference; correct it, declare texts as missing (--missing), or leave it out (--exclude)"
        )
    return column._replace(name=name)


def _watch_rows(monitor: DriftMonitor, batches: Batches, name: str, options: Any, recent: list[Table]) -> int:
    next_score = options.every
    for table, lines in batches:
        recent[:] = [*recent, table][-100:]
        before = monitor.rows_seen_
        if monitor.update(table):
            taken = monitor.rows_seen_ - before
            recent[-1] = table.take(np.arange(taken))
            _alarm(monitor, lines[taken - 1], name, options)
            return DRIFTED
        if next_score is not None and monitor.rows_seen_ >= next_score:
            _score(monitor)
            next_score = monitor.rows_seen_ + options.every
    seen = monitor.rows_seen_
    if not seen:
        raise ValueError(f"{name} has no rows, so that nothing was watched; pass a table with rows")
    _say(options, "end", f"{name}: no drift in {seen:,} rows", sys.stdout, rows=seen)
    return QUIET


def _score(monitor: DriftMonitor) -> None:
    """A line of JSON with the current score, for programs that collect it."""
    rows, scores, thresholds = monitor.recent_scores()
    facts = {"rows": int(rows[-1]), "score": float(scores[-1]), "threshold": float(thresholds[-1])}
    print(printable_json({"event": "score", **facts}), flush=True)


def _alarm(monitor: DriftMonitor, line: int, name: str, options: Any) -> None:
    found = monitor.result_
    assert found is not None, "an alarm has a result"
    rows = f"row {found.row:,} differs" if found.window == 1 else f"rows {found.since:,} to {found.row:,} differ"
    text = (
        f"{name}: drift at row {found.row:,} (line {line:,}): {rows} from the reference (score {found.score:.1f}, "
        f"threshold {found.threshold:.1f}); most changed: {found.most_changed(5)}"
    )
    facts: dict[str, Any] = {name: getattr(found, name) for name in ("row", "since", "window", "score", "threshold")}
    changes = [{"name": column, "change": size} for column, size in found.columns]
    _say(options, "drift", text, sys.stdout, line=line, **facts, columns=changes, missing=list(found.missing))


def _note(text: str) -> None:
    print(printable(f"note: {text}"), file=sys.stderr, flush=True)


def _say(options: Any, event: str, text: str, where: TextIO, **facts: Any) -> None:
    """A line of text, or of JSON on standard output."""
    if options.json:
        print(printable_json({"event": event, **facts}), flush=True)
    else:
        print(printable(text), file=where, flush=True)
