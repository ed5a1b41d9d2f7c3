"""Properties of the mean estimators over the whole table: units, order, ties, scale, limits, weights."""

import signal
from contextlib import contextmanager

import numpy as np
import oracles
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from tables import ESTIMATORS, FILTERS, KERNELS, data_sets, sample

import muhat as mh

few = settings(max_examples=5, deadline=None, derandomize=True, phases=[Phase.generate])
seeds = st.integers(0, 10**6)
every_estimator = pytest.mark.parametrize("name", ESTIMATORS)
LINEAR, GAUSSIAN = mh.Linear(), mh.Gaussian(1.5)


def made(name, **params):
    return clone(ESTIMATORS[name]).set_params(**params)


def draw(seed, n=7, d=3):
    return np.random.default_rng(seed).normal(size=(n, d)) + 0.5


def with_unit(name, kernel, factor, unit=None):
    """The same estimator of factor * kernel: a fixed lam is in Gram units."""
    lam = ESTIMATORS[name].get_params().get("lam")
    fixed = {"lam": lam * (factor if unit is None else unit)} if isinstance(lam, float) else {}
    return made(name, kernel=factor * kernel, **fixed)


@contextmanager
def at_most(seconds):
    def stop(*_):
        raise TimeoutError(f"not finished after {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


# ---------------------------------------------------------------- units and order


@every_estimator
def test_mean_is_made_of_kernel_and_weights(name):
    X = draw(1)
    fitted = made(name).fit(X)
    assert fitted.kernel_ == mh.Gaussian().resolve(X)
    assert fitted.weights_.shape == (len(X),)
    rebuilt = mh.embed(fitted.kernel_, X, weights=fitted.weights_)
    assert fitted.mean_.distance(rebuilt) <= 1e-10


@every_estimator
@few
@given(seed=seeds, exponent=st.integers(-300, 300))
def test_powers_of_two_in_the_kernel_change_nothing(name, seed, exponent):
    X, factor = draw(seed), 2.0**exponent
    one, other = made(name, kernel=GAUSSIAN).fit(X), with_unit(name, GAUSSIAN, factor).fit(X)
    assert_array_equal(other.weights_, one.weights_)
    assert other.loo_score_ == factor * one.loo_score_


@every_estimator
@few
@given(seed=seeds, factor=st.sampled_from([1e-12, 0.3, 7.0, 1e9]))
def test_the_unit_of_the_kernel_changes_nothing(name, seed, factor):
    X = draw(seed)
    one, other = made(name, kernel=GAUSSIAN).fit(X), with_unit(name, GAUSSIAN, factor).fit(X)
    assert_allclose(other.weights_, one.weights_, rtol=0, atol=1e-9)
    assert_allclose(other.loo_score_, factor * one.loo_score_, rtol=1e-9)


@every_estimator
@few
@given(seed=seeds)
def test_row_order_changes_nothing(name, seed):
    X = draw(seed)
    order = np.random.default_rng(seed).permutation(len(X))
    one, other = made(name).fit(X), made(name).fit(X[order])
    assert_allclose(other.weights_, one.weights_[order], rtol=0, atol=1e-9)
    assert_allclose(other.loo_score_, one.loo_score_, rtol=1e-9)


# ---------------------------------------------------------------- awkward data


def assert_finite(fitted):
    for value in (
        fitted.weights_,
        fitted.loo_score_,
        fitted.mean_.norm(),
        fitted.mean_(fitted.mean_.measures[0].points),
    ):
        assert np.isfinite(value).all()


@pytest.mark.parametrize("data", data_sets())
@every_estimator
def test_awkward_data(name, data):
    X = data_sets()[data]
    for kernel in ("linear", "polynomial3", "gaussian", "laplace"):
        # A ridge of the size of the spectrum: one far below it asks an iterative filter for too many steps.
        unit = np.trace(KERNELS[kernel](X)) / 8
        with at_most(3):
            assert_finite(with_unit(name, KERNELS[kernel], 1.0, unit).fit(X))
            assert_finite(with_unit(name, KERNELS[kernel], 1.0, unit).fit(X.astype(np.float32)))


@every_estimator
@pytest.mark.parametrize("shape", [(2, 1), (9, 1), (5, 500), (40, 2)])
def test_shapes(name, shape):
    assert_finite(made(name).fit(sample(*shape, seed=1)))


@pytest.mark.parametrize("exponent", [-150, -75, 75, 150])
@pytest.mark.parametrize(
    "kernel", [mh.Linear(), mh.Polynomial(2, 0.0), mh.Gaussian(), mh.Laplace(), mh.Matern()], ids=str
)
@every_estimator
def test_any_scale_is_finite_or_a_clear_error(name, kernel, exponent):
    estimator, refusal = made(name, kernel=kernel), None
    with at_most(3):
        try:
            estimator.fit(10.0**exponent * draw(1))
        except ValueError as error:
            refusal = str(error)
        if refusal is None:
            assert_finite(estimator)
            assert np.isfinite(estimator.score(10.0**exponent * draw(2)))
        else:
            steps = name.startswith(("spectral_landweber", "spectral_nu")) and "max_iter" in refusal
            assert steps or "overflows" in refusal
            assert exponent > 0


@pytest.mark.parametrize("filter", FILTERS.values(), ids=FILTERS)
@pytest.mark.parametrize("lam", [1e-300, 1e-30, 1e-12])
def test_a_ridge_far_below_the_spectrum_is_the_plain_mean(filter, lam):
    """In norm; or, where a filter would need too many steps, an error that names lam as it was given."""
    X, estimator = draw(3), mh.SpectralKernelMean(GAUSSIAN, filter=filter, lam=lam)
    with at_most(3):
        if hasattr(filter, "max_iter"):
            with pytest.raises(ValueError, match=rf"lam={lam:g} .*max_iter={filter.max_iter}"):
                estimator.fit(X)
        else:
            assert estimator.fit(X).mean_.distance(mh.embed(GAUSSIAN, X)) <= 1e-7


@pytest.mark.parametrize("filter", FILTERS.values(), ids=FILTERS)
@pytest.mark.parametrize("lam", [1e10, 1e300])
def test_a_ridge_far_above_the_spectrum_is_zero(filter, lam):
    for X in (draw(3), 1e-150 * draw(3)):
        fitted = mh.SpectralKernelMean(LINEAR, filter=filter, lam=lam).fit(X)
        # What is left is the largest eigenvalue, about 10, times the number of iterations over lam.
        assert fitted.mean_.norm() <= 1e-7 * mh.embed(LINEAR, X).norm()
        assert_finite(fitted)
        assert_allclose(fitted.loo_score_, np.trace(LINEAR(X)) / len(X), rtol=1e-7)


@every_estimator
def test_a_zero_gram_matrix_gives_the_plain_average(name):
    fitted = made(name, kernel=LINEAR).fit(np.zeros((4, 2)))
    assert fitted.mean_.norm() == 0
    assert fitted.loo_score_ == 0
    if name in ("kernel_mean", "shrunk", "spectral", "spectral_theorem4"):
        assert_allclose(fitted.weights_, np.full(4, 0.25), rtol=0, atol=0)


def test_nothing_in_common_gives_zero():
    """Where the rows point in opposite directions, m <= 0: S shrinks to zero."""
    X = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    for data in (X, X[:2], np.eye(3)):
        fitted = mh.ShrunkKernelMean(LINEAR).fit(data)
        assert fitted.shrinkage_ == 1.0
        assert_array_equal(fitted.weights_, 0.0)
        assert fitted.mean_.norm() == 0.0


# ---------------------------------------------------------------- limits


@pytest.mark.parametrize("data", data_sets())
@pytest.mark.parametrize("filter", FILTERS.values(), ids=FILTERS)
def test_limits_of_the_ridge(filter, data):
    X = data_sets()[data]
    n = len(X)
    zero = mh.SpectralKernelMean(LINEAR, filter=filter, lam=0).fit(X)
    assert_array_equal(zero.weights_, np.full(n, 1 / n))
    assert_array_equal(mh.SpectralKernelMean(LINEAR, filter=filter, lam=np.inf).fit(X).weights_, 0.0)
    small = mh.SpectralKernelMean(LINEAR, lam=1e-13).fit(X)
    # The root of a squared distance known to 1e-16 of the squared norm.
    assert small.mean_.distance(zero.mean_) <= 1e-7 * max(zero.mean_.norm(), 1.0)


def test_small_lam_gives_the_plain_mean_in_norm():
    """Where K is singular the weights tend elsewhere; the element does not."""
    for data in (sample(12, 2, seed=5), np.repeat(sample(4, 3, seed=6), 2, axis=0)):
        K = LINEAR(data)
        fitted = mh.SpectralKernelMean(LINEAR, lam=1e-12 * np.linalg.eigvalsh(K)[-1]).fit(data)
        assert fitted.mean_.distance(mh.embed(LINEAR, data)) <= 1e-10 * np.sqrt(np.trace(K))


TARGETS = [np.array([[0.3, 0.1, -0.2]]), np.array([[2.0, 2.0, 2.0], [0.0, 1.0, 0.0]])]


@pytest.mark.parametrize("points", TARGETS)
@pytest.mark.parametrize("kernel", ["linear", "gaussian", "polynomial2"])
@few
@given(seed=seeds)
def test_shrinkage_toward_a_target(kernel, points, seed):
    X, k = draw(seed), KERNELS[kernel]
    n, target = len(X), mh.embed(k, points)
    plain = mh.embed(k, X)
    for alpha, limit in [(0.0, plain), (1.0, target), (0.4, 0.4 * target + 0.6 * plain)]:
        fitted = mh.ShrunkKernelMean(k, shrinkage=alpha, target=target).fit(X)
        assert_allclose(fitted.mean_(X), limit(X), rtol=1e-10, atol=1e-10)
    residual = k(X) - target(X)[:, None] - target(X)[None, :] + target.norm() ** 2
    best = mh.ShrunkKernelMean(k, target=target).fit(X)
    expected = np.clip(oracles.simple_shrinkage(residual), 0, 1)
    assert_allclose(best.shrinkage_, expected, rtol=0, atol=1e-9)
    assert_allclose(best.loo_score_, oracles.simple_score(residual, expected), rtol=1e-9)
    grid = [oracles.simple_score(residual, alpha) for alpha in np.linspace(0, 1, 101)]
    assert best.loo_score_ <= min(grid) + 1e-10 * abs(min(grid))
    assert_allclose(best.weights_, np.full(n, (1 - best.shrinkage_) / n), rtol=1e-12)


@pytest.mark.parametrize("kernel", ["linear", "gaussian", "polynomial2"])
def test_the_plain_mean_as_its_own_target(kernel):
    X, k = draw(1), KERNELS[kernel]
    target = mh.embed(k, X)
    fitted = mh.ShrunkKernelMean(k, target=target).fit(X)
    assert 0 <= fitted.shrinkage_ <= 1
    assert fitted.mean_.distance(target) <= 1e-7
    assert np.isfinite(fitted.loo_score_)


# ---------------------------------------------------------------- weights are repetitions

WEIGHTED = {
    "plain": mh.KernelMean(),
    "shrunk": mh.ShrunkKernelMean(),
    "shrunk_fixed": mh.ShrunkKernelMean(shrinkage=0.3),
    "shrunk_target": mh.ShrunkKernelMean(GAUSSIAN, target=mh.embed(GAUSSIAN, TARGETS[0])),
    "spectral": mh.SpectralKernelMean(),
    "spectral_fixed": mh.SpectralKernelMean(lam=0.7),
    "theorem4": mh.SpectralKernelMean(lam="theorem4"),
    "nested": mh.SpectralKernelMean(scale="loo"),
    "nested_fixed": mh.SpectralKernelMean(lam=0.7, scale="loo"),
    "iterated": mh.SpectralKernelMean(filter=mh.IteratedTikhonov()),
    "truncated": mh.SpectralKernelMean(filter=mh.TruncatedSVD(), lam=0.7),
    "landweber": mh.SpectralKernelMean(filter=mh.Landweber(max_iter=20)),
}


@pytest.mark.parametrize("estimator", WEIGHTED.values(), ids=WEIGHTED)
@few
@given(seed=seeds, counts=st.lists(st.integers(0, 3), min_size=5, max_size=5))
def test_weights_are_repetitions(estimator, seed, counts):
    counts = np.array([2, 1, *counts])
    X = draw(seed)
    weighted = clone(estimator).fit(X, sample_weight=counts)
    repeated = clone(estimator).fit(np.repeat(X, counts, axis=0))
    assert weighted.kernel_ == repeated.kernel_
    summed = np.bincount(np.repeat(np.arange(7), counts), weights=repeated.weights_, minlength=7)
    assert_allclose(weighted.weights_, summed, rtol=0, atol=1e-9)
    assert_array_equal(weighted.weights_[counts == 0], 0.0)
    assert_allclose(weighted.loo_score_, repeated.loo_score_, rtol=1e-9)
    absent = clone(estimator).fit(X[counts > 0], sample_weight=counts[counts > 0])
    assert_allclose(weighted.weights_[counts > 0], absent.weights_, rtol=0, atol=1e-9)
    ones = clone(estimator).fit(X, sample_weight=np.ones(7))
    assert_allclose(ones.weights_, clone(estimator).fit(X).weights_, rtol=0, atol=1e-9)


@pytest.mark.parametrize("filter", FILTERS.values(), ids=FILTERS)
def test_weights_that_cannot_be_used_are_refused(filter):
    X, weights = draw(1), np.array([2.0, 1, 1, 1, 1, 1, 0.5])
    estimator = mh.SpectralKernelMean(GAUSSIAN, filter=filter, lam=0.5)
    message = "sample_weight=0.5 is too small" if filter == mh.Tikhonov() else "sample_weight must be whole numbers"
    with pytest.raises(ValueError, match=message):
        estimator.fit(X, sample_weight=weights)


# ---------------------------------------------------------------- scores, and a Gram matrix for the data


@pytest.mark.parametrize("kernel", ["linear", "polynomial2", "gaussian", "laplace"])
@every_estimator
def test_score_by_hand(name, kernel):
    X, Z, k = draw(1), draw(2, n=4), KERNELS[kernel]
    fitted = made(name, kernel=k).fit(X)
    beta = fitted.weights_
    losses = np.diag(k(Z)) - 2 * k(Z, X) @ beta + beta @ k(X) @ beta
    assert_allclose(fitted.score(Z), -losses.mean(), rtol=1e-10)
    gram = made(name, kernel="precomputed").fit(k(X))
    assert_allclose(gram.weights_, beta, rtol=0, atol=1e-9)
    assert_allclose(gram.loo_score_, fitted.loo_score_, rtol=1e-9)
    assert_allclose(gram.mean_(k(Z, X)), fitted.mean_(Z), rtol=0, atol=1e-9)
    assert_allclose(gram.score(k(Z, X)), fitted.score(Z) + np.diag(k(Z)).mean(), rtol=1e-9, atol=1e-9)
