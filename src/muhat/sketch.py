"""Kernel means in one pass: sums of features, which add up over blocks, files and machines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from sklearn.utils.validation import check_is_fitted

from muhat.distances import power_of_two_near
from muhat.elements import Element
from muhat.features import BaseFeatures, Fourier, Nystroem, decode_kernel, encode_kernel
from muhat.measures import Atoms
from muhat.refits import RefitMeans, TikhonovRefits, plain_refit_means
from muhat.selection import DeletionScore, Theorem4Score
from muhat.spectrum import Spectrum
from muhat.types import Array
from muhat.validation import check_count, check_number, check_rows

Lam = float | Literal["loo", "theorem4"]
Scale = float | Literal["loo"]

_ROWS, _CELLS = 4096, 2**20  # rows, and numbers, that are read at a time


@dataclass(frozen=True, eq=False)
class FeatureSpectrum(Spectrum):
    """Spectrum of ZZᵀ / unit from ZᵀZ; ``eigenvectors`` are known on some rows only, with their repetitions beside."""

    total_rows: float = 0.0
    projected_ones: Array = None  # type: ignore[assignment]

    @property
    def n(self) -> float:
        return self.total_rows

    @cached_property
    def ones(self) -> Array:
        return self.projected_ones

    @property
    def shares(self) -> Array:
        """Weights of the known rows in an average."""
        return self.repetitions / self.repetitions.sum()

    @property
    def mean_diag(self) -> float:
        return float(self.shares @ self.diagonal)


class FeatureRefits(TikhonovRefits):
    """F-KMSE without row i, O(rows·r) for each λ: what of a row lies outside of the r eigenvectors has e = 1."""

    spectrum: FeatureSpectrum

    def means(self, lams: Array) -> RefitMeans:
        sp, n = self.spectrum, self.spectrum.n
        g, ones = sp.eigenvalues[:, None], sp.ones[:, None]
        e, s = lams / (g + lams), g / (g + lams)
        linear = sp.eigenvectors @ np.hstack([e * ones, g * s * ones, g * e * s * ones])
        quadratic = sp.squared_eigenvectors @ np.hstack([e, g * e, g * e**2])
        (W, Kb, V), (H, D1, D2) = np.split(linear, 3, axis=1), np.split(quadratic, 3, axis=1)
        outside = 1.0 - sp.eigenvectors @ ones, (1.0 - sp.squared_eigenvectors.sum(axis=1, keepdims=True)).clip(0)
        t = (W + outside[0]) / (H + outside[1])
        diagonal = sp.diagonal[:, None]
        cross = sp.shares @ (Kb - diagonal + t * D1)
        square = sp.shares @ (diagonal + t**2 * D2 - 2 * Kb + 2 * t * V - 2 * t * D1)
        return RefitMeans(cross / (n - 1), ((g * (s * ones) ** 2).sum(axis=0) + square) / (n - 1) ** 2)


class SampledDeletionScore(DeletionScore):
    """True deletion scored on the rows that are known; the limits of λ too, so that one sample compares them all."""

    spectrum: FeatureSpectrum

    def _plain_means(self) -> RefitMeans:
        sp, n = self.spectrum, self.spectrum.n
        at_rows = float(sp.shares @ (sp.eigenvectors @ (sp.eigenvalues * sp.ones)))
        square = n**2 * sp.mean_gram - 2.0 * at_rows + sp.mean_diag
        return RefitMeans(np.array((at_rows - sp.mean_diag) / (n - 1)), np.array(square / (n - 1) ** 2))


class MeanChoice(NamedTuple):
    """How a mean is shrunk: ``scale`` times F-KMSE with ``lam``, and its ``score``, None where it is unknown."""

    lam: float
    scale: float
    score: float | None


@dataclass(frozen=True, eq=False)
class FeatureSums:
    """What a mean needs of the rows: n, Zᵀ1, tr ZᵀZ and, for spectral shrinkage, ZᵀZ."""

    n: int
    total: Array
    squares: float
    moment: Array | None = None

    def plus(self, other: FeatureSums, sign: int = 1) -> FeatureSums:
        """The sums of both, or of the difference; without a row they are exactly 0."""
        n = self.n + sign * other.n
        if n == 0:
            return FeatureSums(0, 0.0 * self.total, 0.0, None if self.moment is None else 0.0 * self.moment)
        moment = None if self.moment is None or other.moment is None else self.moment + sign * other.moment
        return FeatureSums(n, self.total + sign * other.total, self.squares + sign * other.squares, moment)

    @cached_property
    def _eigen(self) -> tuple[float, Array, Array]:
        """Unit, eigenvalues in that unit and eigenvectors of ZᵀZ, those below rounding left out."""
        if self.moment is None:
            raise ValueError("lam needs the matrix ZᵀZ: make the sketch with second_moment=True, or take lam=0.0")
        unit = power_of_two_near(self.squares / self.n)
        g, V = eigh(self.moment / unit, driver="evd", check_finite=False)
        kept = g > len(g) * np.finfo(np.float64).eps * g[-1:]
        return unit, g[kept], V[:, kept]

    def spectrum(self, Z: Array | None = None, counts: Array | None = None) -> FeatureSpectrum:
        """Spectrum of the Gram matrix of all rows, whose eigenvectors are known on the rows of Z."""
        unit, g, V = self._eigen
        root = V / np.sqrt(unit * g)
        U = np.empty((1, len(g))) if Z is None else Z @ root
        diagonal = np.array([self.squares / self.n]) if Z is None else np.einsum("ij,ij->i", Z, Z)
        return FeatureSpectrum(g, U, diagonal / unit, unit, counts, float(self.n), root.T @ self.total)

    def choose(self, lam: Lam, scale: Scale, Z: Array | None = None, counts: Array | None = None) -> MeanChoice:
        """Find λ and the scale; deletion is scored on the rows of Z."""
        searched = isinstance(lam, str) and lam in ("loo", "theorem4")
        value = None if searched else check_number("lam", lam, low=0, finite=False, or_else='"loo" or "theorem4"')
        c = None if isinstance(scale, str) and scale == "loo" else check_number("scale", scale, low=0, or_else='"loo"')
        if lam == "theorem4" and c != 1.0:
            raise ValueError(f'scale={scale!r}: lam="theorem4" scores the estimate as it is; use scale=1.0, or lam="loo"')
        if self.n < 2 and (searched or c is None):
            raise ValueError(f"lam={lam!r}, scale={scale!r}: a choice by the data needs 2 rows, and there are {self.n}")
        if value == 0.0 or value == np.inf or self.squares == 0.0:
            return self._limit(0.0 if value is None else value, c)
        if lam == "theorem4":
            found = Theorem4Score(self.spectrum()).search()
            return MeanChoice(found.lam, 1.0, found.score)
        if Z is None and (searched or c is None):
            raise ValueError('"loo" scores single rows: make the sketch with reservoir=1000, or take lam="theorem4"')
        if Z is None or self.n < 2:
            return MeanChoice(float(value), float(c), None)  # type: ignore[arg-type]
        spectrum = self.spectrum(Z, counts)
        score = SampledDeletionScore(spectrum, FeatureRefits(spectrum), c)
        value, best, _ = score.search() if value is None else (value, float(score.at(value)[0]), None)
        return MeanChoice(value, score.best_scale(value) if c is None else c, best)

    def _limit(self, lam: float, scale: float | None) -> MeanChoice:
        """The plain average, simple shrinkage or zero: no spectrum is needed."""
        mean_diag = self.squares / self.n
        if lam == np.inf or self.n < 2:
            return MeanChoice(lam, 1.0 if scale is None else scale, None if self.n < 2 else mean_diag)
        means = plain_refit_means(self.n, mean_diag, float(self.total @ self.total) / self.n**2)
        scale = float(means.best_scale()) if scale is None else scale
        return MeanChoice(lam, scale, float(means.scores(mean_diag, scale)))

    def coefficients(self, choice: MeanChoice) -> Array:
        """The mean in features: w = c·ZᵀZ(ZᵀZ + λI)⁻¹ z̄."""
        mean = choice.scale * self.total / self.n
        if choice.lam == 0 or choice.lam == np.inf:
            return mean if choice.lam == 0 else 0.0 * mean
        unit, g, V = self._eigen
        return V @ (g / (g + choice.lam / unit) * (V.T @ mean))


class FeatureMean(NamedTuple):
    """A mean of rows of features: weights β of the rows, w = Zᵀβ, and how it was shrunk."""

    weights: Array
    coefficients: Array
    lam: float
    scale: float
    score: float | None


def feature_mean(Z: Any, lam: Lam = "loo", scale: Scale = 1.0) -> FeatureMean:
    r"""Shrunken mean of the rows of a feature matrix, as from the Gram matrix ZZᵀ, in O(n r²).

    :math:`w = c\, Z^\top Z (Z^\top Z + \lambda I)^{-1} \bar z`, with row weights
    :math:`\beta = c\, Z (Z^\top Z + \lambda I)^{-1} \bar z`.

    Parameters
    ----------
    Z : array of shape (n, r)
    lam : "loo", "theorem4" or float in [0, inf], default "loo"
        As in :class:`SpectralKernelMean`; 0 is the plain average.
    scale : float >= 0 or "loo", default 1.0
        The constant c; ``lam=0.0, scale="loo"`` is simple shrinkage (S-KMSE) by 1 − c.

    Examples
    --------
    >>> import numpy as np
    >>> from muhat.sketch import feature_mean
    >>> Z = np.random.default_rng(0).normal(size=(1000, 3)) + [1.0, 0.1, 0.0]
    >>> feature_mean(Z, lam=0.0, scale="loo").coefficients.round(3)
    array([ 0.968,  0.109, -0.028])
    """
    Z = check_rows(Z, name="Z", min_rows=2)
    sums = _checked(FeatureSums(len(Z), Z.sum(axis=0), float(np.vdot(Z, Z)), Z.T @ Z))
    choice = sums.choose(lam, scale, Z)
    weights = np.full(len(Z), choice.scale / len(Z) if choice.lam == 0 else 0.0)
    if 0 < choice.lam < np.inf:
        spectrum = sums.spectrum(Z)
        g = spectrum.eigenvalues
        weights = choice.scale * spectrum.weights(g / (g + choice.lam / spectrum.unit))
    return FeatureMean(weights, sums.coefficients(choice), *choice)


def _checked(sums: FeatureSums) -> FeatureSums:
    if not np.isfinite(sums.squares * max(sums.n, 1)):
        raise ValueError("the features overflow on these rows; rescale them first")
    return sums


def _row_keys(rows: Array, seed: int) -> NDArray[np.uint64]:
    """A random number for each row that depends on its content and the seed alone (splitmix64)."""
    keys = np.full(len(rows), seed, dtype=np.uint64)
    for column in rows.T:
        keys ^= np.ascontiguousarray(column).view(np.uint64)
        keys += np.uint64(0x9E3779B97F4A7C15)
        keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        keys ^= keys >> np.uint64(31)
    return keys


@dataclass(frozen=True, eq=False)
class Reservoir:
    """The different rows with the smallest keys and how often each was seen: whatever the order, the same sample."""

    capacity: int
    rows: Array
    keys: NDArray[np.uint64]
    counts: NDArray[np.int64]
    limit: np.uint64 = np.uint64(2**64 - 1)  # rows with this key or a larger one have left, or never came

    def seen(self, rows: Array, seed: int) -> Reservoir:
        """The rows that may stay here, as a reservoir of their own."""
        rows = rows + 0.0  # −0.0 and 0.0 are one row
        keys = _row_keys(rows, seed)
        stay = keys < self.limit
        return Reservoir(len(rows), rows[stay], keys[stay], np.ones(int(stay.sum()), dtype=np.int64), self.limit)

    def plus(self, other: Reservoir, sign: int = 1) -> Reservoir:
        """Both together, or one without the other; more copies than are here cannot be taken away."""
        limit = min(self.limit, other.limit)
        rows, keys = np.concatenate([self.rows, other.rows]), np.concatenate([self.keys, other.keys])
        counts = np.concatenate([self.counts, sign * other.counts])
        order = np.lexsort((*rows.T, keys))
        order = order[keys[order] < limit]
        rows, keys, counts = rows[order], keys[order], counts[order]
        first = np.ones(len(rows), dtype=bool)
        first[1:] = (keys[1:] != keys[:-1]) | (rows[1:] != rows[:-1]).any(axis=1)
        summed = np.add.reduceat(counts, np.flatnonzero(first)) if len(counts) else counts
        if (summed < 0).any():
            raise ValueError("X holds a row that the sketch has not seen so often; downdate takes rows of earlier updates")
        rows, keys, counts = rows[first][summed > 0], keys[first][summed > 0], summed[summed > 0]
        if len(keys) > self.capacity:
            limit = keys[self.capacity]
        stay = keys < limit
        return Reservoir(self.capacity, rows[stay], keys[stay], counts[stay], limit)


class MeanSketch:
    r"""A kernel mean in one pass over the data, in memory that does not grow with the rows.

    Kept are n, :math:`Z^\top 1` and :math:`\operatorname{tr} Z^\top Z`, enough for the plain average and simple shrinkage;
    with ``second_moment`` also :math:`Z^\top Z`, for λ by Theorem 4; with ``reservoir`` some rows, for λ by deletion. All
    of them add up: sketches of parts merge into the sketch of the whole, in any order. ``a.merge(b)`` adds b to a in
    place and returns a; ``a + b`` is a new sketch.

    Parameters
    ----------
    features : Nystroem or Fourier
        Fitted, and the same for all sketches that are to merge: fit once, then share them.
    second_moment : bool, default False
        Costs O(m²) for each row and m² memory, m the number of features.
    reservoir : int, default 0
        Different rows to keep: those with the smallest keys, a hash of row and seed, and how often they were seen.
    random_state : int, default 0
        Seed of the keys; the same for all sketches that are to merge.

    Attributes
    ----------
    n_ : int
        Rows seen.

    Examples
    --------
    >>> import muhat as mh
    >>> from muhat.features import Nystroem
    >>> from muhat.sketch import MeanSketch
    >>> X = mh.paper_mixture(5, random_state=0).sample(3000, random_state=1)
    >>> features = Nystroem(n_components=100, random_state=0).fit(X[:500])
    >>> monday, tuesday = MeanSketch(features).update(X[:1000]), MeanSketch(features).update(X[1000:])
    >>> both = monday + tuesday
    >>> both.n_, round(monday.distance(tuesday), 3)
    (3000, 0.017)
    >>> both.mean_element()
    Element(Gaussian(bandwidth=2...), 100 atoms in 5 dimensions, total weight 1)
    """

    def __init__(
        self, features: BaseFeatures, second_moment: bool = False, reservoir: int = 0, random_state: int = 0
    ) -> None:
        if not isinstance(features, BaseFeatures):
            raise ValueError(f"features={features!r} must be fitted features, such as Nystroem().fit(X)")
        check_is_fitted(features, "fingerprint_")
        self.features, self._fingerprint = features, features.fingerprint_
        self.second_moment = second_moment
        self.reservoir = check_count("reservoir", reservoir, low=0)
        self.random_state = check_count("random_state", random_state, low=0)
        m, none = features._n_features_out, np.empty((0, features.n_features_in_))
        self._sums = FeatureSums(0, np.zeros(m), 0.0, np.zeros((m, m)) if second_moment else None)
        self._kept = Reservoir(self.reservoir, none, np.empty(0, np.uint64), np.empty(0, np.int64))

    @property
    def n_(self) -> int:
        """Rows seen."""
        return self._sums.n

    def update(self, X: Any) -> Self:
        """Add rows; X is anything with a shape that can be sliced (an array, ``np.memmap``, an HDF5 data set)."""
        return self._take(self._read(X), 1)

    def downdate(self, X: Any) -> Self:
        """Take away rows of earlier updates; that they were, only rows of the reservoir can tell."""
        part = self._read(X)
        if part.n_ > self.n_:
            raise ValueError(f"X has {part.n_} rows to take away and the sketch holds {self.n_}")
        return self._take(part, -1)

    def merge(self, other: MeanSketch) -> Self:
        """Add another sketch to this one, in place."""
        self._check_mergeable(other)
        return self._take(other, 1)

    def __add__(self, other: MeanSketch) -> MeanSketch:
        return self._empty().merge(self).merge(other) if isinstance(other, MeanSketch) else NotImplemented

    def __radd__(self, other: Any) -> MeanSketch:
        return self if other == 0 else NotImplemented  # sum() starts at 0

    def choose(self, lam: Lam = "theorem4", scale: Scale = 1.0) -> MeanChoice:
        """λ, scale and score of a shrunken mean; parameters as in :func:`feature_mean`."""
        self._check_filled()
        kept = self._kept if len(self._kept.rows) else None
        if kept is None or lam == "theorem4" or lam == 0:
            return self._sums.choose(lam, scale)
        return self._sums.choose(lam, scale, self.features._features(kept.rows), kept.counts.astype(float))

    def shrinkage(self) -> float:
        """The amount α of simple shrinkage (S-KMSE); ``mean_features(scale="loo")`` is shrunk by it."""
        return 1.0 - self.choose(0.0, "loo").scale

    def mean_features(self, lam: Lam = 0.0, scale: Scale = 1.0) -> Array:
        """The mean in features, shape (m,); parameters as in :func:`feature_mean`, by default the plain average."""
        return self._sums.coefficients(self.choose(lam, scale))

    def mean_element(self, lam: Lam = 0.0, scale: Scale = 1.0) -> Element:
        """The mean as an element of the space, on the landmarks; only with Nyström features."""
        if not isinstance(self.features, Nystroem):
            raise ValueError(
                f"{type(self.features).__name__} features are no elements of the space of the kernel; use "
                f"mean_features(), or Nystroem features"
            )
        weights = self.features._map @ self.mean_features(lam, scale)
        return Element(self.features.kernel_, Atoms.trusted(self.features.landmarks_, weights))

    def __call__(self, X: Any, lam: Lam = 0.0, scale: Scale = 1.0) -> Array:
        """Values of the mean, as a function, at the rows of X: an array of shape (n,)."""
        w = self.mean_features(lam, scale)
        return np.concatenate([np.empty(0), *(self.features._features(rows) @ w for rows in self._blocks(X))])

    def distance(self, other: MeanSketch) -> float:
        """Distance of the plain averages in features: the MMD, up to the error of the features."""
        self._check_same_features(other)
        return float(np.linalg.norm(self.mean_features() - other.mean_features()))

    def _empty(self) -> MeanSketch:
        return MeanSketch(self.features, self.second_moment, self.reservoir, self.random_state)

    def _take(self, part: MeanSketch, sign: int) -> Self:
        kept = self._kept.plus(part._kept, sign)  # may refuse: first
        self._sums, self._kept = _checked(self._sums.plus(part._sums, sign)), kept
        return self
