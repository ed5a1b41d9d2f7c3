"""Kernel between bags: inner products of their mean elements, or a kernel of the distances between those."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted
from sklearn.utils.validation import check_memory as check_memory_object

from muhat._support.parameters import ValueParametersMixin
from muhat._support.types import Array
from muhat._support.validation import check_flag, check_number, unchanged_on_error, warn_caller
from muhat.bags.data import Bags, BagTile, TakesBagsMixin, check_bags
from muhat.bags.efron_morris import Pool, fit_pools
from muhat.bags.mixture_prior import fit_mixture
from muhat.bags.moments import RIDGE, BagMoments, bag_moments, check_features, fit_features
from muhat.features.base import BaseFeatures
from muhat.kernels import tiles
from muhat.kernels.base import Kernel, check_kernel
from muhat.kernels.between_elements import compares_elements, evaluate_between_elements, resolve_between_elements
from muhat.kernels.capabilities import evaluate_fast
from muhat.kernels.dot import Linear
from muhat.kernels.radial import Gaussian
from muhat.linalg.resources import check_memory, one_blas_thread
from muhat.linalg.whitening import inverse_root
from muhat.means.base import BaseKernelMean
from muhat.means.nested import bag_weights, check_mean

GRAM_ARRAYS = 4
"""How many arrays of bags x bags a fit takes: inner products, distances, the level-2 kernel, and one to work on."""

ROUNDING = 1e-13
"""Centred means below so much of the means themselves are rounding, and count as 0."""

Level2 = Kernel | Literal["linear"]


def bag_sums(kernel: Kernel, A: Bags, a: Array, B: Bags, b: Array) -> Array:
    """Inner products of mean elements, aᵢᵀ k(Aᵢ, Bⱼ) bⱼ for all pairs of bags: shape (len(A), len(B)).

    The kernel is evaluated on tiles; where A is B, each pair of rows is computed once.
    """
    same = A is B
    G = np.zeros((len(A), len(B)))
    row_tiles = list(A.tiles(a))
    column_tiles = row_tiles if same else list(B.tiles(b))
    entries = len(A.rows) * len(B.rows)
    compiled = tiles.compiled_product(kernel, entries, columns=1)

    def tile_sums(row: BagTile, column: BagTile) -> Array:
        X, Y = A.rows[row.rows], B.rows[column.rows]
        values = None if compiled is None else compiled(X, Y, column.weights.T.toarray())
        return (
            (column.weights @ (row.weights @ evaluate_fast(kernel, X, Y)).T).T
            if values is None
            else row.weights @ values
        )

    def strip(i: int) -> Array:
        row = row_tiles[i]
        sums = np.zeros((row.bags.stop - row.bags.start, len(B)))
        for column in column_tiles[i if same else 0 :]:
            part = tile_sums(row, column)
            sums[:, column.bags] += 0.5 * part if same and row is column else part
        return sums

    # Matrix products so small run on one thread: more cost more than they give, and much more on a busy machine.
    with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"), tiles.mapping(entries) as mapped:
        for row, sums in zip(row_tiles, mapped(strip, range(len(row_tiles))), strict=True):
            G[row.bags] += sums
    G = G + G.T if same else G
    with np.errstate(over="ignore"):
        finite = np.isfinite(4.0 * np.abs(G).max())  # squared distances add four of them
    if not finite:
        raise ValueError(f"{kernel!r} overflows on these bags; rescale them first")
    return G


def mean_sums(
    kernel: Kernel, mean: BaseKernelMean | None, bags: Bags, training: tuple[Bags, Array] | None = None
) -> tuple[Array, Array, Array]:
    """Weights of the rows of bags; squared norms of their mean elements; inner products with those of training bags.

    ``training`` are the training bags with the weights of their rows; None where the bags are these themselves.
    """
    weights = bag_weights(mean, kernel, bags.rows, bags.offsets)
    if training is None:
        inner = bag_sums(kernel, bags, weights, bags, weights)
        return weights, np.diag(inner), inner
    pairs = zip(bags.parts(bags.rows), bags.parts(weights), strict=True)
    norms = np.array([tiles.quadratic_form(kernel, rows, beta) for rows, beta in pairs])
    return weights, norms, bag_sums(kernel, bags, weights, *training)


@dataclass(frozen=True, eq=False)
class ExactEmbedding:
    """Mean elements of training bags as weighted rows, to which those of other bags are compared."""

    kernel: Kernel
    mean: BaseKernelMean | None
    training: tuple[Bags, Array]
    approximation_error: float = 0.0

    def inner(self, bags: Bags, recalled: Callable[[Any], Any]) -> tuple[Array, Array]:
        """Squared norms of the mean elements of bags, and their inner products with those of the training bags."""
        _, norms, inner = recalled(mean_sums)(self.kernel, self.mean, bags, self.training)
        return norms, inner


@dataclass(frozen=True, eq=False)
class FeatureEmbedding:
    """Mean elements of training bags as vectors of features, perhaps whitened or pooled."""

    features: BaseFeatures
    mean: BaseKernelMean | None
    metric: BagWhitening | PooledMap | None
    vectors: Array

    @property
    def approximation_error(self) -> float:
        """That of the features, on the rows of the training bags."""
        return self.features.approximation_error_

    def inner(self, bags: Bags, recalled: Callable[[Any], Any]) -> tuple[Array, Array]:
        """Squared norms of the vectors of bags, and their inner products with those of the training bags."""
        means = recalled(feature_means)(self.features, self.mean, bags)
        vectors = means if self.metric is None else self.metric(means, bags.sizes)
        return np.square(vectors).sum(axis=1), vectors @ self.vectors.T


def feature_moments(
    kernel: Kernel, mean: BaseKernelMean | None, features: BaseFeatures | None, bags: Bags, *, within: bool
) -> tuple[BaseFeatures, BagMoments]:
    """Features fitted to the rows of bags, with the moments of the bags in them."""
    fitted = fit_features(features, kernel, bags.rows)
    weights = bag_weights(mean, kernel, bags.rows, bags.offsets)
    return fitted, bag_moments(fitted, bags, weights, within=within)


def feature_means(fitted: BaseFeatures, mean: BaseKernelMean | None, bags: Bags) -> Array:
    """Means of bags in features that are fitted."""
    weights = bag_weights(mean, fitted.kernel_, bags.rows, bags.offsets)
    return bag_moments(fitted, bags, weights, within=False).means


class BagWhitening(NamedTuple):
    r"""Whitening map :math:`m \mapsto (m - \bar m)(W + \rho \operatorname{tr}(W)/m\, I)^{-1/2}`, up to a rotation."""

    centre: Array
    map: Array

    @classmethod
    def of(cls, moments: BagMoments, ridge: float) -> BagWhitening:
        """Centred at the mean of the bags; where W = 0 only the centre is known, and the map is the identity."""
        centre = moments.means.mean(axis=0)
        if not moments.has_noise:
            warn_caller(
                "no bag has two rows that differ, so there is no covariance within bags to whiten by; mean elements "
                "are only centred. Pass whiten=False and pool=False, or bags of several rows.",
            )
            return cls(centre, np.eye(len(centre)))
        return cls(centre, inverse_root(moments.within, ridge * np.trace(moments.within) / len(centre)))

    def __call__(self, means: Array, sizes: Any = None) -> Array:
        """Whitened means, one per row, whatever the sizes of the bags."""
        centred = means - self.centre
        lengths = np.linalg.norm(means, axis=1) + np.linalg.norm(self.centre)
        centred[np.linalg.norm(centred, axis=1) <= ROUNDING * lengths] = 0.0
        return centred @ self.map


class PooledMap(NamedTuple):
    """Pooled means of bags, or those in units of the noise within bags."""

    pool: Pool
    blend: float
    whiten: bool

    @classmethod
    def of(cls, moments: BagMoments, sizes: NDArray[Any], ridge: float, whiten: bool) -> PooledMap:
        """Of one kind of bags; B is blended with the noise where means keep their own metric."""
        (pool,) = fit_pools(moments, sizes, [ridge])
        ((_, _, blend, _),) = fit_mixture(pool, moments.means, sizes, 0.0 if whiten else "cv", kinds=1).parts
        return cls(pool, blend, whiten)

    def __call__(self, means: Array, sizes: NDArray[Any]) -> Array:
        """One vector per bag."""
        if self.whiten:
            return self.pool.coordinates(means) * self.pool.factors(sizes)
        return self.pool.means(means, sizes, self.blend)


def fit_metric(
    moments: BagMoments, sizes: NDArray[Any], ridge: float, *, whiten: bool, pool: bool
) -> BagWhitening | PooledMap | None:
    """The map that ``whiten`` and ``pool`` ask for, from means and sizes of bags to vectors."""
    if pool and len(sizes) > 1 and moments.has_noise:
        return PooledMap.of(moments, sizes, ridge, whiten)
    return BagWhitening.of(moments, ridge) if whiten or pool else None  # one bag, or no noise: centred, with a warning


class EmbedsBags(ValueParametersMixin, TakesBagsMixin, BaseEstimator):
    """Base of estimators that embed bags by a kernel between them: the parameters, and the two Gram matrices."""

    def __init__(
        self,
        kernel: Kernel = Gaussian(),
        mean: BaseKernelMean | None = None,
        level2: Level2 = "linear",
        whiten: bool = False,
        features: BaseFeatures | None = None,
        *,
        ridge: float = RIDGE,
        pool: bool = False,
        memory: Any = None,
    ) -> None:
        self.kernel = kernel
        self.mean = mean
        self.level2 = level2
        self.whiten = whiten
        self.features = features
        self.ridge = ridge
        self.pool = pool
        self.memory = memory

    @one_blas_thread()
    def _fit_gram(self, bags: Any) -> Array:
        """Fit the embedding, and return the Gram matrix of the bags."""
        check_kernel("kernel", self.kernel)
        check_mean("mean", self.mean)
        check_level2(self.level2)
        check_features(self.features)
        whiten, pool = check_flag("whiten", self.whiten), check_flag("pool", self.pool)
        ridge = check_number("ridge", self.ridge, low=0, open_low=True)
        if pool and self.mean is not None:
            raise ValueError(f"mean={self.mean!r} must be None with pool=True, which estimates all means together")
        data = check_bags(bags, self, reset=True)
        check_memory(GRAM_ARRAYS * 8 * len(data) ** 2, None, f"a Gram matrix of {len(data):,} bags", "use fewer bags")
        kernel = self.kernel.resolve(data.rows)
        self._embedding: ExactEmbedding | FeatureEmbedding
        if whiten or pool or self.features is not None:
            moments_of = self._recalled(feature_moments)
            fitted, moments = moments_of(kernel, self.mean, self.features, data, within=whiten or pool)
            metric = fit_metric(moments, data.sizes, ridge, whiten=whiten, pool=pool)
            vectors = moments.means if metric is None else metric(moments.means, data.sizes)
            self._embedding, inner = FeatureEmbedding(fitted, self.mean, metric, vectors), vectors @ vectors.T
        else:
            weights, _, inner = self._recalled(mean_sums)(kernel, self.mean, data)
            self._embedding = ExactEmbedding(kernel, self.mean, (data, weights))
        self.kernel_, self.level2_ = kernel, self.level2
        if isinstance(self.level2, Kernel):  # "median" is that of the distances over the pairs i < j
            self.level2_ = resolve_between_elements(self.level2, inner)
        self._squared_norms = np.diag(inner)
        return evaluate_level2(self.level2_, inner, self._squared_norms, self._squared_norms)

    @one_blas_thread()
    def _gram(self, bags: Any) -> Array:
        """Kernel values of bags with the bags of fit."""
        check_is_fitted(self, "kernel_")
        norms, inner = self._embedding.inner(check_bags(bags, self, reset=False), self._recalled)
        return evaluate_level2(self.level2_, inner, norms, self._squared_norms)

    def _recalled(self, function: Any) -> Any:
        """The function, whose results ``memory`` keeps."""
        folder = os.fspath(self.memory) if isinstance(self.memory, os.PathLike) else self.memory
        return check_memory_object(folder).cache(function)


class DistributionKernel(ClassNamePrefixFeaturesOutMixin, TransformerMixin, EmbedsBags):
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
        Gaussian, Laplace or Matern of the distance of mean elements, Linear or Polynomial of the inner product, or sums
        and products of these.
        A bandwidth "median" is that of the distances between the bags of fit, over the pairs i < j.
    whiten : bool, default False
        Whether to compare :math:`(\hat\mu_i - \bar\mu)(W + \rho \operatorname{tr}(W)/m\, I)^{-1/2}` in place of the
        mean elements, W the covariance of rows within bags, pooled over the bags of fit, in m features.
    features : Nystroem or Fourier, optional
        Mean elements in features of the embedding kernel, which replaces their own: the Gram matrix takes O(rows · m),
        up to ``approximation_error_``. Default none, and with ``whiten`` or ``pool`` 500 to 1,000 Nyström features
        (5√N for N rows) with a fixed seed.
    ridge : float > 0, default 0.05
        The ridge ρ of ``whiten`` and ``pool``, which can be searched: the larger, the nearer a whitened kernel is to
        that of the plain mean elements, centred.
    pool : bool, default False
        Whether to shrink each mean toward that of all bags by what a bag of its size can tell, by a :class:`BagPrior`
        learned from the bags of fit; new bags are mapped by it too. With ``whiten``, both at once. For bags of uneven
        sizes;
        whether it pays is for a search to decide (see the guide).
    memory : path or joblib.Memory, optional
        Where to keep the costly sums over rows, as in scikit-learn's pipelines, so that a search over C, ``level2`` or
        ``ridge`` computes each of them once. A path, or a ``joblib.Memory``. Default: nothing is kept.

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

    See Also
    --------
    SupportMeasureClassifier : A support vector classifier on this kernel.
    BagPrior : The prior that ``pool`` learns.
    BagScaler : Columns in units of their standard deviations, first.

    References
    ----------
    K. Muandet, K. Fukumizu, F. Dinuzzo, B. Schölkopf. Learning from distributions via support measure machines.
    NIPS 2012.

    Examples
    --------
    >>> import numpy as np
    >>> import muhat as mh
    >>> rng = np.random.default_rng(0)
    >>> bags = [rng.normal(size=(n, 2)) for n in (5, 8, 1)]
    >>> mh.DistributionKernel(mh.Gaussian(bandwidth=1.0), level2=mh.Gaussian()).fit_transform(bags).round(3)
    array([[1.   , 0.899, 0.597],
           [0.899, 1.   , 0.607],
           [0.597, 0.607, 1.   ]])
    """

    @unchanged_on_error
    def fit(self, bags: Any, y: Any = None) -> Self:
        """Resolve both kernels on the bags, and keep the bags for ``transform``."""
        self.fit_transform(bags)
        return self

    @unchanged_on_error
    def fit_transform(self, bags: Any, y: Any = None) -> Array:
        """Fit, and return the Gram matrix of the bags, of shape (n, n)."""
        K = self._fit_gram(bags)
        self.approximation_error_, self._n_features_out = self._embedding.approximation_error, len(K)
        return K

    def transform(self, bags: Any) -> Array:
        """Return the kernel values of bags with those of ``fit``, of shape (m, n)."""
        return self._gram(bags)


def check_level2(level2: Any) -> None:
    """Raise a ValueError unless ``level2`` is "linear", or a kernel that compares elements."""
    if isinstance(level2, str) and level2 == "linear":
        return
    if not (isinstance(level2, Kernel) and compares_elements(level2)):
        raise ValueError(
            f'level2={level2!r} must be "linear", or a kernel that is a function of the distance of two mean '
            f"elements (Gaussian, Laplace, Matern) or of their inner product (Linear, Polynomial)"
        )


def evaluate_level2(level2: Level2, inner: Array, a: Array, b: Array) -> Array:
    """κ(f_i, g_j) from the inner products ⟨f_i, g_j⟩ and the squared norms a_i = ‖f_i‖², b_j = ‖g_j‖²."""
    return evaluate_between_elements(level2 if isinstance(level2, Kernel) else Linear(), inner, a, b)
