"""Bags from tables with a column of labels."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal
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
    for model in (mh.DistributionRidge(stack=False), make_pipeline(mh.BagScaler(), mh.SupportMeasureRegressor())):
        model.fit(bags[:8], labels[:8])
        for wrong, feature in ((others, "'paid = amex' and was 'paid = cash'"), (others[:2], "'paid = amex'")):
            with pytest.raises(ValueError, match=f"in another way than those of fit: feature [12] is {feature}"):
                model.predict(wrong)
        with pytest.raises(ValueError, match=r"feature 0 is 'paid = visa' and was 'price'.*encoder=encoder"):
            model.predict(bags_from_groups(table[["shop", "paid", "price"]], "shop")[0])
        assert_array_equal(model.predict(list(alike)), model.predict(pickle.loads(pickle.dumps(alike))))
        model.fit(list(bags), labels).predict(others)  # a plain list does not know its features
