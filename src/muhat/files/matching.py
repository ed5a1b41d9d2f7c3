"""Matching of the columns of two tables by name and kind, with reasons for those left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from muhat.files.opening import STANDARD_INPUT
from muhat.files.tables import Column, FileTable, Reading
from muhat.progress import printable


class NotCompared(NamedTuple):
    """A column that could not be compared, and why not, in words."""

    name: str
    reason: str


@dataclass(eq=False)
class Matched:
    """One or two tables, with the columns to use: ``columns[j]`` holds the column of each table."""

    tables: tuple[FileTable, ...]
    names: tuple[str, ...]
    columns: list[tuple[Column, ...]]
    notes: list[str] = field(default_factory=list)
    not_compared: list[NotCompared] = field(default_factory=list)


def matched(tables: Sequence[FileTable], reading: Reading) -> Matched:
    """The columns that all tables have, of one kind, or those that were asked for.

    Parameters
    ----------
    tables : one or two Tables
    reading : Reading
        With names or patterns of columns; in a file without names a column may be called by its number, from 1.

    Returns
    -------
    Matched
    """
    found = Matched(tuple(tables), _short_names(tables), [])
    _check_alike(tables)
    excluded = _chosen(tables, reading.exclude, "--exclude")
    if reading.columns is None:
        wanted = [name for name in _common(found, excluded) if name not in excluded]
    else:
        wanted = [name for name in _chosen(tables, reading.columns, "--columns") if name not in excluded]
        for name in wanted:
            _check_usable(tables, name)
    found.columns = [tuple(_column(table, name) for table in tables) for name in wanted]
    for table in tables:
        for name in wanted:
            if name in table.flaws:
                raise ValueError(table.flaws[name])
            if name in table.hints:
                found.notes.append(_hint(table, name))
    if not wanted:
        raise ValueError(f"{' and '.join(table.path for table in tables)}: no columns are left to use")
    return found


def _column(table: FileTable, name: str) -> Column:
    column = table.column(name)
    assert column is not None, f"{name} was looked for before"
    return column


def _short_names(tables: Sequence[FileTable]) -> tuple[str, ...]:
    """The last parts of the paths, or the paths where those are equal."""
    paths = ["standard input" if table.path == STANDARD_INPUT else printable(table.path) for table in tables]
    short = [Path(path).name for path in paths]
    return tuple(short if len(set(short)) == len(short) else paths)


def listed(names: Sequence[str], most: int = 8) -> str:
    """Names in quotation marks, the first of many.

    >>> listed(["a", "b"]), listed("abcd", most=2)
    ("'a', 'b'", "'a', 'b' and 2 more")
    """
    quoted = [repr(name) for name in names[:most]]
    return ", ".join(quoted) + (f" and {len(names) - most} more" if len(names) > most else "")


def _common(found: Matched, excluded: Sequence[str]) -> list[str]:
    tables = found.tables
    for table, short in zip(tables, found.names, strict=True):
        for name, what in table.unusable.items():
            if name not in excluded:
                _leave_out(found, name, f"it holds {what} in {short}")
    for name, reason in _alone(found).items():
        if name not in excluded:
            _leave_out(found, name, reason)
    names = [column.name for column in tables[0].columns if all(table.column(column.name) for table in tables)]
    if not names:
        columns = " and ".join(f"{t.path} has {listed([c.name for c in t.columns]) or 'none'}" for t in tables)
        raise ValueError(f"no column in common: {columns}; give columns of one meaning one name")
    mixed = [name for name in names if len({_column(table, name).kind for table in tables}) > 1]
    for name in mixed:
        if name not in excluded:
            held = zip(tables, found.names, strict=True)
            content = " and ".join(f"{table.content(_column(table, name))} in {short}" for table, short in held)
            hint = next((f"; {table.hints[name]}" for table in tables if name in table.hints), "")
            _leave_out(found, name, f"it holds {content}{hint}")
    return [name for name in names if name not in mixed]


def _leave_out(found: Matched, name: str, reason: str) -> None:
    if len(found.tables) == 1:
        found.notes.append(f"column {name!r} is left out: {reason}")
    elif name not in [column.name for column in found.not_compared]:
        found.not_compared.append(NotCompared(name, reason))


def _alone(found: Matched) -> dict[str, str]:
    """Columns that one file has, and a suggestion where the other has a name that differs by capitals or blanks."""
    names = [[*(column.name for column in table.columns), *table.unusable] for table in found.tables]
    reasons: dict[str, str] = {}
    for which, table in enumerate(found.tables):
        here = found.names[which]
        for other, there in enumerate(found.names):
            alike = {_loosely(name): name for name in names[other] if name not in names[which]}
            for name in (column.name for column in table.columns if column.name not in names[other]):
                twin = alike.get(_loosely(name))
                told = twin is None or which > other
                maybe = "" if told else f"; {twin!r} in {there} may be {name!r}: give them one name"
                reasons[name] = f"only {here} has it{maybe}"
    return reasons


def _loosely(name: str) -> str:
    """A name without capitals, blanks and signs that stand for blanks."""
    return "".join(name.replace("_", " ").replace("-", " ").split()).casefold()


def _check_alike(tables: Sequence[FileTable]) -> None:
    named = [table for table in tables if table.has_names]
    unnamed = [table for table in tables if not table.has_names]
    if named and unnamed:
        raise ValueError(
            f"{named[0].path} names its columns and {unnamed[0].path} does not; give both a header or neither, "
            "or say --header or --no-header if the first rows were misread"
        )
    widths = [len(table.columns) for table in unnamed]
    if len(set(widths)) > 1:
        paths, counts = (" and ".join(map(str, words)) for words in ([table.path for table in unnamed], widths))
        raise ValueError(
            f"{paths} have {counts} columns; without names they cannot be matched: give both files a header"
        )


def _chosen(tables: Sequence[FileTable], patterns: Sequence[str], option: str) -> list[str]:
    """Names that the patterns choose, in the order of the patterns."""
    chosen: dict[str, None] = {}
    for pattern in patterns:
        by_number = pattern.isdecimal() and not any(table.has_names for table in tables)
        wanted = f"column {pattern}" if by_number else pattern
        for table in tables:
            names = [*(column.name for column in table.columns), *table.unusable]
            fitting = [wanted] if wanted in names else [name for name in names if fnmatchcase(name, wanted)]
            if not fitting:
                raise ValueError(f"{option} {pattern}: {table.path} has no such column; it has {listed(names)}")
            chosen |= dict.fromkeys(fitting)
    return list(chosen)


def _check_usable(tables: Sequence[FileTable], name: str) -> None:
    for table in tables:
        if name in table.unusable:
            raise ValueError(f"--columns {name}: in {table.path} it holds {table.unusable[name]}; name other columns")
        if table.column(name) is None:
            names = listed([column.name for column in table.columns])
            raise ValueError(f"--columns {name}: {table.path} has no such column; it has {names}")
    if len({_column(table, name).kind for table in tables}) > 1:
        content = " and ".join(f"{table.content(_column(table, name))} in {table.path}" for table in tables)
        raise ValueError(f"--columns {name}: it holds {content}; write the same kind of value in both files")


def _hint(table: FileTable, name: str) -> str:
    return f"{table.path}: column {name!r} is taken as text; {table.hints[name]}"
