"""Pictures and tables that the experiments share: panels with one legend, curves with error bars, relative losses."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from paper.comparison import COLOURS, LABELS, shown
from paper.drawing import figure, svg
from paper.experiment import Row
from paper.page import ReportTable

Panel = TypeVar("Panel")


def draw_panels(
    draw: Callable[[Any, Panel], None],
    panels: Iterable[Panel],
    label: str,
    *,
    rows: int = 1,
    width: float = 11.0,
    height: float = 3.5,
    legend_columns: int = 3,
    **options: Any,
) -> str:
    """SVG text of panels, each filled by ``draw(ax, panel)``; one label per row of them, and one legend below."""
    chosen = list(panels)
    with figure(rows, len(chosen) // rows, width, height, **options) as (picture, axes):
        for ax, panel in zip(axes.flat, chosen, strict=True):
            draw(ax, panel)
        for ax in axes[:, 0]:
            ax.set_ylabel(label)
        picture.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=legend_columns)
        return re.sub(' clip-path="[^"]*"', "", svg(picture))  # nothing leaves the axes


def draw_points(ax: Any, positions: Any, points: list[Row], part: str, **style: Any) -> Any:
    """One part of the points, with bars of two standard errors where they are known."""
    values, errors = (np.array([point[key] for point in points], dtype=np.float64) for key in (part, "error"))
    return ax.errorbar(positions, values, 2.0 * np.nan_to_num(errors), **{"marker": "o", **style})


def draw_ratios(ax: Any, positions: Sequence[float], summary: list[Row], estimators: Sequence[str]) -> None:
    """Relative losses, one curve per estimator, and the baseline."""
    from matplotlib.transforms import ScaledTranslation

    middle = (len(estimators) - 1) / 2.0
    for place, name in enumerate(estimators):
        style = {"color": COLOURS[name], "label": LABELS[name], "ms": 3, "lw": 1.2}
        curve = draw_points(ax, positions, [row[name] for row in summary], "ratio", **style)
        # Two printer's points apart, so that bars do not cover each other; moved afterwards, so that the limits of
        # the axes are those of the data.
        shift = ScaledTranslation(2.0 * (place - middle) / 72, 0, ax.figure.dpi_scale_trans)
        for artist in curve.get_children():
            artist.set_transform(artist.get_transform() + shift)
    draw_baseline(ax)


def draw_baseline(ax: Any) -> None:
    """The dashed line of KME at a ratio of one."""
    ax.axhline(1.0, color=COLOURS["KME"], lw=1, ls="--")


def use_log_scale(ax: Any) -> None:
    """A logarithmic vertical axis whose labels are plain numbers: powers of ten over decades, else finer steps."""
    from matplotlib.ticker import LogLocator, NullLocator

    ax.set_yscale("log")
    low, high = ax.get_ylim()
    steps = (1.0,) if high > 1e3 * low else (1.0, 2.0, 5.0) if high > 4.0 * low else tuple(np.arange(1, 10, 0.5))
    ax.yaxis.set_major_locator(LogLocator(subs=steps))
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:g}".replace("e+0", "e").replace("e-0", "e−"))
    ax.yaxis.set_minor_locator(NullLocator())


def mark_positions(ax: Any, positions: Sequence[float]) -> None:
    """A logarithmic horizontal axis with a label at each position and nowhere else."""
    ax.set_xscale("log")
    ax.set_xticks(positions, [f"{position:g}" for position in positions])
    ax.minorticks_off()


RATIOS = "Mean loss relative to KME's ± standard error, and the share of distributions improved"
"""Caption of a table of relative losses."""


def table_of_columns(caption: str, columns: Iterable[tuple[str, Iterable[Any]]]) -> ReportTable:
    """A table from its columns, each a title and one value per row."""
    titles, values = zip(*columns, strict=True)
    return ReportTable(caption, titles, list(zip(*values, strict=True)))


def ratio_table(
    caption: str, summary: list[Row], heads: Mapping[str, str], estimators: Mapping[str, str]
) -> ReportTable:
    """Relative losses of the estimators after the columns that identify a row; both are given with their titles."""
    columns = [(title, [row[head] for row in summary]) for head, title in heads.items()]
    columns += [(title, [shown(row[name]) for row in summary]) for name, title in estimators.items()]
    return table_of_columns(caption, columns)
