"""HTML of a comparison: a fragment for notebooks, and a page that loads nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from importlib.metadata import version
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from muhat._support.progress import printable
from muhat._support.types import Array
from muhat.apps.compare.column_counts import ColumnCounts, histogram
from muhat.apps.compare.result import Comparison, PairResult
from muhat.apps.compare.text_report import ReportPart, correlations, report, shown, summary
from muhat.tables.frames import Column, Table

MOST_COLUMNS = 60
MOST_PAIRS = 3
_DOTS = 400
_SIDES = ("first", "second")
_FOLDER = Path(__file__).parent


def page(result: Comparison) -> str:
    """The report as a page, whose title is the answer without its p-value."""
    same = f"{result.names[0]} and {result.names[1]} hold the same rows"
    title = text(same if result.identical else summary(result)[0].rpartition(" (p ")[0])
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{_css('fragment')}{_css('page')}</style></head>\n"
        f'<body><p class="eyebrow">muhat compare</p>\n<h1>{title}</h1>\n'
        f'<main class="muhat">\n{_body(result)}\n</main>\n'
        f"<footer>muhat {version('muhat')}. This page loads nothing from elsewhere.</footer></body></html>\n"
    )


def fragment(result: Comparison) -> str:
    """The report for a notebook."""
    style = _css("fragment")
    return f'<div class="muhat"><style>{style}</style>{_body(result)}</div>'


def _css(name: str) -> str:
    return (_FOLDER / f"{name}.css").read_text(encoding="utf-8")


def _body(result: Comparison) -> str:
    told = report(result)
    parts = sentences(told.sentences)
    for part in told.parts:
        parts.append(f"<h3>{text(part.title)}</h3>")
        parts += [f'<p class="muted">{text(part.caption)}.</p>'] if part.caption else []
        parts.append(_columns(part, result.names) if part.columns else html_table(part.head, part.cells))
        parts += [_pair_picture(result, pair) for pair in part.pairs[:MOST_PAIRS]]
    if told.notes:
        parts += ["<h3>Notes</h3>", *(f'<p class="muted">{text(note)}</p>' for note in told.notes)]
    return "\n".join(parts)


def _columns(part: ReportPart, names: Sequence[str]) -> str:
    rows = [
        [row[0], Raw(sparkline(column.counts)), *row[1:]]
        for column, row in zip(part.columns[:MOST_COLUMNS], part.cells, strict=False)
    ]
    more = len(part.columns) - len(rows)
    drawn = html_table([part.head[0], "distribution", *part.head[1:]], rows, part.marked)
    return f"{legend(names)}{drawn}" + (f'<p class="muted">… and {more:,} more columns.</p>' if more else "")


# --------------------------------------------------------------------------------------------------- parts of pages


class Raw(str):
    """A cell that is HTML already."""


def text(value: str) -> str:
    """Text for HTML, without control characters."""
    return escape(printable(value))


def sentences(told: Sequence[str]) -> list[str]:
    """Paragraphs, the first of which is the answer."""
    answer, *rest = told
    return [f'<p class="answer">{text(answer)}</p>', *(f"<p>{text(sentence)}</p>" for sentence in rest)]


def legend(names: Sequence[str]) -> str:
    """The colours of the tables."""
    keys = [f'<span class="key"></span><span>{text(name)}</span>' for name in names]
    return f"<p>{''.join(keys)}</p>"


def html_table(head: Sequence[str], rows: Iterable[Sequence[str]], named: Sequence[bool] = ()) -> str:
    """A table; the first cell of a row is its head, and rows may be marked as ``named``."""
    lines = []
    for i, row in enumerate(rows):
        cells = [_cell(cell, "th" if j == 0 else "td") for j, cell in enumerate(row)]
        mark = ' class="named"' if i < len(named) and named[i] else ""
        lines.append(f"<tr{mark}>{''.join(cells)}</tr>")
    heads = "".join(f'<th scope="col">{text(cell)}</th>' for cell in head)
    body = f"<thead><tr>{heads}</tr></thead><tbody>{''.join(lines)}</tbody>"
    return f'<div class="scroll" tabindex="0"><table>{body}</table></div>'


def _cell(cell: str, tag: str) -> str:
    if isinstance(cell, Raw):
        return f'<{tag} class="spark">{cell}</{tag}>'
    scope = ' scope="row"' if tag == "th" else ' class="words"' if len(cell) > 18 else ""
    return f"<{tag}{scope}>{text(cell)}</{tag}>"


def sparkline(column: ColumnCounts) -> str:
    """A small histogram of a column, the bars of two tables side by side."""
    drawn = histogram(column)
    tables, bins = drawn.heights.shape
    step = 120.0 / bins
    bar = 0.86 * step / tables
    paths = ""
    for i, heights in enumerate(drawn.heights):
        bars = (f"M{k * step + i * bar:.1f} 32v-{32 * h:.1f}h{bar:.1f}V32z" for k, h in enumerate(heights) if h > 0.004)
        paths += f'<path class="{_SIDES[i]}" d="' + "".join(bars) + '"/>'
    ends = "".join(f"<span>{text(shown(column.kind, end, 20, column.are_years))}</span>" for end in drawn.ends)
    svg = f'<svg viewBox="0 0 120 32" preserveAspectRatio="none" aria-hidden="true">{paths}</svg>'
    return f'{svg}<div class="ends">{ends}</div>'


def _pair_picture(result: Comparison, pair: PairResult) -> str:
    """Rows of both tables in the plane of two columns, side by side on the same axes."""
    tables = [sample.table for sample in result.sampled]
    columns = [[_column(table, name) for name in pair.columns] for table in tables]
    axes = [_Axis([side[j] for side in columns]) for j in (0, 1)]
    panels = []
    for which, (x, y) in enumerate(columns):
        kept = np.flatnonzero(~(x.missing | y.missing))
        kept = np.random.default_rng(0).permutation(kept)[:_DOTS]
        across, up = axes[0].places(x, kept), axes[1].places(y, kept)
        places = zip(30 + 280 * across, 190 - 170 * up, strict=True)
        dots = "".join(f'<circle cx="{u:.1f}" cy="{v:.1f}" r="2.2"/>' for u, v in places)
        label = f"{result.names[which]}: rank correlation {correlations(pair).split(' → ')[which]}"
        panels.append(
            f'<svg viewBox="0 0 320 225" role="img" aria-label="{text(label)}">'
            f'<rect class="frame" x="25" y="15" width="290" height="180"/><g class="{_SIDES[which]}">{dots}</g>'
            f'<text x="25" y="10">{text(label)}</text><text x="25" y="208">{axes[0].ends[0]}</text>'
            f'<text x="315" y="208" text-anchor="end">{axes[0].ends[1]}</text>'
            f'<text x="170" y="221" text-anchor="middle">{text(pair.columns[0][:40])}</text>'
            f'<text transform="translate(18 105) rotate(-90)" text-anchor="middle">{text(pair.columns[1][:28])}</text>'
            "</svg>"
        )
    joined = "".join(panels)
    return f'<div class="pair">{joined}</div>'


def _column(table: Table, name: str) -> Column:
    return next(column for column in table.columns if column.name == name)


class _Axis:
    """Places between 0 and 1 of the values of a column in both tables; categories are spread out a little."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self.levels = sorted({level for column in columns for level in column.levels})
        known = [column.values[~column.missing].astype(float) for column in columns]
        if self.levels:
            self.low, self.high = -0.5, len(self.levels) - 0.5
            self.ends = (text(self.levels[0][:20]), text(self.levels[-1][:20]))
        else:
            self.low, self.high = map(float, np.quantile(np.concatenate(known), [0.005, 0.995]))
            self.ends = (text(shown(columns[0].kind, self.low)), text(shown(columns[0].kind, self.high)))

    def places(self, column: Column, rows: NDArray[np.intp]) -> Array:
        """Where the rows stand along the axis."""
        values = column.values[rows].astype(float)
        if self.levels:
            rank = np.array([self.levels.index(level) for level in column.levels])
            jitter = np.random.default_rng(1).uniform(-0.3, 0.3, len(rows))
            values = rank[column.values[rows]] + jitter
        width = self.high - self.low
        return np.asarray(((values - self.low) / (width if width > 0 else 1.0)).clip(0.0, 1.0))
