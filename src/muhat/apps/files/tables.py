"""Tables in files: how they are read, and columns that are fetched from the engine when they are asked for."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

from muhat._support.progress import printable
from muhat._support.types import Array
from muhat.apps.files.database import Database
from muhat.tables.frames import Column, Kind, LeftOut, text_column

Place = Literal["line", "row"]

DELIMITERS = "\t;|^,"
"""What may separate cells."""

MISSING = ("", "na", "n/a", "nan", "null", "none", "?", "-")
"""What stands for a missing value, in small or capital letters; infinite numbers do too."""

NUMBER = r"\s*[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|(?i:inf|infinity|nan))\s*"
"""A cell that is a number, for :mod:`re` with ``re.ASCII`` and for the engine alike.

Both convert more than this by themselves, such as ``1_0`` or digits of other scripts in Python, ``+-1`` in the engine.
"""

DATE = r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d+)?)?)?(Z|[+-]\d\d(:?\d\d)?)?"
"""A cell that is a date, for :mod:`re` and for the engine alike."""

ALL_ROWS = slice(None)

MOST_TEXTS_HELD = 1_000_000
"""A column of a file that holds more different texts has none that could be compared."""

_NUMBER = re.compile(NUMBER, re.ASCII)

GROUPED = r"\s*[+-]?[1-9][0-9]{0,2}(\.[0-9]{3})+(,[0-9]+)?\s*"
"""A number whose thousands are set apart by points, in a file with decimal commas: 1.050 or 1.234.567,89."""

_GROUPED = re.compile(GROUPED, re.ASCII)
_CELLS = 2**21  # of columns that are fetched together
_DAY = "86400e6"  # microseconds; days are what the encoder counts dates in


@dataclass(frozen=True)
class Reading:
    """How files are read: whether the first row holds names, what separates cells, further marks of missing values.

    Where ``header`` or ``delimiter`` is None, the first lines are looked at.
    """

    header: bool | None = None
    delimiter: str | None = None
    missing: Sequence[str] = ()

    @property
    def marks(self) -> tuple[str, ...]:
        """All marks of missing values, in small letters."""
        return (*MISSING, *(mark.strip().lower() for mark in self.missing))


class StoredColumn(NamedTuple):
    """A column by its ``name`` in the file and its ``key`` in the engine; dates are stored as days."""

    name: str
    kind: Kind
    key: str


@dataclass(frozen=True, eq=False)
class Source:
    """A table in a file, in several files or in memory, whose columns are taken one at a time.

    ``place`` says what ``first``, the place of the first row, counts: lines of a file, or rows. ``flaws`` says where
    columns of numbers hold something else, and ``hints`` how texts that stand for numbers or dates are to be written.
    ``index`` has the label of each row of a data frame of pandas.
    """

    name: str
    n_rows: int
    names: tuple[str, ...]
    named: bool
    fetch: Callable[[str, slice], Column]
    left_out: tuple[LeftOut, ...] = ()
    place: Place = "row"
    first: int = 1
    flaws: dict[str, str] = field(default_factory=dict)
    hints: dict[str, str] = field(default_factory=dict)
    index: Any = None

    def column(self, name: str, rows: slice = ALL_ROWS) -> Column:
        """The values of a column in some rows. A cell that is not a number raises a ValueError that names it."""
        if name in self.flaws:
            raise ValueError(self.flaws[name])
        return self.fetch(name, rows)


class ManyTextsError(ValueError):
    """A column of a file holds more different texts than are held in memory."""


class Fetcher:
    """Columns of a relation of the engine as plain arrays; those of wide tables come several at a time."""

    def __init__(self, database: Database, relation: str, columns: Sequence[StoredColumn], n_rows: int):
        self.database, self.relation, self.columns, self.n_rows = database, relation, list(columns), n_rows
        self.step = max(1, _CELLS // max(n_rows, 1)) if n_rows <= MOST_TEXTS_HELD else 1
        self.place = {column.name: j for j, column in enumerate(columns)}
        self.fetched: dict[str, Column] = {}
        self.fetched_rows = (0, 0)

    def __call__(self, name: str, rows: slice) -> Column:
        """The column of that name, or some consecutive rows of it."""
        start, stop, _ = rows.indices(self.n_rows)
        if name not in self.fetched or self.fetched_rows != (start, stop):
            wanted = self.columns[self.place[name] : self.place[name] + self.step]
            if self.n_rows > MOST_TEXTS_HELD and wanted[0].kind == "category":
                query = f"SELECT count(*) FROM (SELECT DISTINCT {wanted[0].key} FROM {self.relation})"
                if (count := self.database.rows(query)[0][0]) > MOST_TEXTS_HELD:
                    raise ManyTextsError(f"it holds {count:,} different texts")
            self.fetched, self.fetched_rows = {}, (start, stop)  # one block at a time is held
            part = f" WHERE rowid >= {start} AND rowid < {stop}" if stop - start < self.n_rows else ""
            keys = ", ".join(column.key for column in wanted)
            arrays = self.database.arrays(f"SELECT {keys} FROM {self.relation}{part}")
            for column in wanted:
                found = arrays[column.key]
                if column.kind == "category":
                    self.fetched[column.name] = text_column(column.name, found.tolist())  # None where masked
                else:
                    self.fetched[column.name] = _numbers(column, found)
        return self.fetched[name]


def _numbers(column: StoredColumn, found: Any) -> Column:
    values: Array = np.array(np.ma.filled(found.astype(np.float64), np.nan))
    values[~np.isfinite(values)] = np.nan
    return Column(column.name, "missing" if np.isnan(values).all() else column.kind, values)


def days(expression: str, kind: Kind = "date") -> str:
    """SQL for days since 1970 of a moment, or for the days of an interval or a time of day."""
    if kind == "date":
        return f"(epoch_us({expression}) / {_DAY})"
    return f"(epoch({expression}) * 1e6 / {_DAY})"


def joined(tables: Sequence[Source], name: str) -> Source:
    """The rows of several files with the same columns, one after the other."""
    first = tables[0]
    for table in tables[1:]:
        if set(table.names) != set(first.names):
            apart = sorted(set(table.names) ^ set(first.names))[0]
            raise ValueError(
                f"{name}: {table.name} and {first.name} have other columns ({apart!r}); compare like files"
            )
    *starts, total = np.cumsum([0, *(table.n_rows for table in tables)]).tolist()

    def fetch(column: str, rows: slice) -> Column:
        start, stop, _ = rows.indices(total)
        parts = [
            table.column(column, slice(max(start - begin, 0), min(stop - begin, table.n_rows)))
            for table, begin in zip(tables, starts, strict=True)
            if begin < stop and start < begin + table.n_rows
        ]
        try:
            return concatenated(column, parts)
        except ValueError as error:
            raise ValueError(f"{name}: {error} in different files") from None

    left_out = {column.name: column for table in tables for column in table.left_out}
    hints = {column: hint for table in tables for column, hint in table.hints.items()}
    names = tuple(column for column in first.names if column not in left_out)
    return Source(name, total, names, first.named, fetch, tuple(left_out.values()), hints=hints)


def concatenated(name: str, parts: Sequence[Column]) -> Column:
    """The values of several columns of one kind, one after the other."""
    kinds = sorted({part.kind for part in parts} - {"missing"})
    if len(kinds) > 1:
        raise ValueError(f"column {name!r} holds {' and '.join(kinds)} values")
    kind = kinds[0] if kinds else "missing"
    if kind != "category":
        return Column(name, kind, np.concatenate([part.values for part in parts]))
    levels = sorted({level for part in parts for level in part.levels})
    rank = {level: k for k, level in enumerate(levels)}
    orders = [np.array([*(rank[level] for level in part.levels), -1], dtype=np.intp) for part in parts]
    codes = [
        order[part.values] if part.kind == "category" else np.full(len(part.values), -1, dtype=np.intp)
        for order, part in zip(orders, parts, strict=True)
    ]
    return Column(name, kind, np.concatenate(codes), tuple(levels))


def is_missing(cell: str | None, marks: Sequence[str] = MISSING) -> bool:
    """Whether a cell stands for a missing value."""
    return cell is None or cell.strip().lower() in marks


def number(cell: str, decimal_comma: bool) -> float | None:
    """The number that a cell holds, None if it holds something else.

    >>> number("1,5", decimal_comma=True), number(" 1e3", False), number("12 kg", False), number("1_0", False)
    (1.5, 1000.0, None, None)
    >>> number("1.050", decimal_comma=True), number("1.050", False)
    (1050.0, 1.05)
    """
    if decimal_comma and _GROUPED.fullmatch(cell):
        cell = cell.replace(".", "")
    plain = cell.replace(",", ".") if decimal_comma else cell
    return float(plain) if _NUMBER.fullmatch(plain) else None


def shortened(cell: str) -> str:
    """A cell in quotation marks, cut where it is long."""
    return repr(cell if len(cell) <= 30 else f"{cell[:29]}…")


def unique_names(given: Sequence[str | None]) -> list[str]:
    """A name for each column, no two alike.

    >>> unique_names(["a", "", "a"])
    ['a (column 1)', 'column 2', 'a (column 3)']
    """
    named = [printable((name or "").strip()) or f"column {j}" for j, name in enumerate(given, start=1)]
    repeated = {name for name in named if named.count(name) > 1} if len(set(named)) < len(named) else set()
    return [f"{name} (column {j})" if name in repeated else name for j, name in enumerate(named, start=1)]
