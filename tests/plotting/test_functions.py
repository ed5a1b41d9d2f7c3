"""Displays of functions: means, witness functions, densities and bands are those that the library computes."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError
from tables import sample

import muhat as mh
from muhat.inference.error_bars import mean_bands
from muhat.plotting.functions import FunctionDisplay

ROWS = np.random.default_rng(0).normal(size=(30, 2))
X = np.random.default_rng(0).normal(size=(15, 3)) * [1.0, 2.0, 3.0] + [0.0, 5.0, 0.0]
KERNEL = mh.Gaussian(2.0)


def texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


@pytest.mark.parametrize("width", [1, 2])
def test_a_kernel_mean_over_the_sample(width):
    rows = ROWS[:, :width]
    fitted = mh.ShrunkKernelMean().fit(rows)
    display = FunctionDisplay.from_estimator(fitted, rows)
    assert_allclose(display.values, fitted.mean_(display.grid))
    assert (display.grid.min(axis=0) < rows.min(axis=0)).all()
    assert (display.grid.max(axis=0) > rows.max(axis=0)).all()


def test_a_density_over_the_sample():
    density = mh.GaussianMixture([1.0], [[0.0, 0.0]], [1.0])
    expected = FunctionDisplay.from_estimator(density, ROWS)
    assert_allclose(expected.values, np.exp(density.log_density(expected.grid)))
    matched = mh.MatchedGaussianMixture(1, init=density, solver="weights").fit(ROWS)
    assert_allclose(FunctionDisplay.from_estimator(matched, ROWS).values, expected.values)


@pytest.mark.parametrize("width", [1, 2])
def test_a_witness_is_the_difference(width):
    first, second = ROWS[:15, :width], ROWS[15:, :width]
    f, g = mh.embed(mh.Gaussian(1.0), first), mh.embed(mh.Gaussian(1.0), second)
    display = FunctionDisplay.from_elements(f, g, first, second)
    assert_allclose(display.values, f(display.grid) - g(display.grid), atol=1e-14)
    assert texts(display.ax_) == ["first sample", "second sample"]


@pytest.mark.parametrize("width", [1, 2])
def test_the_witness_of_a_test(width):
    first, second = sample(30, width, seed=0), sample(20, width, seed=1, shift=3.0)
    result = mh.mmd_test(first, second, random_state=0)
    display = FunctionDisplay.from_result(result)
    assert_allclose(display.values, result.witness(display.grid))
    assert [label for label, _ in display.points] == ["X", "Y"]
    assert_array_equal(display.points[1][1], second)


def test_the_witness_of_an_alarm_along_a_column():
    rows = np.random.default_rng(0).normal(size=(120, 3))
    monitor = mh.DriftMonitor(100, n_simulations=100, block_length=1, random_state=0).fit(rows)
    with pytest.raises(ValueError, match="no alarm"):
        FunctionDisplay.from_monitor(monitor)
    monitor.update(rows[:60] + np.array([0.0, 4.0, 0.0]))
    display = FunctionDisplay.from_monitor(monitor)
    assert display.name == display.ax_.get_xlabel() == "x1"
    assert texts(display.ax_) == ["reference", "window of the alarm"]
    at = np.interp([0.0, 4.0], display.grid[:, 0], display.values)
    assert at[0] > 0 > at[1]
    with pytest.raises(ValueError, match="column='z' must be one of"):
        FunctionDisplay.from_monitor(monitor, "z")


def test_draws_into_given_axes_with_given_style():
    figure, ax = plt.subplots()
    display = FunctionDisplay.from_estimator(mh.KernelMean().fit(ROWS[:, :1]), ROWS[:, :1], ax=ax, color="k")
    assert display.ax_ is ax
    assert display.figure_ is figure
    assert ax.lines[0].get_color() == "k"


def test_functions_that_cannot_be_drawn():
    with pytest.raises(ValueError, match="3 columns; only functions of 1 or 2"):
        FunctionDisplay.from_estimator(mh.KernelMean().fit(X), X)
    with pytest.raises(ValueError, match="3 columns; only functions of 1 or 2"):
        FunctionDisplay.from_result(mh.mmd_test(X, X + 1, mh.Gaussian(), 9))
    with pytest.raises(ValueError, match="no witness"):
        FunctionDisplay.from_result(mh.mmd_test(np.eye(8), np.arange(8) > 3, "precomputed", 9))
    with pytest.raises(NotFittedError):
        FunctionDisplay.from_estimator(mh.KernelMean(), ROWS)


# ---------------------------------------------------------------- bands


@pytest.mark.parametrize("mean", [mh.KernelMean(KERNEL), mh.ShrunkKernelMean(KERNEL)], ids=["plain", "shrunk"])
def test_bands_are_those_of_the_mean_along_a_column(mean):
    display = FunctionDisplay.from_bands(mean.fit(X), X, column=2, level=0.8)
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
    assert texts(display.ax_) == ["80 % at each point", "sample"]
    assert display.ax_.get_xlabel() == "column 2"


def test_bands_of_an_element():
    f = mh.embed(KERNEL, X[:, :1])
    display = FunctionDisplay.from_bands(f, X[:, :1])
    assert_array_equal(display.bands.low, mean_bands(f, display.bands.points).low)
    assert display.ax_.get_xlabel() == "x"


def test_the_other_columns_where_they_are_asked_for():
    frame = pd.DataFrame(X, columns=["height", "width", "depth"])
    display = FunctionDisplay.from_bands(mh.KernelMean().fit(frame), frame, column=1, at=[7.0, 8.0, 9.0], color="k")
    assert_array_equal(np.unique(display.bands.points[:, [0, 2]], axis=0), [[7.0, 9.0]])
    assert display.ax_.get_xlabel() == "width"
    assert display.ax_.lines[0].get_color() == "k"


def test_bands_over_a_constant_column_and_in_given_axes():
    figure, ax = plt.subplots()
    rows = np.ones((5, 1))
    display = FunctionDisplay.from_bands(mh.KernelMean(KERNEL).fit(rows), rows, ax=ax)
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
        FunctionDisplay.from_bands(mh.KernelMean(KERNEL).fit(X), X, **options)


def test_what_has_no_bands():
    with pytest.raises(ValueError, match="X has 2 columns and the mean 3"):
        FunctionDisplay.from_bands(mh.KernelMean(KERNEL).fit(X), X[:, :2])
    with pytest.raises(ValueError, match="Gram matrix is not a function"):
        FunctionDisplay.from_bands(mh.KernelMean("precomputed").fit(KERNEL(X)), KERNEL(X))
    with pytest.raises(NotFittedError):
        FunctionDisplay.from_bands(mh.KernelMean(), X)
