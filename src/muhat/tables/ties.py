"""Equal values: numbers that agree to the precision of the coarser of several columns are ties."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from muhat._support.types import Array

EXACT = 2.0**-49
"""Numbers in double precision that agree to this share are ties: eight units in the last place, as x·3/3 leaves."""

SINGLE = 2.0**24
"""Whole numbers up to this one are numbers in single precision by nature."""

LEAST_DIGITS, MOST_DIGITS = 6, 12
"""Digits that a column written as text may have been rounded to. Columns that need fewer hold such values by nature
(whole years are not rounded ages), and with more, rounding of the digits themselves hides how many they are."""

HEAD = 30
"""Rows that tell in little time that a column is not coarse."""

_LARGEST, _SMALLEST = 1e290, 1e-280  # digits of numbers beyond cannot be counted in double precision


def merge_ties(*samples: Array) -> list[Array]:
    """The samples with one value for all numbers that agree to the precision of the coarser column.

    Where one sample was stored in single precision, was written with six digits, or was computed in another order,
    its numbers differ from equal ones of the other sample by rounding. Merge first, then count, rank and compare as
    usual: after it, ties are equal. All numbers of a column are rounded as the coarsest sample is, and what then
    differs by a few units in the last place is one value. Values of that sample stay distinct.

    Samples have the same columns, with NaN where a value is missing; where no numbers are merged they are returned
    themselves.

    Examples
    --------
    >>> x, y = merge_ties(np.array([0.1, 0.2]), np.array([0.1, 0.3], dtype=np.float32).astype(float))
    >>> bool(x[0] == y[0]), bool(x[1] == y[1])
    (True, False)
    """
    if samples[0].ndim == 1:
        return [each[:, 0] for each in merge_ties(*(sample[:, None] for sample in samples))]
    ends = np.cumsum([len(sample) for sample in samples])[:-1]
    pooled, merged = np.concatenate(samples), False
    coarse = np.logical_or.reduce([_may_be_coarse(sample[:HEAD]) for sample in samples])
    for j in np.flatnonzero(coarse):
        rounded = _rounded(pooled[:, j].copy(), [Precision.of(sample[:, j]) for sample in samples])
        merged = merged or not np.array_equal(rounded, pooled[:, j], equal_nan=True)
        pooled[:, j] = rounded
    order = np.argsort(pooled, axis=0)
    ordered = np.take_along_axis(pooled, order, axis=0)
    with np.errstate(over="ignore", invalid="ignore"):  # the difference of the largest numbers, and of missing ones
        near = np.diff(ordered, axis=0) <= EXACT * np.abs(ordered[1:])
    near &= (ordered[1:] != np.rint(ordered[1:])) | (ordered[:-1] != np.rint(ordered[:-1]))
    near &= ordered[1:] > ordered[:-1]
    for j in np.flatnonzero(near.any(axis=0)):
        values = ordered[:, j]
        starts = np.append(True, ~near[:, j] & (values[1:] != values[:-1]))
        pooled[order[:, j], j] = values[np.maximum.accumulate(np.where(starts, np.arange(len(values)), 0))]
        merged = True
    return np.split(pooled, ends) if merged else list(samples)


class Precision(NamedTuple):
    """How the numbers of a column were rounded.

    To single precision from ``single`` on, and to significant ``digits`` below ``top``, and to ``decimals``; infinite
    where they were not.
    """

    single: float
    digits: float
    top: float
    decimals: float

    @classmethod
    def of(cls, column: Array) -> Precision:
        """The coarsest precision that all numbers of the column have."""
        known = column[~np.isnan(column)]
        single = np.inf
        with np.errstate(over="ignore"):
            if (known.astype(np.float32) == known).all():  # which all small whole numbers are
                single = SINGLE if (np.rint(known) == known).all() else 0.0
        top = 10.0 ** np.floor(1.0 + np.log10(np.clip(np.abs(known).max(initial=0.0), _SMALLEST, _LARGEST)))
        return cls(single, _least(_has_digits, known), float(top), _least(_has_decimals, known))

    def places(self, values: Array) -> Array:
        """Decimals that numbers of these sizes have in a column of this precision."""
        sizes = np.abs(values)
        kept = np.where(sizes < self.top, self.digits - 1.0 - _decades(values), np.inf)
        return np.minimum(kept, np.where(sizes < 1e3 * self.top, self.decimals, np.inf))


_LARGEST_SINGLE = float(np.finfo(np.float32).max)


def _least(has: Callable[[Array, int], NDArray[np.bool_]], known: Array) -> float:
    """The least number of digits or decimals that a column has; infinite where it has very few or very many."""
    if not has(known, MOST_DIGITS) or has(known, LEAST_DIGITS - 1):
        return np.inf
    return float(next(digits for digits in range(LEAST_DIGITS, MOST_DIGITS + 1) if has(known, digits)))


def _rounded(values: Array, precisions: list[Precision]) -> Array:
    """The values as they are written in the coarsest of these precisions."""
    sizes, single = np.abs(values), min(precision.single for precision in precisions)
    if single < np.inf:
        with np.errstate(over="ignore"):
            values = np.where((sizes > single) & (sizes < _LARGEST_SINGLE), values.astype(np.float32), values)
    places = np.minimum.reduce([precision.places(values) for precision in precisions])
    (few,) = np.nonzero(places <= _MOST_PLACES)
    if not len(few):
        return values
    up, down = (10.0 ** exponents.clip(0) for exponents in (places[few], -places[few]))
    scaled = values[few] * up / down
    counts = np.rint(scaled)
    rounded = counts * down / up  # the nearest number, as powers of ten are exact and one of the two is 1
    for i in np.flatnonzero(np.abs(np.abs(scaled - counts) - 0.5) < 1e-3):  # which the last digits decide
        rounded[i] = round(float(values[few[i]]), int(places[few[i]]))
    values[few] = rounded
    return values


_MOST_PLACES = 22  # powers of ten up to this one are exact


def _may_be_coarse(rows: Array) -> NDArray[np.bool_]:
    """Columns of which the first rows have the precision of single numbers or of texts."""
    with np.errstate(over="ignore", invalid="ignore"):
        single = ((rows.astype(np.float32) == rows) | np.isnan(rows)).all(axis=0)
    return np.asarray(single | _has_digits(rows, MOST_DIGITS) | _has_decimals(rows, MOST_DIGITS))


def _decades(values: Array) -> Array:
    """The power of ten of the first digit of each number; minus infinity where it cannot be told."""
    sizes = np.abs(values)
    told = (sizes > _SMALLEST) & (sizes < _LARGEST)
    return np.where(told, np.floor(np.log10(np.where(told, sizes, 1.0))), -np.inf)


def _has_digits(rows: Array, digits: int) -> NDArray[np.bool_]:
    """Columns whose numbers have at most so many significant digits."""
    decades = _decades(rows)
    units = np.where(np.isfinite(decades), 10.0 ** (np.where(np.isfinite(decades), decades, 0.0) - digits + 1), 0.0)
    return _are_whole(np.divide(rows, units, out=np.full_like(rows, 0.5), where=units > 0), rows)


def _has_decimals(rows: Array, decimals: int) -> NDArray[np.bool_]:
    """Columns whose numbers have at most so many decimals."""
    with np.errstate(over="ignore"):
        return _are_whole(rows * 10.0**decimals, rows)


def _are_whole(scaled: Array, rows: Array) -> NDArray[np.bool_]:
    """Columns of whole numbers, up to the rounding of numbers of double precision that were scaled."""
    with np.errstate(invalid="ignore"):
        near = np.abs(scaled - np.rint(scaled)) <= 1e-15 * np.abs(scaled)
    return np.asarray((near & (np.abs(scaled) < 1e13) | (rows == 0) | np.isnan(rows)).all(axis=0))
