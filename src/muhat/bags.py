"""Distributions as data: bags of rows, and the Gram matrix of their mean elements."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from joblib import hash as content_hash
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import column_or_1d
from sklearn.utils.validation import check_is_fitted

from muhat import gram
from muhat.bag_input import check_matrices
from muhat.features import BaseFeatures
from muhat.kernels import Gaussian, Kernel, check_kernel
from muhat.level2 import Level2, check_level2, evaluate_level2, resolve_level2
from muhat.mean import BaseKernelMean
from muhat.memo import CACHE_BYTES, Memo, content_key
from muhat.memory import check_memory
from muhat.recipes import check_recipe, mean_weights
from muhat.threads import one_blas_thread
from muhat.types import Array
from muhat.validation import check_rows
from muhat.values import ValueParametersMixin
from muhat.whitening import (
    BagMoments,
    Whitening,
    bag_moments,
    check_features,
    check_strength,
    fit_features,
)

BLOCK = 512
"""Rows and columns of a tile: 2 MB of float64, so that it is still in the cache when it is summed."""

GRAM_ARRAYS = 4
"""How many arrays of bags x bags a fit takes: inner products, distances, the level-2 kernel, and one to work on."""

memo = Memo(CACHE_BYTES)
"""Gram matrices of bags that were met before; ``memo.clear()`` frees the memory."""


class _Tile(NamedTuple):
    rows: slice
    bags: slice
    weights: csr_array  # (bags, rows): maps rows to weighted sums over bags


@dataclass(frozen=True, eq=False)
class Bags:
    """Bags of rows, one below the other: bag i is ``rows[offsets[i]:offsets[i + 1]]``."""

    rows: Array
    offsets: NDArray[np.intp]

    @cached_property
    def key(self) -> str:
        """A hash of the content."""
        return content_hash((self.rows, self.offsets))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def parts(self, values: Array) -> list[Array]:
        """Cut an array with one entry a row into one part a bag."""
        return np.split(values, self.offsets[1:-1])

    def tiles(self, weights: Array) -> Iterator[_Tile]:
        """Blocks of rows, with what sums them over the bags that they meet; a long bag spans several tiles."""
        for start in range(0, len(self.rows), BLOCK):
            stop = min(start + BLOCK, len(self.rows))
            first = int(np.searchsorted(self.offsets, start, "right")) - 1
            last = int(np.searchsorted(self.offsets, stop, "left"))
            bounds = self.offsets[first : last + 1].clip(start, stop) - start
            entries = (weights[start:stop], np.arange(stop - start), bounds)
            yield _Tile(slice(start, stop), slice(first, last), csr_array(entries, shape=(last - first, stop - start)))


def check_bags(bags: Any, estimator: Any, *, reset: bool) -> Bags:
    """Return bags of finite float64 rows of one width, or raise a ValueError which names the bag."""
    matrices = check_matrices(bags, estimator, reset=reset)
    return Bags(np.concatenate(matrices, dtype=np.float64), np.cumsum([0, *map(len, matrices)]))


def bags_from_groups(X: Any, groups: Any) -> tuple[list[Array], NDArray[Any]]:
    """Cut a table into bags, one for each label.

    Parameters
    ----------
    X : array of shape (n, d)
    groups : array of shape (n,)
        The label of each row.

    Returns
    -------
    bags : list of arrays of shape (n_i, d)
        The rows of each label, in their order in X.
    labels : array
        The label of each bag, sorted.

    Examples
    --------
    >>> from muhat.bags import bags_from_groups
    >>> bags, labels = bags_from_groups([[1.0], [2.0], [3.0]], ["b", "a", "b"])
    >>> labels.tolist(), [bag.ravel().tolist() for bag in bags]
    (['a', 'b'], [[2.0], [1.0, 3.0]])
    """
    rows = check_rows(X)
    if groups is None:
        raise ValueError("groups=None must be the labels of the rows of X, one a row")
    groups = column_or_1d(groups)
    if len(groups) != len(rows):
        raise ValueError(f"groups has {len(groups)} labels and X has {len(rows)} rows; pass one label a row")
    labels, inverse, counts = np.unique(groups, return_inverse=True, return_counts=True)
    order = np.argsort(inverse, kind="stable")
    return np.split(rows[order], np.cumsum(counts)[:-1]), labels


def bag_sums(kernel: gram.KernelFunction, A: Bags, a: Array, B: Bags, b: Array) -> Array:
    """Inner products of mean elements, aᵢᵀ k(Aᵢ, Bⱼ) bⱼ for all pairs of bags: shape (len(A), len(B)).

    The kernel is evaluated on tiles; where A is B, each pair of rows is computed once.
    """
    same = A is B
    G = np.zeros((len(A), len(B)))
    row_tiles = list(A.tiles(a))
    column_tiles = row_tiles if same else list(B.tiles(b))
    entries = len(A.rows) * len(B.rows)
    compiled = gram.compiled_product(kernel, entries, columns=1)

    def tile_sums(row: _Tile, column: _Tile) -> Array:
        X, Y = A.rows[row.rows], B.rows[column.rows]
        values = None if compiled is None else compiled(X, Y, column.weights.T.toarray())
        return (column.weights @ (row.weights @ kernel(X, Y)).T).T if values is None else row.weights @ values

    def strip(i: int) -> Array:
        row = row_tiles[i]
        sums = np.zeros((row.bags.stop - row.bags.start, len(B)))
        for column in column_tiles[i if same else 0 :]:
            part = tile_sums(row, column)
            sums[:, column.bags] += 0.5 * part if same and row is column else part
        return sums

    # Matrix products so small run on one thread: more cost more than they give, and much more on a busy machine.
    with one_blas_thread(), gram.mapping(entries) as mapped:
        for row, sums in zip(row_tiles, mapped(strip, range(len(row_tiles))), strict=True):
            G[row.bags] += sums
    return G + G.T if same else G


def _checked_sums(kernel: Kernel, A: Bags, a: Array, B: Bags, b: Array) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):
        G = bag_sums(kernel._tile, A, a, B, b)
        if not np.isfinite(4.0 * np.abs(G).max()):  # squared distances add four of them
            raise ValueError(f"{kernel!r} overflows on these bags; rescale them first")
    return G


def _bag_weights(kernel: Kernel, mean: BaseKernelMean | None, bags: Bags) -> Array:
    """Weights β that the recipe gives the rows of each bag."""
    if mean is None:
        sizes = np.diff(bags.offsets)
        return np.repeat(1.0 / sizes, sizes)
    return np.concatenate([mean_weights(mean, gram.dense(kernel._gram, rows)) for rows in bags.parts(bags.rows)])


def _training_sums(kernel: Kernel, mean: BaseKernelMean | None, bags: Bags) -> tuple[Array, Array]:
    weights = _bag_weights(kernel, mean, bags)
    return weights, _checked_sums(kernel, bags, weights, bags, weights)


def feature_moments(
    kernel: Kernel, mean: BaseKernelMean | None, features: BaseFeatures | None, bags: Bags, *, within: bool
) -> tuple[BaseFeatures, BagMoments]:
    """Features fitted to the rows of bags, with the moments of the bags in them; recalled where met before.

    The covariance within bags takes O(rows · m²), and is left out (0) where it is not asked for.
    """

    def compute() -> tuple[Any, ...]:
        fitted = fit_features(features, kernel, bags.rows)
        weights = _bag_weights(kernel, mean, bags)
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


def _squared_norms(kernel: Kernel, bags: Bags, weights: Array) -> Array:
    pairs = zip(bags.parts(bags.rows), bags.parts(weights), strict=True)
    return np.array([gram.quadratic_form(kernel._gram, rows, beta) for rows, beta in pairs])


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
    >>> from muhat.bags import DistributionKernel
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
        weights, inner = memo.recall(key, lambda: _training_sums(self.kernel_, self.mean, data))
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
        weights = _bag_weights(self.kernel_, self.mean, data)
        inner = _checked_sums(self.kernel_, data, weights, self._bags, self._weights)
        return _squared_norms(self.kernel_, data, weights), inner

    def _cross_features(self, data: Bags) -> tuple[Array, Array]:
        fitted: Any = self._features

        def compute() -> Array:
            weights = _bag_weights(self.kernel_, self.mean, data)
            return bag_moments(fitted, data.rows, data.offsets, weights, within=False).means

        key = content_key("means", data.key, fitted.fingerprint_, self.mean)
        means = memo.recall(key, compute)
        vectors = means if self._whitening is None else self._whitening(means)
        return np.square(vectors).sum(axis=1), vectors @ self._vectors.T

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        return tags
