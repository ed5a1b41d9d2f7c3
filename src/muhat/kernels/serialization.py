"""Serialization of kernels as names and numbers, for files: nothing that is read is ever run.

A kernel is written as the name of its class and the values of its fields. What a name means is decided by the reader:
the kernels of this library, and those classes that the caller passes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from muhat.kernels.base import Kernel, Product, Scaled, Sum
from muhat.kernels.dot import Linear, Polynomial
from muhat.kernels.radial import Gaussian, Laplace, Matern

_OURS: dict[str, type[Kernel]] = {
    kind.__name__: kind for kind in (Linear, Polynomial, Gaussian, Laplace, Matern, Sum, Product, Scaled)
}


def encode_kernel(kernel: Kernel) -> dict[str, Any] | None:
    """The kernel as names and numbers; None for one that holds anything else, such as a function or an array."""
    name = type(kernel).__name__
    if _OURS.get(name, type(kernel)) is not type(kernel):
        return None  # the name means another class
    values = {key: _encode_value(value) for key, value in kernel.get_params(deep=False).items()}
    return None if None in values.values() else {"kernel": name, "parameters": values}


def _encode_value(value: Any) -> Any:
    if isinstance(value, Kernel):
        return encode_kernel(value)
    plain = value.item() if isinstance(value, np.generic) else value
    return plain if isinstance(plain, bool | int | float | str) else None


def decode_kernel(encoded: Any, kernels: Iterable[type[Kernel]] = ()) -> Kernel:
    """The kernel that ``encode_kernel`` wrote; names mean kernels of this library, or the classes that are passed."""
    return _decode(encoded, _known(kernels))


def _known(kernels: Iterable[type[Kernel]]) -> dict[str, type[Kernel]]:
    own = list(kernels)
    for kind in own:
        if not (isinstance(kind, type) and issubclass(kind, Kernel)):
            raise ValueError(
                f"kernels={own!r} must hold classes of kernels; pass the class, such as kernels=[MyKernel]"
            )
    return {kind.__name__: kind for kind in own} | _OURS


def _decode(encoded: Any, known: dict[str, type[Kernel]]) -> Kernel:
    if not (isinstance(encoded, dict) and isinstance(encoded.get("parameters"), dict)):
        raise ValueError("its kernel is not written as a name and parameters")
    name = encoded.get("kernel")
    if name not in known:
        raise ValueError(f"its kernel is a {name}, which is not one of muhat's; pass the class: kernels=[{name}]")
    values = {key: _decode(v, known) if isinstance(v, dict) else v for key, v in encoded["parameters"].items()}
    return known[name](**values)
