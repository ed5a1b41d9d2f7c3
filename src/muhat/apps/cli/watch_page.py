"""The page of ``muhat watch --html``: whether the stream drifted, when, and in which columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from muhat.apps.compare.column_counts import count_column
from muhat.apps.compare.html_report import MOST_COLUMNS, Raw, html_page, html_table, legend, sparkline, text
from muhat.apps.compare.text_report import in_short
from muhat.apps.files.tables import concatenated
from muhat.apps.monitor.drift_monitor import DriftMonitor
from muhat.tables.frames import Column, Table

_STYLE = """
.muhat .scores { width: 100%; max-width: 60rem; height: auto; fill: none; stroke-width: 1.5; }
.muhat .scores .line { stroke: var(--a); } .muhat .scores .limit { stroke: var(--b); stroke-dasharray: 5 4; }
.muhat .scores text { fill: currentColor; stroke: none; font-size: 11px; }
"""


def watch_page(monitor: DriftMonitor, names: tuple[str, str], reference: Table, recent: Sequence[Table]) -> str:
    """The page of a monitor that has seen a stream, with the names of the reference and of the stream.

    ``recent`` are tables of the last rows of the stream, one after the other.
    """
    source, stream = names
    found, seen = monitor.result_, monitor.rows_seen_
    promise = f"Without drift the average run length until a false alarm is {monitor.run_length:,} rows."
    if found is None:
        answer = f"No drift was found in {seen:,} rows."
    elif found.window == 1:
        answer = f"Row {found.row:,} differs from the reference."
    else:
        answer = (
            f"The alarm came at row {found.row:,}: rows {found.since:,} to {found.row:,} differ from the reference."
        )
    parts = [f'<p class="answer">{text(answer)}</p>', f"<p>{promise}</p>"]
    if seen:
        parts += ["<h3>Score after each row, and its threshold</h3>", _scores(monitor)]
    if found is not None:
        parts += ["<h3>Columns that changed most</h3>", legend([source, f"{stream}, rows of the alarm"])]
        last = _last_rows(recent, found.window)
        head = ["column", "distribution", "change", source, "rows of the alarm"]
        parts.append(
            html_table(head, [_row(name, size, reference, last) for name, size in found.columns[:MOST_COLUMNS]])
        )
    title = f"{stream}: no drift" if found is None else f"{stream} drifted"
    return html_page(title, "watch", "\n".join(parts), _STYLE)


def _last_rows(recent: Sequence[Table], window: int) -> dict[str, Column]:
    """The columns of the window that raised the alarm."""
    joined = (concatenated(name, [_column(table, name) for table in recent]) for name in recent[-1].names)
    return {column.name: column._replace(values=column.values[-window:]) for column in joined}


def _column(table: Table, name: str) -> Column:
    return next(column for column in table.columns if column.name == name)


def _row(name: str, size: float, reference: Table, last: dict[str, Column]) -> list[str]:
    column = name if name in last else name.rpartition(" = ")[0]  # a feature of a column, such as "plan = basic"
    counts = count_column([_column(reference, column), last[column]])
    return [name, Raw(sparkline(counts)), f"{size:.1f}", in_short(counts, 0), in_short(counts, 1)]


def _scores(monitor: DriftMonitor) -> str:
    """The scores of the last rows as a line in a box of 600 by 160."""
    rows, scores, thresholds = monitor.recent_scores()
    top = 1.1 * float(max(scores.max(), thresholds.max())) or 1.0
    across = 40 + 550 * (np.arange(len(rows)) / max(len(rows) - 1, 1))
    lines = ""
    for kind, values in (("line", scores), ("limit", thresholds)):
        points = " ".join(f"{x:.1f},{140 - 130 * y / top:.1f}" for x, y in zip(across, values, strict=True))
        lines += f'<polyline class="{kind}" points="{points}"/>'
    labels = (
        f'<text x="0" y="14">{top:.3g}</text><text x="0" y="144">0</text><text x="40" y="156">row {rows[0]:,}</text>'
        f'<text x="590" y="156" text-anchor="end">row {rows[-1]:,}</text>'
    )
    return f'<svg class="scores" viewBox="0 0 600 160" role="img" aria-label="scores">{lines}{labels}</svg>'
