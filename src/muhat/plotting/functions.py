"""Display of functions: a kernel mean with or without bands, a witness function, or a density, over samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from muhat._support.types import Array
from muhat._support.validation import check_count, check_rows, check_weights
from muhat.inference.error_bars import Bands, mean_bands
from muhat.kernels.foreign import evaluates_new_rows
from muhat.linalg.blocks import random_rows
from muhat.plotting.display import POINTS, Display, line_over
from muhat.rkhs.elements import Element
from muhat.rkhs.measures import GaussianMixture

_SIDE = 80  # points of each side of a lattice
_LEVELS = 12  # of a contour plot
_MOST_ROWS = 200  # of the reference, over which a witness is averaged


@dataclass(repr=False)
class FunctionDisplay(Display):
    """A function of one or two variables over samples: a kernel mean, a density or a witness function.

    Parameters
    ----------
    grid : array of shape (m, 1) or (m, 2)
        Where the function was evaluated: a line, or a square lattice row by row.
    values : array of shape (m,)
        Value of the function at each point of the grid.
    points : list of (label, array) pairs
        Samples drawn below or over the function.
    diverging : bool, default False
        Whether values of both signs matter: a colour map with white at 0, and samples on the side where they have more
        mass.
    name : str, default "x"
        Name of the variable, where there is one.
    bands : Bands, optional
        Error bars of the values, along a line.

    See Also
    --------
    muhat.mean_bands : The error bars of a kernel mean.
    DriftDisplay : The score of a monitor over time.

    Examples
    --------
    A kernel mean with and without its bands, and the witness functions of two samples and of a test result:

    >>> import numpy as np
    >>> import muhat as mh
    >>> X, Y = np.random.default_rng(0).normal(size=(2, 30, 2)) * [[[1.0]], [[2.0]]]
    >>> mean = mh.plotting.FunctionDisplay.from_estimator(mh.ShrunkKernelMean().fit(X), X)
    >>> mh.plotting.FunctionDisplay.from_bands(mh.ShrunkKernelMean().fit(X), X, column=1).bands
    Bands(n_points=200, mean_width=0.170..., level=0.95)
    >>> f, g = mh.embed(mh.Gaussian(1.0), X), mh.embed(mh.Gaussian(1.0), Y)
    >>> witness = mh.plotting.FunctionDisplay.from_elements(f, g, X, Y)
    >>> tested = mh.plotting.FunctionDisplay.from_result(mh.mmd_test(X, Y, random_state=0))
    >>> [display.values.shape for display in (mean, witness, tested)]
    [(6400,), (6400,), (6400,)]
    """

    grid: Array
    values: Array
    points: list[tuple[str, Array]]
    diverging: bool = False
    name: str = "x"
    bands: Bands | None = None

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, *, ax: Any = None, **style: Any) -> Self:
        """Draw the function that was estimated from a sample, over that sample."""
        rows = check_rows(X)
        grid = _grid_around(rows)
        if not isinstance(estimator, GaussianMixture):
            check_is_fitted(estimator)
        function = getattr(estimator, "density_", estimator)
        is_density = isinstance(function, GaussianMixture)
        values = np.exp(function.log_density(grid)) if is_density else estimator.mean_(grid)
        return cls(grid, values, [("sample", rows)]).plot(ax, **style)

    @classmethod
    def from_elements(cls, f: Element, g: Element, X: Any, Y: Any, *, ax: Any = None, **style: Any) -> Self:
        """Draw f − g, for the kernel means f and g of two samples: high where the first sample has more mass."""
        samples = [("first sample", check_rows(X)), ("second sample", check_rows(Y, name="Y"))]
        return cls._witness(f - g, samples, ax, style)

    @classmethod
    def from_result(cls, result: Any, *, ax: Any = None, **style: Any) -> Self:
        """Draw the witness function of a two-sample test over both samples."""
        if getattr(result, "witness", None) is None:
            raise ValueError("this result has no witness, which needs a kernel and rows; use ComponentsDisplay")
        rows, n = result.witness.measures[0].points, result.sizes[0]
        return cls._witness(result.witness, [("X", rows[:n]), ("Y", rows[n:])], ax, style)

    @classmethod
    def from_bands(
        cls,
        estimator: Any,
        X: Any,
        *,
        column: int = 0,
        at: Any = None,
        level: float = 0.95,
        ax: Any = None,
        **style: Any,
    ) -> Self:
        """Draw a fitted mean, or ``muhat.embed(kernel, X)``, and its bands along one column.

        The column varies over its range in the sample and a quarter more on both sides; the others have the values
        ``at``, by default their medians; each point is covered with the probability ``level``.
        """
        rows = check_rows(X)
        points = _points_along(_mean_function(estimator), rows, column, at)
        bands = mean_bands(estimator, points, level)
        samples = [("sample", rows[:, [column]])]
        name = _column_name(estimator, column, rows)
        return cls(bands.points[:, [column]], bands.values, samples, name=name, bands=bands).plot(ax, **style)

    @classmethod
    def from_monitor(cls, monitor: Any, column: str | None = None, *, ax: Any = None, **style: Any) -> Self:
        """Draw the witness of an alarm along one column, the others averaged over the rows of the reference.

        By default it is the column that changed most; without names columns are ``x0``, ``x1``, ….
        """
        check_is_fitted(monitor)
        if monitor.result_ is None:
            raise ValueError("the monitor has raised no alarm, so there is no witness; draw DriftDisplay instead")
        names = monitor.column_names_
        column = monitor.result_.columns[0][0] if column is None else column
        if column not in names:
            raise ValueError(f"column={column!r} must be one of the columns of the reference: {names}")
        place = names.index(column)
        reference, new = monitor.compared_rows()
        line = line_over(np.concatenate([reference[:, place], new[:, place]]), _SIDE)
        points = np.tile(random_rows(reference, _MOST_ROWS, np.random.default_rng(0)), (len(line), 1))
        points[:, place] = np.repeat(line, len(points) // len(line))
        witness = monitor.witness_(points).reshape(len(line), -1).mean(axis=1)
        samples = [("reference", reference[:, [place]]), ("window of the alarm", new[:, [place]])]
        return cls(line[:, None], witness, samples, diverging=True, name=column).plot(ax, **style)

    @classmethod
    def _witness(cls, witness: Element, samples: list[tuple[str, Array]], ax: Any, style: dict[str, Any]) -> Self:
        grid = _grid_around(np.vstack([rows for _, rows in samples]))
        return cls(grid, witness(grid), samples, diverging=True).plot(ax, **style)

    def _draw(self, ax: Any, style: dict[str, Any]) -> None:
        if self.grid.shape[1] == 1:
            self._draw_line(ax, style)
        else:
            self._draw_map(ax, style)
        ax.legend()

    def _draw_line(self, ax: Any, style: dict[str, Any]) -> None:
        (line,) = ax.plot(self.grid[:, 0], self.values, **({"color": "C0"} | style))
        if self.bands is not None:
            band = {"color": line.get_color(), "alpha": 0.25, "linewidth": 0}
            label = f"{100 * self.bands.level:g} % at each point"
            ax.fill_between(self.grid[:, 0], self.bands.low, self.bands.high, label=label, **band)
        if self.diverging:
            ax.axhline(0, color="0.5", linewidth=0.8)
        low, high = ax.get_ylim()
        heights = (high, low) if self.diverging else (low,)
        for k, ((label, rows), height) in enumerate(zip(self.points, heights, strict=False), start=1):
            ax.plot(rows[:, 0], np.full(len(rows), height), "|", color=f"C{k}", markersize=12, label=label)
        ax.set(xlabel=self.name)

    def _draw_map(self, ax: Any, style: dict[str, Any]) -> None:
        side = round(len(self.grid) ** 0.5)
        x, y, z = (column.reshape(side, side) for column in (*self.grid.T, self.values))
        options: dict[str, Any] = {"levels": _LEVELS, "cmap": "Blues"}
        if self.diverging:
            largest = np.abs(z).max() or 1.0
            options |= {"cmap": "RdBu_r", "levels": np.linspace(-largest, largest, 2 * _LEVELS + 1)}
        ax.figure.colorbar(ax.contourf(x, y, z, **(options | style)), ax=ax)
        colours = ("#b2182b", "#2166ac") if self.diverging else ("#e66101", "#5e3c99")  # as the map where it has more
        for (label, rows), marker, colour in zip(self.points, "o^", colours, strict=False):
            edge = {"edgecolor": "white", "linewidth": 0.6}
            ax.scatter(*rows.T, s=14, marker=marker, color=colour, **edge, label=label)
        ax.set(xlabel="x₁", ylabel="x₂")


def _grid_around(rows: Array) -> Array:
    """A line or a lattice that covers the rows with a margin."""
    if rows.shape[1] > 2:
        raise ValueError(f"the rows have {rows.shape[1]} columns; only functions of 1 or 2 variables can be drawn")
    sides = [line_over(column, POINTS if rows.shape[1] == 1 else _SIDE) for column in rows.T]
    return np.stack([side.ravel() for side in np.meshgrid(*sides)], axis=1)


def _mean_function(mean: Any) -> Element:
    """The mean as a function of rows."""
    if not isinstance(mean, Element):
        check_is_fitted(mean, "mean_")
        mean = mean.mean_
    if not evaluates_new_rows(mean.kernel):
        raise ValueError("a mean of a Gram matrix is not a function of a column; fit it with a kernel object")
    return mean


def _points_along(mean: Element, rows: Array, column: int, at: Any) -> Array:
    """Points that differ in one column."""
    d = mean.n_features
    if rows.shape[1] != d:
        raise ValueError(f"X has {rows.shape[1]} columns and the mean {d}; pass the sample that it was fitted to")
    if check_count("column", column, low=0) >= d:
        raise ValueError(f"column={column} must be one of the {d} columns, counted from 0")
    points = np.tile(np.median(rows, axis=0) if at is None else check_weights("at", at, d), (POINTS, 1))
    points[:, column] = line_over(rows[:, column])
    return points


def _column_name(estimator: Any, column: int, rows: Array) -> str:
    names = getattr(estimator, "feature_names_in_", None)
    if names is not None:
        return str(names[column])
    return "x" if rows.shape[1] == 1 else f"column {column}"
