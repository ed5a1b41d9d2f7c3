"""Splits and pairings of rows: all of them where they are few, within strata, in bins of any sizes, and their sums."""

import itertools

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from permutation_tests import permuted, splits_of
from scipy import stats
from tables import sample

import muhat as mh
from muhat.inference import permutations
from muhat.inference.independence import hsic_test
from muhat.inference.permutations import bin_means, draw_bins, draw_units, number_of_splits, other_splits
from muhat.inference.two_sample import mmd_test


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


@pytest.mark.parametrize("missing", [None, np.nan, pd.NaT, pd.NA, np.datetime64("NaT", "D")])
@pytest.mark.parametrize("form", [list, lambda labels: pd.Series(labels, dtype=object)])
def test_missing_strata_are_refused(missing, form):
    rows = np.random.default_rng(0).normal(size=(8, 2))
    labels = form(["a", "b", "a", "b", missing, "a", "b", missing])
    for call in (
        lambda: mh.mmd_test(rows[:4], rows[4:], strata=labels),
        lambda: mh.hsic_test(rows, rows, strata=labels),
    ):
        with pytest.raises(ValueError, match=r"strata\[4\] is missing; leave rows without a label out, or give them"):
            call()


def test_strata_of_any_type():
    rows = np.random.default_rng(0).normal(size=(12, 2))
    want = mh.mmd_test(rows[:6], rows[6:], strata=[0, 1] * 6, random_state=0, n_resamples=99)
    days = pd.to_datetime(["2026-01-01", "2026-01-02"] * 6)
    for labels in (["a", "b"] * 6, days, pd.Series(days.date), pd.Series([1, "b"] * 6, dtype=object)):
        found = mh.mmd_test(rows[:6], rows[6:], strata=labels, random_state=0, n_resamples=99)
        assert_array_equal(found.null_distribution, want.null_distribution)
    with_missing = days.to_numpy().copy()
    with_missing[3] = np.datetime64("NaT", "D")
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
    assert number_of_splits(bins.of_first, bins.strata)[0] >= 2
    assert len(bins.of_first) <= max(4_000, len(observed) * (len(first) > 100))


def test_means_over_bins():
    rows = np.random.default_rng(0).normal(size=(7, 2))
    bins = draw_bins(np.repeat([1.0, 0.0], [4, 3]), None, 2, np.random.default_rng(0))
    assert_allclose(bin_means(rows, 1), rows)
    assert_allclose(bin_means(rows[:6], 3)[1], rows[[1, 3, 5]].mean(axis=0))
    assert str(bins) == "7 bins of 1 rows; 0 rows are in no bin"


RNG = np.random.default_rng(0)


@pytest.mark.parametrize("strata", [None, [0, 0, 0, 0, 1, 1]])
def test_few_pairings_are_listed(strata):
    drawn, smallest = permutations.draw_pairings(6, None if strata is None else np.array(strata), 999, RNG)
    pairs = drawn.permutations()
    every = [p for p in itertools.permutations(range(6)) if strata is None or max(p[:4]) == 3]
    assert_array_equal(pairs[0], range(6))
    assert sorted(map(tuple, pairs)) == every
    assert_allclose(smallest, 1 / len(every))
    with_fewer, smallest = permutations.draw_pairings(6, None, 718, RNG)
    assert len(with_fewer.permutations()) == 719
    assert_allclose(smallest, 1 / 719)


@pytest.mark.parametrize("n", [2, 3, 4, 5, 8, 9, 131, 260])
def test_families_of_pairings_are_shifts(n):
    """260 rows have more diagonals than a block holds."""
    rng = np.random.default_rng(n)
    K, L = (A + A.T for A in rng.normal(size=(2, n, n)))
    orders = rng.permuted(np.tile(np.arange(n), (3, 1)), axis=1)
    sums = permutations.pairing_sums([K], [L], orders)[0, 0]
    for b, t in itertools.product(range(3), {0, 1, n // 2, n - 1}):
        want = (permuted(K, orders[0]) * permuted(L, np.roll(orders[b], -t))).sum()
        assert_allclose(sums[b, t], want, rtol=0, atol=1e-13 * n**2)


@pytest.mark.parametrize("n_resamples", [1, 6, 7, 8, 20, 50])
def test_the_number_of_resamples_is_kept(n_resamples):
    """Combined statistics within 1e-8 are ties: with this seed, one resample of HSIC is one, at 6e-9."""
    X, Y = sample(7, 2, seed=0), sample(7, 1, seed=1)
    options = {"n_resamples": n_resamples, "random_state": 295}
    for result in (hsic_test(X, Y, **options), mmd_test(X, X + 1, **options)):
        assert result.null_distribution.shape == (n_resamples,)
        reached = np.count_nonzero(result.null_distribution >= result.statistic * (1 - 1e-8))
        assert result.pvalue == (reached + 1) / (n_resamples + 1)


@pytest.mark.slow
def test_families_scatter_the_p_value_no_more_than_independent_draws():
    X = sample(40, 2, seed=0)
    Y = 0.25 * X + sample(40, 2, seed=1)
    pvalues = np.array([hsic_test(X, Y, mh.Gaussian(), None, 79, seed).pvalue for seed in range(400)])
    binomial = pvalues.mean() * (1 - pvalues.mean()) / 79
    low, high = stats.chi2.ppf([1e-4, 1 - 1e-4], 399) / 399
    assert low < pvalues.var(ddof=1) / binomial < high


@pytest.mark.parametrize("strata", [None, "two"])
@pytest.mark.parametrize("sizes", [(40, 60), (3000, 2500), (100, 5000)])
def test_units_cut_rows_within_samples_and_strata(sizes, strata):
    rng = np.random.default_rng(0)
    labels = None if strata is None else rng.integers(2, size=sum(sizes))
    units = draw_units(sizes, labels, None, 2000, 1000, rng)
    observed = np.repeat([1.0, 0.0], sizes)
    inside = units.numbers >= 0
    assert_array_equal(observed[inside], units.of_first[units.numbers[inside]])
    assert len(np.unique(np.bincount(units.numbers[inside]))) == 1
    if labels is not None:
        assert len(np.unique(np.column_stack([units.strata[units.numbers[inside]], labels[inside]]), axis=0)) == 2
    members = units.members(3, rng)
    assert_array_equal(units.numbers[members], np.tile(np.arange(len(units.of_first)), (3, 1)))


def test_clusters_change_sides_whole():
    """The MMD of means of clusters is that of weighted rows, and a cluster of many counts like one of few."""
    rng = np.random.default_rng(0)
    clusters = np.repeat(np.arange(9), [1, 2, 3, 4, 5, 1, 2, 3, 9])
    rows = rng.normal(size=(len(clusters), 2)) + rng.normal(size=(9, 2))[clusters]
    n = int((clusters < 4).sum())
    result = mh.mmd_test(rows[:n], rows[n:], mh.Gaussian(1.0), clusters=clusters, random_state=0)
    weights = np.array([1 / np.sum(clusters == c) * (1 / 4 if c < 4 else -1 / 5) for c in clusters])
    assert_allclose(result.statistic, weights @ mh.Gaussian(1.0)(rows, rows) @ weights, rtol=1e-10)
    assert len(result.null_distribution) == 125  # all choices of four clusters among nine, but the observed one
    assert_allclose(result.witness(rows[:2]), mh.Gaussian(1.0)(rows[:2], rows) @ weights, rtol=1e-10)
    several = mh.mmd_test(rows[:n], rows[n:], clusters=clusters, random_state=0)
    assert several.smallest_pvalue == result.smallest_pvalue == 1 / 126
    assert several.method == "9 clusters, with 4 rows each"


@pytest.mark.parametrize("kernel", [None, mh.Gaussian()], ids=["default", "kernel"])
def test_clusters_keep_the_level(kernel):
    """Rows of one cluster are nearly equal: without clusters nearly every test rejects."""
    rng = np.random.default_rng(1)
    clusters = np.repeat(np.arange(24), 5)

    def pvalue(**options):
        rows = 3 * rng.normal(size=(24, 2))[clusters] + rng.normal(size=(120, 2))
        return mh.mmd_test(rows[:60], rows[60:], kernel, 39, rng, **options).pvalue

    found = np.array([pvalue(clusters=clusters) for _ in range(100)])
    assert np.count_nonzero(found <= 0.05) <= stats.binom.ppf(0.9999, 100, 0.05)
    assert np.mean([pvalue() <= 0.05 for _ in range(20)]) > 0.5


@pytest.mark.parametrize(
    ("clusters", "strata", "message"),
    [
        ([1, 2, 3], None, r"clusters has shape \(3,\) and must have one label for each of the 8"),
        ([1, 1, 2, 3, 3, 4, 4, 5], None, r"one label is in several samples.*pass strata= in place.*\(3\)"),
        ([1, 1, 2, 2, 3, 3, 4, 4], [0, 1] * 4, r"one label is in several strata.*leave strata out \(1\)"),
        ([1, 1, 1, 1, 2, 3, 4, 5], None, "1 and 4 labels in the two samples, and two each are needed"),
        ([1, 1, 2, 2, 3, 3, 4, np.nan], None, r"clusters\[7\] is missing"),
    ],
)
def test_clusters_that_cannot_be_permuted(clusters, strata, message):
    rows = np.random.default_rng(0).normal(size=(8, 2))
    with pytest.raises(ValueError, match=message):
        mh.mmd_test(rows[:4], rows[4:], clusters=clusters, strata=strata)


def test_many_clusters_are_permuted_in_bins():
    rng = np.random.default_rng(0)
    clusters = np.repeat(np.arange(3000), 2)
    units = draw_units((3000, 3000), None, clusters, 2000, 1000, rng)
    assert len(units.of_first) == 1000
    assert_array_equal(units.numbers[::2], units.numbers[1::2])
