"""A file of numbers, whatever its format: a bounded sample of its rows, in one pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from io import BufferedReader
from itertools import islice
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from muhat.types import Array

ROWS = 1000
"""How many rows of a file are used by default; of more, a random sample."""

Row = TypeVar("Row")


@dataclass(frozen=True)
class Reading:
    """How files are read: at most so many ``rows``, sampled with ``seed``; ``columns`` by name, default all.

    ``header`` says whether the first row holds names; None looks at it.
    """

    rows: int = ROWS
    seed: int = 0
    header: bool | None = None
    columns: Sequence[str] | None = None


@dataclass(frozen=True, eq=False)
class Sheet:
    """What was read of a file: ``values[i, j]`` stands in line ``lines[i]`` of column ``names[j]``, NaN if missing.

    ``total`` counts the rows of the whole file, and ``place`` says what ``lines`` count: "line" or "row". ``text`` says
    what the columns without numbers hold, and ``flaws`` where columns of numbers hold something else.
    """

    path: str
    names: tuple[str, ...]
    values: Array
    lines: NDArray[np.int64]
    total: int
    has_names: bool
    place: str
    text: dict[str, str] = field(default_factory=dict)
    flaws: dict[str, str] = field(default_factory=dict)


def read_sheet(path: str, reading: Reading) -> Sheet:
    """Read a CSV, NPY or Parquet file, told apart by their first bytes.

    Parameters
    ----------
    path : str
    reading : Reading

    Returns
    -------
    Sheet

    Raises
    ------
    ValueError
        In words for whoever has the file: which line, which column, what to do.
    """
    rng = np.random.default_rng(reading.seed)
    try:
        with open(path, "rb") as raw:
            return _read(path, raw, reading, rng)
    except IsADirectoryError as error:
        raise ValueError(f"{path} is a folder; name a file in it") from error
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror or error}") from error


def _read(path: str, raw: BufferedReader, reading: Reading, rng: np.random.Generator) -> Sheet:
    start = raw.peek()
    if start.startswith(b"\x93NUMPY"):
        from muhat.files.binary_formats import read_npy

        return read_npy(path, reading.rows, rng)
    if start.startswith(b"PAR1"):
        from muhat.files.binary_formats import read_parquet

        return read_parquet(path, reading.rows, rng)
    for magic, (kind, remedy) in _OTHERS.items():
        if start.startswith(magic):
            raise ValueError(f"{path} is {kind}; {remedy}")
    from muhat.files.csv_format import read_csv

    return read_csv(path, raw, start, reading, rng)


_OTHERS = {
    b"PK": ("a zip archive, as Excel files and .npz are", "save the table as CSV, or the array by numpy.save"),
    b"\x1f\x8b": ("compressed", "unpack it first: gunzip FILE, or <(zcat FILE) in place of its name"),
    b"\xd0\xcf\x11\xe0": ("an old Excel file", "save the table as CSV"),
    b"%PDF": ("a PDF", "export the table as CSV"),
    **dict.fromkeys([b"<!", b"<?", b"<html"], ("HTML or XML", "export the table as CSV")),
    **dict.fromkeys([b"{", b"[{", b"[["], ("JSON", "save the table as CSV")),
    b"\x89HDF": ("an HDF5 file", "save the array by numpy.save"),
    b"SQLite format": ("a database of SQLite", "export the table as CSV"),
    b"ARROW1": ("an Arrow file", "save the table as Parquet"),
}


def sampled(rows: Iterator[Row], limit: int, rng: np.random.Generator) -> list[Row]:
    """At most ``limit`` rows, each with the same chance, in one pass and in bounded memory.

    After the first rows the number of rows to pass over is drawn, rather than a number for each row (Li 1994,
    algorithm L).

    >>> import numpy as np
    >>> sorted(sampled(iter(range(5)), 9, np.random.default_rng(0)))
    [0, 1, 2, 3, 4]
    >>> len(set(sampled(iter(range(1000)), 9, np.random.default_rng(0))))
    9
    """
    kept = list(islice(rows, limit))
    log_largest = 0.0
    while True:
        log_largest -= rng.exponential() / limit
        passed_over = rng.exponential() / -np.log1p(-np.exp(log_largest))
        found = next(islice(rows, int(min(passed_over, 2**62)), None), None)
        if found is None:
            return kept
        kept[rng.integers(limit)] = found


def sampled_numbers(total: int, limit: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Numbers of at most ``limit`` of ``total`` rows, ascending."""
    return np.arange(total) if total <= limit else np.sort(rng.choice(total, limit, replace=False))
