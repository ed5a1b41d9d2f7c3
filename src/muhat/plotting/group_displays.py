"""Display of distances between groups: dots with intervals, or a heat map."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from muhat.plotting.display import Display

_MOST = 40
"""Groups that are drawn with their names: the largest distances."""


@dataclass
class GroupDistancesDisplay(Display):
    """Distances of groups to a control as dots with intervals, significant ones in red; or all pairs as a heat map.

    The heat map has the groups in the order of a tree (average linkage), and shows the MMD, the root of the distances.

    Parameters
    ----------
    result : GroupDistances
        The distances.

    See Also
    --------
    muhat.group_distances : Makes the distances.

    Examples
    --------
    >>> import numpy as np, muhat as mh
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> result = mh.group_distances(X, np.repeat(["a", "b", "c"], 20), control="a", n_resamples=99)
    >>> display = mh.plotting.GroupDistancesDisplay.from_result(result)
    >>> display.ax_.get_xlabel()
    'squared distance to a'
    """

    result: Any

    @classmethod
    def from_result(cls, result: Any, *, ax: Any = None, **style: Any) -> Self:
        """Draw the result of ``group_distances``."""
        return cls(result).plot(ax, **style)

    def _draw(self, ax: Any, style: dict[str, Any]) -> None:
        order, names = self.result.order, [str(label) for label in self.result.groups]
        if self.result.control is None:
            roots = np.sqrt(self.result.matrix[np.ix_(order, order)])
            image = ax.imshow(roots, **({"cmap": "viridis"} | style))
            ax.figure.colorbar(image, ax=ax, label="MMD")
            if len(order) <= _MOST:
                labels = [names[g] for g in order]
                ax.set_xticks(range(len(order)), labels, rotation=90)
                ax.set_yticks(range(len(order)), labels)
            return
        order = order[:_MOST]
        places = np.arange(len(order))[::-1]
        ax.hlines(places, self.result.low[order], self.result.high[order], color="0.7")
        found = self.result.significant[order]
        for chosen, colour, label in ((found, "C3", "significant"), (~found, "C0", "not significant")):
            if chosen.any():
                ax.scatter(
                    self.result.distance[order][chosen],
                    places[chosen],
                    zorder=2,
                    **({"color": colour, "label": label} | style),
                )
        ax.set_yticks(places, [names[g] for g in order])
        ax.set_xlabel(f"squared distance to {self.result.control}")
        if self.result.adjusted is not None:
            ax.legend(loc="lower right")
