"""Over workers: clients, collections, bags and cells that are refused, each with a remedy."""

import subprocess
import sys

import numpy as np
import pytest
from workers import BAGS, CELLS, FEATURES, X, Y, chunked, delayed_blocks, require_dask, shrinkage_of_cell, threads

import muhat as mh
from muhat.distributed import cluster as over_workers
from muhat.distributed.cluster import (
    bag_gram,
    bag_prior,
    bag_vectors,
    map_cells,
    mmd_distance,
    sketch_collection,
)


@pytest.fixture(scope="module")
def client():
    with threads() as made:
        yield made


@pytest.fixture
def no_client(monkeypatch):
    """No current client, though the cluster of the module may be there."""
    require_dask()

    def refuse():
        raise ValueError("No clients found")

    monkeypatch.setattr("distributed.client.default_client", refuse)
    monkeypatch.setattr("distributed.default_client", refuse)


def test_dask_is_not_loaded():
    code = "import sys, muhat.distributed; print([m for m in ('dask', 'distributed', 'tornado') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("missing", ["distributed", "dask"])
def test_missing_dask(monkeypatch, missing):
    if missing == "dask":
        pytest.importorskip("distributed")
        monkeypatch.setattr(over_workers, "check_client", lambda client: client)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ImportError, match=r'pip install "muhat\[dask\]"'):
        sketch_collection(FEATURES["nystroem"], [X])
    with pytest.raises(ImportError, match=r'pip install "muhat\[dask\]"'):
        bag_gram(BAGS)


def test_no_client(no_client):
    for call in (
        lambda: sketch_collection(FEATURES["nystroem"], [X]),
        lambda: mmd_distance([X], [Y], mh.Gaussian(1.0)),
        lambda: mmd_distance([X], [Y], FEATURES["nystroem"]),
        lambda: bag_gram(BAGS),
        lambda: map_cells(shrinkage_of_cell, CELLS),
    ):
        with pytest.raises(ValueError, match=r"there is no current client; make one: distributed\.Client\(\)"):
            call()


def test_bad_clients(client):
    from distributed import Client

    closed = Client(client.scheduler.address, set_as_default=False)
    closed.close()
    with pytest.raises(ValueError, match="its status is 'closed'"):
        sketch_collection(FEATURES["nystroem"], [X], client=closed)
    with pytest.raises(ValueError, match=r"client='tcp://127.0.0.1:1' must be a distributed\.Client"):
        bag_gram(BAGS, client="tcp://127.0.0.1:1")


def test_bad_collections(client):
    import dask
    import pandas as pd

    array = chunked(X)
    bad = {
        r"unknown sizes; call {}\.compute_chunk_sizes\(\)": array[array[:, 0] > 0],
        r"columns in chunks; use {}\.rechunk\(\{{0: 'auto', 1: -1\}}\)": array.rechunk((60, 1)),
        r"{} has shape \(230,\) and must have two dimensions": array[:, 0],
        r"{} has shape \(0, 3\) and must have at least one row": array[:0],
        r"{} is one ndarray and must be a Dask array or a list of blocks; dask\.array\.from_array": X,
        r"{} is one DataFrame": pd.DataFrame(X),
        r"{} is one Delayed": dask.delayed(X),
        r"{} is one str": "rows.npy",
        r"{} is one int": 3,
        r"{} is empty; pass a list": [],
    }
    for message, data in bad.items():
        with pytest.raises(ValueError, match=message.format("data")):
            sketch_collection(FEATURES["nystroem"], data, client=client)
        with pytest.raises(ValueError, match=message.format("Y")):
            mmd_distance(array, data, mh.Gaussian(1.0), client=client)
        with pytest.raises(ValueError, match=message.format("X")):
            mmd_distance(data, array, FEATURES["fourier"], client=client)


def with_nan():
    rows = X[:10].copy()
    rows[3, 1] = np.nan
    return rows


SKETCH, NARROW, ONE = FEATURES["nystroem"], mh.Gaussian(1.0), BAGS[0]
REFUSED = {
    r"data\[1\]: Input.* NaN": lambda: sketch_collection(SKETCH, [X, with_nan()]),
    r"data\[0\]: X has shape \(230, 2\) and must have 3": lambda: sketch_collection(SKETCH, chunked(X[:, :2], -1)),
    r"Nystroem instance is not fitted": lambda: sketch_collection(mh.Nystroem(), chunked(X)),
    r"features=None must be fitted features": lambda: sketch_collection(None, chunked(X)),
    r"reservoir_size=-1 must be": lambda: sketch_collection(SKETCH, chunked(X), reservoir_size=-1),
    r"Y\[1\]: Input.* NaN": lambda: mmd_distance([X], [X, with_nan()], NARROW),
    r"some rows have 3 columns and others 2": lambda: mmd_distance(chunked(X), chunked(Y[:, :2]), NARROW),
    r"Linear\(\) overflows on these rows": lambda: mmd_distance(chunked(1e200 * X), chunked(Y), mh.Linear()),
    r"unbiased=True needs at least 2": lambda: mmd_distance(chunked(X), [Y[:1]], NARROW, unbiased=True),
    r"X has 0 and Y has 150 row\(s\); unbiased=False needs": lambda: mmd_distance([X[:0]], [Y], NARROW),
    r"Fourier instance is not fitted": lambda: mmd_distance(chunked(X), chunked(Y), mh.Fourier()),
    r"kernel='rbf' must be a kernel object": lambda: mmd_distance(chunked(X), chunked(Y), "rbf"),
    r"needs a number as its bandwidth; pass kernel\.resolve": lambda: mmd_distance(
        [X], [Y], 2.0 * mh.Gaussian() + mh.Linear()
    ),
    r"bags must be a list of matrices": lambda: bag_gram(X),
    r"bags\[1\] has 2 columns": lambda: bag_gram([X, X[:, :2]]),
    r"have 3 columns and others 2": lambda: bag_gram([*delayed_blocks(ONE, 1), X[:, :2]], NARROW),
    r"bags\[1\]: .*0 sample": lambda: bag_gram([*delayed_blocks(ONE, 1), X[:0]], NARROW),
    r"bandwidth='median'\) needs a number": lambda: bag_gram(delayed_blocks(ONE, 1)),
    r"overflows on these rows": lambda: bag_gram([1e200 * X, X], mh.Linear()),
    r"mean='plain' must be None": lambda: bag_gram(BAGS, mean="plain"),
    r"level2=3 must be": lambda: bag_gram(BAGS, level2=3),
    r"This Nystroem instance is not fitted yet": lambda: bag_prior(BAGS, mh.Nystroem()),
    r"features=3 must be": lambda: bag_prior(BAGS, 3),
    r"ridge=0 must be": lambda: bag_prior(BAGS, SKETCH, ridge=0),
    r"bags holds one bag, and a prior needs": lambda: bag_prior([X], SKETCH),
    r"all bags have one row": lambda: bag_prior([X[:1], X[1:2]], SKETCH),
    r"bags have 2 columns and the features were fitted to 3": lambda: bag_prior([X[:, :2], Y[:, :2]], SKETCH),
    r"bags\[1\]: .* NaN": lambda: bag_prior([*delayed_blocks(ONE, 1), with_nan()], SKETCH),
    r"BagPrior instance is not fitted": lambda: bag_vectors(mh.BagPrior(), BAGS),
    r"retries=-1 must be a whole number": lambda: map_cells(shrinkage_of_cell, CELLS, retries=-1),
}


@pytest.mark.parametrize("message", REFUSED)
def test_refused(client, message):
    with pytest.raises(ValueError, match=message):
        REFUSED[message]()


def test_the_client_that_is_given_is_used(client, no_client):
    """And not the current one, of which there may be none."""
    assert sketch_collection(FEATURES["nystroem"], [X, Y], client=client).n_ == len(X) + len(Y)
    assert mmd_distance([X], [Y], mh.Gaussian(1.0), client=client).n_x == len(X)
    assert bag_gram(BAGS[:2], client=client).shape == (2, 2)
    assert dict(map_cells(abs, [-1, -2], client)) == {0: 1, 1: 2}
