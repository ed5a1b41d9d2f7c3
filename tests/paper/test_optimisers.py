"""MATLAB's optimisers on functions whose minimum is known, and F-KMSE by each of their readings."""

import numpy as np
import oracles
import pytest

import muhat as mh
from paper.optimisers import (
    READINGS,
    eigenpairs,
    flexible_weights,
    fminbnd,
    fminsearch,
    theorem4_score,
    weights_by_reading,
)


def test_fminbnd_stays_within_its_bounds():
    assert fminbnd(lambda x: (x - 0.3) ** 2, 0.0, 1.0) == pytest.approx(0.3, abs=1e-4)
    assert fminbnd(lambda x: (x - 3.0) ** 2, 0.0, 1.0) == pytest.approx(1.0, abs=2e-4)


def test_fminsearch_finds_a_minimum_and_stops_at_once_where_the_function_is_flat():
    assert fminsearch(lambda x: 100.0 * (x - 0.3) ** 2, 0.01) == pytest.approx(0.3, abs=1e-3)
    assert fminsearch(lambda x: 1e-3 * (x - 0.3) ** 2, 0.001) == pytest.approx(0.001, abs=1e-4)


def test_readings_minimise_the_score_of_theorem_4():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 3)) + 1.0
    K = oracles.gram(lambda x, y: oracles.gaussian(x, y, 2.0), X, X)
    weights = weights_by_reading(eigenpairs(K))
    assert list(weights) == list(READINGS)
    lams = np.linspace(1e-3, 10.0, 2000)
    best = lams[np.argmin([oracles.theorem4_score(K, lam) for lam in lams])]
    assert weights["F_fminbnd_10"] == pytest.approx(oracles.tikhonov_weights(K, best), rel=1e-2)
    assert flexible_weights(eigenpairs(K), 0.5) == pytest.approx(oracles.tikhonov_weights(K, 0.5))


@pytest.mark.parametrize("columns", [3, 30])  # a singular Gram matrix, and a regular one
def test_the_score_of_theorem_4_is_the_librarys(columns):
    X = np.random.default_rng(0).normal(size=(12, columns))
    pairs, lams = eigenpairs(X @ X.T), [1e-3, 0.1, 1.0, 50.0]
    scores = [theorem4_score(pairs, lam) for lam in lams]
    assert scores == pytest.approx(mh.shrinkage.theorem4_scores(X @ X.T, lams), rel=1e-10)
    assert theorem4_score(pairs, -1.0) == np.inf
