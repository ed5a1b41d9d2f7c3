"""The monitor: one alarm whatever the blocks, the promise in small, and scikit-learn's conventions."""

import copy
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import muhat as mh
from muhat.features.sketch import MeanSketch
from muhat.linalg.resources import one_blas_thread
from muhat.monitor.calibration import POPULATION
from muhat.monitor.changed_columns import changed_columns
from muhat.monitor.drift_monitor import _population
from muhat.monitor.reference import RowReference

rng = np.random.default_rng(0)
REFERENCE = rng.normal(size=(300, 3))
QUIET = rng.normal(size=(60, 3))
SHIFTED = rng.normal([0.0, 1.5, 0.0], size=(80, 3))
STREAM = np.concatenate([QUIET, SHIFTED])
SMALL = {"run_length": 500, "n_simulations": 200, "random_state": 0}


@pytest.fixture(scope="module")
def fitted():
    return mh.DriftMonitor(**SMALL).fit(REFERENCE)


@pytest.fixture
def monitor(fitted):
    return pickle.loads(pickle.dumps(fitted))


def state(monitor):
    return monitor._sums.pairs, monitor._sums.sums, monitor._recent, np.array(monitor._history), monitor.rows_seen_


def assert_same_state(first, second):
    for mine, theirs in zip(state(first), state(second), strict=True):
        assert_array_equal(mine, theirs)
    assert first.result_ == second.result_


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
@settings(max_examples=25, deadline=None)
def test_cuts_do_not_matter(fitted, cuts):
    whole, parts = (pickle.loads(pickle.dumps(fitted)) for _ in range(2))
    whole.update(STREAM)
    for block in np.split(STREAM, sorted(cuts)):
        if len(block):
            parts.update(block)
    assert_same_state(parts, whole)


def test_single_rows_do_not_matter_either(fitted):
    whole, parts = (pickle.loads(pickle.dumps(fitted)) for _ in range(2))
    whole.update(STREAM)
    assert [parts.update(row) for row in STREAM].index(True) == whole.result_.row - 1
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
    assert_array_equal(free._history, held._history)


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
    assert_array_equal(again._calibration.start, fitted._calibration.start)
    assert mh.DriftMonitor(**SMALL | {"random_state": 1}).fit(REFERENCE).threshold_ != fitted.threshold_


def test_memory_does_not_grow_with_the_stream(monitor):
    sizes = []
    quiet = monitor._calibration
    monitor._calibration = type(quiet)(quiet.scale, quiet.start + 1e9, quiet.threshold + 1e9)
    for _ in range(2):
        monitor.update(np.random.default_rng(0).normal(size=(3000, 3)))
        sizes.append(len(pickle.dumps(monitor)))
    assert sizes[1] <= sizes[0] + 100


@pytest.mark.slow
def test_the_promise_in_small():
    """The mean run length over references, within five standard errors; run lengths vary as geometric ones do."""
    runs = []
    for seed in range(8):
        generator = np.random.default_rng(seed)
        monitor = mh.DriftMonitor(60, n_simulations=300, random_state=seed).fit(generator.normal(size=(200, 2)))
        for _ in range(20):
            monitor.reset().update(generator.normal(size=(2000, 2)))
            runs.append(monitor.rows_seen_)
    error = np.std(runs) / np.sqrt(len(runs))
    assert abs(np.mean(runs) - 60) < 5 * error
    assert 0.7 < np.std(runs) / np.mean(runs) < 1.4


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:neighbouring rows", "ignore:run_length=200 is long")
def test_blocks_of_rows_that_depend_on_each_other():
    """An autoregressive stream: calibrated as independent rows it alarms too soon, in blocks it does not."""

    def stream(n, seed):
        noise = np.random.default_rng(seed).normal(size=(n + 100, 1))
        for t in range(1, len(noise)):
            noise[t] = 0.8 * noise[t - 1] + 0.6 * noise[t]
        return noise[100:]

    means = {}
    for block_length in (1, 20):
        runs = []
        for seed in range(3):
            monitor = mh.DriftMonitor(200, block_length=block_length, n_simulations=200, random_state=seed)
            monitor.fit(stream(1000, seed))
            for k in range(10):
                monitor.reset().update(stream(2000, [seed, k]))
                runs.append(monitor.rows_seen_)
        means[block_length] = np.mean(runs)
    assert 4 * means[1] < means[20]


NAMES = ["a", "b", "c"]


@pytest.mark.parametrize(
    "frame", [pd.DataFrame, lambda X, columns: pl.DataFrame(X, schema=columns)], ids=["pandas", "polars"]
)
def test_columns_are_known_by_name(frame):
    monitor = mh.DriftMonitor(**SMALL).fit(frame(REFERENCE, columns=NAMES))
    plain = pickle.loads(pickle.dumps(monitor))
    plain.update(STREAM)
    monitor.update(frame(STREAM[:, [2, 0, 1]], columns=["c", "a", "b"]))
    assert_same_state(monitor, plain)
    assert monitor.result_.columns[0][0] == "b"


def test_rows_of_a_data_frame_and_dictionaries_are_known_by_name(tmp_path):
    monitor = mh.DriftMonitor(**SMALL).fit(pd.DataFrame(REFERENCE, columns=NAMES))
    plain = pickle.loads(pickle.dumps(monitor))
    plain.update(QUIET)
    monitor.save(tmp_path / "monitor.npz")
    by_dictionary = mh.DriftMonitor.load(tmp_path / "monitor.npz")
    for _, row in pd.DataFrame(QUIET, columns=NAMES)[["b", "c", "a"]].iterrows():
        monitor.update(row)
        by_dictionary.update(dict(row))
    assert_same_state(monitor, plain)
    assert_same_state(by_dictionary, plain)


def test_one_column_takes_numbers():
    monitor = mh.DriftMonitor(**SMALL).fit(REFERENCE[:, :1])
    plain = pickle.loads(pickle.dumps(monitor))
    plain.update(QUIET[:, :1])
    for value in QUIET[:, 0]:
        monitor.update(value)
    assert_same_state(monitor, plain)


def test_a_sketch_is_a_reference():
    features = mh.Nystroem(mh.Gaussian(), 60, random_state=0).fit(REFERENCE)
    sketch = MeanSketch(features, reservoir_size=200).update(REFERENCE)
    monitor = mh.DriftMonitor(**SMALL).fit(sketch)
    assert monitor.update(STREAM)
    assert 60 < monitor.result_.row < 90
    other = mh.DriftMonitor(**SMALL, features=mh.Nystroem(n_components=60, random_state=0)).fit(REFERENCE)
    assert other.update(STREAM)
    assert_array_equal(other._reference.cross(QUIET), monitor._reference.cross(QUIET))


@pytest.mark.slow
def test_a_large_reference_is_sampled_for_the_simulations():
    big = np.random.default_rng(0).normal(size=(3000, 2))
    for block_length in (1, 5):
        monitor = mh.DriftMonitor(**SMALL, block_length=block_length).fit(big)
        assert monitor.update(np.full((30, 2), 4.0))


def test_rows_of_simulated_streams_are_drawn_one_by_one_or_in_stretches():
    rows = np.arange(POPULATION + 1.0)[:, None]
    drawn = [_population(rows, 1, np.random.default_rng(seed)).ravel() for seed in range(5)]
    assert all(len(set(found)) == len(found) == POPULATION for found in drawn)
    assert len({(set(rows.ravel()) - set(found)).pop() for found in drawn}) > 2, "any row may be left out"
    found = _population(np.arange(3.0 * POPULATION)[:, None], 5, np.random.default_rng(0)).reshape(-1, 50)
    assert (np.diff(found, axis=1) == 1).all(), "ten blocks of five rows are taken in one piece"
    assert len(np.unique(found)) == POPULATION


def test_kernels_of_two_kinds_are_those_of_one_kind_each():
    kernels = [mh.Gaussian(1.0), mh.Laplace(2.0)]
    together = RowReference(REFERENCE, kernels).cross(QUIET)
    alone = [RowReference(REFERENCE, [kernel]).cross(QUIET) for kernel in kernels]
    np.testing.assert_allclose(together, np.concatenate(alone, axis=1), rtol=1e-12)


def test_categories_as_ones_and_zeros():
    """Statistics of few values, many of them equal: the alarm still comes only with the change."""
    generator = np.random.default_rng(0)

    def rows(n, p):
        return np.eye(3)[generator.choice(3, n, p=p)]

    monitor = mh.DriftMonitor(**SMALL).fit(rows(300, [0.6, 0.3, 0.1]))
    assert monitor.update(np.concatenate([rows(50, [0.6, 0.3, 0.1]), rows(200, [0.1, 0.3, 0.6])]))
    assert monitor.result_.row > 50


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
    monitor = mh.DriftMonitor(77, kernel=mh.Gaussian(2.0), windows=[1, 4], block_length=3, n_simulations=150)
    assert clone(monitor).get_params() == monitor.get_params()
    assert clone(monitor).set_params(kernel__bandwidth=3.0).kernel == mh.Gaussian(3.0)


@pytest.mark.filterwarnings("ignore:run_length=10 is long", "ignore:neighbouring rows")  # the checks have few rows
@parametrize_with_checks([mh.DriftMonitor(10, n_simulations=100, random_state=0)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize(("n", "m"), [(40, 10), (10, 40)])
def test_the_number_of_a_column_is_about_one_by_chance(n, m):
    """Whichever of the two samples is the small one."""
    rng = np.random.default_rng(0)
    numbers = [changed_columns(rng.normal(size=(n, 1)), rng.normal(size=(m, 1)), ["a"])[0][1] for _ in range(300)]
    assert np.mean(numbers) == pytest.approx(1.0, abs=0.15)


def test_a_period_in_the_reference_does_not_name_columns():
    """Every tenth row is alike, as readings at one hour of the day are."""
    hours = np.tile(np.arange(10.0), 1000)[:, None]
    assert changed_columns(hours, hours[:100], ["hour"])[0][1] < 5
