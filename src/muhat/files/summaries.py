"""All rows of a column in a few numbers: how often each value occurs in each table, moments, gaps.

Tables of up to four million rows are summarised exactly, a block of columns at a time. Beyond that the engine counts
the rows between a thousand thresholds, and no column is ever held in memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muhat.files.tables import Column, FileTable, Kind
from muhat.linalg.blocks import blocks
from muhat.types import Array

MOST_EXACT_ROWS = 2**22
"""Of tables with more rows, numbers are counted between thresholds."""

THRESHOLDS = 1000
MOST_CATEGORIES = 1000

_CELLS = 2**23  # of a block of columns that is held in memory
_QUANTILE_ROWS = 50_000


@dataclass(frozen=True)
class ColumnMoments:
    """Mean, standard deviation, smallest and largest value; NaN of a column without values."""

    mean: float
    standard_deviation: float
    smallest: float
    largest: float


@dataclass(frozen=True, eq=False)
class Summary:
    """A column in all tables.

    ``counts[i, k]`` rows of table i hold ``values[k]``: numbers ascending, or texts, the most frequent first. Where
    ``exact`` is False, they lie above the value before it and not above it. ``counting`` says in which tables the
    column counts the rows, and ``distinct`` how many values there are.
    """

    name: str
    kind: Kind
    values: NDArray[Any]
    counts: NDArray[np.int64]
    missing: tuple[int, ...]
    moments: tuple[ColumnMoments, ...]
    counting: tuple[bool, ...]
    distinct: int
    exact: bool = True

    @property
    def present(self) -> tuple[int, ...]:
        """How many rows of each table have a value."""
        return tuple(int(count) for count in self.counts.sum(axis=1))

    @property
    def missing_shares(self) -> tuple[float, ...]:
        """The share of the rows of each table that have none."""
        return tuple(gaps / (gaps + count) for gaps, count in zip(self.missing, self.present, strict=True))


def summaries(tables: Sequence[FileTable], columns: Sequence[tuple[Column, ...]]) -> Iterator[Summary]:
    """A summary of each column, in order."""
    rows = max(table.total for table in tables)
    if rows > MOST_EXACT_ROWS:
        yield from (_counted_by_engine(tables, column) for column in columns)
        return
    step = max(_CELLS // rows, 1)
    for part in blocks(len(columns), step):
        block = columns[part]
        held = [table.values([column[i] for column in block]) for i, table in enumerate(tables)]
        for column in block:
            yield summarised(column[0].name, column[0].kind, [values[column[0].name] for values in held])


def summarised(name: str, kind: Kind, columns: Sequence[NDArray[Any]]) -> Summary:
    """The summary of a column that is in memory: floats with NaN for gaps, or texts with None.

    >>> summarised("x", "number", [np.array([1.0, 3.0, 1.0]), np.array([np.nan, 2.0])]).counts
    array([[2, 0, 1],
           [0, 1, 0]])
    """
    if kind == "category":
        return _of_texts(name, [Counter(column.tolist()) for column in columns])
    kept = [column[~np.isnan(column)] for column in columns]
    values, places = np.unique(np.concatenate(kept), return_inverse=True)
    parts = np.split(places, np.cumsum([len(part) for part in kept])[:-1])
    counts = np.array([np.bincount(part, minlength=len(values)) for part in parts], dtype=np.int64)
    missing = tuple(len(column) - len(part) for column, part in zip(columns, kept, strict=True))
    counting = tuple(len(column) > 2 and bool((np.diff(column) == 1).all()) for column in columns)
    return Summary(name, kind, values, counts, missing, tuple(map(moments, kept)), counting, len(values))


def _of_texts(name: str, counted: Sequence[Counter[str | None]]) -> Summary:
    missing = tuple(counter.pop(None, 0) for counter in counted)
    pooled = sum(counted, Counter())
    ordered = sorted(pooled, key=lambda text: (-pooled[text], text or ""))[:MOST_CATEGORIES]
    counts = np.array([[counter[text] for text in ordered] for counter in counted], dtype=np.int64)
    others = np.array([sum(counter.values()) for counter in counted]) - counts.sum(axis=1)
    texts = np.array([*ordered, "(others)"], dtype=object)
    kept = slice(None) if others.any() else slice(len(ordered))
    counts = np.column_stack([counts, others])[:, kept]
    return Summary(name, "category", texts[kept], counts, missing, (), (False,) * len(counted), len(pooled))


def moments(values: Array) -> ColumnMoments:
    """Of numbers at any scale.

    >>> moments(np.array([1e200, 3e200])).mean
    2e+200
    """
    if not len(values):
        return ColumnMoments(np.nan, np.nan, np.nan, np.nan)
    unit = float(np.abs(values).max()) or 1.0
    scaled = values / unit
    deviation = unit * float(scaled.std(ddof=1)) if len(values) > 1 else 0.0
    return ColumnMoments(unit * float(scaled.mean()), deviation, float(values.min()), float(values.max()))


# -------------------------------------------------------------------------------------------------------- by the engine


def _counted_by_engine(tables: Sequence[FileTable], column: tuple[Column, ...]) -> Summary:
    if column[0].kind == "category":
        return _texts_by_engine(tables, column)
    rng = np.random.default_rng(0)
    drawn = [
        table.values([part], table.sampled(_QUANTILE_ROWS, rng))[part.name]
        for table, part in zip(tables, column, strict=True)
    ]
    found = [_moments_by_engine(table, part) for table, part in zip(tables, column, strict=True)]
    largest = np.nanmax([moments.largest for moments, _, _ in found])
    pooled = np.concatenate(drawn)
    levels = np.linspace(0, 1, THRESHOLDS + 1)[1:]
    quantiles = np.quantile(pooled[~np.isnan(pooled)], levels, method="inverted_cdf")
    thresholds = np.unique([*quantiles, largest])
    counts = [_between(table, part, thresholds) for table, part in zip(tables, column, strict=True)]
    distinct = max(_distinct(table, part) for table, part in zip(tables, column, strict=True))
    return Summary(
        column[0].name,
        column[0].kind,
        thresholds,
        np.array(counts, dtype=np.int64),
        tuple(gaps for _, gaps, _ in found),
        tuple(moments for moments, _, _ in found),
        tuple(counting for _, _, counting in found),
        distinct,
        exact=False,
    )


def _finite(key: str) -> str:
    return f"CASE WHEN isfinite({key}) THEN {key} END"


def _moments_by_engine(table: FileTable, column: Column) -> tuple[ColumnMoments, int, bool]:
    value = _finite(column.key)
    count, smallest, largest, low, high = table.database.rows(
        f"SELECT count(v), min(v), max(v), min(v - rowid), max(v - rowid) "
        f"FROM (SELECT {value} AS v, rowid FROM {table.relation})"
    )[0]
    if not count:
        return ColumnMoments(np.nan, np.nan, np.nan, np.nan), table.total, False
    unit = max(abs(smallest), abs(largest)) or 1.0
    mean, deviation = table.database.rows(
        f"SELECT avg(v), coalesce(stddev_samp(v), 0) FROM (SELECT {value} / ? AS v FROM {table.relation})", unit
    )[0]
    found = ColumnMoments(unit * mean, unit * deviation, smallest, largest)
    return found, table.total - count, count == table.total and low == high


def _between(table: FileTable, column: Column, thresholds: Array) -> Array:
    """How many rows lie up to the first threshold, from there to the second, and so on."""
    query = f"SELECT histogram({_finite(column.key)}, ?) FROM {table.relation}"
    found = table.database.rows(query, thresholds.tolist())[0][0] or {}
    return np.array([found.get(threshold, 0) for threshold in thresholds.tolist()], dtype=np.int64)


def _distinct(table: FileTable, column: Column) -> int:
    return int(table.database.rows(f"SELECT approx_count_distinct({column.key}) FROM {table.relation}")[0][0])


def _texts_by_engine(tables: Sequence[FileTable], column: tuple[Column, ...]) -> Summary:
    most = 2 * MOST_CATEGORIES
    counted = []
    for table, part in zip(tables, column, strict=True):
        query = f"SELECT {part.key}, count(*) AS n FROM {table.relation} GROUP BY 1 ORDER BY n DESC, 1 LIMIT {most}"
        counter = Counter(dict(table.database.rows(query)))
        counter["(others)"] += table.total - sum(counter.values())
        counted.append(+counter)
    found = _of_texts(column[0].name, counted)
    distinct = max(_distinct(table, part) for table, part in zip(tables, column, strict=True))
    return found if found.distinct < most else Summary(**{**vars(found), "distinct": distinct})
