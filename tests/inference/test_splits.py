"""Splits of rows: all of them where they are few, within strata."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from muhat.inference.splits import centred_splits, other_splits


def splits_of(n, m, count=7, seed=0, strata=None):
    observed = np.repeat([1.0, 0.0], [n, m])
    drawn = list(other_splits(observed, count, np.random.default_rng(seed), strata))
    return np.column_stack([observed, *drawn]), centred_splits(observed, count, np.random.default_rng(seed), strata)


def test_strata_permute_within_blocks():
    strata = np.array([0, 0, 1, 1, 1, 0, 1, 0])
    everything, splits = splits_of(4, 4, count=50, strata=strata)
    for stratum in (0, 1):
        inside = everything[strata == stratum]
        assert_array_equal(inside.sum(axis=0), inside[:, 0].sum())
        assert_allclose(splits.centred[strata == stratum].sum(axis=0), 0.0, atol=1e-12)
    assert len(np.unique(everything, axis=1).T) > 20


@pytest.mark.parametrize("n_resamples", [34, 35, 999])
def test_few_splits_are_listed_and_many_drawn(n_resamples):
    """A set of sets as the oracle: in two strata, 6 choices of two among four rows times 6 again."""
    strata = np.array([0, 1] * 4)
    observed = np.array([1.0, 1, 1, 1, 0, 0, 0, 0])
    found = np.hstack(list(other_splits(observed, n_resamples, np.random.default_rng(0), strata))).T
    pairs = [set(itertools.combinations(np.flatnonzero(strata == stratum), 2)) for stratum in (0, 1)]
    every = {frozenset(a + b) for a, b in itertools.product(*pairs)} - {frozenset(range(4))}
    listed = [frozenset(np.flatnonzero(row)) for row in found]
    assert len(listed) == min(n_resamples, 35)
    assert (set(listed) == every) == (n_resamples >= 35)
