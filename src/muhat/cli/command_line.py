"""Command line interface ``muhat``; each subcommand imports what it needs when it is called."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import version
from io import TextIOWrapper
from pathlib import Path
from typing import Any, NoReturn

FAILED = 2  # no answer: a wrong call, a file that cannot be used, or anything unexpected
LEAST_SPACE = 10**9  # bytes of address space that a command must have left when it begins
INTERRUPTED, UNREAD = 130, 141  # what shells expect of a program that SIGINT or SIGPIPE ended


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code.

    0 is success, for ``compare`` "no difference found". 1 is the other answer: ``compare`` found a difference,
    ``watch`` an alarm. 2 is no answer, with a line on standard error: a wrong call, a file that cannot be used, or
    anything unexpected. 141 is an output that nobody reads on, as with ``head``. ``MUHAT_DEBUG=1`` in the environment
    also shows the traceback.
    """
    name = "muhat"
    try:
        with _ended_by_signals(), _flushed():
            _check_streams()
            parser = _parser()
            options, unknown = parser.parse_known_args(arguments)
            if unknown:
                getattr(options, "parser", parser).error(f"unrecognized arguments: {' '.join(unknown)}")
            if options.command is None:
                parser.print_help()
                return 0
            name = f"muhat {options.command}"
            _check_memory()
            return int(options.run(options))
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
        raise SystemExit(128 + number)

    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    in_main = threading.current_thread() is threading.main_thread()  # others may not set handlers
    ours = [number for number in numbers if in_main and signal.getsignal(number) is signal.SIG_DFL]
    for number in ours:
        signal.signal(number, end)
    try:
        yield
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
        print(_printable(f"{name}{_reason(name, error)}"), file=sys.stderr, flush=True)
    return FAILED


def _forget_output() -> None:
    """Keep Python from flushing the output once more when it ends, and from failing with a code of its own."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _reason(name: str, error: Exception) -> str:
    if isinstance(error, ImportError):
        extra = _EXTRAS.get(name.removeprefix("muhat "), "files")
        return f' needs {error.name}; pip install "muhat[{extra}]"'
    if isinstance(error, ValueError | OSError):
        from muhat.cli.output import as_options

        return f": {as_options(str(error))}"
    if isinstance(error, MemoryError):
        return f": not enough memory {error}".rstrip() + "; --rows takes fewer rows"
    first = (str(error).splitlines() or [""])[0]  # others may quote what they were doing over many lines
    return f": unexpected {type(error).__name__}: {first}; set MUHAT_DEBUG=1 in the environment for the traceback"


_EXTRAS = {"prepare": "prepare", "reproduce": "reproduce", "claims": "reproduce"}

_HELP = """examples:
  muhat compare january.csv february.csv    do two tables differ, in which columns, and by how much?
  muhat describe january.csv                what does a table hold, and which rows are unusual?
  muhat watch last_month.csv < today.csv    when do the rows of a stream stop looking like a reference?
  muhat reproduce --quick                   the paper's experiments in some minutes
  muhat COMMAND --help                      the options of a command"""


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are a line, and not the usage and a line."""

    def error(self, message: str) -> NoReturn:
        """Exit with a message."""
        if message.endswith("required: FILE"):
            message += " (before options that take several names, such as --columns)"
        self.exit(FAILED, f"{self.prog}: error: {message}; {self.prog} --help lists the options\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="muhat",
        description="Compare tables and monitor streams, with kernel means that improve on the empirical average.",
        epilog=_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"muhat {version('muhat')}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    _add_compare(commands)
    _add_describe(commands)
    _add_watch(commands)
    _add_reproduce(commands)
    _add_claims(commands)
    _add_prepare(commands)
    for command in commands.choices.values():
        command.set_defaults(parser=command)  # whose usage is shown for options that it does not have
    return parser


Commands = Any
"""What ``add_subparsers`` returns; argparse has no public name for it."""


def _add_compare(commands: Commands) -> None:
    compare = commands.add_parser(
        "compare",
        help="do two tables come from one distribution, where do they differ, and by how much?",
        description="Compare the rows of two tables in files (CSV, Parquet, NPY, JSON lines, also compressed by gzip; "
        "patterns such as 'jan/*.csv'; - is the standard input): each column, pairs of columns, and all columns "
        "together. Exit code 0: no difference found; 1: a difference; 2: a file or an option is wrong, or with "
        "--strict a column could not be compared.",
    )
    compare.add_argument("files", nargs=2, metavar="FILE")
    compare.add_argument(
        "--at-least", type=_effect, default=0.0, metavar="D", help="differ only if an effect exceeds D, such as 5%%"
    )
    compare.add_argument("--level", type=_share, default=0.05, metavar="P", help="p-value of a finding; default 0.05")
    compare.add_argument("--strata", metavar="NAME", help="compare rows within the values of this column only")
    compare.add_argument(
        "--resamples", type=_positive, metavar="B", help="permutations of the joint test; default 999, or 3 / level"
    )
    compare.add_argument(
        "--seconds", type=_above_zero, default=10.0, metavar="S", help="about how long the joint test may take"
    )
    compare.add_argument("--kernel", choices=("auto", "gaussian", "laplace"), default="auto", help="default auto")
    compare.add_argument(
        "--strict", action="store_true", help="exit code 2 where a column could not be compared, as in one file only"
    )
    compare.add_argument("--junit", metavar="FILE", help="also write a JUnit report, with a case for each column")
    _add_output(compare)
    _add_reading(compare)
    compare.set_defaults(run=_compare)


def _add_describe(commands: Commands) -> None:
    describe = commands.add_parser(
        "describe",
        help="what does a table hold: kinds, missing values, extremes, unusual rows, pairs that depend",
        description="Describe the rows of a file (CSV, Parquet, NPY, JSON lines): kinds, missing values and extremes "
        "of columns, pairs of columns that depend on each other, and the rows least like the others. Exit code 0; 2: "
        "the file or an option is wrong.",
    )
    describe.add_argument("file", metavar="FILE")
    _add_output(describe)
    _add_reading(describe)
    describe.set_defaults(run=_describe)


def _add_watch(commands: Commands) -> None:
    watch = commands.add_parser(
        "watch",
        help="raise an alarm when the rows of a stream stop looking like those of a reference",
        description="Read the rows of a stream as they come, from a file or a pipe, and compare them with the rows of "
        "a reference. The columns are known by their names; categories, dates and missing values are watched too. Exit "
        "code 0: the stream ended without drift; 1: it drifted; 2: a file or an option is wrong.",
    )
    watch.add_argument("reference", metavar="REFERENCE", help="a file of rows without drift, or an .npz by --save")
    watch.add_argument("stream", nargs="?", default="-", metavar="STREAM", help="a file; default -, standard input")
    watch.add_argument(
        "--format", choices=("csv", "jsonl"), help="of a stream in a pipe; default: look at its first line"
    )
    watch.add_argument(
        "--run-length",
        type=_two_or_more,
        default=10_000,
        metavar="N",
        help="average number of rows until a false alarm; default 10000",
    )
    watch.add_argument(
        "--block-length",
        type=_positive,
        metavar="B",
        help="consecutive rows that depend on each other, 1 for none; default: found in the order of the reference",
    )
    watch.add_argument("--save", metavar="FILE.npz", help="keep the calibrated reference; pass it as REFERENCE later")
    watch.add_argument("--every", type=_positive, metavar="N", help="print a line of JSON with the score every N rows")
    _add_output(watch)
    _add_reading(watch)
    watch.set_defaults(run=_watch)


def _add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON in place of text")
    parser.add_argument("--html", metavar="FILE", help="also write a page with pictures")
    parser.add_argument("--seed", type=_natural, default=0, metavar="S", help="seed of all random numbers; default 0")


def _add_reading(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--columns", nargs="+", metavar="NAME", help="columns to use, by name or pattern (price_*)")
    parser.add_argument("--exclude", nargs="+", metavar="NAME", help="columns to leave out, by name or pattern")
    parser.add_argument("--categorical", nargs="+", metavar="NAME", help="columns of numbers that are categories")
    parser.add_argument("--missing", nargs="+", metavar="MARK", help="further marks of missing values, such as n.d.")
    parser.add_argument("--rows", type=_two_or_more, metavar="N", help="sample at most N rows for what looks at rows")
    what = "separates cells of CSV, such as '|', or tab; default: look at the first lines"
    parser.add_argument("--delimiter", type=_delimiter, metavar="D", help=what)
    parser.add_argument(
        "--header", action=argparse.BooleanOptionalAction, help="the first row holds names; default: look at it"
    )


def _add_reproduce(commands: Commands) -> None:
    reproduce = commands.add_parser(
        "reproduce",
        help="run the paper's experiments and write a report",
        description="Run the paper's experiments, show our numbers beside the paper's, and judge its claims. Every "
        "finished cell is stored at once: interrupt the command as you like, the same command goes on.",
    )
    reproduce.add_argument("names", nargs="*", metavar="NAME", help="figure1, figure2, table1, …; default: all of them")
    reproduce.add_argument(
        "--quick", action="store_true", help="a reduced form of each, in minutes, without a data folder"
    )
    _add_out(reproduce)
    reproduce.add_argument("--data", metavar="DIR", help="folder with uci/ and groups/; default: $MUHAT_DATA")
    reproduce.add_argument(
        "--jobs", type=_positive, default=os.cpu_count() or 1, metavar="N", help="processes; default: one per core"
    )
    reproduce.add_argument(
        "--seed", type=_natural, default=0, metavar="S", help="seed of all random numbers; default 0"
    )
    reproduce.add_argument(
        "--repetitions", type=_positive, metavar="R", help="repetitions of each experiment; default: its own"
    )
    reproduce.add_argument("--dask", metavar="ADDRESS", help="run on the Dask cluster of this scheduler")
    reproduce.set_defaults(run=_reproduce)


def _add_claims(commands: Commands) -> None:
    claims = commands.add_parser("claims", help="the claims of the paper and the verdicts of a finished run")
    _add_out(claims)
    claims.set_defaults(run=_claims)


def _add_prepare(commands: Commands) -> None:
    prepare = commands.add_parser(
        "prepare",
        help="make the bags of table 2 from public data",
        description="Make the data that table 2 of the paper needs from public sources: scenes from a folder of "
        "images, one folder a class; hep from atlas-higgs-challenge-2014-v2.csv of the CERN Open Data portal.",
    )
    prepare.add_argument("name", choices=("scenes", "scenes4", "hep"), help="scenes4 keeps the four indoor classes")
    prepare.add_argument("--from", dest="source", required=True, metavar="PATH", help="folder of images, or CSV file")
    prepare.add_argument("--out", default="data", metavar="DIR", help="data folder, for --data; default data")
    prepare.add_argument("--seed", type=_natural, default=0, metavar="S", help="draws the patches; default 0")
    prepare.set_defaults(run=_prepare)


def _add_out(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", default="report", metavar="DIR", help="folder of the report; default: report")


def _compare(options: argparse.Namespace) -> int:
    from muhat.cli.compare_tables import compare_tables

    return compare_tables(options)


def _describe(options: argparse.Namespace) -> int:
    from muhat.cli.describe import describe

    return describe(options)


def _watch(options: argparse.Namespace) -> int:
    from muhat.cli.watch import watch

    return watch(options)


def _reproduce(options: argparse.Namespace) -> int:
    from muhat.paper.experiment import Plan
    from muhat.paper.reproduce import reproduce

    plan = Plan(options.quick, options.seed, options.repetitions)
    return reproduce(options.names, plan, options.out, options.data, options.jobs, options.dask)


def _prepare(options: argparse.Namespace) -> int:
    from muhat.paper.prepare import prepare_hep, prepare_scenes

    if options.name == "hep":
        path = prepare_hep(options.source, options.out)
    else:
        path = prepare_scenes(options.source, options.out, indoor=options.name == "scenes4", random_state=options.seed)
    print(f"{path} is written; pass --data {options.out} to muhat reproduce")
    return 0


def _claims(options: argparse.Namespace) -> int:
    from muhat.paper.reproduce import show_claims

    return show_claims(options.out)


def _printable(message: str) -> str:
    from muhat.progress import printable

    return printable(" ".join(message.split()))


def _delimiter(text: str) -> str:
    sign = {"tab": "\t", "\\t": "\t"}.get(text, text)
    if len(sign) != 1 or not sign.isascii() or sign.isalnum() or sign in "\"'.+-\r\n":
        raise argparse.ArgumentTypeError(f"{text!r} must be one sign, such as ';' or '|', or the word tab")
    return sign


def _positive(text: str) -> int:
    return _whole(text, 1)


def _two_or_more(text: str) -> int:
    return _whole(text, 2)


def _natural(text: str) -> int:
    return _whole(text, 0)


def _whole(text: str, low: int) -> int:
    if not text.isdecimal() or int(text) < low:
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number, {low} or more")
    return int(text)


def _above_zero(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} must be a number above 0")
    return value


def _effect(text: str) -> float:
    """A share, such as 0.05 or 5%."""
    plain = text.strip().removesuffix("%")
    try:
        value = float(plain) / (100.0 if plain != text.strip() else 1.0)
    except ValueError:
        value = -1.0
    if not 0.0 <= value <= 1.0:
        raise argparse.ArgumentTypeError(f"{text!r} must be a share, such as 5% or 0.05")
    return value


def _share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.0 < value < 1.0:
        raise argparse.ArgumentTypeError(f"{text!r} must be a number between 0 and 1")
    return value


if __name__ == "__main__":
    sys.exit(main())
