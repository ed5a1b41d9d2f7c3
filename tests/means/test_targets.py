"""Shrinkage targets, exact and sampled, against brute force: values, norms, and fits without parts of the rows."""

import numpy as np
import oracles
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import qmc
from sklearn.gaussian_process.kernels import RationalQuadratic
from tables import KERNELS, data_sets, sample

import muhat as mh
from muhat.linalg.resources import one_blas_thread
from muhat.means import targets
from muhat.means.adaptive import AdaptiveKernelMean
from muhat.means.targets import gaussian_kind, gaussian_target, given_target, sampled_target
from muhat.rkhs import oas_gaussian as gaussian
from muhat.rkhs.oas_gaussian import FittedGaussian, normal_points

DATA = data_sets()
SAMPLED = {
    **{name: KERNELS[name] for name in ("laplace", "matern_half", "matern", "matern_smooth")},
    "sum": mh.Gaussian(0.8) + 2.0 * mh.Laplace(1.5),
    "product": mh.Gaussian(2.0) * mh.Matern(1.5, 1.3),
}
every_sampled_kernel = pytest.mark.parametrize("kernel", SAMPLED.values(), ids=SAMPLED)
every_data_set = pytest.mark.parametrize("data", DATA)


def slow_sample_without(X, kept, base):
    """By Cholesky's root in the basis of the eigenvectors for all rows, those of the largest eigenvalues first."""
    basis = np.linalg.svd(X - X.mean(axis=0))[2]
    covariance = basis @ oracles.oas_covariance(X[kept]) @ basis.T
    root = np.linalg.cholesky(covariance) if covariance.any() else covariance
    return X[kept].mean(axis=0) + base @ basis.T @ root.T @ basis


# ---------------------------------------------------------------- brute force


def slow_target(kernel, X, kept):
    return mh.embed(kernel, slow_sample_without(X, kept, normal_points(X.shape[1], gaussian.SAMPLE_POINTS)))


@pytest.mark.parametrize("outlier", [0.0, 1e3])
@pytest.mark.parametrize(("n", "d"), [(2, 1), (2, 3), (9, 2), (6, 30)])
@every_sampled_kernel
def test_targets_are_embedded_samples(kernel, n, d, outlier):
    """Few rows are left out one by one."""
    X = sample(n, d, seed=n * d) * np.linspace(0.3, 2, d)
    X[0] += outlier
    found = sampled_target(kernel, X)
    values, squared_norms = found.without_parts()
    assert_array_equal(np.sort(found.parts), np.arange(n))
    for i, part in enumerate(found.parts):
        atoms = slow_target(kernel, X, np.arange(n) != i)
        assert_allclose(values[part], atoms(X), rtol=1e-6)  # a distance of 0 is found to half the digits
        assert_allclose(squared_norms[part], atoms.norm() ** 2, rtol=1e-6)
        assert_allclose(found.own[i], atoms(X[i : i + 1]), rtol=1e-6)
    whole = targets.sampled_element(kernel, X)
    assert_allclose(found.at_rows, whole(X), rtol=1e-6)
    assert_allclose(found.squared_norm, whole.norm() ** 2, rtol=1e-6)


@every_sampled_kernel
def test_the_score_is_that_of_brute_force(kernel):
    X = sample(11, 2, seed=40)
    n, fitted = len(X), AdaptiveKernelMean(kernel).fit(X)
    (a, b), K, score = fitted.shares_, kernel(X), 0.0
    B = oracles.refits(K, lambda part: oracles.tikhonov_weights(part, fitted.lam_))
    for i in range(n):
        target = slow_target(kernel, X, np.arange(n) != i)
        mean = a * mh.embed(kernel, X, weights=B[:, i]) + b * target
        score += mean.distance(mh.embed(kernel, X[i : i + 1])) ** 2 / n
    assert fitted.target_kind_ == "gaussian sample"
    assert_allclose(fitted.loo_score_, score, rtol=1e-8)


@pytest.mark.parametrize("d", [1, 3, 20])
def test_the_sample_is_closer_than_one_by_chance(d):
    X, kernel = sample(30, d, seed=41), mh.Gaussian(1.5 * np.sqrt(d))
    exact, sampled = targets.gaussian_element(kernel, X), targets.sampled_element(kernel, X)
    by_chance = (1 - exact.norm() ** 2) / gaussian.SAMPLE_POINTS  # the mean squared distance of independent draws
    assert sampled.distance(exact) ** 2 < by_chance / 2
    by_sample = sampled_target(kernel, X[:20])
    differences = by_sample.without_parts()[0][by_sample.parts] - gaussian_target(kernel, X[:20]).without_parts()[0]
    assert np.mean(differences**2) < by_chance / 2


# ---------------------------------------------------------------- where it is used


@every_sampled_kernel
def test_the_mean_is_rows_plus_the_sample(kernel):
    X = sample(15, 3, seed=43)
    fitted = AdaptiveKernelMean(kernel).fit(X)
    (a, b), base = fitted.shares_, mh.SpectralKernelMean(kernel, lam=fitted.lam_).fit(X)
    assert b > 0
    assert fitted.weights_.shape == (15,)
    assert len(fitted.target_.measures[0]) == gaussian.SAMPLE_POINTS
    assert_array_equal(fitted.mean_.measures[0].points[:15], X)
    assert_allclose(fitted.mean_(X), (a * base.mean_ + b * fitted.target_)(X), rtol=1e-10)


KINDS = [
    (mh.Gaussian(1.0), "gaussian"),
    (mh.Laplace(1.0), "gaussian sample"),
    (mh.Polynomial(4), "none: no closed form"),
    (KERNELS["product"], "none: no closed form"),
    (mh.Laplace(1.0) + mh.Linear(), "none: no closed form"),
    (mh.Laplace(1.0) * mh.Linear(), "none: no closed form"),
    (mh.as_kernel(RationalQuadratic()), "none: no closed form"),
    (mh.Linear(), "none: linear kernel"),
    (mh.Polynomial(degree=1), "none: linear kernel"),
    (2.0 * mh.Linear() + mh.Polynomial(degree=1), "none: linear kernel"),
    (mh.Gaussian(1e-150), "none: scale"),
]


@pytest.mark.parametrize(("kernel", "kind"), KINDS)
def test_the_kernel_decides_on_the_target(kernel, kind):
    fitted = AdaptiveKernelMean(kernel).fit(sample(9, 3, seed=13))
    assert fitted.target_kind_ == kind
    if kind.startswith("none"):
        assert fitted.shares_[1] == 0
        assert len(fitted.mean_.measures) == 1


def test_polynomial_kernels_have_a_target_where_covariance_and_powers_are_small():
    for X, degree, kind in (
        (sample(9, 300, seed=13), 2, "gaussian"),
        (sample(9, 301, seed=13), 2, "none: no closed form"),
        (1e75 * sample(8, 3, seed=21), 2, "none: scale"),
        (1e44 * sample(8, 3, seed=21), 3, "gaussian"),
    ):
        assert gaussian_kind(mh.Polynomial(degree), X).value == kind


def test_more_columns_than_the_sequence_has(monkeypatch):
    assert targets._MAX_COLUMNS_OF_SOBOL == qmc.Sobol.MAXDIM
    monkeypatch.setattr(targets, "_MAX_COLUMNS_OF_SOBOL", 2)
    assert gaussian_kind(mh.Laplace(1.0), sample(9, 2, seed=44)).value == "gaussian sample"
    assert gaussian_kind(mh.Laplace(1.0), sample(9, 3, seed=44)).value == "none: no closed form"


# ---------------------------------------------------------------- what it is for


@pytest.mark.slow
@pytest.mark.parametrize("kernel", [mh.Laplace(3.0), mh.Matern(1.5, 2.0)], ids=repr)
def test_it_beats_shrinkage_alone(kernel):
    rng = np.random.default_rng(8)
    population = rng.gamma(2.0, size=(200, 3))
    truth, losses = mh.embed(kernel, population), []
    with one_blas_thread():
        for _ in range(12):
            X = population[rng.integers(200, size=20)]
            means = [mh.KernelMean(kernel), AdaptiveKernelMean(kernel, target=None), AdaptiveKernelMean(kernel)]
            losses.append([mean.fit(X).mean_.distance(truth) ** 2 for mean in means])
    plain, nested, sampled = np.mean(losses, axis=0)
    assert sampled < 0.9 * min(plain, nested)


@pytest.mark.parametrize("kernel", [mh.Matern(), 2.0 * mh.Matern(0.5) * mh.Gaussian(9.0) + mh.Matern(2.5)], ids=repr)
def test_distances_beside_the_rows_need_no_columns(kernel, monkeypatch):
    """Kernels of the distance see lengths beside the rows: the same as points in all columns, by either axes."""
    X = sample(7, 290, seed=0) * np.linspace(0.2, 3.0, 290)
    kernel = kernel.resolve(X)
    assert mh.kernels.is_isotropic(kernel)
    found = [sampled_target(kernel, X)]
    monkeypatch.setattr(gaussian, "_FEWEST_TO_SQUARE", np.inf)
    found.append(sampled_target(kernel, X))
    monkeypatch.setattr(gaussian, "is_isotropic", lambda kernel: False)
    found.append(sampled_target(kernel, X))
    numbers = [(each.at_rows, each.squared_norm, each.own, *each.without_parts()) for each in found]
    for first, second, third in zip(*numbers, strict=True):
        assert_allclose(first, second, rtol=1e-12)
        assert_allclose(first, third, rtol=1e-12)
    whole = targets.sampled_element(kernel, X)
    assert_allclose(found[0].at_rows, whole.values(X), rtol=1e-12)
    assert_allclose(found[0].squared_norm, whole.norm() ** 2, rtol=1e-12)


@pytest.mark.parametrize("kernel", [mh.Matern(bandwidth=2.0), mh.Laplace(2.0)], ids=repr)
def test_rows_are_taken_a_part_at_a_time(kernel, monkeypatch):
    X = sample(50, 3, seed=5)
    at_once = sampled_target(kernel, X)
    monkeypatch.setattr(gaussian, "_ROWS_AT_ONCE", 7)
    by_parts = sampled_target(kernel, X)
    for name in ("at_rows", "own"):
        assert_allclose(getattr(by_parts, name), getattr(at_once, name), rtol=1e-12)
    assert_allclose(by_parts.without_parts()[0], at_once.without_parts()[0], rtol=1e-12)


def test_fewer_points_stand_for_the_target_of_many_columns(monkeypatch):
    X = sample(12, 500, seed=1) * np.linspace(0.2, 3.0, 500)
    kernel = mh.Laplace().resolve(X)
    every = sampled_target(kernel, X)
    monkeypatch.setattr(gaussian, "MAX_SAMPLED_NUMBERS", 0)
    few = sampled_target(kernel, X)
    assert len(gaussian.LooSample(kernel, X).inside) == gaussian.FEWEST_POINTS
    for name in ("at_rows", "squared_norm", "own"):
        assert_allclose(getattr(few, name), getattr(every, name), rtol=0.1)
        assert_allclose(np.mean(getattr(few, name)), np.mean(getattr(every, name)), rtol=0.02)


# ---------------------------------------------------------------- targets with a closed form, and given ones

EXACT = [mh.Gaussian(1.5), mh.Polynomial(2), mh.Polynomial(3, 0.5), mh.Gaussian(1.0) + mh.Polynomial(2)]


def fitted_gaussian(X):
    return FittedGaussian.of(X).measure()


@pytest.mark.parametrize("outlier", [0.0, 1e2, 1e5, 1e9])
@pytest.mark.parametrize("shape", [(9, 1), (9, 3), (5, 8), (3, 2), (2, 1), (12, 30)])
@pytest.mark.parametrize("kernel", EXACT, ids=repr)
def test_targets_without_each_row(kernel, shape, outlier):
    """Those of a Gaussian kernel are found without refits; rounding must not spoil them where one row is far away."""
    X = sample(*shape, seed=1) * np.linspace(0.1, 3, shape[1])
    X[-1] += outlier
    found, whole = gaussian_target(kernel, X), mh.Element(kernel, fitted_gaussian(X))
    assert_allclose(found.at_rows, whole(X), rtol=1e-9, atol=1e-11)
    assert_allclose(found.squared_norm, whole.norm() ** 2, rtol=1e-9)
    values, squared_norms = found.without_parts()
    for i in range(len(X)):
        left_out = mh.Element(kernel, fitted_gaussian(np.delete(X, i, axis=0)))
        assert_allclose(found.own[i], left_out(X)[i], rtol=1e-9, atol=1e-11)
        assert_allclose(values[found.parts[i]], left_out(X), rtol=1e-9, atol=1e-11)
        assert_allclose(squared_norms[found.parts[i]], left_out.norm() ** 2, rtol=1e-9)


FOLDED = {
    "gaussian": (gaussian_target, mh.Gaussian(1.0), lambda *rest: targets.gaussian_element(rest[0], rest[1][rest[2]])),
    "sample": (sampled_target, mh.Laplace(1.0), slow_target),
}


@pytest.mark.parametrize("name", FOLDED)
def test_folds_leave_whole_parts_out(name, monkeypatch):
    monkeypatch.setattr(targets, "MAX_ROWS_LEFT_OUT_ONE_BY_ONE", 5)
    X, (make, kernel, target_of) = sample(43, 2, seed=25), FOLDED[name]
    left_out = make(kernel, X)
    assert_array_equal(np.sort(np.bincount(left_out.parts)), [2] * 17 + [3] * 3)
    values, squared_norms = left_out.without_parts()
    assert_allclose(left_out.own, values[left_out.parts, np.arange(43)], rtol=1e-12)
    for part in (0, 7):
        target = target_of(kernel, X, left_out.parts != part)
        assert_allclose(values[part], target(X), rtol=1e-10)
        assert_allclose(squared_norms[part], target.norm() ** 2, rtol=1e-10)


def test_a_given_target_is_the_same_without_any_row():
    X, kernel = sample(7, 2, seed=2), mh.Gaussian(1.0)
    target = mh.embed(kernel, sample(3, 2, seed=3))
    found = given_target(target, kernel, X)
    for values in (found.at_rows, found.own, found.without_parts()[0][found.parts[-1]]):
        assert_allclose(values, target(X), rtol=1e-12)
