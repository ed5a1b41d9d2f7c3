"""Properties of every estimator of bags: order of bags and rows, sizes, repeated rows, errors and scores."""

import numpy as np
import pytest
from bag_samples import BAG_ESTIMATORS, MACHINES, NEED_NOISE, labelled_bags, random_bags
from numpy.testing import assert_allclose
from sklearn.base import clone, is_classifier, is_outlier_detector, is_regressor
from sklearn.exceptions import DataConversionWarning

pytestmark = pytest.mark.filterwarnings("ignore:bags have .* rows, and small bags")

METHODS = ("predict", "predict_proba", "decision_function", "score_samples", "transform", "p_values", "log_odds")
every_machine = pytest.mark.parametrize("name", MACHINES)
every_estimator = pytest.mark.parametrize("name", BAG_ESTIMATORS)


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
    return clone(BAG_ESTIMATORS[name]).fit(bags, y), bags, y


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
    assert_allclose(other.decision_function(bags), estimator.decision_function(bags), rtol=0, atol=2e-3)
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
        one, other = clone(BAG_ESTIMATORS[name]).fit(bags, y), clone(BAG_ESTIMATORS[name]).fit(np.stack(bags), y)
        assert_same_outputs(one, other, np.stack(bags))
        assert all(np.isfinite(values).all() for values in outputs(one, bags).values())


@every_estimator
def test_constant_columns_and_repeated_rows(name):
    bags, y = labelled_bags()
    bags = [np.repeat(np.column_stack([bag, np.full(len(bag), 7.0)]), 2, axis=0) for bag in bags]
    estimator = clone(BAG_ESTIMATORS[name]).fit(bags, y)
    assert all(np.isfinite(values).all() for values in outputs(estimator, bags).values())


HARD = {
    "one row among others": random_bags((1, 5, 5), d=2),
    "equal bags": random_bags((6,), d=2) * 4,
    "rows that are equal within bags": [np.full((3, 2), float(k)) for k in range(4)],
    "duplicate rows": [np.repeat(bag, 3, axis=0) for bag in random_bags((3, 4, 5), d=2)],
    "float32": [bag.astype(np.float32) for bag in random_bags((3, 4, 5), d=2)],
    "shifted": [bag + 1e6 for bag in random_bags((3, 4, 5), d=2)],
    "vectors": [bag[:, 0] for bag in random_bags((3, 4, 5), d=2)],
}
REFUSED = {  # without distances between bags, or without noise within them
    "equal bags": [*(name for name in MACHINES if name != "linear_classifier"), "kernel", "whitened"],
    "rows that are equal within bags": NEED_NOISE,
}


@pytest.mark.filterwarnings("ignore:no bag has two rows that differ", "ignore:nothing was learned")
@pytest.mark.filterwarnings("ignore:what a bag contains depends on its size")
@pytest.mark.parametrize("case", HARD)
@every_estimator
def test_hard_bags_are_refused_or_have_finite_outputs(name, case):
    bags = HARD[case] * 4
    y = np.arange(len(bags)) % 2
    if name in REFUSED.get(case, ()):
        with pytest.raises(ValueError, match=r"that differ.*; pass"):
            clone(BAG_ESTIMATORS[name]).fit(bags, y)
        return
    estimator = clone(BAG_ESTIMATORS[name]).fit(bags, y)
    assert all(np.isfinite(values).all() for values in outputs(estimator, bags).values())


@pytest.mark.parametrize("scale", [1e-300, 1e-100, 1e100, 1e300])
@pytest.mark.parametrize("name", sorted(BAG_ESTIMATORS.keys() - {"anomaly"}))
def test_units_do_not_matter(name, scale):
    """Where the bandwidth is a multiple of the median; the detector draws its cuts by the bytes of the rows."""
    bags, y = labelled_bags(low=2)
    want = outputs(clone(BAG_ESTIMATORS[name]).fit(bags, y), bags)
    scaled = [scale * bag for bag in bags]
    found = outputs(clone(BAG_ESTIMATORS[name]).fit(scaled, y), scaled)
    for method, values in want.items():
        assert_allclose(found[method], values, rtol=1e-5, atol=1e-6 * np.abs(values).max(), err_msg=method)


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


def test_targets():
    bags, y = labelled_bags()
    estimator = clone(MACHINES["classifier"])
    with pytest.warns(DataConversionWarning):
        estimator.fit(bags, y[:, None])
    assert_same_outputs(clone(estimator).fit(bags, y.tolist()), estimator, bags)


def test_kinds_of_estimators():
    assert is_classifier(MACHINES["classifier"])
    assert is_outlier_detector(MACHINES["one_class"])
    assert is_regressor(BAG_ESTIMATORS["ridge"])
    assert is_outlier_detector(BAG_ESTIMATORS["anomaly"])
    for estimator in BAG_ESTIMATORS.values():
        assert not estimator.__sklearn_tags__().input_tags.two_d_array
    assert MACHINES["classifier"].__sklearn_tags__().target_tags.required


def test_scores_are_those_of_scikit_learn():
    bags, y = labelled_bags()
    classifier, regressor = clone(MACHINES["classifier"]).fit(bags, y), clone(BAG_ESTIMATORS["ridge"]).fit(bags, y)
    assert classifier.score(bags, y) == (classifier.predict(bags) == y).mean()
    residual = ((regressor.predict(bags) - y) ** 2).sum() / ((y - y.mean()) ** 2).sum()
    assert_allclose(regressor.score(bags, y), 1 - residual, rtol=1e-12)
