"""Pictures of a comparison and of a description, as SVG text."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.decomposition import PCA

from muhat.files.compare import Comparison
from muhat.files.describe import Description
from muhat.files.words import percent
from muhat.report.drawing import figure, svg
from muhat.report.page import Picture
from muhat.types import Array

FIRST, SECOND, FAINT = "#2563eb", "#d97706", "#9ca3af"

_BARS = 20
_DOTS = 400
_POINTS = 201


def comparison_pictures(comparison: Comparison) -> list[Picture]:
    """The columns as bars, the most different column, and the plane of most variance."""
    pictures = [_column_bars(comparison)] if len(comparison.columns) > 1 else []
    pictures.append(_most_different_column(comparison))
    if len(comparison.columns) > 1:
        pictures.append(_compared_plane(comparison))
    return pictures


def description_pictures(description: Description) -> list[Picture]:
    """What each estimator saves, and the rows with the least typical marked."""
    pictures = [_gains(description)]
    return [*pictures, _described_plane(description)] if description.points.shape[1] > 1 else pictures


def _column_bars(comparison: Comparison) -> Picture:
    shown = comparison.columns[:_BARS]
    colours = [FIRST if column.adjusted_pvalue <= comparison.level else FAINT for column in shown]
    sizes = [100 * column.relative_size for column in shown]
    found = len(comparison.found)
    return Picture(
        _bars([column.name for column in shown], sizes, colours, "relative size of the difference, %"),
        f"Relative size of the difference in {'the first ' if len(comparison.columns) > _BARS else ''}{len(shown)} "
        "columns, each by itself. Blue: found at the level, after Holm's correction.",
        f"{found} of {len(comparison.columns)} columns differ by themselves; the largest difference is in "
        f"{shown[0].name}, {percent(shown[0].relative_size)}.",
    )


def _bars(names: list[str], sizes: list[float], colours: list[str], label: str) -> str:
    with figure(width=8.0, height=0.9 + 0.3 * len(names)) as (drawn, axes):
        ax = axes[0, 0]
        ax.barh(range(len(names)), sizes, color=colours, height=0.6)
        ax.set_yticks(range(len(names)), [_plain(name) for name in names])
        ax.set(xlabel=label, xlim=(0, max(max(sizes) * 1.05, 1.0)))
        ax.invert_yaxis()
        ax.grid(axis="y", visible=False)
        return svg(drawn)


def _plain(name: str) -> str:
    """A name that is drawn as it is: dollars would start a formula."""
    return (name if len(name) <= 28 else f"{name[:27]}…").replace("$", r"\$")


def _most_different_column(comparison: Comparison) -> Picture:
    name = comparison.columns[0].name
    j = comparison.samples[0].columns.index(name)
    values = [sample.rows[:, j] for sample in comparison.samples]
    points = [points[:, j] for points in comparison.points]
    grid = np.linspace(0, 1, _POINTS)
    along = _between(np.concatenate(values), grid)
    witness = comparison.columns[0].test.witness(_between(np.concatenate(points), grid)[:, None])
    with figure(2, 1, width=8.0, height=4.2, sharex=True, height_ratios=(3, 2)) as (drawn, axes):
        above, below = axes[:, 0]
        edges = np.histogram_bin_edges(np.concatenate(values), bins=30)
        for sample, column, colour in zip(comparison.samples, values, (FIRST, SECOND), strict=True):
            shares = np.histogram(column, bins=edges)[0] * (100 / len(column))
            above.stairs(shares, edges, color=colour, linewidth=1.8, label=_plain(sample.name))
        above.set_ylabel("% of rows")
        above.legend()
        _filled_witness(below, along, witness)
        below.set(xlabel=_plain(name), ylabel="witness")
        return Picture(
            svg(drawn),
            f"The column {name}: its values in both files, and its witness function, which is above zero where "
            f"{comparison.samples[0].name} has more rows.",
            f"{name} has mean {comparison.columns[0].means[0]:.4g} in {comparison.samples[0].name} and "
            f"{comparison.columns[0].means[1]:.4g} in {comparison.samples[1].name}.",
        )


def _between(values: Array, shares: Array) -> Array:
    """Places along the range of some values; written so that huge ranges do not overflow."""
    return values.min() * (1 - shares) + values.max() * shares


def _filled_witness(ax: Any, along: Array, witness: Array) -> None:
    ax.plot(along, witness, color=FAINT, linewidth=1)
    ax.fill_between(along, witness, where=witness >= 0, color=FIRST, alpha=0.5, linewidth=0)
    ax.fill_between(along, witness, where=witness <= 0, color=SECOND, alpha=0.5, linewidth=0)


def _plane(points: Array) -> tuple[Array, Array]:
    """Coordinates in the plane of most variance, and the shares of the variance along them."""
    plane = PCA(2, svd_solver="full")  # others go by the covariance matrix, which rows far from 0 spoil
    return plane.fit_transform(points), plane.explained_variance_ratio_


def _axis_labels(ax: Any, shares: Array) -> None:
    labels = [f"{name} component, {percent(share)}" for name, share in zip(("first", "second"), shares, strict=True)]
    ax.set(xlabel=f"{labels[0]} of the variance", ylabel=labels[1])


def _compared_plane(comparison: Comparison) -> Picture:
    X, Y = comparison.points
    coordinates, shares = _plane(np.concatenate([X, Y]))
    rng = np.random.default_rng(0)
    with figure(width=8.0, height=4.6) as (drawn, axes):
        ax = axes[0, 0]
        parts = (coordinates[: len(X)], coordinates[len(X) :])
        for which, (part, colour) in enumerate(zip(parts, (FIRST, SECOND), strict=True)):
            shown = rng.permutation(len(part))[:_DOTS]
            name = _plain(comparison.samples[which].name)
            ax.scatter(*part[shown].T, s=12, color=colour, alpha=0.55, linewidths=0, label=name)
            if comparison.differs:
                ring = part[comparison.typical[which]]
                ax.scatter(*ring.T, s=70, facecolors="none", edgecolors=colour, linewidths=1.6)
        _axis_labels(ax, shares)
        ax.legend()
        rings = " Rings mark the rows most unlike the other file, by all columns." if comparison.differs else ""
        return Picture(
            svg(drawn),
            f"Rows of both files in the plane of most variance (at most {_DOTS} of each).{rings}",
            f"The plane holds {percent(float(shares.sum()))} of the variance of the rows.",
        )


def _gains(description: Description) -> Picture:
    choices = description.estimators[1:]
    best = max(choices, key=lambda choice: choice.gain)
    sizes = [100 * choice.gain for choice in choices]
    return Picture(
        _bars([choice.name for choice in choices], sizes, [FIRST] * len(sizes), "squared error saved, % (estimate)"),
        "What shrinkage would save of the squared error of the plain average, by leave-one-out: an estimate.",
        f"{best.name} saves most, an estimated {percent(best.gain)}.",
    )


def _described_plane(description: Description) -> Picture:
    coordinates, shares = _plane(description.points)
    shown = np.random.default_rng(0).permutation(len(coordinates))[: 2 * _DOTS]
    with figure(width=8.0, height=4.6) as (drawn, axes):
        ax = axes[0, 0]
        ax.scatter(*coordinates[shown].T, s=12, color=FIRST, alpha=0.55, linewidths=0, label="rows")
        ring = coordinates[description.least_typical]
        ax.scatter(*ring.T, s=70, facecolors="none", edgecolors=SECOND, linewidths=1.6, label="least typical")
        _axis_labels(ax, shares)
        ax.legend()
        return Picture(
            svg(drawn),
            f"Rows in the plane of most variance (at most {2 * _DOTS}); rings mark the least typical ones.",
            f"The plane holds {percent(float(shares.sum()))} of the variance of the rows.",
        )
