"""The estimators as scikit-learn's users meet them: its own checks, grids, data frames, frozen parameters."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from tables import ESTIMATORS, sample

import muhat as mh

every_estimator = pytest.mark.parametrize("name", ESTIMATORS)
X = sample(20, 3, seed=1)
FOLDS = KFold(4)


GRAM_CHECKS = ["check_positive_only_tag_during_fit", "check_estimators_dtypes"]


def expected_failures(estimator):
    """Only the refusal of a matrix that is no Gram matrix."""
    if estimator.kernel == "precomputed":
        return dict.fromkeys(GRAM_CHECKS, "the check passes a matrix that is not positive semi-definite")
    return {}


CHECKED = [*ESTIMATORS.values(), *(make("precomputed") for make in (mh.KernelMean, mh.ShrunkKernelMean))]


@parametrize_with_checks([*CHECKED, mh.SpectralKernelMean("precomputed")], expected_failed_checks=expected_failures)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# ---------------------------------------------------------------- copies


@every_estimator
def test_clone_and_pickle(name):
    estimator = ESTIMATORS[name]
    copy = clone(estimator)
    assert copy is not estimator
    assert copy.get_params() == estimator.get_params()
    fitted = copy.fit(X)
    again = pickle.loads(pickle.dumps(fitted))
    assert_array_equal(again.weights_, fitted.weights_)
    assert again.kernel_ == fitted.kernel_
    assert again.loo_score_ == fitted.loo_score_
    assert_array_equal(again.mean_(X), fitted.mean_(X))
    assert again.mean_.distance(fitted.mean_) == 0.0
    assert not hasattr(clone(fitted), "mean_")


@every_estimator
def test_not_fitted(name):
    estimator = clone(ESTIMATORS[name])
    for ask in (lambda: estimator.score(X), lambda: estimator.loo_score_):
        with pytest.raises(NotFittedError, match="fit"):
            ask()


@every_estimator
def test_refit_forgets(name):
    twice = clone(ESTIMATORS[name]).fit(sample(9, 2, seed=3), sample_weight=None)
    assert np.isfinite(twice.loo_score_)
    twice.fit(X)
    once = clone(ESTIMATORS[name]).fit(X)
    assert twice.loo_score_ == once.loo_score_
    assert_array_equal(twice.weights_, once.weights_)


@every_estimator
def test_the_data_are_left_alone_and_copied(name):
    data = X.copy()
    fitted = clone(ESTIMATORS[name]).fit(data)
    assert_array_equal(data, X)
    values = fitted.mean_(X)
    data[:] = 0.0
    assert_array_equal(fitted.mean_(X), values)


# ---------------------------------------------------------------- frozen values as nested parameters


def test_set_params_changes_nobody_else():
    kernel = mh.Gaussian(1.0)
    one, other = mh.KernelMean(kernel), mh.ShrunkKernelMean(kernel)
    one.set_params(kernel__bandwidth=2.0)
    assert one.kernel == mh.Gaussian(2.0)
    assert other.kernel is kernel
    assert kernel.bandwidth == 1.0
    assert mh.KernelMean().kernel == mh.Gaussian()
    mh.KernelMean().set_params(kernel__bandwidth=3.0)
    assert mh.KernelMean().kernel == mh.Gaussian()


def test_nested_parameters_of_composite_kernels():
    mean = mh.KernelMean(mh.Gaussian(1.0) + 2.0 * mh.Laplace(1.0) * mh.Linear())
    assert mean.get_params()["kernel__right__left__kernel__bandwidth"] == 1.0
    mean.set_params(kernel__left__bandwidth=4.0, kernel__right__left__factor=5.0)
    assert mean.kernel == mh.Gaussian(4.0) + 5.0 * mh.Laplace(1.0) * mh.Linear()
    mean.set_params(kernel=mh.Matern(0.5, 1.0), kernel__bandwidth=2.0)
    assert mean.kernel == mh.Matern(0.5, 2.0)
    spectral = mh.SpectralKernelMean().set_params(filter=mh.IteratedTikhonov(), filter__n_iter=7, lam=0.5)
    assert spectral.filter == mh.IteratedTikhonov(7)
    assert spectral.lam == 0.5


UNKNOWN = {
    "of a kernel": ({"kernel__width": 1.0}, r"Gaussian has no parameter 'width'; it has \['bandwidth'\]"),
    "of a filter": ({"filter__n_iter": 3}, "Tikhonov has no parameter 'n_iter'"),
    "of the estimator": ({"ridge": 1.0}, "Invalid parameter 'ridge'"),
    "of nothing": ({"ridge__value": 1.0}, "Invalid parameter 'ridge'"),
    "bad value": ({"kernel__bandwidth": -1.0}, "bandwidth=-1.0 must be a number"),
    "of a Gram matrix": ({"kernel": "precomputed", "kernel__bandwidth": 1.0}, "kernel='precomputed'"),
}


@pytest.mark.parametrize(("params", "message"), UNKNOWN.values(), ids=UNKNOWN)
def test_unknown_parameters(params, message):
    with pytest.raises(ValueError, match=message):
        mh.SpectralKernelMean().set_params(**params)


# ---------------------------------------------------------------- model selection


def test_grid_over_kernels_and_bandwidths():
    kernels = [mh.Gaussian(1.0), mh.Laplace(2.0)]
    search = GridSearchCV(mh.ShrunkKernelMean(), {"kernel": kernels}, cv=FOLDS).fit(X)
    assert search.best_params_["kernel"] in kernels
    widths = [0.5, 1.0, 4.0]
    search = GridSearchCV(mh.ShrunkKernelMean(), {"kernel__bandwidth": widths}, cv=FOLDS).fit(X)
    assert search.best_estimator_.kernel_ == mh.Gaussian(search.best_params_["kernel__bandwidth"])
    for width, mean_score in zip(widths, search.cv_results_["mean_test_score"], strict=True):
        scores = cross_val_score(mh.ShrunkKernelMean(mh.Gaussian(width)), X, cv=FOLDS)
        assert_allclose(mean_score, scores.mean(), rtol=1e-12)


def test_grid_over_filters():
    grid = [
        {"filter": [mh.Tikhonov(), mh.TruncatedSVD()], "lam": [0.1, 1.0]},
        {"filter": [mh.IteratedTikhonov()], "filter__n_iter": [2, 5], "lam": [1.0]},
    ]
    search = GridSearchCV(mh.SpectralKernelMean(mh.Gaussian(1.0)), grid, cv=FOLDS).fit(X)
    tried = [params["filter"] for params in search.cv_results_["params"]]
    assert len(tried) == 6
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_grid_over_a_gram_matrix():
    kernel, grid = mh.Gaussian(1.0), {"lam": [0.0, 0.1, 1.0, 10.0]}
    by_data = GridSearchCV(mh.SpectralKernelMean(kernel), grid, cv=FOLDS).fit(X)
    by_gram = GridSearchCV(mh.SpectralKernelMean("precomputed"), grid, cv=FOLDS).fit(kernel(X))
    assert by_gram.best_params_ == by_data.best_params_
    constant = 1.0  # the mean of k(x, x), unknown to a Gram matrix
    scores = by_data.cv_results_["mean_test_score"] + constant
    assert_allclose(by_gram.cv_results_["mean_test_score"], scores, rtol=1e-10)


@every_estimator
def test_cross_validation(name):
    scores = cross_val_score(clone(ESTIMATORS[name]).set_params(kernel=mh.Gaussian(1.0)), X, cv=FOLDS)
    for score, (train, test) in zip(scores, FOLDS.split(X), strict=True):
        fitted = clone(ESTIMATORS[name]).set_params(kernel=mh.Gaussian(1.0)).fit(X[train])
        assert_allclose(score, fitted.score(X[test]), rtol=1e-12)


def test_in_a_pipeline():
    piped = make_pipeline(StandardScaler(), mh.ShrunkKernelMean()).fit(X)
    scaled = StandardScaler().fit_transform(X)
    assert_allclose(piped.score(X), mh.ShrunkKernelMean().fit(scaled).score(scaled), rtol=1e-12)


# ---------------------------------------------------------------- containers


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
@every_estimator
def test_data_frames(name, frame):
    columns = ["a", "b", "c"]
    data = frame({column: X[:, j] for j, column in enumerate(columns)})
    fitted = clone(ESTIMATORS[name]).fit(data)
    assert list(fitted.feature_names_in_) == columns
    plain = clone(ESTIMATORS[name]).fit(X)
    assert_array_equal(fitted.weights_, plain.weights_)
    assert fitted.score(data) == plain.score(X)
    with pytest.raises(ValueError, match="feature names"):
        fitted.score(data[["b", "a", "c"]])


def containers(folder):
    mapped = np.memmap(folder / "rows.dat", dtype=float, mode="w+", shape=X.shape)
    mapped[:] = X
    frozen = X.copy()
    frozen.flags.writeable = False
    return [frozen, np.asfortranarray(X), mapped, X.tolist(), np.repeat(X, 2, axis=1)[:, ::2], X.astype(object)]


@every_estimator
def test_arrays_of_every_layout(name, tmp_path):
    expected = clone(ESTIMATORS[name]).fit(X)
    for data in containers(tmp_path):
        fitted = clone(ESTIMATORS[name]).fit(data)
        assert_array_equal(fitted.weights_, expected.weights_)
        assert fitted.loo_score_ == expected.loo_score_
        assert fitted.score(data) == expected.score(X)
        assert_array_equal(fitted.mean_(data), expected.mean_(X))


def test_a_fitted_mean_does_not_change_with_the_file_and_an_embedded_one_does(tmp_path):
    mapped = containers(tmp_path)[2]
    fitted, embedded = mh.ShrunkKernelMean(mh.Gaussian(1.0)).fit(mapped).mean_, mh.embed(mh.Gaussian(1.0), mapped)
    before, average = fitted(X), embedded(X)
    np.memmap(tmp_path / "rows.dat", dtype=float, mode="r+", shape=X.shape)[:] += 1.0
    assert_array_equal(fitted(X), before)
    assert (embedded(X) != average).any()
    assert_array_equal(pickle.loads(pickle.dumps(fitted))(X), before)
    assert_array_equal(pickle.loads(pickle.dumps(embedded))(X), embedded(X))


@every_estimator
def test_float32(name):
    single = X.astype(np.float32)
    fitted, expected = clone(ESTIMATORS[name]).fit(single), clone(ESTIMATORS[name]).fit(single.astype(float))
    assert fitted.weights_.dtype == np.float64
    assert_array_equal(fitted.weights_, expected.weights_)
