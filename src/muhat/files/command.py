"""``muhat compare`` and ``muhat describe``: read, find, and say it as text, JSON or a page."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from muhat.files.compare import as_json as comparison_json
from muhat.files.compare import compare
from muhat.files.describe import as_json as description_json
from muhat.files.describe import describe
from muhat.files.samples import Sample, as_samples
from muhat.files.sheets import Reading, read_sheet
from muhat.files.words import comparison_text, description_text
from muhat.kernels.base import Kernel
from muhat.kernels.radial import Gaussian, Laplace

KERNELS: dict[str, Kernel] = {"gaussian": Gaussian(), "laplace": Laplace()}

SAME, DIFFERENT = 0, 1
"""Exit codes of ``muhat compare``, as ``diff`` has them."""


@dataclass(frozen=True)
class Output:
    """How the result is given: ``as_json`` on standard output, and perhaps a page in the file ``html``."""

    as_json: bool = False
    html: str | None = None


def compare_files(
    paths: Sequence[str],
    reading: Reading,
    output: Output,
    *,
    kernel: str = "gaussian",
    resamples: int = 999,
    level: float = 0.05,
    raw: bool = False,
) -> int:
    """Compare two files; 0 if no difference was found, 1 if one was. See ``muhat compare --help``."""
    _check_target(output.html, paths)
    (first, second), notes = _samples(paths, reading)
    options: dict[str, Any] = {"resamples": resamples, "seed": reading.seed, "level": level, "raw": raw, "notes": notes}
    with _bounded():
        comparison = compare(first, second, KERNELS[kernel], **options)
    if output.html is not None:
        from muhat.files.pages import comparison_page

        _write(output.html, comparison_page(comparison, raw))
    print(_dumped(comparison_json(comparison)) if output.as_json else comparison_text(comparison, raw))
    return DIFFERENT if comparison.differs else SAME


def describe_file(path: str, reading: Reading, output: Output, *, kernel: str = "gaussian", raw: bool = False) -> int:
    """Describe a file; 0. See ``muhat describe --help``."""
    _check_target(output.html, [path])
    (sample,), notes = _samples([path], reading)
    with _bounded():
        description = describe(sample, KERNELS[kernel], raw=raw, notes=notes)
    if output.html is not None:
        from muhat.files.pages import description_page

        _write(output.html, description_page(description, raw))
    print(_dumped(description_json(description)) if output.as_json else description_text(description, raw))
    return 0


@contextmanager
def _bounded() -> Iterator[None]:
    """A refusal for want of memory says what helps here."""
    try:
        yield
    except MemoryError as error:
        raise ValueError(f"too many rows for the memory ({error}); take fewer by --rows") from error


def _samples(paths: Sequence[str], reading: Reading) -> tuple[list[Sample], list[str]]:
    sheets = [read_sheet(path, replace(reading, seed=reading.seed + i)) for i, path in enumerate(paths)]
    return as_samples(sheets, reading.columns)


def _dumped(found: dict[str, Any]) -> str:
    return json.dumps(found, indent=1, ensure_ascii=False, allow_nan=False)


def _check_target(html: str | None, paths: Sequence[str]) -> None:
    """What would fail after the work is said before it, and no table is written over."""
    if html is None:
        return
    for package in ("jinja2", "matplotlib"):
        import_module(package)
    target = Path(html)
    if any(Path(path).exists() and target.exists() and target.samefile(path) for path in paths):
        raise ValueError(f"--html {html} would write over the table; name another file")
    if target.is_dir() or not target.parent.is_dir():
        raise ValueError(f"--html {html} must be a file in a folder that exists, such as report.html")


def _write(path: str, text: str) -> None:
    from muhat.report.page import write_whole

    try:
        write_whole(Path(path), text)
    except OSError as error:
        raise ValueError(f"--html {path} cannot be written: {error.strerror or error}") from error
