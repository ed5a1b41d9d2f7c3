"""Base class of displays, which hold data and draw it by ``plot(ax)``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from muhat._support.extras import load_extra
from muhat._support.types import Array

MARGIN = 0.25
"""A function is drawn over the range of the sample, and this share of it more on both sides."""

POINTS = 200
"""Number of points of a line."""


def new_axes() -> Any:
    """The axes of a new figure."""
    return load_extra("matplotlib.pyplot", "plot", "a picture").subplots(layout="constrained")[1]


def line_over(values: Array, count: int = POINTS) -> Array:
    """Equally spaced numbers that cover the values with a margin."""
    low, high = values.min(), values.max()
    margin = MARGIN * (high - low if high > low else 1.0)
    return np.linspace(low - margin, high + margin, count)


@dataclass(repr=False)
class Display:
    """Base of the displays: ``ax_`` and ``figure_`` after ``plot``."""

    ax_: Any = field(default=None, init=False, repr=False)
    figure_: Any = field(default=None, init=False, repr=False)

    def plot(self, ax: Any = None, **style: Any) -> Self:
        """Draw on ``ax``, by default the axes of a new figure; ``style`` has options of the main artist."""
        self.ax_ = new_axes() if ax is None else ax
        self.figure_ = self.ax_.figure
        self._draw(self.ax_, style)
        return self

    def _draw(self, ax: Any, style: dict[str, Any]) -> None:
        raise TypeError(f"{type(self).__name__} must define _draw(ax, style)")
