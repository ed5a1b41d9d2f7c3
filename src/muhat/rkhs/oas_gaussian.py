"""Gaussian fitted to rows: OAS covariance, embedding, samples, and their forms without some of the rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr
from scipy.spatial.distance import cdist

from muhat._support.types import Array
from muhat.kernels.base import Kernel
from muhat.kernels.capabilities import is_isotropic
from muhat.linalg.blocks import blocks
from muhat.linalg.distances import power_of_two_near
from muhat.linalg.spectrum import thin_svd
from muhat.rkhs.measures import FactoredCovariance, FactoredGaussian, Gaussians

LARGEST, SMALLEST = 1e140, 1e-140
"""Squares of numbers between these, and sums and ratios of such squares, neither overflow nor vanish."""

SAMPLE_POINTS = 256
"""Points of a sample that stands for a Gaussian: with four times as many the loss is lower by half a per cent, with a
quarter higher by four (benchmarks/guide/adaptive.py)."""

FEWEST_POINTS, MAX_SAMPLED_NUMBERS = 32, 200_000
"""Kernels that see every column choose mixing weights by this many points, or as many as have so many numbers."""

_ROWS_AT_ONCE = 4096
"""Rows at which a sample is evaluated at once."""

_FEWEST_TO_SQUARE, _WELL_CONDITIONED = 4, 1e-6
"""With this many times as many columns as rows, axes come from the products of rows with a ratio of eigenvalues so
large."""

CANCELLED = 1e-3
"""Where less than this share is left after a row is subtracted, the sum is computed again without the row."""


def oas_amount(n: Any, d: int, trace: Any, squared_norm: Any) -> Any:
    """The OAS amount of shrinkage for n rows in d dimensions, from tr S and ‖S‖² (Chen, Wiesel, Eldar, Hero, 2010)."""
    alpha, squared_mean = squared_norm / d**2, (trace / d) ** 2
    numerator, denominator = alpha + squared_mean, (n + 1) * (alpha - squared_mean / d)
    ratio = np.divide(numerator, denominator, out=np.ones_like(numerator), where=denominator > 0)
    return np.where(d > 1, np.minimum(ratio, 1.0), 0.0)


def varying_columns(rows: Array) -> NDArray[np.bool_]:
    """Whether each column has two different values."""
    return (rows != rows[0]).any(axis=0)


@dataclass(frozen=True, eq=False)
class FittedGaussian:
    r"""N(x̄, Σ) with the OAS covariance of rows, by their singular vectors: no d × d array.

    :math:`\Sigma = u^2 (V^\top \mathrm{diag}(s) V + f I)`: the sample covariance S, shrunk toward a multiple of the
    identity. Masked columns have no part in the identity, so that a constant one stays constant.
    """

    centre: Array  # (d,): x̄
    # axes, along: (r, d) and (r,): V, the eigenvectors of S, and s, the share of their variances that is kept
    axes: Array
    along: Array
    # floor, unit: f and u, a power of two in whose units no square overflows
    floor: float
    unit: float
    flat: NDArray[np.bool_]  # (d,): columns that the identity spans

    @classmethod
    def of(cls, rows: Array, d: int | None = None, flat: NDArray[np.bool_] | None = None) -> Self:
        """Fit to rows; ``d`` is the number of columns, where these were rotated into fewer."""
        n, d = len(rows), rows.shape[1] if d is None else d
        flat = np.ones(rows.shape[1], dtype=bool) if flat is None else flat
        centre = np.where(flat, rows.mean(axis=0), rows[0])
        Y = rows - centre
        unit = power_of_two_near(float(np.abs(Y).max()))
        inside = Y.any(axis=0)  # rows that were rotated, or have constant columns, span fewer
        _, roots, spanning = np.linalg.svd(Y[:, inside] / unit, full_matrices=False)
        axes = np.zeros((len(roots), rows.shape[1]))
        axes[:, inside] = spanning
        variances = roots**2 / n
        amount = float(oas_amount(n, d, variances.sum(keepdims=True), (variances**2).sum(keepdims=True))[0])
        return cls(centre, axes, (1.0 - amount) * variances, amount * float(variances.sum()) / d, unit, flat)

    def measure(self) -> Gaussians:
        """The Gaussian as a measure; by a factor of Σ where that is smaller than Σ, or where Σ overflows."""
        (r, d), unit = self.axes.shape, self.unit
        if d <= r and SMALLEST < unit < LARGEST:
            S = (self.axes.T * self.along) @ self.axes
            S[np.diag_indices(d)] += self.floor * self.flat
            return Gaussians(np.ones(1), self.centre[None, :], (S * unit * unit)[None, :, :])
        factor = np.sqrt(self.along)[:, None] * self.axes * unit
        covariance = FactoredCovariance(factor, float(np.sqrt(self.floor) * unit))
        return FactoredGaussian(np.ones(1), self.centre[None, :], covariance)

    def at(self, Z: Array) -> Array:
        """x̄ + Σ^½ z for the rows z of Z."""
        flat = np.sqrt(self.floor)
        extra = np.sqrt(self.along + self.floor) - flat
        return self.centre + self.unit * (flat * Z * self.flat + (Z @ self.axes.T * extra) @ self.axes)

    def deviations(self) -> Array:
        """Standard deviations of the columns."""
        return np.asarray(self.unit * np.sqrt(self.floor * self.flat + self.along @ self.axes**2))


@lru_cache(maxsize=1)
def normal_points(d: int, count: int) -> Array:
    """A quasi-random sample of the standard normal distribution, with the mirror image of every point."""
    from scipy.stats import qmc  # here, for it is slow to import

    half = qmc.MultivariateNormalQMC(np.zeros(d), engine=qmc.Sobol(d, seed=0)).random(count // 2)
    points = np.concatenate([half, -half])
    points.setflags(write=False)  # the next fit to as many columns gets the same array
    return points


class LooCovariances(NamedTuple):
    """OAS covariances without each row: diag(spread_i) + floor_i·I − subtracted_i z_i z_iᵀ in d dimensions.

    Coordinates are those of the eigenvectors of S. ``left`` holds the rows z_i that are left out, and at last 0, where
    none is; ``inexact`` says which of them rounding has spoilt.
    """

    left: Array
    spread: Array
    floor: Array
    subtracted: Array
    inexact: Any
    d: int


def loo_covariances(Y: Array, d: int) -> LooCovariances:
    """OAS covariances of rows without each of them and, at last, of all.

    ``Y`` holds the rows from their mean, in units in which squares do not overflow, perhaps rotated into fewer than the
    ``d`` columns.
    """
    # With y_i from the mean to row i, the covariance without it is S₋ᵢ = n/(n−1)·(S − y_i y_iᵀ/(n−1)). In the basis of
    # the eigenvectors of S, where row j is z_j and S = diag(v), trace and norm of S₋ᵢ follow without forming it:
    #     tr S₋ᵢ = n/(n−1)·(Σv − |z_i|²/(n−1)),   ‖S₋ᵢ‖² = (n/(n−1))²·(Σv² − 2 z_iᵀdiag(v)z_i/(n−1) + |z_i|⁴/(n−1)²).
    n = len(Y)
    P, roots, _ = np.linalg.svd(Y, full_matrices=False)
    Z, variances = P * roots, roots**2 / n
    lengths, total, square = (Z**2).sum(axis=1), variances.sum(), (variances**2).sum()
    sizes = np.append(np.full(n, n - 1.0), n)
    grown = n / sizes
    traces = grown * np.append(total - lengths / (n - 1), total)
    squares = np.append(square - 2 * Z**2 @ variances / (n - 1) + (lengths / (n - 1)) ** 2, square)
    inexact = (traces <= CANCELLED * total) | (squares <= CANCELLED * square)
    amounts = oas_amount(sizes, d, traces.clip(0), grown**2 * squares.clip(0))
    kept = (1 - amounts) * grown
    return LooCovariances(
        left=np.vstack([Z, np.zeros((1, len(roots)))]),
        spread=np.outer(kept, variances),
        floor=amounts * traces.clip(0) / d,
        subtracted=np.append(kept[:-1] / (n - 1), 0.0),
        inexact=inexact,
        d=d,
    )


class LooEmbeddings:
    """Embeddings of the fitted Gaussian under a Gaussian kernel of bandwidth s: of all rows, and without each row.

    The embedding of N(m, Σ) is :math:`|I + Σ/s²|^{-1/2} exp(-½ r^T (s²I + Σ)^{-1} r)`, r from m. Without row i,
    Σ + s²I is diagonal but for a multiple of z_i z_iᵀ (:func:`loo_covariances`), which Sherman and Morrison's formula
    inverts. Values at the own rows cost O(n·min(n, d)) after the eigenvectors, and those of all pairs O(n²·min(n, d)).
    More columns than rows are rotated into as many.
    """

    def __init__(self, points: Array, s: float) -> None:
        n, d = points.shape
        Y = points - points.mean(axis=0)
        unit = power_of_two_near(float(np.abs(Y).max()))
        Y /= unit
        if d > n:
            Y = qr(Y.T, mode="r", check_finite=False)[0][:n].T
        self.n, self.ratio, self.covariances = n, (unit / s) ** 2, loo_covariances(Y, d)
        self.rows = self.covariances.left[:-1]
        self._inverse, self._own, self._share, self._half_log = self._decomposed(1.0)

    def needed(self) -> tuple[Array, float, Array, Any]:
        """Values at the rows and squared norm of all; each left-out one at its row, and which rounding has spoilt."""
        half_log_twice, share = self._decomposed(2.0)[-1], self._share[:-1]
        at_rows = np.exp(-0.5 * self.ratio * (self.rows**2 @ self._inverse[-1]) - self._half_log[-1])
        # The mean without row i is x̄ − z_i/(n−1), so that row i lies at n/(n−1)·z_i from it.
        grown = self.n / (self.n - 1.0)
        own = np.exp(-0.5 * self.ratio * grown**2 * self._own[:-1] / share - self._half_log[:-1])
        return at_rows, float(np.exp(-half_log_twice[-1])), own, self.covariances.inexact[:-1] | (share <= CANCELLED)

    def values(self) -> tuple[Array, Array, Any]:
        """Values without each row at all rows, squared norms, and which of them rounding has spoilt."""
        # r = z_j + z_i/(n−1), and rᵀA⁻¹r = rᵀDr + c (z_iᵀDr)²/(1 − c z_iᵀDz_i) for A⁻¹ = (D⁻¹ − c z_i z_iᵀ)⁻¹.
        n, ratio, (left, _, _, subtracted, inexact, _) = self.n, self.ratio, self.covariances
        inner = (left * self._inverse)[:-1] @ self.rows.T
        squares = self._inverse[:-1] @ (self.rows**2).T + 2 / (n - 1) * inner
        squares += (self._own[:-1] / (n - 1) ** 2)[:, None]
        along = inner + (self._own[:-1] / (n - 1))[:, None]
        squares += (ratio * subtracted / self._share)[:-1, None] * along**2
        squares = squares.clip(0)  # what is negative is rounding
        values = np.exp(-0.5 * ratio * squares - self._half_log[:-1, None])
        _, _, share_twice, half_log_twice = self._decomposed(2.0)
        spoilt = inexact | (np.minimum(self._share, share_twice) <= CANCELLED)
        return values, np.exp(-half_log_twice[:-1]), spoilt[:-1]

    def _decomposed(self, times: float) -> tuple[Array, Array, Array, Array]:
        """1/(I + times·Σ_i) on the diagonal, z_iᵀ(…)z_i, what subtraction left of it, and ½ log|I + times·Σ_i|."""
        left, spread, floor, subtracted, _, d = self.covariances
        factor = times * self.ratio
        rest = 1.0 + factor * floor
        diagonal = rest[:, None] + factor * spread
        own = (left**2 / diagonal).sum(axis=1)
        share = np.maximum(1.0 - factor * subtracted * own, np.finfo(float).eps)
        flat = (d - left.shape[1]) * np.log(rest)
        return 1.0 / diagonal, own, share, 0.5 * (np.log(diagonal).sum(axis=1) + flat + np.log(share))


class SampledFit(NamedTuple):
    """A Gaussian in the coordinates of a :class:`LooSample`: mean, a root L of its covariance, variance beside them."""

    mean: Array
    root: Array
    floor: float


class LooSample:
    """A sample of the Gaussian fitted to rows, and of those fitted without some of them: x̄ + Lz for the same points z.

    Coordinates are those of the eigenvectors of the covariance of all rows, in a unit in which squares do not overflow.
    There the root of this covariance is diagonal, and Cholesky's factor L of a covariance without some rows is close to
    it. Beside the rows every Gaussian has the same variance in all directions: for a kernel of the Euclidean distance,
    the length of z beside the rows is all that matters there, however many columns there are. Other kernels take the
    points in all columns, and fewer of them where columns are many.
    """

    def __init__(self, kernel: Kernel, points: Array) -> None:
        self.kernel, self.points, self.d = kernel, points, points.shape[1]
        self.centre = points.mean(axis=0)
        Y = points - self.centre
        self.unit = power_of_two_near(float(np.abs(Y).max()))
        self.axes, self.rows = _principal_coordinates(Y / self.unit)
        self.isotropic = is_isotropic(kernel)
        count = SAMPLE_POINTS
        if not self.isotropic:
            count = min(count, max(FEWEST_POINTS, 2 * (MAX_SAMPLED_NUMBERS // (2 * self.d))))
        half = normal_points(self.d, SAMPLE_POINTS)[: count // 2]
        inside = half @ self.axes.T
        self.inside = np.concatenate([inside, -inside])
        if self.isotropic:
            self.products = _products(self.d, SAMPLE_POINTS) - inside @ inside.T
            lengths = np.diagonal(self.products).clip(0)
            self.beside = np.concatenate([lengths, lengths])
        else:
            beside = half - inside @ self.axes if len(self.axes) < self.d else np.zeros_like(half)
            self.beside = np.concatenate([beside, -beside])

    def fitted(self, kept: Any) -> SampledFit:
        """The Gaussian with the OAS covariance of some of the rows."""
        rows = self.rows[kept]
        n, mean = len(rows), rows.mean(axis=0)
        centred = rows - mean
        S = centred.T @ centred / n
        trace = S.trace()
        amount = float(oas_amount(n, self.d, trace, np.vdot(S, S)))
        floor = amount * trace / self.d
        S *= 1.0 - amount
        S[np.diag_indices_from(S)] += floor
        return SampledFit(mean, _root(S), float(floor))

    def values(self, fits: list[SampledFit], rows: list[Any]) -> Array:
        """Values of the embedded sample of each fit at its own rows, one after the other."""
        if sum(map(len, rows)) > _ROWS_AT_ONCE:  # which bounds the memory
            pieces = [
                (fit, i[part]) for fit, i in zip(fits, rows, strict=True) for part in blocks(len(i), _ROWS_AT_ONCE)
            ]
            return np.concatenate([self.values([fit], [i]) for fit, i in pieces])
        if not self.isotropic:
            parts = zip(fits, rows, strict=True)
            return np.concatenate(
                [self.kernel.evaluate(self._points(f), self.points[i]).mean(axis=0) for f, i in parts]
            )
        # ‖row − (m + Lz)‖² inside, plus the variance beside the rows times the squared length of z there.
        squares = [
            cdist(fit.mean + self.inside @ fit.root.T, self.rows[i], "sqeuclidean") + fit.floor * self.beside[:, None]
            for fit, i in zip(fits, rows, strict=True)
        ]
        return self._profile(np.concatenate(squares, axis=1)).mean(axis=0)

    def squared_norm(self, fit: SampledFit) -> float:
        """Squared norm of the embedded sample, of as many points as the target has."""
        half = len(self.inside) // 2
        if self.isotropic:
            inside = self.inside @ fit.root.T
            # ‖z_a ∓ z_b‖² beside the rows, from the products of the half of the points without mirror images.
            sums = np.add.outer(self.beside[:half], self.beside[:half])
            beside = np.concatenate([sums - 2.0 * self.products, sums + 2.0 * self.products], axis=1).clip(0)
            K = self._profile(cdist(inside[:half], inside, "sqeuclidean") + fit.floor * beside)
        else:
            points = self._points(fit)
            K = self.kernel.evaluate(points[:half], points)  # mirror images add the same
        # Fewer points than the target has stand for it: pairs of a point with itself, and with its mirror image, have
        # the shares that they have in the target.
        own = np.diagonal(K).sum() + np.diagonal(K, half).sum()
        others = (K.sum() - own) / (half * max(2 * half - 2, 1))
        return float(own / half / SAMPLE_POINTS + (1.0 - 2.0 / SAMPLE_POINTS) * others)

    def _profile(self, squares: Array) -> Array:
        """The kernel as a function of squared distances, which points on a line have too."""
        line = np.sqrt(squares).reshape(-1, 1) * self.unit
        return self.kernel.evaluate(np.zeros((1, 1)), line).reshape(squares.shape)

    def _points(self, fit: SampledFit) -> Array:
        """The points x̄ + Lz in all columns."""
        inside = (fit.mean + self.inside @ fit.root.T) @ self.axes
        return self.centre + self.unit * (inside + np.sqrt(fit.floor) * self.beside)


def _principal_coordinates(Y: Array) -> tuple[Array, Array]:
    """Orthonormal axes, the eigenvectors of YᵀY, and the rows in their coordinates; no more axes than rows."""
    n, d = Y.shape
    if d > _FEWEST_TO_SQUARE * n:
        # The small matrix YYᵀ has the same eigenvalues, and axes follow from it where none of them is lost in rounding;
        # that of the mean, which is 0, is left out.
        squares, P = np.linalg.eigh(Y @ Y.T)
        if squares[1:].min() > _WELL_CONDITIONED * squares[-1]:
            P, roots = P[:, :0:-1], np.sqrt(squares[:0:-1])  # the largest first, as singular values come
            return (P.T @ Y) / roots[:, None], P * roots
    P, roots, axes = thin_svd(Y)
    return axes, P * roots


def _root(S: Array) -> Array:
    """A root L of S = LLᵀ: Cholesky's factor, or the symmetric root of a singular matrix."""
    try:
        return np.asarray(np.linalg.cholesky(S), dtype=np.float64)
    except np.linalg.LinAlgError:
        eigenvalues, vectors = np.linalg.eigh(S)
        return (vectors * np.sqrt(eigenvalues.clip(0))) @ vectors.T


@lru_cache(maxsize=1)
def _products(d: int, count: int) -> Array:
    """Inner products of the normal points without their mirror images."""
    half = normal_points(d, count)[: count // 2]
    return half @ half.T
