"""``muhat compare``: the comparison of two files as text, JSON, a page or a JUnit report, and its exit code."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

from muhat._support.progress import printable, printable_json, repeated
from muhat.apps.cli.options import as_options, check_target, write_text
from muhat.apps.compare.html_report import page
from muhat.apps.compare.result import ColumnResult, Comparison
from muhat.apps.compare.text_report import listed, summary, with_effect
from muhat.apps.compare.two_tables import compare
from muhat.kernels.base import Kernel
from muhat.kernels.radial import Gaussian, Laplace

KERNELS: dict[str, Kernel | None] = {"auto": None, "gaussian": Gaussian(), "laplace": Laplace()}

SAME, DIFFERENT = 0, 1
"""Exit codes, as ``diff`` has them."""


_PARAMETERS = ("at_least", "level", "columns", "exclude", "strata", "categorical", "missing", "header", "delimiter")


@repeated()
def compare_tables(options: Any) -> int:
    """Compare two files; 0 if no difference was found, 1 if one was. See ``muhat compare --help``."""
    for option in ("html", "junit"):
        check_target(option, getattr(options, option), options.files)
    result = compare(
        options.files[0],
        options.files[1],
        kernel=KERNELS[options.kernel],
        n_resamples=options.resamples,
        seconds=options.seconds,
        rows=options.rows,
        random_state=options.seed,
        **{name: getattr(options, name) for name in _PARAMETERS},
    )
    result = replace(result, notes=tuple(map(as_options, result.notes)))
    write_text("html", options.html, lambda: page(result))
    write_text("junit", options.junit, lambda: junit(result))
    print(printable_json(result.to_dict(), indent=1) if options.json else result)
    if options.strict and result.not_compared:
        names = listed([column.name for column in result.not_compared])
        raise ValueError(f"--strict: {names} could not be compared; mend the files, or leave columns out by --exclude")
    return DIFFERENT if result.differs else SAME


def junit(result: Comparison) -> str:
    """The comparison as a JUnit report: a case for each column, and one for pairs and all columns together.

    A column that could not be compared is a case that was skipped.
    """
    failures = {column.name: _failure(column) for column in result.columns if result.is_named(column)}
    whole = bool(result.named(result.pairs, exceeding=True)) or (result.differs and not failures)
    counts = {
        "tests": len(result.columns) + len(result.not_compared) + 1,
        "failures": len(failures) + whole,
        "skipped": len(result.not_compared),
    }
    name = printable(f"muhat compare {' '.join(result.names)}")
    suite = ElementTree.Element("testsuite", {"name": name, **{key: str(count) for key, count in counts.items()}})

    def add_case(group: str, name: str, outcome: str = "", message: str = "") -> None:
        case = ElementTree.SubElement(suite, "testcase", classname=group, name=printable(name))
        if outcome:
            ElementTree.SubElement(case, outcome, message=printable(message))

    for column in result.columns:
        failure = failures.get(column.name, "")
        add_case("columns", column.name, "failure" if failure else "", failure)
    for lost in result.not_compared:
        add_case("columns", lost.name, "skipped", f"could not be compared: {lost.reason}")
    add_case("tables", "pairs and all columns together", "failure" if whole else "", " ".join(summary(result)))
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _failure(column: ColumnResult) -> str:
    missing = (
        f"; missing in {column.missing.shares[0]:.1%} and {column.missing.shares[1]:.1%}" if column.missing else ""
    )
    return f"{with_effect(column)}{missing}"
