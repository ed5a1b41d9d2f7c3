"""Kernels between elements of a Hilbert space, such as the mean elements of bags: kernels between distributions.

A function of the distance of two rows is one of the distance ‖f − g‖ of two elements too, and a function of the inner
product one of ⟨f, g⟩. Both follow from the inner products of the elements and their squared norms.
"""

from __future__ import annotations

from functools import singledispatch

import numpy as np

from muhat._support.types import Array
from muhat.kernels.base import Composed, Kernel
from muhat.kernels.dot import InnerProduct
from muhat.kernels.radial import FARTHEST, Radial
from muhat.linalg.distances import element_squared_distances, positive_median


@singledispatch
def evaluate_between_elements(kernel: Kernel, inner: Array, left: Array, right: Array) -> Array:
    """Kernel values (n, m) between elements f and g of a Hilbert space.

    ``inner`` holds the inner products ⟨f, g⟩, of shape (n, m), ``left`` the n squared norms ‖f‖² and ``right`` the m of
    ‖g‖².
    """
    raise ValueError(f"{kernel!r} does not compare elements; use a function of their distance or inner product")


_UNKNOWN = evaluate_between_elements.dispatch(object)


def compares_elements(kernel: Kernel) -> bool:
    """Whether the kernel also compares elements of a Hilbert space."""
    if isinstance(kernel, Composed):
        return all(map(compares_elements, kernel.parts))
    return evaluate_between_elements.dispatch(type(kernel)) is not _UNKNOWN


evaluate_between_elements.register(InnerProduct, lambda kernel, inner, left, right: kernel.profile(inner.copy()))


@evaluate_between_elements.register(Radial)
def _of_distances(kernel: Radial, inner: Array, left: Array, right: Array) -> Array:
    r = np.sqrt(element_squared_distances(inner, left, right))
    with np.errstate(over="ignore"):
        r /= kernel.width
    return kernel.profile(np.minimum(r, FARTHEST, out=r))


@evaluate_between_elements.register(Composed)
def _of_parts(kernel: Composed, inner: Array, left: Array, right: Array) -> Array:
    return kernel.combine(evaluate_between_elements(part, inner, left, right) for part in kernel.parts)


def resolve_between_elements(kernel: Kernel, inner: Array) -> Kernel:
    """The kernel with every "median" replaced by the median distance between elements with these inner products."""
    if isinstance(kernel, Composed):
        return kernel.with_parts(resolve_between_elements(part, inner) for part in kernel.parts)
    if isinstance(kernel, Radial) and kernel.bandwidth == "median":
        return kernel.with_params(bandwidth=_median_distance(kernel, inner))
    return kernel


def _median_distance(kernel: Radial, inner: Array) -> float:
    """The median heuristic of rows: the median of distances for L1, the root of the median of squares otherwise."""
    norms = np.diag(inner)
    squared = element_squared_distances(inner, norms, norms)[np.triu_indices(len(inner), 1)]
    cityblock = kernel.metric == "cityblock"
    if not len(squared):
        squared = np.zeros(1)  # of a single bag
    median = positive_median(np.sqrt(squared) if cityblock else squared, what=f"level2={kernel!r}", of="bags")
    return median if cityblock else float(np.sqrt(median))
