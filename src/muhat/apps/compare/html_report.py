"""HTML of a comparison: a fragment for notebooks, and a page that loads nothing from elsewhere."""

from __future__ import annotations

import re
from html import escape
from importlib.metadata import version
from pathlib import Path

from muhat._support.progress import printable
from muhat.apps.compare.column_counts import ColumnCounts, histogram
from muhat.apps.compare.text_report import Report, ReportPart, shown

MOST_ROWS = 60
"""So many rows of a table are shown."""

_WORDS = ' class="words"'  # which may be broken into lines
_FOLDER = Path(__file__).parent


def page(told: Report) -> str:
    """The report as a page, whose title is the answer without its p-value."""
    title = _text(re.split(r" \(p = |: all values", told.sentences[0])[0])
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{_css('fragment')}{_css('page')}</style></head>\n"
        f'<body><p class="eyebrow">muhat compare</p>\n<h1>{title}</h1>\n'
        f'<main class="muhat">\n{_body(told)}\n</main>\n'
        f"<footer>muhat {version('muhat')}. This page loads nothing from elsewhere.</footer></body></html>\n"
    )


def fragment(told: Report) -> str:
    """The report for a notebook."""
    return f'<div class="muhat"><style>{_css("fragment")}</style>{_body(told)}</div>'


def _css(name: str) -> str:
    return (_FOLDER / f"{name}.css").read_text(encoding="utf-8")


def _body(told: Report) -> str:
    answer, *rest = told.sentences
    parts = [f'<p class="answer">{_text(answer)}</p>', *(f"<p>{_text(sentence)}</p>" for sentence in rest)]
    for part in told.parts:
        parts.append(f"<h3>{_text(part.title)}</h3>")
        parts += [f'<p class="muted">{_text(part.caption)}.</p>'] if part.caption else []
        if part.columns:
            keys = [f'<span class="key"></span><span>{_text(name)}</span>' for name in told.names]
            parts.append(f"<p>{''.join(keys)}</p>")
        parts.append(_table(part))
        if len(part.cells) > MOST_ROWS:
            parts.append(f'<p class="muted">… and {len(part.cells) - MOST_ROWS:,} more.</p>')
    if told.notes:
        parts += ["<h3>Notes</h3>", *(f'<p class="muted">{_text(note)}</p>' for note in told.notes)]
    return "\n".join(parts)


def _text(value: str) -> str:
    """Text for HTML, without control characters."""
    return escape(printable(value))


def _table(part: ReportPart) -> str:
    """A table; the first cell of a row is its head, and columns have their histogram next to it."""
    heads = [_text(cell) for cell in part.head]
    if part.columns:
        heads.insert(1, "distribution")
    lines = []
    for i, row in enumerate(part.cells[:MOST_ROWS]):
        first, *rest = map(_text, row)
        cells = "".join(f"<td{_WORDS * (len(cell) > 18)}>{cell}</td>" for cell in rest)
        spark = f'<td class="spark">{_histogram(part.columns[i].counts)}</td>' if part.columns else ""
        mark = ' class="named"' if part.marked and part.marked[i] else ""
        lines.append(f'<tr{mark}><th scope="row">{first}</th>{spark}{cells}</tr>')
    head = "".join(f'<th scope="col">{cell}</th>' for cell in heads)
    return (
        '<div class="scroll" tabindex="0"><table>'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
    )


def _histogram(column: ColumnCounts) -> str:
    """A small histogram of a column, the bars of both tables side by side."""
    drawn = histogram(column)
    step = 120.0 / drawn.heights.shape[1]
    paths = ""
    for which, heights in zip(("first", "second"), drawn.heights, strict=True):
        left = 0.43 * step * (which == "second")
        bars = (
            f"M{k * step + left:.1f} 32v-{32 * height:.1f}h{0.43 * step:.1f}V32z"
            for k, height in enumerate(heights)
            if height > 0.004
        )
        paths += f'<path class="{which}" d="{"".join(bars)}"/>'
    ends = "".join(f"<span>{_text(shown(column.kind, end, 20, column.are_years))}</span>" for end in drawn.ends)
    svg = f'<svg viewBox="0 0 120 32" preserveAspectRatio="none" aria-hidden="true">{paths}</svg>'
    return f'{svg}<div class="ends">{ends}</div>'
