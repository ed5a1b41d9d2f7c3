"""Text of a comparison: numbers as readers expect them, the sentences of the answer, and tables for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from shutil import get_terminal_size
from textwrap import wrap
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from muhat._support.progress import printable
from muhat.tables.frames import Kind

if TYPE_CHECKING:
    from muhat.apps.compare.column_counts import ColumnCounts
    from muhat.apps.compare.result import ColumnResult, Comparison, Finding, PairResult
    from muhat.apps.compare.unusual_rows import Reason, UnusualRow

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


def percent(share: float) -> str:
    """A share as a percentage.

    >>> percent(0.1234), percent(0.0), percent(0.0004), percent(0.996)
    ('12 %', '0 %', '0.04 %', '99.6 %')
    """
    text = f"{100 * share:.1f}" if share > 0.99 else f"{100 * share:.2g}"
    return f"{text.removesuffix('.0')} %"


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

    ``columns`` or ``pairs`` are what the rows are about, for pictures.
    """

    title: str
    head: Sequence[str]
    cells: Sequence[Sequence[str]]
    caption: str = ""
    marked: Sequence[bool] = ()
    columns: Sequence[ColumnResult] = ()
    pairs: Sequence[PairResult] = ()


class Report(NamedTuple):
    """What text, HTML and JSON say of a comparison: the answer and further sentences, parts, and notes."""

    sentences: Sequence[str]
    parts: Sequence[ReportPart]
    notes: Sequence[str]

    def as_text(self) -> str:
        """The report for a terminal."""
        found = [paragraph(self.sentences)]
        for part in self.parts:
            marks = [f"{'* ' if mark else '  '}" for mark in part.marked] or [""] * len(part.cells)
            rows = [[f"{mark}{row[0]}", *row[1:]] for mark, row in zip(marks, part.cells, strict=True)]
            star = " (* differs)" if any(part.marked) else ""
            title = f"{part.title}{star}{f': {part.caption}' if part.caption else ''}"
            found.append(table(title, part.head, rows, left=(0,) if part.columns else (0, 1)))
        return "\n\n".join(part for part in [*found, notes_text(self.notes)] if part)


def report(result: Comparison) -> Report:
    """The whole report of a comparison."""
    parts = [] if result.identical else [_columns_part(result)]
    return Report(summary(result), [*parts, *_pairs_parts(result), *_rows_parts(result)], result.notes)


def summary(result: Comparison) -> list[str]:
    """The answer, what it rests on, and the rows that were used, one sentence each."""
    a, b = result.names
    if result.identical:
        rows = plural(result.tables[0].rows, "row")
        return [f"{a} and {b} hold the same {rows}: all values of the columns that were compared are equal."]
    return [_answer(result), *_not_compared(result), *_findings(result), *_rows_used(result)]


def _answer(result: Comparison) -> str:
    a, b = result.names
    where = " in the columns that could be compared" if result.not_compared or result.separating else ""
    about = f"an effect beyond {percent(result.at_least)}" if result.at_least else "any difference"
    how = f"{pvalue_text(result.pvalue, sign=True)} for {about}, level {result.level:g}"
    if result.at_least == 0.0:
        if result.differs:
            return f"{a} and {b} differ ({how})."
        return f"No difference found between {a} and {b}{where} ({how})."
    if result.differs:
        return f"{a} and {b} differ by more than {percent(result.at_least)} ({how})."
    return f"No effect between {a} and {b} is shown to exceed {percent(result.at_least)}{where} ({how})."


def _findings(result: Comparison) -> list[str]:
    if not result.is_significant:
        return ["This does not prove that there is none: a small difference may go unseen."]
    sentences = [_columns(result)]
    missing = result.missing
    lost = [name for name in missing if missing[name] in result.named(missing.values())]
    sentences += [_missing_sentence(name, missing[name], result.at_least) for name in lost[:_NAMED]]
    if result.at_least:
        how = pvalue_text(result.significance, sign=True)
        sentences.append(f"That there is any difference, however small, is a question of its own ({how}).")
    pairs = result.significant_pairs
    if pairs:
        named = listed([f"{pair.names[0]} and {pair.names[1]} ({correlations(pair)})" for pair in pairs], _NAMED, str)
        beyond = ", to which the bound does not apply" if result.at_least else ""
        sentences.append(f"The rank correlation of {plural(len(pairs), 'pair')} of columns changed{beyond}: {named}.")
    if result.joint_pvalue <= result.level:
        also = " as well" if result.significant_columns or lost or pairs else ""
        start = f"All columns together differ{also}"
        if result.at_least:
            start = "In the test of all columns together, to which the bound does not apply, the tables differ"
        how = pvalue_text(result.joint_pvalue, sign=True)
        sentences.append(f"{start} ({how}): {result.joint_explanation}.")
    return sentences


def _columns(result: Comparison) -> str:
    found, total = result.significant_columns, len(result.columns)
    if not found:
        if any(lost.adjusted_pvalue <= result.level for lost in result.missing.values()):
            return "No column differs significantly in its values."
        return "No single column can be named at this level."
    count = f"{len(found):,} of {plural(total, 'column')}" if total > 1 else "The one column"
    start = f"{count} differ{'s' if len(found) == 1 else ''} significantly"
    if result.at_least == 0.0:
        return f"{start}: {listed([with_effect(column, result) for column in found], _NAMED, str)}."
    beyond = result.named(found)
    if beyond:
        them = "it" if len(found) == 1 else "all of them" if len(beyond) == len(found) else f"{len(beyond):,} of them"
        named = listed([with_effect(column, result) for column in beyond], _NAMED, str)
        return f"{start}; for {them} the effect exceeds {percent(result.at_least)}: {named}."
    largest = max(found, key=lambda column: column.effect)
    none = f"for none of them the effect is shown to exceed {percent(result.at_least)}"
    return f"{start}; {none}: {with_effect(largest, result)} is the largest."


def with_effect(column: ColumnResult, result: Comparison) -> str:
    """A column with its effect, such as "age (KS distance 0.21, 0.15 to 0.28; place: higher in b)"."""
    effect = f"{column.effect_name} {column.effect:.2g}, {interval_text(column, result.level)}"
    return f"{column.name} ({effect}; {column.in_words(result.names)})"


def interval_text(finding: Finding, level: float) -> str:
    """The interval of an effect in words; that of a significant one begins above 0, whatever the bound of it is."""
    low, high = finding.interval
    start = "above 0" if low == 0.0 and finding.adjusted_pvalue <= level else f"{low:.2g}"
    return f"{start} to {high:.2g}"


def _missing_sentence(name: str, lost: Finding, at_least: float) -> str:
    shares = " and ".join(percent(share) for share in getattr(lost, "shares", ()))
    beyond = f", a difference of more than {percent(at_least)}" if at_least else ""
    return f"{name} is missing in {shares} of the rows{beyond} ({pvalue_text(lost.exceeds_pvalue, sign=True)})."


def _not_compared(result: Comparison) -> list[str]:
    left = result.not_compared
    found = [f"{column.name!r} could not be compared: {column.reason}." for column in left[:_NAMED]]
    found += [f"{len(left) - _NAMED:,} more columns could not be compared."] if len(left) > _NAMED else []
    if result.separating:
        names, one = listed(result.separating), len(result.separating) == 1
        text = (
            f"{names} {'separates' if one else 'separate'} the tables completely and "
            f"{'increases' if one else 'increase'} with the rows, as an index or the column of a split does; "
            f"{'it is' if one else 'they are'} not counted."
        )
        found.append(text)
    return found


def _rows_used(result: Comparison) -> list[str]:
    totals = " and ".join(f"{table.rows:,}" for table in result.tables)
    if all(table.rows == table.rows_together for table in result.tables):
        return [f"All {totals} rows were used."]
    together = " and ".join(f"{table.rows_together:,}" for table in result.tables)
    return [f"All {totals} rows were used for single columns, and {together} of them for pairs and the joint test."]


def correlations(pair: PairResult) -> str:
    """The rank correlations before and after, such as "0.50 → −0.25"."""
    return " → ".join(f"{value:.2f}".replace("-", "−") for value in pair.correlations)


# --------------------------------------------------------------------------------------------------- tables


def _columns_part(result: Comparison) -> ReportPart:
    """The columns: KS is the KS distance, TV total variation; p-values are adjusted."""
    any_missing = bool(result.missing)
    exceeds = f"p (> {percent(result.at_least)})" if result.at_least else "p"
    lost_heads = ["missing", f"{exceeds} of missing"] if any_missing else []
    head = ["column", "effect", "interval", exceeds, "differs in", *lost_heads, *result.names]
    rows = []
    for column in result.columns:
        what = column.in_words(result.names) if column.adjusted_pvalue <= result.level else ""
        shares = ["", ""]
        if column.missing is not None:
            lost = " → ".join(map(percent, column.missing.shares))
            shares = [lost, pvalue_text(column.missing.exceeds_pvalue)]
        described = [in_short(column.counts, which) for which in (0, 1)]
        rows.append([column.name, *_effect_cells(column, result), what, *(shares if any_missing else []), *described])
    marked = [result.is_named(column) for column in result.columns]
    caption = "significant ones first, by their effect; adjusted p, simultaneous intervals"
    caption += ", mean ± standard deviation" if any(" ± " in row[-1] for row in rows) else ""
    return ReportPart("Columns", head, rows, caption, marked, columns=result.columns)


def _pairs_parts(result: Comparison) -> list[ReportPart]:
    """The pairs whose dependence changed, where there are any."""
    head = ("column", "column", "rank correlation", "p (adjusted)")
    pairs = result.significant_pairs
    cells = [(*p.names, correlations(p), pvalue_text(p.adjusted_pvalue)) for p in pairs]
    return [ReportPart("Pairs of columns whose dependence changed", head, cells, pairs=pairs)] if cells else []


def _rows_parts(result: Comparison) -> list[ReportPart]:
    """The rows of each table that are most unlike the other, where the tables differ as a whole."""
    if not result.is_significant or result.joint_pvalue > result.level:
        return []
    found = []
    for name, other in (result.names, result.names[::-1]):
        rows = [row for row in result.rows if row.table == name]
        title, head = f"Rows of {name} most unlike {other}", f"values that are rare in {other}"
        found += [ReportPart(title, (rows[0].place, head), row_cells(rows, other))] if rows else []
    return found


def _effect_cells(column: ColumnResult, result: Comparison) -> tuple[str, str, str]:
    if not min(column.counts.present):
        return "–", "–", "–"  # nothing is known of an effect where a table has no values
    effect = f"{'KS' if column.counts.is_ordered else 'TV'} {column.effect:.2g}"
    return effect, interval_text(column, result.level), pvalue_text(column.exceeds_pvalue)


def in_short(column: ColumnCounts, which: int) -> str:
    """A column of one table in a few words: mean ± standard deviation, range of dates, or the commonest values."""
    if not column.present[which]:
        return "no values"
    if not column.is_ordered:
        shares = column.shares()[which]
        return ", ".join(
            f"{shown(column.kind, column.values[k])} {percent(float(shares[k]))}" for k in range(min(2, len(shares)))
        )
    moments = column.moments[which]
    if column.kind == "date" or column.are_years:
        ends = (shown(column.kind, end, is_year=column.are_years) for end in (moments.smallest, moments.largest))
        return " to ".join(ends)
    if column.kind == "duration":
        return f"{shown('duration', moments.mean)} ± {shown('duration', moments.standard_deviation)}"
    return f"{readable(moments.mean)} ± {readable(moments.standard_deviation)}"


def row_cells(rows: Sequence[UnusualRow], where: str) -> list[tuple[str, str]]:
    """Where each row stands, and why it is unlike the rows of the table ``where``."""
    return [
        (
            str(row.label) if row.place == "index" else f"{row.label:,}",
            "; ".join(_reason_text(reason, where) for reason in row.reasons) or "no single value: their combination",
        )
        for row in rows
    ]


def _reason_text(reason: Reason, where: str) -> str:
    """A value and how rare it is, such as "age = 93 (1 % of b.csv as high)"."""
    value = shown(reason.kind, reason.value, is_year=reason.is_year)
    share = "none" if reason.share == 0 else percent(reason.share)
    words = {"low": "as low", "high": "as high", "same": "the same", "missing": "missing"}
    return f"{reason.column} = {value} ({share} of {where} {words[reason.side]})"


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int] = (0,)) -> str:
    """Columns of equal width, those not ``left`` at the right; long names, cells and tables are cut.

    >>> print(table("Fruit", ("name", "grams"), [("apple", "180"), ("fig", "40")]))
    Fruit
      name   grams
      apple    180
      fig       40
    """
    shown_rows = [head, *rows[:_ROWS]]
    cut = [
        [_cut(cells[0], _WIDEST), *(_cut(c, 2 * _WIDEST) for c in cells[1:-1]), printable(cells[-1])]
        for cells in shown_rows
    ]
    widths = [max(len(row[j]) for row in cut) for j in range(len(head))]
    lines = [
        "  ".join(f"{cell:{'<' if j in left else '>'}{widths[j]}}" for j, cell in enumerate(row)).rstrip()
        for row in cut
    ]
    more = [f"… and {len(rows) - _ROWS:,} more (JSON has all)"] if len(rows) > _ROWS else []
    return "\n".join([printable(title), *(f"  {line}" for line in [*lines, *more])])


def _cut(cell: str, widest: int) -> str:
    cell = printable(cell)
    return cell if len(cell) <= widest else f"{cell[: widest - 1]}…"


def paragraph(sentences: Sequence[str]) -> str:
    """Sentences, a line or more each, as wide as the terminal but no wider than is easy to read."""
    return "\n".join(line for sentence in sentences for line in wrap(printable(sentence), _width()))


def _width() -> int:
    return max(40, min(100, get_terminal_size().columns))


def notes_text(notes: Sequence[str]) -> str:
    """Notes as a list."""
    lines = [line for note in notes for line in wrap(f"- {printable(note)}", _width() - 2, subsequent_indent="  ")]
    return "\n".join(["Notes", *(f"  {line}" for line in lines)]) if lines else ""
