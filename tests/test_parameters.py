"""Kernels and filters as nested parameters of estimators: frozen, set by name, searched over."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tables import sample

import muhat as mh

X, FOLDS = sample(20, 3, seed=1), KFold(4)


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


@pytest.mark.filterwarnings("ignore:scores of different kernels")
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


def test_in_a_pipeline():
    piped = make_pipeline(StandardScaler(), mh.ShrunkKernelMean()).fit(X)
    scaled = StandardScaler().fit_transform(X)
    assert_allclose(piped.score(X), mh.ShrunkKernelMean().fit(scaled).score(scaled), rtol=1e-12)
