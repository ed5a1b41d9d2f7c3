"""What both tests share: input, scales, ties, errors, memory, type I error."""

import math
import re
import tracemalloc
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from permutation_tests import all_splits
from scipy import stats
from tables import sample

import muhat as mh
from muhat.inference import dependence_statistics
from muhat.inference.independence import hsic_test
from muhat.inference.mmd import split_statistics
from muhat.inference.permutations import TIED, permutation_pvalue
from muhat.inference.two_sample import mmd_test
from muhat.kernels.base import Kernel


def peak_memory(call):
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


# Columns count: each is refused below what it takes, and runs within what it asks for, which is not much more.
COUNTED = {
    "mmd_test": lambda limit: mh.mmd_test(WIDE, WIDE + 0.1, n_resamples=99, memory_limit=limit),
    "mmd_test with a kernel": lambda limit: mh.mmd_test(
        *TALL, mh.Gaussian(), n_resamples=9, memory_limit=limit, scale=None
    ),
    "hsic_test": lambda limit: mh.hsic_test(WIDE, WIDE[:, :300], n_resamples=99, memory_limit=limit),
    "hsic_test with a kernel": lambda limit: mh.hsic_test(
        *TALL, mh.Gaussian(), n_resamples=9, memory_limit=limit, scale=None
    ),
}

WIDE = np.random.default_rng(0).normal(size=(12, 4000))

TALL = np.random.default_rng(0).normal(size=(2, 400, 1))


@pytest.mark.parametrize("name", COUNTED)
def test_memory_counts_columns(name):
    with pytest.raises(
        MemoryError, match=r"would need .* and 1 MB may be used; use .*or a larger memory_limit"
    ) as error:
        COUNTED[name](1e6)
    needed, unit = re.search(r"need ([\d.]+) ([kMG]B)", str(error.value)).groups()
    limit = 1.01 * float(needed) * {"kB": 1e3, "MB": 1e6, "GB": 1e9}[unit]
    assert limit / 4 <= peak_memory(lambda: COUNTED[name](limit)) <= limit


def test_blocks_of_columns_do_not_matter(monkeypatch):
    X, Y = sample(30, 40, seed=0), sample(25, 40, seed=1, shift=0.2)
    whole = mh.mmd_test(X, Y, n_resamples=49, random_state=0), mh.hsic_test(X[:25], Y, n_resamples=49, random_state=0)
    monkeypatch.setattr("muhat.inference.kernel_sums.PRODUCTS", 7 * 50)
    monkeypatch.setattr(dependence_statistics, "_PRODUCTS", 100)
    parts = mh.mmd_test(X, Y, n_resamples=49, random_state=0), mh.hsic_test(X[:25], Y, n_resamples=49, random_state=0)
    for one, other in zip(whole, parts, strict=True):
        assert_allclose(other.null_distribution, one.null_distribution, rtol=1e-7)
        assert other.summary == one.summary
    assert parts[0].column == whole[0].column


@pytest.mark.parametrize(("n", "m", "smallest"), [(3, 3, 2 / 20), (2, 5, 1 / 21), (4, 4, 2 / 70), (300, 300, 1 / 1000)])
def test_the_smallest_p_value_is_counted_and_said(n, m, smallest):
    """By all splits where they are few; no difference is larger than that of 1 and 2."""
    X, Y = sample(n, 1, seed=0) * 0.01 + 1.0, sample(m, 1, seed=0) * 0.01 + 2.0
    for options in ({"kernel": mh.Linear()}, {}):
        result = mh.mmd_test(X, Y, random_state=0, **options)
        assert_allclose(result.smallest_pvalue, smallest)
        assert result.pvalue >= smallest * (1 - 1e-12)
        assert "kernel" not in options or result.kernel != mh.Linear() or math.isclose(result.pvalue, smallest)
        assert ("no p-value below 0.1" in result.summary) == (smallest > 0.05)
    pairs = mh.hsic_test(X[:3], X[:3], n_resamples=99, random_state=0, strata=None)
    assert_allclose(pairs.smallest_pvalue, 1 / math.factorial(min(n, 3)))
    assert "give no p-value below" in pairs.summary


def test_strata_count_in_the_smallest_p_value():
    X, Y = sample(4, 1, seed=0), sample(4, 1, seed=1)
    strata = [0, 0, 1, 1] * 2
    assert_allclose(mh.mmd_test(X, Y, n_resamples=99, strata=strata).smallest_pvalue, 2 / 36)
    assert_allclose(mh.hsic_test(X, Y, n_resamples=99, strata=strata[:4]).smallest_pvalue, 1 / 4)


X, Y = sample(20, 2, seed=0), sample(20, 2, seed=1) + 1.0


@dataclass(frozen=True)
class BrokenFarAway(Kernel):
    """A kernel with a mistake that only rows far from each other show."""

    def evaluate(self, X, Y):
        squared = ((X[:, None] - Y[None]) ** 2).sum(axis=2)
        return np.where(squared > 9.0, np.nan, np.exp(-squared))

    def diagonal(self, X):
        return np.ones(len(X))


@pytest.mark.parametrize(
    "call",
    [
        lambda kernel: mh.mmd_test(X, Y + 9.0, kernel, 9),
        lambda kernel: mh.hsic_test(X, 9.0 * X, mh.Gaussian(), kernel, n_resamples=9),
        lambda kernel: mh.DriftMonitor(2, kernel=kernel, block_length=1, n_simulations=100).fit(9.0 * X),
    ],
    ids=["one kernel", "independence", "monitor"],
)
def test_a_broken_kernel_gives_no_pvalue(call):
    with pytest.raises(ValueError, match=r"BrokenFarAway\(\) gives values that are not finite"):
        call(BrokenFarAway())


def test_rows_of_different_lengths_are_refused_by_name():
    with pytest.raises(ValueError, match="the rows of X have different lengths; give each row the same columns"):
        mh.mmd_test([[1.0, 2.0], [3.0]], Y)


GOOD = sample(6, 2, seed=0)

HOLED = np.where(np.arange(12).reshape(6, 2) == 3, np.nan, GOOD)

NOT_FINITE = mh.as_kernel(lambda A, B: np.where(A[:, :1] == B[:, 0], 1.0, np.nan))

INFINITE = np.where(np.isnan(HOLED), np.inf, GOOD)

TARGETED = mh.ShrunkKernelMean(target=mh.embed(mh.Gaussian(1.0), GOOD))

EQUAL = GOOD[:1].repeat(3, axis=0)

BAD_FOR_BOTH = [
    ((INFINITE, GOOD), {}, "X contains infinity"),
    ((GOOD, np.empty((0, 2))), {}, "Y has no rows"),
    ((GOOD[:1], GOOD[:1]), {}, "X has 1 row"),
    ((GOOD, GOOD), {"n_resamples": 0}, "n_resamples=0 must be a whole number of at least 1"),
    ((GOOD, GOOD), {"n_resamples": 9.5}, "n_resamples=9.5"),
    ((GOOD, GOOD), {"random_state": "seed"}, "random_state='seed'"),
]

BAD_FOR_MMD = [
    ((GOOD, GOOD[:, 0]), {}, r"X has 2 columns and Y has 1.*Y.reshape\(1, -1\)"),
    ((EQUAL, EQUAL), {"kernel": mh.Gaussian()}, "two rows that differ"),
    ((GOOD, GOOD), {"kernel": [mh.Gaussian(), mh.Linear()]}, "must be a kernel object"),
    ((GOOD, GOOD), {"strata": [0, 1] * 5}, r"strata has shape \(10,\).* 12 n \+ m rows"),
    ((GOOD, GOOD), {"strata": [0] * 11 + [7]}, "label .*7.* on one row only.*drop that row"),
    ((GOOD, GOOD), {"strata": [0] * 6 + [1] * 6}, "no stratum holds rows of both"),
    ((GOOD, GOOD), {"scale": "std"}, "scale='std' must be"),
    ((GOOD, GOOD), {"scale": [1.0, 0.0]}, "one positive number per column"),
    ((GOOD, GOOD), {"scale": [1.0]}, "scale has shape"),
    ((GOOD, GOOD), {"kernel": "precomputed"}, "square Gram matrix"),
    (
        (np.eye(6), np.arange(6) > 2),
        {"kernel": "precomputed", "scale": "columns"},
        "scale='columns' .* leave scale out",
    ),
    ((np.eye(6), np.arange(6) > 2), {"kernel": "precomputed", "scale": [1.0]}, r"scale=\[1.0\] divides columns"),
    ((np.eye(6), np.arange(5) > 2), {"kernel": "precomputed"}, "truth value for each"),
    ((np.eye(6), np.arange(6)), {"kernel": "precomputed"}, "truth value for each"),
    ((np.eye(6), np.arange(6) > 4), {"kernel": "precomputed"}, "at least two"),
    ((np.eye(6) + 1e3 * np.triu(np.ones((6, 6)), 1), np.arange(6) > 2), {"kernel": "precomputed"}, "not symmetric"),
    ((GOOD, GOOD[:1]), {}, "Y has 1 row"),
    ((GOOD, GOOD[:, :1]), {}, "X has 2 columns and Y has 1"),
    ((GOOD, GOOD), {"kernel": "rbf"}, "kernel='rbf' must be a kernel object"),
    ((GOOD, GOOD), {"kernel": mh.Gaussian}, "must be a kernel object"),
    ((GOOD, GOOD + 1), {"kernel": NOT_FINITE}, "not finite"),
]

BAD_FOR_HSIC = [
    ((GOOD, GOOD[:5]), {}, "X has 6 rows and Y has 5"),
    ((GOOD, GOOD), {"kernel_x": "rbf"}, "kernel_x='rbf' must be a kernel object"),
    ((EQUAL, EQUAL), {"kernel_x": mh.Gaussian()}, "two rows that differ"),
    ((GOOD, GOOD), {"strata": [0] * 5}, r"strata has shape \(5,\).* 6 rows"),
    ((GOOD, GOOD), {"strata": [0] * 5 + [1]}, "on one row only"),
    ((GOOD, GOOD), {"scale": [1.0, 2.0]}, "divide the columns first"),
    ((GOOD, GOOD), {"kernel_y": np.dot}, "kernel_y=.* must be a kernel object"),
    ((GOOD, GOOD), {"kernel_y": NOT_FINITE}, "not finite"),
    ((GOOD, GOOD), {"mean": "shrunk"}, "mean='shrunk' must be None"),
    ((GOOD, GOOD), {"mean": mh.ShrunkKernelMean(), "unbiased": True}, "unbiased=True"),
    ((GOOD, GOOD), {"mean": mh.ShrunkKernelMean(shrinkage=1.4)}, "shrinkage=1.4"),
    ((GOOD, GOOD), {"mean": mh.SpectralKernelMean(lam=-1)}, "lam=-1"),
    ((GOOD, GOOD), {"mean": TARGETED}, "target=None"),
    ((GOOD[:3], GOOD[:3]), {"unbiased": True}, "X has 3 row.* at least 4"),
]

BAD = {mmd_test: BAD_FOR_BOTH + BAD_FOR_MMD, hsic_test: BAD_FOR_BOTH + BAD_FOR_HSIC}


@pytest.mark.parametrize(("test", "case"), [(test, case) for test in BAD for case in BAD[test]])
def test_bad_input(test, case):
    arguments, settings, message = case
    with pytest.raises(ValueError, match=message):
        test(*arguments, **settings)


def test_columns_of_data_frames_are_matched_by_name():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(30, 2)), columns=["a", "b"])
    Y = pd.DataFrame({"a": rng.normal(size=20), "b": rng.normal(size=20) + 2.0})
    plain, turned = (mmd_test(X, other, random_state=0) for other in (Y, Y[["b", "a"]]))
    assert plain.pvalue == turned.pvalue == 0.001
    assert plain.column == turned.column == ("b", "location")
    with pytest.raises(ValueError, match=r"Y is missing the columns \['b'\] and has the unexpected .*'a', 'b'"):
        mmd_test(X, Y.rename(columns={"b": "c"}))


def test_a_column_that_makes_up_the_distance_is_named():
    X = sample(20, 3, seed=0) * [1.0, 1000.0, 1.0]
    for call in (lambda: mh.mmd_test(X, X, mh.Gaussian(), 9), lambda: mh.hsic_test(X, X, mh.Gaussian(), n_resamples=9)):
        with pytest.warns(UserWarning, match="column 1 makes up .* of the squared distances") as caught:
            call()
        assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match="column 'b' makes up"):
        mmd_test(pd.DataFrame(X, columns=[*"abc"]), pd.DataFrame(X + 1, columns=[*"abc"]), mh.Gaussian(), 9)
    for settings in ({}, {"kernel": mh.Gaussian(), "scale": None}, {"kernel": mh.Gaussian(), "scale": "columns"}):
        mmd_test(X, X + 1, n_resamples=9, **settings)


either_test = pytest.mark.parametrize("test", [mmd_test, hsic_test])

MEANS = [None, mh.ShrunkKernelMean(), mh.SpectralKernelMean(lam=0.5)]

either_bias = pytest.mark.parametrize("unbiased", [False, True])


@pytest.mark.parametrize("shift", [1e3, 1e6])
def test_far_from_the_origin(shift):
    """The linear kernel reaches shift², of which the statistics are a tiny difference."""
    X, Y = sample(300, 2, seed=0, shift=0.0), sample(200, 2, seed=1, shift=1.0)
    want = ((X.mean(axis=0) - Y.mean(axis=0)) ** 2).sum()
    assert_allclose(mmd_test(X + shift, Y + shift, mh.Linear(), 9).statistic, want, rtol=1e-15 * shift**2)


@either_bias
def test_the_plain_average_by_name_is_the_default(unbiased):
    X, Y = sample(30, 2, seed=0), sample(30, 1, seed=1)
    plain, named = (
        hsic_test(X, Y, mh.Gaussian(), random_state=0, mean=mean, unbiased=unbiased) for mean in (None, mh.KernelMean())
    )
    assert_array_equal([plain.statistic, *plain.null_distribution], [named.statistic, *named.null_distribution])


def test_each_kernel_value_is_computed_once():
    seen = []

    class Counted(mh.kernels.Kernel):
        def evaluate(self, X, Y):
            seen.append(len(X) * len(Y))
            return np.exp(-((X[:, None] - Y[None]) ** 2).sum(axis=-1))

        def diagonal(self, X):
            return np.ones(len(X))

    kernel = Counted()
    X, Y = sample(30, 2, seed=0), sample(40, 2, seed=1)
    mmd_test(X, Y, kernel, 19, 0)
    assert sum(seen) == 70**2
    for mean in MEANS:
        seen.clear()
        hsic_test(X, Y[:30], kernel, kernel, 99, 0, mean=mean)
        assert sum(seen) == 2 * 30**2


def test_ties_are_those_of_exact_arithmetic():
    """Rows of 0 and 1 under the linear kernel: the exact statistics are fractions, with many ties."""
    Z = np.random.default_rng(0).integers(0, 2, size=(9, 2))
    every = all_splits(4, 9)
    exact = []
    for split in every.T == 1:
        first, second = Z[split].sum(axis=0), Z[~split].sum(axis=0)
        exact.append(sum((Fraction(int(a), 4) - Fraction(int(b), 5)) ** 2 for a, b in zip(first, second, strict=True)))
    K = mh.Linear()(Z)
    null = split_statistics(K, every)
    rounding = np.finfo(float).eps * np.trace(K) / 9
    for i in range(len(exact)):
        reached = sum(value >= exact[i] for value in exact)
        assert permutation_pvalue(np.append(null[i], null), TIED * rounding) == (reached + 1) / (len(exact) + 1)


@either_bias
@pytest.mark.parametrize("kernel", [mh.Gaussian(0.7), mh.Linear(), mh.Polynomial(3), 1e6 * mh.Laplace(1.0)])
def test_constant_rows_give_p_one(kernel, unbiased):
    constant, other = np.full((30, 2), 0.1), sample(30, 2, seed=0)
    assert mmd_test(constant, constant, kernel, 99, 0, unbiased=unbiased).pvalue == 1
    assert hsic_test(constant, other, kernel, kernel, 99, 0, unbiased=unbiased).pvalue == 1
    assert hsic_test(other, constant, kernel, kernel, 99, 0, unbiased=unbiased).pvalue == 1
    assert hsic_test(constant, other, kernel, kernel, 99, 0, mean=mh.ShrunkKernelMean(shrinkage=0.3)).pvalue == 1


def gaussian(rng, n):
    return rng.normal(size=(n, 2))


def mostly_zero(rng, n):
    """Counts with 80 % zeros."""
    return np.where(rng.random((n, 2)) < 0.8, 0.0, rng.poisson(2.0, size=(n, 2)))


def tied(rng, n):
    return rng.integers(0, 3, size=(n, 2))


def heavy(rng, n):
    return rng.standard_cauchy(size=(n, 2))


def half_constant(rng, n):
    return np.column_stack([np.ones(n), rng.integers(0, 2, size=n)])


KERNEL = mh.Gaussian(1.5)


def of_samples(draw=gaussian, n=7, m=9, kernel=KERNEL, **settings):
    return lambda rng: mmd_test(draw(rng, n), draw(rng, m), kernel, 19, rng, **settings).pvalue


def of_pairs(draw=gaussian, n=8, kernel=KERNEL, **settings):
    return lambda rng: hsic_test(draw(rng, n), draw(rng, n), kernel, kernel, 19, rng, **settings).pvalue


def rare(rng, n):
    """A value in a row of fifty, and a flag of one row in twenty."""
    return np.column_stack([np.where(rng.random(n) < 0.02, rng.normal(9.0, size=n), 0.0), rng.random(n) < 0.05])


def of_strata(kernel=None, draw=gaussian, pairs=False):
    """Strata that differ in location, and in the shares of the two samples."""

    def pvalue(rng):
        strata = rng.permutation(np.repeat([0, 1, 2], [12, 10, 18]))
        rows = draw(rng, 40) + 5.0 * strata[:, None]
        if pairs:
            return hsic_test(
                rows, rng.permutation(draw(rng, 40)) - strata[:, None], None, None, 19, rng, strata=strata
            ).pvalue
        first = rng.random(40) < np.array([0.3, 0.5, 0.7])[strata]
        first[[np.argmax(strata == 1), np.argmax(strata == 2)]] = True, False
        order = np.argsort(~first, kind="stable")
        return mmd_test(*np.split(rows[order], [first.sum()]), kernel, 19, rng, strata=strata[order]).pvalue

    return pvalue


LEVELS = {  # whether p-values are uniform, or above because of ties
    "a kernel": (of_samples(), True),
    "unbiased": (of_samples(unbiased=True), True),
    "pairs": (of_pairs(), True),
    "pairs, unbiased": (of_pairs(unbiased=True), True),
    "pairs, shrunk": (of_pairs(mean=mh.ShrunkKernelMean()), True),
    "pairs, the same draw of blocks on both sides": (of_pairs(mean=mh.MedianOfMeans(3, random_state=0)), True),
    "pairs, one whole family": (of_pairs(n=20), True),
    "pairs, a part of a family": (of_pairs(n=31), True),
    "default": (of_samples(gaussian, 8, 30, None), True),
    "default, few rows with ties": (of_samples(tied, 4, 4, None), False),
    "default, ties": (of_samples(tied, 8, 30, None), False),
    "default, few rows with heavy tails": (of_samples(heavy, 4, 4, None), False),
    "default, a constant column": (of_samples(half_constant, 8, 30, None), False),
    "default, mostly zeros": (of_samples(mostly_zero, 8, 60, None), False),
    "default, rare values": (of_samples(rare, 12, 90, None), False),
    "strata": (of_strata(mh.Gaussian(), tied), False),
    "default, strata": (of_strata(None, mostly_zero), False),
    "default of pairs, strata": (of_strata(None, mostly_zero, pairs=True), False),
    "default of pairs, rare values": (of_pairs(rare, 40, None), False),
    "default of pairs": (of_pairs(gaussian, 20, None), True),
    "default of pairs, few with ties": (of_pairs(tied, 4, None), False),
    "default of pairs, ties": (of_pairs(tied, 20, None), False),
    "pairs, mostly zeros": (of_pairs(mostly_zero, 20, scale="columns"), False),
    "default of pairs, heavy tails": (of_pairs(heavy, 20, None), False),
}


@pytest.mark.slow
@pytest.mark.parametrize(("pvalue", "uniform"), LEVELS.values(), ids=LEVELS)
def test_level(pvalue, uniform):
    """A 5 % test rejects at most 5 % of true hypotheses, within the central 99.99 % of the binomial."""
    rng, draws = np.random.default_rng(5), 400
    pvalues = np.array([pvalue(rng) for _ in range(draws)])
    for level in (0.05, 0.25, 0.5):
        low, high = stats.binom.interval(0.9999, draws, level)
        assert (low if uniform else 0) <= np.count_nonzero(pvalues <= level + 1e-9) <= high


@either_bias
def test_a_multiple_of_the_kernel_changes_no_p_value(unbiased):
    X, Y = sample(20, 2, seed=0), sample(20, 2, seed=1, shift=0.9)
    for factor in (1e-100, 0.3, 1e100):
        for test in (mmd_test, lambda *a, **k: hsic_test(*a[:2], a[2], mh.Laplace(1.0), *a[3:], **k)):
            plain = test(X, Y, mh.Gaussian(1.0), 99, 0, unbiased=unbiased)
            scaled = test(X, Y, factor * mh.Gaussian(1.0), 99, 0, unbiased=unbiased)
            assert scaled.pvalue == plain.pvalue
            assert_allclose(scaled.statistic, factor * plain.statistic, rtol=1e-10)
        plain, scaled = (
            hsic_test(X, Y, kernel, mh.Laplace(1.0), 99, 0, mean=mh.ShrunkKernelMean())
            for kernel in (mh.Gaussian(1.0), factor * mh.Gaussian(1.0))
        )
        assert scaled.pvalue == plain.pvalue
        assert_allclose(scaled.statistic, factor * plain.statistic, rtol=1e-10)


@either_test
@pytest.mark.parametrize("scale", [1e-150, 1e-30, 1e30, 1e150])
def test_scale_of_the_data(test, scale):
    X = sample(15, 2, seed=0, shift=0.0)
    Y = X + sample(15, 2, seed=1)
    plain, scaled = test(X, Y, random_state=0), test(scale * X, scale * Y, random_state=0)
    assert scaled.pvalue == plain.pvalue
    assert_allclose(scaled.statistic, plain.statistic, rtol=1e-10)


def test_values_too_large_or_small_to_multiply():
    """HSIC multiplies two kernels: 1e-200 times 1e-200 is 0, and the p-value still knows better."""
    X = sample(15, 1, seed=0, shift=0.0)
    plain, tiny = (hsic_test(s * X, s * X**2 + s * X, mh.Linear(), mh.Linear(), 99, 0) for s in (1.0, 1e-100))
    assert tiny.pvalue == plain.pvalue
    with pytest.raises(ValueError, match=r"[Rr]escale"):
        hsic_test(1e100 * X, 1e100 * X, mh.Linear(), mh.Linear(), 9)
    with pytest.raises(ValueError, match=r"[Rr]escale"):
        mmd_test(1e200 * X, 1e200 * X, mh.Linear(), 9)


@either_test
def test_two_rows_and_repeated_rows(test):
    two = np.array([[0.0, 1.0], [2.0, 5.0]])
    repeated = np.repeat(two, 3, axis=0), np.repeat(two[::-1], 3, axis=0)
    for X, Y in ((two, two + 1), repeated, (np.eye(6), np.eye(6)[::-1])):
        result = test(X, Y, n_resamples=9, random_state=0)
        assert np.isfinite([result.statistic, *result.null_distribution]).all()
        assert 0.1 <= result.pvalue <= 1


FORMS = {
    "frame": pd.DataFrame,
    "lists": lambda rows: rows.tolist(),
    "tuples": lambda rows: tuple(map(tuple, rows)),
    "double precision": lambda rows: rows.astype(np.float64),
}


@either_test
def test_input_types_and_seeds(test):
    X, Y = sample(12, 2, seed=0).astype(np.float32), sample(12, 2, seed=1).astype(np.float32)
    result = test(X, Y, n_resamples=99, random_state=5)
    for form in FORMS.values():
        found = test(form(X), form(Y), n_resamples=99, random_state=np.random.default_rng(5))
        assert_array_equal(found.null_distribution, result.null_distribution)
    assert test(pd.DataFrame(X), Y, n_resamples=99, random_state=5).pvalue == result.pvalue
    column = test(X[:, :1], Y[:, :1], n_resamples=99, random_state=5)
    for form in (pd.Series, list, tuple, np.array):
        found = test(form(X[:, 0]), form(Y[:, 0]), n_resamples=99, random_state=5)
        assert found.statistic == column.statistic
    assert (test(X, Y, n_resamples=99, random_state=6).null_distribution != result.null_distribution).any()
    assert {type(result.statistic), type(result.pvalue)} == {float}
