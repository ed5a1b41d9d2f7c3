"""Measures that elements of the space integrate the kernel against: weighted points and Gaussian mixtures.

Two kinds suffice: weighted points, and weighted Gaussians. A point is a Gaussian with zero covariance.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.special import logsumexp

from muhat._support.types import Array, RandomState
from muhat._support.validation import check_count, check_rng, check_rows, check_weights

_COVARIANCE_TOLERANCE = 1e-9
"""Asymmetry and negative eigenvalues up to this share of the largest entry are rounding."""


@dataclass(frozen=True, eq=False, init=False)
class Atoms:
    r"""The signed measure :math:`\sum_i w_i \delta_{x_i}`.

    Parameters
    ----------
    points : array of shape (n, d)
        Where the atoms are, one per row.
    weights : array of shape (n,), default 1/n each
        Any finite numbers; they are never normalised.

    See Also
    --------
    GaussianMixture : A distribution with a density.
    embed : The mean element of a measure.

    Examples
    --------
    >>> import muhat as mh
    >>> mh.Atoms([[0.0], [1.0]])
    Atoms(n=2, d=1, total_weight=1)
    """

    points: Array
    weights: Array

    __array_ufunc__ = None  # so that np.float64(2.0) * measure reaches __rmul__

    def __init__(self, points: Any, weights: Any = None) -> None:
        rows = check_rows(points, name="points")
        uniform = np.full(len(rows), 1.0 / len(rows))
        object.__setattr__(self, "points", rows)
        object.__setattr__(
            self, "weights", uniform if weights is None else check_weights("weights", weights, len(rows))
        )

    @classmethod
    def trusted(cls, points: Array, weights: Array) -> Atoms:
        """Atoms of arrays that were checked before; nothing is copied."""
        atoms = object.__new__(cls)
        object.__setattr__(atoms, "points", points)
        object.__setattr__(atoms, "weights", weights)
        return atoms

    @property
    def n_features(self) -> int:
        """Width of the points."""
        return self.points.shape[1]

    def __len__(self) -> int:
        return len(self.points)

    def __rmul__(self, factor: float) -> Atoms:
        return Atoms.trusted(self.points, factor * self.weights)

    def __add__(self, other: Atoms) -> Atoms:
        """The sum of two measures; measures on the same points stay on those points."""
        if not isinstance(other, Atoms):
            return NotImplemented
        if self.points is other.points or np.array_equal(self.points, other.points):
            return Atoms.trusted(self.points, self.weights + other.weights)
        points = np.concatenate([self.points, other.points])
        return Atoms.trusted(points, np.concatenate([self.weights, other.weights]))

    def __repr__(self) -> str:
        return f"Atoms(n={len(self)}, d={self.n_features}, total_weight={self.weights.sum():.4g})"


@dataclass(frozen=True, eq=False, repr=False)
class Gaussians:
    r"""The signed measure :math:`\sum_j w_j N(\theta_j, \Sigma_j)`; the arrays are taken as they are."""

    weights: Array
    means: Array
    covariances: Array

    __array_ufunc__ = None

    @property
    def n_features(self) -> int:
        """Width of the points that the Gaussians describe."""
        return self.means.shape[1]

    def __len__(self) -> int:
        return len(self.means)

    def components(self) -> Iterator[tuple[Array, Array]]:
        """Mean and covariance of each component in turn."""
        return zip(self.means, self.covariances, strict=True)

    def __rmul__(self, factor: float) -> Gaussians:
        return Gaussians(factor * self.weights, self.means, self.covariances)

    def __add__(self, other: Gaussians) -> Gaussians:
        """The sum of two measures; measures on the same components stay on those components."""
        if not isinstance(other, Gaussians):
            return NotImplemented
        if np.array_equal(self.means, other.means) and np.array_equal(self.covariances, other.covariances):
            return Gaussians(self.weights + other.weights, self.means, self.covariances)
        pairs = zip(self._arrays(), other._arrays(), strict=True)
        return Gaussians(*(np.concatenate(pair) for pair in pairs))

    def _arrays(self) -> tuple[Array, Array, Array]:
        return self.weights, self.means, self.covariances

    def __repr__(self) -> str:
        n, d, total = len(self), self.n_features, self.weights.sum()
        return f"{type(self).__name__}(n_components={n}, d={d}, total_weight={total:.4g})"


@dataclass(frozen=True, eq=False)
class FactoredCovariance:
    """The d x d covariance FᵀF + flat²·I by its factor F of shape (r, d): for many columns, and for any scale."""

    factor: Array
    flat: float

    __array_ufunc__ = None  # so that a matrix plus this reaches __radd__

    def dense(self) -> Array:
        """The matrix, written out."""
        return self.factor.T @ self.factor + self.flat**2 * np.eye(self.factor.shape[1])

    def __add__(self, other: FactoredCovariance | Array) -> FactoredCovariance | Array:
        if not isinstance(other, FactoredCovariance):
            return self.dense() + other
        return FactoredCovariance(np.vstack([self.factor, other.factor]), float(np.hypot(self.flat, other.flat)))

    __radd__ = __add__

    def smoothed(self, offsets: Array, s: float) -> Array:
        """|I + Σ/s²|^(−½) exp(−½ rᵀ(Σ + s²I)⁻¹r) for each offset r, by an r x r matrix (Woodbury)."""
        F, R = self.factor / s, offsets / s
        floor = 1.0 + (self.flat / s) ** 2
        root = cholesky(F @ F.T + floor * np.eye(len(F)), lower=True)
        inside = solve_triangular(root, F @ R.T, lower=True)
        with np.errstate(over="ignore", invalid="ignore"):
            squares = ((R**2).sum(axis=1) - (inside**2).sum(axis=0)).clip(0) / floor
        half_log = np.log(np.diag(root)).sum() + 0.5 * (F.shape[1] - len(F)) * np.log(floor)
        return np.exp(-0.5 * np.where(np.isnan(squares), np.inf, squares) - half_log)


class FactoredGaussian(Gaussians):
    """A multiple of one Gaussian with a factored covariance; ``covariances`` is written out only where it is asked for.

    ``weights`` have the shape (1,) and ``means`` (1, d).
    """

    covariance: FactoredCovariance

    def __init__(self, weights: Array, means: Array, covariance: FactoredCovariance) -> None:
        for name, value in {"weights": weights, "means": means, "covariance": covariance}.items():
            object.__setattr__(self, name, value)

    @cached_property
    def covariances(self) -> Array:
        """The covariance of shape (1, d, d)."""
        return self.covariance.dense()[None]

    def components(self) -> Iterator[tuple[Array, Any]]:
        return iter([(self.means[0], self.covariance)])

    def __rmul__(self, factor: float) -> FactoredGaussian:
        return FactoredGaussian(factor * self.weights, self.means, self.covariance)


@dataclass(frozen=True, eq=False, repr=False)
class GaussianMixture(Gaussians):
    r"""The probability distribution :math:`\sum_j \pi_j N(\theta_j, \Sigma_j)`.

    Parameters
    ----------
    weights : array of shape (k,)
        Non-negative, sum 1.
    means : array of shape (k, d)
        The means of the components, one per row.
    covariances : array of shape (k, d, d), (k, d) or (k,)
        Full, diagonal or spherical; positive semi-definite, singular ones allowed.

    See Also
    --------
    Atoms : A weighted sample.
    paper_mixture : A random mixture of the paper.
    MatchedGaussianMixture : A mixture fitted to rows.

    Examples
    --------
    >>> import muhat as mh
    >>> P = mh.GaussianMixture([0.5, 0.5], [[0.0, 0.0], [3.0, 0.0]], [1.0, 0.25])
    >>> P
    GaussianMixture(n_components=2, d=2, total_weight=1)
    >>> P.sample(3, random_state=0).shape
    (3, 2)
    """

    def __post_init__(self) -> None:
        means = check_rows(self.means, name="means")
        weights = check_weights("weights", self.weights, len(means))
        if (weights < 0).any() or abs(weights.sum() - 1) > 1e-8:
            raise ValueError(f"weights={weights} must be non-negative and sum to 1; divide them by their sum")
        object.__setattr__(self, "means", means)
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "covariances", _full_covariances(self.covariances, *means.shape))

    def sample(self, n: int, random_state: RandomState = None) -> Array:
        """Draw ``n`` independent rows, an array of shape (n, d); the same ``random_state`` draws the same rows."""
        rng = check_rng(random_state)
        chosen = rng.choice(len(self), size=check_count("n", n), p=self.weights / self.weights.sum())
        noise = rng.standard_normal((n, self.n_features))
        X = np.empty_like(noise)
        for j, (mean, covariance) in enumerate(self.components()):
            eigenvalues, eigenvectors = np.linalg.eigh(covariance)
            root = (eigenvectors * np.sqrt(eigenvalues.clip(0))) @ eigenvectors.T  # unique, unlike the eigenvectors
            X[chosen == j] = mean + noise[chosen == j] @ root
        return X

    def log_density(self, X: Any) -> Array:
        """Compute the logarithm of the density at the rows of X."""
        X = check_rows(X)
        if X.shape[1] != self.n_features:
            raise ValueError(
                f"X has {X.shape[1]} columns and the mixture has {self.n_features}; pass rows with the same columns"
            )
        logs = np.column_stack([_log_normal(X, *component) for component in self.components()])
        return logsumexp(logs, axis=1, b=self.weights)


def _full_covariances(covariances: Any, k: int, d: int) -> Array:
    covariances = np.asarray(covariances, dtype=np.float64)
    if not np.isfinite(covariances).all():
        raise ValueError("covariances must be finite; remove NaN and infinity")
    if covariances.shape == (k,):
        covariances = covariances[:, None] * np.ones(d)
    if covariances.shape == (k, d):
        covariances = covariances[:, :, None] * np.eye(d)
    if covariances.shape != (k, d, d):
        raise ValueError(
            f"covariances have shape {covariances.shape}; with means of shape {(k, d)} they must have shape "
            f"{(k, d, d)} (full), {(k, d)} (diagonal) or {(k,)} (spherical)"
        )
    for j, covariance in enumerate(covariances):
        tolerance = _COVARIANCE_TOLERANCE * max(np.abs(covariance).max(), 1e-300)
        asymmetric = np.abs(covariance - covariance.T).max() > tolerance
        if asymmetric or np.linalg.eigvalsh(covariance).min() < -d * tolerance:
            raise ValueError(f"covariances[{j}] must be symmetric and positive semi-definite")
    return covariances


def _log_normal(X: Array, mean: Array, covariance: Array) -> Array:
    try:
        root = cholesky(covariance, lower=True)
    except LinAlgError as error:
        raise ValueError(
            "a component has a singular covariance and therefore no density; add noise to its diagonal first"
        ) from error
    standardised = solve_triangular(root, (X - mean).T, lower=True)
    constant = np.log(np.diag(root)).sum() + 0.5 * len(mean) * np.log(2 * np.pi)
    return -0.5 * (standardised**2).sum(axis=0) - constant
