"""Pictures of a monitor."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import muhat as mh

X = np.random.default_rng(0).normal(size=(120, 3))


@pytest.fixture
def monitor():
    return mh.DriftMonitor(100, n_simulations=100, random_state=0).fit(X)


def test_scores_and_thresholds_over_time(monitor):
    monitor.update(X[:10])
    display = mh.plotting.DriftDisplay.from_monitor(monitor)
    assert_array_equal(display.rows, np.arange(1, 11))
    assert display.alarm is None
    monitor.update(X[:40] + 5.0)
    display = mh.plotting.DriftDisplay.from_monitor(monitor)
    assert display.alarm == monitor.result_.row == display.rows[-1]
    assert display.scores[-1] > display.thresholds[-1]
    assert (display.scores[:-1] <= display.thresholds[:-1]).all()


def test_the_witness_along_a_column(monitor):
    with pytest.raises(ValueError, match="no alarm"):
        mh.plotting.ColumnWitnessDisplay.from_monitor(monitor)
    monitor.update(X[:60] + np.array([0.0, 4.0, 0.0]))
    display = mh.plotting.ColumnWitnessDisplay.from_monitor(monitor)
    assert display.name == "x1"
    at = np.interp([0.0, 4.0], display.values, display.witness)
    assert at[0] > 0 > at[1]
    with pytest.raises(ValueError, match="column='z' must be one of"):
        mh.plotting.ColumnWitnessDisplay.from_monitor(monitor, "z")
