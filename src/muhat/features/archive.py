"""Fitted features as the header and the arrays of a file."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from muhat._support.archives import Arrays, Header, finite_array
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
    arrays = {f"features{name}": getattr(features, name) for name in features._arrays}
    arrays["error"] = features.approximation_error_
    if hasattr(features, "feature_names_in_"):
        arrays["names"] = np.array(features.feature_names_in_, dtype=str)
    return header, arrays


def decode_features(header: Header, arrays: Arrays, kernels: Iterable[type[Kernel]]) -> BaseFeatures:
    """The features of a header and arrays; a ValueError where they do not fit together."""
    kernel = decode_kernel(header["kernel"], kernels)
    features: Any = (_nystroem if header["features"] == "Nystroem" else _fourier)(kernel, arrays)
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


def _nystroem(kernel: Kernel, arrays: Arrays) -> Nystroem:
    landmarks = finite_array(arrays, "featureslandmarks_", None, None)
    features = Nystroem(kernel, len(landmarks), landmarks)
    features.n_features_in_ = landmarks.shape[1]
    features._n_features_out = finite_array(arrays, "features_map", len(landmarks), None).shape[1]
    return features


def _fourier(kernel: Kernel, arrays: Arrays) -> Fourier:
    d, frequencies = finite_array(arrays, "featuresfrequencies_", None, None).shape
    finite_array(arrays, "features_centre", d)
    features = Fourier(kernel, 2 * frequencies)
    features.n_features_in_, features._n_features_out = d, 2 * frequencies
    return features


def _check_lengths(features: Any) -> None:
    """Features belong to their kernel: a projection is not longer than what it projects, z(x)ᵀz(x) ≤ k(x, x)."""
    rows = getattr(features, "landmarks_", np.zeros((1, features.n_features_in_)))
    with np.errstate(over="ignore", invalid="ignore"):
        lengths, most = (features.evaluate(rows) ** 2).sum(axis=1), features.kernel_.diagonal(rows)
        if not (lengths <= 1.001 * most).all():
            raise ValueError("its features do not belong to its kernel")
