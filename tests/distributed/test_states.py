"""Sketches over workers: sums of states are those of one machine, whatever the parts and the workers."""

import pickle
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sketches import BINNED, assert_equal_sketches
from workers import BAGS, FEATURES, X, Y, processes, threads

import muhat as mh


@pytest.fixture(scope="module")
def client():
    with processes(2) as made:
        yield made


def sketch(rows, features, **settings):
    return mh.MeanSketch(features, **settings).update(rows)


def state(rows, features, **settings):
    return sketch(rows, features, **settings).state_


def bag_sketch(bags, features):
    return mh.BagSketch(features).update(bags)


def parts_of(rows, count=7):
    return np.array_split(rows, count)


@pytest.mark.parametrize("settings", [{}, BINNED], ids=str)
@pytest.mark.parametrize("name", FEATURES)
def test_a_sum_of_sketches_is_that_of_one_machine(client, name, settings):
    features = FEATURES[name]
    expected = sketch(X, features, **settings)
    found = sum(client.gather(client.map(partial(sketch, features=features, **settings), parts_of(X))))
    assert_equal_sketches(found, expected)
    states = client.gather(client.map(partial(state, features=features, **settings), parts_of(X)))
    assert_equal_sketches(sum(states, start=mh.MeanSketch(features, **settings)), expected)
    assert_array_equal((mh.MeanSketch(features, **settings) + sum(states)).mean_features(), found.mean_features())


def test_a_worker_can_merge(client):
    """And only one sketch comes back."""
    futures = client.map(partial(sketch, features=FEATURES["nystroem"]), parts_of(X))
    assert_equal_sketches(client.submit(sum, futures).result(), sketch(X, FEATURES["nystroem"]))


def test_states_travel_without_features():
    features = mh.Nystroem(mh.Gaussian(1.0), 100, random_state=0).fit(X)
    assert len(pickle.dumps(state(X, features))) < len(pickle.dumps(sketch(X, features))) / 20


def results(client):
    """A p-value with its null distribution, a mean, and log-odds of bags, from parts on workers."""
    features = FEATURES["nystroem"]
    of_rows = partial(sketch, features=features, bins=40)
    x, y = (sum(client.gather(client.map(of_rows, parts_of(rows)))) for rows in (X, Y))
    tested = mh.mmd_test(x, y, n_resamples=99, random_state=0)
    bags = sum(client.gather(client.map(partial(bag_sketch, features=features), [BAGS[:5], BAGS[5:]])))
    return tested.pvalue, tested.null_distribution, x.mean_features(), mh.BagPrior().fit(bags).log_odds(BAGS)


def test_numbers_do_not_depend_on_the_workers(client):
    """To the last bit: two processes, one thread in this process, and three."""
    expected = results(client)
    for count in (1, 3):
        with threads(count, set_as_default=False) as other:
            for found, same in zip(results(other), expected, strict=True):
                assert_array_equal(found, same)


@pytest.mark.parametrize(
    "features", [mh.Nystroem(mh.Laplace(1.2), 20, random_state=0), mh.Fourier(mh.Gaussian(1.0), 30, random_state=0)]
)
def test_a_prior_from_bags_on_workers_is_that_of_one_machine(client, features):
    parts = [BAGS[:3], BAGS[3:4], BAGS[4:]]
    features.fit(np.concatenate(BAGS))  # as the prior fits them, where bags are in one place
    expected = mh.BagPrior(features.kernel, features).fit(BAGS)
    prior = mh.BagPrior().fit(sum(client.gather(client.map(partial(bag_sketch, features=features), parts))))
    assert prior.blend_ == expected.blend_
    assert_allclose(prior.ratios_, expected.ratios_, rtol=0, atol=1e-8 * expected.ratios_[0])
    vectors = np.vstack(client.gather(client.map(prior.transform, parts)))
    assert_allclose(vectors, prior.transform(BAGS), rtol=0, atol=1e-10)
