"""Sums of features over bins of neighbouring rows, in bounded memory, which merge over parts of the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np

from muhat.types import Array


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
