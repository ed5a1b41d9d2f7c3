"""Centred kernels, and centring of precomputed Gram matrices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from muhat._support.parameters import ValueParametersMixin
from muhat._support.types import Array
from muhat._support.validation import check_gram, check_rows, unchanged_on_error
from muhat.kernels.base import Kernel, Measure
from muhat.kernels.expectations import expectations, gaussian_diagonal, gaussian_expectations
from muhat.linalg.centered_gram import subtract_means
from muhat.means.base import BaseKernelMean
from muhat.means.nested import check_mean, mean_from_gram
from muhat.rkhs.elements import Element, check_element
from muhat.rkhs.measures import Atoms, Gaussians


@dataclass(frozen=True, repr=False)
class Centered(Kernel):
    r"""Kernel centred about a mean element μ of any estimator.

    .. math:: \tilde k(x, y) = \langle \phi(x) - \mu, \phi(y) - \mu \rangle

    Parameters
    ----------
    kernel : Kernel
        With a numeric bandwidth.
    mean : Element
        The centre μ, an element of the space of ``kernel``.

    See Also
    --------
    ShrunkKernelCenterer : Centring of precomputed Gram matrices.
    embed : The mean element of a sample or a distribution.

    Examples
    --------
    >>> import numpy as np
    >>> import muhat as mh
    >>> X = np.array([[0.0], [1.0], [5.0]])
    >>> mean = mh.KernelMean(mh.Linear()).fit(X)
    >>> mh.Centered(mean.kernel_, mean.mean_)(X)
    array([[ 4.,  2., -6.],
           [ 2.,  1., -3.],
           [-6., -3.,  9.]])
    """

    kernel: Kernel
    mean: Element

    def __post_init__(self) -> None:
        check_element("mean", self.mean, self.kernel)

    def points(self, X: Any, n_features: int | None = None) -> Array:
        return self.kernel.points(X, n_features)

    def evaluate(self, X: Array, Y: Array) -> Array:
        K = self.kernel.evaluate(X, Y)
        at_x = self.mean_at(_atoms(X))
        at_y = at_x if X is Y else self.mean_at(_atoms(Y))
        subtract_means(K, at_x, at_y, self.mean.norm() ** 2)
        return K

    def diagonal(self, X: Array) -> Array:
        return self.kernel.diagonal(X) - 2.0 * self.mean_at(_atoms(X)) + self.mean.norm() ** 2

    def mean_at(self, P: Measure) -> Array:
        """E μ(x) with x from each component of P."""
        if isinstance(P, Atoms):
            return self.mean.values(P.points)
        return np.sum([expectations(self.kernel, P, Q) @ Q.weights for Q in self.mean.measures], axis=0)


@gaussian_expectations.register(Centered)
def _centred_expectations(kernel: Centered, P: Gaussians, Q: Measure) -> Array:
    crossed = np.add.outer(kernel.mean_at(P), kernel.mean_at(Q))
    return gaussian_expectations(kernel.kernel, P, Q) - crossed + kernel.mean.norm() ** 2


@gaussian_diagonal.register(Centered)
def _centred_diagonal(kernel: Centered, P: Gaussians) -> Array:
    return gaussian_diagonal(kernel.kernel, P) - 2.0 * kernel.mean_at(P) + kernel.mean.norm() ** 2


def _atoms(points: Array) -> Atoms:
    return Atoms.trusted(points, np.ones(len(points)))


class ShrunkKernelCenterer(ValueParametersMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""Centre a precomputed Gram matrix about any estimate of the mean.

    With ``mean=None`` this is scikit-learn's ``KernelCenterer``; with a shrinkage estimator the rows are centred
    about the shrunken mean,

    .. math:: \tilde K = K - 1\beta^\top K - K\beta 1^\top + (\beta^\top K \beta)\, 11^\top .

    Parameters
    ----------
    mean : mean estimator, optional
        Estimator of the mean; its own kernel is not used. Default the plain average.

    Attributes
    ----------
    weights_ : array of shape (n,)
        The weights β of the mean.
    mean_fit_ : MeanFit or None
        Result of ``mean``: the weights, and what it chose as ``chosen``. None for the plain average.

    See Also
    --------
    Centered : The centred kernel, for rows in place of Gram matrices.
    KernelPCA : Kernel PCA with shrinkage centring built in.
    sklearn.preprocessing.KernelCenterer : Centring about the plain average.

    Examples
    --------
    >>> import numpy as np
    >>> import muhat as mh
    >>> K = np.array([[2.0, 1.0], [1.0, 2.0]])
    >>> mh.ShrunkKernelCenterer().fit_transform(K)
    array([[ 0.5, -0.5],
           [-0.5,  0.5]])
    >>> centerer = mh.ShrunkKernelCenterer(mh.ShrunkKernelMean())
    >>> centerer.fit_transform(K)
    array([[ 0.875, -0.125],
           [-0.125,  0.875]])
    >>> centerer.mean_fit_.chosen["shrinkage"]
    0.5
    """

    def __init__(self, mean: BaseKernelMean | None = None) -> None:
        self.mean = mean

    @unchanged_on_error
    def fit(self, K: Any, y: Any = None) -> Self:
        """Estimate the mean from the Gram matrix of the training rows."""
        check_mean("mean", self.mean)
        K = check_gram(check_rows(K, estimator=self), definite=False)
        fit = mean_from_gram(self.mean, K)
        self.weights_, self.mean_fit_ = fit.weights, None if self.mean is None else fit
        self._offsets = K @ self.weights_
        self._squared_norm = self.weights_ @ self._offsets
        self._n_features_out = len(K)
        return self

    def transform(self, K: Any) -> Array:
        """Centre kernel values (m, n) of any rows with the training rows."""
        check_is_fitted(self, "weights_")
        K = check_rows(K, estimator=self, reset=False, copy=True)
        subtract_means(K, K @ self.weights_, self._offsets, self._squared_norm)
        return K

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = True
        return tags
