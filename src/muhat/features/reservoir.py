"""A bounded sample of rows that is the same in whatever order and parts the rows were seen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from muhat.types import Array

_NO_LIMIT = np.uint64(2**64 - 1)


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
    limit: np.uint64 = _NO_LIMIT  # rows with this key or a larger one have left, or never came

    def seen(self, rows: Array, seed: int) -> Reservoir:
        """The rows that may stay here, as a reservoir of their own."""
        rows = rows + 0.0  # −0.0 and 0.0 are one row
        keys = row_keys(rows, seed)
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
            raise ValueError(
                "X holds a row more often than the sketch has seen it; pass only rows of earlier updates to downdate"
            )
        rows, keys, counts = rows[first][summed > 0], keys[first][summed > 0], summed[summed > 0]
        if len(keys) > self.capacity:
            limit = keys[self.capacity]
        stay = keys < limit
        return Reservoir(self.capacity, rows[stay], keys[stay], counts[stay], limit)
