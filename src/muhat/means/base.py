"""Base class of the estimators of a kernel mean, the result of a fit, and the sample that it was fitted to."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from muhat._support.parameters import ValueParametersMixin
from muhat._support.types import Array
from muhat._support.validation import (
    check_counts,
    check_gram,
    check_overflow,
    check_precomputed,
    check_rows,
    is_precomputed,
    unchanged_on_error,
)
from muhat.features.nystroem import Nystroem
from muhat.kernels.base import Kernel
from muhat.kernels.foreign import Precomputed, evaluates_new_rows
from muhat.linalg import gram
from muhat.linalg.resources import FEWEST_NUMBERS_FOR_THREADS, steady_blas
from muhat.rkhs.elements import Element
from muhat.rkhs.measures import Atoms
from muhat.shrinkage.scores import ScorePath


class FitSample(NamedTuple):
    """Observations in the space of a resolved kernel.

    ``points`` are all rows and ``repetitions`` how often each counts. ``rows`` and ``counts`` are those that enter the
    estimate: rows of weight 0 are left out, and rows are repeated for an estimator that takes no counts. None stands
    for once each.
    """

    kernel: Kernel
    points: Array
    rows: Array
    counts: Array | None = None
    repetitions: Array | None = None
    names: Any = None

    def gram(self, arrays: int = 2) -> Array:
        """The Gram matrix of ``rows``, where ``arrays`` matrices of its size fit into the memory."""
        if len(self.rows) > gram.BLOCK:
            return gram.dense(self.kernel, self.rows, arrays=arrays)
        with np.errstate(over="ignore", invalid="ignore"):
            K = self.kernel.evaluate(self.rows, self.rows)
        check_overflow(self.kernel, np.diagonal(K))
        return K


class Scored(NamedTuple):
    """Leave-one-out score of an estimate, and the score as a curve over the parameter that was searched."""

    score: float
    path: ScorePath | None = None


@dataclass(frozen=True, eq=False)
class MeanFit:
    """Result of estimating a kernel mean: one weight per row, and how the weights were chosen.

    It never changes. What takes long (the score, the mean as an element, its target) is computed when it is first
    asked for and cached here; a refit makes a new object, so that an estimator never has to clear a cache. An
    estimator whose score is not known after the fit returns a subclass with :meth:`late_score`.

    Parameters
    ----------
    weights : array of shape (n,)
        The weights β.
    chosen : mapping, optional
        What was chosen on the way, by name. Each becomes a fitted attribute of the estimator: "lam" as ``lam_``.
    known : Scored, optional
        The leave-one-out score, where it is known already.
    sample : FitSample, optional
        What was fitted to; None for an estimate from a Gram matrix, which is not kept.
    target_weight : float, default 0.0
        The mean is the weighted sample plus this many times :attr:`target`.
    """

    weights: Array
    chosen: Mapping[str, Any] = field(default_factory=dict)
    known: Scored | None = None
    sample: FitSample | None = None
    target_weight: float = 0.0

    @cached_property
    def mean(self) -> Element:
        """The estimate as an element of the space."""
        assert self.sample is not None, "an estimate from a Gram matrix has weights alone"
        sample = self.sample
        atoms = Element(sample.kernel, Atoms.trusted(sample.points, self.weights), feature_names=sample.names)
        if self.target_weight == 0 or self.target is None:
            return atoms
        return atoms + self.target_weight * self.target

    @property
    def target(self) -> Element | None:
        """The element that the mean is shrunk toward, None for zero."""
        return None

    @cached_property
    def _scored(self) -> Scored:
        if self.known is not None:
            return self.known
        if self.sample is None:
            raise AttributeError(_UNKNOWN_SCORE)
        with steady_blas(len(self.weights)):
            return self.late_score(self.sample)

    def late_score(self, sample: FitSample) -> Scored:
        """Compute the leave-one-out score from the sample, for an estimate that was made without it."""
        raise AttributeError(_UNKNOWN_SCORE)

    @property
    def loo_score(self) -> float:
        """Leave-one-out score of the estimate."""
        return self._scored.score

    @property
    def loo_path(self) -> ScorePath | None:
        """The score over the parameter that was searched, None where none was."""
        return self._scored.path


_UNKNOWN_SCORE = (
    "the leave-one-out score is unknown: sums of features and Gram matrices that are not kept give it only where it "
    'was searched. Use lam="loo", or rows'
)


def all_weights(weights: Array, index: Any, n: int) -> Array:
    """Weights of n rows from those that entered: 0 for a row that was left out, the sum for one that was repeated."""
    return np.bincount(index, weights, n).astype(np.float64)


class BaseKernelMean(ValueParametersMixin, BaseEstimator):
    r"""Base of the mean estimators: a fitted one has ``mean_``, an :class:`Element` of the space of ``kernel_``.

    A new estimator that needs only the Gram matrix implements :meth:`from_gram`, and is complete: rows with
    ``sample_weight`` 0 are dropped before, weights go back to the rows they belong to afterwards, and it can be passed
    as ``mean=`` to :class:`KernelPCA`, the two-sample tests and others. An estimator that can do better on rows, or
    needs them, overrides :meth:`from_sample` too.

    ``score(X)`` is minus the paper's loss, the mean of :math:`\|\phi(x) - \hat\mu\|^2`. It compares estimators
    within one space. Across kernels it means nothing (a wider kernel always looks better), so never choose a
    bandwidth by it.
    """

    kernel: Kernel | Literal["precomputed"]
    features: Nystroem | None = None
    kernel_: Kernel
    weights_: Array
    _estimate: MeanFit

    _smallest_count: float = 0.0
    """The smallest positive weight of a row; 1 for an estimator that leaves whole rows out."""

    _gram_arrays: int = 2
    """How many n × n arrays :meth:`from_gram` takes at its peak, K included."""

    _threads_from: int = FEWEST_NUMBERS_FOR_THREADS
    """Numbers of the data, or of their Gram matrix, from which BLAS is held to one thread."""

    @unchanged_on_error
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Estimate the mean.

        Parameters
        ----------
        X : array of shape (n, d), n >= 2
            The rows; or their Gram matrix (n, n) for ``kernel="precomputed"``.
        y : ignored
            Not used; it is here for scikit-learn's pipelines.
        sample_weight : array of shape (n,), optional
            Repetitions: weight 2 is the row twice, and weight 0 is the row absent.

        Returns
        -------
        self
            The fitted estimator.
        """
        if self.features is not None:
            return self._fit_features(X, sample_weight)
        rows = check_rows(X, estimator=self, min_rows=2)
        counts = None if sample_weight is None else check_counts(sample_weight, len(rows))
        threaded = len(rows) * max(rows.shape) > self._threads_from
        with steady_blas(len(rows)) if threaded else nullcontext():
            if isinstance(self.kernel, Kernel):
                kernel = self.kernel.resolve(rows, counts)
            else:
                check_precomputed(self.kernel)
                kernel = Precomputed(check_gram(rows, name="X"))
                rows = kernel.training_points()
            return self._adopt(self.estimate(kernel, rows, counts, getattr(self, "feature_names_in_", None)))

    def _fit_features(self, X: Any, sample_weight: Any) -> Self:
        raise TypeError(f"{type(self).__name__} takes no features")

    def estimate(self, kernel: Kernel, points: Array, counts: Array | None = None, names: Any = None) -> MeanFit:
        """Estimate from checked rows in the space of a resolved kernel; the estimator itself is not changed.

        Parameters
        ----------
        kernel : Kernel
            With numbers for all its parameters.
        points : array of shape (n, d), n >= 2
            The rows.
        counts : array of shape (n,), optional
            How often each row counts; default once each.
        names : sequence of str, optional
            Names of the columns.

        Returns
        -------
        MeanFit
        """
        if counts is None:
            sample = FitSample(kernel, points, points, names=names)
            return replace(self.from_sample(sample), sample=sample)
        index, kept = self.used_rows(counts)
        sample = FitSample(kernel, points, points[index], kept, counts, names)
        fit = self.from_sample(sample)
        return replace(fit, weights=all_weights(fit.weights, index, len(points)), sample=sample)

    def from_sample(self, sample: FitSample) -> MeanFit:
        """Estimate from a sample, with one weight for each of its ``rows``; the estimator itself is not changed."""
        return self.from_gram(sample.gram(self._gram_arrays), sample.counts)

    def from_gram(self, K: Array, counts: Array | None = None) -> MeanFit:
        """Estimate from a Gram matrix in place of rows; the estimator itself is not changed.

        Parameters
        ----------
        K : array of shape (n, n), n >= 2
            A Gram matrix, taken as valid. It is not changed.
        counts : array of shape (n,), optional
            How often each row counts, positive numbers; default once each. An estimator that repeats rows, such as
            :class:`MedianOfMeans`, takes no counts: repeat the rows of K.

        Returns
        -------
        MeanFit
            The weights β, and what was chosen on the way.
        """
        raise TypeError(f"{type(self).__name__} must define from_gram(K, counts)")

    def weights_from_gram(self, K: Array, counts: Array | None = None) -> Array:
        """Weights β for the rows of a Gram matrix, or of each of several: those of :meth:`from_gram`.

        Parameters
        ----------
        K : array of shape (n, n) or (m, n, n)
            A Gram matrix, or a stack of them.
        counts : array of shape (n,), optional
            As in :meth:`from_gram`, the same for each matrix.

        Returns
        -------
        array of shape (n,) or (m, n)
            The weights.
        """
        if K.ndim == 3:
            return np.array([self.from_gram(part, counts).weights for part in K])
        return self.from_gram(K, counts).weights

    def _adopt(self, fit: MeanFit) -> Self:
        """Store an estimate, with what was chosen as fitted attributes, in place of an earlier one."""
        if hasattr(self, "_estimate"):
            for name in self._estimate.chosen.keys() - fit.chosen.keys():
                delattr(self, f"{name}_")
        assert fit.sample is not None
        self._estimate, self.weights_, self.kernel_ = fit, fit.weights, fit.sample.kernel
        for name, value in fit.chosen.items():
            setattr(self, f"{name}_", value)
        return self

    def _repeats_rows(self) -> bool:
        """Whether a row of weight 2 is given to the estimator twice, because it takes no counts."""
        return False

    def used_rows(self, counts: Array) -> tuple[Any, Array | None]:
        """Numbers of the rows that enter the estimate, and how often each counts (None: once each)."""
        present = np.flatnonzero(counts)
        kept = counts[present]
        if self._repeats_rows():
            if (kept != np.rint(kept)).any():
                raise ValueError(
                    f"sample_weight must be whole numbers for {self!r}, which repeats rows. Round them, or use "
                    f"SpectralKernelMean() for other weights"
                )
            return np.repeat(present, kept.astype(int)), None
        if kept.min() < self._smallest_count:
            raise ValueError(
                f"sample_weight={kept.min():g} is too small: {type(self).__name__} leaves out one copy of a row, so "
                f"weights must be 0 or at least 1. Multiply them by a constant"
            )
        return present, kept

    @property
    def mean_(self) -> Element:
        """The estimate, an element of the space of ``kernel_``."""
        return fit_of(self).mean

    @property
    def loo_score_(self) -> float:
        """Leave-one-out score of the estimate: an honest estimate of its loss, up to a constant of the data."""
        return fit_of(self).loo_score

    def __dir__(self) -> list[str]:
        # scikit-learn's own __dir__, and the display in a notebook, evaluate every name: a score that would have to be
        # computed first is not listed. It can be asked for all the same.
        late = ("loo_score_", "loo_path_") if hasattr(self, "_estimate") and self._estimate.known is None else ()
        return [name for name in object.__dir__(self) if name not in late]

    def score(self, X: Any, y: Any = None) -> float:
        r"""Score new rows: minus the mean of :math:`\|\phi(x) - \hat\mu\|^2` over the rows of X.

        Scores of two kernels cannot be compared, because a wider kernel always has the better score: never search for
        a kernel or a bandwidth by it.

        Parameters
        ----------
        X : array of shape (m, d)
            Rows; for ``kernel="precomputed"`` the values k(X, training rows), of shape (m, n). The constant, the mean
            of k(x, x), is unknown then and left out.
        y : ignored
            Not used; it is here for scikit-learn's pipelines.

        Returns
        -------
        float
            The score; larger is better.
        """
        mean = fit_of(self).mean
        rows = check_rows(X, estimator=self, reset=False)
        constant = self.kernel_.diagonal(rows).mean() if evaluates_new_rows(self.kernel_) else 0.0
        return float(2.0 * mean.values(rows).mean() - constant - mean.norm() ** 2)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = is_precomputed(self.kernel)
        return tags


def fit_of(mean: BaseKernelMean) -> MeanFit:
    """The result that a fitted estimator holds, or a NotFittedError."""
    if not hasattr(mean, "_estimate"):
        check_is_fitted(mean, "weights_")
    return mean._estimate
