"""Archive files (``.npz``): numbers and text with a checksum and without pickle, replaced as a whole."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, TypeVar
from uuid import uuid4
from zipfile import ZipFile

import numpy as np

from muhat.linalg.resources import check_memory

Restored = TypeVar("Restored")

Header = dict[str, Any]

Arrays = dict[str, Any]


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write to, beside the path and moved over it at the end: a reader sees the old content or the new.

    The file beside has a name of its own, so that of several writers at once each writes a whole file, and the last
    one to finish stays.
    """
    if path.exists() and not path.is_file():  # a pipe, or a terminal
        with path.open("wb") as file:
            yield file
        return
    path = path.resolve()
    temporary = path.with_name(f".muhat-{uuid4().hex}.part")
    try:
        with temporary.open("xb") as file:
            yield file
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write_archive(path: str | Path, kind: str, header: Header, arrays: Arrays) -> None:
    """Write a header, of what JSON can hold, and arrays; ``kind`` says what and which version: "muhat.MeanSketch.2"."""
    header = {"format": kind} | header
    header["checksum"] = _checksum(header, arrays)
    with whole_file(Path(path)) as file:
        np.savez(file, header=np.array(json.dumps(header)), **arrays)


def npz_arrays(file: BinaryIO, largest: float) -> Arrays:
    """The arrays of an ``.npz`` file; a ValueError, before anything is unpacked, where they have more bytes."""
    with ZipFile(file) as packed:
        unpacked = sum(part.file_size for part in packed.infolist())
    if unpacked > largest:
        raise ValueError(f"it unpacks to {unpacked:,} bytes, and {largest:,.0f} are the most that it may")
    for _ in range(9):
        # Python 3.11 counts the depth of parsing for all threads together, and parsing numpy's headers can then
        # fail with a SystemError because another thread parsed something in between: nothing is wrong with the file.
        with suppress(SystemError):
            return _unpacked(file)
    return _unpacked(file)


def _unpacked(file: BinaryIO) -> Arrays:
    file.seek(0)
    with np.load(file, allow_pickle=False) as archive:
        return {name: np.asarray(archive[name], order="C") for name in archive.files}


def read_archive(path: str | Path, kind: str, what: str, restore: Callable[[Header, Arrays], Restored]) -> Restored:
    """Read a file of this kind and restore its content, or raise a ValueError that names the file.

    ``what`` is for the message: "a sketch that MeanSketch.save wrote".
    """
    with Path(path).open("rb") as file:
        size = os.fstat(file.fileno()).st_size  # of the file that is read: another may take its place at any time
        check_memory(2.0 * size, None, f"reading {path}", "read it where there is more memory")
        try:
            arrays = npz_arrays(file, size)  # no more bytes than the file has, since nothing in it is compressed
            header = json.loads(str(arrays.pop("header")))
            if header["format"] != kind:
                raise ValueError(f"its format is {header['format']!r}, and this version reads {kind!r}")
            if header.pop("checksum") != _checksum(header, arrays):
                raise ValueError("its contents do not match their checksum")
            return restore(header, arrays)
        except Exception as error:  # a damaged file can fail in any way, and all of them mean the same
            reason = str(error) or type(error).__name__
            raise ValueError(
                f"{path} is not {what}, or it is damaged ({reason}); make it again, and save it"
            ) from error


def finite_array(arrays: Arrays, name: str, *shape: int | None, dtype: str = "f8") -> Any:
    """The array of this name; a ValueError unless it has this type, this shape (None for any length) and is finite."""
    if name not in arrays:
        raise ValueError(f"{name} is missing")
    array = arrays[name]
    if array.dtype != np.dtype(dtype):
        raise ValueError(f"{name} holds {array.dtype} and must hold {np.dtype(dtype)}")
    if len(shape) != array.ndim or any(want not in (None, size) for want, size in zip(shape, array.shape, strict=True)):
        raise ValueError(f"{name} has shape {array.shape} and must have {shape}, where None is any length")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} holds NaN or infinity")
    return array


def _checksum(header: Header, arrays: Arrays) -> str:
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype.str} {array.shape} ".encode() + array.tobytes())
    return digest.hexdigest()
