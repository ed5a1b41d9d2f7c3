"""The map of bags before and after whitening."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest
from bag_samples import labelled_bags
from numpy.testing import assert_allclose
from sklearn.decomposition import KernelPCA

import muhat as mh
from muhat.bags.kernel import DistributionKernel
from muhat.plotting.bags import WhitenedBagsDisplay

mpl.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


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
