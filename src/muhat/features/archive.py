"""Archive files: numbers and text in an ``.npz`` with a checksum and without pickle, and fitted features in them."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Self, TypeVar
from uuid import uuid4
from zipfile import ZipFile

import numpy as np

from muhat._support.validation import check_flag
from muhat.features.base import BaseFeatures
from muhat.features.fourier import Fourier
from muhat.features.nystroem import Nystroem
from muhat.kernels.base import Kernel
from muhat.kernels.serialization import decode_kernel, encode_kernel
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
    with whole_file(Path(path)) as file:
        _write(file, kind, header, arrays)


def _write(file: BinaryIO, kind: str, header: Header, arrays: Arrays) -> None:
    header = {"format": kind} | header
    header["checksum"] = _checksum(header, arrays)
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
    """What ``restore`` makes of the header and the arrays of a file of this kind, or a ValueError that names the file.

    ``what`` is for the message: "a sketch that MeanSketch.save wrote".
    """
    with Path(path).open("rb") as file:
        return _read(file, os.fstat(file.fileno()).st_size, str(path), kind, what, restore)


def _read(
    file: BinaryIO, size: int, name: str, kind: str, what: str, restore: Callable[[Header, Arrays], Restored]
) -> Restored:
    check_memory(2.0 * size, None, f"reading {name}", "read it where there is more memory")
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
        raise ValueError(f"{name} is not {what}, or it is damaged ({reason}); make it again, and save it") from error


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


def encode_features(features: Any) -> tuple[Header, Arrays]:
    """Header and arrays of fitted features; a ValueError where their kernel is a function."""
    kernel = encode_kernel(features.kernel_)
    if kernel is None:
        raise ValueError(f"{features.kernel_!r} holds more than numbers and cannot be saved; pickle the sketch instead")
    header = {"features": type(features).__name__, "kernel": kernel, "fingerprint": features.fingerprint_}
    header["orthogonal"] = bool(getattr(features, "orthogonal", False))
    arrays = {f"features{name}": getattr(features, name) for name in features._arrays}
    arrays["error"] = features.approximation_error_
    if hasattr(features, "feature_names_in_"):
        arrays["names"] = np.array(features.feature_names_in_, dtype=str)
    return header, arrays


def decode_features(header: Header, arrays: Arrays, kernels: Iterable[type[Kernel]]) -> BaseFeatures:
    """The features of a header and arrays; a ValueError where they do not fit together."""
    kernel = decode_kernel(header["kernel"], kernels)
    features: Any = (_nystroem if header["features"] == "Nystroem" else _fourier)(kernel, header, arrays)
    features.kernel_ = kernel
    for name in features._arrays:
        setattr(features, name, arrays[f"features{name}"])
    features.approximation_error_ = float(finite_array(arrays, "error"))
    if "names" in arrays:
        if arrays["names"].shape != (features.n_features_in_,) or arrays["names"].dtype.kind != "U":
            raise ValueError("its names do not fit the columns")
        features.feature_names_in_ = arrays["names"].astype(object)
    features.fingerprint_ = features._fingerprint()
    if features.fingerprint_ != header["fingerprint"]:
        raise ValueError("its features are damaged: their fingerprint has changed")
    _check_lengths(features)
    return features


def _nystroem(kernel: Kernel, header: Header, arrays: Arrays) -> Nystroem:
    landmarks = finite_array(arrays, "featureslandmarks_", None, None)
    features = Nystroem(kernel, len(landmarks), landmarks)
    features.n_features_in_ = landmarks.shape[1]
    features._n_features_out = finite_array(arrays, "features_map", len(landmarks), None).shape[1]
    return features


def _fourier(kernel: Kernel, header: Header, arrays: Arrays) -> Fourier:
    d, frequencies = finite_array(arrays, "featuresfrequencies_", None, None).shape
    finite_array(arrays, "features_centre", d)
    features = Fourier(kernel, 2 * frequencies, check_flag("orthogonal", header["orthogonal"]))
    features.n_features_in_, features._n_features_out = d, 2 * frequencies
    return features


def _check_lengths(features: Any) -> None:
    """Features belong to their kernel: a projection is not longer than what it projects, z(x)ᵀz(x) ≤ k(x, x)."""
    rows = getattr(features, "landmarks_", np.zeros((1, features.n_features_in_)))
    with np.errstate(over="ignore", invalid="ignore"):
        lengths, most = (features.evaluate(rows) ** 2).sum(axis=1), features.kernel_.diagonal(rows)
        if not (lengths <= 1.001 * most).all():
            raise ValueError("its features do not belong to its kernel")


class ArchivedSketch:
    """Base of sketches that are saved with their features, to a file or as bytes, and read again."""

    features: BaseFeatures
    _format: ClassVar[str]  # name and version of what is saved

    def _encoded_state(self) -> tuple[Header, Arrays]:
        raise TypeError(f"{type(self).__name__} must define _encoded_state()")

    @classmethod
    def _decoded(cls, features: BaseFeatures, header: Header, arrays: Arrays) -> Self:
        raise TypeError(f"{cls.__name__} must define _decoded(features, header, arrays)")

    def save(self, path: str | Path) -> None:
        """Write the sketch and its features to one file (``.npz``) of numbers and text alone."""
        write_archive(path, self._format, *self._encoded())

    def to_bytes(self) -> bytes:
        """Return the content of the file that ``save`` writes, for messages, databases and object stores."""
        file = BytesIO()
        _write(file, self._format, *self._encoded())
        return file.getvalue()

    @classmethod
    def load(cls, path: str | Path, kernels: Iterable[type[Kernel]] = ()) -> Self:
        """Read what ``save`` wrote; nothing in the file is executed.

        The file names the class of its kernel: if you wrote that class yourself, pass it, ``kernels=[MyKernel]``.
        """
        return read_archive(path, cls._format, cls._described(), cls._reader(kernels))

    @classmethod
    def from_bytes(cls, content: bytes, kernels: Iterable[type[Kernel]] = ()) -> Self:
        """Read what ``to_bytes`` returned, with ``kernels`` as in ``load``; nothing in it is executed."""
        if not isinstance(content, bytes | bytearray | memoryview):
            raise ValueError(f"content of type {type(content).__name__} must be bytes; load(path) reads a file")
        size = memoryview(content).nbytes
        return _read(BytesIO(content), size, "content", cls._format, cls._described(), cls._reader(kernels))

    def _encoded(self) -> tuple[Header, Arrays]:
        (header, arrays), (of_state, sums) = encode_features(self.features), self._encoded_state()
        return header | of_state, arrays | sums

    @classmethod
    def _described(cls) -> str:
        return f"a sketch that {cls.__name__}.save of this version wrote"

    @classmethod
    def _reader(cls, kernels: Iterable[type[Kernel]]) -> Callable[[Header, Arrays], Self]:
        known = tuple(kernels)
        return lambda header, arrays: cls._decoded(decode_features(header, arrays, known), header, arrays)
