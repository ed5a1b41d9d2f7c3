"""The backtest against a slow plain loop, refusals whose remedies work, and autoregressions."""

import re
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.signal import lfilter
from scipy.stats import poisson

import muhat as mh
from muhat.apps.monitor.autoregression import autoregression
from muhat.apps.monitor.backtest import FACTORS, Backtest, backtest

SMALL = {"n_simulations": 100, "random_state": 0}


def autoregressive(n, memory, columns, seed=0):
    noise = np.sqrt(1 - memory**2) * np.random.default_rng(seed).normal(size=(n + 300, columns))
    return lfilter([1.0], [1.0, -memory], noise, axis=0)[300:]


def spells(n, seed=0, spreads=(0.2, 3.0)):
    """Rows whose spread changes every 50 rows, which no autoregression explains."""
    rng = np.random.default_rng(seed)
    return np.repeat(rng.choice(spreads, size=-(-n // 50)), 50)[:n, None] * rng.normal(size=(n, 2))


class PlainModel:
    """A monitor of one number that alarms where it exceeds a threshold; alarms do not hang on those before."""

    names, autoregression = ["x0"], None

    def __init__(self, threshold, order):
        self.threshold, self.order = threshold, order

    def raised(self, by):
        return PlainModel(self.threshold + by, self.order)

    def alarms(self, rows):
        return [row for row in rows[:, 0] if row > self.threshold]

    def first_drift(self, rows):
        return None


def slow_backtest(rows, run_length, order):
    """Factor and alarms, segment by segment and row by row."""
    n = len(rows)
    level, vouched = max(n / 10, 50), min(run_length, n / 5)

    def alarms(length, factor):
        count = 0
        for segment in np.array_split(np.arange(n), 6):
            kept = [row for i, row in enumerate(rows[:, 0]) if i not in segment]
            for i in segment:
                count += rows[i, 0] > np.mean(kept) + np.log(level) + np.log(factor * length / level)
        return count

    quantile = 0.95 if run_length <= n / 5 else 0.99
    lengths = {min(run_length, level), vouched, run_length}
    if order == 0 and all(alarms(length, 1.0) <= poisson.ppf(quantile, n / length) for length in lengths):
        return 1.0, alarms(vouched, 1.0)
    if run_length <= n / 5:
        for factor in FACTORS:
            if alarms(run_length, factor) <= 0.5 * n / run_length:
                return factor, alarms(run_length, factor)
    return None


@pytest.mark.parametrize("n", [120, 500])
@pytest.mark.parametrize("run_length", [20, 60, 5000])
@pytest.mark.parametrize(("scale", "order"), [(1.0, 0), (1.0, 1), (1.5, 0), (40.0, 0)])
def test_it_is_the_plain_loop(n, run_length, scale, order):
    """Exponential rows over log R alarm once in R rows; with a larger scale more often."""
    rows = scale * (np.random.default_rng(0).exponential(size=(n, 1)) - 1.0)
    expected = slow_backtest(rows, run_length, order)

    def calibrated(part, length, promised):
        return PlainModel(part.mean() + np.log(length), order)

    if expected is None or run_length > n**2 / 100:
        with pytest.raises(ValueError, match=f"run_length={run_length:,} cannot be promised from") as refused:
            backtest(rows, run_length, calibrated)
        offer = re.search(r"pass run_length=([\d,]+), which holds on them", str(refused.value))
        offered = int(offer[1].replace(",", ""))
        assert offered < run_length
        assert backtest(rows, offered, calibrated).run_length == min(offered, n / 5)
    else:
        found = backtest(rows, run_length, calibrated)
        assert (found.factor, found.alarms) == expected
        assert (found.rows, found.run_length) == (n, min(run_length, n / 5))


def test_alarms_of_a_stream_are_those_of_updates_and_resets():
    """Whatever the blocks: a plain loop over single rows."""
    rows, stream = autoregressive(300, 0.6, 2), spells(200)
    monitor = quiet_fit(rows, run_length=30)
    expected = []
    for seen, row in enumerate(stream, 1):
        if monitor.update(row):
            expected.append((seen, monitor.result_.row))
            monitor.reset()
    found = [state.rows for state in monitor._model.alarms(stream)]
    assert found == [row for _, row in expected]
    assert_array_equal(np.cumsum(found), [seen for seen, _ in expected])
    assert len(found) > 3


def quiet_fit(rows, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return mh.DriftMonitor(**SMALL | options).fit(rows)


def test_the_interval_holds_the_alarms_that_were_seen():
    """Garwood's limits: with either of them as the truth, as many alarms or more extreme ones have 5 per cent."""
    for alarms in (0, 1, 7, 40):
        low, high = Backtest(1000, 100.0, alarms, 1.0).interval
        assert poisson.cdf(alarms, 1000 / low) == pytest.approx(0.05)
        assert alarms == 0 or poisson.sf(alarms - 1, 1000 / high) == pytest.approx(0.05)


def test_independent_rows_keep_their_thresholds():
    rows = np.random.default_rng(0).normal(size=(400, 2))
    tested, plain = (mh.DriftMonitor(60, block_length=b, **SMALL).fit(rows) for b in ("auto", 1))
    assert tested.threshold_ == plain.threshold_
    assert tested.backtest_.factor == 1.0
    assert tested.run_length_ == plain.run_length_ == 60
    assert tested.run_length_interval_[0] < 60 < tested.run_length_interval_[1]
    assert plain.backtest_ is None
    with pytest.warns(UserWarning, match="400 rows vouch for 80 rows between false alarms"):
        longer = mh.DriftMonitor(200, **SMALL).fit(rows)
    assert longer.run_length_ == 80


def test_thresholds_rise_where_the_order_shows_more_alarms():
    rows, stream = (spells(600, seed, (0.6, 1.5)) for seed in (0, 1))
    raised = r"the threshold is that of independent rows for [\d,]+ times run_length=60"
    with pytest.warns(UserWarning, match=raised) as caught:
        monitor = mh.DriftMonitor(60, **SMALL).fit(rows)
    assert caught[0].filename == __file__
    plain = mh.DriftMonitor(60, block_length=1, **SMALL).fit(rows)
    assert monitor.backtest_.factor > 1
    assert monitor.order_ == 0
    assert_allclose(monitor.threshold_, plain.threshold_ + np.log(monitor.backtest_.factor))
    assert monitor.backtest_.alarms <= 0.5 * 600 / 60
    assert len(plain._model.alarms(stream)) > 600 / 60 > len(monitor._model.alarms(stream))


REFUSED = {
    "spells": (spells(400), 150, True),
    "a season": (
        np.column_stack([np.sin(np.arange(600) / 30), np.random.default_rng(0).normal(size=600)]) ** 3,
        500,
        True,
    ),
    "a random walk": (np.cumsum(np.random.default_rng(0).normal(size=(400, 2)), axis=0), 120, True),
    "a promise that few rows cannot tell": (autoregressive(400, 0.8, 2), 300, True),
    "a promise beyond that of independent rows": (autoregressive(200, 0.8, 2), 5000, True),
    "few rows": (np.random.default_rng(0).normal(size=(100, 2)), 1000, False),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", REFUSED)
def test_each_remedy_of_a_refusal_works(name):
    rows, run_length, in_time = REFUSED[name]
    with pytest.raises(ValueError, match=f"run_length={run_length:,} cannot be promised from") as refused:
        quiet_fit(rows, run_length=run_length)
    words = str(refused.value)
    assert bool(re.search(r"depend on each other in time, most of all in column x[01]", words)) == in_time
    offer = int(re.search(r"pass run_length=([\d,]+), which holds on them", words)[1].replace(",", ""))
    assert offer >= 10
    assert quiet_fit(rows, run_length=offer).run_length_ == min(offer, len(rows) / 5)
    independent = re.search(r"or block_length=1( and run_length=([\d,]+))? if the order", words)
    longest = int(independent[2].replace(",", "")) if independent[2] else run_length
    assert quiet_fit(rows, run_length=longest, block_length=1).backtest_ is None


@pytest.mark.parametrize("block_length", [0, 2.5, 7, "none", True, None])
def test_other_block_lengths_are_refused(block_length):
    with pytest.raises(ValueError, match='must be "auto", which tests the promise in the order of the rows, or 1'):
        mh.DriftMonitor(block_length=block_length).fit(spells(100))


# ------------------------------------------------------------------------------------------------------ autoregressions


def test_an_autoregression_is_found_with_its_coefficients():
    A = np.array([[0.6, 0.2], [0.0, -0.5]])
    rng, rows = np.random.default_rng(0), np.zeros((4000, 2))
    for t in range(1, 4000):
        rows[t] = rows[t - 1] @ A + rng.normal(size=2)
    scale = rows.std(axis=0)
    model, residuals = autoregression(100.0 * rows + 7.0)
    assert_allclose(model.coefficients * scale / scale[:, None], A, atol=0.06)
    assert_allclose(model.spread, 1 / scale, atol=0.02)
    assert residuals.shape == (3999, 2)
    whole = model.residuals(100.0 * rows[:50] + 7.0, False)
    assert_allclose(whole, residuals[:49], atol=0.1)
    assert_array_equal(whole, [model.residuals(100.0 * rows[t : t + 2] + 7.0, False)[0] for t in range(49)])
    first = model.residuals(100.0 * rows[:3] + 7.0, True)
    assert_allclose(first[0], (rows[1] - rows.mean(axis=0)) / scale * model.spread, rtol=1e-9)
    assert_array_equal(first[1:], whole[1:2])


def test_residuals_of_a_stretch_come_from_the_other_stretches():
    rows = autoregressive(60, 0.8, 1)
    _, residuals = autoregression(rows)
    scaled = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    fold = np.array_split(np.arange(59), 10)[3]
    kept = np.setdiff1d(np.arange(59), fold)
    before, after = scaled[:-1, 0], scaled[1:, 0]
    slope = before[kept] @ after[kept] / (before[kept] @ before[kept] + 1e-3 * len(kept))
    assert_allclose(residuals[fold, 0], after[fold] - slope * before[fold], rtol=1e-10)


def schwarz(rows, memory):
    """log det of the covariance of the residuals, plus log(n)/n per coefficient."""
    y = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    before, after = y[:-1], y[1:]
    n, d = after.shape
    if memory:
        after = after - before @ np.linalg.solve(before.T @ before + 1e-3 * n * np.eye(d), before.T @ after)
    return np.linalg.slogdet(after.T @ after / n + 1e-3 * np.eye(d))[1] + memory * np.log(n) / n * d * d


@pytest.mark.parametrize("memory", [0.0, 0.08, 0.1, 0.12, 0.15])
def test_schwarz_decides_on_an_autoregression(memory):
    rows = autoregressive(500, memory, 1)
    assert (autoregression(rows) is not None) == (schwarz(rows, 1) < schwarz(rows, 0))


def test_many_columns_are_not_predicted_from_few_rows():
    assert autoregression(autoregressive(40, 0.9, 9)) is None


def test_independent_rows_have_no_autoregression():
    assert autoregression(np.random.default_rng(0).normal(size=(500, 3))) is None


def test_the_first_row_after_a_dependent_reference_is_judged():
    monitor = quiet_fit(autoregressive(600, 0.8, 2), run_length=100)
    assert monitor.order_ == 1
    assert monitor.update([30.0, 0.0])
    assert monitor.result_.row == 1
    assert monitor.result_.columns[0][0] == "x0"
    assert monitor.result_.threshold == monitor.recent_scores()[2][-1]
    quiet = [monitor.reset().update(row) for row in autoregressive(600, 0.8, 2, seed=1)[::20]]
    assert sum(quiet) <= 3


def test_streams_cut_anywhere_have_the_same_residuals(tmp_path):
    rows, stream = autoregressive(400, 0.8, 2), autoregressive(60, 0.8, 2, seed=3)
    monitor = quiet_fit(rows, run_length=60)
    monitor.update(stream)
    whole = monitor.recent_scores()
    monitor.reset()
    for row in stream[:20]:
        monitor.update(row)
    monitor.save(tmp_path / "monitor.npz")
    loaded = mh.DriftMonitor.load(tmp_path / "monitor.npz")
    loaded.update(stream[20:])
    for mine, theirs in zip(loaded.recent_scores(), whole, strict=True):
        assert_array_equal(mine, theirs)
    assert (loaded.backtest_, loaded.run_length_) == (monitor.backtest_, monitor.run_length_)


# ----------------------------------------------------------------------------------------------------- kept promises


def kept(draw, n, run_length, references, **options):
    """Rows per alarm over streams of ten run lengths each, with resets."""
    alarms = 0
    for k in range(references):
        rng = np.random.default_rng([3, k])
        monitor = quiet_fit(draw(rng, n), run_length=run_length, **options)
        alarms += len(monitor._model.alarms(draw(rng, 10 * run_length)))
    return 10 * run_length * references / max(alarms, 1)


INDEPENDENT = {
    "normal": lambda rng, n: rng.normal(size=(n, 3)),
    "three binaries": lambda rng, n: (rng.random((n, 3)) < 0.3).astype(float),
    "Poisson": lambda rng, n: rng.poisson(0.3, (n, 3)).astype(float),
    "Zipf": lambda rng, n: np.minimum(rng.zipf(2.0, (n, 2)), 30).astype(float),
    "mixed and sparse": lambda rng, n: np.column_stack([rng.normal(size=n), rng.random((n, 2)) < 0.1]),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", INDEPENDENT)
def test_independent_rows_keep_three_quarters_of_the_promise(name):
    assert kept(INDEPENDENT[name], 200, 150, 5, block_length=1) > 0.75 * 150


@pytest.mark.slow
def test_few_normal_rows_keep_the_promise_and_not_much_more():
    assert 0.75 * 36 < kept(INDEPENDENT["normal"], 60, 36, 8, block_length=1) < 1.5 * 36


@pytest.mark.slow
@pytest.mark.parametrize("memory", [0.0, 0.5, 0.8, 0.95])
def test_autoregressive_streams_keep_the_promise(memory):
    assert kept(lambda rng, n: autoregressive(n, memory, 2, rng.integers(10**9)), 500, 80, 4) > 0.75 * 80
