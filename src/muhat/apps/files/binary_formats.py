"""Readers of NPY files (numpy), and of Parquet files and JSON lines (DuckDB), whose values have types."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from muhat.apps.files.database import Database, check_width, complaint, loses_numbers, quoted, quoted_file, quoted_name
from muhat.apps.files.tables import DATE, Fetcher, Source, StoredColumn, days, unique_names
from muhat.tables.frames import TOO_LARGE, Column, Kind, LeftOut

_MOST_DIGITS = 38  # of decimals

_LONG = ("BIGINT", "HUGEINT", "UBIGINT", "UHUGEINT")
_SIGNED = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
_KINDS: dict[Kind, tuple[str, ...]] = {
    "number": (*_SIGNED, *(f"U{name}" for name in _SIGNED), "FLOAT", "DOUBLE", "DECIMAL"),
    "date": ("DATE", "TIMESTAMP"),
    "duration": ("TIME", "INTERVAL"),
    "boolean": ("BOOLEAN",),
    "category": ("VARCHAR", "ENUM", "UUID"),
}
"""Types of the engine, of which those of dates are looked for before those of durations."""


def read_npy(path: str, local: Path) -> Source:
    """An array of one or two dimensions, mapped into memory."""
    try:
        array = np.load(local, mmap_mode="r", allow_pickle=False)
    except Exception as error:  # a damaged header is a Python literal in error, in many ways
        reason = " ".join(str(error).split())
        raise ValueError(f"{path} does not hold an array of numbers ({reason}); save one by numpy.save") from error
    if array.dtype.kind not in "buif":
        raise ValueError(f"{path} holds values of type {array.dtype}; save real numbers by numpy.save")
    if array.ndim not in (1, 2):
        raise ValueError(f"{path} holds an array of shape {array.shape}; save one of two dimensions, rows and columns")
    if not array.size:
        raise ValueError(f"{path} has no rows")
    matrix = array.reshape(len(array), -1)
    check_width(path, matrix.shape[1])
    kind: Kind = "boolean" if array.dtype.kind == "b" else "number"
    names = tuple(f"column {j}" for j in range(1, matrix.shape[1] + 1))
    place = {name: j for j, name in enumerate(names)}

    def fetch(name: str, rows: slice) -> Column:
        values = np.array(matrix[rows, place[name]], dtype=np.float64)
        values[~np.isfinite(values)] = np.nan
        return Column(name, "missing" if np.isnan(values).all() else kind, values)

    return Source(path, len(matrix), names, False, fetch)


def read_typed(path: str, local: Path, database: Database, json_lines: bool) -> Source:
    """Columns of numbers, truth values, dates and text of a Parquet file or of JSON lines."""
    import duckdb

    relation = f"table_{local.stem}"
    form = "JSON lines" if json_lines else "Parquet"
    try:
        source = f"read_parquet({quoted_file(local)})"
        if json_lines:
            options = "format='newline_delimited', sample_size=-1, map_inference_threshold=-1, "
            options += "dateformat='=%Y', timestampformat='=%Y'"  # dates stay texts: versions of DuckDB differ on them
            source = f"read_json({quoted_file(local)}, {options})"
        described = database.rows(f"DESCRIBE SELECT * FROM {source}")
        database.make_room(path, len(described))
        names = unique_names([row[0] for row in described])
        long = {} if json_lines else _long_decimals(database, local)
        columns, expressions, left_out = [], [], []
        for j, (name, given) in enumerate(zip(names, described, strict=True)):
            type_name = long.get(given[0], str(given[1]))
            if json_lines and type_name == "VARCHAR" and _holds_dates(database, source, given[0]):
                type_name = "TIMESTAMPTZ"
            kind = _kind(type_name)
            if kind is None or (type_name in _LONG and loses_numbers(database, quoted_name(given[0]), source)):
                left_out.append(LeftOut(name, TOO_LARGE if kind else f"it holds values of type {type_name}"))
                continue
            columns.append(StoredColumn(name, kind, f"c{j}"))
            expressions.append(f"{_plain(given[0], kind, type_name)} AS c{j}")
        if not json_lines:  # tables have a rowid of their own
            own = "file_row_number" in {row[0] for row in described}
            source = source if own else f"read_parquet({quoted_file(local)}, file_row_number=true)"
            expressions.append(f"{'row_number() OVER () - 1' if own else 'file_row_number'} AS rowid")
        selected = ", ".join(expressions) or "1 AS nothing"
        # A Parquet file is read column by column; lines of JSON are parsed once.
        stored = "TABLE" if json_lines else "VIEW"
        database.rows(f"CREATE {stored} {relation} AS SELECT {selected} FROM {source}")
        total = database.rows(f"SELECT count(*) FROM {relation}")[0][0]
    except duckdb.Error as error:
        reason = complaint(error).replace(str(local), path)[:200]
        raise ValueError(f"{path} could not be read as {form} ({reason}); write it again or as CSV") from error
    if not total:
        raise ValueError(f"{path} has no rows")
    fetcher = Fetcher(database, relation, columns, total)

    def fetch(name: str, rows: slice) -> Column:
        try:
            return fetcher(name, rows)
        except duckdb.Error as error:  # damage of a Parquet file may show only when values are read
            reason = complaint(error).replace(str(local), path)[:200]
            raise ValueError(f"{path}: column {name!r} could not be read ({reason}); write the file again") from error

    return Source(path, total, tuple(column.name for column in columns), True, fetch, tuple(left_out))


def _long_decimals(database: Database, local: Path) -> dict[str, str]:
    """Decimals that the engine would turn into floats, and its version 1.5 into wrong ones."""
    schema = f"SELECT name, 'DECIMAL with ' || precision || ' digits' FROM parquet_schema({quoted_file(local)})"
    return dict(database.rows(f"{schema} WHERE precision > {_MOST_DIGITS}"))


def _holds_dates(database: Database, source: str, name: str) -> bool:
    """Whether all texts of a column of JSON lines are dates: JSON has no type for them."""
    column = quoted_name(name)
    dates = f"count(CASE WHEN regexp_full_match({column}, {quoted(DATE)}) THEN try_cast({column} AS TIMESTAMPTZ) END)"
    found, total = database.rows(f"SELECT {dates}, count({column}) FROM {source}")[0]
    return bool(total and found == total)


def _kind(type_name: str) -> Kind | None:
    if type_name.endswith(("]", "digits")):
        return None
    return next((kind for kind, types in _KINDS.items() if type_name.startswith(types)), None)


def _plain(name: str, kind: Kind, given: str) -> Any:
    column = quoted_name(name)
    if kind == "category":
        return f"{column}::VARCHAR"
    if kind in ("number", "boolean"):
        return f"{column}::DOUBLE"
    if kind == "duration":
        return days(column, kind)
    # A moment with a time zone stays the same moment; the engine has no cast from it to a plain TIMESTAMP.
    return days(f"{column}::{'TIMESTAMPTZ' if 'TZ' in given or 'TIME ZONE' in given else 'TIMESTAMP'}")
