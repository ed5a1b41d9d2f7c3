"""The map of bags before and after whitening."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from bag_samples import labelled_bags
from numpy.testing import assert_allclose
from sklearn.decomposition import KernelPCA

import muhat as mh
from muhat.bags.distribution_kernel import DistributionKernel
from muhat.plotting.bags import WhitenedBagsDisplay


def test_positions_are_those_of_kernel_pca():
    bags, y = labelled_bags(low=3)
    display = WhitenedBagsDisplay.from_bags(bags, y, kernel=mh.Gaussian(1.0), ridge=0.5, marker="s")
    for positions, options, ax in zip(
        (display.plain, display.whitened), ({}, {"whiten": True, "ridge": 0.5}), display.axes_, strict=True
    ):
        K = DistributionKernel(mh.Gaussian(1.0), **options).fit_transform(bags)
        want = KernelPCA(2, kernel="precomputed").fit_transform(K)
        assert_allclose(np.abs(positions), np.abs(want), atol=1e-8)
        drawn = np.concatenate([group.get_offsets() for group in ax.collections])
        assert_allclose(np.sort(drawn, axis=0), np.sort(positions, axis=0))
        assert len(ax.collections) == 2
    assert not np.allclose(display.plain, display.whitened)
    assert [text.get_text() for text in display.axes_[1].get_legend().get_texts()] == ["0", "1"]


def test_without_classes_and_on_given_axes():
    bags, _ = labelled_bags(low=3)
    figure, axes = plt.subplots(1, 2)
    display = WhitenedBagsDisplay.from_bags(bags, axes=axes)
    assert display.figure_ is figure
    assert len(axes[0].collections) == 1
    assert axes[1].get_legend() is None
    again = display.plot()
    assert again is display
    assert display.figure_ is not figure


def test_a_map_of_groups_has_circles_by_size():
    rng = np.random.default_rng(0)
    bags = [rng.normal(rng.normal(size=2), size=(n, 2)) for n in (3, 30, 10, 50, 8, 20)]
    prior = mh.BagPrior(mh.Gaussian(1.0)).fit(bags)
    display = mh.plotting.BagMapDisplay.from_prior(prior, bags)
    np.testing.assert_allclose(display.positions, prior.transform(bags)[:, :2])
    areas = display.ax_.collections[0].get_sizes()
    assert (np.argsort(areas) == np.argsort([len(bag) for bag in bags])).all()
    coloured = mh.plotting.BagMapDisplay.from_prior(prior, bags, ["a", "b"] * 3, marker="s")
    assert [text.get_text() for text in coloured.ax_.get_legend().get_texts()] == ["a", "b"]


def test_a_gram_matrix_is_sorted_by_class():
    rows = np.random.default_rng(0).normal(size=(30, 2))
    bags, y = [rows[:10], rows[10:12], rows[12:], rows[5:9]], ["b", "a", "b", "a"]
    display = mh.plotting.BagGramDisplay.from_estimator(mh.DistributionKernel(), bags, y=y)
    assert list(display.classes) == ["a", "a", "b", "b"]
    order = [1, 3, 0, 2]
    assert_allclose(display.gram, mh.DistributionKernel().fit_transform(bags)[np.ix_(order, order)])
