"""Pairings of the rows of two samples, at random or all of them, and sums of products of kernel matrices over them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy import fft
from scipy.special import factorial

from muhat.linalg.blocks import blocks
from muhat.types import Array

_DIAGONALS = 64


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

    @classmethod
    def within_strata(cls, strata: Any, n_resamples: int, rng: np.random.Generator) -> ListedPairings:
        """Random pairings that permute the rows of Y within strata."""
        pairs = np.tile(np.arange(len(strata)), (n_resamples + 1, 1))
        for stratum in np.unique(strata):
            inside = np.flatnonzero(strata == stratum)
            pairs[1:, inside] = rng.permuted(pairs[1:, inside], axis=1)
        return cls(pairs)

    @classmethod
    def every(cls, strata: Any) -> ListedPairings:
        """All pairings within strata; that of rows in their order is the first of :func:`itertools.permutations`."""
        pairs = np.arange(len(strata))[None]
        for stratum in np.unique(strata):
            inside = np.flatnonzero(strata == stratum)
            orders = np.array(list(permutations(inside)))
            pairs = np.repeat(pairs, len(orders), axis=0)
            pairs[:, inside] = np.tile(orders, (len(pairs) // len(orders), 1))
        return cls(pairs)

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
    numbers = np.zeros(n, dtype=np.intp) if strata is None else strata
    with np.errstate(over="ignore"):  # infinite where there are very many
        count = float(np.prod(factorial(np.bincount(numbers))))
    if count <= n_resamples + 1:
        return ListedPairings.every(numbers), 1.0 / count
    drawn = (
        ShiftedPairings(n, n_resamples, rng)
        if strata is None
        else ListedPairings.within_strata(strata, n_resamples, rng)
    )
    return drawn, 1.0 / (n_resamples + 1)
