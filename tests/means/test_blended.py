"""A sample blended with a Gaussian: the share against its definition, and a measure that is one."""

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.covariance import OAS
from sklearn.utils.estimator_checks import parametrize_with_checks

import muhat as mh
from muhat.means.blended import allowed_share, blending_share
from muhat.rkhs.oas_gaussian import FittedGaussian


def far(limit, R):
    return R.sum(axis=1) > limit


def rows(n=15, d=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d)) * np.arange(1, d + 1)


@parametrize_with_checks([mh.BlendedSample()])
def test_rules_of_estimators(estimator, check):
    check(estimator)


def slow_share(kernel, X):
    """The lowest point of ‖f‖² − 2·mean f₋ᵢ(x_i) over b, with every refit made."""
    plain, smooth = mh.embed(kernel, X), mh.Element(kernel, FittedGaussian.of(X).measure())
    kept = [np.delete(X, i, axis=0) for i in range(len(X))]
    p = np.mean([mh.embed(kernel, part)(X[[i]])[0] for i, part in enumerate(kept)])
    t = np.mean([mh.Element(kernel, FittedGaussian.of(part).measure())(X[[i]])[0] for i, part in enumerate(kept)])
    shares = np.linspace(0, 1, 10_001)
    Q, T, XX = plain.norm() ** 2, smooth.norm() ** 2, plain.inner(smooth)
    risks = (1 - shares) ** 2 * Q + 2 * shares * (1 - shares) * XX + shares**2 * T
    return shares[np.argmin(risks - 2 * ((1 - shares) * p + shares * t))]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("width", [0.3, 1.0, 3.0])
def test_the_share_minimises_the_risk(seed, width):
    X = rows(seed=seed)
    kernel = mh.Gaussian(width * mh.Gaussian().resolve(X).bandwidth)
    assert_allclose(mh.BlendedSample(kernel, scale=False).fit(X).share_, slow_share(kernel, X), atol=1e-4)


def test_samples_of_a_gaussian_have_large_shares_and_others_small_ones():
    rng = np.random.default_rng(0)
    clusters = rng.choice([-5.0, 5.0], size=(150, 2)) + 0.1 * rng.normal(size=(150, 2))
    assert mh.BlendedSample().fit(rows(60)).share_ > 0.5
    assert mh.BlendedSample(mh.Gaussian(1.0)).fit(clusters).share_ < 0.1
    assert mh.BlendedSample(mh.Laplace()).fit(rows(60)).share_ > 0.3
    assert mh.BlendedSample(mh.Gaussian(1.0)).fit(np.ones((4, 2))).share_ == 0


@pytest.mark.parametrize("shape", [(12, 3), (6, 40)])
def test_the_gaussian_is_that_of_oas_without_its_matrix(shape):
    X = rows(*shape)
    gaussian = FittedGaussian.of(X)
    want = OAS().fit(X).covariance_
    root = gaussian.at(np.eye(shape[1])) - gaussian.centre
    assert_allclose(root.T @ root, want, rtol=1e-8, atol=1e-10)
    assert_allclose(gaussian.deviations() ** 2, np.diag(want), rtol=1e-10)


def test_expectations_are_those_of_the_measure():
    X = np.exp(rows() / 3)
    blended = mh.BlendedSample(random_state=0).fit(X)
    b = blended.share_
    assert 0 < b < 1
    assert_allclose(blended.expect(lambda R: np.ones(len(R))), 1, rtol=1e-12)
    assert_allclose(blended.expect(lambda R: R), X.mean(axis=0), rtol=1e-9)  # mirror images
    second = blended.expect(lambda R: (R - X.mean(axis=0)) ** 2)
    want = X.var(axis=0) * (1 - b + b * np.diag(OAS().fit(X / X.std(axis=0)).covariance_))
    assert_allclose(second, want, rtol=0.15)
    drawn = blended.sample(40_000, random_state=1)
    assert_allclose(blended.probability(partial(far, 5)), far(5, drawn).mean(), atol=0.02)
    assert_allclose(blended.quantile([0.1, 0.6]), np.quantile(drawn, [0.1, 0.6], axis=0), atol=0.2)


def test_quantiles_at_both_ends_of_the_share():
    X = rows()
    blended = mh.BlendedSample().fit(X)
    levels = [0.01, 0.05, 0.5, 0.93, 0.99]
    own = replace(blended._blend, share=0.0).quantiles(np.array(levels))
    assert_allclose(own, np.quantile(X, levels, axis=0), rtol=1e-12)
    quantiles = blended.quantile(np.linspace(0.01, 0.99, 50))
    assert np.isfinite(quantiles).all()
    assert (np.diff(quantiles, axis=0) >= 0).all()
    assert blended.quantile(0.5).shape == (3,)


def test_probabilities_of_half_spaces_are_better_than_those_of_the_sample():
    rng = np.random.default_rng(0)
    ours, sample = [], []
    for _ in range(60):
        X = rng.normal(size=(20, 4))
        blended = mh.BlendedSample(random_state=0).fit(X)
        ours.append(blended.probability(partial(far, 3.29)) - 0.05)  # a tail of 5 %
        sample.append(far(3.29, X).mean() - 0.05)
    assert np.mean(np.square(ours)) < 0.8 * np.mean(np.square(sample))


def test_error_bars():
    X = rows(30)
    blended = mh.BlendedSample(n_resamples=25, random_state=0).fit(X)
    mean, std = blended.expect(lambda R: R, return_std=True)
    assert_allclose(std, X.std(axis=0) / np.sqrt(30), rtol=0.5)
    assert_allclose(mean, X.mean(axis=0), atol=1e-9)
    probability, error = blended.probability(lambda R: R[:, 0] > 0, return_std=True)
    assert 0 < error < 0.2 < probability
    again = mh.BlendedSample(n_resamples=25, random_state=0).fit(X).quantile(0.5, return_std=True)
    assert_array_equal(again, blended.quantile(0.5, return_std=True))


def test_many_more_columns_than_rows():
    X = np.random.default_rng(0).normal(size=(12, 400))
    blended = mh.BlendedSample(random_state=0).fit(X)
    assert 0 <= blended.share_ <= 1
    assert blended.sample(3, random_state=0).shape == (3, 400)
    assert 0 <= blended.probability(lambda R: R.mean(axis=1) > 0) <= 1
    few = np.random.default_rng(0).normal(size=(12, 310))
    assert_allclose(
        blending_share(mh.Gaussian(20.0), few), slow_share(mh.Gaussian(20.0), few), atol=0.1
    )  # by a sample of 256 points


def rows_above(limits, R):
    return (limits < R).any(axis=1)


@pytest.mark.parametrize("kernel", [mh.Gaussian(), mh.Gaussian(2.0), mh.Laplace()])
@pytest.mark.parametrize("factors", [[1e-6, 1e6, 1.0], [1e6, 1e-6, 3.0], [1e-100] * 3, [1e100] * 3])
def test_units_of_columns_do_not_matter(kernel, factors):
    X, limits = rows(20), np.array([1.0, 2.0, 4.0])
    shift = np.array([5.0, -3.0, 100.0]) * factors
    blended = mh.BlendedSample(kernel, n_resamples=5, random_state=0)
    want, error = blended.fit(X).quantile([0.05, 0.3], return_std=True)
    share, probability = blended.share_, blended.probability(partial(rows_above, limits))
    expected, drawn = blended.expect(np.abs), blended.sample(50, random_state=0)
    blended.fit(factors * X + shift)
    assert_allclose(blended.share_, share, rtol=1e-6)
    got, other_error = blended.quantile([0.05, 0.3], return_std=True)
    assert_allclose((got - shift) / factors, want, rtol=1e-6)
    assert_allclose(other_error / factors, error, rtol=1e-6)
    assert_allclose(blended.probability(partial(rows_above, factors * limits + shift)), probability, rtol=1e-12)
    assert_allclose(blended.expect(lambda R: np.abs((R - shift) / factors)), expected, rtol=1e-6)
    assert_allclose((blended.sample(50, random_state=0) - shift) / factors, drawn, rtol=1e-6, atol=1e-9)


def test_a_salary_beside_an_age():
    X = np.random.default_rng(0).normal([50_000, 40], [9_000, 8], size=(25, 2))
    blended = mh.BlendedSample().fit(X)
    assert (np.abs(blended.quantile([0.05, 0.95])[:, 1] - [26.8, 53.2]) < 8).all()
    assert blended.probability(lambda R: R[:, 1] < 0) < 0.01
    as_they_are = mh.BlendedSample(scale=False).fit(X)
    assert 15 < as_they_are.quantile(0.05)[1] < 40  # of one common variance the Gaussian is wrong, and has no share


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_functions_of_a_frame_get_a_frame(library):
    pytest.importorskip(library)
    X = rows(20)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame = frame if library == "pandas" else pytest.importorskip("polars").from_pandas(frame)
    blended, plain = (mh.BlendedSample(n_resamples=3, random_state=0).fit(rows) for rows in (frame, X))
    named = blended.probability(lambda R: R["b"] > 1, return_std=True)
    assert named == plain.probability(lambda R: R[:, 1] > 1, return_std=True)
    drawn = blended.sample(4, random_state=0)
    assert type(drawn) is type(frame)
    assert_array_equal(drawn["c"].to_numpy(), plain.sample(4, random_state=0)[:, 2])
    absent = KeyError if library == "pandas" else pytest.importorskip("polars").exceptions.ColumnNotFoundError
    with pytest.raises(absent) as found:
        blended.probability(lambda R: R["d"] > 1)
    assert "with the columns ['a', 'b', 'c'], as fit did" in found.value.__notes__[0]


def test_bad_input_is_named():
    with pytest.raises(ValueError, match=r"cannot compare these rows with a Gaussian .*use Gaussian"):
        mh.BlendedSample(mh.Linear()).fit(rows())
    with pytest.raises(ValueError, match="n_resamples=1 must be a whole number"):
        mh.BlendedSample(n_resamples=1).fit(rows())
    blended = mh.BlendedSample().fit(rows())
    with pytest.raises(ValueError, match="event must return True or False for each"):
        blended.probability(lambda R: R[:, 0])
    with pytest.raises(ValueError, match=r"event='a > 1' must be a function of rows; pass for example lambda"):
        blended.probability("a > 1")
    with pytest.raises(ValueError, match="f=None must be a function of rows"):
        blended.expect(None)
    with pytest.raises(ValueError, match="scale='columns' must be True or False"):
        mh.BlendedSample(scale="columns").fit(rows())
    with pytest.raises(ValueError, match="whose sums overflow; rescale it first"):
        mh.BlendedSample().fit(rows() * 1e307)
    with pytest.raises(IndexError) as found:
        blended.probability(lambda R: R["a"] > 1)
    assert found.value.__notes__ == ["The function gets an array of shape (15, 3), as fit did."]
    with pytest.raises(ValueError, match="f must return a value for each of 15 rows"):
        blended.expect(lambda R: R.sum())
    with pytest.raises(ValueError, match="q=1 must lie between 0 and 1"):
        blended.quantile(1)
    with pytest.raises(ValueError, match="n_samples=0 must be a whole number"):
        blended.sample(0)


def test_a_constant_column_stays_constant():
    """Its value has probability one, whatever the other columns are, and their answers do not change."""
    X = rows(30)
    blended = mh.BlendedSample(random_state=0).fit(np.column_stack([X, np.full(30, 7.0)]))
    alone = mh.BlendedSample(random_state=0).fit(X)
    assert blended.share_ == pytest.approx(alone.share_, rel=1e-9)
    assert blended.share_ > 0.1
    assert blended.probability(lambda R: R[:, 3] == 7.0) == 1.0
    assert_array_equal(blended.quantile([0.01, 0.99])[:, 3], 7.0)
    assert_array_equal(blended.sample(100, random_state=0)[:, 3], 7.0)
    assert_allclose(blended.quantile(0.2)[:3], alone.quantile(0.2), rtol=1e-9)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_function_without_a_value_is_refused(bad):
    blended = mh.BlendedSample(random_state=0).fit(rows(30))
    with pytest.raises(ValueError, match=r"f gave NaN or an infinite value for .* rows"):
        blended.expect(lambda R: np.where(R[:, 0] > 0, bad, 1.0))


def test_discrete_columns_keep_the_values_of_the_sample():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 2, size=30), rng.normal(size=30)])
    blended = mh.BlendedSample(random_state=0).fit(X)
    assert blended.share_ > 0
    assert set(blended.sample(500, random_state=0)[:, 0]) == {0.0, 1.0}
    assert blended.quantile(0.7)[0] == np.quantile(X[:, 0], 0.7)
    assert_allclose(blended.probability(lambda R: R[:, 0] == 1.0), X[:, 0].mean(), atol=0.02)


def test_where_the_gaussian_is_wrong_the_sample_answers():
    """Two clusters with nothing between them: the Gaussian has most of its mass there."""
    rng = np.random.default_rng(0)
    X = rng.choice([-3.0, 3.0], size=(40, 1)) + 0.3 * rng.normal(size=(40, 1))
    assert mh.BlendedSample(mh.Gaussian(5.0), random_state=0).fit(X).probability(lambda R: abs(R[:, 0]) < 1) < 0.02


def test_the_share_of_an_answer():
    assert_allclose(allowed_share(0.6, np.array([0.0, 0.1, 0.2]), 0.02), [0.6, 0.6, 0.15])
