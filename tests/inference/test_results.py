"""Results and their summaries, and explanations that name what differs, and the column."""

import re
from dataclasses import FrozenInstanceError, replace
from xml.etree import ElementTree

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from tables import sample

import muhat as mh
from muhat.inference.independence import hsic_test
from muhat.inference.results import ComponentResult
from muhat.inference.two_sample import MMDResult, mmd_test

PLACES = ComponentResult("Gaussian", "means", 0.01, 0.9, 10.0, explanation="X and Y lie in different places")

SPREAD = ComponentResult("dispersion", "dispersion", 0.01, 0.1, 9.0, explanation="Y is more spread out")

COLUMN = ComponentResult(
    "largest column", "columns", 0.01, 0.1, 9.0, column="age", explanation="column 'age' is higher in Y"
)

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
        f"{PLACES.explanation} (90 % of the evidence); clearest single column: {COLUMN.explanation}",
    ),
    (
        PLACES,
        replace(COLUMN, evidence=3.7),
        f"{PLACES.explanation} (90 % of the evidence); clearest single column: {COLUMN.explanation}",
    ),
    (
        PLACES,
        replace(COLUMN, evidence=3.6),  # log(2/.05) is 3.69
        f"{PLACES.explanation} (90 % of the evidence); most visible, though not significant by itself: "
        f"{COLUMN.explanation}",
    ),
    (replace(PLACES, share=0.1), replace(COLUMN, share=0.9), "column 'age' is higher in Y (90 % of the evidence)"),
]


@pytest.mark.parametrize(("first", "second", "words"), SUMMARIES)
def test_the_evidence_in_a_summary_is_that_of_what_it_tells(first, second, words):
    assert MMDResult(1.0, 0.01, np.zeros(9), lambda: (first, second)).summary == words


def test_a_single_statistic_has_words_too():
    X, Y = sample(30, 2, seed=0), sample(30, 2, seed=1, shift=3.0)
    differs, same = (mh.mmd_test(X, Z, mh.Gaussian(2.0), 99, 0) for Z in (Y, X + 1e-3))
    assert differs.summary == "X and Y differ under Gaussian(bandwidth=2.0)"
    assert repr(differs).endswith("n_resamples=99: X and Y differ under Gaussian(bandwidth=2.0))")
    assert same.summary == "no difference found"
    dependent = mh.hsic_test(X, X, mh.Linear(), mh.Gaussian(1.0), 99, 0, scale="columns")
    assert dependent.summary == "X and Y depend on each other under Linear() and Gaussian(bandwidth=1.0)"


X, Y = sample(20, 2, seed=0), sample(20, 2, seed=1) + 1.0


def test_findings_know_the_bandwidth_of_their_kernel():
    """In units of the scaled columns; statistics without a kernel have none."""
    found = mh.mmd_test(X, Y, n_resamples=9, random_state=0).components
    known = {(part.group, part.name): part.bandwidth for part in found}
    assert known["columns", "largest column"] is None
    assert known["means", "linear"] is None
    assert 0.0 < known["close pairs", "close pairs"] < known["dispersion", "dispersion"] < np.inf
    units = next(part.kernel for part in found if part.name == "close pairs")
    assert units.kernel.bandwidth == known["close pairs", "close pairs"]
    assert mh.kernels.upper_bound(units) == 1.0


def test_results_are_frozen_and_say_what_was_found():
    X, Y = sample(12, 2, seed=0), 7.0 * sample(12, 3, seed=1)
    mmd, hsic = mmd_test(X, Y[:, :2]), hsic_test(X, Y, kernel_y=mh.Laplace())
    assert (hsic.kernel_x, hsic.kernel_y) == (mh.Gaussian().resolve(X), mh.Laplace().resolve(Y))
    for result, name in ((mmd, "MMDResult"), (hsic, "HSICResult")):
        assert repr(result).startswith(f"{name}(statistic=")
        assert f"pvalue={result.pvalue:.4g}, n_resamples=999" in repr(result)
        with pytest.raises(FrozenInstanceError):
            result.pvalue = 0.0


TOLD = [
    (lambda X: 2.0 * X, "dispersion", "Y is more spread out"),
    (lambda X: 0.5 * X, "dispersion", "X is more spread out"),
    (lambda X: X + 0.5, "means", "X and Y lie in different places"),
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


def test_a_column_that_differs_is_named_among_many_that_do_too():
    """All columns are shifted, so that a statistic of all has far more evidence than any column by itself."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(300, 12)), rng.normal(size=(300, 12)) + np.linspace(0.3, 0.6, 12)
    result = mh.mmd_test(X, Y, random_state=0)
    column = next(part for part in result.components if part.column is not None)
    assert column.evidence < 0.5 * result.components[0].evidence
    assert result.summary.endswith(f"; clearest single column: {column.explanation}")
    assert stats.ks_2samp(X[:, int(column.column)], Y[:, int(column.column)]).pvalue < 1e-4


def test_the_strongest_component_speaks_of_correlations():
    rng = np.random.default_rng(5)
    covariances = [[[1, r, 0.3], [r, 1, 0.2], [0.3, 0.2, 1]] for r in (0.7, 0.2)]
    X, Y = (rng.multivariate_normal(np.zeros(3), C, n) for C, n in zip(covariances, (250, 220), strict=True))
    result = mh.mmd_test(X, Y, random_state=0)
    assert result.components[0].name == "whitened second moments"
    assert result.summary.startswith(f"{result.components[0].explanation} (")
    assert "most that of column 0 and column 1: 0.72 → 0.23" in result.summary


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


@pytest.mark.parametrize("shift", [0.0, 5.0])
@pytest.mark.parametrize("kernel", [None, mh.Gaussian(1.0)], ids=["default", "one kernel"])
def test_notebooks_show_a_sentence_a_table_and_a_picture(shift, kernel):
    X = np.random.default_rng(0).normal(size=(30, 2))
    found = mh.mmd_test(X[:15], X[15:] + shift, kernel, n_resamples=99, random_state=0)
    page = found._repr_html_()
    assert f"p = {found.pvalue:.3g}" in page
    assert page.count("<rect") > 1
    assert ("<table>" in page) == (kernel is None and shift > 0)
    ElementTree.fromstring(page)  # well formed
    assert ("<table>" in replace(found, pvalue=0.05)._repr_html_()) == (kernel is None)
