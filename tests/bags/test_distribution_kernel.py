"""Kernel between bags: inner products of mean elements, kernels of those, and sums over pairs of bags."""

from importlib.util import find_spec

import numpy as np
import oracles
import pandas as pd
import pytest
from bag_samples import SIZES, Counting, labelled_bags, random_bags
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
from muhat.bags import moments
from muhat.bags.data import Bags, bags_from_groups
from muhat.bags.distribution_kernel import DistributionKernel, bag_sums
from muhat.bags.support_measure import OneClassSupportMeasureMachine, SupportMeasureClassifier
from muhat.kernels import tiles

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


# ---------------------------------------------------------------- bags


def test_equal_sizes_stay_bags():
    bags = random_bags((4,) * 6)
    want = DistributionKernel().fit_transform(bags)
    for same in (np.stack(bags), tuple(bags), pd.Series(bags), [bag.tolist() for bag in bags]):
        assert_array_equal(DistributionKernel().fit_transform(same), want)


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


def test_vectors_are_bags_of_one_column():
    vectors = [bag[:, 0] for bag in random_bags()]
    want = DistributionKernel().fit_transform([vector[:, None] for vector in vectors])
    assert_array_equal(DistributionKernel().fit_transform(vectors), want)
    frames = [pd.Series(vector, name="a") for vector in vectors]
    assert_array_equal(DistributionKernel().fit_transform(frames), want)
    bags, _ = bags_from_groups(np.arange(4.0), [1, 0, 1, 0])
    assert [bag.tolist() for bag in bags] == [[[1.0], [3.0]], [[0.0], [2.0]]]


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
    monkeypatch.setattr(tiles, "THREADED", 0)


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
    monkeypatch.setattr(tiles, "COMPILED", compiled)
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
    monkeypatch.setattr(tiles, "COMPILED", compiled)
    A, kernel = bags_of(SUM_SIZES), mh.Gaussian(1.5)
    a = weights_of(A)
    monkeypatch.setattr(tiles, "effective_n_jobs", lambda _: 1)
    expected = bag_sums(kernel, A, a, A, a)
    monkeypatch.setattr(tiles, "effective_n_jobs", lambda _: workers)
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
    monkeypatch.setattr(tiles, "COMPILED", 0)
    bag_sums(kernel, A, a, A, a)
    assert not values


@pytest.mark.usefixtures("threaded_tiles")
def test_threads_keep_the_callers_settings_for_warnings(monkeypatch):
    """Values that overflow are reported once, by who asked for the sums."""
    monkeypatch.setattr(tiles, "effective_n_jobs", lambda _: 2)
    huge = [1e200 * np.ones((20, 2)), -1e200 * np.ones((20, 2))]
    with pytest.raises(ValueError, match="overflows on these bags"):
        mh.DistributionKernel(mh.Linear()).fit(huge)


# ---------------------------------------------------------------- whitened and in features


def whitened_rows(bags, others, ridge, weights=None):
    """The formula in the space of the rows, where the kernel is linear: whitened means of bags, and of others."""
    weigh = weights or (lambda bag: np.full(len(bag), 1 / len(bag)))
    means = np.array([weigh(bag) @ bag for bag in bags])
    deviations = np.concatenate([bag - bag.mean(axis=0) for bag in bags])
    W = deviations.T @ deviations / sum(len(bag) - 1 for bag in bags)
    g, V = np.linalg.eigh(W + ridge * np.trace(W) / len(W) * np.eye(len(W)))
    root = V @ np.diag(g**-0.5) @ V.T
    return [(np.array([weigh(bag) @ bag for bag in some]) - means.mean(axis=0)) @ root for some in (bags, others)]


def shrunk_weights(bag):
    return np.ones(1) if len(bag) == 1 else mh.ShrunkKernelMean(mh.Linear()).fit(bag).weights_


@pytest.mark.parametrize("ridge", [0.001, 0.05, 3.0])
@pytest.mark.parametrize("recipe", [None, mh.ShrunkKernelMean()])
@pytest.mark.parametrize("rows", [7, 1024])
def test_the_formula_in_the_space_of_the_rows(ridge, recipe, rows, monkeypatch):
    monkeypatch.setattr(moments, "_ROWS", rows)  # blocks that cut bags
    train, test = random_bags(), random_bags((5, 1, 12), seed=1)
    U, V = whitened_rows(train, test, ridge, None if recipe is None else shrunk_weights)
    fitted = DistributionKernel(mh.Linear(), mean=recipe, whiten=True, ridge=ridge)
    assert_allclose(fitted.fit_transform(train), U @ U.T, rtol=1e-8, atol=1e-9)
    assert_allclose(fitted.transform(test), V @ U.T, rtol=1e-8, atol=1e-9)
    gaussian = DistributionKernel(mh.Linear(), mean=recipe, level2=mh.Gaussian(2.0), whiten=True, ridge=ridge).fit(
        train
    )
    squared = np.square(V[:, None] - U).sum(axis=2)
    assert_allclose(gaussian.transform(test), np.exp(-squared / 8), rtol=1e-8)


@pytest.mark.parametrize(("rows", "landmarks"), [(40, 40), (2000, 500), (14400, 600)])
def test_more_rows_more_landmarks(rows, landmarks):
    X = np.random.default_rng(0).normal(size=(rows, 1))
    assert len(moments.fit_features(None, mh.Linear(), X).landmarks_) == landmarks


def test_a_large_ridge_leaves_the_centred_means():
    bags = random_bags()
    G = DistributionKernel(mh.Gaussian(1.0)).fit_transform(bags)
    H = np.eye(len(G)) - 1 / len(G)
    K = DistributionKernel(mh.Gaussian(1.0), whiten=True, ridge=1e9).fit_transform(bags)
    assert_allclose(K / np.trace(K), H @ G @ H / np.trace(H @ G @ H), atol=1e-8)


@pytest.mark.parametrize("level2", ["linear", mh.Gaussian(), mh.Polynomial(2)])
@pytest.mark.parametrize("mean", [None, mh.ShrunkKernelMean(), mh.SpectralKernelMean(lam=0.1)])
def test_features_on_all_rows_are_exact(level2, mean):
    train, test = random_bags(), random_bags((5, 1, 12), seed=1)
    everything = mh.Nystroem(landmarks=np.concatenate(train + test))
    exact = DistributionKernel(mh.Gaussian(1.5), mean, level2)
    approximate = DistributionKernel(mh.Gaussian(1.5), mean, level2, features=everything)
    assert_allclose(approximate.fit_transform(train), exact.fit_transform(train), atol=1e-8)
    assert_allclose(approximate.transform(test), exact.transform(test), atol=1e-8)
    assert exact.approximation_error_ == 0
    assert approximate.approximation_error_ < 1e-8


@pytest.mark.parametrize(
    "features", [mh.Nystroem(n_components=40, random_state=0), mh.Fourier(n_components=4000, random_state=0)]
)
def test_features_are_near_and_say_how_near(features):
    bags = random_bags((20,) * 15)
    exact = DistributionKernel().fit_transform(bags)
    fitted = DistributionKernel(features=features).fit(bags)
    error = np.abs(fitted.transform(bags) - exact).max()
    assert 1e-6 < error < 0.05
    assert error <= 4 * fitted.approximation_error_  # Nyström: the mean over bags is a bound


def test_the_work_of_features_is_linear_in_the_rows():
    work = []
    for n in (40, 80):
        Counting.values = 0
        DistributionKernel(Counting(1.0), features=mh.Nystroem(n_components=20, random_state=0)).fit(
            random_bags((10,) * n)
        )
        work.append(Counting.values - 20 * 20)
    assert work[1] == 2 * work[0]


@pytest.mark.parametrize("mean", [None, mh.ShrunkKernelMean()])
def test_test_bags_do_not_leak(mean):
    train, test = random_bags(), random_bags((5, 1, 12, 30), seed=1)
    fitted = DistributionKernel(mean=mean, level2=mh.Gaussian(), whiten=True).fit(train)
    together = fitted.transform(test)
    far = fitted.transform([*test[:2], 1e3 * test[2], test[3] + 50.0])
    assert_allclose(far[:2], together[:2], rtol=1e-10, atol=1e-12)
    again = DistributionKernel(mean=mean, level2=mh.Gaussian(), whiten=True).fit(train).transform(test)
    assert_allclose(again, together, rtol=1e-10, atol=1e-12)
    assert fitted.fit(train).kernel_ == mh.Gaussian().resolve(np.concatenate(train))


def test_without_a_covariance_within_bags_means_are_centred_with_a_word():
    bags = random_bags((1,) * 6)
    with pytest.warns(UserWarning, match="no bag has two rows that differ"):
        K = DistributionKernel(mh.Linear(), whiten=True).fit_transform(bags)
    rows = np.concatenate(bags) - np.concatenate(bags).mean(axis=0)
    assert_allclose(K, rows @ rows.T, atol=1e-10)
    assert_allclose(DistributionKernel(whiten=True, level2=mh.Gaussian(1.0)).fit_transform(random_bags((6,))), 1.0)


def test_whitening_finds_a_small_shift_under_large_noise():
    rng = np.random.default_rng(0)
    y = np.arange(120) % 2
    bags = [rng.normal(size=(10, 2)) * [10.0, 0.3] + [0.0, 0.4 * label] for label in y]
    options = {"kernel": mh.Linear(), "level2": mh.Gaussian(), "C": 1.0}
    plain = SupportMeasureClassifier(**options).fit(bags[:60], y[:60]).score(bags[60:], y[60:])
    whitened = SupportMeasureClassifier(**options, whiten=True).fit(bags[:60], y[:60]).score(bags[60:], y[60:])
    assert whitened > plain + 0.1
    assert whitened > 0.95


@pytest.mark.filterwarnings("ignore:bags have .* rows, and small bags")
@pytest.mark.parametrize("machine", [SupportMeasureClassifier(), OneClassSupportMeasureMachine()])
def test_machines_take_both(machine):
    bags, y = labelled_bags()
    features = mh.Nystroem(n_components=30, random_state=0)
    options = clone(machine).set_params(whiten=True, ridge=0.1, features=features, features__n_components=20)
    fitted = options.fit(bags, y)
    kernel = DistributionKernel(level2=mh.Gaussian(), whiten=True, ridge=0.1, features=clone(options.features)).fit(
        bags
    )
    assert_array_equal(fitted._gram(bags), kernel.transform(bags))
    assert "ridge=0.1" in repr(fitted)


def test_features_without_a_seed_are_drawn_anew():
    bags = random_bags()
    estimator = DistributionKernel(features=mh.Nystroem(n_components=5))
    assert not np.array_equal(estimator.fit_transform(bags), estimator.fit_transform(bags))
