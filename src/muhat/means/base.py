"""The contract of a mean estimator."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from muhat.elements import Element
from muhat.features.nystroem import Nystroem
from muhat.features.plan import SketchedMeanMixin
from muhat.kernels.base import Kernel
from muhat.kernels.foreign import Precomputed, check_precomputed, is_precomputed
from muhat.measures import Atoms
from muhat.parameters import ValueParametersMixin
from muhat.types import Array
from muhat.validation import check_gram, check_multiplicities, check_overflow, check_rows


class BaseKernelMean(SketchedMeanMixin, ValueParametersMixin, BaseEstimator):
    r"""Base of the mean estimators: a fitted one has ``mean_``, an :class:`Element` of the space of ``kernel_``.

    ``score(X)`` is minus the paper's loss, the mean of :math:`\|\phi(x) - \hat\mu\|^2`. It compares estimators
    within one space. Across kernels it means nothing (a wider kernel always looks better): never choose a
    bandwidth by it.
    """

    kernel: Kernel | Literal["precomputed"]
    features: Nystroem | None = None

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Estimate the mean.

        Parameters
        ----------
        X : array of shape (n, d), n >= 2
            Or the Gram matrix (n, n) for ``kernel="precomputed"``.
        y : ignored
        sample_weight : array of shape (n,), optional
            Repetitions: weight 2 is the row twice, weight 0 the row absent.

        Returns
        -------
        self
        """
        if self.features is not None:
            return self._fit_features(X, sample_weight)
        rows = check_rows(X, estimator=self, min_rows=2)
        multiplicities = check_multiplicities(sample_weight, rows)
        if isinstance(self.kernel, Kernel):
            return self._fit_points(self.kernel.resolve(rows, multiplicities), rows, multiplicities)
        check_precomputed(self.kernel)
        kernel = Precomputed(check_gram(rows, name="X"))
        return self._fit_points(kernel, kernel.training_points(), multiplicities)

    def _fit_features(self, X: Any, sample_weight: Any) -> Self:
        if sample_weight is not None or is_precomputed(self.kernel):
            raise ValueError("features go with rows of equal weight and a kernel object; leave features=None otherwise")
        self.__dict__.pop("_sketch", None)
        return self.partial_fit(X)

    def _fit_points(self, kernel: Kernel, points: Array, multiplicities: Array | None = None) -> Self:
        """Fit to a resolved kernel and to points that were checked before."""
        with np.errstate(over="ignore"):
            check_overflow(kernel, kernel.diagonal(points))
        self.kernel_ = kernel
        self._multiplicities = multiplicities
        self._known_loo_score: float | None = None
        self.solver_ = "tiles"
        self._estimate(points, multiplicities_or_ones(points, multiplicities))
        return self

    def _estimate(self, points: Array, repetitions: Array) -> None:
        raise TypeError(f"{type(self).__name__} must define _estimate(points, repetitions)")

    def _store(self, points: Array, weights: Array, *others: Element) -> None:
        self.weights_ = weights
        self.mean_ = sum(others, start=Element(self.kernel_, Atoms.trusted(points, weights)))

    @property
    def loo_score_(self) -> float:
        """Leave-one-out score of the estimate: an honest estimate of its loss, up to a constant of the data."""
        if self._known_loo_score is None:
            if self.solver_ == "features":
                raise AttributeError('the sums of features do not tell the score of a given lam; use lam="loo"')
            self._known_loo_score = self._compute_loo_score()
        return self._known_loo_score

    def _compute_loo_score(self) -> float:
        raise TypeError(f"{type(self).__name__} must define _compute_loo_score()")

    def __dir__(self) -> list[str]:
        """The names that are there, a score only once it is known: completion and notebooks evaluate every name."""
        unknown = {"loo_score_"} if vars(self).get("_known_loo_score") is None else set()
        return [name for name in object.__dir__(self) if name not in unknown and hasattr(self, name)]

    def score(self, X: Any, y: Any = None) -> float:
        r"""Minus the mean of :math:`\|\phi(x) - \hat\mu\|^2` over the rows of X.

        Parameters
        ----------
        X : array of shape (m, d)
            For ``kernel="precomputed"`` the values k(X, training rows), of shape (m, n); the constant, the mean of
            k(x, x), is unknown then and left out.
        y : ignored

        Returns
        -------
        float
        """
        check_is_fitted(self, "mean_")
        rows = check_rows(X, estimator=self, reset=False)
        constant = self.kernel_.diagonal(rows).mean() if self.kernel_.evaluates_new_rows else 0.0
        return float(2.0 * self.mean_.values(rows).mean() - constant - self.mean_.norm() ** 2)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = is_precomputed(self.kernel)
        return tags


def multiplicities_or_ones(points: Array, multiplicities: Array | None) -> Array:
    """Repetitions of the rows, 1 each by default."""
    return np.ones(len(points)) if multiplicities is None else multiplicities
