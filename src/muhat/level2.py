"""Kernels between mean elements: functions of their inner products and distances."""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np

from muhat.kernels import Gaussian, Kernel, Laplace, Linear, Matern, Polynomial
from muhat.types import Array

Level2 = Kernel | Literal["linear"]

_ROUNDING = 1e-14
"""Squared distances of two elements below so much of their squared norms are rounding, and count as 0."""


def check_level2(level2: Any) -> None:
    """Raise a ValueError unless ``level2`` is "linear", or a function of distances or of inner products."""
    if isinstance(level2, str) and level2 == "linear":
        return
    if not isinstance(level2, Gaussian | Laplace | Matern | Linear | Polynomial):
        raise ValueError(
            f'level2={level2!r} must be "linear", or a kernel that is a function of the distance of two mean '
            f"elements (Gaussian, Laplace, Matern) or of their inner product (Linear, Polynomial)"
        )


def squared_distances(inner: Array, a: Array, b: Array) -> Array:
    """‖f_i − g_j‖² from the inner products ⟨f_i, g_j⟩ and the squared norms a_i = ‖f_i‖², b_j = ‖g_j‖²."""
    sizes = np.add.outer(a, b)
    distances = sizes - 2.0 * inner
    distances[distances <= _ROUNDING * sizes] = 0.0
    return distances


def resolve_level2(level2: Level2, inner: Array) -> Level2:
    """The kernel with "median" replaced by the median distance over the pairs i < j of a Gram matrix."""
    if not isinstance(level2, Gaussian | Laplace | Matern) or level2.bandwidth != "median":
        return level2
    norms = np.diag(inner)
    squared = squared_distances(inner, norms, norms)[np.triu_indices(len(inner), 1)]
    positive = squared[squared > 0]
    if not len(positive):
        raise ValueError(
            f"level2={level2!r} needs two bags that differ, and the mean elements of all bags ({len(inner)}) are "
            f"equal; pass the bandwidth as a number, for example level2=Gaussian(bandwidth=1.0)"
        )
    if np.median(squared) == 0:
        warnings.warn(
            f"level2={level2!r}: more than half of the pairs of bags coincide, so the median distance is 0; the "
            f"median of the non-zero distances is used instead. Pass a number to choose the bandwidth yourself.",
            UserWarning,
            stacklevel=2,
        )
        squared = positive
    median = np.median(np.sqrt(squared)) if isinstance(level2, Laplace) else np.sqrt(np.median(squared))
    return level2.with_params(bandwidth=float(median))


def evaluate_level2(level2: Level2, inner: Array, a: Array, b: Array) -> Array:
    """κ(f_i, g_j) from inner products and squared norms, the kernel resolved.

    On the line, a radial kernel of 0 and r is its profile at the distance r, and an inner-product kernel of 1 and
    t its profile at t: so the kernels' own formulas serve in any space.
    """
    if not isinstance(level2, Kernel) or isinstance(level2, Linear):
        return inner.copy()
    if isinstance(level2, Polynomial):
        origin, arguments = np.ones((1, 1)), inner
    else:
        origin, arguments = np.zeros((1, 1)), np.sqrt(squared_distances(inner, a, b))
    return level2._gram(origin, arguments.reshape(-1, 1)).reshape(inner.shape)
