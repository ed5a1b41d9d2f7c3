"""Bags in features, summed up for a prior: means, covariance within bags, and sizes, which merge over machines."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from muhat._support.types import Array
from muhat.bags.data import Bags, check_bags
from muhat.bags.moments import BagMoments, bag_moments
from muhat.features.archive import ArchivedSketch, Arrays, Header, finite_array
from muhat.features.base import BaseFeatures
from muhat.features.nystroem import Nystroem
from muhat.linalg.blocks import random_rows
from muhat.linalg.resources import LockedMixin, one_blas_thread

MAX_ROWS_FOR_OUTSIDE_PART = 300
"""Rows of a bag, drawn at random, that say what the span of the landmarks misses of its mean."""


class OutsideSums(NamedTuple):
    """Sums, over the rows that are not landmarks, of the part outside the span of the landmarks. They can be added."""

    pairs: float = 0.0  # inner products of different rows of a bag
    squares: float = 0.0
    n_pairs: int = 0
    n_rows: int = 0

    @classmethod
    def of(cls, features: Nystroem, bags: Bags) -> OutsideSums:
        """Over some rows of each bag."""
        sums, landmarks = cls(), _as_bytes(features.landmarks_)
        for rows in bags.parts(bags.rows):
            # The generator starts anew for each bag, so that its sums do not depend on the other bags.
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


class BagState(NamedTuple):
    """Sizes of bags, their moments in features, and sums over what the features miss; None for Fourier features."""

    sizes: NDArray[np.intp]
    moments: BagMoments
    outside: OutsideSums | None

    def plus(self, other: BagState) -> BagState:
        """The state of the bags of both, these first."""
        if not len(self.sizes):
            return other
        missed = None if self.outside is None or other.outside is None else self.outside.plus(other.outside)
        return BagState(np.concatenate([self.sizes, other.sizes]), self.moments.plus(other.moments), missed)


class BagSketch(ArchivedSketch, LockedMixin):
    """Mergeable summary of bags for :class:`BagPrior`: a few numbers per bag, which add up.

    Kept are the size of each bag and the mean of its features, m numbers per bag, and one covariance within bags, m²
    numbers. ``a + b`` is the sketch of the bags of both, ``sum(sketches)`` that of all, and
    ``BagPrior().fit(sketch)`` is the prior that a fit to all bags in one place would give with these features, up to
    rounding. All rows of a bag have to be in one part.

    Parameters
    ----------
    features : Nystroem or Fourier
        Fitted to a sample of rows of many bags, and the same for all sketches that are to merge.

    Attributes
    ----------
    n_bags_ : int
        Bags seen.

    See Also
    --------
    BagPrior : The prior that is fitted to it.
    MeanSketch : Sketch of the mean of one sample.

    Examples
    --------
    >>> import numpy as np
    >>> import muhat as mh
    >>> rng = np.random.default_rng(0)
    >>> bags = [rng.normal(rng.normal(size=2), size=(n, 2)) for n in rng.integers(3, 100, size=60)]
    >>> features = mh.Nystroem(n_components=50, random_state=0).fit(np.vstack(bags[::4]))
    >>> parts = [mh.BagSketch(features).update(part) for part in (bags[:20], bags[20:50], bags[50:])]
    >>> sum(parts)
    BagSketch(Nystroem, 49 features of Gaussian(bandwidth=2.23...), bags=60)
    >>> prior, here = (mh.BagPrior().fit(sketch) for sketch in (sum(parts), mh.BagSketch(features).update(bags)))
    >>> bool(np.allclose(prior.log_odds(bags), here.log_odds(bags)))
    True
    """

    _format = "muhat.BagSketch.1"

    def __init__(self, features: BaseFeatures) -> None:
        if not isinstance(features, BaseFeatures):
            raise ValueError(f"features={features!r} must be fitted features, such as Nystroem().fit(rows)")
        check_is_fitted(features, "fingerprint_")
        self.features, self._fingerprint = features, features.fingerprint_
        m = features.n_features_out_
        nothing = BagMoments(np.empty((0, m)), np.zeros((m, m)), 0)
        self._state = BagState(np.empty(0, np.intp), nothing, OutsideSums() if isinstance(features, Nystroem) else None)

    @property
    def n_bags_(self) -> int:
        """Bags seen."""
        return len(self._state.sizes)

    @property
    def state_(self) -> BagState:
        """Sizes, moments and sums of the bags."""
        return self._state

    def update(self, bags: Any) -> Self:
        """Add bags.

        Parameters
        ----------
        bags : sequence of arrays of shape (n_i, d)
            One array of rows per bag, all with d columns.

        Returns
        -------
        self
            The sketch.
        """
        if self.features.fingerprint_ != self._fingerprint:
            raise ValueError("the features were fitted again since the sketch was made; make a new one")
        return self.add(check_bags(bags, self.features, reset=False))

    @one_blas_thread()
    def add(self, bags: Bags) -> Self:
        """Add bags that have been checked."""
        outside = OutsideSums.of(self.features, bags) if isinstance(self.features, Nystroem) else None
        return self._take(BagState(bags.sizes, bag_moments(self.features, bags), outside))

    def merge(self, other: BagSketch) -> Self:
        """Add another sketch to this one, in place.

        Parameters
        ----------
        other : BagSketch
            A sketch with the same features.

        Returns
        -------
        self
            The sketch.
        """
        if not isinstance(other, BagSketch):
            raise ValueError(f"{other!r} is not a BagSketch; make one with the same features, and update it")
        if other._fingerprint != self._fingerprint:
            raise ValueError(
                f"the two sketches have different features (fingerprints {self._fingerprint} and "
                f"{other._fingerprint}); fit the features once, and use them for both"
            )
        return self._take(other._state)

    def __add__(self, other: Any) -> BagSketch:
        return (0 + self).merge(other) if isinstance(other, BagSketch) else NotImplemented

    def __radd__(self, other: Any) -> BagSketch:
        if not (isinstance(other, int) and other == 0):  # where sum() starts
            return NotImplemented
        return BagSketch(self.features)._take(self._state)

    def _take(self, part: BagState) -> Self:
        with self._lock:
            self._state = self._state.plus(part)
        return self

    def _encoded_state(self) -> tuple[Header, Arrays]:
        sizes, moments, outside = self._state
        arrays = {"sizes": sizes.astype(np.int64), "means": moments.means, "within": moments.within}
        return {}, arrays | {"outside": np.array(OutsideSums() if outside is None else outside, dtype=float)}

    @classmethod
    def _decoded(cls, features: BaseFeatures, header: Header, arrays: Arrays) -> Self:
        sketch = cls(features)
        sizes = finite_array(arrays, "sizes", None, dtype="i8")
        if len(sizes) and sizes.min() < 1:
            raise ValueError("it has a bag without rows")
        m = sketch._state.moments.means.shape[1]
        means, within = finite_array(arrays, "means", len(sizes), m), finite_array(arrays, "within", m, m)
        pairs, squares, n_pairs, n_rows = finite_array(arrays, "outside", 4).tolist()
        outside = None if sketch._state.outside is None else OutsideSums(pairs, squares, int(n_pairs), int(n_rows))
        sketch._state = BagState(sizes, BagMoments(means, within, int(sizes.sum()) - len(sizes)), outside)
        return sketch

    def __repr__(self) -> str:
        f = self.features
        return f"BagSketch({type(f).__name__}, {f.n_features_out_:,} features of {f.kernel_!r}, bags={self.n_bags_:,})"
