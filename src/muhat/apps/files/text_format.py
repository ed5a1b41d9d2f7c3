"""CSV as people have it: with a header or without, separated by commas or other signs, with comments and empty cells.

A look at the first lines decides how the engine is told to read the file, and all cells of a column what it holds. The
engine never guesses: with fixed rules it refuses lines that have too many or too few cells.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from muhat.apps.files.database import Database, loses_numbers, quoted, quoted_file
from muhat.apps.files.tables import (
    DATE,
    DELIMITERS,
    GROUPED,
    NUMBER,
    Fetcher,
    Place,
    Reading,
    Source,
    StoredColumn,
    days,
    is_missing,
    number,
    shortened,
    unique_names,
)
from muhat.apps.files.told import told
from muhat.linalg.blocks import blocks
from muhat.tables.frames import TOO_LARGE, Kind, LeftOut

LONGEST_LINE = 2**24

_LOOK_LINES = 20
_LOOK_CELLS = 200_000
_CHUNK = 2**22
_TOGETHER = 200  # columns in a query
_QUOTED = re.compile(r'"(?:[^"]|"")*"')
_COMMENT = re.compile(r"#([\s#!]|$)")
_DATE = re.compile(DATE)
_WITH_COMMA = r"\s*[+-]?[0-9.]*,[0-9]+\s*"
_LONG_WHOLE = "[+-]?[0-9]{16,}"
_UNIT = r"[%$€£¥]|[kMGm]?(?:g|m|s|l|L|W|Wh|V|A|B|Hz|Pa)|cm|lbs?|oz|km/h|mph|m/s|min|h|hrs?|days?|°[CF]|USD|EUR|GBP|CHF"
_LIKE_NUMBER = re.compile(rf"[$€£¥]?\s?-?\d[\d.,'/: -]*\s?(?:{_UNIT})?")


def read_text(path: str, local: Path, database: Database, reading: Reading) -> Source:
    """Read a CSV file into the database; every line must have its width, and every number must be one."""
    local, n_lines = _in_utf8(path, local, database)
    form = _look(path, local, reading.delimiter)
    database.make_room(path, form.width)
    rows = f"LIMIT {max(_LOOK_CELLS // form.width, 2)}"
    cells = _checked(path, lambda: database.rows(f"SELECT * FROM {form.source(local, False)} {rows}"))
    if all(not (cell or "").strip() for row in cells for cell in row):
        raise ValueError(f"{path} is empty; it should hold a row of values in each line")
    has_names = is_header(cells[:2]) if reading.header is None else reading.header
    names = unique_names(cells[0] if has_names else [None] * form.width)
    if form.width == 1 and all(_is_spaced(row[0]) for row in cells[has_names:]):
        one = f"{path} has one column; separate its columns by commas, or say "
        raise ValueError(told(lambda write: one + write("delimiter")))
    if not cells[has_names:]:
        none = f"{path} has a header and no rows; if the line holds numbers, say "
        raise ValueError(told(lambda write: none + write("header", False)))
    texts, relation = f"texts_{local.stem}", f"table_{local.stem}"
    marks = ", ".join(map(quoted, reading.marks))
    each = ", ".join(
        f"CASE WHEN lower(trim(c{j})) NOT IN ({marks}) THEN trim(c{j}) END AS c{j}" for j in range(form.width)
    )
    query = f"CREATE TABLE {texts} AS SELECT {each} FROM {form.source(local, has_names)}"
    _checked(path, lambda: database.rows(query))
    total = database.rows(f"SELECT count(*) FROM {texts}")[0][0]
    before = form.skipped + has_names
    place: tuple[Place, int] = ("line", before + 1) if n_lines == total + before else ("row", 1)
    judged = _judged(database, texts, form)
    selected = ", ".join(f"{column.value} AS c{j}" for j, column in enumerate(judged))
    database.rows(f"CREATE TABLE {relation} AS SELECT {selected} FROM {texts} ORDER BY rowid")
    database.rows(f"DROP TABLE {texts}")
    left_out, flaws, hints, stored = [], {}, {}, []
    for j, (name, column) in enumerate(zip(names, judged, strict=True)):
        if column.too_large:
            left_out.append(LeftOut(name, TOO_LARGE))
            continue
        stored.append(StoredColumn(name, column.kind, f"c{j}"))
        if column.odd is not None:
            row, cell = column.odd
            flaws[name] = _no_number(f"{path}, {place[0]} {place[1] + row:,}, column {name!r}", cell)
        elif column.kind == "category" and (hint := hint_for([row[j] for row in cells[has_names:] if row[j]])):
            hints[name] = hint
    fetch = Fetcher(database, relation, stored, total)
    kept = tuple(column.name for column in stored)
    return Source(path, total, kept, has_names, fetch, tuple(left_out), *place, flaws, hints)


# ------------------------------------------------------------------------------------------------ bytes and first lines


def _in_utf8(path: str, local: Path, database: Database) -> tuple[Path, int]:
    """The file in UTF-8, rewritten from UTF-16 or Windows-1252 if need be, and how many lines it has."""
    with open(local, "rb") as file:
        start = file.read(2)
    encodings = ["utf-16"] if start in (b"\xff\xfe", b"\xfe\xff") else ["utf-8", "cp1252"]
    for encoding in encodings:
        target, lines, last = database.new_path(".table"), 0, "\n"
        errors = "replace" if encoding == "cp1252" else "strict"
        try:
            with (
                open(local, encoding=encoding, errors=errors, newline="") as source,
                open(target, "w", encoding="utf-8", newline="") as file,
            ):
                while text := source.read(_CHUNK):
                    if "\0" in text:
                        raise ValueError(f"{path} is not text; save the table as CSV, or the array by numpy.save")
                    lines, last = lines + text.count("\n"), text[-1]
                    if encoding != "utf-8":
                        file.write(text)
        except UnicodeError as error:
            if encoding == "utf-16":
                raise ValueError(f"{path} begins as UTF-16 and is damaged ({error}); save it as UTF-8") from error
            continue
        return local if encoding == "utf-8" else target, lines + (last != "\n")
    raise AssertionError("every text is one in Windows-1252 with replaced characters")


class _Form(NamedTuple):
    """How the lines are to be read."""

    delimiter: str
    width: int
    skipped: int
    longest: int

    def source(self, local: Path, has_names: bool) -> str:
        """The engine's function that reads all cells as text."""
        columns = ", ".join(f"'c{j}': 'VARCHAR'" for j in range(self.width))
        return (
            f"read_csv({quoted_file(local)}, auto_detect=false, delim={quoted(self.delimiter)}, quote='\"', "
            f"escape='\"', comment='', skip={self.skipped}, strict_mode=true, null_padding=false, "
            f"max_line_size={self.longest}, buffer_size={4 * self.longest}, header={str(has_names).lower()}, "
            f"columns={{{columns}}}, nullstr=[''])"
        )


def _look(path: str, local: Path, given: str | None) -> _Form:
    with open(local, encoding="utf-8-sig", newline="") as file:
        lines = [_bounded(path, number, file.readline(LONGEST_LINE)) for number in range(1, 2 * _LOOK_LINES)]
    first = next((i for i, line in enumerate(lines) if line.strip() and not _COMMENT.match(line)), 0)
    shown = [line for line in lines[first:] if line.strip()][:_LOOK_LINES]
    delimiter = given or delimiter_of(shown)
    width = _widths(shown[:1], delimiter)[0] if shown else 1
    return _Form(delimiter, width, first, min(max(8 * max(map(len, lines)), 2**21), LONGEST_LINE))


def _bounded(path: str, number: int, line: str) -> str:
    if len(line) == LONGEST_LINE:
        raise ValueError(f"{path}, line {number}: more than {LONGEST_LINE:,} characters; is this a table in CSV?")
    return line


def _widths(lines: Sequence[str], delimiter: str) -> list[int]:
    unquoted = _QUOTED.sub("", "".join(lines)).splitlines()
    return [line.count(delimiter) + 1 for line in unquoted if line.strip()] or [1]


def delimiter_of(lines: Sequence[str]) -> str:
    r"""The separator by which the first lines have the same number of cells.

    >>> delimiter_of(["x;y\n", "1,5;2,5\n"]), delimiter_of(["1,2\n", "3,4\n"]), delimiter_of(["x|y\n"])
    (';', ',', '|')
    """
    for delimiter in DELIMITERS:
        widths = set(_widths(lines, delimiter))
        if len(widths) == 1 and widths != {1}:
            return delimiter
    return max(DELIMITERS, key="".join(lines[:1]).count)


def _checked(path: str, run: Any) -> Any:
    """The engine's complaints in our words."""
    import duckdb

    try:
        return run()
    except duckdb.InvalidInputException as error:
        raise ValueError(_complaint(path, str(error))) from error


def _complaint(path: str, said: str) -> str:
    line = re.search(r"Error on Line: (\d+)", said)
    where = f"{path}, line {int(line[1]):,}" if line else path
    widths = re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", said)
    if widths and "unterminated quote" not in said.lower():
        return (
            f"{where}: {widths[2]} cells, and {widths[1]} in the first row; give every row the same number of cells, "
            "in quotation marks where one holds the separator"
        )
    if longest := re.search(r"Maximum line size of (\d+)", said):
        return f"{where}: more than {int(longest[1]):,} characters; is this CSV, and is every quotation mark closed?"
    if "quote" in said.lower():
        return f"{where}: is a quotation mark not closed? Close it, or write two for one that is part of the text"
    reason = " ".join(said.split("Possible")[0].split())[:200]
    return f"{where}: could not parse as CSV ({reason}); write the table again"


# ---------------------------------------------------------------------------------------------------------------- cells


def is_header(rows: Sequence[Sequence[str | None]]) -> bool:
    """Whether the first row holds names: it is all text, counts columns or years, or has text above a number.

    >>> is_header([["age", "city"], ["31", "Rome"]]), is_header([["31", "Rome"], ["27", "Oslo"]])
    (True, False)
    >>> is_header([["0", "1", "2", "3"], ["3.5", "2.5", "1", "7"]]), is_header([["2019", "2020"], ["35", "2.5"]])
    (True, True)
    """
    years = [_are_years(row) for row in rows]
    if _counts(rows[0]) and ((len(rows[0]) > 3 and rows[0][0] in ("0", "1")) or years == [True, False]):
        return True
    texts = [_is_text(cell) for cell in rows[0]]
    below = [_is_text(cell) for cell in rows[1]] if len(rows) > 1 else texts
    return all(texts) or any(text and not other for text, other in zip(texts, below, strict=True))


def _counts(row: Sequence[str | None]) -> bool:
    """Whether the cells are two whole numbers or more, each one more than that before."""
    numbers = [int(cell) for cell in row if cell and cell.isdecimal()]
    return 1 < len(numbers) == len(row) and numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def _are_years(row: Sequence[str | None]) -> bool:
    """Whether some of the cells are years."""
    return any(cell is not None and re.fullmatch("(1[89]|20)[0-9][0-9]", cell) for cell in row)


def _is_text(cell: str | None) -> bool:
    return not is_missing(cell) and number(cell or "", True) is None and not _DATE.fullmatch((cell or "").strip())


def _is_spaced(cell: str | None) -> bool:
    parts = (cell or "").split()
    return len(parts) > 1 and all(number(part, True) is not None for part in parts)


def hint_for(texts: Sequence[str]) -> str:
    """How texts are to be written most of which look like numbers or dates; "" where they do not.

    >>> hint_for(["7.5 kg", "8 kg", "x"]), hint_for(["red", "4a"])
    ("texts such as '7.5 kg' look like numbers or dates: write these as 1234.5 and 2025-12-31", '')
    """
    alike = [text for text in texts if _LIKE_NUMBER.fullmatch(text.strip())]
    if 2 * len(alike) <= len(texts):
        return ""
    return f"texts such as {shortened(alike[0])} look like numbers or dates: write these as 1234.5 and 2025-12-31"


def _no_number(where: str, cell: str) -> str:
    """What is wrong with a word among numbers."""
    start = f"{where}: {shortened(cell)} is not a number; correct it, declare it as missing ("
    return told(lambda write: f"{start}{write('missing')}), or leave the column out ({write('exclude')})")


class _Judged(NamedTuple):
    """What all cells of a column hold: its kind, SQL of its values, and the first row that holds no number."""

    kind: Kind
    value: str
    odd: tuple[int, str] | None = None
    too_large: bool = False


def _judged(database: Database, texts: str, form: _Form) -> list[_Judged]:
    """What each column holds by all of its cells: half are enough for numbers, and all are needed for dates."""
    keys = [f"c{j}" for j in range(form.width)]

    def matching(key: str, pattern: str) -> str:
        return f"regexp_full_match({key}, '{pattern}')"

    grouped = [False] * form.width
    any_comma = " OR ".join(matching(key, _WITH_COMMA) for key in keys)
    if form.delimiter != "," and database.rows(f"SELECT 1 FROM {texts} WHERE {any_comma} LIMIT 1"):
        plain = [lambda key: f"count(*) FILTER (contains({key}, '.') AND NOT {matching(key, GROUPED)})"]
        grouped = [count == 0 for (count,) in _of_columns(database, texts, keys, plain)]
    numbers = {key: _number(key, form.delimiter, each) for key, each in zip(keys, grouped, strict=True)}
    of_numbers = [
        lambda key: f"count({key})",
        lambda key: f"count({numbers[key]})",
        lambda key: f"count(*) FILTER (length({key}) > 15 AND {matching(key, _LONG_WHOLE)})",
    ]
    of_texts = [
        lambda key: f"count(try_cast({key} AS TIMESTAMPTZ))",
        lambda key: f"count(*) FILTER ({matching(key, '(?i:true|false)')})",
    ]
    counts = dict(zip(keys, _of_columns(database, texts, keys, of_numbers), strict=True))
    others = [key for key in keys if 2 * counts[key][1] < counts[key][0]]
    found = dict(zip(others, _of_columns(database, texts, others, of_texts), strict=True))
    return [
        _text_column(key, counts[key][0], *found[key])
        if key in found
        else _number_column(database, texts, key, numbers[key], *counts[key])
        for key in keys
    ]


def _of_columns(
    database: Database, texts: str, keys: Sequence[str], wanted: Sequence[Callable[[str], str]]
) -> list[tuple[Any, ...]]:
    """Some aggregates of each column."""
    found: list[tuple[Any, ...]] = []
    for part in blocks(len(keys), _TOGETHER):
        row = database.rows(f"SELECT {', '.join(sql(key) for key in keys[part] for sql in wanted)} FROM {texts}")[0]
        found += [row[i : i + len(wanted)] for i in range(0, len(row), len(wanted))]
    return found


def _number(cell: str, delimiter: str, grouped: bool) -> str:
    """SQL for the number that a cell holds, NULL where it holds none."""
    plain = f"replace({cell}, '.', '')" if grouped else cell
    plain = plain if delimiter == "," else f"replace({plain}, ',', '.')"
    return f"CASE WHEN regexp_full_match({plain}, '{NUMBER}') THEN try_cast({plain} AS DOUBLE) END"


def _text_column(key: str, count: int, dates: int, truths: int) -> _Judged:
    if truths == count:
        return _Judged("boolean", f"(lower({key}) = 'true')::DOUBLE")
    return _Judged("date", days(f"{key}::TIMESTAMPTZ")) if dates == count else _Judged("category", key)


def _number_column(
    database: Database, texts: str, key: str, number: str, count: int, numbers: int, longs: int
) -> _Judged:
    if numbers < count:
        odd = f"SELECT rowid, {key} FROM {texts} WHERE {key} IS NOT NULL AND {number} IS NULL ORDER BY rowid LIMIT 1"
        return _Judged("number", number, database.rows(odd)[0])
    whole = f"try_cast({key} AS HUGEINT)"
    rows = f"{texts} WHERE regexp_full_match({key}, '{_LONG_WHOLE}')"
    return _Judged("number", number, too_large=bool(longs and loses_numbers(database, whole, rows)))
