"""Displays of mean estimates: path of the leave-one-out score, bands, mixing weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from muhat.elements import Element
from muhat.inference.error_bars import Bands, mean_bands
from muhat.kernels.foreign import evaluates_new_rows
from muhat.means.adaptive import AdaptiveKernelMean
from muhat.plotting.display import Display, styled
from muhat.shrinkage.scores import ScorePath
from muhat.types import Array, RandomState
from muhat.validation import check_count, check_rows, check_weights


@dataclass
class LooPathDisplay(Display):
    """The leave-one-out score over the amount of shrinkage, with the choice marked.

    Parameters
    ----------
    path : ScorePath
        Values of the parameter, and the score at each.
    chosen : float
        0 and inf, limits of λ, lie at the ends of the curve.
    score : float
        Score of the choice.
    name : str
        "shrinkage" or "lam"; λ is drawn on a logarithmic axis.

    Examples
    --------
    >>> import muhat as mh
    >>> X = mh.paper_mixture(10, random_state=0).sample(20, random_state=0)
    >>> display = mh.plotting.LooPathDisplay.from_estimator(mh.SpectralKernelMean().fit(X))
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
        ax.plot(values, scores, **styled({"label": "leave-one-out score"}, style))
        at = min(max(self.chosen, values[0]), values[-1])
        ax.plot([at], [self.score], "o", color="C1", label=f"chosen: {self.chosen:.3g}")
        if self.name == "lam":
            ax.set_xscale("log")
        ax.set(xlabel="λ" if self.name == "lam" else "α", ylabel="score")
        ax.legend()


MARGIN = 0.25


POINTS = 200


@dataclass
class BandsDisplay(Display):
    """An estimated mean as a function of one column, with its bands.

    Parameters
    ----------
    bands : Bands
        Along a line: see :func:`muhat.inference.mean_bands`.
    sample : array of shape (n,)
        The column in the sample, drawn as marks below.
    column : int, default 0
    name : str, default "x"
        That of the column.

    Examples
    --------
    >>> import numpy as np
    >>> import muhat as mh
    >>> X = np.random.default_rng(0).normal(size=(40, 1))
    >>> display = mh.plotting.BandsDisplay.from_estimator(mh.KernelMean().fit(X), X)
    >>> display.bands
    Bands(n_points=200, mean_width=0.171..., level=0.95, method='jackknife')
    """

    bands: Bands
    sample: Array
    column: int = 0
    name: str = "x"

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        column: int = 0,
        at: Any = None,
        level: float = 0.95,
        method: Literal["jackknife", "bootstrap"] = "jackknife",
        n_resamples: int = 999,
        random_state: RandomState = None,
        ax: Any = None,
        **style: Any,
    ) -> Self:
        """Compute the bands of a fitted mean estimator along one column, and draw them.

        Parameters
        ----------
        estimator : fitted mean estimator, or Element ``muhat.embed(kernel, X)``
        X : array of shape (n, d)
            The sample.
        column : int, default 0
            The column that varies, over its range in the sample and a quarter more on both sides.
        at : array of shape (d,), optional
            The values of the other columns. Default: their medians in the sample.
        level, method, n_resamples, random_state
            See :func:`muhat.inference.mean_bands`.
        ax : matplotlib axes, optional
        **style
            Options of the line.

        Returns
        -------
        BandsDisplay
        """
        rows = check_rows(X)
        points = _along(_function(estimator), rows, column, at)
        bands = mean_bands(estimator, points, level, method, n_resamples, random_state)
        return cls(bands, rows[:, column], column, _name(estimator, column, rows)).plot(ax, **style)

    def _draw(self, ax: Any, style: dict[str, Any]) -> None:
        at, bands = self.bands.points[:, self.column], self.bands
        (line,) = ax.plot(at, bands.values, **{"label": "estimate", **style})
        colour, label = line.get_color(), f"{100 * bands.level:g} % at each point"
        ax.fill_between(at, bands.low, bands.high, color=colour, alpha=0.25, linewidth=0, label=label)
        marks = {"color": "0.5", "markersize": 8, "transform": ax.get_xaxis_transform()}
        ax.plot(self.sample, np.full(len(self.sample), 0.02), "|", **marks)
        ax.set(xlabel=self.name, ylabel="mean")
        ax.legend()


def _function(mean: Any) -> Element:
    """The mean as a function of rows."""
    if not isinstance(mean, Element):
        check_is_fitted(mean, "mean_")
        mean = mean.mean_
    if not evaluates_new_rows(mean.kernel):
        raise ValueError("a mean of a Gram matrix is not a function of a column; fit it with a kernel object")
    return mean


def _along(mean: Element, rows: Array, column: int, at: Any) -> Array:
    """Points that differ in one column."""
    d = mean.n_features
    if rows.shape[1] != d:
        raise ValueError(f"X has {rows.shape[1]} columns and the mean {d}; pass the sample that it was fitted to")
    if check_count("column", column, low=0) >= d:
        raise ValueError(f"column={column} must be one of the {d} columns, counted from 0")
    points = np.tile(np.median(rows, axis=0) if at is None else check_weights("at", at, d), (POINTS, 1))
    low, high = rows[:, column].min(), rows[:, column].max()
    margin = MARGIN * (high - low if high > low else 1.0)
    points[:, column] = np.linspace(low - margin, high + margin, POINTS)
    return points


def _name(estimator: Any, column: int, rows: Array) -> str:
    names = getattr(estimator, "feature_names_in_", None)
    if names is not None:
        return str(names[column])
    return "x" if rows.shape[1] == 1 else f"column {column}"


@dataclass
class SharesDisplay(Display):
    """What adaptive means are made of: the weight of the rows, that of the target, and what is shrunk away.

    A bar for each mean a·F(λ) + b·f*. The weight of the rows is the sum of ``weights_``, a·Σβ, that of the target b.
    The plain average has all its weight, 1, on the rows; what is missing to 1 is shrunk away.

    Parameters
    ----------
    labels : list of str
    rows : array of shape (m,)
        Weight of the rows in each mean.
    shares : array of shape (m, 2)
        (a, b).
    lams : array of shape (m,)
        λ.

    Examples
    --------
    >>> import numpy as np
    >>> import muhat as mh
    >>> X = np.random.default_rng(0).normal(size=(20, 5))
    >>> means = [mh.AdaptiveKernelMean(mh.Gaussian(width)).fit(X) for width in (0.5, 2.0)]
    >>> display = mh.plotting.SharesDisplay.from_estimator(*means, labels=["narrow", "wide"])
    >>> display.ax_.get_xlabel()
    'weight'
    """

    labels: list[str]
    rows: Array
    shares: Array
    lams: Array

    @classmethod
    def from_estimator(cls, *estimators: AdaptiveKernelMean, labels: Any = None, ax: Any = None, **style: Any) -> Self:
        """Draw a bar for each fitted ``AdaptiveKernelMean``.

        Parameters
        ----------
        *estimators : fitted AdaptiveKernelMean
        labels : list of str, optional
            One an estimator. Default: "adaptive mean", numbered where there are several.
        ax : matplotlib axes, optional
        **style
            Options of the bars.

        Returns
        -------
        SharesDisplay
        """
        names = _labels(estimators, labels)
        for estimator in estimators:
            if not isinstance(estimator, AdaptiveKernelMean):
                raise ValueError(f"{estimator!r} has no shares; pass fitted AdaptiveKernelMean estimators")
            check_is_fitted(estimator, "mean_")
        shares = np.array([estimator.shares_ for estimator in estimators])
        rows = np.array([estimator.weights_.sum() for estimator in estimators])
        lams = np.array([estimator.lam_ for estimator in estimators])
        return cls(names, rows, shares, lams).plot(ax, **style)

    @property
    def shrunk(self) -> Array:
        """What is missing to the weight 1 of the plain average; 0 where rows and target have more."""
        return np.maximum(1.0 - self.rows - self.shares[:, 1], 0.0)

    def _draw(self, ax: Any, style: dict[str, Any]) -> None:
        places = range(len(self.labels))
        empty = {"facecolor": "none", "edgecolor": "0.5", "hatch": "///", "linewidth": 0.5}
        parts: list[tuple[str, Array, dict[str, Any]]] = [
            ("rows", self.rows, {"color": "C0"}),
            ("target", self.shares[:, 1], {"color": "C1"}),
            ("shrunk away", self.shrunk, empty),
        ]
        left = np.zeros(len(places))
        for label, widths, look in parts:
            ax.barh(places, widths, left=left, **{"height": 0.6, "label": label, **look, **style})
            left = left + widths
        ax.axvline(1, color="0.5", linestyle=":")
        ax.set_yticks(places, [self._tick(k) for k in places])
        ax.set(xlabel="weight", xlim=(0, 1.05 * left.max()), ylim=(len(places) - 0.4, -0.6))
        ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, frameon=False)

    def _tick(self, k: int) -> str:
        a, b = self.shares[k]
        lam = "∞" if np.isinf(self.lams[k]) else f"{self.lams[k]:.3g}"
        return f"{self.labels[k]}\na = {a:.2f}, b = {b:.2f}, λ = {lam}"


def _labels(estimators: tuple[Any, ...], labels: Any) -> list[str]:
    if not estimators:
        raise ValueError("pass at least one fitted AdaptiveKernelMean")
    if labels is None:
        several = len(estimators) > 1
        return [f"adaptive mean {k + 1}" if several else "adaptive mean" for k in range(len(estimators))]
    if isinstance(labels, str) or len(labels) != len(estimators):
        raise ValueError(f"labels={labels!r} must have one entry for each of the {len(estimators)} estimators")
    return [str(label) for label in labels]
