"""Splits of rows: all of them where they are few, within strata of any type, and of bins of rows of any sizes."""

import itertools

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import muhat as mh
from muhat.inference.splits import bin_means, centred_splits, draw_bins, number_of_splits, other_splits


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


UNEQUAL = {
    "three rows": ([30_000], [3]),
    "fifty": ([13_000], [50]),
    "two hundred": ([500_000], [200]),
    "equal": ([10_000], [10_000]),
    "strata": ([9_000, 3, 40], [7_000, 4, 2_000]),
    "strata of one sample": ([20_000, 2, 0], [0, 2, 9_000]),
    "many strata": ([5] * 3_000, [4] * 3_000),
}


@pytest.mark.parametrize(("first", "second"), UNEQUAL.values(), ids=UNEQUAL)
def test_bins_suit_any_sizes(first, second):
    """Bins hold rows of one sample and stratum; the smaller sample keeps its rows, and a split can be permuted."""
    observed = np.repeat([1.0, 0.0], [sum(first), sum(second)])
    strata = np.concatenate([np.repeat(np.arange(len(sizes)), sizes) for sizes in (first, second)])
    bins = draw_bins(observed, strata if len(first) > 1 else None, 2000, np.random.default_rng(0))
    inside = np.isin(np.arange(len(observed)), bins.rows)
    assert len(np.unique(bins.rows)) == bins.members.size == len(observed) - bins.unused
    for members in bins.members:
        assert_array_equal(observed[members], bins.of_first)
        if len(first) > 1:
            assert len(np.unique(np.column_stack([bins.strata, strata[members]]), axis=0)) <= len(first)
    smaller = 1.0 if sum(first) < sum(second) else 0.0
    mixed = np.minimum(first, second) > 0
    assert inside[(observed == smaller) & mixed[strata]].mean() >= 0.9
    assert min(bins.of_first.sum(), (1 - bins.of_first).sum()) >= min(50, sum(first), sum(second))
    assert number_of_splits(bins.of_first, bins.strata) >= 2
    assert len(bins.of_first) <= max(4_000, len(observed) * (len(first) > 100))


def test_means_over_bins():
    rows = np.random.default_rng(0).normal(size=(7, 2))
    bins = draw_bins(np.repeat([1.0, 0.0], [4, 3]), None, 2, np.random.default_rng(0))
    assert_allclose(bin_means(rows, 1), rows)
    assert_allclose(bin_means(rows[:6], 3)[1], rows[[1, 3, 5]].mean(axis=0))
    assert str(bins) == "7 bins of 1 rows; 0 rows are in no bin"
