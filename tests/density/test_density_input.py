"""The matched mixture on degenerate data and bad input, and as a citizen of scikit-learn."""

import pickle

import numpy as np
import pytest
from mixtures import every_solver, is_valid, matched, spherical_and_diag, two_clusters
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks
from tables import KERNELS, WITHOUT_CLOSED_FORM, sample

import muhat as mh
from muhat.density.matched_mixture import MatchedGaussianMixture

# ---------------------------------------------------------------- degenerate data


@every_solver
@spherical_and_diag
@pytest.mark.parametrize("rows", ["one_row_a_component", "few_distinct_rows", "all_rows_equal"])
def test_degenerate_data_warn_and_stay_finite(rows, covariance_type, solver):
    X = {
        "one_row_a_component": sample(3, 2, seed=0),
        "few_distinct_rows": np.repeat(sample(2, 2, seed=0), 5, axis=0),
        "all_rows_equal": np.ones((6, 2)),
    }[rows]
    settings = {"solver": solver, "covariance_type": covariance_type, "kernel": mh.Gaussian(bandwidth=1.0)}
    with pytest.warns(UserWarning, match="use fewer components"):
        fitted = matched(**settings).fit(X)
    assert is_valid(fitted)
    assert np.isfinite(fitted.score_samples(X)).all()


@spherical_and_diag
def test_a_constant_column(covariance_type):
    X = np.column_stack([two_clusters(), np.ones(80)])
    if covariance_type == "diag":
        with pytest.warns(UserWarning, match="drop constant columns"):
            fitted = matched(covariance_type=covariance_type).fit(X)
    else:
        fitted = matched().fit(X)
    assert is_valid(fitted)
    assert_allclose(fitted.means_[:, 2], 1)


def test_a_collapsed_component_warns():
    X = np.concatenate([two_clusters(), [[50.0, 50.0]]])
    with pytest.warns(UserWarning, match="1 of 3 components have a variance at variance_floor=0.001"):
        assert is_valid(matched(kernel=mh.Gaussian(bandwidth=2.0)).fit(X))


def test_duplicated_rows_are_the_same_target():
    X = two_clusters()
    init = matched().fit(X).initial_density_
    once, twice = matched(init=init).fit(X), matched(init=init, kernel=mh.Gaussian().resolve(X)).fit(np.vstack([X, X]))
    assert_allclose(twice.means_, once.means_, rtol=1e-6)


def test_single_precision():
    X = two_clusters()
    single, double = matched().fit(X.astype(np.float32)), matched().fit(X)
    assert single.means_.dtype == np.float64
    # The rows differ by 1e-7 of their size; the path of the solver amplifies that.
    assert_allclose(single.means_, double.means_, atol=1e-4)


@pytest.mark.parametrize("name", ["gaussian", "polynomial3"])
@pytest.mark.parametrize("factor", [1e-9, 1e9])
@every_solver
@pytest.mark.filterwarnings("ignore")  # the floor is that of standardised data, and steps may be too few
def test_any_scale_is_finite(name, factor, solver):
    kernel = mh.Gaussian() if name == "gaussian" else KERNELS[name]
    X = factor * two_clusters()
    fitted = matched(kernel=kernel, solver=solver).fit(X)
    assert is_valid(fitted)
    assert np.isfinite(fitted.score(X))


def test_too_few_steps_warn():
    with pytest.warns(ConvergenceWarning, match=r"after 1 iterations .* raise max_iter or tol") as caught:
        fitted = matched(solver="lbfgs", max_iter=1).fit(two_clusters())
    assert not fitted.converged_
    assert caught[0].filename == __file__


def test_warnings_point_at_the_call_of_fit():
    for rows in (np.repeat(sample(2, 2, seed=0), 5, axis=0), np.concatenate([two_clusters(), [[50.0, 50.0]]])):
        with pytest.warns(UserWarning, match="use fewer components") as caught:
            matched(kernel=mh.Gaussian(bandwidth=2.0)).fit(rows)
        assert caught[0].filename == __file__


# ---------------------------------------------------------------- as an estimator


@pytest.mark.parametrize("name", WITHOUT_CLOSED_FORM)
def test_kernels_without_closed_form_are_refused(name):
    with pytest.raises(ValueError, match="no closed-form expectation"):
        matched(kernel=KERNELS[name]).fit(two_clusters())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_components": 0}, "n_components=0 must be a whole number"),
        ({"n_components": 2.0}, "n_components=2.0 must be a whole number"),
        ({"n_components": 81}, "n_components=81 must not exceed the number of rows"),
        ({"kernel": "rbf"}, "kernel='rbf' must be a kernel object"),
        ({"kernel": "precomputed"}, "kernel='precomputed' must be a kernel object"),
        ({"mean": "shrunk"}, "mean='shrunk' must be None"),
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
            {"init": KMeans(2, n_init=1).fit(two_clusters())},
            r"init has centres of shape \(2, 2\) and must have \(3, 2\)",
        ),
        ({"init": mh.GaussianMixture([1.0], [[0.0, 0.0]], [1.0])}, "must have n_components=3 in 2 dimensions"),
    ],
)
def test_bad_parameters(settings, message):
    with pytest.raises(ValueError, match=message):
        matched(**settings).fit(two_clusters())


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.full((9, 2), np.nan), "NaN"),
        (np.ones((1, 2)), "1 sample"),
        (np.ones(9), "Expected 2D"),
        ([["a", "b"]] * 9, "not numbers"),
        (np.arange(9.0)[:, None] * 1e160, "rescale X first"),
        (np.ones((9, 2)), "two rows that differ"),
    ],
)
def test_bad_data(X, message):
    with pytest.raises(ValueError, match=message):
        matched().fit(X)


def test_polynomials_that_overflow():
    with pytest.raises(ValueError, match="overflows on X"):
        matched(kernel=mh.Polynomial(degree=3)).fit(1e60 * two_clusters())


def test_methods_need_a_fit_and_the_right_width():
    with pytest.raises(NotFittedError):
        matched().score_samples(two_clusters())
    with pytest.raises(NotFittedError):
        matched().sample()
    fitted = matched().fit(two_clusters())
    with pytest.raises(ValueError, match="3 features"):
        fitted.score_samples(np.ones((2, 3)))
    with pytest.raises(ValueError, match="n_samples=0"):
        fitted.sample(0)


def test_clone_pickle_and_nested_parameters():
    X = two_clusters()
    estimator = matched(kernel=mh.Gaussian(), mean=mh.ShrunkKernelMean(), init=np.arange(80) % 3)
    fitted = clone(estimator).fit(X)
    again = pickle.loads(pickle.dumps(fitted))
    assert_array_equal(again.score_samples(X), fitted.score_samples(X))
    estimator.set_params(kernel__bandwidth=2.0, mean__shrinkage=0.5)
    assert estimator.kernel == mh.Gaussian(bandwidth=2.0)
    assert estimator.fit(X).mean_.measures[0].weights.sum() == pytest.approx(0.5)


def test_search_over_kernels_by_likelihood():
    X = two_clusters()
    search = GridSearchCV(matched(init=KMeans(3, n_init=1, random_state=0)), {"kernel__bandwidth": [1.0, 3.0]}, cv=2)
    assert search.fit(X).best_params_["kernel__bandwidth"] in (1.0, 3.0)
    assert np.isfinite(cross_val_score(search.best_estimator_, X, cv=2)).all()


@parametrize_with_checks([MatchedGaussianMixture(n_components=2, n_init=1, random_state=0)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)
