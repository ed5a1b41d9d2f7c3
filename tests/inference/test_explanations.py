"""Explanations name what differs, and the column."""

import re
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import muhat as mh

TOLD = [
    (lambda X: 2.0 * X, "dispersion", "Y is more spread out"),
    (lambda X: 0.5 * X, "dispersion", "X is more spread out"),
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
    assert re.split(r" \(|[;,] ", result.summary)[0] == words
    assert group in {part.group for part in result.components if part.explanation.split(",")[0] == words}
    assert repr(result).endswith(f"{result.summary})")
    assert replace(result, pvalue=0.05).summary == result.summary, "what the level 0.05 finds is told"
    assert replace(result, pvalue=0.051).summary == "no difference found"
    statistic, pvalue = result
    assert (statistic, pvalue) == (result.statistic, result.pvalue)


def test_no_difference_in_words():
    rng = np.random.default_rng(0)
    result = mh.mmd_test(*rng.normal(size=(2, 30, 2)), random_state=0)
    assert "no difference found" in repr(result)


def test_a_column_that_differs_is_named_among_many_that_do_too():
    """All columns are shifted, so that a statistic of all has far more evidence than any column by itself."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(300, 12)), rng.normal(size=(300, 12)) + np.linspace(0.3, 0.6, 12)
    result = mh.mmd_test(X, Y, random_state=0)
    column = next(part for part in result.components if part.column is not None)
    assert column.evidence < 0.5 * result.components[0].evidence
    assert result.summary.endswith(f"; clearest single column: {column.explanation}")
    assert stats.ks_2samp(X[:, int(column.column)], Y[:, int(column.column)]).pvalue < 1e-4


@pytest.mark.slow
def test_no_column_is_named_where_none_differs():
    """Only the correlation of two columns differs: a column by itself in fewer than one draw of twenty."""
    rng = np.random.default_rng(0)
    turn = np.linalg.cholesky([[1.0, 0.8], [0.8, 1.0]]).T
    found = [mh.mmd_test(rng.normal(size=(80, 2)), rng.normal(size=(80, 2)) @ turn, None, 199, rng) for _ in range(60)]
    assert np.mean([result.pvalue <= 0.05 for result in found]) > 0.9
    assert sum("single column" in result.summary or result.summary.startswith("column") for result in found) <= 3
    named = [result.summary.startswith(("the correlations", "the relation of column")) for result in found]
    assert np.mean(named) > 0.8
