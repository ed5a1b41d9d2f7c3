"""Distances to the last digits, and the median of all pairs against a double loop."""

from fractions import Fraction

import numpy as np
import oracles
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist, pdist
from tables import sample

import muhat as mh
from muhat.linalg import distances
from muhat.linalg.blocks import lexicographic_order
from muhat.linalg.centered_gram import mean_off_diagonal
from muhat.linalg.distances import MEDIAN_ROWS, median_distance, positive_median_distance, squared_distances

radial = pytest.mark.parametrize("kernel", [mh.Gaussian(), mh.Laplace(), mh.Matern()], ids=lambda k: type(k).__name__)
few = settings(max_examples=25, deadline=None, derandomize=True, phases=[Phase.generate])
WIDTHS = (1, 3, 4, 5, 30)  # up to 4 columns distances go one way, beyond another
by_width = pytest.mark.parametrize("width", WIDTHS)


@pytest.fixture(autouse=True, scope="module", params=[0, distances._DIRECT_SIZE], ids=["expanded", "by size"])
def size_of_direct_distances(request):
    """Small matrices go the way of large ones, too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distances, "_DIRECT_SIZE", request.param)
        yield


# ---------------------------------------------------------------- squared distances


def exact_squared_distances(X, Y):
    rows = [[sum((Fraction(a) - Fraction(b)) ** 2 for a, b in zip(x, y, strict=True)) for y in Y] for x in X]
    return np.array([[float(value) for value in row] for row in rows])


@by_width
def test_rows_of_single_precision_are_compared_with_no_number_beyond_it(width):
    """A kernel's ``evaluate`` takes rows as they are: no comparison with them may overflow."""
    X = sample(20, width, 0).astype(np.float32)
    assert_allclose(squared_distances(X, X), squared_distances(X.astype(float), X.astype(float)), rtol=1e-4)


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
    values = pdist(X, "sqeuclidean" if metric == "euclidean" else metric)
    return np.sqrt(np.median(values)) if metric == "euclidean" else np.median(values)


METRICS = {"euclidean": oracles.gaussian_median_bandwidth, "cityblock": oracles.laplace_median_bandwidth}
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


@pytest.mark.slow
@every_metric
@pytest.mark.parametrize("name", large_data())
def test_median_of_many_rows(metric, name):
    X = large_data()[name]
    value = median_distance(X, metric)
    assert median_distance(X[np.random.default_rng(1).permutation(len(X))], metric) == value
    # 2,000 of the rows stand for all: their pairs give the median to about 2 %.
    assert_allclose(value, slow_median(X, metric), rtol=0.05)


@pytest.mark.parametrize("name", large_data())
def test_rows_are_ordered_by_all_columns(name):
    X = large_data()[name]
    assert_array_equal(X[lexicographic_order(X)], X[np.lexsort(X.T[::-1])])


@pytest.mark.parametrize("far", [1e150, 1e200, 1e300])
@pytest.mark.parametrize("width", [2, 6])
@pytest.mark.parametrize("scale", [1e-3, 1.0])
def test_a_row_far_away_does_not_blur_the_others(far, width, scale):
    X, Y = sample(12, width, seed=1), sample(9, width, seed=2)
    A, B = np.vstack([X, np.full((1, width), far)]), np.vstack([np.full((1, width), -far), Y])
    for left, right, expected in ((A, A, squared_distances(X, X, scale)), (A, B, squared_distances(X, Y, scale))):
        found = squared_distances(left, right, scale)[:12, -len(expected[0]) :]
        found = found if left is not right else squared_distances(A, A, scale)[:12, :12]
        assert_allclose(found, expected, rtol=1e-10)
    D = squared_distances(A, A, scale)
    assert_array_equal(D, D.T)
    assert_array_equal(np.diag(D), 0.0)
    assert (D[-1, :-1] > 1e290).all()


@pytest.mark.parametrize("far", [1e150, 1e300])
@pytest.mark.parametrize("width", [2, 6])
def test_crowds_far_from_each_other_are_measured_by_themselves(far, width):
    """Whatever their order and their sizes: each distance within a crowd is that without the others."""
    origins = far * np.array([0.0, 1.0, -0.5])
    crowd = np.arange(14) * 5 % 3
    X, Y = (sample(14, width, seed=seed) * np.arange(width) for seed in (3, 4))  # the first column is the crowd's own
    A, B = X + 0.0, Y + 0.0
    A[:, 0] = B[:, 0] = origins[crowd]
    same = crowd[:, None] == crowd
    for rows in (slice(None), slice(0, 2), slice(1, 3)):
        found, near = squared_distances(A[rows], B), same[rows]
        assert_allclose(found[near], cdist(X[rows, 1:], Y[:, 1:], "sqeuclidean")[near], rtol=1e-10)
        assert (found[~near] > 1e290).all()
    D = squared_distances(A, A)
    assert_array_equal(D, D.T)
    assert_allclose(D[same], cdist(X[:, 1:], X[:, 1:], "sqeuclidean")[same], rtol=1e-10)


@pytest.mark.parametrize("metric", METRICS)
def test_the_median_of_ordinary_rows_with_a_row_far_away(metric):
    X = sample(30, 3, seed=1)
    A = np.vstack([np.full((1, 3), 1e300), X])
    assert_allclose(median_distance(A, metric), np.median(pdist(X, metric)), rtol=0.1)
    assert_allclose(mh.KernelMean(mh.Gaussian(1.0)).fit(A).mean_(X), mh.Gaussian(1.0)(X).sum(axis=1) / 31, rtol=1e-12)


@pytest.mark.parametrize("width", [2, 7])
def test_rows_at_both_ends_of_the_numbers(width):
    """Sums and differences of the rows overflow; those near each other are near all the same."""
    X = np.full((5, width), 1.7e308)
    X[3:] *= -1
    X[4, 0] *= 1 - 2.0**-30
    distances = squared_distances(X, X, scale=1e300)
    assert_array_equal(distances[:3, :3], 0.0)
    assert_allclose(distances[3, 4], (1.7e8 * 2.0**-30) ** 2, rtol=1e-6)
    assert_allclose(distances[0, 3], width * 3.4e8**2, rtol=1e-12)
    with pytest.raises(ValueError, match="Rescale X first"):
        median_distance(X, "euclidean")


def test_a_width_that_is_nothing_beside_the_rows():
    """0 stays 0, and all else is infinitely far."""
    X = np.array([[1e308, 0.0], [1e308, 0.0], [-1e308, 0.0]])
    assert_array_equal(squared_distances(X, X, scale=1e-10), np.where(np.equal.outer(X[:, 0], X[:, 0]), 0.0, np.inf))


def test_a_median_of_positive_distances_by_hand():
    X = np.array([[0.0], [0.0], [1.0], [3.0]])
    assert positive_median_distance(X, 10) == 2.0  # of 1, 1, 2, 3, 3, and 0 left out
    assert positive_median_distance(np.ones((5, 2)), 10) == 1.0
    many = np.tile([[0.0], [1.0]], (500, 1))  # of period two: evenly spaced rows would all be alike
    assert positive_median_distance(many, 100) == 1.0


def test_a_mean_off_the_diagonal_by_hand():
    K = np.array([[9.0, 1.0, 2.0], [1.0, 9.0, 3.0], [2.0, 3.0, 9.0]])
    assert mean_off_diagonal(K) == 2.0


def test_the_order_of_columns_does_not_change_the_bandwidth():
    X = np.random.default_rng(0).normal(size=(4_000, 3)) * [1, 2, 5]
    X[:, 0] = X[:, 0].round()
    weights = np.random.default_rng(1).integers(0, 3, size=4_000).astype(float)
    for w in (None, weights):
        assert_allclose(
            median_distance(X[:, [2, 0, 1]], "euclidean", w), median_distance(X, "euclidean", w), rtol=1e-12
        )
    means = [mh.ShrunkKernelMean().fit(X[:, order]) for order in ([0, 1, 2], [2, 0, 1])]
    one, other = (mean.mean_.norm() for mean in means)
    assert_allclose(one, other, rtol=1e-10)
