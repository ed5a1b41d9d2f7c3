"""Base class of the estimators of a kernel mean, and the result of a fit."""

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
from muhat._support.validation import check_counts, check_rows, is_precomputed, unchanged_on_error
from muhat.grams import FeaturesGram, Gram, MatrixGram, PairGram, gram_of
from muhat.kernels.base import Kernel
from muhat.kernels.foreign import evaluates_new_rows
from muhat.linalg.resources import FEWEST_NUMBERS_FOR_THREADS, steady_blas
from muhat.rkhs.elements import Element
from muhat.shrinkage.scores import ScorePath


class Scored(NamedTuple):
    """Leave-one-out score of an estimate, and the score as a curve over the parameter that was searched."""

    score: float
    path: ScorePath | None = None


class Entered(NamedTuple):
    """Numbers of the rows that enter an estimate, perhaps several times, and how often each counts."""

    index: Any
    counts: Array | None


@dataclass(frozen=True, eq=False)
class MeanFit:
    """Result of estimating a kernel mean: one weight per row, and how the weights were chosen.

    It never changes. What takes long (the score, the mean as an element, its target) is computed when first asked for
    and cached here; a refit makes a new object, so that an estimator never has to clear a cache. An estimator whose
    score is not known after the fit returns a subclass with :meth:`late_score`.
    """

    weights: Array  # (n,): the weights β; of features for an estimate from a sketch
    # parameters that were chosen, by name. Each becomes a fitted attribute of the estimator: "lam" as ``lam_``
    chosen: Mapping[str, Any] = field(default_factory=dict)
    known: Scored | None = None  # the leave-one-out score, where it is known already
    gram: Gram | None = None  # what the mean was estimated from; None where it is not kept, as inside other estimators
    entered: Entered | None = None  # the rows of ``gram`` that entered, where some were left out or repeated
    target_weight: float = 0.0  # the mean is the weighted sample plus this many times :attr:`target`

    @cached_property
    def mean(self) -> Element:
        """The estimate as an element of the space."""
        if self.gram is None:
            raise AttributeError("an estimate inside another estimator keeps no Gram matrix, and has weights alone")
        atoms = self.gram.element(self.weights)
        if self.target_weight == 0 or self.target is None:
            return atoms
        return atoms + self.target_weight * self.target

    @property
    def target(self) -> Element | None:
        """The element that the mean is shrunk toward, None for zero."""
        return None

    def estimated_from(self) -> Gram | None:
        """Return the Gram matrix of the rows that entered."""
        if self.entered is None or not isinstance(self.gram, PairGram):
            return self.gram
        return self.gram.take(*self.entered)

    @cached_property
    def _scored(self) -> Scored:
        if self.known is not None:
            return self.known
        G = self.estimated_from()
        if G is None:
            raise AttributeError(UNKNOWN_SCORE)
        with steady_blas(len(self.weights)):
            return self.late_score(G)

    def late_score(self, G: Any) -> Scored:
        """Compute the leave-one-out score from the Gram matrix, for an estimate that was made without it."""
        raise AttributeError("this estimator has no leave-one-out score; return a MeanFit that defines late_score(G)")

    @property
    def loo_score(self) -> float:
        """Leave-one-out score of the estimate."""
        return self._scored.score

    @property
    def loo_path(self) -> ScorePath | None:
        """The score over the parameter that was searched, None where none was."""
        return self._scored.path


UNKNOWN_SCORE = (
    "the leave-one-out score is unknown: features without rows, and Gram matrices that are not kept, do not give it. "
    'Use lam="loo", or rows'
)


def check_target(target: Any, G: Gram) -> None:
    """Raise a ValueError where a target needs more than a Gram matrix or features tell of the space."""
    if isinstance(G, FeaturesGram) or (isinstance(G, MatrixGram) and getattr(target, "kernel", None) != G.kernel):
        raise ValueError(f"target={target!r} cannot be used with {G.kind}. Use target=None, or pass rows")


def check_unweighted(G: Gram) -> None:
    """Raise a ValueError where rows have counts, for an estimate that has them repeated instead."""
    if isinstance(G, PairGram) and G.counts is not None:
        raise ValueError("counts cannot be used with an estimate that repeats rows. Use G.take(index), or fit(X)")


def dense_matrix(G: Gram, arrays: int, *, own: bool = False) -> Array:
    """The whole matrix, or a ValueError where sums of features are all that is known."""
    if not isinstance(G, PairGram):
        raise ValueError(f"{G.kind} have no Gram matrix; use ShrunkKernelMean() or SpectralKernelMean()")
    return G.dense(arrays, own=own)


class BaseKernelMean(ValueParametersMixin, BaseEstimator):
    r"""Base of the mean estimators: a fitted one has ``mean_``, an :class:`Element` of the space of ``kernel_``.

    A new estimator implements :meth:`estimate`, and is complete: it fits rows and Gram matrices, rows with
    ``sample_weight`` 0 are dropped before, weights go back to the rows they belong to afterwards, and it can be passed
    as ``mean=`` to :class:`KernelPCA`, the two-sample tests and others.

    ``score(X)`` is minus the paper's loss, the mean of :math:`\|\phi(x) - \hat\mu\|^2`. It compares estimators
    within one space. Across kernels it means nothing (a wider kernel always looks better), so never choose a
    bandwidth by it.
    """

    kernel: Kernel | Literal["precomputed"]
    kernel_: Kernel
    weights_: Array
    _estimate: MeanFit

    _smallest_count: float = 0.0
    """The smallest positive weight of a row; 1 for an estimator that leaves whole rows out."""

    _threads_from: int = FEWEST_NUMBERS_FOR_THREADS
    """Numbers of the data, or of their Gram matrix, from which BLAS is held to one thread."""

    @unchanged_on_error
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Estimate the mean of the rows of X; of its Gram matrix (n, n) for ``kernel="precomputed"``.

        ``sample_weight`` counts repetitions: weight 2 is the row twice, and weight 0 is the row absent.
        """
        rows = check_rows(X, estimator=self, min_rows=2)
        counts = None if sample_weight is None else check_counts(sample_weight, len(rows))
        threaded = len(rows) * max(rows.shape) > self._threads_from
        with steady_blas(len(rows)) if threaded else nullcontext():
            G = gram_of(self.kernel, rows, counts, getattr(self, "feature_names_in_", None))
            return self._adopt(self.estimate_weighted(G))

    def estimate(self, G: Gram) -> MeanFit:
        """Estimate the mean of the rows of a Gram matrix, or of a sketch; the estimator itself is not changed."""
        raise TypeError(f"{type(self).__name__} must define estimate(G)")

    def estimate_weighted(self, G: PairGram) -> MeanFit:
        """Estimate from rows that count: those of weight 0 are left out, and repeated if the estimator needs it."""
        if G.counts is None:
            return replace(self.estimate(G), gram=G)
        entered = self._entered(G.counts)
        fit = self.estimate(G.take(*entered))
        weights = np.bincount(entered.index, fit.weights, len(G)).astype(np.float64)  # of repeated rows the sum
        return replace(fit, weights=weights, gram=G, entered=entered)

    def stack_weights(self, stack: Array) -> Array:
        """Return the weights β of the rows of each Gram matrix of a stack (m, n, n)."""
        return np.array([self.estimate(MatrixGram(K)).weights for K in stack])

    def _adopt(self, fit: MeanFit) -> Self:
        """Store an estimate, with what was chosen as fitted attributes, in place of an earlier one."""
        if hasattr(self, "_estimate"):
            for name in self._estimate.chosen.keys() - fit.chosen.keys():
                delattr(self, f"{name}_")
        assert fit.gram is not None
        self._estimate, self.weights_, self.kernel_ = fit, fit.weights, fit.gram.kernel
        for name, value in fit.chosen.items():
            setattr(self, f"{name}_", value)
        return self

    def _repeats_rows(self) -> bool:
        """Whether a row of weight 2 is given to the estimator twice, because it takes no counts."""
        return False

    def _entered(self, counts: Array) -> Entered:
        """The rows that enter the estimate, and how often each counts (None: once each)."""
        present = np.flatnonzero(counts)
        kept = counts[present]
        if self._repeats_rows():
            if (kept != np.rint(kept)).any():
                raise ValueError(
                    f"sample_weight must be whole numbers for {self!r}, which repeats rows. Round them, or use "
                    f"SpectralKernelMean() for other weights"
                )
            return Entered(np.repeat(present, kept.astype(int)), None)
        if kept.min() < self._smallest_count:
            raise ValueError(
                f"sample_weight={kept.min():g} is too small: {type(self).__name__} leaves out one copy of a row, so "
                f"weights must be 0 or at least 1. Multiply them by a constant"
            )
        return Entered(present, kept)

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
        r"""Compute minus the mean of :math:`\|\phi(x) - \hat\mu\|^2` over the rows of X; larger is better.

        Scores of two kernels cannot be compared, because a wider kernel always has the better score: never search for
        a kernel or a bandwidth by it. For ``kernel="precomputed"`` X holds k(X, training rows), and the constant, the
        mean of k(x, x), is left out.
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
