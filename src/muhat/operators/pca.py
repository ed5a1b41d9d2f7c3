"""Kernel principal component analysis about any mean and with any weights of the covariance operator."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, Literal, Self

import numpy as np
from scipy.linalg import solve
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from muhat._support.parameters import ValueParametersMixin
from muhat._support.types import Array
from muhat._support.validation import (
    GRAM_TOLERANCE,
    INDEFINITE_GRAM,
    check_count,
    check_gram,
    check_number,
    check_precomputed,
    check_rows,
    is_precomputed,
    unchanged_on_error,
)
from muhat.grams import MatrixGram, PairGram, RowsGram
from muhat.kernels import tiles
from muhat.kernels.base import Kernel
from muhat.kernels.capabilities import gaussian_bandwidth
from muhat.kernels.foreign import evaluates_new_rows
from muhat.kernels.radial import Gaussian
from muhat.linalg.blocks import blocks
from muhat.linalg.centered_gram import center_gram
from muhat.linalg.distances import power_of_two_near
from muhat.linalg.resources import FEWEST_NUMBERS_FOR_THREADS, steady_blas
from muhat.means.base import BaseKernelMean, MeanFit
from muhat.means.nested import check_mean, mean_from_gram
from muhat.operators.principal_components import is_partial, principal_components, smallest_ritz_value


class KernelPCA(ValueParametersMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""Kernel PCA whose mean and covariance operator may be shrunken: the paper's five scenarios.

    The directions are eigenfunctions of :math:`\sum_i \beta_i\, \tilde\phi(x_i) \otimes \tilde\phi(x_i)`, orthonormal
    in the space, with :math:`\tilde\phi(x) = \phi(x) - \mu`. ``mean`` chooses μ (shrinkage centring), ``covariance``
    the weights β (COSE). With both left out this is scikit-learn's ``KernelPCA``.

    Differs from the paper: negative weights are handled by the symmetric form :math:`L^\top B L` with
    :math:`K^c = LL^\top`. Simple shrinkage of the covariance (S-COSE) only rescales the eigenvalues: directions and
    errors are those of plain kernel PCA.

    Parameters
    ----------
    n_components : int, optional
        Default: all with a positive eigenvalue.
    kernel : Kernel or "precomputed", default Gaussian()
        The kernel, or "precomputed" where X is its Gram matrix. A bandwidth "median" becomes a number in ``fit``. An
        indefinite Gram matrix is refused; where at most 50 components of more than 500 rows are asked for, only one
        with a large negative eigenvalue, because the check would take longer than the components.
    mean : mean estimator, optional
        Estimator of the centre. Default the plain average.
    covariance : mean estimator, optional
        Estimator of the weights of the covariance operator. Default 1/n each.
    pre_image : "ridge" or "fixed-point", default "ridge"
        How ``inverse_transform`` finds rows: by kernel ridge regression from scores to rows, as scikit-learn does, or
        by the fixed-point iteration of Mika et al. for the Gaussian kernel.
    pre_image_ridge : float > 0, default 1.0
        Ridge of the regression from scores to rows, for ``pre_image="ridge"``.

    Attributes
    ----------
    eigenvalues_ : array of shape (n_components,)
        Descending, in the scale of the Gram matrix: n times those of the covariance operator.
    explained_variance_ratio_ : array of shape (n_components,)
        Share of each eigenvalue in the trace of the covariance operator.
    kernel_ : Kernel
        The kernel, with the bandwidth as a number.
    mean_weights_, covariance_weights_ : arrays of shape (n,)
        Weights of the mean and of the covariance operator.
    mean_fit_, covariance_fit_ : MeanFit or None
        Results of ``mean`` and ``covariance``: the weights, and what they chose as ``chosen``. None for the plain
        average.
    coefficients_ : array of shape (n, n_components)
        A direction is the sum of coefficients times φ(x_j), the centring written out.

    See Also
    --------
    KernelCovariance : The covariance operator itself, and cross-covariance operators.
    ShrunkKernelCenterer : Centring of a Gram matrix about a shrunken mean, for other estimators.
    sklearn.decomposition.KernelPCA : Plain kernel PCA.

    References
    ----------
    Schölkopf, Smola, Müller: Nonlinear component analysis as a kernel eigenvalue problem (1998).
    Mika et al.: Kernel PCA and de-noising in feature spaces (1998).

    Examples
    --------
    >>> import numpy as np
    >>> import muhat as mh
    >>> X = mh.paper_mixture(5, random_state=0).sample(40, random_state=0)
    >>> pca = mh.KernelPCA(2, mean=mh.ShrunkKernelMean()).fit(X)
    >>> pca.transform(X).shape
    (40, 2)
    >>> round(float(pca.reconstruction_error(X)), 3)
    0.13
    >>> round(pca.mean_fit_.chosen["shrinkage"], 3)
    0.014
    """

    def __init__(
        self,
        n_components: int | None = None,
        kernel: Kernel | Literal["precomputed"] = Gaussian(),
        mean: BaseKernelMean | None = None,
        covariance: BaseKernelMean | None = None,
        *,
        pre_image: Literal["ridge", "fixed-point"] = "ridge",
        pre_image_ridge: float = 1.0,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.mean = mean
        self.covariance = covariance
        self.pre_image = pre_image
        self.pre_image_ridge = pre_image_ridge

    @unchanged_on_error
    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the directions from rows, or from their Gram matrix (n, n) for ``kernel="precomputed"``."""
        self._fit(X)
        return self

    @unchanged_on_error
    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """Find the directions and return the scores of the training rows, from one Gram matrix."""
        return self._fit(X) @ self.coefficients_ - self._shift

    def _fit(self, X: Any) -> Array:
        """Fit, and return the Gram matrix of the rows."""
        check_mean("mean", self.mean)
        check_mean("covariance", self.covariance)
        if self.pre_image not in ("ridge", "fixed-point"):
            raise ValueError(f'pre_image={self.pre_image!r} must be "ridge" or "fixed-point"')
        rows = check_rows(X, estimator=self, min_rows=2, copy=isinstance(self.kernel, Kernel))
        n_components = self._checked_n_components(len(rows))
        threaded = len(rows) * max(rows.shape) > FEWEST_NUMBERS_FOR_THREADS
        with steady_blas(len(rows)) if threaded else nullcontext():
            return self._fit_gram(rows, n_components)

    def _fit_gram(self, rows: Array, n_components: int | None) -> Array:
        if isinstance(self.kernel, Kernel):
            G: PairGram = RowsGram(self.kernel.resolve(rows), rows)
        else:
            G = MatrixGram(_checked_gram(self.kernel, rows, n_components))
        self.kernel_, self._points = G.kernel, G.points
        K = G.dense(2 if self.covariance is None else 5)
        mean = mean_from_gram(self.mean, K)
        covariance = _covariance_fit(self.covariance, K, mean.weights)
        self.mean_fit_ = None if self.mean is None else mean
        self.covariance_fit_ = None if self.covariance is None else covariance
        self.covariance_weights_ = covariance.weights
        found = principal_components(K, mean.weights, covariance.weights, n_components)
        self.eigenvalues_, self.explained_variance_ratio_ = found.eigenvalues, found.explained
        self.coefficients_, self.mean_weights_ = found.coefficients, found.mean_weights
        self._shift, self._squared_norm = found.shift, found.squared_norm
        self._n_features_out = len(found.eigenvalues)
        return K

    def _checked_n_components(self, n: int) -> int | None:
        if self.n_components is None:
            return None
        if check_count("n_components", self.n_components) > n:
            raise ValueError(f"n_components={self.n_components} must not exceed the {n} rows of X")
        return self.n_components

    def transform(self, X: Any) -> Array:
        r"""Compute scores, the inner products of :math:`\phi(x) - \mu` with the directions.

        For ``kernel="precomputed"`` X holds k(X, training rows).
        """
        check_is_fitted(self, "coefficients_")
        rows = check_rows(X, estimator=self, reset=False)
        return self._feature_scores(rows) - self._shift

    def _feature_scores(self, rows: Array) -> Array:
        """Inner products of φ(x), not centred, with the directions."""
        return tiles.product(self.kernel_, rows, self._points, self.coefficients_)

    def inverse_transform(self, X: Any) -> Array:
        """Find rows whose scores are near the given ones."""
        check_is_fitted(self, "coefficients_")
        if not evaluates_new_rows(self.kernel_):
            raise ValueError("kernel='precomputed' has no rows to return; fit on the data with a kernel object")
        scores = check_rows(X)
        if scores.shape[1] != self._n_features_out:
            raise ValueError(
                f"X has {scores.shape[1]} columns and must have {self._n_features_out}, one for each component"
            )
        if self.pre_image == "ridge":
            ridge = check_number("pre_image_ridge", self.pre_image_ridge, low=0, open_low=True)
            own_scores = self._feature_scores(self._points) - self._shift
            kernel: Any = self.kernel
            return ridge_preimages(kernel, own_scores, self._points, scores, ridge)
        bandwidth = gaussian_bandwidth(self.kernel_)
        if bandwidth is None:
            raise ValueError(f'pre_image="fixed-point" needs a Gaussian kernel; with {self.kernel_!r} use "ridge"')
        weighted = np.column_stack([scores, np.ones(len(scores))])
        functions = np.column_stack([self.coefficients_, self.mean_weights_])
        return fixed_point_preimages(bandwidth, self._points, weighted, functions)

    def reconstruction_error(
        self, X: Any, of: Literal["centered", "centred", "feature"] = "centered", *, per_row: bool = False
    ) -> Any:
        r"""Compute the mean squared distance between features and their projection, or that ``per_row``.

        ``of="centered"`` (or "centred") is :math:`\|\tilde\phi(z) - P\tilde\phi(z)\|^2`, of the centred feature, and
        ``of="feature"`` is :math:`\|\phi(z) - P\phi(z)\|^2`, as the paper writes it.
        """
        check_is_fitted(self, "coefficients_")
        if of not in ("centered", "centred", "feature"):
            raise ValueError(f'of={of!r} must be "centered" or "feature"')
        if not evaluates_new_rows(self.kernel_):
            raise ValueError("kernel='precomputed' has no k(z, z) for new rows; fit on the data with a kernel object")
        rows = check_rows(X, estimator=self, reset=False)
        projections = self._feature_scores(rows)
        squared_length = self.kernel_.diagonal(rows)
        if of != "feature":
            at_mean = tiles.product(self.kernel_, rows, self._points, self.mean_weights_)
            squared_length = squared_length - 2.0 * at_mean + self._squared_norm
            projections = projections - self._shift
        errors = np.maximum(squared_length - (projections**2).sum(axis=1), 0.0)
        return errors if per_row else errors.mean()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = is_precomputed(self.kernel)
        return tags


def _checked_gram(kernel: Any, X: Array, n_components: int | None) -> Array:
    """The Gram matrix that stands for the rows.

    Where few components are asked for, only a matrix with a large negative eigenvalue is refused: to find a small one
    takes longer than the components, which it would not change.
    """
    check_precomputed(kernel)
    partial = is_partial(len(X), n_components)
    K = check_gram(X, name="X", definite=not partial)
    if partial and smallest_ritz_value(K) < -GRAM_TOLERANCE * np.trace(K):
        raise ValueError(INDEFINITE_GRAM.format(name="X"))
    return K


def _covariance_fit(covariance: BaseKernelMean | None, K: Array, mean_weights: Array) -> MeanFit:
    """Weights of the covariance operator, a mean under the squared centred kernel."""
    if covariance is None:
        return mean_from_gram(None, K)
    centred = K.copy()
    center_gram(centred, mean_weights)
    centred *= centred
    return mean_from_gram(covariance, centred)


# Pre-images: rows whose features lie near an element of the space.

_CELLS = 2**20  # numbers of a block of pre-images: 8 MB


def ridge_preimages(kernel: Kernel, scores: Array, points: Array, new_scores: Array, ridge: float) -> Array:
    """Kernel ridge regression from the scores of the training rows to the rows themselves."""
    resolved = kernel.resolve(scores)
    K = tiles.dense(resolved, scores)
    K[np.diag_indices_from(K)] += ridge
    unit = power_of_two_near(float(np.abs(points).max()))  # sums of rows over it do not overflow
    coefficients = solve(K, points / unit, assume_a="pos", overwrite_a=True)
    return _times(tiles.product(resolved, new_scores, scores, coefficients), unit)


def _times(rows: Array, unit: float) -> Array:
    """Rows times a unit, or the largest number where that overflows."""
    largest = np.finfo(np.float64).max / max(unit, 1.0)
    return np.asarray(np.clip(rows, -largest, largest) * unit)


def fixed_point_preimages(bandwidth: float, points: Array, scores: Array, functions: Array) -> Array:
    """Rows z that maximise f(z) for f = Σ scoreⱼ fⱼ and a Gaussian kernel, one for each row of ``scores``.

    Column j of ``functions`` holds the coefficients of fⱼ at φ(xᵢ). The iteration starts at the training row where f is
    largest; scores are taken a block at a time, to bound the memory.
    """
    unit = power_of_two_near(float(np.abs(points).max()))
    kernel, points = Gaussian(bandwidth / unit), points / unit
    values = tiles.product(kernel, points, points, functions)
    parts = [scores[rows] for rows in blocks(len(scores), max(_CELLS // len(points), 1))]
    starts = (points[np.argmax(part @ values.T, axis=1)] for part in parts)
    found = [_climb(kernel, points, part @ functions.T, rows) for part, rows in zip(parts, starts, strict=True)]
    return _times(np.concatenate(found), unit)


def _climb(
    kernel: Gaussian, points: Array, targets: Array, rows: Array, max_iter: int = 100, tol: float = 1e-8
) -> Array:
    """Iterate z ← Σ γᵢ k(z, xᵢ) xᵢ / Σ γᵢ k(z, xᵢ) on the given rows z, in place, γ the rows of ``targets``.

    A step that leads nowhere (a vanishing or negative denominator) leaves the row where it was.
    """
    moving = np.arange(len(rows))
    tolerance = tol * kernel.width
    for _ in range(max_iter):
        pull = kernel.evaluate(rows[moving], points) * targets[moving]
        total = pull.sum(axis=1)
        usable = total > np.finfo(float).eps * np.abs(pull).sum(axis=1)
        moving, pull, total = moving[usable], pull[usable], total[usable]
        moved = pull @ points / total[:, None]
        far = np.abs(moved - rows[moving]).max(axis=1, initial=0.0) > tolerance
        rows[moving] = moved
        moving = moving[far]
        if not len(moving):
            break
    return rows
