"""CSV as people have it: with a header or without, separated by commas, semicolons or tabs, and with gaps."""

from __future__ import annotations

import csv
import os
from codecs import getincrementaldecoder
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from io import BufferedReader, TextIOWrapper
from itertools import chain, islice
from typing import TextIO

import numpy as np

from muhat.files.progress import progress
from muhat.files.sheets import Reading, Sheet, sampled
from muhat.types import Array

MISSING = frozenset(["", "na", "n/a", "nan", "null", "none", "?", "-"])
"""What stands for a missing value, in small or capital letters; infinite numbers do too."""

_LONGEST = 2**20
_LOOK = 20
_LINES = 2**17  # from one word on the progress to the next
_DELIMITERS = "\t;,"

Record = tuple[int, list[str]]
"""The line in which a row ends, and its cells."""


def read_csv(path: str, raw: BufferedReader, start: bytes, reading: Reading, rng: np.random.Generator) -> Sheet:
    """A sample of the rows of a CSV file; only what is sampled is looked at, but every row must have its width."""
    encoding = _encoding(start)
    if encoding != "utf-16" and b"\0" in start:
        raise ValueError(f"{path} is not text; save the table as CSV, or the array by numpy.save")
    size = os.fstat(raw.fileno()).st_size
    with TextIOWrapper(raw, encoding=encoding, errors="replace", newline="") as text, progress() as say:
        lines = _bounded_lines(path, text, lambda: say(f"{path}: {raw.tell() / size:.0%} read" if size else path))
        return _read_lines(path, lines, reading, rng)


def _encoding(start: bytes) -> str:
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    try:
        getincrementaldecoder("utf-8")().decode(start)  # the last character may be cut off
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8-sig"


def _read_lines(path: str, lines: Iterator[str], reading: Reading, rng: np.random.Generator) -> Sheet:
    first = list(islice(lines, _LOOK))
    delimiter = delimiter_of(first)
    records = _Records(path, chain(first, lines), delimiter)
    beginning = list(islice(records, 2))
    if not beginning:
        raise ValueError(f"{path} is empty; it should hold a row of numbers in each line")
    has_names = is_header([cells for _, cells in beginning]) if reading.header is None else reading.header
    names = _names(beginning[0][1] if has_names else [""] * records.width)
    kept = sorted(sampled(chain(beginning[has_names:], records), reading.rows, rng))
    if not kept:
        raise ValueError(f"{path} has a header and no rows; if the line holds numbers, say --no-header")
    return _sheet(path, names, kept, records.total - has_names, has_names, delimiter)


def _bounded_lines(path: str, text: TextIO, say_how_far: Callable[[], None]) -> Iterator[str]:
    for number, line in enumerate(iter(lambda: text.readline(_LONGEST), ""), start=1):
        if number % _LINES == 0:
            say_how_far()
        if len(line) == _LONGEST:
            raise ValueError(f"{path}, line {number}: more than {_LONGEST:,} characters; is this a table in CSV?")
        yield line


class _Records:
    """Rows with the line in which each ends; blank lines are passed over, and ``total`` counts the others."""

    def __init__(self, path: str, lines: Iterator[str], delimiter: str) -> None:
        self.path, self.total, self.width = path, 0, 0
        self._reader = csv.reader(lines, delimiter=delimiter)

    def __iter__(self) -> Iterator[Record]:
        return self

    def __next__(self) -> Record:
        try:
            cells = next(cells for cells in self._reader if len(cells) > 1 or "".join(cells).strip())
        except csv.Error as error:
            where = f"{self.path}, line {self._reader.line_num}"
            raise ValueError(f"{where}: {error}; is a quotation mark not closed, or is this no CSV?") from error
        self.width = self.width or len(cells)
        if len(cells) != self.width:
            raise ValueError(
                f"{self.path}, line {self._reader.line_num}: {len(cells)} cells, and {self.width} in the first row; "
                "give every row the same number of cells, in quotation marks where one holds the separator"
            )
        self.total += 1
        return self._reader.line_num, cells


def delimiter_of(lines: Sequence[str]) -> str:
    r"""The separator by which the first lines have equally many cells.

    >>> delimiter_of(["x;y\n", "1,5;2,5\n"]), delimiter_of(["1,2\n", "3,4\n"]), delimiter_of(["x\ty\n"])
    (';', ',', '\t')
    """
    lines = [line for line in lines if line.strip()]
    for delimiter in _DELIMITERS:
        widths = {len(cells) for cells in csv.reader(lines, delimiter=delimiter)}
        if len(widths) == 1 and widths != {1}:
            return delimiter
    return max(_DELIMITERS, key="".join(lines[:1]).count)


def is_header(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first row holds names: it is all text, or has text where the next row has a number.

    >>> is_header([["age", "city"], ["31", "Rome"]]), is_header([["31", "Rome"], ["27", "Oslo"]])
    (True, False)
    """
    texts = [_is_text(cell) for cell in rows[0]]
    below = [_is_text(cell) for cell in rows[1]] if len(rows) > 1 else texts
    return all(texts) or any(text and not other for text, other in zip(texts, below, strict=True))


def _is_text(cell: str) -> bool:
    return not _is_missing(cell) and number(cell, decimal_comma=True) is None


def _is_missing(cell: str) -> bool:
    return cell.strip().lower() in MISSING


def number(cell: str, decimal_comma: bool) -> float | None:
    """The number in a cell; NaN if it is missing or infinite, None if the cell holds something else.

    >>> number("1,5", decimal_comma=True), number("n/a", False), number("12 kg", False)
    (1.5, nan, None)
    """
    if _is_missing(cell):
        return np.nan
    try:
        value = float(cell.replace(",", ".") if decimal_comma else cell)
    except ValueError:
        return None
    return value if np.isfinite(value) else np.nan


def _names(header: Sequence[str]) -> tuple[str, ...]:
    """A name for each column, no two alike."""
    given = [name.strip() or f"column {j}" for j, name in enumerate(header, start=1)]
    counts = Counter(given)
    return tuple(name if counts[name] == 1 else f"{name} (column {j})" for j, name in enumerate(given, start=1))


def _sheet(
    path: str, names: tuple[str, ...], records: list[Record], total: int, has_names: bool, delimiter: str
) -> Sheet:
    lines = np.array([line for line, _ in records])
    numeric: dict[str, Array] = {}
    text: dict[str, str] = {}
    flaws: dict[str, str] = {}
    for j, name in enumerate(names):
        column = [cells[j] for _, cells in records]
        values = [number(cell, delimiter == ";") for cell in column]
        odd = [i for i, value in enumerate(values) if value is None]
        if 2 * len(odd) > sum(not _is_missing(cell) for cell in column):
            text[name] = f"text such as {_short(column[odd[0]])}"
            continue
        if odd:
            flaws[name] = (
                f"{path}, line {lines[odd[0]]}, column {name!r}: {_short(column[odd[0]])} is not a number; correct it, "
                "leave the cell empty, or name the other columns by --columns"
            )
        numeric[name] = np.array([np.nan if value is None else value for value in values])
    table = np.column_stack(list(numeric.values())) if numeric else np.empty((len(lines), 0))
    return Sheet(path, tuple(numeric), table, lines, total, has_names, "line", text, flaws)


def _short(cell: str) -> str:
    return repr(cell if len(cell) <= 30 else f"{cell[:29]}…")
