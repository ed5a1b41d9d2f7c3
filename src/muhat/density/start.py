"""Starting points of kernel mean matching, and the objective of a kernel and a target element."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from muhat.density.objective import GaussianTerm, Mixture, Objective, PolynomialTerm, Term
from muhat.elements import Element
from muhat.kernels.base import Kernel, linear_terms
from muhat.kernels.dot import polynomial_form
from muhat.kernels.expectations import has_gaussian_expectations
from muhat.linalg.gram import gaussian_bandwidth
from muhat.measures import Atoms, GaussianMixture, Gaussians
from muhat.types import Array

_ONE_THREAD_ROWS = 2000
"""Up to this many rows k-means runs in one thread: on a busy machine the threads wait longer for each other."""


def check_matchable(kernel: Kernel) -> None:
    """Raise a ValueError unless all terms of a resolved kernel are Gaussian, or polynomial of degree 3 at most."""
    if all(_has_term(term) for _, term in linear_terms(kernel)):
        return
    raise ValueError(
        f"kernel={kernel!r} has no closed-form expectation under a Gaussian, which matching needs; use Linear(), "
        f"Polynomial of degree 1 to 3, Gaussian(), or their sums and multiples"
    )


def _has_term(kernel: Kernel) -> bool:
    if polynomial_form(kernel) is not None:
        return has_gaussian_expectations(kernel)
    return gaussian_bandwidth(kernel) is not None


def matching_objective(target: Element) -> Objective:
    """The squared distance of mixtures from the target."""
    check_matchable(target.kernel)
    terms = [(factor, _term(kernel, target)) for factor, kernel in linear_terms(target.kernel)]
    return Objective(terms, target.norm() ** 2)


def kernel_size(kernel: Kernel, unit: float) -> float:
    """How the kernel grows with the scale of the data: for every part its factor at scale 1."""
    return sum(factor * _growth(part, unit) for factor, part in linear_terms(kernel))


def _growth(kernel: Kernel, unit: float) -> float:
    form = polynomial_form(kernel)
    if form is None:
        return 1.0
    p, c = form
    return _power_gain(unit**2, c, p) / _power_gain(1.0, c, p)


def _power_gain(x: float, c: float, p: int) -> float:
    """(x + c)^p − c^p, to the last digits also where x is small."""
    return x * sum((x + c) ** i * c ** (p - 1 - i) for i in range(p))


def _term(kernel: Kernel, target: Element) -> Term:
    atoms = [measure for measure in target.measures if isinstance(measure, Atoms)]
    gaussians = [measure for measure in target.measures if isinstance(measure, Gaussians)]
    form, bandwidth = polynomial_form(kernel), gaussian_bandwidth(kernel)
    if form is not None:
        atoms += [_cubature(measure) for measure in gaussians]
        return PolynomialTerm(*form, *_pooled(atoms, target.n_features))
    assert bandwidth is not None, "checked before"
    term = GaussianTerm(bandwidth, *_pooled(atoms, target.n_features))
    for measure in gaussians:
        for weight, (mean, covariance) in zip(measure.weights, measure.components(), strict=True):
            term.add_gaussian(float(weight), mean, covariance)
    return term


def _pooled(atoms: list[Atoms], d: int) -> tuple[Array, Array]:
    points = np.concatenate([np.empty((0, d)), *(measure.points for measure in atoms)])
    return points, np.concatenate([np.empty(0), *(measure.weights for measure in atoms)])


def _cubature(gaussians: Gaussians) -> Atoms:
    """Atoms θ ± √d·(columns of a root of Σ): the same moments up to order 3, so the same polynomial element."""
    d = gaussians.n_features
    points = []
    for mean, covariance in gaussians.components():
        eigenvalues, eigenvectors = np.linalg.eigh(covariance)
        steps = (np.sqrt(d * eigenvalues.clip(0)) * eigenvectors).T
        points += [mean + steps, mean - steps]
    return Atoms.trusted(np.concatenate(points), np.repeat(gaussians.weights / (2 * d), 2 * d))


def start_mixture(init: Any, X: Array, m: int, spherical: bool, floor: float) -> Mixture:
    """The mixture that ``init`` (a k-means, labels of the rows, or a mixture) describes, variances above ``floor``."""
    if isinstance(init, GaussianMixture):
        if init.means.shape != (m, X.shape[1]):
            raise ValueError(f"init={init!r} must have n_components={m} in {X.shape[1]} dimensions, as X has")
        variances = np.einsum("jkk->jk", init.covariances)
        weights, means = init.weights / init.weights.sum(), init.means
    else:
        weights, means, variances = _cluster_moments(X, _labels(init, X, m), m)
    if spherical:
        variances = np.tile(variances.mean(axis=1, keepdims=True), X.shape[1])
    return Mixture(weights, means, np.maximum(variances, floor))


def _labels(init: Any, X: Array, m: int) -> Any:
    from sklearn.cluster import KMeans  # takes long to import

    if isinstance(init, KMeans) and not hasattr(init, "cluster_centers_"):
        threads = 1 if len(X) <= _ONE_THREAD_ROWS else None
        with threadpool_limits(limits=threads), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # too few distinct rows: the estimator says more
            init = clone(init).fit(X)
    if not hasattr(init, "cluster_centers_"):
        return _check_labels(init, len(X), m)
    if init.cluster_centers_.shape != (m, X.shape[1]):
        shape = init.cluster_centers_.shape
        raise ValueError(f"init has centres of shape {shape} and must have {(m, X.shape[1])}: n_components x columns")
    return cdist(X, init.cluster_centers_, "sqeuclidean").argmin(axis=1)


def _check_labels(init: Any, n: int, m: int) -> Any:
    labels = np.asarray(init)
    if labels.dtype.kind not in "iu" or labels.shape != (n,):
        raise ValueError(
            f"init={init!r} must be a KMeans, a GaussianMixture of this library, or {n} whole numbers, one label a row"
        )
    if labels.min() < 0 or labels.max() >= m:
        raise ValueError(f"init has labels from {labels.min()} to {labels.max()}; they must be 0, …, {m - 1}")
    return labels


def _cluster_moments(X: Array, labels: Any, m: int) -> tuple[Array, Array, Array]:
    """Share, mean and mean squares of each cluster; an empty one has share 0 and the moments of all rows."""
    counts = np.bincount(labels, minlength=m)
    members = [X[labels == j] if counts[j] else X for j in range(m)]
    means = np.stack([rows.mean(axis=0) for rows in members])
    return counts / len(X), means, np.stack([rows.var(axis=0) for rows in members])
