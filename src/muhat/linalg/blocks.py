"""Slices of consecutive rows: work that is done a block at a time."""

from __future__ import annotations

from collections.abc import Iterator


def blocks(n: int, size: int, start: int = 0) -> Iterator[slice]:
    """The slices of at most ``size`` rows that cover the rows from ``start`` to n.

    >>> list(blocks(5, 2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return (slice(first, min(first + size, n)) for first in range(start, n, size))
