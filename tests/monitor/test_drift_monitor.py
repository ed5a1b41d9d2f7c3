"""The monitor: one alarm whatever the blocks, the promise in small, and scikit-learn's conventions."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import muhat as mh
from muhat.apps.monitor.drift_monitor import MOST_ROWS
from muhat.linalg.resources import one_blas_thread

rng = np.random.default_rng(0)
REFERENCE = rng.normal(size=(300, 3))
QUIET = rng.normal(size=(60, 3))
SHIFTED = rng.normal([0.0, 1.5, 0.0], size=(80, 3))
STREAM = np.concatenate([QUIET, SHIFTED])
SMALL = {"run_length": 500, "n_simulations": 200, "block_length": 1, "random_state": 0}


@pytest.fixture(scope="module")
def fitted():
    return mh.DriftMonitor(**SMALL).fit(REFERENCE)


@pytest.fixture
def monitor(fitted):
    return pickle.loads(pickle.dumps(fitted))


def state(monitor):
    stream = monitor._stream
    return stream.sums.pairs, stream.sums.singles, stream.recent, *stream.views, stream.scores, stream.rows


def assert_same_state(first, second):
    """To the last bits, in which products of one row and of many rows differ on processors without vectors."""
    for mine, theirs in zip(state(first), state(second), strict=True):
        assert_allclose(mine, theirs, rtol=1e-12, atol=1e-12)
    assert str(first.result_) == str(second.result_)


def test_it_finds_a_shift_and_says_where(monitor):
    assert not monitor.update(QUIET)
    assert monitor.result_ is None
    assert monitor.witness_ is None
    assert monitor.update(SHIFTED)
    found = monitor.result_
    assert 60 < found.row <= 80
    assert found.since == found.row - found.window + 1
    assert found.score > found.threshold
    assert found.columns[0][0] == "x1"
    assert monitor.witness_(REFERENCE).mean() > monitor.witness_(SHIFTED).mean()
    assert str(found).startswith(f"drift at row {found.row}")


def test_rows_after_an_alarm_are_ignored_until_reset(monitor):
    monitor.update(STREAM)
    held = pickle.loads(pickle.dumps(monitor))
    assert monitor.update(SHIFTED)
    assert_same_state(monitor, held)
    assert not monitor.reset().drift_detected
    assert monitor.rows_seen_ == 0
    monitor.update(STREAM)
    assert_same_state(monitor, held)


@given(st.lists(st.integers(1, len(STREAM) - 1), max_size=12))
@example(list(range(1, len(STREAM))))  # single rows
@settings(max_examples=25, deadline=None)
def test_cuts_do_not_matter(fitted, cuts):
    whole, parts = (pickle.loads(pickle.dumps(fitted)) for _ in range(2))
    whole.update(STREAM)
    for block in np.split(STREAM, sorted(cuts)):
        if len(block):
            parts.update(block)
    assert_same_state(parts, whole)


def test_threads_do_not_matter():
    """Seeded calibration, a wide reference, and a kernel that goes through BLAS."""
    wide = np.random.default_rng(1).normal(size=(400, 60))
    options = SMALL | {"kernel": mh.Matern(), "run_length": 200}
    free = mh.DriftMonitor(**options).fit(wide)
    free.update(wide[:50] + 0.1)
    with one_blas_thread():
        held = mh.DriftMonitor(**options).fit(wide)
        held.update(wide[:50] + 0.1)
    assert free.threshold_ == pytest.approx(held.threshold_, rel=1e-9)
    assert_array_equal(free.recent_scores()[1], held.recent_scores()[1])


def test_killed_and_loaded_it_goes_on_to_the_same_alarm(fitted, tmp_path):
    whole = pickle.loads(pickle.dumps(fitted))
    whole.update(STREAM)
    for stop in (1, 7, 59, 63):
        part = pickle.loads(pickle.dumps(fitted))
        part.update(STREAM[:stop])
        part.save(tmp_path / "monitor.npz")
        loaded = mh.DriftMonitor.load(tmp_path / "monitor.npz")
        loaded.update(STREAM[stop:])
        assert_same_state(loaded, whole)


def test_the_same_seed_is_the_same_monitor(fitted):
    again = mh.DriftMonitor(**SMALL).fit(REFERENCE)
    assert again.threshold_ == fitted.threshold_
    assert_array_equal(again._model.calibration.scale.quantiles, fitted._model.calibration.scale.quantiles)
    assert mh.DriftMonitor(**SMALL | {"random_state": 1}).fit(REFERENCE).threshold_ != fitted.threshold_


def test_memory_does_not_grow_with_the_stream(monitor):
    sizes = []
    monitor._model = replace(monitor._model, calibration=monitor._model.calibration.raised(1e9))
    for _ in range(2):
        monitor.update(np.random.default_rng(0).normal(size=(3000, 3)))
        sizes.append(len(pickle.dumps(monitor)))
    assert sizes[1] <= sizes[0] + 100


NAMES = ["a", "b", "c"]


@pytest.mark.parametrize(
    "frame", [pd.DataFrame, lambda X, columns: pl.DataFrame(X, schema=columns)], ids=["pandas", "polars"]
)
def test_columns_are_known_by_name(frame):
    monitor = mh.DriftMonitor(**SMALL).fit(frame(REFERENCE, columns=NAMES))
    plain, by_row, by_dictionary = (pickle.loads(pickle.dumps(monitor)) for _ in range(3))
    plain.update(STREAM)
    monitor.update(frame(STREAM[:, [2, 0, 1]], columns=["c", "a", "b"]))
    for _, row in pd.DataFrame(STREAM, columns=NAMES)[["b", "c", "a"]].iterrows():
        by_row.update(row)
        by_dictionary.update(dict(row))
    for other in (monitor, by_row, by_dictionary):
        assert_same_state(other, plain)
    assert monitor.result_.columns[0][0] == "b"


def test_one_column_takes_numbers():
    monitor = mh.DriftMonitor(**SMALL).fit(REFERENCE[:, :1])
    plain = pickle.loads(pickle.dumps(monitor))
    plain.update(QUIET[:, :1])
    for value in QUIET[:, 0]:
        monitor.update(value)
    assert_same_state(monitor, plain)


@pytest.mark.slow
def test_of_a_long_reference_some_rows_are_compared():
    big = np.random.default_rng(0).normal(size=(3000, 2))
    monitor = mh.DriftMonitor(**SMALL).fit(big)
    assert len(monitor.compared_rows()[0]) == MOST_ROWS
    assert monitor.update(np.full((30, 2), 4.0))


def test_a_relation_that_breaks_is_seen_and_named():
    """Each column by itself is as it was."""
    generator = np.random.default_rng(1)

    def rows(n, noise):
        level = generator.normal(size=n)
        follower = level + noise * generator.normal(size=n) if noise else generator.normal(size=n)
        return pd.DataFrame({"temp": level, "dewp": follower, "wind": generator.normal(size=n)})

    monitor = mh.DriftMonitor(**SMALL).fit(rows(400, 0.1))
    assert not monitor.update(rows(60, 0.1))
    assert monitor.update(rows(40, None))
    assert monitor.result_.row < 70
    assert {monitor.result_.relations[0][:2]} <= {("temp", "dewp"), ("dewp", "temp")}


def mixed_rows(n, seed, shift=0.0):
    generator = np.random.default_rng(seed)
    speed = generator.normal(size=n)
    kind = generator.choice(["bus", "tram", "car"], n, p=[0.2 + shift, 0.3, 0.5 - shift])
    day = pd.Timestamp("2024-01-01") + pd.to_timedelta(generator.integers(0, 30, n), unit="D")
    return pd.DataFrame({"speed": np.where(generator.random(n) < 0.1, np.nan, speed), "kind": kind, "day": day})


def test_tables_with_categories_dates_and_missing_values(tmp_path):
    monitor = mh.DriftMonitor(**SMALL).fit(mixed_rows(400, 0))
    assert monitor.column_names_ == ["speed", "kind", "day"]
    assert not monitor.update(mixed_rows(30, 1))
    monitor.save(tmp_path / "monitor.npz")
    loaded = mh.DriftMonitor.load(tmp_path / "monitor.npz")
    drifted = mixed_rows(200, 2, shift=0.5)
    assert monitor.update(drifted)
    assert monitor.result_.columns[0][0] == "kind"
    for _, row in drifted.iterrows():
        if loaded.update(dict(row)):
            break
    assert loaded.result_ == monitor.result_


def test_columns_of_times_are_left_out():
    """They increase with the rows, so that every later row would be a drift; streams may have them or not."""
    times = pd.date_range("2024-01-01", periods=500, freq="h")
    late = times[np.argsort(np.arange(500) + 3.0 * np.random.default_rng(1).random(500))]
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(500, 2)), columns=["a", "b"])
    frame = frame.assign(time=times, number=np.arange(500), late=late, date=np.random.default_rng(2).permutation(times))
    monitor = mh.DriftMonitor(**SMALL).fit(frame[:400])
    assert monitor.left_out_ == ("time", "number", "late")
    assert monitor.column_names_ == ["a", "b", "date"]
    stream = frame[:20].assign(time=times[400:420], number=np.arange(400, 420))
    for rows in (stream, stream.drop(columns=["time", "late"])):
        assert not monitor.reset().update(rows)
    assert not monitor.reset().update(dict(frame.iloc[3]))
    only = mh.DriftMonitor(**SMALL).fit(frame[["number"]])
    assert only.left_out_ == (), "a single column is what is asked about"


@pytest.mark.parametrize("store", [lambda x: x.astype(np.float32), lambda x: x * 3 / 3], ids=["single", "computed"])
def test_rounding_is_no_drift(store):
    """Decimals of which one side is stored in single precision, or computed in another order."""
    generator = np.random.default_rng(0)
    rows, stream = (generator.integers(1, 10, size=(300, 3)) / 10 for _ in range(2))
    plain, rounded = (mh.DriftMonitor(**SMALL).fit(reference) for reference in (rows, store(rows)))
    alarms = len(plain._model.alarms(stream))
    assert alarms <= 3
    assert len(plain._model.alarms(store(stream).astype(float))) == alarms
    assert len(rounded._model.alarms(stream)) == alarms


def test_an_alarm_shows_itself_as_a_table(monitor):
    monitor.update(STREAM)
    found = monitor.result_
    page = found._repr_html_()
    assert repr(found) == str(found)
    assert page.startswith(f"<div><p>drift at row {found.row}: ")
    assert "<td>x1</td>" in page
    assert "&lt;b&gt;" in replace(found, columns=(("<b>", 3.0),))._repr_html_()
    rows, scores, thresholds = monitor.recent_scores()
    assert_array_equal(rows, np.arange(1, found.row + 1))
    assert scores[-1] == found.score > found.threshold == thresholds[-1] == monitor.threshold_
    assert (scores[:-1] <= thresholds[:-1]).all()


def test_new_categories_and_values_that_were_never_missing_are_seen():
    frame = mixed_rows(400, 0)
    for changed in (frame.assign(kind="boat"), frame.assign(day=pd.NaT)):
        monitor = mh.DriftMonitor(**SMALL).fit(frame)
        assert monitor.update(changed[:30])


def test_an_updated_reference_is_fitted_again(monitor):
    """Rows that were an alarm are quiet once they belong to the reference."""
    assert monitor.update(SHIFTED)
    generator = np.random.default_rng(5)
    both = np.concatenate([REFERENCE, generator.normal([0.0, 1.5, 0.0], size=(300, 3))])
    monitor.fit(generator.permutation(both))
    assert monitor.rows_seen_ == 0
    assert not monitor.update(generator.permutation(np.concatenate([QUIET[:15], SHIFTED[:15]])))


def test_copies_of_a_shared_monitor_go_on_by_themselves(monitor):
    """The lock of a monitor is no part of it; only a copy that is no copy would see the rows of the other."""
    monitor.update(QUIET[:20])
    held = pickle.dumps(monitor)
    copies = [copy.copy(monitor), copy.deepcopy(monitor), pickle.loads(held)]
    monitor.update(QUIET[20:])
    for one in copies:
        assert_same_state(one, pickle.loads(held))
        one.update(QUIET[20:])
        assert_same_state(one, monitor)
    assert set(clone(monitor).get_params()) == set(mh.DriftMonitor().get_params())
    assert not hasattr(clone(monitor), "threshold_")


def test_it_is_cloned_with_its_parameters():
    monitor = mh.DriftMonitor(77, kernel=mh.Gaussian(2.0), windows=[1, 4], block_length=1, n_simulations=150)
    assert clone(monitor).get_params() == monitor.get_params()
    assert clone(monitor).set_params(kernel__bandwidth=3.0).kernel == mh.Gaussian(3.0)


@pytest.mark.filterwarnings("ignore:run_length=2 holds if", "ignore:neighbouring rows")  # of few rows
@parametrize_with_checks(
    [mh.DriftMonitor(2, n_simulations=100, random_state=0)],
    expected_failed_checks=lambda estimator: {
        "check_dtype_object": "a column of nested values is refused by its name, with a ValueError"
    },
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
