"""Base class of the estimators of a kernel mean."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from muhat.elements import Element
from muhat.features.nystroem import Nystroem
from muhat.kernels.base import Kernel
from muhat.kernels.foreign import Precomputed, evaluates_new_rows
from muhat.linalg.resources import FEWEST_NUMBERS_FOR_THREADS, steady_blas
from muhat.means.fit import FitSample, MeanFit, UsedRows
from muhat.parameters import ValueParametersMixin
from muhat.types import Array
from muhat.validation import (
    check_counts,
    check_gram,
    check_precomputed,
    check_rows,
    is_precomputed,
    unchanged_on_error,
)


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
        counts = check_counts(sample_weight, len(rows))
        threaded = len(rows) * max(rows.shape) > FEWEST_NUMBERS_FOR_THREADS
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
        used = None if counts is None else self.used_rows(counts)
        sample = FitSample(kernel, points, used, names, counts)
        return self.from_sample(sample).on(sample)

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
        """Weights β for the rows of a Gram matrix: those of :meth:`from_gram`.

        Parameters
        ----------
        K, counts
            As in :meth:`from_gram`.

        Returns
        -------
        array of shape (n,)
        """
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

    def used_rows(self, counts: Array) -> UsedRows:
        """The rows that enter the estimate, from how often each row counts."""
        present = np.flatnonzero(counts)
        kept = counts[present]
        if self._repeats_rows():
            if (kept != np.rint(kept)).any():
                raise ValueError(
                    f"sample_weight must be whole numbers for {self!r}, which repeats rows. Round them, or use "
                    f"SpectralKernelMean() for other weights"
                )
            return UsedRows(np.repeat(present, kept.astype(int)), None, len(counts))
        if kept.min() < self._smallest_count:
            raise ValueError(
                f"sample_weight={kept.min():g} is too small: {type(self).__name__} leaves out one copy of a row, so "
                f"weights must be 0 or at least 1. Multiply them by a constant"
            )
        return UsedRows(present, kept, len(counts))

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
        late = ("loo_score_", "loo_path_") if hasattr(self, "_estimate") and callable(self._estimate.scored) else ()
        return [name for name in object.__dir__(self) if name not in late]

    def score(self, X: Any, y: Any = None) -> float:
        r"""Minus the mean of :math:`\|\phi(x) - \hat\mu\|^2` over the rows of X.

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
    check_is_fitted(mean, "weights_")
    return mean._estimate
