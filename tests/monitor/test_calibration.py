"""Thresholds: of the first rows, and after them."""

import numpy as np
import pytest

import muhat as mh
from muhat.monitor.calibration import SimulatedStreams, calibrate
from muhat.monitor.reference import Reference, population


@pytest.mark.parametrize(("n", "run_length"), [(50, 10), (100, 100), (300, 500)])
@pytest.mark.parametrize("d", [1, 20])
def test_every_row_has_a_threshold_and_none_alarms_at_once(n, d, run_length):
    X = np.random.default_rng(0).normal(size=(n, d))
    monitor = mh.DriftMonitor(run_length, n_simulations=100, block_length=1, random_state=0).fit(X)
    start = monitor._model.calibration.start
    assert len(start) == monitor.windows_[-1] - 1
    assert np.isfinite(start).all()
    assert np.isfinite(monitor.threshold_)
    first = [monitor.reset().update(row) for row in X[:25]]
    assert sum(first) < 10


@pytest.mark.parametrize(("lengths", "run_length"), [([1, 3, 10, 30], 100), ([1, 3, 10, 30, 100], 400)])
def test_simulated_streams_keep_the_promise_to_themselves(lengths, run_length):
    """Fresh streams of the same simulation: mean run length, and the share that alarms in the first rows."""
    reference, windows = Reference.of(np.random.default_rng(0).normal(size=(200, 2))), np.array(lengths)
    constants = reference.window_constants(windows)
    streams = SimulatedStreams(population(reference), windows, constants, 1, 1000, np.random.default_rng(1))
    found = calibrate(streams, run_length, lambda text: None)
    most = 8 * run_length
    scores = np.concatenate([found.scale(piece)[0] for piece in streams.statistics(most)], axis=1)
    alarms = scores > found.thresholds(0, most)
    runs = np.where(alarms.any(axis=1), alarms.argmax(axis=1) + 1, most)
    assert abs(runs.mean() - run_length) < 5 * runs.std() / np.sqrt(1000)
    for rows in (9, 29, 100):
        expected = 1 - (1 - 1 / run_length) ** rows
        assert abs((runs <= rows).mean() - expected) < 5 * np.sqrt(expected / 1000)
