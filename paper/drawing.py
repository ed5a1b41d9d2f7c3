"""SVG pictures that are identical in every run and take their text colour from the page."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from typing import Any

_NEUTRAL = "#7c8591"

_STYLE: dict[Any, Any] = {
    "svg.hashsalt": "muhat",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    **dict.fromkeys(("axes.edgecolor", "axes.labelcolor", "text.color", "xtick.color", "ytick.color"), _NEUTRAL),
    "axes.linewidth": 0.8,
    "axes.titlesize": 11,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": _NEUTRAL,
    "grid.alpha": 0.2,
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.8,
    "legend.frameon": False,
    "legend.fontsize": 9.5,
}


@contextmanager
def figure(rows: int = 1, columns: int = 1, width: float = 9.0, height: float = 3.0, **options: Any) -> Iterator[Any]:
    """(figure, axes as an array of shape (rows, columns)); close it by leaving the block. See :func:`svg`."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(_STYLE):
        drawn = Figure(figsize=(width, height), layout="constrained")
        yield drawn, drawn.subplots(rows, columns, squeeze=False, **options)


def svg(drawn: Any) -> str:
    """The picture as an ``<svg>`` element, without what would change from run to run. Call it within the block."""
    file = StringIO()
    drawn.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    text = file.getvalue()
    return text[text.index("<svg") :].replace(_NEUTRAL, "currentColor")
