"""Ridge regression whose noise depends on the size of a bag, with its leave-one-out predictions in closed form."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from muhat._support.types import Array
from muhat.linalg.spectrum import thin_svd

LAMBDAS = 10.0 ** np.arange(-9.0, 3.1, 0.25)
"""Values of λ that are tried, in units of the summed squared lengths of the (weighted, centred) vectors."""

LARGEST_SIGNAL = 100.0
"""Mean squared length over the smallest λ: with fewer than some fifty bags the likelihood cannot tell larger ratios
from interpolation, and with more of them the ratios that it chooses are smaller."""

EXCESSES, KNEES = np.array(
    [(0.0, 1.0), *product((0.3, 1, 3, 10, 30, 100, 300, 1000, 3000), (1.0, 3, 10, 30, 100, 300))]
).T
"""Pairs of excess c and knee n_0 of the noise that are tried: no excess, and steps of half a decade."""

ROUNDS = 3
"""How often noise and coefficients are fitted in turn; they settle after two."""


class SizeNoise(NamedTuple):
    r"""The variance of y about the regression, :math:`\sigma^2 (1 + c/(1 + n/n_0))` for a bag of n rows.

    It is :math:`\sigma^2 + \langle\theta, V_n\theta\rangle`, V_n the covariance of the mean of a bag of n rows given
    its rows, where B is a multiple of W along θ: :math:`V_n = B(1 + n/n_0)^{-1}`.
    """

    excess: Any = 0.0  # c
    knee: Any = 1.0  # n_0

    def __call__(self, sizes: NDArray[np.number]) -> Array:
        """The variance for each size, in units of σ²."""
        return np.asarray(1.0 + self.excess / (1.0 + np.asarray(sizes, dtype=np.float64) / self.knee))

    @classmethod
    def of(cls, residuals: Array, sizes: NDArray[np.number], weights: Array) -> SizeNoise:
        """The likeliest, from leave-one-out residuals; without an excess where none helps."""
        variances = cls(EXCESSES[:, None], KNEES[:, None])(sizes)  # of all candidates at once
        shares = weights / weights.sum()
        costs = np.log((np.square(residuals) / variances) @ shares) + np.log(variances) @ shares
        best = int(np.argmin(costs))
        return cls(float(EXCESSES[best]), float(KNEES[best]))


@dataclass(frozen=True, eq=False)
class WeightedRidge:
    r"""Coefficients that minimise :math:`\sum_i w_i (y_i - b - \langle\theta, z_i\rangle)^2/s_i + \lambda\|\theta\|^2`.

    s_i is the noise of bag i and w_i its weight. With the hat matrix H, the residual without bag i is
    :math:`r_i/(1 - H_{ii})` and its variance :math:`\tau^2 s_i/(w_i(1 - H_{ii}))`, :math:`\tau^2` the mean of
    :math:`w_i r_i^2/(s_i(1 - H_{ii}))`. So every λ has its leave-one-out log-likelihood from one decomposition.
    """

    noise: SizeNoise
    lam: float
    scale: float  # τ²
    score: float  # the mean negative log-likelihood of each y without its bag
    residuals: Array  # of each bag, when left out
    centre: Array
    intercept: float
    axes: Array  # (k, p): right singular vectors of the vectors
    squares: Array  # (k,): squared singular values
    coefficients: Array  # (p,)
    total_weight: float

    @classmethod
    def fit(cls, Z: Array, y: Array, sizes: NDArray[np.number], weights: Array, noise: SizeNoise) -> WeightedRidge:
        """The fit with the λ of the largest leave-one-out likelihood."""
        # With root precisions p_i^½ = (w_i/s_i)^½, the centred problem is an ordinary ridge regression of p^½(y − ȳ) on
        # p^½(Z − z̄) = U diag(σ) Vᵀ, and H = p^½(p^½)ᵀ/Σp + U diag(σ²/(σ² + λ)) Uᵀ: its diagonal for all λ at once.
        precision = weights / noise(sizes)
        total = float(precision.sum())
        centre, intercept = precision @ Z / total, float(precision @ y / total)
        root = np.sqrt(precision)
        target = root * (y - intercept)
        U, singular, axes = thin_svd(root[:, None] * (Z - centre))
        squares = singular**2
        unit = squares.sum() if squares.sum() > 0 else 1.0
        lams = LAMBDAS[1.0 / (LARGEST_SIGNAL * len(Z)) <= LAMBDAS] * unit
        kept = squares[:, None] / (squares[:, None] + lams)
        projected = U.T @ target
        left = 1.0 - (precision / total)[:, None] - np.square(U) @ kept
        left = np.maximum(left, _SMALLEST_SHARE)
        errors = target[:, None] - U @ (kept * projected[:, None])
        shares = weights / weights.sum()
        scales = shares @ (np.square(errors) / left)
        scores = 0.5 * (np.log(np.maximum(scales, _TINY)) - shares @ np.log(precision[:, None] * left))
        k = int(np.argmin(scores))
        return cls(
            noise,
            float(lams[k]),
            float(scales[k]),
            float(scores[k] + 0.5 * np.log(2.0 * np.pi * np.e)),
            errors[:, k] / left[:, k] / root,
            centre,
            intercept,
            axes,
            squares,
            axes.T @ (singular * projected / (squares + lams[k])),
            total,
        )

    def predict(self, Z: Array) -> Array:
        """Means."""
        return self.intercept + (Z - self.centre) @ self.coefficients

    def variances(self, Z: Array, sizes: NDArray[np.number], outside: Array) -> Array:
        """Of a new y; ``outside`` is the squared part of each vector that the features of level 2 miss."""
        along = np.square((Z - self.centre) @ self.axes.T)
        known = (along / (self.squares + self.lam)).sum(axis=1)
        rest = np.square(Z - self.centre).sum(axis=1) - along.sum(axis=1)  # in directions that no bag has
        unknown = (np.maximum(rest, 0.0) + outside) / self.lam
        return self.scale * (self.noise(sizes) + 1.0 / self.total_weight + known + unknown)


_SMALLEST_SHARE = 1e-10
"""1 − H_ii of a bag that alone determines its own prediction."""

_TINY = 1e-300  # whose logarithm is finite


class BagVectors(NamedTuple):
    """Bags as the three learners see them."""

    means: Array  # vectors of pooled means, for the ridge
    outside: Array  # the squared part of those that the features of level 2 miss
    components: Array  # principal components of the pooled means
    summaries: Array  # not standardised
    sizes: NDArray[Any]

    def part(self, chosen: Any) -> BagVectors:
        """Some of the bags."""
        return BagVectors(*(each[chosen] for each in self))


class RidgeLearner(NamedTuple):
    """Ridge regressions of all outputs on the same vectors, of kernel means or of summaries."""

    Z: Array  # vectors of the training bags
    ridges: list[WeightedRidge]

    @property
    def score(self) -> float:
        """Negative leave-one-out log-likelihood, summed over outputs."""
        return sum(each.score for each in self.ridges)

    def without(self, out: NDArray[np.bool_], targets: Array, sizes: NDArray[Any], weights: Array) -> RidgeLearner:
        """The learner that has not seen some of the bags, with the noise by size that was found."""
        kept = ~out
        ridges = [
            WeightedRidge.fit(self.Z[kept], y, sizes[kept], weights[kept], ridge.noise)
            for y, ridge in zip(targets[kept].T, self.ridges, strict=True)
        ]
        return RidgeLearner(self.Z[kept], ridges)

    def predict(self, Z: Array) -> Array:
        """Means, of shape (n, outputs)."""
        return np.column_stack([ridge.predict(Z) for ridge in self.ridges])

    def variances(self, Z: Array, sizes: NDArray[Any], outside: Array) -> Array:
        """Of new targets, of shape (n, outputs)."""
        return np.column_stack([ridge.variances(Z, sizes, outside) for ridge in self.ridges])


def fit_ridges(Z: Array, targets: Array, sizes: NDArray[Any], weights: Array) -> RidgeLearner:
    """One ridge regression for each column of targets: noise and coefficients in turn, from equal noise."""
    ridges = []
    for y in targets.T:
        fitted = WeightedRidge.fit(Z, y, sizes, weights, SizeNoise())
        for _ in range(ROUNDS):
            noise = SizeNoise.of(fitted.residuals, sizes, weights)
            if noise == fitted.noise:
                break
            fitted = WeightedRidge.fit(Z, y, sizes, weights, noise)
        ridges.append(fitted)
    return RidgeLearner(Z, ridges)
