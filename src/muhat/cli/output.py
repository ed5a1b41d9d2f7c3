"""Files that commands write, checked before the work and written whole; and parameters written as options."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from muhat.report.page import write_whole

_PARAMETERS = re.compile(
    r"\b(at_least|block_length|categorical|columns|delimiter|exclude|header|level|missing|rows|run_length|strata)="
)


def check_target(option: str, target: str | None, tables: Sequence[str]) -> None:
    """Say before the work what would fail after it, and let no table be written over."""
    if target is None:
        return
    path = Path(target)
    if any(Path(table).exists() and path.exists() and path.samefile(table) for table in tables):
        raise ValueError(f"--{option} {target} would write over the table; name another file")
    if path.is_dir() or not path.parent.is_dir():
        raise ValueError(f"--{option} {target} must be a file in a folder that exists")


def write_text(option: str, target: str, text: str) -> None:
    """Write a file whole, or say why not."""
    try:
        write_whole(Path(target), text)
    except OSError as error:
        raise ValueError(f"--{option} {target} cannot be written: {error.strerror or error}") from error


def as_options(message: str) -> str:
    """A message of a function, with its parameters written as the options of the command.

    >>> as_options("run_length=9 cannot be promised; pass block_length=1")
    '--run-length 9 cannot be promised; pass --block-length 1'
    """
    return _PARAMETERS.sub(lambda found: f"--{found[1].replace('_', '-')} ", message)
