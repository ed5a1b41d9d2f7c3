"""Kernels of pairs, and what covariance estimators refuse."""

import numpy as np
import pytest

import muhat as mh


def pairs(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.sin(X[:, :2]) + 0.3 * rng.normal(size=(n, 2))


@pytest.mark.parametrize("rows", [np.ones((12, 2)), np.repeat(np.eye(2), 6, axis=0), 1e-140 * pairs(12)[0], np.eye(2)])
@pytest.mark.parametrize("mean", [None, mh.ShrunkKernelMean(), mh.SpectralKernelMean()], ids=repr)
def test_degenerate_rows(rows, mean):
    for kernel in (mh.Gaussian(1.0), mh.Linear()):
        found = mh.KernelCovariance(kernel, mean=mean).fit(rows)
        assert np.isfinite(found.weights_).all()
        assert np.isfinite(found.operator_.norm())


@pytest.mark.parametrize("scale", [1e140, 1e170])
def test_overflow_is_refused(scale):
    X, Y = pairs(20)
    with pytest.raises(ValueError, match="overflows on X"):
        mh.KernelCovariance(mh.Linear()).fit(scale * X, Y * scale)
