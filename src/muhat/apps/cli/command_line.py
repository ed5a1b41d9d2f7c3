"""Command line interface ``muhat``; each subcommand imports what it needs when it is called."""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from pathlib import Path
from typing import NoReturn

from muhat._support.progress import printable
from muhat.apps.cli.options import FAILED, parse
from muhat.apps.files.told import in_shell

LEAST_SPACE = 10**9  # bytes of address space that a command must have left when it begins
INTERRUPTED, UNREAD = 130, 141  # what shells expect of a program that SIGINT or SIGPIPE ended


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code.

    0 is success, for ``compare`` "no difference found". 1 is the other answer: ``compare`` found a difference. 2 is no
    answer, with a line on standard error: a wrong call, a file that cannot be used, or
    anything unexpected. 141 is an output that nobody reads on, as with ``head``. ``MUHAT_DEBUG=1`` in the environment
    also shows the traceback.
    """
    name = "muhat"
    try:
        with _ended_by_signals(), _flushed():
            _check_streams()
            options = parse(sys.argv[1:] if arguments is None else arguments)
            if options.command is None:
                return 0
            name = f"muhat {options.command}"
            _check_memory()
            from muhat.apps.cli.compare_tables import compare_tables

            return compare_tables(options)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # whoever read the output, such as head, has what it wanted
        _forget_output()
        return UNREAD
    except Exception as error:
        return _failed(name, error)


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end the command as an exception does, so that temporary files are removed."""

    def end(number: int, frame: object) -> NoReturn:
        signal.signal(number, signal.SIG_IGN)  # a second one does not stop the tidying
        ended.append(number)
        raise SystemExit(128 + number)

    ended: list[int] = []
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    in_main = threading.current_thread() is threading.main_thread()  # others may not set handlers
    ours = [number for number in numbers if in_main and signal.getsignal(number) is signal.SIG_DFL]
    for number in ours:
        signal.signal(number, end)
    try:
        yield
    except RuntimeError as error:  # DuckDB, while it reads, puts an error of its own in place of a handler's
        if ended:
            raise SystemExit(128 + ended[0]) from error
        if "interrupted" in str(error):
            raise KeyboardInterrupt from error
        raise
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


@contextmanager
def _flushed() -> Iterator[None]:
    """Write all output before the block ends, so that what cannot be written is an error of the command."""
    try:
        yield
    finally:
        if sys.stdout is not None:
            sys.stdout.flush()


def _check_streams() -> None:
    """Refuse a closed standard output, and keep the numbers of closed streams from files that are opened later."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)
    if sys.stderr is None:  # print would take the standard output instead
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    if sys.stdout is None:
        raise ValueError("the standard output is closed; send it to /dev/null where the exit code is enough")
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # not every terminal has our symbols


def _check_memory() -> None:
    """Refuse an address space so small that compiled libraries crash, or never return, when they are denied memory."""
    try:
        import resource

        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    except (ImportError, OSError):  # not a system that counts it
        return
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit != resource.RLIM_INFINITY and limit - used < LEAST_SPACE:
        raise ValueError(
            f"the limit on address space leaves {max(limit - used, 0) / 1e6:.0f} MB, and {LEAST_SPACE / 1e6:.0f} MB "
            f"are needed; raise it, as by ulimit -v {(used + 2 * LEAST_SPACE) // 1024}"
        )


def _failed(name: str, error: Exception) -> int:
    """Say in one line what went wrong, and return the exit code."""
    if os.environ.get("MUHAT_DEBUG"):
        traceback.print_exception(error)
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        _forget_output()
    with suppress(OSError):  # nobody reads the standard error
        print(printable(" ".join(f"{name}{_reason(name, error)}".split())), file=sys.stderr, flush=True)
    return FAILED


def _forget_output() -> None:
    """Keep Python from flushing the output once more when it ends, and from failing with a code of its own."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _reason(name: str, error: Exception) -> str:
    if isinstance(error, ImportError):
        return f": {error}"
    if isinstance(error, ValueError | OSError):
        return f": {in_shell(error.args[0] if len(error.args) == 1 else error)}"
    if isinstance(error, MemoryError):
        return f": not enough memory {error}".rstrip()
    first = (str(error).splitlines() or [""])[0]  # others may quote what they were doing over many lines
    return f": unexpected {type(error).__name__}: {first}; set MUHAT_DEBUG=1 in the environment for the traceback"


if __name__ == "__main__":
    sys.exit(main())
