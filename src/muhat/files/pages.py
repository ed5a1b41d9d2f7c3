"""One self-contained page for a comparison or a description, in the dress of the reproduction report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from muhat.files.compare import Comparison
from muhat.files.describe import Description
from muhat.files.pictures import comparison_pictures, description_pictures
from muhat.files.samples import Sample
from muhat.files.words import comparison_summary, description_summary, percent, seen_by
from muhat.report.page import Picture, Table, page_template
from muhat.types import Array

_CELLS = 8


@dataclass(frozen=True)
class Page:
    """What the template shows: the answer first, then facts, pictures, tables and notes."""

    command: str
    title: str
    summary: Sequence[str]
    facts: dict[str, str]
    pictures: Sequence[Picture]
    tables: Sequence[Table]
    notes: Sequence[str]


def render(page: Page) -> str:
    """The page as text."""
    return page_template("page.html", "muhat.files").render(page=page, maker=page.command)


def comparison_page(comparison: Comparison, raw: bool) -> str:
    """The page of ``muhat compare --html``."""
    a, b = comparison.samples
    test = comparison.test
    facts = {
        f"rows of {a.name}": f"{len(a.rows):,} of {a.total:,}",
        f"rows of {b.name}": f"{len(b.rows):,} of {b.total:,}",
        "p-value": f"{test.pvalue:.3g}",
        "level": f"{comparison.level:g}",
        "MMD": f"{np.sqrt(max(test.statistic, 0.0)):.3g}",
        "relative size": percent(comparison.relative_size),
        "resamples": f"{len(test.null_distribution):,}",
    }
    tables = [_columns(comparison)]
    if comparison.differs:
        for which, sample in enumerate((a, b)):
            caption = f"Rows of {sample.name} most unlike {comparison.samples[1 - which].name}"
            rows = comparison.typical[which]
            tables.append(_rows(caption, sample, rows, comparison.witnesses(which), "witness"))
    return render(
        Page(
            "compare",
            f"{a.name} and {b.name}" + (" differ" if comparison.differs else ": no difference found"),
            comparison_summary(comparison),
            facts,
            comparison_pictures(comparison),
            tables,
            [*comparison.notes, seen_by(test.kernel, raw)],
        )
    )


def description_page(description: Description, raw: bool) -> str:
    """The page of ``muhat describe --html``."""
    sample = description.sample
    facts = {
        "rows": f"{len(sample.rows):,} of {sample.total:,}",
        "columns": f"{len(sample.columns)}",
        "repeated rows": f"{description.duplicates:,}",
        "rows with missing values": f"{sample.dropped:,}",
        "effective rank": f"{description.effective_rank:.1f} of {len(sample.rows) - 1}",
    }
    estimators = [
        [choice.name, choice.estimator, percent(choice.gain), choice.choice] for choice in description.estimators
    ]
    columns = [[c.name, c.mean, c.standard_deviation, c.smallest, c.largest] for c in description.columns]
    chosen = description.least_typical
    heads = ["estimator", "class", "squared error saved", "chosen by leave-one-out"]
    return render(
        Page(
            "describe",
            sample.name,
            description_summary(description),
            facts,
            description_pictures(description),
            [
                Table("What shrinkage would save: an estimate, by leave-one-out", heads, estimators),
                Table("Columns", ["column", "mean", "standard deviation", "smallest", "largest"], columns),
                _rows("Least typical rows", sample, chosen, description.typicality[chosen], "typicality"),
            ],
            [*description.notes, seen_by(description.kernel, raw)],
        )
    )


def _columns(comparison: Comparison) -> Table:
    a, b = comparison.samples
    rows = [
        [
            column.name,
            percent(column.relative_size),
            column.adjusted_pvalue,
            *(f"{column.means[i]:.4g} ± {column.standard_deviations[i]:.4g}".replace("-", "−") for i in (0, 1)),
        ]
        for column in comparison.columns
    ]
    stressed = frozenset((i, 0) for i, column in enumerate(comparison.columns) if column in comparison.found)
    heads = ["column", "relative size", "p (Holm)", f"{a.name}, mean ± sd", f"{b.name}, mean ± sd"]
    return Table("Column by column; bold: found at the level", heads, rows, stressed)


def _rows(caption: str, sample: Sample, chosen: NDArray[np.int64], values: Array, what: str) -> Table:
    rows = [
        [f"{sample.lines[i]}", float(value), *map(float, sample.rows[i][:_CELLS])]
        for i, value in zip(chosen, values, strict=True)
    ]
    return Table(caption, [sample.place, what, *sample.columns[:_CELLS]], rows)
