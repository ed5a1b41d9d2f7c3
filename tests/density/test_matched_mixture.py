"""The matched mixture: what it minimises, where it starts, its methods as a density, and its errors."""

import re
import tracemalloc
import warnings

import numpy as np
import pytest
from errors import refused
from mixtures import SOLVERS, every_solver, is_valid, matched, spherical_and_diag, two_clusters
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_wine
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.mixture import GaussianMixture as EMGaussianMixture
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from tables import CLOSED_FORM, KERNELS, WITHOUT_CLOSED_FORM, sample

import muhat as mh
from muhat.linalg import resources

every_kernel = pytest.mark.parametrize("name", CLOSED_FORM)


# ---------------------------------------------------------------- the fitted mixture


def squared_distance(fitted, P):
    return fitted.mean_.distance(mh.embed(fitted.kernel_, P)) ** 2


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # 100 steps of degree 3 may be too few
@pytest.mark.filterwarnings("ignore:.*variance_floor")  # polynomial kernels see variances only through moments
@spherical_and_diag
@every_solver
@every_kernel
def test_matching_lowers_the_distance_that_it_reports(name, solver, covariance_type):
    fitted = matched(kernel=KERNELS[name], solver=solver, covariance_type=covariance_type).fit(two_clusters())
    assert is_valid(fitted)
    assert fitted.kernel_ == KERNELS[name]
    size = fitted.mean_.norm() ** 2
    assert_allclose(fitted.objective_, squared_distance(fitted, fitted.density_), rtol=1e-10, atol=1e-12 * size)
    assert fitted.objective_ <= squared_distance(fitted, fitted.initial_density_) + 1e-12 * size


@pytest.mark.parametrize("solver", ["slsqp", "lbfgs"])
def test_two_clusters_are_found(solver):
    fitted = matched(2, solver=solver, tol=1e-10, max_iter=2000).fit(two_clusters(n=2000))
    order = np.argsort(fitted.weights_)
    # Standard errors of the plain estimates are below 0.03 for 600 rows of variance 0.5.
    assert_allclose(fitted.weights_[order], [0.3, 0.7], atol=0.05)
    assert_allclose(fitted.means_[order], [[4, 0], [0, 4]], atol=0.2)
    assert_allclose(fitted.variances_[order], [0.5, 1.0], atol=0.15)


def test_lbfgs_goes_further_than_slsqp():
    X = StandardScaler().fit_transform(load_wine().data)
    start = KMeans(5, n_init=1, random_state=0).fit(X)
    objectives = [matched(5, solver=solver, init=start).fit(X).objective_ for solver in ("lbfgs", "slsqp", "weights")]
    assert objectives[0] < objectives[1]
    assert objectives[0] < objectives[2]


def test_the_linear_kernel_is_content_with_the_start():
    """Cluster shares and means match the mean exactly, and nothing else is asked."""
    X = two_clusters()
    for solver in SOLVERS:
        fitted = matched(kernel=mh.Linear(), solver=solver).fit(X)
        assert fitted.objective_ <= 1e-14 * fitted.mean_.norm() ** 2  # a difference of numbers of that size
        assert_allclose(fitted.weights_, fitted.initial_density_.weights, atol=1e-8)
        assert_allclose(fitted.means_, fitted.initial_density_.means, atol=1e-8)


@pytest.mark.parametrize("mean", [mh.ShrunkKernelMean(), mh.SpectralKernelMean(), mh.SpectralKernelMean(lam=1e3)])
def test_a_recipe_gives_the_target(mean):
    X = two_clusters()
    fitted = matched(mean=mean).fit(X)
    assert_allclose(fitted.mean_.measures[0].weights, clone(mean).fit(X).weights_, rtol=1e-12)
    assert_allclose(fitted.objective_, squared_distance(fitted, fitted.density_), rtol=1e-10)
    assert not hasattr(mean, "mean_")


@pytest.mark.parametrize("kernel", [mh.Gaussian(bandwidth=2.0), mh.Polynomial(degree=3)])
def test_a_target_may_hold_gaussians(kernel):
    X = two_clusters()
    whole = mh.embed(kernel, mh.GaussianMixture([1.0], [X.mean(axis=0)], [np.cov(X.T)]))
    fitted = matched(kernel=kernel, mean=mh.ShrunkKernelMean(shrinkage=0.4, target=whole)).fit(X)
    assert len(fitted.mean_.measures) == 2
    rounding = 1e-12 * fitted.mean_.norm() ** 2
    assert_allclose(fitted.objective_, squared_distance(fitted, fitted.density_), rtol=1e-10, atol=rounding)


@pytest.mark.parametrize("factor", [2.0**-12, 2.0**12])
@every_solver
def test_units_of_the_data_do_not_matter(solver, factor):
    X = two_clusters()
    settings = {"solver": solver, "covariance_type": "diag"}
    plain = matched(**settings).fit(X)
    scaled = matched(**settings, variance_floor=1e-3 * factor**2).fit(factor * X)
    assert_allclose(scaled.means_, factor * plain.means_, rtol=1e-8)
    assert_allclose(scaled.variances_, factor**2 * plain.variances_, rtol=1e-8)
    assert_allclose(scaled.objective_, plain.objective_, rtol=1e-8)


@every_solver
def test_units_of_the_kernel_do_not_matter(solver):
    X = two_clusters()
    plain = matched(solver=solver).fit(X)
    scaled = matched(solver=solver, kernel=1024.0 * mh.Gaussian()).fit(X)
    assert_allclose(scaled.means_, plain.means_, rtol=1e-8)
    assert_allclose(scaled.objective_, 1024.0 * plain.objective_, rtol=1e-8)


def test_far_from_the_origin():
    X, shift = two_clusters(), 2.0**20
    plain, far = matched().fit(X), matched().fit(X + shift)
    # A row near 1e6 keeps 10 digits, and the path of the solver amplifies their loss.
    assert_allclose(far.means_ - shift, plain.means_, atol=1e-3)
    assert_allclose(far.objective_, plain.objective_, rtol=1e-3)


def test_weights_alone_leave_means_and_variances():
    fitted = matched(solver="weights").fit(two_clusters())
    assert_array_equal(fitted.means_, fitted.initial_density_.means)
    assert_array_equal(fitted.density_.covariances, fitted.initial_density_.covariances)
    assert fitted.objective_ <= squared_distance(fitted, fitted.initial_density_)


# ---------------------------------------------------------------- the start


def test_one_start_in_three_forms():
    X = two_clusters()
    clusters = KMeans(3, n_init=2, random_state=7).fit(X)
    by_clusters = matched(init=clusters).fit(X)
    for init in (clusters.labels_, by_clusters.initial_density_, clone(clusters)):
        again = matched(init=init).fit(X)
        assert_allclose(again.initial_density_.means, by_clusters.initial_density_.means, rtol=1e-10)
        assert_allclose(again.initial_density_.covariances, by_clusters.initial_density_.covariances, rtol=1e-10)
        assert_allclose(again.objective_, by_clusters.objective_, rtol=1e-6)


@spherical_and_diag
def test_the_start_is_the_clusters_moments(covariance_type):
    X = two_clusters()
    labels = np.arange(len(X)) % 3
    fitted = matched(init=labels, covariance_type=covariance_type, solver="weights").fit(X)
    start = fitted.initial_density_
    for j in range(3):
        rows = X[labels == j]
        squares = ((rows - rows.mean(axis=0)) ** 2).mean(axis=0)
        variances = squares if covariance_type == "diag" else np.full(2, squares.mean())
        assert_allclose(start.weights[j], len(rows) / len(X))
        assert_allclose(start.means[j], rows.mean(axis=0))
        assert_allclose(np.diag(start.covariances[j]), variances)


def test_estimators_with_one_seed_share_the_start():
    X = two_clusters()
    fits = [matched(mean=mean).fit(X) for mean in (None, mh.ShrunkKernelMean(), mh.SpectralKernelMean())]
    for fitted in fits[1:]:
        assert_array_equal(fitted.initial_density_.means, fits[0].initial_density_.means)


def test_an_empty_cluster_starts_at_weight_zero():
    X = two_clusters()
    fitted = matched(init=np.zeros(len(X), dtype=int)).fit(X)
    assert_array_equal(fitted.initial_density_.weights, [1, 0, 0])
    assert is_valid(fitted)
    assert np.isfinite(fitted.score_samples(X)).all()


def test_seeds():
    X = two_clusters()
    states = (3, np.random.default_rng(3), np.random.SeedSequence(3))
    fits = [matched(random_state=state).fit(X) for state in states]
    for fitted in fits[1:]:
        assert_array_equal(fitted.means_, fits[0].means_)
    assert is_valid(matched(random_state=np.random.RandomState(0)).fit(X))
    assert is_valid(matched(random_state=None).fit(X))


# ---------------------------------------------------------------- as a density


@spherical_and_diag
def test_density_methods_are_those_of_scikit_learn(covariance_type):
    X = two_clusters()
    fitted = matched(covariance_type=covariance_type).fit(X)
    peer = EMGaussianMixture(3, covariance_type=covariance_type)
    peer.weights_, peer.means_, peer.covariances_ = fitted.weights_, fitted.means_, fitted.variances_
    peer.precisions_cholesky_ = 1 / np.sqrt(fitted.variances_)
    for method in ("score_samples", "score", "predict_proba", "predict", "aic", "bic"):
        assert_allclose(getattr(fitted, method)(X), getattr(peer, method)(X), rtol=1e-9, atol=1e-12)
    assert_allclose(fitted.score_samples(X), fitted.density_.log_density(X), rtol=1e-10)
    assert_allclose(fitted.predict_proba(X).sum(axis=1), 1)


def test_a_weight_of_zero_has_no_say():
    X = two_clusters()
    fitted = matched(2, init=np.zeros(len(X), dtype=int), solver="weights", kernel=mh.Linear()).fit(X)
    assert_array_equal(fitted.weights_, [1, 0])
    assert_allclose(fitted.score_samples(X), fitted.density_.log_density(X))
    assert_array_equal(fitted.predict_proba(X), np.tile([1.0, 0.0], (len(X), 1)))


def test_sample():
    fitted = matched(2).fit(two_clusters())
    X, components = fitted.sample(20000)
    assert X.shape == (20000, 2)
    assert (np.diff(components) >= 0).all()
    assert_array_equal(X, fitted.sample(20000)[0])
    assert not np.array_equal(X, fitted.sample(20000, random_state=1)[0])
    for j, (mean, variance) in enumerate(zip(fitted.means_, fitted.variances_, strict=True)):
        rows = X[components == j]
        # Four standard errors.
        assert_allclose(rows.mean(axis=0), mean, atol=4 * np.sqrt(variance / len(rows)))
        assert_allclose(rows.var(axis=0), variance, rtol=4 * np.sqrt(2 / len(rows)))


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


# ---------------------------------------------------------------- as an estimator


@parametrize_with_checks([mh.MatchedGaussianMixture(n_components=2, n_init=1, random_state=0)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# ---------------------------------------------------------------- errors and memory


CLUSTERS = two_clusters()
FITTED = matched().fit(CLUSTERS)


def fit(data=CLUSTERS, **settings):
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
    ({"init": np.zeros(7, dtype=int)}, "one label per row"),
    ({"init": np.zeros(80)}, "80 whole numbers"),
    ({"init": np.full(80, 3)}, "init has labels from 3 to 3; they must be 0, …, 2"),
    (
        {"init": KMeans(2, n_init=1).fit(CLUSTERS)},
        r"init has centres of shape \(2, 2\) and must have \(3, 2\)",
    ),
    ({"init": mh.GaussianMixture([1.0], [[0.0, 0.0]], [1.0])}, "must have n_components=3 in 2 dimensions"),
]
BAD_ROWS = [
    (np.full((9, 2), np.nan), "NaN"),
    (np.ones((1, 2)), "1 sample"),
    (np.ones(9), "Expected 2D"),
    ([["a", "b"]] * 9, "not numbers"),
    (np.arange(9.0)[:, None] * 1e160, "rescale X first"),
    (np.ones((9, 2)), "two rows that differ"),
]
ERRORS = [
    *((str(settings), fit(**settings), message) for settings, message in PARAMETERS),
    *((message, fit(rows), message) for rows, message in BAD_ROWS),
    *((name, fit(kernel=KERNELS[name]), "no closed-form expectation") for name in WITHOUT_CLOSED_FORM),
    ("overflow", fit(1e60 * CLUSTERS, kernel=mh.Polynomial(degree=3)), "overflows on X"),
    ("not fitted, scores", lambda: matched().score_samples(CLUSTERS), NotFittedError, "fit"),
    ("not fitted, sample", lambda: matched().sample(), NotFittedError, "fit"),
    ("another width", lambda: FITTED.score_samples(np.ones((2, 3))), ValueError, "3 features"),
    ("no draws", lambda: FITTED.sample(0), ValueError, "n_samples=0"),
]

test_errors = refused(ERRORS)


@pytest.mark.parametrize(("solver", "remedy"), [("slsqp", 'use solver="lbfgs", fewer'), ("lbfgs", "use fewer")])
def test_memory_is_refused_before_it_is_taken(solver, remedy, monkeypatch):
    """40,000 columns: SLSQP keeps a matrix of all parameters, and a density has a covariance per component."""
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
        patched.setattr(resources, "NEGLIGIBLE", 0)
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
