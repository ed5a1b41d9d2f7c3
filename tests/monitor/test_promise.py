"""What references can promise: refusals, and few rows that keep their promise."""

import numpy as np
import pytest

import muhat as mh
from muhat.monitor.promise import check_promise, most_promised


def test_promises_grow_with_the_square_of_the_rows():
    assert most_promised(1000, 1.0) == 10_000
    assert most_promised(10, 1.0) == 2
    assert most_promised(1000, 2.0) == 500, "and with the rows themselves where they depend on each other"
    assert most_promised(100, 2.0) == 25
    check_promise(900, 300, 1.0)
    with pytest.raises(ValueError, match=r"=1,000 cannot be promised from 300 reference rows; pass 317 rows or more"):
        check_promise(1000, 300, 1.0)
    with pytest.raises(ValueError, match=r"are worth 500 independent ones; pass 1,200 rows or more, or run_length=500"):
        check_promise(600, 1000, 2.0)
    with pytest.raises(ValueError, match=r"depend on each other for about 10 rows; pass 200 rows or more"):
        check_promise(10, 100, 10.0)


def test_the_longest_promise_that_is_offered_is_accepted():
    for rows in (10, 50, 317, 2000):
        for time in (1.0, 1.5):
            if rows / time >= 20:
                check_promise(most_promised(rows, time), rows, time)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:neighbouring rows")
def test_few_rows_keep_their_promise():
    runs, n, d = [], 60, 3
    for seed in range(8):
        rng = np.random.default_rng(seed)
        monitor = mh.DriftMonitor(36, n_simulations=100, random_state=seed).fit(rng.normal(size=(n, d)))
        found = []
        for _ in range(8):
            monitor.reset().update(rng.normal(size=(400, d)))
            found.append(monitor.rows_seen_)
        runs.append(np.mean(found))
    assert abs(np.mean(runs) - 36) < 5 * np.std(runs) / np.sqrt(len(runs)) + 5
