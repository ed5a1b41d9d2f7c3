"""One self-contained page for a comparison or a description."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from muhat.files.compare import ColumnDifference, Comparison
from muhat.files.describe import Description
from muhat.files.histograms import Histogram, histogram
from muhat.files.pictures import comparison_pictures, description_pictures
from muhat.files.words import (
    SUMMARY_HEAD,
    comparison_summary,
    correlations,
    description_summary,
    in_words,
    pvalue_text,
    reason_text,
    shown_value,
    summary_cells,
)
from muhat.inference.findings import percent
from muhat.progress import printable
from muhat.report.page import Picture, Table, page_template

MOST_COLUMNS = 60
_CELLS = 8


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
    gaps = any(column.missing_pvalue is not None for column in comparison.columns)
    heads = ["column", "size", "p (adjusted)", *(["missing"] if gaps else []), a, b]
    columns = [_column(comparison, column, gaps) for column in comparison.columns[:MOST_COLUMNS]]
    more = len(comparison.columns) - len(columns)
    tables = []
    if comparison.found_pairs:
        tables.append(_pairs(comparison))
    if comparison.rows_stand_out:
        tables += [_unlike(comparison, which) for which in (0, 1)]
    title = f"{a} and {b}" + (" differ" if comparison.differs else ": no difference found")
    if comparison.not_compared and not comparison.differs:
        title += " in the columns that could be compared"
    pictures = comparison_pictures(comparison)
    return render(
        Page("compare", title, [answer, *rest], [a, b], heads, columns, more, tables, pictures, comparison.notes)
    )


def _column(comparison: Comparison, column: ColumnDifference, gaps: bool) -> ColumnRow:
    summary = column.summary
    missing = " → ".join(percent(share) for share in summary.missing_shares) if any(summary.missing) else ""
    cells = [column.name, percent(column.size), pvalue_text(column.adjusted_pvalue), *([missing] if gaps else [])]
    found = column in comparison.found or column in comparison.found_missing
    return ColumnRow([*cells, in_words(summary, 0), in_words(summary, 1)], found, histogram(summary))


def _pairs(comparison: Comparison) -> Table:
    rows = [[*pair.names, correlations(pair), pvalue_text(pair.adjusted_pvalue)] for pair in comparison.found_pairs]
    heads = ["column", "column", "correlation of ranks", "p (adjusted)"]
    return Table("Pairs of columns whose dependence changed", heads, rows[:MOST_COLUMNS])


def _unlike(comparison: Comparison, which: int) -> Table:
    sample, other = comparison.samples[which], comparison.names[1 - which]
    rows = [
        [f"{sample.places[i]}", "; ".join(reason_text(reason, other) for reason in because) or "all columns together"]
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
        [
            f"{sample.places[i]}",
            float(description.typicality[i]),
            *map(shown_value, list(sample.row(int(i)).values())[:_CELLS]),
        ]
        for i in chosen
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
                Table("What shrinkage would save: an estimate, by leave-one-out", saved, estimators),
                Table("Least typical rows", [sample.place, "typicality", *sample.names[:_CELLS]], typical),
            ],
            description_pictures(description),
            description.notes,
        )
    )
