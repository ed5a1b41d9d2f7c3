"""What is being done, in one line of a terminal that is gone when it is done."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_ERASED = "\r\x1b[K"


@contextmanager
def progress() -> Iterator[Callable[[str], None]]:
    """A function that says what is being done; it is silent unless standard error is a terminal."""
    screen = sys.stderr
    if not screen.isatty():
        yield lambda text: None
        return
    try:
        yield lambda text: print(f"{_ERASED}{printable(text)}", end="", file=screen, flush=True)
    finally:
        print(_ERASED, end="", file=screen, flush=True)


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
