"""Shrinkage targets, exact and sampled, against brute force: values, norms, and fits without parts of the rows."""

import numpy as np
import oracles
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import qmc
from sklearn.covariance import OAS
from sklearn.gaussian_process.kernels import RationalQuadratic
from tables import KERNELS, awkward_rows, data_sets, sample

import muhat as mh
from muhat import oas_gaussian as gaussian
from muhat.linalg.resources import one_blas_thread
from muhat.means import targets
from muhat.means.adaptive import AdaptiveKernelMean
from muhat.means.nested import mean_weights
from muhat.means.targets import gaussian_kind, gaussian_target, given_target, sampled_target
from muhat.oas_gaussian import FittedGaussian, normal_points, oas_amount

DATA = data_sets()
SAMPLED = {
    **{name: KERNELS[name] for name in ("laplace", "matern_half", "matern", "matern_smooth")},
    "sum": mh.Gaussian(0.8) + 2.0 * mh.Laplace(1.5),
    "product": mh.Gaussian(2.0) * mh.Matern(1.5, 1.3),
}
every_sampled_kernel = pytest.mark.parametrize("kernel", SAMPLED.values(), ids=SAMPLED)
every_data_set = pytest.mark.parametrize("data", DATA)


def covariance_of(X):
    return OAS().fit(X).covariance_ if len(X) > 1 else np.zeros((X.shape[1],) * 2)


def slow_sample(X, base):
    return oracles.normal_sample(X.mean(axis=0), covariance_of(X), base)


def slow_sample_without(X, kept, base):
    """By Cholesky's root in the basis of the eigenvectors for all rows, those of the largest eigenvalues first."""
    basis = np.linalg.svd(X - X.mean(axis=0))[2]
    covariance = basis @ covariance_of(X[kept]) @ basis.T
    root = np.linalg.cholesky(covariance) if covariance.any() else covariance
    return X[kept].mean(axis=0) + base @ basis.T @ root.T @ basis


# ---------------------------------------------------------------- brute force


@every_data_set
def test_the_sample_is_that_of_the_symmetric_root(data):
    X = DATA[data]
    base = normal_points(X.shape[1], gaussian.SAMPLE_POINTS)
    expected = slow_sample(X, base)
    assert_allclose(
        FittedGaussian.of(X).at(base), expected, rtol=1e-10, atol=1e-7 * np.ptp(X)
    )  # roots lose half the digits


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
    assert_array_equal(np.sort(found.parts), np.arange(n))
    for i, part in enumerate(found.parts):
        atoms = slow_target(kernel, X, np.arange(n) != i)
        assert_allclose(found.values[part], atoms(X), rtol=1e-6)  # a distance of 0 is found to half the digits
        assert_allclose(found.squared_norms[part], atoms.norm() ** 2, rtol=1e-6)
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
    whole = sampled_target(kernel, X[:20]), gaussian_target(kernel, X[:20])
    assert np.mean((whole[0].values[whole[0].parts] - whole[1].values) ** 2) < by_chance / 2


def test_folds_leave_whole_parts_out():
    X, kernel = sample(43, 2, seed=42), mh.Laplace(1.0)
    left_out = sampled_target(kernel, X)
    assert left_out.values.shape == (targets.PARTS_LEFT_OUT, 43)
    atoms = slow_target(kernel, X, left_out.parts != 7)
    assert_allclose(left_out.values[7], atoms(X), rtol=1e-10)
    assert_allclose(left_out.own, left_out.values[left_out.parts, np.arange(43)], rtol=1e-12)


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


NOT_SAMPLED = {
    "a polynomial": mh.Polynomial(4),
    "a part that is linear": mh.Laplace(1.0) + mh.Linear(),
    "a factor that is linear": mh.Laplace(1.0) * mh.Linear(),
    "a foreign kernel": mh.as_kernel(RationalQuadratic()),
}


@pytest.mark.parametrize("kernel", NOT_SAMPLED.values(), ids=NOT_SAMPLED)
def test_other_kernels_are_not_sampled(kernel):
    assert AdaptiveKernelMean(kernel).fit(sample(9, 3, seed=44)).target_kind_ == "none: no closed form"


def test_more_columns_than_the_sequence_has(monkeypatch):
    assert targets._MAX_COLUMNS_OF_SOBOL == qmc.Sobol.MAXDIM
    monkeypatch.setattr(targets, "_MAX_COLUMNS_OF_SOBOL", 2)
    assert gaussian_kind(mh.Laplace(1.0), sample(9, 2, seed=44)).value == "gaussian sample"
    assert gaussian_kind(mh.Laplace(1.0), sample(9, 3, seed=44)).value == "none: no closed form"


def test_hosts_that_need_weights_alone_do_not_sample():
    X, kernel = sample(13, 2, seed=45), mh.Laplace(1.1)
    by_gram = AdaptiveKernelMean("precomputed").fit(kernel(X))
    assert by_gram.target_kind_ == "none: Gram matrix"
    assert_allclose(mean_weights(AdaptiveKernelMean(), kernel(X)), by_gram.weights_, rtol=1e-12)


# ---------------------------------------------------------------- awkward rows


AWKWARD = awkward_rows()


@pytest.mark.parametrize("kernel", [mh.Laplace(), mh.Matern(0.5), mh.Matern(2.5, 2.0)], ids=repr)
@pytest.mark.parametrize("data", AWKWARD)
def test_awkward_rows(kernel, data):
    X = AWKWARD[data]
    if "equal" in data or data == "zeros":
        kernel = kernel.with_params(bandwidth=1.0)  # the median is refused there, or warned of
    fitted = AdaptiveKernelMean(kernel).fit(X)
    assert np.isfinite(fitted.loo_score_)
    assert np.isfinite(fitted.mean_(X)).all()
    assert np.isfinite(fitted.mean_.norm())
    assert 0 <= min(fitted.shares_) <= max(fitted.shares_) <= 1
    beyond = data.startswith("too") and kernel.bandwidth != "median"  # squares are taken in units of the bandwidth
    assert fitted.target_kind_ == ("none: scale" if beyond else "gaussian sample")


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
    for name in ("at_rows", "squared_norm", "own", "values", "squared_norms"):
        assert_allclose(getattr(found[0], name), getattr(found[1], name), rtol=1e-12)
        assert_allclose(getattr(found[0], name), getattr(found[2], name), rtol=1e-12)
    whole = targets.sampled_element(kernel, X)
    assert_allclose(found[0].at_rows, whole.values(X), rtol=1e-12)
    assert_allclose(found[0].squared_norm, whole.norm() ** 2, rtol=1e-12)


@pytest.mark.parametrize("kernel", [mh.Matern(bandwidth=2.0), mh.Laplace(2.0)], ids=repr)
def test_rows_are_taken_a_part_at_a_time(kernel, monkeypatch):
    X = sample(50, 3, seed=5)
    at_once = sampled_target(kernel, X)
    monkeypatch.setattr(gaussian, "_ROWS_AT_ONCE", 7)
    by_parts = sampled_target(kernel, X)
    for name in ("at_rows", "own", "values"):
        assert_allclose(getattr(by_parts, name), getattr(at_once, name), rtol=1e-12)


def test_fewer_points_stand_for_the_target_of_many_columns(monkeypatch):
    X = sample(12, 500, seed=1) * np.linspace(0.2, 3.0, 500)
    kernel = mh.Laplace().resolve(X)
    every = sampled_target(kernel, X)
    monkeypatch.setattr(gaussian, "MAX_SAMPLED_NUMBERS", 0)
    few = sampled_target(kernel, X)
    assert len(few.sample.inside) == gaussian.FEWEST_POINTS
    for name in ("at_rows", "squared_norm", "own"):
        assert_allclose(getattr(few, name), getattr(every, name), rtol=0.1)
        assert_allclose(np.mean(getattr(few, name)), np.mean(getattr(every, name)), rtol=0.02)


def test_sums_of_distances_along_axes_are_not_rotated():
    assert not mh.kernels.is_isotropic(mh.Laplace())
    assert not mh.kernels.is_isotropic(mh.Laplace() + mh.Gaussian())


# ---------------------------------------------------------------- targets with a closed form, and given ones

EXACT = [mh.Gaussian(1.5), mh.Polynomial(2), mh.Polynomial(3, 0.5), mh.Gaussian(1.0) + mh.Polynomial(2)]


def fitted_gaussian(X):
    return FittedGaussian.of(X).measure()


@pytest.mark.parametrize("kernel", EXACT, ids=repr)
@pytest.mark.parametrize("shape", [(9, 1), (9, 3), (5, 8), (3, 2)])
def test_targets_without_each_row(kernel, shape):
    X = sample(*shape, seed=1)
    found, whole = gaussian_target(kernel, X), mh.Element(kernel, fitted_gaussian(X))
    assert_allclose(found.at_rows, whole(X), rtol=1e-9)
    assert_allclose(found.squared_norm, whole.norm() ** 2, rtol=1e-9)
    for i in range(len(X)):
        left_out = mh.Element(kernel, fitted_gaussian(np.delete(X, i, axis=0)))
        assert_allclose(found.own[i], left_out(X)[i], rtol=1e-9)
        assert_allclose(found.values[found.parts[i]], left_out(X), rtol=1e-9)
        assert_allclose(found.squared_norms[found.parts[i]], left_out.norm() ** 2, rtol=1e-9)


def test_a_given_target_is_the_same_without_any_row():
    X, kernel = sample(7, 2, seed=2), mh.Gaussian(1.0)
    target = mh.embed(kernel, sample(3, 2, seed=3))
    found = given_target(target, kernel, X)
    for values in (found.at_rows, found.own, found.values[found.parts[-1]]):
        assert_allclose(values, target(X), rtol=1e-12)


@pytest.mark.parametrize("n", [2, 5, 40])
@pytest.mark.parametrize("d", [1, 2, 7])
def test_the_amount_of_shrinkage_is_that_of_oas(n, d):
    """One column has nothing to be shrunk toward: its variance stays what it is."""
    X = sample(n, d, seed=n + d) * np.arange(1, d + 1)
    S = np.cov(X.T, bias=True).reshape(d, d)
    amount = float(oas_amount(n, d, np.asarray(np.trace(S)), np.asarray((S**2).sum())))
    if d == 1:
        assert amount == 0.0
        assert_allclose(fitted_gaussian(X).covariances[0], [[X.var()]], rtol=1e-12)
    else:
        assert_allclose(amount, OAS().fit(X).shrinkage_, rtol=1e-9)
        assert_allclose(oas_amount(n, d, *np.zeros((2, 1))), 1.0)
