"""One contract for every mean estimator: weights from rows, from a Gram matrix, and from rows that count."""

import runpy
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from tables import MEANS, sample

import muhat as mh
from muhat.grams import MatrixGram
from muhat.means.nested import mean_from_gram

KERNEL = mh.Gaussian(2.0)
CASES = {name: case.estimator for name, case in MEANS.items()}
every_estimator = pytest.mark.parametrize("name", CASES)


@every_estimator
def test_weights_from_a_gram_matrix_are_those_of_fit(name):
    K = KERNEL(sample(11, 3, seed=1))
    estimator, untouched = clone(CASES[name]), K.copy()
    weights, stacked = estimator.estimate(MatrixGram(K)).weights, estimator.stack_weights(np.array([K, K]))
    assert_array_equal(K, untouched)
    by_fit = clone(CASES[name]).set_params(kernel="precomputed").fit(K)
    assert_allclose([weights, *stacked], [by_fit.weights_] * 3, rtol=1e-12, atol=1e-14)
    assert not hasattr(estimator, "mean_")


@every_estimator
def test_an_estimate_from_another_matrix_leaves_a_fitted_estimator_alone(name):
    """Attributes of two fits never stand side by side, and looking at names computes nothing."""
    fitted = clone(CASES[name]).fit(sample(11, 3, seed=1))
    before = dict(vars(fitted))
    mean_from_gram(fitted, KERNEL(sample(8, 2, seed=3)))
    assert {"mean_", "weights_"} <= set(dir(fitted))
    assert {name: id(value) for name, value in vars(fitted).items()} == {
        name: id(value) for name, value in before.items()
    }
    assert not {"mean", "_scored"} & vars(fitted._estimate).keys()


@every_estimator
def test_zero_weights_are_dropped_and_repeated_rows_are_added_up(name):
    X, counts = sample(9, 3, seed=2), np.array([1.0, 0, 2, 1, 3, 0, 1, 1, 2])
    fitted = clone(CASES[name]).set_params(kernel=KERNEL)
    if not MEANS[name].weights_only:
        fitted.set_params(target=None)
    fitted.fit(X, sample_weight=counts)
    assert fitted.weights_.shape == (9,)
    assert_array_equal(fitted.weights_[counts == 0], 0.0)
    assert_array_equal(fitted.mean_.measures[0].points, X)
    of_gram = CASES[name].estimate_weighted(MatrixGram(KERNEL(X), counts))
    assert_allclose(of_gram.weights, fitted.weights_, rtol=1e-10, atol=1e-13)


@every_estimator
@pytest.mark.parametrize("again", [False, True])
def test_a_refused_fit_leaves_everything_as_it_was(name, again):
    X = sample(9, 3, seed=6)
    estimator = clone(CASES[name]).set_params(kernel=KERNEL)
    if again:
        estimator.fit(X)
    before = dict(vars(estimator.set_params(kernel=mh.Polynomial(3))))
    with pytest.raises(ValueError, match="overflows"):  # known once the Gram matrix is there
        estimator.fit(1e150 * X[:, :2])
    assert vars(estimator) == before


@pytest.mark.parametrize("estimator", [mh.ShrunkKernelMean, mh.AdaptiveKernelMean])
def test_a_target_needs_rows(estimator):
    X = sample(7, 2, seed=4)
    mean = estimator(target=mh.embed(KERNEL, X))
    with pytest.raises(ValueError, match=r"target=.* cannot be used with a Gram matrix\. Use target=None"):
        mean.estimate(MatrixGram(KERNEL(X)))


def test_an_estimator_without_weights_says_so():
    class Nothing(mh.means.base.BaseKernelMean):
        def __init__(self, kernel=KERNEL):
            self.kernel = kernel

    with pytest.raises(TypeError, match=r"Nothing must define estimate\(G\)"):
        Nothing().fit(sample(5, 2, seed=5))


LIMITS = {
    "ShrunkKernelMean().fit(X).mean_(Y)": (9, 43),
    "AdaptiveKernelMean().fit(X)": (14, 74),
}


@pytest.mark.parametrize("name", LIMITS)
def test_a_fit_visits_few_places(name):
    """Who follows a fit through the library has to open this many files, and read this many functions."""
    tool = runpy.run_path(str(Path(__file__).parents[2] / "tools" / "visits.py"))
    call = tool["calls"]()[name]
    call()
    files, functions = tool["visits"](call)
    assert len(files) <= LIMITS[name][0], sorted(functions)
    assert len(functions) <= LIMITS[name][1], sorted(functions)
