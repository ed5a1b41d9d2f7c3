"""The part of kernel means of bags that lies outside the span of Nyström landmarks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from muhat._support.types import Array
from muhat.bags.data import Bags
from muhat.features.nystroem import Nystroem
from muhat.linalg.blocks import random_rows

MAX_ROWS = 300
"""Rows of a bag, drawn at random, that say what the span of the landmarks misses of its mean: 45,000 pairs."""


class OutsidePart(NamedTuple):
    """The squared part of a mean outside of the span of the landmarks, and the noise of a row there."""

    missed: float
    noise: float

    @classmethod
    def of(cls, features: Nystroem, bags: Bags) -> OutsidePart:
        """From pairs of rows of a bag, which share nothing but the mean; landmarks have no part outside."""
        pairs = squares = 0.0  # inner products of different rows of a bag, and of rows with themselves
        n_pairs = n_rows = 0
        landmarks = _as_bytes(features.landmarks_)
        for rows in bags.parts(bags.rows):
            # The generator starts anew for each bag, so that its sums do not depend on the other bags.
            chosen = random_rows(rows, MAX_ROWS, np.random.default_rng(0))
            free = chosen[[row not in landmarks for row in _as_bytes(chosen)]]
            if not len(free):
                continue
            Z, n = features.evaluate(free), len(free)  # rows have been checked
            own = float(features.kernel_.diagonal(free).sum() - np.square(Z).sum())
            pairs += float(features.kernel_.evaluate(free, free).sum() - np.square(Z.sum(axis=0)).sum()) - own
            squares += own
            n_pairs, n_rows = n_pairs + n * (n - 1), n_rows + n
        if not n_pairs:
            return cls(0.0, 0.0)
        missed = max(pairs / n_pairs, 0.0)
        return cls(missed, max(squares / n_rows - missed, 0.0))

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
