"""Kernel between bags: inner products of mean elements, kernels of those, and sums over pairs of bags."""

from importlib.util import find_spec

import numpy as np
import oracles
import pandas as pd
import pytest
from bag_samples import SIZES, Counting, random_bags
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC
from tables import FUNCTIONS, KERNELS
from tables import MEANS as CASES

import muhat as mh
from muhat.bags import data as bags_module
from muhat.bags.data import Bags, bags_from_groups
from muhat.bags.distribution_kernel import DistributionKernel, bag_sums
from muhat.linalg import gram

NAMES = ("shrunk", "shrunk_fixed", "spectral_fixed", "spectral", "spectral_nested")
MEANS = {name: CASES[name].estimator for name in NAMES}


@pytest.fixture
def small_tiles(monkeypatch):
    """Tiles so small that bags are cut by them, and that one tile holds several bags."""
    monkeypatch.setattr(bags_module, "BLOCK", 7)


def slow_inner(function, bags, others, weights, other_weights):
    """βᵢᵀ K(Xᵢ, Yⱼ) γⱼ, a pair of bags at a time."""
    return np.array(
        [
            [beta @ oracles.gram(function, X, Y) @ gamma for Y, gamma in zip(others, other_weights, strict=True)]
            for X, beta in zip(bags, weights, strict=True)
        ]
    )


def uniform(bags):
    return [np.full(len(bag), 1 / len(bag)) for bag in bags]


def elements(kernel, bags):
    return [mh.embed(kernel, bag) for bag in bags]


# ---------------------------------------------------------------- level 1


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.usefixtures("small_tiles")
def test_inner_products_are_the_double_loop(name):
    train, test = random_bags(), random_bags((5, 1, 12), seed=1)
    fitted = DistributionKernel(KERNELS[name])
    want = slow_inner(FUNCTIONS[name], train, train, uniform(train), uniform(train))
    assert_allclose(fitted.fit_transform(train), want, rtol=1e-10, atol=1e-12 * np.abs(want).max())
    want = slow_inner(FUNCTIONS[name], test, train, uniform(test), uniform(train))
    assert_allclose(fitted.transform(test), want, rtol=1e-10, atol=1e-12 * np.abs(want).max())


@pytest.mark.parametrize("name", MEANS)
@pytest.mark.usefixtures("small_tiles")
def test_a_recipe_gives_the_weights(name):
    kernel = KERNELS["gaussian_narrow"]
    train, test = random_bags(), random_bags((5, 1, 12), seed=1)

    def weights(bags):
        fits = [None if len(bag) == 1 else clone(MEANS[name]).set_params(kernel=kernel).fit(bag) for bag in bags]
        return [np.ones(1) if fit is None else fit.weights_ for fit in fits]

    function = FUNCTIONS["gaussian_narrow"]
    fitted = DistributionKernel(kernel, mean=MEANS[name])
    # Where lam is searched it is known to half the digits only, since scores are flat at their minimum.
    tolerance = 1e-10 if "fixed" in name or name == "shrunk" else 1e-7
    want = slow_inner(function, train, train, weights(train), weights(train))
    assert_allclose(fitted.fit_transform(train), want, rtol=0, atol=tolerance)
    want = slow_inner(function, test, train, weights(test), weights(train))
    assert_allclose(fitted.transform(test), want, rtol=0, atol=tolerance)
    assert not np.allclose(want, slow_inner(function, test, train, uniform(test), uniform(train)), rtol=1e-3)


def test_the_kernel_of_a_recipe_is_replaced():
    one = DistributionKernel(mh.Gaussian(1.0), mean=mh.ShrunkKernelMean(mh.Linear()))
    other = DistributionKernel(mh.Gaussian(1.0), mean=mh.ShrunkKernelMean())
    assert_array_equal(one.fit_transform(random_bags()), other.fit_transform(random_bags()))
    assert one.mean.kernel == mh.Linear()


@given(sizes=st.lists(st.integers(1, 25), min_size=1, max_size=9), block=st.integers(1, 30))
@settings(max_examples=40, deadline=None)
def test_tiles_do_not_matter(sizes, block):
    bags = random_bags(tuple(sizes), d=2)
    estimator = DistributionKernel(mh.Gaussian(1.0))
    whole, cross = estimator.fit_transform(bags), estimator.transform(bags[::-1])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bags_module, "BLOCK", block)
        assert_allclose(estimator.fit_transform(bags), whole, rtol=1e-13)
        assert_allclose(estimator.transform(bags[::-1]), cross, rtol=1e-13)
    assert_array_equal(whole, whole.T)


def test_the_gram_matrix_is_that_of_elements():
    bags = random_bags()
    fitted = DistributionKernel(level2=mh.Gaussian(0.4)).fit(bags)
    f = elements(fitted.kernel_, bags)
    want = [[np.exp(-(a.distance(b) ** 2) / (2 * 0.4**2)) for b in f] for a in f]
    assert_allclose(fitted.transform(bags), want, rtol=1e-10)


def test_the_bandwidth_is_resolved_once_on_pooled_rows():
    bags = random_bags()
    fitted = DistributionKernel().fit(bags)
    assert fitted.kernel_ == mh.Gaussian().resolve(np.vstack(bags))
    far = [bag + 100 for bag in bags]
    assert_allclose(fitted.transform(far), 0, atol=1e-10)


def test_work_and_memory(monkeypatch):
    monkeypatch.setattr(bags_module, "BLOCK", 16)
    Counting.values = Counting.largest = 0
    bags = random_bags((10,) * 40)
    fitted = DistributionKernel(Counting(1.0)).fit(bags)
    rows, tiles = 400, 25
    assert Counting.values == 16**2 * tiles * (tiles + 1) / 2  # each pair once, but for the tiles of the diagonal
    assert Counting.largest == 16**2
    Counting.values = 0
    fitted.transform(bags[:3])
    assert Counting.values == 30 * rows + 3 * 10**2


def test_gram_scales_with_the_kernel():
    bags = random_bags()
    one = DistributionKernel(mh.Gaussian(1.0), mean=mh.ShrunkKernelMean())
    scaled = DistributionKernel(1e6 * mh.Gaussian(1.0), mean=mh.ShrunkKernelMean())
    assert_allclose(scaled.fit_transform(bags), 1e6 * one.fit_transform(bags), rtol=1e-10)


@pytest.mark.parametrize("scale", [1e-150, 1e-5, 1e5, 1e150])
def test_units_do_not_matter(scale):
    bags = random_bags()
    estimator = DistributionKernel(level2=mh.Gaussian())
    want = estimator.fit_transform(bags)
    assert_allclose(estimator.fit_transform([scale * bag for bag in bags]), want, rtol=1e-9)


def test_too_large_values_are_refused():
    with pytest.raises(ValueError, match="overflows on these bags; rescale them"):
        DistributionKernel(mh.Linear()).fit([1e160 * bag for bag in random_bags()])


# ---------------------------------------------------------------- bags


def test_equal_sizes_stay_bags():
    bags = random_bags((4,) * 6)
    want = DistributionKernel().fit_transform(bags)
    for same in (np.stack(bags), tuple(bags), pd.Series(bags), [bag.tolist() for bag in bags]):
        assert_array_equal(DistributionKernel().fit_transform(same), want)


def test_bags_keep_their_order_and_their_rows_have_none():
    bags = random_bags()
    K = DistributionKernel().fit_transform(bags)
    order = np.random.default_rng(0).permutation(len(bags))
    assert_allclose(DistributionKernel().fit_transform([bags[i] for i in order]), K[np.ix_(order, order)], rtol=1e-10)
    assert_allclose(DistributionKernel().fit_transform([bag[::-1] for bag in bags]), K, rtol=1e-10)


def test_a_pipeline_into_a_support_vector_machine():
    y = np.arange(30) % 2
    rng = np.random.default_rng(0)
    bags = [rng.normal(scale=1 + 2 * label, size=(15, 2)) for label in y]
    pipeline = make_pipeline(DistributionKernel(level2=mh.Gaussian()), SVC(kernel="precomputed"))
    assert cross_val_score(pipeline, bags, y, cv=3).mean() >= 0.9


def test_output_names():
    fitted = DistributionKernel().set_output(transform="pandas").fit(random_bags())
    frame = fitted.transform(random_bags()[:2])
    assert list(frame.columns) == list(fitted.get_feature_names_out())
    assert frame.columns[0] == "distributionkernel0"
    assert frame.shape == (2, len(SIZES))


# ---------------------------------------------------------------- what is recalled


def test_vectors_are_bags_of_one_column():
    vectors = [bag[:, 0] for bag in random_bags()]
    want = DistributionKernel().fit_transform([vector[:, None] for vector in vectors])
    assert_array_equal(DistributionKernel().fit_transform(vectors), want)
    frames = [pd.Series(vector, name="a") for vector in vectors]
    assert_array_equal(DistributionKernel().fit_transform(frames), want)
    bags, _ = bags_from_groups(np.arange(4.0), [1, 0, 1, 0])
    assert [bag.tolist() for bag in bags] == [[[1.0], [3.0]], [[0.0], [2.0]]]


def test_other_cuts_of_the_same_rows_are_other_bags():
    rows = random_bags((12,))[0]
    one = DistributionKernel(mh.Gaussian(1.0)).fit_transform([rows[:5], rows[5:]])
    other = DistributionKernel(mh.Gaussian(1.0)).fit_transform([rows[:6], rows[6:]])
    assert (one != other).any()


def test_results_belong_to_the_caller():
    bags = random_bags()
    fitted = DistributionKernel()
    want = fitted.fit_transform(bags).copy()
    for result in (fitted.fit_transform(bags), fitted.transform(bags)):
        result[:] = 0
    assert_array_equal(fitted.fit_transform(bags), want)
    assert_allclose(fitted.transform(bags), want, rtol=1e-12)


# ---------------------------------------------------------------- kernels between mean elements

LEVEL2 = {
    "linear": "linear",
    "Linear": mh.Linear(),
    "polynomial": mh.Polynomial(degree=2, constant=0.5),
    "gaussian": mh.Gaussian(bandwidth=0.7),
    "laplace": mh.Laplace(bandwidth=0.7),
    "matern_half": mh.Matern(nu=0.5, bandwidth=0.7),
    "matern": mh.Matern(nu=1.5, bandwidth=0.7),
    "matern_smooth": mh.Matern(nu=2.5, bandwidth=0.7),
    "sum": 2.0 * mh.Linear() + mh.Gaussian(bandwidth=0.7),
    "product": mh.Polynomial(degree=2, constant=0.5) * mh.Gaussian(bandwidth=0.7),
}


@pytest.mark.parametrize("name", LEVEL2)
@pytest.mark.usefixtures("small_tiles")
def test_level_2_is_a_function_of_elements(name):
    level2, kernel = LEVEL2[name], mh.Gaussian(1.2)
    train, test = random_bags(), random_bags((5, 1, 12), seed=1)
    profiles = {
        "polynomial": lambda f, g: (f.inner(g) + 0.5) ** 2,
        "gaussian": lambda f, g: np.exp(-(f.distance(g) ** 2) / (2 * 0.7**2)),
        "laplace": lambda f, g: np.exp(-f.distance(g) / 0.7),
        "sum": lambda f, g: 2 * f.inner(g) + np.exp(-(f.distance(g) ** 2) / (2 * 0.7**2)),
        "product": lambda f, g: (f.inner(g) + 0.5) ** 2 * np.exp(-(f.distance(g) ** 2) / (2 * 0.7**2)),
        **{
            key: lambda f, g, nu=nu: oracles.matern(np.zeros(1), np.array([f.distance(g)]), nu=nu, bandwidth=0.7)
            for key, nu in (("matern_half", 0.5), ("matern", 1.5), ("matern_smooth", 2.5))
        },
    }
    profile = profiles.get(name, lambda f, g: f.inner(g))
    fitted = DistributionKernel(kernel, level2=level2).fit(train)
    want = [[profile(f, g) for g in elements(kernel, train)] for f in elements(kernel, test)]
    assert_allclose(fitted.transform(test), want, rtol=1e-10)
    want = [[profile(f, g) for g in elements(kernel, train)] for f in elements(kernel, train)]
    assert_allclose(fitted.fit_transform(train), want, rtol=1e-10)


@pytest.mark.parametrize("level2", [mh.Gaussian(), mh.Matern(), mh.Laplace()])
@pytest.mark.parametrize("n", [2, 7, 8])
def test_the_level_2_median_is_over_pairs_of_bags(level2, n):
    bags = random_bags((6,) * n)
    fitted = DistributionKernel(mh.Gaussian(1.0), level2=level2).fit(bags)
    f = elements(mh.Gaussian(1.0), bags)
    distances = np.array([f[i].distance(f[j]) for i in range(n) for j in range(i + 1, n)])
    want = np.median(distances) if isinstance(level2, mh.Laplace) else np.sqrt(np.median(distances**2))
    assert_allclose(fitted.level2_.bandwidth, want, rtol=1e-10)
    assert fitted.level2 == level2


@pytest.mark.parametrize("name", LEVEL2)
def test_gram_matrices_are_positive_semidefinite(name):
    K = DistributionKernel(level2=LEVEL2[name]).fit_transform(random_bags((1, 1, 2, 5, 8, 20) * 3))
    assert np.linalg.eigvalsh(K)[0] >= -1e-12 * np.trace(K)


def test_equal_bags_are_equal():
    base = random_bags((20,), d=8)[0]
    bags = [base, *random_bags((700, 3, 5), d=8, seed=1), base.copy(), base[::-1]]
    for level2 in (mh.Gaussian(), mh.Laplace(), mh.Matern(nu=0.5)):
        K = DistributionKernel(level2=level2).fit_transform(bags)
        assert_array_equal(K[np.ix_([0, 4, 5], [0, 4, 5])], 1.0)


def test_identical_bags():
    bags = [random_bags((20,))[0]] * 5
    assert_array_equal(DistributionKernel(level2=mh.Gaussian(1.0)).fit_transform(bags), 1.0)


def test_mostly_identical_bags_warn():
    bags = [random_bags((20,))[0]] * 6 + random_bags((4,))
    with pytest.warns(UserWarning, match="half of the pairs of bags coincide"):
        fitted = DistributionKernel(level2=mh.Gaussian()).fit(bags)
    assert fitted.level2_.bandwidth > 0.01


# ---------------------------------------------------------------- sums over pairs of bags

SUM_SIZES = (1, 30, 2, 2, 17, 40, 1, 8)


def bags_of(sizes, seed=0, dtype=np.float64):
    rows = np.random.default_rng(seed).normal(size=(sum(sizes), 3)).astype(dtype)
    return Bags(rows, np.cumsum([0, *sizes]))


def weights_of(bags, seed=1):
    return np.random.default_rng(seed).normal(size=len(bags.rows))


@pytest.fixture
def threaded_tiles(monkeypatch):
    monkeypatch.setattr(bags_module, "BLOCK", 16)
    monkeypatch.setattr(gram, "THREADED", 0)


def sums_by_pairs(A, a, B, b):
    """Sums and magnitudes of the Gaussian kernel of width 1.5."""
    left, right = zip(A.parts(A.rows), A.parts(a), strict=True), list(zip(B.parts(B.rows), B.parts(b), strict=True))

    def k(x, y):
        return oracles.gaussian(x, y, 1.5)

    found = [[oracles.kernel_sum(k, X, Y, beta, gamma) for Y, gamma in right] for X, beta in left]
    return np.moveaxis(np.array(found), -1, 0)


@pytest.mark.usefixtures("threaded_tiles")
@pytest.mark.parametrize("compiled", [0, np.inf], ids=["compiled", "numpy"])
@pytest.mark.parametrize("far", [0.0, 100.0])
def test_sums_equal_those_of_pairs(compiled, far, monkeypatch):
    """With a far row some tiles are refused by the compiled code."""
    monkeypatch.setattr(gram, "COMPILED", compiled)
    A, B = bags_of(SUM_SIZES), bags_of(SUM_SIZES[::-1][:5], 2)
    A.rows[40, 1] += far
    a, b, kernel = weights_of(A), weights_of(B, 3), mh.Gaussian(1.5)
    for ours, (value, magnitude) in (
        (bag_sums(kernel, A, a, B, b), sums_by_pairs(A, a, B, b)),
        (bag_sums(kernel, A, a, A, a), sums_by_pairs(A, a, A, a)),
    ):
        assert (np.abs(ours - value) <= 2e-13 * magnitude + 1e-300).all()  # 1e-13 for the kernel values, and the sums


@pytest.mark.usefixtures("threaded_tiles")
@pytest.mark.parametrize("compiled", [0, np.inf], ids=["compiled", "numpy"])
@pytest.mark.parametrize("workers", [2, 5])
def test_the_number_of_threads_does_not_matter(workers, compiled, monkeypatch):
    monkeypatch.setattr(gram, "COMPILED", compiled)
    A, kernel = bags_of(SUM_SIZES), mh.Gaussian(1.5)
    a = weights_of(A)
    monkeypatch.setattr(gram, "effective_n_jobs", lambda _: 1)
    expected = bag_sums(kernel, A, a, A, a)
    monkeypatch.setattr(gram, "effective_n_jobs", lambda _: workers)
    assert_array_equal(bag_sums(kernel, A, a, A, a), expected)
    assert_array_equal(expected, expected.T)


@pytest.mark.skipif(find_spec("numba") is None, reason="numba is missing: pip install 'muhat[fast]'")
@pytest.mark.usefixtures("threaded_tiles")
def test_large_sums_are_compiled(monkeypatch):
    A, kernel = bags_of(SUM_SIZES), mh.Gaussian(1.5)
    values, a = [], weights_of(A)
    evaluate = mh.Gaussian.evaluate
    monkeypatch.setattr(
        "muhat.bags.distribution_kernel.evaluate_fast", lambda kernel, X, Y: values.append(X) or evaluate(kernel, X, Y)
    )
    bag_sums(kernel, A, a, A, a)
    assert values
    values.clear()
    monkeypatch.setattr(gram, "COMPILED", 0)
    bag_sums(kernel, A, a, A, a)
    assert not values


@pytest.mark.usefixtures("threaded_tiles")
def test_threads_keep_the_callers_settings_for_warnings(monkeypatch):
    """Values that overflow are reported once, by who asked for the sums."""
    monkeypatch.setattr(gram, "effective_n_jobs", lambda _: 2)
    huge = [1e200 * np.ones((20, 2)), -1e200 * np.ones((20, 2))]
    with pytest.raises(ValueError, match="overflows on these bags"):
        mh.DistributionKernel(mh.Linear()).fit(huge)
