"""Displays of results hold what the result holds, and draw it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from tables import sample

import muhat as mh
from muhat.plotting.result_displays import ComponentsDisplay, DriftDisplay, LooPathDisplay

ROWS = np.random.default_rng(0).normal(size=(30, 2))
STREAM = np.random.default_rng(0).normal(size=(120, 3))


def test_loo_path_marks_the_choice():
    fitted = mh.ShrunkKernelMean(mh.Gaussian(0.3)).fit(ROWS)
    display = LooPathDisplay.from_estimator(fitted)
    curve, mark = display.ax_.lines
    assert_array_equal(curve.get_xydata(), np.column_stack(fitted.loo_path_))
    assert_allclose(mark.get_xydata()[0], [fitted.shrinkage_, fitted.loo_score_])
    assert fitted.loo_score_ <= curve.get_ydata().min() + 1e-15


def test_loo_path_over_lam_is_logarithmic_and_limits_stay_on_the_curve():
    fitted = mh.SpectralKernelMean(mh.Gaussian(50.0)).fit(ROWS)
    display = LooPathDisplay.from_estimator(fitted)
    assert display.ax_.get_xscale() == "log"
    low, high = display.path.values[[0, -1]]
    assert low <= display.ax_.lines[1].get_xdata()[0] <= high


def test_a_given_parameter_has_no_path():
    with pytest.raises(ValueError, match="searched no parameter"):
        LooPathDisplay.from_estimator(mh.SpectralKernelMean(lam=1.0).fit(ROWS))


def test_components_are_bars():
    result = mh.mmd_test(sample(30, 2, seed=0), 2 * sample(30, 2, seed=1), random_state=0)
    display = result.plot(color="k")
    assert isinstance(display, ComponentsDisplay)
    assert display.ax_.patches[0].get_facecolor() == (0.0, 0.0, 0.0, 1.0)
    assert len(display.ax_.patches) == len(result.components)
    assert display.names[0].startswith(result.components[0].group)
    assert result.summary in display.ax_.get_title()


def test_a_test_of_one_kernel_has_no_components():
    with pytest.raises(ValueError, match="no components; pass kernel=None"):
        ComponentsDisplay.from_result(mh.mmd_test(sample(10, 3, seed=0), sample(10, 3, seed=1), mh.Gaussian(), 9))


def test_scores_and_thresholds_over_time():
    monitor = mh.DriftMonitor(100, n_simulations=100, block_length=1, random_state=0).fit(STREAM)
    monitor.update(STREAM[:10])
    display = DriftDisplay.from_monitor(monitor)
    assert_array_equal(display.rows, np.arange(1, 11))
    assert display.alarm is None
    monitor.update(STREAM[:40] + 5.0)
    display = DriftDisplay.from_monitor(monitor)
    assert display.alarm == monitor.result_.row == display.rows[-1]
    assert display.scores[-1] > display.thresholds[-1]
    assert (display.scores[:-1] <= display.thresholds[:-1]).all()
