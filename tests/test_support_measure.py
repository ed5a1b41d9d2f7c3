"""The support measure machines: what they learn, and scikit-learn's rules for estimators, on bags."""

import pickle
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from joblib import parallel_config
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone, is_classifier, is_outlier_detector, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVC, SVR, OneClassSVM

import muhat as mh
from muhat.bags import DistributionKernel, memo
from muhat.datasets import draw_bags
from muhat.support_measure import OneClassSupportMeasureMachine, SupportMeasureClassifier, SupportMeasureRegressor

MACHINES = {
    "classifier": SupportMeasureClassifier(),
    "linear_classifier": SupportMeasureClassifier(level2="linear", C=100.0),
    "shrunk_classifier": SupportMeasureClassifier(mean=mh.ShrunkKernelMean()),
    "regressor": SupportMeasureRegressor(),
    "one_class": OneClassSupportMeasureMachine(nu=0.3),
}
ESTIMATORS = {**MACHINES, "kernel": DistributionKernel(level2=mh.Gaussian())}
every_machine = pytest.mark.parametrize("name", MACHINES)
every_estimator = pytest.mark.parametrize("name", ESTIMATORS)


@pytest.fixture(autouse=True)
def _empty_memo():
    memo.clear()


def make_bags(n=24, n_classes=2, seed=0, d=2, low=1):
    """Bags around 0 which differ in scale, of many sizes; the labels are 0, 1, ..."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    return [rng.normal(scale=4.0**label, size=(rng.integers(low, 20), d)) for label in y], y


def outputs(estimator, bags):
    """Everything that a fitted estimator says of bags."""
    methods = ("predict", "decision_function", "score_samples", "transform")
    return {method: getattr(estimator, method)(bags) for method in methods if hasattr(estimator, method)}


def assert_same_outputs(one, other, bags, rtol=0.0, atol=0.0):
    for left, right in zip(outputs(one, bags).values(), outputs(other, bags).values(), strict=True):
        assert_allclose(left, right, rtol=rtol, atol=atol)


def fitted(name, **options):
    bags, y = make_bags(**options)
    return clone(ESTIMATORS[name]).fit(bags, y), bags, y


# ---------------------------------------------------------------- the machines are scikit-learn's, on bags


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("level2", ["linear", mh.Gaussian(), mh.Matern()])
def test_classifier_is_svc_on_the_gram_matrix(level2, n_classes):
    (train, y), (test, _) = make_bags(n_classes=n_classes), make_bags(seed=1)
    kernel = DistributionKernel(level2=level2)
    svc = SVC(kernel="precomputed", C=3.0).fit(kernel.fit_transform(train), y)
    machine = SupportMeasureClassifier(level2=level2, C=3.0).fit(train, y)
    assert_array_equal(machine.predict(test), svc.predict(kernel.transform(test)))
    assert_array_equal(machine.decision_function(test), svc.decision_function(kernel.transform(test)))
    assert_array_equal(machine.support_, svc.support_)
    assert (machine.kernel_, machine.level2_) == (kernel.kernel_, kernel.level2_)


def test_regressor_is_svr_on_the_gram_matrix():
    (train, y), (test, _) = make_bags(), make_bags(seed=1)
    kernel = DistributionKernel(level2=mh.Gaussian())
    svr = SVR(kernel="precomputed", C=3.0, epsilon=0.2).fit(kernel.fit_transform(train), y)
    machine = SupportMeasureRegressor(C=3.0, epsilon=0.2).fit(train, y)
    assert_array_equal(machine.predict(test), svr.predict(kernel.transform(test)))


def test_one_class_machine_is_one_class_svm_on_the_gram_matrix():
    (train, _), (test, _) = make_bags(), make_bags(seed=1)
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


def test_regression_on_the_spread():
    rng = np.random.default_rng(0)
    y = rng.uniform(1, 3, size=90)
    bags = [rng.normal(scale=scale, size=(rng.integers(30, 60), 2)) for scale in y]
    assert cross_val_score(SupportMeasureRegressor(C=10.0), bags, y, cv=3).min() > 0.85


def test_group_anomalies():
    rng = np.random.default_rng(0)
    normal = np.concatenate([rng.normal(-2, 1, size=(400, 2)), rng.normal(2, 1, size=(400, 2))])
    odd = normal[:400]  # every row of an odd bag is a normal one
    train, _ = draw_bags(normal, odd, n_normal=60, n_anomalous=0, size=15, random_state=1)
    test, labels = draw_bags(normal, odd, n_normal=30, n_anomalous=30, size=15, share=1.0, random_state=2)
    machine = OneClassSupportMeasureMachine(nu=0.1).fit(train)
    assert roc_auc_score(labels, machine.score_samples(test)) > 0.95
    assert (machine.predict(train) < 0).mean() <= 0.15


def test_labels_of_any_kind():
    bags, y = make_bags(n_classes=3)
    numbers = SupportMeasureClassifier(C=100.0).fit(bags, y)
    names = np.array(["small", "tall", "wide"])
    words = SupportMeasureClassifier(C=100.0).fit(bags, names[y])
    assert words.classes_.tolist() == ["small", "tall", "wide"]
    assert_array_equal(words.predict(bags), names[numbers.predict(bags)])
    assert words.decision_function(bags).shape == (len(bags), 3)
    assert words.score(bags, names[y]) > 0.8


def test_probabilities_by_calibration():
    bags, y = make_bags(60, n_classes=3)
    calibrated = CalibratedClassifierCV(SupportMeasureClassifier(), cv=3).fit(bags, y)
    probabilities = calibrated.predict_proba(bags)
    assert_allclose(probabilities.sum(axis=1), 1)
    assert (probabilities.argmax(axis=1) == y).mean() > 0.8


# ---------------------------------------------------------------- searches


@dataclass(frozen=True)
class Counting(mh.Gaussian):
    """A Gaussian kernel that counts its values."""

    values: ClassVar[int] = 0

    def _gram(self, X, Y):
        Counting.values += len(X) * len(Y)
        return super()._gram(X, Y)


def counted_search(grid, kernel, **options):
    """Kernel values that a search computes, and its scores."""
    memo.clear()
    Counting.values = 0
    bags, y = make_bags(low=2)
    machine = SupportMeasureClassifier(kernel=kernel, **options)
    search = GridSearchCV(machine, grid, cv=3, refit=False, return_train_score=True).fit(bags, y)
    return Counting.values, search.cv_results_


@pytest.mark.parametrize("mean", [None, mh.ShrunkKernelMean()], ids=["plain", "shrunk"])
@pytest.mark.parametrize("bandwidth", ["median", 2.0])
def test_a_search_over_c_computes_each_gram_matrix_once(bandwidth, mean):
    once, _ = counted_search({"C": [1.0]}, Counting(bandwidth), mean=mean)
    many, _ = counted_search({"C": [0.1, 1.0, 10.0, 100.0]}, Counting(bandwidth), mean=mean)
    assert many == once > 0
    level2 = {"level2": ["linear", mh.Gaussian(), mh.Gaussian(0.2)], "C": [1.0, 10.0]}
    assert counted_search(level2, Counting(bandwidth), mean=mean)[0] == once


def test_a_kernel_function_is_recalled_too():
    calls = []

    def function(X, Y):
        calls.append(1)
        return X @ Y.T

    bags, y = make_bags()
    for C in (1.0, 10.0):
        SupportMeasureClassifier(kernel=mh.as_kernel(function), C=C).fit(bags, y)
        assert len(calls) == 1


def test_what_is_recalled_changes_no_result():
    grid = {"kernel__bandwidth": [0.5, 3.0], "level2__bandwidth": [0.1, "median"], "C": [0.1, 10.0]}
    _, results = counted_search(grid, Counting())
    for params, *scores in zip(results["params"], *(results[f"split{k}_test_score"] for k in range(3)), strict=True):
        alone = counted_search({name: [value] for name, value in params.items()}, Counting())[1]
        assert [alone[f"split{k}_test_score"][0] for k in range(3)] == scores


def test_parameters_of_kernels_and_mean_in_a_grid():
    bags, y = make_bags(30)
    grid = {
        "mean__shrinkage": [0.1, "loo"],
        "kernel__bandwidth": [1.0, "median"],
        "level2__bandwidth": [0.3, "median"],
        "C": [1.0, 10.0],
    }
    machine = SupportMeasureClassifier(mean=mh.ShrunkKernelMean())
    search = GridSearchCV(machine, grid, cv=3).fit(bags, y)
    assert len(search.cv_results_["params"]) == 16
    assert search.best_score_ > 0.8
    assert machine.get_params()["kernel__bandwidth"] == "median"
    assert search.score(bags, y) > 0.8


def test_a_whole_kernel_or_mean_in_a_grid():
    bags, y = make_bags(30)
    grid = {
        "kernel": [mh.Gaussian(), mh.Laplace(), mh.Linear()],
        "mean": [None, mh.SpectralKernelMean(lam=0.1)],
        "level2": ["linear", mh.Matern()],
    }
    search = GridSearchCV(SupportMeasureClassifier(), grid, cv=2).fit(bags, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_searches_of_the_other_machines():
    bags, y = make_bags(30)
    assert GridSearchCV(SupportMeasureRegressor(), {"C": [1.0], "epsilon": [0.1, 0.5]}, cv=2).fit(bags, y).best_score_
    search = GridSearchCV(OneClassSupportMeasureMachine(), {"nu": [0.1, 0.5]}, cv=2, scoring="accuracy")
    assert search.fit(bags, np.ones(30)).best_params_["nu"] == 0.1


def test_threads_and_pipelines():
    bags, y = make_bags(30)
    scaled = FunctionTransformer(lambda bags: [bag / 10 for bag in bags])
    plain = cross_val_score(SupportMeasureClassifier(), bags, y, cv=3)
    assert_array_equal(cross_val_score(make_pipeline(scaled, SupportMeasureClassifier()), bags, y, cv=3), plain)
    memo.clear()
    with parallel_config("threading", n_jobs=2):
        assert_array_equal(cross_val_score(SupportMeasureClassifier(), bags, y, cv=3), plain)


# ---------------------------------------------------------------- scikit-learn's rules for estimators


@every_estimator
def test_clone_and_parameters(name):
    estimator = ESTIMATORS[name]
    copy = clone(estimator)
    assert copy is not estimator
    assert repr(copy) == repr(estimator)
    params = copy.get_params()
    assert {"kernel", "mean", "level2", "kernel__bandwidth"} <= set(params)
    copy.set_params(kernel__bandwidth=2.0)
    assert copy.kernel == mh.Gaussian(2.0)
    assert estimator.kernel == mh.Gaussian()
    assert copy.set_params(**params) is copy
    assert repr(copy) == repr(estimator)
    with pytest.raises(ValueError, match="parameter"):
        copy.set_params(bandwidth=2.0)


@every_estimator
def test_init_only_stores(name):
    estimator = type(ESTIMATORS[name])(kernel="nonsense", level2=3)
    assert (estimator.kernel, estimator.level2) == ("nonsense", 3)
    assert set(vars(estimator)) == set(estimator.get_params(deep=False))


@every_estimator
def test_fit_returns_self_and_keeps_parameters(name):
    estimator = clone(ESTIMATORS[name])
    before = repr(estimator), {key: id(value) for key, value in estimator.get_params(deep=False).items()}
    bags, y = make_bags()
    assert estimator.fit(bags, y) is estimator
    outputs(estimator, bags)
    after = repr(estimator), {key: id(value) for key, value in estimator.get_params(deep=False).items()}
    assert after == before


@every_estimator
def test_fitted_names_are_public_and_training_data_is_private(name):
    estimator, bags, _ = fitted(name)
    public = {key for key in vars(estimator) if not key.startswith("_")} - set(estimator.get_params(deep=False))
    assert all(key.endswith("_") for key in public)
    assert {"kernel_", "level2_", "n_features_in_"} <= public
    assert not any(
        isinstance(value, np.ndarray) and value.ndim > 1 for key, value in vars(estimator).items() if key in public
    )
    assert estimator.n_features_in_ == bags[0].shape[1]
    assert isinstance(estimator.kernel_.bandwidth, float)
    assert "kernel_" in estimator._repr_html_() or "SupportMeasure" in estimator._repr_html_() or name == "kernel"


@every_estimator
def test_fitting_again_changes_nothing(name):
    estimator, bags, y = fitted(name)
    again = clone(estimator).fit(bags, y)
    assert_same_outputs(again, estimator, bags)
    memo.clear()
    assert_same_outputs(again.fit(bags, y), estimator, bags)
    other, labels = make_bags(seed=5, d=3)
    assert_same_outputs(again.fit(other, labels), clone(estimator).fit(other, labels), other)


@every_estimator
def test_pickle(name):
    estimator, bags, _ = fitted(name)
    restored = pickle.loads(pickle.dumps(estimator))
    memo.clear()
    assert_same_outputs(restored, estimator, bags)
    assert repr(restored) == repr(estimator)


@every_estimator
def test_not_fitted(name):
    bags, _ = make_bags()
    for method in ("predict", "decision_function", "score_samples", "transform"):
        if hasattr(ESTIMATORS[name], method):
            with pytest.raises(NotFittedError):
                getattr(clone(ESTIMATORS[name]), method)(bags)


@every_estimator
def test_input_is_not_changed_nor_kept(name):
    bags, y = make_bags()
    before, labels = [bag.copy() for bag in bags], y.copy()
    estimator = clone(ESTIMATORS[name]).fit(bags, y)
    want = outputs(estimator, bags)
    for bag, old in zip(bags, before, strict=True):
        assert_array_equal(bag, old)
        bag[:] = 0.0
    assert_array_equal(y, labels)
    for got, expected in zip(outputs(estimator, before).values(), want.values(), strict=True):
        assert_array_equal(got, expected)


@every_estimator
def test_read_only_single_precision_and_other_layouts(name):
    bags, y = make_bags()
    bags = [bag.astype(np.float32) for bag in bags]
    want = clone(ESTIMATORS[name]).fit([bag.astype(float) for bag in bags], y)
    for bag in bags:
        bag.setflags(write=False)
    layouts = {
        "float32": bags,
        "fortran": [np.asfortranarray(bag) for bag in bags],
        "strided": [np.repeat(bag, 2, axis=1)[:, ::2] for bag in bags],
        "object": [bag.astype(object) for bag in bags],
        "lists": [bag.tolist() for bag in bags],
    }
    for same in layouts.values():
        estimator = clone(ESTIMATORS[name]).fit(same, y)
        assert_same_outputs(estimator, want, same)
        assert all(array.dtype.kind in "fi" for array in outputs(estimator, same).values())


@every_estimator
def test_the_order_of_bags_to_predict_does_not_matter(name):
    estimator, _, _ = fitted(name)
    bags, _ = make_bags(seed=1)
    order = np.random.default_rng(0).permutation(len(bags))
    shuffled, whole = outputs(estimator, [bags[i] for i in order]), outputs(estimator, bags)
    alone = outputs(estimator, bags[3:4])
    for method, values in whole.items():
        assert_allclose(shuffled[method], values[order], rtol=1e-10, atol=1e-12)
        assert_allclose(alone[method], values[3:4], rtol=1e-10, atol=1e-12)


@every_machine
def test_the_order_of_training_bags_does_not_matter(name):
    estimator, bags, y = fitted(name)
    order = np.random.default_rng(0).permutation(len(bags))
    other = clone(estimator).fit([bags[i] for i in order], y[order])
    # libsvm stops when its optimality conditions hold to 1e-3.
    method = "predict" if name == "regressor" else "decision_function"
    assert_allclose(getattr(other, method)(bags), getattr(estimator, method)(bags), rtol=0, atol=2e-3)
    assert_allclose(other.kernel_.bandwidth, estimator.kernel_.bandwidth, rtol=1e-12)


@every_machine
def test_rows_of_a_bag_have_no_order(name):
    estimator, bags, _ = fitted(name)
    assert_same_outputs(estimator, estimator, bags)
    for got, want in zip(
        outputs(estimator, [bag[::-1] for bag in bags]).values(), outputs(estimator, bags).values(), strict=True
    ):
        assert_allclose(got, want, rtol=1e-9, atol=1e-10)


@every_estimator
def test_bags_of_one_row_and_of_equal_sizes(name):
    rng = np.random.default_rng(0)
    y = np.arange(12) % 2
    for size in (1, 5):
        bags = [rng.normal(size=(size, 2)) + 3 * label for label in y]
        one, other = clone(ESTIMATORS[name]).fit(bags, y), clone(ESTIMATORS[name]).fit(np.stack(bags), y)
        assert_same_outputs(one, other, np.stack(bags))
        assert all(np.isfinite(values).all() for values in outputs(one, bags).values())


@every_estimator
def test_constant_columns_and_repeated_rows(name):
    bags, y = make_bags()
    bags = [np.repeat(np.column_stack([bag, np.full(len(bag), 7.0)]), 2, axis=0) for bag in bags]
    estimator = clone(ESTIMATORS[name]).fit(bags, y)
    assert all(np.isfinite(values).all() for values in outputs(estimator, bags).values())


@every_machine
def test_bad_bags_are_named_by_fit_and_predict(name):
    estimator, bags, y = fitted(name)
    broken = [*bags[:3], np.full((2, 2), np.nan), *bags[4:]]
    for call in (lambda: clone(estimator).fit(broken, y), lambda: estimator.predict(broken)):
        with pytest.raises(ValueError, match=r"bags\[3\].*NaN"):
            call()
    with pytest.raises(ValueError, match="list of matrices"):
        clone(estimator).fit(np.zeros((len(y), 2)), y)
    with pytest.raises(ValueError, match=r"bags\[0\] has 3 columns and the bags of fit have 2"):
        estimator.predict([np.zeros((4, 3))])


@pytest.mark.parametrize("name", ["classifier", "regressor"])
def test_targets(name):
    bags, y = make_bags()
    estimator = clone(MACHINES[name])
    with pytest.raises(ValueError, match="requires y to be passed"):
        estimator.fit(bags, None)
    with pytest.raises(ValueError, match="y has 23 entries for 24 bags"):
        estimator.fit(bags, y[1:])
    with pytest.raises(ValueError, match="NaN"):
        estimator.fit(bags, np.where(y == 0, np.nan, y))
    with pytest.raises(ValueError, match="1d"):
        estimator.fit(bags, np.column_stack([y, y]))
    with pytest.warns(DataConversionWarning):
        estimator.fit(bags, y[:, None])
    assert_same_outputs(clone(estimator).fit(bags, y.tolist()), estimator, bags)


def test_targets_of_a_classifier():
    bags, y = make_bags()
    with pytest.raises(ValueError, match=r"one class only, .*OneClassSupportMeasureMachine"):
        SupportMeasureClassifier().fit(bags, np.zeros(len(bags)))
    with pytest.raises(ValueError, match=r"[Uu]nknown label type"):
        SupportMeasureClassifier().fit(bags, y + np.linspace(0, 0.5, len(y)))


BAD_PARAMETERS = [
    (SupportMeasureClassifier, "C", 0.0),
    (SupportMeasureClassifier, "C", "1"),
    (SupportMeasureRegressor, "C", -1.0),
    (SupportMeasureRegressor, "epsilon", -0.1),
    (OneClassSupportMeasureMachine, "nu", 0.0),
    (OneClassSupportMeasureMachine, "nu", 1.5),
    (SupportMeasureClassifier, "kernel", "gaussian"),
    (SupportMeasureRegressor, "mean", "shrunk"),
    (OneClassSupportMeasureMachine, "level2", "gaussian"),
]


@pytest.mark.parametrize(("machine", "parameter", "value"), BAD_PARAMETERS)
def test_bad_parameters_are_named(machine, parameter, value):
    bags, y = make_bags()
    with pytest.raises(ValueError, match=f"{parameter}={value!r} must"):
        machine(**{parameter: value}).fit(bags, y)


def test_kinds_of_estimators():
    assert is_classifier(MACHINES["classifier"])
    assert is_regressor(MACHINES["regressor"])
    assert is_outlier_detector(MACHINES["one_class"])
    for estimator in ESTIMATORS.values():
        assert not estimator.__sklearn_tags__().input_tags.two_d_array
    assert MACHINES["classifier"].__sklearn_tags__().target_tags.required


def test_scores_are_those_of_scikit_learn():
    bags, y = make_bags()
    classifier, regressor = (clone(MACHINES[name]).fit(bags, y) for name in ("classifier", "regressor"))
    assert classifier.score(bags, y) == (classifier.predict(bags) == y).mean()
    residual = ((regressor.predict(bags) - y) ** 2).sum() / ((y - y.mean()) ** 2).sum()
    assert_allclose(regressor.score(bags, y), 1 - residual, rtol=1e-12)
