"""Points by class: rows by kernel PCA, bags by their pooled means, and by their mean elements."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from bag_samples import labelled_bags
from numpy.testing import assert_allclose
from sklearn.decomposition import KernelPCA

import muhat as mh
from muhat.plotting.scatter import ScatterDisplay


def test_rows_on_two_components_by_class():
    rows = np.random.default_rng(0).normal(size=(30, 2))
    pca = mh.KernelPCA(3).fit(rows)
    display = ScatterDisplay.from_estimator(pca, rows, y=rows[:, 0] > 0, components=(0, 2))
    drawn = np.vstack([group.get_offsets() for group in display.ax_.collections])
    assert_allclose(np.sort(drawn, axis=0), np.sort(pca.transform(rows)[:, [0, 2]], axis=0))
    with pytest.raises(ValueError, match="components=\\(0, 3\\)"):
        ScatterDisplay.from_estimator(pca, rows, components=(0, 3))


@pytest.mark.parametrize("whitening", [{}, {"whiten": True, "ridge": 0.5}])
def test_bags_are_where_kernel_pca_puts_their_mean_elements(whitening):
    bags, y = labelled_bags(low=3)
    figure, ax = plt.subplots()
    display = ScatterDisplay.from_bags(bags, y, kernel=mh.Gaussian(1.0), ax=ax, marker="s", **whitening)
    K = mh.DistributionKernel(mh.Gaussian(1.0), **whitening).fit_transform(bags)
    assert_allclose(np.abs(display.positions), np.abs(KernelPCA(2, kernel="precomputed").fit_transform(K)), atol=1e-8)
    drawn = np.concatenate([group.get_offsets() for group in ax.collections])
    assert_allclose(np.sort(drawn, axis=0), np.sort(display.positions, axis=0))
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["0", "1"]
    assert display.figure_ is figure
    assert display.plot() is display
    assert display.figure_ is not figure


def test_a_map_of_bags_has_circles_by_size():
    rng = np.random.default_rng(0)
    bags = [rng.normal(rng.normal(size=2), size=(n, 2)) for n in (3, 30, 10, 50, 8, 20)]
    prior = mh.BagPrior(mh.Gaussian(1.0)).fit(bags)
    display = ScatterDisplay.from_prior(prior, bags)
    np.testing.assert_allclose(display.positions, prior.transform(bags)[:, :2])
    areas = display.ax_.collections[0].get_sizes()
    assert (np.argsort(areas) == np.argsort([len(bag) for bag in bags])).all()
    coloured = ScatterDisplay.from_prior(prior, bags, ["a", "b"] * 3, marker="s")
    assert [text.get_text() for text in coloured.ax_.get_legend().get_texts()] == ["a", "b"]
