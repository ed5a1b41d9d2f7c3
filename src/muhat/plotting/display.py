"""Base class of displays, which hold data and draw it by ``plot(ax)``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

MARGIN = 0.25


POINTS = 200


def axes_for(ax: Any) -> Any:
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("pictures need matplotlib: pip install 'muhat[plot]'") from error
    return plt.subplots(layout="constrained")[1]


def styled(defaults: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    return {**defaults, **given}


@dataclass
class Display:
    """Base of the displays: ``ax_`` and ``figure_`` after ``plot``."""

    ax_: Any = field(default=None, init=False, repr=False)
    figure_: Any = field(default=None, init=False, repr=False)

    def plot(self, ax: Any = None, **style: Any) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Default: those of a new figure.
        **style
            Options of the main artist.

        Returns
        -------
        self
        """
        self.ax_ = axes_for(ax)
        self.figure_ = self.ax_.figure
        self._draw(self.ax_, style)
        return self

    def _draw(self, ax: Any, style: dict[str, Any]) -> None:
        raise TypeError(f"{type(self).__name__} must define _draw(ax, style)")
