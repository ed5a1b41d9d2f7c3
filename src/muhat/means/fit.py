"""Result of estimating a kernel mean, and the sample that it was estimated from: immutable values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np

from muhat.elements import Element
from muhat.kernels.base import Kernel
from muhat.linalg import gram
from muhat.linalg.resources import steady_blas
from muhat.measures import Atoms
from muhat.shrinkage.scores import ScorePath
from muhat.types import Array


class UsedRows(NamedTuple):
    """Rows that enter an estimate: those of positive weight, repeated for an estimator that cannot count them.

    ``index`` has their numbers among ``total`` rows, and ``counts`` how often each counts (None: once each).
    """

    index: Any
    counts: Array | None
    total: int

    def scattered(self, weights: Array) -> Array:
        """Weights of all rows: 0 for a row that was left out, and the sum over the copies of a repeated one."""
        return np.bincount(self.index, weights, self.total).astype(np.float64)


@dataclass(frozen=True, eq=False)
class FitSample:
    """Observations in the space of a resolved kernel.

    ``points`` are all rows; ``rows`` and ``counts`` those that enter the estimate, and how often each counts.
    """

    kernel: Kernel
    points: Array
    used: UsedRows | None = None
    names: Any = None
    repetitions: Array | None = None

    @property
    def rows(self) -> Array:
        """The rows that enter the estimate."""
        return self.points if self.used is None else self.points[self.used.index]

    @property
    def counts(self) -> Array | None:
        """How often each of ``rows`` counts; None is once each."""
        return None if self.used is None else self.used.counts

    def scattered(self, weights: Array) -> Array:
        """Weights of ``points`` from weights of ``rows``."""
        return weights if self.used is None else self.used.scattered(weights)

    def gram(self, arrays: int) -> Array:
        """The Gram matrix of ``rows``, where ``arrays`` matrices of its size fit into the memory."""
        return gram.dense(self.kernel, self.rows, arrays=arrays)


class Scored(NamedTuple):
    """Leave-one-out score of an estimate, and the score as a curve over the parameter that was searched."""

    score: float
    path: ScorePath | None = None


@dataclass(frozen=True, eq=False)
class MeanFit:
    """Result of estimating a kernel mean: one weight per row, and how the weights were chosen.

    It never changes. What takes long (the score, the mean as an element, its target) is computed when it is first
    asked for and cached here; a refit makes a new object, so that an estimator never has to clear a cache.

    Parameters
    ----------
    weights : array of shape (n,)
        The weights β.
    chosen : mapping, optional
        What was chosen on the way, by name. Each becomes a fitted attribute of the estimator: "lam" as ``lam_``.
    scored : Scored or callable, optional
        The leave-one-out score, or the function that computes it from the :class:`FitSample`.
    make_target, target_weight : callable and float, optional
        The mean is the weighted sample plus ``target_weight`` times the target that ``make_target()`` builds.
    sample : FitSample, optional
        What was fitted to; None for an estimate from a Gram matrix, which is not kept.
    """

    weights: Array
    chosen: Mapping[str, Any] = field(default_factory=dict)
    scored: Scored | Callable[[FitSample], Scored] | None = None
    make_target: Callable[[], Element] | None = None
    target_weight: float = 0.0
    sample: FitSample | None = None

    def on(self, sample: FitSample) -> Self:
        """The estimate with the sample that it was made from, and a weight for each of its points."""
        return replace(self, weights=sample.scattered(self.weights), sample=sample)

    @cached_property
    def mean(self) -> Element:
        """The estimate as an element of the space."""
        assert self.sample is not None, "an estimate from a Gram matrix has weights alone"
        sample = self.sample
        atoms = Element(sample.kernel, Atoms.trusted(sample.points, self.weights), feature_names=sample.names)
        return atoms if self.target is None or self.target_weight == 0 else atoms + self.target_weight * self.target

    @cached_property
    def target(self) -> Element | None:
        """The element that the mean is shrunk toward, None for zero."""
        if self.make_target is None:
            return None
        with steady_blas(len(self.weights)):
            return self.make_target()

    @cached_property
    def _score(self) -> Scored:
        if callable(self.scored) and self.sample is not None:
            with steady_blas(len(self.weights)):
                return self.scored(self.sample)
        if isinstance(self.scored, Scored):
            return self.scored
        raise AttributeError(
            "the leave-one-out score is unknown: sums of features and Gram matrices that are not kept give it only "
            'where it was searched. Use lam="loo", or rows'
        )

    @property
    def loo_score(self) -> float:
        """Leave-one-out score of the estimate."""
        return self._score.score

    @property
    def loo_path(self) -> ScorePath | None:
        """The score over the parameter that was searched, None where none was."""
        return self._score.path
