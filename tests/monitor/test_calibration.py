"""Promises that are refused and kept, scores as minus the logarithm of a tail, and thresholds of all rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from muhat.apps.monitor.calibration import TailScale, _smallest_threshold, calibrate, longest_promise
from muhat.apps.monitor.reference import Reference, population
from muhat.apps.monitor.windows import SimulatedStreams

RNG = np.random.default_rng(0)
SIMULATED = np.stack([RNG.exponential(size=20_000), RNG.normal(size=20_000)])
SCALE = TailScale.of(SIMULATED, np.array([np.inf, 50.0]))


def test_a_score_is_the_logarithm_of_the_tail():
    at = np.quantile(SIMULATED[0], [0.6, 0.9, 0.99])
    scores, _ = SCALE(np.stack([at, np.full(3, -9.0)]))
    assert_allclose(scores, -np.log([0.4, 0.1, 0.01]), rtol=0.01)


def test_beyond_what_is_known_it_grows_as_the_predictive_tail():
    """With m = 30 exponential excesses of mean e beyond a quantile q, P(S > q + x) is (1 + x / (m e))^(−m) P(S > q)."""
    m, top = 30, np.log(50.0 / 30.0)
    assert_allclose(SCALE.scores[1, 63], max(top, np.log(2.0)))
    top, last = SCALE.scores[0, 63], SCALE.quantiles[0, 63]
    assert_allclose(top, np.log(20_000 / 30))
    excess = (SIMULATED[0][SIMULATED[0] > last] - last).mean()
    for score in (1.0, 3.0, 10.0):
        x = m * excess * np.expm1(score / m)
        assert_allclose(SCALE(np.array([[last + x], [-9.0]]))[0], top + score, rtol=1e-9)
    far, _ = SCALE(np.stack([[40.0, 41.0, 42.0], np.full(3, -9.0)]))
    assert 0.0 < np.diff(far)[0] < 1.0, "an excess that is not known to be exponential counts for less"


def test_few_rows_and_many_have_the_same_scores_to_the_last_bit():
    values = RNG.normal(size=(2, 200)) * 3
    values[1, ::7] = -np.inf
    values[:, 0] = -np.inf
    together, which = SCALE(values)
    for k, row in enumerate(values.T):
        score, component = SCALE(row[:, None])
        assert_array_equal(score[0], together[k])
        assert component[0] == which[k]


def test_a_floor_leaves_out_what_is_below():
    values = RNG.normal(size=(2, 500)) * 3
    whole, cut = SCALE(values)[0], SCALE(values, 3.0)[0]
    above = whole > 3.0
    assert_array_equal(cut[above], whole[above])
    assert (cut[~above] <= 3.0).all()


def test_equal_statistics():
    """A statistic that takes one value has no tail; what exceeds it is far out."""
    scale = TailScale.of(np.full((1, 1000), 2.0), np.array([np.inf]))
    scores, _ = scale(np.array([[1.0, 2.0, 2.1]]))
    assert np.isfinite(scores).all()
    assert scores[0] <= scores[1] < 10 < scores[2]


@pytest.mark.parametrize("distinct", [1, 2, 5])
def test_few_statistics_that_differ_have_a_scale_too(distinct):
    """The median is then the last quantile that counts as known."""
    statistics = np.random.default_rng(0).normal(size=(1, 200))
    scale = TailScale.of(statistics, np.array([distinct]))
    assert np.isfinite(scale.slopes).all()
    assert (scale.slopes[:, 63:] > 0).all()


def test_equal_statistics_have_the_score_of_their_tail():
    """A value that a fifth of the simulated statistics take, and one that differs from it by little."""
    values = np.random.default_rng(0).choice([0.0, 1.0, 2.0], 5000, p=[0.3, 0.5, 0.2])[None]
    scores, _ = TailScale.of(values, np.array([np.inf]))(np.array([[2.0, 2.0 + 1e-3, 1.0]]))
    assert_allclose(scores[0], -np.log((values == 2.0).mean()), rtol=1e-9)
    assert scores[0] < scores[1] < scores[0] + 0.05
    assert scores[2] <= np.log(2.0)


def test_statistics_that_do_not_exist_have_no_score():
    scale = TailScale.of(np.stack([np.full(500, -np.inf), RNG.normal(size=500)]), np.array([np.inf, np.inf]))
    assert np.isfinite(scale.quantiles).all()
    for columns in (3, 40):
        scores, which = scale(np.stack([np.full(columns, -np.inf), np.full(columns, 1.0)]))
        assert np.isfinite(scores).all()
        assert (which == 1).all()


def simulated(lengths, streams=1000, n=200):
    reference, windows = Reference.of(np.random.default_rng(0).normal(size=(n, 2))), np.array(lengths)
    constants = reference.window_constants(windows)
    return SimulatedStreams(population(reference), windows, constants, streams, np.random.default_rng(1))


@pytest.mark.slow
@pytest.mark.parametrize(("lengths", "run_length"), [([1, 3, 10, 30], 100), ([1, 3, 10, 30, 100], 400)])
def test_simulated_streams_keep_the_promise_to_themselves(lengths, run_length):
    """Fresh streams of the same simulation: their mean run length, and run lengths that vary as geometric ones do."""
    streams = simulated(lengths)
    found = calibrate(streams, run_length, lambda text: None)
    most = 8 * run_length
    scores = np.concatenate([found.scale(piece)[0] for piece in streams.statistics(most)], axis=1)
    alarms = scores > found.threshold
    runs = np.where(alarms.any(axis=1), alarms.argmax(axis=1) + 1, most)
    assert abs(runs.mean() - run_length) < 5 * runs.std() / np.sqrt(1000)
    assert 0.8 < runs.std() / runs.mean() < 1.2


def test_the_threshold_is_the_smallest_that_keeps_the_mean_run():
    """Three streams of exponential scores, against a loop over all thresholds."""
    scores = np.random.default_rng(0).exponential(size=(3, 200))

    def mean_run(threshold):
        above = scores > threshold
        runs = [row.argmax() + 1 if row.any() else 200 for row in above]
        return sum(runs) / max(above.any(axis=1).sum(), 1)

    highest = np.maximum.accumulate(scores, axis=1)
    for run_length in (2.0, 20.0, 150.0):
        expected = next(level for level in np.unique(scores) if mean_run(level) >= run_length)
        assert_allclose(_smallest_threshold(highest, run_length), expected, rtol=1e-9)


def test_long_promises_are_extrapolated_by_the_growth_of_the_threshold(monkeypatch):
    """Scores are logarithms of run lengths, so that ten times as long a promise has a threshold about log 10 higher."""
    monkeypatch.setattr("muhat.apps.monitor.calibration._LONGEST_SIMULATED", 100)
    short, long = (calibrate(simulated([1, 5], 200), length, lambda text: None).threshold for length in (100, 1000))
    assert 1.0 < long - short < 4.0


def test_promises_grow_with_the_square_of_the_rows():
    for rows, most in ((1000, 10_000), (300, 900), (317, 1004), (10, 2)):
        assert longest_promise(rows) == most
