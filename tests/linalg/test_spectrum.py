"""Singular values are those of the matrix, also where LAPACK's fast driver gives up."""

import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose

from muhat.linalg import spectrum


@pytest.mark.parametrize("fast_driver_fails", [False, True])
def test_the_factors_give_the_matrix(monkeypatch, fast_driver_fails):
    def svd(A, *, lapack_driver="gesdd", **options):
        if lapack_driver == "gesdd" and fast_driver_fails:
            raise np.linalg.LinAlgError("SVD did not converge")
        return scipy.linalg.svd(A, lapack_driver=lapack_driver, **options)

    monkeypatch.setattr(spectrum, "svd", svd)
    A = np.random.default_rng(0).normal(size=(7, 4)) @ np.diag([1.0, 1e-3, 0.0, 2.0])
    U, values, Vt = spectrum.thin_svd(A)
    assert_allclose(U * values @ Vt, A, atol=1e-14)
    assert_allclose(U.T @ U, np.eye(4), atol=1e-13)
    assert_allclose(values, np.linalg.svd(A, compute_uv=False), atol=1e-14)
