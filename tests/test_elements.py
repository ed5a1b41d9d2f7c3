"""Elements of the space: the laws of their algebra; and the measures that they integrate."""

import numpy as np
import oracles
import pandas as pd
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_normal
from tables import CLOSED_FORM, FUNCTIONS, KERNELS, sample

import muhat as mh

few = settings(max_examples=6, deadline=None, derandomize=True, phases=[Phase.generate])
seeds = st.integers(0, 10**6)
numbers = st.integers(-24, 24).map(lambda i: i / 8)
every_kernel = pytest.mark.parametrize("name", KERNELS)
closed_form = pytest.mark.parametrize("name", CLOSED_FORM)
X = sample(6, 3, seed=1)


def mixture(rng, k=2, d=3):
    roots = rng.normal(size=(k, d, 2)) * 0.5
    return mh.GaussianMixture(rng.dirichlet(np.ones(k)), rng.normal(size=(k, d)), roots @ roots.transpose(0, 2, 1))


def three_elements(name, seed):
    """Atoms with signs; where the kernel has closed forms, Gaussians, and both in one element."""
    rng, kernel = np.random.default_rng(seed), KERNELS[name]
    f, g, h = (mh.embed(kernel, rng.normal(size=(n, 3)), weights=rng.normal(size=n)) for n in (4, 3, 5))
    if name in CLOSED_FORM:
        g, h = mh.embed(kernel, mixture(rng)), h - mh.embed(kernel, mixture(rng, k=1))
    return f, g, h


def size(*elements):
    """Rounding is relative to the sizes that enter, squared norms can cancel."""
    return max(1.0, *(f.norm() ** 2 for f in elements))


# ---------------------------------------------------------------- algebra


@every_kernel
@few
@given(seed=seeds, a=numbers, b=numbers)
def test_inner_product(name, seed, a, b):
    f, g, h = three_elements(name, seed)
    atol = 1e-10 * size(f, g, h)
    assert_allclose(f.inner(g), g.inner(f), rtol=0, atol=atol)
    assert_allclose((a * f + b * g).inner(h), a * f.inner(h) + b * g.inner(h), rtol=0, atol=10 * atol)
    assert_allclose(f.norm() ** 2, f.inner(f), rtol=0, atol=atol)
    assert_allclose((a * f).norm(), abs(a) * f.norm(), rtol=1e-10)
    assert abs(f.inner(g)) <= f.norm() * g.norm() + atol
    # A difference of squares of size s is known to 1e-16 s, so its root to 1e-8 of the root.
    assert f.distance(h) <= f.distance(g) + g.distance(h) + 1e-7 * np.sqrt(size(f, g, h))


@every_kernel
@few
@given(seed=seeds, a=numbers, b=numbers)
def test_evaluation_is_linear_and_reproduces(name, seed, a, b):
    f, g, h = three_elements(name, seed)
    points = np.random.default_rng(seed + 1).normal(size=(4, 3))
    for element in (f, g, h):
        reproduced = [element.inner(mh.embed(KERNELS[name], x[None])) for x in points]
        assert_allclose(element(points), reproduced, rtol=1e-10, atol=1e-10 * size(f, g, h))
    combined = (a * f - b * g + h / 2)(points)
    assert_allclose(combined, a * f(points) - b * g(points) + h(points) / 2, rtol=0, atol=1e-10 * size(f, g, h) * 10)


@every_kernel
@few
@given(seed=seeds)
def test_zero_and_sums(name, seed):
    f, g, h = three_elements(name, seed)
    points = X[:3]
    for element in (f, g, h):
        assert (element - element).norm() == 0.0
        assert element.distance(element) == 0.0
        assert_array_equal((element - element)(points), 0.0)
        assert (0.0 * element).norm() == 0.0
    assert_allclose(sum([f, g, h])(points), f(points) + g(points) + h(points), rtol=0, atol=1e-10 * size(f, g, h))
    assert_allclose((-f)(points), -f(points), rtol=0, atol=0)
    assert_allclose((np.float64(2.0) * f)(points), (f * 2)(points), rtol=0, atol=0)


@every_kernel
def test_atoms_by_hand(name):
    rng = np.random.default_rng(3)
    Y, kernel, k = rng.normal(size=(5, 3)), KERNELS[name], FUNCTIONS[name]
    beta, gamma = rng.normal(size=6), rng.normal(size=5)
    f, g = mh.embed(kernel, X, weights=beta), mh.embed(kernel, mh.Atoms(Y, gamma))
    K, L, M = oracles.gram(k, X, X), oracles.gram(k, X, Y), oracles.gram(k, Y, Y)
    assert_allclose(f.inner(g), beta @ L @ gamma, rtol=1e-10, atol=1e-10)
    assert_allclose(g(X), L @ gamma, rtol=1e-10, atol=1e-10)
    mmd = np.sqrt(K.mean() - 2 * L.mean() + M.mean())
    assert_allclose(mh.embed(kernel, X).distance(mh.embed(kernel, Y)), mmd, rtol=1e-10)


def test_blocks_change_nothing():
    """Beyond one block of rows, forms are summed a tile at a time."""
    A, B, kernel = sample(700, 3, seed=4), sample(1100, 3, seed=5), KERNELS["gaussian"]
    f, g = mh.embed(kernel, A), mh.embed(kernel, B)
    assert_allclose(f.inner(g), kernel(A, B).mean(), rtol=1e-12)
    assert_allclose(g.norm() ** 2, kernel(B).mean(), rtol=1e-12)
    assert_allclose(g(A), kernel(A, B).mean(axis=1), rtol=1e-12)


@closed_form
def test_a_point_is_a_gaussian_without_spread(name):
    kernel = KERNELS[name]
    points = mh.GaussianMixture(np.full(6, 1 / 6), X, np.zeros(6))
    f, g = mh.embed(kernel, X), mh.embed(kernel, points)
    assert_allclose(g(X), f(X), rtol=1e-10, atol=1e-10)
    assert_allclose(g.norm(), f.norm(), rtol=1e-10)
    assert_allclose(f.inner(g), f.inner(f), rtol=1e-10)


def test_two_spaces_do_not_meet():
    one, other = mh.embed(mh.Gaussian(1.0), X), mh.embed(mh.Gaussian(2.0), X)
    for meet in (one.inner, one.distance, one.__add__, one.__sub__):
        with pytest.raises(ValueError, match=r"Gaussian\(bandwidth=1\.0\) and Gaussian\(bandwidth=2\.0\).*pooled"):
            meet(other)
    with pytest.raises(ValueError, match="3 and 2 dimensions"):
        one.inner(mh.embed(mh.Gaussian(1.0), X[:, :2]))
    with pytest.raises(ValueError, match="2 columns and must have 3"):
        one(X[:, :2])


@pytest.mark.parametrize("factor", [np.nan, np.inf, -np.inf])
def test_factors_are_finite(factor):
    for multiply in (lambda f: factor * f, lambda f: f * factor, lambda f: np.float64(factor) * f):
        with pytest.raises(ValueError, match="finite number"):
            multiply(mh.embed(mh.Linear(), X))


@pytest.mark.parametrize("other", ["a", None, 1j])
def test_factors_are_real_numbers(other):
    f = mh.embed(mh.Linear(), X)
    for combine in (lambda: f * other, lambda: other * f, lambda: f / other):
        with pytest.raises(TypeError):
            combine()


@pytest.mark.parametrize("zero", [0, 0.0, np.float64(0.0)])
def test_division_by_zero(zero):
    with pytest.raises((ValueError, ZeroDivisionError), match=r"zero|finite"):
        mh.embed(mh.Linear(), X) / zero


@pytest.mark.parametrize("other", [1, "f", None, np.ones(3)])
def test_only_elements_are_added(other):
    with pytest.raises(TypeError):
        mh.embed(mh.Linear(), X) + other


def test_embed():
    assert_array_equal(mh.embed(mh.Linear(), X).measures[0].weights, np.full(6, 1 / 6))
    assert mh.embed(mh.Gaussian(), X).kernel == mh.Gaussian().resolve(X)
    with pytest.raises(ValueError, match="a measure has its own"):
        mh.embed(mh.Linear(), mh.Atoms(X), weights=np.ones(6))
    text = repr(mh.embed(mh.Linear(), X) + 2 * mh.embed(mh.Linear(), mixture(np.random.default_rng(0))))
    assert text == "Element(Linear(), 6 atoms + 2 Gaussians in 3 dimensions, total weight 3)"


# ---------------------------------------------------------------- mixtures

BAD_MIXTURES = {
    "weights sum to two": ([1.0, 1.0], np.zeros((2, 2)), [1.0, 1.0], "weights=.* sum to 1; divide"),
    "negative weight": ([1.5, -0.5], np.zeros((2, 2)), [1.0, 1.0], "weights=.* non-negative"),
    "NaN weight": ([np.nan, 1.0], np.zeros((2, 2)), [1.0, 1.0], "weights must be finite"),
    "too few weights": ([1.0], np.zeros((2, 2)), [1.0, 1.0], r"weights has shape \(1,\)"),
    "NaN mean": ([1.0], [[np.nan, 0.0]], [1.0], "means contains NaN|NaN"),
    "flat means": ([1.0], [0.0, 0.0], [1.0], "2D"),
    "NaN covariance": ([1.0], np.zeros((1, 2)), [[[np.nan, 0], [0, 1.0]]], "covariances must be finite"),
    "negative variance": ([1.0], np.zeros((1, 2)), [-1.0], r"covariances\[0\] .* positive semi-definite"),
    "indefinite": ([1.0], np.zeros((1, 2)), [[[1.0, 2.0], [2.0, 1.0]]], r"covariances\[0\] .* semi-definite"),
    "asymmetric": ([1.0], np.zeros((1, 2)), [[[1.0, 0.5], [0.0, 1.0]]], r"covariances\[0\] must be symmetric"),
    "wrong shape": ([1.0], np.zeros((1, 2)), np.eye(2), r"covariances have shape \(2, 2\).*\(1, 2, 2\) \(full\)"),
}


def test_rounding_in_a_mixture_is_no_mistake():
    """Up to 1e-9 of the largest covariance, and 1e-8 of the weights; a hundred times that is refused."""
    for size in (1.0, 1e-6, 1e6):
        for rounding, fine in ((1e-11, True), (1e-6, False)):
            asymmetric = size * np.array([[1.0, 0.5], [0.5 + rounding, 1.0]])
            indefinite = size * np.array([[1.0, 1.0 + rounding], [1.0 + rounding, 1.0]])
            for covariance in (asymmetric, indefinite):
                if fine:
                    assert np.isfinite(mh.GaussianMixture([1.0], np.zeros((1, 2)), covariance[None]).sample(3, 0)).all()
                else:
                    with pytest.raises(ValueError, match=r"covariances\[0\]"):
                        mh.GaussianMixture([1.0], np.zeros((1, 2)), covariance[None])
    mh.GaussianMixture([0.5, 0.5 + 1e-10], np.zeros((2, 2)), [1.0, 1.0])
    with pytest.raises(ValueError, match="sum to 1"):
        mh.GaussianMixture([0.5, 0.5 + 1e-6], np.zeros((2, 2)), [1.0, 1.0])


@pytest.mark.parametrize(("weights", "means", "covariances", "message"), BAD_MIXTURES.values(), ids=BAD_MIXTURES)
def test_mixtures_are_checked(weights, means, covariances, message):
    with pytest.raises(ValueError, match=message):
        mh.GaussianMixture(weights, means, covariances)


def test_shapes_of_covariances_agree():
    means, variances = np.zeros((2, 3)), np.array([0.5, 2.0])
    forms = [variances, np.outer(variances, np.ones(3)), variances[:, None, None] * np.eye(3)]
    for covariances in forms:
        assert_array_equal(mh.GaussianMixture([0.5, 0.5], means, covariances).covariances, forms[-1])


@pytest.mark.parametrize("rank", [3, 1])
def test_moments_of_samples(rank):
    rng = np.random.default_rng(5)
    roots = rng.normal(size=(2, 3, rank))
    P = mh.GaussianMixture([0.3, 0.7], 2 * rng.normal(size=(2, 3)), roots @ roots.transpose(0, 2, 1))
    sample = P.sample(40_000, random_state=0)
    mean = P.weights @ P.means
    second = np.einsum("k,kij->ij", P.weights, P.covariances + P.means[:, :, None] * P.means[:, None, :])
    products = sample[:, :, None] * sample[:, None, :]
    for values, exact in [(sample, mean), (products, second)]:
        error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
        assert (np.abs(values.mean(axis=0) - exact) <= 4.5 * error).all()
    assert_array_equal(P.sample(5, random_state=3), P.sample(5, random_state=np.random.default_rng(3)))
    if rank == 1:  # every draw lies on one of two lines
        offsets = sample[:, None, :] - P.means
        lines = roots[:, :, 0] / np.linalg.norm(roots[:, :, 0], axis=1, keepdims=True)
        along = np.einsum("nki,ki->nk", offsets, lines)[:, :, None] * lines
        assert np.linalg.norm(offsets - along, axis=2).min(axis=1).max() <= 1e-6


def test_log_density():
    rng = np.random.default_rng(6)
    roots = rng.normal(size=(3, 4, 4))
    P = mh.GaussianMixture([0.2, 0.3, 0.5], rng.normal(size=(3, 4)), roots @ roots.transpose(0, 2, 1))
    points = rng.normal(size=(10, 4)) * 3
    densities = [multivariate_normal(mean, S).pdf(points) for mean, S in P.components()]
    assert_allclose(P.log_density(points), np.log(P.weights @ densities), rtol=1e-10)
    assert np.isfinite(P.log_density(points * 1e3)).all()
    assert_allclose(
        mh.GaussianMixture([1.0, 0.0], np.zeros((2, 1)), [1.0, 1.0]).log_density([[0.0]]), -0.9189385332, rtol=1e-9
    )


def test_a_singular_covariance_has_no_density():
    for covariance in (np.zeros((2, 2)), np.ones((2, 2)), np.diag([1.0, 0.0])):
        with pytest.raises(ValueError, match=r"singular covariance .* add noise"):
            mh.GaussianMixture([1.0], [[0.0, 0.0]], [covariance]).log_density([[0.0, 0.0]])
    with pytest.raises(ValueError, match=r"1 columns .* has 2"):
        mh.GaussianMixture([1.0], [[0.0, 0.0]], [1.0]).log_density([[0.0]])


# ---------------------------------------------------------------- the paper's mixtures


@pytest.mark.parametrize("d", [1, 2, 7, 30])
def test_paper_mixture(d):
    P = mh.paper_mixture(d, random_state=d)
    assert_allclose(P.weights, [0.05, 0.3, 0.4, 0.25], rtol=1e-15)
    assert P.means.shape == (4, d)
    assert (np.abs(P.means) <= 10).all()
    for covariance in P.covariances:
        eigenvalues = np.linalg.eigvalsh(covariance - 0.2 * np.eye(d))
        assert eigenvalues.min() >= -1e-10
        assert np.sum(eigenvalues > 1e-8) == min(d, 7)
    assert_array_equal(P.covariances, mh.paper_mixture(d, random_state=d).covariances)


def test_paper_mixture_in_the_mean():
    """Means uniform on (-10, 10); Wishart(2 I, 7) has mean 14 I."""
    draws = [mh.paper_mixture(5, random_state=seed) for seed in range(300)]
    means = np.concatenate([P.means.ravel() for P in draws])
    assert abs(means.mean()) <= 4.5 * means.std() / np.sqrt(means.size)
    assert_allclose(means.var(), 100 / 3, rtol=0.06)  # 6,000 draws: standard error 1.2 %
    noise = np.concatenate([P.covariances for P in draws])
    error = noise.std(axis=0) / np.sqrt(len(noise))
    assert (np.abs(noise.mean(axis=0) - 14.2 * np.eye(5)) <= 4.5 * error).all()


def test_elements_remember_the_names_of_columns():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(20, 3)), columns=["a", "b", "c"])
    mixed = table[["c", "a", "b"]]
    mean = mh.ShrunkKernelMean().fit(table).mean_
    features = mh.Nystroem(mh.Gaussian(1.0), 5, random_state=0).fit(table)
    sketched = mh.MeanSketch(features).update(table).mean_element()
    adaptive = mh.AdaptiveKernelMean().fit(table).mean_
    for f in (mean, 2 * mean - mean, mh.embed(mh.Gaussian(1.0), table), sketched, adaptive):
        assert f.feature_names == ("a", "b", "c")
        assert_array_equal(f(mixed), f(table))
        assert_array_equal(f(table.to_numpy()), f(table))
        with pytest.raises(
            ValueError,
            match=r"X is missing the columns \['c'\] and has the unexpected columns \['d'\]",
        ):
            f(table.rename(columns={"c": "d"}))
    other = mh.embed(mh.Gaussian(1.0), mixed)
    with pytest.raises(ValueError, match=r"elements have the columns .* with the same columns in one order"):
        mh.embed(mh.Gaussian(1.0), table).distance(other)
    assert mh.embed(mh.Gaussian(1.0), table.to_numpy()).inner(other) > 0
