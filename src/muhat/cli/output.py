"""Files that commands write: checked before the work, written whole."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from muhat.report.page import write_whole


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
