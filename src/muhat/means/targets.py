"""Targets that a kernel mean is pulled toward, and their refits without a row.

The Gaussian target is the embedding of N(x̄, Σ), Σ the OAS estimate: the covariance S (1/n), shrunk toward a multiple of
the identity by an amount in closed form. It is fitted to the rows, so leave-one-out has to refit it without each. Where
a radial kernel has no closed-form expectation under it, a sample of the Gaussian stands for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import cached_property, lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import qr

from muhat.elements import Element, check_element
from muhat.kernels.base import Kernel
from muhat.linalg.blocks import random_folds
from muhat.linalg.distances import power_of_two_near
from muhat.measures import Atoms, FactoredCovariance, FactoredGaussian, Gaussians
from muhat.types import Array

MAX_ROWS_FOR_EXACT_REFITS = 300
"""Up to this many rows the target is refitted without each row; beyond, without each of ``PARTS_LEFT_OUT`` parts of the
rows, except for the Gaussian kernel, whose refits cost no more than the Gram matrix."""


MAX_ROWS_FOR_GAUSSIAN_REFITS = 3000
"""Up to this many rows the Gaussian kernel's target is refitted without each row, whose values are an n x n array."""


PARTS_LEFT_OUT = 20
"""Parts of the rows that are left out one after the other where the rows are many."""


SAMPLE_POINTS = 256
"""Points of a sample that stands for a Gaussian: with four times as many the loss is lower by half a per cent, with a
quarter higher by four (benchmarks/guide/adaptive.py)."""


_FEWEST_TO_ROTATE = 2
"""With this many times as many columns as they are rotated into, what lies beside the rows is far from singular."""


_MAX_COLUMNS_OF_SOBOL = 21_201
"""Sobol's sequence has this many dimensions."""


_LARGEST, _SMALLEST = 1e140, 1e-140
"""Between these, squares of numbers, and sums and ratios of them, are numbers."""


_LARGEST_NUMBER = 1e300
"""Sums of this many times a few rows are numbers; squares are taken in units."""


_LARGEST_POWERED = 1e45
"""Below this, the sixth powers in expectations of polynomials are numbers."""


_CANCELLED = 1e-3
"""Where less than this share is left after a row is subtracted, the sum is computed again without the row."""


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
class TargetRefits:
    """A target f*, its values at the rows and its squared norm; and its refits without parts of the rows.

    Row i belongs to the part ``parts[i]``, and ``own[i]`` is what the target refitted without this part is at row i:
    the choice of shares needs no more. ``values[g, j]`` is the target refitted without part g, at row j, and
    ``squared_norms[g]`` its squared norm; ``find`` finds them once they are asked for. A given target has one refit,
    whatever is left out. ``make`` builds the element, which the choice of shares does not need.
    """

    make: Callable[[], Element]
    at_rows: Array
    squared_norm: float
    own: Array
    parts: Any
    find: Callable[[], tuple[Array, Array]]

    @property
    def target(self) -> Element:
        """f*."""
        return self.make()

    @cached_property
    def _found(self) -> tuple[Array, Array]:
        return self.find()

    @property
    def values(self) -> Array:
        """Values of every refit at every row."""
        return self._found[0]

    @property
    def squared_norms(self) -> Array:
        """Squared norms of the refits."""
        return self._found[1]


def given_target(target: Element, kernel: Kernel, points: Array) -> TargetRefits:
    """A target that does not depend on the rows."""
    check_element("target", target, kernel, points.shape[1], or_else='"gaussian", None or ')
    at_rows, squared_norm = target.values(points), target.norm() ** 2
    found, parts = (at_rows[None, :], np.array([squared_norm])), np.zeros(len(points), dtype=int)
    return TargetRefits(partial(_given_element, target), at_rows, squared_norm, at_rows, parts, lambda: found)


def _given_element(target: Element) -> Element:
    return target


def gaussian_kind(kernel: Kernel, points: Array) -> TargetKind:
    """How a kernel has a Gaussian as its target, or why it has none."""
    bandwidth = kernel.gaussian_bandwidth
    if bandwidth is not None:
        return TargetKind.GAUSSIAN if _has_squares(points, (bandwidth,), _LARGEST_NUMBER) else TargetKind.SCALE
    if not kernel.evaluates_new_rows:
        return TargetKind.GRAM_MATRIX
    if all(form is not None and form[0] == 1 for form in (term.polynomial_form for _, term in kernel.terms())):
        return TargetKind.LINEAR_KERNEL  # the target is the plain average
    exact, sampled = kernel.has_gaussian_expectations, kernel.is_stationary
    if not exact and not (sampled and points.shape[1] <= _MAX_COLUMNS_OF_SOBOL):
        return TargetKind.NO_CLOSED_FORM
    if not _has_squares(points, kernel.length_scales, _LARGEST_NUMBER if sampled else _LARGEST_POWERED):
        return TargetKind.SCALE
    return TargetKind.GAUSSIAN if exact else TargetKind.SAMPLE


def _has_squares(points: Array, length_scales: tuple[float, ...], largest: float) -> bool:
    """Whether squares of the data, in units of the length scales if there are any, neither overflow nor vanish."""
    spread = np.ptp(points, axis=0).max() if np.abs(points).max() < largest else np.inf
    widths = [spread / scale for scale in length_scales] or [spread]
    return bool(spread == 0 or all(_SMALLEST < width < _LARGEST for width in widths))


def oas_amount(n: Any, d: int, trace: Any, squared_norm: Any) -> Any:
    """The OAS amount of shrinkage for n rows in d dimensions, from tr S and ‖S‖² (Chen, Wiesel, Eldar, Hero, 2010)."""
    alpha, squared_mean = squared_norm / d**2, (trace / d) ** 2
    numerator, denominator = alpha + squared_mean, (n + 1) * (alpha - squared_mean / d)
    ratio = np.divide(numerator, denominator, out=np.ones_like(numerator), where=denominator > 0)
    return np.where(d > 1, np.minimum(ratio, 1.0), 0.0)


def fitted_gaussian(points: Array) -> Gaussians:
    """N(x̄, Σ) with the OAS covariance Σ of the rows; by a factor where Σ is larger than the rows, or overflows."""
    n, d = points.shape
    centre = points.mean(axis=0)
    Y = points - centre
    unit = power_of_two_near(float(np.abs(Y).max()))  # so that no square of a square overflows
    Y /= unit
    S = Y @ Y.T / n if d > n else Y.T @ Y / n
    trace = np.trace(S)
    amount = float(oas_amount(n, d, np.asarray(trace), np.asarray(np.vdot(S, S))))
    floor = amount * trace / d
    if d <= n and _SMALLEST < unit < _LARGEST:
        S *= 1.0 - amount
        S[np.diag_indices(d)] += floor
        return Gaussians(np.ones(1), centre[None, :], (S * unit * unit)[None, :, :])
    factor = np.sqrt((1.0 - amount) / n) * unit * Y
    return FactoredGaussian(np.ones(1), centre[None, :], FactoredCovariance(factor, float(np.sqrt(floor) * unit)))


def gaussian_element(kernel: Kernel, points: Array) -> Element:
    """The embedding of the Gaussian of the rows."""
    return Element(kernel, fitted_gaussian(points))


def gaussian_target(kernel: Kernel, points: Array) -> TargetRefits:
    """The Gaussian target of the rows, with its refits."""
    make, n = partial(gaussian_element, kernel, points), len(points)
    if kernel.gaussian_bandwidth is not None and n <= MAX_ROWS_FOR_GAUSSIAN_REFITS:
        smoothed = SmoothedRefits(points, kernel.gaussian_bandwidth)
        again = Refitted(kernel, points, np.arange(n))
        at_rows, squared_norm, own, inexact = smoothed.needed()
        if inexact.any():
            again.replace_own(own, np.flatnonzero(inexact))
        return TargetRefits(make, at_rows, squared_norm, own, again.parts, lambda: again.completed(*smoothed.values()))
    again = Refitted(kernel, points, _parts(points))
    if all(term.polynomial_form is not None for _, term in kernel.terms()):
        if n <= MAX_ROWS_FOR_EXACT_REFITS:
            values, norms, inexact = moment_refits(kernel, points)
            found = (again.in_the_span() if inexact.any() else again).completed(values[:-1], norms[:-1], inexact)
            return TargetRefits(make, values[-1], float(norms[-1]), np.diagonal(found[0]), again.parts, lambda: found)
        again = again.in_the_span()
    every, whole = np.arange(again.parts.max() + 1), again.without(-1)
    at_rows, squared_norm, own = whole.values(again.rows), whole.norm() ** 2, again.replace_own(np.empty(n), every)
    unknown = np.empty((len(every), n)), np.empty(len(every)), np.ones(len(every))
    return TargetRefits(make, at_rows, squared_norm, own, again.parts, lambda: again.completed(*unknown))


class Refitted(NamedTuple):
    """The target refitted slowly: a Gaussian is fitted to the rows without a part of them, and embedded."""

    kernel: Kernel
    rows: Array
    parts: Any
    fit: Callable[[Array], Gaussians] = fitted_gaussian

    def without(self, part: int) -> Element:
        """The target without a part of the rows; no row is in part -1."""
        return Element(self.kernel, self.fit(self.rows[self.parts != part]))

    def in_the_span(self) -> Refitted:
        """The same for functions of inner products, with fewer columns where there are more than rows."""
        n, d = self.rows.shape
        return self._replace(rows=_in_the_span(self.rows), fit=partial(_spanned_gaussian, d=d)) if d > n else self

    def replace_own(self, own: Array, parts: Any) -> Array:
        """Write the values at the rows of these parts, each of the target without its part."""
        for part in np.asarray(parts).tolist():
            mine = self.parts == part
            own[mine] = self.without(part).values(self.rows[mine])
        return own

    def completed(self, values: Array, squared_norms: Array, inexact: Any) -> tuple[Array, Array]:
        """Values and squared norms, those that are not exact found again."""
        for part in np.flatnonzero(inexact).tolist():
            f = self.without(part)
            values[part], squared_norms[part] = f.values(self.rows), f.norm() ** 2
        return values, squared_norms


def moment_refits(kernel: Kernel, points: Array) -> tuple[Array, Array, Any]:
    """Values and squared norms, for sums of polynomial kernels, of the n refits and of the target of all rows.

    And which of them rounding has spoilt. With m and Σ those of a refit, E k(x, y) is a polynomial in mᵀx and xᵀΣx, and
    the squared norm in mᵀm, mᵀΣm, mᵀΣ²m and tr Σ². Without row i, S is n/(n−1)·(S − y_i y_iᵀ/(n−1)) with y_i from the
    mean to row i: products of rows give all of them, in O(n²·(n + d)), and no d x d array is made.
    """
    n, d = points.shape
    mean = points.mean(axis=0)
    rows = points - mean
    to_mean, A, Y = rows @ mean, rows @ points.T, rows @ rows.T  # y_iᵀx̄, y_iᵀx_j, y_iᵀy_j
    left = np.append(np.full(n, 1.0 / (n - 1)), 0.0)  # m is x̄ − left·y_i, and at last no row is left out
    by_point, by_row = np.vstack([A, np.zeros(n)]), np.vstack([Y, np.zeros(n)])
    lengths, to_mean_or_none = np.append(np.diag(Y), 0.0), np.append(to_mean, 0.0)
    own = mean @ mean - 2 * left * to_mean_or_none + left**2 * lengths  # mᵀm
    along = to_mean_or_none - left * lengths  # y_iᵀm
    with_mean = to_mean - left[:, None] * by_row  # y_kᵀm, for each k
    stretched = with_mean @ Y / n  # y_kᵀSm
    whole = (A**2).mean(axis=0)
    quadratic = whole - left[:, None] * by_point**2  # x_jᵀS₋ᵢx_j, but for n/(n−1), as the next two
    own_quadratic = (with_mean**2).mean(axis=1) - left * along**2
    crossed = (with_mean * by_row).mean(axis=1)  # y_iᵀSm
    own_squared = (stretched * with_mean).mean(axis=1) - 2 * left * along * crossed + left**2 * along**2 * lengths
    kept, floor, squared_norm, inexact = _oas_refits(Y, left, d)
    moments = _Moments(
        at_rows=points @ mean - left[:, None] * by_point,
        quadratic=kept[:, None] * quadratic + floor[:, None] * np.einsum("ij,ij->i", points, points),
        own=own,
        own_quadratic=kept * own_quadratic + floor * own,
        own_squared=kept**2 * own_squared + 2 * kept * floor * own_quadratic + floor**2 * own,
        squared_norm=squared_norm,
    )
    forms = [(factor, *(term.polynomial_form or (0, 0.0))) for factor, term in kernel.terms()]
    values = sum(factor * moments.values(degree, constant) for factor, degree, constant in forms)
    norms = sum(factor * moments.norms(degree, constant) for factor, degree, constant in forms)
    inexact |= (quadratic < _CANCELLED * whole).any(axis=1)
    return np.asarray(values), np.asarray(norms), inexact[:-1]


def _oas_refits(Y: Array, left: Array, d: int) -> tuple[Array, Array, Array, Any]:
    """Of the covariances kept·(S − left·y_i y_iᵀ) + floor·I by OAS: kept, floor, tr Σ², and which rounding has spoilt.

    ``Y`` holds the products y_iᵀy_j, and ``left`` is 1/(n−1) where a row is left out, and 0 at last.
    """
    n = len(Y)
    unit = power_of_two_near(float(np.diag(Y).max()))
    Y = Y / unit
    sizes = n - (left > 0)
    lengths, total, square = np.append(np.diag(Y), 0.0), np.trace(Y) / n, np.vdot(Y, Y) / n**2
    traces = total - left * lengths
    squares = square - 2 * left * np.append((Y**2).mean(axis=1), 0.0) + (left * lengths) ** 2
    grown = n / sizes
    amounts = oas_amount(sizes, d, grown * traces.clip(0), grown**2 * squares.clip(0))
    kept, floor = (1 - amounts) * grown, amounts * grown * traces.clip(0) / d
    squared_norm = kept**2 * squares + 2 * kept * floor * traces + d * floor**2
    inexact = (traces <= _CANCELLED * total) | (squares <= _CANCELLED * square)
    return kept, floor * unit, squared_norm * unit * unit, inexact


class _Moments(NamedTuple):
    """Of Gaussians with means m and covariances Σ, one a row: mᵀx, xᵀΣx at rows x; mᵀm, mᵀΣm, mᵀΣ²m; and tr Σ²."""

    at_rows: Array
    quadratic: Array
    own: Array
    own_quadratic: Array
    own_squared: Array
    squared_norm: Array

    def values(self, degree: int, constant: float) -> Array:
        """E (xᵀy + c)^degree over the Gaussian, at rows x."""
        M, q = self.at_rows + constant, self.quadratic
        return (M, M**2 + q, M**3 + 3 * M * q)[degree - 1]

    def norms(self, degree: int, constant: float) -> Array:
        """The same over two independent points of the Gaussian."""
        M, q = self.own + constant, 2 * self.own_quadratic + self.squared_norm
        return (M, M**2 + q, M**3 + 3 * M * q + 6 * self.own_squared)[degree - 1]


def _in_the_span(points: Array) -> Array:
    """Fewer columns with the same inner products: coordinates in the span of the rows, and one beside it, 0."""
    return np.column_stack([qr(points.T, mode="r", check_finite=False)[0][: len(points)].T, np.zeros(len(points))])


def _spanned_gaussian(rows: Array, d: int) -> Gaussians:
    """The Gaussian of rows of d columns, from their coordinates in the span, for functions of inner products alone.

    Of the d − r directions beside the span, where Σ is floor·I, they see tr Σ² only: one of variance floor·√(d − r)
    has the same.
    """
    n, r = len(rows), rows.shape[1] - 1
    centre = rows.mean(axis=0)
    Y = rows - centre
    S = Y.T @ Y / n
    trace = np.trace(S)
    amount = float(oas_amount(n, d, np.asarray(trace), np.asarray(np.vdot(S, S))))
    floor = amount * trace / d
    S *= 1.0 - amount
    S[np.diag_indices(r)] += floor
    S[r, r] = floor * np.sqrt(d - r)
    return Gaussians(np.ones(1), centre[None, :], S[None, :, :])


def sampled_element(kernel: Kernel, points: Array) -> Element:
    """The embedding of a sample of the Gaussian of the rows."""
    sample = gaussian_sample(points, normal_points(points.shape[1], SAMPLE_POINTS))
    return Element(kernel, Atoms.trusted(sample, np.full(len(sample), 1.0 / len(sample))))


def sampled_target(kernel: Kernel, points: Array) -> TargetRefits:
    """The same for a kernel without closed form, by a sample of the Gaussian.

    All refits move and stretch the same points, so that they differ by what the rows say, not by chance.
    """
    (n, d), parts = points.shape, _parts(points)
    rows, base = points, normal_points(d, SAMPLE_POINTS)
    if kernel.is_isotropic and d >= _FEWEST_TO_ROTATE * (n + SAMPLE_POINTS // 2):
        rows, base = _in_fewer_columns(points, base)
    samples = SampledRefits(kernel, rows, base, parts, d)
    at_rows, squared_norm = samples.mean_at(-1, rows), samples.squared_norm(-1)
    make = partial(sampled_element, kernel, points)
    return TargetRefits(make, at_rows, squared_norm, samples.own_values(), parts, samples.values)


class SampledRefits:
    """Samples of the Gaussians without parts of the rows: x̄ + L z for the points z of ``base``, with LLᵀ = Σ.

    Of all rows L is the symmetric root of Σ. Without row i, Σ is M − c y yᵀ with M of the same eigenvectors as S, and y
    from x̄ to row i: with w = M^(−½)y, s = 1 − c·wᵀw and γ = c/(1 + √s), L = M^½(I − γ w wᵀ) is a root, because
    (I − γ w wᵀ)² is I − c w wᵀ. Where parts have several rows, or rounding has spoilt s, L is symmetric again.
    """

    def __init__(self, kernel: Kernel, rows: Array, base: Array, parts: Any, d: int) -> None:
        self.kernel, self.rows, self.base, self.parts, self.d = kernel, rows, base, parts, d
        self.refits, self.centre = int(parts.max()) + 1, rows.mean(axis=0)
        self.by_downdates = np.zeros(self.refits + 1, dtype=bool)  # the last one leaves nothing out
        if self.refits < len(rows):
            return
        Y = rows - self.centre
        self.unit = power_of_two_near(float(np.abs(Y).max()))
        self.covariances, self.axes = downdates(Y / self.unit, d)
        self.inside = base[: len(base) // 2] @ self.axes.T  # the other half are mirror images
        self.beside = base[: len(base) // 2] - self.inside @ self.axes
        left, spread, floor = self.covariances.left, self.covariances.spread, self.covariances.floor
        self.widths = np.sqrt(spread + floor[:, None])
        self.directions = np.divide(left, self.widths, out=np.zeros_like(left), where=self.widths > 0)  # w
        share = 1.0 - self.covariances.subtracted * (self.directions**2).sum(axis=1)
        self.by_downdates = (share > _CANCELLED) & ~self.covariances.inexact
        self.pulls = self.covariances.subtracted / (1.0 + np.sqrt(share.clip(0)))  # γ

    def sample(self, part: int) -> Array:
        """The sample without a part of the rows; no row is in part -1."""
        if not self.by_downdates[part]:
            return gaussian_sample(self.rows[self.parts != part], self.base, self.d)
        w, y = self.directions[part], self.covariances.left[part]
        stretched = (self.inside - self.pulls[part] * np.outer(self.inside @ w, w)) * self.widths[part]
        half = self.unit * (stretched @ self.axes + np.sqrt(self.covariances.floor[part]) * self.beside)
        centre = self.centre - self.unit * (y @ self.axes) / (len(self.rows) - 1)
        return np.concatenate([centre + half, centre - half])

    def mean_at(self, part: int, rows: Array) -> Array:
        """Values of the refit without a part."""
        return self.kernel.evaluate(self.sample(part), rows).mean(axis=0)

    def squared_norm(self, part: int) -> float:
        """Squared norm of the refit without a part."""
        sample = self.sample(part)
        return float(self.kernel.evaluate(sample[: len(sample) // 2], sample).mean())  # mirror images add the same

    def values(self) -> tuple[Array, Array]:
        """Values of every refit at every row, and the squared norms."""
        every = range(self.refits)
        return np.array([self.mean_at(g, self.rows) for g in every]), np.array([self.squared_norm(g) for g in every])

    def own_values(self) -> Array:
        """Values at each row of the refit without its part."""
        own, quickly = np.empty(len(self.rows)), self.by_downdates[:-1] & self.kernel.is_isotropic
        if quickly.any():
            own[quickly] = self._own_values_by_distances(np.flatnonzero(quickly))
        for part in np.flatnonzero(~quickly).tolist():
            mine = self.parts == part
            own[mine] = self.mean_at(part, self.rows[mine])
        return own

    def _own_values_by_distances(self, index: Any) -> Array:
        """The same for refits without one row, for a kernel of the distance: by products, no sample is made.

        With r from the mean without row i to row i, the distances of it to x̄ ± Lz are |r|² + |Lz|² ∓ 2rᵀLz.
        """
        z, w, y = self.inside, self.directions[index], self.covariances.left[index]
        D, pulls, lengths = self.widths[index], self.pulls[index], (y**2).sum(axis=1)
        grown, pulled, stretched = len(self.rows) / (len(self.rows) - 1.0), pulls * (z @ w.T), z @ (D * y).T
        along = grown * (stretched - pulled * lengths)
        beside = np.outer((self.beside**2).sum(axis=1), self.covariances.floor[index])
        squares = z**2 @ (D**2).T + pulled * (pulled * lengths - 2.0 * stretched) + beside + grown**2 * lengths
        distances = self.unit * np.sqrt(np.concatenate([squares - 2.0 * along, squares + 2.0 * along]).clip(0))
        return self.kernel.evaluate(distances.reshape(-1, 1), np.zeros((1, 1))).reshape(distances.shape).mean(axis=0)


def _in_fewer_columns(points: Array, base: Array) -> tuple[Array, Array]:
    """Rows and a normal sample, of pairs ±z, rotated into n + pairs columns: no distance between them changes.

    The first n columns are the span of the rows, and the others a triangular factor of what the sample has beside it.
    """
    (n, d), half = points.shape, len(base) // 2
    Y = points - points.mean(axis=0)
    unit = power_of_two_near(float(np.abs(Y).max()))
    Q, R = qr(Y.T / unit, mode="economic", check_finite=False)
    inside = base[:half] @ Q
    rotated = np.hstack([inside, np.linalg.cholesky(_products(d, 2 * half) - inside @ inside.T)])
    return np.hstack([R.T * unit, np.zeros((n, half))]), np.vstack([rotated, -rotated])


@lru_cache(maxsize=1)
def _products(d: int, count: int) -> Array:
    """Inner products of the normal points without their mirror images."""
    half = normal_points(d, count)[: count // 2]
    return half @ half.T


@lru_cache(maxsize=1)
def normal_points(d: int, count: int) -> Array:
    """A quasi-random sample of the standard normal distribution, with the mirror image of every point."""
    from scipy.stats import qmc  # here, for it is slow to import

    half = qmc.MultivariateNormalQMC(np.zeros(d), engine=qmc.Sobol(d, seed=0)).random(count // 2)
    points = np.concatenate([half, -half])
    points.setflags(write=False)  # the next fit to as many columns gets the same array
    return points


def gaussian_sample(points: Array, base: Array, d: int | None = None) -> Array:
    """A sample of N(x̄, Σ), Σ the OAS covariance of the rows: x̄ + Σ^½ z for each z of a standard normal sample.

    ``d`` is the number of columns, where they were rotated into fewer.
    """
    n, d = len(points), points.shape[1] if d is None else d
    centre = points.mean(axis=0)
    Y = points - centre
    unit = power_of_two_near(float(np.abs(Y).max()))
    _, roots, Q = np.linalg.svd(Y / unit, full_matrices=False)
    variances = roots**2 / n
    amount = float(oas_amount(n, d, variances.sum(keepdims=True), (variances**2).sum(keepdims=True))[0])
    floor = amount * variances.sum() / d
    widths, flat = np.sqrt((1.0 - amount) * variances + floor), np.sqrt(floor)
    return centre + unit * (flat * base + (base @ Q.T * (widths - flat)) @ Q)


def _parts(points: Array) -> Any:
    """Numbers of the parts of the rows that are left out together: each row, or folds where there are many."""
    return np.arange(len(points)) if len(points) <= MAX_ROWS_FOR_EXACT_REFITS else random_folds(points, PARTS_LEFT_OUT)


def downdates(Y: Array, d: int) -> tuple[_Downdates, Array]:
    """OAS covariances of rows without each of them and, at last, of all; and the axes of their coordinates.

    ``Y`` holds the rows from their mean, in units in which squares are numbers, perhaps rotated into fewer than the
    ``d`` columns. In the basis of the eigenvectors of S, where row j is z_j, the covariance without row i is diagonal
    but for a multiple of z_i z_iᵀ.
    """
    n = len(Y)
    P, roots, axes = np.linalg.svd(Y, full_matrices=False)
    Z, variances = P * roots, roots**2 / n
    lengths, total, square = (Z**2).sum(axis=1), variances.sum(), (variances**2).sum()
    sizes = np.append(np.full(n, n - 1.0), n)
    grown = n / sizes
    traces = grown * np.append(total - lengths / (n - 1), total)
    squares = np.append(square - 2 * Z**2 @ variances / (n - 1) + (lengths / (n - 1)) ** 2, square)
    inexact = (traces <= _CANCELLED * total) | (squares <= _CANCELLED * square)
    amounts = oas_amount(sizes, d, traces.clip(0), grown**2 * squares.clip(0))
    kept = (1 - amounts) * grown
    covariances = _Downdates(
        left=np.vstack([Z, np.zeros((1, len(roots)))]),
        spread=np.outer(kept, variances),
        floor=amounts * traces.clip(0) / d,
        subtracted=np.append(kept[:-1] / (n - 1), 0.0),
        inexact=inexact,
        d=d,
    )
    return covariances, axes


class _Downdates(NamedTuple):
    """The covariances diag(spread_i) + floor_i·I − subtracted_i z_i z_iᵀ in d dimensions.

    ``left`` holds the rows z_i that are left out, and 0 where none is; ``inexact`` says which rounding has spoilt.
    """

    left: Array
    spread: Array
    floor: Array
    subtracted: Array
    inexact: Any
    d: int


class SmoothedRefits:
    """For the Gaussian kernel, whose bandwidth is s: the target of all rows, and its refits without each row.

    Σ + s²I without row i is a diagonal matrix but for a multiple of z_i z_iᵀ, see :func:`downdates`: Sherman and
    Morrison invert it. Values at the own rows cost O(n·min(n, d)) after the eigenvectors, and those of all pairs
    O(n²·min(n, d)). More columns than rows are rotated into as many.
    """

    def __init__(self, points: Array, s: float) -> None:
        n, d = points.shape
        Y = points - points.mean(axis=0)
        unit = power_of_two_near(float(np.abs(Y).max()))
        Y /= unit
        if d > n:
            Y = qr(Y.T, mode="r", check_finite=False)[0][:n].T
        self.n, self.ratio, (self.covariances, _) = n, (unit / s) ** 2, downdates(Y, d)
        self.rows = self.covariances.left[:-1]
        self._inverse, self._own, self._share, self._half_log = self._decomposed(1.0)

    def needed(self) -> tuple[Array, float, Array, Any]:
        """The target's values at the rows and squared norm; refits at their own rows, and which rounding has spoilt."""
        half_log_twice, share = self._decomposed(2.0)[-1], self._share[:-1]
        at_rows = np.exp(-0.5 * self.ratio * (self.rows**2 @ self._inverse[-1]) - self._half_log[-1])
        grown = self.n / (self.n - 1.0)
        own = np.exp(-0.5 * self.ratio * grown**2 * self._own[:-1] / share - self._half_log[:-1])
        return at_rows, float(np.exp(-half_log_twice[-1])), own, self.covariances.inexact[:-1] | (share <= _CANCELLED)

    def values(self) -> tuple[Array, Array, Any]:
        """Values of each refit at all rows, squared norms, and which of them rounding has spoilt.

        A value is |I + Σ_i|^(−½) exp(−½ rᵀ(I + Σ_i)⁻¹r), r from the mean without row i to row j.
        """
        n, ratio, (left, _, _, subtracted, inexact, _) = self.n, self.ratio, self.covariances
        inner = (left * self._inverse)[:-1] @ self.rows.T
        squares = self._inverse[:-1] @ (self.rows**2).T + 2 / (n - 1) * inner
        squares += (self._own[:-1] / (n - 1) ** 2)[:, None]
        along = inner + (self._own[:-1] / (n - 1))[:, None]
        squares += (ratio * subtracted / self._share)[:-1, None] * along**2
        squares = squares.clip(0)  # what is negative is rounding
        values = np.exp(-0.5 * ratio * squares - self._half_log[:-1, None])
        _, _, share_twice, half_log_twice = self._decomposed(2.0)
        spoilt = inexact | (np.minimum(self._share, share_twice) <= _CANCELLED)
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
