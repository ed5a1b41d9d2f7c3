"""Displays of tests hold what the result holds, and draw it."""

import numpy as np
import pytest
from tables import sample

import muhat as mh
from muhat.plotting import ComponentsDisplay, ResultWitnessDisplay


def test_components_are_bars():
    result = mh.mmd_test(sample(30, 2, seed=0), 2 * sample(30, 2, seed=1), random_state=0)
    display = ComponentsDisplay.from_result(result)
    assert len(display.ax_.patches) == len(result.components)
    assert display.names[0].startswith(result.components[0].group)
    assert result.summary in display.ax_.get_title()


@pytest.mark.parametrize("width", [1, 2])
def test_witness_over_the_samples(width):
    X, Y = sample(30, width, seed=0), sample(20, width, seed=1, shift=3.0)
    display = ResultWitnessDisplay.from_result(mh.mmd_test(X, Y, random_state=0))
    assert [label for label, _ in display.points] == ["X", "Y"]
    np.testing.assert_array_equal(display.points[1][1], Y)


def test_what_cannot_be_drawn_is_said():
    X, Y = sample(10, 3, seed=0), sample(10, 3, seed=1)
    single = mh.mmd_test(X, Y, mh.Gaussian(), 9)
    with pytest.raises(ValueError, match="no components; pass kernel=None"):
        ComponentsDisplay.from_result(single)
    with pytest.raises(ValueError, match="3 columns; only functions of 1 or 2"):
        ResultWitnessDisplay.from_result(single)
    precomputed = mh.mmd_test(np.eye(8), np.arange(8) > 3, "precomputed", 9)
    with pytest.raises(ValueError, match="no witness"):
        ResultWitnessDisplay.from_result(precomputed)
