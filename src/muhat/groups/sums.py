"""Sums over groups of rows in features, which merge with ``+`` over the parts of a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from muhat._support.types import Array
from muhat._support.validation import check_rows
from muhat.bags.data import Bags, check_row_labels
from muhat.bags.moments import bag_moments
from muhat.features.base import BaseFeatures
from muhat.kernels.base import Kernel
from muhat.linalg.blocks import blocks
from muhat.linalg.resources import one_blas_thread

_ROWS = 4096


@dataclass(frozen=True, eq=False)
class GroupSums:
    r"""Means and scatter of groups of rows in features: all that estimates of their distances need.

    Sums of parts of a table, each with some of the rows of some of the groups, add up to the sums of the table. Give
    the total to :func:`muhat.group_distances` in place of the table.

    Parameters
    ----------
    features : Nystroem or Fourier
        Fitted features, the same ones for all parts.
    labels : array of shape (G,)
        The groups, sorted.
    sizes : array of shape (G,)
        Their numbers of rows (or of clusters).
    means : array of shape (G, m)
        Their mean features.
    spreads : array of shape (G,)
        :math:`\sum_a \|z_a - \bar z_i\|^2` of each.
    scatter : array of shape (m, m)
        :math:`\sum_i \sum_a (z_{ia} - \bar z_i)(z_{ia} - \bar z_i)^\top`.

    See Also
    --------
    muhat.group_distances : Distances of the groups.
    muhat.MeanSketch : The same for one mean.

    Examples
    --------
    >>> import numpy as np, muhat as mh
    >>> rng = np.random.default_rng(0)
    >>> X, groups = rng.normal(size=(600, 2)), rng.permutation(np.repeat(["a", "b", "c"], 200))
    >>> features = mh.Nystroem(n_components=20, random_state=0).fit(X[:200])
    >>> parts = [mh.groups.GroupSums.of(X[i::3], groups[i::3], features) for i in range(3)]
    >>> sum(parts)
    GroupSums(3 groups, 600 rows, 20 features)
    """

    features: Any
    labels: NDArray[Any]
    sizes: NDArray[np.intp]
    means: Array
    spreads: Array
    scatter: Array

    @classmethod
    @one_blas_thread()
    def of(cls, X: Any, groups: Any, features: BaseFeatures) -> GroupSums:
        """Sum up the rows of a part of a table by their labels, in fitted features."""
        if not isinstance(features, BaseFeatures):
            raise ValueError(f"features={features!r} must be fitted features, such as Nystroem().fit(rows)")
        check_is_fitted(features, "kernel_")
        rows = check_rows(X, estimator=features, reset=False)
        labels, codes = check_row_labels("groups", groups, len(rows))
        order = np.argsort(codes, kind="stable")
        return sums_of_sorted(rows[order], np.bincount(codes), labels, features)

    def __add__(self, other: Any) -> GroupSums:
        if not isinstance(other, GroupSums):
            return NotImplemented
        if self.features.fingerprint_ != other.features.fingerprint_:
            raise ValueError("the sums are of different features; fit features once, and use them for all parts")
        # The means of a group in both parts have n_i rows each: its scatter is that of the parts about their means, and
        # of these about the mean of both, n_i (x_i − x̄)(x_i − x̄)ᵀ.
        labels, group = np.unique(np.concatenate([self.labels, other.labels]), return_inverse=True)
        n, x = np.concatenate([self.sizes, other.sizes]), np.concatenate([self.means, other.means])
        sizes, means = np.bincount(group, n).astype(np.intp), np.zeros((len(labels), x.shape[1]))
        np.add.at(means, group, n[:, None] * x)
        means /= sizes[:, None]
        apart = np.sqrt(n)[:, None] * (x - means[group])
        spreads = np.zeros(len(labels))
        np.add.at(spreads, group, np.concatenate([self.spreads, other.spreads]) + np.square(apart).sum(axis=1))
        scatter = self.scatter + other.scatter + apart.T @ apart
        return GroupSums(self.features, labels, sizes, means, spreads, scatter)

    def __radd__(self, other: Any) -> GroupSums:
        return self if isinstance(other, int) and other == 0 else NotImplemented  # the start of sum()

    def __repr__(self) -> str:
        return f"GroupSums({len(self.labels):,} groups, {self.sizes.sum():,} rows, {self.means.shape[1]:,} features)"

    @property
    def kernel(self) -> Kernel:
        """The kernel of the features, with its bandwidth."""
        return self.features.kernel_

    @property
    def covariance(self) -> Array:
        """The covariance of all rows, within and between groups."""
        apart = self.means - self.sizes @ self.means / self.sizes.sum()
        return (self.scatter + (self.sizes[:, None] * apart).T @ apart) / self.sizes.sum()


def sums_of_sorted(rows: Array, sizes: NDArray[np.intp], labels: NDArray[Any], features: Any) -> GroupSums:
    """Sums of checked rows in the order of their groups."""
    moments = bag_moments(features, Bags(rows, np.cumsum([0, *sizes])))
    return GroupSums(features, labels, sizes, moments.means, moments.spreads, moments.within * moments.degrees)


def sums_of_units(Z: Array, offsets: NDArray[np.intp], labels: NDArray[Any], features: Any) -> GroupSums:
    """Sums of the features of units, such as averages over clusters; group i has those from offset i to i + 1."""
    sizes = np.diff(offsets)
    means = np.add.reduceat(Z, offsets[:-1]) / sizes[:, None]
    apart = Z - np.repeat(means, sizes, axis=0)
    spreads = np.add.reduceat(np.square(apart).sum(axis=1), offsets[:-1])
    return GroupSums(features, labels, sizes, means, spreads, apart.T @ apart)


def unit_means(evaluate: Callable[[Array], Array], rows: Array, units: NDArray[np.intp]) -> Array:
    """Averages of a function of rows over units, whose rows are contiguous; ``units`` has where each begins."""
    counts = np.diff(np.append(units, len(rows)))
    owners = np.repeat(np.arange(len(units)), counts)
    found: Array | None = None
    for block in blocks(len(rows), _ROWS):
        values = evaluate(rows[block])
        found = np.zeros((len(units), values.shape[1])) if found is None else found
        met, firsts = np.unique(owners[block], return_index=True)
        sums = values if len(met) == len(values) else np.add.reduceat(values, firsts)
        found[met] += sums / counts[met][:, None]
    assert found is not None
    return found
