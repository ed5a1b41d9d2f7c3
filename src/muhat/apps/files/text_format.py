"""CSV as people have it: with a header or without, separated by commas or other signs, with comments and empty cells.

A look at the first lines and one pass over the bytes decide how the engine is told to read the file. The engine never
guesses: with fixed rules it refuses lines that have too many or too few cells.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from muhat.apps.files.database import Database, quoted, quoted_file
from muhat.apps.files.tables import (
    DATE,
    DELIMITERS,
    GROUPED,
    MISSING,
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
from muhat.apps.files.told import Told, told
from muhat.tables.frames import KIND_IN_WORDS, Kind

LONGEST_LINE = 2**24

_LOOK_LINES = 20
_LOOK_CELLS = 200_000
_CHUNK = 2**22
_QUOTED = re.compile(r'"(?:[^"]|"")*"')
_COMMENT = re.compile(r"#([\s#!]|$)")
_DATE = re.compile(DATE)
_WITH_COMMA = r"\s*[+-]?[0-9.]*,[0-9]+\s*"
_UNIT = r"[%$€£¥]|[kMGm]?(?:g|m|s|l|L|W|Wh|V|A|B|Hz|Pa)|cm|lbs?|oz|km/h|mph|m/s|min|h|hrs?|days?|°[CF]|USD|EUR|GBP|CHF"
_DRESSED = re.compile(rf"[$€£¥]?\s?-?\d[\d,.' ]*\s?(?:{_UNIT})?")
_OTHER_DATE = re.compile(r"\d{1,4}[/.-]\d{1,2}[/.-]\d{1,4}\b.*")
_UNDERSCORE = re.compile(rb"_(?<=[0-9]_)[0-9]")


def read_text(path: str, local: Path, database: Database, reading: Reading) -> Source:
    """Read a CSV file into the database; every line must have its width, and every number must be one."""
    local, survey = _surveyed(path, local, database)
    form = _look(path, local, survey, reading.delimiter)
    database.make_room(path, form.width)
    cells = _beginning(path, local, form, database)
    if all(not (cell or "").strip() for row in cells for cell in row):
        raise ValueError(f"{path} is empty; it should hold a row of values in each line")
    has_names = is_header(cells[:2]) if reading.header is None else reading.header
    names = unique_names(cells[0] if has_names else [None] * form.width)
    rows = cells[has_names:]
    if form.width == 1 and all(_is_spaced(row[0]) for row in rows):
        one = f"{path} has one column; separate its columns by commas, or say "
        raise ValueError(told(lambda write: one + write("delimiter")))
    if not rows:
        none = f"{path} has a header and no rows; if the line holds numbers, say "
        raise ValueError(told(lambda write: none + write("header", False)))
    form = replace(form, has_names=has_names, decimal_comma=_decimal_comma(form.delimiter, rows))
    guesses = [_guess([row[j] for row in rows], form.decimal_comma, reading.marks) for j in range(form.width)]
    return _Load(path, local, database, form, survey, names, guesses, reading.marks).table()


# ------------------------------------------------------------------------------------------------ bytes and first lines


@dataclass(frozen=True)
class _Survey:
    """What one pass over the bytes finds: lines, lines that begin with #, and whether # stands elsewhere too.

    Where bytes are ``doubtful``, the engine would read numbers that are none by NUMBER: 1_0 as 10, +-1 as -1.
    """

    lines: int
    hash_lines: int
    hashes: int
    doubtful: bool


def _surveyed(path: str, local: Path, database: Database) -> tuple[Path, _Survey]:
    """The file in UTF-8, rewritten if need be, and what a pass over it finds."""
    with open(local, "rb") as file:
        start = file.read(2)
    if start in (b"\xff\xfe", b"\xfe\xff"):
        local = _rewritten(path, local, "utf-16", database)
    survey = _survey(path, local)
    if survey is None:
        survey = _survey(path, local := _rewritten(path, local, "cp1252", database))
    assert survey is not None
    return local, survey


def _survey(path: str, local: Path) -> _Survey | None:
    """None if the file is not in UTF-8."""
    lines = hash_lines = hashes = 0
    doubtful = False
    last, end, rest = b"\n", b"", b""
    with open(local, "rb") as file:
        while chunk := file.read(_CHUNK):
            if b"\0" in chunk:
                raise ValueError(f"{path} is not text; save the table as CSV, or the array by numpy.save")
            lines += chunk.count(b"\n")
            hashes += chunk.count(b"#")
            hash_lines += chunk.count(b"\n#") + (last == b"\n" and chunk.startswith(b"#"))
            joined = end + chunk  # what is cut by the end of a chunk is found too
            doubtful = doubtful or b"+-" in joined or bool(_UNDERSCORE.search(joined))
            last, end = chunk[-1:], joined[-2:]
            if rest or not chunk.isascii():
                text = rest + chunk
                try:
                    text.decode()
                    rest = b""
                except UnicodeDecodeError as error:
                    if error.reason != "unexpected end of data":
                        return None
                    rest = text[error.start :]  # the last character is cut off
    return None if rest else _Survey(lines + (last != b"\n"), hash_lines, hashes, doubtful)


def _rewritten(path: str, local: Path, encoding: str, database: Database) -> Path:
    target = database.new_path(".table")
    with (
        open(local, encoding=encoding, errors="strict" if encoding == "utf-16" else "replace", newline="") as source,
        open(target, "w", encoding="utf-8", newline="") as file,
    ):
        try:
            while text := source.read(_CHUNK):
                file.write(text)
        except UnicodeError as error:
            raise ValueError(f"{path} begins as UTF-16 and is damaged ({error}); save it as UTF-8") from error
    return target


@dataclass(frozen=True)
class _Form:
    """How the lines are to be read."""

    delimiter: str
    width: int
    skipped: int
    has_comments: bool
    longest: int
    has_names: bool = False
    decimal_comma: bool = False

    def options(self) -> str:
        """The part of the engine's arguments that says so."""
        comment = "comment='#', " if self.has_comments else "comment='', "
        return (
            f"auto_detect=false, delim={quoted(self.delimiter)}, quote='\"', escape='\"', {comment}"
            f"skip={self.skipped}, strict_mode=true, null_padding=false, "
            f"max_line_size={self.longest}, buffer_size={4 * self.longest}"
        )


def _look(path: str, local: Path, survey: _Survey, given: str | None) -> _Form:
    with open(local, encoding="utf-8-sig", newline="") as file:
        lines = [_bounded(path, number, file.readline(LONGEST_LINE)) for number in range(1, 2 * _LOOK_LINES)]
    shown = [line for line in lines if line.strip() and not _COMMENT.match(line)][:_LOOK_LINES]
    delimiter = given or delimiter_of(shown)
    width = _widths(shown[:1], delimiter)[0] if shown else 1
    first = next((i for i, line in enumerate(lines) if line.strip() and not _COMMENT.match(line)), 0)
    leading = sum(line.startswith("#") for line in lines[:first])
    # The engine cuts lines at a comment sign wherever it stands, so it is told of one only where none stands elsewhere.
    later = survey.hash_lines > leading and survey.hashes == survey.hash_lines + _hashes_inside(lines[:first])
    has_comments = later and all(_COMMENT.match(line) for line in lines if line.startswith("#"))
    longest = min(max(8 * max(map(len, lines)), 2**21), LONGEST_LINE)
    return _Form(delimiter, width, 0 if has_comments else first, has_comments, longest)


def _hashes_inside(lines: Sequence[str]) -> int:
    return sum(line.count("#") - line.startswith("#") for line in lines)


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


def _beginning(path: str, local: Path, form: _Form, database: Database) -> list[tuple[str | None, ...]]:
    columns = ", ".join(f"'c{j}': 'VARCHAR'" for j in range(form.width))
    count = max(_LOOK_CELLS // form.width, 2)
    source = f"read_csv({quoted_file(local)}, {form.options()}, header=false, columns={{{columns}}})"
    return _checked(path, lambda: database.rows(f"SELECT * FROM {source} LIMIT {count}"))


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


def _decimal_comma(delimiter: str, rows: Sequence[Sequence[str | None]]) -> bool:
    if delimiter == ",":
        return False
    cells = (cell for row in rows for cell in row if cell and "," in cell)
    return any(number(cell, True) is not None for cell in cells)


@dataclass(frozen=True)
class _Guess:
    """What the first rows of a column look like; ``sure`` if no cell speaks against it."""

    kind: Kind
    sure: bool
    hint: str = ""


def _guess(column: Sequence[str | None], decimal_comma: bool, marks: Sequence[str] = MISSING) -> _Guess:
    cells = [cell.strip() for cell in column if cell is not None and not is_missing(cell, marks)]
    numbers = sum(number(cell, decimal_comma) is not None for cell in cells)
    if 2 * numbers >= len(cells):
        return _Guess("number", numbers == len(cells))
    if all(map(_DATE.fullmatch, cells)):
        return _Guess("date", True)
    dressed = [cell for cell in cells if _DRESSED.fullmatch(cell) and number(undressed(cell), False) is not None]
    if 2 * len(dressed) > len(cells):
        return _Guess("category", True, f"write {shortened(dressed[0])} as {undressed(dressed[0])}")
    dates = [cell for cell in cells if _OTHER_DATE.fullmatch(cell) and not _DATE.fullmatch(cell)]
    if 2 * len(dates) > len(cells):
        return _Guess("category", True, f"write dates such as {shortened(dates[0])} as 2025-12-31: year, month, day")
    return _Guess("category", True)


def hint_for(texts: Sequence[str]) -> str:
    """How texts that stand for numbers or dates are to be written; "" where they do not.

    >>> hint_for(["7.5", "8"]), hint_for(["7.5 kg", "8 kg"]), hint_for(["red", "blue"])
    ("these texts are numbers: convert them, such as '7.5'", "write '7.5 kg' as 7.5", '')
    """
    guess = _guess(texts, decimal_comma=False)
    if guess.kind == "category" or not guess.sure or not texts:
        return guess.hint
    return f"these texts are {KIND_IN_WORDS[guess.kind]}: convert them, such as {shortened(texts[0])}"


def undressed(cell: str) -> str:
    """A price, a percentage or a number with its unit as a plain number.

    The last of two kinds of separators is the decimal one.

    >>> [undressed(cell) for cell in ("$1,200", "€ 36.15", "1.234,50 €", "12,5 %", "1 200 000", "-4.5 kg")]
    ['1200', '36.15', '1234.50', '12.5', '1200000', '-4.5']
    """
    plain = re.sub(r"[^\d.,-]", "", cell)
    decimal = max(".,", key=plain.rfind)
    other = "," if decimal == "." else "."
    plain = plain.replace(other, "")
    thousands = plain.count(decimal) > 1 or (decimal == "," and re.search(r",\d{3}$", plain))
    return plain.replace(decimal, "" if thousands else ".")


# -------------------------------------------------------------------------------------------------------------- loading


def _no_number(where: str, cell: str) -> Told:
    """What is wrong with a word among numbers."""
    start = f"{where}: {shortened(cell)} is not a number; correct it, declare it as missing ("
    return told(lambda write: f"{start}{write('missing')}), or leave the column out ({write('exclude')})")


@dataclass(frozen=True)
class _Load:
    """From a file in UTF-8 to a table with the kinds of its columns."""

    path: str
    local: Path
    database: Database
    form: _Form
    survey: _Survey
    names: Sequence[str]
    guesses: Sequence[_Guess]
    marks: Sequence[str]

    @cached_property
    def relation(self) -> str:
        return f"table_{self.local.stem}"

    def table(self) -> Source:
        """The engine is told the types as guessed; where a cell does not fit, all are read as text and judged."""
        import duckdb

        kinds = [guess.kind for guess in self.guesses]
        flaws: dict[str, str] = {}
        fits = all(guess.sure for guess in self.guesses) and not self.survey.doubtful and not self.form.decimal_comma
        if fits:
            try:
                self._create(kinds)
                fits = not self._holds_numbers(kinds)
            except (duckdb.ConversionException, duckdb.InvalidInputException) as error:
                if "convert" not in str(error).lower():
                    raise ValueError(_complaint(self.path, str(error))) from error
                fits = False
        if not fits:
            kinds, flaws = self._judged()
        total = self.database.rows(f"SELECT count(*) FROM {self.relation}")[0][0]
        place, first = self._place(total)
        columns = [
            StoredColumn(name, kind, f"c{j}") for j, (name, kind) in enumerate(zip(self.names, kinds, strict=True))
        ]
        hints = {name: guess.hint for name, guess in zip(self.names, self.guesses, strict=True) if guess.hint}
        fetch = Fetcher(self.database, self.relation, columns, total, text=True)
        options: dict[str, Any] = {"place": place, "first": first, "flaws": flaws, "hints": hints}
        return Source(self.path, total, tuple(self.names), self.form.has_names, fetch, **options)

    def _source(self, types: Sequence[str], nulls: Sequence[str]) -> str:
        columns = ", ".join(f"'c{j}': '{kind}'" for j, kind in enumerate(types))
        decimal = ", decimal_separator=','" if self.form.decimal_comma else ""
        header = str(self.form.has_names).lower()
        return (
            f"read_csv({quoted_file(self.local)}, {self.form.options()}, header={header}, columns={{{columns}}}, "
            f"nullstr={list(nulls)}{decimal})"
        )

    def _create(self, kinds: Sequence[Kind]) -> None:
        types = ["DOUBLE" if kind == "number" else "TIMESTAMPTZ" if kind == "date" else "VARCHAR" for kind in kinds]
        kept = {"date": days("{0}"), "category": self._text()}
        changed = [f"{kept[kind].format(f'c{j}')} AS c{j}" for j, kind in enumerate(kinds) if kind in kept]
        selected = f"* REPLACE ({', '.join(changed)})" if changed else "*"
        forms = {form for mark in self.marks for form in (mark, mark.upper(), mark.capitalize(), mark.title())}
        source = self._source(types, sorted(forms | {"NaN"}))
        self.database.rows(f"CREATE OR REPLACE TABLE {self.relation} AS SELECT {selected} FROM {source}")

    def _holds_numbers(self, kinds: Sequence[Kind]) -> bool:
        """Whether a column that begins with texts mostly holds numbers: the first rows do not decide."""
        texts = [f"c{j}" for j, kind in enumerate(kinds) if kind == "category"]
        counts = ", ".join(f"2 * count({self._number(key)}) >= count({key}) AND count({key}) > 0" for key in texts)
        return bool(texts) and any(self.database.rows(f"SELECT {counts} FROM {self.relation}")[0])

    def _judged(self) -> tuple[list[Kind], dict[str, str]]:
        """Read all as text, decide what each column holds by all of its cells, and turn it into that."""
        texts, width = f"texts_{self.local.stem}", self.form.width
        selected = ", ".join(f"{self._text().format(f'c{j}')} AS c{j}" for j in range(width))
        source = self._source(["VARCHAR"] * width, [""])
        _checked(self.path, lambda: self.database.rows(f"CREATE TABLE {texts} AS SELECT {selected} FROM {source}"))
        total = self.database.rows(f"SELECT count(*) FROM {texts}")[0][0]
        kinds: list[Kind] = []
        flaws: dict[str, str] = {}
        keys = [f"c{j}" for j in range(width)]
        numbers = [self._number(key, grouped) for key, grouped in zip(keys, self._grouped(texts, keys), strict=True)]
        for key, number_of, name in zip(keys, numbers, self.names, strict=True):
            kind, odd = self._kind(texts, key, number_of)
            kinds.append(kind)
            if odd:
                place, first = self._place(total)
                flaws[name] = _no_number(f"{self.path}, {place} {first + odd[0]:,}, column {name!r}", odd[1])
        converted = [
            {"number": number_of, "date": days(f"{key}::TIMESTAMPTZ"), "category": key}[kind]
            for key, number_of, kind in zip(keys, numbers, kinds, strict=True)
        ]
        selected = ", ".join(f"{value} AS {key}" for value, key in zip(converted, keys, strict=True))
        query = f"SELECT {selected} FROM {texts} ORDER BY rowid"
        self.database.rows(f"CREATE OR REPLACE TABLE {self.relation} AS {query}")
        self.database.rows(f"DROP TABLE {texts}")
        return kinds, flaws

    def _grouped(self, texts: str, keys: Sequence[str]) -> list[bool]:
        """Columns whose points set thousands apart: all do, and the file has decimal commas."""
        if self.form.delimiter == ",":
            return [False] * len(keys)
        commas = " OR ".join(f"regexp_full_match({key}, '{_WITH_COMMA}')" for key in keys)
        plain = [
            f"count(*) FILTER (contains({key}, '.') AND NOT regexp_full_match({key}, '{GROUPED}'))" for key in keys
        ]
        found = self.database.rows(f"SELECT count(*) FILTER ({commas}), {', '.join(plain)} FROM {texts}")[0]
        return [found[0] > 0 and count == 0 for count in found[1:]]

    def _number(self, cell: str, grouped: bool = False) -> str:
        # A decimal comma may come first below the rows that were looked at.
        plain = cell if self.form.delimiter == "," else f"replace({cell}, ',', '.')"
        if grouped:
            plain = f"replace(replace({cell}, '.', ''), ',', '.')"
        return f"CASE WHEN regexp_full_match({plain}, '{NUMBER}') THEN try_cast({plain} AS DOUBLE) END"

    def _kind(self, texts: str, key: str, number: str) -> tuple[Kind, tuple[int, str] | None]:
        count, numbers, dates = self.database.rows(
            f"SELECT count({key}), count({number}), count(try_cast({key} AS TIMESTAMPTZ)) FROM {texts}"
        )[0]
        if 2 * numbers < count:
            return ("date" if dates == count else "category"), None
        if numbers == count:
            return "number", None
        odd = f"SELECT rowid, {key} FROM {texts} WHERE {key} IS NOT NULL AND {number} IS NULL ORDER BY rowid LIMIT 1"
        return "number", self.database.rows(odd)[0]

    def _text(self) -> str:
        """SQL for a cell without blanks around it, NULL where it stands for a missing value."""
        return f"CASE WHEN lower(trim({{0}})) NOT IN ({', '.join(map(quoted, self.marks))}) THEN trim({{0}}) END"

    def _place(self, total: int) -> tuple[Place, int]:
        """Lines are counted where each row has one; otherwise rows are, from 1."""
        before = self.form.skipped + self.form.has_names
        whole = not self.form.has_comments and self.survey.lines == total + before
        return ("line", before + 1) if whole else ("row", 1)
