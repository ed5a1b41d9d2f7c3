"""Stacking of regressions on bags: weights against their definition, and what summaries add."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize

import muhat as mh
from muhat.bags.data import Bags
from muhat.bags.ridge import stacking_folds
from muhat.bags.stacking import bag_summaries, class_probabilities, mixing_weights, stacking_weights, standardised
from muhat.tables.scales import ColumnScales


def extremes(n, seed):
    """Bags whose target depends on their largest value alone."""
    rng = np.random.default_rng(seed)
    bags = [rng.normal(size=(24, 3)) for _ in range(n)]
    storms = rng.random(n) < 0.4
    for bag, storm in zip(bags, storms, strict=True):
        bag[:4, 0] += 3.0 * storm
    return bags, 1.0 * (np.array([np.quantile(bag[:, 0], 0.9) for bag in bags]) > 1.8)


def test_summaries_of_a_bag():
    bags = Bags(np.arange(10.0).reshape(5, 2), np.array([0, 1, 5]))
    found = bag_summaries(bags, np.array([0, 1]))
    assert found.shape == (2, 2 * 7 + 1)
    assert_allclose(found[1, :4], [5.0, 6.0, np.std([2, 4, 6, 8]), np.std([3, 5, 7, 9])])
    assert_allclose(found[:, -1], np.log([1, 4]))
    scaled = standardised(found, ColumnScales.of(found))
    assert np.isfinite(scaled).all()
    assert_allclose(bag_summaries(bags, np.array([1, 0]))[1, :4], found[1, [1, 0, 3, 2]])
    assert np.abs(standardised(1e9 * found, ColumnScales.of(found))).max() == 5.0


def test_stacking_weights_minimise_the_squared_error():
    rng = np.random.default_rng(0)
    y, weights = rng.normal(size=(50, 2)), rng.uniform(0.5, 2, size=50)
    left_out = y + rng.normal(size=(3, 50, 2)) * np.array([0.5, 0.7, 3.0])[:, None, None]

    def loss(w):
        return (weights[:, None] * np.square(np.tensordot(w, left_out, axes=1) - y)).sum()

    found = stacking_weights(left_out, y, weights)
    assert_allclose(found.sum(), 1)
    best = minimize(loss, np.ones(3) / 3, bounds=[(0, 1)] * 3, constraints={"type": "eq", "fun": lambda w: w.sum() - 1})
    assert_allclose(found, best.x, atol=1e-3)


def test_mixing_weights_maximise_the_likelihood():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, size=80)
    good = 0.2 + 0.4 * np.eye(3)[labels]
    left_out = np.array([good, rng.dirichlet(np.ones(3), size=80), np.full((80, 3), 1 / 3)])
    found = mixing_weights(left_out, labels, np.ones(80))
    assert_allclose(found.sum(), 1)
    assert found[0] > 0.8


def test_probabilities_of_classes():
    p = class_probabilities(np.array([[2.0], [-1.0]]), np.array([[1.0], [4.0]]))
    assert_allclose(p.sum(axis=1), 1)
    assert p[0, 1] > 0.95
    assert p[1, 0] > 0.5


def test_folds_keep_groups_together_and_follow_bags():
    keys = np.random.default_rng(0).normal(size=(30, 2))
    groups = np.repeat(list("abcdefghij"), 3)
    folds = stacking_folds(keys, groups)
    assert all(len(set(folds[groups == label])) == 1 for label in set(groups))
    order = np.random.default_rng(1).permutation(30)
    assert_array_equal(stacking_folds(keys[order], None), stacking_folds(keys, None)[order])
    with pytest.raises(ValueError, match="groups has 2 different labels"):
        stacking_folds(keys, np.repeat([0, 1], 15))


@pytest.mark.slow
def test_thresholds_are_left_to_trees():
    (train, y), (test, truth) = extremes(300, 0), extremes(300, 1)
    stacked = mh.DistributionRidge(random_state=0).fit(train, y)
    alone = mh.DistributionRidge(stack=False).fit(train, y)
    assert stacked.stack_weights_["trees"] > 0.5
    assert alone.stack_weights_ == {"kernel means": 1.0, "summaries": 0.0, "trees": 0.0}
    errors = [np.mean((each.predict(test) - truth) ** 2) for each in (stacked, alone)]
    assert errors[0] < 0.8 * errors[1]
    mean, std = stacked.predict(test, return_std=True)
    assert 0.3 < np.mean(np.square(mean - truth) / std**2) < 1.2  # that of stacks of fewer bags, left out
    classifier = mh.DistributionRidgeClassifier(random_state=0).fit(train, y.astype(int))
    assert classifier.score(test, truth) > 0.9


def test_groups_of_related_bags():
    (train, y), groups = extremes(60, 0), np.repeat(np.arange(20), 3)
    assert sum(mh.DistributionRidge().fit(train, y, groups=groups).stack_weights_.values()) == pytest.approx(1)
    with pytest.raises(ValueError, match="groups has 3 labels for 60 bags"):
        mh.DistributionRidge().fit(train, y, groups=[1, 2, 3])
    with pytest.raises(ValueError, match=r"groups\[1\] is missing"):
        mh.DistributionRidge().fit(train, y, groups=["a", None] * 30)


def test_the_order_of_columns_changes_no_stack():
    """Trees and folds depend on the order of summaries: probabilities of 40 bags changed by up to .37 with it."""
    rng = np.random.default_rng(3)
    bags = [rng.normal(size=(10, 3)) * [1.0, 2.0, 0.5] + 0.5 * rng.normal(size=3) for _ in range(40)]
    y = np.array([bag.mean() for bag in bags]) > 0
    given, turned = (
        mh.DistributionRidgeClassifier(random_state=0).fit(some, y).predict_proba(some)
        for some in (bags, [bag[:, [2, 0, 1]] for bag in bags])
    )
    assert_allclose(turned, given, atol=1e-6)
