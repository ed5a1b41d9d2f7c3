"""Kernel means in one pass: sums of features, which add up over blocks, files and machines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from muhat.elements import Element
from muhat.features.archive import finite_array, read_archive, write_archive
from muhat.features.base import BaseFeatures
from muhat.features.feature_sums import FeatureSums, MeanChoice, check_sums
from muhat.features.fourier import Fourier
from muhat.features.nystroem import Nystroem
from muhat.features.reservoir import Reservoir, row_keys
from muhat.kernels.base import Kernel
from muhat.kernels.serialization import decode_kernel, encode_kernel
from muhat.linalg.blocks import blocks
from muhat.linalg.resources import LockedMixin
from muhat.measures import Atoms
from muhat.shrinkage.scores import Lam, Scale
from muhat.types import Array
from muhat.validation import check_count, check_flag, check_rows, in_column_order

_ROWS, _CELLS = 4096, 2**20  # rows, and numbers, that are read at a time


_FORMAT = "muhat.MeanSketch.2"


_KEPT = ("rows", "keys", "counts", "limit")


class MeanSketch(LockedMixin):
    r"""A kernel mean in one pass over the data, in memory that does not grow with the rows.

    Kept are n, :math:`Z^\top 1` and :math:`\operatorname{tr} Z^\top Z`, enough for the plain average and for simple
    shrinkage; with ``second_moment`` also :math:`Z^\top Z`, for λ by Theorem 4; with ``reservoir_size`` rows too, for λ
    by deletion. All of them add up: sketches of parts merge into the sketch of the whole, in any order.
    ``a.merge(b)`` adds b to a in place and returns a; ``a + b`` is a new sketch.

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

    Attributes
    ----------
    n_ : int
        Rows seen.

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
        self, features: BaseFeatures, second_moment: bool = False, reservoir_size: int = 0, random_state: int = 0
    ) -> None:
        if not isinstance(features, BaseFeatures):
            raise ValueError(f"features={features!r} must be fitted features, such as Nystroem().fit(X)")
        check_is_fitted(features, "fingerprint_")
        self.features, self._fingerprint = features, features.fingerprint_
        self.second_moment = check_flag("second_moment", second_moment)
        self.reservoir_size = check_count("reservoir_size", reservoir_size, low=0)
        self.random_state = check_count("random_state", random_state, low=0)
        m, none = features._n_features_out, np.empty((0, features.n_features_in_))
        self._sums = FeatureSums(0, np.zeros(m), 0.0, np.zeros((m, m)) if second_moment else None)
        self._kept = Reservoir(self.reservoir_size, none, np.empty(0, np.uint64), np.empty(0, np.int64))

    @property
    def n_(self) -> int:
        """Rows seen."""
        return self._sums.n

    @property
    def moment_(self) -> Array:
        """ZᵀZ, of shape (m, m); only with ``second_moment``."""
        if self._sums.moment is None:
            raise AttributeError("the sketch has no second moment; make it with second_moment=True")
        return self._sums.moment

    def update(self, X: Any) -> Self:
        """Add rows; X is anything with a shape that can be sliced (an array, ``np.memmap``, an HDF5 data set).

        The columns of a data frame are put in the order of those that the features were fitted to.
        """
        return self._take(self._read(X), 1)

    def downdate(self, X: Any) -> Self:
        """Take away rows of earlier updates; that they were, only rows of the reservoir can tell."""
        part = self._read(X)
        if part.n_ > self.n_:
            raise ValueError(
                f"X has {part.n_} rows to remove and the sketch holds only {self.n_}; pass rows that were added before"
            )
        return self._take(part, -1)

    def merge(self, other: MeanSketch) -> Self:
        """Add another sketch to this one, in place."""
        self._check_mergeable(other)
        return self._take(other, 1)

    def __add__(self, other: MeanSketch) -> MeanSketch:
        return self._empty().merge(self).merge(other) if isinstance(other, MeanSketch) else NotImplemented

    def __radd__(self, other: Any) -> MeanSketch:
        return self._empty().merge(self) if other == 0 else NotImplemented  # sum() starts at 0

    def choose(self, lam: Lam = "theorem4", scale: Scale = 1.0) -> MeanChoice:
        """λ, scale and score of a shrunken mean; parameters as in :func:`feature_mean`."""
        self._check_filled()
        kept = self._kept if len(self._kept.rows) else None
        if kept is None or lam == "theorem4" or lam == 0:
            return self._sums.choose(lam, scale)
        return self._sums.choose(lam, scale, self.features._features(kept.rows), kept.counts.astype(float))

    def shrinkage(self) -> float:
        """The amount α of simple shrinkage (S-KMSE); ``mean_features(scale="loo")`` is shrunk by it."""
        return 1.0 - self.choose(0.0, "loo").scale

    def mean_features(self, lam: Lam = 0.0, scale: Scale = 1.0) -> Array:
        """The mean in features, shape (m,); parameters as in :func:`feature_mean`, by default the plain average."""
        return self._sums.coefficients(self.choose(lam, scale))

    def mean_element(self, lam: Lam = 0.0, scale: Scale = 1.0) -> Element:
        """The mean as an element of the space, on the landmarks; only with Nyström features."""
        if not isinstance(self.features, Nystroem):
            raise ValueError(
                f"{type(self.features).__name__} features are not elements of the kernel's space; use "
                f"mean_features(), or Nystroem features"
            )
        weights = self.features._map @ self.mean_features(lam, scale)
        names = getattr(self.features, "feature_names_in_", None)
        return Element(self.features.kernel_, Atoms.trusted(self.features.landmarks_, weights), feature_names=names)

    def __call__(self, X: Any, lam: Lam = 0.0, scale: Scale = 1.0) -> Array:
        """Values of the mean, as a function, at the rows of X: an array of shape (n,)."""
        w = self.mean_features(lam, scale)
        return np.concatenate([np.empty(0), *(self.features._features(rows) @ w for rows in self._blocks(X))])

    def distance(self, other: MeanSketch) -> float:
        """Distance of the plain averages in features: the MMD, up to the error of the features."""
        self._check_same_features(other)
        return float(np.linalg.norm(self.mean_features() - other.mean_features()))

    def _empty(self) -> MeanSketch:
        return MeanSketch(self.features, self.second_moment, self.reservoir_size, self.random_state)

    def _take(self, part: MeanSketch, sign: int) -> Self:
        with part._lock:  # not inside of the other lock: two sketches may be added to each other at once
            sums, kept = part._sums, part._kept
        with self._lock:
            kept = self._kept.plus(kept, sign)  # may refuse: first
            self._sums, self._kept = check_sums(self._sums.plus(sums, sign)), kept
        return self

    def _read(self, X: Any) -> MeanSketch:
        """A sketch of X alone, so that bad rows leave this one as it was."""
        if self.features.fingerprint_ != self._fingerprint:
            raise ValueError("the features were fitted again since the sketch was made; make a new one")
        part = self._empty()
        part._kept = replace(part._kept, limit=self._kept.limit)
        for rows in self._blocks(X):
            with np.errstate(over="ignore", invalid="ignore"):  # infinite sums are refused below
                sums = check_sums(self._sums_of(rows))
            kept = part._kept.seen(rows, self.random_state) if self.reservoir_size else part._kept
            part._sums, part._kept = part._sums.plus(sums), part._kept.plus(kept)
        return part

    def _sums_of(self, rows: Array) -> FeatureSums:
        if not self.second_moment:
            return FeatureSums(len(rows), *self.features._totals(rows))
        Z = self.features._features(rows)
        return FeatureSums(len(rows), Z.sum(axis=0), float(np.vdot(Z, Z)), Z.T @ Z)

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

    def _check_same_features(self, other: Any) -> None:
        if not isinstance(other, MeanSketch):
            raise ValueError(f"{other!r} is not a MeanSketch; make one with the same features, and update it")
        if other._fingerprint != self._fingerprint:
            raise ValueError(
                f"the two sketches have different features (fingerprints {self._fingerprint} and "
                f"{other._fingerprint}); fit the features once, and use them for both"
            )

    def _check_mergeable(self, other: Any) -> None:
        self._check_same_features(other)
        for name in ("second_moment", "reservoir_size", "random_state"):
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine != theirs:
                raise ValueError(
                    f"{name}={theirs!r} of the other sketch must be {mine!r}; make both sketches with the same settings"
                )

    def save(self, path: str | Path) -> None:
        """Write the sketch and its features to one file (``.npz``), which holds numbers and text alone.

        Parameters
        ----------
        path : str or Path
            The file, an ``.npz`` archive.
        """
        f = self.features
        with self._lock:
            sums, kept = self._sums, self._kept
        kernel = encode_kernel(f.kernel_)
        if kernel is None:
            raise ValueError(f"{f.kernel_!r} holds more than numbers and cannot be saved; pickle the sketch instead")
        settings = {name: getattr(self, name) for name in ("second_moment", "reservoir_size", "random_state")}
        header: dict[str, Any] = {"features": type(f).__name__, "kernel": kernel, "settings": settings}
        header |= {"n": sums.n, "fingerprint": self._fingerprint, "orthogonal": bool(getattr(f, "orthogonal", False))}
        arrays = {f"features{name}": getattr(f, name) for name in f._arrays}
        arrays |= {"squares": sums.squares, "total": sums.total, "error": f.approximation_error_}
        arrays |= {name: getattr(kept, name) for name in _KEPT}
        if sums.moment is not None:
            arrays["moment"] = sums.moment
        if hasattr(f, "feature_names_in_"):
            arrays["names"] = np.array(f.feature_names_in_, dtype=str)
        write_archive(path, _FORMAT, header, arrays)

    @classmethod
    def load(cls, path: str | Path, kernels: Iterable[type[Kernel]] = ()) -> MeanSketch:
        """Read what ``save`` wrote; nothing in the file is executed.

        Parameters
        ----------
        path : str or Path
            The file, an ``.npz`` archive.
        kernels : classes of kernels, optional
            The file names the class of its kernel. If you wrote that class yourself, pass it: ``kernels=[MyKernel]``.
        """
        known = tuple(kernels)
        what = "a sketch that MeanSketch.save of this version wrote"
        return read_archive(path, _FORMAT, what, lambda header, arrays: cls._restored(header, arrays, known))

    @classmethod
    def _restored(cls, header: dict[str, Any], arrays: dict[str, Any], kernels: Iterable[type[Kernel]]) -> MeanSketch:
        kernel = decode_kernel(header["kernel"], kernels)
        features: Any
        if header["features"] == "Nystroem":
            landmarks = finite_array(arrays, "featureslandmarks_", None, None)
            features = Nystroem(kernel, len(landmarks), landmarks)
            wide = finite_array(arrays, "features_map", len(landmarks), None).shape[1]
            features.n_features_in_, features._n_features_out = landmarks.shape[1], wide
        else:
            d, f = finite_array(arrays, "featuresfrequencies_", None, None).shape
            finite_array(arrays, "features_centre", d)
            features = Fourier(kernel, 2 * f, check_flag("orthogonal", header["orthogonal"]))
            features.n_features_in_, features._n_features_out = d, 2 * f
        features.kernel_ = kernel
        for name in features._arrays:
            setattr(features, name, arrays[f"features{name}"])
        features.approximation_error_ = float(finite_array(arrays, "error"))
        d, m = features.n_features_in_, features._n_features_out
        if "names" in arrays:
            if arrays["names"].shape != (d,) or arrays["names"].dtype.kind != "U":
                raise ValueError("its names do not fit the columns")
            features.feature_names_in_ = arrays["names"].astype(object)
        features.fingerprint_ = features._fingerprint()
        if features.fingerprint_ != header["fingerprint"]:
            raise ValueError("its features are damaged: their fingerprint has changed")
        with np.errstate(over="ignore", invalid="ignore"):  # a projection is not longer than what it projects
            rows = getattr(features, "landmarks_", np.zeros((1, d)))
            lengths, most = (features._features(rows) ** 2).sum(axis=1), kernel.diagonal(rows)
            if not (lengths <= 1.001 * most).all():
                raise ValueError("its features do not belong to its kernel")
        sketch = cls(features, **header["settings"])
        n, squares = check_count("n", header["n"], low=0), float(finite_array(arrays, "squares"))
        if n > np.iinfo(np.int64).max:
            raise ValueError(f"n={n} is more than can be counted")
        if ("moment" in arrays) != sketch.second_moment:
            raise ValueError(f"second_moment={sketch.second_moment}, and its sums say otherwise")
        moment = finite_array(arrays, "moment", m, m) if sketch.second_moment else None
        sums = check_sums(FeatureSums(n, finite_array(arrays, "total", m), squares, moment))
        rows = finite_array(arrays, "rows", None, d)
        keys = finite_array(arrays, "keys", len(rows), dtype="u8")
        counts = finite_array(arrays, "counts", len(rows), dtype="i8")
        kept = Reservoir(sketch.reservoir_size, rows, keys, counts, finite_array(arrays, "limit", dtype="u8")[()])
        if not np.array_equal(keys, row_keys(rows, sketch.random_state)) or (keys >= kept.limit).any():
            raise ValueError("its rows are damaged: they do not fit their keys")
        if len(rows) > kept.capacity or (counts < 1).any():
            raise ValueError("its rows are damaged: they do not fit their number")
        sketch._sums, sketch._kept = sums, kept
        return sketch

    def __repr__(self) -> str:
        f = self.features
        return f"MeanSketch({type(f).__name__}, {f._n_features_out:,} features of {f.kernel_!r}, n={self.n_:,})"
