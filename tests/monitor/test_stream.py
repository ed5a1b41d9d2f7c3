"""What an alarm shows: changed columns and relations, and missing values."""

import warnings

import numpy as np
import pandas as pd
import pytest

import muhat as mh
from muhat.apps.monitor.reference import Reference
from muhat.apps.monitor.stream import Drift, changed_features, changed_relations


@pytest.mark.parametrize(("n", "m"), [(40, 10), (10, 40)])
def test_the_number_of_a_column_is_about_one_by_chance(n, m):
    """Whichever of the two samples is the small one."""
    rng = np.random.default_rng(0)
    numbers = [changed_features(rng.normal(size=(n, 1)), rng.normal(size=(m, 1)), [m])[0, 0] for _ in range(300)]
    assert np.mean(numbers) == pytest.approx(1.0, abs=0.15)


def test_a_period_in_the_reference_does_not_name_columns():
    """Every tenth row is alike, as readings at one hour of the day are."""
    hours = np.tile(np.arange(10.0), 1000)[:, None]
    assert changed_features(hours, hours[:100], [100])[0, 0] < 5


def test_shorter_windows_are_the_last_rows():
    rng = np.random.default_rng(0)
    old, new = rng.normal(size=(200, 3)), rng.normal([0.0, 2.0, 0.0], size=(30, 3))
    found = changed_features(old, new, [5, 30])
    assert (found.argmax(axis=1) == 1).all()
    np.testing.assert_allclose(found[0], changed_features(old, new[-5:], [5])[0])


def test_the_change_of_a_column_that_was_constant():
    """Any other value is as large a change as there are rows of the reference; the same value is none."""
    old = np.full((100, 1), 5.0)
    assert changed_features(old, old[:20], [20]) == 0.0
    assert changed_features(old, old[:20] + 1.0, [20]) == 100.0


def followers(n, seed, by=0.0):
    """Two columns that follow each other closely, and one by itself."""
    rng = np.random.default_rng(seed)
    level = rng.normal(size=n)
    return np.column_stack([level, level + 0.1 * rng.normal(size=n) + by, rng.normal(size=n)])


def test_relations_name_the_column_and_what_predicts_it():
    reference, names = Reference.of(followers(400, 0)), ["temp", "dewp", "wind"]
    new = followers(20, 1, by=0.4)
    relations = changed_relations(reference, new, names)
    columns = tuple(zip(names, changed_features(followers(400, 0), new, [20])[0], strict=True))
    assert {relations[0][:2], relations[1][:2]} == {("temp", "dewp"), ("dewp", "temp")}
    assert relations[0][2] > 5 * max(number for _, number in columns)
    quiet = changed_relations(reference, followers(20, 2), names)
    assert max(number for _, _, number in quiet) < 4
    drift = Drift(20, 11, 10, 12.0, 9.0, "whitened means", columns, relations)
    assert f"the relation of {relations[0][0]} to {relations[0][1]} (" in str(drift)
    assert str(drift).startswith("drift at row 20: rows 11 to 20 differ from the reference in whitened means")


def test_a_single_column_has_no_relations():
    reference = Reference.of(np.random.default_rng(0).normal(size=(30, 2)))
    assert changed_relations(reference, np.zeros((3, 2)), ["a", "a"]) == ()


def test_relations_by_chance_are_about_one():
    """Also where there are so many columns that in-sample residuals are too small."""
    numbers = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        reference = Reference.of(rng.normal(size=(120, 20)))
        found = changed_relations(reference, rng.normal(size=(30, 20)), [f"x{j}" for j in range(20)])
        numbers += [number for _, _, number in found]
    assert np.mean(numbers) == pytest.approx(1.0, abs=0.25)


def plants(n, seed, p=0.0):
    """Numbers that are sometimes missing, numbers and kinds that never are."""
    rng = np.random.default_rng(seed)
    size = np.where(rng.random(n) < 0.1 + p, np.nan, rng.normal(size=n))
    return pd.DataFrame({"size": size, "volt": rng.normal(size=n), "kind": rng.choice(["oak", "elm"], n)})


@pytest.mark.parametrize("residuals", [False, True])
@pytest.mark.parametrize("column", ["volt", "kind"])
def test_the_first_missing_values_of_a_column_are_named(column, residuals, tmp_path):
    reference = plants(500, 0)
    if residuals:
        reference["volt"] = 3.0 * np.sin(np.arange(500) / 3) + 0.1 * reference["volt"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that less is vouched for
        monitor = mh.DriftMonitor(100, n_simulations=100, random_state=0).fit(reference)
    assert (monitor.order_ > 0) == residuals
    stream = reference[:60].copy()
    stream.loc[20:, column] = None
    assert monitor.update(stream)
    assert monitor.result_.row > 20
    assert monitor.result_.missing[0] == column
    assert f"most changed: missing values of {column} (" in str(monitor.result_)
    monitor.save(tmp_path / "monitor.npz")
    assert mh.DriftMonitor.load(tmp_path / "monitor.npz").result_ == monitor.result_


def test_more_missing_values_than_before_are_named():
    monitor = mh.DriftMonitor(100, n_simulations=100, block_length=1, random_state=0).fit(plants(300, 0))
    assert monitor.update(plants(200, 1, p=0.6))
    assert "size" in monitor.result_.missing
    assert "volt" not in monitor.result_.missing
    assert len(monitor.result_.columns) == 3, "a column of several features is named once"
