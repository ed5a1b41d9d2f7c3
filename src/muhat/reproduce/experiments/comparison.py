"""Estimators against a baseline on paired rows: the numbers of a summary, as text and as curves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isfinite, nan
from typing import Any

import numpy as np

from muhat.reproduce.estimator_names import COLOURS, LABELS
from muhat.reproduce.experiment import Row
from muhat.reproduce.experiments.statistics import Estimate, column, mean_ratio, share_below, standard_error


def relative(rows: list[Row], estimator: str, baseline: str = "KME") -> Estimate:
    """Mean loss of an estimator relative to the baseline's, over the rows in which both are known."""
    known = [row for row in rows if row[estimator] is not None and row[baseline] is not None]
    if not known:
        return Estimate(nan, nan)
    return mean_ratio(column(known, estimator), column(known, baseline))


def ratio_difference(rows: list[Row], others: list[Row], estimator: str, baseline: str = "KME") -> Estimate:
    """Difference of two relative losses, rows and others being paired one by one; error by linearisation."""
    ratios, influences = [], []
    for part in (rows, others):
        values, base = column(part, estimator), column(part, baseline)
        ratio = values.mean() / base.mean()
        ratios.append(ratio)
        influences.append((values - ratio * base) / base.mean())
    return Estimate(float(ratios[0] - ratios[1]), standard_error(influences[0] - influences[1]))


def compared(rows: list[Row], estimators: Iterable[str], baseline: str = "KME") -> Row:
    """For each estimator its relative loss, the standard error and the share of rows improved; None for unknown."""
    summary: Row = {}
    for estimator in estimators:
        known = [row for row in rows if row[estimator] is not None]
        improved = share_below(column(known, estimator), column(known, baseline)) if known else None
        summary[estimator] = {**summarised(relative(rows, estimator, baseline)), "improved": improved}
    return summary


def summarised(estimate: Estimate, name: str = "ratio") -> Row:
    """An estimate as a summary keeps it: its value under the name, and its standard error."""
    return {name: finite(estimate.value), "error": finite(estimate.error)}


def finite(value: float) -> float | None:
    """The number, or None where there is none: JSON has no word for it."""
    return value if isfinite(value) else None


def shown(comparison: Row) -> str:
    """A relative loss as a table shows it: 0.953 ± 0.010, 72 %."""
    ratio, error = comparison["ratio"], comparison["error"]
    if ratio is None:
        return "–"
    return f"{Estimate(ratio, nan if error is None else error)}, {100 * comparison['improved']:.0f} %"


def draw_curve(
    ax: Any, name: str, positions: Sequence[float], points: list[Row], part: str, shift: float = 0.0, **style: Any
) -> None:
    """One part of the points with bars of two standard errors, moved to the right by ``shift`` in printer's points."""
    from matplotlib.transforms import ScaledTranslation

    values, errors = (np.array([point[key] for point in points], dtype=np.float64) for key in (part, "error"))
    style = {"color": COLOURS.get(name), "label": LABELS.get(name, name), **style}
    drawn = ax.errorbar(positions, values, 2.0 * np.nan_to_num(errors), capsize=2, marker="o", ms=3, lw=1.2, **style)
    for artist in drawn.get_children():  # afterwards, so that the limits of the axes are those of the data
        artist.set_transform(artist.get_transform() + ScaledTranslation(shift / 72, 0, ax.figure.dpi_scale_trans))


def draw_ratios(ax: Any, positions: Sequence[float], summary: list[Row], estimators: Sequence[str]) -> None:
    """Relative losses, a curve an estimator, side by side so that bars do not cover each other; and the baseline."""
    middle = (len(estimators) - 1) / 2.0
    for place, name in enumerate(estimators):
        draw_curve(ax, name, positions, [row[name] for row in summary], "ratio", 2.0 * (place - middle))
    ax.axhline(1.0, color=COLOURS["KME"], lw=1, ls="--")


def scale_by_logarithm(ax: Any) -> None:
    """A logarithmic scale upward, with numbers that can be read."""
    from matplotlib.ticker import LogLocator, NullFormatter

    ax.set_yscale("log")
    ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:.4g}".replace("e+0", "e"))
    ax.yaxis.set_minor_formatter(NullFormatter())
