"""Serial dependence: rare on independent rows, certain on dependent ones; autoregressions and blocks."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.signal import lfilter

import muhat as mh
from muhat.apps.monitor.dependence import autocorrelation_time, autoregression, serial_dependence, stretches
from muhat.apps.monitor.reference import Reference
from muhat.features.sketch import MeanSketch

SMALL = {"n_simulations": 100, "random_state": 0}


def autoregressive(n, memory, columns, seed=0):
    noise = np.sqrt(1 - memory**2) * np.random.default_rng(seed).normal(size=(n + 300, columns))
    return lfilter([1.0], [1.0, -memory], noise, axis=0)[300:]


def found_in(rows, seed=0):
    return serial_dependence(Reference.of(rows), np.random.default_rng(seed))


INDEPENDENT = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "heavy tails": lambda rng, shape: rng.standard_cauchy(shape),
    "rarely not zero": lambda rng, shape: (rng.random(shape) < 0.02).astype(float),
    "zeros and ones": lambda rng, shape: rng.integers(0, 2, shape).astype(float),
    "huge": lambda rng, shape: 1e300 * rng.normal(size=shape),
}


@pytest.mark.parametrize(("n", "d"), [(20, 1), (60, 4)])
@pytest.mark.parametrize("name", INDEPENDENT)
def test_dependence_is_seldom_found_in_independent_rows(name, n, d):
    """At most 1 in 50 is expected of 60; more than 5 would be rare at that rate."""
    rng = np.random.default_rng(0)
    found = [found_in(INDEPENDENT[name](rng, (n, d)) + 1e-9 * rng.normal(size=(n, d))) for _ in range(60)]
    assert sum(one is not None for one in found) <= 5


@pytest.mark.slow
@pytest.mark.parametrize("d", [1, 8])
@pytest.mark.parametrize("memory", [0.5, 0.9, -0.7])
def test_dependence_is_always_found_in_one_column_of_several(memory, d):
    for seed in range(10):
        rows = np.random.default_rng(seed).normal(size=(300, d))
        rows[:, d // 2] = 1e5 * autoregressive(300, memory, 1, seed)[:, 0] - 3e5
        found = found_in(rows)
        assert found.column == d // 2
        plain = np.corrcoef(rows[1:, d // 2], rows[:-1, d // 2])[0, 1]
        assert found.correlation == pytest.approx(plain, abs=0.1)


def test_changing_variance_is_dependence_too():
    rng = np.random.default_rng(0)
    spells = np.repeat(rng.choice([0.3, 2.0], size=20), 30)
    assert found_in(spells[:, None] * rng.normal(size=(600, 2))) is not None


def test_the_autocorrelation_time_is_the_sum_of_the_autocorrelations():
    """That of an autoregression is (1 + ρ)/(1 − ρ); and the sum is the slow one over pairs of rows."""
    for memory in (0.0, 0.5, 0.8):
        x = autoregressive(100_000, memory, 1)[:, 0]
        assert autocorrelation_time(x / x.std()) == pytest.approx((1 + memory) / (1 - memory), rel=0.1)
    x = autoregressive(400, 0.8, 1)[:, 0]
    x = (x - x.mean()) / x.std()
    time, lag = 1.0, 0
    while lag < 5 * time:
        lag += 1
        time += 2 * sum(x[t] * x[t - lag] for t in range(lag, len(x))) / len(x)
    assert autocorrelation_time(x) == pytest.approx(time / (1 - 2 * lag / 400))


def test_an_autoregression_is_found_with_its_coefficients():
    A = np.array([[0.6, 0.2], [0.0, -0.5]])
    rng, rows = np.random.default_rng(0), np.zeros((4000, 2))
    for t in range(1, 4000):
        rows[t] = rows[t - 1] @ A + rng.normal(size=2)
    scale = rows.std(axis=0)
    model, residuals = autoregression(100.0 * rows + 7.0)
    assert model.order == 1
    assert_allclose(model.coefficients * scale / scale[:, None], A, atol=0.06)
    assert residuals.shape == (3999, 2)
    whole = model.residuals(100.0 * rows[:50] + 7.0)
    assert_allclose(whole, residuals[:49], atol=0.1)
    one_by_one = [model.residuals(100.0 * rows[t : t + 2] + 7.0)[0] for t in range(49)]
    np.testing.assert_array_equal(whole, one_by_one)


def test_residuals_of_a_stretch_come_from_the_other_stretches():
    rows = autoregressive(60, 0.8, 1)
    model, residuals = autoregression(rows)
    scaled = model.scaled(rows)
    fold = stretches(59, 10)[3]
    kept = np.r_[0 : fold.start, fold.stop : 59]
    lagged, targets = scaled[:-1, 0], scaled[1:, 0]
    slope = lagged[kept] @ targets[kept] / (lagged[kept] @ lagged[kept] + 1e-3 * len(kept))
    assert_allclose(residuals[fold, 0], targets[fold] - slope * lagged[fold], rtol=1e-10)


def test_independent_rows_have_no_autoregression():
    assert autoregression(np.random.default_rng(0).normal(size=(500, 3))) is None


def dependent_frame(n=600):
    rows = np.column_stack([np.random.default_rng(1).normal(size=n), autoregressive(n, 0.7, 1)[:, 0]])
    return pd.DataFrame(rows, columns=["noise", "level"])


def test_fit_says_what_it_found_and_what_it_did():
    with pytest.warns(
        UserWarning, match=r"correlation 0\.\d\d in column level\), so the monitor runs on the resid"
    ) as c:
        monitor = mh.DriftMonitor(100, **SMALL).fit(dependent_frame())
    assert c[0].filename == __file__
    assert monitor.dependence_.correlation > 0.5
    assert monitor.update(dependent_frame() + np.array([0.0, 9.0]))
    assert monitor.result_.columns[0][0] == "level"
    assert monitor.rows_seen_ < 10, "the first row only serves to predict the next"


def test_rows_in_no_order_cost_nothing():
    frame = dependent_frame()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert mh.DriftMonitor(100, **SMALL).fit(frame.sample(frac=1.0, random_state=0)).dependence_ is None
        assert mh.DriftMonitor(100, block_length=1, **SMALL).fit(frame).dependence_ is None
        features = mh.Nystroem(mh.Gaussian(1.0), 20, random_state=0).fit(frame)
        sketch = MeanSketch(features, reservoir_size=600).update(frame)
        assert mh.DriftMonitor(100, **SMALL).fit(sketch).dependence_ is None


def test_a_reference_that_is_too_short_for_its_dependence_is_refused():
    rng = np.random.default_rng(0)
    spells = np.repeat(rng.choice([0.2, 3.0], size=6), 50)
    with pytest.raises(ValueError, match=r"depend on each other for about \d+ rows; pass [\d,]+ rows or more"):
        mh.DriftMonitor(50, **SMALL).fit(spells[:, None] * rng.normal(size=(300, 2)))


@pytest.mark.filterwarnings("ignore:neighbouring rows")
def test_streams_cut_anywhere_have_the_same_residuals(tmp_path):
    rows, stream = autoregressive(400, 0.8, 2), autoregressive(60, 0.8, 2, seed=3)
    monitor = mh.DriftMonitor(100, **SMALL).fit(rows)
    monitor.update(stream)
    whole = monitor.recent_scores()
    assert np.isinf(whole[1][0]), "no prediction for the first row"
    monitor.reset()
    for row in stream[:20]:
        monitor.update(row)
    monitor.save(tmp_path / "monitor.npz")
    loaded = mh.DriftMonitor.load(tmp_path / "monitor.npz")
    loaded.update(stream[20:])
    for mine, theirs in zip(loaded.recent_scores(), whole, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert loaded.dependence_ == monitor.dependence_


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:neighbouring rows")
def test_autoregressive_streams_keep_the_promise():
    runs = []
    for seed in range(5):
        monitor = mh.DriftMonitor(100, random_state=seed, n_simulations=200).fit(autoregressive(600, 0.8, 2, seed))
        for k in range(12):
            monitor.reset().update(autoregressive(1000, 0.8, 2, [seed, k]))
            runs.append(monitor.rows_seen_)
    assert abs(np.mean(runs) - 100) < 5 * np.std(runs) / np.sqrt(len(runs))
