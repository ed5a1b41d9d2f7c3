"""Display of points by class: rows on two principal components, and maps of bags."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.decomposition import KernelPCA
from sklearn.utils.validation import check_is_fitted

from muhat._support.types import Array
from muhat.bags.distribution_kernel import DistributionKernel
from muhat.bags.moments import RIDGE
from muhat.kernels.base import Kernel
from muhat.kernels.radial import Gaussian
from muhat.means.base import BaseKernelMean
from muhat.plotting.display import Display

_MOST_NAMED = 10  # classes of a legend


@dataclass
class ScatterDisplay(Display):
    """Points in the plane, coloured by class: rows on two principal components, or bags of rows.

    Parameters
    ----------
    positions : array of shape (n, 2)
        Where the points are.
    classes : array of shape (n,), optional
        Class of each point, for the colours alone.
    sizes : array of shape (n,), optional
        Rows of each bag; the area of its circle grows with them.
    names : (str, str)
        Names of the two axes.

    See Also
    --------
    muhat.KernelPCA : The estimator whose scores are drawn.
    muhat.BagPrior : The prior that says how far bags are pooled.
    muhat.DistributionKernel : The kernel between bags; ``whiten`` is explained there.

    Examples
    --------
    Rows by kernel PCA, bags by their pooled means, and bags by their whitened mean elements:

    >>> import numpy as np
    >>> import muhat as mh
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(30, 3))
    >>> bags = [rng.normal(rng.normal(size=2), size=(n, 2)) for n in rng.integers(3, 90, size=25)]
    >>> rows = mh.plotting.ScatterDisplay.from_estimator(mh.KernelPCA(2).fit(X), X, y=X[:, 0] > 0)
    >>> rows.names
    ('component 0 (38%)', 'component 1 (22%)')
    >>> pooled = mh.plotting.ScatterDisplay.from_prior(mh.BagPrior().fit(bags), bags)
    >>> whitened = mh.plotting.ScatterDisplay.from_bags(bags, whiten=True)
    >>> pooled.positions.shape, whitened.positions.shape
    ((25, 2), (25, 2))
    """

    positions: Array
    classes: Any = None
    sizes: Any = None
    names: tuple[str, str] = ("first direction", "second direction")

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
        """Draw the scores of the rows of X on two components of a fitted ``KernelPCA``.

        Parameters
        ----------
        estimator : fitted KernelPCA
            The components.
        X : array of shape (n, d)
            Rows to draw.
        y : array of shape (n,), optional
            Classes, for the colours.
        components : (int, int), default (0, 1)
            The two components, counted from 0.
        ax : matplotlib axes, optional
            Default: those of a new figure.
        **style
            Options of ``scatter``.

        Returns
        -------
        ScatterDisplay
        """
        check_is_fitted(estimator)
        shares = estimator.explained_variance_ratio_
        if not all(0 <= k < len(shares) for k in components):
            raise ValueError(f"components={components!r} must be two of the {len(shares)} components, counted from 0")
        scores = np.asarray(estimator.transform(X))[:, list(components)]
        first, second = (f"component {k} ({shares[k]:.0%})" for k in components)
        return cls(scores, y, names=(first, second)).plot(ax, **style)

    @classmethod
    def from_prior(cls, prior: Any, bags: Any, y: Any = None, *, ax: Any = None, **style: Any) -> Self:
        """Draw bags in the two directions in which they differ most, by a fitted :class:`~muhat.BagPrior`.

        Positions are pooled means in units of the noise of a row, so that small bags lie near the middle.

        Parameters
        ----------
        prior : BagPrior
            Fitted to these bags or to others.
        bags : sequence of arrays of shape (n_i, d)
            The bags to draw.
        y : array of shape (n,), optional
            Classes, for the colours.
        ax : matplotlib axes, optional
            Default: those of a new figure.
        **style
            Options of ``scatter``.

        Returns
        -------
        ScatterDisplay
        """
        vectors = np.asarray(prior.transform(bags))
        positions = np.zeros((len(vectors), 2))
        positions[:, : vectors.shape[1]] = vectors[:, :2]
        return cls(positions, y, np.array([len(bag) for bag in bags])).plot(ax, **style)

    @classmethod
    def from_bags(
        cls,
        bags: Any,
        y: Any = None,
        *,
        kernel: Kernel = Gaussian(),
        mean: BaseKernelMean | None = None,
        whiten: bool = False,
        ridge: float = RIDGE,
        ax: Any = None,
        **style: Any,
    ) -> Self:
        """Draw bags by kernel PCA of their mean elements, plain or whitened.

        Parameters
        ----------
        bags : sequence of arrays of shape (n_i, d)
            The bags: one matrix of rows each, all with d columns.
        y : array of shape (n,), optional
            Classes, for the colours alone: the map does not learn from them.
        kernel, mean, whiten, ridge
            See :class:`muhat.DistributionKernel`.
        ax : matplotlib axes, optional
            Default: those of a new figure.
        **style
            Options of ``scatter``.

        Returns
        -------
        ScatterDisplay
        """
        gram = DistributionKernel(kernel, mean, whiten=whiten, ridge=ridge).fit_transform(bags)
        positions = KernelPCA(2, kernel="precomputed").fit_transform(gram)
        return cls(positions, y, names=("first component", "second component")).plot(ax, **style)

    def _draw(self, ax: Any, style: dict[str, Any]) -> None:
        largest = 1 if self.sizes is None else max(np.max(self.sizes), 1)
        areas = np.full(len(self.positions), 18.0) if self.sizes is None else 8.0 + 400.0 * self.sizes / largest
        classes = np.zeros(len(self.positions)) if self.classes is None else np.asarray(self.classes)
        found = np.unique(classes)
        for name in found:
            chosen = classes == name
            options = {"s": areas[chosen], "label": str(name), "alpha": 0.7, "linewidths": 0.5, "edgecolors": "white"}
            ax.scatter(*self.positions[chosen].T, **(options | style))
        if self.classes is not None and len(found) <= _MOST_NAMED:
            for handle in ax.legend().legend_handles:
                handle.set_sizes([40.0])
        ax.set(xlabel=self.names[0], ylabel=self.names[1])
