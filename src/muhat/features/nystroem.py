"""Nyström features: the span of landmarks, chosen by a pivoted Cholesky decomposition."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from sklearn.utils.validation import check_is_fitted

from muhat._support.types import Array, RandomState
from muhat._support.validation import check_count, check_number, check_overflow, check_rng, check_rows
from muhat.features.base import ROWS, BaseFeatures
from muhat.kernels.base import Kernel
from muhat.kernels.radial import Gaussian
from muhat.linalg.blocks import blocks
from muhat.linalg.distances import power_of_two_near
from muhat.linalg.pivoted_cholesky import pivoted_factor
from muhat.linalg.spectrum import above_rounding, signs


def pivoted_cholesky(kernel: Kernel, X: Array, rank: int, tol: float = 0.0) -> tuple[NDArray[np.intp], Array, float]:
    r"""Incomplete Cholesky decomposition :math:`K \approx LL^\top`: each step takes the row with the largest residual.

    O(n·rank²) time, O(n·rank) memory and kernel values. The trace of :math:`K - LL^\top`, which is positive
    semi-definite, bounds its norm: the certificate of the approximation.

    Parameters
    ----------
    kernel : Kernel
        With a numeric bandwidth.
    X : array of shape (n, d)
        The rows, one observation each.
    rank : int
        Steps at most; fewer where the residual is down to ``tol``, or to rounding.
    tol : float, default 0.0
        Trace of the residual, relative to that of K, at which to stop.

    Returns
    -------
    pivots : array of shape (r,)
        Numbers of the rows taken, in this order.
    factor : array of shape (n, r)
        The factor L.
    residual_trace : float
        Trace of K − LLᵀ.

    See Also
    --------
    muhat.Nystroem : Features from a subset of rows, which this can choose.

    Examples
    --------
    >>> import numpy as np
    >>> import muhat as mh
    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> pivots, L, residual = mh.features.pivoted_cholesky(mh.Gaussian(1.0), X, rank=5)
    >>> bool(np.abs(mh.Gaussian(1.0)(X) - L @ L.T).max() <= residual < 1e-4)
    True
    """
    rank, tol = check_count("rank", rank), check_number("tol", tol, low=0)
    return pivoted_factor(kernel.diagonal(X), lambda i: kernel.evaluate(X[[i]], X)[0], rank, tol)


class Nystroem(BaseFeatures):
    r"""Nyström features: rows are compared with m landmarks.

    .. math:: z(x) = K_{xm} V g^{-1/2}, \qquad K_{mm} = V\, \mathrm{diag}(g)\, V^\top

    z(x) is the orthogonal projection of φ(x) on the span of the landmarks (Williams and Seeger, 2001). So
    :math:`ZZ^\top` never exceeds K, and equals it where all rows are landmarks. Directions of :math:`K_{mm}` below
    rounding are left out, so that equal landmarks do no harm.

    Parameters
    ----------
    kernel : Kernel, default Gaussian()
        The kernel to approximate. A bandwidth "median" becomes a number in ``fit``.
    n_components : int, default 100
        Landmarks to choose, at most the number of rows.
    landmarks : "uniform", "k-means++", "pivoted" or array of shape (m, d), default "uniform"
        Rows at random; rows at random that lie apart; the row that is worst approximated so far, again and again
        (pivoted Cholesky: no chance in it, and no row is left far off); or landmarks of your own.
    random_state : None, int, Generator, SeedSequence or RandomState
        The seed: the same number gives the same result.

    Attributes
    ----------
    kernel_ : Kernel
        With the bandwidth as a number.
    landmarks_ : array of shape (m, d)
        The landmarks.
    approximation_error_ : float
        Mean of :math:`k(x, x) - \|z(x)\|^2 \ge 0` over the training rows: what the features miss of a row, squared. It
        bounds the square of the distance of the two means, exact and approximate.
    fingerprint_ : str
        Hash of all that determines the features: sketches merge only where it is the same.

    See Also
    --------
    Fourier : Features of random frequencies, for kernels of the difference of two rows.
    MeanSketch : Means of features in one pass.
    sklearn.kernel_approximation.Nystroem : Nyström features without a stated error.

    Examples
    --------
    >>> import muhat as mh
    >>> X = mh.paper_mixture(5, random_state=0).sample(500, random_state=1)
    >>> for landmarks in ("uniform", "k-means++", "pivoted"):
    ...     features = mh.Nystroem(n_components=50, landmarks=landmarks, random_state=0).fit(X)
    ...     print(f"{landmarks:<10} {features.approximation_error_:.1e}")
    uniform    3.2e-03
    k-means++  2.1e-03
    pivoted    2.6e-03
    """

    _arrays = ("landmarks_", "_map")

    def __init__(
        self,
        kernel: Kernel = Gaussian(),
        n_components: int = 100,
        landmarks: Literal["uniform", "k-means++", "pivoted"] | Array = "uniform",
        random_state: RandomState = None,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.landmarks = landmarks
        self.random_state = random_state

    def _fit(self, rows: Array) -> None:
        self.landmarks_ = self._chosen(rows)
        g, V = eigh(self.kernel_.evaluate(self.landmarks_, self.landmarks_), driver="evd", check_finite=False)
        kept = above_rounding(g, len(g))
        self._map: Array = np.ascontiguousarray((V[:, kept] * signs(V[:, kept]) / np.sqrt(g[kept]))[:, ::-1])
        self._n_features_out = self._map.shape[1]
        missed = self.kernel_.diagonal(rows).mean() - self._totals(rows)[1] / len(rows)
        self.approximation_error_ = max(float(missed), 0.0)

    def _chosen(self, rows: Array) -> Array:
        if not isinstance(self.landmarks, str):
            own = check_rows(self.landmarks, name="landmarks").copy()
            if own.shape[1] != rows.shape[1]:
                raise ValueError(f"landmarks have {own.shape[1]} columns and X has {rows.shape[1]}; they must agree")
            with np.errstate(over="ignore"):
                check_overflow(self.kernel_, self.kernel_.diagonal(own))
            return own
        m, rng = check_count("n_components", self.n_components), check_rng(self.random_state)
        if m > len(rows):
            raise ValueError(f"n_components={m} must be at most the number of rows of X, n_samples={len(rows)}")
        if self.landmarks == "uniform":
            return rows[rng.choice(len(rows), m, replace=False)]
        if self.landmarks == "k-means++":
            from sklearn.cluster import kmeans_plusplus  # here, since sklearn.cluster is slow to import

            centred = rows - rows[0]
            centred /= power_of_two_near(float(np.abs(centred).max()))
            return rows[kmeans_plusplus(centred, m, random_state=int(rng.integers(2**31)))[1]]
        if self.landmarks == "pivoted":
            pivots, _, _ = pivoted_cholesky(self.kernel_, rows, m)
            return rows[pivots if len(pivots) else [0]]
        raise ValueError(f'landmarks={self.landmarks!r} must be "uniform", "k-means++", "pivoted" or an array')

    @property
    def projection_(self) -> Array:
        """Map from kernel values at the landmarks to features; features w are an element of weights projection_ @ w."""
        check_is_fitted(self, "landmarks_")
        return self._map

    def evaluate(self, rows: Array) -> Array:
        Z = np.empty((len(rows), self._n_features_out))
        for block in blocks(len(rows), ROWS):
            np.matmul(self.kernel_.evaluate(rows[block], self.landmarks_), self._map, out=Z[block])
        return Z
