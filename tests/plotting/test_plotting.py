"""Displays hold their data and draw it."""

from __future__ import annotations

import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import muhat as mh
from muhat import plotting


@pytest.fixture
def rows() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(30, 2))


def test_loo_path_marks_the_choice(rows):
    fitted = mh.ShrunkKernelMean(mh.Gaussian(0.3)).fit(rows)
    display = plotting.LooPathDisplay.from_estimator(fitted)
    curve, mark = display.ax_.lines
    assert_array_equal(curve.get_xydata(), np.column_stack(fitted.loo_path_))
    assert_allclose(mark.get_xydata()[0], [fitted.shrinkage_, fitted.loo_score_])
    assert fitted.loo_score_ <= curve.get_ydata().min() + 1e-15


def test_loo_path_over_lam_is_logarithmic_and_limits_stay_on_the_curve(rows):
    fitted = mh.SpectralKernelMean(mh.Gaussian(50.0)).fit(rows)
    display = plotting.LooPathDisplay.from_estimator(fitted)
    assert display.ax_.get_xscale() == "log"
    low, high = display.path.values[[0, -1]]
    assert low <= display.ax_.lines[1].get_xdata()[0] <= high


def test_a_given_parameter_has_no_path(rows):
    with pytest.raises(ValueError, match="searched no parameter"):
        plotting.LooPathDisplay.from_estimator(mh.SpectralKernelMean(lam=1.0).fit(rows))


@pytest.mark.parametrize("width", [1, 2])
def test_kernel_mean_over_the_sample(rows, width):
    X = rows[:, :width]
    fitted = mh.ShrunkKernelMean().fit(X)
    display = plotting.KernelMeanDisplay.from_estimator(fitted, X)
    assert_allclose(display.values, fitted.mean_(display.grid))
    assert (display.grid.min(axis=0) < X.min(axis=0)).all()
    assert (display.grid.max(axis=0) > X.max(axis=0)).all()


@pytest.mark.parametrize("width", [1, 2])
def test_witness_is_the_difference(rows, width):
    X, Y = rows[:15, :width], rows[15:, :width]
    kernel = mh.Gaussian(1.0)
    f, g = mh.embed(kernel, X), mh.embed(kernel, Y)
    display = plotting.WitnessDisplay.from_elements(f, g, X, Y)
    assert_allclose(display.values, f(display.grid) - g(display.grid), atol=1e-14)
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["first sample", "second sample"]


def test_pca_scores_by_class(rows):
    pca = mh.KernelPCA(3).fit(rows)
    display = plotting.KernelPCADisplay.from_estimator(pca, rows, y=rows[:, 0] > 0, components=(0, 2))
    drawn = np.vstack([group.get_offsets() for group in display.ax_.collections])
    assert_allclose(np.sort(drawn, axis=0), np.sort(pca.transform(rows)[:, [0, 2]], axis=0))
    with pytest.raises(ValueError, match="components=\\(0, 3\\)"):
        plotting.KernelPCADisplay.from_estimator(pca, rows, components=(0, 3))


def test_matched_density(rows):
    density = mh.GaussianMixture([1.0], [[0.0, 0.0]], [1.0])
    display = plotting.MatchedDensityDisplay.from_estimator(density, rows)
    assert_allclose(display.values, np.exp(density.log_density(display.grid)))


def test_bag_gram_is_sorted_by_class(rows):
    bags, y = [rows[:10], rows[10:12], rows[12:], rows[5:9]], ["b", "a", "b", "a"]
    display = plotting.BagGramDisplay.from_estimator(mh.DistributionKernel(), bags, y=y)
    assert list(display.classes) == ["a", "a", "b", "b"]
    order = [1, 3, 0, 2]
    assert_allclose(display.gram, mh.DistributionKernel().fit_transform(bags)[np.ix_(order, order)])


def test_draws_into_given_axes_with_given_style(rows):
    figure, ax = plt.subplots()
    display = plotting.KernelMeanDisplay.from_estimator(mh.KernelMean().fit(rows[:, :1]), rows[:, :1], ax=ax, color="k")
    assert display.ax_ is ax
    assert display.figure_ is figure
    assert ax.lines[0].get_color() == "k"


def test_three_columns_cannot_be_drawn():
    X = np.random.default_rng(0).normal(size=(10, 3))
    with pytest.raises(ValueError, match="3 columns"):
        plotting.KernelMeanDisplay.from_estimator(mh.KernelMean().fit(X), X)


def test_missing_matplotlib_names_the_extra(rows, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"muhat\[plot\]"):
        plotting.LooPathDisplay.from_estimator(mh.ShrunkKernelMean().fit(rows))
