"""``muhat compare``: the comparison of two files as text, JSON or a page, and its exit code."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from muhat._support.progress import printable_json, repeated
from muhat.apps.cli.options import check_target, write_text
from muhat.apps.compare.html_report import page
from muhat.apps.compare.text_report import listed
from muhat.apps.compare.two_tables import compare
from muhat.apps.files.told import in_shell

SAME, DIFFERENT = 0, 1
"""Exit codes, as ``diff`` has them."""

_PARAMETERS = "at_least level columns exclude strata clusters categorical missing header delimiter"


@repeated()
def compare_tables(options: Any) -> int:
    """Compare two files; 0 if no difference was found, 1 if one was. See ``muhat compare --help``."""
    check_target("html", options.html, options.files)
    given: dict[str, Any] = {name: getattr(options, name) for name in _PARAMETERS.split()}
    result = compare(
        options.files[0], options.files[1], **given, n_resamples=options.resamples, random_state=options.seed
    )
    result = replace(result, notes=tuple(map(in_shell, result.notes)))
    write_text("html", options.html, lambda: page(result.report))
    print(printable_json(result.to_dict(), indent=1) if options.json else result)
    if options.strict and result.not_compared:
        names = listed([column.name for column in result.not_compared])
        raise ValueError(f"--strict: {names} could not be compared; mend the files, or leave columns out by --exclude")
    return DIFFERENT if result.differs else SAME
