"""DuckDB database for tables in files, in a temporary folder and with a bound on its memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from muhat._support.extras import load_extra

MEMORY_MB = 1000
"""What the engine may hold in memory; more goes to the temporary folder."""

WIDE = 2000
"""Tables of more columns need memory for each of them."""

MEMORY_A_COLUMN_MB = 0.3

MOST_COLUMNS = 50_000
"""Tables of more columns are refused: the engine would take minutes and gigabytes before it has read a row."""


@dataclass(frozen=True, eq=False)
class Database:
    """An open connection, and the folder in which files may lie until the command ends."""

    connection: Any
    folder: Path

    def rows(self, query: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """All rows that a query gives."""
        found: list[tuple[Any, ...]] = self.connection.execute(query, parameters).fetchall()
        return found

    def arrays(self, query: str) -> dict[str, Any]:
        """The columns that a query gives, as arrays, masked where values are missing."""
        found: dict[str, Any] = self.connection.execute(query).fetchnumpy()
        return found

    def make_room(self, path: str, width: int) -> None:
        """Let a table of many columns have more memory: the engine works on 2,048 rows of all columns at once."""
        check_width(path, width)
        if width > WIDE:
            self.rows(f"SET memory_limit = '{MEMORY_MB + width * MEMORY_A_COLUMN_MB}MB'")
            self.rows("PRAGMA disable_optimizer")  # its time grows with the square of the columns

    def new_path(self, suffix: str) -> Path:
        """A path in the folder that no file has yet."""
        return self.folder / f"file{sum(1 for _ in self.folder.iterdir())}{suffix}"


def check_width(path: str, width: int) -> None:
    """Refuse tables of too many columns, before anything is read."""
    if width > MOST_COLUMNS:
        raise ValueError(
            f"{path} has {width:,} columns, and a table may have up to {MOST_COLUMNS:,}; save fewer of them, or "
            "turn the table if its rows stand in columns"
        )


def loses_numbers(database: Database, whole: str, rows: str) -> bool:
    """Whether different whole numbers become one in double precision."""
    different = f"count(DISTINCT whole) > count(DISTINCT whole::DOUBLE) FROM (SELECT {whole} AS whole FROM {rows})"
    return bool(database.rows(f"SELECT {different} WHERE abs(whole::DOUBLE) > {2**53 - 1}")[0][0])


def quoted(text: str) -> str:
    """A text in SQL.

    >>> print(quoted("it's"))
    'it''s'
    """
    return "'" + text.replace("'", "''") + "'"


def quoted_name(name: str) -> str:
    """The name of a column in SQL."""
    return '"' + name.replace('"', '""') + '"'


def quoted_file(path: Path) -> str:
    """The path of one file in SQL: signs that would match several names stand for themselves.

    >>> print(quoted_file(Path("a?.csv")))
    'a[?].csv'
    """
    return quoted("".join(f"[{sign}]" if sign in "*?[" else sign for sign in str(path)))


def complaint(error: Exception) -> str:
    """What the engine says is wrong, without its query and its advice."""
    return str(error).splitlines()[0].partition("Error: ")[2] or type(error).__name__


@contextmanager
def open_database() -> Iterator[Database]:
    """A database that is gone when the block ends. It never loads anything from the network."""
    duckdb = load_extra("duckdb", "files", "reading files")

    with TemporaryDirectory(prefix="muhat-") as folder:
        settings: dict[str, Any] = {
            "memory_limit": f"{MEMORY_MB}MB",
            "temp_directory": str(Path(folder) / "spilled"),
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "threads": 1,  # with several, DuckDB 2.0 now and then lost the order of lines
        }
        connection = duckdb.connect(config=settings)
        try:
            # The engine looks for its log at a wrong place where the path has a question mark: it writes none.
            place = quoted(str(Path(folder) / "tables.duckdb"))
            connection.execute(f"ATTACH {place} AS tables (RECOVERY_MODE no_wal_writes)")
            connection.execute("USE tables")
            connection.execute("SET TimeZone = 'UTC'")
            yield Database(connection, Path(folder))
        finally:
            connection.close()
