"""A mean estimator as a recipe: what ``mean=`` means in an estimator that builds on kernel means.

The host's kernel replaces the recipe's own, and ``None`` is the plain average.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from muhat.adapters import Precomputed
from muhat.elements import Element, embed
from muhat.kernels import Kernel
from muhat.mean import BaseKernelMean
from muhat.types import Array


def check_recipe(name: str, mean: Any) -> None:
    """Raise a ValueError unless ``mean`` is None or a mean estimator."""
    if mean is not None and not isinstance(mean, BaseKernelMean):
        raise ValueError(f"{name}={mean!r} must be None (the plain average) or an estimator such as ShrunkKernelMean()")


def mean_weights(mean: BaseKernelMean | None, K: Array) -> Array:
    """Weights β that the recipe gives the rows of a Gram matrix, taken as valid; a single row has weight 1."""
    if mean is None or len(K) == 1:
        return np.full(len(K), 1.0 / len(K))
    kernel = Precomputed(K)
    return clone(mean)._fit_points(kernel, kernel.training_points()).weights_


def mean_element(mean: BaseKernelMean | None, kernel: Kernel, X: Array) -> Element:
    """The recipe's estimate in the space of a resolved kernel, from checked rows; a single row is its own mean."""
    if mean is None or len(X) == 1:
        return embed(kernel, X)
    return clone(mean)._fit_points(kernel, X).mean_
