"""Clusters of Dask on this machine, and what test files ask of them."""

import logging
import multiprocessing
import os
import signal
import sys
import threading
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from bag_samples import random_bags
from tables import sample

X, Y = sample(230, 3, seed=0), sample(150, 3, seed=1) + 0.3
BAGS = random_bags((1, 4, 9, 2, 30, 1, 3, 17) * 2)
# With dashboard_address=None the scheduler would take port 8787, and warn where that is in use.
HERE = {"dashboard_address": "127.0.0.1:0", "silence_logs": logging.CRITICAL}


def require_dask():
    pytest.importorskip("distributed", reason='Dask is missing: pip install "muhat[dask]"')


@contextmanager
def processes(n_workers, **options):
    """A client of so many processes with one thread each, which listen to this machine alone."""
    require_dask()
    import dask
    from distributed import Client, LocalCluster
    from distributed.utils import get_mp_context

    settings = {"distributed.comm.timeouts.connect": "120s", "distributed.comm.timeouts.tcp": "120s"}
    if sys.platform != "win32":  # forks of one process that has imported all, which would take each worker seconds
        settings["distributed.worker.multiprocessing-method"] = "forkserver"
    with ExitStack() as stack:
        stack.enter_context(dask.config.set(settings))
        get_mp_context()  # chooses modules to import, once; the next line does it again
        multiprocessing.set_forkserver_preload(["distributed", "dask.array", "muhat"])
        cluster = LocalCluster(n_workers=n_workers, threads_per_worker=1, host="127.0.0.1", **HERE)
        yield stack.enter_context(Client(stack.enter_context(cluster), **options))


@contextmanager
def threads(count=1, **options):
    """A client of one worker inside this process."""
    require_dask()
    from distributed import Client

    inside = {"processes": False, "n_workers": 1, "worker_dashboard_address": "127.0.0.1:0"}
    with Client(threads_per_worker=count, **inside, **HERE, **options) as client:
        yield client


no_kill = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")


def pause_once(folder, here):
    """Where ``here`` is true, the first process to come leaves its number in the folder and waits to be killed."""
    if here:
        try:
            os.close(os.open(f"{folder}/paused", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        except FileExistsError:
            return
        Path(f"{folder}/pid").write_text(str(os.getpid()), encoding="utf-8")
        while True:
            time.sleep(1)


def killed_in_the_middle(run, folder):
    """What a run returns while the process that has paused in it is killed."""
    killed, done = [], threading.Event()

    def kill():
        while not killed and not done.wait(0.02):
            written = (folder / "pid").read_text(encoding="utf-8") if (folder / "pid").exists() else ""
            if written:
                os.kill(int(written), signal.SIGKILL)
                killed.append(int(written))

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        found = run()
    finally:
        done.set()
        killer.join()
    assert len(killed) == 1
    assert killed[0] != os.getpid()
    return found
