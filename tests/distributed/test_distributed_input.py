"""Over workers: clients, bags and cells that are refused, each with a remedy."""

import subprocess
import sys

import numpy as np
import pytest
from workers import BAGS, CELLS, X, delayed_blocks, require_dask, shrinkage_of_cell, threads

import muhat as mh
from muhat.distributed import cluster as over_workers
from muhat.distributed.cluster import bag_gram, map_cells


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
        bag_gram(BAGS)


def test_no_client(no_client):
    for call in (
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
        map_cells(abs, [-1], client=closed)
    with pytest.raises(ValueError, match=r"client='tcp://127.0.0.1:1' must be a distributed\.Client"):
        bag_gram(BAGS, client="tcp://127.0.0.1:1")


def with_nan():
    rows = X[:10].copy()
    rows[3, 1] = np.nan
    return rows


NARROW, ONE = mh.Gaussian(1.0), BAGS[0]
REFUSED = {
    r"bags must be a list of matrices": lambda: bag_gram(X),
    r"bags\[1\] has 2 columns": lambda: bag_gram([X, X[:, :2]]),
    r"have 3 columns and others 2": lambda: bag_gram([*delayed_blocks(ONE, 1), X[:, :2]], NARROW),
    r"bags\[1\]: .*0 sample": lambda: bag_gram([*delayed_blocks(ONE, 1), X[:0]], NARROW),
    r"bandwidth='median'\) needs a number": lambda: bag_gram(delayed_blocks(ONE, 1)),
    r"overflows on these rows": lambda: bag_gram([1e200 * X, X], mh.Linear()),
    r"bags\[1\]: .* NaN": lambda: bag_gram([*delayed_blocks(ONE, 1), with_nan()], NARROW),
    r"mean='plain' must be None": lambda: bag_gram(BAGS, mean="plain"),
    r"level2=3 must be": lambda: bag_gram(BAGS, level2=3),
    r"retries=-1 must be a whole number": lambda: map_cells(shrinkage_of_cell, CELLS, retries=-1),
}


@pytest.mark.parametrize("message", REFUSED)
def test_refused(client, message):
    with pytest.raises(ValueError, match=message):
        REFUSED[message]()


def test_the_client_that_is_given_is_used(client, no_client):
    """And not the current one, of which there may be none."""
    assert bag_gram(BAGS[:2], client=client).shape == (2, 2)
    assert dict(map_cells(abs, [-1, -2], client)) == {0: 1, 1: 2}
