"""Mistakes with matched mixtures: every error names the parameter, the value and the remedy."""

import re
import tracemalloc
import warnings

import numpy as np
import pytest
from errors import refused
from mixtures import matched, two_clusters
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from tables import KERNELS, WITHOUT_CLOSED_FORM

import muhat as mh
from muhat.linalg import resources

X = two_clusters()
FITTED = matched().fit(X)


def fit(data=X, **settings):
    return lambda: matched(**settings).fit(data)


PARAMETERS = [
    ({"n_components": 0}, "n_components=0 must be a whole number"),
    ({"n_components": 2.0}, "n_components=2.0 must be a whole number"),
    ({"n_components": 81}, "n_components=81 must not exceed the number of rows"),
    ({"kernel": "rbf"}, "kernel='rbf' must be a kernel object"),
    ({"kernel": "precomputed"}, "kernel='precomputed' must be a kernel object"),
    ({"mean": "shrunk"}, "mean='shrunk' must be None"),
    ({"kernel": mh.Gaussian(1e-150)}, "a bandwidth whose square over- or underflows. Multiply X by a constant"),
    ({"kernel": mh.Gaussian(1e150)}, "a bandwidth whose square over- or underflows"),
    ({"solver": "em"}, "solver='em' must be one of 'slsqp', 'lbfgs', 'weights'"),
    ({"n_init": -1}, "n_init=-1 must be a whole number"),
    ({"random_state": "seed"}, "random_state='seed' must be"),
    ({"covariance_type": "full"}, "covariance_type='full' must be one of 'spherical', 'diag'"),
    ({"variance_floor": 0.0}, "variance_floor=0.0 must be a number in"),
    ({"variance_floor": np.nan}, "variance_floor=nan must be a number in"),
    ({"max_iter": 0}, "max_iter=0 must be a whole number"),
    ({"tol": -1e-3}, "tol=-0.001 must be a number in"),
    ({"init": "k-means++"}, "init='k-means\\+\\+' must be a KMeans"),
    ({"init": np.zeros(7, dtype=int)}, "one label a row"),
    ({"init": np.zeros(80)}, "80 whole numbers"),
    ({"init": np.full(80, 3)}, "init has labels from 3 to 3; they must be 0, …, 2"),
    (
        {"init": KMeans(2, n_init=1).fit(X)},
        r"init has centres of shape \(2, 2\) and must have \(3, 2\)",
    ),
    ({"init": mh.GaussianMixture([1.0], [[0.0, 0.0]], [1.0])}, "must have n_components=3 in 2 dimensions"),
]
ROWS = [
    (np.full((9, 2), np.nan), "NaN"),
    (np.ones((1, 2)), "1 sample"),
    (np.ones(9), "Expected 2D"),
    ([["a", "b"]] * 9, "not numbers"),
    (np.arange(9.0)[:, None] * 1e160, "rescale X first"),
    (np.ones((9, 2)), "two rows that differ"),
]
MISTAKES = [
    *((str(settings), fit(**settings), ValueError, message) for settings, message in PARAMETERS),
    *((message, fit(rows), ValueError, message) for rows, message in ROWS),
    *((name, fit(kernel=KERNELS[name]), ValueError, "no closed-form expectation") for name in WITHOUT_CLOSED_FORM),
    ("overflow", fit(1e60 * X, kernel=mh.Polynomial(degree=3)), ValueError, "overflows on X"),
    ("not fitted, scores", lambda: matched().score_samples(X), NotFittedError, "fit"),
    ("not fitted, sample", lambda: matched().sample(), NotFittedError, "fit"),
    ("another width", lambda: FITTED.score_samples(np.ones((2, 3))), ValueError, "3 features"),
    ("no draws", lambda: FITTED.sample(0), ValueError, "n_samples=0"),
]

test_mistakes = refused(MISTAKES)


@pytest.mark.parametrize(("solver", "remedy"), [("slsqp", 'use solver="lbfgs", fewer'), ("lbfgs", "use fewer")])
def test_memory_is_refused_before_it_is_taken(solver, remedy, monkeypatch):
    """40,000 columns: SLSQP keeps a matrix of all parameters, and a density has a covariance a component."""
    monkeypatch.setattr(resources, "free_memory", lambda: 1e10)
    with pytest.raises(
        MemoryError, match=rf"2 components in 40,000 columns would need .*B and 6 GB may be used; {remedy}"
    ):
        matched(n_components=2, solver=solver).fit(np.random.default_rng(0).normal(size=(5, 40_000)))


@pytest.mark.parametrize("shape", [(60, 200), (400, 4)])
@pytest.mark.parametrize("covariance_type", ["spherical", "diag"])
def test_a_fit_takes_no_more_than_it_counts(shape, covariance_type, monkeypatch):
    rows, mixture = np.random.default_rng(0).normal(size=shape), matched(3, max_iter=2, covariance_type=covariance_type)
    with monkeypatch.context() as patched:
        patched.setattr(resources, "free_memory", lambda: 1.0)
        with pytest.raises(MemoryError) as error:
            mixture.fit(rows)
    needed, unit = re.search(r"need ([\d.]+) ([kM]B)", str(error.value)).groups()
    tracemalloc.start()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        mixture.fit(rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= 1.1 * float(needed) * {"kB": 1e3, "MB": 1e6}[unit] + 2e6  # what libraries keep
