"""Changed columns and relations at an alarm."""

import numpy as np
import pytest

from muhat.monitor.changes import Drift, changed_columns, changed_relations
from muhat.monitor.reference import Reference


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


def test_a_column_of_several_features_has_the_largest_number():
    rng = np.random.default_rng(0)
    old, new = rng.normal(size=(200, 3)), rng.normal([0.0, 2.0, 0.0], size=(30, 3))
    found = dict(changed_columns(old, new, ["a", "b", "b"]))
    assert list(found) == ["b", "a"]
    assert found["b"] == changed_columns(old[:, 1:2], new[:, 1:2], ["b"])[0][1]


def test_the_change_of_a_column_that_was_constant():
    """Any other value is as large a change as there are rows of the reference; the same value is none."""
    old = np.full((100, 1), 5.0)
    assert changed_columns(old, old[:20], ["a"]) == (("a", 0.0),)
    assert changed_columns(old, old[:20] + 1.0, ["a"]) == (("a", 100.0),)


def followers(n, seed, by=0.0):
    """Two columns that follow each other closely, and one by itself."""
    rng = np.random.default_rng(seed)
    level = rng.normal(size=n)
    return np.column_stack([level, level + 0.1 * rng.normal(size=n) + by, rng.normal(size=n)])


def test_relations_name_the_column_and_what_predicts_it():
    reference, names = Reference.of(followers(400, 0)), ["temp", "dewp", "wind"]
    new = followers(20, 1, by=0.4)
    relations, columns = changed_relations(reference, new, names), changed_columns(followers(400, 0), new, names)
    assert {relations[0][:2], relations[1][:2]} == {("temp", "dewp"), ("dewp", "temp")}
    assert relations[0][2] > 5 * columns[0][1]
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
