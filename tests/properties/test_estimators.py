"""What scikit-learn's users expect of every estimator of a mean and of bags; its own checks pass matrices alone."""

import pickle
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from bag_samples import BAG_ESTIMATORS, labelled_bags
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from tables import MEANS, sample

import muhat as mh
from muhat.means.base import BaseKernelMean

pytestmark = pytest.mark.filterwarnings("ignore:bags have .* rows, and small bags")

ESTIMATORS = {**{name: case.estimator for name, case in MEANS.items()}, **BAG_ESTIMATORS}
METHODS = ("predict", "predict_proba", "decision_function", "score_samples", "transform", "p_values", "log_odds")
every_estimator = pytest.mark.parametrize("name", ESTIMATORS)


def mapped(data, change):
    """Rows that are changed, or bags of such rows."""
    return change(data) if isinstance(data, np.ndarray) else [change(bag) for bag in data]


def data_for(name, seed=0, d=3):
    """Rows or bags, in numbers that single precision has too, and labels of the bags."""
    if name in BAG_ESTIMATORS:
        bags, y = labelled_bags(seed=seed, d=d)
        return mapped(bags, lambda bag: bag.astype(np.float32).astype(float)), y
    return sample(20, d, seed=1 + seed).astype(np.float32).astype(float), None


def fitted(name, data, y):
    return clone(ESTIMATORS[name]).fit(data, y)


def told(estimator, data):
    """Everything that a fitted estimator says of data."""
    if isinstance(estimator, BaseKernelMean):
        return [estimator.weights_, estimator.loo_score_, estimator.mean_(data), estimator.score(data)]
    return [getattr(estimator, method)(data) for method in METHODS if hasattr(estimator, method)]


def assert_same(one, other, data, others=None):
    for left, right in zip(told(one, data), told(other, data if others is None else others), strict=True):
        assert_array_equal(left, right)


@every_estimator
def test_clone_and_parameters(name):
    estimator = ESTIMATORS[name]
    copy = clone(estimator)
    assert copy is not estimator
    assert repr(copy) == repr(estimator)
    params = copy.get_params()
    assert {"kernel", "kernel__bandwidth"} <= set(params)
    copy.set_params(kernel__bandwidth=2.0)
    assert copy.kernel == type(estimator.kernel)(2.0)
    assert estimator.kernel.bandwidth == "median"
    assert copy.set_params(**params) is copy
    assert repr(copy) == repr(estimator)
    with pytest.raises(ValueError, match="parameter"):
        copy.set_params(bandwidth=2.0)


@every_estimator
def test_init_only_stores(name):
    nonsense = dict.fromkeys(ESTIMATORS[name].get_params(deep=False), "nonsense")
    assert vars(type(ESTIMATORS[name])(**nonsense)) == nonsense


@every_estimator
def test_fit_returns_self_and_keeps_parameters(name):
    estimator, (data, y) = clone(ESTIMATORS[name]), data_for(name)
    before = repr(estimator), {key: id(value) for key, value in estimator.get_params(deep=False).items()}
    assert estimator.fit(data, y) is estimator
    told(estimator, data)
    assert (repr(estimator), {key: id(value) for key, value in estimator.get_params(deep=False).items()}) == before


@every_estimator
def test_fitted_names_are_public_and_training_data_is_private(name):
    estimator = fitted(name, *data_for(name))
    public = {key for key in vars(estimator) if not key.startswith("_")} - set(estimator.get_params(deep=False))
    assert all(key.endswith("_") for key in public)
    assert {"kernel_", "n_features_in_"} <= public
    assert not any(isinstance(value, np.ndarray) and value.ndim > 1 for value in map(vars(estimator).get, public))
    assert estimator.n_features_in_ == 3
    assert isinstance(estimator.kernel_.bandwidth, float)
    assert type(estimator).__name__ in estimator._repr_html_()


@every_estimator
def test_a_refit_forgets_and_a_copy_is_the_same(name):
    data, y = data_for(name)
    estimator, again = fitted(name, data, y), fitted(name, data, y)
    assert_same(again, estimator, data)
    assert_same(again.fit(data, y), estimator, data)
    other, labels = data_for(name, seed=5, d=2)
    assert_same(again.fit(other, labels), fitted(name, other, labels), other)
    restored = pickle.loads(pickle.dumps(estimator))
    assert_same(restored, estimator, data)
    assert restored.kernel_ == estimator.kernel_
    assert repr(restored) == repr(estimator)
    assert not hasattr(clone(estimator), "kernel_")


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
@every_estimator
def test_data_frames(name, frame):
    data, y = data_for(name)
    frames = mapped(data, lambda rows: frame({column: rows[:, j] for j, column in enumerate("abc")}))
    estimator = clone(ESTIMATORS[name]).fit(frames, None if y is None else pd.Series(y))
    assert list(estimator.feature_names_in_) == ["a", "b", "c"]
    assert_same(estimator, fitted(name, data, y), frames, data)
    other = ["b", "a", "c"]
    with pytest.raises(ValueError, match="feature names" if y is None else r"bags\[1\].*feature names"):
        told(estimator, frames[other] if y is None else [frames[0], frames[1][other]])
    assert not hasattr(estimator.fit(data, y), "feature_names_in_")


@every_estimator
def test_not_fitted(name):
    estimator, (data, _) = clone(ESTIMATORS[name]), data_for(name)
    methods = ["score"] if name in MEANS else [method for method in METHODS if hasattr(estimator, method)]
    asked = [partial(getattr(estimator, method), data) for method in methods]
    for ask in [*asked, lambda: estimator.loo_score_] if name in MEANS else asked:
        with pytest.raises(NotFittedError, match="fit"):
            ask()


@every_estimator
def test_the_data_are_left_alone_and_copied(name):
    data, y = data_for(name)
    before, labels = mapped(data, np.copy), None if y is None else y.copy()
    estimator = fitted(name, data, y)
    want = told(estimator, data)
    mapped([data] if y is None else data, lambda rows: rows.fill(0.0))
    for got, expected in zip(told(estimator, before), want, strict=True):
        assert_array_equal(got, expected)
    if y is not None:
        assert_array_equal(y, labels)
    assert_same(fitted(name, before, labels), estimator, before)


def read_only(rows):
    rows = rows.copy()
    rows.flags.writeable = False
    return rows


LAYOUTS = {
    "read only": read_only,
    "single precision": lambda rows: read_only(rows.astype(np.float32)),
    "Fortran": np.asfortranarray,
    "strided": lambda rows: np.repeat(rows, 2, axis=1)[:, ::2],
    "objects": lambda rows: rows.astype(object),
    "lists": np.ndarray.tolist,
}


def on_disk(folder, rows):
    mapped_rows = np.memmap(folder / f"{id(rows)}.dat", dtype=float, mode="w+", shape=rows.shape)
    mapped_rows[:] = rows
    return mapped_rows


@every_estimator
def test_arrays_of_every_layout(name, tmp_path):
    data, y = data_for(name)
    want = fitted(name, data, y)
    for change in (*LAYOUTS.values(), lambda rows: on_disk(tmp_path, rows)):
        same = mapped(data, change)
        estimator = fitted(name, same, y)
        assert_same(estimator, want, same, data)
        assert all(np.asarray(values).dtype.kind in "fi" for values in told(estimator, same))
        if name in MEANS:
            assert estimator.weights_.dtype == np.float64


def test_a_fitted_mean_does_not_change_with_the_file_and_an_embedded_one_does(tmp_path):
    X = sample(20, 3, seed=1)
    rows = on_disk(tmp_path, X)
    fitted, embedded = mh.ShrunkKernelMean(mh.Gaussian(1.0)).fit(rows).mean_, mh.embed(mh.Gaussian(1.0), rows)
    before, average = fitted(X), embedded(X)
    rows += 1.0
    assert_array_equal(fitted(X), before)
    assert (embedded(X) != average).any()
    assert_array_equal(pickle.loads(pickle.dumps(fitted))(X), before)
    assert_array_equal(pickle.loads(pickle.dumps(embedded))(X), embedded(X))
