"""Estimators of covariance operators, plain and shrunken (COSE), from Gram matrices or in features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator

from muhat._support.parameters import ValueParametersMixin
from muhat._support.types import Array
from muhat._support.validation import check_overflow, check_rows, unchanged_on_error
from muhat.features.nystroem import Nystroem
from muhat.kernels.base import Kernel, check_kernel
from muhat.kernels.radial import Gaussian
from muhat.linalg import gram
from muhat.linalg.blocks import blocks
from muhat.linalg.centered_gram import center_gram
from muhat.linalg.resources import steady_blas
from muhat.means.base import BaseKernelMean, MeanFit
from muhat.means.nested import NestedMeansMixin, check_mean, check_unweighted, mean_from_gram, mean_weights
from muhat.means.sketched import SketchPlan, fitted_features
from muhat.operators.centering import Centered
from muhat.operators.covariance_operator import CovarianceOperator, PairKernel
from muhat.rkhs.elements import Element
from muhat.rkhs.measures import Atoms

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
        rows; both means lie on r landmarks too. λ by leave-one-out goes by 1,000 of the pairs.

    Attributes
    ----------
    operator_ : CovarianceOperator
        The estimated operator.
    weights_ : array of shape (n,)
        β; with ``features`` the weights of the landmarks.
    mean_fit_ : MeanFit or None
        Result of ``mean``: the weights, and what it chose as ``chosen``. None for the plain average, and with
        ``features``.
    kernel_x_, kernel_y_ : Kernel
        Resolved, not centred.
    approximation_error_ : float
        Error of the features, 0 without them: for plain weights and plain centring it bounds the square of the
        distance to the operator without features. Of the others it is a measure.

    See Also
    --------
    KernelPCA : Eigenfunctions of a covariance operator, with scores of new rows.
    hsic_test : A test of independence based on the norm of the cross-covariance operator.

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
            The fitted estimator.
        """
        check_mean("mean", self.mean)
        check_mean("centering", self.centering)
        X = check_rows(X, estimator=self, min_rows=2)
        other = X if Y is None else _paired_rows(Y, len(X))
        check_kernel("kernel_x", self.kernel_x)
        kernel_y = self.kernel_x if self.kernel_y is None else self.kernel_y
        check_kernel("kernel_y", kernel_y)
        x = Side(self.kernel_x, X)
        y = x if other is X and kernel_y == self.kernel_x else Side(kernel_y, other)
        sample_weights = self._sample_weights(metadata)
        with steady_blas(len(X)):
            if self.features is None:
                found = gram_covariance(x, y, self.mean, self.centering, sample_weights)
            else:
                check_unweighted(sample_weights)
                found = feature_covariance(x, y, self.mean, self.centering, self.features)
        self.operator_, self.weights_ = found.operator, found.operator.weights
        self.kernel_x_, self.kernel_y_ = found.operator.kernel_x, found.operator.kernel_y
        self.mean_fit_, self.approximation_error_ = found.mean_fit, found.approximation_error
        return self


class Side(NamedTuple):
    """One side of the pairs: its kernel, with or without a bandwidth, and its rows."""

    kernel: Kernel
    rows: Array


class CovarianceFit(NamedTuple):
    """An estimated operator, the result of its mean estimator, and the error of features."""

    operator: CovarianceOperator
    mean_fit: MeanFit | None
    approximation_error: float = 0.0


def gram_covariance(
    x: Side,
    y: Side,
    mean: BaseKernelMean | None,
    centering: BaseKernelMean | None,
    sample_weights: Mapping[str, Any],
) -> CovarianceFit:
    r"""Estimate a covariance operator: a mean estimator on the Gram matrix :math:`\tilde K_X \circ \tilde K_Y`.

    One object is both sides of the covariance operator of X with itself. ``centering`` estimates the means to centre
    about, and ``mean`` the weights β; None is the plain average. ``sample_weights`` has one entry for each.
    """
    mean_x, K = _centred_gram(x, centering, sample_weights["centering"])
    mean_y, other = (mean_x, K) if y is x else _centred_gram(y, centering, sample_weights["centering"])
    with np.errstate(over="ignore"):
        K *= other
        check_overflow(PairKernel(mean_x.kernel, mean_y.kernel, x.rows.shape[1]), np.diag(K))
    del other  # the weights may need its memory
    fit = mean_from_gram(mean, K, sample_weights["mean"])
    operator = CovarianceOperator(x.rows, y.rows, mean_x, mean_y, fit.weights)
    return CovarianceFit(operator, None if mean is None else fit)


def _centred_gram(side: Side, centering: BaseKernelMean | None, sample_weight: Any) -> tuple[Element, Array]:
    """The estimated mean of one side, and the Gram matrix centred about it."""
    kernel = side.kernel.resolve(side.rows)
    K = gram.dense(kernel, side.rows, arrays=4)
    weights = mean_weights(centering, K, sample_weight)
    center_gram(K, weights)
    return Element(kernel, Atoms.trusted(side.rows, weights)), K


def feature_covariance(
    x: Side, y: Side, mean: BaseKernelMean | None, centering: BaseKernelMean | None, features: Nystroem
) -> CovarianceFit:
    """Estimate a covariance operator in features of the pairs (x, y), under the product of the centred kernels.

    Both means work on sums of features, whose landmarks are chosen among the pairs.
    """
    plan, centring = _sketch_plan("mean", mean), _sketch_plan("centering", centering)
    _check_unfitted(features)
    mean_x, missed_x = _sketched(features, x.kernel, x.rows, centring)
    mean_y, missed_y = (mean_x, missed_x) if y is x else _sketched(features, y.kernel, y.rows, centring)
    centred_x, d = Centered(mean_x.kernel, mean_x), x.rows.shape[1]
    if y is x:
        pairs, missed = _sketched(features, centred_x * centred_x, x.rows, plan)
    else:
        kernel = PairKernel(centred_x, Centered(mean_y.kernel, mean_y), columns=d)
        pairs, missed = _sketched(features, kernel, np.hstack([x.rows, y.rows]), plan)
    landmarks: Any = pairs.measures[0]
    of_x = landmarks.points[:, :d]
    of_y = of_x if y is x else landmarks.points[:, d:]
    # Centred about means that are off by δ, the plain operator has the additional term δ_y ⊗ δ_x.
    error = float(np.sqrt(missed) + np.sqrt(missed_x * missed_y)) ** 2
    return CovarianceFit(CovarianceOperator(of_x, of_y, mean_x, mean_y, landmarks.weights), None, error)


def _sketched(features: Nystroem, kernel: Kernel, rows: Array, plan: SketchPlan) -> tuple[Element, float]:
    """The mean that the plan makes of features of the rows, and a bound of what these miss of the average, squared.

    What they miss of a block is known, and of all rows it is at most the mean over blocks. Blocks of as many rows as
    there are landmarks, or a few more, cost as many kernel values as the features do.
    """
    features = fitted_features(features, kernel, rows)
    sketch, missed, size = plan.empty(features), 0.0, max(len(features.landmarks_), _BLOCK)
    for places in blocks(len(rows), size):
        block = rows[places]
        part = plan.empty(features).update(block)
        sums = len(block) * part.mean_features()
        missed += np.sqrt(max(float(features.kernel_.evaluate(block, block).sum() - sums @ sums), 0.0))
        sketch.merge(part)
    return sketch.mean_element(*plan), (missed / len(rows)) ** 2


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
