"""What all tests share: the data folder, which tests are quick, and a session that leaves no process behind."""

import gc
import os
import sys
import time
from collections import defaultdict
from pathlib import Path
from random import Random
from uuid import uuid4

import pytest
from joblib import cpu_count

SLOW = {
    "report": "pages in a browser",
    "paper": "runs of the paper's experiments",
    "test_benchmarks.py": "each benchmark runs once, small",
    "test_examples.py": "each example of the gallery runs",
}
"""Subpackages and files that `make quick` leaves out, and why; the marker ``slow`` does it for single tests."""
CASES = int(os.environ.get("MUHAT_CASES", "12"))
"""Cases of a property that `make quick` runs, drawn by its name: other properties meet other kernels and data sets."""
WHOLE = ("test_docs.py", "test_reference_cases", "test_newcomer")
"""How files of error messages, reference cases and pages begin: `make quick` runs every case of them."""
LONG = ("test_docs.py", "test_attacks.py", "test_benchmarks.py", "test_examples.py")
"""Files with the longest tests: they come first, so that no worker is left with one of them at the end."""
MARK = "MUHAT_TEST_SESSION"
STARTS = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system"}


def pytest_configure(config):
    cpu_count(only_physical_cores=True)  # asks a process once, and remembers
    config.addinivalue_line("markers", "slow: starts processes or takes seconds; `make quick` leaves it out")
    os.environ.setdefault(MARK, str(uuid4()))  # inherited by all that this session starts


def pytest_collection_modifyitems(items):
    properties = defaultdict(list)
    for item in items:
        uses_cluster = "client" in getattr(item, "fixturenames", ())  # workers of Dask are processes
        if uses_cluster or SLOW.keys() & set(item.path.parts[-2:]) or "test_scikit_learn_checks" in item.name:
            item.add_marker("slow")
        elif not item.path.name.startswith(WHOLE) and not item.path.stem.endswith("_errors"):
            properties[item.path, getattr(item, "originalname", item.name)].append(item)
    for (_, name), cases in properties.items():
        for item in Random(name).sample(cases, max(len(cases) - CASES, 0)):
            item.add_marker("slow")
    items.sort(key=lambda item: item.path.name not in LONG)


def pytest_collection_finish():
    gc.freeze()  # thousands of tests stay until the end: no collection of garbage need look at them


def pytest_unconfigure():
    gc.unfreeze()  # else what is frozen outlives its modules, and DuckDB prints two screens of leaks after the result


# ---------------------------------------------------------------- quick tests start no process

_current = None


def _watch(event, arguments):
    looks_up_a_library = arguments and str(arguments[0]).endswith("ldconfig")  # ctypes, for scikit-learn
    if event in STARTS and _current is not None and not looks_up_a_library:
        raise AssertionError(f"{_current} starts a process: mark it as slow")


sys.addaudithook(_watch)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    global _current
    _current = None if "slow" in item.keywords or item.path.suffix == ".md" else item.nodeid
    try:
        return (yield)
    finally:
        _current = None


# ---------------------------------------------------------------- nothing is left running


def left_running(mark):
    """Processes on Linux that carry the mark of this session and are neither this one nor below it."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            ours = f"{MARK}={mark}".encode() in (folder / "environ").read_bytes().split(b"\0")
            found[int(folder.name)] = parent, ours, (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except (OSError, ValueError):
            continue  # it has ended meanwhile, or belongs to someone else
    below, size = {os.getpid()}, 0
    while size < len(below):
        size, below = len(below), below | {number for number, (parent, *_) in found.items() if parent in below}
    return [
        f"{number}: {command[:100]}" for number, (_, ours, command) in found.items() if ours and number not in below
    ]


@pytest.hookimpl(wrapper=True)
def pytest_sessionfinish(session):
    """After the workers of xdist have ended; what they started has a while to notice."""
    result = yield
    if "PYTEST_XDIST_WORKER" in os.environ:
        return result
    for _ in range(100):
        if not (left := left_running(os.environ[MARK])):
            break
        time.sleep(0.1)
    if left:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        sys.stderr.write("\nThese processes are left running:\n" + "\n".join(left) + "\n")
    return result


# ---------------------------------------------------------------- data


@pytest.fixture(scope="session")
def data_folder():
    """The folder with the tables and bags that cannot be part of the project."""
    named = os.environ.get("MUHAT_DATA")
    folder = Path(named) if named else Path(__file__).parents[2] / "shared" / "data"
    if not (folder / "uci").is_dir():
        pytest.skip(f"the tables and bags are not at {folder.name!r}: set MUHAT_DATA to the folder that holds them")
    return folder
