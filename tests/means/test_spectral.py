"""Flexible shrinkage: the limits of the ridge, for every filter."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from tables import FILTERS, data_sets, sample

import muhat as mh

LINEAR, GAUSSIAN = mh.Linear(), mh.Gaussian(1.5)
X = sample(7, 3, seed=3)


@pytest.mark.parametrize("data", data_sets())
@pytest.mark.parametrize("filter", FILTERS.values(), ids=FILTERS)
def test_limits_of_the_ridge(filter, data):
    rows = data_sets()[data]
    n = len(rows)
    zero = mh.SpectralKernelMean(LINEAR, filter=filter, lam=0).fit(rows)
    assert_array_equal(zero.weights_, np.full(n, 1 / n))
    assert_array_equal(mh.SpectralKernelMean(LINEAR, filter=filter, lam=np.inf).fit(rows).weights_, 0.0)
    small = mh.SpectralKernelMean(LINEAR, lam=1e-13).fit(rows)
    # The root of a squared distance known to 1e-16 of the squared norm.
    assert small.mean_.distance(zero.mean_) <= 1e-7 * max(zero.mean_.norm(), 1.0)


@pytest.mark.parametrize("filter", FILTERS.values(), ids=FILTERS)
@pytest.mark.parametrize("lam", [1e-300, 1e-30, 1e-12])
def test_a_ridge_far_below_the_spectrum_is_the_plain_mean(filter, lam):
    """In norm; or, where a filter would need too many steps, an error that names lam as it was given."""
    estimator = mh.SpectralKernelMean(GAUSSIAN, filter=filter, lam=lam)
    if hasattr(filter, "max_iter"):
        with pytest.raises(ValueError, match=rf"lam={lam:g} .*max_iter={filter.max_iter}"):
            estimator.fit(X)
    else:
        assert estimator.fit(X).mean_.distance(mh.embed(GAUSSIAN, X)) <= 1e-7


@pytest.mark.parametrize("filter", FILTERS.values(), ids=FILTERS)
@pytest.mark.parametrize("lam", [1e10, 1e300])
def test_a_ridge_far_above_the_spectrum_is_zero(filter, lam):
    for rows in (X, 1e-150 * X):
        fitted = mh.SpectralKernelMean(LINEAR, filter=filter, lam=lam).fit(rows)
        # What is left is the largest eigenvalue, about 10, times the number of iterations over lam.
        assert fitted.mean_.norm() <= 1e-7 * mh.embed(LINEAR, rows).norm()
        assert np.isfinite(fitted.weights_).all()
        assert_allclose(fitted.loo_score_, np.trace(LINEAR(rows)) / 7, rtol=1e-7)


@pytest.mark.parametrize("filter", FILTERS.values(), ids=FILTERS)
def test_weights_that_cannot_be_used_are_refused(filter):
    weights = np.array([2.0, 1, 1, 1, 1, 1, 0.5])
    estimator = mh.SpectralKernelMean(GAUSSIAN, filter=filter, lam=0.5)
    message = "sample_weight=0.5 is too small" if filter == mh.Tikhonov() else "sample_weight must be whole numbers"
    with pytest.raises(ValueError, match=message):
        estimator.fit(X, sample_weight=weights)
