"""HTML page of a comparison or a description."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from muhat.files.compare import Comparison
from muhat.files.describe import Description
from muhat.files.histograms import Histogram, histogram
from muhat.files.pictures import comparison_pictures, description_pictures
from muhat.files.words import (
    SUMMARY_HEAD,
    columns_table,
    comparison_summary,
    correlations,
    description_summary,
    pvalue_text,
    reasons_text,
    summary_cells,
)
from muhat.inference.results import percent
from muhat.progress import printable
from muhat.report.page import Picture, Table, page_template

MOST_COLUMNS = 60


@dataclass(frozen=True)
class ColumnRow:
    """A row of the table of columns: cells, whether the column was found to differ, and its histogram."""

    cells: Sequence[str]
    found: bool
    histogram: Histogram


@dataclass(frozen=True)
class Page:
    """What the template shows: the answer first, then columns, further tables, pictures and notes."""

    command: str
    title: str
    summary: Sequence[str]
    files: Sequence[str]
    heads: Sequence[str]
    columns: Sequence[ColumnRow]
    more_columns: int
    tables: Sequence[Table]
    pictures: Sequence[Picture]
    notes: Sequence[str]


def render(page: Page) -> str:
    """The page as text."""
    page = replace(page, notes=[printable(note) for note in page.notes])
    return page_template("page.html", "muhat.files").render(page=page, maker=page.command)


def comparison_page(comparison: Comparison) -> str:
    """The page of ``muhat compare --html``."""
    a, b = comparison.names
    answer, *rest = comparison_summary(comparison)
    heads, rows = columns_table(comparison)
    shown = zip(comparison.columns[:MOST_COLUMNS], rows, strict=False)
    columns = [ColumnRow(row, comparison.is_found(column), histogram(column.summary)) for column, row in shown]
    more = len(comparison.columns) - len(columns)
    tables = []
    if comparison.found_pairs:
        tables.append(_pairs(comparison))
    if comparison.rows_stand_out:
        tables += [_unlike(comparison, which) for which in (0, 1)]
    answer_in_short = " are identical" if comparison.identical else ": no difference found"
    title = f"{a} and {b}" + (" differ" if comparison.differs else answer_in_short)
    if comparison.not_compared and not comparison.differs:
        title += " in the columns that could be compared"
    pictures = comparison_pictures(comparison)
    return render(
        Page("compare", title, [answer, *rest], [a, b], heads, columns, more, tables, pictures, comparison.notes)
    )


def _pairs(comparison: Comparison) -> Table:
    rows = [[*pair.names, correlations(pair), pvalue_text(pair.adjusted_pvalue)] for pair in comparison.found_pairs]
    heads = ["column", "column", "correlation of ranks", "p (adjusted)"]
    return Table("Pairs of columns whose dependence changed", heads, rows[:MOST_COLUMNS])


def _unlike(comparison: Comparison, which: int) -> Table:
    sample, other = comparison.samples[which], comparison.names[1 - which]
    rows = [
        [f"{sample.places[i]}", reasons_text(because, "there")]
        for i, because in zip(comparison.typical[which], comparison.reasons(which), strict=True)
    ]
    heads = [sample.place, f"values that are rare in {other}"]
    return Table(f"Rows of {comparison.names[which]} most unlike {other}", heads, rows)


def description_page(description: Description) -> str:
    """The page of ``muhat describe --html``."""
    sample, chosen = description.sample, description.least_typical
    shown = description.columns[:MOST_COLUMNS]
    columns = [ColumnRow(summary_cells(summary), False, histogram(summary)) for summary in shown]
    estimators = [
        [choice.name, choice.estimator, percent(choice.gain), choice.choice] for choice in description.estimators
    ]
    typical = [
        [f"{sample.places[i]}", float(description.typicality[i]), reasons_text(because, "")]
        for i, because in zip(chosen, description.reasons(), strict=True)
    ]
    saved = ["estimator", "class", "squared error saved", "chosen by leave-one-out"]
    return render(
        Page(
            "describe",
            description.name,
            description_summary(description),
            [description.name],
            SUMMARY_HEAD,
            columns,
            len(description.columns) - len(shown),
            [
                Table("Least typical rows, and why", [sample.place, "typicality", "rare values"], typical),
                Table(
                    f"What shrinkage would save: an estimate, by leave-one-out. Use {description.advice}",
                    saved,
                    estimators,
                ),
            ],
            description_pictures(description),
            description.notes,
        )
    )
