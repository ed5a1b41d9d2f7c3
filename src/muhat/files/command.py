"""``muhat compare`` and ``muhat describe``: read, find, and say it as text, JSON or a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from muhat.files.compare import as_json as comparison_json
from muhat.files.compare import compare
from muhat.files.database import open_database
from muhat.files.describe import as_json as description_json
from muhat.files.describe import describe
from muhat.files.matching import Matched, listed, matched
from muhat.files.opening import STANDARD_INPUT, read_table
from muhat.files.tables import Reading
from muhat.files.words import comparison_text, description_text
from muhat.kernels.base import Kernel
from muhat.kernels.radial import Gaussian, Laplace
from muhat.progress import printable_json, progress, repeated

KERNELS: dict[str, Kernel | None] = {"auto": None, "gaussian": Gaussian(), "laplace": Laplace()}

SAME, DIFFERENT = 0, 1
"""Exit codes of ``muhat compare``, as ``diff`` has them."""


@dataclass(frozen=True)
class Output:
    """How the result is given: ``as_json`` on standard output, and perhaps a page in the file ``html``."""

    as_json: bool = False
    html: str | None = None


@repeated()
def compare_files(
    paths: Sequence[str],
    reading: Reading,
    output: Output,
    *,
    kernel: str = "auto",
    resamples: int = 999,
    level: float = 0.05,
    raw: bool = False,
    seconds: float = 10.0,
    strict: bool = False,
) -> int:
    """Compare two files; 0 if no difference was found, 1 if one was. See ``muhat compare --help``.

    With ``strict`` it is 2 where a column could not be compared.
    """
    _check_engine(output.html, paths)
    options: dict[str, Any] = {"resamples": resamples, "level": level, "raw": raw, "seconds": seconds}
    with _tables(paths, reading) as found:
        comparison = compare(found, reading, KERNELS[kernel], **options)
    if output.html is not None:
        from muhat.files.pages import comparison_page

        write_page(output.html, comparison_page(comparison))
    print(printable_json(comparison_json(comparison), indent=1) if output.as_json else comparison_text(comparison))
    if strict and comparison.not_compared:
        names = listed([column.name for column in comparison.not_compared])
        raise ValueError(f"--strict: {names} could not be compared; mend the files, or leave columns out by --exclude")
    return DIFFERENT if comparison.differs else SAME


@repeated()
def describe_file(path: str, reading: Reading, output: Output, *, kernel: str = "auto", raw: bool = False) -> int:
    """Describe a file; 0. See ``muhat describe --help``."""
    _check_engine(output.html, [path])
    with _tables([path], reading) as found:
        description = describe(found, reading, KERNELS[kernel] or Gaussian(), raw=raw)
    if output.html is not None:
        from muhat.files.pages import description_page

        write_page(output.html, description_page(description))
    print(printable_json(description_json(description), indent=1) if output.as_json else description_text(description))
    return 0


@contextmanager
def _tables(paths: Sequence[str], reading: Reading) -> Iterator[Matched]:
    """The tables in the files, in an engine that is closed when the block ends."""
    if list(paths).count(STANDARD_INPUT) > 1:
        raise ValueError("- stands for the standard input, which can be read once; name a file for the other table")
    try:
        with open_database() as database:
            with progress() as say:
                tables = []
                for path in paths:
                    say(f"{path}: reading")
                    tables.append(read_table(path, database, reading))
            yield matched(tables, reading)
    except MemoryError as error:
        said = f" ({error})" if str(error) else ""
        raise ValueError(f"too many rows for the memory{said}; take fewer by --rows") from error


def _check_engine(html: str | None, paths: Sequence[str]) -> None:
    import_module("duckdb")
    check_page(html, paths)


def check_page(html: str | None, paths: Sequence[str]) -> None:
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


def write_page(path: str, text: str) -> None:
    """Write a page whole, or say why not."""
    from muhat.report.page import write_whole

    try:
        write_whole(Path(path), text)
    except OSError as error:
        raise ValueError(f"--html {path} cannot be written: {error.strerror or error}") from error
