"""The two-sample test: type I error, strata, kernels, thousands of rows, sketches."""

import itertools
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from tables import sample

import muhat as mh
from muhat.inference import difference_statistics, kernel_sums, two_sample
from muhat.inference.permutations import other_splits
from muhat.inference.two_sample import SketchBins, sketch_components


@pytest.mark.slow
def test_strata_keep_the_level_where_they_differ():
    """Two centres with other means and other shares of X: within centres nothing differs."""

    def draw(rng, strata):
        X, Y = rng.normal(size=(30, 2)), rng.normal(size=(30, 2))
        labels = np.concatenate([np.arange(30) < 24, np.arange(30) < 6])
        rows = np.concatenate([X, Y]) + 3.0 * labels[:, None]
        return mh.mmd_test(rows[:30], rows[30:], None, 19, rng, strata=labels if strata else None).pvalue

    rng = np.random.default_rng(0)
    with_strata = np.array([draw(rng, True) for _ in range(200)])
    assert np.count_nonzero(with_strata <= 0.05) <= stats.binom.ppf(0.9999, 200, 0.05)
    assert np.mean([draw(rng, False) <= 0.05 for _ in range(20)]) == 1.0


@pytest.mark.parametrize("settings", [{}, {"unbiased": True}])
def test_precomputed_is_the_kernel(settings):
    X, Y, kernel = sample(20, 2, seed=0), sample(15, 2, seed=1), mh.Gaussian(1.0)
    K = kernel(np.vstack([X, Y]))
    named = mh.mmd_test(X, Y, kernel, 99, 0, **settings)
    given = mh.mmd_test(K, np.arange(35) >= 20, "precomputed", 99, 0, **settings)
    assert given.pvalue == named.pvalue
    assert_allclose(given.null_distribution, named.null_distribution, atol=1e-10)
    assert given.kernel is None
    assert given.witness is None


def test_units_of_columns_do_not_matter():
    X, Y = sample(30, 3, seed=0), sample(30, 3, seed=1, shift=0.5)
    units = np.array([1e-6, 1.0, 1e6])
    plain, scaled = (mh.mmd_test(X * u, Y * u, random_state=0) for u in (1.0, units))
    assert plain.pvalue == scaled.pvalue
    assert_allclose(scaled.statistic, plain.statistic, rtol=1e-6)


def test_the_witness_is_that_of_the_kernel_in_the_units_of_the_columns():
    X, Y = sample(20, 2, seed=0) * [1.0, 50.0], sample(15, 2, seed=1, shift=3.0) * [1.0, 50.0]
    result = mh.mmd_test(X, Y, n_resamples=99, random_state=0)
    f, g = (mh.embed(result.kernel, rows) for rows in (X, Y))
    assert_allclose(result.witness(X), (f - g)(X), atol=1e-12)
    assert result.witness(X).mean() > result.witness(Y).mean()


def test_threads_and_strips_change_nothing(monkeypatch):
    X, Y = sample(300, 3, seed=0), sample(200, 3, seed=1)
    plain = mh.mmd_test(X, Y, n_resamples=19, random_state=0)
    monkeypatch.setattr("muhat.kernels.tiles.THREADED", 1)
    threaded = mh.mmd_test(X, Y, n_resamples=19, random_state=0)
    assert_array_equal(threaded.null_distribution, plain.null_distribution)
    monkeypatch.setattr(kernel_sums, "STRIP", 64)
    stripped = mh.mmd_test(X, Y, n_resamples=19, random_state=0)
    assert_allclose(stripped.null_distribution, plain.null_distribution, rtol=1e-3, atol=1e-3)  # of float32
    assert stripped.pvalue == plain.pvalue


def test_single_and_double_precision_agree(monkeypatch):
    X, Y = sample(150, 3, seed=0), sample(150, 3, seed=1)
    single = mh.mmd_test(X, Y, n_resamples=99, random_state=0)
    monkeypatch.setattr("muhat.inference.permutations.SMALL", 1000)
    double = mh.mmd_test(X, Y, n_resamples=99, random_state=0)
    assert_allclose(single.null_distribution, double.null_distribution, rtol=1e-3, atol=1e-3)


BINNED = {"exact kernels in bins": 10_000, "features in bins": 100}


@pytest.fixture
def few_bins(request, monkeypatch):
    """Samples of some hundred rows are large."""
    monkeypatch.setattr(two_sample, "MAX_SINGLE_ROWS", 10)
    monkeypatch.setattr(two_sample, "MAX_EXACT_ROWS", request.param)
    monkeypatch.setattr(difference_statistics, "MAX_EXACT_ROWS", request.param)
    monkeypatch.setattr(difference_statistics, "FEATURES", 20)
    monkeypatch.setattr(two_sample, "BINS", 60)
    monkeypatch.setattr(two_sample, "FEATURE_BINS", 60)


@pytest.mark.parametrize("few_bins", BINNED.values(), ids=BINNED, indirect=True)
@pytest.mark.parametrize("change", [lambda X: X, lambda X: 1.5 * X])
def test_bins(change, few_bins):
    X, Y = sample(203, 2, seed=0, shift=0.0), change(sample(150, 2, seed=1, shift=0.0))
    result = mh.mmd_test(X, Y, n_resamples=99, random_state=0)
    assert "bins of 6 rows" in result.method
    assert (result.pvalue == 0.01) == (change(1.0) > 1)


@pytest.mark.slow
@pytest.mark.parametrize("few_bins", BINNED.values(), ids=BINNED, indirect=True)
def test_level_with_bins(few_bins):
    rng = np.random.default_rng(0)
    pvalues = [
        mh.mmd_test(rng.normal(size=(60, 2)), rng.normal(size=(91, 2)), None, 19, rng).pvalue for _ in range(200)
    ]
    assert np.count_nonzero(np.array(pvalues) <= 0.05) <= stats.binom.ppf(0.9999, 200, 0.05)


@pytest.mark.slow
def test_a_small_sample_against_a_large_one():
    """Beyond the rows of matrices: a shift of three rows by three standard deviations, and no shift."""
    rng = np.random.default_rng(1)
    X, Y = rng.normal(size=(12_500, 2)), rng.normal(size=(3, 2))
    assert mh.mmd_test(X, Y, random_state=0).pvalue > 0.05
    result = mh.mmd_test(X, Y + 3.0, random_state=0)
    assert result.pvalue <= 0.002
    assert "2,003 bins of 1 rows; 10,500 rows are in no bin" in result.method


def test_listed_splits_are_exact_for_any_labels():
    """Each of the 20 splits is the observed one once: p-values of all are then uniform up to ties, and need no seed."""
    rows = sample(6, 2, seed=0)
    pvalues = []
    for first in itertools.combinations(range(6), 3):
        mask = np.isin(np.arange(6), first)
        one, two = (mh.mmd_test(rows[mask], rows[~mask], random_state=seed) for seed in (0, 1))
        assert one.pvalue == two.pvalue
        pvalues.append(one.pvalue)
    assert_allclose(np.sort(pvalues), np.repeat(np.arange(2, 21, 2), 2) / 20)


def test_a_stratum_of_one_sample_is_kept_as_it_is():
    """It is enough that some stratum has rows of both."""
    X, Y = sample(8, 2, seed=0), sample(6, 2, seed=1)
    result = mh.mmd_test(X, Y, mh.Gaussian(), n_resamples=19, random_state=0, strata=np.repeat([0, 1], [3, 11]))
    assert 0 < result.pvalue <= 1


X, Y = sample(20, 2, seed=0), sample(20, 2, seed=1) + 1.0


def test_units_of_columns_may_be_given():
    found = mh.mmd_test(X, Y, mh.Gaussian(), 9, scale=[2.0, 5.0], random_state=0)
    divided = mh.mmd_test(X / [2.0, 5.0], Y / [2.0, 5.0], mh.Gaussian(), 9, random_state=0)
    assert found.statistic == pytest.approx(divided.statistic, rel=1e-12)


def test_a_test_by_one_kernel_names_no_column():
    assert mh.mmd_test(X, Y, mh.Gaussian(), 9).column is None
    assert mh.mmd_test(X, Y, n_resamples=9, random_state=0).column == ("0", "location")


def test_many_rows_of_many_columns(monkeypatch):
    """Where kernels are features, second moments of more columns than these are left out."""
    monkeypatch.setattr(two_sample, "MAX_SINGLE_ROWS", 500)
    monkeypatch.setattr(difference_statistics, "MAX_EXACT_ROWS", 500)
    monkeypatch.setattr(difference_statistics, "MAX_COLUMNS_FOR_MOMENTS", 20)
    rows = np.random.default_rng(0).normal(size=(600, 21))
    for width, known in ((20, True), (21, False)):
        found = mh.mmd_test(rows[:300, :width], rows[300:, :width], n_resamples=9, random_state=0)
        assert ("second moments" in {part.name for part in found.components}) is known


def test_features_in_bins_of_one_row_give_the_unbiased_distance():
    X, Y = sample(12, 3, seed=0), sample(9, 3, seed=1) + 0.5
    of_first = np.repeat([1.0, 0.0], [12, 9])
    rows, rng = np.vstack([X, Y]), np.random.default_rng(0)
    bins = SketchBins(rows, (rows**2).sum(axis=1), of_first, 1, 0)
    distance, spread = sketch_components(bins, 19, rng)
    expected = mh.mmd_test(X, Y, mh.Linear(), 1, unbiased=True, scale=None).statistic
    assert_allclose(distance.statistics[0], expected, rtol=1e-6)
    splits = np.column_stack([of_first, *other_splits(of_first, 19, np.random.default_rng(0))]).astype(bool)
    traces = np.array([[np.trace(np.cov(rows[part].T)) for part in (split, ~split)] for split in splits.T])
    differences = traces[:, 0] - traces[:, 1]
    assert_allclose(spread.statistics, np.abs(differences - differences.mean()), rtol=1e-10)
    assert spread.value == ("X" if differences[0] > differences.mean() else "Y")


FIRST, SECOND = sample(2000, 3, seed=0, shift=0.0), sample(1500, 3, seed=1, shift=0.0)

FEATURES = {
    "nystroem": mh.Nystroem(mh.Gaussian(1.5), 40, random_state=0).fit(sample(300, 3, seed=2, shift=0.0)),
    "fourier": mh.Fourier(mh.Gaussian(1.5), 40, random_state=0).fit(FIRST),
}


def sketch(rows, name="nystroem", parts=1, bins=100):
    return sum(mh.MeanSketch(FEATURES[name], bins=bins).update(part) for part in np.array_split(rows, parts))


@pytest.mark.parametrize("name", FEATURES)
def test_bins_of_one_row_are_rows(name):
    """The first component is then the unbiased MMD² of the features, permuted over rows."""
    A, B = sample(30, 3, seed=3), sample(25, 3, seed=4) + 0.5
    found = mh.mmd_test(sketch(A, name), sketch(B, name), n_resamples=199, random_state=0)
    Z, W = FEATURES[name].transform(A), FEATURES[name].transform(B)
    rows = mh.mmd_test(Z, W, mh.Linear(), 199, 0, unbiased=True, scale=None)
    assert found.method == "sketches of 55 bins of 1 rows; 0 rows are in no bin"
    features = next(component for component in found.components if component.name == "features")
    assert features.pvalue == rows.pvalue
    assert found.sizes == (30, 25)


@pytest.mark.parametrize("parts", [1, 2, 9])
@pytest.mark.parametrize("name", FEATURES)
def test_it_finds_differences_and_says_which(name, parts):
    shifted = mh.mmd_test(
        sketch(FIRST, name, parts), sketch(SECOND + 0.3, name, parts), n_resamples=199, random_state=0
    )
    wider = mh.mmd_test(sketch(FIRST, name, parts), sketch(1.5 * SECOND, name, parts), n_resamples=199, random_state=0)
    assert shifted.pvalue == wider.pvalue == shifted.smallest_pvalue == 0.005
    assert shifted.summary.startswith("X and Y differ under Gaussian(bandwidth=1.5), and sketches do not tell in which")
    assert wider.summary.startswith("Y is more spread out")
    assert shifted.method == "sketches of 108 bins of 32 rows; 44 rows are in no bin"
    assert shifted.kernel == mh.Gaussian(1.5)
    statistic, pvalue = shifted
    assert (statistic, pvalue) == (shifted.statistic, 0.005)


def test_the_witness_is_the_difference_of_the_means():
    found = mh.mmd_test(sketch(FIRST), sketch(SECOND + 0.3), n_resamples=9, random_state=0)
    expected = sketch(FIRST)(SECOND[:5]) - sketch(SECOND + 0.3)(SECOND[:5])
    assert_allclose(found.witness(SECOND[:5]), expected, atol=1e-9)
    assert mh.mmd_test(sketch(FIRST, "fourier"), sketch(SECOND, "fourier"), n_resamples=9).witness is None


def test_the_finer_sketch_is_coarsened():
    """Bins of the smaller sample become as large as those of the larger, and sketches of other room for bins meet."""
    found = mh.mmd_test(sketch(FIRST), sketch(SECOND, bins=1000), n_resamples=9, random_state=0)
    assert found.method == "sketches of 108 bins of 32 rows; 44 rows are in no bin"
    found = mh.mmd_test(sketch(FIRST), sketch(SECOND[:330]), n_resamples=9, random_state=0)
    assert found.method == "sketches of 72 bins of 32 rows; 26 rows are in no bin"


def test_the_same_seed_gives_the_same_result():
    results = [mh.mmd_test(sketch(FIRST), sketch(SECOND), n_resamples=99, random_state=3) for _ in range(2)]
    assert results[0].pvalue == results[1].pvalue
    np.testing.assert_array_equal(results[0].null_distribution, results[1].null_distribution)


def test_the_level_is_kept():
    """400 nulls of merged sketches of uneven parts, up to what chance makes of 5 %."""
    rejected = 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        A, B = rng.normal(size=(2, 400, 3))
        sketches = (sketch(A, parts=3, bins=30), sketch(B, parts=5, bins=30))
        rejected += mh.mmd_test(*sketches, n_resamples=39, random_state=10**6 + seed).pvalue <= 0.05
    low, high = stats.binom.ppf([0.0005, 0.9995], 400, 0.05)
    assert low <= rejected <= high


def without_bins(rows):
    return mh.MeanSketch(FEATURES["nystroem"]).update(rows)


BAD = {  # two samples and what is said of them
    "no bins": (
        sketch(FIRST),
        without_bins(SECOND),
        "Y is a sketch without bins of rows to permute; make it",
    ),
    "other features": (sketch(FIRST), sketch(SECOND, "fourier"), "have different features .*fit the"),
    "rows": (FIRST, sketch(SECOND), "X is of type ndarray and the other sample is a MeanSketch; pass two"),
    "too few bins": (
        sketch(FIRST),
        sketch(SECOND[:319]),
        "Y is a sketch of 319 rows, which fill 9 bins of the 32",
    ),
    "one row": (sketch(FIRST[:30]), sketch(SECOND[:1]), "Y is a sketch of 1 rows, which fill 1 bins .* more bins=, "),
    "empty": (sketch(FIRST[:0]), sketch(SECOND[:9]), "X is a sketch of 0 rows, which fill 0 bins .*fewer rows"),
}


@pytest.mark.parametrize("case", BAD)
def test_refused_sketches(case):
    A, B, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        mh.mmd_test(A, B)


NEEDS_ROWS = {
    "kernel": mh.Gaussian(),
    "unbiased": True,
    "strata": [1, 2],
    "scale": None,
}


@pytest.mark.parametrize("name", NEEDS_ROWS)
def test_options_that_need_rows(name):
    with pytest.raises(ValueError, match=rf"{name}={re.escape(repr(NEEDS_ROWS[name]))} needs rows"):
        mh.mmd_test(sketch(FIRST), sketch(SECOND), **{name: NEEDS_ROWS[name]})


def test_memory_is_guarded():
    for limit in (1e5, 2.5e6):  # 24 bytes for each of 1,000 splits of each bin
        with pytest.raises(MemoryError, match="999 splits of 108 bins"):
            mh.mmd_test(sketch(FIRST), sketch(SECOND), memory_limit=limit)
