"""Random rows of a table, as values for people and as points for the kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muhat.files.encoding import encoded
from muhat.files.matching import Matched
from muhat.files.summaries import Summary
from muhat.files.tables import Kind, Place
from muhat.types import Array

LEAST_ROWS, MOST_ROWS = 200, 20_000

_PAIRS_A_SECOND = 1.0e6
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows of one table: ``values[j]`` holds column j, and ``points`` are the rows as the kernel sees them.

    Row i stands at ``places[i]`` of the file, and ``place`` says what that counts. Coordinate k of the points holds
    ``coordinates[k]``: the name of a column, and which part of it (see :class:`~muhat.files.encoding.Encoded`).
    """

    names: tuple[str, ...]
    kinds: tuple[Kind, ...]
    values: tuple[NDArray[Any], ...]
    points: Array
    places: NDArray[np.int64]
    place: Place
    coordinates: tuple[tuple[str, str], ...] = ()

    def row(self, i: int) -> dict[str, Any]:
        """A row by the names of the columns, None for gaps."""
        return {
            name: cell(kind, column[i]) for name, kind, column in zip(self.names, self.kinds, self.values, strict=True)
        }


def cell(kind: Kind, value: Any) -> Any:
    """A value as JSON has it: a number, a text, the text of a date, or None."""
    if value is None or (kind != "category" and np.isnan(value)):
        return None
    if kind == "category":
        return str(value)
    return shown_date(float(value)) if kind == "date" else float(value)


def shown_date(seconds: float) -> str:
    """A date that is stored as a number of seconds.

    >>> shown_date(86400.0), shown_date(86460.0)
    ('1970-01-02', '1970-01-02 00:01:00')
    """
    try:
        text = (_EPOCH + timedelta(seconds=round(seconds))).strftime("%Y-%m-%d %H:%M:%S")
    except OverflowError:
        return f"{seconds:.4g} s"
    return text.removesuffix(" 00:00:00")


def rows_within(seconds: float, columns: int) -> int:
    """How many rows of each of two tables a test compares in about this many seconds on two cores.

    The number depends on nothing else, so that the same command gives the same answer on every machine.
    """
    rows = np.sqrt(seconds * _PAIRS_A_SECOND / (1 + columns / 100))
    return int(np.clip(rows, LEAST_ROWS, MOST_ROWS))


def drawn_rows(matched: Matched, used: Sequence[Summary], limit: int, seed: int, raw: bool) -> tuple[Sample, ...]:
    """At most ``limit`` rows of each table."""
    chosen, values = [], []
    for i, table in enumerate(matched.tables):
        rows = table.sampled(limit, np.random.default_rng(seed + i))
        columns = [column[i] for column in matched.columns]
        held = table.values(columns, None if len(rows) == table.total else rows)
        chosen.append(table.first + rows)
        values.append([held[column.name] for column in columns])
    kinds = tuple(summary.kind for summary in used)
    found = encoded(list(zip(kinds, zip(*values, strict=True), strict=True)), raw)
    names = tuple(summary.name for summary in used)
    coordinates = tuple((names[j], part) for j, part in zip(found.sources, found.parts, strict=True))
    return tuple(
        Sample(names, kinds, tuple(column), rows, places, table.place, coordinates)
        for column, rows, places, table in zip(values, found.points, chosen, matched.tables, strict=True)
    )
