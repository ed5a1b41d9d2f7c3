"""Sketches of bags: against priors of all bags in one place, merging, files, and what is refused."""

import itertools
import pickle

import numpy as np
import pandas as pd
import pytest
from bag_samples import random_bags
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError

import muhat as mh
from muhat.bags import bag_sketch
from muhat.bags.bag_sketch import BagSketch, OutsidePart, OutsideSums
from muhat.bags.data import Bags

BAGS = random_bags((1, 4, 9, 2, 30, 1, 3, 17) * 2)
ROWS = np.concatenate(BAGS)
FEATURES = {
    "nystroem": mh.Nystroem(mh.Laplace(1.2), 20, random_state=0).fit(ROWS),
    "fourier": mh.Fourier(mh.Gaussian(1.0), 30, random_state=0).fit(ROWS),
}


def sketch(bags=BAGS, name="nystroem"):
    return BagSketch(FEATURES[name]).update(bags)


def assert_same_state(a, b, tol=1e-12):
    assert_array_equal(a.state_.sizes, b.state_.sizes)
    assert a.state_.moments.degrees == b.state_.moments.degrees
    for mine, theirs in zip(a.state_.moments, b.state_.moments, strict=True):
        assert_allclose(mine, theirs, rtol=0, atol=tol)
    assert (a.state_.outside is None) == (b.state_.outside is None)
    if a.state_.outside is not None:
        assert_allclose(a.state_.outside, b.state_.outside, rtol=0, atol=1000 * tol)


@pytest.mark.parametrize("name", FEATURES)
def test_a_prior_of_a_sketch_is_that_of_the_bags(name):
    """The estimator fits its features to all rows, as they were fitted here."""
    features = FEATURES[name]
    expected = mh.BagPrior(features.kernel, features).fit(BAGS)
    prior = mh.BagPrior().fit(sketch(BAGS[:5], name) + sketch(BAGS[5:6], name) + sketch(BAGS[6:], name))
    assert prior.kinds_ == pytest.approx(expected.kinds_)
    assert prior.kernel_ == expected.kernel_
    assert_allclose(prior.ratios_, expected.ratios_, rtol=0, atol=1e-8 * expected.ratios_[0])
    assert_allclose(prior.log_odds(BAGS), expected.log_odds(BAGS), rtol=1e-6, atol=1e-6)
    assert_allclose(prior.transform(BAGS).shape, expected.transform(BAGS).shape)
    if name == "nystroem":
        pairs = zip(prior.means(BAGS), expected.means(BAGS), strict=True)
        assert max(f.distance(g) for f, g in pairs) < 1e-6


@pytest.mark.parametrize("name", FEATURES)
def test_merging_is_associative_and_keeps_the_order(name):
    whole = sketch(name=name)
    a, b, c = (sketch(part, name) for part in (BAGS[:2], BAGS[2:9], BAGS[9:]))
    for same in ((a + b) + c, a + (b + c), sum([a, b, c]), BagSketch(FEATURES[name]).update(BAGS[:9]).merge(c)):
        assert_same_state(same, whole)
    for order in itertools.permutations([a, b, c]):
        assert_allclose(sum(order).state_.moments.within, whole.state_.moments.within, atol=1e-12)
    assert [part.n_bags_ for part in (a, b, c)] == [2, 7, 7]
    assert_same_state(a + BagSketch(FEATURES[name]), a, tol=0.0)
    assert sum([a]) is not a


@pytest.mark.parametrize("name", FEATURES)
def test_files_bytes_and_pickles(name, tmp_path):
    held = sketch(name=name)
    held.save(tmp_path / "bags.npz")
    for same in (
        BagSketch.load(tmp_path / "bags.npz"),
        BagSketch.from_bytes(held.to_bytes()),
        pickle.loads(pickle.dumps(held)),
    ):
        assert_same_state(same, held, tol=0.0)
        assert repr(same) == repr(held)
        assert (same + held).n_bags_ == 32
    with pytest.raises(ValueError, match="content is not a sketch that BagSketch"):
        BagSketch.from_bytes(held.to_bytes()[:-20])
    with pytest.raises(ValueError, match="content is not a sketch that BagSketch"):
        BagSketch.from_bytes(mh.MeanSketch(FEATURES[name]).to_bytes())


def test_names_of_columns_come_with_the_features():
    frames = [pd.DataFrame(bag, columns=list("abc")[: bag.shape[1]]) for bag in BAGS]
    features = mh.Nystroem(n_components=10, random_state=0).fit(pd.concat(frames))
    prior = mh.BagPrior().fit(BagSketch(features).update(frames))
    assert list(prior.feature_names_in_) == list(frames[0].columns)
    assert not hasattr(prior.fit(sketch()), "feature_names_in_")


WIDE = [np.hstack([bag, bag]) for bag in BAGS]
BAD = {
    r"features=None must be fitted features": lambda: BagSketch(None),
    r"different features \(fingerprints": lambda: sketch() + sketch(name="fourier"),
    r"is not a BagSketch; make one": lambda: sketch().merge(BAGS),
    r"columns": lambda: sketch(WIDE),
    r"bags must be a list of matrices": lambda: sketch(ROWS),
    r"kernel=Matern.*and the sketch has Laplace.*leave kernel out": lambda: mh.BagPrior(mh.Matern()).fit(sketch()),
    r"features differ from the features of the sketch": lambda: mh.BagPrior(features=FEATURES["fourier"]).fit(sketch()),
    r"ridge=0 must be": lambda: mh.BagPrior(ridge=0).fit(sketch()),
    r"bags holds one bag, and a prior needs": lambda: mh.BagPrior().fit(sketch(BAGS[2:3])),
    r"bags holds no bag, and a prior needs": lambda: mh.BagPrior().fit(BagSketch(FEATURES["nystroem"])),
    r"all bags have one row": lambda: mh.BagPrior().fit(sketch([BAGS[0], BAGS[5]])),
    r"population=2 must be larger": lambda: mh.BagPrior().fit(sketch(), population=2),
}


@pytest.mark.parametrize("message", BAD)
def test_refused(message):
    with pytest.raises(ValueError, match=message):
        BAD[message]()


def test_features_must_be_fitted_and_stay_so():
    with pytest.raises(NotFittedError):
        BagSketch(mh.Nystroem())
    features = mh.Nystroem(mh.Gaussian(1.0), 5, random_state=0).fit(ROWS)
    held = BagSketch(features)
    features.set_params(random_state=1).fit(ROWS)
    with pytest.raises(ValueError, match="fitted again since"):
        held.update(BAGS)


# ---------------------------------------------------------------- the part of the means that landmarks miss


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
    missed, noise = OutsidePart.of(OutsideSums.of(features, data))
    assert np.mean(shared) > 0
    assert_allclose(missed, np.mean(shared), rtol=1e-10)
    assert_allclose(noise, np.mean(own) - np.mean(shared), rtol=1e-10)


def test_a_period_in_the_rows_does_not_hide_what_landmarks_miss(monkeypatch):
    """Every tenth row is alike, as readings at one hour of the day are."""
    rng = np.random.default_rng(0)
    bags = [np.tile(np.arange(10.0), 300)[:, None] + 0.1 * rng.normal(size=(3000, 1)) for _ in range(4)]
    data = Bags(np.concatenate(bags), np.cumsum([0, *map(len, bags)]))
    features = mh.Nystroem(mh.Gaussian(1.0), landmarks=np.array([[0.0], [5.0]])).fit(data.rows)
    some = OutsidePart.of(OutsideSums.of(features, data))
    monkeypatch.setattr(bag_sketch, "MAX_ROWS_FOR_OUTSIDE_PART", 3000)
    assert_allclose(some, OutsidePart.of(OutsideSums.of(features, data)), rtol=0.15)
