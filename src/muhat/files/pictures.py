"""Pictures of a comparison and of a description, as SVG text."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.decomposition import PCA

from muhat.files.compare import Comparison
from muhat.files.describe import Description
from muhat.inference.results import percent
from muhat.report.drawing import figure, svg
from muhat.report.page import Picture
from muhat.types import Array

FIRST, SECOND = "#2563eb", "#d97706"

_DOTS = 400


def comparison_pictures(comparison: Comparison) -> list[Picture]:
    """The rows in the plane of most variance."""
    return [_compared_plane(comparison)] if comparison.samples[0].points.shape[1] > 1 else []


def description_pictures(description: Description) -> list[Picture]:
    """What each estimator saves, and the rows with the least typical marked."""
    pictures = [_gains(description)]
    return [*pictures, _described_plane(description)] if description.sample.points.shape[1] > 1 else pictures


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


def _plane(points: Array) -> tuple[Array, Array]:
    """Coordinates in the plane of most variance, and the shares of the variance along them."""
    plane = PCA(2, svd_solver="full")  # others go by the covariance matrix, which rows far from 0 spoil
    return plane.fit_transform(points), plane.explained_variance_ratio_


def _axis_labels(ax: Any, shares: Array) -> None:
    labels = [f"{name} component, {percent(share)}" for name, share in zip(("first", "second"), shares, strict=True)]
    ax.set(xlabel=f"{labels[0]} of the variance", ylabel=labels[1])


def _compared_plane(comparison: Comparison) -> Picture:
    X, Y = (sample.points for sample in comparison.samples)
    coordinates, shares = _plane(np.concatenate([X, Y]))
    rng = np.random.default_rng(0)
    with figure(width=8.0, height=4.6) as (drawn, axes):
        ax = axes[0, 0]
        parts = (coordinates[: len(X)], coordinates[len(X) :])
        for which, (part, colour) in enumerate(zip(parts, (FIRST, SECOND), strict=True)):
            shown = rng.permutation(len(part))[:_DOTS]
            name = _plain(comparison.names[which])
            ax.scatter(*part[shown].T, s=12, color=colour, alpha=0.55, linewidths=0, label=name)
            if comparison.rows_stand_out:
                ring = part[comparison.typical[which]]
                ax.scatter(*ring.T, s=70, facecolors="none", edgecolors=colour, linewidths=1.6)
        _axis_labels(ax, shares)
        ax.legend()
        rings = " Rings mark the rows most unlike the other file, by all columns." if comparison.rows_stand_out else ""
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
    coordinates, shares = _plane(description.sample.points)
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
