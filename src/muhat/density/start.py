"""Starting points of kernel mean matching: the mixture of a k-means, of labels or of a given mixture."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from muhat._support.types import Array
from muhat.density.objective import Mixture
from muhat.rkhs.measures import GaussianMixture

_ONE_THREAD_ROWS = 2000
"""Up to this many rows k-means runs in one thread: on a busy machine the threads wait longer for each other."""


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
            f"init={init!r} must be a KMeans, a GaussianMixture of this library, or {n} whole numbers, one label per "
            f"row"
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
