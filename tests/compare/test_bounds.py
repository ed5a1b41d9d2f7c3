"""Effects of columns against loops, and intervals that hold the truth."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from muhat.apps.compare.bounds import ks_effect, variation_effect


def drawn(rng, sizes, shares):
    """Counts of shape (draws, strata, 2, values)."""
    return np.stack([[rng.multinomial(n, shares) for n in pair] for pair in sizes])


def slow_differences(counts):
    """Differences of shares, weighted over strata by loops."""
    weights, total = [], 0.0
    for stratum in counts:
        n, m = stratum.sum(axis=1)
        weights.append(n * m / (n + m) if n and m else 0.0)
    for weight, (a, b) in zip(weights, counts, strict=True):
        if weight:
            total = total + weight / sum(weights) * (a / a.sum() - b / b.sum())
    return total


@pytest.mark.parametrize("sizes", [[(7, 9)], [(30, 4), (5, 50)], [(10, 10), (0, 8), (3, 4)]])
def test_effects_are_those_of_loops(sizes):
    counts = drawn(np.random.default_rng(0), sizes, [0.1, 0.2, 0.3, 0.4])
    difference = slow_differences(counts)
    assert_allclose(ks_effect(counts).value, np.abs(np.cumsum(difference)).max(), rtol=1e-12)
    assert_allclose(variation_effect(counts).value, np.abs(difference).sum() / 2, rtol=1e-12)


def test_margins_are_those_of_the_papers():
    counts = np.array([[[30, 10, 10], [20, 60, 20]]])
    effect = ks_effect(counts)
    margin = np.sqrt(np.log(4 / 0.05) / 2) * (50**-0.5 + 100**-0.5)  # Massart: half of the level for each table
    assert_allclose(effect.interval(0.05), (effect.value - margin, effect.value + margin))
    effect = variation_effect(counts)
    margin = np.sqrt(np.log(2 * (2**3 - 2) / 0.05) / 2) * (50**-0.5 + 100**-0.5)  # Weissman et al.
    assert_allclose(effect.interval(0.05), (max(0.0, effect.value - margin), effect.value + margin))


@pytest.mark.parametrize("effect_of", [ks_effect, variation_effect])
@pytest.mark.parametrize("clusters", [None, (3, 7)])
def test_an_interval_lies_above_a_bound_where_the_pvalue_says_so(effect_of, clusters):
    effect = effect_of(np.array([[[300, 10], [100, 260]]]), clusters)
    for bound in (0.0, 0.1, 0.3):
        alpha = effect.exceeds(bound)
        assert_allclose(effect.interval(alpha).low, bound, atol=1e-12)
    assert effect.exceeds(effect.value) == 1.0


@pytest.mark.parametrize(
    ("effect_of", "categories", "sizes"),
    [
        (variation_effect, 90, [(60, 2000)]),
        (variation_effect, 2, [(40, 90)]),
        (ks_effect, 50, [(60, 2000)]),
        (ks_effect, 20, [(30, 40), (5, 60), (80, 7)]),
    ],
)
def test_intervals_hold_the_truth(effect_of, categories, sizes):
    """Simulated noise held it in 3 of 40 draws of the first case."""
    rng = np.random.default_rng(0)
    shares = np.full(categories, 1 / categories)
    lows = [effect_of(drawn(rng, sizes, shares)).interval(0.05).low for _ in range(300)]
    assert np.count_nonzero(np.array(lows) > 0.0) <= 15


def test_rows_of_a_cluster_count_once():
    counts = np.array([[[40, 40], [40, 40]]])
    single, clustered = (ks_effect(counts, largest).interval(0.05).high for largest in (None, (8, 8)))
    few = ks_effect(counts // 8).interval(0.05).high
    assert single < few < clustered < 1.5 * few
