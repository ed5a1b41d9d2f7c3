"""The page of ``muhat watch --html``: whether the stream drifted, when, and in which columns."""

from __future__ import annotations

from muhat.files.histograms import histogram_of_numbers
from muhat.files.pages import MOST_COLUMNS, ColumnRow, Page, render
from muhat.monitor.drift_monitor import Drift, DriftMonitor
from muhat.plotting.monitor import DriftDisplay
from muhat.progress import printable
from muhat.report.drawing import figure, svg
from muhat.report.page import Picture
from muhat.tables.scales import ColumnScales


def watch_page(monitor: DriftMonitor, names: tuple[str, str], units: ColumnScales) -> str:
    """The page of a monitor that has seen a stream.

    Parameters
    ----------
    monitor : DriftMonitor
    names : (str, str)
        Of the reference and of the stream.
    units : ColumnScales
        Centre and scale of the columns that the monitor got.
    """
    reference, stream = (printable(name) for name in names)
    found, seen = monitor.result_, monitor.rows_seen_
    promise = f"Without drift the mean number of rows until a false alarm is {monitor.run_length:,}."
    pictures = [_scores(monitor)] if seen else []
    if found is None:
        summary = [f"No drift was found in {seen:,} rows.", promise]
        return render(Page("watch", f"{stream}: no drift", summary, [reference], [], [], 0, [], pictures, []))
    summary = [_alarm(found), promise]
    rows = [units.restore(part) for part in monitor.compared_rows()]
    columns = []
    for name, change in found.columns[:MOST_COLUMNS]:
        place = monitor.column_names_.index(name)
        old, new = (part[:, place] for part in rows)
        cells = [printable(name), f"{change:.1f}", f"{old.mean():.4g}", f"{new.mean():.4g}"]
        columns.append(ColumnRow(cells, False, histogram_of_numbers(old, new)))
    heads = ["column", "change", f"mean in {reference}", "mean in the window of the alarm"]
    files, more = [reference, f"{stream}, window of the alarm"], len(found.columns) - len(columns)
    return render(Page("watch", f"{stream} drifted", summary, files, heads, columns, more, [], pictures, []))


def _alarm(found: Drift) -> str:
    if found.window == 1:
        return f"Row {found.row:,} is unlike the reference."
    return (
        f"The alarm came at row {found.row:,}: the last {found.window:,} rows, since row {found.since:,}, are unlike."
    )


def _scores(monitor: DriftMonitor) -> Picture:
    with figure(width=8.0, height=3.2) as (drawn, axes):
        DriftDisplay.from_monitor(monitor, ax=axes[0, 0])
        return Picture(
            svg(drawn),
            "The score after each of the last rows, and the threshold that it must not exceed.",
            "Coloured rows are the window that raised the alarm." if monitor.result_ else "It stayed below.",
        )
