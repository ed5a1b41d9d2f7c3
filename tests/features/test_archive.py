"""Sketches in files, and what is refused."""

import json
import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from errors import refused
from numpy.testing import assert_allclose, assert_array_equal
from sketches import BINNED, FEATURES, FULL, X, assert_equal_sketches
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF

import muhat as mh
from muhat._support.archives import whole_file, write_archive
from muhat.features.fourier import Fourier
from muhat.features.nystroem import Nystroem, pivoted_cholesky
from muhat.features.sketch import MeanSketch


@pytest.mark.parametrize("name", FEATURES)
@pytest.mark.parametrize("settings", [{}, FULL, {"reservoir_size": 7, "random_state": 3}, BINNED], ids=str)
def test_a_saved_sketch_comes_back(name, settings, tmp_path):
    sketch = MeanSketch(FEATURES[name], **settings).update(X[:100])
    sketch.save(tmp_path / "sketch.npz")
    loaded = MeanSketch.load(str(tmp_path / "sketch.npz"))
    assert_equal_sketches(loaded, sketch, tol=0.0)
    assert repr(loaded) == repr(sketch)
    assert loaded.features.fingerprint_ == sketch.features.fingerprint_
    for name in sketch.features._arrays:
        assert_array_equal(getattr(loaded.features, name), getattr(sketch.features, name))
    # What BLAS computes from equal arrays depends on how they lie in memory, so the rest is equal up to rounding.
    assert_allclose(loaded.features.transform(X), sketch.features.transform(X), rtol=1e-12, atol=1e-12)
    assert_equal_sketches(loaded.update(X[100:]), sketch.update(X[100:]))
    assert (loaded + sketch).n_ == 600
    assert_equal_sketches(pickle.loads(pickle.dumps(sketch)).merge(loaded), sketch + loaded)


def test_names_are_saved(tmp_path):
    frame = pd.DataFrame(X, columns=list("abc"))
    MeanSketch(Fourier(mh.Matern(), 20, random_state=0).fit(frame)).update(frame).save(tmp_path / "a")
    features = MeanSketch.load(tmp_path / "a").features
    assert list(features.feature_names_in_) == list("abc")
    assert features.transform(frame).shape == (300, 20)


def changed(source, target, **arrays):
    """A forged file: other contents, and a checksum that is right."""
    with np.load(source) as archive:
        held = dict(archive) | arrays
    header = json.loads(str(dict(np.load(source))["header"])) | arrays.get("header", {})
    del held["header"], header["checksum"]
    write_archive(target, header["format"], header, {name: value for name, value in held.items() if value is not None})
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
    "kind of counts": {"counts": np.zeros(50)},
    "single precision": {"total": np.zeros(20, np.float32)},
    "no features": {"header": {"features": None}},
    "settings": {"header": {"settings": {"shell": "rm"}}},
    "a list": {"header": {"kernel": [1]}},
    "an infinite sum of squares": {"squares": np.array(np.inf)},
    "a NaN among the rows": {"rows": np.full((50, 3), np.nan)},
    "keys of other rows": {"keys": np.arange(50, dtype=np.uint64)},
    "counts of no rows": {"counts": np.zeros(50, np.int64)},
    "no bins": {"bins": None},
    "fewer bins": {"bins": np.zeros((5, 21))},
    "bins with other sums": {"bins": np.ones((39, 21))},
    "too few bins": {"header": {"settings": {**BINNED, "bins": 3}}},
}


@pytest.mark.parametrize("case", DAMAGE)
def test_damaged_files_are_refused(case, tmp_path):
    MeanSketch(FEATURES["nystroem"], **BINNED).update(X).save(tmp_path / "good.npz")
    path = changed(tmp_path / "good.npz", tmp_path / "bad.npz", **DAMAGE[case])
    with pytest.raises(ValueError, match=r"bad\.npz is not a sketch"):
        MeanSketch.load(path)


def test_a_file_that_unpacks_to_more_than_it_has_is_not_unpacked(tmp_path, monkeypatch):
    MeanSketch(FEATURES["linear"]).update(X).save(tmp_path / "good.npz")
    with np.load(tmp_path / "good.npz") as archive:
        np.savez_compressed(tmp_path / "bomb.npz", **dict(archive), zeros=np.zeros(10**6))
    monkeypatch.setattr(np, "load", None)
    with pytest.raises(
        ValueError, match=r"bomb\.npz is not a sketch .*it unpacks to 8,[\d,]{7} bytes, and [\d,]{5,7} "
    ):
        MeanSketch.load(tmp_path / "bomb.npz")


def test_a_file_that_is_larger_than_the_memory_is_not_read(tmp_path, monkeypatch):
    MeanSketch(FEATURES["linear"]).update(X).save(tmp_path / "large.npz")
    monkeypatch.setattr("muhat.linalg.resources.free_memory", lambda: 1000.0)
    monkeypatch.setattr("muhat.linalg.resources.NEGLIGIBLE", 0)
    with pytest.raises(MemoryError, match=r"reading .*large\.npz would need .* where there is more memory"):
        MeanSketch.load(tmp_path / "large.npz")


def test_writers_of_one_file_do_not_meet(tmp_path):
    path = tmp_path / "file"
    with whole_file(path) as first, whole_file(path) as second:
        first.write(b"first")
        second.write(b"second")
    assert path.read_bytes() == b"first", "the last to finish stays"
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(ZeroDivisionError), whole_file(path) as file:
        file.write(b"%d" % (1 // 0))
    assert path.read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [path]


def stored_sketch():
    """What ``tests/data/sketch.npz`` holds."""
    rows = np.random.default_rng(0).integers(-8, 9, size=(40, 2)) / 8.0
    frame = pd.DataFrame(rows, columns=["length", "width"])
    kernel = 2.0 * mh.Gaussian(1.0) + mh.Matern(0.5, bandwidth=2.0)
    features = Nystroem(kernel, 4, landmarks=rows[:4]).fit(frame)
    return MeanSketch(features, second_moment=True, reservoir_size=5, random_state=3).update(frame), rows


def test_a_file_of_this_version_can_be_read():
    """If this fails, the format has changed: give it another number, and say so in the changelog."""
    loaded, (made, rows) = MeanSketch.load(Path(__file__).parents[1] / "data" / "sketch.npz"), stored_sketch()
    assert loaded.features.kernel_ == made.features.kernel_
    assert list(loaded.features.feature_names_in_) == ["length", "width"]
    assert_array_equal(loaded.state_.kept.rows, made.state_.kept.rows)
    assert_allclose(*(np.linalg.eigvalsh(each.state_.sums.moment) for each in (loaded, made)), rtol=1e-10)
    assert_allclose(loaded(rows), made(rows), rtol=1e-10)  # its features were fitted when signs were LAPACK's


def test_other_files_are_refused(tmp_path):
    (tmp_path / "text").write_text("no sketch")
    (tmp_path / "empty").touch()
    np.savez(tmp_path / "other.npz", a=np.ones(3))
    np.savez(tmp_path / "object.npz", header=np.array({"a": 1}, dtype=object))
    np.save(tmp_path / "array.npy", np.ones(3))
    for name in ("text", "empty", "other.npz", "object.npz", "array.npy"):
        with pytest.raises(ValueError, match=f"{name} is not a sketch"):
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
        r"different features \(fingerprints .*fit the features once",
    ),
    "sum of other features": (lambda: sketch() + sketch("fourier"), "have different features"),
    "distance of other features": (lambda: sketch().distance(sketch("linear")), "have different features"),
    "other settings": (lambda: sketch().merge(sketch(second_moment=True)), "second_moment=True of the other .* False"),
    "other reservoir": (lambda: sketch(reservoir_size=3).merge(sketch()), "reservoir_size=0 of the other .* must be 3"),
    "other seed": (lambda: sketch(random_state=1) + sketch(), "random_state=0 of the other .* must be 1"),
    "no sketch": (lambda: sketch().merge(X), "is not a MeanSketch"),
    "other bins": (lambda: sketch(bins=30) + sketch(bins=40), "bins=40 of the other sketch must be 30"),
    "states of other features": (lambda: sketch().state_ + sketch("linear").state_, "have different features"),
    "few bins": (lambda: sketch(bins=19), "bins=19 must be 0, for no bins, or a whole number of at least 20"),
    "bins": (lambda: sketch(bins=-1), "bins=-1 must be"),
    "empty": (lambda: MeanSketch(FEATURES["linear"]).mean_features(), r"empty; call update\(X\) first"),
    "empty Gram matrix": (lambda: MeanSketch(FEATURES["linear"]).gram(), "empty"),
    "empty element": (lambda: MeanSketch(FEATURES["linear"]).mean_element(), "empty"),
    "element of Fourier": (lambda: sketch("fourier").mean_element(), r"Fourier features are not .* mean_features\(\)"),
    "no second moment": (lambda: mh.SpectralKernelMean(lam=0.5).estimate(sketch().gram()), "second_moment=True"),
    "no reservoir": (
        lambda: mh.SpectralKernelMean().estimate(sketch(second_moment=True).gram()),
        "reservoir_size=1000",
    ),
    "one row": (lambda: sketch(rows=X[:1]).gram(), "needs 2 rows, not 1"),
    "width": (lambda: sketch(rows=X[:, :2]), r"X has shape \(300, 2\) and must have 3 columns"),
    "width of a call": (lambda: sketch()(X[:, :2]), "must have 3 columns"),
    "one dimension": (lambda: sketch(rows=X[:, 0]), r"X has shape \(300,\)"),
    "NaN": (lambda: sketch(rows=np.full((2, 3), np.nan)), "NaN"),
    "text": (lambda: sketch(rows=np.array([["a", "b", "c"]])), "not numbers"),
    "overflow": (lambda: sketch("linear", rows=np.full((2, 3), 1e160)), "overflow"),
    "refitted": (lambda: refitted().update(X), "fitted again since"),
    "features": (lambda: MeanSketch(mh.Gaussian(1.0)), "features=Gaussian.* must be fitted features"),
    "second moment": (
        lambda: MeanSketch(FEATURES["linear"], second_moment="x"),
        "second_moment='x' must be True or False",
    ),
    "rank": (lambda: pivoted_cholesky(mh.Gaussian(1.0), X, 2.5), "rank=2.5 must be a whole number"),
    "tol": (lambda: pivoted_cholesky(mh.Gaussian(1.0), X, 5, tol=np.nan), "tol=nan must be a number"),
    "reservoir": (
        lambda: MeanSketch(FEATURES["linear"], reservoir_size=-1),
        "reservoir_size=-1 must be a whole number",
    ),
    "seed": (lambda: MeanSketch(FEATURES["linear"], random_state=None), "random_state=None must be a whole number"),
    "function to a file": (lambda: MeanSketch(FUNCTION).save("never"), "cannot be saved; pickle"),
}


test_bad_input = refused([(what, *row) for what, row in BAD.items()])


def test_features_must_be_fitted():
    with pytest.raises(NotFittedError):
        MeanSketch(Nystroem())


def test_bad_rows_leave_the_sketch_as_it_was(monkeypatch):
    monkeypatch.setattr("muhat.features.sketch._ROWS", 64)
    held, want = sketch(**FULL), sketch(**FULL)
    rows = X.copy()
    rows[-1, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        held.update(rows)
    assert_equal_sketches(held, want, tol=0.0)


def test_a_sketch_of_functions_pickles_and_merges():
    a, b = MeanSketch(FUNCTION).update(X[:9]), pickle.loads(pickle.dumps(MeanSketch(FUNCTION).update(X[9:])))
    assert (a + b).n_ == 300


def test_one_row_and_a_space_of_zeros():
    assert_allclose(sketch(rows=X[:1]).mean_features(), FEATURES["nystroem"].transform(X[:1])[0])
    nothing = Nystroem(mh.Linear(), 2).fit(np.zeros((3, 2)))
    held = MeanSketch(nothing, **FULL).update(np.zeros((3, 2)))
    assert mh.means.simple_mean(held.gram()).chosen["shrinkage"] == 0.0
    fit = mh.means.spectral_mean(held.gram())
    assert (fit.chosen["lam"], fit.chosen["scale"], fit.loo_score) == (0.0, 1.0, 0.0)
    assert_array_equal(held(np.ones((2, 2))), 0.0)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with names")
def test_what_is_written_to_a_pipe_is_what_a_file_would_hold(tmp_path):
    """A pipe is written to, and not replaced by a file."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as pool:
        read = pool.submit(pipe.read_bytes)
        with whole_file(pipe) as file:
            file.write(b"one")
            file.write(b"two")
        assert read.result(timeout=60) == b"onetwo"
    assert pipe.is_fifo()
    assert list(tmp_path.iterdir()) == [pipe]


def test_a_parser_that_another_thread_disturbed_is_asked_again(tmp_path, monkeypatch):
    """Python 3.11 raises a SystemError from ``ast`` when threads parse at once; the file is whole."""
    path = tmp_path / "sketch.npz"
    MeanSketch(FEATURES["fourier"]).update(X).save(path)
    load, calls = np.load, []

    def disturbed(*arguments, **options):
        calls.append(1)
        if len(calls) < 3:
            raise SystemError("AST constructor recursion depth mismatch (before=51, after=47)")
        return load(*arguments, **options)

    monkeypatch.setattr(np, "load", disturbed)
    assert MeanSketch.load(path).n_ == len(X)
