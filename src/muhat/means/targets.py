"""Targets that a kernel mean is pulled toward, and their refits without a row.

The Gaussian target is the embedding of N(x̄, Σ), Σ the OAS estimate: the covariance S (1/n), shrunk toward a multiple of
the identity by an amount in closed form. It is fitted to the rows, so leave-one-out has to refit it without each. Where
a radial kernel has no closed-form expectation under it, a sample of the Gaussian stands for it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from muhat.elements import Element, check_element
from muhat.kernels.base import Kernel
from muhat.linalg.distances import power_of_two_near
from muhat.measures import Atoms, Gaussians
from muhat.types import Array

REFITS = 300
"""Up to this many rows the target is refitted without each row; beyond, without each of ``FOLDS`` parts of the rows,
except for the Gaussian kernel, whose refits cost no more than the Gram matrix."""


FOLDS = 20


SAMPLE = 256
"""Points of a sample that stands for a Gaussian: with four times as many the loss is lower by half a per cent, with a
quarter higher by four (benchmarks/guide/adaptive.py)."""


_WIDEST = 21_201
"""So many dimensions Sobol's sequence has."""


_LARGEST, _SMALLEST = 1e140, 1e-140
"""Between these, squares of the data, and sums and ratios of them, are numbers."""


_LARGEST_POWERED = 1e45
"""Below this, the sixth powers in expectations of polynomials are numbers."""


_CANCELLED = 1e-3
"""Where less than this share is left after a row is subtracted, the sum is made again."""


class TargetRefits(NamedTuple):
    """A target, and its values when refitted without parts of the rows; a given target has one, whatever is left out.

    ``values[g, j]`` is the target refitted without part g, at row j; row i belongs to the part ``parts[i]``.
    """

    target: Element
    values: Array
    squared_norms: Array
    parts: Any


def given_target(target: Element, kernel: Kernel, points: Array) -> TargetRefits:
    """A target that does not depend on the rows."""
    check_element("target", target, kernel, points.shape[1], or_else='"gaussian", None or ')
    values = target.values(points)[None, :]
    return TargetRefits(target, values, np.array([target.norm() ** 2]), np.zeros(len(points), dtype=int))


def gaussian_kind(kernel: Kernel, points: Array) -> str:
    """How a kernel has a Gaussian as its target: "gaussian", "gaussian sample", or "none: " and why not."""
    if not kernel.evaluates_new_rows:
        return "none: Gram matrix"
    if _is_affine(kernel):
        return "none: linear kernel"  # the target is the plain average
    exact = kernel.has_gaussian_expectations
    if not exact and not (kernel.is_stationary and points.shape[1] <= _WIDEST):
        return "none: no closed form"
    if not _has_squares(kernel, points):
        return "none: scale"
    return "gaussian" if exact else "gaussian sample"


def _has_squares(kernel: Kernel, points: Array) -> bool:
    """Whether squares of the data, and of its ratio to the bandwidth, neither overflow nor vanish."""
    largest = _LARGEST if kernel.is_stationary else _LARGEST_POWERED
    spread = np.ptp(points, axis=0).max() if np.abs(points).max() < largest else np.inf
    widths = [spread, *(spread / scale for scale in kernel.length_scales)]
    return bool(spread == 0 or all(_SMALLEST < width < _LARGEST for width in widths))


def _is_affine(kernel: Kernel) -> bool:
    forms = [term.polynomial_form for _, term in kernel.terms()]
    return all(form is not None and form[0] == 1 for form in forms)


def _normal(mean: Array, covariance: Array) -> Gaussians:
    return Gaussians(np.ones(1), mean[None, :], covariance[None, :, :])


def oas_amount(n: Any, d: int, trace: Any, squared_norm: Any) -> Any:
    """The OAS amount of shrinkage for n rows in d dimensions, from tr S and ‖S‖² (Chen, Wiesel, Eldar, Hero, 2010)."""
    alpha, squared_mean = squared_norm / d**2, (trace / d) ** 2
    numerator, denominator = alpha + squared_mean, (n + 1) * (alpha - squared_mean / d)
    ratio = np.divide(numerator, denominator, out=np.ones_like(numerator), where=denominator > 0)
    return np.where(d > 1, np.minimum(ratio, 1.0), 0.0)


def fitted_gaussian(points: Array) -> Gaussians:
    """N(x̄, Σ) with the OAS covariance Σ of the rows."""
    n, d = points.shape
    centre = points.mean(axis=0)
    Y = points - centre
    unit = power_of_two_near(float(np.abs(Y).max()))  # so that no square of a square overflows
    Y /= unit
    S = Y.T @ Y / n
    trace = np.trace(S)
    amount = float(oas_amount(n, d, np.asarray(trace), np.asarray(np.vdot(S, S))))
    S *= 1.0 - amount
    S[np.diag_indices(d)] += amount * trace / d
    return _normal(centre, S * unit * unit)


def gaussian_target(kernel: Kernel, points: Array) -> TargetRefits:
    """The Gaussian target of the rows, with its refits."""
    n = len(points)
    target = Element(kernel, fitted_gaussian(points))
    if kernel.gaussian_bandwidth is not None:
        values, squared_norms, inexact = _without_each_row(kernel.gaussian_bandwidth, points)
        parts = np.arange(n)
        again = np.flatnonzero(inexact)
    else:
        parts = _parts(points)
        again = np.unique(parts)
        values, squared_norms = np.empty((len(again), n)), np.empty(len(again))
    rows = Atoms.trusted(points, np.ones(n))
    for part in again:
        P = fitted_gaussian(points[parts != part])
        values[part] = kernel.gaussian_expectations(P, rows)[0]
        squared_norms[part] = kernel.gaussian_expectations(P, P)[0, 0]
    return TargetRefits(target, values, squared_norms, parts)


def sampled_target(kernel: Kernel, points: Array) -> TargetRefits:
    """The same for a kernel without closed form, by a sample of the Gaussian.

    All refits move and stretch the same points, so that they differ by what the rows say, not by chance.
    """
    base, parts = normal_points(points.shape[1]), _parts(points)
    values, squared_norms = np.empty((parts.max() + 1, len(points))), np.empty(parts.max() + 1)
    for part in range(len(values)):
        sample = gaussian_sample(points[parts != part], base)
        values[part] = kernel.evaluate(sample, points).mean(axis=0)
        squared_norms[part] = kernel.evaluate(sample, sample).mean()
    atoms = Atoms.trusted(gaussian_sample(points, base), np.full(SAMPLE, 1.0 / SAMPLE))
    return TargetRefits(Element(kernel, atoms), values, squared_norms, parts)


def normal_points(d: int) -> Array:
    """A quasi-random sample of the standard normal distribution, with the mirror image of every point."""
    from scipy.stats import qmc  # here, for it is slow to import

    half = qmc.MultivariateNormalQMC(np.zeros(d), engine=qmc.Sobol(d, seed=0)).random(SAMPLE // 2)
    return np.concatenate([half, -half])


def gaussian_sample(points: Array, base: Array) -> Array:
    """A sample of N(x̄, Σ), Σ the OAS covariance of the rows: x̄ + Σ^½ z for each z of a standard normal sample."""
    n, d = points.shape
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
    return np.arange(len(points)) if len(points) <= REFITS else _folds(points)


def _folds(points: Array) -> Any:
    """Numbers of parts, at random but the same whatever the order of the rows."""
    shuffled = np.random.default_rng(0).permutation(np.arange(len(points)) % FOLDS)
    parts = np.empty(len(points), dtype=int)
    parts[np.lexsort(points.T[::-1])] = shuffled
    return parts


def _without_each_row(bandwidth: float, points: Array) -> tuple[Array, Array, Any]:
    """Values and squared norms of the n refits for the Gaussian kernel, and which of them rounding has spoilt.

    In the basis of the eigenvectors of S, where row j is z_j, Σ + s²I without row i is diagonal but for a multiple of
    z_i z_iᵀ: Sherman and Morrison invert it, for all pairs by products of matrices, O(n²·min(n, d)) in all.
    """
    n, d = points.shape
    Y = points - points.mean(axis=0)
    unit = power_of_two_near(float(np.abs(Y).max()))
    P, roots, _ = np.linalg.svd(Y / unit, full_matrices=False)
    Z, variances, grown = P * roots, roots**2 / n, n / (n - 1)
    lengths = (Z**2).sum(axis=1)
    traces = grown * (variances.sum() - lengths / (n - 1))
    squares = (variances**2).sum() - 2 * Z**2 @ variances / (n - 1) + (lengths / (n - 1)) ** 2
    inexact = (traces <= _CANCELLED * variances.sum()) | (squares <= _CANCELLED * (variances**2).sum())
    amounts = oas_amount(n - 1, d, traces.clip(0), grown**2 * squares.clip(0))
    ratio = (unit / bandwidth) ** 2
    floor = amounts * traces.clip(0) / d
    smoothed = _Downdates(Z, ratio, grown * np.outer(1 - amounts, variances), floor, (1 - amounts) * grown / (n - 1), d)
    values, left = smoothed.values()
    squared_norms, left_twice = smoothed.squared_norms()
    return values, squared_norms, inexact | (np.minimum(left, left_twice) <= _CANCELLED)


class _Downdates(NamedTuple):
    """The covariances diag(spread_i) + floor_i·I − subtracted_i z_i z_iᵀ in d dimensions, in units of s² / ratio."""

    Z: Array
    ratio: float
    spread: Array
    floor: Array
    subtracted: Array
    d: int

    def values(self) -> tuple[Array, Array]:
        """|I + Σ_i|^(−½) exp(−½ rᵀ(I + Σ_i)⁻¹r), r from the mean without row i to row j; and what subtraction left."""
        n = len(self.Z)
        inverse, own, left, half_log = self._decomposed(1.0)
        inner = (self.Z * inverse) @ self.Z.T
        squares = inverse @ (self.Z**2).T + 2 / (n - 1) * inner + (own / (n - 1) ** 2)[:, None]
        along = inner + (own / (n - 1))[:, None]
        squares += (self.ratio * self.subtracted / left)[:, None] * along**2
        return np.exp(-0.5 * self.ratio * squares - half_log[:, None]), left

    def squared_norms(self) -> tuple[Array, Array]:
        """|I + 2Σ_i|^(−½); and what subtraction left."""
        _, _, left, half_log = self._decomposed(2.0)
        return np.exp(-half_log), left

    def _decomposed(self, times: float) -> tuple[Array, Array, Array, Array]:
        factor = times * self.ratio
        rest = 1.0 + factor * self.floor
        diagonal = rest[:, None] + factor * self.spread
        own = (self.Z**2 / diagonal).sum(axis=1)
        left = np.maximum(1.0 - factor * self.subtracted * own, np.finfo(float).eps)
        flat = (self.d - self.Z.shape[1]) * np.log(rest)
        return 1.0 / diagonal, own, left, 0.5 * (np.log(diagonal).sum(axis=1) + flat + np.log(left))
