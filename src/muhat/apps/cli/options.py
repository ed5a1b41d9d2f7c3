"""Options of the command: parsers, values, and files that it writes."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, NoReturn

from muhat._support.archives import whole_file

FAILED = 2  # no answer: a wrong call, a file that cannot be used, or anything unexpected

_HELP = """examples:
  muhat compare january.csv february.csv    do two tables differ, in which columns, and by how much?
  muhat COMMAND --help                      the options of a command"""

_COMPARE = "do two tables come from one distribution, where do they differ, and by how much?"
_COMPARE_MORE = (
    "Compare the rows of two tables in files (CSV, Parquet, NPY, JSON lines, also compressed by gzip; patterns such as "
    "'jan/*.csv'; - is the standard input): each column, pairs of columns, and all columns together. Exit code 0: no "
    "difference found; 1: a difference; 2: a file or an option is wrong, or with --strict a column could not be "
    "compared."
)


class Parser(argparse.ArgumentParser):
    """A parser whose errors are a line, and not the usage and a line."""

    def error(self, message: str) -> NoReturn:
        """Exit with a message."""
        if message.endswith("required: FILE"):
            message += " (before options that take several names, such as --columns)"
        self.exit(FAILED, f"{self.prog}: error: {message}; {self.prog} --help lists the options\n")


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The options of a command, which is None where none was asked for."""
    parser = Parser(
        prog="muhat",
        description="Compare tables, with kernel means that improve on the empirical average.",
        epilog=_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"muhat {version('muhat')}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    _add_compare(commands.add_parser("compare", help=_COMPARE, description=_COMPARE_MORE).add_argument)
    options, unknown = parser.parse_known_args(arguments)
    if unknown:
        commands.choices.get(options.command, parser).error(f"unrecognized arguments: {' '.join(unknown)}")
    if options.command is None:
        parser.print_help()
    return options


def _add_compare(add: Callable[..., argparse.Action]) -> None:
    share = _value(_effect, lambda found: 0.0 <= found <= 1.0, "a share, such as 5% or 0.05")
    level = _value(float, lambda found: 0.0 < found < 1.0, "a number between 0 and 1")
    add("files", nargs=2, metavar="FILE")
    add("--at-least", type=share, default=0.0, metavar="D", help="differ only if an effect exceeds D, such as 5%%")
    add("--level", type=level, default=0.05, metavar="P", help="p-value of a finding; default 0.05")
    add("--strata", metavar="NAME", help="compare rows within the values of this column only")
    add("--clusters", metavar="NAME", help="rows with one value of this column, such as week, change sides together")
    add("--resamples", type=_whole(1), metavar="B", help="random splits of the rows; default 999, or 3 / level")
    add("--strict", action="store_true", help="exit code 2 where a column could not be compared, as in one file only")
    add("--json", action="store_true", help="print JSON in place of text")
    add("--html", metavar="FILE", help="also write a page with pictures")
    add("--seed", type=_whole(0), default=0, metavar="S", help="seed of all random numbers; default 0")
    add("--columns", nargs="+", metavar="NAME", help="columns to use, by name or pattern (price_*)")
    add("--exclude", nargs="+", metavar="NAME", help="columns to leave out, by name or pattern")
    add("--categorical", nargs="+", metavar="NAME", help="columns of numbers that are categories")
    add("--missing", nargs="+", default=(), metavar="MARK", help="further marks of missing values, such as n.d.")
    what = "separates cells of CSV, such as '|', or tab; default: look at the first lines"
    signs = {"tab": "\t", "\\t": "\t"}
    sign = _value(lambda text: signs.get(text, text), _is_delimiter, "one sign, such as ';' or '|', or the word tab")
    add("--delimiter", type=sign, metavar="D", help=what)
    add("--header", action=argparse.BooleanOptionalAction, help="the first row holds names; default: look at it")


def _value(convert: Callable[[str], Any], valid: Callable[[Any], bool], wanted: str) -> Callable[[str], Any]:
    def value(text: str) -> Any:
        with suppress(ValueError):
            found = convert(text)
            if valid(found):
                return found
        raise argparse.ArgumentTypeError(f"{text!r} must be {wanted}")

    return value


def _whole(low: int) -> Callable[[str], int]:
    return _value(int, lambda found: found >= low, f"a whole number, {low} or more")


def _effect(text: str) -> float:
    """A share, such as 0.05 or 5%."""
    plain = text.strip()
    return float(plain.removesuffix("%")) / (100.0 if plain.endswith("%") else 1.0)


def _is_delimiter(sign: str) -> bool:
    return len(sign) == 1 and sign.isascii() and not sign.isalnum() and sign not in "\"'.+-\r\n"


def check_target(option: str, target: str | None, tables: Sequence[str]) -> None:
    """Say before the work what would fail after it, and let no table be written over."""
    if target is None:
        return
    path = Path(target)
    if any(Path(table).exists() and path.exists() and path.samefile(table) for table in tables):
        raise ValueError(f"--{option} {target} would write over the table; name another file")
    if path.is_dir() or not path.parent.is_dir():
        raise ValueError(f"--{option} {target} must be a file in a folder that exists")


def write_text(option: str, target: str | None, text: Callable[[], str]) -> None:
    """Write a file whole where one is asked for, or say why not."""
    if target is None:
        return
    try:
        content = text().encode()
        with whole_file(Path(target)) as file:
            file.write(content)
    except OSError as error:
        raise ValueError(f"--{option} {target} cannot be written: {error.strerror or error}") from error
