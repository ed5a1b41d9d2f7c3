"""Quadratic programmes on the simplex."""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls

from muhat._support.types import Array


def simplex_minimiser(M: Array, ones: Array, floor: float = 0.0) -> Array:
    r"""The u ≥ 0 with ``ones``ᵀu = 1 for which uᵀMu is least, M positive semi-definite.

    For u ≥ 0 the least of uᵀMu + (1ᵀu − 1)² along the ray of u is f/(1 + f), with f = uᵀMu at 1ᵀu = 1. It grows with f,
    so that non-negative least squares is exact. The entries of M are about 1, and ``ones`` are positive, 1 each for the
    simplex itself. ``floor`` is the least eigenvalue that M is given: above 0 it makes the shortest of equal solutions
    the only one, so that the active set does not cycle among them, which ends with a RuntimeError.

    >>> simplex_minimiser(np.diag([1.0, 3.0]), np.ones(2)).round(4)
    array([0.75, 0.25])
    """
    eigenvalues, eigenvectors = np.linalg.eigh(M)
    root = np.sqrt(eigenvalues.clip(floor))[:, None] * eigenvectors.T
    u, _ = nnls(np.vstack([root, ones]), np.append(np.zeros(len(M)), 1.0), maxiter=100 * len(M))
    return u / (ones @ u)
