"""Pre-images: rows whose features lie near an element of the space."""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve

from muhat.kernels.base import Kernel
from muhat.kernels.radial import Gaussian
from muhat.linalg import gram
from muhat.linalg.blocks import blocks
from muhat.linalg.distances import power_of_two_near
from muhat.types import Array

_CELLS = 2**20  # numbers of a block: 8 MB


def ridge_preimages(kernel: Kernel, scores: Array, points: Array, new_scores: Array, ridge: float) -> Array:
    """Kernel ridge regression from the scores of the training rows to the rows themselves."""
    resolved = kernel.resolve(scores)
    K = gram.dense(resolved, scores)
    K[np.diag_indices_from(K)] += ridge
    unit = power_of_two_near(float(np.abs(points).max()))  # sums of rows over it do not overflow
    coefficients = solve(K, points / unit, assume_a="pos", overwrite_a=True)
    return _times(gram.product(resolved, new_scores, scores, coefficients), unit)


def _times(rows: Array, unit: float) -> Array:
    """Rows times a unit, or the largest number where that overflows."""
    largest = np.finfo(np.float64).max / max(unit, 1.0)
    return np.asarray(np.clip(rows, -largest, largest) * unit)


def fixed_point_preimages(bandwidth: float, points: Array, scores: Array, functions: Array) -> Array:
    """Rows z that maximise f(z) for f = Σ scoreⱼ fⱼ and a Gaussian kernel, one for each row of ``scores``.

    Column j of ``functions`` holds the coefficients of fⱼ at φ(xᵢ). The iteration starts at the training row where f is
    largest; scores are taken a block at a time, to bound the memory.
    """
    unit = power_of_two_near(float(np.abs(points).max()))
    kernel, points = Gaussian(bandwidth / unit), points / unit
    values = gram.product(kernel, points, points, functions)
    parts = [scores[rows] for rows in blocks(len(scores), max(_CELLS // len(points), 1))]
    starts = (points[np.argmax(part @ values.T, axis=1)] for part in parts)
    found = [_climb(kernel, points, part @ functions.T, rows) for part, rows in zip(parts, starts, strict=True)]
    return _times(np.concatenate(found), unit)


def _climb(
    kernel: Gaussian, points: Array, targets: Array, rows: Array, max_iter: int = 100, tol: float = 1e-8
) -> Array:
    """Iterate z ← Σ γᵢ k(z, xᵢ) xᵢ / Σ γᵢ k(z, xᵢ) on the given rows z, in place, γ the rows of ``targets``.

    A step that leads nowhere (a vanishing or negative denominator) leaves the row where it was.
    """
    moving = np.arange(len(rows))
    tolerance = tol * kernel.width
    for _ in range(max_iter):
        pull = kernel.evaluate(rows[moving], points) * targets[moving]
        total = pull.sum(axis=1)
        usable = total > np.finfo(float).eps * np.abs(pull).sum(axis=1)
        moving, pull, total = moving[usable], pull[usable], total[usable]
        moved = pull @ points / total[:, None]
        far = np.abs(moved - rows[moving]).max(axis=1, initial=0.0) > tolerance
        rows[moving] = moved
        moving = moving[far]
        if not len(moving):
            break
    return rows
