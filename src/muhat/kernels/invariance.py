"""Invariance of kernels under translations and rotations of the rows, and their length scales."""

from __future__ import annotations

from functools import singledispatch

from muhat.kernels.base import Composed, Kernel
from muhat.kernels.radial import Radial


@singledispatch
def is_stationary(kernel: Kernel) -> bool:
    """Whether k(x, y) is a bounded function of x − y, and so can be evaluated at any point of the space.

    Parameters
    ----------
    kernel : Kernel
    """
    return False


@singledispatch
def is_isotropic(kernel: Kernel) -> bool:
    """Whether k(x, y) is a function of the distance ‖x − y‖, which no rotation of the rows changes.

    Parameters
    ----------
    kernel : Kernel
    """
    return False


@singledispatch
def length_scales(kernel: Kernel) -> tuple[float, ...]:
    """The numbers that rows are divided by: one for each part of the kernel that has a bandwidth.

    Parameters
    ----------
    kernel : Kernel
    """
    return ()


@is_stationary.register(Radial)
def _radial_is_stationary(kernel: Radial) -> bool:
    return True


@is_isotropic.register(Radial)
def _radial_is_isotropic(kernel: Radial) -> bool:
    return kernel.metric == "euclidean"


@length_scales.register(Radial)
def _radial_length_scale(kernel: Radial) -> tuple[float, ...]:
    return (kernel.width,)


# A sum, product or multiple is invariant where all its parts are.


@is_stationary.register(Composed)
def _composed_is_stationary(kernel: Composed) -> bool:
    return all(map(is_stationary, kernel.parts))


@is_isotropic.register(Composed)
def _composed_is_isotropic(kernel: Composed) -> bool:
    return all(map(is_isotropic, kernel.parts))


@length_scales.register(Composed)
def _composed_length_scales(kernel: Composed) -> tuple[float, ...]:
    return tuple(scale for part in kernel.parts for scale in length_scales(part))
