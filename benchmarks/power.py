"""How often tests find a difference or a dependence that is there: power at level 5 %, all tests on the same draws.

    python benchmarks/power.py                       # all cells, 200 draws each
    python benchmarks/power.py --part real nulls     # real samples and columns (real_pairs.py), and their type I errors
    python benchmarks/power.py --part bins           # tests on bins of rows, as for thousands of rows, beside rows
    python benchmarks/power.py --quick               # three draws of the small synthetic cells
    python benchmarks/power.py --only spread corners --tests mmd_test FUSE --draws 400

Cells marked * were used to choose what the default tests combine. Other synthetic cells were watched, so that none
loses by a choice, and other real cells were looked at after it. In real cells, "low" marks changes along directions in
which correlated columns hardly vary. The other tests are written here from their formulas: Hotelling's statistic with
a ridge, the smallest of 20 p-values (as MMDAgg, in one batch of permutations), MMD-FUSE, energy distance,
Kolmogorov-Smirnov and t for each column with Bonferroni's (for the smallest p-value: Holm's) correction, a classifier
test (a random forest on half of the rows, the binomial tail of its accuracy on the others), canonical correlations
with a ridge, distance covariance, and Spearman's correlation of each pair.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from functools import cached_property, lru_cache, partial
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import real_pairs
from joblib import Parallel, delayed
from numpy.typing import NDArray
from real_pairs import RealPair
from scipy import stats
from scipy.spatial.distance import cdist, pdist, squareform
from scipy.special import logsumexp
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.ensemble import RandomForestClassifier

import muhat as mh
from muhat.inference import difference_statistics, two_sample
from muhat.inference.kernel_sums import Family, MeanSimilarities, kernel_sums, mean_similarities
from muhat.inference.permutations import Splits, centred_splits

LEVEL = 0.05
RESAMPLES, PAIR_RESAMPLES = 999, 199
"""Random splits, as by default; and pairings, fewer because other tests of independence take long for each."""

Draw = Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray]]


class Cell(NamedTuple):
    """Two samples (or pairs), and whether the cell was used to choose."""

    draw: Draw
    chosen_on: bool = False
    large: bool = False
    low_variance: bool = False


# ---------------------------------------------------------------- two samples


def normal(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    return rng.normal(size=(n, d))


def against_normal(n: int, d: int, change: Callable[..., np.ndarray], m: int | None = None) -> Draw:
    """n rows of a standard Gaussian, and m = n changed rows."""
    return lambda rng: (normal(rng, n, d), change(rng, normal(rng, m or n, d)))


def bumps(t: np.ndarray) -> np.ndarray:
    """The smooth bump up and down on (−1, 0) of Schrab et al. (2023)."""
    out = np.zeros_like(t)
    for centre, sign in ((0.75, 1.0), (0.25, -1.0)):
        z = 4 * (t + centre)
        inside = np.abs(z) < 1
        out[inside] += sign * np.exp(-1 / (1 - z[inside] ** 2))
    return out


def perturbed_uniform(n: int, d: int, amplitude: float, count: int = 2) -> Draw:
    """Uniform on the cube, against density 1 + a·e^d Σ ±Π bumps with ``count`` perturbations a side, random signs."""

    def draw(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        signs = rng.choice([-1.0, 1.0], size=(count,) * d)
        rows = np.empty((0, d))
        while len(rows) < n:
            U = rng.uniform(size=(4 * n, d))
            cell = np.minimum((count * U).astype(int), count - 1)
            density = 1 + amplitude * np.exp(d) * signs[tuple(cell.T)] * np.prod(bumps(count * U - cell - 1), axis=1)
            rows = np.vstack([rows, U[rng.uniform(size=4 * n) * (1 + amplitude) < density]])
        return rng.uniform(size=(n, d)), rows[:n]

    return draw


def corners(n: int, spread: float) -> Draw:
    """Four Gaussians at (±20, ±20); in Y one of them has another spread."""

    def one(rng: np.random.Generator, width: float) -> np.ndarray:
        k = rng.integers(4, size=n)
        centres = 20.0 * np.column_stack([2 * (k % 2) - 1, 2 * (k // 2) - 1])
        return centres + np.where(k == 0, width, 1.0)[:, None] * normal(rng, n, 2)

    return lambda rng: (one(rng, 1.0), one(rng, spread))


@lru_cache
def table(name: str) -> tuple[np.ndarray, np.ndarray]:
    data = {"wdbc": load_breast_cancer, "wine": load_wine}[name]()
    return (data.data - data.data.mean(axis=0)) / data.data.std(axis=0), data.target


def contaminated(name: str, n: int, share: float, base: int, other: int) -> Draw:
    """n rows of one class, and n other rows of it of which a share is exchanged for rows of another class."""

    def draw(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        rows, target = table(name)
        own, strange = (rng.permutation(np.flatnonzero(target == label)) for label in (base, other))
        k = rng.binomial(n, share)
        return rows[own[:n]], np.vstack([rows[own[n : 2 * n - k]], rows[strange[:k]]])

    return draw


def columns(d: int, factor: float = 1.0, shift: float = 0.0) -> Callable[..., np.ndarray]:
    """Change the first of d columns."""
    first = np.arange(d) == 0
    return lambda rng, Z: Z * np.where(first, factor, 1.0) + np.where(first, shift, 0.0)


def correlated(rho: float, width: int | None = None) -> Callable[..., np.ndarray]:
    def change(rng: np.random.Generator, Z: np.ndarray) -> np.ndarray:
        part = Z[:, :width]
        common = rng.normal(size=(len(Z), 1))
        return np.column_stack([np.sqrt(1 - rho) * part + np.sqrt(rho) * common, Z[:, part.shape[1] :]])

    return change


def ring(rng: np.random.Generator, Z: np.ndarray) -> np.ndarray:
    angle = rng.uniform(0, 2 * np.pi, size=len(Z))
    return np.sqrt(2 * (1 - 0.8**2)) * np.column_stack([np.cos(angle), np.sin(angle)]) + 0.8 * Z


def two_humps(rng: np.random.Generator, Z: np.ndarray) -> np.ndarray:
    return 0.8 * rng.choice([-1.0, 1.0], size=Z.shape) + 0.6 * Z


TWO_SAMPLES = {
    "shift of all 10 columns by .135": Cell(against_normal(100, 10, lambda rng, Z: Z + 0.135), True),
    "spread x 1.12, d = 10": Cell(against_normal(100, 10, lambda rng, Z: 1.12 * Z), True),
    "spread x 1.7 of one column of 20": Cell(against_normal(100, 20, columns(20, factor=1.7)), True),
    "t3 of variance 1, d = 5": Cell(
        against_normal(100, 5, lambda rng, Z: rng.standard_t(3, size=Z.shape) / np.sqrt(3)), True
    ),
    "shift by .78 of one column of 50": Cell(against_normal(100, 50, columns(50, shift=0.78)), True),
    "Laplace of variance 1, d = 5": Cell(
        against_normal(100, 5, lambda rng, Z: rng.laplace(size=Z.shape) / np.sqrt(2)), True
    ),
    "correlation .25, d = 5": Cell(against_normal(100, 5, correlated(0.25)), True),
    "wdbc, 10 % of the other class": Cell(contaminated("wdbc", 100, 0.1, 1, 0), True),
    "perturbed uniform, d = 2, 250 rows": Cell(perturbed_uniform(250, 2, 1.0), True, True),
    "published: perturbed d = 1, a = .3, 500": Cell(perturbed_uniform(500, 1, 0.3), False, True),
    "published: perturbed d = 2, a = .6, 500": Cell(perturbed_uniform(500, 2, 0.6), False, True),
    "published: corners, 2 x, 500": Cell(corners(500, 2.0), False, True),
    "spread x 1.5, 10 + 40 rows, d = 10": Cell(against_normal(10, 10, lambda rng, Z: 1.5 * Z, m=40)),
    "shift by .3, d = 2": Cell(against_normal(100, 2, lambda rng, Z: Z + 0.3)),
    "shift of all 50 columns by .09": Cell(against_normal(100, 50, lambda rng, Z: Z + 0.09)),
    "shift by .4, d = 1": Cell(against_normal(100, 1, lambda rng, Z: Z + 0.4)),
    "spread x 1.3, d = 1": Cell(against_normal(100, 1, lambda rng, Z: 1.3 * Z)),
    "two humps, d = 1": Cell(against_normal(100, 1, two_humps)),
    "ring, d = 2": Cell(against_normal(100, 2, ring)),
    "exponential of variance 1, d = 3": Cell(against_normal(50, 3, lambda rng, Z: rng.exponential(size=Z.shape) - 1.0)),
    "correlation .6 of two columns of 10": Cell(against_normal(100, 10, correlated(0.6, 2))),
    "wine, 10 % of another class": Cell(contaminated("wine", 29, 0.2, 0, 1)),
    "5 % outliers, d = 5": Cell(
        against_normal(100, 5, lambda rng, Z: np.where(rng.random((len(Z), 1)) < 0.05, 4.0 * Z, Z))
    ),
    "Poisson(3) against twice the variance, d = 3": Cell(
        lambda rng: (rng.poisson(3.0, size=(60, 3)) * 1.0, rng.negative_binomial(3, 0.5, size=(60, 3)) * 1.0)
    ),
    "nothing, 8 + 30 rows, d = 3": Cell(against_normal(8, 3, lambda rng, Z: Z, m=30)),
    "nothing, ties": Cell(lambda rng: (rng.integers(3, size=(20, 2)) * 1.0, rng.integers(3, size=(35, 2)) * 1.0)),
    "nothing, Cauchy": Cell(lambda rng: (rng.standard_cauchy((20, 3)), rng.standard_cauchy((35, 3)))),
}


IN_BINS = {
    "shift of all 10 columns by .075": Cell(against_normal(300, 10, lambda rng, Z: Z + 0.075)),
    "spread x 1.06, d = 10": Cell(against_normal(300, 10, lambda rng, Z: 1.06 * Z)),
    "spread x 1.3 of one column of 20": Cell(against_normal(300, 20, columns(20, factor=1.3))),
    "shift by .35 of one column of 20": Cell(against_normal(300, 20, columns(20, shift=0.35))),
    "t5 of variance 1, d = 3": Cell(
        against_normal(300, 3, lambda rng, Z: rng.standard_t(5, size=Z.shape) / np.sqrt(5 / 3))
    ),
    "Laplace of variance 1, d = 2": Cell(against_normal(300, 2, lambda rng, Z: rng.laplace(size=Z.shape) / np.sqrt(2))),
    "correlation .15, d = 5": Cell(against_normal(300, 5, correlated(0.15))),
    "perturbed uniform, d = 2, a = .8": Cell(perturbed_uniform(300, 2, 0.8)),
    "corners, 1.5 x": Cell(corners(300, 1.5)),
    "nothing, t3, 300 + 300 rows": Cell(lambda rng: tuple(rng.standard_t(3, size=(2, 300, 3)))),
}


# ---------------------------------------------------------------- the other two-sample tests


class GivenMatrix(Family):
    """A Gram matrix as it is."""

    def __init__(self, K: NDArray) -> None:
        self.K = K

    def tile(self, rows: slice, rest: slice) -> Iterator[NDArray]:
        yield self.K[rows, rest].copy()


def contrasts(matrices: list[np.ndarray], splits: Splits) -> list[MeanSimilarities]:
    families: list[Family] = [GivenMatrix(K) for K in matrices]
    return [mean_similarities(sums, splits) for sums in kernel_sums(families, splits)]


def scales_of(rows: np.ndarray) -> np.ndarray:
    """Standard deviations of columns, 1 for constant ones."""
    return np.where(rows.std(axis=0) > 0, rows.std(axis=0), 1.0)


def bandwidths(distances: np.ndarray) -> np.ndarray:
    positive = distances[distances > 0]
    low, high = np.quantile(positive, [0.05, 0.95]) * [0.5, 2.0]
    return low * (high / low) ** (np.arange(10) / 9)


def tail(t: np.ndarray) -> float:
    return float(np.mean(t >= t[0] - 1e-9 * abs(t[0])))


class Rivals:
    """All other tests of one draw, on one set of splits and of Gram matrices."""

    def __init__(self, X: np.ndarray, Y: np.ndarray, rng: np.random.Generator) -> None:
        self.X, self.Y, self.rng, self.n, self.m = X, Y, rng, len(X), len(Y)
        self.rows = np.vstack([X, Y]) / scales_of(np.vstack([X, Y]))  # columns of real tables have different scales
        self.splits = centred_splits(np.repeat([1.0, 0.0], [self.n, self.m]), RESAMPLES, rng)

    @cached_property
    def distances(self) -> tuple[np.ndarray, np.ndarray]:
        return pdist(self.rows), pdist(self.rows, "cityblock")

    @cached_property
    def kernels(self) -> list[np.ndarray]:
        """Ten Gaussian and ten Laplace kernels."""
        euclid, city = map(squareform, self.distances)
        h, g = map(bandwidths, self.distances)
        return [*(np.exp(-((euclid / s) ** 2) / 2) for s in h), *(np.exp(-city / s) for s in g)]

    @cached_property
    def twenty(self) -> list[MeanSimilarities]:
        return contrasts(self.kernels, self.splits)

    def median_kernel(self) -> float:
        squares = (squareform(self.distances[0]) / np.median(self.distances[0])) ** 2
        return tail(contrasts([np.exp(-squares / 2)], self.splits)[0].mmd)

    def energy(self) -> float:
        return tail(contrasts([-squareform(self.distances[0])], self.splits)[0].mmd)

    def smallest_p(self) -> float:
        ranks = [stats.rankdata(-found.mmd, method="max") for found in self.twenty]
        return tail(-np.min(ranks, axis=0))

    def fuse(self) -> float:
        size = len(self.rows) * (len(self.rows) - 1)
        norms = [np.sqrt(((K**2).sum() - len(K)) / size) for K in self.kernels]
        scaled = np.array([found.mmd / norm for found, norm in zip(self.twenty, norms, strict=True)])
        return tail(logsumexp(np.sqrt(self.n * (self.n - 1)) * scaled, axis=0))

    def hotelling(self) -> float:
        """d^T (S + λ)^-1 d with the pooled correlation matrix and a ridge of 1e-3 of its largest eigenvalue."""
        z = (self.rows - self.rows.mean(axis=0)) / np.where(self.rows.std(axis=0) > 0, self.rows.std(axis=0), 1.0)
        S = z.T @ z / len(z)
        ridge = 1e-3 * np.linalg.eigvalsh(S)[-1] * np.eye(len(S))
        differences = z.T @ self.splits.weights
        return tail((differences * np.linalg.solve(S + ridge, differences)).sum(axis=0))

    def columns(self, test: Callable[..., Any]) -> float:
        return min(1.0, self.rows.shape[1] * min(test(x, y).pvalue for x, y in zip(self.X.T, self.Y.T, strict=True)))

    def classifier(self) -> float:
        labels = np.repeat([0, 1], [self.n, self.m])
        order = self.rng.permutation(len(labels))
        train, test = order[: len(order) // 2], order[len(order) // 2 :]
        if len(np.unique(labels[train])) < 2:
            return 1.0
        forest = RandomForestClassifier(20, class_weight="balanced", random_state=0).fit(
            self.rows[train], labels[train]
        )
        hits = int((forest.predict(self.rows[test]) == labels[test]).sum())
        chance = max(np.mean(labels[test]), 1 - np.mean(labels[test]))
        return float(stats.binom.sf(hits - 1, len(test), chance))


def in_bins(rivals: Rivals, size: int, exact: int = 12_000) -> float:
    """The default test with bins of so many rows, and features in place of kernels beyond ``exact`` rows."""
    count = len(rivals.rows) // size
    settings = {"MAX_SINGLE_ROWS": 0, "BINS": count, "FEATURE_BINS": count, "MAX_EXACT_ROWS": exact}
    with patch.multiple(two_sample, **settings), patch.object(difference_statistics, "MAX_EXACT_ROWS", exact):
        return mh.mmd_test(rivals.X, rivals.Y, None, RESAMPLES, rivals.rng).pvalue


TESTS: dict[str, Callable[[Rivals], float]] = {
    "mmd_test": lambda r: mh.mmd_test(r.X, r.Y, None, RESAMPLES, r.rng).pvalue,
    "Hotelling": Rivals.hotelling,
    "median": Rivals.median_kernel,
    "min-p 20": Rivals.smallest_p,
    "FUSE": Rivals.fuse,
    "energy": Rivals.energy,
    "KS": lambda r: r.columns(stats.ks_2samp),
    "t": lambda r: r.columns(stats.ttest_ind),
    "forest": Rivals.classifier,
}
BIN_TESTS: dict[str, Callable[[Rivals], float]] = {
    "rows": TESTS["mmd_test"],
    "bins of 3": partial(in_bins, size=3),
    "bins of 6": partial(in_bins, size=6),
    "features": partial(in_bins, size=3, exact=0),
}


def two_sample_pvalues(cell: Cell, seed: int, tests: list[str]) -> list[float]:
    rng = np.random.default_rng([1, seed])
    X, Y = cell.draw(rng)
    rivals = Rivals(X, Y, rng)
    return [(TESTS | BIN_TESTS)[name](rivals) for name in tests]


# ---------------------------------------------------------------- pairs


def noisy(n: int, function: Callable[[np.ndarray], np.ndarray], noise: float, p: int = 1, q: int = 1) -> Draw:
    """Normal X with p columns and Y = function(first column) + noise, with q − 1 columns of noise beside it."""

    def draw(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        X, Y = normal(rng, n, p), noise * normal(rng, n, q)
        Y[:, 0] += function(X[:, 0])
        return X, Y

    return draw


def common_width(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    width = np.exp(0.45 * normal(rng, 100, 1))
    return width * normal(rng, 100, 3), width * normal(rng, 100, 3)


def circle(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    angle = rng.uniform(0, 2 * np.pi, size=(100, 1))
    return np.cos(angle) + 0.4 * normal(rng, 100, 1), np.sin(angle) + 0.4 * normal(rng, 100, 1)


PAIRS = {
    "linear, .25 x": Cell(noisy(100, lambda x: 0.25 * x, 1.0), True),
    "square": Cell(noisy(100, lambda x: 0.25 * x**2, 1.0), True),
    "circle": Cell(circle, True),
    "sine of 6 x": Cell(noisy(100, lambda x: np.sin(6 * x), 1.0), True),
    "common width, 3 + 3 columns": Cell(common_width, True),
    "one pair of 5 x 5 columns": Cell(noisy(100, lambda x: 0.4 * x, 1.0, 5, 5), True),
    "square in one pair of 3 x 3": Cell(noisy(100, lambda x: 0.4 * x**2, 1.0, 3, 3), True),
    "sign of x": Cell(noisy(100, lambda x: 0.3 * np.sign(x), 1.0)),
    "step at |x| < 1": Cell(noisy(100, lambda x: 0.8 * (np.abs(x) < 1), 1.0)),
    "sine of 3 x": Cell(noisy(100, lambda x: 0.6 * np.sin(3 * x), 1.0)),
    "linear in one pair of 10 x 10": Cell(noisy(100, lambda x: 0.5 * x, 1.0, 10, 10)),
    "noise grows with |x|": Cell(
        lambda rng: (lambda X: (X, np.exp(0.35 * np.abs(X)) * normal(rng, 100, 1)))(normal(rng, 100, 1))
    ),
    "independent": Cell(noisy(100, lambda x: 0.0 * x, 1.0, 2, 2)),
    "independent, ties": Cell(lambda rng: (rng.integers(3, size=(30, 2)) * 1.0, rng.integers(3, size=(30, 1)) * 1.0)),
}


class PairRivals:
    """All other tests of one draw of pairs, on one set of pairings and of centred Gram matrices."""

    def __init__(self, X: np.ndarray, Y: np.ndarray, rng: np.random.Generator) -> None:
        self.X, self.Y, self.rng, n = X, Y, rng, len(X)
        self.orders = np.vstack([np.arange(n), rng.permuted(np.tile(np.arange(n), (PAIR_RESAMPLES, 1)), axis=1)])
        self.left, self.right = (self._matrices(cdist(rows, rows)) for rows in (X / scales_of(X), Y / scales_of(Y)))

    @staticmethod
    def _matrices(D: np.ndarray) -> np.ndarray:
        """Five Gaussian kernels by the median distance, and the negative distance, centred."""
        h = np.median(D[D > 0])  # most pairs of a class have the same label
        kernels = [np.exp(-((D / (f * h)) ** 2) / 2) for f in (0.125, 0.25, 0.5, 1, 2)]
        return np.array([PairRivals._centred(K) for K in (*kernels, -D)])

    @staticmethod
    def _centred(K: np.ndarray) -> np.ndarray:
        H = np.eye(len(K)) - 1 / len(K)
        return H @ K @ H

    def sums(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Entry (k, l, b): the sum of matrix k times matrix l, its rows and columns in order b."""
        flat = left.reshape(len(left), -1)
        found = [flat @ right[:, order][:, :, order].reshape(len(right), -1).T for order in self.orders]
        return np.moveaxis(np.array(found), 0, -1)

    @cached_property
    def all_scales(self) -> np.ndarray:
        return self.sums(self.left, self.right)

    def smallest_p(self) -> float:
        ranks = stats.rankdata(-self.all_scales[:5, :5].reshape(25, -1), method="max", axis=1)
        return tail(-ranks.min(axis=0))

    def distance_covariance(self) -> float:
        return tail(self.all_scales[5, 5])

    def canonical_correlations(self) -> float:
        """The sum of squared canonical correlations, each side with a ridge of 1e-3 of the largest eigenvalue."""
        A, C = (self._whitened(rows) for rows in (self.X, self.Y))
        return tail(np.array([((A.T @ C[order]) ** 2).sum() for order in self.orders]))

    @staticmethod
    def _whitened(rows: np.ndarray) -> np.ndarray:
        z = (rows - rows.mean(axis=0)) / np.where(rows.std(axis=0) > 0, rows.std(axis=0), 1.0)
        values, vectors = np.linalg.eigh(z.T @ z / len(z))
        return z @ vectors / np.sqrt(values + 1e-3 * values[-1])

    def spearman(self) -> float:
        smallest = min(stats.spearmanr(x, y).pvalue for x in self.X.T for y in self.Y.T)
        return min(1.0, self.X.shape[1] * self.Y.shape[1] * smallest)


PAIR_TESTS: dict[str, Callable[[PairRivals], float]] = {
    "hsic_test": lambda r: mh.hsic_test(r.X, r.Y, n_resamples=PAIR_RESAMPLES, random_state=r.rng).pvalue,
    "CCA": PairRivals.canonical_correlations,
    "median": lambda r: mh.hsic_test(r.X, r.Y, mh.Gaussian(), mh.Gaussian(), PAIR_RESAMPLES, r.rng).pvalue,
    "min-p 25": PairRivals.smallest_p,
    "dcov": PairRivals.distance_covariance,
    "Spearman": PairRivals.spearman,
}


def pair_pvalues(cell: Cell, seed: int, tests: list[str]) -> list[float]:
    rng = np.random.default_rng([2, seed])
    X, Y = cell.draw(rng)
    rivals = PairRivals(X, Y, rng)
    return [PAIR_TESTS[name](rivals) for name in tests]


# ---------------------------------------------------------------- tables


def real_cells(pairs: dict[str, RealPair]) -> dict[str, Cell]:
    return {name: Cell(pair.draw, pair.half == "A", False, pair.low_variance) for name, pair in pairs.items()}


PARTS = {
    "synthetic": (TWO_SAMPLES, PAIRS),
    "real": (real_cells(real_pairs.TWO_SAMPLES), real_cells(real_pairs.PAIRS)),
    "bins": (IN_BINS, {}),
    "nulls": (real_cells(real_pairs.NULLS), real_cells(real_pairs.INDEPENDENT)),
}


def report(
    title: str, tests: list[str], cells: dict[str, Cell], pvalues: Callable[..., Any], draws: int, jobs: int
) -> None:
    print(f"{title}, per cent of {draws} draws that reject at 5 %; * used to choose")
    print(f"{'':<56}" + "".join(f"{test:>10}" for test in tests), flush=True)
    found: dict[Cell, np.ndarray] = {}
    for name, cell in cells.items():
        p = np.array(Parallel(jobs)(delayed(pvalues)(cell, seed) for seed in range(draws)))
        power = 100 * np.mean(p <= LEVEL, axis=0)
        mark = ("* " if cell.chosen_on else "  ") + ("low" if cell.low_variance else "")
        print(f"{name:<50}{mark:<6}" + "".join(f"{value:10.1f}" for value in power), flush=True)
        if not name.startswith(("nothing", "independent")):
            found[cell] = power
    for label, chosen in (("used to choose", (True,)), ("others", (False,)), ("all", (True, False))):
        for kind, low in ((f"mean of cells {label}", None), ("  of which low", True), ("  of which not", False)):
            powers = [power for cell, power in found.items() if cell.chosen_on in chosen and low in (None, cell[3])]
            if powers and (low is None or any(cell.low_variance for cell in found)):
                print(f"{kind:<56}" + "".join(f"{value:10.1f}" for value in np.mean(powers, axis=0)))
    print(f"standard error of an entry: at most {50 / np.sqrt(draws):.1f}\n", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="three draws of the small synthetic cells")
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--part", nargs="+", default=None, choices=list(PARTS), help="default: all, or synthetic ones")
    parser.add_argument(
        "--only", nargs="+", default=[""], metavar="WORD", help="cells whose name has one of these words"
    )
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--tests", nargs="+", default=list(TESTS), choices=list(TESTS), help="two-sample tests to run")
    parser.add_argument("--pair-tests", nargs="+", default=list(PAIR_TESTS), choices=list(PAIR_TESTS))
    arguments = parser.parse_args()
    draws = 3 if arguments.quick else arguments.draws
    for part in arguments.part or (["synthetic"] if arguments.quick else list(PARTS)):
        samples, pairs = PARTS[part]
        of_samples = list(BIN_TESTS) if part == "bins" else arguments.tests
        of_pairs = arguments.pair_tests
        tables = (
            (f"Two samples, {RESAMPLES} splits", of_samples, samples, partial(two_sample_pvalues, tests=of_samples)),
            (f"Pairs, {PAIR_RESAMPLES} pairings", of_pairs, pairs, partial(pair_pvalues, tests=of_pairs)),
        )
        for title, tests, cells, pvalues in tables:
            chosen = {name: cell for name, cell in cells.items() if any(word in name for word in arguments.only)}
            if arguments.quick:
                chosen = {name: cell for name, cell in chosen.items() if not cell.large}
            if chosen and tests:
                report(f"{title}, {part}", tests, chosen, pvalues, draws, arguments.jobs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
