"""Bags and the Gram matrix of their mean elements."""

import numpy as np
import oracles
import pandas as pd
import polars as pl
import pyarrow as pa
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
from muhat.bags.data import bags_from_groups
from muhat.bags.distribution_kernel import DistributionKernel

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


# ---------------------------------------------------------------- groups


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
