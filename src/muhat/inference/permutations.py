"""Permutations: splits of pooled rows into two samples, pairings of two sides, within strata, of bins and clusters.

Where all permutations are few, each is taken once. Bins are equal numbers of rows of one sample (and stratum), drawn at
random, which a test permutes as a whole. Under the null hypothesis bins of equal size are exchangeable as independent
rows are, so the level of a test stays exact, and products with the splits cost less by the square of the size of a bin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, permutations
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from scipy import fft
from scipy.special import comb, factorial

from muhat._support.types import Array
from muhat._support.validation import first_missing
from muhat.linalg.blocks import blocks

EPS = float(np.finfo(np.float64).eps)

TIED = 16
"""Statistics that differ by no more than so many of their rounding errors are ties."""

SMALL = 256
"""Up to this many rows everything is float64; ties of small samples are then ties to the last digits."""

SPLIT_BYTES = 2**25
"""Size of a block of splits: 32 MB."""

MOST_UNEQUAL = 40
"""The smaller sample has at least the 40th part of all bins, or as many bins as rows; the other has at most 40 times as
many. Then what is left of the larger one adds a fortieth to the variance of a difference."""

_DIAGONALS = 64
"""Diagonals of a matrix whose transforms are kept at a time."""


@dataclass(frozen=True, eq=False)
class Splits:
    """All splits as columns, the observed one first: 1 for a row of the first sample, less its mean over all splits.

    ``n`` and ``m`` are the numbers of rows, or of bins of rows, in the two samples.
    """

    centred: NDArray[Any]
    n: int
    m: int

    @cached_property
    def exact(self) -> Array:
        """The centred splits in double precision."""
        return self.centred.astype(np.float64, copy=False)

    @cached_property
    def weights(self) -> Array:
        """Signed weights of the pooled rows in the difference of the two means."""
        return np.asarray(self.exact * (1.0 / self.n + 1.0 / self.m))

    @property
    def eps(self) -> float:
        """The rounding error of a number close to 1 in the precision of the splits."""
        return float(np.finfo(self.centred.dtype).eps)

    @property
    def rounding(self) -> float:
        """The rounding error of squared differences of means of standardised columns."""
        return self.eps * (self.n + self.m) / self.n / self.m


def centred_splits(observed: Array, n_resamples: int, rng: np.random.Generator, strata: Array | None = None) -> Splits:
    """The observed split and others of :func:`other_splits`, in a precision that suits the number of rows."""
    n, total = int(observed.sum()), len(observed)
    if strata is None:
        means = np.full(total, n / total)
    else:
        means = (np.bincount(strata, weights=observed) / np.bincount(strata))[strata]
    others = list(other_splits(observed, n_resamples, rng, strata))
    count = 1 + sum(part.shape[1] for part in others)
    centred = np.empty((total, count), dtype=np.float64 if total <= SMALL else np.float32)
    np.concatenate([observed[:, None], *others], axis=1, out=centred, casting="same_kind")
    centred -= means[:, None].astype(centred.dtype)
    return Splits(centred, n, total - n)


def permutation_pvalue(statistics: Array, tolerance: Any = 0.0) -> Array:
    """The share of permutations whose statistic reaches the observed one, for each row of ``statistics``.

    Every permutation test of the library has its p-values from here. The last axis has the statistic on all
    permutations, and the observed one comes first. It counts by its place, whatever its value, so that no p-value is
    below 1/(B + 1), and a statistic that is not a number is an error. Values that fall short of the observed one by no
    more than ``tolerance``, or by its rounding error, are ties.

    >>> permutation_pvalue(np.array([2.0, 1.0, 3.0, 2.0]))
    array(0.75)
    """
    if np.isnan(statistics).any():
        raise RuntimeError(
            f"{np.count_nonzero(np.isnan(statistics))} of {statistics.size} permutation statistics are not numbers, "
            "which is an error in muhat; please report it with the data, or divide the columns by their spread first"
        )
    observed, others = statistics[..., :1], statistics[..., 1:]
    with np.errstate(invalid="ignore"):  # inf - inf
        lowest = observed - np.maximum(tolerance, 100 * EPS * np.abs(observed))
    reached = ((others >= observed) | (others >= lowest)).sum(axis=-1)
    return np.asarray((reached + 1) / statistics.shape[-1])


def other_splits(
    observed: Array, n_resamples: int, rng: np.random.Generator, strata: Array | None = None
) -> Iterator[Array]:
    """Blocks of splits, as columns, that permute the observed one, within strata if there are any.

    They are drawn at random, unless all splits are few: then every split but the observed one comes once.
    """
    block = max(1, SPLIT_BYTES // observed.nbytes)
    if number_of_splits(observed, strata)[0] <= n_resamples + 1:
        everything = _every_permutation(observed, strata, lambda inside: _every_split(observed[inside]))
        others = everything[(everything != observed).any(axis=1)]
        for part in blocks(len(others), block):
            yield others[part].T
        return
    for part in blocks(n_resamples, block):
        rows = np.tile(observed, (part.stop - part.start, 1))
        yield _permuted(rows, rng, strata).T


def number_of_splits(observed: Array, strata: Array | None = None) -> tuple[float, bool]:
    """How many splits have the sizes of the observed one in every stratum; and whether a mirror image of it is one.

    The number is infinite where there are very many.
    """
    numbers = np.zeros(len(observed), dtype=np.intp) if strata is None else strata
    sizes, first = np.bincount(numbers), np.bincount(numbers, weights=observed)
    with np.errstate(over="ignore"):
        return float(np.prod(comb(sizes, first))), bool((2 * first == sizes).all())


def smallest_pvalue(observed: Array, n_resamples: int, strata: Array | None = None) -> float:
    """The least p-value of a test on :func:`other_splits`: a listed split and its mirror image are equal."""
    splits, mirrored = number_of_splits(observed, strata)
    if splits > n_resamples + 1:
        return 1.0 / (n_resamples + 1)
    return (2.0 if mirrored else 1.0) / splits


def _every_split(observed: Array) -> Array:
    """All splits with the sizes of the observed one, as rows."""
    chosen = np.array(list(combinations(range(len(observed)), int(observed.sum()))), dtype=np.intp)
    splits = np.zeros((len(chosen), len(observed)))
    np.put_along_axis(splits, chosen, 1.0, axis=1)
    return splits


def _every_permutation(row: Any, strata: Array | None, every: Callable[[Any], Any]) -> Any:
    """All permutations of a row within strata: ``every`` of a stratum's rows with every one of the strata before."""
    found = row[None]
    for inside in _members(row, strata):
        own = every(inside)
        found = np.repeat(found, len(own), axis=0)
        found[:, inside] = np.tile(own, (len(found) // len(own), 1))
    return found


def _permuted(rows: Any, rng: np.random.Generator, strata: Array | None) -> Any:
    """Each row permuted, within strata if there are any."""
    if strata is None:
        return rng.permuted(rows, axis=1, out=rows)
    for inside in _members(rows[0], strata):
        rows[:, inside] = rng.permuted(rows[:, inside], axis=1)
    return rows


def _members(row: Any, strata: Array | None) -> list[Any]:
    """The numbers of the rows of each stratum."""
    if strata is None:
        return [np.arange(len(row))]
    return [np.flatnonzero(strata == stratum) for stratum in np.unique(strata)]


# ---------------------------------------------------------------- pairings


class ShiftedPairings:
    """Pairings in families of n: a random one and its cyclic shifts, along a random order of the rows.

    The observed pairing is the first. Under independence each member of each family is as likely to be the observed
    one, and the sums of a family are one circular correlation by the Fourier transform.
    """

    def __init__(self, n: int, n_resamples: int, rng: np.random.Generator) -> None:
        self.orders = rng.permuted(np.tile(np.arange(n), (-(-(n_resamples + 1) // n), 1)), axis=1)
        others = 1 + rng.choice(self.orders.size - 1, n_resamples, replace=False)
        self.chosen = np.concatenate([[0], others])

    def permutations(self) -> Any:
        """Row b holds, for each row of X, the row of Y that it is paired with."""
        n = self.orders.shape[1]
        family, shift = np.divmod(self.chosen, n)
        places = (np.arange(n) + shift[:, None]) % n
        pairs = np.empty_like(places)
        pairs[:, self.orders[0]] = self.orders[family[:, None], places]
        return pairs

    def sums(self, left: Sequence[Array], right: Sequence[Array]) -> Array:
        """Entry (k, l, b) is Σᵢⱼ K[i, j] L[b(i), b(j)] for matrix K of the left and L of the right."""
        every = pairing_sums(left, right, self.orders).reshape(len(left), len(right), -1)
        found = every[..., self.chosen]
        for k, K in enumerate(left):
            for m, L in enumerate(right):
                found[k, m, 0] = np.vdot(K, L)
        return found


class ListedPairings:
    """Pairings one by one, the observed one first."""

    def __init__(self, pairs: Any) -> None:
        self.pairs = pairs

    def permutations(self) -> Any:
        return self.pairs

    def sums(self, left: Sequence[Array], right: Sequence[Array]) -> Array:
        flat = np.stack([K.ravel() for K in left])
        found = np.empty((len(left), len(right), len(self.pairs)))
        for b, order in enumerate(self.pairs):
            for m, L in enumerate(right):
                found[:, m, b] = flat @ L[np.ix_(order, order)].ravel()
        return found


def pairing_sums(left: Sequence[Array], right: Sequence[Array], orders: Any) -> Array:
    """Entry (k, l, b, t) is Σᵢⱼ K[a(i), a(j)] L[b(i+t), b(j+t)], where b is row b of ``orders`` and a is its row 0.

    The pairs j = i + d of one d are a diagonal, and all shifts t of two diagonals are their circular correlation. K and
    L are symmetric, hence d and n − d give the same.
    """
    n = orders.shape[1]
    last = n // 2
    spectra = np.zeros((len(left), len(right), len(orders), last + 1), dtype=np.complex128)
    for part in blocks(last + 1, _DIAGONALS):
        offsets = np.arange(part.start, part.stop)
        times = np.where((offsets == 0) | (2 * offsets == n), 1.0, 2.0)
        of_left = np.stack([fft.rfft(times * _diagonals(K, orders[0], offsets), axis=0).conj() for K in left], axis=1)
        for b, order in enumerate(orders):  # a product of matrices for each frequency: left × diagonals × right
            of_right = np.stack([fft.rfft(_diagonals(L, order, offsets), axis=0) for L in right], axis=2)
            spectra[:, :, b] += np.moveaxis(of_left @ of_right, 0, -1)
    return np.asarray(fft.irfft(spectra, n, axis=-1))


def _diagonals(K: Array, order: Any, offsets: Any) -> Array:
    """Column d holds K[order(i), order(i + d)] for all i, indices modulo n."""
    n = len(order)
    shifted = sliding_window_view(np.concatenate([order, order])[offsets[0] :], len(offsets))[:n]
    return K.ravel().take(shifted + n * order[:, None])


Pairings = ShiftedPairings | ListedPairings


def draw_pairings(n: int, strata: Any, n_resamples: int, rng: np.random.Generator) -> tuple[Pairings, float]:
    """Pairings of n rows with one another, within strata if there are any, and the smallest p-value that they allow.

    They are drawn at random, unless all pairings are few: then each comes once.
    """
    order = np.arange(n)
    with np.errstate(over="ignore"):  # infinite where there are very many
        count = float(np.prod([factorial(len(inside)) for inside in _members(order, strata)]))
    if count <= n_resamples + 1:  # of which the rows in their order are the first
        every = _every_permutation(order, strata, lambda inside: np.array(list(permutations(inside))))
        return ListedPairings(every), 1.0 / count
    smallest = 1.0 / (n_resamples + 1)
    if strata is None:
        return ShiftedPairings(n, n_resamples, rng), smallest
    others = _permuted(np.tile(order, (n_resamples, 1)), rng, strata)
    return ListedPairings(np.concatenate([order[None], others])), smallest


# ---------------------------------------------------------------- strata and bins


def check_strata(strata: Any, observed: Array | None, n: int) -> Any:
    """Numbers of the strata of n rows, or None; ``observed`` says which rows are the first sample's."""
    if strata is None:
        return None
    labels, numbers = _numbered("strata", strata, n, "n + m rows, those of X first" if observed is not None else "rows")
    sizes = np.bincount(numbers)
    if sizes.min() < 2:
        alone = labels[int(sizes.argmin())]
        raise ValueError(
            f"strata has the label {alone!r} on one row only, which cannot be permuted; drop that row, or join strata"
        )
    if observed is not None:
        shares = np.bincount(numbers, weights=observed) / sizes
        if not ((shares > 0) & (shares < 1)).any():
            raise ValueError(
                "no stratum holds rows of both X and Y, so that nothing can be permuted; use coarser strata, or None"
            )
    return numbers


def _numbered(name: str, given: Any, n: int, rows: str) -> tuple[Any, Any]:
    """The distinct labels, sorted, and the number of that of each row; or a ValueError."""
    labels = np.asarray(given)
    if labels.shape != (n,):
        raise ValueError(f"{name} has shape {labels.shape} and must have one label for each of the {n} {rows}")
    missing = first_missing(given)
    if missing is not None:
        raise ValueError(f"{name}[{missing}] is missing; leave rows without a label out, or give them one")
    if len({type(label) for label in labels.tolist()}) > 1:
        labels = labels.astype(str)  # numbers and texts have no common order
    return np.unique(labels, return_inverse=True)


class Bins(NamedTuple):
    """Column b of ``members`` holds the numbers of the rows in bin b; sample and stratum of each bin; rows in none."""

    members: NDArray[np.intp]
    of_first: Array
    strata: Any
    unused: int = 0
    kind: str = "bins"

    @property
    def size(self) -> int:
        """Rows of a bin."""
        return len(self.members)

    @property
    def rows(self) -> NDArray[np.intp]:
        """Numbers of all rows in bins: the first row of every bin, then the second row of every bin, and so on."""
        return self.members.ravel()

    def __str__(self) -> str:
        if self.kind == "clusters":
            return f"{len(self.of_first):,} clusters, with {self.size} rows each"
        rows = "rows are" if self.unused != 1 else "row is"
        return f"{len(self.of_first):,} bins of {self.size} rows; {self.unused:,} {rows} in no bin"


def draw_bins(observed: Array, strata: Any, count: int, rng: np.random.Generator) -> Bins:
    """About ``count`` bins of equal size, each of rows of one sample and stratum, drawn at random."""
    numbers = np.zeros(len(observed), dtype=np.intp) if strata is None else strata
    cells = np.stack([np.bincount(numbers, weights=1.0 - observed), np.bincount(numbers, weights=observed)])
    size, counts = _bin_counts(cells.astype(np.intp), count)
    members, samples, labels = [], [], []
    for first, stratum in np.argwhere(counts):
        inside = rng.permutation(np.flatnonzero((observed == first) & (numbers == stratum)))
        members.append(inside[: counts[first, stratum] * size].reshape(size, -1))
        samples += [float(first)] * counts[first, stratum]
        labels += [stratum] * counts[first, stratum]
    drawn = np.concatenate(members, axis=1)
    of_strata = None if strata is None else np.unique(labels, return_inverse=True)[1]
    return Bins(drawn, np.array(samples), of_strata, len(observed) - drawn.size)


def _bin_counts(cells: NDArray[np.intp], count: int) -> tuple[int, NDArray[np.intp]]:
    """The size of bins, and how many of them each sample (row) and stratum (column) with so many rows has."""
    mixed = cells.min(axis=0) > 0  # permuted rows are all in these strata
    size = bin_size(cells[0, mixed], cells[1, mixed], count)
    counts = cells // size
    # More bins of one sample than these make a test hardly more powerful, and cost as much as the others.
    return size, np.minimum(counts, np.maximum(max(2, count // len(mixed)), MOST_UNEQUAL * counts.min(axis=0)))


def bin_size(first: Any, second: Any, count: int) -> int:
    """The size of bins that cut two samples, given the numbers of rows in the parts of each that bins may not cross.

    It makes about ``count`` bins in all. Where that leaves one of the samples too few of them, or more than a tenth of
    its rows in none, bins are smaller: down to single rows, which suit samples of any size.
    """
    fewest, largest = max(2, count // MOST_UNEQUAL), -(-int(first.sum() + second.sum()) // count)
    for size in range(largest, 1, -1):
        if all((sample // size).sum() >= max(fewest, 0.9 * sample.sum() / size) for sample in (first, second)):
            return size
    return 1


def bin_means(features: Array, size: int) -> Array:
    """Means of features over bins; rows are in the order of :attr:`Bins.rows`."""
    return features if size == 1 else features.reshape(size, len(features) // size, -1).mean(axis=0)


# ---------------------------------------------------------------- units


class Units(NamedTuple):
    """Units that change sides as a whole: rows, bins of rows or clusters.

    ``numbers`` has the unit of each pooled row, those of the first sample first, and −1 for a row in none; ``of_first``
    and ``strata`` have the sample and the stratum of each unit.
    """

    numbers: NDArray[Any]
    of_first: Array
    strata: Any
    kind: str = "rows"

    def members(self, size: int, rng: np.random.Generator) -> NDArray[np.intp]:
        """Column u holds ``size`` rows of unit u: a random part of a larger unit; rows of a smaller one repeat."""
        order = rng.permutation(np.flatnonzero(self.numbers >= 0))
        order = order[np.argsort(self.numbers[order], kind="stable")]
        counts = np.bincount(self.numbers[order], minlength=len(self.of_first))
        starts = counts.cumsum() - counts
        return np.asarray(order[starts + np.arange(size)[:, None] * counts // size])

    def bins(self, size: int, rng: np.random.Generator) -> Bins:
        """The units with so many rows each."""
        return Bins(self.members(size, rng), self.of_first, self.strata, int((self.numbers < 0).sum()), self.kind)


def draw_units(
    sizes: tuple[int, int], strata: Any, clusters: Any, single: int, count: int, rng: np.random.Generator
) -> Units:
    """Clusters where they are given, else rows up to ``single`` of them, else about ``count`` bins of equal size.

    ``strata`` and ``clusters`` are the checked numbers of the pooled rows, or None.
    """
    total = sum(sizes)
    if clusters is not None:
        return _clusters_as_units(np.arange(total) < sizes[0], strata, clusters, count, rng)
    if total <= single:
        return Units(np.arange(total), np.repeat([1.0, 0.0], sizes), strata)
    labels = np.zeros(1, dtype=np.intp) if strata is None else strata
    parts = (slice(sizes[0], None), slice(sizes[0]))  # as in bins, the second sample first
    cells = np.array(sizes[::-1], dtype=np.intp)[:, None]
    if strata is not None:
        cells = np.stack([np.bincount(strata[part], minlength=int(strata.max()) + 1) for part in parts])
    size, counts = _bin_counts(cells, count)
    numbers = np.full(total, -1, dtype=np.int16 if counts.sum() < 2**15 else np.int32)
    for unit, ((sample, stratum), own) in zip(counts.cumsum() - counts.ravel(), np.ndenumerate(counts), strict=True):
        drawn = np.full(cells[sample, stratum], -1, dtype=numbers.dtype)
        drawn[: own * size] = np.repeat(np.arange(unit, unit + own, dtype=numbers.dtype), size)
        rng.shuffle(drawn)
        numbers[parts[sample]][(labels[parts[sample]] == stratum) if strata is not None else slice(None)] = drawn
    samples, of_strata = np.divmod(np.repeat(np.arange(counts.size), counts.ravel()), cells.shape[1])
    used = None if strata is None else np.unique(of_strata, return_inverse=True)[1]
    return Units(numbers, samples.astype(np.float64), used, "bins")


def _clusters_as_units(is_first: Any, strata: Any, clusters: Any, count: int, rng: np.random.Generator) -> Units:
    """Each cluster, or where there are more than ``count`` random bins of clusters of one sample and stratum."""
    first_rows = np.unique(clusters, return_index=True)[1]
    of_first, of_strata = is_first[first_rows].astype(np.float64), None if strata is None else strata[first_rows]
    if len(of_first) <= count:
        return Units(clusters, of_first, of_strata, "clusters")
    bins = draw_bins(of_first, of_strata, count, rng)
    unit = np.full(len(of_first), -1)
    unit[bins.members] = np.arange(len(bins.of_first))
    return Units(unit[clusters], bins.of_first, bins.strata, "clusters")


class ClustersError(ValueError):
    """Clusters that cannot be permuted; ``label`` is one that lies on two sides."""

    def __init__(self, text: str, label: Any = None) -> None:
        super().__init__(text)
        self.label = label

    def __str__(self) -> str:
        return f"clusters: {self.args[0]}" + ("" if self.label is None else f" ({self.label!r})")


def check_clusters(clusters: Any, observed: Array, strata: Any) -> Any:
    """Numbers of the clusters of the pooled rows, or None; every cluster lies in one sample and one stratum."""
    if clusters is None:
        return None
    names, numbers = _numbered("clusters", clusters, len(observed), "n + m rows, those of X first")
    remedies = {
        "samples": (observed, "where one unit was observed in both, pass strata= in place of clusters="),
        "strata": (strata, "use strata that hold whole clusters, or leave strata out"),
    }
    for what, (groups, remedy) in remedies.items():
        lowest, highest = (np.full(len(names), start) for start in (np.inf, -np.inf))
        np.minimum.at(lowest, numbers, 0 if groups is None else groups)
        np.maximum.at(highest, numbers, 0 if groups is None else groups)
        if (lowest < highest).any():
            several = names.tolist()[int((lowest < highest).argmax())]
            raise ClustersError(f"one label is in several {what}, and whole clusters change sides; {remedy}", several)
    counts = [len(np.unique(numbers[observed == sample])) for sample in (1, 0)]
    if min(counts) < 2:
        raise ClustersError(
            f"there are {counts[0]} and {counts[1]} labels in the two samples, and two each are needed to permute "
            "them; use smaller clusters, such as weeks in place of months, or collect more of them"
        )
    return numbers


def cluster_means(K: Array, numbers: Any) -> Array:
    """The Gram matrix of the mean elements of clusters: means of the blocks of K."""
    share = np.zeros((int(numbers.max()) + 1, len(K)))
    share[numbers, np.arange(len(K))] = 1.0
    share /= share.sum(axis=1, keepdims=True)
    return np.asarray(share @ K @ share.T)
