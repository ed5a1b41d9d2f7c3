"""Display objects, as scikit-learn has them: they hold the data of a picture, and ``plot(ax)`` draws it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from muhat.elements import Element
from muhat.measures import GaussianMixture
from muhat.selection import ScorePath
from muhat.types import Array
from muhat.validation import check_rows

_MARGIN = 0.25
_POINTS = 200
_SIDE = 80
_LEVELS = 12


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("pictures need matplotlib: pip install 'muhat[plot]'") from error
    return plt.subplots(layout="constrained")[1]


def _style(defaults: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
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
        self.ax_ = _axes(ax)
        self.figure_ = self.ax_.figure
        self._draw(self.ax_, style)
        return self

    def _draw(self, ax: Any, style: dict[str, Any]) -> None:
        raise TypeError(f"{type(self).__name__} must define _draw(ax, style)")


@dataclass
class LooPathDisplay(Display):
    """The leave-one-out score over the amount of shrinkage, with the choice marked.

    Parameters
    ----------
    path : ScorePath
    chosen : float
        0 and inf, limits of λ, lie at the ends of the curve.
    score : float
        Score of the choice.
    name : str
        "shrinkage" or "lam"; λ is drawn on a logarithmic axis.

    Examples
    --------
    >>> import muhat as mh
    >>> from muhat.plotting import LooPathDisplay
    >>> X = mh.paper_mixture(10, random_state=0).sample(20, random_state=0)
    >>> display = LooPathDisplay.from_estimator(mh.SpectralKernelMean().fit(X))
    """

    path: ScorePath
    chosen: float
    score: float
    name: str

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **style: Any) -> Self:
        """Draw the curve of a fitted ``ShrunkKernelMean`` or ``SpectralKernelMean``."""
        check_is_fitted(estimator)
        path = getattr(estimator, "loo_path_", None)
        if path is None:
            raise ValueError(f'{estimator!r} searched no parameter; fit it with shrinkage="loo" or lam="loo"')
        name = "shrinkage" if hasattr(estimator, "shrinkage_") else "lam"
        return cls(path, getattr(estimator, f"{name}_"), estimator.loo_score_, name).plot(ax, **style)

    def _draw(self, ax: Any, style: dict[str, Any]) -> None:
        values, scores = self.path
        ax.plot(values, scores, **_style({"label": "leave-one-out score"}, style))
        at = min(max(self.chosen, values[0]), values[-1])
        ax.plot([at], [self.score], "o", color="C1", label=f"chosen: {self.chosen:.3g}")
        if self.name == "lam":
            ax.set_xscale("log")
        ax.set(xlabel="λ" if self.name == "lam" else "α", ylabel="score")
        ax.legend()


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
        ax.plot(self.grid[:, 0], self.values, **_style({"color": "C0"}, style))
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
        ax.figure.colorbar(ax.contourf(x, y, z, **_style(options, style)), ax=ax)
        colours = ("#b2182b", "#2166ac") if self.diverging else ("#e66101", "#5e3c99")  # as the map where it has more
        for (label, rows), marker, colour in zip(self.points, "o^", colours, strict=False):
            edge = {"edgecolor": "white", "linewidth": 0.6}
            ax.scatter(*rows.T, s=14, marker=marker, color=colour, **edge, label=label or None)
        ax.set(xlabel="x₁", ylabel="x₂")


def _grid_around(rows: Array) -> Array:
    """A line or a lattice that covers the rows with a margin."""
    if rows.shape[1] > 2:
        raise ValueError(f"the rows have {rows.shape[1]} columns; only functions of 1 or 2 variables can be drawn")
    low, high = rows.min(axis=0), rows.max(axis=0)
    margin = _MARGIN * np.where(high > low, high - low, 1.0)
    sides = [
        np.linspace(a, b, _POINTS if rows.shape[1] == 1 else _SIDE)
        for a, b in zip(low - margin, high + margin, strict=True)
    ]
    return np.stack([side.ravel() for side in np.meshgrid(*sides)], axis=1)


class KernelMeanDisplay(ElementDisplay):
    """A kernel mean in one or two dimensions against the sample.

    Examples
    --------
    >>> import numpy as np, muhat as mh
    >>> from muhat.plotting import KernelMeanDisplay
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> display = KernelMeanDisplay.from_estimator(mh.ShrunkKernelMean().fit(X), X)
    """

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, *, ax: Any = None, **style: Any) -> Self:
        """Draw ``mean_`` of a fitted mean estimator over the rows of X."""
        check_is_fitted(estimator)
        rows = check_rows(X)
        grid = _grid_around(rows)
        return cls(grid, estimator.mean_(grid), [("sample", rows)]).plot(ax, **style)


class WitnessDisplay(ElementDisplay):
    """The witness function of two samples, f − g: where it is high the first has more mass.

    Examples
    --------
    >>> import numpy as np, muhat as mh
    >>> from muhat.plotting import WitnessDisplay
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(30, 1)), rng.laplace(size=(30, 1))
    >>> kernel = mh.Gaussian().resolve(np.vstack([X, Y]))
    >>> display = WitnessDisplay.from_elements(mh.embed(kernel, X), mh.embed(kernel, Y), X, Y)
    """

    @classmethod
    def from_elements(cls, f: Element, g: Element, X: Any, Y: Any, *, ax: Any = None, **style: Any) -> Self:
        """Draw f − g over the two samples that the mean elements f and g were estimated from."""
        first, second = check_rows(X), check_rows(Y, name="Y")
        grid = _grid_around(np.vstack([first, second]))
        samples = [("first sample", first), ("second sample", second)]
        return cls(grid, (f - g)(grid), samples, diverging=True).plot(ax, **style)


class MatchedDensityDisplay(ElementDisplay):
    """The density of a fitted mixture over data in one or two dimensions."""

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, *, ax: Any = None, **style: Any) -> Self:
        """Draw ``density_`` of a fitted ``MatchedGaussianMixture``, or a ``GaussianMixture``, over the rows of X."""
        density = estimator if isinstance(estimator, GaussianMixture) else estimator.density_
        rows = check_rows(X)
        grid = _grid_around(rows)
        return cls(grid, np.exp(density.log_density(grid)), [("data", rows)]).plot(ax, **style)


@dataclass
class KernelPCADisplay(Display):
    """Scores of rows on two principal components, coloured by class.

    Examples
    --------
    >>> import numpy as np, muhat as mh
    >>> from muhat.plotting import KernelPCADisplay
    >>> X = np.random.default_rng(0).normal(size=(30, 3))
    >>> display = KernelPCADisplay.from_estimator(mh.KernelPCA(2).fit(X), X, y=X[:, 0] > 0)
    """

    scores: Array
    shares: Array
    classes: Any = None
    components: tuple[int, int] = (0, 1)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        y: Any = None,
        components: tuple[int, int] = (0, 1),
        ax: Any = None,
        **style: Any,
    ) -> Self:
        """Draw the scores of the rows of X on two components of a fitted ``KernelPCA``."""
        check_is_fitted(estimator)
        shares = estimator.explained_variance_ratio_
        if not all(0 <= k < len(shares) for k in components):
            raise ValueError(f"components={components!r} must be two of the {len(shares)} components, counted from 0")
        scores = np.asarray(estimator.transform(X))
        return cls(scores, shares, None if y is None else np.asarray(y), components).plot(ax, **style)

    def _draw(self, ax: Any, style: dict[str, Any]) -> None:
        i, j = self.components
        groups = [None] if self.classes is None else list(np.unique(self.classes))
        for group in groups:
            chosen = slice(None) if group is None else self.classes == group
            label = None if group is None else str(group)
            ax.scatter(self.scores[chosen, i], self.scores[chosen, j], **_style({"s": 14, "label": label}, style))
        if self.classes is not None:
            ax.legend()
        ax.set(xlabel=f"component {i} ({self.shares[i]:.0%})", ylabel=f"component {j} ({self.shares[j]:.0%})")


@dataclass
class BagGramDisplay(Display):
    """The Gram matrix of bags, sorted by class, as a picture."""

    gram: Array
    classes: Any = None

    @classmethod
    def from_estimator(cls, estimator: Any, bags: Any, *, y: Any = None, ax: Any = None, **style: Any) -> Self:
        """Draw the Gram matrix of the training bags of a ``DistributionKernel`` that is fitted here."""
        gram = np.asarray(estimator.fit_transform(bags))
        if y is None:
            return cls(gram).plot(ax, **style)
        order = np.argsort(np.asarray(y), kind="stable")
        return cls(gram[np.ix_(order, order)], np.asarray(y)[order]).plot(ax, **style)

    def _draw(self, ax: Any, style: dict[str, Any]) -> None:
        image = ax.imshow(self.gram, **_style({"cmap": "viridis", "interpolation": "nearest"}, style))
        ax.figure.colorbar(image, ax=ax)
        if self.classes is not None:
            names, starts, counts = np.unique(self.classes, return_index=True, return_counts=True)
            for start in starts[1:]:
                ax.axhline(start - 0.5, color="w", linewidth=0.8)
                ax.axvline(start - 0.5, color="w", linewidth=0.8)
            middles = starts + counts / 2 - 0.5
            ax.set_xticks(middles, names)
            ax.set_yticks(middles, names)
        ax.set(xlabel="bag", ylabel="bag")
