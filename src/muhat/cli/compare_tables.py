"""``muhat compare``: the comparison of two files as text, JSON, a page or a JUnit report, and its exit code."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

from muhat.cli.output import check_target, write_text
from muhat.comparison.html_report import page
from muhat.comparison.result import ColumnResult, Comparison
from muhat.comparison.sources import listed
from muhat.comparison.text_report import summary, with_effect
from muhat.comparison.two_tables import compare
from muhat.kernels.base import Kernel
from muhat.kernels.radial import Gaussian, Laplace
from muhat.progress import printable, printable_json, repeated

KERNELS: dict[str, Kernel | None] = {"auto": None, "gaussian": Gaussian(), "laplace": Laplace()}

SAME, DIFFERENT = 0, 1
"""Exit codes, as ``diff`` has them."""


@repeated()
def compare_tables(options: Any) -> int:
    """Compare two files; 0 if no difference was found, 1 if one was. See ``muhat compare --help``."""
    for option in ("html", "junit"):
        check_target(option, getattr(options, option), options.files)
    given = (
        "at_least",
        "level",
        "columns",
        "exclude",
        "strata",
        "categorical",
        "header",
        "delimiter",
        "seconds",
        "rows",
    )
    result = compare(
        options.files[0],
        options.files[1],
        kernel=KERNELS[options.kernel],
        n_resamples=options.resamples,
        missing=options.missing or (),
        random_state=options.seed,
        **{name: getattr(options, name) for name in given},
    )
    if options.html is not None:
        write_text("html", options.html, page(result))
    if options.junit is not None:
        write_text("junit", options.junit, junit(result))
    print(printable_json(result.to_dict(), indent=1) if options.json else result)
    if options.strict and result.not_compared:
        names = listed([column.name for column in result.not_compared])
        raise ValueError(f"--strict: {names} could not be compared; mend the files, or leave columns out by --exclude")
    return DIFFERENT if result.differs else SAME


def junit(result: Comparison) -> str:
    """The comparison as a JUnit report: a case for each column, and one for pairs and all columns together."""
    name = f"muhat compare {' '.join(result.names)}"
    failed = [column for column in result.columns if result.is_named(column)]
    pairs = result.named(result.pairs, exceeding=True)
    whole = result.differs and not failed
    suite = ElementTree.Element(
        "testsuite",
        name=printable(name),
        tests=str(len(result.columns) + 1),
        failures=str(len(failed) + bool(whole or pairs)),
    )
    for column in result.columns:
        case = ElementTree.SubElement(suite, "testcase", classname="columns", name=printable(column.name))
        if column in failed:
            ElementTree.SubElement(case, "failure", message=printable(_failure(column)))
    case = ElementTree.SubElement(suite, "testcase", classname="tables", name="pairs and all columns together")
    if whole or pairs:
        ElementTree.SubElement(case, "failure", message=printable(" ".join(summary(result))))
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _failure(column: ColumnResult) -> str:
    missing = (
        f"; missing in {column.missing.shares[0]:.1%} and {column.missing.shares[1]:.1%}" if column.missing else ""
    )
    return f"{with_effect(column)}{missing}"
