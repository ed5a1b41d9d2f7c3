"""The test of independence: type I error, strata, summaries."""

import numpy as np
import pytest
from permutation_tests import gaussian, heavy, tied
from scipy import stats

import muhat as mh
from muhat.inference.independence import hsic_test


@pytest.mark.slow
@pytest.mark.parametrize(("draw", "n"), [(gaussian, 20), (tied, 4), (tied, 20), (heavy, 20)])
def test_level_of_the_default_test_of_independence(draw, n):
    rng = np.random.default_rng(5)
    pvalues = np.array([mh.hsic_test(draw(rng, n), draw(rng, n), None, None, 19, rng).pvalue for _ in range(200)])
    for level in (0.05, 0.25, 0.5):
        assert np.count_nonzero(pvalues <= level + 1e-9) <= stats.binom.ppf(0.9999, 200, level)


DEPENDENT = [
    (lambda x, e: x + e, "column 0 of X and column 0 of Y are correlated"),
    (lambda x, e: np.exp(0.8 * np.abs(x)) * e, "column 0 of X and column 0 of Y have dependent dispersions"),
]


@pytest.mark.parametrize(("change", "words"), DEPENDENT)
def test_words_say_what_depends(change, words):
    rng = np.random.default_rng(0)
    x, e = rng.normal(size=(2, 200, 1))
    result = mh.hsic_test(x, change(x, e), random_state=0)
    assert result.pvalue == 0.001
    assert result.summary.split(" (")[0] == words
    assert any(part.explanation == "rows that are far out in X are far out in Y" for part in result.components)
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


either_bias = pytest.mark.parametrize("unbiased", [False, True])


@either_bias
def test_dependence_without_correlation_is_found(unbiased):
    angle = np.random.default_rng(0).uniform(0, 2 * np.pi, size=(150, 1))
    X, Y = np.cos(angle), np.sin(angle)
    assert stats.pearsonr(X[:, 0], Y[:, 0]).pvalue > 0.05
    assert hsic_test(X, Y, random_state=0, unbiased=unbiased).pvalue < 0.01
