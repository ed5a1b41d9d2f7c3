"""The encoder: how rows of tables with the same columns become rows of numbers, and samples in scales of columns."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from muhat._support.types import Array
from muhat._support.validation import check_columns, warn_caller
from muhat.tables.frames import KIND_IN_WORDS, Column, Kind, Table, as_table
from muhat.tables.scales import dominant_column, given_scales, mean_absolute_deviations, standard_deviations
from muhat.tables.ties import merge_ties

MOST_LEVELS = 20
"""Categories of one column that have a feature each; where there are more, the rarer ones are pooled: each costs a
column in every statistic."""

MOST_RARE = 1000
"""Pooled categories that the encoder remembers, to tell them from new ones."""

MISSING, OTHERS = "(missing)", "(others)"
"""Levels that stand for missing values, and for all rare categories."""

LEAST_DIFFERING = 0.1
"""The share of pairs of rows with different categories that a scale is made from is at least this."""

MISSING_SCALE = float(np.sqrt(0.5))
"""Scale of an indicator of missing values: a missing and a known value then differ by 2 in the square."""

BYTES_PER_COLUMN = 300.0
"""Bytes that the name, the kind and the feature of a column take, beside its values."""

FARTHEST = 1e100
"""Squares of smaller numbers, and sums of their products, do not overflow."""

_FRACTION = re.compile(r"\s*[-+]?\d*\.\d+([eE][-+]?\d+)?\s*")

Scaling = Callable[[Array], Array]
"""A rule for the scales of columns of numbers, such as ``muhat.tables.scales.mean_absolute_deviations``."""


class Feature(NamedTuple):
    """A column of the encoded rows, and where it comes from."""

    column: str  # the column of the table
    kind: Kind  # the kind of that column
    # None for the values of a column; "(missing)" for the indicator of its missing values; "(others)" for its rare
    # categories; else the category that the feature is 1 for
    level: str | None
    named: bool  # whether the column has a name of its own, and not a number only

    @property
    def label(self) -> str:
        """A short name, such as "age", "age = (missing)" or "colour = white"."""
        return self.column if self.level is None else f"{self.column} = {self.level}"

    @property
    def in_words(self) -> str:
        """What sentences call it, such as "column 'age'", "column 3" or "'colour = white'"."""
        name = repr(self.label) if self.named else self.label
        return name if self.level is not None and self.named else f"column {name}"


class EncodedColumn(NamedTuple):
    """A column as the encoder knows it."""

    name: str
    kind: Kind
    # of a category: the levels with a feature, the most frequent first, "(missing)" and "(others)" among them
    levels: tuple[str, ...] = ()
    rare: tuple[str, ...] = ()  # of a category: what was pooled as "(others)", up to 1,000 categories
    # of numbers and dates: what stands for a missing value. That is the median of the known ones, or, where the tables
    # of the fit had none missing, a place √2 scales, or standard deviations without them, beyond the largest
    fill: float = 0.0
    indicator: bool = False  # of numbers and dates: whether a feature says which values are missing

    def features(self, named: bool) -> list[Feature]:
        """The features of the column: its values, then the indicator of missing ones; or its levels."""
        values = [] if self.kind in ("category", "missing") else [Feature(self.name, self.kind, None, named)]
        levels = (*self.levels, *([MISSING] if self.indicator else []))
        return values + [Feature(self.name, self.kind, level, named) for level in levels]


@dataclass(frozen=True, eq=False)
class TableEncoder:
    """How rows of tables become rows of numbers; :func:`fit_encoder` makes it.

    Numbers stay as they are, truth values are 0 and 1, dates and durations are days. Each category is a feature, 1
    where a row has it. A missing number is the median of the known ones, and a further feature is 1 where it is
    missing; a missing category is a level of its own.

    What no table of the fit had gets a place of its own, so that it is seen as a change: a new category is as far
    from every level as two levels are from each other, and a missing number in a column that had none lies beyond the
    largest number.

    Attributes
    ----------
    features : tuple of Feature
        The columns of the encoded rows.
    """

    columns: tuple[EncodedColumn, ...]
    named: bool  # whether columns are found by name; else by position
    scales: Array  # (n_features,): what to divide the features by so that all columns count alike
    categorical: tuple[str, ...] = ()  # columns of numbers or dates that are taken as categories

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [column.name for column in self.columns]

    @cached_property
    def features(self) -> tuple[Feature, ...]:
        """The columns of the encoded rows."""
        return tuple(feature for column in self.columns for feature in column.features(self.named))

    @property
    def is_plain(self) -> bool:
        """Whether the features are the columns as they are: numbers and truth values, none of them missing."""
        return all(column.kind in ("number", "boolean") and not column.indicator for column in self.columns)

    def transform(self, X: Any, name: str = "X") -> Array:
        """The rows of a table as rows of features.

        Columns may come in any order where they have names; ``name`` is what messages call the table.
        """
        table = self.match(as_table(X, name))
        numbers = _numbers(table, [column.kind for column in self.columns])
        absent = np.isnan(numbers)
        numeric = [column for column in self.columns if column.kind != "category"]
        filled = np.where(absent, [column.fill for column in numeric], numbers) if absent.any() else numbers
        if all(column.kind not in ("category", "missing") and not column.indicator for column in self.columns):
            return filled
        rows = np.empty((table.n_rows, len(self.features)))
        levels = np.array([feature.kind == "category" for feature in self.features])
        indicators = np.array([feature.level == MISSING for feature in self.features]) & ~levels
        rows[:, ~levels & ~indicators] = filled[:, [column.kind != "missing" for column in numeric]]
        rows[:, indicators] = absent[:, [column.indicator for column in numeric]]
        if levels.any():
            pairs = zip(self.columns, table.columns, strict=True)
            rows[:, levels] = np.hstack([_encode_category(*pair) for pair in pairs if pair[0].kind == "category"])
        return rows

    def match(self, table: Table) -> Table:
        """The table with the columns of the fit in their order, or a ValueError where they differ in name or kind."""
        table = _in_order(table, self.names, self.named, "what was fitted")
        if self.categorical:
            table = as_categories(table, self.categorical)
        for encoded, column in zip(self.columns, table.columns, strict=True):
            if encoded.kind != column.kind and not _agree({encoded.kind, column.kind}):
                raise ValueError(
                    f"{table.column_in_words(column.name)} of {table.name} holds {KIND_IN_WORDS[column.kind]} and held "
                    f"{KIND_IN_WORDS[encoded.kind]} before; convert it first"
                )
        return table

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, texts and numbers, for JSON."""
        columns = [column._asdict() for column in self.columns]
        scales, categorical = self.scales.tolist(), list(self.categorical)
        return {"columns": columns, "named": self.named, "scales": scales, "categorical": categorical}

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Self:
        """The encoder that :meth:`to_dict` stored."""
        columns = [
            EncodedColumn(**{**column, "levels": tuple(column["levels"]), "rare": tuple(column["rare"])})
            for column in stored["columns"]
        ]
        scales, categorical = np.array(stored["scales"], dtype=np.float64), tuple(stored["categorical"])
        return cls(tuple(columns), bool(stored["named"]), scales, categorical)


def fit_encoder(
    tables: Iterable[Table], *, categorical: Sequence[str] = (), scaling: Scaling | None = None
) -> TableEncoder:
    """Learn the encoder of tables with the same columns, from all their rows.

    Columns are matched by name, in the order of the first table, or by position where they have none; ``categorical``
    names columns of numbers or dates that are categories. ``scaling`` maps rows of numbers to a positive scale per
    column, found on the known values; None leaves features as they are. A ValueError says where a table has other
    columns than the first, or a column is of different kinds or of lists.

    Examples
    --------
    >>> table = as_table({"age": [31, None, 40], "plan": ["b", "a", "b"]})
    >>> encoder = fit_encoder([table])
    >>> [feature.label for feature in encoder.features]
    ['age', 'age = (missing)', 'plan = b', 'plan = a']
    >>> encoder.transform(table)
    array([[31. ,  0. ,  1. ,  0. ],
           [35.5,  1. ,  0. ,  1. ],
           [40. ,  0. ,  1. ,  0. ]])
    """
    tables = (
        match_tables(as_categories(table, categorical) for table in tables) if categorical else match_tables(tables)
    )
    kinds = list(tables[0].kinds)
    if any(table.kinds != tables[0].kinds for table in tables):
        kinds = [_common_kind(found) for found in zip(*(table.kinds for table in tables), strict=True)]
    pooled = np.concatenate([_numbers(table, kinds) for table in tables])
    columns: list[EncodedColumn] = []
    scales: list[float] = []
    numbers = _fit_numbers(pooled, scaling)
    for j, (name, kind) in enumerate(zip(tables[0].names, kinds, strict=True)):
        if kind == "category":
            column, scale = _fit_category([table.columns[j] for table in tables], scaling)
            scales += [scale] * len(column.levels)
        else:
            fill, indicator, scale = next(numbers)
            column = EncodedColumn(name, kind, (), (), fill, indicator)
            if kind != "missing":
                scales.append(scale)
            if indicator:
                scales.append(1.0 if scaling is None else MISSING_SCALE)
        columns.append(column)
    named = any(table.named for table in tables)
    return TableEncoder(tuple(columns), named, np.array(scales), tuple(categorical))


# ---------------------------------------------------------------- columns of one name and one kind


def match_tables(tables: Iterable[Table]) -> list[Table]:
    """The tables with their columns in one order and of agreeing kinds, or a ValueError that says what differs.

    Columns are matched by name, and by position where a table has no names.
    """
    tables = list(tables)
    for table in tables:
        if table.left_out:
            column = table.left_out[0]
            raise ValueError(
                f"{table.column_in_words(column.name)} of {table.name} cannot be used: {column.reason}; drop it, or "
                f"make numbers, dates or text of it"
            )
    first = next((table for table in tables if table.named), tables[0])
    matched = [_in_order(table, first.names, first.named, first.name) for table in tables]
    if len({table.kinds for table in matched}) > 1:
        for columns in zip(*(table.columns for table in matched), strict=True):
            if not _agree({column.kind for column in columns}):
                raise ValueError(_different_kinds(columns, matched))
    return matched


def _in_order(table: Table, names: list[str], named: bool, reference: str) -> Table:
    """The table with the columns of these names, in this order."""
    if table.named and named:
        if table.names == names:
            return table
        check_columns(table.names, names, table.name, remedy="pass arrays")
        return table.select(names)
    width = len(table.columns)
    if len(names) != width:
        vector = next((each for each, d in ((reference, len(names)), (table.name, width)) if d == 1), None)
        hint = "" if vector is None else f" (a vector is one column; for one row pass {vector}.reshape(1, -1))"
        raise ValueError(
            f"{reference} has {len(names)} columns and {table.name} has {width}; both need the same columns{hint}"
        )
    if table.names == names:
        return table
    columns = tuple(column._replace(name=name) for column, name in zip(table.columns, names, strict=True))
    return replace(table, columns=columns, named=named)


def _agree(kinds: set[Kind]) -> bool:
    """Whether values of these kinds can stand in one column: truth values are numbers, and "missing" goes with all."""
    return len({"number" if kind == "boolean" else kind for kind in kinds} - {"missing"}) <= 1


def _common_kind(found: Sequence[Kind]) -> Kind:
    """The kind of columns whose kinds agree."""
    kinds = set(found) - {"missing"} or set(found)
    return "number" if len(kinds) > 1 else kinds.pop()


def _different_kinds(columns: Sequence[Column], tables: Sequence[Table]) -> str:
    pairs = [(column, table) for column, table in zip(columns, tables, strict=True) if column.kind != "missing"]
    held = " and ".join(f"{KIND_IN_WORDS[column.kind]} in {table.name}" for column, table in pairs)
    text = next((table.name for column, table in pairs if column.kind == "category"), pairs[0][1].name)
    convert = {"date": "to_datetime", "duration": "to_timedelta"}
    function = next((convert[column.kind] for column, _ in pairs if column.kind in convert), "to_numeric")
    name, cell = columns[0].name, f"{text}[{columns[0].name!r}]"
    remedy = f"such as {cell} = pandas.{function}({cell})" if tables[0].named else "or pass data frames"
    return f"{tables[0].column_in_words(name)} holds {held}; give both one type, {remedy}"


def as_categories(table: Table, names: Sequence[str]) -> Table:
    """The table with columns of numbers or dates as categories, by what their values are written as."""
    unknown = [name for name in names if name not in table.names]
    if unknown:
        raise ValueError(f"categorical={list(names)} has {unknown}, and {table.name} has the columns {table.names}")
    columns = [_as_category(column) if column.name in names else column for column in table.columns]
    return replace(table, columns=tuple(columns), matrix=None)


def _as_category(column: Column) -> Column:
    if column.kind in ("category", "missing"):
        return column
    found, codes = np.unique(column.values, return_inverse=True)
    known = found[~np.isnan(found)].tolist()
    levels = tuple(str(int(value)) if value.is_integer() else str(value) for value in known)
    return Column(column.name, "category", np.where(codes < len(known), codes, -1), levels)


# ---------------------------------------------------------------- numbers and dates


def _numbers(table: Table, kinds: Sequence[Kind]) -> Array:
    """The columns that are no categories side by side, NaN where a value is missing."""
    if table.matrix is not None and "category" not in kinds:
        return table.matrix
    kept = [column for column, kind in zip(table.columns, kinds, strict=True) if kind != "category"]
    # A column that never had values may get categories later; what counts then is that they are not missing.
    values = [np.where(each.missing, np.nan, 0.0) if each.kind == "category" else each.values for each in kept]
    return np.column_stack(values) if values else np.empty((table.n_rows, 0))


def _fit_numbers(pooled: Array, scaling: Scaling | None) -> Iterator[tuple[float, bool, float]]:
    """For each column of numbers: what stands for missing values, whether there are any, and the scale."""
    absent = np.isnan(pooled)
    incomplete: NDArray[np.bool_] = np.logical_or.reduce(absent, axis=0)
    scales, fills = np.ones(pooled.shape[1]), np.zeros(pooled.shape[1])
    complete = slice(None) if not incomplete.any() else ~incomplete
    whole = pooled[:, complete]
    if whole.size:
        if scaling is not None:
            scales[complete] = scaling(whole)
        with np.errstate(over="ignore"):
            deviations = standard_deviations(whole) if scaling is None else scales[complete]
            beyond = whole.max(axis=0) + np.sqrt(2.0) * deviations
        fills[complete] = np.minimum(beyond, np.finfo(np.float64).max)
    for j in np.flatnonzero(incomplete & ~absent.all(axis=0)):
        known = pooled[~absent[:, j], j]
        fills[j] = 2.0 * np.median(known / 2.0)  # the sum of two large numbers overflows
        if scaling is not None:
            scales[j] = scaling(known[:, None])[0]
    return zip(fills.tolist(), incomplete.tolist(), scales.tolist(), strict=True)


# ---------------------------------------------------------------- categories


def _fit_category(columns: Sequence[Column], scaling: Scaling | None) -> tuple[EncodedColumn, float]:
    """The commonest categories, one level for all others, and the scale of all levels."""
    counts: Counter[str] = Counter()
    for column in columns:
        occurrences = np.bincount(_known(column), minlength=len(column.levels)).tolist()
        counts.update(dict(zip(column.levels, occurrences, strict=True)))
        counts[MISSING] += int(column.missing.sum())
    counts = +counts  # without those that do not occur
    levels = sorted(counts, key=lambda level: (-counts[level], level))
    rare: list[str] = []
    if len(levels) > MOST_LEVELS:
        kept = levels[: MOST_LEVELS - 1]
        if MISSING in counts and MISSING not in kept:
            kept[-1] = MISSING
        rare = sorted(counts.keys() - set(kept))
        levels = [*kept, OTHERS]
    total = sum(counts.values())
    shares = np.array([counts[level] for level in levels if level != OTHERS or not rare], dtype=np.float64) / total
    # Two rows have different categories with probability 1 − Σ p², and then differ by 2 in the square.
    differing = 1.0 - float(shares @ shares) - (1.0 - float(shares.sum())) ** 2
    scale = 1.0 if scaling is None else float(np.sqrt(max(differing, LEAST_DIFFERING)))
    return EncodedColumn(columns[0].name, "category", tuple(levels), tuple(rare[: MOST_RARE + 1])), scale


def _known(column: Column) -> NDArray[Any]:
    """The codes of the categories of a column that are known; a column without values has none."""
    return column.values[~column.missing].astype(np.intp)


def _encode_category(encoded: EncodedColumn, column: Column) -> Array:
    """A feature for each level, 1 where a row has it."""
    width = len(encoded.levels)
    place = {level: k for k, level in enumerate(encoded.levels)} | dict.fromkeys(encoded.rare, width - 1)
    new = width - 1 if len(encoded.rare) > MOST_RARE else width  # where there are too many to know, all join the others
    places = np.array([place.get(level, new) for level in column.levels] + [place.get(MISSING, width + 1)])
    # The levels are the unit vectors, at distance √2 from each other. A vector c·(1, ..., 1) is at this distance from
    # all of them if Lc² − 2c + 1 = 2: one root is for new categories, the other for missing ones where none were.
    root = np.sqrt(1.0 + width)
    corners = np.vstack([np.eye(width), np.full(width, (1.0 - root) / width), np.full(width, (1.0 + root) / width)])
    codes = column.values.astype(np.intp) if column.kind == "category" else np.full(len(column.values), -1)
    return corners[places[codes]]


@dataclass(frozen=True)
class TableFunction:
    """A function of the rows of tables: one of rows of features, after an encoder."""

    function: Callable[[Array], Array]  # maps rows of features to values, such as an Element
    encoder: TableEncoder

    def __call__(self, X: Any) -> Array:
        """Values at the rows of a table with the columns of the fit."""
        return self.function(self.encoder.transform(X))


# ---------------------------------------------------------------- samples of a test or an interval


class Samples(NamedTuple):
    """Samples as rows of features, one below the other."""

    pooled: Array  # (n, n_features): the rows of all samples
    sizes: tuple[int, ...]  # how many rows each sample has
    encoder: TableEncoder  # with ``features`` that know their column
    # (n_features,), or None: what a test divides the features by; None where they stay as they are
    scales: Array | None

    @property
    def parts(self) -> list[Array]:
        """The rows of each sample."""
        return np.split(self.pooled, np.cumsum(self.sizes)[:-1])

    @property
    def scaled(self) -> Array:
        """The pooled rows in their scales."""
        return self.pooled if self.scales is None else self.pooled / self.scales

    @property
    def centred(self) -> Array:
        """The pooled rows in their scales, about their medians."""
        halves = self.pooled / 2 - np.median(self.pooled / 2, axis=0)  # which do not overflow
        with np.errstate(over="ignore"):
            rows = halves * 2 if self.scales is None else halves / (self.scales / 2)
        farthest = np.abs(rows).max(axis=0, initial=0.0)
        if (farthest > FARTHEST).any():
            column = int(farthest.argmax())
            raise ValueError(
                f"{self.in_words(column)} has values as far as {farthest[column]:.1g} of its scale from its median, "
                'whose squares overflow; pass scale="auto", or divide the columns first'
            )
        return rows

    def in_words(self, column: int) -> str:
        """Name of a column in sentences."""
        return self.encoder.features[column].in_words


def encode_samples(
    samples: Mapping[str, Any], scale: Any = None, *, default: bool = False, min_rows: int = 2, told: bool = False
) -> Samples:
    """The samples as rows of features, by an encoder of all of them.

    ``samples`` has tables by the names that messages have for them. Columns are divided by ``scale``: "columns" is the
    mean absolute deviation of a column of numbers from its median, and what :class:`TableEncoder`
    says for other features; "auto" is "columns" in the ``default`` test, which has no kernel of the user's, and no
    scale elsewhere, with a warning where one column dominates. The caller may have ``told`` of texts that are numbers.
    """
    if isinstance(scale, str) and scale not in ("auto", "columns"):
        raise ValueError(f'scale={scale!r} must be "auto", "columns", None, or one positive number per column')
    tables = [as_table(X, name) for name, X in samples.items()]
    for table in tables:
        if table.n_rows < min_rows:
            raise ValueError(
                f"{table.name} has {table.n_rows} row{'s' * (table.n_rows != 1)} and at least {min_rows} are needed; "
                "pass all rows of a sample at once"
            )
    by_columns = isinstance(scale, str) and (default or scale == "columns")
    if not told:
        warn_of_numbers_as_text(tables[0])
    encoder = fit_encoder(tables, scaling=mean_absolute_deviations if by_columns else None)
    pooled = np.concatenate(merge_ties(*(encoder.transform(table) for table in tables)))
    scales = encoder.scales if by_columns else None
    if scale is not None and not isinstance(scale, str):
        scales = given_scales(scale, pooled.shape[1])
    elif scale is not None and not by_columns and (dominant := dominant_column(pooled)):
        column, share = dominant
        warn_caller(
            f"{encoder.features[column].in_words} makes up {share:.1%} of the squared distances, so that the kernel "
            f"hardly sees the other {pooled.shape[1] - 1}; "
            'pass scale="columns", or scale=None to keep the columns as they are'
        )
    return Samples(pooled, tuple(table.n_rows for table in tables), encoder, scales)


def warn_of_numbers_as_text(table: Table) -> None:
    """Warn of a column of texts such as "1.5". Whole numbers may well be codes of categories."""
    for column in table.columns:
        if column.kind == "category" and all(map(_FRACTION.fullmatch, column.levels)):
            warn_caller(
                f"{table.column_in_words(column.name)} of {table.name} is taken as categories, and its texts are "
                f"numbers, such as {column.levels[0]!r}; convert them, for example by astype(float)"
            )
