"""Permutation p-values of many groups against one control, and of all groups together.

The statistic of a group combines three squared distances: of kernel means, of means of whitened columns (Hotelling) and
of kernel means whitened by the covariance of all rows. All rows give the metrics, whatever their labels, so that no
permutation changes them and the type I error is controlled in every group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse import csr_array
from scipy.stats import false_discovery_control

from muhat._support.types import Array
from muhat.inference.combine import Component, combine_statistics
from muhat.inference.permutations import EPS
from muhat.linalg.blocks import blocks, rows_by_value
from muhat.linalg.whitening import Whitening
from muhat.tables.scales import ColumnScales

COORDINATES = 128
"""Principal coordinates of the features, and of the columns, that tests see; the least of them hold rounding."""

RIDGE = 1.0
"""Ridge of the whitened kernel, relative to the mean eigenvalue; powers at 0.3 and at 3 are equal."""

EXACT_UNITS = 2000
"""Up to this many rows sums are float64, so that ties of small groups are ties to the last digits."""

WIDE, WIDE_ROWS = 1000, 1000
"""Beyond this many columns, the metric of the columns comes from this many rows, drawn by value."""

BLOCK, PREFIX_BYTES = 64, 2**26
"""Permutations at a time, at most, and memory of their prefix sums."""

SECOND_STAGE, PER_GROUP, MOST = 20, 20, 100_000
"""P-values up to 20/(B + 1) are computed anew from 20 permutations per group, at most 100,000."""

SINGLE_ROW = 1e-10
"""Rounding error of a row's coordinates, relative to their root mean square: equal rows may differ by so much."""

STAGE_BYTES = 2**28
"""Memory of the statistics of a part of the groups."""

GLOBAL_NUMBERS = 4e9
"""Numbers that the global test may add up: with many rows it sees fewer coordinates."""


class Coordinates(NamedTuple):
    """What tests see of rows: coordinates, largest first in each part, and the weights of squared distances."""

    values: Array  # (units, q + e): q of the features, then e of the columns
    weights: Array  # (statistics, q + e)
    n_features: int  # q

    @property
    def tolerance(self) -> float:
        """Combined statistics this close, relatively, are ties."""
        return 1e-4 if self.values.dtype == np.float32 else 1e-8

    def pvalue(self, statistics: Array, sizes: Array, rows: float) -> float:
        """P-value from three statistics on all permutations, the observed one first.

        ``sizes`` are the sums of absolute coordinates behind the statistics, of which rounding errors are a share, and
        ``rows`` how many rows were added up.
        """
        eps = float(np.finfo(self.values.dtype).eps)
        rounding = self.weights @ np.square(eps * sizes) + (SINGLE_ROW * rows) ** 2
        components = [
            Component(name, name, row, max(float(least), eps * float(row.max())))
            for name, row, least in zip(("kernel", "columns", "whitened"), statistics, rounding, strict=True)
        ]
        return combine_statistics(components, self.tolerance, discount=False).pvalue

    def fewer(self, most: int) -> Coordinates:
        """The first coordinates of both parts."""
        q = self.n_features
        kept = np.r_[: min(q, most), q : min(q + most, self.values.shape[1])]
        values = np.ascontiguousarray(self.values[:, kept])  # as products with sparse matrices take them
        return Coordinates(values, self.weights[:, kept], min(q, most))


class Map(NamedTuple):
    """From features of rows to coordinates: principal axes of their covariance."""

    centre: Array
    axes: Array
    variances: Array
    trace: float

    @classmethod
    def of(cls, centre: Array, covariance: Array) -> Map:
        """The first axes; directions without variance have none."""
        g, V = eigh(covariance, driver="evd", check_finite=False)
        rounding = max(1e-10 * float(g[-1]), (100.0 * EPS) ** 2 * float(centre @ centre))
        kept = np.flatnonzero(g > rounding)[::-1][:COORDINATES]
        return cls(centre, V[:, kept], g[kept], float(np.trace(covariance)) / len(g))


def column_coordinates(columns: Array) -> Array:
    """Whitened columns, along principal axes where they are many, the largest first."""
    scaled = ColumnScales.of(columns).divide(columns)
    some = scaled
    if columns.shape[1] > WIDE and len(columns) > WIDE_ROWS:
        some = scaled[rows_by_value(columns, WIDE_ROWS, np.random.default_rng(0))]
    whitening = Whitening.of(some)
    return whitening.principal_scores(scaled)[:, ::-1][:, :COORDINATES]


def join(features: Array, mapped: Map, columns: Array) -> Coordinates:
    """Coordinates of features and of columns, with the weights of the three squared distances."""
    q, e = features.shape[1], columns.shape[1]
    values = np.hstack([features, columns])
    values -= values.mean(axis=0)
    weights = np.zeros((3, q + e))
    weights[0, :q], weights[1, q:] = 1.0, 1.0
    weights[2, :q] = 1.0 / (mapped.variances + RIDGE * mapped.trace) if q else 0.0
    sizes = (weights @ np.square(values).mean(axis=0))[:, None]
    weights /= np.where(sizes > 0, sizes, 1.0)
    dtype = np.float64 if len(values) <= EXACT_UNITS else np.float32
    return Coordinates(np.ascontiguousarray(values, dtype=dtype), weights, q)


@dataclass(frozen=True, eq=False)
class Screen:
    """Rows of groups and of their control, by stratum, less the mean of the control.

    Sums of single precision are then exact where all rows are equal. Strata in which the control has no rows tell
    nothing.
    """

    coordinates: Coordinates
    control: list[Array]  # coordinates of the control's rows in each stratum
    groups: list[list[tuple[int, Array]]]  # of each group: stratum and coordinates of the rows in it

    @classmethod
    def of(cls, coordinates: Coordinates, control: Any, groups: Sequence[Any], strata: Any) -> Screen:
        """``control`` and ``groups`` have numbers of rows, and ``strata`` the stratum of each row, or is None."""
        codes = np.zeros(len(coordinates.values), np.intp) if strata is None else strata
        found, numbers = np.unique(codes[control], return_inverse=True)
        values = coordinates.values
        middle = values[control].mean(axis=0, dtype=np.float64).astype(values.dtype)

        def centred(rows: Any) -> Array:
            return np.asarray(values[rows] - middle)

        return cls(
            coordinates,
            [centred(control[numbers == s]) for s in range(len(found))],
            [
                [
                    (s, centred(rows[codes[rows] == stratum]))
                    for s, stratum in enumerate(found)
                    if stratum in codes[rows]
                ]
                for rows in groups
            ],
        )

    def statistics(self, chosen: Sequence[int], n_resamples: int, rng: np.random.Generator) -> Array:
        """Squared distances on permutations, the observed split first: shape (groups, statistics, B + 1).

        One random order of the control's rows serves all groups: a permuted group of n rows is h of its own, drawn at
        random (h is hypergeometric), and the first n − h of that order, so that a sum of coordinates is a look-up among
        prefix sums and a small product. Each group is permuted with the control alone.
        """
        m, dtype = self.coordinates.values.shape[1], self.coordinates.values.dtype
        weights = self.coordinates.weights
        groups = [self.groups[g] for g in chosen]
        totals = [C.sum(axis=0, dtype=np.float64) for C in self.control]
        longest = [0] * len(self.control)
        expected = np.zeros((len(groups), m))
        for g, cells in enumerate(groups):
            for s, P in cells:
                longest[s] = max(longest[s], min(len(P), len(self.control[s])))
                share = len(P) / (len(P) + len(self.control[s]))
                expected[g] += share * (totals[s] + P.sum(axis=0, dtype=np.float64))
        width = sum(most + 1 for most in longest) * m * dtype.itemsize
        out = np.empty((len(groups), len(weights), n_resamples + 1))
        for part in blocks(n_resamples + 1, int(np.clip(PREFIX_BYTES // width, 1, BLOCK))):
            b = part.stop - part.start
            prefixes = [_prefix_sums(C, most, b, rng) for C, most in zip(self.control, longest, strict=True)]
            for g, cells in enumerate(groups):
                sums = np.tile(-expected[g], (b, 1))
                for s, P in cells:
                    n = len(P)
                    h = rng.hypergeometric(n, len(self.control[s]), n, size=b)
                    if part.start == 0:
                        h[0] = n
                    own = np.zeros((b, n), dtype=dtype)
                    order = rng.random((b, n), dtype=np.float32).argsort(axis=1)
                    np.put_along_axis(own, order, (np.arange(n) < h[:, None]).astype(dtype), axis=1)
                    sums += prefixes[s][np.arange(b), n - h] + own @ P
                out[g, :, part] = weights @ np.square(sums).T
        return out

    def pvalues(self, chosen: Sequence[int], n_resamples: int, rng: np.random.Generator) -> Array:
        """P-values of the chosen groups, in parts of bounded memory."""
        most = max(1, int(STAGE_BYTES // (8 * len(self.coordinates.weights) * (n_resamples + 1))))
        own = sum(np.abs(C).sum(axis=0, dtype=np.float64) for C in self.control)
        found: list[float] = []
        for part in blocks(len(chosen), most):
            statistics = self.statistics(chosen[part], n_resamples, rng)
            for g, of_group in zip(chosen[part], statistics, strict=True):
                sizes = own + sum(np.abs(P).sum(axis=0) for _, P in self.groups[g])
                rows = sum(len(C) for C in self.control) + sum(len(P) for _, P in self.groups[g])
                found.append(self.coordinates.pvalue(of_group, sizes, rows))
        return np.array(found)

    def two_stages(self, n_resamples: int, rng: np.random.Generator) -> Array:
        """P-values of all groups; small ones are computed anew from more permutations, and only those count.

        The level is exact at every α. Up to the threshold 20/(B + 1) only the second p-value decides, which is valid by
        itself; above it, a p-value of at most α needs a first one of at most α.
        """
        everything = list(range(len(self.groups)))
        p = self.pvalues(everything, n_resamples, rng)
        again, more = np.flatnonzero(p <= SECOND_STAGE / (n_resamples + 1)), min(PER_GROUP * len(p), MOST)
        if more > n_resamples and len(again):
            p[again] = self.pvalues(again.tolist(), more, rng)
        return p


def _prefix_sums(C: Array, most: int, b: int, rng: np.random.Generator) -> Array:
    """Sums of the first 0, 1, …, ``most`` rows of b random orders of the rows."""
    orders = np.argsort(rng.random((b, len(C)), dtype=np.float32), axis=1)[:, :most]
    prefix = np.zeros((b, most + 1, C.shape[1]), dtype=C.dtype)
    np.cumsum(C[orders], axis=1, out=prefix[:, 1:])
    return prefix


def global_pvalue(
    coordinates: Coordinates, offsets: NDArray[np.intp], strata: Any, n_resamples: int, rng: np.random.Generator
) -> float:
    """Do any groups differ? Σ_i n_i ‖x_i − x̄‖² in each of the three metrics, on permutations of all labels."""
    values = coordinates.values
    n, sizes = len(values), np.diff(offsets)
    coordinates = coordinates.fewer(int(np.clip(GLOBAL_NUMBERS / (2.0 * n * (n_resamples + 1)), 8, COORDINATES)))
    values = coordinates.values
    if strata is not None:  # what strata have in common differs between groups with other shares of them
        means = np.zeros((strata.max() + 1, values.shape[1]))
        np.add.at(means, strata, values)
        values = (values - (means / np.bincount(strata)[:, None])[strata]).astype(values.dtype)
    inside = [np.arange(n)] if strata is None else [np.flatnonzero(strata == s) for s in range(strata.max() + 1)]
    ones, order = np.ones(n, dtype=values.dtype), np.arange(n)
    statistics = np.empty((len(coordinates.weights), n_resamples + 1))
    for b in range(n_resamples + 1):
        if b:
            for rows in inside:
                order[rows] = rng.permutation(rows)
        sums = csr_array((ones, order, offsets), shape=(len(sizes), n)) @ values
        statistics[:, b] = coordinates.weights @ (np.square(sums, dtype=np.float64) / sizes[:, None]).sum(axis=0)
    return coordinates.pvalue(statistics, np.abs(values).sum(axis=0, dtype=np.float64) / np.sqrt(n), np.sqrt(n))


def adjusted_pvalues(pvalues: Array, correction: str) -> Array:
    """P-values with control of the false discovery rate ("bh") or of any false finding ("holm").

    >>> adjusted_pvalues(np.array([0.01, 0.04, 0.03]), "holm").round(2).tolist()
    [0.03, 0.06, 0.06]
    """
    if correction == "bh":
        return np.asarray(false_discovery_control(pvalues))
    order = np.argsort(pvalues, kind="stable")
    adjusted = np.empty(len(pvalues))
    steps = pvalues[order] * np.arange(len(pvalues), 0, -1)
    adjusted[order] = np.maximum.accumulate(steps).clip(max=1.0)
    return adjusted
