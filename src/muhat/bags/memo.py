"""Results kept for the next call on the same content, in bounded memory.

A search over C of a support measure machine fits on the same bags many times; their Gram matrix is the costly
part. Keys are made of content (a hash of the data, the parameters by value), so a result is never out of date;
a kernel that is a function is known by its identity and must not change its mind.
"""

from __future__ import annotations

import numbers
from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, TypeVar

import numpy as np
from joblib import hash as content_hash

Result = TypeVar("Result")


CACHE_BYTES = 2**28
"""Results kept take up to so much memory, together; the least recently used leave first."""


_OVERHEAD = 1024


def content_key(*values: Any) -> Hashable | None:
    """A key of the content of ``values``; None where one of them cannot be told from its changed self."""
    try:
        return tuple(_content(value) for value in values)
    except TypeError:
        return None


def _content(value: Any) -> Hashable:
    if isinstance(value, np.ndarray) and value.dtype != object:
        return content_hash(value)
    if isinstance(value, list | tuple):
        return tuple(_content(entry) for entry in value)
    if hasattr(value, "get_params") and not isinstance(value, type):
        params = value.get_params(deep=False)
        return type(value), tuple((name, _content(params[name])) for name in sorted(params))
    if value is None or isinstance(value, str | numbers.Number) or callable(value):
        hash(value)
        return value
    raise TypeError(f"{value!r} has no key")


class Memo:
    """Results by key, up to ``max_bytes`` of arrays.

    Parameters
    ----------
    max_bytes : int

    Examples
    --------
    >>> from muhat.bags.memo import Memo
    >>> memo = Memo(max_bytes=10_000)
    >>> memo.recall("six", lambda: 2 * 3), memo.recall("six", lambda: 1 / 0)
    (6, 6)
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._results: OrderedDict[Hashable, Any] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def recall(self, key: Hashable | None, compute: Callable[[], Result]) -> Result:
        """The result kept under ``key``, else the one computed; arrays come back read-only, for all share them."""
        with self._lock:
            if key is not None and key in self._results:
                self._results.move_to_end(key)
                return self._results[key]
        result = compute()  # outside of the lock: two threads may do the same work, neither waits for the other
        for array in _arrays(result):
            array.setflags(write=False)
        if key is not None and _size(result) <= self.max_bytes:
            self._keep(key, result)
        return result

    def _keep(self, key: Hashable, result: Any) -> None:
        with self._lock:
            if key in self._results:
                return
            self._results[key] = result
            self._bytes += _size(result)
            while self._bytes > self.max_bytes:
                _, oldest = self._results.popitem(last=False)
                self._bytes -= _size(oldest)

    def clear(self) -> None:
        """Forget all results."""
        with self._lock:
            self._results.clear()
            self._bytes = 0


def _arrays(result: Any) -> list[np.ndarray]:
    parts = result if isinstance(result, tuple) else (result,)
    return [part for part in parts if isinstance(part, np.ndarray)]


def _size(result: Any) -> int:
    parts = result if isinstance(result, tuple) else (result,)
    held = [value for part in parts for value in (part, *getattr(part, "__dict__", {}).values())]  # fitted features
    return _OVERHEAD + sum(value.nbytes for value in held if isinstance(value, np.ndarray))
