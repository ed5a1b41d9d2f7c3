"""What references can promise: refusals, and the allowance for few rows."""

import numpy as np
import pytest

import muhat as mh
from muhat.monitor.promise import _allowance, check_promise, most_promised, smoothed


def test_promises_grow_with_the_square_of_the_rows():
    assert most_promised(100, 1.0) == 1000
    assert most_promised(100, 2.0) == 50, "and with the rows themselves where they depend on each other"
    check_promise(1000, 100, 1.0)
    with pytest.raises(ValueError, match=r"run_length=1,001 cannot be promised from 100 reference rows; pass 101 rows"):
        check_promise(1001, 100, 1.0)
    with pytest.raises(
        ValueError, match=r"that are worth 50 independent ones; pass 600 rows or more, or run_length=50"
    ):
        check_promise(300, 100, 2.0)
    with pytest.raises(ValueError, match=r"depend on each other for about 10 rows; pass 200 rows or more"):
        check_promise(10, 100, 10.0)


def test_the_allowance_makes_the_mean_run_as_promised():
    """Excesses that grow by 1 every 10 rows: at an allowance of 4 the alarm comes after 50 rows."""
    rows = np.arange(10, 101, 10)
    paths = [(rows, np.arange(10.0) + 0.5)] * 5
    assert _allowance(paths, 10) == 0.0
    assert 3.4 < _allowance(paths, 50) < 3.6


def test_smoothed_rows_have_the_covariance_of_the_reference():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(100, 3)) @ rng.normal(size=(3, 3))
    width = (4 / (5 * 100)) ** (1 / 7)
    found = np.cov(smoothed(rows, 200_000, rng).T)
    np.testing.assert_allclose(found, (1 + width**2) * np.cov(rows.T), rtol=0.05, atol=0.05)
    counts = np.column_stack([rng.poisson(2.0, size=100), rows[:, 0]])
    drawn = smoothed(counts, 500, rng)
    assert np.isin(drawn[:, 0], counts[:, 0]).all(), "columns of few values stay as they are"
    assert not np.isin(drawn[:, 1], counts[:, 1]).any()


def test_few_rows_have_a_higher_threshold():
    few, many = (
        mh.DriftMonitor(100, random_state=0, windows=[1, 5]).fit(np.random.default_rng(0).normal(size=(n, 6)))
        for n in (40, 400)
    )
    assert few.threshold_ > many.threshold_


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:neighbouring rows")
def test_few_rows_keep_their_promise():
    runs, n, d = [], 60, 3
    for seed in range(5):
        rng = np.random.default_rng(seed)
        monitor = mh.DriftMonitor(50, n_simulations=100, random_state=seed).fit(rng.normal(size=(n, d)))
        found = []
        for _ in range(8):
            monitor.reset().update(rng.normal(size=(400, d)))
            found.append(monitor.rows_seen_)
        runs.append(np.mean(found))
    assert abs(np.mean(runs) - 50) < 5 * np.std(runs) / np.sqrt(len(runs)) + 5
