"""Displays of bags: their Gram matrix, and a map of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from sklearn.decomposition import KernelPCA

from muhat.bags.bag_whitening import RIDGE
from muhat.bags.distribution_kernel import DistributionKernel
from muhat.kernels.base import Kernel
from muhat.kernels.radial import Gaussian
from muhat.means.base import BaseKernelMean
from muhat.plotting.display import Display, new_axes, scatter_classes, styled
from muhat.types import Array


@dataclass
class BagGramDisplay(Display):
    """The Gram matrix of bags, sorted by class, as a picture.

    Parameters
    ----------
    gram : array of shape (n, n)
        Kernel values of all pairs of bags.
    classes : array of shape (n,), optional
        Class of each bag, in ascending order; lines are drawn between classes.

    See Also
    --------
    muhat.DistributionKernel : The kernel between bags.
    BagMapDisplay : Bags as points.

    Examples
    --------
    >>> import numpy as np, muhat as mh
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(12) % 2
    >>> bags = [rng.normal(label, size=(10, 2)) for label in y]
    >>> mh.plotting.BagGramDisplay.from_estimator(mh.DistributionKernel(), bags, y=y).gram.shape
    (12, 12)
    """

    gram: Array
    classes: Any = None

    @classmethod
    def from_estimator(cls, estimator: Any, bags: Any, *, y: Any = None, ax: Any = None, **style: Any) -> Self:
        """Draw the Gram matrix of the training bags of a ``DistributionKernel`` that is fitted here.

        Parameters
        ----------
        estimator : DistributionKernel
            It is fitted to the bags.
        bags : sequence of arrays of shape (n_i, d)
            One array of rows per bag.
        y : array of shape (n,), optional
            Classes, by which the bags are sorted.
        ax : matplotlib axes, optional
            Default: those of a new figure.
        **style
            Options of ``imshow``.

        Returns
        -------
        BagGramDisplay
            The display, drawn.
        """
        gram = np.asarray(estimator.fit_transform(bags))
        if y is None:
            return cls(gram).plot(ax, **style)
        order = np.argsort(np.asarray(y), kind="stable")
        return cls(gram[np.ix_(order, order)], np.asarray(y)[order]).plot(ax, **style)

    def _draw(self, ax: Any, style: dict[str, Any]) -> None:
        image = ax.imshow(self.gram, **styled({"cmap": "viridis", "interpolation": "nearest"}, style))
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


@dataclass
class BagMapDisplay(Display):
    """A map of groups: the two directions in which they differ most, a circle each, its area by the number of rows.

    Parameters
    ----------
    positions : array of shape (n, 2)
        Pooled means in units of the noise of a row, so small groups lie near the middle.
    sizes : array of shape (n,)
        Rows of each group.
    classes : array of shape (n,), optional
        For the colours alone.

    See Also
    --------
    muhat.BagPrior : The prior that says how far bags are pooled.
    WhitenedBagsDisplay : Bags by kernel PCA, plain and whitened.

    Examples
    --------
    >>> import numpy as np
    >>> import muhat as mh
    >>> rng = np.random.default_rng(0)
    >>> bags = [rng.normal(rng.normal(size=2), size=(n, 2)) for n in rng.integers(3, 90, size=30)]
    >>> mh.plotting.BagMapDisplay.from_prior(mh.BagPrior().fit(bags), bags).positions.shape
    (30, 2)
    """

    positions: Array
    sizes: Any
    classes: Any = None

    @classmethod
    def from_prior(cls, prior: Any, bags: Any, y: Any = None, *, ax: Any = None, **style: Any) -> Self:
        """Draw bags by a fitted :class:`~muhat.BagPrior`.

        Parameters
        ----------
        prior : BagPrior
            Fitted to these bags or to others.
        bags : sequence of arrays of shape (n_i, d)
            The groups to draw.
        y : array of shape (n,), optional
            Classes, for the colours.
        ax : matplotlib axes, optional
            Default: those of a new figure.
        **style
            Options of ``scatter``.

        Returns
        -------
        BagMapDisplay
        """
        vectors = np.asarray(prior.transform(bags))
        positions = np.zeros((len(vectors), 2))
        positions[:, : vectors.shape[1]] = vectors[:, :2]
        sizes = np.array([len(bag) for bag in bags])
        return cls(positions, sizes, None if y is None else np.asarray(y)).plot(ax, **style)

    def _draw(self, ax: Any, style: dict[str, Any]) -> None:
        areas = 8.0 + 400.0 * self.sizes / max(np.max(self.sizes), 1)
        drawn = {"alpha": 0.6, "linewidths": 0.5, "edgecolors": "white"}
        if 1 < scatter_classes(ax, self.positions, self.classes, styled(drawn, style), areas) <= 10:
            legend = ax.legend(frameon=False)
            for handle in legend.legend_handles:
                handle.set_sizes([40.0])
        ax.set(xlabel="first direction", ylabel="second direction", xticks=[], yticks=[])


@dataclass
class WhitenedBagsDisplay:
    """Bags as points, by kernel PCA of their mean elements: plain on the left, whitened on the right.

    Parameters
    ----------
    plain, whitened : arrays of shape (n, 2)
        Positions of the bags.
    classes : array of shape (n,), optional
        For the colours alone.

    See Also
    --------
    muhat.DistributionKernel : Its ``whiten=`` is what the picture shows.
    BagMapDisplay : Bags by their pooled means.

    Examples
    --------
    >>> import numpy as np
    >>> import muhat as mh
    >>> rng = np.random.default_rng(0)
    >>> bags = [rng.normal(size=(10, 2)) * [9, 1] for _ in range(30)]
    >>> display = mh.plotting.WhitenedBagsDisplay.from_bags(bags)
    >>> display.whitened.shape
    (30, 2)
    """

    plain: Array
    whitened: Array
    classes: Any = None
    axes_: Any = field(default=None, init=False, repr=False)
    figure_: Any = field(default=None, init=False, repr=False)

    @classmethod
    def from_bags(
        cls,
        bags: Any,
        y: Any = None,
        *,
        kernel: Kernel = Gaussian(),
        mean: BaseKernelMean | None = None,
        ridge: float = RIDGE,
        axes: Any = None,
        **style: Any,
    ) -> Self:
        """Compute both maps of the bags, and draw them.

        Parameters
        ----------
        bags : sequence of arrays of shape (n_i, d)
            The bags: one matrix of rows each, all with d columns.
        y : array of shape (n,), optional
            Classes, for the colours alone: neither map learns from them.
        kernel, mean, ridge
            See :class:`muhat.DistributionKernel`.
        axes : two matplotlib axes, optional
            Default: those of a new figure.
        **style
            Options of ``scatter``.

        Returns
        -------
        WhitenedBagsDisplay
            The display, drawn.
        """
        plain, whitened = (
            KernelPCA(2, kernel="precomputed").fit_transform(
                DistributionKernel(kernel, mean, whiten=whiten, ridge=ridge).fit_transform(bags)
            )
            for whiten in (False, True)
        )
        return cls(plain, whitened, None if y is None else np.asarray(y)).plot(axes, **style)

    def plot(self, axes: Any = None, **style: Any) -> Self:
        """Draw.

        Parameters
        ----------
        axes : two matplotlib axes, optional
            Default: those of a new figure.
        **style
            Options of ``scatter``.

        Returns
        -------
        self
            The display.
        """
        self.axes_ = new_axes(2, figsize=(9, 4.2)) if axes is None else axes
        self.figure_ = self.axes_[0].figure
        for ax, positions, title in zip(self.axes_, (self.plain, self.whitened), ("plain", "whitened"), strict=True):
            scatter_classes(ax, positions, self.classes, styled({"alpha": 0.85, "linewidths": 0}, style), 18.0)
            ax.set(title=title, xlabel="first component", ylabel="second component", xticks=[], yticks=[])
        if self.classes is not None:
            self.axes_[-1].legend()
        return self
