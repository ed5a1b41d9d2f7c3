"""What was found, in plain words and small tables for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from shutil import get_terminal_size
from textwrap import wrap

import numpy as np
from numpy.typing import NDArray

from muhat.files.compare import Comparison
from muhat.files.describe import Description
from muhat.files.samples import Sample, kernel_json
from muhat.kernels.base import Kernel
from muhat.types import Array

_COLUMNS = 12
_WIDEST = 24
_CELLS = 5


def comparison_summary(comparison: Comparison) -> list[str]:
    """The answer, its size, and the columns, a sentence or two each."""
    (a, b), test = comparison.samples, comparison.test
    splits = len(test.null_distribution)
    rows = f"{len(a.rows):,} and {len(b.rows):,} rows"
    if not comparison.differs:
        return [
            f"No difference found between {a.name} and {b.name} (p = {test.pvalue:.3g}, level {comparison.level:g}).",
            f"That is no proof that there is none: with {rows} a small one may go unseen.",
        ]
    chance = round(test.pvalue * (splits + 1))
    return [
        f"{a.name} and {b.name} differ (p = {test.pvalue:.3g}, level {comparison.level:g}): of {splits + 1:,} ways to "
        f"split the {rows} in two, {'only theirs is' if chance == 1 else f'{chance} are'} as different.",
        f"The difference makes up {percent(comparison.relative_size)} of the squared distance between a row of one "
        "and a row of the other (0 %: none, 100 %: nothing in common).",
        _which_columns(comparison),
    ]


def _which_columns(comparison: Comparison) -> str:
    found, together = comparison.found, "It shows in all columns together."
    if not found:
        return f"No column differs by itself. {together}" if len(comparison.columns) > 1 else together
    names = ", ".join(f"{column.name} ({percent(column.relative_size)})" for column in found[:_CELLS])
    more = f" and {len(found) - _CELLS} more" if len(found) > _CELLS else ""
    return f"By themselves {len(found)} of {len(comparison.columns)} columns differ: {names}{more}."


def percent(share: float) -> str:
    """A share in words.

    >>> percent(0.1234), percent(0.0), percent(0.0004), percent(0.996)
    ('12 %', '0 %', '0.04 %', '99.6 %')
    """
    shown = f"{100 * share:.1f}" if share > 0.99 else f"{100 * share:.2g}"
    return f"{shown} %"


def description_summary(description: Description) -> list[str]:
    """What the file holds, and the advice."""
    sample = description.sample
    columns = f"{len(sample.columns)} column{'' if len(sample.columns) == 1 else 's'}"
    repeat = "repeats" if description.duplicates == 1 else "repeat"
    doubles = f"; {description.duplicates:,} {repeat} another" if description.duplicates else ""
    return [f"{sample.name}: {len(sample.rows):,} rows of {columns}{doubles}.", f"Use {description.advice}"]


def comparison_text(comparison: Comparison, raw: bool) -> str:
    """All of it for a terminal."""
    a, b = comparison.samples
    parts = [paragraph(comparison_summary(comparison)), _columns_table(comparison)]
    if comparison.differs:
        for which, sample in enumerate((a, b)):
            other = comparison.samples[1 - which].name
            title = f"Rows of {sample.name} most unlike {other}"
            parts.append(_rows_table(title, sample, comparison.typical[which], comparison.witnesses(which), "witness"))
    parts.append(_notes([*comparison.notes, seen_by(comparison.test.kernel, raw)]))
    return "\n\n".join(parts)


def description_text(description: Description, raw: bool) -> str:
    """All of it for a terminal."""
    sample = description.sample
    head = ("estimator", "squared error saved", "chosen by leave-one-out")
    rows = [(choice.name, f"{percent(choice.gain)}", choice.choice) for choice in description.estimators]
    ranks = f"Effective rank of the centred Gram matrix: {description.effective_rank:.1f} of {len(sample.rows) - 1}."
    return "\n\n".join(
        [
            paragraph(description_summary(description)),
            table("What shrinkage would save (leave-one-out, an estimate)", head, rows, left=(0, 2)),
            _summaries(description),
            _rows_table(
                "Least typical rows",
                sample,
                description.least_typical,
                description.typicality[description.least_typical],
                "typicality",
            ),
            paragraph([ranks, "Typicality: the mean at a row, relative to its median over the rows."]),
            _notes([*description.notes, seen_by(description.kernel, raw)]),
        ]
    )


def seen_by(kernel: Kernel, raw: bool) -> str:
    """The kernel, and what was done to the columns before."""
    name, bandwidth = kernel_json(kernel).values()
    scale = "as they are" if raw else "standardised to mean 0 and standard deviation 1 (--raw leaves them as they are)"
    return f"{name.capitalize()} kernel of bandwidth {bandwidth:.3g}; columns {scale}"


def _columns_table(comparison: Comparison) -> str:
    a, b = comparison.samples
    rows = [
        (
            f"{'*' if column.adjusted_pvalue <= comparison.level else ' '} {column.name}",
            percent(column.relative_size),
            f"{column.adjusted_pvalue:.3g}",
            *(f"{column.means[i]:.4g} ± {column.standard_deviations[i]:.4g}" for i in (0, 1)),
        )
        for column in comparison.columns
    ]
    head = ("column", "difference", "p (Holm)", f"{a.name}", f"{b.name}")
    return table("Column by column, mean ± standard deviation", head, rows)


def _summaries(description: Description) -> str:
    rows = [
        (c.name, *(f"{value:.4g}" for value in (c.mean, c.standard_deviation, c.smallest, c.largest)))
        for c in description.columns
    ]
    return table("Columns", ("column", "mean", "standard deviation", "smallest", "largest"), rows)


def _rows_table(title: str, sample: Sample, chosen: NDArray[np.int64], values: Array, what: str) -> str:
    head = (sample.place, what, *sample.columns[:_CELLS])
    rows = [
        (f"{sample.lines[i]:,}", f"{value:.3g}", *(f"{cell:.4g}" for cell in sample.rows[i][:_CELLS]))
        for i, value in zip(chosen, values, strict=True)
    ]
    return table(title, head, rows)


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int] = (0,)) -> str:
    """Columns of equal width, those not ``left`` at the right; long names and long tables are cut.

    >>> print(table("Fruit", ("name", "grams"), [("apple", "180"), ("fig", "40")]))
    Fruit
      name   grams
      apple    180
      fig       40
    """
    cut = [[_cut(cell) for cell in cells[:-1]] + [cells[-1]] for cells in ([head, *rows[:_COLUMNS]])]
    widths = [max(len(row[j]) for row in cut) for j in range(len(head))]
    lines = [
        "  ".join(f"{cell:{'<' if j in left else '>'}{widths[j]}}" for j, cell in enumerate(row)).rstrip()
        for row in cut
    ]
    more = [f"… and {len(rows) - _COLUMNS} more (--json has all)"] if len(rows) > _COLUMNS else []
    return "\n".join([title, *(f"  {line}" for line in [*lines, *more])])


def _cut(cell: str) -> str:
    return cell if len(cell) <= _WIDEST else f"{cell[: _WIDEST - 1]}…"


def paragraph(sentences: Sequence[str]) -> str:
    """Sentences, a line or more each, as wide as the terminal but no wider than is easy to read."""
    width = max(40, min(100, get_terminal_size().columns))
    return "\n".join(line for sentence in sentences for line in wrap(sentence, width))


def _notes(notes: Sequence[str]) -> str:
    return "\n".join(["Notes", *(f"  {line}" for note in notes for line in _hanging(note))])


def _hanging(note: str) -> list[str]:
    width = max(40, min(100, get_terminal_size().columns)) - 2
    return wrap(f"- {note}", width, subsequent_indent="  ")
