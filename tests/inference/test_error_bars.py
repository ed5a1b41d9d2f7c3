"""Errors, balls and bands of estimated means: formulas, coverage, errors."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from tables import sample

import muhat as mh
from muhat.inference.error_bars import carrying_rows, confidence_ball, mean_bands, mean_error
from muhat.inference.mmd_intervals import mmd_difference_interval, mmd_interval

KERNEL = mh.Gaussian(1.5)

P = mh.GaussianMixture([0.4, 0.6], [[-1.0, 0.0], [1.0, 0.5]], [1.0, 0.5])

X, Y, Z = sample(14, 2, seed=1), sample(11, 2, seed=2) * 1.5, sample(9, 2, seed=3) + 0.4


@pytest.mark.parametrize("kernel", [KERNEL, mh.Linear(), mh.Polynomial(2)], ids=str)
def test_the_error_is_that_of_the_pairs(kernel):
    K = kernel(X)
    pairs = [K[i, i] + K[j, j] - 2 * K[i, j] for i in range(14) for j in range(i)]
    assert_allclose(mean_error(mh.KernelMean(kernel).fit(X)), np.sqrt(np.mean(pairs) / 2 / 14), rtol=1e-10)
    assert_allclose(mean_error(mh.embed(kernel, X)), mean_error(mh.KernelMean(kernel).fit(X)), rtol=1e-12)
    assert_allclose(mean_error(mh.KernelMean("precomputed").fit(K)), mean_error(mh.embed(kernel, X)), rtol=1e-10)


def test_the_squared_error_is_right_on_average():
    truth = mh.embed(KERNEL, P)
    draws = [mh.embed(KERNEL, P.sample(15, random_state=seed)) for seed in range(400)]
    differences = [f.distance(truth) ** 2 - mean_error(f) ** 2 for f in draws]
    assert abs(np.mean(differences)) <= 4 * np.std(differences) / np.sqrt(400)


def test_sample_weight_repeats():
    counts = np.arange(14) % 3
    weighted = mh.KernelMean(KERNEL).fit(X, sample_weight=counts)
    repeated = mh.KernelMean(KERNEL).fit(np.repeat(X, counts, axis=0))
    assert_allclose(mean_error(weighted), mean_error(repeated), rtol=1e-10)
    assert_allclose(confidence_ball(weighted).radius, confidence_ball(repeated).radius, rtol=1e-10)
    one, other = mean_bands(weighted, Z), mean_bands(repeated, Z)
    assert_allclose(one.low, other.low, rtol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("level", "method"), [(0.95, "bernstein"), (0.5, "bernstein"), (0.95, "bootstrap"), (0.5, "bootstrap")]
)
def test_balls_hold_the_mean(level, method):
    truth = mh.embed(KERNEL, P)
    balls = [
        confidence_ball(
            mh.embed(KERNEL, P.sample(60, random_state=seed)), level, method, n_resamples=199, random_state=0
        )
        for seed in range(200)
    ]
    share = np.mean([ball.contains(truth) for ball in balls])
    if method == "bernstein":
        assert share >= level
    else:
        assert abs(share - level) <= 0.03 + 3 * np.sqrt(level * (1 - level) / 200)  # n = 60 falls short by a little


@pytest.mark.parametrize("method", ["bernstein", "bootstrap"])
@pytest.mark.parametrize("n", [10, 40])
def test_balls_hold_means_of_discrete_and_rare_values(method, n):
    """Values with the shares .9, .08 and .02, of which most samples of ten have one."""
    values, shares, rng = np.arange(3.0)[:, None], np.array([0.9, 0.08, 0.02]), np.random.default_rng(0)
    truth = mh.embed(KERNEL, values, weights=shares)
    held = [
        confidence_ball(
            mh.embed(KERNEL, values[rng.choice(3, n, p=shares)]), 0.95, method, n_resamples=99, random_state=0
        ).contains(truth)
        for _ in range(200)
    ]
    assert np.mean(held) >= 0.95 - 0.02 - 3 * np.sqrt(0.95 * 0.05 / 200)


def test_scaled_kernels_scale_the_ball():
    for method in ("bernstein", "bootstrap"):
        one = confidence_ball(mh.embed(KERNEL, X), method=method, random_state=0)
        other = confidence_ball(mh.embed(9.0 * KERNEL, X), method=method, random_state=0)
        assert_allclose(other.radius, 3 * one.radius, rtol=1e-10)


def test_the_ball_of_another_estimate_is_wider_by_the_distance():
    plain, shrunk = mh.KernelMean(KERNEL).fit(X), mh.ShrunkKernelMean(KERNEL).fit(X)
    wider = confidence_ball(shrunk).radius - confidence_ball(plain).radius
    assert_allclose(wider, shrunk.mean_.distance(plain.mean_), rtol=1e-10)
    assert confidence_ball(shrunk).center is shrunk.mean_


def test_auto_knows_which_kernels_are_bounded():
    bounded = 2.0 * (mh.Gaussian(1.0) + mh.Laplace(1.0)) * mh.Matern(1.5, 1.0)
    assert confidence_ball(mh.embed(bounded, X)).method == "bernstein"
    for kernel in (mh.Linear(), mh.Linear() * KERNEL, KERNEL + mh.Polynomial(2)):
        assert confidence_ball(mh.embed(kernel, X)).method == "bootstrap"
    assert confidence_ball(mh.embed(mh.Linear(), X), bound=30.0).method == "bernstein"
    # without negative values D² is 2 sup k, in general 4 sup k
    by_hand = confidence_ball(mh.embed(KERNEL, X), bound=0.5)
    assert_allclose(by_hand.radius, confidence_ball(mh.embed(KERNEL, X)).radius)


def test_the_bootstrap_radius_matches_a_loop():
    ball = confidence_ball(mh.embed(KERNEL, X), 0.9, "bootstrap", n_resamples=99, random_state=3)
    counts = np.random.default_rng(3).multinomial(14, np.full(14, 1 / 14), size=99)
    resamples = [mh.embed(KERNEL, np.repeat(X, c, axis=0)).distance(ball.center) for c in counts]
    assert_allclose(ball.radius, np.sort(resamples)[89] * np.sqrt(14 / 13), rtol=1e-8)
    assert repr(ball).startswith("ConfidenceBall(radius=0.")


@pytest.fixture
def as_seen(monkeypatch):
    """Formulas of intervals by themselves, without what they add for rows that a sample lacks."""
    monkeypatch.setattr("muhat.inference.error_bars.FEW_ROWS", 0.0)


@pytest.mark.usefixtures("as_seen")
def test_bands_of_the_plain_mean_are_t_intervals():
    bands = mean_bands(mh.KernelMean(KERNEL).fit(X), Z, level=0.9)
    V = KERNEL(X, Z)
    expected = stats.ttest_1samp(V, 0.0).confidence_interval(0.9)
    assert_allclose(bands.low, expected.low, rtol=1e-10)
    assert_allclose(bands.high, expected.high, rtol=1e-10)
    assert_allclose(bands.values, V.mean(axis=0), rtol=1e-10)
    assert_array_equal(bands.points, Z)


@pytest.mark.usefixtures("as_seen")
@pytest.mark.slow
@pytest.mark.parametrize(
    "estimator",
    [
        mh.ShrunkKernelMean(KERNEL),
        mh.ShrunkKernelMean(KERNEL, target=mh.embed(KERNEL, np.zeros((1, X.shape[1])))),
        mh.AdaptiveKernelMean(KERNEL),
    ],
    ids=["simple", "toward a point", "adaptive"],
)
def test_bands_of_another_estimator_refit(estimator):
    mean = clone(estimator).fit(X)
    bands = mean_bands(mean, Z)
    left_out = np.array([clone(estimator).fit(np.delete(X, i, axis=0)).mean_(Z) for i in range(14)])
    errors = np.sqrt(13 / 14 * ((left_out - left_out.mean(axis=0)) ** 2).sum(axis=0))
    assert_allclose(bands.high - bands.low, 2 * stats.t.ppf(0.975, 13) * errors, rtol=1e-8)


def test_the_adaptive_mean_of_these_rows_has_a_target():
    assert len(mh.AdaptiveKernelMean(KERNEL).fit(X).mean_.measures) == 2


@pytest.mark.usefixtures("as_seen")
def test_bands_of_a_gram_matrix():
    one = mean_bands(mh.KernelMean(KERNEL).fit(X), Z)
    other = mean_bands(mh.KernelMean("precomputed").fit(KERNEL(X)), KERNEL(Z, X))
    assert_allclose(other.low, one.low, rtol=1e-10)
    assert repr(one) == repr(other)


@pytest.mark.slow
@pytest.mark.parametrize("level", [0.95, 0.5])
def test_bands_cover(level):
    points = np.array([[-1.0, 0.0], [0.0, 0.5], [1.5, 1.0]])
    truth = mh.embed(KERNEL, P)(points)
    covered = []
    for seed in range(300):
        bands = mean_bands(mh.embed(KERNEL, P.sample(40, random_state=seed)), points, level)
        covered.append((bands.low <= truth) & (truth <= bands.high))
    assert_allclose(np.mean(covered, axis=0), level, rtol=0, atol=0.02 + 3 * np.sqrt(level * (1 - level) / 300))


@pytest.mark.slow
def test_bands_cover_means_of_discrete_values():
    values, shares = np.arange(3.0)[:, None], np.array([0.7, 0.2, 0.1])
    truth, rng, covered = KERNEL(values, values) @ shares, np.random.default_rng(0), []
    for _ in range(300):
        bands = mean_bands(mh.embed(KERNEL, values[rng.choice(3, 60, p=shares)]), values, 0.95)
        covered.append((bands.low <= truth) & (truth <= bands.high))
    assert np.mean(covered, axis=0).min() >= 0.95 - 0.02 - 3 * np.sqrt(0.95 * 0.05 / 300)


def test_two_rows():
    f = mh.embed(KERNEL, X[:2])
    assert_allclose(mean_error(f) ** 2, (1 - KERNEL(X[:1], X[1:2])[0, 0]) / 2)
    assert np.isfinite(mean_bands(f, Z).high).all()
    assert confidence_ball(f, method="bootstrap", random_state=0).radius > 0


PLAIN = mh.embed(KERNEL, X)

BAD = {
    "level 0": (lambda: confidence_ball(PLAIN, level=0.0), "level=0.0"),
    "level 1": (lambda: confidence_ball(PLAIN, level=1), "level=1"),
    "method of a ball": (lambda: confidence_ball(PLAIN, method="t"), "method='t'"),
    "unbounded": (lambda: confidence_ball(mh.embed(mh.Linear(), X), method="bernstein"), "needs a bounded kernel"),
    "bound without Bernstein": (
        lambda: confidence_ball(PLAIN, method="bootstrap", bound=1.0),
        "bound=1.0 is of method",
    ),
    "bound": (lambda: confidence_ball(PLAIN, bound=-1.0), "bound=-1.0"),
    "no estimator": (lambda: mean_error(X), "must be a fitted mean estimator"),
    "weighted element": (lambda: mean_error(mh.embed(KERNEL, X, weights=np.arange(14.0))), "plain average"),
    "one row": (lambda: mean_error(mh.embed(KERNEL, X[:1])), "at least two rows"),
    "exact mean": (lambda: mean_error(mh.embed(KERNEL, P)), "plain average"),
    "n_resamples": (lambda: confidence_ball(PLAIN, method="bootstrap", n_resamples=0), "n_resamples=0"),
    "random_state": (lambda: confidence_ball(PLAIN, method="bootstrap", random_state="x"), "random_state='x'"),
    "points": (lambda: mean_bands(PLAIN, Z[:, :1]), "columns|features|dimensions"),
    "too few rows": (lambda: mmd_interval(X[:2], Y), "at least 3 are needed"),
    "columns": (lambda: mmd_interval(X, Y[:, :1]), r"X has 2 columns and Y has 1; both need the same columns"),
    "kernel": (lambda: mmd_interval(X, Y, "gaussian"), "kernel='gaussian'"),
    "fractions": (
        lambda: mean_bands(mh.KernelMean(KERNEL).fit(X, sample_weight=np.full(14, 1.5)), Z),
        "whole numbers",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    call, message = BAD[name]
    with pytest.raises(ValueError, match=message):
        call()


def test_not_fitted():
    with pytest.raises(NotFittedError):
        mean_error(mh.KernelMean())


def test_equal_rows_leave_room_for_others():
    """Of 40 equal rows a share of up to about 3/40 may be missing; without a bound a warning says so."""
    rows = np.ones((40, 2))
    assert mean_error(mh.embed(KERNEL, rows)) < 1e-8
    bands = mean_bands(mh.embed(KERNEL, rows), np.array([[1.0, 1.0], [9.0, 9.0]]))
    assert_allclose(bands.high[0], 1.0)
    assert_allclose([1.0 - bands.low[0], bands.high[1]], 2.8 / 40, rtol=0.05)
    assert_allclose(bands.low[1], 0.0, atol=1e-12)
    found = mmd_interval(rows, rows, KERNEL)
    assert_allclose([found.estimate, found.low], 0.0, atol=1e-12)
    assert 0.005 < found.high < 0.02
    assert_allclose(mmd_interval(rows, rows, 9.0 * KERNEL).high, 9.0 * found.high)
    assert 0 < mmd_difference_interval(rows, rows, rows + 1, KERNEL).pvalue < 1
    for ball in ("bernstein", "bootstrap"):
        assert confidence_ball(mh.embed(KERNEL, rows), method=ball).radius > 0.05
    for call in (lambda f: mean_bands(f, rows), lambda f: confidence_ball(f, method="bootstrap")):
        with pytest.warns(UserWarning, match=r"rests on the deviations of one row or none.*Linear\(\).*pass more rows"):
            call(mh.embed(mh.Linear(), rows))
    with pytest.warns(UserWarning, match="the interval rests on"):
        mmd_interval(rows, rows, mh.Linear())


def rare(rng, n, share):
    return np.where(rng.random((n, 1)) < share, rng.normal(3.0, 1.0, size=(n, 1)), 0.0)


@pytest.mark.slow
@pytest.mark.parametrize("n", [10, 20, 50, 100])
def test_a_rare_value_is_covered(n):
    """A column that is nonzero in few rows, which most samples lack."""
    rng = np.random.default_rng(0)
    kernel, points = mh.Gaussian(1.0), np.array([[0.0], [3.0]])
    truth = [0.98 * kernel(points, np.zeros((1, 1)))[:, 0] + 0.02 * kernel(points, rare(rng, 4000, 1.0)).mean(axis=1)]
    many = [rare(rng, 3000, 1.0), rare(rng, 3000, 1.0)]
    inner = [kernel(A, B).mean() for A, B in ((many[0], many[1]), (many[0], np.zeros((1, 1))))]
    squared = (0.03 - 0.02) ** 2 * (inner[0] + 1.0 - 2.0 * inner[1])  # of shares .02 and .03
    held, intervals = [], []
    for _ in range(200):
        X, Y = rare(rng, n, 0.02), rare(rng, n, 0.03)
        bands = mean_bands(mh.embed(kernel, X), points)
        held.append((bands.low <= truth[0]) & (truth[0] <= bands.high))
        found = mmd_interval(X, Y, kernel)
        intervals.append(found.low <= squared <= found.high)
    assert np.min(np.mean(held, axis=0)) >= 0.93
    assert np.mean(intervals) >= 0.93


def test_rows_that_carry_a_variance_are_counted():
    for k in range(1, 8):
        deviations = np.repeat([1.0, 0.0], [k, 100 * k])
        assert_allclose(carrying_rows(deviations), k)
    assert carrying_rows(np.zeros(5)) == 0.0
    assert_allclose(carrying_rows(np.array([[1e-200, -1e-200], [3e200, 0.0]])), [2.0, 1.0])
