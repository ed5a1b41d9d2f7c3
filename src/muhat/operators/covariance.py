"""Covariance operators, plain and shrunken (COSE)."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from muhat.elements import Element
from muhat.features.nystroem import Nystroem
from muhat.kernels.base import Kernel, check_kernel
from muhat.kernels.radial import Gaussian
from muhat.linalg import gram
from muhat.linalg.blocks import blocks
from muhat.linalg.centered_gram import center_gram
from muhat.linalg.resources import steady_blas
from muhat.means.base import BaseKernelMean
from muhat.means.nested import NestedMeansMixin, check_mean, check_unweighted, mean_from_gram, mean_weights
from muhat.means.sketched import SketchPlan, fitted_features
from muhat.measures import Atoms
from muhat.operators.centering import Centered
from muhat.operators.operator import CovarianceOperator, PairKernel
from muhat.parameters import ValueParametersMixin
from muhat.types import Array
from muhat.validation import check_overflow, check_rows, unchanged_on_error

_BLOCK = 128


class KernelCovariance(NestedMeansMixin, ValueParametersMixin, BaseEstimator):
    r"""Covariance and cross-covariance operators, plain or shrunken (COSE).

    :math:`\hat\Sigma_{YX} = \sum_i \beta_i\, \tilde\varphi(y_i) \otimes \tilde\phi(x_i)` is a mean element under the
    product kernel :math:`\tilde k_X \tilde k_Y`, so that any mean estimator, run on the Gram matrix
    :math:`\tilde K_X \circ \tilde K_Y`, gives its weights: S-COSE by ``mean=ShrunkKernelMean()``, F-COSE by
    ``mean=SpectralKernelMean()``. Leave-one-out holds the centring fixed.

    Parameters
    ----------
    kernel_x : Kernel, default Gaussian()
        The kernel of the rows of X. A bandwidth "median" becomes a number in ``fit``.
    kernel_y : Kernel, optional
        Default: as ``kernel_x``, with a bandwidth of its own where that is "median".
    mean : mean estimator, optional
        Estimator of the weights β. Default: 1/n each.
    centering : mean estimator, optional
        Estimator of the means about which rows are centred; the plain average by default, as in the paper's COSE.
    features : Nystroem, optional
        Not fitted: its landmarks are chosen among the pairs of rows. The operator, projected on the span of
        :math:`\tilde\varphi(y_j) \otimes \tilde\phi(x_j)` at r landmarks, takes O(nr²) time and O(r²) memory beyond the
        rows; both means lie on r landmarks too. λ by deletion goes by 1,000 of the pairs.

    Attributes
    ----------
    operator_ : CovarianceOperator
    weights_ : array of shape (n,)
        β; with ``features`` the weights of the landmarks.
    mean_fit_ : MeanFit or None
        Result of ``mean``: the weights, and what it chose as ``chosen``. None for the plain average, and with
        ``features``.
    kernel_x_, kernel_y_ : Kernel
        Resolved, not centred.
    approximation_error_ : float
        Only with ``features``: for plain weights and plain centring it bounds the square of the distance to the
        operator without features. Of the others it is a measure.

    Examples
    --------
    >>> import numpy as np
    >>> import muhat as mh
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(50, 2))
    >>> Y = X[:, :1] ** 2 + 0.1 * rng.normal(size=(50, 1))
    >>> covariance = mh.KernelCovariance(mean=mh.ShrunkKernelMean()).fit(X, Y)
    >>> round(covariance.operator_.hsic(), 4)
    0.0038
    >>> round(covariance.mean_fit_.chosen["shrinkage"], 2)
    0.43
    >>> quick = mh.KernelCovariance(mean=mh.ShrunkKernelMean(), features=mh.Nystroem(n_components=30, random_state=0))
    >>> round(quick.fit(X, Y).operator_.hsic(), 4)
    0.0038
    """

    def __init__(
        self,
        kernel_x: Kernel = Gaussian(),
        kernel_y: Kernel | None = None,
        mean: BaseKernelMean | None = None,
        centering: BaseKernelMean | None = None,
        *,
        features: Nystroem | None = None,
    ) -> None:
        self.kernel_x = kernel_x
        self.kernel_y = kernel_y
        self.mean = mean
        self.centering = centering
        self.features = features

    _nested = ("mean", "centering")

    @unchanged_on_error
    def fit(self, X: Any, Y: Any = None, **metadata: Any) -> Self:
        """Estimate the operator.

        Parameters
        ----------
        X : array of shape (n, d), n >= 2
            The rows, one observation each.
        Y : array of shape (n, e) or (n,), optional
            Default X: the covariance operator of X.
        **metadata
            ``sample_weight`` for the means that request it; see :class:`muhat.means.nested.NestedMeansMixin`.

        Returns
        -------
        self
        """
        check_mean("mean", self.mean)
        check_mean("centering", self.centering)
        X = check_rows(X, estimator=self, min_rows=2)
        other = X if Y is None else _paired_rows(Y, len(X))
        check_kernel("kernel_x", self.kernel_x)
        kernel_y = self.kernel_x if self.kernel_y is None else self.kernel_y
        check_kernel("kernel_y", kernel_y)
        alone, sample_weights = other is X and kernel_y == self.kernel_x, self._sample_weights(metadata)
        with steady_blas(len(X)):
            if self.features is None:
                self._fit_gram(X, other, kernel_y, alone, sample_weights)
            else:
                check_unweighted(sample_weights)
                self._fit_features(X, other, kernel_y, alone)
        return self

    def _fit_gram(self, X: Array, Y: Array, kernel_y: Kernel, alone: bool, sample_weights: dict[str, Any]) -> None:
        mean_x, K = self._centred(self.kernel_x, X, sample_weights["centering"])
        mean_y, other = (mean_x, K) if alone else self._centred(kernel_y, Y, sample_weights["centering"])
        with np.errstate(over="ignore"):
            K *= other
            check_overflow(PairKernel(mean_x.kernel, mean_y.kernel, X.shape[1]), np.diag(K))
        del other  # the weights may need its room
        fit = mean_from_gram(self.mean, K, sample_weights["mean"])
        self.mean_fit_ = None if self.mean is None else fit
        self._store(CovarianceOperator(X, Y, mean_x, mean_y, fit.weights))

    def _centred(self, kernel: Kernel, X: Array, sample_weight: Any) -> tuple[Element, Array]:
        resolved = kernel.resolve(X)
        K = gram.dense(resolved, X, arrays=4)
        weights = mean_weights(self.centering, K, sample_weight)
        center_gram(K, weights)
        return Element(resolved, Atoms.trusted(X, weights)), K

    def _fit_features(self, X: Array, Y: Array, kernel_y: Kernel, alone: bool) -> None:
        """A mean in features of the pairs (x, y), under the product of the centred kernels."""
        plan, centring = _sketch_plan("mean", self.mean), _sketch_plan("centering", self.centering)
        self.mean_fit_ = None
        _check_unfitted(self.features)
        mean_x, missed_x = self._sketched(self.kernel_x, X, centring)
        mean_y, missed_y = (mean_x, missed_x) if alone else self._sketched(kernel_y, Y, centring)
        centred_x, d = Centered(mean_x.kernel, mean_x), X.shape[1]
        if alone:
            pairs, missed = self._sketched(centred_x * centred_x, X, plan)
        else:
            kernel = PairKernel(centred_x, Centered(mean_y.kernel, mean_y), columns=d)
            pairs, missed = self._sketched(kernel, np.hstack([X, Y]), plan)
        landmarks: Any = pairs.measures[0]
        x = landmarks.points[:, :d]
        self._store(CovarianceOperator(x, x if alone else landmarks.points[:, d:], mean_x, mean_y, landmarks.weights))
        # Centred about means that are off by δ, the plain operator has the term δ_y ⊗ δ_x more.
        self.approximation_error_ = float(np.sqrt(missed) + np.sqrt(missed_x * missed_y)) ** 2

    def _sketched(self, kernel: Kernel, rows: Array, plan: SketchPlan) -> tuple[Element, float]:
        """The mean that the plan makes of features of the rows, and a bound of what these miss of the average, squared.

        What they miss of a block is known, and of all rows it is at most the mean over blocks. Blocks of as many rows
        as there are landmarks, or a few more, cost as many kernel values as the features do.
        """
        features = fitted_features(self.features, kernel, rows)
        sketch, missed, size = plan.empty(features), 0.0, max(len(features.landmarks_), _BLOCK)
        for places in blocks(len(rows), size):
            block = rows[places]
            part = plan.empty(features).update(block)
            sums = len(block) * part.mean_features()
            missed += np.sqrt(max(float(features.kernel_.evaluate(block, block).sum() - sums @ sums), 0.0))
            sketch.merge(part)
        return sketch.mean_element(*plan), (missed / len(rows)) ** 2

    def _store(self, operator: CovarianceOperator) -> None:
        self.operator_, self.weights_ = operator, operator.weights
        self.kernel_x_, self.kernel_y_ = operator.kernel_x, operator.kernel_y


def _sketch_plan(name: str, mean: BaseKernelMean | None) -> SketchPlan:
    if mean is None:
        return SketchPlan()
    if "features" not in mean.get_params(deep=False):
        raise ValueError(
            f"{name}={mean!r} cannot be used with features; use ShrunkKernelMean(), SpectralKernelMean() or None"
        )
    return mean.sketch_plan()


def _check_unfitted(features: Any) -> None:
    if hasattr(features, "fingerprint_") or not isinstance(getattr(features, "landmarks", ""), str):
        raise ValueError(
            f"features={features!r} must be neither fitted nor have landmarks of its own, because these are pairs of "
            f"rows, centred; pass Nystroem(n_components=..., random_state=...)"
        )


def _paired_rows(Y: Any, n: int) -> Array:
    column = np.asarray(Y)
    Y = check_rows(column[:, None] if column.ndim == 1 else Y, name="Y")
    if len(Y) != n:
        raise ValueError(f"Y has {len(Y)} rows and X has {n}; pass one row of Y for each row of X")
    return Y
