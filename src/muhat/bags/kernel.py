"""The kernel between bags: inner products of mean elements, and kernels between those."""

from __future__ import annotations

import warnings
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from muhat.bags.data import Bags, check_bags
from muhat.bags.memo import CACHE_BYTES, Memo, content_key
from muhat.bags.sums import bag_weights, checked_sums, squared_norms, training_sums
from muhat.bags.whitening import BagMoments, Whitening, bag_moments, check_features, check_strength, fit_features
from muhat.features.base import BaseFeatures
from muhat.kernels.base import Kernel, check_kernel
from muhat.kernels.dot import Linear, Polynomial
from muhat.kernels.radial import Gaussian, Laplace, Matern
from muhat.linalg.resources import check_memory
from muhat.means.base import BaseKernelMean
from muhat.means.recipes import check_recipe
from muhat.parameters import ValueParametersMixin
from muhat.types import Array

GRAM_ARRAYS = 4
"""How many arrays of bags x bags a fit takes: inner products, distances, the level-2 kernel, and one to work on."""


memo = Memo(CACHE_BYTES)
"""Gram matrices of bags that were met before; ``memo.clear()`` frees the memory."""


def feature_moments(
    kernel: Kernel, mean: BaseKernelMean | None, features: BaseFeatures | None, bags: Bags, *, within: bool
) -> tuple[BaseFeatures, BagMoments]:
    """Features fitted to the rows of bags, with the moments of the bags in them; recalled where met before.

    The covariance within bags takes O(rows · m²), and is left out (0) where it is not asked for.
    """

    def compute() -> tuple[Any, ...]:
        fitted = fit_features(features, kernel, bags.rows)
        weights = bag_weights(kernel, mean, bags)
        return fitted, *_checked_moments(kernel, bag_moments(fitted, bags.rows, bags.offsets, weights, within=within))

    seeded = features is None or getattr(features, "random_state", 0) is not None
    key = content_key("moments", bags.key, kernel, mean, features, within) if seeded else None
    fitted, *moments = memo.recall(key, compute)
    return fitted, BagMoments(*moments)


def _checked_moments(kernel: Kernel, moments: BagMoments) -> BagMoments:
    with np.errstate(over="ignore", invalid="ignore"):
        if not np.isfinite(4.0 * np.square(moments.means).sum()) or not np.isfinite(moments.within).all():
            raise ValueError(f"{kernel!r} overflows on these bags; rescale them first")
    return moments


class DistributionKernel(ValueParametersMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""Gram matrix of bags: each bag of rows is a distribution, and stands for its mean element.

    The linear level-2 kernel is the inner product of two mean elements,
    :math:`\langle\hat\mu_i, \hat\mu_j\rangle = \beta_i^\top K(X_i, X_j) \beta_j`, and others are functions of it or
    of the distance, as the Gaussian :math:`\exp(-\|\hat\mu_i - \hat\mu_j\|^2 / 2\tau^2)`. For a pipeline into any
    estimator with a precomputed kernel.

    Differs from the paper, where the exponent has no minus sign.

    Parameters
    ----------
    kernel : Kernel, default Gaussian()
        The embedding kernel, between rows. A bandwidth "median" is resolved once, on the pooled rows of fit.
    mean : mean estimator, optional
        How the mean element of each bag is estimated, for example ``ShrunkKernelMean()``; its kernel is replaced
        by this one's. Default the plain average. A bag of one row is its own mean.
    level2 : "linear" or Kernel, default "linear"
        Gaussian, Laplace or Matern of the distance of mean elements, or Linear or Polynomial of the inner product.
        A bandwidth "median" is that of the distances between the bags of fit, over the pairs i < j.
    whiten : bool or float > 0, default False
        Compare :math:`(\hat\mu_i - \bar\mu)(W + \rho \operatorname{tr}(W)/m\, I)^{-1/2}` in place of the mean elements,
        W the covariance of rows within bags, pooled over the bags of fit, in m features. A number is the ridge ρ, which
        can be searched: the larger, the nearer to the plain mean elements, centred; True is 0.05.
    features : Nystroem or Fourier, optional
        Mean elements in features of the embedding kernel, which replaces their own: the Gram matrix takes O(rows · m),
        up to ``approximation_error_``. Default none, and with ``whiten`` 500 to 1,000 Nyström features (5√N for N rows)
        with a fixed seed.

    Attributes
    ----------
    kernel_ : Kernel
        The embedding kernel with its bandwidth as a number.
    level2_ : "linear" or Kernel
        The level-2 kernel with its bandwidth as a number.
    approximation_error_ : float
        That of the features, on the rows of fit (see their class); 0 where there are none.
    n_features_in_ : int
        Columns of the bags.

    References
    ----------
    K. Muandet, K. Fukumizu, F. Dinuzzo, B. Schölkopf. Learning from distributions via support measure machines.
    NIPS 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from muhat import Gaussian
    >>> from muhat.bags.kernel import DistributionKernel
    >>> rng = np.random.default_rng(0)
    >>> bags = [rng.normal(size=(n, 2)) for n in (5, 8, 1)]
    >>> DistributionKernel(Gaussian(bandwidth=1.0), level2=Gaussian()).fit_transform(bags).round(3)
    array([[1.   , 0.899, 0.597],
           [0.899, 1.   , 0.607],
           [0.597, 0.607, 1.   ]])
    """

    def __init__(
        self,
        kernel: Kernel = Gaussian(),
        mean: BaseKernelMean | None = None,
        level2: Level2 = "linear",
        whiten: bool | float = False,
        features: BaseFeatures | None = None,
    ) -> None:
        self.kernel = kernel
        self.mean = mean
        self.level2 = level2
        self.whiten = whiten
        self.features = features

    def fit(self, bags: Any, y: Any = None) -> Self:
        """Resolve both kernels on the bags, and keep the bags for ``transform``.

        Parameters
        ----------
        bags : sequence of arrays of shape (n_i, d)
        y : ignored

        Returns
        -------
        self
        """
        self._fit(bags)
        return self

    def fit_transform(self, bags: Any, y: Any = None) -> Array:
        """The Gram matrix of the bags, of shape (n, n).

        Parameters
        ----------
        bags : sequence of arrays of shape (n_i, d)
        y : ignored

        Returns
        -------
        array of shape (n, n)
        """
        return self._fit(bags)

    def transform(self, bags: Any) -> Array:
        """Kernel values of bags with the bags of ``fit``.

        Parameters
        ----------
        bags : sequence of arrays of shape (n_i, d)

        Returns
        -------
        array of shape (m, n)
        """
        check_is_fitted(self, "kernel_")
        return self._transform(bags)

    def _fit(self, bags: Any) -> Array:
        check_kernel("kernel", self.kernel)
        check_recipe("mean", self.mean)
        check_level2(self.level2)
        check_features(self.features)
        strength = check_strength(self.whiten)
        data = check_bags(bags, self, reset=True)
        check_memory(GRAM_ARRAYS * 8 * len(data) ** 2, None, f"a Gram matrix of {len(data):,} bags", "use fewer bags")
        key = content_key("resolve", data.key, self.kernel)
        self.kernel_ = memo.recall(key, lambda: self.kernel.resolve(data.rows))
        exact = strength is None and self.features is None
        inner = self._fit_exact(data) if exact else self._fit_features(data, strength)
        self.level2_ = resolve_level2(self.level2, inner)
        self._squared_norms = np.diag(inner)
        self._n_features_out = len(data)
        return evaluate_level2(self.level2_, inner, self._squared_norms, self._squared_norms)

    _features: BaseFeatures | None

    def _fit_exact(self, data: Bags) -> Array:
        key = content_key("training", data.key, self.kernel_, self.mean)
        weights, inner = memo.recall(key, lambda: training_sums(self.kernel_, self.mean, data))
        self._bags, self._weights, self._features, self.approximation_error_ = data, weights, None, 0.0
        return inner

    def _fit_features(self, data: Bags, strength: float | None) -> Array:
        fitted, moments = feature_moments(self.kernel_, self.mean, self.features, data, within=strength is not None)
        self._features, self.approximation_error_ = fitted, fitted.approximation_error_
        self._whitening = None
        if strength is not None:
            key = content_key("whitening", data.key, fitted.fingerprint_, self.mean, strength)
            self._whitening = memo.recall(key, lambda: Whitening.of(moments, strength))
        self._vectors = moments.means if self._whitening is None else self._whitening(moments.means)
        return self._vectors @ self._vectors.T

    def _transform(self, bags: Any) -> Array:
        data = check_bags(bags, self, reset=False)
        norms, inner = self._cross_exact(data) if self._features is None else self._cross_features(data)
        return evaluate_level2(self.level2_, inner, norms, self._squared_norms)

    def _cross_exact(self, data: Bags) -> tuple[Array, Array]:
        key = content_key("cross", data.key, self._bags.key, self.kernel_, self.mean)
        return memo.recall(key, lambda: self._cross_sums(data))

    def _cross_sums(self, data: Bags) -> tuple[Array, Array]:
        weights = bag_weights(self.kernel_, self.mean, data)
        inner = checked_sums(self.kernel_, data, weights, self._bags, self._weights)
        return squared_norms(self.kernel_, data, weights), inner

    def _cross_features(self, data: Bags) -> tuple[Array, Array]:
        fitted: Any = self._features

        def compute() -> Array:
            weights = bag_weights(self.kernel_, self.mean, data)
            return bag_moments(fitted, data.rows, data.offsets, weights, within=False).means

        key = content_key("means", data.key, fitted.fingerprint_, self.mean)
        means = memo.recall(key, compute)
        vectors = means if self._whitening is None else self._whitening(means)
        return np.square(vectors).sum(axis=1), vectors @ self._vectors.T

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        return tags


Level2 = Kernel | Literal["linear"]


_ROUNDING = 1e-14
"""Squared distances of two elements below so much of their squared norms are rounding, and count as 0."""


def check_level2(level2: Any) -> None:
    """Raise a ValueError unless ``level2`` is "linear", or a function of distances or of inner products."""
    if isinstance(level2, str) and level2 == "linear":
        return
    if not isinstance(level2, Gaussian | Laplace | Matern | Linear | Polynomial):
        raise ValueError(
            f'level2={level2!r} must be "linear", or a kernel that is a function of the distance of two mean '
            f"elements (Gaussian, Laplace, Matern) or of their inner product (Linear, Polynomial)"
        )


def squared_distances(inner: Array, a: Array, b: Array) -> Array:
    """‖f_i − g_j‖² from the inner products ⟨f_i, g_j⟩ and the squared norms a_i = ‖f_i‖², b_j = ‖g_j‖²."""
    sizes = np.add.outer(a, b)
    distances = sizes - 2.0 * inner
    distances[distances <= _ROUNDING * sizes] = 0.0
    return distances


def resolve_level2(level2: Level2, inner: Array) -> Level2:
    """The kernel with "median" replaced by the median distance over the pairs i < j of a Gram matrix."""
    if not isinstance(level2, Gaussian | Laplace | Matern) or level2.bandwidth != "median":
        return level2
    norms = np.diag(inner)
    squared = squared_distances(inner, norms, norms)[np.triu_indices(len(inner), 1)]
    positive = squared[squared > 0]
    if not len(positive):
        raise ValueError(
            f"level2={level2!r} needs two bags that differ, and the mean elements of all bags ({len(inner)}) are "
            f"equal; pass the bandwidth as a number, for example level2=Gaussian(bandwidth=1.0)"
        )
    if np.median(squared) == 0:
        warnings.warn(
            f"level2={level2!r}: more than half of the pairs of bags coincide, so the median distance is 0; the "
            f"median of the non-zero distances is used instead. Pass a number to choose the bandwidth yourself.",
            UserWarning,
            stacklevel=2,
        )
        squared = positive
    median = np.median(np.sqrt(squared)) if isinstance(level2, Laplace) else np.sqrt(np.median(squared))
    return level2.with_params(bandwidth=float(median))


def evaluate_level2(level2: Level2, inner: Array, a: Array, b: Array) -> Array:
    """κ(f_i, g_j) from inner products and squared norms, the kernel resolved.

    On the line, a radial kernel of 0 and r is its profile at the distance r, and an inner-product kernel of 1 and
    t its profile at t: so the kernels' own formulas serve in any space.
    """
    if not isinstance(level2, Kernel) or isinstance(level2, Linear):
        return inner.copy()
    if isinstance(level2, Polynomial):
        origin, arguments = np.ones((1, 1)), inner
    else:
        origin, arguments = np.zeros((1, 1)), np.sqrt(squared_distances(inner, a, b))
    return level2.evaluate(origin, arguments.reshape(-1, 1)).reshape(inner.shape)
