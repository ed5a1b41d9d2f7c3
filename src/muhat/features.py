"""Low-rank features: X -> Z with K ~ Z Zᵀ, by landmarks (Nyström) or by random frequencies (Fourier)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any, Literal, Self
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh, qr
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from muhat.distances import power_of_two_near
from muhat.gram import KernelFunction
from muhat.kernels import Gaussian, Kernel, Laplace, Linear, Matern, Polynomial, Product, Scaled, Sum, check_kernel
from muhat.types import Array, RandomState
from muhat.validation import check_count, check_overflow, check_rng, check_rows
from muhat.values import ValueParametersMixin

_ROWS = 512
_CACHED = 2**15  # phases in one block: three arrays of 256 kB
_FARTHEST = 1e150
_EPS = np.finfo(np.float64).eps
_KINDS: tuple[Any, ...] = (Linear, Polynomial, Gaussian, Laplace, Matern, Sum, Product, Scaled)
_DECLARED = {kind.__name__: kind for kind in _KINDS}


def pivoted_cholesky(
    kernel: KernelFunction, X: Array, rank: int, tol: float = 0.0, diagonal: Array | None = None
) -> tuple[NDArray[np.intp], Array, float]:
    """Incomplete Cholesky decomposition K ~ LLᵀ of k(X, X): each step takes the row with the largest residual k(x, x).

    O(n·rank²) time, O(n·rank) memory and kernel values. The trace of K − LLᵀ, which is positive semi-definite, bounds
    its norm: the certificate of the approximation.

    Parameters
    ----------
    kernel : callable
        Maps rows (n, d) and (m, d) to their kernel values (n, m).
    X : array of shape (n, d)
    rank : int
        Steps at most; fewer where the residual is down to ``tol``, or to rounding.
    tol : float, default 0.0
        Trace of the residual, relative to that of K, at which to stop.
    diagonal : array of shape (n,), optional
        The values k(x, x), where they are known.

    Returns
    -------
    pivots : array of shape (r,)
    factor : array of shape (n, r)
    residual_trace : float

    Examples
    --------
    >>> import numpy as np, muhat as mh
    >>> from muhat.features import pivoted_cholesky
    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> pivots, L, residual = pivoted_cholesky(mh.Gaussian(1.0), X, rank=5)
    >>> bool(np.abs(mh.Gaussian(1.0)(X) - L @ L.T).max() <= residual < 1e-4)
    True
    """
    if diagonal is None:
        diagonal = np.concatenate([np.diag(kernel(X[block], X[block])) for block in _blocks(len(X), 32)])
    left = np.array(diagonal, dtype=np.float64)
    trace, rounding = left.sum(), len(X) * _EPS * left.max()
    columns = np.empty((min(rank, len(X)), len(X)))
    pivots: list[int] = []
    for step, column in enumerate(columns):
        pivot = int(np.argmax(left))
        if left[pivot] <= rounding or left.sum() <= tol * trace:
            break
        np.subtract(kernel(X[[pivot]], X)[0], columns[:step, pivot] @ columns[:step], out=column)
        column /= np.sqrt(left[pivot])
        left -= column**2
        left[pivot] = 0.0
        left.clip(0.0, out=left)
        pivots.append(pivot)
    return np.array(pivots, dtype=np.intp), columns[: len(pivots)].T, float(left.sum())


def _blocks(n: int, size: int) -> Iterator[slice]:
    return (slice(start, min(start + size, n)) for start in range(0, n, size))


def encode_kernel(kernel: Kernel) -> dict[str, Any] | None:
    """A kernel of this library as names and numbers; None for one made of a function."""
    if type(kernel) is not _DECLARED.get(type(kernel).__name__):
        return None
    values = kernel.get_params(deep=False)
    encoded = {name: encode_kernel(v) if isinstance(v, Kernel) else np.asarray(v).item() for name, v in values.items()}
    return None if None in encoded.values() else {"kernel": type(kernel).__name__, "parameters": encoded}


def decode_kernel(encoded: dict[str, Any]) -> Kernel:
    """The kernel that ``encode_kernel`` wrote down."""
    values = {name: decode_kernel(v) if isinstance(v, dict) else v for name, v in encoded["parameters"].items()}
    return _DECLARED[encoded["kernel"]](**values)


class BaseFeatures(ValueParametersMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""Base of features: ``transform`` maps rows x to z(x) with :math:`k(x, y) \approx z(x)^\top z(y)`.

    ``fingerprint_`` is a hash of all that determines ``transform``: sketches merge only where it is the same.
    """

    kernel: Kernel
    _arrays: tuple[str, ...]  # names of what, besides the kernel, determines transform
    _n_features_out: int

    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose the landmarks or draw the frequencies; X also gives a bandwidth "median".

        Parameters
        ----------
        X : array of shape (n, d)
        y : ignored
        """
        rows = check_rows(X, estimator=self)
        check_kernel("kernel", self.kernel)
        self.kernel_ = self.kernel.resolve(rows)
        with np.errstate(over="ignore"):
            check_overflow(self.kernel_, self.kernel_._diag(rows))
        self._fit(rows)
        self.fingerprint_ = self._fingerprint()
        return self

    def transform(self, X: Any) -> Array:
        """Features of the rows of X, an array of shape (n, m); in blocks: no memory beyond the result.

        Parameters
        ----------
        X : array of shape (n, d)
        """
        check_is_fitted(self, "fingerprint_")
        return self._features(check_rows(X, estimator=self, reset=False))

    def _features(self, rows: Array) -> Array:
        raise TypeError(f"{type(self).__name__} must define _features(rows)")

    def _totals(self, rows: Array) -> tuple[Array, float]:
        """Sums of z and of ‖z‖² over the rows."""
        total, squares = np.zeros(self._n_features_out), 0.0
        for block in _blocks(len(rows), _ROWS):
            Z = self._features(rows[block])
            total, squares = total + Z.sum(axis=0), squares + float(np.vdot(Z, Z))
        return total, squares

    def _fingerprint(self) -> str:
        encoded = encode_kernel(self.kernel_)  # a function has no content to compare: only copies of this fit are equal
        content = str(uuid4()) if encoded is None else json.dumps([type(self).__name__, encoded], sort_keys=True)
        digest = hashlib.sha256(content.encode())
        for name in self._arrays:
            array = np.ascontiguousarray(getattr(self, name), dtype=np.float64)
            digest.update(str(array.shape).encode() + array.tobytes())
        return digest.hexdigest()[:16]


class Nystroem(BaseFeatures):
    r"""Nyström features: rows are compared with m landmarks, :math:`z(x) = K_{xm} V g^{-1/2}`, K_mm = V diag(g) Vᵀ.

    z(x) is the orthogonal projection of φ(x) on the span of the landmarks (Williams and Seeger, 2001), so ZZᵀ never
    exceeds K, and equals it where all rows are landmarks. Directions of K_mm below rounding are left out, so that equal
    landmarks do no harm.

    Parameters
    ----------
    kernel : Kernel, default Gaussian()
    n_components : int, default 100
        Landmarks to choose, at most the number of rows.
    landmarks : "uniform", "k-means++", "pivoted" or array of shape (m, d), default "uniform"
        Rows at random; rows at random that lie apart; the row that is worst approximated so far, again and again
        (pivoted Cholesky: no chance in it, and no row is left far off); or landmarks of your own.
    random_state : None, int, Generator, SeedSequence or RandomState

    Attributes
    ----------
    kernel_ : Kernel
        With the bandwidth as a number.
    landmarks_ : array of shape (m, d)
    approximation_error_ : float
        Mean of k(x, x) − ‖z(x)‖² ≥ 0 over the training rows: what the features miss of a row, squared. It bounds the
        square of the distance of the two means, exact and approximate.
    fingerprint_ : str

    Examples
    --------
    >>> import muhat as mh
    >>> from muhat.features import Nystroem
    >>> X = mh.paper_mixture(5, random_state=0).sample(500, random_state=1)
    >>> for landmarks in ("uniform", "k-means++", "pivoted"):
    ...     features = Nystroem(n_components=50, landmarks=landmarks, random_state=0).fit(X)
    ...     print(f"{landmarks:<10} {features.approximation_error_:.1e}")
    uniform    2.8e-03
    k-means++  1.8e-03
    pivoted    2.7e-03
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
        g, V = eigh(self.kernel_._gram(self.landmarks_, self.landmarks_), driver="evd", check_finite=False)
        kept = g > len(g) * _EPS * g[-1]
        self._map: Array = (V[:, kept] / np.sqrt(g[kept]))[:, ::-1]
        self._n_features_out = self._map.shape[1]
        missed = self.kernel_._diag(rows).mean() - self._totals(rows)[1] / len(rows)
        self.approximation_error_ = max(float(missed), 0.0)

    def _chosen(self, rows: Array) -> Array:
        if not isinstance(self.landmarks, str):
            own = check_rows(self.landmarks, name="landmarks").copy()
            if own.shape[1] != rows.shape[1]:
                raise ValueError(f"landmarks have {own.shape[1]} columns and X has {rows.shape[1]}; they must agree")
            with np.errstate(over="ignore"):
                check_overflow(self.kernel_, self.kernel_._diag(own))
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
            pivots, _, _ = pivoted_cholesky(self.kernel_._gram, rows, m, diagonal=self.kernel_._diag(rows))
            return rows[pivots if len(pivots) else [0]]
        raise ValueError(f'landmarks={self.landmarks!r} must be "uniform", "k-means++", "pivoted" or an array')

    def _features(self, rows: Array) -> Array:
        Z = np.empty((len(rows), self._n_features_out))
        for block in _blocks(len(rows), _ROWS):
            np.matmul(self.kernel_._gram(rows[block], self.landmarks_), self._map, out=Z[block])
        return Z


class Fourier(BaseFeatures):
    r"""Random Fourier features: :math:`z(x) = f^{-1/2}(\cos w_1^\top x, …, \cos w_f^\top x, \sin w_1^\top x, …)`.

    The frequencies w are drawn from the spectral measure of the kernel (Rahimi and Recht, 2007): Gaussian: normal;
    Laplace: Cauchy in each coordinate; Matérn of smoothness ν: Student's t with 2ν degrees of freedom. Pairs of cosine
    and sine make ‖z(x)‖² = k(x, x) = 1; the error of one kernel value is of the order of f^(−½) in any dimension.

    Parameters
    ----------
    kernel : Gaussian, Laplace or Matern, default Gaussian()
    n_components : int, default 1000
        Number of features, 2f; an odd number is rounded up.
    orthogonal : bool, default False
        Frequencies in orthogonal directions, as many as the dimension at a time: lower error (Yu et al., 2016). Not for
        Laplace, whose frequencies have no uniform directions.
    random_state : None, int, Generator, SeedSequence or RandomState

    Attributes
    ----------
    kernel_ : Kernel
        With the bandwidth as a number.
    frequencies_ : array of shape (d, f)
        For rows divided by the bandwidth.
    approximation_error_ : float
        Root mean square of (K − ZZᵀ)_ij over the pairs of at most 64 training rows, drawn at random.
    fingerprint_ : str

    Examples
    --------
    >>> import muhat as mh
    >>> from muhat.features import Fourier
    >>> X = mh.paper_mixture(5, random_state=0).sample(500, random_state=1)
    >>> features = Fourier(n_components=1000, random_state=0).fit(X)
    >>> features.transform(X).shape
    (500, 1000)
    >>> round(features.approximation_error_, 3)
    0.016
    """

    _arrays = ("frequencies_", "_centre")

    def __init__(
        self,
        kernel: Kernel = Gaussian(),
        n_components: int = 1000,
        orthogonal: bool = False,
        random_state: RandomState = None,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.orthogonal = orthogonal
        self.random_state = random_state

    def _fit(self, rows: Array) -> None:
        if not isinstance(self.kernel, Gaussian | Laplace | Matern):
            raise ValueError(f"kernel={self.kernel!r} must be Gaussian(), Laplace() or Matern(); Nystroem takes any")
        pairs = (check_count("n_components", self.n_components) + 1) // 2
        if self.orthogonal and isinstance(self.kernel, Laplace):
            raise ValueError("orthogonal=True needs a kernel of ‖x − y‖; with Laplace() use orthogonal=False")
        rng = check_rng(self.random_state)
        draw = _orthogonal_frequencies if self.orthogonal else _frequencies
        self.frequencies_ = draw(self.kernel_, rows.shape[1], pairs, rng)
        self._centre = (rows / len(rows)).sum(axis=0)  # phases of rows far from zero would lose their digits
        self._n_features_out = 2 * pairs
        seen = rows[rng.choice(len(rows), min(len(rows), 64), replace=False)]
        Z = self._features(seen)
        errors = (self.kernel_._gram(seen, seen) - Z @ Z.T)[np.triu_indices(len(seen), 1)]
        self.approximation_error_ = float(np.sqrt(np.mean(errors**2))) if len(errors) else 0.0

    def _features(self, rows: Array) -> Array:
        f = self.frequencies_.shape[1]
        Z = np.empty((len(rows), 2 * f))
        for block, double_sine, cosine in self._circles(rows):
            np.multiply(double_sine, cosine, out=Z[block, f:])
            double_sine *= double_sine
            np.subtract(1.0, np.multiply(double_sine, 0.5, out=double_sine), out=Z[block, :f])
        return np.divide(Z, np.sqrt(f), out=Z)

    def _totals(self, rows: Array) -> tuple[Array, float]:
        cosines, sines = np.zeros((2, self.frequencies_.shape[1]))
        for _, double_sine, cosine in self._circles(rows):
            cosine *= double_sine
            sines += cosine.sum(axis=0)
            double_sine *= double_sine
            cosines += len(cosine) - 0.5 * double_sine.sum(axis=0)
        return np.concatenate([cosines, sines]) / np.sqrt(len(sines)), float(len(rows))

    def _circles(self, rows: Array) -> Iterator[tuple[slice, Array, Array]]:
        """Blocks that fit the cache: a slice of the rows, 2 sin(θ/2) and cos(θ/2) of the phases θ = wᵀx."""
        turns_of = self.frequencies_ / (2.0 * np.pi)
        width = turns_of.shape[1]
        size = max(_CACHED // width, 1)
        buffers = np.empty((3, min(size, len(rows)), width))
        with np.errstate(over="ignore"):
            scaled = (rows - self._centre) / self.kernel_.get_params()["bandwidth"]
        np.clip(scaled, -_FARTHEST, _FARTHEST, out=scaled)
        for block in _blocks(len(rows), size):
            turns, sine, work = buffers[:, : block.stop - block.start]
            np.matmul(scaled[block], turns_of, out=turns)
            yield block, *_half_angles(turns, sine, work)


# sin x = x + S₁x³ + … to the last bit for |x| ≤ π/4 (the constants of fdlibm), here as √2·sin(πr/2) = r·P(r²).
_SINE = [1.0, -1.66666666666666324348e-01, 8.33333333332248946124e-03, -1.98412698298579493134e-04]
_SINE += [2.75573137070700676789e-06, -2.50507602534068634195e-08, 1.58969099521155010221e-10]
_SINE = [np.sqrt(2.0) * c * (np.pi / 2) ** (2 * k + 1) for k, c in enumerate(_SINE)][::-1]


def _half_angles(turns: Array, sine: Array, work: Array) -> tuple[Array, Array]:
    """2 sin πr and cos πr, with r in [−½, ½] what is left of a phase of so many turns, in place.

    Twenty cheap passes for both; the library functions take longer for each. With x = √2 sin(πr/2):
    cos πr = 1 − x², sin πr = x·√(1 + cos πr), both to about 1e-15.
    """
    np.rint(turns, out=work)
    turns -= work
    np.multiply(turns, turns, out=work)
    sine[:] = _SINE[0]
    for coefficient in _SINE[1:]:
        sine *= work
        sine += coefficient
    sine *= turns
    cosine = np.subtract(1.0, np.multiply(sine, sine, out=work), out=work)
    sine *= np.sqrt(np.add(cosine, 1.0, out=turns), out=turns)
    sine *= 2.0
    return sine, cosine


def _frequencies(kernel: Kernel, d: int, count: int, rng: np.random.Generator) -> Array:
    if isinstance(kernel, Laplace):
        return rng.standard_cauchy((d, count))
    normal = rng.standard_normal((d, count))
    if isinstance(kernel, Matern):
        normal /= np.sqrt(rng.chisquare(2 * kernel.nu, count) / (2 * kernel.nu))
    return normal


def _orthogonal_frequencies(kernel: Kernel, d: int, count: int, rng: np.random.Generator) -> Array:
    """Frequencies with the lengths of independent ones, in directions that are orthogonal d at a time."""
    lengths = np.linalg.norm(_frequencies(kernel, d, count, rng), axis=0)
    factors = [qr(rng.standard_normal((d, d)), check_finite=False) for _ in range(-(-count // d))]
    return np.hstack([Q * np.sign(np.diag(R)) for Q, R in factors])[:, :count] * lengths
