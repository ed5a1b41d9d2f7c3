"""Two-sample tests of sketches."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from tables import sample

import muhat as mh
from muhat.inference.sketched_samples import SketchBins, sketch_components
from muhat.inference.splits import other_splits


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


X, Y = sample(2000, 3, seed=0, shift=0.0), sample(1500, 3, seed=1, shift=0.0)

FEATURES = {
    "nystroem": mh.Nystroem(mh.Gaussian(1.5), 40, random_state=0).fit(sample(300, 3, seed=2, shift=0.0)),
    "fourier": mh.Fourier(mh.Gaussian(1.5), 40, random_state=0).fit(X),
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
    shifted = mh.mmd_test(sketch(X, name, parts), sketch(Y + 0.3, name, parts), n_resamples=199, random_state=0)
    wider = mh.mmd_test(sketch(X, name, parts), sketch(1.5 * Y, name, parts), n_resamples=199, random_state=0)
    assert shifted.pvalue == wider.pvalue == shifted.smallest_pvalue == 0.005
    assert shifted.summary.startswith("X and Y differ under Gaussian(bandwidth=1.5), and sketches do not tell in which")
    assert wider.summary.startswith("Y is more spread out")
    assert shifted.method == "sketches of 108 bins of 32 rows; 44 rows are in no bin"
    assert shifted.kernel == mh.Gaussian(1.5)
    statistic, pvalue = shifted
    assert (statistic, pvalue) == (shifted.statistic, 0.005)


def test_the_witness_is_the_difference_of_the_means():
    found = mh.mmd_test(sketch(X), sketch(Y + 0.3), n_resamples=9, random_state=0)
    expected = sketch(X)(Y[:5]) - sketch(Y + 0.3)(Y[:5])
    assert_allclose(found.witness(Y[:5]), expected, atol=1e-9)
    assert mh.mmd_test(sketch(X, "fourier"), sketch(Y, "fourier"), n_resamples=9).witness is None


def test_the_finer_sketch_is_coarsened():
    """Bins of the smaller sample become as large as those of the larger, and sketches of other room for bins meet."""
    found = mh.mmd_test(sketch(X), sketch(Y, bins=1000), n_resamples=9, random_state=0)
    assert found.method == "sketches of 108 bins of 32 rows; 44 rows are in no bin"
    found = mh.mmd_test(sketch(X), sketch(Y[:330]), n_resamples=9, random_state=0)
    assert found.method == "sketches of 72 bins of 32 rows; 26 rows are in no bin"


def test_the_same_seed_gives_the_same_result():
    results = [mh.mmd_test(sketch(X), sketch(Y), n_resamples=99, random_state=3) for _ in range(2)]
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


BAD = {
    "no bins": (
        lambda: mh.mmd_test(sketch(X), mh.MeanSketch(FEATURES["nystroem"]).update(Y)),
        r"Y is a sketch without bins of rows to permute; make it with MeanSketch\(bins=1000\)",
    ),
    "other features": (lambda: mh.mmd_test(sketch(X), sketch(Y, "fourier")), "have different features .*fit the"),
    "rows": (lambda: mh.mmd_test(X, sketch(Y)), "X is of type ndarray and the other sample is a MeanSketch; pass two"),
    "too few bins": (
        lambda: mh.mmd_test(sketch(X), sketch(Y[:319])),
        "Y is a sketch of 319 rows, which fill 9 bins of the 32 rows .* more bins=, .*fewer rows",
    ),
    "one row": (lambda: mh.mmd_test(sketch(X[:30]), sketch(Y[:1])), "Y is a sketch of 1 rows, which fill 1 bins"),
    "empty": (lambda: mh.mmd_test(sketch(X[:0]), sketch(Y[:9])), "X is a sketch of 0 rows, which fill 0 bins"),
    "kernel": (lambda: mh.mmd_test(sketch(X), sketch(Y), mh.Gaussian()), r"kernel=Gaussian\(.*\) needs rows"),
    "mean": (lambda: mh.mmd_test(sketch(X), sketch(Y), mean=mh.KernelMean()), "mean=KernelMean.* needs rows"),
    "unbiased": (lambda: mh.mmd_test(sketch(X), sketch(Y), unbiased=True), "unbiased=True needs rows"),
    "strata": (lambda: mh.mmd_test(sketch(X), sketch(Y), strata=[1, 2]), r"strata=\[1, 2\] needs rows"),
    "scale": (lambda: mh.mmd_test(sketch(X), sketch(Y), scale=None), "scale=None needs rows"),
    "resamples": (lambda: mh.mmd_test(sketch(X), sketch(Y), n_resamples=0), "n_resamples=0 must be"),
}


@pytest.mark.parametrize("case", BAD)
def test_refused(case):
    call, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        call()


def test_memory_is_guarded():
    with pytest.raises(MemoryError, match="999 splits of 108 bins"):
        mh.mmd_test(sketch(X), sketch(Y), memory_limit=1e5)
