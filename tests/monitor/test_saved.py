"""What a monitor refuses, and that a refusal changes nothing."""

import json
import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.exceptions import NotFittedError

import muhat as mh
from muhat._support.archives import write_archive

X = np.random.default_rng(0).normal(size=(100, 3))
FRAME = pd.DataFrame(X, columns=["a", "b", "c"])
SMALL = {"run_length": 100, "n_simulations": 100, "block_length": 1, "random_state": 0}


@pytest.fixture(scope="module")
def named():
    monitor = mh.DriftMonitor(**SMALL).fit(FRAME)
    monitor.update(FRAME[:5])
    return monitor


ROWS = [
    ("infinity", [1.0, np.inf, 2.0], "infinit"),
    ("width", [1.0, 2.0], "has 3 columns and X has 2; both need the same columns"),
    ("width of a block", X[:4, :2], "has 3 columns and X has 2"),
    ("text", ["a", "b", "c"], "held numbers before"),
    ("one word", "row", "is not a matrix|is not a matrix"),
    ("a number", 3.0, "matrix"),
    ("no rows", X[:0], "X has no rows; pass a table that has some"),
    ("nothing", [], "X has no rows"),
    ("a block with a bad row", np.vstack([X[:3], [[np.inf, 0, 0]]]), "infinit"),
    (
        "unknown column",
        FRAME.rename(columns={"c": "d"})[:2],
        r"missing the columns \['c'\] and .* unexpected columns \['d'\]",
    ),
    ("missing column", FRAME[["a", "b"]][:2], r"is missing the columns \['c'\]; pass the columns \['a', 'b', 'c'\]"),
    ("a column too many", FRAME.assign(d=1.0)[:2], r"has the unexpected columns \['d'\]"),
    ("dictionary", {"a": 1.0, "b": 2.0}, r"is missing the columns \['c'\]"),
]


@pytest.mark.parametrize(("row", "message"), [case[1:] for case in ROWS], ids=[case[0] for case in ROWS])
def test_a_refused_row_changes_nothing(named, row, message):
    before = pickle.dumps(named)
    with pytest.raises(ValueError, match=message):
        named.update(row)
    assert pickle.dumps(named) == before


def test_a_row_that_overflows_changes_nothing():
    monitor = mh.DriftMonitor(kernel=mh.Polynomial(5), **SMALL).fit(X)
    monitor.update(X[:5])
    before = pickle.dumps(monitor)
    with pytest.raises(ValueError, match="overflows on X; rescale"):
        monitor.update(np.vstack([X[:3], np.full((2, 3), 1e200)]))
    assert pickle.dumps(monitor) == before


FITS = [
    ("one row", X[:1], {}, "X has 1 rows, .* needs 10 or more"),
    ("few rows", X[:9], {}, "X has 9 rows, .* needs 10 or more; pass more rows"),
    ("equal rows", np.ones((50, 2)), {}, "all rows of X are equal"),
    ("many columns", np.eye(10, 20_000), {}, r"20,000 columns, .* 4,000 are the most, .* 3.2 GB .* components"),
    ("run length 1", X, {"run_length": 1}, r"run_length=1 must be a number in \[2, inf\)"),
    ("run length None", X, {"run_length": None}, "run_length=None"),
    (
        "absurd",
        X[:50],
        {"run_length": 10**6},
        "cannot be promised from 50 reference rows; pass 10,000 rows or more, or run_length=25",
    ),
    ("block length", X, {"block_length": 4}, "block_length=4 must be"),
    ("simulations", X, {"n_simulations": 3}, "n_simulations=3 must be a whole number of at least 100"),
    ("windows", X, {"windows": []}, "windows=.* must be a list"),
    ("window 0", X, {"windows": [0]}, "windows=0"),
    ("long window", X, {"windows": [1, 80]}, "at most 25 rows: a quarter of the 100 reference rows"),
    ("kernel", X, {"kernel": "gaussian"}, "kernel='gaussian' must be a kernel"),
    ("seed", X, {"random_state": "a"}, "random_state='a'"),
]


@pytest.mark.parametrize(("data", "params", "message"), [case[1:] for case in FITS], ids=[case[0] for case in FITS])
def test_what_fit_refuses(data, params, message):
    with pytest.raises(ValueError, match=message):
        mh.DriftMonitor(**SMALL | params).fit(data)


@pytest.mark.parametrize("act", ["update", "reset", "save", "drift_detected", "recent_scores"])
def test_before_fit(act, tmp_path):
    monitor = mh.DriftMonitor()
    with pytest.raises(NotFittedError):
        getattr(monitor, act)(*{"update": [X], "save": [tmp_path / "a"]}.get(act, []))


def test_a_dictionary_needs_names():
    with pytest.raises(ValueError, match="the reference has no column names"):
        mh.DriftMonitor(**SMALL).fit(X).update({"a": 1.0})


REFERENCES = {
    "rows": (mh.DriftMonitor(**SMALL), X),
    "frame": (mh.DriftMonitor(**SMALL | {"run_length": 20, "block_length": "auto"}, windows=[1, 2, 5]), FRAME),
    "a kernel": (mh.DriftMonitor(**SMALL, kernel=mh.Laplace() + 2.0 * mh.Gaussian(3.0)), X),
}


@pytest.mark.filterwarnings("ignore:neighbouring rows")  # as the hundred rows seem to do
@pytest.mark.parametrize("name", REFERENCES)
@pytest.mark.parametrize("shift", [0.0, 5.0])
def test_a_saved_monitor_comes_back(name, shift, tmp_path):
    monitor, data = REFERENCES[name]
    monitor.fit(data).update(data[:8] + shift)
    monitor.save(tmp_path / "monitor.npz")
    loaded = mh.DriftMonitor.load(str(tmp_path / "monitor.npz"))
    assert loaded.result_ == monitor.result_
    assert loaded.kernels_ == monitor.kernels_
    assert str(loaded.get_params(deep=False)) == str(monitor.get_params(deep=False))
    if shift:
        assert_array_equal(loaded.witness_(X), monitor.witness_(X))
    for one in (loaded, monitor):
        one.reset().update(data[:30])
    for mine, theirs in zip(loaded.recent_scores(), monitor.recent_scores(), strict=True):
        assert_array_equal(mine, theirs)


def rewritten(source, target, change):
    with np.load(source) as archive:
        held = dict(archive)
    change(held)
    np.savez(target, **held)


def other_header(**values):
    def change(held):
        held["header"] = np.array(json.dumps(json.loads(str(held["header"])) | values))

    return change


DAMAGE = {
    "format": (other_header(format="muhat.DriftMonitor.0"), "its format is 'muhat.DriftMonitor.0'"),
    "threshold": (other_header(threshold=99.0), "checksum"),
    "a reference row": (lambda held: held["reference"].__setitem__((3, 1), 0.0), "checksum"),
    "a missing array": (lambda held: held.pop("handicaps"), "checksum"),
    "another type": (lambda held: held.update(reference=held["reference"].astype(np.float32)), "checksum"),
    "no header": (lambda held: held.pop("header"), "header"),
}


def forged(source, target, change):
    """Another file with a checksum that is right."""
    with np.load(source) as archive:
        held = dict(archive)
    header = json.loads(str(held.pop("header")))
    del header["checksum"]
    change(header, held)
    write_archive(target, header["format"], header, held)


FORGED = {
    "quantiles": (lambda header, held: held["quantiles"].fill(np.nan), "quantiles holds NaN"),
    "one quantile": (lambda header, held: held["quantiles"].__setitem__((0, 3), 1e9), "do not grow"),
    "scores": (lambda header, held: held["scores"].__setitem__((0, 9), -9.0), "do not grow"),
    "handicaps": (lambda header, held: held["handicaps"].__setitem__(0, np.inf), "handicaps holds NaN or inf"),
    "threshold": (lambda header, held: header.update(threshold=np.nan), "threshold=nan must be a number"),
    "text": (lambda header, held: header.update(threshold="9"), "threshold='9' must be a number"),
    "recent rows": (lambda header, held: held["recent"].fill(np.nan), "recent holds NaN"),
    "reference": (lambda header, held: held["reference"].__setitem__((0, 0), np.nan), "reference holds NaN"),
    "single precision": (
        lambda header, held: held.update(reference=X.astype(np.float32)),
        "reference holds float32 and must hold float64",
    ),
    "a window of no row": (lambda header, held: held["windows"].__setitem__(0, 0), "windows .* are not growing"),
    "windows": (lambda header, held: held["windows"].__setitem__(0, 9), "windows .* are not growing"),
    "a longer window": (lambda header, held: held["windows"].__setitem__(-1, 101), "windows .* are not growing"),
    "rows": (lambda header, held: header.update(rows=-1), "rows=-1"),
    "other statistics": (
        lambda header, held: header.update(kernel={"class": "Gaussian", "params": {"bandwidth": 1.0}}),
        "",
    ),
    "encoder": (lambda header, held: header["encoder"].update(columns=[]), "reference has shape"),
    "run length": (lambda header, held: header["settings"].update(run_length="x"), "run_length='x'"),
    "more scores than rows": (lambda header, held: header.update(rows=2), "last scores are not those of 2 rows"),
    "an alarm before the first row": (
        lambda header, held: (header.update(rows=0, alarmed=True), held.update(last_scores=np.empty(0))),
        "",
    ),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_files_are_refused(name, named, tmp_path):
    """Every number that an alarm rests on is looked at: a monitor with NaN for quantiles would never raise one."""
    change, message = FORGED[name]
    named.save(tmp_path / "good.npz")
    forged(tmp_path / "good.npz", tmp_path / "bad.npz", change)
    with pytest.raises(ValueError, match=rf"bad\.npz is not a monitor .*{message}"):
        mh.DriftMonitor.load(tmp_path / "bad.npz")


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_files_are_refused(name, named, tmp_path):
    change, message = DAMAGE[name]
    named.save(tmp_path / "good.npz")
    rewritten(tmp_path / "good.npz", tmp_path / "bad.npz", change)
    with pytest.raises(ValueError, match=rf"bad\.npz is not a monitor .*{message}"):
        mh.DriftMonitor.load(tmp_path / "bad.npz")


def test_other_files_are_refused(named, tmp_path):
    named.save(tmp_path / "good.npz")
    whole = (tmp_path / "good.npz").read_bytes()
    for name, content in {"cut": whole[: len(whole) // 2], "text": b"a,b\n1,2\n", "empty": b""}.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ValueError, match=f"{name} is not a monitor"):
            mh.DriftMonitor.load(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        mh.DriftMonitor.load(tmp_path / "missing.npz")


def test_a_function_as_kernel_is_pickled_instead(tmp_path):
    monitor = mh.DriftMonitor(**SMALL, kernel=mh.as_kernel(lambda A, B: np.exp(-np.abs(A[:, None] - B).sum(axis=2))))
    with pytest.raises(ValueError, match="pickle the monitor"):
        monitor.fit(X).save(tmp_path / "monitor.npz")


@pytest.mark.parametrize("options", [{}, {"kernel": mh.Laplace()}], ids=["all statistics", "a kernel"])
def test_units_of_columns_do_not_matter(options):
    units, stream = np.array([1e-3, 30.0, 9e4]), X[:60] + np.array([0, 0.8, 0])
    ours, scaled = (mh.DriftMonitor(**options, **SMALL).fit(reference) for reference in (X, X * units))
    np.testing.assert_allclose(ours.threshold_, scaled.threshold_, rtol=1e-6)
    assert ours.update(stream)
    assert scaled.update(stream * units)
    assert ours.result_.row == scaled.result_.row
    assert scaled.result_.columns[0][0] == "x1"
    np.testing.assert_allclose(ours.witness_(stream), scaled.witness_(stream * units), rtol=1e-6, atol=1e-9)
    assert_array_equal(scaled.compared_rows()[0], X * units)


def test_names_are_those_of_the_reference_that_was_fitted_last():
    monitor = mh.DriftMonitor(**SMALL).fit(FRAME)
    assert monitor.column_names_ == [*monitor.feature_names_in_] == ["a", "b", "c"]
    assert monitor.fit(X).column_names_ == ["x0", "x1", "x2"]
    assert not hasattr(monitor, "feature_names_in_")
