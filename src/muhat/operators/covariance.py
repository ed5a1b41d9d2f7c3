"""Estimators of covariance operators, plain and shrunken (COSE)."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from muhat._support.parameters import ValueParametersMixin
from muhat._support.types import Array
from muhat._support.validation import check_overflow, check_rows, unchanged_on_error
from muhat.grams import RowsGram
from muhat.kernels.base import Kernel, check_kernel
from muhat.kernels.radial import Gaussian
from muhat.linalg.centered_gram import center_gram
from muhat.linalg.resources import steady_blas
from muhat.means.base import BaseKernelMean, MeanFit
from muhat.means.nested import check_mean, mean_from_gram, mean_weights
from muhat.operators.covariance_operator import CovarianceOperator
from muhat.rkhs.elements import Element


class KernelCovariance(ValueParametersMixin, BaseEstimator):
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

    Attributes
    ----------
    operator_ : CovarianceOperator
        The estimated operator.
    weights_ : array of shape (n,)
        β.
    mean_fit_ : MeanFit or None
        Result of ``mean``: the weights, and what it chose as ``chosen``. None for the plain average.
    kernel_x_, kernel_y_ : Kernel
        Resolved, not centred.

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
    """

    def __init__(
        self,
        kernel_x: Kernel = Gaussian(),
        kernel_y: Kernel | None = None,
        mean: BaseKernelMean | None = None,
        centering: BaseKernelMean | None = None,
    ) -> None:
        self.kernel_x = kernel_x
        self.kernel_y = kernel_y
        self.mean = mean
        self.centering = centering

    @unchanged_on_error
    def fit(self, X: Any, Y: Any = None) -> Self:
        """Estimate the operator from rows of X and of Y, which is X by default."""
        check_mean("mean", self.mean)
        check_mean("centering", self.centering)
        X = check_rows(X, estimator=self, min_rows=2)
        other = X if Y is None else _paired_rows(Y, len(X))
        check_kernel("kernel_x", self.kernel_x)
        kernel_y = self.kernel_x if self.kernel_y is None else self.kernel_y
        check_kernel("kernel_y", kernel_y)
        x = RowsGram(self.kernel_x.resolve(X), X)
        y = x if other is X and kernel_y == self.kernel_x else RowsGram(kernel_y.resolve(other), other)
        with steady_blas(len(X)):
            self.operator_, self.mean_fit_ = estimate_covariance(x, y, self.mean, self.centering)
        self.weights_ = self.operator_.weights
        self.kernel_x_, self.kernel_y_ = self.operator_.kernel_x, self.operator_.kernel_y
        return self


def estimate_covariance(
    x: RowsGram, y: RowsGram, mean: BaseKernelMean | None, centering: BaseKernelMean | None
) -> tuple[CovarianceOperator, MeanFit | None]:
    r"""Estimate a covariance operator: a mean estimator on the Gram matrix :math:`\tilde K_X \circ \tilde K_Y`.

    The plain operator minimises equation 14 of the paper, which has the form of a kernel mean's loss. One Gram operator
    is both sides of the covariance operator of X with itself. ``centering`` estimates the means to centre about, and
    ``mean`` the weights β, whose result is returned too; None is the plain average.
    """
    mean_x, K = _centred_gram(x, centering)
    mean_y, other = (mean_x, K) if y is x else _centred_gram(y, centering)
    with np.errstate(over="ignore"):
        K *= other
        check_overflow(x.kernel * y.kernel, np.diag(K))
    del other  # the weights may need its memory
    fit = mean_from_gram(mean, K)
    operator = CovarianceOperator(x.points, y.points, mean_x, mean_y, fit.weights)
    return operator, None if mean is None else fit


def _centred_gram(G: RowsGram, centering: BaseKernelMean | None) -> tuple[Element, Array]:
    """The estimated mean of one side, and the Gram matrix centred about it."""
    K = G.dense(arrays=4)
    weights = mean_weights(centering, K)
    return G.element(weights), center_gram(K, weights)


def _paired_rows(Y: Any, n: int) -> Array:
    column = np.asarray(Y)
    Y = check_rows(column[:, None] if column.ndim == 1 else Y, name="Y")
    if len(Y) != n:
        raise ValueError(f"Y has {len(Y)} rows and X has {n}; pass one row of Y for each row of X")
    return Y
