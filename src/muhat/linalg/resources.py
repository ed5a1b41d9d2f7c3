"""Memory guards and threads of BLAS."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from threading import Lock, RLock
from typing import Any
from weakref import WeakKeyDictionary

from threadpoolctl import ThreadpoolController

from muhat._support.validation import check_number

SHARE = 0.6
"""The share of the free memory that a fit may take by default."""


def free_memory() -> float:
    """Bytes that this process may still take, as far as the system tells.

    They are the least of what the machine has free, what a limit of the process leaves, and what its control groups
    leave: containers and jobs of clusters are limited by those.
    """
    if sys.platform == "win32":
        return float("inf")
    import resource

    page = os.sysconf("SC_PAGE_SIZE")
    available = _first_number("/proc/meminfo", "MemAvailable:")
    free = float(os.sysconf("SC_PHYS_PAGES") * page) if available is None else 1024 * available
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    used = _first_number("/proc/self/statm", "")
    if limit != resource.RLIM_INFINITY and used is not None:
        free = min(free, max(limit - page * used, 0.0))
    return min(free, left_by_control_groups(Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")))


def left_by_control_groups(membership: Path, mounted: Path) -> float:
    """Bytes that the control groups of a process, and those above them, leave it; infinite where none sets a limit.

    ``membership`` is the file that names its group, in a line such as ``0::/job/step`` (version 2); ``mounted`` is the
    folder that the groups are mounted on. A container may see its own group as the mounted folder itself and be named
    by a path that is not there, which is then left out. Cached files of a group can be dropped, and do not count.
    """
    left = float("inf")
    for line in membership.read_text().splitlines() if membership.is_file() else ():
        _, controllers, path = line.split(":", 2)
        group = mounted / path.strip("/")
        for place in (group, *group.parents) if not controllers else ():
            most, taken = _first_number(place / "memory.max", ""), _first_number(place / "memory.current", "")
            if most is not None and taken is not None:
                cached = _first_number(place / "memory.stat", "inactive_file ") or 0.0
                left = min(left, max(most - taken + cached, 0.0))
            if place == mounted:
                break
    return left


def _first_number(path: str | Path, start: str) -> float | None:
    """The first number on the first line with this start, in a file of the system; None if there is no such number."""
    try:
        lines = [line for line in Path(path).read_text().splitlines() if line.startswith(start)]
        return float(lines[0].removeprefix(start).split()[0])
    except (OSError, IndexError, ValueError):  # no such file, no such line, or the word "max" for no limit
        return None


NEGLIGIBLE = 2**24
"""Fewer bytes are granted without reading the files of the system, which takes longer than small fits."""


def memory_budget(memory_limit: float | None) -> float:
    """The limit, or a share of what is free."""
    if memory_limit is None:
        return SHARE * free_memory()
    return check_number("memory_limit", memory_limit, low=0, open_low=True)


def check_memory(needed: float, memory_limit: float | None, what: str, remedy: str) -> None:
    """Raise a MemoryError, before anything is allocated, where more bytes are needed than there are."""
    if memory_limit is None and needed <= NEGLIGIBLE:
        return
    budget = memory_budget(memory_limit)
    if needed > budget:
        raise MemoryError(f"{what} would need {_readable(needed)} and {_readable(budget)} may be used; {remedy}")


def _readable(size: float) -> str:
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"


_LOCKS: WeakKeyDictionary[object, Any] = WeakKeyDictionary()
"""Locks of objects that threads may share: no part of their state, so that copies and pickles have one of their own."""


class LockedMixin:
    """For objects whose state changes as a whole: threads that share one take turns, ``with self._lock``."""

    @property
    def _lock(self) -> Any:
        return _LOCKS.setdefault(self, RLock())  # one step: all threads get the same lock

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            state: Any = super().__getstate__()
            return dict(state)


_lock = Lock()

_users = 0

_limit: Any = None

_controller: ThreadpoolController | None = None

MAX_ROWS_ON_ONE_THREAD = 1000
"""Fits to this many rows keep BLAS on one thread: more bring little, wait for each other, and change the last bits."""

FEWEST_NUMBERS_FOR_THREADS = 512
"""Rows times columns, of the data or of their Gram matrix, that BLAS would not share among threads anyway."""

NUMBERS_OF_ONE_THREAD = 9216
"""OpenBLAS multiplies matrices of fewer numbers with vectors on one thread."""


def steady_blas(n: int) -> AbstractContextManager[None]:
    """Hold BLAS to one thread for the sake of n rows, unless they are many: equal bits at any number of threads."""
    return one_blas_thread() if n <= MAX_ROWS_ON_ONE_THREAD else nullcontext()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS to one thread, in the whole process, until the last of those who asked for it is done.

    The setting is the process's and not the thread's: were each user to put back what it found, two that overlap
    could leave it at one for good.
    """
    global _users, _limit, _controller
    with _lock:
        if _users == 0:
            _controller = _controller or ThreadpoolController()  # looking for the libraries takes milliseconds
            _limit = _controller.limit(limits=1, user_api="blas")
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                _limit.restore_original_limits()
