"""Matrix products on one thread, where threads would cost more than they give."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

from threadpoolctl import ThreadpoolController

_lock = Lock()
_users = 0
_limit: Any = None
_controller: ThreadpoolController | None = None


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
