"""Kernel means from sums of features: ``features=`` and ``partial_fit`` of the mean estimators."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

from sklearn.base import clone
from sklearn.utils.metaestimators import available_if

from muhat._support.types import Array
from muhat._support.validation import check_rows, is_precomputed, unchanged_on_error
from muhat.features.feature_gram import MeanChoice
from muhat.features.nystroem import Nystroem
from muhat.features.sketch import MeanSketch
from muhat.linalg.resources import one_blas_thread
from muhat.means.base import FitSample, MeanFit, Scored
from muhat.shrinkage.scores import Lam, Scale

RESERVOIR = 1000
"""Rows that a sketch keeps for λ by deletion."""


class SketchPlan(NamedTuple):
    """Shrinkage of a mean of features: its λ and its scale."""

    lam: Lam = 0.0
    scale: Scale = 1.0

    def empty(self, features: Nystroem, second_moment: bool = False) -> MeanSketch:
        """A sketch that keeps what this shrinkage needs."""
        second_moment = second_moment or self.lam != 0.0
        scores_rows = self.lam == "loo" or (self.scale == "loo" and self.lam != 0.0)
        return MeanSketch(features, second_moment, reservoir_size=RESERVOIR if scores_rows else 0)


def fitted_features(features: Any, kernel: Any, rows: Array) -> Nystroem:
    """Features as they come where they are fitted, else fitted to the rows with the estimator's kernel."""
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
    """``partial_fit``, for mean estimators that have ``features`` and ``sketch_plan()``."""

    features: Nystroem | None
    kernel: Any
    feature_names_in_: Any

    def sketch_plan(self) -> SketchPlan:
        """The λ and the scale of the estimator's shrinkage, for sums of features."""
        raise TypeError(f"{type(self).__name__} must define sketch_plan()")

    def _named_choice(self, choice: MeanChoice) -> dict[str, float]:
        """What the estimator chose, by name."""
        return {}

    def _fit_features(self, X: Any, sample_weight: Any) -> Self:
        if sample_weight is not None or is_precomputed(self.kernel):
            raise ValueError(
                "features cannot be used with sample_weight or kernel='precomputed'. Use features=None, or pass rows "
                "of equal weight and a kernel object"
            )
        return self._add_rows(X, None)

    @available_if(_has_features)
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
            Not used; it is here for scikit-learn's pipelines.

        Returns
        -------
        self
            The fitted estimator.
        """
        return self._add_rows(X, getattr(self, "_sketch", None))

    @one_blas_thread()
    def _add_rows(self: Any, X: Any, sketch: MeanSketch | None) -> Any:
        plan = self.sketch_plan()
        rows = check_rows(X, estimator=self, reset=sketch is None, min_rows=2 if sketch is None else 1)
        if sketch is None:
            sketch = plan.empty(fitted_features(self.features, self.kernel, rows))
        self._sketch = sketch.update(rows)
        return self._adopt(self._mean_of(sketch, plan))

    def _mean_of(self, sketch: MeanSketch, plan: SketchPlan) -> MeanFit:
        """The mean in the span of the landmarks of a sketch."""
        features: Any = sketch.features
        landmarks: Any = sketch.mean_element(*plan).measures[0]
        choice = sketch.choose(*plan)
        chosen = {
            **self._named_choice(choice),
            "solver": "features",
            "n_rows_seen": sketch.n_,
            "approximation_error": features.approximation_error_,
        }
        points, names = landmarks.points, getattr(self, "feature_names_in_", None)
        sample = FitSample(features.kernel_, points, points, names=names)
        scored = None if choice.score is None else Scored(choice.score)
        return MeanFit(landmarks.weights, chosen, scored, sample=sample)
