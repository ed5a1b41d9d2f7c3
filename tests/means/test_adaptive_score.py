"""The score of the adaptive mean is found when it is asked for, and does not depend on what was asked for before."""

import numpy as np
import pytest
from tables import sample

import muhat as mh

X = sample(40, 2, seed=3)


@pytest.mark.parametrize("solver", ["dense", "low-rank"])
def test_the_path_and_the_score_are_the_same_in_any_order(solver):
    first, second = (mh.AdaptiveKernelMean(mh.Gaussian(2.0), solver=solver).fit(X) for _ in range(2))
    score, path = first.loo_score_, first.loo_path_
    np.testing.assert_array_equal(second.loo_path_.scores, path.scores)
    assert second.loo_score_ == score
    assert path.scores.min() >= score * (1 - 1e-9)


def test_the_score_of_few_directions_is_that_of_all():
    """A wide kernel, whose Gram matrix a few directions hold."""
    dense, few = (mh.AdaptiveKernelMean(mh.Gaussian(9.0), solver=solver).fit(X) for solver in ("dense", "low-rank"))
    assert few.loo_score_ == pytest.approx(dense.loo_score_, rel=1e-4)
    np.testing.assert_allclose(few.loo_path_.scores, dense.loo_path_.scores, rtol=1e-3)
