"""The mergeable state of a sketch: sums of features, a sample of rows and bins of rows, in memory and in files.

:class:`SketchState` is a value that merges with ``+``. Its parts are :class:`FeatureSums`, a :class:`Reservoir` of rows
that does not depend on the order in which rows are read, and :class:`RowBins`, which a two-sample test permutes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from muhat._support.archives import Arrays, Header, finite_array
from muhat._support.types import Array
from muhat._support.validation import check_count
from muhat.grams import FeatureSums, check_sums

_NO_LIMIT = np.uint64(2**64 - 1)  # no key is larger


def row_keys(rows: Array, seed: int) -> NDArray[np.uint64]:
    """A random number for each row that depends on its content and the seed alone (splitmix64)."""
    keys = np.full(len(rows), seed % 2**64, dtype=np.uint64)
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
    limit: np.uint64 = _NO_LIMIT  # rows with this key or a larger one are not kept

    def seen(self, rows: Array, seed: int) -> Reservoir:
        """The rows that may stay here, as a reservoir of their own."""
        rows = rows + 0.0  # −0.0 and 0.0 are one row
        keys = row_keys(rows, seed)
        stay = keys < self.limit
        return Reservoir(len(rows), rows[stay], keys[stay], np.ones(int(stay.sum()), dtype=np.int64), self.limit)

    def plus(self, other: Reservoir) -> Reservoir:
        """Both together."""
        limit = min(self.limit, other.limit)
        rows, keys = np.concatenate([self.rows, other.rows]), np.concatenate([self.keys, other.keys])
        counts = np.concatenate([self.counts, other.counts])
        order = np.lexsort((*rows.T, keys))
        order = order[keys[order] < limit]
        rows, keys, counts = rows[order], keys[order], counts[order]
        first = np.ones(len(rows), dtype=bool)
        first[1:] = (keys[1:] != keys[:-1]) | (rows[1:] != rows[:-1]).any(axis=1)
        summed = np.add.reduceat(counts, np.flatnonzero(first)) if len(counts) else counts
        rows, keys = rows[first], keys[first]
        if len(keys) > self.capacity:
            limit = keys[self.capacity]
        stay = keys < limit
        return Reservoir(self.capacity, rows[stay], keys[stay], summed[stay], limit)


@dataclass(frozen=True, eq=False)
class RowBins:
    """Sums of z(x) and of k(x, x) over bins of ``size`` rows, at most ``capacity`` bins; ``size`` is a power of two.

    ``levels[j]`` has sums over 2^j rows, those of k(x, x) in the last column. The last level holds the bins. Each level
    below it holds at most one sum, of rows that do not fill a bin yet: these are the binary digits of the number of
    rows modulo ``size``, so that merging is binary addition with carries. Number and size of the bins depend on the
    number of rows alone; which rows share a bin depends on the order in which they come. Bins hold neighbours: rows
    that are sorted or depend on their predecessors then make bins that vary more than bins of independent rows do,
    and never less.
    """

    capacity: int
    levels: tuple[Array, ...]

    @classmethod
    def of_rows(cls, capacity: int, Z: Array, diagonal: Array) -> RowBins:
        """The bins of rows x from their features z(x) and k(x, x)."""
        return cls(capacity, carried([np.column_stack([Z, diagonal])], last_level(len(Z), capacity)))

    @property
    def n(self) -> int:
        """Rows in all bins, and those that do not fill one."""
        return sum(len(sums) << level for level, sums in enumerate(self.levels))

    @property
    def size(self) -> int:
        """Rows per bin."""
        return 1 << (len(self.levels) - 1)

    def plus(self, other: RowBins) -> RowBins:
        """The bins of both."""
        n, none = self.n + other.n, self.levels[0][:0]
        both = [np.concatenate(pair) for pair in zip_longest(self.levels, other.levels, fillvalue=none)]
        return RowBins(self.capacity, carried(both, last_level(n, self.capacity)))

    def means(self, size: int) -> Array:
        """Means of z(x) and of k(x, x) in bins of ``size`` rows, a power of two not below the size of these bins."""
        return carried(self.levels, size.bit_length() - 1)[-1] / size


def last_level(n: int, capacity: int) -> int:
    """The smallest L for which n rows fill at most ``capacity`` bins of 2^L rows."""
    level = 0
    while n >> level > capacity:
        level += 1
    return level


def carried(levels: Sequence[Array], last: int) -> tuple[Array, ...]:
    """Add neighbours of each level below ``last``, two at a time, into sums of the next; an odd one stays."""
    found, carry = [], levels[0][:0]
    for level in range(last):
        sums = np.concatenate([levels[level], carry]) if level < len(levels) else carry
        paired = len(sums) - len(sums) % 2
        carry = sums[0:paired:2] + sums[1:paired:2]
        found.append(sums[paired:].copy())  # a view would keep all of them
    return *found, np.concatenate([*levels[last : last + 1], carry])


class SketchSettings(NamedTuple):
    """The parameters of a :class:`MeanSketch` that decide what it keeps."""

    second_moment: bool = False
    reservoir_size: int = 0
    random_state: int = 0
    bins: int = 0


@dataclass(frozen=True, eq=False)
class SketchState:
    """The state of a :class:`MeanSketch` without its features: small, never changed, and all that has to be moved.

    ``a + b`` is the state of the rows of both, and ``sum(states)`` that of all. ``MeanSketch(features) + state`` is a
    sketch again.
    """

    fingerprint: str  # says which features the state belongs to
    settings: SketchSettings  # which sums are kept, and the size of the reservoir
    sums: FeatureSums  # number of rows, sum of features, and the second moment if it is kept
    kept: Reservoir  # rows kept for shrinkage by leave-one-out
    bins: RowBins | None = None  # sums over bins of rows, for two-sample tests of sketches

    @classmethod
    def empty(cls, fingerprint: str, settings: SketchSettings, n_columns: int, n_features: int) -> SketchState:
        """The state of no rows."""
        moment = np.zeros((n_features, n_features)) if settings.second_moment else None
        sums = FeatureSums(0, np.zeros(n_features), 0.0, moment)
        no_rows, no_keys, no_counts = np.empty((0, n_columns)), np.empty(0, np.uint64), np.empty(0, np.int64)
        kept = Reservoir(settings.reservoir_size, no_rows, no_keys, no_counts)
        bins = RowBins.of_rows(settings.bins, np.empty((0, n_features)), np.empty(0)) if settings.bins else None
        return cls(fingerprint, settings, sums, kept, bins)

    def __add__(self, other: Any) -> SketchState:
        if not isinstance(other, SketchState):
            return NotImplemented
        self.check_mergeable(other)
        return self.plus(other)

    def __radd__(self, other: Any) -> SketchState:
        return self if isinstance(other, int) and other == 0 else NotImplemented  # sum() starts at 0

    def plus(self, other: SketchState) -> SketchState:
        """The state of both."""
        kept, sums = self.kept.plus(other.kept), check_sums(self.sums.plus(other.sums))
        bins = None if self.bins is None or other.bins is None else self.bins.plus(other.bins)
        return replace(self, sums=sums, kept=kept, bins=bins)

    def check_same_features(self, other: SketchState) -> None:
        """Raise a ValueError unless both states are sums of the same features."""
        if other.fingerprint != self.fingerprint:
            raise ValueError(
                f"the two sketches have different features (fingerprints {self.fingerprint} and "
                f"{other.fingerprint}); fit the features once, and use them for both. "
                f"Fits of the same rows and seed differ in their last digits from one processor to another: send an "
                f"empty sketch to the machines, by save() or pickle"
            )

    def check_mergeable(self, other: SketchState) -> None:
        """Raise a ValueError unless both states keep the same things of the same features."""
        self.check_same_features(other)
        for name, mine, theirs in zip(SketchSettings._fields, self.settings, other.settings, strict=True):
            if mine != theirs:
                raise ValueError(
                    f"{name}={theirs!r} of the other sketch must be {mine!r}; make both sketches with the same settings"
                )

    def __repr__(self) -> str:
        return f"SketchState(n={self.sums.n:,}, features {self.fingerprint})"


FORMAT = "muhat.MeanSketch.2"

_KEPT = ("rows", "keys", "counts", "limit")


def encode_state(state: SketchState) -> tuple[Header, Arrays]:
    """Header and arrays of a state; what it does not keep is left out."""
    settings = state.settings._asdict()
    arrays: Arrays = {"squares": state.sums.squares, "total": state.sums.total}
    arrays |= {name: getattr(state.kept, name) for name in _KEPT}
    if state.sums.moment is not None:
        arrays["moment"] = state.sums.moment
    if state.bins is None:
        del settings["bins"]  # then the file is one of version 0.2
    else:
        arrays["bins"] = np.concatenate(state.bins.levels[::-1])
    return {"settings": settings, "n": state.sums.n}, arrays


def decode_state(header: Header, arrays: Arrays, empty: SketchState) -> SketchState:
    """The state of a header and arrays, for an empty one of its features; a ValueError where they do not fit."""
    sums = _sums(header, arrays, empty)
    bins = _bins(arrays, sums, empty.settings.bins) if empty.settings.bins else None
    return SketchState(empty.fingerprint, empty.settings, sums, _reservoir(arrays, empty), bins)


def decode_settings(header: Header) -> SketchSettings:
    """The settings of a sketch, checked where a sketch is made of them."""
    return SketchSettings(**header["settings"])


def _sums(header: Header, arrays: Arrays, empty: SketchState) -> FeatureSums:
    n, squares = check_count("n", header["n"], low=0), float(finite_array(arrays, "squares"))
    if n > np.iinfo(np.int64).max:
        raise ValueError(f"n={n} is more than can be counted")
    m, second_moment = len(empty.sums.total), empty.settings.second_moment
    if ("moment" in arrays) != second_moment:
        raise ValueError(f"second_moment={second_moment}, and its sums say otherwise")
    moment = finite_array(arrays, "moment", m, m) if second_moment else None
    return check_sums(FeatureSums(n, finite_array(arrays, "total", m), squares, moment))


def _reservoir(arrays: Arrays, empty: SketchState) -> Reservoir:
    rows = finite_array(arrays, "rows", None, empty.kept.rows.shape[1])
    keys = finite_array(arrays, "keys", len(rows), dtype="u8")
    counts = finite_array(arrays, "counts", len(rows), dtype="i8")
    kept = Reservoir(empty.kept.capacity, rows, keys, counts, finite_array(arrays, "limit", dtype="u8")[()])
    if not np.array_equal(keys, row_keys(rows, empty.settings.random_state)) or (keys >= kept.limit).any():
        raise ValueError("its rows are damaged: they do not fit their keys")
    if len(rows) > kept.capacity or (counts < 1).any():
        raise ValueError("its rows are damaged: they do not fit their number")
    return kept


def _bins(arrays: Arrays, sums: FeatureSums, capacity: int) -> RowBins:
    """Bins, whose numbers at each level follow from n: the last level first, then the binary digits below it."""
    last = last_level(sums.n, capacity)
    counts = [sums.n >> last, *((sums.n >> level) & 1 for level in reversed(range(last)))]
    found: Array = finite_array(arrays, "bins", sum(counts), len(sums.total) + 1)
    most = np.sqrt(float(sums.n)) * np.sqrt(max(sums.squares, 0.0))  # Σ|z| of any feature, by Cauchy and Schwarz
    if (np.abs(found[:, :-1].sum(axis=0) - sums.total) > 1e-9 * most).any():
        raise ValueError("its bins are damaged: they do not add up to their total")
    return RowBins(capacity, tuple(np.split(found, np.cumsum(counts)[:-1])[::-1]))
