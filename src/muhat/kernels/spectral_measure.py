"""Spectral measures of kernels, from which random Fourier features draw frequencies (Bochner's theorem)."""

from __future__ import annotations

from functools import singledispatch

import numpy as np

from muhat.kernels.base import Kernel
from muhat.kernels.radial import Gaussian, Laplace, Matern
from muhat.types import Array


@singledispatch
def sample_frequencies(kernel: Kernel, width: int, count: int, rng: np.random.Generator) -> Array:
    """Draw frequencies w from the spectral measure: E cos wᵀ(x − y) = k(x, y), for rows divided by the bandwidth.

    Parameters
    ----------
    kernel : Kernel
    width : int
        Columns of the rows.
    count : int
    rng : numpy.random.Generator

    Returns
    -------
    array of shape (width, count)
    """
    raise ValueError(
        f"kernel={kernel!r} is not registered with muhat.kernels.sample_frequencies, which Fourier features need; "
        f"use Nystroem"
    )


@sample_frequencies.register(Gaussian)
def _gaussian_frequencies(kernel: Gaussian, width: int, count: int, rng: np.random.Generator) -> Array:
    """Standard normal."""
    return rng.standard_normal((width, count))


@sample_frequencies.register(Laplace)
def _laplace_frequencies(kernel: Laplace, width: int, count: int, rng: np.random.Generator) -> Array:
    """Cauchy in each coordinate."""
    return rng.standard_cauchy((width, count))


@sample_frequencies.register(Matern)
def _matern_frequencies(kernel: Matern, width: int, count: int, rng: np.random.Generator) -> Array:
    """Student's t with 2ν degrees of freedom."""
    normal = rng.standard_normal((width, count))
    return normal / np.sqrt(rng.chisquare(2 * kernel.nu, count) / (2 * kernel.nu))
