"""Every warning names the caller's own line, however deep inside of the package it arises."""

import warnings

import numpy as np
import pytest

import muhat as mh

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 2))
UNEVEN = np.column_stack([X[:, 0], 1000.0 * X[:, 1]])
COPIES = np.concatenate([np.zeros((50, 2)), X[:10]])
BAGS = [rng.normal(size=(n, 2)) for n in (2, 3, 40)]
OUTLIERS = np.concatenate([X, X[:20] + 9.0])

CALLS = {
    "no convergence of weights": lambda: mh.RobustKernelMean(max_iter=1, threshold=0.9).fit(OUTLIERS),
    "median of copies": lambda: mh.KernelMean().fit(COPIES),
    "median of copies, without an estimator": lambda: mh.Gaussian().resolve(COPIES),
    "median of equal bags": lambda: mh.DistributionKernel(level2=mh.Gaussian()).fit([BAGS[0]] * 4 + [BAGS[1]]),
    "bags of uneven sizes": lambda: mh.OneClassSupportMeasureMachine(mh.Gaussian(1.0)).fit(BAGS),
    "nothing to whiten by": lambda: mh.DistributionKernel(mh.Gaussian(1.0), whiten=True).fit([X[:1], X[1:2], X[2:3]]),
    "one column of a test": lambda: mh.mmd_test(UNEVEN, UNEVEN, kernel=mh.Gaussian(), n_resamples=9, random_state=0),
    "rows that depend on time": lambda: mh.DriftMonitor(20, n_simulations=100, random_state=0).fit(
        np.repeat([0.2, 3.0] * 3, 50)[:, None] * np.random.default_rng(0).normal(size=(300, 2))
    ),
    "a component a row": lambda: mh.MatchedGaussianMixture(3, mh.Gaussian(1.0), random_state=0).fit(X[:3]),
    "a component in a corner": lambda: mh.MatchedGaussianMixture(
        2, mh.Gaussian(1.0), init=np.repeat([0, 1], [50, 10]), variance_floor=5.0, random_state=0
    ).fit(X),
    "a search cut short": lambda: mh.MatchedGaussianMixture(2, mh.Gaussian(1.0), max_iter=1, random_state=0).fit(X),
}


@pytest.mark.parametrize("call", CALLS)
def test_the_line_of_the_caller_is_named(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        CALLS[call]()
    assert caught
    assert {warning.filename for warning in caught} == {__file__}
