"""Over workers: one that is killed changes nothing; cells that fail are run again, and their error is told."""

import functools
import os
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sketches import assert_equal_sketches
from workers import BAGS, CELLS, FEATURES, X, processes, shrinkage_of_cell

import muhat as mh
from muhat.distributed import cluster as over_workers
from muhat.distributed.cluster import bag_gram, map_cells


@pytest.fixture(scope="module")
def client():
    """One worker more than are killed; that Dask starts new ones is not relied on."""
    with processes(len(OPERATIONS) + 1, set_as_default=False) as made:
        yield made


@pytest.fixture
def two_workers():
    with processes(2, set_as_default=False) as made:
        yield made


def pause_once(marker, place, file):
    """The first task that comes to this place leaves its process number, and waits for what comes."""
    if place:
        try:
            handle = os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        except FileExistsError:
            return
        os.close(handle)
        Path(marker).write_text(str(os.getpid()), encoding="utf-8")
        while True:  # until it is killed
            time.sleep(1)


def paused_sketch(part, folder):
    number, rows = part
    pause_once(f"{folder}/pid", number == 6, f"{folder}/paused")
    return mh.MeanSketch(FEATURES["nystroem"], second_moment=True, bins=40).update(rows)


def paused_gaussian(A, B, folder, here):
    late = os.getpid() != here and len(os.listdir(f"{folder}/calls")) >= 15
    pause_once(f"{folder}/pid", late, f"{folder}/paused")
    Path(f"{folder}/calls/{time.monotonic_ns()}").touch()
    return mh.Gaussian(1.0)(A, B)


def paused_cell(cell, folder):
    pause_once(f"{folder}/pid", cell == CELLS[5], f"{folder}/paused")
    return shrinkage_of_cell(cell)


def paused_cells(client, folder):
    found = dict(map_cells(functools.partial(paused_cell, folder=folder), CELLS, client))
    return [found[i] for i in range(len(CELLS))]


def paused_kernel(folder):
    return mh.as_kernel(functools.partial(paused_gaussian, folder=folder, here=os.getpid()))


# With a pause in the middle, over workers; and what comes out on one machine.
OPERATIONS = {
    "bags": (
        lambda client, folder: bag_gram(BAGS, paused_kernel(folder), mh.ShrunkKernelMean(), client=client),
        lambda: mh.DistributionKernel(mh.Gaussian(1.0), mh.ShrunkKernelMean()).fit_transform(BAGS),
    ),
    "cells": (paused_cells, lambda: [shrinkage_of_cell(cell) for cell in CELLS]),
}


def killed_in_the_middle(run, folder):
    """What a run gives while the process that has paused in it is killed."""
    (folder / "calls").mkdir()
    killed, done = [], threading.Event()

    def kill():
        while not killed and not done.wait(0.02):
            written = (folder / "pid").read_text(encoding="utf-8") if (folder / "pid").exists() else ""
            if written:
                os.kill(int(written), signal.SIGKILL)
                killed.append(int(written))

    killer = threading.Thread(target=kill)
    killer.start()
    found = run(str(folder))
    done.set()
    killer.join()
    assert len(killed) == 1
    assert killed[0] != os.getpid()
    return found


no_kill = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")


@no_kill
def test_a_worker_that_is_killed_does_not_change_a_sum_of_sketches(two_workers, tmp_path):
    """Bins included: the sum has the order of the parts, whoever sketched them."""
    parts = list(enumerate(np.array_split(X, 12)))

    def total(folder):
        futures = two_workers.map(functools.partial(paused_sketch, folder=folder), parts)
        return sum(two_workers.gather(futures))

    found = killed_in_the_middle(total, tmp_path)
    expected = sum(paused_sketch(part, str(tmp_path)) for part in parts)  # it pauses once only
    assert_equal_sketches(found, expected, tol=1e-12)
    for mine, theirs in zip(found.state_.bins.levels, expected.state_.bins.levels, strict=True):
        assert_allclose(mine, theirs, rtol=0, atol=1e-12)


@no_kill
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_killed_worker_changes_nothing(client, monkeypatch, operation, tmp_path):
    monkeypatch.setattr(over_workers, "GROUP_ROWS", 20)
    paused, expected = OPERATIONS[operation]
    found = killed_in_the_middle(functools.partial(paused, client), tmp_path)
    assert_allclose(found, expected(), rtol=1e-10, atol=1e-10)


def fails_at_first(cell):
    number, folder = cell
    marker = Path(folder) / f"{number}-{time.monotonic_ns()}"
    marker.touch()
    tries = len(list(Path(folder).glob(f"{number}-*")))
    if tries <= number:
        raise RuntimeError(f"try {tries}")
    return tries


def test_cells_are_tried_again(client, tmp_path):
    cells = [(number, str(tmp_path)) for number in range(3)]
    assert dict(map_cells(fails_at_first, cells, client, retries=2)) == {0: 1, 1: 2, 2: 3}


def test_an_error_names_its_cell(client, tmp_path):
    with pytest.raises(RuntimeError, match="try 2") as caught:
        list(map_cells(fails_at_first, [(9, str(tmp_path))], client, retries=1))
    assert caught.value.__notes__ == [f"in cell 0: {(9, str(tmp_path))!r}"]


def test_closing_calls_the_other_cells_off(client, tmp_path):
    def mark(number, folder=str(tmp_path)):
        Path(folder, str(number)).touch()
        time.sleep(0.1)

    results = map_cells(mark, range(400), client)
    next(results)
    results.close()
    client.submit(time.sleep, 0, pure=False, priority=-1).result()  # it comes after all cells that are left
    assert len(list(tmp_path.iterdir())) < 200
