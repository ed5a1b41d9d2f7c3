"""Command ``python -m paper``: the experiments and their report, verdicts of a finished run, and data to make."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence

from paper.experiment import Plan
from paper.prepare import prepare_hep, prepare_scenes
from paper.registry import EXPERIMENTS
from paper.reproduce import reproduce, show_claims

_EXAMPLES = """examples:
  python -m paper --quick                        every experiment in a reduced form, in minutes, without data of yours
  python -m paper figure2 --quick                one experiment
  python -m paper --data DIR --out report        everything; DIR holds uci/ and groups/
  python -m paper claims --out docs/reproduction the verdicts of a finished run
  python -m paper prepare hep --from FILE        the bags of table 2, from public data"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code: 2 for a wrong call or an unusable file, 130 if interrupted."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if given[:1] == ["claims"]:
            return _claims(given[1:])
        if given[:1] == ["prepare"]:
            return _prepare(given[1:])
        return _experiments(given)
    except KeyboardInterrupt:
        return 130
    except (ValueError, OSError) as error:
        print(f"python -m paper: {error}", file=sys.stderr)
        return 2


def _experiments(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        "python -m paper",
        description="Run the paper's experiments, show our numbers beside the paper's, and judge its claims. Every "
        "finished cell is stored at once: interrupt the command as you like, the same command goes on.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("names", nargs="*", metavar="NAME", help=f"{', '.join(EXPERIMENTS)}; default: all of them")
    add("--quick", action="store_true", help="a reduced form of each, in minutes, without a data folder")
    add("--out", default="report", metavar="DIR", help="folder of the report; default: report")
    add("--data", metavar="DIR", help="folder with uci/ and groups/; default: $MUHAT_DATA")
    add("--jobs", type=_whole(1), default=os.cpu_count() or 1, metavar="N", help="processes; default: one per core")
    add("--seed", type=_whole(0), default=0, metavar="S", help="seed of all random numbers; default 0")
    add("--repetitions", type=_whole(1), metavar="R", help="repetitions of each experiment; default: its own")
    options = parser.parse_args(arguments)
    plan = Plan(options.quick, options.seed, options.repetitions)
    return reproduce(options.names, plan, options.out, options.data, options.jobs)


def _claims(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser("python -m paper claims", description="Print the verdicts of a finished run.")
    parser.add_argument("--out", default="report", metavar="DIR", help="folder of the report; default: report")
    return show_claims(parser.parse_args(arguments).out)


def _prepare(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        "python -m paper prepare",
        description="Make the data that table 2 needs from public sources: scenes from a folder of images, one folder "
        "per class; hep from atlas-higgs-challenge-2014-v2.csv of the CERN Open Data portal.",
    )
    add = parser.add_argument
    add("name", choices=("scenes", "scenes4", "hep"), help="scenes4 keeps the four indoor classes")
    add("--from", dest="source", required=True, metavar="PATH", help="folder of images, or CSV file")
    add("--out", default="data", metavar="DIR", help="data folder, for --data; default: data")
    add("--seed", type=_whole(0), default=0, metavar="S", help="draws the patches; default 0")
    options = parser.parse_args(arguments)
    if options.name == "hep":
        path = prepare_hep(options.source, options.out)
    else:
        path = prepare_scenes(options.source, options.out, indoor=options.name == "scenes4", seed=options.seed)
    print(f"{path} is written; pass --data {options.out} to python -m paper")
    return 0


def _whole(low: int) -> Callable[[str], int]:
    def value(text: str) -> int:
        if not text.isdecimal() or int(text) < low:
            raise argparse.ArgumentTypeError(f"{text!r} must be a whole number, {low} or more")
        return int(text)

    return value


if __name__ == "__main__":
    sys.exit(main())
