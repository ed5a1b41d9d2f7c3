"""Shrinkage targets of a kernel mean: a Gaussian fitted to the rows or a given element, with its leave-one-out fits.

The Gaussian is fitted to the rows, so that leave-one-out has to fit it again without each row, or each part of them.
Where a radial kernel has no closed-form expectation under it, a sample of the Gaussian stands for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from muhat._support.types import Array
from muhat.kernels.base import Kernel, linear_terms
from muhat.kernels.capabilities import gaussian_bandwidth, is_stationary, length_scales
from muhat.kernels.dot import polynomial_form
from muhat.kernels.expectations import has_gaussian_expectations
from muhat.kernels.foreign import evaluates_new_rows
from muhat.linalg.blocks import random_folds
from muhat.rkhs.elements import Element, check_element
from muhat.rkhs.measures import Atoms
from muhat.rkhs.oas_gaussian import (
    LARGEST,
    SAMPLE_POINTS,
    SMALLEST,
    FittedGaussian,
    LooEmbeddings,
    LooSample,
    SampledFit,
    normal_points,
)

MAX_ROWS_LEFT_OUT_ONE_BY_ONE = 3000
"""Up to this many rows the Gaussian kernel's target is fitted without each row, whose values are an n x n array."""

PARTS_LEFT_OUT = 20
"""Parts of the rows that are left out one after the other for other kernels, and where rows are many."""

MAX_COLUMNS_FOR_MOMENTS = 300
"""Polynomial kernels have a target up to this many columns: their expectations need the d x d covariance."""

_MAX_COLUMNS_OF_SOBOL = 21_201
"""Sobol's sequence has this many dimensions."""

_LARGEST_NUMBER = 1e300
"""Sums of a few numbers of this size do not overflow; squares are taken in units."""

_LARGEST_POWERED = 1e45
"""Below this, the sixth powers in expectations of polynomials do not overflow."""


class TargetKind(Enum):
    """Kind of target, or the reason why there is none; the value is shown as ``target_kind_``."""

    GAUSSIAN = "gaussian"
    SAMPLE = "gaussian sample"
    GIVEN = "given"
    NONE = "none"
    GRAM_MATRIX = "none: Gram matrix"
    FEATURES = "none: features"
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
    without_parts: Callable[[], tuple[Array, Array]]
    """Values [g, j] at row j of the target fitted without part g, and squared norms of these targets, when called."""


def given_target(target: Element, kernel: Kernel, points: Array) -> LooTarget:
    """A target that does not depend on the rows."""
    check_element("target", target, kernel, points.shape[1], or_else='"gaussian", None or ')
    at_rows, square = target.values(points), target.norm() ** 2
    return LooTarget(
        at_rows, square, at_rows, np.zeros(len(points), dtype=int), lambda: (at_rows[None, :], np.array([square]))
    )


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


def gaussian_target(kernel: Kernel, points: Array) -> LooTarget:
    """The Gaussian fitted to the rows as a target, for a kernel with closed-form expectations under Gaussians.

    Under a Gaussian kernel it is fitted without each of up to 3,000 rows, by rank-one changes of its covariance; rows
    for which these are inexact are left out by a fit of their own.
    """
    bandwidth = gaussian_bandwidth(kernel)
    if bandwidth is None or len(points) > MAX_ROWS_LEFT_OUT_ONE_BY_ONE:
        return _target_by_parts(kernel, points)
    embeddings = LooEmbeddings(points, bandwidth)

    def element_without(i: int) -> Element:
        return gaussian_element(kernel, np.delete(points, i, axis=0))

    def without_rows() -> tuple[Array, Array]:
        values, squared_norms, inexact = embeddings.values()
        for i in np.flatnonzero(inexact).tolist():
            f = element_without(i)
            values[i], squared_norms[i] = f.values(points), f.norm() ** 2
        return values, squared_norms

    at_rows, squared_norm, own, inexact = embeddings.needed()
    for i in np.flatnonzero(inexact).tolist():
        own[i] = element_without(i).values(points[i : i + 1])[0]
    return LooTarget(at_rows, squared_norm, own, np.arange(len(points)), without_rows)


def _target_by_parts(kernel: Kernel, rows: Array) -> LooTarget:
    """The Gaussian fitted to the rows as a target, and fitted again without each part of them."""
    parts = random_folds(rows, PARTS_LEFT_OUT)
    whole, own, every = gaussian_element(kernel, rows), np.empty(len(rows)), range(int(parts.max()) + 1)
    for part in every:
        own[parts == part] = gaussian_element(kernel, rows[parts != part]).values(rows[parts == part])

    def without_parts() -> tuple[Array, Array]:
        fits = [gaussian_element(kernel, rows[parts != part]) for part in every]
        return np.array([fit.values(rows) for fit in fits]), np.array([fit.norm() ** 2 for fit in fits])

    return LooTarget(whole.values(rows), whole.norm() ** 2, own, parts, without_parts)


def sampled_target(kernel: Kernel, points: Array) -> LooTarget:
    """A sample of the Gaussian fitted to the rows as a target, for a kernel without closed form.

    All fits move and stretch the same points, so that they differ by what the rows say, not by chance.
    """
    parts = random_folds(points, PARTS_LEFT_OUT)
    sample, every = LooSample(kernel, points), np.arange(len(points))
    whole = sample.fitted(every)
    members = [np.flatnonzero(parts == part) for part in range(int(parts.max()) + 1)]
    own = np.empty(len(points))

    def without_each() -> list[SampledFit]:
        return [sample.fitted(parts != part) for part in range(len(members))]

    def without_parts() -> tuple[Array, Array]:
        fits = without_each()
        values = [sample.values([fit], [every]) for fit in fits]
        return np.array(values), np.array([sample.squared_norm(fit) for fit in fits])

    own[np.concatenate(members)] = sample.values(without_each(), members)
    return LooTarget(sample.values([whole], [every]), sample.squared_norm(whole), own, parts, without_parts)
