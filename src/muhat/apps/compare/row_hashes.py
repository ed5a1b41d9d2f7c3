"""Hashes of rows, by which tables that share rows are recognised."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from muhat.tables.frames import Column

MOST_HASHES = 2**22
"""In longer tables several consecutive rows have one hash."""

_FACTORS = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_STEP = 0x9E3779B97F4A7C15


def rows_per_hash(n_rows: int) -> int:
    """A power of two: how many consecutive rows of a table have one hash.

    >>> rows_per_hash(3000), rows_per_hash(16_000_000)
    (1, 4)
    """
    return 1 << (-(-n_rows // MOST_HASHES) - 1).bit_length()


def column_hashes(column: Column, number: int, group: int = 1) -> NDArray[np.uint64]:
    """What a column adds to the hashes of its rows, or of groups of consecutive rows.

    The number of the column, and that of the row within its group, are mixed into each summand, so that no values can
    change places.
    """
    if column.kind == "category":
        digests = [blake2b(level.encode(errors="replace"), digest_size=8).digest() for level in column.levels]
        bits = np.frombuffer(b"".join([*digests, bytes(8)]), dtype=np.uint64)[column.values]
    else:
        bits = (np.where(np.isnan(column.values), np.nan, column.values) + 0.0).view(np.uint64)  # one NaN, one zero
    mixed = _mixed(bits) + np.uint64((number + 1) * _STEP % 2**64)
    if group == 1:
        return _mixed(mixed)
    mixed += np.arange(len(mixed), dtype=np.uint64) % np.uint64(group)
    padded = np.append(_mixed(mixed), np.zeros(-len(mixed) % group, dtype=np.uint64))
    return np.asarray(padded.reshape(-1, group).sum(axis=1, dtype=np.uint64))


def count_different(hashes: NDArray[np.uint64]) -> int:
    """How many different hashes there are; numpy.unique takes ten times as long."""
    return 1 + int((np.diff(np.sort(hashes)) != 0).sum())


def _mixed(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Numbers whose bits depend on all bits of the given ones (the finaliser of SplitMix64)."""
    bits = (bits ^ (bits >> np.uint64(30))) * _FACTORS[0]
    bits = (bits ^ (bits >> np.uint64(27))) * _FACTORS[1]
    return np.asarray(bits ^ (bits >> np.uint64(31)))
