"""Elements of the space: the properties of their algebra."""

import numpy as np
import oracles
import pandas as pd
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from tables import CLOSED_FORM, FUNCTIONS, KERNELS, sample

import muhat as mh

few = settings(max_examples=6, deadline=None, derandomize=True, phases=[Phase.generate])
seeds = st.integers(0, 10**6)
numbers = st.integers(-24, 24).map(lambda i: i / 8)
every_kernel = pytest.mark.parametrize("name", KERNELS)
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


def test_two_spaces_do_not_meet():
    one, other = mh.embed(mh.Gaussian(1.0), X), mh.embed(mh.Gaussian(2.0), X)
    for meet in (one.inner, one.distance, one.__add__, one.__sub__):
        with pytest.raises(ValueError, match=r"Gaussian\(bandwidth=1\.0\) and Gaussian\(bandwidth=2\.0\).*pooled"):
            meet(other)
    with pytest.raises(ValueError, match="3 and 2 dimensions"):
        one.inner(mh.embed(mh.Gaussian(1.0), X[:, :2]))
    with pytest.raises(ValueError, match="2 columns and must have 3"):
        one(X[:, :2])


@pytest.mark.parametrize("other", ["a", None, 1j])
def test_factors_are_real_numbers(other):
    f = mh.embed(mh.Linear(), X)
    for combine in (lambda: f * other, lambda: other * f, lambda: f / other):
        with pytest.raises(TypeError):
            combine()


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
