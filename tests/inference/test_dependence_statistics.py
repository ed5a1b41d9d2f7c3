"""Every component of the default test of independence against its formula."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from tables import sample

import muhat as mh
from muhat.inference import dependence_statistics
from muhat.inference.permutations import ShiftedPairings, draw_pairings


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
    "families": lambda n, B: ShiftedPairings(n, B, np.random.default_rng(0)),
    "strata": lambda n, B: draw_pairings(n, np.arange(n) % 2, B, np.random.default_rng(0))[0],
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


def test_features_of_many_pairs(monkeypatch):
    monkeypatch.setattr("muhat.inference.independence.MAX_EXACT_PAIRS", 50)
    monkeypatch.setattr(dependence_statistics, "MAX_EXACT_PAIRS", 50)
    rng = np.random.default_rng(0)
    x, e = rng.normal(size=(2, 300, 2))
    result = mh.hsic_test(x, x**2 + e, None, None, 99, 0)
    assert result.method == "50 features of each kernel"
    assert result.pvalue == 0.01
    assert mh.hsic_test(x, e, None, None, 99, 0).pvalue > 0.05


X, Y = sample(20, 2, seed=0), sample(20, 2, seed=1) + 1.0


def test_blocks_of_pairings_change_nothing(monkeypatch):
    """Products for few pairings at a time: the statistics of one block, and its strongest columns, stay."""
    A, C = X[:, :2], np.tile(Y, (1, 3))
    pairs = np.argsort(np.random.default_rng(0).random((40, len(X))), axis=1)
    pairs[0] = np.arange(len(X))
    whole = dependence_statistics._largest_products("n", "g", A, C, pairs)
    single = [
        dependence_statistics._largest_products("n", "g", A, C, pairs[i : i + 1]).statistics[0] for i in range(40)
    ]
    assert whole.value == dependence_statistics._largest_products("n", "g", A, C, pairs[:1]).value
    np.testing.assert_allclose(whole.statistics, single, rtol=1e-12)
    real = dependence_statistics.blocks
    monkeypatch.setattr(dependence_statistics, "blocks", lambda n, size: real(n, 7))
    parts = dependence_statistics._largest_products("n", "g", A, C, pairs)
    np.testing.assert_array_equal(parts.statistics, whole.statistics)
    assert parts.value == whole.value


def test_landmarks_do_not_know_the_order_of_rows():
    """With landmarks at fixed places of both samples, a seed would say how many pairs are landmarks in both."""
    rng = np.random.default_rng(0)
    X, Y, order = rng.normal(size=(300, 2)), rng.normal(size=(300, 2)), rng.permutation(300)
    one, other = (
        dependence_statistics._feature_components(x, y, [np.arange(300)], np.random.default_rng(0))
        for x, y in ((X, Y), (X[order], Y[order]))
    )
    for one_part, other_part in zip(one, other, strict=True):
        assert_allclose(other_part.statistics, one_part.statistics, rtol=1e-3)
