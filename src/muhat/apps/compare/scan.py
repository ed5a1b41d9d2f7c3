"""One pass over the columns of two tables: their counts, evidence and sampled rows; no column of all rows is kept."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from muhat._support.types import Array
from muhat.apps.compare.bounds import Counts, Effect, ks_effect, variation_effect
from muhat.apps.compare.column_counts import (
    MOST_VALUES,
    ColumnCounts,
    Grid,
    Moments,
    are_sentences,
    number_grid,
    text_grid,
)
from muhat.apps.compare.design import Design
from muhat.apps.compare.features import ColumnSums, coding
from muhat.apps.compare.text_report import listed
from muhat.apps.compare.unusual_rows import Sample
from muhat.apps.files.tables import MOST_TEXTS_HELD, ManyTextsError, Source, concatenated
from muhat.apps.files.told import told
from muhat.tables.frames import KIND_IN_WORDS, Column, LeftOut, Table
from muhat.tables.ties import Precision, merge_ties

LONG, BATCH = 2**22, 2**20
"""Tables with more rows together are read in parts of so many, and their numbers are counted between thresholds."""

PROBES = 2**16
"""Rows of long tables from which these thresholds are taken."""

NEIGHBOURS = 500
"""So many first rows of a table are looked at for dependence."""

_SAVED_INDEX = re.compile(r"__index_level_\d+__|Unnamed: \d+|column \d+|")
"""Names of columns that nobody named: the index of a data frame that was saved."""


class _Evidence(NamedTuple):
    """An effect and its evidence on every split."""

    effect: Effect
    evidence: Array


class _Facts(NamedTuple):
    """What a column is beside its counts."""

    counts_rows: bool
    separates: bool
    increases: bool


@dataclass
class Scan:
    """What one pass over the columns collects; no column of all rows is kept."""

    sources: list[Source]
    prepare: Any
    design: Design
    asked_for: bool
    counts: list[ColumnCounts] = field(default_factory=list)
    values: list[_Evidence] = field(default_factory=list)
    missing: list[_Evidence | None] = field(default_factory=list)
    changes: list[tuple[float, float]] = field(default_factory=list)
    sampled: list[list[Column]] = field(default_factory=list)
    beginnings: list[list[Column]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    not_compared: list[LeftOut] = field(default_factory=list)
    left_out: dict[str, list[str]] = field(default_factory=dict)
    separating: list[str] = field(default_factory=list)
    equal: bool = True

    def __post_init__(self) -> None:
        self.is_long = sum(self.design.sizes) > LONG
        self.n_strata = 1 if self.design.strata is None else 1 + int(self.design.strata.max())
        total = sum(self.design.sizes)
        rng = np.random.default_rng(0)
        self.probes = rng.choice(total, min(PROBES, total), replace=False, shuffle=False) if self.is_long else None
        self.cached: list[Column] = []
        self.is_single = False
        self.texts = 0

    def add(self, name: str, separating: bool = False) -> None:
        """Count a column of all rows, and keep its evidence and its sampled rows."""
        hint = next((source.hints[name] for source in self.sources if name in source.hints), "")
        try:
            self._merge_ties(name)
            grid = self._grid(name)
        except ManyTextsError as error:
            self._leave_out_texts(name, str(error), hint)
            return
        if isinstance(grid, str):
            self.not_compared.append(LeftOut(name, f"{grid}{f'; {hint}' if hint else ''}"))
            return
        counts, sums, facts, sampled, beginnings = self._read(name, grid)
        if not separating and self._is_left_out(counts, facts, hint):
            return
        if hint:
            self.notes.append(f"column {name!r} is taken as text; {hint}")
        found = sums.evidence(self.design.splits)
        largest = self.design.largest_clusters
        empty = min(counts.present) == 0
        effect = (ks_effect if counts.is_ordered else variation_effect)(counts.counts, largest)
        self.values.append(_Evidence(Effect(0.0, np.inf, 0.0) if empty else effect, found.values))
        lost: Counts = np.stack([counts.missing, counts.counts.sum(axis=2)], axis=2)
        self.missing.append(
            None if found.missing is None else _Evidence(variation_effect(lost, largest), found.missing)
        )
        self.changes.append((found.place, found.spread))
        self.counts.append(counts.compressed())
        self.sampled.append(sampled)
        if not facts.increases:
            self.beginnings.append(beginnings)

    def _batches(self, which: int, name: str) -> Iterator[tuple[int, Column]]:
        """The column of a table, in parts where tables are long, each with the number of its first row."""
        source = self.sources[which]
        if not self.is_long:
            yield 0, self.cached[which]
            return
        for start in range(0, source.n_rows, BATCH):
            column = self.prepare(source.column(name, slice(start, start + BATCH)))
            if self.is_single:
                with np.errstate(over="ignore"):
                    column = column._replace(values=column.values.astype(np.float32).astype(np.float64))
            yield start, column

    def _merge_ties(self, name: str) -> None:
        """Read the column of short tables, and let values that agree to the precision of the coarser one be equal."""
        self.is_single = False
        if self.is_long:  # single precision is all that is looked for, in the first rows
            beginnings = [self.prepare(source.column(name, slice(0, NEIGHBOURS))) for source in self.sources]
            if all(column.kind == "number" for column in beginnings):
                self.is_single = any(Precision.of(column.values).single == 0.0 for column in beginnings)
            return
        self.cached = [self.prepare(source.column(name)) for source in self.sources]
        if all(column.kind == "number" for column in self.cached):
            merged = merge_ties(*(column.values for column in self.cached))
            self.cached = [column._replace(values=values) for column, values in zip(self.cached, merged, strict=True)]

    def _grid(self, name: str) -> Grid | str:
        """The values that are told apart, or why the column cannot be compared."""
        probed: list[list[Any]] = [[], []]
        kinds: list[set[Any]] = [set(), set()]
        example = [""] * 2
        levels: set[str] = set()
        last: tuple[str, ...] = ()
        extremes: list[float] = []
        for which in (0, 1):
            for start, column in self._batches(which, name):
                kinds[which].add(column.kind)
                example[which] = column.levels[0] if column.levels else example[which]
                if column.levels is not last:
                    last = column.levels
                    levels |= set(last)
                if len(levels) > MOST_TEXTS_HELD:
                    raise ManyTextsError(f"it holds more than {MOST_TEXTS_HELD:,} different texts")
                if self.probes is not None:
                    if column.kind not in ("category", "missing"):
                        extremes += [float(np.nanmin(column.values)), float(np.nanmax(column.values))]
                    column = self._within(self.probes, which, start, column)
                probed[which].append(column)
        found = [kind - {"missing"} for kind in kinds]
        kind = _common_kind(found)
        if kind is None:
            held = (
                f"text such as {text[:30]!r}" if "category" in own else KIND_IN_WORDS[min(own)]
                for own, text in zip(found, example, strict=True)
            )
            return "it holds " + " and ".join(
                f"{each} in {source.name}" for each, source in zip(held, self.sources, strict=True)
            )
        parts = [column for table in probed for column in table if column.kind != "missing"]
        if kind == "category":
            self.texts = len(levels)
            return text_grid(kind, sorted(levels), parts)
        most = MOST_VALUES if self.is_long or self.design.strata is not None else None
        return number_grid(kind, np.concatenate([*(column.values for column in parts), extremes]), most)

    def _within(self, rows: NDArray[np.intp], which: int, start: int, part: Column) -> Column:
        """The given pooled rows that lie in a part of a table."""
        own = rows - which * self.design.sizes[0] - start
        return part._replace(values=part.values[own[(own >= 0) & (own < len(part.values))]])

    def _read(self, name: str, grid: Grid) -> tuple[ColumnCounts, ColumnSums, _Facts, list[Column], list[Column]]:
        design, width = self.design, len(grid.values)
        counts = np.zeros((self.n_strata, 2, width), dtype=np.int64)
        missing = np.zeros((self.n_strata, 2), dtype=np.int64)
        moments: list[Moments] = []
        pooled = np.zeros(width)
        if self.probes is not None:  # in short tables all rows are read, and their places kept
            for which in (0, 1):
                for start, column in self._batches(which, name):
                    places = grid.places(self._within(self.probes, which, start, column))
                    pooled += np.bincount(places[places >= 0], minlength=width)
        else:
            held = [grid.places(next(self._batches(which, name))[1]) for which in (0, 1)]
            pooled += np.bincount(np.concatenate(held) + 1, minlength=width + 1)[1:]
        sums = ColumnSums(coding(grid, np.maximum(pooled, 1e-9)), design.units)
        order = [_Order(), _Order()]
        sampled: list[list[Column]] = [[], []]
        beginnings: list[Column] = []
        for which in (0, 1):
            of_rows = Moments.of(np.empty(0))
            for start, column in self._batches(which, name):
                stop = start + len(column.values)
                places = grid.places(column) if self.probes is not None else held[which]
                labels = 0 if design.strata is None else design.of_table(which, design.strata)[start:stop]
                flat = np.bincount(labels * (width + 1) + places + 1, minlength=self.n_strata * (width + 1))
                flat = flat.reshape(self.n_strata, width + 1)
                counts[:, which] += flat[:, 1:]
                missing[:, which] += flat[:, 0]
                sums.add(places, design.of_table(which, design.units.numbers)[start:stop])
                if column.kind != "category":
                    before = int(counts[:, which].sum() - flat[:, 1:].sum())
                    known = column.values[~np.isnan(column.values)]
                    of_rows = of_rows.joined(before, Moments.of(known), len(known))
                order[which].add(column, start)
                if column.kind == "boolean":
                    column = column._replace(kind=grid.kind)  # truth values go with numbers
                sampled[which].append(
                    self._within(design.picked[which] + which * design.sizes[0], which, start, column)
                )
                if start == 0:
                    beginnings.append(column._replace(values=column.values[:NEIGHBOURS]))
            moments.append(of_rows)
        kept = counts.any(axis=(0, 1))
        values = grid.values[kept]
        ordered = grid.kind not in ("category", "boolean")
        if grid.kind == "boolean":
            values = np.array(["False", "True"], dtype=object)[values.astype(np.intp)]
        distinct = self.texts if grid.kind == "category" else len(values)
        found = ColumnCounts(
            name, grid.kind, values, counts[:, :, kept], missing, tuple(moments) if ordered else (), distinct
        )
        self._compare_rows(name, order)
        facts = _Facts(all(o.counts_rows for o in order), _separates(counts, ordered), all(o.increases for o in order))
        return found, sums, facts, [concatenated(name, parts) for parts in sampled], beginnings

    def _compare_rows(self, name: str, order: list[_Order]) -> None:
        """Whether the column is the same in both tables, row by row."""
        if not self.equal or self.design.sizes[0] != self.design.sizes[1]:
            self.equal = False
            return
        pairs = zip(self._batches(0, name), self._batches(1, name), strict=True)
        self.equal = all(
            first.levels == second.levels
            and np.array_equal(first.values, second.values, equal_nan=first.kind != "category")
            for (_, first), (_, second) in pairs
        )

    def _is_left_out(self, counts: ColumnCounts, facts: _Facts, hint: str) -> bool:
        name = counts.name
        if not sum(counts.present):
            reason = "all their values are missing"
        elif counts.distinct == 1 and len(set(counts.missing_shares)) == 1:
            reason = "they hold a single value"
        elif not self.asked_for and facts.counts_rows:
            reason = "they count the rows (name them in {columns} to use them)"
        elif not self.asked_for and facts.increases and _SAVED_INDEX.fullmatch(name) and self.sources[0].named:
            reason = "nobody named them and they increase with the rows, as a saved index does"
        elif not self.asked_for and facts.separates and facts.increases:
            self.separating.append(name)
            return True
        elif counts.kind == "category" and are_sentences(counts.distinct, sum(counts.present)):
            self._leave_out_texts(name, f"it holds {counts.distinct:,} different texts", hint)
            return True
        else:
            return False
        self.left_out.setdefault(reason, []).append(name)
        return True

    def _leave_out_texts(self, name: str, texts: str, hint: str) -> None:
        if hint:
            self.not_compared.append(LeftOut(name, f"{texts}; {hint}"))
        else:
            self.notes.append(f"column {name!r} is left out, because {texts}")

    def finish(self) -> None:
        """Raise a ValueError where no column is left; otherwise note those that were left out."""
        if not self.counts and self.separating:
            for name in self.separating:  # nothing else can be compared
                self.add(name, separating=True)
            self.separating = []
        for reason, names in self.left_out.items():
            text = f"left out, because {reason}: {listed(names)}".split("{columns}")
            self.notes.append(told(lambda write: write("columns").join(text)))  # noqa: B023 - called now
        if not self.counts:
            tables = " and ".join(source.name for source in self.sources)
            apart = [f"{column.name!r}: {column.reason}" for column in self.not_compared]
            why = next(iter([*self.notes, *apart]), "all rows are equal")
            raise ValueError(f"{tables}: no column is left that could be compared; {why}")

    def samples(self) -> list[Sample]:
        """The sampled rows of each table."""
        indexed = any(source.index is not None for source in self.sources)
        tables = zip(self.sources, self.design.picked, zip(*self.sampled, strict=True), strict=True)
        return [
            Sample(Table(source.name, len(picked), tuple(columns)), picked, replace(source, fetch=_gone), indexed)
            for source, picked, columns in tables
        ]

    def are_identical(self) -> bool:
        """Whether both tables hold the same rows: in their order, or in any where all rows are sampled."""
        sizes = self.design.sizes
        if self.not_compared or self.separating or sizes[0] != sizes[1]:
            return False
        if self.equal and self.design.labels_equal:
            return True
        if self.design.clusters is not None or sum(map(len, self.design.picked)) < sum(sizes):
            return False
        codes = [_codes(columns) for columns in self.sampled]
        rows = np.column_stack([*codes, *([] if self.design.strata is None else [self.design.sampled_strata])])
        first, second = (part[np.lexsort(part.T)] for part in (rows[: sizes[0]], rows[sizes[0] :]))
        return bool((first == second).all())


def _gone(name: str, rows: slice) -> Column:
    raise ValueError(f"column {name!r} can no longer be read; compare the tables again")


def _codes(columns: Sequence[Column]) -> NDArray[np.intp]:
    """The values of a column of both tables as numbers."""
    pooled = concatenated(columns[0].name, columns)
    return np.asarray(np.unique(pooled.values, return_inverse=True)[1])


class _Order:
    """What can be seen as the rows of a column come: whether they are counted, and whether they never fall."""

    def __init__(self) -> None:
        self.increases, self.rows, self.last = True, 0, -np.inf
        self.offsets: set[float | None] = set()
        self.levels: set[str] = set()

    @property
    def counts_rows(self) -> bool:
        """Whether each value is one more than the one before."""
        return self.rows > 2 and len(self.offsets) == 1 and None not in self.offsets

    def add(self, column: Column, start: int) -> None:
        """Go on with more rows, the first of which has this number."""
        self.rows += len(column.values)
        if column.kind == "category":
            self.levels |= {column.levels[k] for k in np.unique(column.values[column.values >= 0])}
            self.increases &= len(self.levels) < 2
            return
        known = column.values[~np.isnan(column.values)]
        if len(known):
            self.increases &= bool(known[0] >= self.last) and bool((known[1:] >= known[:-1]).all())
            self.last = float(known[-1])
        offsets = column.values - np.arange(start, start + len(column.values))
        constant = column.kind == "number" and bool((offsets == offsets[0]).all())
        self.offsets.add(float(offsets[0]) if constant else None)


def _separates(counts: Counts, ordered: bool) -> bool:
    """Whether no value of one table lies among those of the other; categories have to be one in each table."""
    found = counts.sum(axis=0) > 0
    if not found.any(axis=1).all():
        return False
    (a, b), (c, d) = ((int(row.argmax()), len(row) - 1 - int(row[::-1].argmax())) for row in found)
    return (b < c or d < a) and (ordered or (a == b and c == d))


def _common_kind(kinds: Sequence[set[Any]]) -> Any:
    """The kind of a column in both tables: truth values go with numbers, and no values with all; None for others."""
    found = set().union(*kinds)
    if not found:
        return "missing"
    if len(found) == 1:
        return found.pop()
    return "number" if found == {"number", "boolean"} else None
