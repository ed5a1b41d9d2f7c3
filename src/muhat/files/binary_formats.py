"""Readers of NPY files (numpy) and Parquet files (DuckDB)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from muhat.files.database import Database, complaint, quoted_file
from muhat.files.tables import Column, FileTable, Kind, unique_names
from muhat.linalg.blocks import blocks

_MOST_DIGITS = 38  # of decimals
_CELLS = 2**22  # cells of an array that are passed on at once

_SIGNED = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
_NUMBERS = (*_SIGNED, *(f"U{name}" for name in _SIGNED), "FLOAT", "DOUBLE", "DECIMAL")
_DATES = ("DATE", "TIMESTAMP")
_TEXTS = ("VARCHAR", "BOOLEAN", "ENUM", "UUID")


def read_npy(path: str, local: Path, database: Database) -> FileTable:
    """An array of one or two dimensions, passed on block by block."""
    array = _array(path, local)
    array = array.reshape(len(array), -1) if array.size else np.empty((0, 0))
    if not array.size:
        raise ValueError(f"{path} has no rows")
    database.make_room(path, array.shape[1])
    keys = [f"c{j}" for j in range(array.shape[1])]
    relation = f"table_{local.stem}"
    database.rows(f"CREATE TABLE {relation} ({', '.join(f'{key} DOUBLE' for key in keys)})")
    step = max(_CELLS // array.shape[1], 1)
    for rows in blocks(len(array), step):
        block = np.array(array[rows].T, dtype=np.float64, order="C")
        database.connection.register("block", dict(zip(keys, block, strict=True)))
        database.rows(f"INSERT INTO {relation} SELECT * FROM block")
        database.connection.unregister("block")
    columns = tuple(Column(f"column {j}", "number", key) for j, key in enumerate(keys, start=1))
    return FileTable(path, database, relation, columns, len(array), has_names=False)


def _array(path: str, local: Path) -> Any:
    try:
        array = np.load(local, mmap_mode="r", allow_pickle=False)
    except Exception as error:  # a damaged header is a Python literal in error, in many ways
        reason = " ".join(str(error).split())
        raise ValueError(f"{path} does not hold an array of numbers ({reason}); save one by numpy.save") from error
    if array.dtype.kind not in "buif":
        raise ValueError(f"{path} holds values of type {array.dtype}; save real numbers by numpy.save")
    if array.ndim not in (1, 2):
        raise ValueError(f"{path} holds an array of shape {array.shape}; save one of two dimensions, rows and columns")
    return array


def read_parquet(path: str, local: Path, database: Database) -> FileTable:
    """The columns of numbers, dates and short texts."""
    import duckdb

    relation = f"table_{local.stem}"
    try:
        source = f"read_parquet({quoted_file(local)})"
        described = database.rows(f"DESCRIBE SELECT * FROM {source}")
        database.make_room(path, len(described))
        names = unique_names([row[0] for row in described])
        # The engine turns longer decimals into floats, and its version 1.5 into wrong ones.
        schema = f"SELECT name, 'DECIMAL with ' || precision || ' digits' FROM parquet_schema({quoted_file(local)})"
        long = dict(database.rows(f"{schema} WHERE precision > {_MOST_DIGITS}"))
        types = [long.get(row[0], str(row[1])) for row in described]
        columns, expressions, unusable = [], [], {}
        for j, (name, given, kind) in enumerate(zip(names, described, types, strict=True)):
            found = _kind(kind)
            if found is None:
                unusable[name] = f"values of type {kind}"
                continue
            columns.append(Column(name, found, f"c{j}"))
            expressions.append(f"{_cast(given[0], found, kind)} AS c{j}")
        selected = ", ".join(expressions) or "1 AS nothing"
        database.rows(f"CREATE TABLE {relation} AS SELECT {selected} FROM {source}")
        total = database.rows(f"SELECT count(*) FROM {relation}")[0][0]
    except duckdb.Error as error:
        reason = complaint(error).replace(str(local), path)[:200]
        raise ValueError(f"{path} could not be read as Parquet ({reason}); write it again or as CSV") from error
    if not total:
        raise ValueError(f"{path} has no rows")
    return FileTable(path, database, relation, tuple(columns), total, has_names=True, unusable=unusable)


def _kind(kind: str) -> Kind | None:
    if kind.endswith("digits"):
        return None
    if kind.startswith(_NUMBERS):
        return None if kind.endswith("]") else "number"
    if kind.startswith(_DATES):
        return None if kind.endswith("]") else "date"
    return "category" if kind.startswith(_TEXTS) and not kind.endswith("]") else None


def _cast(name: str, kind: Kind, given: str) -> str:
    column = '"' + name.replace('"', '""') + '"'
    if kind == "number":
        return f"{column}::DOUBLE"
    # A moment with a time zone stays the same moment; the engine has no cast from it to a plain TIMESTAMP.
    exact = "TIMESTAMPTZ" if "TZ" in given or "TIME ZONE" in given else "TIMESTAMP"
    return f"epoch({column}::{exact})::DOUBLE" if kind == "date" else f"{column}::VARCHAR"
