"""Properties of every estimator of a mean: units, order, repetitions, Gram matrices, scikit-learn's manners."""

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import KFold, cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks
from tables import KERNELS, MEANS, MeanCase, data_sets, sample

import muhat as mh
from muhat.means.nested import mean_element, mean_weights

few = settings(max_examples=3, deadline=None, derandomize=True, phases=[Phase.generate])
seeds = st.integers(0, 10**6)
LINEAR, GAUSSIAN = mh.Linear(), mh.Gaussian(1.5)
X, FOLDS = sample(20, 3, seed=1), KFold(4)


def every(cases):
    return pytest.mark.parametrize("case", cases.values(), ids=cases)


every_mean = every(MEANS)
every_weighting = every({name: case for name, case in MEANS.items() if case.weights_only})
every_exact_mean = every({name: case for name, case in MEANS.items() if case.exact_units})
every_convex_mean = every({name: case for name, case in MEANS.items() if case.convex})


def draw(seed, n=7, d=3):
    return sample(n, d, seed)


def assert_same(one, other, rows=None, tol=1e-9, unit=1.0):
    """The same weights, score and mean; ``rows`` says where the rows of ``one`` are in ``other``."""
    rows = slice(None) if rows is None else rows
    assert_allclose(other.weights_[rows], one.weights_, rtol=0, atol=tol)
    assert_allclose(other.loo_score_, unit * one.loo_score_, rtol=max(tol, 1e-9))
    Z = draw(99, d=one.n_features_in_)
    assert_allclose(other.mean_(Z), unit * one.mean_(Z), rtol=0, atol=unit * max(tol, 1e-9))


def assert_finite(fitted, rows):
    for value in (fitted.weights_, fitted.loo_score_, fitted.mean_.norm(), fitted.mean_(rows)):
        assert np.isfinite(value).all()


# ---------------------------------------------------------------- scikit-learn's own checks

CLASSES = list({type(case.estimator): case.estimator for case in reversed(MEANS.values())}.values())
SETTINGS = [clone(estimator).set_params(kernel="precomputed") for estimator in CLASSES]


def expected_failures(estimator):
    """Only the refusal of a matrix that is not a Gram matrix."""
    if estimator.kernel == "precomputed":
        names = ["check_positive_only_tag_during_fit", "check_estimators_dtypes"]
        return dict.fromkeys(names, "the check passes a matrix that is not positive semi-definite")
    return {}


@parametrize_with_checks([*CLASSES, *SETTINGS], expected_failed_checks=expected_failures)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# ---------------------------------------------------------------- kernel, weights, recipes, Gram matrices


@every_weighting
def test_the_mean_is_made_of_kernel_and_weights(case):
    fitted = clone(case.estimator).fit(X)
    assert fitted.kernel_ == mh.Gaussian().resolve(X)
    assert fitted.weights_.shape == (len(X),)
    assert fitted.mean_.distance(mh.embed(fitted.kernel_, X, weights=fitted.weights_)) <= 1e-10


@pytest.mark.parametrize("kernel", ["linear", "polynomial2", "gaussian", "laplace"])
@every_weighting
def test_score_and_gram_matrix_by_hand(case, kernel):
    rows, Z, k = draw(1), draw(2, n=4), KERNELS[kernel]
    fitted = case.with_kernel(k).fit(rows)
    beta = fitted.weights_
    losses = np.diag(k(Z)) - 2 * k(Z, rows) @ beta + beta @ k(rows) @ beta
    assert_allclose(fitted.score(Z), -losses.mean(), rtol=1e-10)
    gram = case.with_kernel("precomputed").fit(k(rows))
    assert_allclose(gram.weights_, beta, rtol=0, atol=1e-9)
    assert_allclose(gram.loo_score_, fitted.loo_score_, rtol=1e-9)
    assert_allclose(gram.mean_(k(Z, rows)), fitted.mean_(Z), rtol=0, atol=1e-9)
    assert_allclose(gram.score(k(Z, rows)), fitted.score(Z) + np.diag(k(Z)).mean(), rtol=1e-9, atol=1e-9)


@every_mean
def test_as_a_recipe(case):
    fitted = case.with_kernel(GAUSSIAN).fit(X)
    assert mean_element(case.estimator, GAUSSIAN, X).distance(fitted.mean_) <= 1e-7
    weights = fitted.weights_ if case.weights_only else case.with_kernel("precomputed").fit(GAUSSIAN(X)).weights_
    assert_allclose(mean_weights(case.estimator, GAUSSIAN(X)), weights, rtol=0, atol=1e-10)
    assert np.isfinite(mh.KernelPCA(2, GAUSSIAN, mean=case.estimator).fit_transform(X)).all()
    bags = mh.DistributionKernel(GAUSSIAN, mean=case.estimator).fit_transform([X, X[:5] + 1, X[3:] - 1])
    assert_allclose(bags[0, 0], weights @ GAUSSIAN(X) @ weights, rtol=1e-9)


@pytest.mark.parametrize("kernel", ["linear", "gaussian", "gaussian_narrow", "polynomial3"])
@every_convex_mean
def test_convex_weights(case, kernel):
    for rows in data_sets().values():
        fitted = case.with_kernel(KERNELS[kernel], np.trace(KERNELS[kernel](rows)) / 8).fit(rows)
        scales = not isinstance(fitted, mh.ConstrainedKernelMean)
        assert_allclose(fitted.weights_.sum(), 1 - scales * getattr(fitted, "shrinkage_", 0.0), atol=1e-12)
        assert (fitted.weights_ >= 0).all()


# ---------------------------------------------------------------- units, order, repetitions


@every_exact_mean
@few
@given(seed=seeds, exponent=st.integers(-300, 300))
def test_powers_of_two_in_the_kernel_change_nothing(case, seed, exponent):
    rows, factor = draw(seed), 2.0**exponent
    one, other = case.with_kernel(GAUSSIAN).fit(rows), case.with_kernel(factor * GAUSSIAN, factor).fit(rows)
    assert_array_equal(other.weights_, one.weights_)
    assert other.loo_score_ == factor * one.loo_score_


@every_mean
@few
@given(seed=seeds, factor=st.sampled_from([1e-200, 1e-12, 0.3, 7.0, 1e9, 1e200]))
def test_the_unit_of_the_kernel_changes_nothing(case, seed, factor):
    rows = draw(seed)
    one, other = case.with_kernel(GAUSSIAN).fit(rows), case.with_kernel(factor * GAUSSIAN, factor).fit(rows)
    assert_same(one, other, unit=factor)
    if hasattr(one, "threshold_"):
        assert_allclose(other.threshold_, np.multiply(factor**0.5, one.threshold_), rtol=1e-9)


@every_mean
@few
@given(seed=seeds)
def test_row_order_changes_nothing(case, seed):
    rows = draw(seed)
    order = np.random.default_rng(seed).permutation(len(rows))
    one, other = clone(case.estimator).fit(rows), clone(case.estimator).fit(rows[order])
    assert_same(one, other, rows=np.argsort(order))


TARGET = mh.ShrunkKernelMean(GAUSSIAN, target=mh.embed(GAUSSIAN, [[0.3, 0.1, -0.2]]))
SEARCHED = {
    "shrunk_target": TARGET,
    "spectral_iterated": mh.SpectralKernelMean(filter=mh.IteratedTikhonov()),
    "spectral_landweber_loo": mh.SpectralKernelMean(filter=mh.Landweber(max_iter=20)),
}


@every({**MEANS, **{name: MeanCase(estimator) for name, estimator in SEARCHED.items()}})
@few
@given(seed=seeds, counts=st.lists(st.integers(0, 3), min_size=5, max_size=5))
def test_weights_are_repetitions(case, seed, counts):
    counts, rows = np.array([2, 1, *counts]), draw(seed)
    weighted = clone(case.estimator).fit(rows, sample_weight=counts)
    repeated = clone(case.estimator).fit(np.repeat(rows, counts, axis=0))
    assert weighted.kernel_ == repeated.kernel_
    summed = np.bincount(np.repeat(np.arange(7), counts), weights=repeated.weights_, minlength=7)
    assert_allclose(weighted.weights_, summed, rtol=0, atol=1e-9)
    assert_array_equal(weighted.weights_[counts == 0], 0.0)
    assert_allclose(weighted.loo_score_, repeated.loo_score_, rtol=1e-9)
    assert_allclose(weighted.mean_(rows), repeated.mean_(rows), rtol=0, atol=1e-9)
    absent = clone(case.estimator).fit(rows[counts > 0], sample_weight=counts[counts > 0])
    assert_allclose(weighted.weights_[counts > 0], absent.weights_, rtol=0, atol=1e-9)
    ones = clone(case.estimator).fit(rows, sample_weight=np.ones(7))
    assert_allclose(ones.weights_, clone(case.estimator).fit(rows).weights_, rtol=0, atol=1e-9)


# ---------------------------------------------------------------- awkward data


@pytest.mark.parametrize("data", data_sets())
@every_mean
def test_awkward_data(case, data):
    rows = data_sets()[data]
    for kernel in ("linear", "polynomial3", "gaussian", "laplace"):
        # A ridge of the size of the spectrum: one far below it asks an iterative filter for too many steps.
        unit = np.trace(KERNELS[kernel](rows)) / 8
        assert_finite(case.with_kernel(KERNELS[kernel], unit).fit(rows), rows)
    assert_finite(case.with_kernel(GAUSSIAN, len(rows) / 8).fit(rows.astype(np.float32)), rows)  # ties are near ties


@every_mean
@pytest.mark.parametrize("shape", [(2, 1), (9, 1), (5, 500), (40, 2)])
def test_shapes(case, shape):
    rows = sample(*shape, seed=1)
    assert_finite(clone(case.estimator).fit(rows), rows)


@pytest.mark.parametrize(
    "kernel", [mh.Linear(), mh.Polynomial(2, 0.0), mh.Gaussian(), mh.Laplace(), mh.Matern()], ids=str
)
@every_mean
def test_any_scale_is_finite_or_a_clear_error(case, kernel):
    degree = {mh.Linear(): 1, mh.Polynomial(2, 0.0): 2}.get(kernel, 0)
    for exponent in (-150, -75, 75, 150):
        scale, refusal = 10.0**exponent, None
        estimator = case.with_kernel(kernel)
        if degree and getattr(estimator, "threshold", "auto") != "auto":
            estimator.set_params(threshold=0.5 * 10.0 ** (exponent * degree))
        try:
            estimator.fit(scale * draw(1))
        except ValueError as error:
            refusal = str(error)
        if refusal is None:
            assert_finite(estimator, scale * draw(1))
            assert np.isfinite(estimator.score(scale * draw(2)))
        else:
            too_many = hasattr(getattr(estimator, "filter", None), "max_iter") and "max_iter" in refusal
            vanishes = 2 * degree * exponent < -308
            assert ("underflows" if vanishes else "overflows") in refusal or too_many
            assert exponent > 0 or vanishes


@every_mean
def test_a_zero_gram_matrix_gives_a_mean_of_zero(case):
    fitted = case.with_kernel(LINEAR).fit(np.zeros((4, 2)))
    assert fitted.mean_.norm() == 0
    assert fitted.loo_score_ == 0
    if case.convex or fitted.weights_.sum() > 0.9:
        assert_allclose(fitted.weights_, fitted.weights_.sum() / 4, rtol=1e-15)


NO_DIFFERENCE = [np.ones((5, 5)), np.eye(5), np.ones((2, 2)), np.eye(2)]


@every_convex_mean
@pytest.mark.parametrize("K", NO_DIFFERENCE, ids=["one row 5 times", "5 orthogonal rows", "one row twice", "2 rows"])
def test_gram_matrices_without_a_difference_give_equal_weights(case, K):
    estimator = case.with_kernel("precomputed")
    if isinstance(estimator, mh.MedianOfMeans):
        estimator.set_params(n_blocks=len(K))
    weights = estimator.fit(K).weights_
    assert_allclose(weights, weights.sum() / len(K), atol=1e-12)


# ---------------------------------------------------------------- as scikit-learn's users meet them


@every_mean
def test_cross_validation(case):
    scores = cross_val_score(case.with_kernel(mh.Gaussian(1.0)), X, cv=FOLDS)
    for score, (train, test) in zip(scores, FOLDS.split(X), strict=True):
        assert_allclose(score, case.with_kernel(mh.Gaussian(1.0)).fit(X[train]).score(X[test]), rtol=1e-12)
