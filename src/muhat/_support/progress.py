"""Progress of long computations: a line of the terminal, erased at the end.

Where standard error is not a terminal, commands print it every few seconds.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

SECONDS = 5.0
"""Between two lines where standard error is not a terminal."""

_ERASED = "\r\x1b[K"
_doing = ""


@contextmanager
def progress() -> Iterator[Callable[[str], None]]:
    """A function that says what is being done; unless standard error is a terminal, :func:`repeated` prints it."""
    screen = sys.stderr
    if not screen.isatty():
        before = _doing
        try:
            yield _note
        finally:
            _note(before)
        return
    try:
        yield lambda text: print(f"{_ERASED}{printable(text)}", end="", file=screen, flush=True)
    finally:
        print(_ERASED, end="", file=screen, flush=True)


def _note(text: str) -> None:
    global _doing
    _doing = text


@contextmanager
def repeated() -> Iterator[None]:
    """Print every few seconds what is being done, for a command whose standard error is not a terminal."""
    screen, ended = sys.stderr, threading.Event()

    def print_until_ended() -> None:
        with suppress(OSError):  # nobody reads
            while not ended.wait(SECONDS):
                if _doing:
                    print(printable(_doing), file=screen, flush=True)

    thread = threading.Thread(target=print_until_ended, daemon=True)
    if not screen.isatty():
        thread.start()
    try:
        yield
    finally:
        ended.set()


def printable(text: str) -> str:
    r"""Text without signs that move the cursor or break a line, and without halves of characters.

    >>> printable("a\x1b[31mb\nc")
    'a�[31mb�c'
    """
    return "".join(sign if sign.isprintable() else "�" for sign in text)


def printable_json(found: Any, indent: int | None = None) -> str:
    r"""JSON in which signs that :func:`printable` replaces are escaped, so that programs read them as they are.

    >>> print(printable_json({"a\u009b": "b\n"}))
    {"a\u009b": "b\n"}
    """
    text = json.dumps(found, indent=indent, ensure_ascii=False, allow_nan=False)
    return "".join(sign if sign.isprintable() or sign == "\n" else json.dumps(sign)[1:-1] for sign in text)
