"""Strata of tests: any type of labels, none of them missing."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

import muhat as mh


@pytest.mark.parametrize("missing", [None, np.nan, pd.NaT, pd.NA, np.datetime64("NaT")])
@pytest.mark.parametrize("form", [list, lambda labels: pd.Series(labels, dtype=object)])
def test_missing_strata_are_refused(missing, form):
    rows = np.random.default_rng(0).normal(size=(8, 2))
    labels = form(["a", "b", "a", "b", missing, "a", "b", missing])
    for call in (
        lambda: mh.mmd_test(rows[:4], rows[4:], strata=labels),
        lambda: mh.hsic_test(rows, rows, strata=labels),
    ):
        with pytest.raises(ValueError, match=r"strata\[4\] is missing; leave rows without a stratum out, or give them"):
            call()


def test_strata_of_any_type():
    rows = np.random.default_rng(0).normal(size=(12, 2))
    want = mh.mmd_test(rows[:6], rows[6:], strata=[0, 1] * 6, random_state=0, n_resamples=99)
    days = pd.to_datetime(["2026-01-01", "2026-01-02"] * 6)
    for labels in (["a", "b"] * 6, days, pd.Series(days.date), pd.Series([1, "b"] * 6, dtype=object)):
        found = mh.mmd_test(rows[:6], rows[6:], strata=labels, random_state=0, n_resamples=99)
        assert_array_equal(found.null_distribution, want.null_distribution)
    with_missing = days.to_numpy().copy()
    with_missing[3] = np.datetime64("NaT")
    with pytest.raises(ValueError, match=r"strata\[3\] is missing"):
        mh.mmd_test(rows[:6], rows[6:], strata=with_missing)
