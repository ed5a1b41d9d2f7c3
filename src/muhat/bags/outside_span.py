"""The part of the means of bags outside of the span of the landmarks, and the bags for which it is too large."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from muhat.bags.data import Bags
from muhat.features.nystroem import Nystroem
from muhat.linalg.blocks import random_rows
from muhat.types import Array

MAX_ROWS_FOR_OUTSIDE_PART = 300
"""Rows of a bag, drawn at random, that say what the span of the landmarks misses of its mean."""


class OutsideSums(NamedTuple):
    """Sums over rows that are not landmarks of what the span of the landmarks misses; those of parts add up."""

    pairs: float = 0.0  # inner products of different rows of a bag
    squares: float = 0.0
    n_pairs: int = 0
    n_rows: int = 0

    @classmethod
    def of(cls, features: Nystroem, bags: Bags) -> OutsideSums:
        """Over some rows of each bag."""
        sums, landmarks = cls(), _as_bytes(features.landmarks_)
        for rows in bags.parts(bags.rows):
            # A seed per bag, so that the sums of parts add up to those of all bags.
            chosen = random_rows(rows, MAX_ROWS_FOR_OUTSIDE_PART, np.random.default_rng(0))
            free = chosen[[row not in landmarks for row in _as_bytes(chosen)]]
            if not len(free):
                continue
            Z, n = features.evaluate(free), len(free)  # rows have been checked
            total = float(features.kernel_.evaluate(free, free).sum() - np.square(Z.sum(axis=0)).sum())
            squares = float(features.kernel_.diagonal(free).sum() - np.square(Z).sum())
            sums = sums.plus(cls(total - squares, squares, n * (n - 1), n))
        return sums

    def plus(self, other: OutsideSums) -> OutsideSums:
        """The sums of both."""
        return OutsideSums(
            self.pairs + other.pairs,
            self.squares + other.squares,
            self.n_pairs + other.n_pairs,
            self.n_rows + other.n_rows,
        )


class OutsidePart(NamedTuple):
    """The squared part of a mean outside of the span of the landmarks, and the noise of a row there."""

    missed: float
    noise: float

    @classmethod
    def of(cls, sums: OutsideSums) -> OutsidePart:
        """From pairs of rows of a bag, which share nothing but the mean; landmarks have no part outside."""
        if not sums.n_pairs:
            return cls(0.0, 0.0)
        missed = max(sums.pairs / sums.n_pairs, 0.0)
        return cls(missed, max(sums.squares / sums.n_rows - missed, 0.0))

    def better_plain(self, features: Nystroem, bags: Bags, noise_sizes: Array, gains: Array) -> NDArray[np.bool_]:
        r"""Bags whose average errs less than an estimate in the span, as far as can be told.

        The estimate misses R. The average of n_i rows with a share p_i that are not landmarks errs outside of the span
        by R(1 − p_i)² + e p_i/n_i, e the noise. Of a population of N_i rows the mean has the part R + e/N_i there,
        and 1/n_i is 1/n_i − 1/N_i.
        """
        landmarks = _as_bytes(features.landmarks_)
        free = np.array([row not in landmarks for row in _as_bytes(bags.rows)])
        share = np.add.reduceat(free.astype(float), bags.offsets[:-1]) / bags.sizes
        lost = self.missed + self.noise * (1.0 / bags.sizes - 1.0 / noise_sizes)
        return lost > self.missed * (1.0 - share) ** 2 + self.noise * share / noise_sizes + gains


def _as_bytes(rows: Array) -> list[bytes]:
    return [row.tobytes() for row in rows]
