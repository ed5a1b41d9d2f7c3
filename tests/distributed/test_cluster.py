"""Gram matrices of bags over workers: those of one machine whatever the blocks and the workers, and errors."""

import functools
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from workers import (
    BAGS,
    X,
    Y,
    chunked,
    delayed_blocks,
    killed_in_the_middle,
    no_kill,
    pause_once,
    processes,
    require_dask,
    squared_mmd,
    threads,
)

import muhat as mh
from muhat.distributed import cluster as over_workers
from muhat.distributed.cluster import bag_gram


@pytest.fixture(scope="module")
def client():
    with processes(2) as made:
        yield made


@pytest.mark.parametrize("level2", ["linear", mh.Gaussian(), mh.Laplace(0.7), mh.Polynomial(2)], ids=repr)
@pytest.mark.parametrize("mean", [None, mh.ShrunkKernelMean(), mh.SpectralKernelMean()], ids=repr)
def test_bags(client, monkeypatch, mean, level2):
    monkeypatch.setattr(over_workers, "GROUP_ROWS", 30)
    expected = mh.DistributionKernel(mh.Gaussian(), mean, level2).fit_transform(BAGS)
    found = bag_gram(BAGS, mh.Gaussian(), mean, level2, client)
    assert_allclose(found, expected, rtol=0, atol=1e-10)
    assert_array_equal(found, found.T)


@pytest.mark.parametrize("count", [1, 2, 9])
def test_any_form_of_bags(client, monkeypatch, count):
    import dask

    monkeypatch.setattr(over_workers, "GROUPS", 3)
    monkeypatch.setattr(over_workers, "GROUP_ROWS", 1)
    kernel, bags = mh.Laplace(1.2), BAGS[:count]
    expected = mh.DistributionKernel(kernel).fit_transform(bags)
    forms = {
        "delayed": [dask.delayed(np.array)(bag) for bag in bags],
        "dask arrays": [chunked(bag, 4) for bag in bags],
        "futures": client.scatter(bags, hash=False),
        "some delayed": [dask.delayed(np.array)(bags[0]), *bags[1:]],
        "tuple": tuple(bags),
    }
    for form, given in forms.items():
        assert_allclose(bag_gram(given, kernel), expected, rtol=0, atol=1e-10, err_msg=form)
    cube = np.stack([bag[:1] for bag in bags])
    assert_allclose(bag_gram(cube, kernel), mh.DistributionKernel(kernel).fit_transform(cube), rtol=0, atol=1e-10)


def test_the_exact_distance_of_two_collections_is_a_form_of_the_gram_matrix(client):
    """Blocks of rows are bags, weighted by their numbers of rows."""
    blocks = delayed_blocks(X, 4) + delayed_blocks(Y, 3)
    sizes = np.array([len(part) for rows, count in ((X, 4), (Y, 3)) for part in np.array_split(rows, count)])
    weights = sizes * np.repeat([1.0 / len(X), -1.0 / len(Y)], [4, 3])
    G = bag_gram(blocks, mh.Gaussian(1.0), client=client)
    assert_allclose(weights @ G @ weights, squared_mmd(mh.Gaussian(1.0), X, Y), rtol=1e-10)


def test_numbers_do_not_depend_on_the_workers(client, monkeypatch):
    """To the last bit: two processes, one thread in this process, and three."""
    monkeypatch.setattr(over_workers, "GROUP_ROWS", 30)
    expected = bag_gram(BAGS, mean=mh.ShrunkKernelMean(), client=client)
    for count in (1, 3):
        with threads(count, set_as_default=False) as other:
            assert_array_equal(bag_gram(BAGS, mean=mh.ShrunkKernelMean(), client=other), expected)


def paused_gaussian(A, B, folder, here):
    late = os.getpid() != here and len(os.listdir(f"{folder}/calls")) >= 15
    pause_once(folder, late)
    Path(f"{folder}/calls/{time.monotonic_ns()}").touch()
    return mh.Gaussian(1.0)(A, B)


@no_kill
def test_a_killed_worker_changes_nothing(monkeypatch, tmp_path):
    monkeypatch.setattr(over_workers, "GROUP_ROWS", 20)
    (tmp_path / "calls").mkdir()
    kernel = mh.as_kernel(functools.partial(paused_gaussian, folder=str(tmp_path), here=os.getpid()))
    with processes(2, set_as_default=False) as client:
        found = killed_in_the_middle(lambda: bag_gram(BAGS, kernel, mh.ShrunkKernelMean(), client=client), tmp_path)
    expected = mh.DistributionKernel(mh.Gaussian(1.0), mh.ShrunkKernelMean()).fit_transform(BAGS)
    assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


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


@pytest.fixture
def no_client(monkeypatch):
    """No current client, though the cluster of the module may be there."""
    require_dask()

    def refuse():
        raise ValueError("No clients found")

    monkeypatch.setattr("distributed.client.default_client", refuse)
    monkeypatch.setattr("distributed.default_client", refuse)


def test_no_client(no_client):
    with pytest.raises(ValueError, match=r"there is no current client; make one: distributed\.Client\(\)"):
        bag_gram(BAGS)


def test_bad_clients(client):
    from distributed import Client

    closed = Client(client.scheduler.address, set_as_default=False)
    closed.close()
    with pytest.raises(ValueError, match="its status is 'closed'"):
        bag_gram(BAGS, client=closed)
    with pytest.raises(ValueError, match=r"client='tcp://127.0.0.1:1' must be a distributed\.Client"):
        bag_gram(BAGS, client="tcp://127.0.0.1:1")


def test_the_client_that_is_given_is_used(client, no_client):
    """And not the current one, of which there may be none."""
    assert bag_gram(BAGS[:2], client=client).shape == (2, 2)


WITH_NAN = np.where(np.arange(30).reshape(10, 3) == 10, np.nan, X[:10])
NARROW, ONE = mh.Gaussian(1.0), BAGS[0]
REFUSED = {
    r"bags must be a list of matrices": lambda: bag_gram(X),
    r"bags\[1\] has 2 columns": lambda: bag_gram([X, X[:, :2]]),
    r"have 3 columns and others 2": lambda: bag_gram([*delayed_blocks(ONE, 1), X[:, :2]], NARROW),
    r"bags\[1\]: .*0 sample": lambda: bag_gram([*delayed_blocks(ONE, 1), X[:0]], NARROW),
    r"bandwidth='median'\) needs a number": lambda: bag_gram(delayed_blocks(ONE, 1)),
    r"overflows on these rows": lambda: bag_gram([1e200 * X, X], mh.Linear()),
    r"bags\[1\]: .* NaN": lambda: bag_gram([*delayed_blocks(ONE, 1), WITH_NAN], NARROW),
    r"mean='plain' must be None": lambda: bag_gram(BAGS, mean="plain"),
    r"level2=3 must be": lambda: bag_gram(BAGS, level2=3),
}


@pytest.mark.parametrize("message", REFUSED)
def test_refused(client, message):
    with pytest.raises(ValueError, match=message):
        REFUSED[message]()
