"""Kernel means in one pass: sums of features, which add up over blocks, files and machines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from muhat._support.archives import Arrays, Header, read_archive, write_archive
from muhat._support.types import Array
from muhat._support.validation import check_count, check_flag, check_rows, in_column_order
from muhat.features.archive import decode_features, encode_features
from muhat.features.base import BaseFeatures
from muhat.features.sketch_state import (
    FORMAT,
    RowBins,
    SketchSettings,
    SketchState,
    decode_settings,
    decode_state,
    encode_state,
)
from muhat.grams import FeaturesGram, FeatureSums
from muhat.kernels.base import Kernel
from muhat.linalg.blocks import blocks
from muhat.linalg.resources import LockedMixin
from muhat.rkhs.elements import Element

FEWEST_BINS = 20
"""A sketch with room for fewer bins would give tests in which many rows are in no bin."""

_ROWS, _CELLS = 4096, 2**20  # rows, and numbers, that are read at a time


class MeanSketch(LockedMixin):
    r"""A kernel mean in one pass over the data, in memory that does not grow with the rows.

    Kept are n, :math:`Z^\top 1` and :math:`\operatorname{tr} Z^\top Z`, enough for the plain average and for simple
    shrinkage; with ``second_moment`` also :math:`Z^\top Z`, for λ by Theorem 4; with ``reservoir_size`` rows too, for λ
    by leave-one-out; with ``bins`` also sums over bins of rows, for :func:`mmd_test`. All of them add up: sketches of
    parts merge into the sketch of the whole. ``a + b`` is a new sketch, ``sum(sketches)`` that of all, and
    ``a.merge(b)`` adds b to a in place and returns a.

    Parameters
    ----------
    features : Nystroem or Fourier
        Fitted, and the same for all sketches that are to merge: fit once, then share them.
    second_moment : bool, default False
        Costs O(m²) for each row and m² memory, m the number of features.
    reservoir_size : int, default 0
        Different rows to keep: those with the smallest keys, a hash of row and seed, and how often they were seen.
    random_state : int, default 0
        Seed of the keys; the same for all sketches that are to merge.
    bins : int, default 0
        Most bins of rows to keep, 0 for none, else 20 or more; ``mmd_test(a, b)`` of two sketches permutes them. They
        cost ``bins`` times m numbers. A bin holds 2^L neighbouring rows, with the smallest L for which the bins
        suffice.

    Attributes
    ----------
    n_ : int
        Rows seen.
    state_ : SketchState
        All that is known of the rows, without the features: states merge with ``+`` as sketches do, and are what
        machines should send where the features are large.

    See Also
    --------
    mmd_test : The two-sample test, which takes two sketches with bins.
    DriftMonitor : Alarms for a stream.

    Notes
    -----
    Sums and rows of the reservoir do not depend on how the rows were cut into parts, up to rounding, nor on the order
    of the parts. The number and size of bins depend on n alone, whereas the rows that share a bin are neighbours in
    the order in which rows and parts come.

    Examples
    --------
    >>> import muhat as mh
    >>> X = mh.paper_mixture(5, random_state=0).sample(3000, random_state=1)
    >>> features = mh.Nystroem(n_components=100, random_state=0).fit(X[:500])
    >>> monday, tuesday = mh.MeanSketch(features).update(X[:1000]), mh.MeanSketch(features).update(X[1000:])
    >>> both = monday + tuesday
    >>> both.n_, round(monday.distance(tuesday), 3)
    (3000, 0.028)
    >>> both.mean_element()
    Element(Gaussian(bandwidth=19.4...), 100 atoms in 5 dimensions, total weight 0.9985)
    """

    def __init__(
        self,
        features: BaseFeatures,
        second_moment: bool = False,
        reservoir_size: int = 0,
        random_state: int = 0,
        bins: int = 0,
    ) -> None:
        if not isinstance(features, BaseFeatures):
            raise ValueError(f"features={features!r} must be fitted features, such as Nystroem().fit(X)")
        check_is_fitted(features, "kernel_")
        self.features = features
        self.second_moment = check_flag("second_moment", second_moment)
        self.reservoir_size = check_count("reservoir_size", reservoir_size, low=0)
        self.random_state = check_count("random_state", random_state, low=0)
        self.bins = check_count("bins", bins, low=0)
        if 0 < self.bins < FEWEST_BINS:
            raise ValueError(f"bins={self.bins} must be 0, for no bins, or a whole number of at least {FEWEST_BINS}")
        settings = SketchSettings(self.second_moment, self.reservoir_size, self.random_state, self.bins)
        self._state = SketchState.empty(
            features.fingerprint_, settings, features.n_features_in_, features._n_features_out
        )

    @property
    def n_(self) -> int:
        """Rows seen."""
        return self._state.sums.n

    @property
    def state_(self) -> SketchState:
        """All that is known of the rows, without the features."""
        return self._state

    def update(self, X: Any) -> Self:
        """Add rows: an array, a data frame, or anything with a shape that can be sliced (``np.memmap``, HDF5).

        Columns of a data frame are put in the order that the features were fitted to.
        """
        return self._take(self._read(X))

    def merge(self, other: MeanSketch | SketchState) -> Self:
        """Add another sketch with the same features and settings, or its state, to this one, in place."""
        state = _state_of(other)
        self._state.check_mergeable(state)
        return self._take(state)

    def __add__(self, other: Any) -> MeanSketch:
        return self._with(self._state + _state_of(other)) if _has_state(other) else NotImplemented

    def __radd__(self, other: Any) -> MeanSketch:
        if isinstance(other, SketchState):
            return self._with(other + self._state)
        return self._with(self._state) if isinstance(other, int) and other == 0 else NotImplemented  # of sum()

    def gram(self) -> FeaturesGram:
        """Return the sums as a Gram matrix for mean estimators: ``ShrunkKernelMean().estimate(sketch.gram())``."""
        self._check_filled()
        if self.n_ < 2:
            raise ValueError(f"an estimate needs 2 rows, not {self.n_}; update the sketch, or use mean_element()")
        sums, kept = self._state.sums, self._state.kept
        if not len(kept.rows):
            return FeaturesGram(sums, self.features)
        return FeaturesGram(sums, self.features, self.features.evaluate(kept.rows), kept.counts.astype(float))

    def mean_features(self) -> Array:
        """Return the empirical average in features, an array of shape (m,)."""
        self._check_filled()
        return self._state.sums.total / self.n_

    def mean_element(self) -> Element:
        """Return the empirical average as an element of the space, on the landmarks; only with Nyström features."""
        return FeaturesGram(self._state.sums, self.features).element(self.mean_features())

    def __call__(self, X: Any) -> Array:
        """Evaluate the empirical average, as a function, at the rows of X: an array of shape (n,)."""
        w = self.mean_features()
        return np.concatenate([np.empty(0), *(self.features.evaluate(rows) @ w for rows in self._blocks(X))])

    def distance(self, other: MeanSketch | SketchState) -> float:
        """Compute the distance of the empirical averages in features: the MMD, up to the error of the features."""
        state = _state_of(other)
        self._state.check_same_features(state)
        return float(np.linalg.norm(self.mean_features() - self._with(state).mean_features()))

    def _with(self, state: SketchState) -> MeanSketch:
        """A sketch of the same features with another state."""
        sketch = MeanSketch(self.features, *state.settings)
        sketch._state = state
        return sketch

    def _take(self, part: SketchState) -> Self:
        with self._lock:
            self._state = self._state.plus(part)
        return self

    def _read(self, X: Any) -> SketchState:
        """The state of X alone, so that bad rows leave this sketch as it was."""
        f, held = self.features, self._state
        if f.fingerprint_ != held.fingerprint:
            raise ValueError("the features were fitted again since the sketch was made; make a new one")
        state = SketchState.empty(held.fingerprint, held.settings, f.n_features_in_, f._n_features_out)
        state = replace(state, kept=replace(state.kept, limit=held.kept.limit))
        for rows in self._blocks(X):
            with np.errstate(over="ignore", invalid="ignore"):  # infinite sums are refused
                state = state.plus(self._block_state(rows, state))
        return state

    def _block_state(self, rows: Array, before: SketchState) -> SketchState:
        """The state of a block of rows, of which those with too large keys are not kept."""
        kept = before.kept.seen(rows, self.random_state) if self.reservoir_size else before.kept
        if not self.second_moment and not self.bins:
            return replace(before, sums=FeatureSums(len(rows), *self.features._totals(rows)), kept=kept)
        Z = self.features.evaluate(rows)
        moment = Z.T @ Z if self.second_moment else None
        sums = FeatureSums(len(rows), Z.sum(axis=0), float(np.vdot(Z, Z)), moment)
        bins = RowBins.of_rows(self.bins, Z, self.features.kernel_.diagonal(rows)) if self.bins else None
        return replace(before, sums=sums, kept=kept, bins=bins)

    def _blocks(self, X: Any) -> Iterator[Array]:
        X = in_column_order(
            X if hasattr(X, "shape") else check_rows(X), getattr(self.features, "feature_names_in_", None)
        )
        width = self.features.n_features_in_
        if len(X.shape) != 2 or X.shape[1] != width:
            raise ValueError(f"X has shape {tuple(X.shape)} and must have {width} columns, as the features have")
        source = getattr(X, "iloc", X)
        size = max(min(_ROWS, _CELLS // max(width, self.features._n_features_out)), 1)
        return (check_rows(source[rows]) for rows in blocks(X.shape[0], size))

    def _check_filled(self) -> None:
        if self.n_ == 0:
            raise ValueError("the sketch is empty; call update(X) first")

    def save(self, path: str | Path) -> None:
        """Write the sketch and its features to one file (``.npz``) of numbers and text alone."""
        (header, arrays), (of_state, sums) = encode_features(self.features), encode_state(self._state)
        write_archive(path, FORMAT, header | of_state, arrays | sums)

    @classmethod
    def load(cls, path: str | Path, kernels: Iterable[type[Kernel]] = ()) -> Self:
        """Read what ``save`` wrote; nothing in the file is executed.

        The file names the class of its kernel: if you wrote that class yourself, pass it, ``kernels=[MyKernel]``.
        """
        known = tuple(kernels)

        def restored(header: Header, arrays: Arrays) -> Any:
            sketch = cls(decode_features(header, arrays, known), *decode_settings(header))
            sketch._state = decode_state(header, arrays, sketch._state)
            return sketch

        return read_archive(path, FORMAT, "a sketch that MeanSketch.save of this version wrote", restored)

    def __repr__(self) -> str:
        f = self.features
        return f"MeanSketch({type(f).__name__}, {f._n_features_out:,} features of {f.kernel_!r}, n={self.n_:,})"


def _has_state(thing: Any) -> bool:
    return isinstance(thing, MeanSketch | SketchState)


def _state_of(thing: Any) -> SketchState:
    """The state of a sketch, or the state itself; a ValueError for anything else."""
    if not _has_state(thing):
        raise ValueError(f"{thing!r} is not a MeanSketch; make one with the same features, and update it")
    return thing._state if isinstance(thing, MeanSketch) else thing
