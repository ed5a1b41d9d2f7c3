"""What people pass to a test: vectors, data frames, strata, columns in different units."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from muhat.kernels.base import Kernel
from muhat.types import Array
from muhat.validation import check_rows, check_weights

DOMINANT = 0.98
"""A column that makes up more of the squared distances than this is worth a warning."""

MOST_CATEGORIES = 20
"""Of one column; rarer ones are taken together."""

LEAST_DIFFERING = 0.1
"""The share of pairs of rows with different categories that a unit is made from is at least this."""


def sample_rows(name: str, X: Any, min_rows: int) -> Array:
    """The rows of a sample; a vector of numbers is one column."""
    rows = check_rows(_as_column(X), name=name)
    if len(rows) < min_rows:
        raise ValueError(
            f"{name} has {len(rows)} row(s) and this test needs at least {min_rows}; pass all rows of a sample at once"
        )
    return rows


def _as_column(X: Any) -> Any:
    if hasattr(X, "to_frame"):  # a series of pandas or polars
        return X.to_frame()
    if isinstance(X, np.ndarray | list | tuple) and not np.ma.is_masked(X):
        try:
            values = np.asarray(X)
        except ValueError:  # rows of different lengths: the check of rows has the message
            return X
        return values[:, None] if values.ndim == 1 and values.dtype.kind in "biuf" else X
    return X


def column_names(X: Any) -> list[str] | None:
    """The names of the columns of a data frame, None for anything else."""
    columns = getattr(X, "columns", None)
    return None if columns is None else [str(column) for column in columns]


class Coordinates(NamedTuple):
    """Samples as numbers, the names of their coordinates, and the units of those that stand for a category.

    ``units`` has NaN for columns of numbers; it is None where all columns are numbers.
    """

    samples: list[Any]
    names: list[str] | None
    units: Array | None


def coordinates(*samples: Any) -> Coordinates:
    """Data frames with the same columns, their categories and dates as numbers; anything else stays as it is.

    A category is a coordinate, 1 where a row has it, and a gap among categories is one too. In its unit two rows differ
    by 2 in the mean square, as numbers of variance 1 do. Dates are days.
    """
    names = column_names(samples[0])
    frames = all(hasattr(sample, "to_numpy") and column_names(sample) is not None for sample in samples)
    if names is None or not frames or len(set(names)) < len(names):
        return Coordinates(list(samples), names, None)
    parts: list[tuple[str, Any, float]] = []
    for column in samples[0].columns:
        values = [_plain_values(sample[column]) for sample in samples]
        if any(part.dtype == object for part in values):
            parts += _categories(str(column), np.concatenate([part.astype(object) for part in values]))
        else:
            parts.append((str(column), np.concatenate(values), np.nan))
    units = np.array([unit for _, _, unit in parts])
    if np.isnan(units).all() and not any(_has_dates(sample) for sample in samples):
        return Coordinates(list(samples), names, None)
    rows = np.column_stack([values for _, values, _ in parts])
    pieces = np.split(rows, np.cumsum([len(sample) for sample in samples])[:-1])
    return Coordinates(pieces, [name for name, _, _ in parts], None if np.isnan(units).all() else units)


def _has_dates(sample: Any) -> bool:
    return any(sample[column].to_numpy().dtype.kind in "mM" for column in sample.columns)


def _plain_values(series: Any) -> Any:
    """Numbers as floats, dates as days, and anything else as texts, with None for gaps."""
    values = np.asarray(series.to_numpy())
    if values.dtype.kind in "mM":
        days = values.astype(f"{values.dtype.kind}8[us]")
        return np.where(np.isnat(days), np.nan, days.astype(np.int64) / 86_400e6)
    if values.dtype.kind in "biuf" and str(series.dtype) != "category":
        return values.astype(np.float64)
    gaps = np.asarray(series.isna() if hasattr(series, "isna") else series.is_null(), dtype=bool)
    known = values[~gaps]
    if str(series.dtype) != "category" and all(isinstance(value, Real | bool | np.bool_) for value in known):
        numbers = np.full(len(values), np.nan)
        numbers[~gaps] = known.astype(np.float64)
        return numbers
    texts = np.full(len(values), None, dtype=object)
    texts[~gaps] = [str(value) for value in known]
    return texts


def _categories(name: str, values: Any) -> list[tuple[str, Any, float]]:
    """A coordinate for each of the commonest categories, one for all others, and the unit of all."""
    shown = np.array(["(missing)" if value is None else str(value) for value in values])
    found, codes, counts = np.unique(shown, return_inverse=True, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    rank = np.empty(len(found), dtype=np.intp)
    rank[order] = np.arange(len(found))
    codes = np.minimum(rank[codes], MOST_CATEGORIES - 1)
    labels = [str(found[k]) for k in order[:MOST_CATEGORIES]]
    if len(found) > MOST_CATEGORIES:
        labels[-1] = "(others)"
    indicators = np.eye(len(labels))[codes]
    shares = indicators.mean(axis=0)
    unit = float(np.sqrt(max(1.0 - float(shares @ shares), LEAST_DIFFERING)))
    return [(f"{name} = {label}", column, unit) for label, column in zip(labels, indicators.T, strict=True)]


def same_columns(X: Any, Y: Any) -> Any:
    """Y with its columns in the order of X's, where both have names; a ValueError where the names differ."""
    x, y = (list(getattr(sample, "columns", ())) for sample in (X, Y))
    if not x or not y or x == y:
        return Y
    if sorted(map(str, x)) != sorted(map(str, y)) or len(set(x)) < len(x):
        missing = [name for name in x if name not in y] or [name for name in y if name not in x] or x
        raise ValueError(
            f"X has the columns {x} and Y has {y}, which differ in {missing[0]!r}; rename them alike, or pass arrays"
        )
    return Y[x]


def two_samples(X: Any, Y: Any) -> tuple[Array, Array]:
    """The rows of both samples, with the same columns."""
    Y = same_columns(X, Y)
    first, second = sample_rows("X", X, 2), sample_rows("Y", Y, 2)
    if first.shape[1] != second.shape[1]:
        vector = next((name for name, sample in (("X", X), ("Y", Y)) if np.ndim(sample) == 1), None)
        one_row = "" if vector is None else f" (a vector is one column; for one row pass {vector}.reshape(1, -1))"
        raise ValueError(
            f"X has {first.shape[1]} columns and Y has {second.shape[1]}; two samples need the same columns{one_row}"
        )
    return first, second


def check_strata(strata: Any, observed: Array | None, n: int) -> Any:
    """Numbers of the strata of n rows, or None; ``observed`` says which rows are the first sample's."""
    if strata is None:
        return None
    labels = np.asarray(strata)
    if labels.shape != (n,):
        rows = "n + m rows, those of X first" if observed is not None else "rows"
        raise ValueError(f"strata has shape {labels.shape} and must have one label for each of the {n} {rows}")
    _, numbers, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    if sizes.min() < 2:
        alone = labels[np.flatnonzero(numbers == int(sizes.argmin()))[0]]
        raise ValueError(
            f"strata has the label {alone!r} on one row only, which cannot be permuted; drop that row, or join strata"
        )
    if observed is not None:
        shares = np.bincount(numbers, weights=observed) / sizes
        if not ((shares > 0) & (shares < 1)).any():
            raise ValueError(
                "no stratum holds rows of both X and Y, so that nothing can be permuted; use coarser strata, or None"
            )
    return numbers


# ---------------------------------------------------------------- units of columns


@dataclass(frozen=True)
class InUnits(Kernel):
    """k(x / units, y / units), a kernel on columns of different units."""

    kernel: Kernel
    units: tuple[float, ...]

    def evaluate(self, X: Array, Y: Array) -> Array:
        first = X / self.units
        return self.kernel.evaluate(first, first if Y is X else Y / self.units)

    def diagonal(self, X: Array) -> Array:
        return self.kernel.diagonal(X / self.units)

    @property
    def upper_bound(self) -> float:
        return self.kernel.upper_bound


def in_units(kernel: Kernel, units: Array | None) -> Kernel:
    """The kernel itself where columns stay in their own units."""
    return kernel if units is None else InUnits(kernel, tuple(map(float, units)))


def check_scale(scale: Any, pooled: Array, default: bool, of_categories: Array | None = None) -> Array | None:
    """A unit for each column, or None for the units that the columns have.

    "columns" is the mean absolute deviation from the median of the pooled sample; a constant column keeps its unit.
    "auto" is "columns" in the ``default`` test, and no scale elsewhere, with a warning where one column dominates.
    ``of_categories`` has the units of coordinates that stand for a category, and NaN for others.
    """
    if scale is None or (isinstance(scale, str) and scale == "auto" and not default):
        if scale is not None:
            _warn_of_dominant_columns(pooled)
        return None
    if isinstance(scale, str):
        if scale not in ("auto", "columns"):
            raise ValueError(f'scale={scale!r} must be "auto", "columns", None, or one positive number a column')
        halves = np.abs(pooled / 2 - np.median(pooled / 2, axis=0))
        powers = np.ldexp(1.0, np.frexp(halves.max(axis=0))[1].clip(-1000, 1000))
        deviations = (halves / powers).mean(axis=0) * powers  # of numbers whose sum may overflow
        units = np.where(deviations > 0, np.minimum(deviations, np.finfo(np.float64).max / 2) * 2, 1.0)
        return units if of_categories is None else np.where(np.isnan(of_categories), units, of_categories)
    units = check_weights("scale", scale, pooled.shape[1])
    if (units <= 0).any():
        raise ValueError(f"scale has the entry {units.min():g}; pass one positive number a column")
    return units


def _warn_of_dominant_columns(pooled: Array) -> None:
    if pooled.shape[1] < 2:
        return
    halves = pooled / 2 - pooled[0] / 2
    tops = np.abs(halves).max(axis=0)
    deviations = tops * (halves / np.where(tops > 0, tops, 1.0)).std(axis=0)
    largest = float(deviations.max())
    if not (np.isfinite(largest) and largest > 0):
        return
    shares = (deviations / largest) ** 2
    shares /= shares.sum()
    if shares.max() > DOMINANT:
        warnings.warn(
            f"column {int(shares.argmax())} makes up {shares.max():.1%} of the squared distances, so that the kernel "
            f'hardly sees the other {pooled.shape[1] - 1}; pass scale="columns", or scale=None to keep the units',
            UserWarning,
            stacklevel=5,  # of the caller, outside of what holds BLAS to one thread
        )
