"""Laws of every kernel of the table, kernels from elsewhere, distances to the last digits, the median."""

import pickle
from fractions import Fraction

import numpy as np
import oracles
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import pdist
from sklearn.gaussian_process import kernels as gp
from sklearn.metrics import pairwise
from tables import FUNCTIONS, KERNELS, sample

import muhat as mh
from muhat.distances import MEDIAN_ROWS, median_distance, squared_distances

every_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
radial = pytest.mark.parametrize("kernel", [mh.Gaussian(), mh.Laplace(), mh.Matern()], ids=lambda k: type(k).__name__)
few = settings(max_examples=25, deadline=None, derandomize=True, phases=[Phase.generate])
WIDTHS = (1, 3, 4, 5, 30)  # up to 4 columns distances go one way, beyond another
by_width = pytest.mark.parametrize("width", WIDTHS)

# ---------------------------------------------------------------- laws


@every_kernel
@by_width
def test_symmetric_and_positive_semidefinite(kernel, width):
    X = np.concatenate([sample(20, width, seed=1), sample(3, width, seed=1)])
    K = kernel(X)
    assert_array_equal(K, K.T)
    assert np.linalg.eigvalsh(K)[0] >= -1e-12 * np.trace(K)
    Y = sample(7, width, seed=2)
    assert_allclose(kernel(X, Y), kernel(Y, X).T, rtol=1e-12, atol=1e-300)


@every_kernel
def test_symmetric_to_the_last_bit_with_many_rows(kernel):
    """Rows are visited in blocks; a pair must not depend on the block in which it falls."""
    X = np.concatenate([1e-3 * sample(300, 6, seed=3), sample(300, 6, seed=4)])
    K = kernel(X)
    assert_array_equal(K, K.T)


@every_kernel
@by_width
def test_diag_is_the_diagonal(kernel, width):
    X = sample(20, width, seed=3)
    assert_allclose(kernel.diag(X), np.diag(kernel(X)), rtol=1e-13)
    assert_allclose(kernel.diag(X), np.diag(kernel(X, X.copy())), rtol=1e-13)


@every_kernel
def test_a_value(kernel):
    copy = pickle.loads(pickle.dumps(kernel))
    assert copy == kernel
    assert hash(copy) == hash(kernel)
    assert eval(repr(kernel), vars(mh.kernels)) == kernel
    assert kernel.with_params(**kernel.get_params()) == kernel
    assert sum(other == kernel for other in KERNELS.values()) == 1
    with pytest.raises(AttributeError):
        kernel.bandwidth = 7.0


@pytest.mark.parametrize("right", KERNELS)
@pytest.mark.parametrize("left", ["linear", "gaussian", "scaled_sum"])
def test_sums_products_and_multiples(left, right):
    X, Y = sample(6, 3, seed=4), sample(5, 3, seed=5)
    k, l, f, g = KERNELS[left], KERNELS[right], FUNCTIONS[left], FUNCTIONS[right]  # noqa: E741
    K, L = oracles.gram(f, X, Y), oracles.gram(g, X, Y)
    assert_allclose((k + l)(X, Y), K + L, rtol=1e-10, atol=1e-12)
    assert_allclose((k * l)(X, Y), K * L, rtol=1e-10)
    for factor in (2.5, np.float64(2.5), np.float32(2.5), Fraction(5, 2)):
        assert_allclose((factor * k)(X, Y), 2.5 * K, rtol=1e-10)
        assert factor * k == k * factor


@pytest.mark.parametrize("factor", [0, 0.0, -1, -2.5, np.nan, np.inf])
@every_kernel
def test_a_multiple_is_positive(kernel, factor):
    for multiply in (lambda: factor * kernel, lambda: kernel * factor):
        with pytest.raises(ValueError, match=r"factor=.* must be a number in \(0, inf\)"):
            multiply()


# ---------------------------------------------------------------- against scikit-learn


@by_width
def test_against_scikit_learn(width):
    X, Y, s = sample(8, width, seed=6), sample(5, width, seed=7), 1.3
    pairs = [
        (mh.Linear(), pairwise.linear_kernel(X, Y)),
        (mh.Gaussian(s), pairwise.rbf_kernel(X, Y, gamma=1 / (2 * s**2))),
        (mh.Laplace(s), pairwise.laplacian_kernel(X, Y, gamma=1 / s)),
        *[(mh.Polynomial(p, 0.7), pairwise.polynomial_kernel(X, Y, p, gamma=1, coef0=0.7)) for p in (1, 2, 3, 5)],
        *[(mh.Matern(nu, s), gp.Matern(length_scale=s, nu=nu)(X, Y)) for nu in (0.5, 1.5, 2.5)],
    ]
    for kernel, expected in pairs:
        assert_allclose(kernel(X, Y), expected, rtol=1e-10, atol=1e-14)


GP_KERNELS = {
    "rbf": gp.RBF(1.5),
    "anisotropic": gp.RBF([0.5, 1.0, 2.0]),
    "nested": gp.ConstantKernel(2.0) * gp.RBF(1.5) + gp.DotProduct(0.5),
    "rational": gp.RationalQuadratic(alpha=0.7, length_scale=2.0),
    "matern": gp.Matern(length_scale=1.3, nu=0.9),
}


@pytest.mark.parametrize("theirs", GP_KERNELS.values(), ids=GP_KERNELS)
def test_gaussian_process_kernels(theirs):
    X, Y = sample(8, 3, seed=8), sample(5, 3, seed=9)
    kernel = mh.as_kernel(theirs)
    assert_allclose(kernel(X, Y), theirs(X, Y), rtol=1e-13)
    assert_allclose(kernel(X), theirs(X), rtol=1e-13)
    assert_allclose(kernel.diag(X), theirs.diag(X), rtol=1e-13)
    assert kernel == pickle.loads(pickle.dumps(kernel))
    assert hash(kernel) == hash(mh.as_kernel(theirs))
    assert kernel.resolve(X) == kernel
    assert_allclose(mh.embed(kernel, X).norm() ** 2, theirs(X).mean(), rtol=1e-10)


def test_gaussian_process_kernels_have_nested_parameters():
    theirs = GP_KERNELS["nested"]
    kernel = mh.as_kernel(theirs)
    changed = kernel.with_params(kernel__k1__k2__length_scale=9.0)
    assert changed.get_params()["kernel__k1__k2__length_scale"] == 9.0
    assert kernel.get_params()["kernel__k1__k2__length_scale"] == 1.5
    assert changed != kernel
    mean = mh.KernelMean(kernel).set_params(kernel__kernel__k1__k2__length_scale=9.0)
    assert mean.kernel == changed


def test_a_gaussian_process_kernel_is_taken_as_it_is_now():
    """A kernel is a value: what happens to the object it was made from does not change it."""
    theirs = gp.RBF(1.0)
    kernel, X = mh.as_kernel(theirs), sample(4, 2, seed=10)
    before = kernel(X, X[:2])
    theirs.set_params(length_scale=5.0)
    assert_array_equal(kernel(X, X[:2]), before)


def test_noise_on_the_diagonal_stays_there_beyond_a_block():
    """White noise is k(x, x) alone: the squared norm of a mean of n rows holds 1/n of it, for every n."""
    kernel = mh.as_kernel(gp.WhiteKernel(1.0))
    for n in (10, 513, 600):
        mean = mh.KernelMean(kernel).fit(np.arange(n, dtype=float)[:, None]).mean_
        assert_allclose(mean.norm() ** 2, 1 / n, rtol=1e-10)
        spectral = mh.SpectralKernelMean(kernel, lam=1.0).fit(np.arange(n, dtype=float)[:, None])
        assert_allclose(spectral.weights_, np.full(n, 0.5 / n), rtol=1e-10)


def test_functions():
    X, Y = sample(8, 3, seed=8), sample(5, 3, seed=9)
    for function in (pairwise.cosine_similarity, pairwise.chi2_kernel):
        kernel = mh.as_kernel(function)
        A, B = (X, Y) if function is pairwise.cosine_similarity else (abs(X), abs(Y))
        assert_allclose(kernel(A, B), function(A, B), rtol=1e-13)
        assert_allclose(kernel.diag(A), np.diag(function(A)), rtol=1e-13)
        assert mh.as_kernel(function) == kernel == mh.as_kernel(kernel)
        assert pickle.loads(pickle.dumps(kernel)) == kernel


def test_a_function_of_two_rows_is_refused_with_the_remedy():
    kernel = mh.as_kernel(lambda x, y: float(np.sum(x[0] * y[0])))
    with pytest.raises(ValueError, match=r"must return .*pairwise_kernels"):
        kernel(sample(3, 2, seed=1), sample(4, 2, seed=2))


@pytest.mark.parametrize("thing", ["rbf", "median", None, 3.0, mh.Gaussian, sample(2, 2, seed=1)])
def test_what_is_no_kernel(thing):
    with pytest.raises(ValueError, match=r"is no kernel; use an object such as muhat\.Gaussian\(\)"):
        mh.as_kernel(thing)


# ---------------------------------------------------------------- squared distances


def exact_squared_distances(X, Y):
    rows = [[sum((Fraction(a) - Fraction(b)) ** 2 for a, b in zip(x, y, strict=True)) for y in Y] for x in X]
    return np.array([[float(value) for value in row] for row in rows])


@by_width
@few
@given(seed=st.integers(0, 10**6), offset=st.sampled_from([0.0, 1e3, 1e8]), spread=st.sampled_from([1.0, 1e-3]))
def test_distances_lose_no_digits_far_from_the_origin(width, seed, offset, spread):
    rng = np.random.default_rng(seed)
    X, Y = (spread * rng.normal(size=(n, width)) + offset for n in (7, 5))
    for A, B in [(X, Y), (X, X)]:
        assert_allclose(squared_distances(A, B), exact_squared_distances(A, B), rtol=1e-10, atol=0)


@by_width
def test_distances_between_far_clusters(width):
    near = sample(6, width, seed=1)
    X = np.concatenate([near, near + 1e8, near - 1e5, 1e-6 * near])
    for Y in (X, X.copy(), X[::-1].copy()):
        assert_allclose(squared_distances(X, Y), exact_squared_distances(X, Y), rtol=1e-10, atol=0)
    D = squared_distances(X, X)
    assert_array_equal(D, D.T)


@by_width
@few
@given(seed=st.integers(0, 10**6), offset=st.sampled_from([0.0, 1.0, 1e8]), scale=st.sampled_from([1e-3, 1.0, 7.0]))
def test_equal_rows_have_distance_zero(width, seed, offset, scale):
    rows = np.random.default_rng(seed).normal(size=(9, width)) + offset
    X = np.concatenate([rows, rows[:4], rows[:1]])
    equal = (X[:, None] == X[None]).all(axis=2)
    for Y in (X, X.copy(), np.asfortranarray(X)):
        assert_array_equal(squared_distances(X, Y, scale)[equal], 0.0)
        assert_array_equal(mh.Gaussian(scale)(X, Y)[equal], 1.0)
        assert_array_equal(mh.Laplace(scale)(X, Y)[equal], 1.0)
        assert_array_equal(mh.Matern(2.5, scale)(X, Y)[equal], 1.0)


@by_width
@pytest.mark.parametrize("exponent", [-150, -30, 30, 150])
@radial
def test_the_unit_of_length_does_not_matter(kernel, exponent, width):
    X, Y, unit = sample(9, width, seed=2), sample(4, width, seed=3), 10.0**exponent
    one, other = kernel.resolve(X), kernel.resolve(unit * X)
    assert_allclose(other.bandwidth, unit * one.bandwidth, rtol=1e-12)
    assert_allclose(other(unit * X, unit * Y), one(X, Y), rtol=1e-10)


@by_width
@radial
def test_a_narrow_kernel_is_the_identity(kernel, width):
    """Distances that overflow in units of the bandwidth are far, and far is 0."""
    X = sample(5, width, seed=2)
    assert_array_equal(kernel.with_params(bandwidth=1e-200)(X), np.eye(5))


# ---------------------------------------------------------------- the median


def slow_median(X, metric):
    values = pdist(X, metric)
    return np.sqrt(np.median(values)) if metric == "sqeuclidean" else np.median(values)


METRICS = {"sqeuclidean": oracles.gaussian_median_bandwidth, "cityblock": oracles.laplace_median_bandwidth}
every_metric = pytest.mark.parametrize("metric", METRICS)


@every_metric
@few
@given(seed=st.integers(0, 10**6), n=st.integers(2, 40), width=st.sampled_from(WIDTHS))
def test_median_against_a_double_loop(metric, seed, n, width):
    X = np.random.default_rng(seed).normal(size=(n, width))
    assert_allclose(median_distance(X, metric), METRICS[metric](X), rtol=1e-10)


@every_metric
@pytest.mark.parametrize("n", [1000, MEDIAN_ROWS])
def test_median_is_exact_up_to_its_limit(metric, n):
    X = sample(n, 3, seed=n)
    assert_allclose(median_distance(X, metric), slow_median(X, metric), rtol=1e-10)


@every_metric
@few
@given(seed=st.integers(0, 10**6), weights=st.lists(st.integers(0, 4), min_size=6, max_size=12))
def test_weights_are_repetitions(metric, seed, weights):
    weights = [2, 1, *weights]
    X = np.random.default_rng(seed).normal(size=(len(weights), 2))
    repeated = np.repeat(X, weights, axis=0)
    if np.median(pdist(repeated)) > 0:
        weighted = median_distance(X, metric, np.array(weights, dtype=float))
        assert_allclose(weighted, median_distance(repeated, metric), rtol=1e-12)


@radial
def test_a_median_of_zero_falls_back_with_a_warning(kernel):
    X = np.array([[0.0]] * 8 + [[1.0], [3.0]])
    with pytest.warns(UserWarning, match="more than half of the pairs .* median of the non-zero distances"):
        resolved = kernel.resolve(X)
    with pytest.warns(UserWarning, match="more than half"):
        weighted = kernel.resolve(X[-3:], sample_weight=np.array([8.0, 1.0, 1.0]))
    assert resolved.bandwidth == weighted.bandwidth == 2.0  # 8 pairs at 1, one at 2, 8 at 3


@radial
def test_equal_rows_have_no_median(kernel):
    with pytest.raises(ValueError, match="all rows of X are equal; pass the bandwidth as a number"):
        kernel.resolve(np.ones((5, 2)))


def large_data():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(500, 3))
    return {
        "generic": rng.normal(size=(5000, 3)),
        "duplicates": values[rng.integers(500, size=5000)],
        "few_values": rng.integers(0, 4, size=(4100, 2)).astype(float),
        "clusters": rng.normal(size=(4500, 2)) + 20 * rng.integers(0, 2, size=(4500, 1)),
        # Every unit measured under two conditions: equal steps would see one of them only.
        "paired": np.array([(i, condition) for i in range(2000) for condition in (0.0, 1000.0)]),
    }


@every_metric
@pytest.mark.parametrize("name", large_data())
def test_median_of_many_rows(metric, name):
    X = large_data()[name]
    value = median_distance(X, metric)
    assert median_distance(X[np.random.default_rng(1).permutation(len(X))], metric) == value
    # 2,000 of the rows stand for all: their pairs give the median to about 2 %.
    assert_allclose(value, slow_median(X, metric), rtol=0.05)
