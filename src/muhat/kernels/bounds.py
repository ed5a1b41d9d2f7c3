"""Upper bounds of kernels, which concentration inequalities need."""

from __future__ import annotations

from functools import singledispatch
from math import inf

from muhat.kernels.base import Composed, Kernel
from muhat.kernels.mixed import Categorical, OnColumns, Rescaled
from muhat.kernels.radial import Radial


@singledispatch
def upper_bound(kernel: Kernel) -> float:
    """The supremum of k(x, x), for kernels with all their values in [0, supremum]; infinity for others.

    Parameters
    ----------
    kernel : Kernel
    """
    return inf


@upper_bound.register(Radial)
def _radial_bound(kernel: Radial) -> float:
    return kernel.value_at_zero


@upper_bound.register(Categorical)
def _categorical_bound(kernel: Categorical) -> float:
    return 1.0


@upper_bound.register(OnColumns)
@upper_bound.register(Rescaled)
def _bound_of_inner_kernel(kernel: OnColumns | Rescaled) -> float:
    return upper_bound(kernel.kernel)


@upper_bound.register(Composed)
def _composed_bound(kernel: Composed) -> float:
    return kernel.combine(map(upper_bound, kernel.parts))
