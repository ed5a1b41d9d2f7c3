"""Text reports of a comparison and a description for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from shutil import get_terminal_size
from textwrap import wrap
from typing import Any

import numpy as np

from muhat.files.compare import ColumnDifference, Comparison, PairDifference
from muhat.files.describe import Description
from muhat.files.reasons import Reason
from muhat.files.rows import shown_date
from muhat.files.summaries import Summary
from muhat.inference.results import percent
from muhat.progress import printable

_ROWS = 12
_WIDEST = 24
_NAMED = 5


def comparison_summary(comparison: Comparison) -> list[str]:
    """The answer, what shows it, and the rows that it rests on, a sentence or two each."""
    a, b = comparison.names
    found = f"{equation(comparison.pvalue)}, level {comparison.level:g}"
    if comparison.identical:
        rows = plural(comparison.totals[0], "row")
        return [f"{a} and {b} are identical: {rows} hold the same values in every column that was compared."]
    if not comparison.differs:
        where = " in the columns that could be compared" if comparison.not_compared else ""
        return [
            f"No difference found between {a} and {b}{where} ({found}).",
            *not_compared(comparison),
            _rows_used(comparison),
            "This does not prove that there is none: a small one may go unseen.",
        ]
    sentences = [f"{a} and {b} differ ({found}).", *not_compared(comparison), _which_columns(comparison)]
    sentences += [_missing(column) for column in comparison.found_missing[:_NAMED]]
    if comparison.found_pairs:
        sentences.append(_which_pairs(comparison))
    if comparison.test.pvalue <= comparison.level:
        sentences.append(_together(comparison))
    return [*sentences, _rows_used(comparison)]


def not_compared(comparison: Comparison) -> list[str]:
    """A sentence for each column that could not be compared; the first of many."""
    left = comparison.not_compared
    more = [f"{plural(len(left) - _NAMED, 'more column')} could not be compared: --json has all."]
    found = [f"{column.name!r} could not be compared: {column.reason}." for column in left[:_NAMED]]
    return found + (more if len(left) > _NAMED else [])


def _which_columns(comparison: Comparison) -> str:
    found, count = comparison.found, len(comparison.columns)
    if found:
        names = _listed([f"{column.name} ({column.measure} {column.size:.2f})" for column in found])
        of = f"{len(found)} of {plural(count, 'column')}" if count > 1 else "The one column"
        return f"{of} {_verb(len(found))} significantly: {names}."
    if not comparison.columns_can_be_told:
        return "Which columns differ cannot be told with this few rows."
    if comparison.found_missing:
        return "No column differs significantly in its values."
    return "No single column can be named at this level."


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")


def _verb(count: int) -> str:
    return "differs" if count == 1 else "differ"


def plural(count: int, noun: str) -> str:
    """A count with its noun.

    >>> plural(1, "row"), plural(2000, "row")
    ('1 row', '2,000 rows')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _missing(column: ColumnDifference) -> str:
    shares = " and ".join(percent(share) for share in column.summary.missing_shares)
    return f"{column.name} is missing in {shares} of the rows ({equation(column.missing_adjusted_pvalue or 0.0)})."


def _which_pairs(comparison: Comparison) -> str:
    pairs = comparison.found_pairs
    names = _listed([f"{pair.names[0]} and {pair.names[1]} ({correlations(pair)})" for pair in pairs])
    return f"The dependence of {plural(len(pairs), 'pair')} of columns changed: {names}."


def correlations(pair: PairDifference) -> str:
    """The correlations of ranks before and after.

    >>> correlations(PairDifference(("x", "y"), 0.0, 0.0, (0.5, -0.25)))
    '0.50 → −0.25'
    """
    return " → ".join(f"{value:.2f}".replace("-", "−") for value in pair.correlations)


def _together(comparison: Comparison) -> str:
    return f"All columns together differ as well ({equation(comparison.test.pvalue)}): {comparison.together}."


def _rows_used(comparison: Comparison) -> str:
    totals = " and ".join(f"{total:,}" for total in comparison.totals)
    used = [len(sample.points) for sample in comparison.samples]
    if tuple(used) == comparison.totals:
        return f"All {totals} rows were used."
    together = " and ".join(f"{count:,}" for count in used)
    return f"All {totals} rows were used for single columns, and {together} of them for columns together."


def pvalue_text(pvalue: float) -> str:
    """A p-value; below what numbers can hold, a bound.

    >>> pvalue_text(0.0123456), pvalue_text(0.0)
    ('0.0123', '< 1e-300')
    """
    return f"{pvalue:.3g}" if pvalue > 1e-300 else "< 1e-300"


def equation(pvalue: float) -> str:
    """A p-value within a sentence.

    >>> equation(0.0123456), equation(0.0)
    ('p = 0.0123', 'p < 1e-300')
    """
    shown = pvalue_text(pvalue)
    return f"p {shown}" if shown.startswith("<") else f"p = {shown}"


def description_summary(description: Description) -> list[str]:
    """What the file holds, and how many of its rows lie far from the others."""
    repeat = "repeats" if description.duplicates == 1 else "repeat"
    used = len(description.sample.points)
    of_used = "" if used == description.total else f" of {used:,} rows drawn at random"
    doubles = f"; {description.duplicates:,}{of_used} {repeat} another" if description.duplicates else ""
    columns = plural(len(description.columns), "column")
    sentences = [f"{description.name}: {description.total:,} rows of {columns}{doubles}."]
    if description.far:
        sentences.append(
            f"{plural(description.far, 'row')} {'lies' if description.far == 1 else 'lie'} far from the others."
        )
    return sentences


def comparison_text(comparison: Comparison) -> str:
    """All of it for a terminal."""
    parts = [paragraph(comparison_summary(comparison)), _columns_table(comparison)]
    if comparison.differs:
        if comparison.found_pairs:
            parts.append(_pairs_table(comparison))
        if comparison.rows_stand_out:
            parts += [_unlike_table(comparison, which) for which in (0, 1)]
    parts.append(notes_text(comparison.notes))
    return "\n\n".join(part for part in parts if part)


def description_text(description: Description) -> str:
    """All of it for a terminal."""
    sample, chosen = description.sample, description.least_typical
    head = ("estimator", "squared error saved", "chosen by leave-one-out")
    rows = [(choice.name, f"{percent(choice.gain)}", choice.choice) for choice in description.estimators]
    ranks = f"Effective rank of the centred Gram matrix: {description.effective_rank:.1f} of {len(sample.points) - 1}."
    typical = [
        (f"{sample.places[i]:,}", f"{description.typicality[i]:.3g}", reasons_text(because, ""))
        for i, because in zip(chosen, description.reasons(), strict=True)
    ]
    parts = [
        paragraph(description_summary(description)),
        _summaries_table(description.columns),
        table("Least typical rows, and why", (sample.place, "typicality", "rare values"), typical, left=(0, 2)),
        paragraph(["Typicality: the mean at a row, relative to its median over the rows.", ranks]),
        notes_text(description.notes),
        table("What shrinkage would save (leave-one-out, an estimate)", head, rows, left=(0, 2)),
        paragraph([f"Use {description.advice}"]),
    ]
    return "\n\n".join(part for part in parts if part)


def in_words(summary: Summary, which: int) -> str:
    """A column of one table in a few words: mean ± standard deviation, the middle dates, or the commonest values."""
    if not summary.present[which]:
        return "no values"
    if summary.kind == "category":
        shares = summary.counts[which] / summary.present[which]
        first = np.argsort(-summary.counts.sum(axis=0), kind="stable")[:2]
        return ", ".join(f"{_cut(str(summary.values[k]))} {percent(float(shares[k]))}" for k in first)
    moments = summary.moments[which]
    if summary.kind == "date":
        return f"{shown_date(moments.smallest)} to {shown_date(moments.largest)}"
    return f"{moments.mean:.4g} ± {moments.standard_deviation:.4g}".replace("-", "−")


def _columns_table(comparison: Comparison) -> str:
    head, rows = columns_table(comparison)
    marked = [f"{'*' if comparison.is_found(c) else ' '} {c.name}" for c in comparison.columns]
    cells = [(mark, *row[1:]) for mark, row in zip(marked, rows, strict=True)]
    return table("Column by column: mean ± standard deviation, or the commonest values", head, cells)


def columns_table(comparison: Comparison) -> tuple[list[str], list[list[str]]]:
    """Names of the columns of a table, and a row for each column that was compared.

    The distance is Kolmogorov and Smirnov's (KS) for numbers and dates, total variation (TV) for categories. Values
    and missing values have a p-value each, both adjusted.
    """
    gaps = any(column.missing_pvalue is not None for column in comparison.columns)
    head = ["column", "distance", "p of values", *(["missing", "p of missing"] if gaps else []), *comparison.names]
    rows = [
        [
            column.name,
            f"{'TV' if column.summary.kind == 'category' else 'KS'} {column.size:.2f}",
            pvalue_text(column.adjusted_pvalue),
            *(_missing_cells(column) if gaps else []),
            *(in_words(column.summary, which) for which in (0, 1)),
        ]
        for column in comparison.columns
    ]
    return head, rows


def _missing_cells(column: ColumnDifference) -> tuple[str, str]:
    if column.missing_adjusted_pvalue is None:
        return "", ""
    shares = " → ".join(percent(share) for share in column.summary.missing_shares)
    return shares, pvalue_text(column.missing_adjusted_pvalue)


def _pairs_table(comparison: Comparison) -> str:
    rows = [(*pair.names, correlations(pair), pvalue_text(pair.adjusted_pvalue)) for pair in comparison.found_pairs]
    head = ("column", "column", "correlation of ranks", "p (adjusted)")
    return table("Pairs of columns whose dependence changed", head, rows, left=(0, 1))


def _unlike_table(comparison: Comparison, which: int) -> str:
    sample, other = comparison.samples[which], comparison.names[1 - which]
    found = zip(comparison.typical[which], comparison.reasons(which), strict=True)
    rows = [(f"{sample.places[i]:,}", reasons_text(because, "there")) for i, because in found]
    title = f"Rows of {comparison.names[which]} most unlike {other}, and why"
    return table(title, (sample.place, "values that are rare there"), rows, left=(0, 1))


def reasons_text(because: Sequence[Reason], where: str) -> str:
    """Why a row is unlike other rows, which lie ``there`` if in another table."""
    return "; ".join(reason_text(reason, where) for reason in because) or "no single value: their combination"


def reason_text(reason: Reason, where: str) -> str:
    """A value and how rare it is.

    >>> reason_text(Reason("age", 93.0, 0.01, "high"), "there")
    'age = 93 (there: 1 % as high or higher)'
    """
    value = "missing" if reason.value is None else shown_value(reason.value)
    share = "none" if reason.share == 0 else percent(reason.share)
    words = {"low": "as low or lower", "high": "as high or higher", "same": "the same", "missing": "missing"}
    return f"{reason.column} = {value} ({f'{where}: ' if where else ''}{share} {words[reason.side]})"


def shown_value(value: Any) -> str:
    """A value in a table; long texts are cut."""
    if value is None:
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else _cut(str(value))


def _summaries_table(columns: Sequence[Summary]) -> str:
    rows = [summary_cells(summary) for summary in columns]
    return table("Columns (all rows)", SUMMARY_HEAD, rows)


SUMMARY_HEAD = ("column", "missing", "mean", "standard deviation", "smallest", "largest")


def summary_cells(summary: Summary) -> tuple[str, ...]:
    """A column of a single table."""
    missing = percent(summary.missing_shares[0])
    if summary.kind == "category":
        return (summary.name, missing, in_words(summary, 0), f"{summary.distinct:,} values", "", "")
    moments = summary.moments[0]
    shown = shown_date if summary.kind == "date" else "{:.4g}".format
    deviation = (
        f"{moments.standard_deviation / 86400:.3g} days"
        if summary.kind == "date"
        else f"{moments.standard_deviation:.4g}"
    )
    return (
        summary.name,
        missing,
        shown(moments.mean),
        deviation,
        shown(moments.smallest),
        shown(moments.largest),
    )


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int] = (0,)) -> str:
    """Columns of equal width, those not ``left`` at the right; long names and long tables are cut.

    >>> print(table("Fruit", ("name", "grams"), [("apple", "180"), ("fig", "40")]))
    Fruit
      name   grams
      apple    180
      fig       40
    """
    cut = [[_cut(cell) for cell in cells[:-1]] + [printable(cells[-1])] for cells in ([head, *rows[:_ROWS]])]
    widths = [max(len(row[j]) for row in cut) for j in range(len(head))]
    lines = [
        "  ".join(f"{cell:{'<' if j in left else '>'}{widths[j]}}" for j, cell in enumerate(row)).rstrip()
        for row in cut
    ]
    more = [f"… and {len(rows) - _ROWS} more (--json has all)"] if len(rows) > _ROWS else []
    return "\n".join([printable(title), *(f"  {line}" for line in [*lines, *more])])


def _cut(cell: str) -> str:
    cell = printable(cell)
    return cell if len(cell) <= _WIDEST else f"{cell[: _WIDEST - 1]}…"


def paragraph(sentences: Sequence[str]) -> str:
    """Sentences, a line or more each, as wide as the terminal but no wider than is easy to read."""
    return "\n".join(line for sentence in sentences for line in wrap(printable(sentence), _width()))


def _width() -> int:
    return max(40, min(100, get_terminal_size().columns))


def notes_text(notes: Sequence[str]) -> str:
    """Notes as a list."""
    lines = [line for note in notes for line in wrap(f"- {printable(note)}", _width() - 2, subsequent_indent="  ")]
    return "\n".join(["Notes", *(f"  {line}" for line in lines)]) if lines else ""
