"""One pass over the columns of two tables: their counts, evidence and sampled rows; no column of all rows is kept."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from muhat._support.types import Array
from muhat.apps.compare.bounds import Counts, Effect, ks_effect, variation_effect
from muhat.apps.compare.column_counts import ColumnCounts, Grid, Rows
from muhat.apps.compare.design import Design
from muhat.apps.compare.features import ColumnSums, coding
from muhat.apps.compare.text_report import listed
from muhat.apps.compare.unusual_rows import Sample
from muhat.apps.files.tables import ManyTextsError, Source, concatenated
from muhat.apps.files.told import told
from muhat.tables.frames import KIND_IN_WORDS, Column, Kind, LeftOut, Table
from muhat.tables.ties import Precision, merge_ties

LONG, BATCH = 2**22, 2**18
"""Tables with more rows together are read in parts of so many."""

PROBES = 2**16
"""Rows of long tables from which it is learnt which values a column has."""

NEIGHBOURS = 500
"""So many first rows of a table are looked at for dependence."""

_SAVED_INDEX = re.compile(r"__index_level_\d+__|Unnamed: \d+|column \d+|")
"""Names of columns that nobody named: the index of a data frame that was saved."""


class ScannedColumn(NamedTuple):
    """A column with its effects and their evidence on every split, of its values and of its missing values."""

    counts: ColumnCounts
    effect: Effect
    evidence: Array
    change: tuple[float, float]
    missing: tuple[Effect, Array] | None
    sampled: list[Column]
    beginnings: list[Column]


class _NotCompared(ValueError):
    """A column that cannot be compared, and why."""


class _Parts:
    """A column of both tables in parts, each with its table and the slice of its rows among the pooled ones.

    Short tables have one part each. Values that agree to the precision of the coarser table are equal in them; of long
    tables, single precision is all that is looked for, in the first rows.
    """

    def __init__(self, sources: list[Source], name: str, prepare: Any) -> None:
        self.sources, self.name, self.prepare = sources, name, prepare
        self.sizes = [source.n_rows for source in sources]
        self.held: list[Column] = []
        first = NEIGHBOURS if sum(self.sizes) > LONG else None
        columns = [prepare(source.column(name, slice(0, first))) for source in sources]
        numbers = all(column.kind == "number" for column in columns)
        self.is_single = False
        if first is not None:
            self.is_single = numbers and any(Precision.of(column.values).single == 0.0 for column in columns)
        else:
            merged = merge_ties(*(column.values for column in columns)) if numbers else [c.values for c in columns]
            self.held = [column._replace(values=values) for column, values in zip(columns, merged, strict=True)]

    def __iter__(self) -> Iterator[tuple[int, slice, Column]]:
        for which, source in enumerate(self.sources):
            before = which * self.sizes[0]
            for start in range(0, source.n_rows, BATCH if not self.held else source.n_rows):
                column = self.held[which] if self.held else self._read(source, start)
                yield which, slice(before + start, before + start + len(column.values)), column

    def _read(self, source: Source, start: int) -> Column:
        column = self.prepare(source.column(self.name, slice(start, start + BATCH)))
        if self.is_single:
            with np.errstate(over="ignore"):
                column = column._replace(values=column.values.astype(np.float32).astype(np.float64))
        return column

    def sample(self, rows: NDArray[np.intp] | None) -> Column:
        """The pooled rows with these numbers, or all; a _NotCompared error where the tables hold other kinds."""
        kinds: list[set[Kind]] = [set(), set()]
        example, found = [""] * 2, []
        for which, place, column in self:
            kinds[which].add(column.kind)
            example[which] = column.levels[0] if column.levels else example[which]
            found.append(column if rows is None else _within(rows, place, column))
        own = [kind - {"missing"} for kind in kinds]
        if set.union(*own) == {"number", "boolean"}:  # truth values go with numbers
            found = [part._replace(kind="number") if part.kind == "boolean" else part for part in found]
        elif len(set.union(*own)) > 1:
            held = (
                f"text such as {text[:30]!r} in {source.name}"
                if "category" in kind
                else f"{KIND_IN_WORDS[min(kind)]} in {source.name}"
                for kind, text, source in zip(own, example, self.sources, strict=True)
            )
            raise _NotCompared(f"it holds {' and '.join(held)}")
        return concatenated(self.name, found)


def _within(rows: NDArray[np.intp], place: slice, part: Column) -> Column:
    """The given pooled rows that lie in a part of a table."""
    own = rows[(rows >= place.start) & (rows < place.stop)] - place.start
    return part._replace(values=part.values[own])


@dataclass
class Scan:
    """What one pass over the columns collects; no column of all rows is kept."""

    sources: list[Source]
    prepare: Any
    design: Design
    asked_for: bool
    found: list[ScannedColumn] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    not_compared: list[LeftOut] = field(default_factory=list)
    left_out: dict[str, list[str]] = field(default_factory=dict)
    separating: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        sizes = self.design.sizes
        self.probes = np.random.default_rng(0).choice(sum(sizes), PROBES, False) if sum(sizes) > LONG else None
        self.equal = sizes[0] == sizes[1] and self.design.labels_equal and self.probes is None

    def add(self, name: str, separating: bool = False) -> None:
        """Count a column of all rows, and keep its evidence and its sampled rows."""
        hint = next((f"; {source.hints[name]}" for source in self.sources if name in source.hints), "")
        try:
            parts = _Parts(self.sources, name, self.prepare)
            sample = parts.sample(self.probes)
            known = sum(self.design.sizes) * float(np.mean(~sample.missing))
            if sample.kind == "category" and len(sample.levels) > max(100, 0.1 * known):
                raise ManyTextsError(f"it holds {len(sample.levels):,} different texts")
        except _NotCompared as error:
            self.not_compared.append(LeftOut(name, f"{error}{hint}"))
            return
        except ManyTextsError as error:  # names or sentences, and no categories
            if hint:
                self.not_compared.append(LeftOut(name, f"{error}{hint}"))
            else:
                self.notes.append(f"column {name!r} is left out, because {error}")
            return
        if self.equal:
            (a, b) = parts.held
            self.equal = a.levels == b.levels and np.array_equal(a.values, b.values, equal_nan=a.kind != "category")
        self._count(parts, Grid.of(sample), separating)
        if hint and self.found and self.found[-1].counts.name == name:
            self.notes.append(f"column {name!r} is taken as text{hint}")

    def _count(self, parts: _Parts, grid: Grid, separating: bool) -> None:
        design, width = self.design, len(grid.values) + 1
        n_strata = 1 if design.strata is None else 1 + int(design.strata.max())
        flat = np.zeros(n_strata * 2 * width, dtype=np.int64)
        sums = ColumnSums(coding(grid), design.units)
        rows = Rows(grid), Rows(grid)
        sampled: list[list[Column]] = [[], []]
        beginnings: list[list[Column]] = [[], []]
        for which, place, column in parts:
            places = grid.places(column)
            cells = which + 2 * (0 if design.strata is None else design.strata[place].astype(np.intp))
            flat += np.bincount(cells * width + places + 1, minlength=len(flat))
            sums.add(places, design.units.numbers[place])
            rows[which].add(np.where(places < 0, np.nan, places) if grid.kind == "category" else column.values)
            if column.kind == "boolean":
                column = column._replace(kind=grid.kind)
            sampled[which].append(_within(design.picked, place, column))
            if place.start == which * design.sizes[0]:
                beginnings[which].append(column._replace(values=column.values[:NEIGHBOURS]))
        counts = flat.reshape(n_strata, 2, width)
        if self._is_left_out(parts.name, grid, counts, rows) and not separating:
            return
        missing, counts = counts[:, :, 0], counts[:, :, 1:]
        kept = counts.any(axis=(0, 1))
        values = grid.values[kept]
        if grid.kind == "boolean":
            values = np.array(["False", "True"], dtype=object)[values.astype(np.intp)]
        moments = () if grid.kind in ("category", "boolean") else (rows[0].moments, rows[1].moments)
        column_counts = ColumnCounts(parts.name, grid.kind, values, counts[:, :, kept], missing, moments)
        found = sums.evidence(design.splits)
        largest = design.largest_clusters
        effect = (ks_effect if column_counts.is_ordered else variation_effect)(column_counts.counts, largest)
        effect = effect if min(column_counts.present) else Effect(0.0, np.inf, 0.0)
        lost: Counts = np.stack([missing, counts.sum(axis=2)], axis=2)
        of_missing = None if found.missing is None else (variation_effect(lost, largest), found.missing)
        together = [concatenated(parts.name, columns) for columns in sampled]
        first = [] if all(each.increases for each in rows) else [columns[0] for columns in beginnings]
        change = found.place, found.spread
        self.found.append(ScannedColumn(column_counts, effect, found.values, change, of_missing, together, first))

    def _is_left_out(self, name: str, grid: Grid, counts: Counts, rows: tuple[Rows, Rows]) -> bool:
        """Whether a column tells nothing of the rows; what it is noted for."""
        lost, known = counts[:, :, 0].sum(axis=0), counts[:, :, 1:].sum(axis=0)
        increases = all(each.increases for each in rows)
        low, high = min(each.smallest for each in rows), max(each.largest for each in rows)
        if not known.any():
            reason = "all their values are missing"
        elif low == high and lost[0] * known[1].sum() == lost[1] * known[0].sum():
            reason = "they hold a single value"
        elif self.asked_for:
            return False
        elif grid.kind == "number" and all(each.counts_rows and each.sums[0] > 2 for each in rows):
            reason = "they count the rows (name them in {columns} to use them)"
        elif increases and _SAVED_INDEX.fullmatch(name) and self.sources[0].named:
            reason = "nobody named them and they increase with the rows, as a saved index does"
        elif (increases or grid.kind == "date") and _lie_apart(rows):
            self.separating.append(name)
            return True
        else:
            return False
        self.left_out.setdefault(reason, []).append(name)
        return True

    def finish(self) -> None:
        """Raise a ValueError where no column is left; otherwise note those that were left out."""
        if not self.found and self.separating:
            alone, self.separating = self.separating, []
            for name in alone:  # nothing else can be compared
                self.add(name, separating=True)
            self.separating = []
        for reason, names in self.left_out.items():
            text = f"left out, because {reason}: {listed(names)}".split("{columns}")
            self.notes.append(told(lambda write: write("columns").join(text)))  # noqa: B023 - called now
        if not self.found:
            tables = " and ".join(source.name for source in self.sources)
            apart = [f"{column.name!r}: {column.reason}" for column in self.not_compared]
            raise ValueError(f"{tables}: no column is left that could be compared; {[*self.notes, *apart][0]}")

    def samples(self) -> list[Sample]:
        """The sampled rows of each table."""
        indexed = any(source.index is not None for source in self.sources)
        found = []
        for which, source in enumerate(self.sources):
            rows = self.design.picked_of(which)
            table = Table(source.name, len(rows), tuple(column.sampled[which] for column in self.found))
            found.append(Sample(table, rows, replace(source, fetch=_gone), indexed))
        return found


def _gone(name: str, rows: slice) -> Column:
    raise ValueError(f"column {name!r} can no longer be read; compare the tables again")


def _lie_apart(rows: tuple[Rows, Rows]) -> bool:
    """Whether no value of one table lies among those of the other; categories are one in each table."""
    a, b = rows
    constant = a.ordered or (a.smallest == a.largest and b.smallest == b.largest)
    return constant and bool(a.sums[0] and b.sums[0]) and (a.largest < b.smallest or b.largest < a.smallest)
