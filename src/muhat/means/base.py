"""The contract of a mean estimator: what it sees of the rows, and what it keeps."""

from __future__ import annotations

from contextlib import nullcontext
from functools import cached_property
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from muhat.elements import Element
from muhat.features.nystroem import Nystroem
from muhat.kernels.base import Kernel
from muhat.kernels.foreign import Precomputed
from muhat.linalg import gram
from muhat.linalg.resources import FEWEST_NUMBERS_FOR_THREADS, steady_blas
from muhat.measures import Atoms
from muhat.parameters import ValueParametersMixin
from muhat.types import Array
from muhat.validation import (
    check_counts,
    check_gram,
    check_precomputed,
    check_rows,
    is_precomputed,
    unchanged_on_error,
    warn_caller,
)


class SeenRows(NamedTuple):
    """The rows of a sample that an estimator sees: absent rows left out, and copies made where it counts none.

    ``index`` numbers them, ``counts`` says how often each counts (None: once each), and ``total`` is the number of
    all rows.
    """

    index: Any
    counts: Array | None
    total: int

    def scattered(self, weights: Array) -> Array:
        """Weights of all rows: 0 for an absent row, and the sum over the copies of a row that was repeated."""
        return np.bincount(self.index, weights, self.total).astype(np.float64)


class BaseKernelMean(ValueParametersMixin, BaseEstimator):
    r"""Base of the mean estimators: a fitted one has ``mean_``, an :class:`Element` of the space of ``kernel_``.

    A new estimator that needs only the Gram matrix implements :meth:`weights_from_gram`, and is complete: rows with
    ``sample_weight`` 0 are dropped before, weights go back to the rows they belong to afterwards, and hosts such as
    :class:`KernelPCA` and the two-sample tests take it as a recipe. An estimator that can do better on rows, or
    needs them, overrides ``_weights_from_rows`` too.

    ``score(X)`` is minus the paper's loss, the mean of :math:`\|\phi(x) - \hat\mu\|^2`. It compares estimators
    within one space. Across kernels it means nothing (a wider kernel always looks better), so never choose a
    bandwidth by it.
    """

    kernel: Kernel | Literal["precomputed"]
    features: Nystroem | None = None
    solver_: str

    _late: tuple[str, ...] = ("loo_score_",)
    """Attributes that are found when they are first asked for, because they take long."""

    _smallest_count: float = 0.0
    """The smallest weight of a row that is not absent; 1 for an estimator that leaves whole rows out."""

    _gram_arrays: int = 2
    """How many n × n arrays ``weights_from_gram`` takes at its peak, K included."""

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
                return self._fit_points(self.kernel.resolve(rows, counts), rows, counts)
            check_precomputed(self.kernel)
            kernel = Precomputed(check_gram(rows, name="X"))
            return self._fit_points(kernel, kernel.training_points(), counts)

    def _fit_features(self, X: Any, sample_weight: Any) -> Self:
        raise TypeError(f"{type(self).__name__} takes no features")

    def _fit_points(self, kernel: Kernel, points: Array, counts: Array | None = None) -> Self:
        """Fit to a resolved kernel and to points that were checked before."""
        self.kernel_, self._points, self._counts, self.solver_ = kernel, points, counts, "dense"
        for known in ("mean_", *self._late):  # those of an earlier fit
            self.__dict__.pop(known, None)
        if counts is None:
            self.weights_ = self._weights_from_rows(points, None)
        else:
            seen = self._seen_rows(counts)
            self.weights_ = seen.scattered(self._weights_from_rows(points[seen.index], seen.counts))
        return self

    def weights_from_gram(self, K: Array, counts: Array | None = None) -> Array:
        """Fit to a Gram matrix in place of rows, and return the weights β of the mean.

        What the estimator chooses (``shrinkage_``, ``lam_``, …) is stored as by ``fit``; ``kernel_`` and ``mean_`` are
        not. :func:`muhat.means.recipes.mean_weights` does the same for any ``sample_weight``, on a copy.

        Parameters
        ----------
        K : array of shape (n, n), n >= 2
            A Gram matrix, taken as valid. It is not changed.
        counts : array of shape (n,), optional
            How often each row counts, positive numbers; default once each. An estimator that repeats rows, such as
            :class:`MedianOfMeans`, takes no counts: repeat the rows of K.

        Returns
        -------
        array of shape (n,)
            The weights β.
        """
        raise TypeError(f"{type(self).__name__} must define weights_from_gram(K, counts)")

    def _weights_from_rows(self, rows: Array, counts: Array | None) -> Array:
        """Weights of rows that are present, in the space of ``kernel_``; ``counts`` as in ``weights_from_gram``."""
        return self.weights_from_gram(gram.dense(self.kernel_, rows, arrays=self._gram_arrays), counts)

    def _repeats_rows(self) -> bool:
        """Whether a row of weight 2 is given to the estimator twice, because it takes no counts."""
        return False

    def _pull(self) -> Element | None:
        """What the mean holds beside its rows: a multiple of a target."""
        return None

    def _seen_rows(self, counts: Array) -> SeenRows:
        present = np.flatnonzero(counts)
        kept = counts[present]
        if self._repeats_rows():
            if (kept != np.rint(kept)).any():
                raise ValueError(
                    f"sample_weight must be whole numbers for {self!r}, which repeats rows. Round them, or use "
                    f"SpectralKernelMean() for other weights"
                )
            return SeenRows(np.repeat(present, kept.astype(int)), None, len(counts))
        if kept.min() < self._smallest_count:
            raise ValueError(
                f"sample_weight={kept.min():g} is too small: {type(self).__name__} leaves out one copy of a row, so "
                f"weights must be 0 or at least 1. Multiply them by a constant"
            )
        return SeenRows(present, kept, len(counts))

    @cached_property
    def mean_(self) -> Element:
        """The estimate, an element of the space of ``kernel_``."""
        names = getattr(self, "feature_names_in_", None)
        atoms = Element(self.kernel_, Atoms.trusted(self._points, self.weights_), feature_names=names)
        pull = self._pull()
        return atoms if pull is None else atoms + pull

    @cached_property
    def loo_score_(self) -> float:
        """Leave-one-out score of the estimate: an honest estimate of its loss, up to a constant of the data."""
        if self.solver_ == "features":
            raise AttributeError('sums of features do not give the score of a given lam. Use lam="loo"')
        with steady_blas(len(self._points)):
            if self._counts is None:
                return self._loo_score(self._points, None)
            seen = self._seen_rows(self._counts)
            return self._loo_score(self._points[seen.index], seen.counts)

    def _loo_score(self, rows: Array, counts: Array | None) -> float:
        raise TypeError(f"{type(self).__name__} must define _loo_score(rows, counts)")

    def __dir__(self) -> list[str]:
        """The names that are there, a score only once it is known: completion and notebooks evaluate every name."""
        unknown = set(self._late) - vars(self).keys()
        return [name for name in object.__dir__(self) if name not in unknown and hasattr(self, name)]

    def set_params(self, **params: Any) -> Self:
        """Set parameters; see :meth:`score` on kernels.

        Parameters
        ----------
        **params : dict
            Parameters of this estimator, or of its kernel as ``kernel__bandwidth``.

        Returns
        -------
        self
        """
        super().set_params(**params)
        if any(name.partition("__")[0] == "kernel" for name in params):
            self._kernel_was_set = True
        return self

    def score(self, X: Any, y: Any = None) -> float:
        r"""Minus the mean of :math:`\|\phi(x) - \hat\mu\|^2` over the rows of X.

        Scores of two kernels cannot be compared, because a wider kernel always has the better score. A grid search that
        sets the kernel gets a warning.

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
        check_is_fitted(self, "mean_")
        rows = check_rows(X, estimator=self, reset=False)
        if vars(self).get("_kernel_was_set"):
            warn_caller(
                "scores of different kernels cannot be compared: the widest always wins. Search over other parameters, "
                'or choose the kernel by the task at hand; bandwidth="median" needs no search',
            )
        constant = self.kernel_.diagonal(rows).mean() if self.kernel_.evaluates_new_rows else 0.0
        return float(2.0 * self.mean_.values(rows).mean() - constant - self.mean_.norm() ** 2)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = is_precomputed(self.kernel)
        return tags
