"""Displays of results hold what the result holds, and draw it."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from tables import sample

import muhat as mh
from muhat.plotting.result_displays import ComponentsDisplay, DriftDisplay

STREAM = np.random.default_rng(0).normal(size=(120, 3))


def test_components_are_bars():
    result = mh.mmd_test(sample(30, 2, seed=0), 2 * sample(30, 2, seed=1), random_state=0)
    display = result.plot(color="k")
    assert isinstance(display, ComponentsDisplay)
    assert display.ax_.patches[0].get_facecolor() == (0.0, 0.0, 0.0, 1.0)
    assert len(display.ax_.patches) == len(result.components)
    assert display.names[0].startswith(result.components[0].group)
    assert result.summary in display.ax_.get_title()
    assert len(repr(display)) < 100  # which notebooks print above the picture


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
