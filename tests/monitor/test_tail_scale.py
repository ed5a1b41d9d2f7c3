"""Scores: minus the logarithm of a tail, the same for few rows and for many."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from muhat.monitor.tail_scale import TailScale

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


def test_statistics_that_do_not_exist_have_no_score():
    scale = TailScale.of(np.stack([np.full(500, -np.inf), RNG.normal(size=500)]), np.array([np.inf, np.inf]))
    assert np.isfinite(scale.quantiles).all()
    for columns in (3, 40):
        scores, which = scale(np.stack([np.full(columns, -np.inf), np.full(columns, 1.0)]))
        assert np.isfinite(scores).all()
        assert (which == 1).all()
