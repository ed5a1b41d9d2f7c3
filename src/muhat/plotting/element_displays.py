"""Displays of functions in the space: a kernel mean, a witness, a matched density."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from muhat.elements import Element
from muhat.measures import GaussianMixture
from muhat.plotting.display import MARGIN, POINTS, Display, styled
from muhat.types import Array
from muhat.validation import check_rows

_SIDE = 80


_LEVELS = 12


@dataclass
class ElementDisplay(Display):
    """An element as a function of one or two variables, over points.

    Parameters
    ----------
    grid : array of shape (m, 1) or (m, 2)
        Where the values were taken: a line, or a square lattice row by row.
    values : array of shape (m,)
    points : list of (label, array) pairs
        Samples drawn below or over the function.
    diverging : bool
        Values of both signs: a colour map with white at 0.
    """

    grid: Array
    values: Array
    points: list[tuple[str, Array]]
    diverging: bool = False

    def _draw(self, ax: Any, style: dict[str, Any]) -> None:
        if self.grid.shape[1] == 1:
            self._draw_line(ax, style)
        else:
            self._draw_map(ax, style)
        if any(label for label, _ in self.points):
            ax.legend()

    def _draw_line(self, ax: Any, style: dict[str, Any]) -> None:
        ax.plot(self.grid[:, 0], self.values, **styled({"color": "C0"}, style))
        if self.diverging:
            ax.axhline(0, color="0.5", linewidth=0.8)
        low = ax.get_ylim()[0]
        for k, (label, rows) in enumerate(self.points):
            ax.plot(rows[:, 0], np.full(len(rows), low), "|", color=f"C{k + 1}", markersize=12, label=label or None)
        ax.set(xlabel="x")

    def _draw_map(self, ax: Any, style: dict[str, Any]) -> None:
        side = round(len(self.grid) ** 0.5)
        x, y, z = (column.reshape(side, side) for column in (*self.grid.T, self.values))
        options: dict[str, Any] = {"levels": _LEVELS, "cmap": "Blues"}
        if self.diverging:
            largest = np.abs(z).max() or 1.0
            options |= {"cmap": "RdBu_r", "levels": np.linspace(-largest, largest, 2 * _LEVELS + 1)}
        ax.figure.colorbar(ax.contourf(x, y, z, **styled(options, style)), ax=ax)
        colours = ("#b2182b", "#2166ac") if self.diverging else ("#e66101", "#5e3c99")  # as the map where it has more
        for (label, rows), marker, colour in zip(self.points, "o^", colours, strict=False):
            edge = {"edgecolor": "white", "linewidth": 0.6}
            ax.scatter(*rows.T, s=14, marker=marker, color=colour, **edge, label=label or None)
        ax.set(xlabel="x₁", ylabel="x₂")


def grid_around(rows: Array) -> Array:
    """A line or a lattice that covers the rows with a margin."""
    if rows.shape[1] > 2:
        raise ValueError(f"the rows have {rows.shape[1]} columns; only functions of 1 or 2 variables can be drawn")
    low, high = rows.min(axis=0), rows.max(axis=0)
    margin = MARGIN * np.where(high > low, high - low, 1.0)
    sides = [
        np.linspace(a, b, POINTS if rows.shape[1] == 1 else _SIDE)
        for a, b in zip(low - margin, high + margin, strict=True)
    ]
    return np.stack([side.ravel() for side in np.meshgrid(*sides)], axis=1)


class KernelMeanDisplay(ElementDisplay):
    """A kernel mean in one or two dimensions against the sample.

    Examples
    --------
    >>> import numpy as np
    >>> import muhat as mh
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> display = mh.plotting.KernelMeanDisplay.from_estimator(mh.ShrunkKernelMean().fit(X), X)
    """

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, *, ax: Any = None, **style: Any) -> Self:
        """Draw ``mean_`` of a fitted mean estimator over the rows of X."""
        check_is_fitted(estimator)
        rows = check_rows(X)
        grid = grid_around(rows)
        return cls(grid, estimator.mean_(grid), [("sample", rows)]).plot(ax, **style)


class WitnessDisplay(ElementDisplay):
    """The witness function of two samples, f − g: where it is high the first has more mass.

    Examples
    --------
    >>> import numpy as np
    >>> import muhat as mh
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(30, 1)), rng.laplace(size=(30, 1))
    >>> kernel = mh.Gaussian().resolve(np.vstack([X, Y]))
    >>> display = mh.plotting.WitnessDisplay.from_elements(mh.embed(kernel, X), mh.embed(kernel, Y), X, Y)
    """

    @classmethod
    def from_elements(cls, f: Element, g: Element, X: Any, Y: Any, *, ax: Any = None, **style: Any) -> Self:
        """Draw f − g over the two samples that the mean elements f and g were estimated from."""
        first, second = check_rows(X), check_rows(Y, name="Y")
        grid = grid_around(np.vstack([first, second]))
        samples = [("first sample", first), ("second sample", second)]
        return cls(grid, (f - g)(grid), samples, diverging=True).plot(ax, **style)


class MatchedDensityDisplay(ElementDisplay):
    """The density of a fitted mixture over data in one or two dimensions."""

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, *, ax: Any = None, **style: Any) -> Self:
        """Draw ``density_`` of a fitted ``MatchedGaussianMixture``, or a ``GaussianMixture``, over the rows of X."""
        density = estimator if isinstance(estimator, GaussianMixture) else estimator.density_
        rows = check_rows(X)
        grid = grid_around(rows)
        return cls(grid, np.exp(density.log_density(grid)), [("data", rows)]).plot(ax, **style)
