"""Standardisation of the columns of bags, as a step of a pipeline."""

from __future__ import annotations

from typing import Any, Self

from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from muhat.bags.data import TakesBagsMixin, check_bags
from muhat.tables.scales import ColumnScales
from muhat.types import Array
from muhat.validation import unchanged_on_error


class BagScaler(TakesBagsMixin, TransformerMixin, BaseEstimator):
    """Standardise the columns of bags: mean 0 and variance 1 over all rows of the bags of fit.

    scikit-learn's ``StandardScaler`` on the pooled rows, for pipelines whose samples are bags.

    Attributes
    ----------
    mean_, scale_ : arrays of shape (d,)
        Of the pooled rows; the scale of a constant column is 1.
    n_features_in_ : int
        Columns of the bags.

    See Also
    --------
    bags_from_groups : Bags from the rows of a table.
    DistributionRidge : Regression on bags.
    sklearn.preprocessing.StandardScaler : The same for rows.

    Examples
    --------
    >>> import numpy as np, muhat as mh
    >>> from sklearn.pipeline import make_pipeline
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(30) % 2
    >>> bags = [rng.normal(scale=1 + label, size=(20, 2)) * [1, 1000] for label in y]
    >>> make_pipeline(mh.BagScaler(), mh.SupportMeasureClassifier()).fit(bags, y).score(bags, y)
    1.0
    """

    @unchanged_on_error
    def fit(self, bags: Any, y: Any = None) -> Self:
        """Learn mean and scale of the columns.

        Parameters
        ----------
        bags : sequence of arrays of shape (n_i, d)
            The bags to learn from.
        y : ignored
            For pipelines.

        Returns
        -------
        self
            The fitted estimator.
        """
        units = ColumnScales.of(check_bags(bags, self, reset=True).rows)
        self.mean_, self.scale_ = units.centre, units.scale
        return self

    def transform(self, bags: Any) -> list[Array]:
        """Standardised bags.

        Parameters
        ----------
        bags : sequence of arrays of shape (n_i, d)
            The bags to standardise.

        Returns
        -------
        list of arrays of shape (n_i, d)
            The bags in their order, standardised.
        """
        check_is_fitted(self, "mean_")
        data = check_bags(bags, self, reset=False)
        return data.parts(ColumnScales(self.mean_, self.scale_).divide(data.rows))
