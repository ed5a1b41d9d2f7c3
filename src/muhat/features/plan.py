"""Mean estimators a block of rows at a time, by a sketch of features."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

from sklearn.base import clone
from sklearn.utils.metaestimators import available_if

from muhat.features.nystroem import Nystroem
from muhat.features.sketch import MeanSketch
from muhat.features.sums import MeanChoice
from muhat.linalg.resources import one_blas_thread
from muhat.shrinkage.scores import Lam, Scale
from muhat.types import Array
from muhat.validation import check_rows, is_precomputed, unchanged_on_error

RESERVOIR = 1000
"""Rows that a sketch keeps for λ by deletion."""


class SketchPlan(NamedTuple):
    """What a mean estimator asks of a sketch: the λ and the scale of its shrinkage."""

    lam: Lam = 0.0
    scale: Scale = 1.0

    def empty(self, features: Nystroem, second_moment: bool = False) -> MeanSketch:
        """A sketch that keeps what this shrinkage needs."""
        second_moment = second_moment or self.lam != 0.0
        scores_rows = self.lam == "loo" or (self.scale == "loo" and self.lam != 0.0)
        return MeanSketch(features, second_moment, reservoir_size=RESERVOIR if scores_rows else 0)


def fitted_features(features: Any, kernel: Any, rows: Array) -> Nystroem:
    """Features as they come where they are fitted, else fitted to the rows with the host's kernel."""
    if not isinstance(features, Nystroem):
        raise ValueError(
            f"features={features!r} must be Nystroem features, such as muhat.Nystroem(n_components=100), whose "
            f"landmarks carry the mean; for others use muhat.MeanSketch"
        )
    if hasattr(features, "fingerprint_"):
        return features
    return clone(features).set_params(kernel=kernel).fit(rows)


def _has_features(estimator: Any) -> bool:
    if estimator.features is None:
        raise AttributeError(
            f"partial_fit needs features to sum up: {type(estimator).__name__}(features=muhat.Nystroem())"
        )
    return True


class SketchedMeanMixin:
    """``partial_fit``, for estimators that have ``features``, ``kernel`` and ``_sketch_plan()``."""

    features: Nystroem | None
    kernel: Any
    kernel_: Any
    weights_: Any

    def _sketch_plan(self) -> SketchPlan:
        raise TypeError(f"{type(self).__name__} must define _sketch_plan()")

    def _store_choice(self, choice: MeanChoice) -> None:
        raise TypeError(f"{type(self).__name__} must define _store_choice(choice)")

    def _fit_features(self, X: Any, sample_weight: Any) -> Self:
        if sample_weight is not None or is_precomputed(self.kernel):
            raise ValueError(
                "features cannot be used with sample_weight or kernel='precomputed'. Use features=None, or pass rows "
                "of equal weight and a kernel object"
            )
        self.__dict__.pop("_sketch", None)
        return self.partial_fit(X)

    @available_if(_has_features)
    @one_blas_thread()
    @unchanged_on_error
    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Add a block of rows to the estimate; only with ``features``.

        The first block gives the bandwidth and the landmarks, unless the features come fitted. The estimate is that
        of all rows so far, in the span of the landmarks, in memory that does not grow with their number.

        Parameters
        ----------
        X : array of shape (n, d)
            The rows, one observation each.
        y : ignored

        Returns
        -------
        self
        """
        first, plan = not hasattr(self, "_sketch"), self._sketch_plan()
        rows = check_rows(X, estimator=self, reset=first, min_rows=2 if first else 1)
        if first:
            self._sketch = plan.empty(fitted_features(self.features, self.kernel, rows))
        self._sketch.update(rows)
        self.kernel_ = self._sketch.features.kernel_
        mean = self._sketch.mean_element(*plan)
        self.weights_ = mean.measures[0].weights
        self.solver_ = "features"
        self.n_rows_seen_ = self._sketch.n_
        self.approximation_error_ = self._sketch.features.approximation_error_
        choice = self._sketch.choose(*plan)
        vars(self).update(mean_=mean, loo_score_=choice.score)
        if choice.score is None:
            del vars(self)["loo_score_"]
        self._store_choice(choice)
        return self
