"""Explanations of anomalous bags: they name what was changed."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import muhat as mh
from muhat.bags.bag_explanations import ColumnPrior, ColumnStatistics
from muhat.bags.data import Bags
from muhat.linalg.whitening import Whitening


def normal(n, rng):
    """Correlated columns around a location of their own."""
    common = rng.normal(size=(n, 1))
    return np.hstack([common + 0.5 * rng.normal(size=(n, 2)), rng.normal(size=(n, 1))]) + 0.2 * rng.normal(size=3)


@pytest.fixture(scope="module")
def detector():
    rng = np.random.default_rng(0)
    frames = [pd.DataFrame(normal(n, rng), columns=["temp", "dewp", "wind"]) for n in rng.integers(5, 80, size=100)]
    return mh.GroupAnomalyDetector(random_state=0).fit(frames)


CHANGES = {
    "mean": (lambda bag: bag + np.array([0, 0, 2.0]), ("wind",), "mean", 1),
    "dispersion": (lambda bag: bag * [1, 1, 3.0], ("wind",), "dispersion", 1),
    "correlation": (lambda bag: np.column_stack([bag[:, :2], bag[:, 0]]), ("temp", "wind"), "correlation", 1),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_was_changed_is_named(name, detector):
    change, columns, statistic, sign = CHANGES[name]
    bag = pd.DataFrame(change(normal(40, np.random.default_rng(1))), columns=["temp", "dewp", "wind"])
    (found,) = detector.explain([bag])
    first = found.deviations[0]
    assert (first.columns, first.statistic, np.sign(first.z)) == (columns, statistic, sign)
    assert columns[0] in str(found)
    assert "higher" in str(found)
    assert found.p_value == detector.p_values([bag])[0]
    assert set(found.views) == set(detector.views_) == {"kernel", "moments"}


def test_columns_without_names_have_numbers():
    rng = np.random.default_rng(0)
    detector = mh.GroupAnomalyDetector(random_state=0).fit([normal(20, rng) for _ in range(30)])
    assert "column 2" in str(detector.explain([normal(20, rng) + np.array([0, 0, 5.0])])[0])


def test_z_values_of_normal_bags_are_standard_at_every_size():
    rng = np.random.default_rng(0)
    sizes = rng.integers(4, 60, size=400)
    bags = Bags(np.concatenate([normal(n, rng) for n in sizes]), np.cumsum([0, *sizes]))
    prior = ColumnPrior.of(bags, Whitening.of(bags.rows))
    values = prior.statistics.of_bags(bags)
    z = (values - prior.centre) / np.sqrt(prior.between + prior.noise / sizes[:, None])
    for chosen in (sizes < 12, sizes > 40):
        assert_allclose(z[chosen, :6].var(axis=0), 1, atol=0.3)  # of means
        assert_allclose(z[chosen, 6:].var(axis=0), 1, atol=0.7)  # whose variance is 1/n for large n alone


def test_statistics_of_a_bag_written_out():
    rng = np.random.default_rng(0)
    bags = Bags(rng.normal(size=(31, 2)), np.array([0, 1, 11, 31]))
    statistics = ColumnStatistics.of(bags, Whitening.of(bags.rows))
    found = statistics.of_bags(bags)
    Z = statistics.whitening.standardise(bags.rows)[1:11]
    assert_allclose(found[1, :2], Z.mean(axis=0), atol=1e-12)
    assert_allclose(found[1, 4:6], np.log(Z.var(axis=0, ddof=1) + 0.01), atol=1e-12)
    assert abs(np.tanh(found[1, 8]) - np.corrcoef(Z.T)[0, 1]) < 0.05
    assert_allclose(found[0, 4:8], np.log(1.01))
    assert len(statistics.labels()) == found.shape[1]
