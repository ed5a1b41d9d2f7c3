"""The two tables of a comparison: data frames, arrays or files, whose columns are taken one at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muhat._support.progress import printable
from muhat.apps.compare.text_report import listed
from muhat.apps.files.database import open_database
from muhat.apps.files.opening import STANDARD_INPUT, read_table
from muhat.apps.files.tables import Reading, Source, concatenated, number
from muhat.apps.files.text_format import hint_for
from muhat.apps.files.told import told
from muhat.tables.encoder import as_categories
from muhat.tables.frames import Column, LeftOut, Table, as_table, row_labels

_HINTED = 500  # different texts of a column that are looked at for a hint


def is_path(table: Any) -> bool:
    """Whether a table is given by the path of a file."""
    return isinstance(table, str | os.PathLike)


@contextmanager
def open_sources(tables: Sequence[Any], names: Sequence[str] | None, reading: Reading) -> Iterator[list[Source]]:
    """The tables, in an engine that is closed at the end where some of them are files."""
    paths = [os.fspath(table) for table in tables if is_path(table)]
    if paths.count(STANDARD_INPUT) > 1:
        raise ValueError("- stands for the standard input, which can be read once; name a file for the other table")
    chosen = _table_names(tables) if names is None else list(map(str, names))
    if isinstance(names, str) or len(chosen) != len(tables) or len(set(chosen)) < len(chosen):
        raise ValueError(f"names={names!r} must be {len(tables)} different names, one for each table")
    with ExitStack() as stack:
        database = stack.enter_context(open_database()) if paths else None
        sources = []
        for table, name in zip(tables, chosen, strict=True):
            if database is not None and is_path(table):
                sources.append(replace(read_table(os.fspath(table), database, reading), name=name))
            else:
                sources.append(_frame_source(table, name))
        yield _matched_by_position(sources)


def _table_names(tables: Sequence[Any]) -> list[str]:
    """Names of files without their folders, unless two are the same, and "a" and "b" for anything else."""
    paths = [os.fspath(table) if is_path(table) else letter for table, letter in zip(tables, "ab", strict=False)]
    shown = ["standard input" if path == STANDARD_INPUT else printable(path) for path in paths]
    short = [Path(path).name for path in shown]
    return short if len(set(short)) == len(short) else shown if len(set(shown)) == len(shown) else ["first", "second"]


def _frame_source(X: Any, name: str) -> Source:
    table = as_table(X, name, infinite="missing")

    def label(own: str) -> str:
        return own if table.named or not own.isdecimal() else f"column {own}"

    def fetch(own: str, rows: slice) -> Column:
        return columns[own]._replace(values=columns[own].values[rows])

    columns = {label(column.name): column._replace(name=label(column.name)) for column in table.columns}
    texts = [column for column in columns.values() if column.kind == "category"]
    hints = {column.name: hint for column in texts if (hint := hint_for(column.levels[:_HINTED]))}
    names, index = tuple(columns), row_labels(X)
    return Source(name, table.n_rows, names, table.named, fetch, table.left_out, first=0, hints=hints, index=index)


def _matched_by_position(sources: list[Source]) -> list[Source]:
    """Tables without names have their columns called alike."""
    first, second = sorted(sources, key=lambda source: not source.named)
    if first.named and not second.named:
        start = f"{first.name} names its columns and {second.name} does not; give both names or neither (say "
        end = " where the first row of a file was misread)"
        raise ValueError(told(lambda write: f"{start}{write('header', True)} or {write('header', False)}{end}"))
    if first.named or first.names == second.names:
        return sources
    if len(first.names) != len(second.names):
        counts = f"{len(first.names)} and {len(second.names)} columns"
        raise ValueError(f"{first.name} and {second.name} have {counts}; without names they cannot be matched")
    own = dict(zip(first.names, second.names, strict=True))

    def fetch(name: str, rows: slice) -> Column:
        return second.column(own[name], rows)._replace(name=name)

    return [first, replace(second, names=first.names, fetch=fetch, flaws={})]


# ------------------------------------------------------------------------------------------------------------- names


def matching_names(sources: Sequence[Source], patterns: Sequence[Any] | None, parameter: str) -> list[str]:
    """The columns that names or patterns such as ``price_*`` choose, in the order of the patterns.

    All tables must have them, except to leave them out.
    """
    chosen: dict[str, None] = {}
    for pattern in map(str, [patterns] if isinstance(patterns, str) else patterns or ()):
        wanted = f"column {pattern}" if pattern.isdecimal() and not sources[0].named else pattern
        fitting = [_fitting_names(source, wanted) for source in sources]
        if not (any if parameter == "exclude" else all)(fitting):
            lost = _no_such_column(sources[fitting.index([])], wanted)
            raise ValueError(told(lambda write: f"{write(parameter, pattern)}: {lost}"))  # noqa: B023 - called now
        chosen |= dict.fromkeys(name for names in fitting for name in names)
    return list(chosen)


def _fitting_names(source: Source, wanted: str) -> list[str]:
    names = _all_names(source)
    plain = wanted if wanted in names else printable(wanted)  # as the names of files are
    return [plain] if plain in names else [name for name in names if fnmatchcase(name, wanted)]


def _no_such_column(source: Source, wanted: str) -> str:
    names = _all_names(source)
    near = get_close_matches(wanted, names, 1)
    maybe = f" (did you mean {near[0]!r}?)" if near else ""
    return f"{source.name} has no such column{maybe}; it has {listed(names)}"


def _all_names(source: Source) -> list[str]:
    return [*source.names, *(column.name for column in source.left_out)]


def chosen_names(sources: Sequence[Source], columns: Sequence[Any] | None, exclude: Sequence[Any] | None) -> list[str]:
    """The columns that all tables have, or those that were asked for, without the excluded ones."""
    excluded = set(matching_names(sources, exclude, "exclude"))
    shared = [name for name in sources[0].names if all(name in source.names for source in sources)]
    unused = {column.name: column.reason for source in sources for column in source.left_out}
    if columns is not None:
        wanted = matching_names(sources, columns, "columns")
        for name in set(wanted) - set(shared) - excluded:
            raise ValueError(told(lambda write: f"{write('columns', name)} cannot be used: {unused[name]}"))  # noqa: B023 - called now
    elif not shared:
        held = " and ".join(f"{source.name} has {listed(source.names) or 'none'}" for source in sources)
        apart = "".join(f"; {name!r} cannot be used: {reason}" for name, reason in [*unused.items()][:3])
        raise ValueError(f"no column in common: {held}; give columns of one meaning one name{apart}")
    wanted = [name for name in (shared if columns is None else wanted) if name not in excluded]
    if not wanted:
        raise ValueError(f"{' and '.join(source.name for source in sources)}: no columns are left to use")
    return wanted


def unmatched(sources: Sequence[Source], exclude: Sequence[Any] | None) -> list[LeftOut]:
    """Columns that cannot be compared: of unusable values, or in one table only."""
    excluded = set(matching_names(sources, exclude, "exclude"))
    reasons: dict[str, str] = {}
    for source in sources:
        for name, reason in source.left_out:  # without the table where it holds of both
            reasons[name] = reason if name in reasons else f"{reason} in {source.name}"
    for source, other in zip(sources, sources[::-1], strict=True):
        lost = [name for name in source.names if name not in _all_names(other)]
        alike = {name.casefold().replace("_", " "): name for name in other.names if name not in _all_names(source)}
        for name in lost:
            twin = alike.get(name.casefold().replace("_", " ")) if source is sources[0] else None
            maybe = f"; {twin!r} in {other.name} may be the same: give them one name" if twin else ""
            reasons[name] = f"only {source.name} has it{maybe}"
    return [LeftOut(name, reason) for name, reason in reasons.items() if name not in excluded]


# ---------------------------------------------------------------------------------------------------- single columns


def column_of_all(sources: Sequence[Source], name: str, missing: Sequence[Any]) -> tuple[NDArray[np.intp], list[str]]:
    """A column of labels: the number of the label of each row of all tables, and the labels.

    A missing label has the number after the last one.
    """
    columns = [prepared(source.column(name), missing, categorical=True) for source in sources]
    pooled = concatenated(name, columns)
    labels = list(pooled.levels)
    if pooled.kind != "category":
        return np.zeros(len(pooled.values), dtype=np.intp), labels
    return np.where(pooled.values < 0, len(labels), pooled.values).astype(np.intp), labels


def preparation(
    sources: Sequence[Source], categorical: Sequence[Any] | None, missing: Sequence[Any]
) -> Callable[[Column], Column]:
    """A function that prepares the columns of these tables; ``categorical`` has names or patterns."""
    names = set(matching_names(sources, categorical, "categorical"))
    return lambda column: prepared(column, missing, column.name in names)


def prepared(column: Column, missing: Sequence[Any], categorical: bool) -> Column:
    """The column with further marks of missing values taken as such, and with numbers as categories where asked for.

    >>> column = prepared(as_table({"x": ["1.5", "n.d."]}).columns[0], ["n.d."], False)
    >>> column.kind, column.values
    ('number', array([1.5, nan]))
    """
    if missing:
        column = _without_marks(column, {str(mark).strip() for mark in missing})
    if categorical:
        table = Table(column.name, len(column.values), (column,))
        column = as_categories(table, [column.name]).columns[0]
    return column


def _without_marks(column: Column, marks: set[str]) -> Column:
    if column.kind != "category":
        marked = [found for mark in marks if (found := number(mark, False)) is not None]
        if column.kind != "number" or not marked:
            return column
        return column._replace(values=np.where(np.isin(column.values, marked), np.nan, column.values))
    levels = [None if level.strip() in marks else level for level in column.levels]
    if None not in levels:
        return column
    numbers = [None if level is None else number(level, False) for level in levels]
    if numbers.count(None) == levels.count(None):  # numbers that were text because of the marks among them
        return as_table({column.name: [*np.array([*numbers, None])[column.values]]}).columns[0]
    return as_table({column.name: [*np.array([*levels, None])[column.values]]}).columns[0]
