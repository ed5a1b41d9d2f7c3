"""Whitened and feature-based kernels of bags: against explicit computation, and on hard input."""

import numpy as np
import pytest
from bag_samples import Counting, labelled_bags, random_bags
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import muhat as mh
from muhat.bags import moments
from muhat.bags.distribution_kernel import DistributionKernel
from muhat.bags.support_measure import OneClassSupportMeasureMachine, SupportMeasureClassifier, SupportMeasureRegressor

pytestmark = pytest.mark.filterwarnings("ignore:bags have .* rows, and small bags")


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


def test_true_is_the_ridge_that_is_documented():
    bags = random_bags()
    want = DistributionKernel(whiten=True, ridge=0.05).fit_transform(bags)
    assert_array_equal(DistributionKernel(whiten=True).fit_transform(bags), want)
    one = DistributionKernel(whiten=True, ridge=1.0).fit_transform(bags)
    assert not np.allclose(one, want, rtol=1e-3)


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
    alone = np.concatenate([fitted.transform([bag]) for bag in test])
    assert_allclose(alone, together, rtol=1e-10, atol=1e-12)
    far = fitted.transform([*test[:2], 1e3 * test[2], test[3] + 50.0])
    assert_allclose(far[:2], together[:2], rtol=1e-10, atol=1e-12)
    again = DistributionKernel(mean=mean, level2=mh.Gaussian(), whiten=True).fit(train).transform(test)
    assert_allclose(again, together, rtol=1e-10, atol=1e-12)
    assert fitted.fit(train).kernel_ == mh.Gaussian().resolve(np.concatenate(train))


def test_the_training_rows_of_transform_are_the_gram_matrix():
    bags = random_bags()
    fitted = DistributionKernel(level2=mh.Gaussian(), whiten=True, ridge=0.3)
    K = fitted.fit_transform(bags)
    assert_allclose(fitted.transform(bags), K, atol=1e-10)
    assert np.linalg.eigvalsh(K).min() > -1e-10


HARD = {
    "one bag": [np.random.default_rng(0).normal(size=(6, 2))],
    "one bag of one row among others": random_bags((1, 5, 5), d=2),
    "bags that are equal": [np.random.default_rng(0).normal(size=(6, 2))] * 4,
    "duplicate rows": [np.repeat(bag, 3, axis=0) for bag in random_bags((3, 4, 5), d=2)],
    "a constant column": [np.column_stack([bag, np.ones(len(bag))]) for bag in random_bags((3, 4, 5), d=2)],
    "float32": [bag.astype(np.float32) for bag in random_bags((3, 4, 5), d=2)],
    "huge": [1e100 * bag for bag in random_bags((3, 4, 5), d=2)],
    "tiny": [1e-100 * bag for bag in random_bags((3, 4, 5), d=2)],
    "shifted": [bag + 1e6 for bag in random_bags((3, 4, 5), d=2)],
}


@pytest.mark.parametrize("kernel", [mh.Gaussian(), mh.Linear()])
@pytest.mark.parametrize("case", HARD)
def test_hard_bags_give_finite_kernels(case, kernel):
    bags = HARD[case]
    fitted = DistributionKernel(kernel, level2=mh.Gaussian(1.0), whiten=True)
    K = fitted.fit_transform(bags)
    assert np.isfinite(K).all()
    assert_allclose(np.diag(K), 1)
    assert np.isfinite(fitted.transform(bags)).all()
    if case == "bags that are equal":
        assert_array_equal(K, 1)


@pytest.mark.parametrize("scale", [1e-100, 1e-5, 1e5, 1e100])
def test_units_do_not_matter(scale):
    bags = random_bags()
    for kernel in (mh.Gaussian(), mh.Linear()):
        want = DistributionKernel(kernel, whiten=True).fit_transform(bags)
        got = DistributionKernel(kernel, whiten=True).fit_transform([scale * bag for bag in bags])
        assert_allclose(got, want, rtol=1e-7, atol=1e-7)


def test_without_a_covariance_within_bags_means_are_centred_with_a_word():
    bags = random_bags((1,) * 6)
    with pytest.warns(UserWarning, match="no bag has two rows that differ"):
        K = DistributionKernel(mh.Linear(), whiten=True).fit_transform(bags)
    rows = np.concatenate(bags) - np.concatenate(bags).mean(axis=0)
    assert_allclose(K, rows @ rows.T, atol=1e-10)


def test_whitening_finds_a_small_shift_under_large_noise():
    rng = np.random.default_rng(0)
    y = np.arange(120) % 2
    bags = [rng.normal(size=(10, 2)) * [10.0, 0.3] + [0.0, 0.4 * label] for label in y]
    options = {"kernel": mh.Linear(), "level2": mh.Gaussian(), "C": 1.0}
    plain = SupportMeasureClassifier(**options).fit(bags[:60], y[:60]).score(bags[60:], y[60:])
    whitened = SupportMeasureClassifier(**options, whiten=True).fit(bags[:60], y[:60]).score(bags[60:], y[60:])
    assert whitened > plain + 0.1
    assert whitened > 0.95


@pytest.mark.parametrize(
    "machine", [SupportMeasureClassifier(), SupportMeasureRegressor(), OneClassSupportMeasureMachine()]
)
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


def test_a_search_over_the_ridge_computes_features_once_a_fold(tmp_path):
    bags, y = labelled_bags(n=30, low=2)

    def values(grid):
        Counting.values = 0
        machine = SupportMeasureClassifier(kernel=Counting(1.0), whiten=True, memory=str(tmp_path / str(len(grid))))
        search = GridSearchCV(machine, grid, cv=3, refit=False)
        assert np.isfinite(search.fit(bags, y).cv_results_["mean_test_score"]).all()
        return Counting.values

    assert values({"ridge": [0.01, 0.05, 1.0], "C": [1.0, 10.0]}) == values({"C": [1.0]}) > 0


def test_features_without_a_seed_are_drawn_anew():
    bags = random_bags()
    estimator = DistributionKernel(features=mh.Nystroem(n_components=5))
    assert not np.array_equal(estimator.fit_transform(bags), estimator.fit_transform(bags))
