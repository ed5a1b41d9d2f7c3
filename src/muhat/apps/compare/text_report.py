"""Text of a comparison: numbers as readers expect them, the sentences of the answer, and tables for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from shutil import get_terminal_size
from textwrap import wrap
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from muhat._support.progress import printable
from muhat.inference.results import percent
from muhat.tables.frames import Kind

if TYPE_CHECKING:
    from muhat.apps.compare.column_counts import ColumnCounts
    from muhat.apps.compare.result import ColumnResult, Comparison, Finding
    from muhat.apps.compare.unusual_rows import UnusualRow

_ROWS = 12
_WIDEST = 24
_NAMED = 5
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def readable(value: float) -> str:
    """A number with four significant digits, and commas between thousands.

    >>> [readable(value) for value in (11680.4, 3.14159, -0.5, 1e-9, 2e15, 120.0)]
    ['11,680', '3.142', '−0.5', '1e-09', '2e+15', '120']
    """
    if np.isnan(value):
        return "–"
    size = abs(value)
    text = f"{value:,.0f}" if 1000 <= size < 1e12 else f"{value:.4g}"
    return f"−{text[1:]}" if text.startswith("-") else text


def shown(kind: Kind, value: Any, longest: int = 24, is_year: bool = False) -> str:
    """A value of a column: dates as dates, durations with their unit, text without signs that would move the cursor.

    >>> shown("date", 1.0), shown("date", 0.5), shown("duration", 0.25), shown("category", None)
    ('1970-01-02', '1970-01-01 12:00:00', '6 hours', 'missing')
    """
    if value is None:
        return "missing"
    if kind in ("category", "boolean"):
        text = printable(str(value))
        return text if len(text) <= longest else f"{text[: longest - 1]}…"
    if kind == "date":
        return _date(float(value))
    if kind == "duration":
        unit, size = next((u, s) for u, s in _UNITS if abs(value) >= s or s == _UNITS[-1][1])
        return f"{readable(value / size)} {unit}"
    return f"{value:.0f}" if is_year else readable(float(value))


_UNITS = (("days", 1.0), ("hours", 1 / 24), ("minutes", 1 / 1440), ("seconds", 1 / 86400))


def _date(days: float) -> str:
    try:
        return (_EPOCH + timedelta(seconds=round(86400 * days))).strftime("%Y-%m-%d %H:%M:%S").removesuffix(" 00:00:00")
    except OverflowError:
        return f"{readable(days)} days after 1970"


def pvalue_text(pvalue: float, sign: bool = False) -> str:
    """A p-value.

    >>> pvalue_text(0.0123456), pvalue_text(0.5, sign=True)
    ('0.0123', 'p = 0.5')
    """
    return f"{'p = ' if sign else ''}{pvalue:.3g}"


def plural(count: int, noun: str) -> str:
    """A count with its noun.

    >>> plural(1, "row"), plural(2000, "row")
    ('1 row', '2,000 rows')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def listed(names: Sequence[str], most: int = 8, form: Callable[[str], str] = repr) -> str:
    """Names in a row, by default in quotation marks, and how many more there are.

    >>> listed(["a", "b"]), listed("abcd", most=2), listed("abc", 1, str)
    ("'a', 'b'", "'a', 'b' and 2 more", 'a and 2 more')
    """
    return ", ".join(map(form, names[:most])) + (f" and {len(names) - most:,} more" if len(names) > most else "")


# -------------------------------------------------------------------------------------------------- sentences


class ReportPart(NamedTuple):
    """A part of a report: a title, a table and its remarks; rows that the answer rests on are ``marked``.

    ``columns`` are what the rows are about, for pictures.
    """

    title: str
    head: Sequence[str]
    cells: Sequence[Sequence[str]]
    caption: str = ""
    marked: Sequence[bool] = ()
    columns: Sequence[ColumnResult] = ()


class Report(NamedTuple):
    """What text, HTML and JSON say of a comparison: the answer and further sentences, parts, and notes."""

    names: tuple[str, str]
    sentences: Sequence[str]
    parts: Sequence[ReportPart]
    notes: Sequence[str]

    def as_text(self) -> str:
        """The report for a terminal."""
        width = max(40, min(100, get_terminal_size().columns))
        found = ["\n".join(line for sentence in self.sentences for line in wrap(printable(sentence), width))]
        for part in self.parts:
            star = " (* differs)" if any(part.marked) else ""
            title = f"{part.title}{star}{f': {part.caption}' if part.caption else ''}"
            found.append(table(title, part.head, part.cells, part.marked))
        notes = [line for n in self.notes for line in wrap(f"- {printable(n)}", width - 2, subsequent_indent="  ")]
        return "\n\n".join([*found, *(["\n  ".join(["Notes", *notes])] if notes else [])])


def report(result: Comparison) -> Report:
    """The whole report of a comparison."""
    if result.identical:
        rows = plural(result.tables[0].rows, "row")
        same = f"{result.names[0]} and {result.names[1]} hold the same {rows}"
        said = [f"{same}: all values of the columns that were compared are equal."]
        return Report(result.names, said, [], result.notes)
    parts = [_columns_part(result), *_pairs_parts(result), *_rows_parts(result)]
    return Report(result.names, _sentences(result), parts, result.notes)


def _sentences(result: Comparison) -> list[str]:
    """The answer, what it rests on, and the rows that were used, one sentence each."""
    a, b = result.names
    where = " in the columns that could be compared" if result.not_compared or result.separating else ""
    beyond = percent(result.at_least)
    about = f"an effect beyond {beyond}" if result.at_least else "any difference"
    if result.at_least:
        answer = f"No effect between {a} and {b} is shown to exceed {beyond}{where}"
        answer = f"{a} and {b} differ by more than {beyond}" if result.differs else answer
    else:
        answer = f"{a} and {b} differ" if result.differs else f"No difference found between {a} and {b}{where}"
    said = [f"{answer} ({pvalue_text(result.pvalue, sign=True)} for {about}, level {result.level:g})."]
    said += _not_compared(result)
    said += _findings(result) if result.is_significant else [NO_PROOF]
    totals, together = (" and ".join(f"{table[k]:,}" for table in result.tables) for k in (1, 2))
    if totals == together:
        return [*said, f"All {totals} rows were used."]
    return [*said, f"All {totals} rows were used for single columns, {together} of them for pairs and the joint test."]


NO_PROOF = "This does not prove that there is none: a small difference may go unseen."


def _not_compared(result: Comparison) -> list[str]:
    left = result.not_compared
    said = [f"{column.name!r} could not be compared: {column.reason}." for column in left[:_NAMED]]
    said += [f"{len(left) - _NAMED:,} more columns could not be compared."] if len(left) > _NAMED else []
    if result.separating:
        said.append(
            f"Not counted, because values of one table all lie above those of the other, as in an index, a date or the "
            f"column of a split: {listed(result.separating)}."
        )
    return said


def _findings(result: Comparison) -> list[str]:
    said, beyond = [_columns(result)], percent(result.at_least)
    more = f", a difference of more than {beyond}" if result.at_least else ""
    lost = [(name, found) for name, found in result.missing.items() if result.named([found])]
    for name, found in lost[:_NAMED]:
        shares, how = " and ".join(map(percent, found.shares)), pvalue_text(found.exceeds_pvalue, sign=True)
        said.append(f"{name} is missing in {shares} of the rows{more} ({how}).")
    if result.at_least:
        how = pvalue_text(result.significance, sign=True)
        said.append(f"That there is any difference, however small, is a question of its own ({how}).")
    if pairs := result.significant_pairs:
        named = listed([f"{pair.names[0]} and {pair.names[1]} ({pair.in_words})" for pair in pairs], _NAMED, str)
        bound = ", to which the bound does not apply" if result.at_least else ""
        said.append(f"The rank correlation of {plural(len(pairs), 'pair')} of columns changed{bound}: {named}.")
    if result.joint_pvalue <= result.level:
        also = " as well" if result.significant_columns or lost or pairs else ""
        start = f"All columns together differ{also}"
        if result.at_least:
            start = "In the test of all columns together, to which the bound does not apply, the tables differ"
        said.append(f"{start} ({pvalue_text(result.joint_pvalue, sign=True)}): {result.joint_explanation}.")
    return said


def _columns(result: Comparison) -> str:
    found, total, beyond = result.significant_columns, len(result.columns), percent(result.at_least)
    if not found:
        return "No single column can be named at this level by its values."
    count = f"{len(found):,} of {plural(total, 'column')}" if total > 1 else "The one column"
    start = f"{count} differ{'s' if len(found) == 1 else ''} significantly"
    named = result.named(found)
    if result.at_least and not named:
        largest = max(found, key=lambda column: column.effect)
        none = f"for none of them the effect is shown to exceed {beyond}"
        return f"{start}; {none}: {with_effect(largest, result)} is the largest."
    if result.at_least:
        them = "it" if len(found) == 1 else "all of them" if len(named) == len(found) else f"{len(named):,} of them"
        start = f"{start}; for {them} the effect exceeds {beyond}"
    return f"{start}: {listed([with_effect(column, result) for column in named], _NAMED, str)}."


def with_effect(column: ColumnResult, result: Comparison) -> str:
    """A column with its effect, such as "age (KS distance 0.21, 0.15 to 0.28; place: higher in b)"."""
    effect = f"{column.effect_name} {column.effect:.2g}, {interval_text(column, result.level)}"
    return f"{column.name} ({effect}; {column.in_words(result.names)})"


def interval_text(finding: Finding, level: float) -> str:
    """The interval of an effect in words; that of a significant one begins above 0, whatever the bound of it is."""
    low, high = finding.interval or (0.0, 1.0)
    start = "above 0" if low == 0.0 and finding.adjusted_pvalue <= level else f"{low:.2g}"
    return f"{start} to {high:.2g}"


# --------------------------------------------------------------------------------------------------- tables


def _columns_part(result: Comparison) -> ReportPart:
    """The columns: KS is the KS distance, TV total variation; p-values are adjusted."""
    any_missing = bool(result.missing)
    exceeds = f"p (> {percent(result.at_least)})" if result.at_least else "p"
    lost_heads = ["missing", f"{exceeds} of missing"] if any_missing else []
    head = ["column", "effect", "interval", exceeds, "differs in", *lost_heads, *result.names]
    rows = []
    for column in result.columns:
        effect = ["–", "–", "–"]  # nothing is known of an effect where a table has no values
        if min(column.counts.present):
            short = f"{'KS' if column.counts.is_ordered else 'TV'} {column.effect:.2g}"
            effect = [short, interval_text(column, result.level), pvalue_text(column.exceeds_pvalue)]
        what = column.in_words(result.names) if column.adjusted_pvalue <= result.level else ""
        shares = ["", ""] if any_missing else []
        if column.missing is not None:
            lost = " → ".join(map(percent, column.missing.shares))
            shares = [lost, pvalue_text(column.missing.exceeds_pvalue)]
        rows.append([column.name, *effect, what, *shares, *(in_short(column.counts, which) for which in (0, 1))])
    marked = [bool(result.named(column.parts)) for column in result.columns]
    caption = "significant ones first, by their effect; adjusted p, simultaneous intervals"
    caption += ", mean ± standard deviation" if any(" ± " in row[-1] for row in rows) else ""
    return ReportPart("Columns", head, rows, caption, marked, columns=result.columns)


def _pairs_parts(result: Comparison) -> list[ReportPart]:
    """The pairs whose dependence changed, where there are any."""
    head = ("columns", "rank correlation", "p (adjusted)")
    pairs = result.significant_pairs
    cells = [(" and ".join(p.names), p.in_words, pvalue_text(p.adjusted_pvalue)) for p in pairs]
    return [ReportPart("Pairs of columns whose dependence changed", head, cells)] if cells else []


def _rows_parts(result: Comparison) -> list[ReportPart]:
    """The rows of each table that are most unlike the other, where the tables differ as a whole."""
    if result.joint_pvalue > result.level:
        return []
    found = []
    for name, other in (result.names, result.names[::-1]):
        rows = [row for row in result.rows if row.table == name]
        head = (rows[0].place, f"values that are rare in {other}")
        cells = [(_label(row), _reasons_text(row, other)) for row in rows]
        found.append(ReportPart(f"Rows of {name} most unlike {other}", head, cells))
    return found


def in_short(column: ColumnCounts, which: int) -> str:
    """A column of one table in a few words: mean ± standard deviation, range of dates, or the commonest values."""
    if not column.present[which]:
        return "no values"
    if not column.is_ordered:
        shares = [percent(share) for share in column.shares()[which, :2].tolist()]
        return ", ".join(f"{shown(column.kind, v)} {s}" for v, s in zip(column.values, shares, strict=False))
    moments, years = column.moments[which], column.are_years
    if column.kind == "date" or years:
        return " to ".join(shown(column.kind, end, is_year=years) for end in (moments.smallest, moments.largest))
    return f"{shown(column.kind, moments.mean)} ± {shown(column.kind, moments.standard_deviation)}"


def _label(row: UnusualRow) -> str:
    return str(row.label) if row.place == "index" else f"{row.label:,}"


def _reasons_text(row: UnusualRow, where: str) -> str:
    """Values of a row and how rare they are in the other table, such as "age = 93 (1 % of b.csv as high)"."""
    words = {"low": "as low", "high": "as high", "same": "the same", "missing": "missing"}
    said = []
    for reason in row.reasons:
        value = shown(reason.kind, reason.value, is_year=reason.is_year)
        share = "none" if reason.share == 0 else percent(reason.share)
        said.append(f"{reason.column} = {value} ({share} of {where} {words[reason.side]})")
    return "; ".join(said) or "no single value: their combination"


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]], marked: Sequence[bool] = ()) -> str:
    """Columns of equal width, numbers at the right; long names, cells and tables are cut, and rows marked by a star.

    >>> print(table("Fruit", ("name", "grams"), [("apple", "180"), ("fig", "40")], [True, False]))
    Fruit
        name   grams
      * apple    180
        fig       40
    """
    marks = ["* " if mark else "  " for mark in marked[:_ROWS]] if marked else [""] * len(rows[:_ROWS])
    blank = "  " if marked else ""
    cut = [
        [_cut(f"{mark}{cells[0]}"), *(_cut(cell, 2) for cell in cells[1:-1]), printable(cells[-1])]
        for mark, cells in zip([blank, *marks], [head, *rows[:_ROWS]], strict=True)
    ]
    widths = [max(len(row[j]) for row in cut) for j in range(len(head))]
    left = [j == 0 or any(row[j][:1].isalpha() for row in cut[1:]) for j in range(len(head))]
    lines = [
        "  ".join(f"{cell:{'<' if left[j] else '>'}{widths[j]}}" for j, cell in enumerate(row)).rstrip() for row in cut
    ]
    more = [f"… and {len(rows) - _ROWS:,} more (JSON has all)"] if len(rows) > _ROWS else []
    return "\n".join([printable(title), *(f"  {line}" for line in [*lines, *more])])


def _cut(cell: str, times: int = 1) -> str:
    cell = printable(cell)
    return cell if len(cell) <= times * _WIDEST else f"{cell[: times * _WIDEST - 1]}…"
