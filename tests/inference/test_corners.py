"""Inputs at the edge of what the tests take, and what they say while they run."""

import io
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from tables import sample

import muhat as mh
from muhat.inference import dependence_statistics, resampling
from muhat.kernels.base import Kernel

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
        lambda kernel: mh.mmd_test(X, Y + 9.0, [mh.Gaussian(), kernel], 9),
        lambda kernel: mh.hsic_test(X, 9.0 * X, mh.Gaussian(), kernel, n_resamples=9),
        lambda kernel: mh.DriftMonitor(3, kernel=kernel, n_simulations=100).fit(9.0 * X),
    ],
    ids=["one kernel", "a list of kernels", "independence", "monitor"],
)
def test_a_broken_kernel_gives_no_pvalue(call):
    with pytest.raises(ValueError, match=r"BrokenFarAway\(\) gives values that are not finite"):
        call(BrokenFarAway())


@pytest.mark.parametrize("kind", [pd.Series, list, tuple, np.array])
def test_one_column_comes_in_any_form(kind):
    x, y = X[:, 0], Y[:, 0]
    found = mh.mmd_test(kind(x), kind(y), n_resamples=9, random_state=0)
    assert found.statistic == mh.mmd_test(x[:, None], y[:, None], n_resamples=9, random_state=0).statistic


def test_rows_of_different_lengths_are_refused_by_name():
    with pytest.raises(ValueError, match="the rows of X have different lengths; give each row the same columns"):
        mh.mmd_test([[1.0, 2.0], [3.0]], Y)


def test_units_of_columns_may_be_given():
    found = mh.mmd_test(X, Y, mh.Gaussian(), 9, scale=[2.0, 5.0], random_state=0)
    divided = mh.mmd_test(X / [2.0, 5.0], Y / [2.0, 5.0], mh.Gaussian(), 9, random_state=0)
    assert found.statistic == pytest.approx(divided.statistic, rel=1e-12)


def test_a_frame_of_numbers_meets_an_array():
    found = mh.mmd_test(pd.DataFrame(X), Y, n_resamples=9, random_state=0)
    assert found.statistic == mh.mmd_test(X, Y, n_resamples=9, random_state=0).statistic


def test_a_test_by_one_kernel_names_no_column():
    assert mh.mmd_test(X, Y, mh.Gaussian(), 9).column is None
    assert mh.mmd_test(X, Y, n_resamples=9, random_state=0).column == ("0", "location")


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


class Screen(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("verbose", [True, False])
def test_a_long_test_says_how_far_it_is(verbose, monkeypatch):
    screen = Screen()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setattr(resampling, "QUIET_SECONDS", -1.0)
    mh.mmd_test(X, Y, n_resamples=9, random_state=0, verbose=verbose)
    shares = [int(part.partition("%")[0]) for part in screen.getvalue().split("mmd_test: ")[1:]]
    assert shares == sorted(shares)
    assert bool(shares) == verbose
    assert all(0 <= share <= 100 for share in shares)
    assert not verbose or shares[-1] == 100
    monkeypatch.setattr(resampling, "QUIET_SECONDS", 1e9)
    before = screen.getvalue()
    mh.mmd_test(X, Y, n_resamples=9, random_state=0, verbose=True)
    assert "mmd_test: " not in screen.getvalue()[len(before) :]


def test_many_rows_of_many_columns(monkeypatch):
    """Beyond 20 columns second moments are left out, in the form for many rows as in that for few."""
    monkeypatch.setattr("muhat.inference.two_sample.MAX_EXACT_ROWS", 500)
    rows = np.random.default_rng(0).normal(size=(600, 21))
    for width, known in ((20, True), (21, False)):
        found = mh.mmd_test(rows[:300, :width], rows[300:, :width], n_resamples=9, random_state=0)
        assert ("second moments" in {part.name for part in found.components}) is known


def test_findings_know_the_bandwidth_of_their_kernel():
    """In units of the scaled columns; statistics without a kernel have none."""
    found = mh.mmd_test(X, Y, n_resamples=9, random_state=0).components
    known = {(part.group, part.name): part.bandwidth for part in found}
    assert known["columns", "largest column"] is None
    assert known["wide", "linear"] is None
    assert 0.0 < known["close pairs", "close pairs"] < known["wide", "Gaussian"] < np.inf
    units = next(part.kernel for part in found if part.name == "close pairs")
    assert units.kernel.bandwidth == known["close pairs", "close pairs"]
    assert mh.kernels.upper_bound(units) == 1.0
