"""Reader of CSV rows or JSON lines as they arrive, from an open pipe, with the columns and kinds of a known table."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TextIO

import numpy as np

from muhat.apps.files.tables import Reading, is_missing, number
from muhat.apps.files.text_format import delimiter_of, is_header
from muhat.tables.frames import Column, Kind, Table

_LONGEST_LINE = 2**20
_NAMES_SHOWN = 20
_MICROSECONDS_PER_DAY = 86_400e6
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class StreamReader:
    """Rows of a stream as tables, one after the other, and no further than asked.

    Parameters
    ----------
    text : text stream
        Lines of CSV, or of JSON objects.
    name : str
        Of the stream, for messages.
    kinds : dict of str to Kind
        The columns to read and what they hold; others are passed over. A cell that is no number in a column of numbers
        is an error that names the line.
    reading : Reading
        Delimiter and marks of missing values, as for files.
    json_lines : bool, optional
        Whether lines are JSON objects; by default the first line tells.
    """

    def __init__(
        self, text: TextIO, name: str, kinds: Mapping[str, Kind], reading: Reading, json_lines: bool | None = None
    ) -> None:
        self._text, self.name, self.kinds, self.marks, self.line = text, name, dict(kinds), reading.marks, 0
        first = next((line for line in self._lines() if line.strip()), None)
        if first is None:
            raise ValueError(f"{name} is empty; pass rows of CSV with a header, or JSON lines")
        self.json_lines = first.lstrip().startswith("{") if json_lines is None else json_lines
        self._pending: list[tuple[int, list[Any]]] = []
        if self.json_lines:
            self._pending.append((self.line, self._object(first)))
            return
        self.delimiter = reading.delimiter or delimiter_of([first])
        cells = next(self._split([first], self.line))
        names = [cell.strip() for cell in cells]
        headed = is_header([cells]) or set(kinds) <= set(names) if reading.header is None else reading.header
        if not headed:
            if len(cells) != len(kinds):
                raise ValueError(f"{name} has {len(cells)} columns without names; name them as the reference does")
            names = list(kinds)
        if len(set(names)) < len(names):
            twice = next(each for each in names if names.count(each) > 1)
            raise ValueError(f"{name} has the column {twice!r} twice; rename one of them")
        lost = next((each for each in kinds if each not in names), None)
        if lost is not None:
            some = ", ".join(map(repr, names[:_NAMES_SHOWN]))
            raise ValueError(f"{name} has no column {lost!r}, which the reference has; its columns are {some}")
        self._width, self._places = len(names), [names.index(each) for each in kinds]
        if not headed:
            self._pending.append((self.line, self._chosen(cells)))
        self._reader = self._split(self._lines(), self.line + 1)

    def tables(self, size: int) -> Iterator[tuple[Table, list[int]]]:
        """Tables of up to ``size`` rows, with the line of each row."""
        batch: list[tuple[int, list[Any]]] = []
        for row in self._rows():
            batch.append(row)
            if len(batch) >= size:
                yield self._table(batch)
                batch = []
        if batch:
            yield self._table(batch)

    def _rows(self) -> Iterator[tuple[int, list[Any]]]:
        """The line and the chosen cells of each row."""
        yield from self._pending
        if self.json_lines:
            yield from ((self.line, self._object(line)) for line in self._lines() if line.strip())
            return
        for cells in self._reader:
            if any(cell.strip() for cell in cells) or len(cells) > 1:
                yield self.line, self._chosen(cells)

    def _chosen(self, cells: list[str]) -> list[str]:
        if len(cells) != self._width:
            raise ValueError(
                f"{self.name}, line {self.line:,}: {len(cells)} cells, and {self._width} in the first line; give every "
                "row the same number of cells"
            )
        return [cells[place] for place in self._places]

    def _object(self, line: str) -> list[Any]:
        try:
            found = json.loads(line)
        except ValueError as error:
            raise ValueError(f"{self.name}, line {self.line:,}: could not parse as JSON ({error})") from error
        if not isinstance(found, dict):
            raise ValueError(f"{self.name}, line {self.line:,}: {line.strip()[:30]!r} is no JSON object")
        return [found.get(name) for name in self.kinds]

    def _split(self, lines: Iterable[str], begun: int) -> Iterator[list[str]]:
        """The cells of each row; a row has several lines where quotation marks enclose their ends."""
        reader = csv.reader(lines, delimiter=self.delimiter, strict=True)
        try:
            for cells in reader:
                yield cells
                begun = self.line + 1
        except csv.Error as error:
            raise ValueError(
                f"{self.name}, line {begun:,}: is a quotation mark not closed ({error})? Close it, or write two for "
                "one that is part of the text"
            ) from error

    def _lines(self) -> Iterator[str]:
        while line := self._read():
            self.line += 1
            if len(line) == _LONGEST_LINE:
                raise ValueError(f"{self.name}, line {self.line:,}: more than {_LONGEST_LINE:,} characters; pass rows")
            yield line.removeprefix("\ufeff") if self.line == 1 else line

    def _read(self) -> str:
        try:
            return self._text.readline(_LONGEST_LINE)
        except UnicodeDecodeError as error:
            where = f"{self.name}, after line {self.line:,}" if self.line else self.name
            raise ValueError(f"{where}: this is not text in UTF-8 ({error.reason}); pass CSV or JSON lines") from error

    def _table(self, batch: Sequence[tuple[int, list[Any]]]) -> tuple[Table, list[int]]:
        lines = [line for line, _ in batch]
        columns = []
        for j, (name, kind) in enumerate(self.kinds.items()):
            cells = [self._value(name, kind, row[j], line) for line, row in batch]
            if kind == "category":
                levels = tuple(sorted({cell for cell in cells if cell is not None}))
                codes = np.array([-1 if cell is None else levels.index(cell) for cell in cells], dtype=np.intp)
                columns.append(Column(name, kind, codes, levels))
            else:
                columns.append(Column(name, kind, np.array([np.nan if c is None else c for c in cells], dtype=float)))
        return Table(self.name, len(batch), tuple(columns)), lines

    def _value(self, name: str, kind: Kind, cell: Any, line: int) -> Any:
        """The value of a cell, None where it is missing."""
        if cell is None or (isinstance(cell, str) and is_missing(cell, self.marks)):
            return None
        if kind == "category":
            return cell.strip() if isinstance(cell, str) else str(cell)
        found = _as_number(cell, kind, decimal_comma=not self.json_lines and self.delimiter != ",")
        if found is None:
            held = {"date": "a date such as 2025-12-31", "boolean": "true or false"}.get(kind, "a number")
            raise ValueError(
                f"{self.name}, line {line:,}: {str(cell)[:30]!r} in the column {name!r} is not {held}; correct it, "
                "declare it as missing (missing=), or leave the column out (exclude=)"
            )
        return found if np.isfinite(found) else None


def _as_number(cell: Any, kind: Kind, decimal_comma: bool) -> float | None:
    if isinstance(cell, bool | int | float):
        return float(cell)
    text = str(cell).strip()
    if kind == "boolean" and text.lower() in ("true", "false"):
        return float(text.lower() == "true")
    if kind == "date":
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            return None
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
        return (moment - _EPOCH).total_seconds() * 1e6 / _MICROSECONDS_PER_DAY
    return number(text, decimal_comma)
