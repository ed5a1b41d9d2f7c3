"""The support measure machines: what they learn, and what a search over them computes."""

import numpy as np
import pytest
from bag_samples import Counting, labelled_bags, random_bags
from joblib import Memory, parallel_config
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVC, OneClassSVM

import muhat as mh
from muhat.bags.distribution_kernel import DistributionKernel
from muhat.bags.support_measure import OneClassSupportMeasureMachine, SupportMeasureClassifier
from paper.data import draw_bags

pytestmark = pytest.mark.filterwarnings("ignore:bags have .* rows, and small bags")

# ---------------------------------------------------------------- the machines are scikit-learn's, on bags


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("level2", ["linear", mh.Gaussian(), mh.Matern()])
def test_classifier_is_svc_on_the_gram_matrix(level2, n_classes):
    (train, y), (test, _) = labelled_bags(n_classes=n_classes), labelled_bags(seed=1)
    kernel = DistributionKernel(level2=level2)
    svc = SVC(kernel="precomputed", C=3.0).fit(kernel.fit_transform(train), y)
    machine = SupportMeasureClassifier(level2=level2, C=3.0).fit(train, y)
    assert_array_equal(machine.predict(test), svc.predict(kernel.transform(test)))
    assert_array_equal(machine.decision_function(test), svc.decision_function(kernel.transform(test)))
    assert_array_equal(machine.support_, svc.support_)
    assert (machine.kernel_, machine.level2_) == (kernel.kernel_, kernel.level2_)


def test_one_class_machine_is_one_class_svm_on_the_gram_matrix():
    (train, _), (test, _) = labelled_bags(), labelled_bags(seed=1)
    kernel = DistributionKernel(level2=mh.Gaussian())
    svm = OneClassSVM(kernel="precomputed", nu=0.3).fit(kernel.fit_transform(train))
    machine = OneClassSupportMeasureMachine(nu=0.3).fit(train)
    K = kernel.transform(test)
    assert_array_equal(machine.score_samples(test), svm.score_samples(K))
    # scikit-learn subtracts the offset before it rounds.
    assert_allclose(machine.decision_function(test), svm.decision_function(K), rtol=0, atol=1e-14)
    assert_array_equal(machine.predict(test), svm.predict(K))
    assert set(machine.predict(test)) == {-1, 1}
    assert_array_equal(machine.fit_predict(train), machine.fit(train).predict(train))


def test_classes_that_differ_in_covariance_alone():
    """All bags have mean zero, so that their averages say nothing of the class; their mean elements do."""
    rng = np.random.default_rng(0)
    y = np.arange(120) % 2
    rotations = [np.array([[1.0, 0.8], [0.8, 1.0]]), np.array([[1.0, -0.8], [-0.8, 1.0]])]
    bags = [rng.multivariate_normal(np.zeros(2), rotations[label], size=20) for label in y]
    assert cross_val_score(SupportMeasureClassifier(), bags, y, cv=4).mean() > 0.95
    assert cross_val_score(SupportMeasureClassifier(kernel=mh.Linear(), level2="linear"), bags, y, cv=4).mean() < 0.65


def test_group_anomalies():
    rng = np.random.default_rng(0)
    normal = np.concatenate([rng.normal(-2, 1, size=(400, 2)), rng.normal(2, 1, size=(400, 2))])
    odd = normal[:400]  # every row of an odd bag is a normal one
    train, _ = draw_bags(normal, odd, n_normal=60, n_anomalous=0, size=15, rng=np.random.default_rng(1))
    test, labels = draw_bags(normal, odd, n_normal=30, n_anomalous=30, size=15, share=1.0, rng=np.random.default_rng(2))
    machine = OneClassSupportMeasureMachine(nu=0.1).fit(train)
    assert roc_auc_score(labels, machine.score_samples(test)) > 0.95
    assert (machine.predict(train) < 0).mean() <= 0.15


def test_labels_of_any_kind():
    bags, y = labelled_bags(n_classes=3)
    numbers = SupportMeasureClassifier(C=100.0).fit(bags, y)
    names = np.array(["small", "tall", "wide"])
    words = SupportMeasureClassifier(C=100.0).fit(bags, names[y])
    assert words.classes_.tolist() == ["small", "tall", "wide"]
    assert_array_equal(words.predict(bags), names[numbers.predict(bags)])
    assert words.decision_function(bags).shape == (len(bags), 3)
    assert words.score(bags, names[y]) > 0.8


def test_probabilities_by_calibration():
    bags, y = labelled_bags(60, n_classes=3)
    calibrated = CalibratedClassifierCV(SupportMeasureClassifier(), cv=3).fit(bags, y)
    probabilities = calibrated.predict_proba(bags)
    assert_allclose(probabilities.sum(axis=1), 1)
    assert (probabilities.argmax(axis=1) == y).mean() > 0.8


# ---------------------------------------------------------------- searches


def counted_search(grid, kernel, memory=None, **options):
    """Kernel values that a search computes, and its scores."""
    Counting.values = 0
    bags, y = labelled_bags(low=2)
    machine = SupportMeasureClassifier(kernel=kernel, memory=memory, **options)
    search = GridSearchCV(machine, grid, cv=3, refit=False, return_train_score=True).fit(bags, y)
    return Counting.values, search.cv_results_


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bandwidth", "options"),
    [("median", {}), (2.0, {"mean": mh.ShrunkKernelMean()}), (2.0, {"whiten": True}), ("median", {"pool": True})],
    ids=str,
)
def test_a_search_with_memory_computes_each_gram_matrix_once(bandwidth, options, tmp_path):
    once, _ = counted_search({"C": [1.0]}, Counting(bandwidth), tmp_path / "once", **options)
    many, _ = counted_search({"C": [0.1, 1.0, 10.0]}, Counting(bandwidth), tmp_path / "many", **options)
    assert many == once > 0
    level2 = {"level2": ["linear", mh.Gaussian(), mh.Gaussian(0.2)], "C": [1.0, 10.0]}
    assert (
        counted_search(level2, Counting(bandwidth), Memory(str(tmp_path / "level2"), verbose=0), **options)[0] == once
    )
    assert counted_search(level2, Counting(bandwidth), tmp_path / "level2", **options)[0] == 0
    assert counted_search(level2, Counting(bandwidth), **options)[0] >= 6 * once
    ridges = {"ridge": [0.01, 0.05, 1.0], "C": [1.0, 10.0]}
    assert counted_search(ridges, Counting(bandwidth), tmp_path / "ridges", **options)[0] == once


def test_memory_changes_no_result(tmp_path):
    grid = {"kernel__bandwidth": [0.5, 3.0], "level2__bandwidth": [0.1, "median"], "C": [0.1, 10.0]}
    _, kept = counted_search(grid, Counting(), tmp_path)
    _, plain = counted_search(grid, Counting())
    for k in range(3):
        assert_array_equal(kept[f"split{k}_test_score"], plain[f"split{k}_test_score"])


def test_changed_bags_are_other_bags(tmp_path):
    bags, y = labelled_bags(low=2)
    machine = SupportMeasureClassifier(memory=tmp_path)
    first = machine.fit(bags, y).decision_function(bags)
    bags[0][0] += 1.0
    assert_array_equal(
        machine.fit(bags, y).decision_function(bags), SupportMeasureClassifier().fit(bags, y).decision_function(bags)
    )
    assert not np.array_equal(machine.decision_function(bags), first)


SEARCHES = {
    "nested parameters": (
        SupportMeasureClassifier(mean=mh.ShrunkKernelMean()),
        {"mean__shrinkage": [0.1, "loo"], "kernel__bandwidth": [1.0, "median"], "level2__bandwidth": [0.3, "median"]},
    ),
    "whole kernels and means": (
        SupportMeasureClassifier(),
        {
            "kernel": [mh.Gaussian(), mh.Laplace()],
            "mean": [None, mh.SpectralKernelMean(lam=0.1)],
            "level2": [mh.Matern()],
        },
    ),
    "one class": (OneClassSupportMeasureMachine(), {"nu": [0.1, 0.5]}),
}


@pytest.mark.parametrize("name", SEARCHES)
def test_searches(name):
    machine, grid = SEARCHES[name]
    bags, y = labelled_bags(30)
    search = GridSearchCV(machine, grid, cv=3, scoring="accuracy").fit(bags, np.ones(30) if name == "one class" else y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_score_ > 0.6
    assert machine.get_params()["kernel__bandwidth"] == "median"


def test_threads_and_pipelines():
    bags, y = labelled_bags(30)
    scaled = FunctionTransformer(lambda bags: [bag / 10 for bag in bags])
    plain = cross_val_score(SupportMeasureClassifier(), bags, y, cv=3)
    assert_array_equal(cross_val_score(make_pipeline(scaled, SupportMeasureClassifier()), bags, y, cv=3), plain)
    with parallel_config("threading", n_jobs=2):
        assert_array_equal(cross_val_score(SupportMeasureClassifier(), bags, y, cv=3), plain)


# ---------------------------------------------------------------- pooled means, weights


@pytest.mark.parametrize("whiten", [False, True])
def test_a_pooled_kernel_is_that_of_the_prior(whiten):
    train, test = random_bags(), random_bags((5, 1, 40), seed=1)
    features = mh.Nystroem(n_components=20, random_state=0)
    kernel = DistributionKernel(mh.Gaussian(1.5), pool=True, whiten=whiten, features=features, ridge=0.2).fit(train)
    prior = mh.BagPrior(mh.Gaussian(1.5), features, ridge=0.2).fit(train)
    if whiten:
        want = prior.transform(test) @ prior.transform(train).T
    else:
        span = [mh.Element(prior.kernel_, f.measures[0]) for f in prior.means(test)]
        kept = [len(f.measures[0]) == 20 for f in span]  # others keep their averages
        want = np.array([[f.inner(g) for g in prior.means(train)] for f in span])
        both = np.ix_(kept, [len(g.measures[0]) == 20 for g in prior.means(train)])
        assert_allclose(kernel.transform(test)[both], want[both], rtol=1e-6)
        return
    assert_allclose(kernel.transform(test), want, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("whiten", [False, True])
def test_pooled_machines_learn(whiten):
    machine = SupportMeasureClassifier(pool=True, whiten=whiten)
    (train, y), (test, truth) = labelled_bags(40, low=2), labelled_bags(40, seed=1, low=2)
    assert machine.fit(train, y).score(test, truth) > 0.5


def test_weights_of_classes_and_bags():
    (train, y), (test, _) = labelled_bags(), labelled_bags(seed=1)
    kernel = DistributionKernel(level2=mh.Gaussian())
    K, L = kernel.fit_transform(train), kernel.transform(test)
    weights = np.random.default_rng(0).uniform(0.1, 2.0, size=len(y))
    svc = SVC(kernel="precomputed", class_weight={0: 5.0}).fit(K, y, sample_weight=weights)
    machine = SupportMeasureClassifier(class_weight={0: 5.0}).fit(train, y, sample_weight=weights)
    assert_array_equal(machine.decision_function(test), svc.decision_function(L))
