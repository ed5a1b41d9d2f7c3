"""Robust means: against brute force, under bad rows, and where there is little to weigh."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from tables import KERNELS, MEANS, sample

import muhat as mh
from muhat.means.robust import (
    Loss,
    MedianOfMeans,
    RobustKernelMean,
    geometric_median,
    outlying,
    reweight,
    weighted_loo_moments,
)

ESTIMATORS = {
    name: case.estimator
    for name, case in MEANS.items()
    if isinstance(case.estimator, (RobustKernelMean, MedianOfMeans))
}
REWEIGHTED = [name for name, estimator in ESTIMATORS.items() if isinstance(estimator, RobustKernelMean)]
FOR_ANY_KERNEL = [name for name in ESTIMATORS if name != "huber_fixed"]  # whose threshold is that of one kernel
X = sample(20, 3, seed=1)
LOSSES = {"huber": Loss(0.6), "tight": Loss(0.05), "hampel": Loss(0.6, 0.8, 1.1)}


def contaminated(n=100, d=3, share=0.1, seed=0):
    rows = sample(n, d, seed, shift=0.0)
    rows[: round(share * n)] += 30.0
    return rows


def with_kernel(name, kernel):
    return clone(ESTIMATORS[name]).set_params(kernel=kernel)


# ---------------------------------------------------------------- losses and the iteration


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_the_factor_is_the_slope_of_the_loss_over_r(loss):
    r = np.linspace(0.01, 1.5, 400)
    slope = (loss.values(r + 1e-6) - loss.values(r - 1e-6)) / 2e-6
    assert_allclose(loss.factors(r) * r, slope, atol=2e-6)  # the slope bends at the knots
    assert loss.values(np.zeros(1)) == 0
    assert (np.diff(loss.factors(r)) <= 0).all()


@pytest.mark.parametrize("kernel", ["gaussian", "linear", "polynomial2", "laplace"])
@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_the_objective_never_grows(loss, kernel):
    K = KERNELS[kernel](contaminated(40))
    K /= K.max()
    found = reweight(K, np.ones(40), loss, np.full(40, 1 / 40), 1e-9, 300)
    assert (np.diff(found.objectives) <= 1e-14).all()
    assert found.objectives[-1] < found.objectives[0]


@pytest.mark.parametrize("threshold", [0.3, 1.0])
def test_huber_against_an_optimiser(threshold):
    """With the linear kernel the space is R^d, where any optimiser finds the minimum."""
    rows = sample(15, 2, seed=3)
    found = RobustKernelMean(mh.Linear(), threshold=threshold, tol=1e-10, max_iter=5000).fit(rows)

    def objective(mu):
        return Loss(threshold).values(np.linalg.norm(rows - mu, axis=1)).mean()

    best = minimize(objective, rows.mean(axis=0), method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-15})
    assert_allclose(found.weights_ @ rows, best.x, atol=1e-6)
    assert_allclose(found.objective_path_[-1], best.fun, rtol=1e-9)


@pytest.mark.parametrize("name", REWEIGHTED)
def test_weights_are_a_fixed_point(name):
    fitted = with_kernel(name, mh.Gaussian(1.5)).set_params(tol=1e-10, shrinkage=None).fit(contaminated())
    K = fitted.kernel_(contaminated())
    w = fitted.weights_
    r = np.sqrt((np.diag(K) - 2 * K @ w + w @ K @ w).clip(0))
    factors = Loss(*np.atleast_1d(fitted.threshold_)).factors(r)
    if fitted.threshold == "auto":
        factors[outlying(K, np.ones(len(K)), 0.15)] = 0.0
    assert_allclose(w, factors / factors.sum(), atol=1e-9)
    assert_allclose(w.sum(), 1.0)


def test_the_geometric_median_balances_directions():
    rows = sample(25, 3, seed=2)
    w = geometric_median(rows @ rows.T, np.ones(25), 1e-10, 5000).weights
    offsets = rows - w @ rows
    assert_allclose((offsets / np.linalg.norm(offsets, axis=1)[:, None]).sum(axis=0), 0, atol=1e-6)


def test_one_block_is_the_average_and_n_blocks_the_geometric_median():
    K = mh.Gaussian(1.5)(X)
    assert_allclose(MedianOfMeans(mh.Gaussian(1.5), n_blocks=1).fit(X).weights_, 1 / 20)
    rows = MedianOfMeans(mh.Gaussian(1.5), n_blocks=20).fit(X)
    assert_allclose(rows.weights_, geometric_median(K, np.ones(20), 1e-6, 500).weights, atol=1e-9)


def test_rows_of_a_block_share_their_weight():
    fitted = MedianOfMeans(n_blocks=6, random_state=1).fit(X)
    assert len(np.unique(fitted.weights_.round(12))) == 6
    assert fitted.n_blocks_ == 6
    assert MedianOfMeans().fit(X).n_blocks_ == 7


# ---------------------------------------------------------------- shrinkage


@pytest.mark.parametrize("name", ["huber", "hampel", "median_of_means"])
@pytest.mark.parametrize("kernel", ["gaussian", "linear", "polynomial2"])
def test_leave_one_out_against_brute_force(name, kernel):
    plain = with_kernel(name, KERNELS[kernel]).fit(X)
    w, K = plain.weights_, KERNELS[kernel](X)

    def score(scale):
        total = 0.0
        for i in range(len(X)):
            others = np.delete(w, i) / np.delete(w, i).sum()
            residual = np.insert(-scale * others, i, 1.0)
            total += w[i] * residual @ K @ residual
        return total

    assert_allclose(plain.loo_score_, score(1.0), rtol=1e-10)
    shrunk = with_kernel(name, KERNELS[kernel]).set_params(shrinkage="loo").fit(X)
    scores = [score(scale) for scale in np.linspace(0, 1, 201)]
    assert shrunk.loo_score_ <= min(scores) + 1e-12 * abs(min(scores))
    assert_allclose(shrunk.loo_score_, score(1 - shrunk.shrinkage_), rtol=1e-10)
    assert_allclose(shrunk.weights_, (1 - shrunk.shrinkage_) * w, rtol=1e-12)


def test_equal_weights_shrink_as_theorem_3():
    plain = mh.ShrunkKernelMean(mh.Gaussian(1.5)).fit(X)
    robust = RobustKernelMean(mh.Gaussian(1.5), threshold=10.0, shrinkage="loo").fit(X)
    assert_allclose(robust.shrinkage_, plain.shrinkage_, rtol=1e-10)
    assert_allclose(robust.loo_score_, plain.loo_score_, rtol=1e-10)
    assert_allclose(robust.weights_, plain.weights_, rtol=1e-10)


def test_a_mean_of_one_row_has_nothing_to_leave_out():
    size, left_out = weighted_loo_moments(np.eye(3), np.array([1.0, 0.0, 0.0]), np.ones(3))
    assert (size, *left_out) == (1.0, 0.0, 0.0)


# ---------------------------------------------------------------- bad rows


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["clump", "spread", "tight"])
@pytest.mark.parametrize("d", [1, 2, 10])
def test_ten_percent_of_gross_outliers(d, kind):
    """At most half of the average's loss, and within 3 % of it without them (benchmarks/robust.py has more shapes)."""
    P = mh.GaussianMixture([0.4, 0.6], [[-1.5] * d, [1.5] * d], [1.0, 1.0])
    losses = {"clean": [], "bad": []}
    for seed in range(12):
        rng = np.random.default_rng(seed)
        rows = P.sample(150, random_state=seed)
        spoiled = rows.copy()
        bad = {"clump": 30 + rng.normal(size=(15, d)), "spread": 100 * rng.normal(size=(15, d)), "tight": 30.0}
        spoiled[:15] = bad[kind]
        for state, data in {"clean": rows, "bad": spoiled}.items():
            kernel = mh.Gaussian().resolve(data)
            truth = mh.embed(kernel, P)
            means = [mh.KernelMean(kernel), RobustKernelMean(kernel), RobustKernelMean(kernel, loss="hampel")]
            losses[state].append([mean.fit(data).mean_.distance(truth) ** 2 for mean in means])
    plain, *robust = np.mean(losses["bad"], axis=0)
    assert max(robust) <= 0.5 * plain
    plain, *robust = np.mean(losses["clean"], axis=0)
    assert max(robust) <= 1.03 * plain


def test_outliers_against_loops():
    rows = contaminated(40, 2)
    rows[4:7] = [[5.0, 0.0], [-6.0, 1.0], [0.0, 7.0]]
    n, most = len(rows), 0.2
    K = mh.Gaussian(1.5)(rows)
    distances = np.sqrt(2 - 2 * K)
    reach = np.sort(distances[distances > 1e-7])[int(np.ceil(0.8**2 * n * (n - 1))) - 1]
    near = [{j for j in range(n) if distances[i, j] <= reach} for i in range(n)]
    body = {i for i in range(n) if len(near[i]) >= most * n}
    expected = [len(near[i] & body) < 0.02 * n for i in range(n)]
    assert 4 <= sum(expected) < 8
    assert_array_equal(outlying(K, np.ones(n), most), expected)
    assert not outlying(K, np.ones(n), 0.05).any()  # more rows than may be
    assert not outlying(K, np.ones(n), 0.0).any()


def test_outliers_that_hardly_move_the_mean_stay():
    rows = contaminated(100, 2, share=0.02)
    assert not outlying(mh.Gaussian(1.5)(rows), np.ones(100), 0.15).any()
    assert outlying(mh.Linear()(rows), np.ones(100), 0.15)[:2].all()


@pytest.mark.parametrize("name", FOR_ANY_KERNEL)
def test_an_unbounded_kernel(name):
    rows = contaminated(90, 2)
    rows[:9] += 1e4
    shrinkage = ESTIMATORS[name].shrinkage
    fitted = with_kernel(name, mh.Linear()).set_params(shrinkage=None if shrinkage == "loo" else shrinkage)
    mean = fitted.fit(rows).weights_ @ rows
    assert np.linalg.norm(mean) < 2.5
    assert np.linalg.norm(rows.mean(axis=0)) > 1e3


def test_hampel_gives_bad_rows_nothing():
    fitted = RobustKernelMean(loss="hampel").fit(contaminated())
    assert_array_equal(fitted.weights_[:10], 0.0)
    assert (fitted.weights_[10:] > 0).mean() > 0.95


# ---------------------------------------------------------------- properties


def test_most_rows_equal():
    """The median is the repeated row, with residuals 0; the others are then measured among themselves."""
    rows = np.concatenate([np.zeros((16, 1)), np.ones((4, 1))])
    fitted = RobustKernelMean(mh.Gaussian(1.0)).fit(rows)
    assert_allclose(fitted.weights_, 1 / 20, rtol=1e-6)
    assert_allclose(fitted.threshold_, 1.5 * np.sqrt(2 - 2 * np.exp(-0.5)), rtol=1e-2)


def test_what_does_not_converge_is_said():
    with pytest.warns(ConvergenceWarning, match="max_iter=1 steps"):
        RobustKernelMean(max_iter=1, threshold=0.9).fit(contaminated())


@pytest.mark.parametrize(("weight", "arrays"), [(None, 6), (np.arange(600) % 3 + 1, 12)], ids=["equal", "weighted"])
def test_memory_is_what_is_asked_for(weight, arrays):
    X = sample(600, 3, seed=0)
    tracemalloc.start()
    RobustKernelMean(mh.Gaussian(2.0)).fit(X, sample_weight=weight)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= 1.1 * arrays * 8 * 600**2
