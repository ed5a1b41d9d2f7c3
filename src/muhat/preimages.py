"""Pre-images: rows whose features lie near an element of the space."""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve

from muhat import gram
from muhat.kernels import Gaussian, Kernel
from muhat.types import Array


def ridge_preimages(kernel: Kernel, scores: Array, points: Array, new_scores: Array, alpha: float) -> Array:
    """Kernel ridge regression from the scores of the training rows to the rows themselves."""
    resolved = kernel.resolve(scores)
    K = gram.dense(resolved._gram, scores)
    K[np.diag_indices_from(K)] += alpha
    coefficients = solve(K, points, assume_a="pos", overwrite_a=True)
    return gram.product(resolved._gram, new_scores, scores, coefficients)


def fixed_point_preimages(
    kernel: Gaussian, points: Array, targets: Array, max_iter: int = 100, tol: float = 1e-8
) -> Array:
    """Rows z that maximise ⟨φ(z), Σ γ_i φ(x_i)⟩, γ the rows of ``targets``: z ← Σ γ_i k(z, x_i) x_i / Σ γ_i k(z, x_i).

    Started at the training row where the target is largest. A step that leads nowhere (a vanishing or negative
    denominator) leaves the row where it was.
    """
    start = np.argmax(gram.product(kernel._gram, points, points, np.ascontiguousarray(targets.T)), axis=0)
    rows = points[start].copy()
    moving = np.arange(len(rows))
    tolerance = tol * kernel._width
    for _ in range(max_iter):
        pull = kernel._gram(rows[moving], points) * targets[moving]
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
