"""Bags from tables with a column of labels, and columns of bags in standard deviations."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from bag_samples import random_bags
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.pipeline import make_pipeline

import muhat as mh
from muhat.bags.data import bags_from_groups


def test_bags_from_groups():
    X = np.arange(12.0).reshape(6, 2)
    bags, labels = bags_from_groups(X, ["b", "a", "c", "b", "a", "b"])
    assert labels.tolist() == ["a", "b", "c"]
    for bag, rows in zip(bags, ([1, 4], [0, 3, 5], [2]), strict=True):
        assert_array_equal(bag, X[rows])
    frame = pd.DataFrame(X)
    for again, bag in zip(bags_from_groups(frame, pd.Series([7, 3, 9, 7, 3, 7]))[0], bags, strict=True):
        assert_array_equal(again, bag)


SHOPS = {"length": [1.0, 2.0, 3.0], "shop": ["b", "a", "b"], "width": [4.0, 5.0, 6.0]}
FORMS = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "LazyFrame": pl.LazyFrame,
    "pyarrow": pa.table,
    "DuckDB": lambda data: pytest.importorskip("duckdb").from_arrow(pa.table(data)),
    "dictionary": dict,
}


@pytest.mark.parametrize("form", FORMS)
def test_a_column_says_the_group(form):
    bags, labels = bags_from_groups(FORMS[form](SHOPS), "shop")
    assert labels.tolist() == ["a", "b"]
    assert [bag.tolist() for bag in bags] == [[[2.0, 5.0]], [[1.0, 4.0], [3.0, 6.0]]]
    _, labels = bags_from_groups(FORMS[form]({**SHOPS, "shop": [7, 3, 7]}), "shop")
    assert labels.tolist() == [3, 7]
    assert labels.dtype.kind == "i"


def test_later_tables_have_the_features_of_the_first():
    first = pd.DataFrame({"shop": [1, 1, 2], "paid": ["cash", "card", "card"], "price": [1.0, None, 3.0]})
    bags, _, encoder = bags_from_groups(first, "shop", return_encoder=True)
    assert [feature.label for feature in encoder.features] == [
        "paid = card",
        "paid = cash",
        "price",
        "price = (missing)",
    ]
    (later,), _ = bags_from_groups(first[["price", "paid"]][:2], [1, 1], encoder=encoder)
    assert_array_equal(later, bags[0])


def test_models_refuse_bags_of_another_encoding():
    shop, price = np.repeat(range(10), 6), np.random.default_rng(0).normal(size=60)
    table = pd.DataFrame({"shop": shop, "price": price, "paid": ["visa", "cash", "visa"] * 20})
    later = table.assign(paid=["visa", "amex", "visa"] * 20)  # as many features, of other categories
    bags, labels, encoder = bags_from_groups(table, "shop", return_encoder=True)
    others, _ = bags_from_groups(later, "shop")
    alike, _ = bags_from_groups(later, "shop", encoder=encoder)
    for model in (mh.DistributionRidge(stack=False), make_pipeline(mh.BagScaler(), mh.DistributionRidge(stack=False))):
        model.fit(bags[:8], labels[:8])
        for wrong, feature in (
            (others, "'paid = amex' where the bags of fit had 'paid = cash'"),
            (others[:2], "'paid = amex'"),
        ):
            with pytest.raises(ValueError, match=f"bags has the feature {feature}"):
                model.predict(wrong)
        with pytest.raises(ValueError, match=r"'paid = visa' where .* had 'price' \(feature 0\).*encoder=encoder"):
            model.predict(bags_from_groups(table[["shop", "paid", "price"]], "shop")[0])
        assert_array_equal(model.predict(list(alike)), model.predict(pickle.loads(pickle.dumps(alike))))
        model.fit(list(bags), labels).predict(others)  # a plain list does not know its features


@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1e200, 1e307])
def test_scaled_bags_of_any_unit(scale):
    bags = random_bags()
    got = mh.BagScaler().fit_transform([scale * bag for bag in bags])
    assert_allclose(np.concatenate(got), np.concatenate(mh.BagScaler().fit_transform(bags)), rtol=1e-9, atol=1e-12)


def test_scaled_bags():
    bags = [bag * [1.0, 100.0, 0.01] + 5.0 for bag in random_bags()]
    scaler = mh.BagScaler().fit(bags)
    rows = np.concatenate(scaler.transform(bags))
    assert_allclose(rows.mean(axis=0), 0, atol=1e-10)
    assert_allclose(rows.std(axis=0), 1)
    assert [len(bag) for bag in scaler.transform(bags)] == [len(bag) for bag in bags]
    assert_allclose(scaler.transform(bags[:1])[0], (bags[0] - scaler.mean_) / scaler.scale_)
    constant = mh.BagScaler().fit_transform([np.ones((2, 1)), np.ones((3, 1))])
    assert_array_equal(np.concatenate(constant), 0)
    with pytest.raises(ValueError, match=r"bags\[0\] has 2 columns and the bags of fit have 3"):
        scaler.transform([np.ones((4, 2))])
