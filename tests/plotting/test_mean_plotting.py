"""Bands and shares: the displays hold what the library computes, and draw it."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError

import muhat as mh
from muhat.inference.error_bars import mean_bands
from muhat.means.adaptive import AdaptiveKernelMean
from muhat.plotting.means import BandsDisplay, SharesDisplay

X = np.random.default_rng(0).normal(size=(15, 3)) * [1.0, 2.0, 3.0] + [0.0, 5.0, 0.0]
KERNEL = mh.Gaussian(2.0)


def texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


# ---------------------------------------------------------------- bands


@pytest.mark.parametrize("mean", [mh.KernelMean(KERNEL), mh.ShrunkKernelMean(KERNEL)], ids=["plain", "shrunk"])
def test_bands_are_those_of_the_mean_along_a_column(mean):
    display = BandsDisplay.from_estimator(mean.fit(X), X, column=2, level=0.8)
    points = display.bands.points
    assert_allclose(points[:, :2], np.tile(np.median(X, axis=0)[:2], (len(points), 1)))
    assert points[0, 2] < X[:, 2].min() < X[:, 2].max() < points[-1, 2]
    expected = mean_bands(mean, points, 0.8)
    for drawn, values in ((display.bands.low, expected.low), (display.bands.high, expected.high)):
        assert_array_equal(drawn, values)
    line, marks = display.ax_.lines
    assert_array_equal(line.get_xydata(), np.column_stack([points[:, 2], expected.values]))
    assert_array_equal(marks.get_xdata(), X[:, 2])
    corners = display.ax_.collections[0].get_paths()[0].vertices
    assert_allclose([corners[:, 1].min(), corners[:, 1].max()], [expected.low.min(), expected.high.max()])
    assert texts(display.ax_) == ["estimate", "80 % at each point"]
    assert display.ax_.get_xlabel() == "column 2"


def test_bands_of_an_element_by_the_bootstrap():
    f = mh.embed(KERNEL, X[:, :1])
    options = {"method": "bootstrap", "n_resamples": 30, "random_state": 0}
    display = BandsDisplay.from_estimator(f, X[:, :1], **options)
    assert_array_equal(display.bands.low, mean_bands(f, display.bands.points, **options).low)
    assert display.ax_.get_xlabel() == "x"


def test_the_other_columns_where_they_are_asked_for():
    frame = pd.DataFrame(X, columns=["height", "width", "depth"])
    display = BandsDisplay.from_estimator(mh.KernelMean().fit(frame), frame, column=1, at=[7.0, 8.0, 9.0], color="k")
    assert_array_equal(np.unique(display.bands.points[:, [0, 2]], axis=0), [[7.0, 9.0]])
    assert display.ax_.get_xlabel() == "width"
    assert display.ax_.lines[0].get_color() == "k"


def test_bands_over_a_constant_column_and_in_given_axes():
    figure, ax = plt.subplots()
    rows = np.ones((5, 1))
    display = BandsDisplay.from_estimator(mh.KernelMean(KERNEL).fit(rows), rows, ax=ax)
    assert display.figure_ is figure
    assert np.isfinite(display.bands.high).all()
    assert display.bands.points[0, 0] < 1 < display.bands.points[-1, 0]


BAD = {
    "column": ({"column": 3}, "column=3 must be one of the 3 columns"),
    "sign": ({"column": -1}, "column=-1 must be a whole number"),
    "at": ({"at": [0.0]}, r"at has shape \(1,\)"),
    "level": ({"level": 1.5}, r"level=1\.5"),
}


@pytest.mark.parametrize(("options", "message"), BAD.values(), ids=BAD)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        BandsDisplay.from_estimator(mh.KernelMean(KERNEL).fit(X), X, **options)


def test_what_has_no_bands():
    with pytest.raises(ValueError, match="X has 2 columns and the mean 3"):
        BandsDisplay.from_estimator(mh.KernelMean(KERNEL).fit(X), X[:, :2])
    with pytest.raises(ValueError, match="Gram matrix is not a function"):
        BandsDisplay.from_estimator(mh.KernelMean("precomputed").fit(KERNEL(X)), KERNEL(X))
    with pytest.raises(NotFittedError):
        BandsDisplay.from_estimator(mh.KernelMean(), X)


# ---------------------------------------------------------------- shares


def widths(display):
    return [[bar.get_width() for bar in bars] for bars in display.ax_.containers]


def test_shares_are_weights():
    means = [AdaptiveKernelMean(mh.Gaussian(width)).fit(X) for width in (0.3, 1.0, 3.0)]
    display = SharesDisplay.from_estimator(*means, labels=["narrow", "middle", "wide"])
    rows, targets, shrunk = widths(display)
    assert_allclose(rows, [mean.weights_.sum() for mean in means])
    assert_allclose(targets, [mean.shares_[1] for mean in means])
    assert_allclose(np.add(rows, targets) + shrunk, 1.0, atol=1e-12)
    assert max(targets) > 0
    ends = np.cumsum(widths(display), axis=0)
    assert_allclose([[bar.get_x() for bar in bars] for bars in display.ax_.containers[1:]], ends[:-1])
    ticks = [tick.get_text().split("\n") for tick in display.ax_.get_yticklabels()]
    assert [tick[0] for tick in ticks] == ["narrow", "middle", "wide"]
    assert f"b = {means[0].shares_[1]:.2f}" in ticks[0][1]
    assert texts(display.ax_) == ["rows", "target", "shrunk away"]


def test_more_than_the_plain_average_is_drawn_past_one():
    display = SharesDisplay(["much"], np.array([0.9]), np.array([[1.0, 0.4]]), np.array([np.inf])).plot(height=0.2)
    assert_array_equal(display.shrunk, 0.0)
    assert display.ax_.get_xlim()[1] > 1.3
    assert "λ = ∞" in display.ax_.get_yticklabels()[0].get_text()
    assert_allclose(display.ax_.patches[0].get_height(), 0.2)


def test_labels_by_default():
    mean = AdaptiveKernelMean(KERNEL, target=None).fit(X)
    assert SharesDisplay.from_estimator(mean).labels == ["adaptive mean"]
    assert SharesDisplay.from_estimator(mean, mean).labels == ["adaptive mean 1", "adaptive mean 2"]


def test_what_has_no_shares():
    fitted = AdaptiveKernelMean(KERNEL).fit(X)
    for means, options, message in [
        ([], {}, "at least one"),
        ([mh.KernelMean().fit(X)], {}, "has no shares"),
        ([fitted], {"labels": ["a", "b"]}, "one entry for each of the 1 estimators"),
        ([fitted], {"labels": "a"}, "labels='a'"),
    ]:
        with pytest.raises(ValueError, match=message):
            SharesDisplay.from_estimator(*means, **options)
    with pytest.raises(NotFittedError):
        SharesDisplay.from_estimator(AdaptiveKernelMean())
