"""The command ``muhat``. Each subcommand loads what it needs when it is called."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib.metadata import version
from io import TextIOWrapper

FAILED = 1
MISUSED = 2
INTERRUPTED = 130  # what shells expect of a program that SIGINT ended


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code: 0, 1 for a failure, 2 for a wrong call, 130 if interrupted."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # not every terminal has our symbols
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except ImportError as error:
        print(f'muhat {options.command} needs {error.name}; pip install "muhat[reproduce]"', file=sys.stderr)
    except (ValueError, OSError) as error:
        print(f"muhat {options.command}: {error}", file=sys.stderr)
    except KeyboardInterrupt:
        return INTERRUPTED
    return FAILED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="muhat", description="Kernel means that beat the plain average.")
    parser.add_argument("--version", action="version", version=f"muhat {version('muhat')}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_reproduce(commands)
    _add_claims(commands)
    return parser


def _add_reproduce(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
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
        "--jobs", type=_positive, default=os.cpu_count() or 1, metavar="N", help="processes; default: one a core"
    )
    reproduce.add_argument(
        "--seed", type=_natural, default=0, metavar="S", help="seed of all random numbers; default 0"
    )
    reproduce.add_argument(
        "--repetitions", type=_positive, metavar="R", help="repetitions of each experiment; default: its own"
    )
    reproduce.add_argument("--dask", metavar="ADDRESS", help="run on the Dask cluster of this scheduler")
    reproduce.set_defaults(run=_reproduce)


def _add_claims(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    claims = commands.add_parser("claims", help="the claims of the paper and the verdicts of a finished run")
    _add_out(claims)
    claims.set_defaults(run=_claims)


def _add_out(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", default="report", metavar="DIR", help="folder of the report; default: report")


def _reproduce(options: argparse.Namespace) -> int:
    from muhat.reproduce.command import reproduce
    from muhat.reproduce.experiment import Plan

    plan = Plan(options.quick, options.seed, options.repetitions)
    return reproduce(options.names, plan, options.out, options.data, options.jobs, options.dask)


def _claims(options: argparse.Namespace) -> int:
    from muhat.reproduce.command import show_claims

    return show_claims(options.out)


def _positive(text: str) -> int:
    return _whole(text, 1)


def _natural(text: str) -> int:
    return _whole(text, 0)


def _whole(text: str, low: int) -> int:
    if not text.isdecimal() or int(text) < low:
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number, {low} or more")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
