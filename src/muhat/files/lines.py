"""Reader of CSV rows of numbers as they arrive, from a file or an open pipe."""

from __future__ import annotations

import csv
import os
import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from math import isfinite
from typing import NamedTuple, TextIO

from muhat.files.tables import DELIMITERS, is_missing, number

_LONGEST_LINE = 2**20
_NAMES_SHOWN = 20
_BLOCK = 512  # rows of a file that are taken together


class Row(NamedTuple):
    """A row of a table: its line, and the cells of the columns that were asked for; None where a number is missing."""

    line: int
    numbers: list[float] | None


class NumberedLines:
    """The header of a table, then its rows, one after the other.

    Parameters
    ----------
    text : text stream
        Read a line at a time, and no further than asked.
    name : str
        Of the file, for messages.
    delimiter : str, optional
        Between cells; by default the one of tab, semicolon, bar, caret and comma that the first line has most of.
    """

    def __init__(self, text: TextIO, name: str, delimiter: str | None = None) -> None:
        self._text, self.name, self._number = text, name, 0
        first = next((line for line in self._lines() if line.strip()), None)
        if first is None:
            raise ValueError(f"{name} is empty; pass a table with a header and a row of numbers in each line")
        self.delimiter = delimiter or max(DELIMITERS, key=first.count)
        cells = next(self._split([first]))
        self.has_names = any(self._is_text(cell) for cell in cells)
        self.names = [cell.strip() for cell in cells] if self.has_names else [f"x{j}" for j in range(len(cells))]
        if len(set(self.names)) < len(self.names):
            twice = Counter(self.names).most_common(1)[0][0]
            raise ValueError(f"{self.name} has the column {twice!r} twice; rename one of them")
        self._pending = None if self.has_names else (self._number, cells)
        self._reader = self._split(self._lines())

    def _split(self, lines: Iterable[str]) -> Iterator[list[str]]:
        """The cells of each row; a row has several lines where quotation marks enclose their ends."""
        reader, begun = csv.reader(lines, delimiter=self.delimiter, strict=True), self._number
        try:
            for cells in reader:
                yield cells
                begun = self._number + 1
        except csv.Error as error:
            raise ValueError(
                f"{self.name}, line {begun}: is a quotation mark not closed ({error})? Close it, or write two for one "
                "that is part of the text"
            ) from error

    def _lines(self) -> Iterator[str]:
        while line := self._read():
            self._number += 1
            if len(line) == _LONGEST_LINE:
                raise ValueError(f"{self.name}, line {self._number}: more than {_LONGEST_LINE:,} characters; pass CSV")
            yield line

    def _read(self) -> str:
        try:
            return self._text.readline(_LONGEST_LINE)
        except UnicodeDecodeError as error:
            where = f"{self.name}, after line {self._number}" if self._number else self.name
            raise ValueError(f"{where}: this is not text in UTF-8 ({error.reason}); pass CSV") from error

    def cells(self) -> Iterator[tuple[int, list[str]]]:
        """The cells of each row, and its line."""
        if self._pending is not None:
            pending, self._pending = self._pending, None
            yield pending
        for cells in self._reader:
            if not any(cell.strip() for cell in cells) and len(cells) <= 1:
                continue
            if len(cells) != len(self.names):
                raise ValueError(
                    f"{self.name}, line {self._number}: {len(cells)} cells, and {len(self.names)} in the first line; "
                    f"give every row the same number of cells"
                )
            yield self._number, cells

    def first_row(self) -> list[str]:
        """The cells of the first row, which stays to be read; a ValueError where there is none."""
        self._pending = next(self.cells(), None)
        if self._pending is None:
            raise ValueError(f"{self.name} has a header and no rows; pass a table with rows")
        return self._pending[1]

    def columns_of_numbers(self, rows: Sequence[tuple[int, list[str]]]) -> list[str]:
        """The columns that hold numbers in at least half of the cells of all rows that hold anything."""
        found = []
        for name, column in zip(self.names, zip(*(cells for _, cells in rows), strict=True), strict=True):
            held = [self._number_in(cell) is not None for cell in column if not is_missing(cell)]
            if held and 2 * sum(held) >= len(held):
                found.append(name)
        if not found:
            raise ValueError(
                f"No column of {self.name} holds numbers. Its cells were split at {self.delimiter!r}: pass another "
                "--delimiter, or a table with a column of numbers"
            )
        return found

    def check_columns(self, columns: Sequence[str]) -> None:
        """Raise a ValueError unless all of the columns are there."""
        missing = next((column for column in columns if column not in self.names), None)
        if missing is not None:
            some = ", ".join(map(repr, self.names[:_NAMES_SHOWN])) + (", …" if len(self.names) > _NAMES_SHOWN else "")
            raise ValueError(f"{self.name} lacks the column {missing!r}; it has {some}")

    def rows(self, columns: Sequence[str], given: Iterable[tuple[int, list[str]]] | None = None) -> Iterator[Row]:
        """The numbers of some columns, by name: of rows that are ``given`` as cells, or of all that are to come."""
        self.check_columns(columns)
        place_of = {name: place for place, name in enumerate(self.names)}
        places = [place_of[column] for column in columns]
        for line, cells in self.cells() if given is None else given:
            chosen = [cells[place].strip() for place in places]
            wrong = next((column for column, cell in zip(columns, chosen, strict=True) if self._is_text(cell)), None)
            if wrong is not None:
                cell = chosen[list(columns).index(wrong)]
                raise ValueError(
                    f"{self.name}, line {line}: {cell!r} in the column {wrong!r} is not a number; correct it, or leave "
                    f"the column out by --exclude"
                )
            numbers = [found for cell in chosen if (found := self._number_in(cell)) is not None and isfinite(found)]
            yield Row(line, numbers if len(numbers) == len(chosen) else None)

    def _number_in(self, cell: str) -> float | None:
        """As other commands read it: a comma is a decimal one where it does not separate cells."""
        return number(cell, decimal_comma=self.delimiter != ",")

    def _is_text(self, cell: str) -> bool:
        """Whether a cell is neither a number nor a gap."""
        return not is_missing(cell) and self._number_in(cell) is None


def batches(rows: Iterator[Row], size: int) -> Iterator[list[Row]]:
    """Rows in lists of at most ``size``."""
    batch: list[Row] = []
    for row in rows:
        batch.append(row)
        if len(batch) >= size:
            yield batch
            batch = []
    if batch:
        yield batch


def is_file(text: TextIO) -> bool:
    """Whether all lines are there already; those of a pipe may be long in coming."""
    try:
        return stat.S_ISREG(os.fstat(text.fileno()).st_mode)
    except (OSError, ValueError):  # a stream without a file
        return False


def batch_size(text: TextIO) -> int:
    """Rows to take together: many of a file, one at a time from a pipe."""
    return _BLOCK if is_file(text) else 1
