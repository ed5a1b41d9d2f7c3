"""Histograms of the most different columns of a comparison, drawn with matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from muhat.comparison.column_counts import histogram
from muhat.comparison.formatting import shown

if TYPE_CHECKING:
    from muhat.comparison.result import Comparison

COLOURS = ("#2563eb", "#d97706")


def draw_columns(result: Comparison, count: int) -> Any:
    """A figure with a histogram of each of the first columns, both tables in one."""
    import matplotlib.pyplot as plt

    chosen = result.columns[:count]
    width = min(3, len(chosen))
    height = -(-len(chosen) // width)
    figure, axes = plt.subplots(height, width, figsize=(3.2 * width, 2.3 * height), squeeze=False, layout="constrained")
    for ax in axes.flat[len(chosen) :]:
        ax.set_axis_off()
    for ax, column in zip(axes.flat, chosen, strict=False):
        drawn = histogram(column.counts)
        places = np.arange(drawn.heights.shape[1])
        for which, (heights, name) in enumerate(zip(drawn.heights, result.names, strict=True)):
            ax.bar(
                places + 0.4 * which, heights, 0.4, align="edge", color=COLOURS[which], label=name.replace("$", r"\$")
            )
        ends = [shown(column.counts.kind, end, 12).replace("$", r"\$") for end in drawn.ends]
        ax.set_xticks([0.4, len(places) - 0.6], ends)
        ax.set_yticks([])
        ax.set_title(f"{column.name[:28]}: {column.effect_name} {column.effect:.2f}".replace("$", r"\$"), fontsize=9)
        ax.spines[["top", "right", "left"]].set_visible(False)
    axes[0, 0].legend(frameon=False, fontsize=8)
    return figure
