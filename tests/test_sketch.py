"""Sketches: against the estimators on the Gram matrix, the laws of merging, and what is refused."""

import itertools
import json
import pickle
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF
from tables import data_sets, sample

import muhat as mh
from muhat.features import Fourier, Nystroem
from muhat.lowrank import feature_mean
from muhat.reservoir import row_keys
from muhat.sketch import MeanSketch

X = sample(300, 3, seed=0)
FEATURES = {
    "nystroem": Nystroem(mh.Gaussian(1.0), 20, random_state=0).fit(X),
    "linear": Nystroem(mh.Linear(), 3, random_state=0).fit(X),
    "polynomial": Nystroem(2.0 * mh.Polynomial(2) + mh.Laplace(1.0), 15, "pivoted").fit(X),
    "fourier": Fourier(mh.Gaussian(1.0), 30, random_state=0).fit(X),
    "laplace": Fourier(mh.Laplace(1.0), 30, random_state=0).fit(X),
}
FULL = {"second_moment": True, "reservoir": 50}

ESTIMATES = {
    "simple": ({"lam": 0.0, "scale": "loo"}, mh.ShrunkKernelMean("precomputed")),
    "plain": ({"lam": 0.0}, mh.KernelMean("precomputed")),
    "deletion": ({}, mh.SpectralKernelMean("precomputed")),
    "theorem4": ({"lam": "theorem4"}, mh.SpectralKernelMean("precomputed", lam="theorem4")),
    "nested": ({"scale": "loo"}, mh.SpectralKernelMean("precomputed", scale="loo")),
    "fixed": ({"lam": 0.7}, mh.SpectralKernelMean("precomputed", lam=0.7)),
    "fixed, scaled": ({"lam": 0.7, "scale": 0.5}, mh.SpectralKernelMean("precomputed", lam=0.7, scale=0.5)),
    "zero": ({"lam": np.inf}, mh.SpectralKernelMean("precomputed", lam=np.inf)),
}


def feature_matrices():
    """Names and matrices with few and many columns, ties, zeros and no mean."""
    matrices = {f"linear, {name}": rows for name, rows in data_sets().items()}
    matrices |= {f"nystroem, {name}": f.transform(X[:40]) for name, f in FEATURES.items()}
    return matrices | {"wide": sample(6, 15, seed=8), "zero": np.zeros((4, 2)), "one column": sample(9, 1, seed=9)}


def states(sketch):
    kept = sketch._kept
    return [
        sketch.n_,
        sketch._sums.total,
        sketch._sums.squares,
        sketch._sums.moment,
        kept.rows,
        kept.counts,
        kept.limit,
    ]


def assert_equal_sketches(a, b, tol=1e-12):
    for mine, theirs in zip(states(a), states(b), strict=True):
        if mine is not None:
            assert_allclose(mine, theirs, rtol=0, atol=tol * max(a.n_, 1))


# ---------------------------------------------------------------- means in features


@pytest.mark.parametrize("estimate", ESTIMATES)
@pytest.mark.parametrize("name", feature_matrices())
def test_feature_means_are_those_of_the_gram_matrix(name, estimate):
    settings, estimator = ESTIMATES[estimate]
    Z = feature_matrices()[name]
    K = Z @ Z.T
    mean = feature_mean(Z, **settings)
    fitted = estimator.fit(K)
    rho = max(np.trace(K) / len(K), 1e-300)
    assert_allclose(mean.weights * len(Z), fitted.weights_ * len(Z), atol=1e-9)
    assert_allclose(mean.score / rho, fitted.loo_score_ / rho, atol=1e-9)
    assert_allclose(mean.coefficients, Z.T @ mean.weights, atol=1e-9 * np.sqrt(rho))
    if hasattr(fitted, "lam_") and estimate != "nested":  # not analytic: λ to half of the digits
        assert_allclose(mean.lam, fitted.lam_, rtol=1e-9)
    if hasattr(fitted, "shrinkage_"):
        assert_allclose(1 - mean.scale, fitted.shrinkage_, atol=1e-12)


@pytest.mark.parametrize("scale", [1e-140, 1e-5, 1e5, 1e140])
def test_units_do_not_matter(scale):
    Z = FEATURES["nystroem"].transform(X[:40])
    for settings, _ in (ESTIMATES[name] for name in ("simple", "deletion", "theorem4")):
        assert_allclose(feature_mean(scale * Z, **settings).weights, feature_mean(Z, **settings).weights, rtol=1e-9)


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
    fitted = mh.ShrunkKernelMean("precomputed").fit(Z @ Z.T)
    assert_allclose(sketch.shrinkage(), fitted.shrinkage_, atol=1e-12)
    assert_allclose(sketch.mean_features(scale="loo"), Z.T @ fitted.weights_, atol=1e-12)
    assert_allclose(sketch.choose(0.0, "loo").score, fitted.loo_score_, rtol=1e-12)


@pytest.mark.parametrize("name", FEATURES)
@pytest.mark.parametrize("estimate", ["theorem4", "deletion", "nested", "fixed"])
def test_spectral_shrinkage_with_all_rows_in_the_reservoir(name, estimate):
    """All rows kept, some of them several times: then deletion is exact."""
    settings = {"lam": "loo", **ESTIMATES[estimate][0]}
    rows = np.concatenate([X[:60], X[:20], X[:5]])
    Z = FEATURES[name].transform(rows)
    sketch = MeanSketch(FEATURES[name], second_moment=True, reservoir=100).update(rows)
    want = feature_mean(Z, **settings)
    got = sketch.choose(**settings)
    assert_allclose(got.score, want.score, rtol=1e-10)
    assert_allclose(got.scale, want.scale, rtol=1e-6)
    assert_allclose(sketch.mean_features(**settings), want.coefficients, rtol=0, atol=1e-7 * np.abs(Z).max())


def test_deletion_from_a_sample_is_near_that_of_all_rows():
    rows = sample(1000, 30, seed=0, shift=0.0) * np.linspace(0.2, 2, 30) + 0.05 * np.linspace(2, 0, 30)
    features = Nystroem(mh.Linear(), 35, random_state=0).fit(rows)
    want = feature_mean(features.transform(rows))
    assert 1 < want.lam < 1000
    for seed in range(5):
        sketch = MeanSketch(features, second_moment=True, reservoir=200, random_state=seed).update(rows)
        got = sketch.choose("loo")
        assert len(sketch._kept.rows) == 200
        assert_allclose(got.lam, want.lam, rtol=0.15)
        assert_allclose(got.score, want.score, rtol=1e-5)


@pytest.mark.parametrize("settings", [{}, {"scale": "loo"}, {"lam": "theorem4"}, {"lam": 0.5}])
def test_mean_elements_are_in_the_space_of_the_kernel(settings):
    features = FEATURES["nystroem"]
    sketch = MeanSketch(features, second_moment=True).update(X)
    element = sketch.mean_element(**settings)
    assert element.kernel == mh.Gaussian(1.0)
    assert_allclose(element(X[:9]), sketch(X[:9], **settings), atol=1e-9)
    assert_allclose(element.norm(), np.linalg.norm(sketch.mean_features(**settings)), atol=1e-9)
    if not settings:
        exact = mh.embed(mh.Gaussian(1.0), X)
        assert element.distance(exact) ** 2 <= features.approximation_error_
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
        assert_array_equal(sum(order)._kept.rows, whole._kept.rows)
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
def test_downdate_undoes_update(name):
    sketch = MeanSketch(FEATURES[name], second_moment=True, reservoir=300).update(X[:80])
    want = MeanSketch(FEATURES[name], second_moment=True, reservoir=300).update(X[:80])
    assert_equal_sketches(sketch.update(X[80:]).downdate(X[80:]), want)
    assert_equal_sketches(sketch.downdate(X[:80]), MeanSketch(FEATURES[name], second_moment=True, reservoir=300))
    assert not sketch._sums.moment.any()


def test_a_reservoir_stays_a_sample_after_downdates():
    """Those of the remaining rows whose keys are below the limit; rows that left do not come back."""
    sketch = MeanSketch(FEATURES["fourier"], reservoir=50).update(X).downdate(X[:150])
    limit = sketch._kept.limit
    keys = row_keys(X, 0)
    assert_array_equal(np.sort(keys[150:][keys[150:] < limit]), sketch._kept.keys)
    again = sketch.update(X[:150])
    assert_equal_sketches(again, MeanSketch(FEATURES["fourier"], reservoir=50).update(X))


def test_the_reservoir_counts_repetitions():
    rows = np.concatenate([X[:10], X[:4], X[:4], -0.0 * X[:1], 0.0 * X[:1]])
    kept = MeanSketch(FEATURES["fourier"], reservoir=20).update(rows)._kept
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
    monkeypatch.setattr("muhat.sketch._ROWS", 64)
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
        sketch = MeanSketch(features, reservoir=10)
        tracemalloc.start()
        sketch.update(rows)
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return used

    peak(5_000)
    assert peak(60_000) < 1.2 * peak(15_000) < 2e7


# ---------------------------------------------------------------- files


@pytest.mark.parametrize("name", FEATURES)
@pytest.mark.parametrize("settings", [{}, FULL, {"reservoir": 7, "random_state": 3}], ids=str)
def test_a_saved_sketch_comes_back(name, settings, tmp_path):
    sketch = MeanSketch(FEATURES[name], **settings).update(X[:100])
    sketch.save(tmp_path / "sketch.npz")
    loaded = MeanSketch.load(str(tmp_path / "sketch.npz"))
    assert_equal_sketches(loaded, sketch, tol=0.0)
    assert repr(loaded) == repr(sketch)
    assert loaded.features.fingerprint_ == sketch.features.fingerprint_
    assert_equal_sketches(loaded.update(X[100:]), sketch.update(X[100:]), tol=0.0)
    assert_array_equal(loaded.features.transform(X), sketch.features.transform(X))
    assert (loaded + sketch).n_ == 600
    assert_equal_sketches(pickle.loads(pickle.dumps(sketch)).merge(loaded), sketch + loaded)


def test_names_are_saved(tmp_path):
    frame = pd.DataFrame(X, columns=list("abc"))
    MeanSketch(Fourier(mh.Matern(), 20, True, random_state=0).fit(frame)).update(frame).save(tmp_path / "a")
    features = MeanSketch.load(tmp_path / "a").features
    assert list(features.feature_names_in_) == list("abc")
    assert features.orthogonal
    assert features.transform(frame).shape == (300, 20)


def changed(source, target, **arrays):
    with np.load(source) as archive:
        held = dict(archive)
    header = json.loads(str(held["header"])) | arrays.pop("header", {})
    held |= {"header": np.array(json.dumps(header)), **arrays}
    np.savez(target, **{name: value for name, value in held.items() if value is not None})
    return target


DAMAGE = {
    "format": {"header": {"format": "muhat.MeanSketch.0"}},
    "kernel": {"header": {"kernel": {"kernel": "Gaussian", "parameters": {"bandwidth": 2.0}}}},
    "unknown kernel": {"header": {"kernel": {"kernel": "eval", "parameters": {}}}},
    "no kernel": {"header": {"kernel": None}},
    "n": {"header": {"n": -1}},
    "no total": {"total": None},
    "short total": {"total": np.zeros(3)},
    "infinite total": {"total": np.full(20, np.inf)},
    "moment": {"moment": np.zeros((2, 2))},
    "no moment": {"moment": None},
    "landmarks": {"featureslandmarks_": X[:20]},
    "rows": {"rows": np.zeros((1, 2))},
    "counts": {"counts": np.zeros(1)},
}


@pytest.mark.parametrize("case", DAMAGE)
def test_damaged_files_are_refused(case, tmp_path):
    MeanSketch(FEATURES["nystroem"], **FULL).update(X).save(tmp_path / "good.npz")
    path = changed(tmp_path / "good.npz", tmp_path / "bad.npz", **DAMAGE[case])
    with pytest.raises(ValueError, match=r"bad\.npz is no sketch"):
        MeanSketch.load(path)


def test_other_files_are_refused(tmp_path):
    (tmp_path / "text").write_text("no sketch")
    (tmp_path / "empty").touch()
    np.savez(tmp_path / "other.npz", a=np.ones(3))
    np.savez(tmp_path / "object.npz", header=np.array({"a": 1}, dtype=object))
    np.save(tmp_path / "array.npy", np.ones(3))
    for name in ("text", "empty", "other.npz", "object.npz", "array.npy"):
        with pytest.raises(ValueError, match=f"{name} is no sketch"):
            MeanSketch.load(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        MeanSketch.load(tmp_path / "nowhere")


# ---------------------------------------------------------------- what is refused


def sketch(name="nystroem", rows=X, **settings):
    return MeanSketch(FEATURES[name], **settings).update(rows)


def refitted():
    features = Nystroem(mh.Gaussian(1.0), 5, random_state=0).fit(X)
    held = MeanSketch(features)
    features.set_params(random_state=1).fit(X)
    return held


FUNCTION = Nystroem(mh.as_kernel(RBF(1.0)), 5, random_state=0).fit(X)
BAD = {
    "other features": (
        lambda: sketch().merge(sketch("fourier")),
        r"two features meet \(fingerprints .*fit features once",
    ),
    "sum of other features": (lambda: sketch() + sketch("fourier"), "two features meet"),
    "distance of other features": (lambda: sketch().distance(sketch("linear")), "two features meet"),
    "other settings": (lambda: sketch().merge(sketch(second_moment=True)), "second_moment=True of the other .* False"),
    "other reservoir": (lambda: sketch(reservoir=3).merge(sketch()), "reservoir=0 of the other .* must be 3"),
    "other seed": (lambda: sketch(random_state=1) + sketch(), "random_state=0 of the other .* must be 1"),
    "no sketch": (lambda: sketch().merge(X), "is no MeanSketch"),
    "too many rows": (lambda: sketch(rows=X[:5]).downdate(X), "300 rows to take away and the sketch holds 5"),
    "unseen rows": (lambda: sketch(reservoir=300).downdate(X[:3] + 1), "has not seen so often"),
    "seen once": (lambda: sketch(reservoir=300).downdate(X[[0, 0]]), "has not seen so often"),
    "empty": (lambda: MeanSketch(FEATURES["linear"]).mean_features(), r"empty; call update\(X\) first"),
    "empty shrinkage": (lambda: MeanSketch(FEATURES["linear"]).shrinkage(), "empty"),
    "empty element": (lambda: MeanSketch(FEATURES["linear"]).mean_element(), "empty"),
    "element of Fourier": (lambda: sketch("fourier").mean_element(), r"Fourier features are no .* mean_features\(\)"),
    "no second moment": (lambda: sketch().mean_features("theorem4"), "second_moment=True"),
    "no second moment, number": (lambda: sketch().mean_features(0.5), "second_moment=True"),
    "no reservoir": (lambda: sketch(second_moment=True).mean_features("loo"), "reservoir=1000"),
    "lam": (lambda: sketch().mean_features(-1.0), r'lam=-1.0 must be .*"loo" or "theorem4"'),
    "lam text": (lambda: sketch().choose("gcv"), "lam='gcv' must be"),
    "scale": (lambda: sketch().choose(0.0, -1), r'scale=-1 must be .*"loo"'),
    "theorem4, scale": (lambda: sketch(second_moment=True).choose("theorem4", "loo"), "scale=.* use scale=1.0"),
    "one row": (lambda: sketch(rows=X[:1]).shrinkage(), "needs 2 rows, and there are 1"),
    "width": (lambda: sketch(rows=X[:, :2]), r"X has shape \(300, 2\) and must have 3 columns"),
    "width of a call": (lambda: sketch()(X[:, :2]), "must have 3 columns"),
    "one dimension": (lambda: sketch(rows=X[:, 0]), r"X has shape \(300,\)"),
    "NaN": (lambda: sketch(rows=np.full((2, 3), np.nan)), "NaN"),
    "text": (lambda: sketch(rows=np.array([["a", "b", "c"]])), "not numbers"),
    "overflow": (lambda: sketch("linear", rows=np.full((2, 3), 1e160)), "overflow"),
    "refitted": (lambda: refitted().update(X), "fitted again since"),
    "features": (lambda: MeanSketch(mh.Gaussian(1.0)), "features=Gaussian.* must be fitted features"),
    "reservoir": (lambda: MeanSketch(FEATURES["linear"], reservoir=-1), "reservoir=-1 must be a whole number"),
    "seed": (lambda: MeanSketch(FEATURES["linear"], random_state=None), "random_state=None must be a whole number"),
    "function to a file": (lambda: MeanSketch(FUNCTION).save("never"), "cannot be saved as numbers; pickle"),
    "feature mean of one row": (lambda: feature_mean(X[:1]), "minimum of 2"),
    "feature mean overflow": (lambda: feature_mean(1e200 * X), "overflow"),
    "feature mean lam": (lambda: feature_mean(X, lam="best"), "lam='best' must be"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case):
    call, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        call()


def test_features_must_be_fitted():
    with pytest.raises(NotFittedError):
        MeanSketch(Nystroem())


def test_bad_rows_leave_the_sketch_as_it_was(monkeypatch):
    monkeypatch.setattr("muhat.sketch._ROWS", 64)
    held, want = sketch(**FULL), sketch(**FULL)
    rows = X.copy()
    rows[-1, 0] = np.nan
    for change in (held.update, held.downdate):
        with pytest.raises(ValueError, match="NaN"):
            change(rows)
    with pytest.raises(ValueError, match="has not seen"):
        held.downdate(held._kept.rows[[0, 0]])
    assert_equal_sketches(held, want, tol=0.0)


def test_a_sketch_of_functions_pickles_and_merges():
    a, b = MeanSketch(FUNCTION).update(X[:9]), pickle.loads(pickle.dumps(MeanSketch(FUNCTION).update(X[9:])))
    assert (a + b).n_ == 300


def test_one_row_and_a_space_of_zeros():
    assert_allclose(sketch(rows=X[:1]).mean_features(), FEATURES["nystroem"].transform(X[:1])[0])
    assert sketch(rows=X[:1]).choose(0.0).score is None
    nothing = Nystroem(mh.Linear(), 2).fit(np.zeros((3, 2)))
    held = MeanSketch(nothing, **FULL).update(np.zeros((3, 2)))
    assert held.shrinkage() == 0.0
    assert held.choose("loo") == (0.0, 1.0, 0.0)
    assert_array_equal(held(np.ones((2, 2))), 0.0)
