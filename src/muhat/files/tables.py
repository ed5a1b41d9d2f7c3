"""A table that was read from a file: its columns and their kinds, its rows in the engine."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from muhat.files.database import Database
from muhat.progress import printable
from muhat.types import Array

Kind = Literal["number", "date", "category"]
Place = Literal["line", "row"]

DELIMITERS = "\t;|^,"
"""What may separate cells."""

MISSING = ("", "na", "n/a", "nan", "null", "none", "?", "-")
"""What stands for a missing value, in small or capital letters; infinite numbers do too."""

NUMBER = r"\s*[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|(?i:inf|infinity|nan))\s*"
"""A cell that is a number, for :mod:`re` with ``re.ASCII`` and for the engine alike.

Both convert more than this by themselves, such as ``1_0`` or digits of other scripts in Python, ``+-1`` in the engine.
"""

_NUMBER = re.compile(NUMBER, re.ASCII)


@dataclass(frozen=True)
class Reading:
    """How files are read.

    ``header`` says whether the first row holds names, and ``delimiter`` what separates cells; None looks at them.
    ``columns`` are those to use and ``exclude``
    those to leave out, by name or by a pattern such as ``price_*``. ``rows`` bounds how many rows of a file are
    compared as a whole, drawn with ``seed``.
    """

    rows: int | None = None
    seed: int = 0
    header: bool | None = None
    columns: Sequence[str] | None = None
    exclude: Sequence[str] = ()
    delimiter: str | None = None


@dataclass(frozen=True)
class Column:
    """A column by its ``name`` in the file and its ``key`` in the engine; a date is a number of seconds there."""

    name: str
    kind: Kind
    key: str


@dataclass(frozen=True, eq=False)
class FileTable:
    """``total`` rows in the relation ``relation`` of a database.

    ``place`` says what ``first``, the place of the first row, counts: lines of the file, or rows. ``unusable`` says why
    columns cannot be used, ``flaws`` where columns of numbers hold something else, and ``hints`` how texts that stand
    for numbers or dates are to be written.
    """

    path: str
    database: Database
    relation: str
    columns: tuple[Column, ...]
    total: int
    has_names: bool
    place: Place = "row"
    first: int = 1
    unusable: dict[str, str] = field(default_factory=dict)
    flaws: dict[str, str] = field(default_factory=dict)
    hints: dict[str, str] = field(default_factory=dict)

    def column(self, name: str) -> Column | None:
        """The column of that name, if there is one."""
        return next((column for column in self.columns if column.name == name), None)

    def content(self, column: Column) -> str:
        """What a column holds, in words."""
        if column.kind != "category":
            return f"{column.kind}s"
        found = self.database.rows(f"SELECT {column.key} FROM {self.relation} WHERE {column.key} IS NOT NULL LIMIT 1")
        return f"text such as {shortened(found[0][0])}" if found else "no values"

    def values(self, columns: Iterable[Column], rows: NDArray[np.int64] | None = None) -> dict[str, Any]:
        """Columns by name: floats with NaN for gaps, or texts with None; of all rows, or those with these numbers."""
        wanted = list(columns)
        keys = ", ".join(column.key for column in wanted)
        where = ""
        if rows is not None:
            self.database.connection.register("wanted_rows", {"number": rows})
            where = " WHERE rowid IN (SELECT number FROM wanted_rows) ORDER BY rowid"
        found = self.database.arrays(f"SELECT {keys} FROM {self.relation}{where}")
        if rows is not None:
            self.database.connection.unregister("wanted_rows")
        return {column.name: _plain(found[column.key], column.kind) for column in wanted}

    def sampled(self, limit: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Numbers of at most ``limit`` rows, drawn at random, ascending."""
        if self.total <= limit:
            return np.arange(self.total)
        return np.sort(rng.choice(self.total, limit, replace=False))


def _plain(found: Any, kind: Kind) -> Any:
    if kind == "category":
        texts = np.asarray(found, dtype=object)
        texts[np.ma.getmaskarray(found)] = None
        return texts
    numbers: Array = np.array(np.ma.filled(found.astype(np.float64), np.nan))
    numbers[~np.isfinite(numbers)] = np.nan
    return numbers


def is_missing(cell: str | None) -> bool:
    """Whether a cell stands for a missing value."""
    return cell is None or cell.strip().lower() in MISSING


def number(cell: str, decimal_comma: bool) -> float | None:
    """The number that a cell holds, None if it holds something else.

    >>> number("1,5", decimal_comma=True), number(" 1e3", False), number("12 kg", False), number("1_0", False)
    (1.5, 1000.0, None, None)
    """
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
