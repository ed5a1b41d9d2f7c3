"""Effects of columns: their values against definitions, coverage of intervals, error and power at the edge."""

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.proportion import confint_proportions_2indep

from muhat.apps.compare import effects

RNG = np.random.default_rng(0)


def counted(x, y):
    """Counts of the values of two samples."""
    values, places = np.unique(np.concatenate([x, y]), return_inverse=True)
    parts = np.split(places, [len(x)])
    return np.array([[np.bincount(part, minlength=len(values)) for part in parts]])


def drawn(n, m, f, g, rng):
    return np.array([[rng.multinomial(n, f), rng.multinomial(m, g)]])


def test_distances_are_those_of_their_definitions():
    x, y = RNG.integers(9, size=70), RNG.integers(12, size=45)
    counts = counted(x, y)
    assert effects.ks_distance(counts) == pytest.approx(stats.ks_2samp(x, y).statistic, abs=1e-15)
    shares = counts[0] / counts[0].sum(axis=1, keepdims=True)
    sets = [
        sum(shares[0][k] - shares[1][k] for k in np.flatnonzero(bits)) for bits in np.ndindex(*[2] * len(shares[0]))
    ]
    assert effects.total_variation(counts) == pytest.approx(max(sets), abs=1e-15)


def test_strata_are_weighted_by_their_rows():
    counts = np.array([[[30, 10], [10, 30]], [[5, 5], [5, 5]], [[0, 0], [9, 9]]])
    weights = np.array([40 * 40 / 80, 10 * 10 / 20])
    assert effects.ks_distance(counts) == pytest.approx(0.5 * weights[0] / weights.sum())
    assert effects.total_variation(counts) == effects.ks_distance(counts)


def test_a_confounded_difference_is_gone_within_strata():
    """Shares of strata differ, and the values do not within them."""
    counts = np.array([[[80, 20], [16, 4]], [[4, 16], [20, 80]]])
    assert effects.total_variation(counts.sum(axis=0)[None]) > 0.3
    assert effects.stratified_pvalue(counts, ordered=False) == 1.0
    assert effects.stratified_pvalue(counts[:, ::-1] + [[[9, 0], [0, 9]]], ordered=True) < 0.05


@pytest.mark.parametrize("counts", [[[50, 50], [30, 70]], [[1, 9], [0, 20]], [[3, 997], [40, 960]]])
def test_newcombes_interval_is_that_of_statsmodels(counts):
    (x, rest_x), (y, rest_y) = counts
    low, high = confint_proportions_2indep(x, x + rest_x, y, y + rest_y, method="newcomb", compare="diff", alpha=0.05)
    found = effects.share_interval(np.array([counts]), 0.05)
    expected = sorted((abs(low), abs(high))) if low * high > 0 else (0.0, max(-low, high))
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_the_pvalue_of_shares_is_where_the_bound_reaches_the_effect():
    counts = np.array([[[120, 380], [60, 440]]])
    pvalue = effects.share_exceeds(counts, 0.05)
    assert 0.0 < pvalue < 0.05
    assert effects.share_interval(counts, 2 * pvalue).low == pytest.approx(0.05, abs=2e-4)
    assert effects.share_exceeds(counts, 0.2) == 1.0
    assert effects.share_exceeds(counts[:, ::-1], 0.05) == pvalue


@pytest.mark.parametrize("exceeds", [effects.ks_exceeds, effects.variation_exceeds, effects.share_exceeds])
@pytest.mark.parametrize("rows", [30, 3000])
def test_pvalues_rise_with_the_effect_that_matters(exceeds, rows):
    counts = np.array([[[0.7, 0.3], [0.2, 0.8]]]) * rows
    if exceeds is effects.variation_exceeds:
        counts = np.concatenate([counts, np.full((1, 2, 3), rows / 3)], axis=2)
    pvalues = [exceeds(counts.astype(int), at_least) for at_least in np.linspace(0, 1, 21)]
    assert pvalues == sorted(pvalues)
    assert pvalues[-1] == 1.0
    assert pvalues == [exceeds(counts.astype(int), at_least) for at_least in np.linspace(0, 1, 21)], "the same again"


def zipf(k):
    return (1 / np.arange(1, k + 1)) / (1 / np.arange(1, k + 1)).sum()


def moved(f, amount, places):
    g = f.copy()
    g[places[0]] -= amount
    g[places[1]] += amount
    return g


SHAPES = {
    "five values": (effects.ks_exceeds, np.full(5, 0.2), (0, 4)),
    "200 values": (effects.ks_exceeds, np.full(200, 0.005), None),
    "eight categories": (effects.variation_exceeds, zipf(8), (0, 1)),
    "a share": (effects.share_exceeds, np.array([0.9, 0.1]), (0, 1)),
}


def shifted(f, amount, places):
    if places is not None:
        return moved(f, amount, places)
    slope = np.linspace(1, -1, len(f))
    return f * (1 + slope * amount / np.abs((f * slope).cumsum()).max())


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_error_and_power_at_the_edge(shape):
    """Of 400 draws whose effect is δ, more than 34 rejections at 0.05 have a probability below 0.1 %."""
    exceeds, f, places = SHAPES[shape]
    rng = np.random.default_rng(1)
    for n, m in ((60, 60), (500, 5000)):
        edge = [exceeds(drawn(n, m, f, shifted(f, 0.05, places), rng), 0.05) for _ in range(400)]
        assert np.sum(np.array(edge) <= 0.05) <= 34
    power = [exceeds(drawn(4000, 4000, f, shifted(f, 0.1, places), rng), 0.05) for _ in range(60)]
    assert np.mean(np.array(power) <= 0.05) > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("n", [8, 60, 400])
def test_intervals_cover(n):
    """Of 300 draws, fewer than 270 covered of 95 % have a probability below 0.1 %."""
    rng = np.random.default_rng(2)
    f, g = zipf(6), moved(zipf(6), 0.15, (0, 5))
    truth_tv, truth_ks = 0.5 * np.abs(f - g).sum(), np.abs((f - g).cumsum()).max()
    hits = np.zeros(3)
    for _ in range(300):
        counts = drawn(n, 2 * n, f, g, rng)
        first = np.stack([counts[:, :, 0], counts[:, :, 1:].sum(axis=2)], axis=2)
        found = (
            (effects.ks_interval(effects.ks_distance(counts), counts, 0.05), truth_ks),
            (effects.variation_interval(counts, 0.05), truth_tv),
            (effects.share_interval(first, 0.05), abs(f[0] - g[0])),
        )
        hits += [low - 1e-12 <= truth <= high + 1e-12 for (low, high), truth in found]
    assert (hits >= 270).all(), hits


def test_holm_against_its_definition():
    pvalues = np.random.default_rng(0).uniform(size=9) ** 3
    order = np.argsort(pvalues)
    expected = [min(1.0, max((9 - j) * pvalues[order[j]] for j in range(rank + 1))) for rank in range(9)]
    np.testing.assert_allclose(effects.holm(pvalues)[order], expected, rtol=1e-14)
