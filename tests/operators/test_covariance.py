"""Covariance operators in features of pairs: on all rows the exact ones, elsewhere within the error they report."""

from __future__ import annotations

import tracemalloc

import numpy as np
import oracles
import pytest
from numpy.testing import assert_allclose

import muhat as mh
from muhat.operators.covariance_operator import PairKernel

MEANS = {
    "plain": None,
    "simple": mh.ShrunkKernelMean(),
    "simple, given": mh.ShrunkKernelMean(shrinkage=0.4),
    "spectral, by deletion": mh.SpectralKernelMean(),
    "spectral, theorem 4": mh.SpectralKernelMean(lam="theorem4"),
    "spectral, given": mh.SpectralKernelMean(lam=0.3),
}
CENTRES = {"plain": None, "simple": mh.ShrunkKernelMean(), "spectral": mh.SpectralKernelMean(lam="theorem4")}
KERNELS = {
    "gaussian": (mh.Gaussian(1.5), mh.Gaussian(2.0)),
    "mixed": (mh.Laplace(2.0), mh.Polynomial(2)),
    "median": (mh.Gaussian(), None),
    "linear": (mh.Linear(), mh.Linear()),
}


def pairs(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.sin(X[:, :2]) + 0.3 * rng.normal(size=(n, 2))


def landmarks(count, how="uniform"):
    return mh.Nystroem(n_components=count, landmarks=how, random_state=0)


def assert_same_operator(found, expected):
    """Norms, actions and covariances: a distance, the root of a difference of squares, would only see 8 digits."""
    f, g = mh.embed(expected.kernel_x, pairs(7, seed=1)[0]), mh.embed(expected.kernel_y, expected.y[:6])
    scale = expected.norm()
    assert_allclose(found.norm(), scale, rtol=1e-8)
    assert_allclose(found.inner(expected), scale**2, rtol=1e-8)
    size = f.norm() * g.norm()
    assert_allclose(found.covariance(f, g), expected.covariance(f, g), rtol=0, atol=1e-8 * scale * size)
    assert_allclose(found(f)(expected.y), expected(f)(expected.y), rtol=0, atol=1e-8 * scale * size)


@pytest.mark.parametrize("centre", CENTRES)
@pytest.mark.parametrize("mean", MEANS)
def test_all_rows_as_landmarks_give_the_exact_operator(mean, centre):
    X, Y = pairs(60)
    settings = {"mean": MEANS[mean], "centering": CENTRES[centre]}
    for other in (Y, None):
        exact = mh.KernelCovariance(mh.Gaussian(1.5), mh.Gaussian(2.0), **settings).fit(X, other)
        quick = mh.KernelCovariance(mh.Gaussian(1.5), mh.Gaussian(2.0), **settings, features=landmarks(60))
        assert_same_operator(quick.fit(X, other).operator_, exact.operator_)
        assert 0 <= quick.approximation_error_ < 1e-12


@pytest.mark.parametrize("kernels", KERNELS)
def test_of_any_kernel(kernels):
    X, Y = pairs(50)
    exact = mh.KernelCovariance(*KERNELS[kernels], mean=mh.SpectralKernelMean()).fit(X, Y)
    quick = mh.KernelCovariance(*KERNELS[kernels], mean=mh.SpectralKernelMean(), features=landmarks(50)).fit(X, Y)
    assert (quick.kernel_x_, quick.kernel_y_) == (exact.kernel_x_, exact.kernel_y_)
    assert_same_operator(quick.operator_, exact.operator_)


def test_weights_are_the_projection_of_the_mean_on_the_landmarks():
    """By hand: K_mm a = K_mn β, with the product of centred Gram matrices and β from the projected one."""
    X, Y = pairs(40)
    quick = mh.KernelCovariance(mh.Gaussian(1.0), mh.Gaussian(1.0), features=landmarks(8)).fit(X, Y)
    operator = quick.operator_
    parts = []
    for rows, at, mean in ((X, operator.x, operator.mean_x), (Y, operator.y, operator.mean_y)):
        joined = np.vstack([rows, at, mean.measures[0].points])
        K = oracles.gram(lambda x, y: oracles.gaussian(x, y, 1.0), joined, joined)
        weights = np.concatenate([np.zeros(48), mean.measures[0].weights])
        C = np.eye(len(K)) - np.outer(np.ones(len(K)), weights)
        parts.append(C @ K @ C.T)
    K = parts[0] * parts[1]
    expected = np.linalg.lstsq(K[40:48, 40:48], K[40:48, :40].mean(axis=1), rcond=None)[0]
    assert_allclose(quick.weights_, expected, rtol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["uniform", "k-means++", "pivoted"])
@pytest.mark.parametrize("alone", [False, True])
def test_the_error_is_within_its_bound_and_falls(how, alone):
    X, Y = pairs(400)
    other = None if alone else Y
    exact, errors = mh.KernelCovariance().fit(X, other).operator_, []
    for count in (10, 40, 160):
        quick = mh.KernelCovariance(features=landmarks(count, how)).fit(X, other)
        errors.append(exact.distance(quick.operator_) ** 2)
        assert errors[-1] <= quick.approximation_error_ <= 4 * errors[-1]
    assert errors[2] < errors[1] < errors[0]


def test_systems_of_the_operator_in_features():
    X, Y = pairs(60)
    exact = mh.KernelCovariance(mh.Gaussian(1.5)).fit(X, Y).operator_
    quick = mh.KernelCovariance(mh.Gaussian(1.5), features=landmarks(60)).fit(X, Y).operator_
    assert_allclose(quick.singular_system(4).values, exact.singular_system(4).values, rtol=1e-8)
    alone = mh.KernelCovariance(mh.Gaussian(1.5), features=landmarks(60)).fit(X).operator_
    expected = mh.KernelCovariance(mh.Gaussian(1.5)).fit(X).operator_.eigen_system(4).values
    assert_allclose(alone.eigen_system(4).values, expected, rtol=1e-8)


@pytest.mark.slow
def test_no_array_of_rows_times_rows():
    X, Y = pairs(20_000)
    tracemalloc.start()
    try:
        mh.KernelCovariance(mean=mh.SpectralKernelMean(), features=landmarks(50)).fit(X, Y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * 20_000**2 / 50


@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize("rows", [np.ones((12, 2)), np.repeat(np.eye(2), 6, axis=0), 1e-140 * pairs(12)[0], np.eye(2)])
def test_degenerate_rows(rows, mean):
    for kernel in (mh.Gaussian(1.0), mh.Linear()):
        exact = mh.KernelCovariance(kernel, mean=MEANS[mean]).fit(rows).operator_
        quick = mh.KernelCovariance(kernel, mean=MEANS[mean], features=landmarks(len(rows))).fit(rows)
        assert np.isfinite(quick.weights_).all()
        assert_allclose(quick.operator_.norm(), exact.norm(), rtol=1e-8, atol=1e-15 * kernel.diag(rows).max() ** 2)


def test_the_same_seed_gives_the_same_numbers_and_float32_is_taken():
    X, Y = pairs(50)
    first, second = (mh.KernelCovariance(features=landmarks(10)).fit(X, Y).weights_ for _ in range(2))
    assert (first == second).all()
    rounded = X.astype(np.float32), Y.astype(np.float32)
    single = mh.KernelCovariance(features=landmarks(10)).fit(*rounded)
    double = mh.KernelCovariance(features=landmarks(10)).fit(*(part.astype(float) for part in rounded))
    assert (single.weights_ == double.weights_).all()


def test_a_kernel_of_pairs_is_the_product():
    X, Y = pairs(9)
    kernel, joined = PairKernel(mh.Gaussian(1.0), mh.Laplace(2.0), columns=3), np.hstack([X, Y])
    assert_allclose(kernel(joined), mh.Gaussian(1.0)(X) * mh.Laplace(2.0)(Y), rtol=1e-14)
    assert_allclose(kernel.diag(joined), np.diag(kernel(joined)), rtol=1e-14)


SMALL = pairs(20)
BAD = [
    ({"features": mh.Nystroem(n_components=21)}, r"n_components=21 must be at most .* n_samples=20"),
    ({"features": mh.Fourier()}, "must be Nystroem features"),
    ({"features": "nystroem"}, "features='nystroem' must be Nystroem"),
    ({"features": mh.Nystroem(n_components=5).fit(SMALL[0])}, "must be neither fitted"),
    ({"features": mh.Nystroem(landmarks=SMALL[0])}, "nor have landmarks of its own"),
    ({"features": landmarks(5), "mean": mh.RobustKernelMean()}, "mean=RobustKernelMean.* cannot be used with features"),
    ({"features": landmarks(5), "centering": mh.AdaptiveKernelMean()}, "centering=Adaptive.* cannot be used"),
    ({"features": landmarks(5), "mean": mh.SpectralKernelMean(filter=mh.TruncatedSVD())}, "filter=TruncatedSVD"),
    ({"features": landmarks(5), "kernel_y": "rbf"}, "kernel_y='rbf'"),
]


@pytest.mark.parametrize(("parameters", "message"), BAD, ids=[message for _, message in BAD])
def test_bad_input(parameters, message):
    with pytest.raises(ValueError, match=message):
        mh.KernelCovariance(**parameters).fit(*SMALL)


@pytest.mark.parametrize("features", [None, landmarks(5)], ids=["exact", "features"])
@pytest.mark.parametrize("scale", [1e140, 1e170])
def test_overflow_is_refused(features, scale):
    with pytest.raises(ValueError, match="overflows on X"):
        mh.KernelCovariance(mh.Linear(), features=features).fit(scale * SMALL[0], SMALL[1] * scale)
