"""Samples as they are passed to tests: vectors, data frames with mixed columns, strata and scales of columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import permutations
from numbers import Real
from typing import Any, Literal, NamedTuple

import numpy as np

from muhat.elements import Element
from muhat.kernels.base import Kernel, Measure
from muhat.measures import Atoms
from muhat.tables.scales import dominant_column
from muhat.types import Array
from muhat.validation import check_columns, check_not_path, check_rows, check_weights, first_missing, warn_caller

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


def column_labels(X: Any) -> list[str] | None:
    """What the columns of a data frame are called in words, None for anything else."""
    columns = getattr(X, "columns", None)
    return None if columns is None else [str(column) for column in columns]


# ---------------------------------------------------------------- tables

ColumnKind = Literal["number", "bool", "date", "category"]

GAP, OTHERS = "(missing)", "(others)"
"""Levels that stand for gaps, and for all rare categories."""

_IN_WORDS = {"number": "numbers", "bool": "truth values", "date": "dates", "category": "text or categories"}


class Coordinate(NamedTuple):
    """A coordinate by its label, such as "age" or "colour = white"; ``level`` is None for what is not a category."""

    label: str
    column: str
    kind: ColumnKind
    level: str | None = None


@dataclass(frozen=True)
class CodedColumn:
    """How a column of a table becomes coordinates.

    Numbers stay, dates are days, and each of the ``levels`` of a category is a coordinate, 1 where a row has it. A gap
    is a level. In their ``unit`` two rows differ by 2 in the mean square, as numbers of variance 1 do.
    """

    name: Any
    kind: ColumnKind
    levels: tuple[str, ...] = ()
    unit: float = np.nan

    @property
    def coordinates(self) -> list[Coordinate]:
        column = str(self.name)
        if self.kind != "category":
            return [Coordinate(column, column, self.kind)]
        return [Coordinate(f"{column} = {level}", column, self.kind, level) for level in self.levels]

    def coded(self, values: Any) -> Array:
        """The coordinates of plain values; of a category that is not one of the levels, those of the rare ones."""
        if self.kind != "category":
            return np.asarray(values, dtype=np.float64)[:, None]
        found, codes = np.unique(_shown(values), return_inverse=True)
        unknown = len(self.levels) - (self.levels[-1] == OTHERS)
        place = {level: k for k, level in enumerate(self.levels)}
        indicators = np.eye(len(self.levels) + 1, len(self.levels))
        return indicators[np.array([place.get(str(text), unknown) for text in found], dtype=np.intp)[codes]]


@dataclass(frozen=True)
class Coding:
    """How the rows of tables with the same columns become rows of numbers."""

    columns: tuple[CodedColumn, ...]

    def rows(self, name: str, table: Any) -> Array:
        """The coordinates of a table, or a ValueError that names the column and the row."""
        missing = [column.name for column in self.columns if column.name not in list(table.columns)]
        if missing:
            raise ValueError(f"{name} lacks the column {missing[0]!r}; pass a table with the columns of the test")
        parts = []
        for column in self.columns:
            kind, values = _plain_values(table[column.name])
            if not _agree({kind, column.kind}):
                raise ValueError(
                    f"column {column.name!r} of {name} holds {_IN_WORDS[kind or column.kind]} and held "
                    f"{_IN_WORDS[column.kind]} in the test; convert it first"
                )
            parts.append(column.coded(_checked(name, table, column, values)))
        return np.hstack(parts)


class Coordinates(NamedTuple):
    """Samples as numbers, the labels of their coordinates, and the units of those that stand for a category.

    ``units`` has NaN for columns of numbers; it is None where all columns are numbers. ``coding`` is None where the
    samples are not tables.
    """

    samples: list[Any]
    names: list[str] | None
    units: Array | None
    coding: Coding | None = None


def coordinates(*samples: Any, names: Sequence[str] = ("X", "Y")) -> Coordinates:
    """Data frames with the same columns, their categories and dates as numbers; anything else stays as it is.

    A category is a coordinate, 1 where a row has it, and a gap among categories is one too. Dates are days. The
    ``names`` of the samples are for messages.
    """
    labels = column_labels(samples[0])
    if labels is None or not all(map(_is_table, samples)) or len(set(labels)) < len(labels):
        return Coordinates(list(samples), labels, None)
    coding = Coding(tuple(_coded_column(column, samples, names) for column in samples[0].columns))
    units = np.array([column.unit for column in coding.columns for _ in column.coordinates])
    of_categories = None if np.isnan(units).all() else units
    rows = [coding.rows(name, sample) for name, sample in zip(names, samples, strict=False)]
    if all(column.kind in ("number", "bool") for column in coding.columns):
        rows = list(samples)
    found = [coordinate.label for column in coding.columns for coordinate in column.coordinates]
    return Coordinates(rows, found, of_categories, coding)


def _is_table(sample: Any) -> bool:
    return hasattr(sample, "to_numpy") and column_labels(sample) is not None


def _agree(kinds: set[ColumnKind | None]) -> bool:
    """Whether values of these kinds can stand in one column; None is a column of gaps."""
    return len({"number" if kind == "bool" else kind for kind in kinds} - {None}) <= 1


def _coded_column(column: Any, samples: Sequence[Any], names: Sequence[str]) -> CodedColumn:
    found = [_plain_values(sample[column]) for sample in samples]
    kinds = {kind for kind, _ in found}
    if not _agree(kinds):
        held = [
            f"{_IN_WORDS[kind]} in {name} ({sample[column].dtype})"
            for (kind, _), name, sample in zip(found, names, samples, strict=False)
            if kind is not None
        ]
        text = next((name for (kind, _), name in zip(found, names, strict=False) if kind == "category"), names[0])
        convert = "to_datetime" if "date" in kinds else "to_numeric"
        raise ValueError(
            f"column {column!r} holds {' and '.join(held)}; give both one type, such as {text}[{column!r}] = "
            f"pandas.{convert}({text}[{column!r}])"
        )
    if "category" in kinds:
        return _category(column, np.concatenate([_shown(values) for _, values in found]))
    kind: ColumnKind = "date" if "date" in kinds else "bool" if kinds == {"bool"} else "number"
    return CodedColumn(column, kind)


def _shown(values: Any) -> Any:
    """Texts, with a word for gaps; numbers here are gaps only."""
    return np.array([str(value) if isinstance(value, str) else GAP for value in values], dtype=object).astype(str)


def _plain_values(series: Any) -> tuple[ColumnKind | None, Any]:
    """Numbers as floats, dates as days, and anything else as texts, with None for gaps; no kind where all are gaps."""
    values = np.asarray(series.to_numpy())
    if values.dtype.kind in "mM":
        days = values.astype(f"{values.dtype.kind}8[us]")
        return "date", np.where(np.isnat(days), np.nan, days.astype(np.int64) / 86_400e6)
    is_category = str(series.dtype) == "category"
    if values.dtype.kind in "biuf" and not is_category:
        return "bool" if values.dtype.kind == "b" else "number", values.astype(np.float64)
    gaps = np.asarray(series.isna() if hasattr(series, "isna") else series.is_null(), dtype=bool)
    known = values[~gaps]
    numbers = np.full(len(values), np.nan)
    if not is_category and all(isinstance(value, Real | Decimal | bool | np.bool_) for value in known):
        numbers[~gaps] = known.astype(np.float64)
        return "number" if len(known) else None, numbers
    if not is_category and all(isinstance(value, date) or hasattr(value, "to_timestamp") for value in known):
        numbers[~gaps] = [_days(value) for value in known]
        return "date", numbers
    texts = np.full(len(values), None, dtype=object)
    texts[~gaps] = [str(value) for value in known]
    return "category", texts


def _days(value: Any) -> float:
    """Days from the start of 1970 to a date, a time (of a time zone: in UTC), or the start of a pandas Period."""
    if not isinstance(value, date):
        value = value.to_timestamp()
    if not isinstance(value, datetime):
        return float(value.toordinal() - date(1970, 1, 1).toordinal())
    return (value - datetime(1970, 1, 1, tzinfo=None if value.tzinfo is None else UTC)) / timedelta(days=1)


def _checked(name: str, table: Any, column: CodedColumn, values: Any) -> Any:
    """The values, if none of a number or date is missing or infinite."""
    if column.kind == "category" or np.isfinite(values).all():
        return values
    row = int(np.flatnonzero(~np.isfinite(values))[0])
    where = f"column {column.name!r} has it first in row {row} (counted from 0)"
    if np.isnan(values[row]):
        dropped = f"{name}.dropna()" if hasattr(table, "dropna") else f"{name}.drop_nulls().drop_nans()"
        remedy = f"drop such rows, {dropped}, or fill the gaps by sklearn.impute.SimpleImputer"
        raise ValueError(f"{name} contains NaN: {where}; {remedy}")
    raise ValueError(f"{name} contains infinity: {where}; drop such rows, or clip the column")


def _category(name: Any, shown: Any) -> CodedColumn:
    """The commonest categories, one for all others, and the unit of all."""
    found, codes, counts = np.unique(shown, return_inverse=True, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    rank = np.empty(len(found), dtype=np.intp)
    rank[order] = np.arange(len(found))
    levels = [str(found[k]) for k in order[:MOST_CATEGORIES]]
    if len(found) > MOST_CATEGORIES:
        levels[-1] = OTHERS
    shares = np.eye(len(levels))[np.minimum(rank[codes], MOST_CATEGORIES - 1)].mean(axis=0)
    unit = float(np.sqrt(max(1.0 - float(shares @ shares), LEAST_DIFFERING)))
    return CodedColumn(name, "category", tuple(levels), unit)


class TableElement(Element):
    """An element over the coordinates of tables: it takes tables too, and codes them as the test did."""

    def __init__(self, kernel: Kernel, *measures: Measure, coding: Coding) -> None:
        super().__init__(kernel, *measures)
        self.coding = coding

    def __call__(self, X: Any) -> Array:
        """Values at the rows of X: a table with the columns of the test, or an array of coordinates."""
        return super().__call__(self.coding.rows("X", X) if _is_table(X) else X)

    def __mul__(self, factor: float) -> TableElement:
        return TableElement(self.kernel, *super().__mul__(factor).measures, coding=self.coding)

    __rmul__ = __mul__


def witness_of(kernel: Kernel, atoms: Atoms, coding: Coding | None) -> Element:
    """The element that has these atoms; where they came from tables, it takes tables."""
    return Element(kernel, atoms) if coding is None else TableElement(kernel, atoms, coding=coding)


def same_columns(X: Any, Y: Any, name: str = "Y") -> Any:
    """Y with its columns in the order of X's, where both have names; a ValueError where the names differ."""
    x, y = (list(getattr(sample, "columns", ())) for sample in (X, Y))
    if not x or not y or x == y:
        return Y
    check_columns(y, x, name, remedy="pass arrays")
    return Y[x]


def two_tables(X: Any, Y: Any) -> Coordinates:
    """The coordinates of both samples; a ValueError where one is a table with texts and the other is not a table."""
    for name, sample in (("X", X), ("Y", Y)):
        check_not_path(name, sample)
    for (name, table), (other, sample) in permutations([("X", X), ("Y", Y)]):
        if not _is_table(table) or column_labels(sample) is not None:
            continue
        texts = [column for column in table.columns if _plain_values(table[column])[0] in ("category", "date")]
        if texts:
            raise ValueError(
                f"{other} is of type {type(sample).__name__} and {name} is a data frame with texts, categories or "
                f"dates (column {texts[0]!r}); pass {other} as a data frame with the same columns"
            )
    return coordinates(X, same_columns(X, Y))


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
    missing = first_missing(strata)
    if missing is not None:
        raise ValueError(f"strata[{missing}] is missing; leave rows without a stratum out, or give them a label")
    if len({type(label) for label in labels.tolist()}) > 1:
        labels = labels.astype(str)  # numbers and texts have no common order
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


def check_scale(
    scale: Any,
    pooled: Array,
    default: bool,
    of_categories: Array | None = None,
    names: Sequence[str] | None = None,
) -> Array | None:
    """A unit for each column, or None for the units that the columns have.

    "columns" is the mean absolute deviation from the median of the pooled sample; a constant column keeps its unit.
    "auto" is "columns" in the ``default`` test, and no scale elsewhere, with a warning where one column dominates.
    ``of_categories`` has the units of coordinates that stand for a category, and NaN for others; ``names`` are those
    of columns.
    """
    if scale is None or (isinstance(scale, str) and scale == "auto" and not default):
        if scale is not None:
            _warn_of_dominant_columns(pooled, names)
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


def _warn_of_dominant_columns(pooled: Array, names: Sequence[str] | None) -> None:
    found = dominant_column(pooled)
    if found is not None:
        column, share = found
        warn_caller(
            f"column {column if names is None else repr(names[column])} makes up {share:.1%} of the squared "
            f"distances, so that the kernel hardly sees the other {pooled.shape[1] - 1}; "
            'pass scale="columns", or scale=None to keep the units',
        )
