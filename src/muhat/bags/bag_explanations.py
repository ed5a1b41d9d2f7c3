"""Explanations of anomalous bags: means, dispersions and correlations of columns, beside those of normal bags."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from muhat._support.types import Array
from muhat.bags.data import Bags
from muhat.linalg.whitening import Whitening

MOST_DEVIATIONS = 5
"""Deviations that an explanation holds: as many as a glance takes in."""

MOST_COLUMNS_FOR_PAIRS = 60
"""Columns up to which correlations of pairs are compared, 1,770 of them."""

SMALLEST_VARIANCE = 0.01
"""Added to variances within a bag, in units of those of all rows, so that logarithms and correlations are finite."""


class ColumnDeviation(NamedTuple):
    """How a statistic of a bag deviates from normal bags of its size.

    Parameters
    ----------
    columns : tuple
        The name of the column, or of two columns; numbers where columns have no names.
    statistic : {"mean", "dispersion", "correlation"}
        Of one column, or the correlation of two.
    given_others : bool
        Whether the column was taken as the residual of a regression on the other columns.
    z : float
        The deviation in standard deviations over normal bags of the size; positive for larger values.
    """

    columns: tuple[Any, ...]
    statistic: str
    given_others: bool
    z: float

    def __str__(self) -> str:
        names = " and ".join(name if isinstance(name, str) else f"column {name}" for name in self.columns)
        given, direction = " given the other columns" if self.given_others else "", "higher" if self.z > 0 else "lower"
        return f"{self.statistic} of {names}{given} {direction} (z = {self.z:.1f})"


class BagExplanation(NamedTuple):
    """Explanation of an anomalous bag: its differences from normal ones.

    Parameters
    ----------
    p_value : float
        That of the bag.
    views : dict of str to float
        Standardised score of each view of :class:`GroupAnomalyDetector`; the largest saw most.
    deviations : list of ColumnDeviation
        What deviates most, the largest deviation first; each column or pair of columns once.
    """

    p_value: float
    views: dict[str, float]
    deviations: list[ColumnDeviation]

    def __str__(self) -> str:
        return f"p = {self.p_value:.2g}: " + "; ".join(map(str, self.deviations))


class ColumnStatistics(NamedTuple):
    """Statistics of a bag that are compared: the scales of columns and residuals, and pairs of columns."""

    whitening: Whitening
    residual_scale: Array
    first: NDArray[np.intp]  # columns of each pair
    second: NDArray[np.intp]

    @classmethod
    def of(cls, bags: Bags, whitening: Whitening) -> ColumnStatistics:
        """Find scales and pairs on training bags."""
        scale = whitening.residuals(bags.rows).std(axis=0)
        d = bags.rows.shape[1]
        first, second = np.triu_indices(d if d <= MOST_COLUMNS_FOR_PAIRS else 0, 1)
        return cls(whitening, np.where(scale > 0, scale, 1.0), first, second)

    def labels(self) -> list[tuple[tuple[int, ...], str, bool]]:
        """Columns, name, and whether given the others, of each statistic."""
        d = len(self.residual_scale)
        single = [((j,), what, given) for what in ("mean", "dispersion") for given in (False, True) for j in range(d)]
        pairs = zip(self.first.tolist(), self.second.tolist(), strict=True)
        return [*single, *((pair, "correlation", False) for pair in pairs)]

    def of_bags(self, bags: Bags) -> Array:
        """Means and log-variances of columns and residuals, and Fisher's z of correlations: one row per bag.

        A bag of one row has the variances of all rows, and correlations 0.
        """
        columns = self.whitening.standardise(bags.rows)
        values = np.hstack([columns, self.whitening.residuals(bags.rows) / self.residual_scale])
        sizes, starts = bags.sizes[:, None], bags.offsets[:-1]
        means = np.add.reduceat(values, starts) / sizes
        values -= np.repeat(means, bags.sizes, axis=0)
        freedom = np.maximum(sizes - 1, 1)
        variances = np.where(sizes > 1, np.add.reduceat(np.square(values), starts) / freedom, 1.0) + SMALLEST_VARIANCE
        products = [
            np.add.reduceat(values[:, j] * values[:, k], starts) for j, k in zip(self.first, self.second, strict=True)
        ]
        if not products:
            return np.hstack([means, np.log(variances)])
        covariances = np.column_stack(products) / freedom
        correlations = covariances / np.sqrt(variances[:, self.first] * variances[:, self.second])
        return np.hstack([means, np.log(variances), np.arctanh(correlations.clip(-0.999, 0.999))])


class ColumnPrior(NamedTuple):
    r"""Centre of each statistic over normal bags, and its variance :math:`b + a/n` for a bag of n rows."""

    statistics: ColumnStatistics
    centre: Array
    between: Array  # b
    noise: Array  # a

    @classmethod
    def of(cls, bags: Bags, whitening: Whitening) -> ColumnPrior:
        """By least squares with b, a >= 0 on the squared deviations of training bags, large bags weighing more."""
        statistics = ColumnStatistics.of(bags, whitening)
        several = bags.sizes > 1
        values, sizes = statistics.of_bags(bags)[several], bags.sizes[several]
        centre = sizes @ values / sizes.sum()
        root, design = np.sqrt(sizes), np.column_stack([np.ones(len(sizes)), 1.0 / sizes])
        squares = np.square(values - centre)
        variances = np.array([nnls(root[:, None] * design, root * column)[0] for column in squares.T])
        return cls(statistics, centre, variances[:, 0], variances[:, 1])

    def explain(self, bags: Bags, names: Any = None) -> list[list[ColumnDeviation]]:
        """The largest deviations of each bag, each column or pair once; ``names`` are those of the columns."""
        variances = self.between + self.noise / bags.sizes[:, None]
        known = variances > 0
        z = np.where(known, (self.statistics.of_bags(bags) - self.centre) / np.sqrt(np.where(known, variances, 1.0)), 0)
        labels, found = self.statistics.labels(), []
        for row in z:
            best: dict[tuple[int, ...], ColumnDeviation] = {}
            for k in np.argsort(-np.abs(row), kind="stable"):
                columns, what, given = labels[k]
                named = columns if names is None else tuple(names[j] for j in columns)
                best.setdefault(columns, ColumnDeviation(named, what, given, float(row[k])))
                if len(best) == MOST_DEVIATIONS:
                    break
            found.append(list(best.values()))
        return found
