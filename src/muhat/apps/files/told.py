"""Messages that name parameters, as a call in Python writes them and as options of a command."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Write = Callable[..., str]
"""Writes a parameter, and its value if there is one."""


class Told(str):
    """A text that names parameters as Python does; ``in_shell`` has them as options."""

    in_shell: str


def told(text: Callable[[Write], str]) -> Told:
    """The text that a function makes of a way to write parameters.

    >>> message = told(lambda write: f"{write('n_resamples', 9)} is small; leave {write('header')} out")
    >>> print(message, "|", message.in_shell)
    n_resamples=9 is small; leave header= out | --resamples 9 is small; leave --header out
    """
    found = Told(text(_in_python))
    found.in_shell = text(_in_shell)
    return found


def in_shell(text: Any) -> str:
    """A text as a command shows it."""
    return str(getattr(text, "in_shell", text))


def _in_python(name: str, *value: Any) -> str:
    return f"{name}={value[0]!r}" if value else f"{name}="


def _in_shell(name: str, *value: Any) -> str:
    option = name.removeprefix("n_").replace("_", "-")
    if value and isinstance(value[0], bool):
        return f"--{option}" if value[0] else f"--no-{option}"
    return f"--{option} {value[0]!r}" if value else f"--{option}"
