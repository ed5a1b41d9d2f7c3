"""The adaptive mean against brute force: delete a row, refit the base and the Gaussian, and average."""

import pickle
import tracemalloc

import numpy as np
import oracles
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from tables import CLOSED_FORM, KERNELS, awkward_rows, data_sets, sample

import muhat as mh
from muhat.kernels.foreign import Precomputed
from muhat.linalg.resources import one_blas_thread
from muhat.linalg.spectrum import low_rank_spectrum, whole_spectrum
from muhat.means import targets
from muhat.means.adaptive import AdaptiveKernelMean, AdaptiveScore, LooQuadratic, deletion_quadratic
from muhat.means.targets import TargetKind, gaussian_kind, gaussian_target
from muhat.shrinkage.leave_one_out import LooMoments

DATA, AWKWARD = data_sets(), awkward_rows()
CURVED = [name for name in CLOSED_FORM if gaussian_kind(KERNELS[name], np.eye(2)) is TargetKind.GAUSSIAN]
every_curved_kernel = pytest.mark.parametrize("name", CURVED)
every_data_set = pytest.mark.parametrize("data", DATA)
LAMS = np.array([1e-3, 0.3, 20.0])


# ---------------------------------------------------------------- brute force


def oas_gaussian(X):
    return mh.GaussianMixture([1.0], X.mean(axis=0)[None], oracles.oas_covariance(X)[None])


def by_deletion(kernel, X, lam):
    """p, Q, X, t, T by deletion of each row."""
    n = len(X)
    K = kernel(X)
    B = oracles.refits(K, lambda part: oracles.tikhonov_weights(part, lam))
    p, Q = oracles.pieces(K, B)
    mixed, t, T = [], [], []
    for i in range(n):
        target = mh.embed(kernel, oas_gaussian(np.delete(X, i, axis=0)))
        values = target(X)
        mixed.append(B[:, i] @ values)
        t.append(values[i])
        T.append(target.norm() ** 2)
    return p, Q, np.mean(mixed), np.mean(t), np.mean(T)


def by_known_norms(kernel, X, lam):
    """The same with the squares and the product of the base and the target of all rows."""
    n = len(X)
    K, target = kernel(X), mh.embed(kernel, oas_gaussian(X))
    weights = oracles.tikhonov_weights(K, lam)
    p, _, _, t, _ = by_deletion(kernel, X, lam * np.sqrt((n - 1) / n))
    return p, weights @ K @ weights, weights @ target(X), t, target.norm() ** 2


def quadratic(pieces, a, b):
    p, Q, mixed, t, T = pieces
    return a * a * Q + 2 * a * b * mixed + b * b * T - 2 * (a * p + b * t)


@pytest.mark.parametrize("name", ["gaussian", "gaussian_narrow", "polynomial3", "sum"])
@every_data_set
def test_the_quadratics_are_those_of_brute_force(name, data):
    kernel, X = KERNELS[name], DATA[data]
    spectrum = whole_spectrum(kernel(X))
    score = AdaptiveScore(spectrum, gaussian_target(kernel, X))
    for lam in [0.0, *LAMS]:
        for pieces, brute_force in ((score.risk(lam), by_known_norms), (deletion_quadratic(score, lam), by_deletion)):
            (p, Q), mixed, t, T = pieces
            values = np.ravel([np.squeeze(part) for part in (p, Q, mixed, t, T)]) * spectrum.unit
            assert_allclose(values, brute_force(kernel, X, lam), rtol=1e-9, atol=1e-9 * kernel(X).diagonal().max())


def test_the_square_is_searched_exactly():
    rng = np.random.default_rng(0)
    grid = np.linspace(0, 1, 101)
    a_grid, b_grid = np.meshgrid(grid, grid)
    for _ in range(300):
        root = rng.normal(size=(2, 2))
        (Q, X), (_, T) = root @ root.T
        p, t = rng.normal(size=2)
        found = LooQuadratic(LooMoments(np.array([p]), np.array([Q])), np.array([X]), t, T)
        a, b = found.lowest(0.0)
        assert 0 <= a <= 1
        assert 0 <= b <= 1
        assert found.values(a, b) <= found.values(a_grid, b_grid).min() + 1e-12


@every_curved_kernel
def test_the_search_finds_the_lowest_risk(name):
    kernel, X = KERNELS[name], sample(11, 2, seed=9)
    fitted = AdaptiveKernelMean(kernel).fit(X)
    diagonal = kernel(X).diagonal().mean()
    risk = diagonal + quadratic(by_known_norms(kernel, X, fitted.lam_), *fitted.shares_)
    score = AdaptiveScore(whole_spectrum(kernel(X)), gaussian_target(kernel, X))
    curve = score.at(np.append([0, np.inf], np.logspace(-6, 6, 400)))
    assert risk <= curve.min() + 1e-12 * diagonal
    assert_allclose(score.at([fitted.lam_]), risk, rtol=1e-9)


@every_curved_kernel
def test_the_score_is_that_of_brute_force(name):
    kernel, X = KERNELS[name], sample(11, 2, seed=9)
    fitted = AdaptiveKernelMean(kernel).fit(X)
    score = kernel(X).diagonal().mean() + quadratic(by_deletion(kernel, X, fitted.lam_), *fitted.shares_)
    assert_allclose(fitted.loo_score_, score, rtol=1e-9)


# ---------------------------------------------------------------- what it contains


RIVALS = [
    mh.KernelMean(),
    mh.ShrunkKernelMean(),
    mh.SpectralKernelMean(),
    mh.SpectralKernelMean(scale="loo"),
]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gaussian", "polynomial2", "polynomial3", "scaled_sum"])
@every_data_set
def test_the_risk_is_never_above_those_of_special_cases(name, data):
    X, kernel = DATA[data], KERNELS[name]
    fitted = AdaptiveKernelMean(kernel).fit(X)
    risk = quadratic(by_known_norms(kernel, X, fitted.lam_), *fitted.shares_)
    for rival in RIVALS:
        other = clone(rival).set_params(kernel=kernel).fit(X)
        scale = 1 - getattr(other, "shrinkage_", 0.0) if not hasattr(other, "scale_") else other.scale_
        others = quadratic(by_known_norms(kernel, X, getattr(other, "lam_", 0.0)), scale, 0.0)
        assert risk <= others + 1e-9 * kernel(X).diagonal().max()


@pytest.mark.parametrize("name", KERNELS)
def test_without_a_target_it_is_the_nested_estimator(name):
    X, kernel = sample(14, 3, seed=10), KERNELS[name]
    fitted = AdaptiveKernelMean(kernel, target=None).fit(X)
    nested = mh.SpectralKernelMean(kernel, scale="loo").fit(X)
    assert fitted.target_ is None
    assert fitted.shares_[1] == 0
    assert_allclose(fitted.weights_, nested.weights_, rtol=1e-9)
    assert_allclose(fitted.loo_score_, nested.loo_score_, rtol=1e-12)


@every_curved_kernel
def test_the_mean_is_atoms_plus_a_gaussian(name):
    X = sample(15, 3, seed=11)
    fitted = AdaptiveKernelMean(KERNELS[name]).fit(X)
    a, b = fitted.shares_
    base = mh.SpectralKernelMean(KERNELS[name], lam=fitted.lam_).fit(X)
    expected = a * base.mean_ + b * mh.embed(KERNELS[name], oas_gaussian(X))
    assert fitted.target_kind_ == "gaussian"
    assert_allclose(fitted.mean_(X), expected(X), rtol=1e-10)
    assert_allclose(fitted.weights_, a * base.weights_, rtol=1e-10)
    assert fitted.mean_.norm() > 0
    assert np.isfinite(fitted.score(X))


def test_a_given_target_is_not_refitted():
    X, kernel = sample(12, 2, seed=12, shift=0.0), mh.Gaussian(1.0)
    truth = mh.embed(kernel, mh.GaussianMixture([1.0], [[0.0, 0.0]], [1.0]))
    fitted = AdaptiveKernelMean(kernel, target=truth).fit(X)
    K, a, b = kernel(X), *fitted.shares_
    B = oracles.refits(K, lambda part: oracles.tikhonov_weights(part, fitted.lam_))
    p, Q = oracles.pieces(K, B)
    mixed, t, T = np.mean(truth(X) @ B), truth(X).mean(), truth.norm() ** 2
    assert fitted.target_kind_ == "given"
    assert_allclose(fitted.loo_score_, 1 + quadratic((p, Q, mixed, t, T), a, b), rtol=1e-9)
    assert b > 0.5
    assert fitted.mean_.distance(truth) < mh.KernelMean(kernel).fit(X).mean_.distance(truth) / 3


def test_a_gram_matrix_has_no_target():
    X, kernel = sample(13, 2, seed=14), mh.Gaussian(1.1)
    by_gram = AdaptiveKernelMean("precomputed").fit(kernel(X))
    assert by_gram.target_kind_ == "none: Gram matrix"
    assert isinstance(by_gram.kernel_, Precomputed)
    assert_allclose(by_gram.weights_, mh.SpectralKernelMean(kernel, scale="loo").fit(X).weights_, rtol=1e-9)


# ---------------------------------------------------------------- awkward rows


AWKWARD_KERNELS = [
    *(mh.Gaussian(), mh.Gaussian(0.5), 2.0 * mh.Gaussian(2.0), mh.Polynomial(3)),
    *(mh.Laplace(), mh.Matern(0.5), mh.Matern(2.5, 2.0)),
]


@pytest.mark.parametrize("kernel", AWKWARD_KERNELS, ids=repr)
@pytest.mark.parametrize("data", AWKWARD)
def test_awkward_rows(kernel, data):
    X = AWKWARD[data]
    if getattr(kernel, "bandwidth", None) == "median" and ("equal" in data or data == "zeros"):
        kernel = kernel.with_params(bandwidth=1.0)  # the median is refused there, or warned of
    if isinstance(kernel, mh.Polynomial) and float(np.abs(X).max()) > 1e50:
        with pytest.raises(ValueError, match="overflows"):
            AdaptiveKernelMean(kernel).fit(X)
        return
    fitted = AdaptiveKernelMean(kernel).fit(X)
    for found in (fitted.weights_, fitted.loo_score_, fitted.mean_(X), fitted.mean_.norm()):
        assert np.isfinite(found).all()
    assert 0 <= min(fitted.shares_) <= max(fitted.shares_) <= 1
    if isinstance(kernel, mh.Laplace | mh.Matern):
        beyond = data.startswith("too") and kernel.bandwidth != "median"  # squares are taken in units of the bandwidth
        assert fitted.target_kind_ == ("none: scale" if beyond else "gaussian sample")


@pytest.mark.parametrize("factor", [1e-200, 1e-100, 1e-3, 1e100, 1e200])
def test_the_scale_of_the_data_does_not_matter(factor):
    X = sample(10, 3, seed=23)
    one, other = AdaptiveKernelMean().fit(X), AdaptiveKernelMean().fit(factor * X)
    assert other.target_kind_ == "gaussian"
    assert_allclose(other.weights_, one.weights_, rtol=1e-7)
    assert_allclose(other.shares_, one.shares_, rtol=1e-7)
    assert_allclose(other.mean_(factor * X[:4] + factor), one.mean_(X[:4] + 1.0), rtol=1e-7)
    assert_allclose(other.mean_.norm(), one.mean_.norm(), rtol=1e-7)


@pytest.mark.parametrize("kernel", [mh.Gaussian(1.0), mh.Polynomial(3)], ids=repr)
@pytest.mark.parametrize("X", [np.full((5, 2), 3.0), 1e-100 * sample(5, 2, seed=31)], ids=["equal", "nearly equal"])
def test_equal_rows_are_their_own_mean(kernel, X):
    fitted = AdaptiveKernelMean(kernel).fit(X)
    assert fitted.lam_ == 0
    assert fitted.shares_ == (1.0, 0.0)
    assert_allclose(fitted.weights_, 0.2)


# ---------------------------------------------------------------- more columns than rows


def test_a_wide_mean_is_that_of_the_matrix():
    X = sample(6, 40, seed=36)
    fitted = AdaptiveKernelMean(mh.Gaussian(6.0)).fit(X)
    a, b = fitted.shares_
    base = mh.SpectralKernelMean(mh.Gaussian(6.0), lam=fitted.lam_).fit(X)
    expected = a * base.mean_ + b * mh.embed(mh.Gaussian(6.0), oas_gaussian(X))
    assert b > 0
    assert_allclose(fitted.mean_(X), expected(X), rtol=1e-10)
    assert_allclose(fitted.mean_.norm(), expected.norm(), rtol=1e-10)
    again = pickle.loads(pickle.dumps(fitted))
    assert_array_equal(again.mean_(X), fitted.mean_(X))


def test_many_columns_take_little_memory():
    X = sample(20, 20_000, seed=37)
    tracemalloc.start()
    fitted = AdaptiveKernelMean().fit(X)
    assert fitted.mean_.norm() > 0
    assert np.isfinite(fitted.mean_(X)).all()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 15 * X.nbytes  # a matrix of the columns has 1000


# ---------------------------------------------------------------- more rows than are refitted one by one


@pytest.mark.parametrize("kernel", [mh.Gaussian(), mh.Polynomial(2), mh.Laplace()], ids=repr)
@pytest.mark.parametrize("limit", [5, 100])
def test_the_order_of_rows_does_not_matter(kernel, limit, monkeypatch):
    monkeypatch.setattr(targets, "MAX_ROWS_LEFT_OUT_ONE_BY_ONE", limit)
    monkeypatch.setattr(targets, "PARTS_LEFT_OUT", 4)
    X = np.concatenate([sample(21, 3, seed=24), sample(21, 3, seed=24)[:4]])
    order = np.random.default_rng(0).permutation(len(X))
    one, other = AdaptiveKernelMean(kernel).fit(X), AdaptiveKernelMean(kernel).fit(X[order])
    assert_allclose(other.loo_score_, one.loo_score_, rtol=1e-10)
    assert_allclose(other.shares_, one.shares_, rtol=1e-6, atol=1e-9)
    assert_allclose(other.weights_, one.weights_[order], rtol=1e-6, atol=1e-9)


# ---------------------------------------------------------------- what it is for


@pytest.mark.slow
def test_it_beats_its_special_cases_on_the_papers_mixtures():
    with one_blas_thread():
        losses = [_losses(np.random.default_rng(seed)) for seed in np.random.SeedSequence(7).spawn(30)]
    plain, simple, flexible, adaptive = np.mean(losses, axis=0)
    assert adaptive < 0.95 * plain
    assert adaptive < min(simple, flexible)


def _losses(rng):
    P = mh.paper_mixture(10, random_state=rng)
    X = P.sample(20, random_state=rng)
    kernel = mh.Gaussian().resolve(X)
    truth = mh.embed(kernel, P)
    means = [clone(mean).set_params(kernel=kernel) for mean in (*RIVALS[:3], AdaptiveKernelMean())]
    return [mean.fit(X).mean_.distance(truth) ** 2 for mean in means]


@pytest.mark.parametrize("kernel", [mh.Polynomial(2), mh.Polynomial(3, constant=0.5)], ids=repr)
def test_the_score_of_few_features_is_that_of_the_whole_spectrum(kernel):
    """Eigenvectors with the eigenvalue 0 are left out there."""
    X = sample(25, 2, seed=3)
    left_out = gaussian_target(kernel, X)
    whole = AdaptiveScore(whole_spectrum(kernel(X)), left_out)
    few = AdaptiveScore(low_rank_spectrum(mh.kernels.exact_features(kernel, X)), left_out)
    assert not few.spectrum.complete
    lams = np.geomspace(1e-3, 1e2, 7)
    for lam in lams:
        found, expected = deletion_quadratic(few, lam), deletion_quadratic(whole, lam)
        assert_allclose(found.mixed, expected.mixed, rtol=1e-9)
        assert_allclose(found.base, expected.base, rtol=1e-9)


ROWS = sample(40, 2, seed=3)


def test_the_score_of_few_directions_is_that_of_all():
    """A wide kernel, whose Gram matrix a few directions hold."""
    dense, few = (mh.AdaptiveKernelMean(mh.Gaussian(9.0), solver=solver).fit(ROWS) for solver in ("dense", "low-rank"))
    assert few.loo_score_ == pytest.approx(dense.loo_score_, rel=1e-4)
