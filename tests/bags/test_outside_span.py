"""What landmarks miss of the means of bags."""

import numpy as np
from bag_samples import random_bags
from numpy.testing import assert_allclose, assert_array_equal

import muhat as mh
from muhat.bags import outside_span
from muhat.bags.data import Bags
from muhat.bags.outside_span import OutsidePart


def test_what_landmarks_miss_against_loops():
    """Two rows of a bag share the part R of its mean outside of the span; a row with itself has the noise too."""
    bags, kernel = random_bags((5, 4, 9, 1), d=2, seed=3), mh.Gaussian(0.7)
    features = mh.Nystroem(kernel, landmarks=np.concatenate(bags)[[0, 3, 7, 11]]).fit(np.concatenate(bags))
    shared, own = [], []
    for bag in bags:
        free = [row for row in bag if not (row == features.landmarks_).all(axis=1).any()]
        for i, x in enumerate(free):
            for j, y in enumerate(free):
                z, w = features.transform(np.stack([x, y]))
                (own if i == j else shared).append(float(kernel(x[None], y[None])[0, 0] - z @ w))
    data = Bags(np.concatenate(bags), np.cumsum([0, *map(len, bags)]))
    missed, noise = OutsidePart.of(features, data)
    assert np.mean(shared) > 0
    assert_allclose(missed, np.mean(shared), rtol=1e-10)
    assert_allclose(noise, np.mean(own) - np.mean(shared), rtol=1e-10)
    sizes, part = np.array([7.0, 50.0, 9.0, 30.0]), OutsidePart(missed, noise)
    free = [1.0 - np.mean([(row == features.landmarks_).all(axis=1).any() for row in bag]) for bag in bags]
    for gain in np.linspace(-1.0, 1.0, 201):  # what an estimate in the span gains, against what it loses outside
        lost = [missed + noise * (1 / len(bag) - 1 / n) for bag, n in zip(bags, sizes, strict=True)]
        plain = [missed * (1 - p) ** 2 + noise * p / n + gain for p, n in zip(free, sizes, strict=True)]
        assert_array_equal(part.better_plain(features, data, sizes, np.full(4, gain)), np.greater(lost, plain))
    alone = Bags(features.landmarks_, np.arange(5))
    assert OutsidePart.of(features, alone) == (0.0, 0.0)


def test_a_period_in_the_rows_does_not_hide_what_landmarks_miss(monkeypatch):
    """Every tenth row is alike, as readings at one hour of the day are."""
    rng = np.random.default_rng(0)
    bags = [np.tile(np.arange(10.0), 300)[:, None] + 0.1 * rng.normal(size=(3000, 1)) for _ in range(4)]
    data = Bags(np.concatenate(bags), np.cumsum([0, *map(len, bags)]))
    features = mh.Nystroem(mh.Gaussian(1.0), landmarks=np.array([[0.0], [5.0]])).fit(data.rows)
    some = OutsidePart.of(features, data)
    monkeypatch.setattr(outside_span, "MAX_ROWS", 3000)
    assert_allclose(some, OutsidePart.of(features, data), rtol=0.15)
