"""Distributions as data: bags of rows, and the Gram matrix of their mean elements."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from joblib import hash as content_hash
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import column_or_1d
from sklearn.utils.validation import check_is_fitted, validate_data

from muhat import gram
from muhat.kernels import Gaussian, Kernel
from muhat.level2 import Level2, check_level2, evaluate_level2, resolve_level2
from muhat.mean import BaseKernelMean
from muhat.memo import CACHE_BYTES, Memo, content_key
from muhat.recipes import check_recipe, mean_weights
from muhat.threads import one_blas_thread
from muhat.types import Array
from muhat.validation import check_rows
from muhat.values import ValueParametersMixin

BLOCK = 512
"""Rows and columns of a tile: 2 MB of float64, so that it is still in the cache when it is summed."""

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
    if len(getattr(bags, "shape", ())) == 2:
        raise ValueError(
            f"bags must be a list of matrices, one of shape (n_i, d) for each bag, and not one matrix of shape "
            f"{tuple(bags.shape)}; rows with a column of labels become bags by bags_from_groups(X, groups)"
        )
    if isinstance(bags, str | bytes | dict) or not hasattr(bags, "__len__") or not hasattr(bags, "__iter__"):
        raise ValueError(f"bags={bags!r} must be a list of matrices, one of shape (n_i, d) for each bag")
    given = list(bags)
    if not given:
        raise ValueError("bags is empty; pass a list with at least one matrix of shape (n_i, d)")
    matrices = []
    for i, bag in enumerate(given):
        with _naming_bag(i):
            matrices.append(bag if _is_plain(bag) else check_rows(bag, name=f"bags[{i}]"))
    _check_widths([matrix.shape[1] for matrix in matrices], None if reset else estimator.n_features_in_)
    for i, bag in enumerate(given):
        if i == 0 or not isinstance(bag, np.ndarray):
            with _naming_bag(i):  # the names of columns, where bags are data frames
                validate_data(estimator, bag, reset=reset and i == 0, skip_check_array=True)
    return Bags(np.concatenate(matrices, dtype=np.float64), np.cumsum([0, *map(len, matrices)]))


def _is_plain(bag: Any) -> bool:
    """A finite matrix that needs no conversion; scikit-learn's check of a small bag takes longer than its use."""
    matrix = type(bag) is np.ndarray and bag.ndim == 2 and bag.size > 0
    return matrix and bag.dtype in (np.float64, np.float32) and bool(np.isfinite(bag).all())


@contextmanager
def _naming_bag(i: int) -> Iterator[None]:
    try:
        yield
    except (TypeError, ValueError) as error:
        raise ValueError(f"bags[{i}]: {error}") from error


def _check_widths(widths: list[int], fitted: int | None) -> None:
    expected, source = (widths[0], "bags[0] has") if fitted is None else (fitted, "the bags of fit have")
    for i, width in enumerate(widths):
        if width != expected:
            raise ValueError(
                f"bags[{i}] has {width} columns and {source} {expected}; all bags must share their columns"
            )


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
    # The matrix products are so small that threads cost more than they give, and much more on a busy machine.
    with one_blas_thread():
        for i, row in enumerate(row_tiles):
            for column in column_tiles[i if same else 0 :]:
                K = kernel(A.rows[row.rows], B.rows[column.rows])
                part = (column.weights @ (row.weights @ K).T).T
                G[row.bags, column.bags] += 0.5 * part if same and row is column else part
    return G + G.T if same else G


def _checked_sums(kernel: Kernel, A: Bags, a: Array, B: Bags, b: Array) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):
        G = bag_sums(kernel._gram, A, a, B, b)
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

    Attributes
    ----------
    kernel_ : Kernel
        The embedding kernel with its bandwidth as a number.
    level2_ : "linear" or Kernel
        The level-2 kernel with its bandwidth as a number.
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
        kernel: Kernel = Gaussian(),  # noqa: B008 (frozen)
        mean: BaseKernelMean | None = None,
        level2: Level2 = "linear",
    ) -> None:
        self.kernel = kernel
        self.mean = mean
        self.level2 = level2

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
        if not isinstance(self.kernel, Kernel):
            raise ValueError(f"kernel={self.kernel!r} must be a kernel object such as Gaussian(); see muhat.as_kernel")
        check_recipe("mean", self.mean)
        check_level2(self.level2)
        data = check_bags(bags, self, reset=True)
        key = content_key("resolve", data.key, self.kernel)
        kernel = memo.recall(key, lambda: self.kernel.resolve(data.rows))
        key = content_key("training", data.key, kernel, self.mean)
        weights, inner = memo.recall(key, lambda: _training_sums(kernel, self.mean, data))
        self.kernel_, self.level2_ = kernel, resolve_level2(self.level2, inner)
        self._bags, self._weights, self._squared_norms = data, weights, np.diag(inner)
        self._n_features_out = len(data)
        return evaluate_level2(self.level2_, inner, self._squared_norms, self._squared_norms)

    def _transform(self, bags: Any) -> Array:
        data = check_bags(bags, self, reset=False)
        key = content_key("cross", data.key, self._bags.key, self.kernel_, self.mean)
        norms, inner = memo.recall(key, lambda: self._cross_sums(data))
        return evaluate_level2(self.level2_, inner, norms, self._squared_norms)

    def _cross_sums(self, data: Bags) -> tuple[Array, Array]:
        weights = _bag_weights(self.kernel_, self.mean, data)
        inner = _checked_sums(self.kernel_, data, weights, self._bags, self._weights)
        return _squared_norms(self.kernel_, data, weights), inner

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        return tags
