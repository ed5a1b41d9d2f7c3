"""The laws that every estimator of bags obeys: scikit-learn's own checks pass matrices, so they stand here for bags."""

import pickle

import numpy as np
import pandas as pd
import pytest
from bag_samples import labelled_bags
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone, is_classifier, is_outlier_detector, is_regressor
from sklearn.exceptions import DataConversionWarning, NotFittedError

import muhat as mh
from muhat.bags.distribution_kernel import DistributionKernel
from muhat.bags.support_measure import OneClassSupportMeasureMachine, SupportMeasureClassifier, SupportMeasureRegressor

pytestmark = pytest.mark.filterwarnings("ignore:bags have .* rows, and small bags")

MACHINES = {
    "classifier": SupportMeasureClassifier(),
    "linear_classifier": SupportMeasureClassifier(level2="linear", C=100.0),
    "shrunk_classifier": SupportMeasureClassifier(mean=mh.ShrunkKernelMean()),
    "whitened_classifier": SupportMeasureClassifier(whiten=True),
    "regressor": SupportMeasureRegressor(),
    "one_class": OneClassSupportMeasureMachine(nu=0.3),
}
WHITENED = DistributionKernel(
    level2=mh.Gaussian(), whiten=True, ridge=0.1, features=mh.Nystroem(n_components=10, random_state=0)
)
NEED_NOISE = {  # they compare bags with the noise of their rows, and refuse bags of one row each
    "prior": mh.BagPrior(random_state=0),
    "ridge": mh.DistributionRidge(),
    "ridge_classifier": mh.DistributionRidgeClassifier(),
    "anomaly": mh.GroupAnomalyDetector(alpha=0.2),
}
ESTIMATORS = {**MACHINES, "kernel": DistributionKernel(level2=mh.Gaussian()), "whitened": WHITENED, **NEED_NOISE}
METHODS = ("predict", "predict_proba", "decision_function", "score_samples", "transform", "p_values", "log_odds")
every_machine = pytest.mark.parametrize("name", MACHINES)
every_estimator = pytest.mark.parametrize("name", ESTIMATORS)


def methods_of(estimator):
    return [method for method in METHODS if hasattr(estimator, method)]


def outputs(estimator, bags):
    """Everything that a fitted estimator says of bags."""
    return {method: getattr(estimator, method)(bags) for method in methods_of(estimator)}


def assert_same_outputs(one, other, bags, rtol=0.0, atol=0.0):
    for left, right in zip(outputs(one, bags).values(), outputs(other, bags).values(), strict=True):
        assert_allclose(left, right, rtol=rtol, atol=atol)


def fitted(name, **options):
    bags, y = labelled_bags(**options)
    return clone(ESTIMATORS[name]).fit(bags, y), bags, y


@every_estimator
def test_clone_and_parameters(name):
    estimator = ESTIMATORS[name]
    copy = clone(estimator)
    assert copy is not estimator
    assert repr(copy) == repr(estimator)
    params = copy.get_params()
    assert {"kernel", "kernel__bandwidth"} <= set(params)
    copy.set_params(kernel__bandwidth=2.0)
    assert copy.kernel == mh.Gaussian(2.0)
    assert estimator.kernel == mh.Gaussian()
    assert copy.set_params(**params) is copy
    assert repr(copy) == repr(estimator)
    with pytest.raises(ValueError, match="parameter"):
        copy.set_params(bandwidth=2.0)


@every_estimator
def test_init_only_stores(name):
    estimator = type(ESTIMATORS[name])(kernel="nonsense", features=3)
    assert (estimator.kernel, estimator.features) == ("nonsense", 3)
    assert set(vars(estimator)) == set(estimator.get_params(deep=False))


@every_estimator
def test_fit_returns_self_and_keeps_parameters(name):
    estimator = clone(ESTIMATORS[name])
    before = repr(estimator), {key: id(value) for key, value in estimator.get_params(deep=False).items()}
    bags, y = labelled_bags()
    assert estimator.fit(bags, y) is estimator
    outputs(estimator, bags)
    after = repr(estimator), {key: id(value) for key, value in estimator.get_params(deep=False).items()}
    assert after == before


@every_estimator
def test_fitted_names_are_public_and_training_data_is_private(name):
    estimator, bags, _ = fitted(name)
    public = {key for key in vars(estimator) if not key.startswith("_")} - set(estimator.get_params(deep=False))
    assert all(key.endswith("_") for key in public)
    assert {"kernel_", "n_features_in_"} <= public
    assert not any(
        isinstance(value, np.ndarray) and value.ndim > 1 for key, value in vars(estimator).items() if key in public
    )
    assert estimator.n_features_in_ == bags[0].shape[1]
    assert isinstance(estimator.kernel_.bandwidth, float)
    assert type(estimator).__name__ in estimator._repr_html_()


@every_estimator
def test_fitting_again_changes_nothing(name):
    estimator, bags, y = fitted(name)
    again = clone(estimator).fit(bags, y)
    assert_same_outputs(again, estimator, bags)
    assert_same_outputs(again.fit(bags, y), estimator, bags)
    other, labels = labelled_bags(seed=5, d=3)
    assert_same_outputs(again.fit(other, labels), clone(estimator).fit(other, labels), other)


@every_estimator
def test_names_of_columns(name):
    bags, y = labelled_bags()
    frames = [pd.DataFrame(bag, columns=["a", "b"]) for bag in bags]
    estimator = clone(ESTIMATORS[name]).fit(frames, pd.Series(y))
    assert list(estimator.feature_names_in_) == ["a", "b"]
    want = clone(ESTIMATORS[name]).fit(bags, y)
    for got, expected in zip(outputs(estimator, frames).values(), outputs(want, bags).values(), strict=True):
        assert_array_equal(got, expected)
    with pytest.raises(ValueError, match=r"bags\[1\].*feature names"):
        getattr(estimator, methods_of(estimator)[0])([frames[0], frames[1][["b", "a"]]])
    assert not hasattr(estimator.fit(bags, y), "feature_names_in_")


@every_estimator
def test_pickle(name):
    estimator, bags, _ = fitted(name)
    restored = pickle.loads(pickle.dumps(estimator))
    assert_same_outputs(restored, estimator, bags)
    assert repr(restored) == repr(estimator)


@every_estimator
def test_not_fitted(name):
    bags, _ = labelled_bags()
    for method in methods_of(ESTIMATORS[name]):
        with pytest.raises(NotFittedError):
            getattr(clone(ESTIMATORS[name]), method)(bags)


@every_estimator
def test_input_is_not_changed_nor_kept(name):
    bags, y = labelled_bags()
    before, labels = [bag.copy() for bag in bags], y.copy()
    estimator = clone(ESTIMATORS[name]).fit(bags, y)
    want = outputs(estimator, bags)
    for bag, old in zip(bags, before, strict=True):
        assert_array_equal(bag, old)
        bag[:] = 0.0
    assert_array_equal(y, labels)
    for got, expected in zip(outputs(estimator, before).values(), want.values(), strict=True):
        assert_array_equal(got, expected)


@pytest.mark.slow
@every_estimator
def test_read_only_single_precision_and_other_layouts(name):
    bags, y = labelled_bags()
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
    close = {"rtol": 1e-9, "atol": 1e-10} if name in NEED_NOISE else {"rtol": 1e-10, "atol": 1e-12}
    bags, _ = labelled_bags(seed=1)
    order = np.random.default_rng(0).permutation(len(bags))
    shuffled, whole = outputs(estimator, [bags[i] for i in order]), outputs(estimator, bags)
    alone = outputs(estimator, bags[3:4])
    for method, values in whole.items():
        pairs = method == "log_odds"
        assert_allclose(shuffled[method], values[np.ix_(order, order)] if pairs else values[order], **close)
        assert_allclose(alone[method], values[3:4, 3:4] if pairs else values[3:4], **close)


@every_machine
def test_the_order_of_training_bags_does_not_matter(name):
    estimator, bags, y = fitted(name)
    order = np.random.default_rng(0).permutation(len(bags))
    other = clone(estimator).fit([bags[i] for i in order], y[order])
    # libsvm stops when its optimality conditions hold to 1e-3.
    method = "predict" if name == "regressor" else "decision_function"
    assert_allclose(getattr(other, method)(bags), getattr(estimator, method)(bags), rtol=0, atol=2e-3)
    assert_allclose(other.kernel_.bandwidth, estimator.kernel_.bandwidth, rtol=1e-12)


@every_estimator
def test_rows_of_a_bag_have_no_order(name):
    estimator, bags, _ = fitted(name)
    for got, want in zip(
        outputs(estimator, [bag[::-1] for bag in bags]).values(), outputs(estimator, bags).values(), strict=True
    ):
        assert_allclose(got, want, rtol=1e-9, atol=1e-10)


@pytest.mark.filterwarnings("ignore:no bag has two rows that differ")
@every_estimator
def test_bags_of_one_row_and_of_equal_sizes(name):
    rng = np.random.default_rng(0)
    y = np.arange(12) % 2
    for size in (5,) if name in NEED_NOISE else (1, 5):
        bags = [rng.normal(size=(size, 2)) + 3 * label for label in y]
        one, other = clone(ESTIMATORS[name]).fit(bags, y), clone(ESTIMATORS[name]).fit(np.stack(bags), y)
        assert_same_outputs(one, other, np.stack(bags))
        assert all(np.isfinite(values).all() for values in outputs(one, bags).values())


@every_estimator
def test_constant_columns_and_repeated_rows(name):
    bags, y = labelled_bags()
    bags = [np.repeat(np.column_stack([bag, np.full(len(bag), 7.0)]), 2, axis=0) for bag in bags]
    estimator = clone(ESTIMATORS[name]).fit(bags, y)
    assert all(np.isfinite(values).all() for values in outputs(estimator, bags).values())


@every_estimator
def test_bad_bags_are_named_by_fit_and_after(name):
    estimator, bags, y = fitted(name)
    ask = getattr(estimator, methods_of(estimator)[0])
    broken = [*bags[:3], np.full((2, 2), np.nan), *bags[4:]]
    for call in (lambda: clone(estimator).fit(broken, y), lambda: ask(broken)):
        with pytest.raises(ValueError, match=r"bags\[3\].*NaN"):
            call()
    with pytest.raises(ValueError, match="list of matrices"):
        clone(estimator).fit(np.zeros((len(y), 2)), y)
    with pytest.raises(ValueError, match=r"bags\[0\] has 3 columns and the bags of fit have 2"):
        ask([np.zeros((4, 3))])


@pytest.mark.parametrize("name", ["classifier", "regressor"])
def test_targets(name):
    bags, y = labelled_bags()
    estimator = clone(MACHINES[name])
    with pytest.warns(DataConversionWarning):
        estimator.fit(bags, y[:, None])
    assert_same_outputs(clone(estimator).fit(bags, y.tolist()), estimator, bags)


def test_kinds_of_estimators():
    assert is_classifier(MACHINES["classifier"])
    assert is_regressor(MACHINES["regressor"])
    assert is_outlier_detector(MACHINES["one_class"])
    assert is_regressor(ESTIMATORS["ridge"])
    assert is_outlier_detector(ESTIMATORS["anomaly"])
    for estimator in ESTIMATORS.values():
        assert not estimator.__sklearn_tags__().input_tags.two_d_array
    assert MACHINES["classifier"].__sklearn_tags__().target_tags.required


def test_scores_are_those_of_scikit_learn():
    bags, y = labelled_bags()
    classifier, regressor = (clone(MACHINES[name]).fit(bags, y) for name in ("classifier", "regressor"))
    assert classifier.score(bags, y) == (classifier.predict(bags) == y).mean()
    residual = ((regressor.predict(bags) - y) ** 2).sum() / ((y - y.mean()) ** 2).sum()
    assert_allclose(regressor.score(bags, y), 1 - residual, rtol=1e-12)
