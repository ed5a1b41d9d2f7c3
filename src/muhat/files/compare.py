"""Comparison of two tables: single columns, pairs of columns, and all columns together."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import false_discovery_control

from muhat.elements import Element, embed
from muhat.files.column_differences import MEASURES, column_pvalue, column_size, holm, missing_pvalue, smallest_pvalue
from muhat.files.matching import Matched, NotCompared
from muhat.files.pairs import LEAST_ROWS, MOST_COORDINATES, PairChange, pair_changes
from muhat.files.reasons import Reason, reasons
from muhat.files.rows import Sample, drawn_rows, rows_within
from muhat.files.selection import used_columns
from muhat.files.summaries import Summary
from muhat.files.tables import Reading
from muhat.inference.two_sample import MMDResult, mmd_test
from muhat.kernels.base import Kernel
from muhat.kernels.radial import Gaussian
from muhat.linalg.blocks import blocks
from muhat.progress import progress
from muhat.types import Array

_COLUMNS_AT_ONCE = 100

TYPICAL = 5
"""How many rows of each file are shown."""


@dataclass(frozen=True, eq=False)
class ColumnDifference:
    """One column by itself, of all rows.

    ``adjusted_pvalue`` is corrected for all that was looked at, ``false_discovery`` for the columns alone (Benjamini
    and Hochberg). ``missing_pvalue`` is of the shares of missing values, None where no value is missing.
    """

    summary: Summary
    pvalue: float
    adjusted_pvalue: float
    false_discovery: float
    size: float
    missing_pvalue: float | None
    missing_adjusted_pvalue: float | None

    @property
    def name(self) -> str:
        """The column's name."""
        return self.summary.name

    @property
    def measure(self) -> str:
        """What ``size`` is."""
        return MEASURES[self.summary.kind]


@dataclass(frozen=True)
class PairDifference:
    """Two columns whose dependence was compared, by their labels."""

    names: tuple[str, str]
    pvalue: float
    adjusted_pvalue: float
    correlations: tuple[float, float]


@dataclass(frozen=True, eq=False)
class Comparison:
    """What :func:`compare` found.

    ``pvalue`` is of the whole: a difference was found if it does not exceed ``level``. ``test`` is of all columns
    together in the rows of ``samples``, and ``witness`` the difference of their means with ``kernel``; ``columns``
    come most different first, and so do ``pairs``. ``typical`` holds the numbers of the rows of either sample that
    are most unlike the other table. Columns in ``not_compared`` played no part. ``identical`` tables hold the same rows
    in the same order, and no difference is found between them, whatever rows were drawn.
    """

    names: tuple[str, str]
    paths: tuple[str, str]
    totals: tuple[int, int]
    samples: tuple[Sample, Sample]
    pvalue: float
    test: MMDResult
    kernel: Kernel
    witness: Element
    normalised_squared_mmd: float
    columns: tuple[ColumnDifference, ...]
    pairs: tuple[PairDifference, ...]
    typical: tuple[NDArray[np.int64], NDArray[np.int64]]
    level: float
    columns_can_be_told: bool
    notes: tuple[str, ...]
    not_compared: tuple[NotCompared, ...] = ()
    identical: bool = False

    @property
    def differs(self) -> bool:
        """Whether a difference was found at the level."""
        return self.pvalue <= self.level and not self.identical

    @property
    def together(self) -> str:
        """What the test of all columns together saw, in words, with the clearest column where it is beyond doubt."""
        a, b = self.names
        if self.test.pvalue > self.level or self.identical:
            return f"no difference found between the rows of {a} and {b}"
        of_columns = [finding for finding in self.test.components if finding.column is not None]
        found = max(of_columns, key=lambda finding: finding.evidence, default=None)
        if found is None or found.column is None or len(of_columns) * found.pvalue > self.level:
            return f"the rows of {a} and {b} differ"
        place = int(found.column)  # of a coordinate: the test knows no names
        name, part = self.samples[0].coordinates[place]
        x, y = (sample.points[:, place] for sample in self.samples)
        what = {"values": "is higher", "missing": "is missing more often"}.get(part, f"is more often {part[1:]!r}")
        if part == "values" and found.change == "scale":
            x, y, what = np.abs(x - np.median(x)), np.abs(y - np.median(y)), "is more spread out"
        return f"the rows of {a} and {b} differ; most clearly, {name!r} {what} in {a if x.mean() > y.mean() else b}"

    @property
    def found(self) -> list[ColumnDifference]:
        """The columns that differ by themselves."""
        return [column for column in self.columns if column.adjusted_pvalue <= self.level]

    @property
    def found_missing(self) -> list[ColumnDifference]:
        """The columns in which the shares of missing values differ."""
        adjusted = [(column, column.missing_adjusted_pvalue) for column in self.columns]
        return [column for column, pvalue in adjusted if pvalue is not None and pvalue <= self.level]

    def is_found(self, column: ColumnDifference) -> bool:
        """Whether the values of a column or the shares of missing ones differ."""
        return column in self.found or column in self.found_missing

    @property
    def found_pairs(self) -> list[PairDifference]:
        """The pairs of columns whose dependence changed."""
        return [pair for pair in self.pairs if pair.adjusted_pvalue <= self.level]

    @property
    def rows_stand_out(self) -> bool:
        """Whether rows are worth showing: where all columns together show a difference."""
        return self.differs and self.test.pvalue <= self.level

    def witnesses(self, which: int) -> Array:
        """The witness at the typical rows of one sample; positive is more like that sample than like the other."""
        values = self.witness(self.samples[which].points[self.typical[which]])
        return values if which == 0 else -values

    def reasons(self, which: int) -> list[list[Reason]]:
        """For each typical row of one sample, the values that are rare in the other table."""
        by_name = {column.name: column.summary for column in self.columns}
        ordered = [by_name[name] for name in self.samples[which].names]
        return [reasons(self.samples[which], int(i), 1 - which, ordered) for i in self.typical[which]]


def compare(
    matched: Matched,
    reading: Reading,
    kernel: Kernel | None = None,
    *,
    resamples: int = 999,
    level: float = 0.05,
    raw: bool = False,
    seconds: float = 10.0,
) -> Comparison:
    """Test two tables column by column, pair by pair and as a whole.

    Three questions are asked: does a column or the share of its missing values differ (all rows), did the dependence of
    a pair of columns change, and do the rows as a whole differ (both on a sample of the rows)? The p-value is the
    smallest of the three answers, times three. Columns and pairs are named only where it does not exceed the level, and
    after Holm's correction for the tests of their question, times two. The chance that anything is named wrongly stays
    below the level: where no difference exists because of the first correction, and where one exists elsewhere because
    of the second.

    Parameters
    ----------
    matched : Matched
        Two tables and their columns.
    reading : Reading
        ``rows`` bounds the sample and ``seed`` draws it.
    kernel : Kernel, optional
        Of the test of all columns together; by default that is the default of :func:`muhat.mmd_test`, which joins
        several statistics. Rows most unlike the other table are found by this kernel, by default Gaussian().
    resamples : int
        Of that test.
    level : float
        A p-value up to it counts as a difference.
    raw : bool
        Leave columns of numbers as they are; by default they get the pooled mean 0 and standard deviation 1.
    seconds : float
        About how long the test of all columns together may take.

    Returns
    -------
    Comparison
    """
    with progress() as say:
        identical = _identical(matched)
        used, notes = used_columns(matched, reading, say)
        limit = reading.rows or rows_within(seconds, len(used))
        first, second = samples = drawn_rows(matched, used, limit, reading.seed, raw)
        say(f"all columns together: {len(first.points):,} and {len(second.points):,} rows")
        with warnings.catch_warnings():
            # Columns of few values are common, and nobody can choose their bandwidths here.
            warnings.filterwarnings("ignore", 'bandwidth="median": more than half', UserWarning)
            test = _joint_test(first.points, second.points, kernel, resamples, reading.seed, raw)
            resolved = (kernel or Gaussian()).resolve(np.concatenate([first.points, second.points]))
        say("pairs of columns")
        changes = pair_changes(list(zip(first.kinds, zip(first.values, second.values, strict=True), strict=True)))
    witness = embed(resolved, first.points) - embed(resolved, second.points)
    pvalue, columns, pairs = _adjusted(used, changes, test.pvalue)
    (first_table, second_table), (n, m) = matched.tables, (table.total for table in matched.tables)
    return Comparison(
        (matched.names[0], matched.names[1]),
        (first_table.path, second_table.path),
        (n, m),
        (first, second),
        pvalue,
        test,
        resolved,
        witness,
        normalised_squared_mmd(resolved, first.points, second.points),
        columns,
        pairs,
        (_largest(witness(first.points)), _largest(-witness(second.points))),
        level,
        2 * len(used) * smallest_pvalue(n, m) <= level,
        (*matched.notes, *notes, *_sampled(matched, samples), *_unpaired(first, second, changes)),
        tuple(matched.not_compared),
        identical,
    )


def _identical(matched: Matched) -> bool:
    """Whether both tables hold the same values in all columns, row by row."""
    a, b = matched.tables
    if a.total != b.total or matched.not_compared:
        return False
    for part in blocks(len(matched.columns), _COLUMNS_AT_ONCE):
        differ = " OR ".join(f"a.{x.key} IS DISTINCT FROM b.{y.key}" for x, y in matched.columns[part])
        query = f"SELECT 1 FROM {a.relation} AS a POSITIONAL JOIN {b.relation} AS b WHERE {differ} LIMIT 1"
        if a.database.rows(query):
            return False
    return True


def _adjusted(
    used: Sequence[Summary], changes: Sequence[PairChange], joint: float
) -> tuple[float, tuple[ColumnDifference, ...], tuple[PairDifference, ...]]:
    values = [column_pvalue(summary) for summary in used]
    gappy = [j for j, summary in enumerate(used) if any(summary.missing)]
    gaps = [missing_pvalue(used[j]) for j in gappy]
    columns_holm = holm([*values, *gaps])
    pairs_holm = holm([change.pvalue for change in changes])
    smallest = [joint, float(columns_holm.min()), *([float(pairs_holm.min())] if changes else [])]
    pvalue = min(1.0, len(smallest) * min(smallest))
    named = np.maximum(pvalue, np.minimum(1.0, (len(smallest) - 1) * columns_holm))
    discovery = false_discovery_control(values)
    missing = dict(zip(gappy, zip(gaps, named[len(values) :], strict=True), strict=True))
    columns = [
        ColumnDifference(
            summary,
            values[j],
            float(named[j]),
            float(discovery[j]),
            column_size(summary),
            missing[j][0] if j in missing else None,
            float(missing[j][1]) if j in missing else None,
        )
        for j, summary in enumerate(used)
    ]
    columns.sort(key=lambda c: (min(c.adjusted_pvalue, c.missing_adjusted_pvalue or 1.0), c.pvalue, -c.size))
    pairs = [
        PairDifference(
            (_label(used, change, 0), _label(used, change, 1)),
            change.pvalue,
            float(max(pvalue, min(1.0, (len(smallest) - 1) * adjusted))),
            change.correlations,
        )
        for change, adjusted in zip(changes, pairs_holm, strict=True)
    ]
    pairs.sort(key=lambda pair: pair.pvalue)
    return pvalue, tuple(columns), tuple(pairs)


def _label(used: Sequence[Summary], change: PairChange, which: int) -> str:
    name, part = used[change.columns[which]].name, change.parts[which]
    return f"{name} = {part}" if part else name


def _joint_test(X: Array, Y: Array, kernel: Kernel | None, resamples: int, seed: int, raw: bool) -> MMDResult:
    if kernel is None:
        return mmd_test(X, Y, n_resamples=resamples, random_state=seed, scale=None if raw else "auto")
    return mmd_test(X, Y, kernel, resamples, seed, unbiased=True, scale=None)


def normalised_squared_mmd(kernel: Kernel, X: Array, Y: Array) -> float:
    """Unbiased MMD² / E‖φ(x) − φ(y)‖², between 0 and 1, for a kernel with k(x, x) = 1.

    >>> import muhat as mh
    >>> normalised_squared_mmd(mh.Gaussian(1.0), np.zeros((2, 1)), np.full((2, 1), 99.0))
    1.0
    """
    cross = float(kernel(X, Y).mean())
    within = sum((float(kernel(Z).sum()) - len(Z)) / (len(Z) * (len(Z) - 1)) for Z in (X, Y))
    between = 2.0 - 2.0 * cross
    return float(np.clip((within - 2.0 * cross) / between, 0.0, 1.0)) if between > 0 else 0.0


def _largest(values: Array) -> NDArray[np.int64]:
    return np.argsort(-values, kind="stable")[:TYPICAL]


def _sampled(matched: Matched, samples: Sequence[Sample]) -> list[str]:
    return [
        f"{table.path}: all columns together are compared in {len(sample.points):,} of {table.total:,} rows, drawn at "
        "random; --seconds S or --rows N takes more"
        for table, sample in zip(matched.tables, samples, strict=True)
        if len(sample.points) < table.total
    ]


def _unpaired(first: Sample, second: Sample, changes: Sequence[PairChange]) -> list[str]:
    if changes or len(first.kinds) < 2:
        return []
    if min(len(first.points), len(second.points)) < LEAST_ROWS:
        return [f"pairs of columns are compared where both files have {LEAST_ROWS} rows or more"]
    return [f"pairs of columns are compared in tables of up to {MOST_COORDINATES:,} columns and categories"]


def as_json(comparison: Comparison) -> dict[str, Any]:
    """What ``muhat compare --json`` prints."""
    level = comparison.level
    return {
        "differs": comparison.differs,
        "identical": comparison.identical,
        "level": level,
        "pvalue": comparison.pvalue,
        "not_compared": [column._asdict() for column in comparison.not_compared],
        "all_columns_together": {
            "pvalue": comparison.test.pvalue,
            "resamples": len(comparison.test.null_distribution),
            "statistic": comparison.test.statistic,
            "normalised_squared_mmd": comparison.normalised_squared_mmd,
            "kernel": repr(comparison.kernel),
            "in_words": comparison.together,
        },
        "files": [_file_json(comparison, which) for which in (0, 1)],
        "columns": [_column_json(column, level) for column in comparison.columns],
        "pairs": [
            {
                "names": list(pair.names),
                "differs": pair.adjusted_pvalue <= level,
                "pvalue": pair.pvalue,
                "adjusted_pvalue": pair.adjusted_pvalue,
                "rank_correlations": [_or_none(value) for value in pair.correlations],
            }
            for pair in comparison.pairs[: max(100, len(comparison.found_pairs))]
        ],
        "notes": list(comparison.notes),
    }


def _column_json(column: ColumnDifference, level: float) -> dict[str, Any]:
    summary = column.summary
    found: dict[str, Any] = {
        "name": column.name,
        "kind": summary.kind,
        "differs": column.adjusted_pvalue <= level,
        "pvalue": column.pvalue,
        "adjusted_pvalue": column.adjusted_pvalue,
        "false_discovery_rate": column.false_discovery,
        "size": column.size,
        "measure": column.measure,
        "rows": list(summary.present),
    }
    if summary.moments:
        for name in ("mean", "standard_deviation", "smallest", "largest"):
            found[name] = [_or_none(getattr(moments, name)) for moments in summary.moments]
    else:
        totals = np.maximum(summary.counts.sum(axis=1), 1)
        found["shares"] = [
            {"value": str(text), "shares": (counts / totals).tolist()}
            for text, counts in zip(summary.values[:20], summary.counts.T[:20], strict=True)
        ]
    if column.missing_pvalue is not None and column.missing_adjusted_pvalue is not None:
        found["missing"] = {
            "shares": list(summary.missing_shares),
            "differs": column.missing_adjusted_pvalue <= level,
            "pvalue": column.missing_pvalue,
            "adjusted_pvalue": column.missing_adjusted_pvalue,
        }
    return found


def _or_none(value: float) -> float | None:
    return None if np.isnan(value) else value


def _file_json(comparison: Comparison, which: int) -> dict[str, Any]:
    sample, chosen = comparison.samples[which], comparison.typical[which]
    reasons = comparison.reasons(which)
    return {
        "path": comparison.paths[which],
        "rows_in_file": comparison.totals[which],
        "rows_used": comparison.totals[which],
        "rows_used_together": len(sample.points),
        "rows_most_unlike": [
            {
                sample.place: int(sample.places[i]),
                "witness": float(value),
                "because": [reason.as_json() for reason in because],
                "values": sample.row(i),
            }
            for i, value, because in zip(chosen, comparison.witnesses(which), reasons, strict=True)
        ],
    }
