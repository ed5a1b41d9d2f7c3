"""Fitted features and sketches in archive files."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from io import BytesIO
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from muhat._support.archives import Arrays, Header, finite_array, read_archive, read_from, write_archive, write_to
from muhat._support.validation import check_flag
from muhat.features.base import BaseFeatures
from muhat.features.fourier import Fourier
from muhat.features.nystroem import Nystroem
from muhat.kernels.base import Kernel
from muhat.kernels.serialization import decode_kernel, encode_kernel


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
        write_to(file, self._format, *self._encoded())
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
        return read_from(BytesIO(content), size, "content", cls._format, cls._described(), cls._reader(kernels))

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
