"""``muhat describe``: a profile of one table with kinds, missing values, extremes, unusual rows and dependent pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from muhat._support.progress import printable_json, progress, repeated
from muhat.apps.cli.options import check_target, write_text
from muhat.apps.compare.column_counts import ColumnCounts, are_sentences, count_column
from muhat.apps.compare.html_report import Raw, html_page, html_sections, html_table, sentences, sparkline, text
from muhat.apps.compare.pair_tests import strongest_pairs
from muhat.apps.compare.row_hashes import column_hashes, count_different
from muhat.apps.compare.sources import chosen_names, open_sources, preparation
from muhat.apps.compare.text_report import (
    ReportPart,
    in_short,
    listed,
    notes_text,
    paragraph,
    percent,
    plural,
    row_cells,
    shown,
    table,
)
from muhat.apps.compare.two_tables import sampled_rows
from muhat.apps.compare.unusual_rows import Sample, UnusualRow, unusual_rows
from muhat.apps.files.tables import ManyTextsError, Reading
from muhat.tables.frames import Table

ROWS = 2000
"""How many rows are sampled to find pairs that depend and unusual rows."""

PAIRS = 10
WEAK = 0.2
"""Weaker rank correlations are not shown."""


@dataclass(frozen=True, eq=False)
class Profile:
    """What a table holds: counts of each column, the strongest pairs, and the rows that are least like the others."""

    name: str
    rows: int
    repeated_rows: int
    columns: tuple[ColumnCounts, ...]
    pairs: tuple[tuple[str, str, float], ...]
    unusual: tuple[UnusualRow, ...]
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Numbers and texts for JSON."""
        return {
            "name": self.name,
            "rows": self.rows,
            "repeated_rows": self.repeated_rows,
            "columns": [_column_dict(column) for column in self.columns],
            "pairs": [{"names": [a, b], "rank_correlation": r} for a, b, r in self.pairs],
            "unusual_rows": [row.to_dict() for row in self.unusual],
            "notes": list(self.notes),
        }


@repeated()
def describe(options: Any) -> int:
    """Describe a file; 0. See ``muhat describe --help``."""
    check_target("html", options.html, [options.file])
    found = profile(options)
    write_text("html", options.html, lambda: _page(found))
    print(printable_json(found.to_dict(), indent=1) if options.json else _text(found))
    return 0


def profile(options: Any) -> Profile:
    """Count all rows of each column, and look at pairs and at unusual rows in a sample of them."""
    reading = Reading(options.header, options.delimiter, options.missing)
    rng = np.random.default_rng(options.seed)
    with open_sources((options.file,), None, reading) as (source,), progress() as say:
        names = chosen_names([source], options.columns, options.exclude)
        prepare = preparation([source], options.categorical, options.missing)
        picked = sampled_rows(source, options.rows or ROWS, rng)
        notes = [f"column {column.name!r} is left out: {column.reason}" for column in source.left_out]
        counts, sampled, hashes = [], [], np.zeros(source.n_rows, dtype=np.uint64)
        for j, name in enumerate(names):
            say(f"column {j + 1:,} of {len(names):,}: {name}")
            try:
                column = prepare(source.column(name))
            except ManyTextsError as error:
                notes.append(f"column {name!r} is left out: {error}")
                continue
            hashes += column_hashes(column, j)
            counts.append(count_column([column]).compressed())
            sampled.append(column._replace(values=column.values[picked]))
        notes += [f"column {name!r} is taken as text; {hint}" for name, hint in (source.hints or {}).items()]
        varied = [
            j
            for j, found in enumerate(counts)
            if found.distinct > 1 and not (found.kind == "category" and are_sentences(found.distinct, found.present[0]))
        ]
        say("pairs and unusual rows")
        columns = [sampled[j] for j in varied]
        sample = Sample(Table(source.name, len(picked), tuple(columns)), picked, source)
        if len(picked) < source.n_rows:
            notes.append(
                f"pairs and unusual rows are of {len(picked):,} of the {source.n_rows:,} rows, drawn at random"
            )
        unusual: tuple[UnusualRow, ...] = ()
        if columns and len(picked) > 2:
            unusual = unusual_rows([sample], [counts[j] for j in varied])

        def label(j: int, part: str) -> str:
            return f"{columns[j].name} = {part}" if part else columns[j].name

        pairs = [
            (label(pair[0], parts[0]), label(pair[1], parts[1]), r)
            for pair, parts, r in strongest_pairs(columns, PAIRS)
            if abs(r) >= WEAK
        ]
    repeated = source.n_rows - count_different(hashes)
    return Profile(source.name, source.n_rows, repeated, tuple(counts), tuple(pairs), unusual, tuple(notes))


def _column_dict(column: ColumnCounts) -> dict[str, Any]:
    found = {
        "name": column.name,
        "kind": column.kind,
        "missing": int(column.missing.sum()),
        "distinct": column.distinct,
    }
    if column.moments:
        return found | {key: None if np.isnan(value) else value for key, value in column.moments[0]._asdict().items()}
    counts = column.counts[0, 0][:20].tolist()
    return found | {"counts": [{"value": str(v), "rows": n} for v, n in zip(column.values, counts, strict=False)]}


HEAD = ("column", "kind", "missing", "distinct", "mean ± sd, or commonest", "smallest", "largest")


def _cells(column: ColumnCounts) -> list[str]:
    ends = ["", ""]
    if column.moments and column.present[0]:
        ends = [shown(column.kind, end) for end in (column.moments[0].smallest, column.moments[0].largest)]
    missing = percent(column.missing_shares[0]) if column.missing.any() else ""
    return [column.name, column.kind, missing, f"{column.distinct:,}", in_short(column, 0), *ends]


def _summary(found: Profile) -> list[str]:
    verb = "repeats" if found.repeated_rows == 1 else "repeat"
    repeats = f"; {plural(found.repeated_rows, 'row')} {verb} another" if found.repeated_rows else ""
    told = [f"{found.name}: {plural(found.rows, 'row')} of {plural(len(found.columns), 'column')}{repeats}."]
    lost = [column for column in found.columns if column.missing.any()]
    if lost:
        worst = max(lost, key=lambda column: column.missing_shares[0])
        told.append(
            f"{plural(len(lost), 'column')} {'has' if len(lost) == 1 else 'have'} missing values, most of them "
            f"{worst.name} ({percent(worst.missing_shares[0])})."
        )
    single = [column.name for column in found.columns if column.distinct == 1]
    if single:
        hold = "holds" if len(single) == 1 else "hold"
        told.append(f"{plural(len(single), 'column')} {hold} a single value: {listed(single, 5, str)}.")
    return told


def _sections(found: Profile) -> list[ReportPart]:
    pairs = [(a, b, f"{r:.2f}".replace("-", "−")) for a, b, r in found.pairs]
    rows = row_cells(found.unusual, "all rows")
    place = found.unusual[0].place if rows else ""
    sections = [
        ReportPart("Pairs that depend on each other", ("column", "column", "rank correlation"), pairs),
        ReportPart("Rows least like the others", (place, "values that are rare"), rows),
    ]
    return [section for section in sections if section.cells]


def _text(found: Profile) -> str:
    columns = table("Columns", HEAD, [_cells(column) for column in found.columns], left=(0, 1, 4))
    parts = [paragraph(_summary(found)), columns, *(section.as_text() for section in _sections(found))]
    return "\n\n".join(part for part in (*parts, notes_text(found.notes)) if part)


def _page(found: Profile) -> str:
    cells = [_cells(column) for column in found.columns]
    drawn = [Raw(sparkline(column)) if len(column.values) else Raw("") for column in found.columns]
    rows = [[row[0], spark, *row[1:]] for row, spark in zip(cells, drawn, strict=True)]
    columns = html_table([HEAD[0], "distribution", *HEAD[1:]], rows)
    notes = [f'<p class="muted">{text(note)}</p>' for note in found.notes]
    parts = [*sentences(_summary(found)), "<h3>Columns</h3>", columns, *html_sections(_sections(found)), *notes]
    return html_page(found.name, "describe", "\n".join(parts))
