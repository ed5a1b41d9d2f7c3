"""Shrinkage targets of a kernel mean: a Gaussian fitted to the rows or a given element, with its leave-one-out fits.

The Gaussian is fitted to the rows, so that leave-one-out has to fit it again without each row, or each part of them.
Where a radial kernel has no closed-form expectation under it, a sample of the Gaussian stands for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import cached_property, lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from muhat.elements import Element, check_element
from muhat.gaussian import LARGEST, SMALLEST, FittedGaussian, LooEmbeddings, normal_points, oas_amount
from muhat.kernels.base import Kernel, linear_terms
from muhat.kernels.capabilities import is_isotropic, is_stationary, length_scales
from muhat.kernels.dot import polynomial_form
from muhat.kernels.expectations import has_gaussian_expectations
from muhat.kernels.foreign import evaluates_new_rows
from muhat.linalg.blocks import random_folds
from muhat.linalg.distances import power_of_two_near
from muhat.linalg.gram import gaussian_bandwidth
from muhat.linalg.spectrum import thin_svd
from muhat.measures import Atoms
from muhat.types import Array

MAX_ROWS_LEFT_OUT_ONE_BY_ONE = 3000
"""Up to this many rows the Gaussian kernel's target is fitted without each row, whose values are an n x n array."""


PARTS_LEFT_OUT = 20
"""Parts of the rows that are left out one after the other for other kernels, and where rows are many."""


MAX_COLUMNS_FOR_MOMENTS = 300
"""Polynomial kernels have a target up to this many columns: their expectations need the d x d covariance."""


SAMPLE_POINTS = 256
"""Points of a sample that stands for a Gaussian: with four times as many the loss is lower by half a per cent, with a
quarter higher by four (benchmarks/guide/adaptive.py)."""


FEWEST_POINTS, MAX_SAMPLED_NUMBERS = 32, 200_000
"""Kernels that see every column choose mixing weights by this many points, or as many as have so many numbers."""


_FEWEST_TO_SQUARE, _WELL_CONDITIONED = 4, 1e-6
"""With this many times as many columns as rows, axes come from the products of rows with a ratio of eigenvalues so
large."""


_MAX_COLUMNS_OF_SOBOL = 21_201
"""Sobol's sequence has this many dimensions."""


_LARGEST_NUMBER = 1e300
"""Sums of this many times a few rows are numbers; squares are taken in units."""


_LARGEST_POWERED = 1e45
"""Below this, the sixth powers in expectations of polynomials are numbers."""


class TargetKind(Enum):
    """What stands for the target, or why there is none; the value is what a user reads."""

    GAUSSIAN = "gaussian"
    SAMPLE = "gaussian sample"
    GIVEN = "given"
    NONE = "none"
    GRAM_MATRIX = "none: Gram matrix"
    LINEAR_KERNEL = "none: linear kernel"
    NO_CLOSED_FORM = "none: no closed form"
    SCALE = "none: scale"


@dataclass(frozen=True, eq=False)
class LooTarget:
    """A target f* at the rows, with its squared norm; and the same for the target fitted without parts of the rows.

    Row i belongs to the part ``parts[i]``, and ``own[i]`` is what the target fitted without this part is at row i: the
    choice of mixing weights needs no more. A given target is the same whatever is left out.
    """

    at_rows: Array
    squared_norm: float
    own: Array
    parts: Any

    def without_parts(self) -> tuple[Array, Array]:
        """Values [g, j] at row j of the target fitted without part g, and squared norms of these targets."""
        return self.at_rows[None, :], np.array([self.squared_norm])

    @cached_property
    def _left_out(self) -> tuple[Array, Array]:
        return self.without_parts()

    @property
    def values(self) -> Array:
        """Values at every row of the targets fitted without each part."""
        return self._left_out[0]

    @property
    def squared_norms(self) -> Array:
        """Squared norms of the targets fitted without each part."""
        return self._left_out[1]


def given_target(target: Element, kernel: Kernel, points: Array) -> LooTarget:
    """A target that does not depend on the rows."""
    check_element("target", target, kernel, points.shape[1], or_else='"gaussian", None or ')
    at_rows = target.values(points)
    return LooTarget(at_rows, target.norm() ** 2, at_rows, np.zeros(len(points), dtype=int))


def gaussian_kind(kernel: Kernel, points: Array) -> TargetKind:
    """How a kernel has a Gaussian as its target, or why it has none."""
    bandwidth = gaussian_bandwidth(kernel)
    if bandwidth is not None:
        return TargetKind.GAUSSIAN if _has_squares(points, (bandwidth,), _LARGEST_NUMBER) else TargetKind.SCALE
    if not evaluates_new_rows(kernel):
        return TargetKind.GRAM_MATRIX
    if all(form is not None and form[0] == 1 for form in (polynomial_form(term) for _, term in linear_terms(kernel))):
        return TargetKind.LINEAR_KERNEL  # the target is the plain average
    exact, sampled, d = has_gaussian_expectations(kernel), is_stationary(kernel), points.shape[1]
    if not (exact and (sampled or d <= MAX_COLUMNS_FOR_MOMENTS)) and not (sampled and d <= _MAX_COLUMNS_OF_SOBOL):
        return TargetKind.NO_CLOSED_FORM
    if not _has_squares(points, length_scales(kernel), _LARGEST_NUMBER if sampled else _LARGEST_POWERED):
        return TargetKind.SCALE
    return TargetKind.GAUSSIAN if exact else TargetKind.SAMPLE


def _has_squares(points: Array, lengths: tuple[float, ...], largest: float) -> bool:
    """Whether squares of the data, in units of the length scales if there are any, neither overflow nor vanish."""
    spread = np.ptp(points, axis=0).max() if np.abs(points).max() < largest else np.inf
    widths = [spread / length for length in lengths] or [spread]
    return bool(spread == 0 or all(SMALLEST < width < LARGEST for width in widths))


def gaussian_element(kernel: Kernel, points: Array) -> Element:
    """The embedding of the Gaussian fitted to the rows."""
    return Element(kernel, FittedGaussian.of(points).measure())


def sampled_element(kernel: Kernel, points: Array) -> Element:
    """The embedding of a sample of the Gaussian fitted to the rows."""
    sample = FittedGaussian.of(points).at(normal_points(points.shape[1], SAMPLE_POINTS))
    return Element(kernel, Atoms.trusted(sample, np.full(len(sample), 1.0 / len(sample))))


@dataclass(frozen=True, eq=False)
class OneByOneTarget(LooTarget):
    """The Gaussian fitted without each row, under a Gaussian kernel, by rank-one changes of its covariance."""

    kernel: Kernel
    points: Array
    embeddings: LooEmbeddings

    def without_parts(self) -> tuple[Array, Array]:
        values, squared_norms, inexact = self.embeddings.values()
        for i in np.flatnonzero(inexact).tolist():
            f = gaussian_element(self.kernel, np.delete(self.points, i, axis=0))
            values[i], squared_norms[i] = f.values(self.points), f.norm() ** 2
        return values, squared_norms


@dataclass(frozen=True, eq=False)
class PartsTarget(LooTarget):
    """A target that ``embed`` fits again without each part of the rows."""

    embed: Callable[[Array], Any]
    rows: Array

    def without_parts(self) -> tuple[Array, Array]:
        without = [self.embed(self.rows[self.parts != part]) for part in range(int(self.parts.max()) + 1)]
        return np.array([f.values(self.rows) for f in without]), np.array([f.norm() ** 2 for f in without])


def gaussian_target(kernel: Kernel, points: Array) -> LooTarget:
    """The Gaussian fitted to the rows as a target, for a kernel with closed-form expectations under Gaussians."""
    bandwidth = gaussian_bandwidth(kernel)
    if bandwidth is None or len(points) > MAX_ROWS_LEFT_OUT_ONE_BY_ONE:
        return _target_by_parts(partial(gaussian_element, kernel), points, random_folds(points, PARTS_LEFT_OUT))
    embeddings = LooEmbeddings(points, bandwidth)
    at_rows, squared_norm, own, inexact = embeddings.needed()
    for i in np.flatnonzero(inexact).tolist():
        own[i] = gaussian_element(kernel, np.delete(points, i, axis=0)).values(points[i : i + 1])[0]
    return OneByOneTarget(at_rows, squared_norm, own, np.arange(len(points)), kernel, points, embeddings)


def _target_by_parts(embed: Callable[[Array], Any], rows: Array, parts: Any) -> LooTarget:
    whole, own = embed(rows), np.empty(len(rows))
    for part in range(int(parts.max()) + 1):
        own[parts == part] = embed(rows[parts != part]).values(rows[parts == part])
    return PartsTarget(whole.values(rows), whole.norm() ** 2, own, parts, embed, rows)


@dataclass(frozen=True, eq=False)
class SampledTarget(LooTarget):
    """A sample of the Gaussian, fitted again without each part of the rows."""

    sample: LooSample

    def without_parts(self) -> tuple[Array, Array]:
        found = [self.sample.fitted(self.parts != part) for part in range(int(self.parts.max()) + 1)]
        every = np.arange(len(self.parts))
        return (
            np.array([self.sample.values([fit], [every]) for fit in found]),
            np.array([self.sample.squared_norm(fit) for fit in found]),
        )


def sampled_target(kernel: Kernel, points: Array) -> LooTarget:
    """The same for a kernel without closed form, by a sample of the Gaussian.

    All fits move and stretch the same points, so that they differ by what the rows say, not by chance.
    """
    parts = random_folds(points, PARTS_LEFT_OUT)
    sample, every = LooSample(kernel, points), np.arange(len(points))
    whole = sample.fitted(every)
    members = [np.flatnonzero(parts == part) for part in range(int(parts.max()) + 1)]
    own = np.empty(len(points))
    own[np.concatenate(members)] = sample.values(
        [sample.fitted(parts != part) for part in range(len(members))], members
    )
    return SampledTarget(sample.values([whole], [every]), sample.squared_norm(whole), own, parts, sample)


class SampledFit(NamedTuple):
    """A Gaussian in the coordinates of a :class:`LooSample`: mean, a root L of its covariance, variance beside them."""

    mean: Array
    root: Array
    floor: float


class LooSample:
    """A sample of the Gaussian fitted to rows, and of those fitted without some of them: x̄ + Lz for the same points z.

    Coordinates are those of the eigenvectors of the covariance of all rows, in a unit in which squares are numbers.
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
