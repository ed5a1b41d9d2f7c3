"""Tables from data frames of any library, arrays, lists and dictionaries: columns with a kind, missing values known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, time, timedelta
from decimal import Decimal
from numbers import Real
from typing import Any, Literal, NamedTuple

import narwhals as nw
import numpy as np
from narwhals.exceptions import DuplicateError
from numpy.typing import NDArray

from muhat._support.types import Array
from muhat._support.validation import check_not_path, check_rows, equals_itself

Kind = Literal["number", "boolean", "date", "duration", "category", "missing"]
"""What a column holds; "missing" is a column without values, which goes with any other kind."""

KIND_IN_WORDS: dict[Kind, str] = {
    "number": "numbers",
    "boolean": "truth values",
    "date": "dates",
    "duration": "durations",
    "category": "text or categories",
    "missing": "no values",
}

_MICROSECONDS_PER_DAY = 86_400e6


class Column(NamedTuple):
    """A column as a plain array."""

    name: str
    kind: Kind  # text is a category. A column without any value is "missing", whatever its type
    # (n,): of a category, the place of each value in ``levels``, −1 where it is missing. Otherwise float64 with NaN
    # where a value is missing: truth values are 0 and 1, dates are days since 1970 (times with a zone in UTC), and
    # durations and times of day are days
    values: NDArray[Any]
    levels: tuple[str, ...] = ()  # the categories that occur, sorted

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Which values are missing."""
        return self.values < 0 if self.kind == "category" else np.isnan(self.values)


class LeftOut(NamedTuple):
    """A column that takes no part, and the reason, which continues the sentence "column 'a' is left out: ..."."""

    name: str
    reason: str


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of equal length."""

    name: str  # what the user calls the table, for messages
    n_rows: int
    columns: tuple[Column, ...]
    # whether the columns have names of their own; those of an array are called by their number, from "0"
    named: bool = True
    left_out: tuple[LeftOut, ...] = ()  # columns whose values are no numbers, dates or text, such as lists
    # (n, d), or None: all columns side by side where none of them is a category; NaN where a value is missing
    matrix: Array | None = None

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [column.name for column in self.columns]

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of the columns."""
        return tuple([column.kind for column in self.columns])

    def column_in_words(self, name: str) -> str:
        """A column as sentences call it.

        >>> as_table({"age": [31, 42]}).column_in_words("age"), as_table([[31], [42]]).column_in_words("0")
        ("column 'age'", 'column 0')
        """
        return f"column {name!r}" if self.named else f"column {name}"

    def select(self, names: Sequence[str]) -> Table:
        """The table with some of its columns, in the order of the names."""
        if list(names) == self.names and not self.left_out:
            return self
        place = {column.name: j for j, column in enumerate(self.columns)}
        kept = [place[name] for name in names if name in place]
        chosen = set(names)
        return replace(
            self,
            columns=tuple(self.columns[j] for j in kept),
            left_out=tuple(column for column in self.left_out if column.name in chosen),
            matrix=None if self.matrix is None else self.matrix[:, kept],
        )

    def take(self, rows: NDArray[Any]) -> Table:
        """The rows with these numbers, or those that are True. The kinds and levels of the columns stay."""
        matrix = None if self.matrix is None else self.matrix[rows]
        columns = tuple(column._replace(values=column.values[rows]) for column in self.columns)
        return replace(self, n_rows=len(np.arange(self.n_rows)[rows]), columns=columns, matrix=matrix)


def as_table(X: Any, name: str = "X", *, infinite: Literal["refuse", "missing"] = "refuse") -> Table:
    """The table that an object of any library holds.

    The same data give the same table whichever library holds them.

    Data frames are those of pandas, polars, pyarrow and all other libraries that narwhals knows; lazy ones, such as a
    LazyFrame of polars or a relation of DuckDB, are collected. A vector is one column. A dictionary of single values is
    one row. ``name`` is what messages call it, and ``infinite`` says whether infinite numbers are an error. So are two
    columns of one name, and a table without rows or columns.

    Examples
    --------
    >>> table = as_table({"age": [31, None], "plan": ["b", "a"]})
    >>> [(column.name, column.kind, column.values.tolist(), column.levels) for column in table.columns]
    [('age', 'number', [31.0, nan], ()), ('plan', 'category', [1, 0], ('a', 'b'))]
    """
    if isinstance(X, Table):
        return X
    if X is None:
        raise ValueError(f"{name} is None; pass a data frame, an array or a list of rows")
    if type(X) is np.ndarray and X.ndim == 2 and X.dtype.kind in "iuf":
        table = _numbers_table(name, X)
    else:
        check_not_path(name, X)
        table = _table_of_columns(name, X)
    if not table.n_rows:
        raise ValueError(f"{name} has no rows; pass a table that has some")
    if not table.columns and not table.left_out:
        raise ValueError(f"{name} has no columns; pass a table with one column or more")
    return _without_infinities(table, infinite)


def _table_of_columns(name: str, X: Any) -> Table:
    """A table from anything but a matrix of numbers."""
    if isinstance(X, Mapping):
        return _mapping_table(name, X)
    try:
        native = nw.from_native(X, pass_through=True, allow_series=True)
        frame = native.collect() if isinstance(native, nw.LazyFrame) else native
    except DuplicateError as error:
        raise ValueError(
            f"{name} has a column twice ({' '.join(str(error).split())}); give each column a name of its own"
        ) from error
    if isinstance(frame, nw.Series):
        own = frame.name
        column = _series_column("0" if own is None else str(own), frame)
        return _table(name, len(frame), [column], named=False)
    if isinstance(frame, nw.DataFrame):
        return _frame_table(name, frame)
    return _array_table(name, X)


# ---------------------------------------------------------------- from frames, dictionaries and arrays


def _frame_table(name: str, frame: nw.DataFrame[Any]) -> Table:
    names = _distinct_names(name, frame.columns)
    types = frame.schema.dtypes()
    if names and all(dtype.is_numeric() and not dtype.is_decimal() for dtype in types):
        values = frame.to_numpy()
        whole = [dtype.is_integer() and values.dtype.kind == "f" for dtype in types]
        if not (np.abs(values[:, whole]) >= 2.0**53).any():  # beside columns of floats they may have lost digits
            return _numbers_table(name, values, names)
    columns = [_series_column(own, series) for own, series in zip(names, frame.iter_columns(), strict=True)]
    return _table(name, len(frame), columns)


def _mapping_table(name: str, X: Mapping[Any, Any]) -> Table:
    names = _distinct_names(name, X)
    if X and all(isinstance(value, str) or not hasattr(value, "__len__") for value in X.values()):
        X = {key: [value] for key, value in X.items()}  # a row
    vectors = [_vector(value) for value in X.values()]
    lengths = {own: len(values) for own, values in zip(names, vectors, strict=True)}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"the columns of {name} have the lengths {lengths}; give all columns the same rows")
    columns: list[Column | LeftOut] = []
    for own, values in zip(names, vectors, strict=True):
        if isinstance(values, nw.Series):
            columns.append(_series_column(own, values))
        elif isinstance(values, list):
            columns.append(_object_column(own, values))
        elif values.ndim == 1:
            columns.append(_array_column(own, values))
        else:
            raise ValueError(f"column {own!r} of {name} has the shape {values.shape}; pass one value per row")
    return _table(name, next(iter(lengths.values()), 0), columns)


def _vector(values: Any) -> nw.Series[Any] | NDArray[Any] | list[Any]:
    """A column of a dictionary: a series, an array, or a list of objects."""
    if isinstance(values, list | tuple):
        return list(values)
    native = nw.from_native(values, pass_through=True, allow_series=True)
    return native if isinstance(native, nw.Series) else np.atleast_1d(values)


def _array_table(name: str, X: Any) -> Table:
    """A table from an array of any type, or from lists of rows, of values or of dictionaries."""
    if isinstance(X, list | tuple) and X and all(isinstance(row, Mapping) for row in X):
        keys = dict.fromkeys(key for row in X for key in row)
        return _mapping_table(name, {key: [row.get(key) for row in X] for key in keys})
    try:
        values = np.asarray(X)
        if values.dtype.kind in "US" and not isinstance(X, np.ndarray):
            values = np.asarray(X, dtype=object)  # numbers among texts are still numbers
    except ValueError:
        values = np.empty(())  # rows of different lengths
    if np.ma.is_masked(X):
        values = values.astype(object)
        values[np.ma.getmaskarray(X)] = None
    if values.dtype.names:
        return _mapping_table(name, {field: values[field] for field in values.dtype.names})
    if values.ndim not in (1, 2) or values.dtype.kind in "cV":
        check_rows(X, name=name)  # which has a message for each of these
        raise ValueError(f"{name} of type {type(X).__name__} is no table; pass a data frame, or rows and columns")
    if values.ndim == 1:
        values = values[:, None]
    if values.dtype.kind in "iuf":
        return _numbers_table(name, values)
    columns = [_array_column(str(j), values[:, j]) for j in range(values.shape[1])]
    return _table(name, len(values), columns, named=False)


def _numbers_table(name: str, values: NDArray[Any], names: list[str] | None = None) -> Table:
    """A table whose columns are all numbers."""
    if values.dtype.kind in "iu" and _loses_numbers(values):
        own = map(str, range(values.shape[1])) if names is None else names
        parts = [_array_column(each, column) for each, column in zip(own, values.T, strict=True)]
        return _table(name, len(values), parts, names is not None)
    matrix: Array = np.ascontiguousarray(values, dtype=np.float64)
    kinds: list[Kind] = ["number"] * matrix.shape[1]
    with np.errstate(over="ignore", invalid="ignore"):
        if not np.isfinite(matrix.sum()):
            kinds = ["missing" if np.isnan(column).all() else "number" for column in matrix.T]
    labels = map(str, range(matrix.shape[1])) if names is None else names
    columns = tuple(Column(own, kind, column) for own, kind, column in zip(labels, kinds, matrix.T, strict=True))
    return Table(name, len(matrix), columns, names is not None, (), matrix)


TOO_LARGE = (
    "it holds whole numbers beyond 2^53, different ones of which are one number in double precision; for identifiers "
    "make it text"
)


def _loses_numbers(values: NDArray[Any]) -> bool:
    """Whether different whole numbers become one in double precision."""
    if values.dtype.itemsize < 8 or not values.size or -(2**53) <= values.min() <= values.max() <= 2**53:
        return False
    return len(np.unique(values)) > len(np.unique(values.astype(np.float64)))


def _table(name: str, n_rows: int, parts: Iterable[Column | LeftOut], named: bool = True) -> Table:
    parts = list(parts)
    columns = tuple(part for part in parts if isinstance(part, Column))
    left_out = tuple(part for part in parts if isinstance(part, LeftOut))
    has_matrix = columns and all(column.kind != "category" for column in columns)
    matrix = np.column_stack([column.values for column in columns]) if has_matrix else None
    return Table(name, n_rows, columns, named, left_out, matrix)


def _distinct_names(name: str, names: Iterable[Any]) -> list[str]:
    found = [str(each) for each in names]
    if len(set(found)) < len(found):
        twice = next(each for each in found if found.count(each) > 1)
        raise ValueError(f"{name} has the column {twice!r} twice; give each column a name of its own")
    return found


def _without_infinities(table: Table, infinite: str) -> Table:
    """The table, if all its numbers are finite; else an error, or the table with missing values in their place."""
    if table.matrix is not None:
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(table.matrix.sum()):
                return table
    places = [j for j, column in enumerate(table.columns) if column.kind == "number" and np.isinf(column.values).any()]
    if not places:
        return table
    if infinite == "refuse":
        column = table.columns[places[0]]
        row = int(np.isinf(column.values).argmax())
        raise ValueError(
            f"{table.name} contains infinity: {table.column_in_words(column.name)} has it first in row {row} (counted "
            f"from 0); drop such rows, or clip the column"
        )
    columns = [
        _number_column(column.name, np.where(np.isinf(column.values), np.nan, column.values)) if j in places else column
        for j, column in enumerate(table.columns)
    ]
    return _table(table.name, table.n_rows, [*columns, *table.left_out], table.named)


# ---------------------------------------------------------------- columns


def _series_column(name: str, series: nw.Series[Any]) -> Column | LeftOut:
    """The column of a series of any library."""
    if isinstance(series.dtype, nw.Categorical | nw.Enum):
        # narwhals hands missing entries of a dictionary of pyarrow out as the last category, and pandas turns whole
        # numbers among categories into texts of fractions: each has its own way.
        pandas = series.implementation.is_pandas_like()
        return text_column(name, series.to_list() if pandas else series.cast(nw.String).to_numpy().tolist())
    if series.dtype.is_nested():
        return LeftOut(name, "it holds nested values")
    return _array_column(name, series.to_numpy())


def _array_column(name: str, values: NDArray[Any]) -> Column | LeftOut:
    """The column that a vector of any type holds."""
    if np.ma.is_masked(values):
        cells, masked = np.ma.getdata(values).astype(object), np.ma.getmaskarray(values)
        cells[masked] = None
        values = cells
    kind = values.dtype.kind
    if kind in "iu" and _loses_numbers(values):
        return LeftOut(name, TOO_LARGE)
    if kind in "iuf":
        return _number_column(name, values.astype(np.float64))
    if kind == "b":
        return _number_column(name, values.astype(np.float64), "boolean")
    if kind in "mM":
        return _time_column(name, values)
    if kind == "c":
        return LeftOut(name, "it holds complex numbers")
    return _object_column(name, np.char.decode(values).tolist() if kind == "S" else values.tolist())


def _number_column(name: str, values: Array, kind: Kind = "number") -> Column:
    return Column(name, "missing" if np.isnan(values).all() else kind, values)


def _time_column(name: str, values: NDArray[Any]) -> Column:
    """Days since 1970 of dates, and days of durations, from microseconds: the finest that all libraries have."""
    kind: Kind = "date" if values.dtype.kind == "M" else "duration"
    microseconds = values.astype(f"{values.dtype.kind}8[us]")
    days = np.where(np.isnat(microseconds), np.nan, microseconds.astype(np.int64) / _MICROSECONDS_PER_DAY)
    return _number_column(name, days, kind)


def text_column(name: str, values: Sequence[Any]) -> Column:
    """Categories from texts and anything else that is shown as text; what is missing is None, NaN, NaT or NA."""
    types = set(map(type, values))
    if not types <= {str, type(None)}:
        values = [value if type(value) is str else None if _is_missing(value) else str(value) for value in values]
    number: dict[str | None, int] = {}
    codes = np.fromiter((number.setdefault(text, len(number)) for text in values), dtype=np.intp, count=len(values))
    levels = sorted(text for text in number if text is not None)
    if not levels:
        return Column(name, "missing", np.full(len(values), np.nan))
    # Categories have numbers in the order of their first rows; `place` takes these to the sorted order.
    rank = {text: k for k, text in enumerate(levels)}
    place = np.array([-1 if text is None else rank[text] for text in number], dtype=np.intp)
    return Column(name, "category", place[codes], tuple(levels))


def _object_column(name: str, values: list[Any]) -> Column | LeftOut:
    """The column of Python objects: what their types have in common decides."""
    types = set(map(type, values)) - {type(None)}
    if types == {str}:
        return text_column(name, values)
    for unusable, in_words in _UNUSABLE.items():
        if any(issubclass(each, unusable) and each.__name__ not in _OFFSETS for each in types):
            return LeftOut(name, f"it holds {in_words}")
    known = np.array([not _is_missing(value) for value in values], dtype=bool)
    present = [value for value, here in zip(values, known, strict=True) if here]
    types = set(map(type, present))
    if not types:
        return Column(name, "missing", np.full(len(values), np.nan))
    if all(issubclass(each, bool | np.bool_) for each in types):
        return _spread_out(name, known, np.array(present, dtype=np.float64), "boolean")
    if all(issubclass(each, Real | Decimal | np.bool_) for each in types):
        return _spread_out(name, known, np.array([float(value) for value in present]), "number")
    if all(issubclass(each, date | np.datetime64) or hasattr(each, "to_timestamp") for each in types):
        return _spread_out(name, known, np.array([_microseconds_of_date(value) for value in present]), "date")
    if all(issubclass(each, timedelta | time | np.timedelta64) or each.__name__ in _OFFSETS for each in types):
        return _spread_out(name, known, np.array([_microseconds_of_duration(value) for value in present]), "duration")
    return text_column(name, values)


_UNUSABLE: dict[tuple[type, ...], str] = {
    (list, tuple, dict, set, frozenset, np.ndarray): "nested values",
    (bytes, bytearray, memoryview): "bytes",
    (complex,): "complex numbers",
}
"""Types of objects that are no single number, date or text."""

_OFFSETS = ("DateOffset", "MonthDayNano")
"""Names of the types of intervals that DuckDB gives, through pandas and through pyarrow."""


def _is_missing(value: Any) -> bool:
    return value is None or not equals_itself(value)


def _spread_out(name: str, known: NDArray[np.bool_], present: Array, kind: Kind) -> Column:
    """A column with the present values at the known rows, and NaN elsewhere; of dates, microseconds as days."""
    values = np.full(len(known), np.nan)
    values[known] = present / _MICROSECONDS_PER_DAY if kind in ("date", "duration") else present
    return Column(name, kind, values)


def _microseconds_of_date(value: Any) -> int:
    """Since the start of 1970: of a date, a time (with a zone: in UTC), or the start of a Period of pandas."""
    if not isinstance(value, date | np.datetime64):
        value = value.to_timestamp()
    if getattr(value, "tzinfo", None) is not None:
        value = value.astimezone(UTC).replace(tzinfo=None)
    return int(np.datetime64(value, "us").astype(np.int64))


def _microseconds_of_duration(value: Any) -> int:
    """Of a duration, of a time since midnight, or of an interval of DuckDB, whose months have 30 days as there."""
    if isinstance(value, timedelta | np.timedelta64):
        return int(np.timedelta64(value, "us").astype(np.int64))
    if isinstance(value, time):
        return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond
    days = 30 * getattr(value, "months", 0) + getattr(value, "days", 0)
    microseconds = getattr(value, "microseconds", 0) + getattr(value, "nanoseconds", 0) // 1000
    return days * int(_MICROSECONDS_PER_DAY) + microseconds


# ---------------------------------------------------------------- frames as the user has them


def without_column(X: Any, column: str, name: str = "X", parameter: str = "groups") -> tuple[NDArray[Any], Any]:
    """The values of a column as an array of their own type, and the table without it.

    Messages call the table ``name``, and the parameter that names the column ``parameter``.
    """
    frame = X if isinstance(X, Mapping) else nw.from_native(X, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    named = isinstance(frame, Mapping | nw.DataFrame)
    keys: list[Any] = list(frame.columns if isinstance(frame, nw.DataFrame) else frame) if named else []
    found = [key for key in keys if str(key) == column]
    if not found:
        has = f"; it has the columns {[str(key) for key in keys]}" if named else ", which has no names of columns"
        raise ValueError(f"{parameter}={column!r} must be the name of a column of {name}{has}")
    if isinstance(frame, Mapping):
        return np.asarray(frame[found[0]]), {key: values for key, values in frame.items() if key != found[0]}
    series = frame[found[0]]
    if isinstance(series.dtype, nw.Categorical | nw.Enum) and not series.implementation.is_pandas_like():
        series = series.cast(nw.String)
    return series.to_numpy(), frame.drop(found[0]).to_native()


def row_labels(X: Any) -> Any:
    """The index of a data frame of pandas or the like, None where rows have no labels but their numbers."""
    frame = nw.from_native(X, pass_through=True, allow_series=True)
    index = nw.maybe_get_index(frame) if isinstance(frame, nw.DataFrame | nw.Series) else None
    if index is None or (index.dtype.kind == "i" and bool((index == np.arange(len(index))).all())):
        return None
    return index


@dataclass(frozen=True)
class FrameType:
    """What rows came as, a data frame of some library or an array, so that functions of rows get the same."""

    library: Any = None  # None for an array
    columns: tuple[Any, ...] = ()  # the names of the columns of a data frame

    @classmethod
    def of(cls, X: Any) -> FrameType:
        """That of rows as a user has them."""
        frame = nw.from_native(X, pass_through=True)
        return cls(frame.implementation, tuple(frame.columns)) if isinstance(frame, nw.DataFrame) else cls()

    def made_of(self, rows: Array) -> Any:
        """The rows as the user's would be."""
        if self.library is None:
            return rows
        frame = nw.from_numpy(rows, list(map(str, self.columns)), backend=self.library).to_native()
        if self.library.is_pandas_like():
            frame.columns = list(self.columns)  # which need not be texts there
        return frame

    def described(self, rows: Array) -> str:
        """For messages."""
        if self.library is None:
            return f"an array of shape {rows.shape}"
        return f"a data frame of {self.library.name.lower()} with the columns {list(self.columns)}"
