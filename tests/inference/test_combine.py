"""The default test: every component against its formula, the joining rule against a loop, and the exact level."""

import io
import itertools
import math
import re
import sys
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from tables import sample

import muhat as mh
from muhat.inference import combine, dependence_statistics, difference_statistics, fisher, large_samples
from muhat.inference.combine import Component
from muhat.inference.resampling import number_of_splits, other_splits
from muhat.inference.results import ComponentResult
from muhat.inference.two_sample import MMDResult

RNG = np.random.default_rng(0)


def splits_of(n, m, count=7, seed=0, strata=None):
    observed = np.repeat([1.0, 0.0], [n, m])
    drawn = list(other_splits(observed, count, np.random.default_rng(seed), strata))
    return np.column_stack([observed, *drawn]), difference_statistics.centred_splits(observed, drawn, strata)


# ---------------------------------------------------------------- components are their formulas


def slow_matrices(rows):
    """The Gram matrices of the default test, a pair at a time."""
    scales, q = difference_statistics.pooled_scales(rows, RNG), difference_statistics.normal_scores(rows)
    h, near, medians = scales.bandwidths, scales.at_rows, scales.medians

    def gaussian(bandwidth):
        return lambda i, j: np.exp(-((rows[i] - rows[j]) ** 2).sum() / (2 * bandwidth**2))

    formulas = [
        *map(gaussian, h[[0, 6, 7]]),
        lambda i, j: np.exp(-((rows[i] - rows[j]) ** 2).sum() / (2 * near[i] * near[j])),
        lambda i, j: np.exp(-np.abs(rows[i] - rows[j]) / medians).sum(),
        lambda i, j: np.exp(-4 * np.abs(rows[i] - rows[j]) / medians).sum(),
        lambda i, j: (q[i] @ q[j] / rows.shape[1]) ** 2,
    ]
    n = range(len(rows))
    return [np.array([[formula(i, j) for j in n] for i in n]) for formula in formulas]


def slow_contrast(K, split):
    x, y = np.flatnonzero(split), np.flatnonzero(1 - split)

    def average(rows, columns):
        return np.mean([K[i, j] for i in rows for j in columns if i != j])

    alpha, beta, gamma = average(x, x), average(y, y), average(x, y)
    return alpha + beta - 2 * gamma, alpha - beta


@pytest.mark.parametrize(("n", "m"), [(4, 4), (9, 13)])
def test_components_are_the_slow_formulas(n, m, monkeypatch):
    monkeypatch.setattr(difference_statistics, "STRIP", 5)
    monkeypatch.setattr(difference_statistics, "COLUMNS", 6)
    rows = np.random.default_rng(1).standard_t(3, size=(n + m, 3))
    everything, splits = splits_of(n, m)
    found = difference_statistics.default_components(rows, splits, RNG)
    want = [np.array([slow_contrast(K, split) for split in everything.T]).T for K in slow_matrices(rows)]
    fine, wide, widest, local, shapes, fine_shapes, moments = want
    by_position = {0: wide[0], 2: local[0], 3: fine[0], 5: shapes[0], 6: fine_shapes[0], 7: moments[0]}
    for position, values in by_position.items():
        assert_allclose(found[position].statistics, values, rtol=0, atol=1e-12)
    for position, (_, within) in ((8, fine), (9, widest)):
        assert_allclose(found[position].statistics, np.abs(within - within.mean()), rtol=0, atol=1e-12)
    V = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    linear = [slow_contrast(V @ V.T, split)[0] for split in everything.T]
    assert_allclose(found[1].statistics, linear, rtol=0, atol=1e-12)


def test_the_largest_column_is_a_loop_over_columns():
    rows = sample(20, 3, seed=4)
    rows[12:, 2] *= 9.0
    everything, splits = splits_of(12, 8)
    q = difference_statistics.normal_scores(rows)
    found = difference_statistics.largest_column(q, difference_statistics.standardised(q**2), splits)
    want = []
    for split in everything.T == 1:
        columns = [*q.T, *((c**2 - (c**2).mean()) / (c**2).std() for c in q.T)]
        want.append(max((column[split].mean() - column[~split].mean()) ** 2 for column in columns))
    assert_allclose(found.statistics, want, rtol=1e-10)
    assert found.value == (2, "scale", "Y")


def test_the_whitened_component_is_regularised_kernel_fisher():
    rows = sample(30, 2, seed=0)
    everything, splits = splits_of(14, 16)
    found = difference_statistics.whitened(rows, 0.8, splits, RNG)
    H = np.eye(30) - 1 / 30
    K = mh.Gaussian(0.8)(rows)
    lam = difference_statistics.RIDGE * np.linalg.eigvalsh(H @ K @ H)[-1]
    M = H @ K @ np.linalg.solve(K @ H @ K + lam * K + 1e-9 * np.trace(K @ H @ K + lam * K) * np.eye(30), K @ H)
    W = everything / 14 - (1 - everything) / 16
    assert_allclose(found.statistics, np.einsum("ib,ij,jb->b", W, M, W), rtol=1e-6)
    spectral = fisher.fisher_statistics(fisher.spectrum(K), lam / 30, W) / 30
    assert_allclose(found.statistics, spectral, rtol=1e-3)  # but for the ridge that keeps the solution stable


# ---------------------------------------------------------------- the joining rule


def slow_join(T, given):
    """A loop over components and splits, as the formulas read."""
    count, columns = T.shape
    log_p = np.empty(T.shape)
    for k, b in itertools.product(range(count), range(columns)):
        others = np.delete(T[k], b)
        m, v, g = others.mean(), others.var(), stats.skew(others)
        z, a = (T[k, b] - m) / np.sqrt(v), 4 / max(g, 0.05) ** 2
        q = 3 * np.sqrt(a) * (max(0, 1 + z / np.sqrt(a)) ** (1 / 3) - 1 + 1 / (9 * a))
        log_p[k, b] = stats.norm.logsf(q)
    alike = np.clip(np.corrcoef(log_p), 0, 1) ** 2
    w = given / alike.sum(axis=1)
    w /= w.sum()
    t = np.log((w[:, None] / np.exp(log_p)).sum(axis=0))
    return t, np.mean(t >= t[0] - 1e-12), w / np.exp(log_p[:, 0]) / np.exp(t[0])


def test_joining_is_the_slow_loop():
    rng = np.random.default_rng(0)
    T = rng.gamma(2.0, size=(4, 30))
    T[1] = T[0] + 0.1 * T[1]
    T[2, 0] += 8.0
    given = np.array([1.0, 1.0, 2.0, 5.0])
    found = combine.combine_statistics([Component("", "", row, weight=w) for row, w in zip(T, given, strict=True)])
    t, p, shares = slow_join(T, given)
    assert_allclose(found.statistics, t, rtol=1e-9)
    assert found.pvalue == p
    assert_allclose(found.shares, shares, rtol=1e-9)
    assert_allclose(found.shares.sum(), 1.0)


def test_a_duplicate_changes_nothing():
    rng = np.random.default_rng(0)
    rows = [Component("", "", row) for row in rng.gamma(2.0, size=(3, 200))]
    plain, doubled = combine.combine_statistics(rows), combine.combine_statistics([*rows, rows[0]])
    assert_allclose(doubled.statistics, plain.statistics, atol=0.05)


def test_joining_treats_the_observed_split_as_any_other():
    T = np.random.default_rng(0).gamma(2.0, size=(3, 40))
    order = np.random.default_rng(1).permutation(40)
    plain, turned = (combine.combine_statistics([Component("", "", row) for row in part]) for part in (T, T[:, order]))
    assert_allclose(turned.statistics, plain.statistics[order], rtol=1e-10)


# ---------------------------------------------------------------- exactness


def test_statistics_do_not_depend_on_the_labels_of_rows():
    """To renumber the rows, and the splits with them, changes no component: the rows alone decide."""
    rows = np.random.default_rng(0).normal(size=(24, 3)).round(1)
    _, splits = splits_of(10, 14)
    order = np.random.default_rng(1).permutation(24)
    turned = difference_statistics.Splits(splits.centred[order], 10, 14)
    plain, renumbered = (
        difference_statistics.default_components(*arguments, RNG)
        for arguments in ((rows, splits), (rows[order], turned))
    )
    for first, second in zip(plain, renumbered, strict=True):
        assert_allclose(second.statistics, first.statistics, rtol=1e-7, atol=1e-12)


def gaussian(rng, n):
    return rng.normal(size=(n, 2))


def tied(rng, n):
    return rng.integers(0, 3, size=(n, 2))


def heavy(rng, n):
    return rng.standard_cauchy(size=(n, 2))


def half_constant(rng, n):
    return np.column_stack([np.ones(n), rng.integers(0, 2, size=n)])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("draw", "n", "m"), [(gaussian, 8, 30), (tied, 4, 4), (tied, 8, 30), (heavy, 4, 4), (half_constant, 8, 30)]
)
def test_level_of_the_default_test(draw, n, m):
    """p-values of true hypotheses are uniform or above, within the 99.99 % quantile of the binomial."""
    rng = np.random.default_rng(5)
    pvalues = np.array([mh.mmd_test(draw(rng, n), draw(rng, m), None, 19, rng).pvalue for _ in range(300)])
    for level in (0.05, 0.25, 0.5):
        assert np.count_nonzero(pvalues <= level + 1e-9) <= stats.binom.ppf(0.9999, 300, level)
    if draw is gaussian and n == 8:
        assert np.count_nonzero(pvalues <= 0.5) >= stats.binom.ppf(0.0001, 300, 0.5)


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


def test_strata_permute_within_blocks():
    strata = np.array([0, 0, 1, 1, 1, 0, 1, 0])
    everything, splits = splits_of(4, 4, count=50, strata=strata)
    for stratum in (0, 1):
        inside = everything[strata == stratum]
        assert_array_equal(inside.sum(axis=0), inside[:, 0].sum())
        assert_allclose(splits.centred[strata == stratum].sum(axis=0), 0.0, atol=1e-12)
    assert len(np.unique(everything, axis=1).T) > 20


# ---------------------------------------------------------------- the spectral statistic


def test_spectral_p_value_is_that_of_the_refitted_within_covariance():
    """S_T = S_W + (nm/N²)ddᵀ: with S_W refitted for every split the statistic is a monotone function of ours."""
    X, Y = sample(9, 2, seed=0), sample(7, 2, seed=1, shift=0.7)
    rows = np.vstack([X, Y])
    features = mh.kernels.exact_features(mh.Polynomial(2), rows)
    K = features @ features.T
    everything, splits = splits_of(9, 7, count=60)
    lam = 0.05
    ours = fisher.fisher_statistics(fisher.spectrum(K), lam, splits.weights)
    within = []
    for split in everything.T == 1:
        f, g = features[split], features[~split]
        d = f.mean(axis=0) - g.mean(axis=0)
        S_W = ((f - f.mean(axis=0)).T @ (f - f.mean(axis=0)) + (g - g.mean(axis=0)).T @ (g - g.mean(axis=0))) / 16
        within.append(d @ np.linalg.solve(S_W + lam * np.eye(len(d)), d))
    within = np.array(within)
    assert_allclose(ours, within / (1 + 9 * 7 / 16**2 * within), rtol=1e-9)
    assert np.count_nonzero(ours >= ours[0]) == np.count_nonzero(within >= within[0])


def test_spectral_witness_is_the_fisher_direction():
    X, Y = sample(15, 2, seed=0), sample(12, 2, seed=1, shift=1.5)
    result = mh.mmd_test(X, Y, mh.Polynomial(2), 99, 0, statistic="spectral")
    features = mh.kernels.exact_features(mh.Polynomial(2), np.vstack([X, Y]))
    strongest = result.components[0]
    largest = np.linalg.eigvalsh(np.cov(features.T, bias=True))[-1]
    lam = float(strongest.name.removeprefix("λ = ")) * largest
    d = features[:15].mean(axis=0) - features[15:].mean(axis=0)
    direction = np.linalg.solve(np.cov(features.T, bias=True) + lam * np.eye(features.shape[1]), d)
    want = features @ direction
    found = result.witness(np.vstack([X, Y]))
    assert_allclose(found - found.mean(), want - want.mean(), rtol=1e-6, atol=1e-8)


# ---------------------------------------------------------------- other inputs


def test_one_column_may_be_a_vector():
    x, y = sample(20, 1, seed=0)[:, 0], sample(15, 1, seed=1)[:, 0]
    vector, matrix = mh.mmd_test(x, y, random_state=0), mh.mmd_test(x[:, None], y[:, None], random_state=0)
    assert_array_equal(vector.null_distribution, matrix.null_distribution)


@pytest.mark.parametrize(
    "settings", [{}, {"unbiased": True}, {"mean": mh.ShrunkKernelMean()}, {"statistic": "spectral"}]
)
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


@pytest.mark.parametrize("rows", [np.ones((12, 2)), np.repeat(sample(2, 2, seed=0), 6, axis=0), np.eye(12)[:, :2]])
def test_constant_and_repeated_rows(rows):
    result = mh.mmd_test(rows[::2], rows[1::2], n_resamples=49, random_state=0)
    assert result.pvalue > 0.05
    assert np.isfinite([result.statistic, *result.null_distribution]).all()
    assert mh.mmd_test(np.ones((5, 2)), np.ones((6, 2))).pvalue == 1.0


def test_a_list_of_kernels_joins_their_unbiased_distances():
    X, Y = sample(20, 2, seed=0), sample(15, 2, seed=1)
    kernels = [mh.Gaussian(1.0), mh.Laplace(2.0)]
    result = mh.mmd_test(X, Y, kernels, 99, 0)
    singles = {repr(k): mh.mmd_test(X, Y, k, 99, 0, unbiased=True).pvalue for k in kernels}
    assert {finding.group: finding.pvalue for finding in result.components} == singles
    assert result.kernel == result.components[0].kernel


# ---------------------------------------------------------------- what a result tells

TOLD = [
    (lambda X: 2.0 * X, "spread", "Y is more spread out"),
    (lambda X: 0.5 * X, "spread", "X is more spread out"),
    (lambda X: X + 0.5, "wide", "X and Y lie in different places"),
    (lambda X: X + np.array([0, 0, 1.4, 0, 0, 0, 0, 0]), "columns", "column 2 is higher in Y"),
    (lambda X: X * [1, 4.0, 1, 1, 1, 1, 1, 1], "columns", "column 1 is more spread out in Y"),
    (
        lambda X: X @ np.linalg.cholesky(0.5 * np.eye(8) + 0.5).T,
        "second moments",
        "the correlations of the columns differ",
    ),
]


@pytest.mark.parametrize(("change", "group", "words"), TOLD)
def test_words_say_what_differs(change, group, words):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(80, 8)), change(rng.normal(size=(80, 8)))
    result = mh.mmd_test(X, Y, random_state=0)
    assert result.pvalue == 0.001
    assert group in result.share
    assert_allclose(sum(result.share.values()), 1.0)
    assert re.split(r" \(|; ", result.summary)[0] == words
    assert next(finding for finding in result.components if finding.words == words).group == group
    assert repr(result).endswith(f"{result.summary})")
    assert replace(result, pvalue=0.05).summary == result.summary, "what the level 0.05 finds is told"
    assert replace(result, pvalue=0.051).summary == "no difference found"
    statistic, pvalue = result
    assert (statistic, pvalue) == (result.statistic, result.pvalue)


def test_no_difference_in_words():
    rng = np.random.default_rng(0)
    result = mh.mmd_test(*rng.normal(size=(2, 30, 2)), random_state=0)
    assert "no difference found" in repr(result)


def test_the_witness_is_that_of_the_kernel_in_the_units_of_the_columns():
    X, Y = sample(20, 2, seed=0) * [1.0, 50.0], sample(15, 2, seed=1, shift=3.0) * [1.0, 50.0]
    result = mh.mmd_test(X, Y, n_resamples=99, random_state=0)
    f, g = (mh.embed(result.kernel, rows) for rows in (X, Y))
    assert_allclose(result.witness(X), (f - g)(X), atol=1e-12)
    assert result.witness(X).mean() > result.witness(Y).mean()


# ---------------------------------------------------------------- large samples


def test_threads_and_strips_change_nothing(monkeypatch):
    X, Y = sample(300, 3, seed=0), sample(200, 3, seed=1)
    plain = mh.mmd_test(X, Y, n_resamples=19, random_state=0)
    monkeypatch.setattr("muhat.linalg.gram.THREADED", 1)
    threaded = mh.mmd_test(X, Y, n_resamples=19, random_state=0)
    assert_array_equal(threaded.null_distribution, plain.null_distribution)
    monkeypatch.setattr(difference_statistics, "STRIP", 64)
    stripped = mh.mmd_test(X, Y, n_resamples=19, random_state=0)
    assert_allclose(stripped.null_distribution, plain.null_distribution, rtol=1e-3, atol=1e-3)  # of float32
    assert stripped.pvalue == plain.pvalue


def test_single_and_double_precision_agree(monkeypatch):
    X, Y = sample(150, 3, seed=0), sample(150, 3, seed=1)
    single = mh.mmd_test(X, Y, n_resamples=99, random_state=0)
    monkeypatch.setattr(difference_statistics, "SMALL", 1000)
    double = mh.mmd_test(X, Y, n_resamples=99, random_state=0)
    assert_allclose(single.null_distribution, double.null_distribution, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("change", [lambda X: X, lambda X: 1.5 * X])
def test_bins_of_features(change, monkeypatch):
    """Beyond what matrices hold; here beyond 100 rows."""
    monkeypatch.setattr("muhat.inference.two_sample.MAX_EXACT_ROWS", 100)
    monkeypatch.setattr(large_samples, "BINS", 60)
    monkeypatch.setattr(large_samples, "FEATURES", 20)
    X, Y = sample(203, 2, seed=0, shift=0.0), change(sample(150, 2, seed=1, shift=0.0))
    result = mh.mmd_test(X, Y, n_resamples=99, random_state=0)
    assert "bins of 6 rows" in result.method
    assert (result.pvalue == 0.01) == (change(1.0) > 1)


@pytest.mark.slow
def test_level_with_bins(monkeypatch):
    monkeypatch.setattr("muhat.inference.two_sample.MAX_EXACT_ROWS", 10)
    monkeypatch.setattr(large_samples, "BINS", 12)
    monkeypatch.setattr(large_samples, "FEATURES", 5)
    rng = np.random.default_rng(0)
    pvalues = [
        mh.mmd_test(rng.normal(size=(20, 2)), rng.normal(size=(31, 2)), None, 19, rng).pvalue for _ in range(200)
    ]
    assert np.count_nonzero(np.array(pvalues) <= 0.05) <= stats.binom.ppf(0.9999, 200, 0.05)


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
    bins = large_samples.draw_bins(observed, strata if len(first) > 1 else None, np.random.default_rng(0))
    inside = bins.of_rows >= 0
    assert_array_equal(np.bincount(bins.of_rows[inside]), np.full(len(bins.of_first), bins.size))
    assert_array_equal(bins.of_first[bins.of_rows[inside]], observed[inside])
    if len(first) > 1:
        assert len(np.unique(np.column_stack([bins.strata[bins.of_rows], strata])[inside], axis=0)) <= len(first)
    smaller = 1.0 if sum(first) < sum(second) else 0.0
    mixed = np.minimum(first, second) > 0
    assert inside[(observed == smaller) & mixed[strata]].mean() >= 0.9
    assert min(bins.of_first.sum(), (1 - bins.of_first).sum()) >= min(50, sum(first), sum(second))
    assert number_of_splits(bins.of_first, bins.strata) >= 2
    assert len(bins.of_first) <= max(4_000, len(observed) * (len(first) > 100))


def test_a_small_sample_against_a_large_one():
    """Beyond the rows of matrices: a shift of three rows by three standard deviations, and no shift."""
    rng = np.random.default_rng(1)
    X, Y = rng.normal(size=(12_500, 2)), rng.normal(size=(3, 2))
    assert mh.mmd_test(X, Y, random_state=0).pvalue > 0.05
    result = mh.mmd_test(X, Y + 3.0, random_state=0)
    assert result.pvalue <= 0.002
    assert "2,003 bins of 1 rows; 10,500 rows are in no bin" in result.method


def test_memory_is_refused_before_it_is_taken():
    X = sample(50, 2, seed=0)
    with pytest.raises(MemoryError, match="999 splits of 100 rows"):
        mh.mmd_test(X, X, memory_limit=1000)


def peak_memory(call):
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


COUNTED = {  # columns count: each is refused below what it takes, and runs within what it asks for
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
    assert peak_memory(lambda: COUNTED[name](limit)) <= limit


def test_blocks_of_columns_do_not_matter(monkeypatch):
    X, Y = sample(30, 40, seed=0), sample(25, 40, seed=1, shift=0.2)
    whole = mh.mmd_test(X, Y, n_resamples=49, random_state=0), mh.hsic_test(X[:25], Y, n_resamples=49, random_state=0)
    monkeypatch.setattr(difference_statistics, "PRODUCTS", 7 * 50)
    monkeypatch.setattr(dependence_statistics, "_PRODUCTS", 100)
    parts = mh.mmd_test(X, Y, n_resamples=49, random_state=0), mh.hsic_test(X[:25], Y, n_resamples=49, random_state=0)
    for one, other in zip(whole, parts, strict=True):
        assert_allclose(other.null_distribution, one.null_distribution, rtol=1e-7)
        assert other.summary == one.summary
    assert parts[0].column == whole[0].column


# ---------------------------------------------------------------- independence


def test_pairs_of_many_columns_are_bounded(monkeypatch):
    """Some columns are drawn, the method says how many, and the pair that is named has its own numbers."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 30))
    Y = np.repeat(X[:, 17:18], 25, axis=1) + 0.01 * rng.normal(size=(40, 25))
    monkeypatch.setattr(dependence_statistics, "MAX_PRODUCTS", 40 * 100 * 28 * 3)
    assert dependence_statistics.columns_looked_at(40, 30, 25, 100) == (9, 9)
    for p, q in ((1, 1), (1, 500), (30, 25), (3, 2)):
        left, right = dependence_statistics.columns_looked_at(40, p, q, 100)
        assert left * right <= 84
        assert (left, right) == (p, q) or (left + 1) * (right + 1) > 84
    found = [mh.hsic_test(X, Y, n_resamples=99, random_state=seed) for seed in range(12)]
    assert all(
        result.method == "exact; pairs of single columns: of 9 of 30 and 9 of 25, drawn at random" for result in found
    )
    named = {result.columns[0] for result in found if result.components[0].name == "rank correlation"}
    assert named <= {"17"}
    assert "17" in {result.columns[0] for result in found}


def slow_sums(K, L, pairs):
    return [(K * L[np.ix_(order, order)]).sum() for order in pairs]


def centred(K):
    H = np.eye(len(K)) - 1 / len(K)
    return H @ K @ H


PAIRINGS = {
    "families": lambda n, B: dependence_statistics.Families(n, B, np.random.default_rng(0)),
    "strata": lambda n, B: dependence_statistics.Listed.within_strata(np.arange(n) % 2, B, np.random.default_rng(0)),
}


@pytest.mark.parametrize("kind", PAIRINGS)
@pytest.mark.parametrize("n", [7, 20])
def test_dependences_are_the_slow_formulas(kind, n):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(n, 2)), rng.normal(size=(n, 3))
    pairings = PAIRINGS[kind](n, 25)
    pairs = pairings.permutations()
    assert_array_equal(pairs[0], np.arange(n))
    assert_array_equal(np.sort(pairs, axis=1), np.tile(np.arange(n), (26, 1)))
    found = {part.name: part for part in dependence_statistics.default_dependences(X, Y, pairings, rng)}
    D, E = (np.linalg.norm(rows[:, None] - rows[None], axis=2) for rows in (X, Y))
    h, g = (np.median(A[np.triu_indices(n, 1)]) for A in (D, E))
    want = {"distance covariance": slow_sums(centred(-D), centred(-E), pairs)}
    for x, y in itertools.product(dependence_statistics.MULTIPLES, repeat=2):
        K, L = (centred(np.exp(-((A / (f * s)) ** 2) / 2)) for A, f, s in ((D, x, h), (E, y, g)))
        want[f"{x:g} x {y:g} medians"] = slow_sums(K, L, pairs)
    for name, values in want.items():
        assert_allclose(found[name].statistics, np.array(values) / n**2, rtol=0, atol=1e-12)
    a, c = (np.diag(centred(np.exp(-((A / s) ** 2) / 2))) for A, s in ((D, h), (E, g)))
    spread = [abs(((a - a.mean()) * (c - c.mean())[order]).mean()) for order in pairs]
    assert_allclose(found["distance from the centre"].statistics, spread, atol=1e-12)
    ranks = [max(stats.spearmanr(x, y[order]).statistic ** 2 for x in X.T for y in Y.T) for order in pairs]
    assert_allclose(found["rank correlation"].statistics, ranks, atol=1e-12)
    sides = [[centred(-np.abs(np.subtract.outer(c, c))) for c in rows.T] for rows in (X, Y)]
    sides = [[K / np.linalg.norm(K) for K in side] for side in sides]
    columns = np.max([slow_sums(K, L, pairs) for K in sides[0] for L in sides[1]], axis=0)
    assert_allclose(found["distance covariance of columns"].statistics, columns, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(("draw", "n"), [(gaussian, 20), (tied, 4), (tied, 20), (heavy, 20)])
def test_level_of_the_default_test_of_independence(draw, n):
    rng = np.random.default_rng(5)
    pvalues = np.array([mh.hsic_test(draw(rng, n), draw(rng, n), None, None, 19, rng).pvalue for _ in range(300)])
    for level in (0.05, 0.25, 0.5):
        assert np.count_nonzero(pvalues <= level + 1e-9) <= stats.binom.ppf(0.9999, 300, level)


DEPENDENT = [
    (lambda x, e: x + e, "column 0 of X and column 0 of Y are correlated"),
    (lambda x, e: np.exp(0.8 * np.abs(x)) * e, "column 0 of X and column 0 of Y have dependent spreads"),
]


@pytest.mark.parametrize(("change", "words"), DEPENDENT)
def test_words_say_what_depends(change, words):
    rng = np.random.default_rng(0)
    x, e = rng.normal(size=(2, 200, 1))
    result = mh.hsic_test(x, change(x, e), random_state=0)
    assert result.pvalue == 0.001
    assert result.summary.split(" (")[0] == words
    assert any(finding.words == "rows that are far out in X are far out in Y" for finding in result.components)
    assert "no dependence found" in repr(mh.hsic_test(x, e, random_state=0))


@pytest.mark.slow
def test_strata_of_pairs_keep_the_level():
    """Both sides differ between two centres, and are independent within."""

    def draw(rng, strata):
        centre = np.arange(40) % 2
        X, Y = rng.normal(size=(2, 40, 1)) + 3.0 * centre[:, None]
        return mh.hsic_test(X, Y, None, None, 19, rng, strata=centre if strata else None).pvalue

    rng = np.random.default_rng(0)
    assert np.sum([draw(rng, True) <= 0.05 for _ in range(200)]) <= stats.binom.ppf(0.9999, 200, 0.05)
    assert np.mean([draw(rng, False) <= 0.05 for _ in range(20)]) > 0.8


def test_features_of_many_pairs(monkeypatch):
    monkeypatch.setattr("muhat.inference.independence.MAX_EXACT_PAIRS", 50)
    monkeypatch.setattr(dependence_statistics, "MAX_EXACT_PAIRS", 50)
    rng = np.random.default_rng(0)
    x, e = rng.normal(size=(2, 300, 2))
    result = mh.hsic_test(x, x**2 + e, None, None, 99, 0)
    assert result.method == "50 features of each kernel"
    assert result.pvalue == 0.01
    assert mh.hsic_test(x, e, None, None, 99, 0).pvalue > 0.05


def test_features_in_bins_of_one_row_give_the_unbiased_distance():
    X, Y = sample(12, 3, seed=0), sample(9, 3, seed=1) + 0.5
    of_first = np.repeat([1.0, 0.0], [12, 9])
    rows, rng = np.vstack([X, Y]), np.random.default_rng(0)
    distance, spread = large_samples.feature_components(rows, (rows**2).sum(axis=1), of_first, 19, rng)
    expected = mh.mmd_test(X, Y, mh.Linear(), 1, unbiased=True, scale=None).statistic
    assert_allclose(distance.statistics[0], expected, rtol=1e-6)
    splits = np.column_stack([of_first, *other_splits(of_first, 19, np.random.default_rng(0))]).astype(bool)
    traces = np.array([[np.trace(np.cov(rows[part].T)) for part in (split, ~split)] for split in splits.T])
    differences = traces[:, 0] - traces[:, 1]
    assert_allclose(spread.statistics, np.abs(differences - differences.mean()), rtol=1e-10)
    assert spread.value == ("X" if differences[0] > differences.mean() else "Y")


PLACES = ComponentResult("Gaussian", "wide", 0.01, 0.9, 10.0, words="X and Y lie in different places")
SPREAD = ComponentResult("spread", "spread", 0.01, 0.1, 9.0, words="Y is more spread out")
COLUMN = ComponentResult("largest column", "columns", 0.01, 0.1, 9.0, column="age", words="column 'age' is higher in Y")
CLEAREST = "; clearest single column: column 'age' is higher in Y"
SUMMARIES = [
    (
        PLACES,
        replace(SPREAD, name="not a specific one", share=0.0),
        "X and Y lie in different places (90 % of the evidence)",
    ),
    (PLACES, SPREAD, "Y is more spread out"),
    (PLACES, COLUMN, "column 'age' is higher in Y"),
    (
        PLACES,
        replace(COLUMN, evidence=6.0),
        f"{PLACES.words} (90 % of the evidence); clearest single column: {COLUMN.words}",
    ),
    (
        PLACES,
        replace(COLUMN, evidence=3.7),
        f"{PLACES.words} (90 % of the evidence); clearest single column: {COLUMN.words}",
    ),
    (PLACES, replace(COLUMN, evidence=3.6), "X and Y lie in different places (90 % of the evidence)"),  # log(2/.05)
    (replace(PLACES, share=0.1), replace(COLUMN, share=0.9), "column 'age' is higher in Y (90 % of the evidence)"),
]


@pytest.mark.parametrize(("first", "second", "words"), SUMMARIES)
def test_the_evidence_in_a_summary_is_that_of_what_it_tells(first, second, words):
    assert MMDResult(1.0, 0.01, np.zeros(9), (first, second)).summary == words


def test_a_column_that_differs_is_named_among_many_that_do_too():
    """All columns are shifted, so that a statistic of all has far more evidence than any column by itself."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(300, 12)), rng.normal(size=(300, 12)) + np.linspace(0.3, 0.6, 12)
    result = mh.mmd_test(X, Y, random_state=0)
    column = next(finding for finding in result.components if finding.column is not None)
    assert column.evidence < 0.5 * result.components[0].evidence
    assert result.summary.endswith(f"; clearest single column: {column.words}")
    assert stats.ks_2samp(X[:, int(column.column)], Y[:, int(column.column)]).pvalue < 1e-4


@pytest.mark.slow
def test_no_column_is_named_where_none_differs():
    """Only the correlation of two columns differs: a column is named in fewer than one draw of twenty."""
    rng = np.random.default_rng(0)
    turn = np.linalg.cholesky([[1.0, 0.8], [0.8, 1.0]]).T
    found = [mh.mmd_test(rng.normal(size=(80, 2)), rng.normal(size=(80, 2)) @ turn, None, 199, rng) for _ in range(60)]
    assert np.mean([result.pvalue <= 0.05 for result in found]) > 0.9
    assert sum("column " in result.summary for result in found) <= 3


def test_a_single_statistic_has_words_too():
    X, Y = sample(30, 2, seed=0), sample(30, 2, seed=1, shift=3.0)
    differs, same = (mh.mmd_test(X, Z, mh.Gaussian(2.0), 99, 0) for Z in (Y, X + 1e-3))
    assert differs.summary == "X and Y differ under Gaussian(bandwidth=2.0)"
    assert same.summary == "no difference found"
    dependent = mh.hsic_test(X, X, mh.Linear(), mh.Gaussian(1.0), 99, 0, scale="columns")
    assert dependent.summary == "X and Y depend on each other under Linear() and Gaussian(bandwidth=1.0)"


@pytest.mark.parametrize(("n", "m", "smallest"), [(3, 3, 2 / 20), (2, 5, 1 / 21), (4, 4, 2 / 70), (300, 300, 1 / 1000)])
def test_the_smallest_p_value_is_counted_and_said(n, m, smallest):
    """By all splits where they are few; no difference is larger than that of 1 and 2."""
    X, Y = sample(n, 1, seed=0) * 0.01 + 1.0, sample(m, 1, seed=0) * 0.01 + 2.0
    for options in ({"kernel": mh.Linear()}, {}, {"kernel": mh.Gaussian(), "statistic": "spectral"}):
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


@pytest.mark.parametrize("strata", [None, [0, 0, 0, 0, 1, 1]])
def test_few_pairings_are_listed(strata):
    pairings, smallest = dependence_statistics.draw_pairings(6, None if strata is None else np.array(strata), 999, RNG)
    pairs = pairings.permutations()
    every = [p for p in itertools.permutations(range(6)) if strata is None or max(p[:4]) == 3]
    assert_array_equal(pairs[0], range(6))
    assert sorted(map(tuple, pairs)) == every
    assert_allclose(smallest, 1 / len(every))
    with_fewer, smallest = dependence_statistics.draw_pairings(6, None, 718, RNG)
    assert len(with_fewer.permutations()) == 719
    assert_allclose(smallest, 1 / 719)


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


def test_ties_of_a_joined_statistic_are_relative_where_it_is_large():
    """With a tolerance of 1 all that is not negative is a tie of a large one."""
    statistics = np.random.default_rng(0).normal(size=400)
    statistics[0] = 4.0
    combined = combine.combine_statistics([Component("a", "a", statistics)], tolerance=1.0)
    assert combined.statistics[0] > 2
    assert combined.pvalue == (combined.statistics >= 0).mean()


def test_a_stratum_of_one_sample_is_kept_as_it_is():
    """It is enough that some stratum has rows of both."""
    X, Y = sample(8, 2, seed=0), sample(6, 2, seed=1)
    result = mh.mmd_test(X, Y, mh.Gaussian(), n_resamples=19, random_state=0, strata=np.repeat([0, 1], [3, 11]))
    assert 0 < result.pvalue <= 1


def test_a_quick_test_shows_no_progress(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stderr", screen := Terminal())
    mh.mmd_test(sample(8, 2, seed=0), sample(8, 2, seed=1), n_resamples=19, random_state=0, verbose=True)
    assert "mmd_test" not in screen.getvalue()
