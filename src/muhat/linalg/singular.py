"""Singular value decomposition that falls back to a slower driver where the fast one fails."""

from __future__ import annotations

import numpy as np
from scipy.linalg import svd

from muhat.types import Array


def thin_svd(A: Array) -> tuple[Array, Array, Array]:
    """U, the singular values and Vᵀ of a finite matrix, of its smaller size.

    LAPACK's fast driver (gesdd) does not converge for some valid matrices; the slower one (gesvd) finds those.
    """
    try:
        U, values, Vt = svd(A, full_matrices=False, check_finite=False)
    except np.linalg.LinAlgError:
        U, values, Vt = svd(A, full_matrices=False, check_finite=False, lapack_driver="gesvd")
    return U, values, Vt
