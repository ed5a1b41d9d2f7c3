"""Means of many bags at once, against a loop over fits."""

import numpy as np
import pandas as pd
import pytest

import muhat as mh
from muhat.kernels import tiles
from muhat.means import nested

KERNEL = mh.Gaussian(bandwidth=1.5)


def bags_of(sizes, d=3, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(rng.normal(size=d), size=(n, d)) for n in sizes]


def weights_of(element):
    return element.measures[0].weights


@pytest.mark.parametrize("kernel", [KERNEL, mh.Laplace(bandwidth=2.0), mh.Linear(), mh.Polynomial(degree=3)], ids=repr)
@pytest.mark.parametrize("mean", [mh.ShrunkKernelMean(), mh.ShrunkKernelMean(shrinkage=0.3), mh.SpectralKernelMean()])
def test_each_mean_is_that_of_a_fit(kernel, mean):
    bags = bags_of([4, 2, 9, 4, 4, 30, 2])
    found = mh.bag_means(bags, kernel, mean)
    for bag, element in zip(bags, found, strict=True):
        alone = mean.set_params(kernel=kernel).fit(bag).mean_
        np.testing.assert_array_equal(element.measures[0].points, bag)
        np.testing.assert_allclose(weights_of(element), weights_of(alone), rtol=1e-12, atol=1e-15)


def test_stacks_are_cut_and_large_bags_go_alone(monkeypatch):
    bags = bags_of([7] * 5 + [12])
    expected = [weights_of(element) for element in mh.bag_means(bags, KERNEL)]
    monkeypatch.setattr(nested, "_STACKED", 2 * 7**2)
    monkeypatch.setattr(tiles, "BLOCK", 10)
    for element, weights in zip(mh.bag_means(bags, KERNEL), expected, strict=True):
        np.testing.assert_allclose(weights_of(element), weights, rtol=1e-12)


def test_one_kernel_for_all_bags_and_single_rows():
    bags = bags_of([1, 5, 3])
    found = mh.bag_means(bags)
    assert {element.kernel for element in found} == {mh.Gaussian().resolve(np.concatenate(bags))}
    assert weights_of(found[0]) == 1.0


def test_plain_averages():
    for element in mh.bag_means(bags_of([5, 2]), KERNEL, mean=None):
        np.testing.assert_allclose(weights_of(element).sum(), 1.0)


def test_other_estimators_keep_their_targets():
    (bag,) = bags = bags_of([12])
    target = mh.embed(KERNEL, mh.GaussianMixture([1.0], [[0.0, 0.0, 0.0]], [1.0]))
    for mean in (mh.AdaptiveKernelMean(KERNEL), mh.ShrunkKernelMean(KERNEL, target=target)):
        (element,) = mh.bag_means(bags, KERNEL, mean)
        assert element.distance(mean.fit(bag).mean_) < 1e-7


def test_names_of_columns_stay():
    frames = [pd.DataFrame(bag, columns=["a", "b", "c"]) for bag in bags_of([4, 4])]
    assert all(element.feature_names == ("a", "b", "c") for element in mh.bag_means(frames, KERNEL))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([],), "bags is empty"),
        (([np.ones((2, 2)), np.ones((2, 3))],), r"bags\[1\] has 3 columns"),
        (([np.ones((2, 2))], "rbf"), "kernel='rbf' must be a kernel object"),
        (([np.ones((2, 2))], KERNEL, "shrunk"), "mean='shrunk' must be None"),
        (([np.full((2, 1), 1e200)] * 2, mh.Linear()), "overflows"),
    ],
)
def test_errors(arguments, words):
    with pytest.raises(ValueError, match=words):
        mh.bag_means(*arguments)
