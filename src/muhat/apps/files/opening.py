"""Opening of files by their first bytes: CSV, NPY, Parquet or JSON lines; plain, compressed, a pipe or many files."""

from __future__ import annotations

import gzip
import os
import shutil
import sys
import zlib
from glob import glob
from pathlib import Path
from typing import IO, TextIO, cast

from muhat.apps.files.binary_formats import read_npy, read_typed
from muhat.apps.files.database import Database
from muhat.apps.files.tables import Reading, Source, joined
from muhat.apps.files.text_format import read_text

STANDARD_INPUT = "-"

MOST_COPIED = 2**32
"""Bytes of a pipe or of an unpacked file that are copied, or a quarter of the free space if that is less."""

_OTHERS = {
    b"PK": ("a zip archive, as Excel files and .npz are", "save the table as CSV, or the array by numpy.save"),
    **dict.fromkeys(
        [b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd"], ("compressed otherwise than by gzip", "unpack it first")
    ),
    **dict.fromkeys([b"<!", b"<?", b"<html"], ("HTML or XML", "export the table as CSV")),
    **dict.fromkeys([b"[{", b"[["], ("JSON in one piece", "write one object per line (JSON lines)")),
}
_GZIP, _NPY, _PARQUET, _UTF_16 = b"\x1f\x8b", b"\x93NUMPY", b"PAR1", (b"\xff\xfe", b"\xfe\xff")
_KNOWN = (_GZIP, _NPY, _PARQUET, *_UTF_16)
_START = 64
_CHUNK = 2**20


class NoSuchFile(FileNotFoundError, ValueError):
    """A path at which there is no file, or a pattern that no file matches."""


def read_table(path: str, database: Database, reading: Reading) -> Source:
    """Read a file or a pipe into the database; ``-`` is the standard input.

    A pattern such as ``jan/*.parquet`` takes all files that match it, one after the other. The message of a ValueError
    names the line, the column and the remedy. Where a file does not exist, the error is a FileNotFoundError as well.
    """
    if any(sign in path for sign in "*?[") and not Path(path).exists():
        found = sorted(glob(path, recursive=True))
        if not found:
            raise NoSuchFile(f"no file matches {path}; check the folder and the pattern")
        return joined([read_table(name, database, reading) for name in found], path)
    try:
        return _read(path, _local(path, database), database, reading)
    except IsADirectoryError as error:
        raise ValueError(
            f"{path} is a folder; name a file in it, or files by a pattern such as {path}/*.csv"
        ) from error
    except FileNotFoundError as error:
        raise NoSuchFile(f"{path} cannot be read: {error.strerror or error}; check its name and folder") from error
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror or error}") from error


def standard_input() -> TextIO:
    """The standard input, or a ValueError where the process was started without one."""
    if sys.stdin is None:
        raise ValueError("the standard input is closed; name a file")
    return sys.stdin


def _local(path: str, database: Database) -> Path:
    """A file that can be read twice, under a name without signs that the engine would interpret."""
    target = database.new_path(".table")
    if path == STANDARD_INPUT:
        _copy(standard_input().buffer, target, path)
        return target
    with open(path, "rb") as file:  # names what cannot be read
        if not Path(path).is_file():
            _copy(file, target, path)
            return target
    try:
        target.symlink_to(os.path.abspath(path))
    except OSError:  # some systems have no links
        shutil.copyfile(path, target)
    return target


def _copy(source: IO[bytes], target: Path, path: str) -> None:
    most = min(MOST_COPIED, shutil.disk_usage(target.parent).free // 4)
    copied = 0
    with open(target, "wb") as file:
        while chunk := source.read(_CHUNK):
            if not copied:
                _check_start(path, chunk[:_START])
            copied += len(chunk)
            if copied > most:
                raise ValueError(
                    f"{path} is longer than {most / 1e9:.2g} GB, the most that is copied to the temporary folder of a "
                    "pipe or a compressed file; save it as a plain file, and name that"
                )
            file.write(chunk)


def _check_start(path: str, start: bytes) -> None:
    """Refuse what the first bytes show to be no table."""
    if start.startswith(_KNOWN):
        return
    for magic, (kind, remedy) in _OTHERS.items():
        if start.startswith(magic):
            raise ValueError(f"{path} is {kind}; {remedy}")
    if b"\0" in start:
        raise ValueError(f"{path} is not text; save the table as CSV, or the array by numpy.save")


def _read(path: str, local: Path, database: Database, reading: Reading) -> Source:
    with open(local, "rb") as file:
        start = file.read(_START)
    if start.startswith(_GZIP):
        local = _unpacked(path, local, database)
        with open(local, "rb") as file:
            start = file.read(_START)
    if start.startswith(_NPY):
        return read_npy(path, local)
    json_lines = start.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{")
    if json_lines or start.startswith(_PARQUET):
        return read_typed(path, local, database, json_lines)
    _check_start(path, start)
    return read_text(path, local, database, reading)


def _unpacked(path: str, local: Path, database: Database) -> Path:
    target = database.new_path(".table")
    try:
        with gzip.open(local, "rb") as file:
            _copy(cast(IO[bytes], file), target, path)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{path} is a damaged gzip file ({error}); compress the table again") from error
    return target
