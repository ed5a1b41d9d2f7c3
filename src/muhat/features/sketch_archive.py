"""The state of a sketch as numbers and text, for files and bytes that are read without pickle."""

from __future__ import annotations

import numpy as np

from muhat.features.archive import Arrays, Header, finite_array
from muhat.features.feature_sums import FeatureSums, check_sums
from muhat.features.reservoir import Reservoir, row_keys
from muhat.features.row_bins import RowBins, last_level
from muhat.features.sketch_state import SketchSettings, SketchState
from muhat.types import Array
from muhat.validation import check_count

FORMAT = "muhat.MeanSketch.2"

_KEPT = ("rows", "keys", "counts", "limit")


def encode_state(state: SketchState) -> tuple[Header, Arrays]:
    """Header and arrays of a state; what it does not keep is left out."""
    settings = state.settings._asdict()
    arrays: Arrays = {"squares": state.sums.squares, "total": state.sums.total}
    arrays |= {name: getattr(state.kept, name) for name in _KEPT}
    if state.sums.moment is not None:
        arrays["moment"] = state.sums.moment
    if state.bins is None:
        del settings["bins"]  # then the file is one of version 0.2
    else:
        arrays["bins"] = np.concatenate(state.bins.levels[::-1])
    return {"settings": settings, "n": state.sums.n}, arrays


def decode_state(header: Header, arrays: Arrays, empty: SketchState) -> SketchState:
    """The state of a header and arrays, for an empty one of its features; a ValueError where they do not fit."""
    sums = _sums(header, arrays, empty)
    bins = _bins(arrays, sums, empty.settings.bins) if empty.settings.bins else None
    return SketchState(empty.fingerprint, empty.settings, sums, _reservoir(arrays, empty), bins)


def decode_settings(header: Header) -> SketchSettings:
    """The settings of a sketch, checked where a sketch is made of them."""
    return SketchSettings(**header["settings"])


def _sums(header: Header, arrays: Arrays, empty: SketchState) -> FeatureSums:
    n, squares = check_count("n", header["n"], low=0), float(finite_array(arrays, "squares"))
    if n > np.iinfo(np.int64).max:
        raise ValueError(f"n={n} is more than can be counted")
    m, second_moment = len(empty.sums.total), empty.settings.second_moment
    if ("moment" in arrays) != second_moment:
        raise ValueError(f"second_moment={second_moment}, and its sums say otherwise")
    moment = finite_array(arrays, "moment", m, m) if second_moment else None
    return check_sums(FeatureSums(n, finite_array(arrays, "total", m), squares, moment))


def _reservoir(arrays: Arrays, empty: SketchState) -> Reservoir:
    rows = finite_array(arrays, "rows", None, empty.kept.rows.shape[1])
    keys = finite_array(arrays, "keys", len(rows), dtype="u8")
    counts = finite_array(arrays, "counts", len(rows), dtype="i8")
    kept = Reservoir(empty.kept.capacity, rows, keys, counts, finite_array(arrays, "limit", dtype="u8")[()])
    if not np.array_equal(keys, row_keys(rows, empty.settings.random_state)) or (keys >= kept.limit).any():
        raise ValueError("its rows are damaged: they do not fit their keys")
    if len(rows) > kept.capacity or (counts < 1).any():
        raise ValueError("its rows are damaged: they do not fit their number")
    return kept


def _bins(arrays: Arrays, sums: FeatureSums, capacity: int) -> RowBins:
    """Bins, whose numbers at each level follow from n: the last level first, then the binary digits below it."""
    last = last_level(sums.n, capacity)
    counts = [sums.n >> last, *((sums.n >> level) & 1 for level in reversed(range(last)))]
    found: Array = finite_array(arrays, "bins", sum(counts), len(sums.total) + 1)
    most = np.sqrt(float(sums.n)) * np.sqrt(max(sums.squares, 0.0))  # Σ|z| of any feature, by Cauchy and Schwarz
    if (np.abs(found[:, :-1].sum(axis=0) - sums.total) > 1e-9 * most).any():
        raise ValueError("its bins are damaged: they do not add up to their total")
    return RowBins(capacity, tuple(np.split(found, np.cumsum(counts)[:-1])[::-1]))
