"""Serial dependence of references: rare on independent rows, certain on dependent ones, and what fit says of it."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.signal import lfilter

import muhat as mh
from muhat.features.sketch import MeanSketch
from muhat.monitor.dependence import _autocorrelation_time, serial_dependence

SMALL = {"n_simulations": 100, "random_state": 0}


def autoregressive(n, memory, columns, seed=0):
    noise = np.sqrt(1 - memory**2) * np.random.default_rng(seed).normal(size=(n + 300, columns))
    return lfilter([1.0], [1.0, -memory], noise, axis=0)[300:]


INDEPENDENT = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "heavy tails": lambda rng, shape: rng.standard_cauchy(shape),
    "rarely not zero": lambda rng, shape: (rng.random(shape) < 0.02).astype(float),
    "skewed": lambda rng, shape: rng.lognormal(0.0, 2.0, shape),
    "zeros and ones": lambda rng, shape: rng.integers(0, 2, shape).astype(float),
    "huge": lambda rng, shape: 1e300 * rng.normal(size=shape),
}


@pytest.mark.parametrize("d", [1, 20])
@pytest.mark.parametrize("n", [20, 100, 400])
@pytest.mark.parametrize("name", INDEPENDENT)
def test_dependence_is_hardly_ever_found_in_independent_rows(name, n, d):
    """At most 1 in 200 is expected of 400; more than 6 would be rare at that rate."""
    rng = np.random.default_rng(0)
    found = [serial_dependence(INDEPENDENT[name](rng, (n, d))) for _ in range(400)]
    assert sum(one is not None for one in found) <= 6


@pytest.mark.parametrize("d", [1, 20])
@pytest.mark.parametrize("memory", [0.5, 0.9])
def test_dependence_is_always_found_in_one_column_of_several(memory, d):
    for seed in range(100):
        rows = np.random.default_rng(seed).normal(size=(300, d))
        rows[:, d // 2] = 1e5 * autoregressive(300, memory, 1, seed)[:, 0] - 3e5
        found = serial_dependence(rows)
        assert found.column == d // 2
        plain = np.corrcoef(rows[1:, d // 2], rows[:-1, d // 2])[0, 1]
        assert found.correlation == pytest.approx(plain, abs=0.05)


def test_the_autocorrelation_time_is_the_sum_of_the_autocorrelations():
    """That of an autoregression is (1 + ρ)/(1 − ρ); and the sum is the slow one over pairs of rows."""
    for memory in (0.0, 0.5, 0.8):
        x = autoregressive(100_000, memory, 1)[:, 0]
        assert _autocorrelation_time(x / x.std()) == pytest.approx((1 + memory) / (1 - memory), rel=0.1)
    x = autoregressive(400, 0.8, 1)[:, 0]
    x = (x - x.mean()) / x.std()
    time, lag = 1.0, 0
    while lag < 5 * time:
        lag += 1
        time += 2 * sum(x[t] * x[t - lag] for t in range(lag, len(x))) / len(x)
    assert _autocorrelation_time(x) == pytest.approx(time)


def test_constant_columns_and_sawteeth_are_no_dependence():
    noise = np.random.default_rng(0).normal(size=(200, 1))
    assert serial_dependence(np.hstack([noise, np.full((200, 1), 0.1)])) is None
    assert serial_dependence(np.resize([[-1.0], [1.0]], (200, 1))) is None, "windows are more alike than by chance"


def dependent_frame():
    rows = np.column_stack([np.random.default_rng(1).normal(size=600), autoregressive(600, 0.7, 1)[:, 0]])
    return pd.DataFrame(rows, columns=["noise", "level"])


def test_fit_warns_of_dependent_rows_by_name_and_says_what_to_pass():
    frame = dependent_frame()
    with pytest.warns(UserWarning, match=r"correlated, by 0\.\d\d in column level, .* in 100 rows") as caught:
        mh.DriftMonitor(100, **SMALL).fit(frame)
    (warning,) = caught
    assert warning.filename == __file__
    length = int(str(warning.message).partition("block_length=")[2].partition(":")[0])
    mh.DriftMonitor(100, block_length=length, **SMALL).fit(frame[:600])  # no warning is left
    with pytest.warns(UserWarning, match="column x1"):
        mh.DriftMonitor(100, block_length=2, features=mh.Nystroem(n_components=20), **SMALL).fit(frame.to_numpy())


def test_rows_in_no_order_get_no_warning():
    frame = dependent_frame()
    mh.DriftMonitor(100, **SMALL).fit(frame.sample(frac=1.0, random_state=0))
    features = mh.Nystroem(mh.Gaussian(1.0), 20, random_state=0).fit(frame)
    mh.DriftMonitor(100, **SMALL).fit(MeanSketch(features, reservoir_size=600).update(frame))


def test_fit_says_how_many_rows_the_blocks_need():
    with pytest.warns(UserWarning, match=r"block_length=\d+, which needs [\d,]+ reference rows or more: about half"):
        mh.DriftMonitor(1000, **SMALL).fit(autoregressive(300, 0.95, 2))


@pytest.mark.parametrize(("n", "run_length", "expected"), [(20, 100, 46), (50, 100, 68), (50, 500, 308)])
def test_fit_says_what_few_rows_keep(n, run_length, expected):
    rows = np.random.default_rng(0).normal(size=(n, 2))
    words = rf"run_length={run_length} is long for {n} reference rows: expect a false alarm once in about {expected} "
    with pytest.warns(UserWarning, match=words) as caught:
        mh.DriftMonitor(run_length, **SMALL).fit(rows)
    enough = int(str(caught[0].message).partition("Pass ")[2].partition(" rows")[0])
    for size, silent in ((enough, True), (enough - 1, False)):
        with warnings.catch_warnings(record=True) as notes:
            warnings.simplefilter("always")
            mh.DriftMonitor(run_length, **SMALL).fit(np.random.default_rng(0).normal(size=(size, 2)))
        assert (not notes) == silent


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:run_length=.* is long")
@pytest.mark.parametrize(("n", "run_length"), [(20, 30), (20, 100), (50, 100), (100, 100)])
def test_few_rows_keep_about_the_share_that_is_said(n, run_length):
    runs = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        monitor = mh.DriftMonitor(run_length, n_simulations=200, random_state=seed).fit(rng.normal(size=(n, 2)))
        found = []
        for _ in range(8):
            monitor.reset().update(rng.normal(size=(10 * run_length, 2)))
            found.append(monitor.rows_seen_)
        runs.append(np.mean(found))
    share = n / (n + 5 * np.log(run_length))
    assert np.mean(runs) / run_length == pytest.approx(share, abs=0.15)
