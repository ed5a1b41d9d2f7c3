"""What is being done, in one line of a terminal that is gone when it is done."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_ERASED = "\r\x1b[K"


@contextmanager
def progress() -> Iterator[Callable[[str], None]]:
    """A function that says what is being done; it is silent unless standard error is a terminal."""
    screen = sys.stderr
    if not screen.isatty():
        yield lambda text: None
        return
    try:
        yield lambda text: print(f"{_ERASED}{text}", end="", file=screen, flush=True)
    finally:
        print(_ERASED, end="", file=screen, flush=True)
