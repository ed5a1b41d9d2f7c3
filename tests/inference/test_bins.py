"""Bins of rows of any sizes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from muhat.inference.bins import bin_means, draw_bins
from muhat.inference.splits import number_of_splits

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
