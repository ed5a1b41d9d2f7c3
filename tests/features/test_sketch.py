"""Sketches: against the estimators on the Gram matrix, and the laws of merging."""

import itertools
import pickle
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sketches import BINNED, ESTIMATES, FEATURES, FULL, X, assert_equal_sketches, gram_of_features
from tables import sample

import muhat as mh
from muhat.features.fourier import Fourier
from muhat.features.nystroem import Nystroem
from muhat.features.sketch import MeanSketch
from muhat.features.sketch_state import row_keys

# ---------------------------------------------------------------- sketches against all rows at once


@pytest.mark.parametrize("second_moment", [False, True])
@pytest.mark.parametrize("name", FEATURES)
def test_the_plain_mean_is_the_average_of_the_features(name, second_moment):
    features = FEATURES[name]
    sketch = MeanSketch(features, second_moment).update(X[:100]).update(X[100:])
    Z = features.transform(X)
    assert sketch.n_ == 300
    assert_allclose(sketch.mean_features(), Z.mean(axis=0), atol=1e-12)
    assert_allclose(sketch(X[:9]), Z[:9] @ Z.mean(axis=0), atol=1e-12)
    other = MeanSketch(features, second_moment).update(X[:50])
    assert_allclose(sketch.distance(other), np.linalg.norm(Z.mean(axis=0) - Z[:50].mean(axis=0)), atol=1e-12)
    assert sketch.distance(sketch) == 0.0


@pytest.mark.parametrize("name", FEATURES)
def test_shrinkage_from_sums_alone(name):
    Z = FEATURES[name].transform(X)
    sketch = MeanSketch(FEATURES[name]).update(X)
    fitted, fit = mh.ShrunkKernelMean("precomputed").fit(Z @ Z.T), mh.ShrunkKernelMean().estimate(sketch.gram())
    assert_allclose(fit.chosen["shrinkage"], fitted.shrinkage_, atol=1e-12)
    assert_allclose(fit.weights, Z.T @ fitted.weights_, atol=1e-12)
    assert_allclose(fit.loo_score, fitted.loo_score_, rtol=1e-12)


@pytest.mark.parametrize("name", FEATURES)
@pytest.mark.parametrize("estimate", ["theorem4", "leave-one-out", "nested", "fixed"])
def test_spectral_shrinkage_with_all_rows_in_the_reservoir(name, estimate):
    """All rows kept, some of them several times: then deletion is exact."""
    rows = np.concatenate([X[:60], X[:20], X[:5]])
    Z = FEATURES[name].transform(rows)
    sketch = MeanSketch(FEATURES[name], second_moment=True, reservoir_size=100).update(rows)
    want, got = (ESTIMATES[estimate].estimate(G) for G in (gram_of_features(Z), sketch.gram()))
    assert_allclose(got.loo_score, want.loo_score, rtol=1e-10)
    assert_allclose(got.chosen["scale"], want.chosen["scale"], rtol=1e-6)
    assert_allclose(got.weights, want.weights, rtol=0, atol=1e-7 * np.abs(Z).max())


def test_deletion_from_a_sample_is_near_that_of_all_rows():
    rows = sample(1000, 30, seed=0, shift=0.0) * np.linspace(0.2, 2, 30) + 0.05 * np.linspace(2, 0, 30)
    features = Nystroem(mh.Linear(), 35, random_state=0).fit(rows)
    want = mh.means.spectral_mean(gram_of_features(features.transform(rows)))
    assert 1 < want.chosen["lam"] < 1000
    for seed in range(5):
        sketch = MeanSketch(features, second_moment=True, reservoir_size=200, random_state=seed).update(rows)
        got = mh.means.spectral_mean(sketch.gram())
        assert len(sketch.state_.kept.rows) == 200
        assert_allclose(got.chosen["lam"], want.chosen["lam"], rtol=0.15)
        assert_allclose(got.loo_score, want.loo_score, rtol=1e-5)


@pytest.mark.parametrize("name", ["plain", "simple", "theorem4", "fixed"])
def test_mean_elements_are_in_the_space_of_the_kernel(name):
    features = FEATURES["nystroem"]
    sketch = MeanSketch(features, second_moment=True).update(X)
    fit = ESTIMATES[name].estimate(sketch.gram())
    assert fit.mean.kernel == mh.Gaussian(1.0)
    assert_allclose(fit.mean(X[:9]), features.transform(X[:9]) @ fit.weights, atol=1e-9)
    assert_allclose(fit.mean.norm(), np.linalg.norm(fit.weights), atol=1e-9)


def test_the_average_is_as_near_as_the_features_say():
    features, exact = FEATURES["nystroem"], mh.embed(mh.Gaussian(1.0), X)
    assert MeanSketch(features).update(X).mean_element().distance(exact) ** 2 <= features.approximation_error_
    complete = Nystroem(mh.Gaussian(1.0), len(X)).fit(X)
    assert MeanSketch(complete).update(X).mean_element().distance(exact) < 1e-7


# ---------------------------------------------------------------- laws


@pytest.mark.parametrize("name", FEATURES)
def test_merging_is_associative_and_commutative(name):
    parts = [MeanSketch(FEATURES[name], **FULL).update(part) for part in np.split(X, [20, 110, 115])]
    whole = MeanSketch(FEATURES[name], **FULL).update(X)
    a, b, c, d = parts
    assert_equal_sketches((a + b) + (c + d), whole)
    assert_equal_sketches(a + (b + (c + d)), whole)
    for order in itertools.permutations(parts):
        assert_equal_sketches(sum(order), whole)
        assert_array_equal(sum(order).state_.kept.rows, whole.state_.kept.rows)
    assert [part.n_ for part in parts] == [20, 90, 5, 185]


def test_merge_is_in_place_and_plus_is_not():
    a, b = (MeanSketch(FEATURES["fourier"]).update(part) for part in (X[:10], X[10:]))
    both = a + b
    assert (a.n_, b.n_, both.n_) == (10, 290, 300)
    assert a.merge(b) is a
    assert_equal_sketches(a, both)
    assert b.n_ == 290
    assert sum([b]) is not b
    assert a.merge(a).n_ == 600


@pytest.mark.parametrize("name", FEATURES)
def test_states_merge_as_sketches_do(name):
    """Without the features, in any grouping; with features they are a sketch again."""
    features = FEATURES[name]
    parts = [MeanSketch(features, **BINNED).update(part) for part in np.split(X, [20, 110, 115])]
    whole, states = sum(parts), [part.state_ for part in parts]
    empty = MeanSketch(features, **BINNED)
    a, b, c, d = states
    for same in (empty + sum(states), sum(states, start=empty), a + (empty + b) + (c + d), empty.merge(sum(states))):
        assert isinstance(same, MeanSketch)
        assert_equal_sketches(same, whole)
        assert same.state_.bins.n == 300
        assert same.features is features
    assert sum(states).sums.n == 300
    assert len(pickle.dumps(MeanSketch(features).update(X).state_)) < 3000
    assert whole.distance(sum(states)) < 1e-12
    assert "n=300" in repr(sum(states))


def test_the_second_moment_is_kept_on_request():
    features = next(iter(FEATURES.values()))
    Z = features.transform(X)
    moment = MeanSketch(features, second_moment=True).update(X).state_.sums.moment
    assert_allclose(moment, Z.T @ Z, rtol=1e-12, atol=1e-12)
    assert MeanSketch(features).update(X).state_.sums.moment is None


def test_the_reservoir_counts_repetitions():
    rows = np.concatenate([X[:10], X[:4], X[:4], -0.0 * X[:1], 0.0 * X[:1]])
    kept = MeanSketch(FEATURES["fourier"], reservoir_size=20).update(rows).state_.kept
    assert len(kept.rows) == 11
    assert sorted(kept.counts.tolist()) == [1] * 6 + [2] + [3] * 4


def test_the_reservoir_is_a_uniform_sample():
    """Each row is kept with probability 60/300: over 200 seeds, counts within 4.5 standard errors, and keys even."""
    counts = np.zeros(300)
    for seed in range(200):
        keys = row_keys(X, seed)
        counts[np.argsort(keys)[:60]] += 1
    spread = np.sqrt(200 * 0.2 * 0.8)
    assert np.abs(counts - 40).max() < 4.5 * spread
    assert 0.7 < counts.var() / spread**2 < 1.3
    many = row_keys(sample(20_000, 2, seed=1), 0)
    assert len(np.unique(many)) == 20_000
    share = np.histogram(many.astype(float) / 2**64, 20, (0, 1))[0]
    assert np.abs(share - 1000).max() < 4.5 * np.sqrt(950)


# ---------------------------------------------------------------- kinds of input, memory


class OnDisk:
    """Rows that can only be sliced, as in an HDF5 file."""

    def __init__(self, rows):
        self._rows, self.shape, self.largest = rows, rows.shape, 0

    def __getitem__(self, key):
        self.largest = max(self.largest, len(self._rows[key]))
        return self._rows[key]


def test_anything_that_can_be_sliced(tmp_path, monkeypatch):
    monkeypatch.setattr("muhat.features.sketch._ROWS", 64)
    want = MeanSketch(FEATURES["nystroem"], **FULL).update(X)
    on_disk = np.memmap(tmp_path / "rows", dtype=np.float64, mode="w+", shape=X.shape)
    on_disk[:] = X
    lazy = OnDisk(X)
    frame = pd.DataFrame(X, index=np.arange(300)[::-1] + 0.5)
    for same in (on_disk, lazy, X.tolist(), frame, np.asfortranarray(X)):
        assert_equal_sketches(MeanSketch(FEATURES["nystroem"], **FULL).update(same), want)
    assert lazy.largest == 64
    assert MeanSketch(FEATURES["nystroem"]).update(X[:0]).n_ == 0
    single = MeanSketch(FEATURES["nystroem"]).update(X.astype(np.float32))
    assert_allclose(single.mean_features(), want.mean_features(), atol=1e-6)
    assert single.mean_features().dtype == np.float64


def test_memory_does_not_grow_with_the_rows():
    features = Fourier(mh.Gaussian(1.0), 200, random_state=0).fit(X)

    def peak(n):
        rows = np.broadcast_to(X[:1], (n, 3))
        sketch = MeanSketch(features, reservoir_size=10)
        tracemalloc.start()
        sketch.update(rows)
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return used

    peak(5_000)
    assert peak(60_000) < 1.2 * peak(15_000) < 2e7


def test_columns_are_matched_by_name():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 3)) * [1, 5, 9], columns=["a", "b", "c"])
    features = mh.Nystroem(n_components=10, random_state=0).fit(frame)
    want, other = mh.MeanSketch(features).update(frame), frame[["c", "a", "b"]]
    got = mh.MeanSketch(features).update(other)
    assert want.distance(got) == 0
    np.testing.assert_array_equal(got(other), want(frame))
    renamed = frame.rename(columns={"c": "d"})
    for refuse in (got.update, got):
        with pytest.raises(
            ValueError,
            match=r"X is missing the columns \['c'\] and has the unexpected columns \['d'\]; pass the columns",
        ):
            refuse(renamed)
    assert got.n_ == 60
