"""The function ``compare``: single columns of all rows, pairs of columns and all columns together of a sample."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from muhat._support.progress import progress
from muhat._support.types import Array, RandomState
from muhat._support.validation import check_count, check_number, check_rng
from muhat.apps.compare import column_tests, effects
from muhat.apps.compare.column_counts import (
    THRESHOLDS,
    ColumnCounts,
    Tally,
    are_sentences,
    different_values,
    join_tallies,
    tally_column,
)
from muhat.apps.compare.pair_tests import LEAST_ROWS, MOST_FEATURES, PairChange, pair_changes
from muhat.apps.compare.result import ColumnResult, Columns, Comparison, MissingResult, PairResult, TableFacts
from muhat.apps.compare.row_hashes import column_hashes, count_different, rows_per_hash
from muhat.apps.compare.sources import chosen_names, open_sources, preparation, prepared, unmatched
from muhat.apps.compare.text_report import listed, plural
from muhat.apps.compare.unusual_rows import Sample, scaled_points, unusual_rows
from muhat.apps.files.tables import MOST_TEXTS_HELD, ManyTextsError, Reading, Source, concatenated
from muhat.inference.two_sample import MMDResult, mmd_test
from muhat.kernels.base import Kernel
from muhat.kernels.radial import Gaussian
from muhat.linalg.centered_gram import mean_off_diagonal
from muhat.tables.frames import KIND_IN_WORDS, Column, LeftOut, Table

LEAST_SAMPLE, MOST_SAMPLE = 200, 20_000
"""Bounds of the number of rows of each table that are compared as a whole."""

MMD_ROWS = 1000
"""The normalised MMD² is that of so many rows of each table."""

MOST_STRATA = 500

FEW_ROWS = 20
"""A note says where a table has fewer."""

LONG, BATCH = 2**22, 2**20
"""Tables with more rows together are read in parts of so many, and their numbers are counted between thresholds."""

PROBES = 2**15
"""Rows of each long table whose values are these thresholds."""

FEWEST_RESAMPLES, MOST_RESAMPLES = 999, 20_000
"""Bounds of the number of permutations where it is not given."""

_QUESTIONS = 3  # columns, pairs and all columns together
_PAIRS_PER_SECOND = 1.0e6


def compare(
    a: Any,
    b: Any,
    at_least: float = 0.0,
    level: float = 0.05,
    columns: Sequence[str] | None = None,
    exclude: Sequence[str] | None = None,
    strata: str | None = None,
    random_state: RandomState = None,
    *,
    categorical: Sequence[str] | None = None,
    missing: Sequence[Any] = (),
    names: Sequence[str] | None = None,
    kernel: Kernel | None = None,
    n_resamples: int | None = None,
    seconds: float = 10.0,
    rows: int | None = None,
    header: bool | None = None,
    delimiter: str | None = None,
) -> Comparison:
    """Compare two tables: do they come from one distribution, where do they differ, and by how much?

    Three questions are asked. Does a column, or the share of its missing values, differ (in all rows)? Did the
    dependence of a pair of columns change, and do the rows as a whole differ (both in a sample of the rows)? The
    p-value is the smallest of the three answers, times three. Columns and pairs are named where it does not exceed the
    level, after Holm's correction for the tests of their question, times two. So the probability that anything is named
    wrongly is at most the level, whether or not the tables differ elsewhere.

    Parameters
    ----------
    a, b : data frame, array, or path
        Data frames of pandas, polars, pyarrow, DuckDB and others; arrays and lists of rows; paths of CSV, Parquet, NPY
        and JSON lines files (also compressed by gzip), or patterns such as ``"jan/*.parquet"``. Columns are matched by
        name. Missing values are allowed everywhere.
    at_least : float, default 0.0
        The smallest effect that matters: the tables differ if an effect of a column, of missing values or of a pair is
        shown to *exceed* it, with the same control of error. With 0 any significant difference counts, also one that
        only all columns together show.
    level : float, default 0.05
        P-values up to it are findings, and the intervals of all effects cover them together with one minus this
        probability.
    columns, exclude : sequence of str, optional
        Columns to use, and to leave out: names, or patterns such as ``"price_*"``.
    strata : str, optional
        Name of a column of categories, such as a site: rows are compared within its values only. Columns are compared
        by the weighted difference over strata, and the joint test permutes rows within strata. Pairs of columns are not
        compared then.
    random_state : None, int, Generator, SeedSequence or RandomState
        The seed of the sampled rows and of the permutations.
    categorical : sequence of str, optional
        Columns of numbers that are categories, such as codes, by name or pattern.
    missing : sequence of str or numbers, optional
        Further values that stand for missing ones, such as ``"n.d."`` or ``-999``.
    names : two str, optional
        What the tables are called in sentences; by default the names of files, or "a" and "b".
    kernel : Kernel, optional
        Of the joint test; by default that of :func:`~muhat.mmd_test`, which combines several statistics.
    n_resamples : int, optional
        Permutations of the joint test. By default 999, and 3 / level where that is more (up to 20,000): with fewer the
        joint test alone cannot reach the level. A note says so where this happens.
    seconds : float, default 10.0
        About how long the joint test may take; it decides how many rows are sampled.
    rows : int, optional
        How many rows of each table are sampled, in place of ``seconds``.
    header : bool, optional
        Of CSV files: whether the first row holds names. By default it is looked at.
    delimiter : str, optional
        Of CSV files: what separates cells. By default the first lines are looked at.

    Returns
    -------
    Comparison
        It prints itself, shows itself in notebooks, and has ``differs``, ``pvalue``, ``columns``, ``pairs``, ``joint``,
        ``rows``, ``to_dict()``, ``to_frame()``, ``save_html(path)`` and ``plot()``.

    See Also
    --------
    muhat.testing.assert_same_distribution : The same comparison as an assertion for tests.
    muhat.mmd_test : The joint test alone.
    muhat.DriftMonitor : For the rows of a stream.

    Notes
    -----
    Effects are the KS distance of numbers, dates and durations, total variation of categories and truth values, the
    difference of shares of missing values, and the difference of rank correlations of pairs. Rows are taken to be
    independent of each other: rows of a time series are not.

    References
    ----------
    Holm (1979). A simple sequentially rejective multiple test procedure. Scandinavian Journal of Statistics 6.
    Newcombe (1998). Interval estimation for the difference between independent proportions. Statistics in Medicine 17.

    Examples
    --------
    >>> import numpy as np, muhat as mh
    >>> rng = np.random.default_rng(0)
    >>> before = {"age": rng.normal(40, 9, 300), "plan": rng.choice(["basic", "plus"], 300)}
    >>> after = {"age": rng.normal(48, 9, 200), "plan": rng.choice(["basic", "plus"], 200)}
    >>> result = mh.compare(before, after, names=("before", "after"), random_state=0)
    >>> result.differs, result.columns[0].name, result.columns[0].effect_name
    (True, 'age', 'KS distance')
    >>> mh.compare(before, after, at_least=0.5, random_state=0).differs
    False
    """
    at_least = _check_effect(at_least)
    level = check_number("level", level, low=0.0, high=1.0, open_low=True)
    n_resamples = resamples_for(level) if n_resamples is None else check_count("n_resamples", n_resamples)
    rng = check_rng(random_state)
    reading = Reading(header, delimiter, [str(mark) for mark in missing])
    with open_sources((a, b), names, reading) as sources, progress() as say:
        for source in sources:
            if source.n_rows < 2:
                raise ValueError(f"{source.name} has {plural(source.n_rows, 'row')}, and a comparison needs at least 2")
        chosen = chosen_names(sources, columns, exclude)
        labels = None if strata is None else _strata(sources, strata, missing)
        chosen = [name for name in chosen if name != strata]
        limit = rows or sample_size(seconds, len(chosen))
        picked = [sampled_rows(source, limit, rng) for source in sources]
        scan = _Scan(sources, preparation(sources, categorical, missing), at_least, labels, columns is not None, picked)
        scan.not_compared += [] if columns is not None else unmatched(sources, exclude)
        for j, name in enumerate(chosen):
            say(f"column {j + 1:,} of {len(chosen):,}: {name}")
            scan.add(name)
        scan.check_not_empty()
        first, second = samples = scan.samples()
        say(f"all columns together: {first.table.n_rows:,} and {second.table.n_rows:,} rows")
        joint = _joint_test(first.table, second.table, kernel, n_resamples, rng, scan.picked_strata())
        say("pairs of columns")
        changes = [] if labels is not None else pair_changes(first.table.columns, second.table.columns)
        if at_least == 0.0:  # with a bound, the joint test does not decide the answer
            scan.notes += _unreachable(joint, n_resamples, _QUESTIONS - (not changes), level)
    return _result(scan, samples, joint, changes, kernel, level)


def sample_size(seconds: float, columns: int) -> int:
    """How many rows of each table the joint test compares in about this many seconds on two cores.

    The number depends on nothing else, so that the same call gives the same answer on every machine.
    """
    check_number("seconds", seconds, low=0.0, open_low=True)
    size = np.sqrt(seconds * _PAIRS_PER_SECOND / (1 + columns / 100))
    return int(np.clip(size, LEAST_SAMPLE, MOST_SAMPLE))


def _check_effect(at_least: Any) -> float:
    try:
        return check_number("at_least", at_least, low=0.0, high=1.0)
    except ValueError as error:
        raise ValueError(f"{error}, such as 0.1 for 10 %") from None


def resamples_for(level: float) -> int:
    """How many permutations let the joint test reach the level, where its p-value counts three times.

    >>> resamples_for(0.05), resamples_for(0.001)
    (999, 3000)
    """
    return int(np.clip(np.ceil(_QUESTIONS / level), FEWEST_RESAMPLES, MOST_RESAMPLES))


# ------------------------------------------------------------------------------------------------ one column at a time


class _Evidence(NamedTuple):
    """An effect, its interval for a level, and p-values: of any difference, and of one beyond ``at_least``."""

    effect: float
    interval: Callable[[float], effects.Interval]
    pvalue: float
    exceeds: float


class _Read(NamedTuple):
    """A column of one table: counts of its values, its sampled rows, hashes, and whether it counts the rows."""

    tally: Tally
    sampled: Column
    hashes: NDArray[np.uint64]
    counts_rows: bool

    def in_words(self) -> str:
        if self.tally.kind == "category":
            return f"text such as {self.tally.values[0][:30]!r}"
        return KIND_IN_WORDS[self.tally.kind]


@dataclass
class _Scan:
    """What one pass over the columns collects; no column of all rows is kept."""

    sources: list[Source]
    prepare: Callable[[Column], Column]
    at_least: float
    strata: list[NDArray[np.intp]] | None
    asked_for: bool
    picked: list[NDArray[np.intp]]
    counts: list[ColumnCounts] = field(default_factory=list)
    values: list[_Evidence] = field(default_factory=list)
    missing: list[_Evidence | None] = field(default_factory=list)
    sampled: list[list[Column]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    not_compared: list[LeftOut] = field(default_factory=list)
    left_out: dict[str, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        rows = [source.n_rows for source in self.sources]
        self.is_long = sum(rows) > LONG
        self.columns_read = 0
        self.probes = [sampled_rows(source, PROBES, np.random.default_rng(0)) for source in self.sources]
        self.group = rows_per_hash(max(rows))
        self.hashes = [np.zeros(-(-count // self.group), dtype=np.uint64) for count in rows]
        self.n_strata = 1 if self.strata is None else 1 + max(int(labels.max()) for labels in self.strata)

    def add(self, name: str) -> None:
        """Test a column of all rows, and keep its counts and its sampled rows."""
        self.columns_read += 1
        hint = next((source.hints[name] for source in self.sources if name in source.hints), "")
        try:
            thresholds = self._thresholds(name)
            columns = [self._read(which, name, thresholds) for which in (0, 1)]
        except ManyTextsError as error:
            self._leave_out_texts(name, str(error), hint)
            return
        tallies = [column.tally for column in columns]
        if not _kinds_agree(tallies):
            held = " and ".join(f"{c.in_words()} in {s.name}" for c, s in zip(columns, self.sources, strict=True))
            self.not_compared.append(LeftOut(name, f"it holds {held}{f'; {hint}' if hint else ''}"))
            return
        for hashes, column in zip(self.hashes, columns, strict=True):
            hashes += column.hashes
        counts = join_tallies(tallies)
        if self._is_left_out(counts, all(column.counts_rows for column in columns), hint):
            return
        if hint:
            self.notes.append(f"column {name!r} is taken as text; {hint}")
        compressed = counts.compressed()
        self.values.append(_values_evidence(counts, compressed, self.at_least))
        self.missing.append(_missing_evidence(counts, self.at_least) if counts.missing.any() else None)
        self.counts.append(compressed)
        self.sampled.append([column.sampled for column in columns])

    def _thresholds(self, name: str) -> Array | None:
        """Numbers up to which the rows are counted, where not each number is counted: in long tables and in strata."""
        if not self.is_long and self.strata is None:
            return None
        known = []
        for which in (0, 1):
            for start, column in self._batches(which, name):
                if column.kind == "category":
                    return None
                probed = _within(self.probes[which], start, column) if self.is_long else slice(None)
                known.append(column.values[probed])
        pooled = np.concatenate(known)
        pooled = pooled[~np.isnan(pooled)]
        different = different_values(pooled)
        if self.strata is not None and len(different) > THRESHOLDS:
            different = np.unique(np.quantile(pooled, np.linspace(0, 1, THRESHOLDS + 1), method="lower"))
        return different if len(different) else None

    def _batches(self, which: int, name: str) -> Iterator[tuple[int, Column]]:
        """The column of a table, in parts where tables are long, each with the number of its first row."""
        source = self.sources[which]
        step = BATCH if self.is_long else source.n_rows
        for start in range(0, source.n_rows, step):
            yield start, self.prepare(source.column(name, slice(start, start + step)))

    def _read(self, which: int, name: str, thresholds: Array | None) -> _Read:
        tally: Tally | None = None
        sampled, hashes, offsets = [], [], []
        for start, column in self._batches(which, name):
            labels = None if self.strata is None else self.strata[which][start : start + len(column.values)]
            found = tally_column(column, labels, self.n_strata, thresholds)
            tally = found if tally is None else tally + found
            if tally.kind == "category" and len(tally.values) > MOST_TEXTS_HELD:
                raise ManyTextsError(f"it holds more than {MOST_TEXTS_HELD:,} different texts")
            sampled.append(column._replace(values=column.values[_within(self.picked[which], start, column)]))
            hashes.append(column_hashes(column, self.columns_read, self.group))
            offsets.append(_offset(column, start))
        counts_rows = offsets[0] is not None and set(offsets) == {offsets[0]}
        assert tally is not None, "a table has rows"
        return _Read(tally, concatenated(name, sampled), np.concatenate(hashes), counts_rows)

    def _is_left_out(self, counts: ColumnCounts, counts_rows: bool, hint: str) -> bool:
        if not sum(counts.present):
            reason = "all their values are missing"
        elif counts.distinct == 1 and len(set(counts.missing_shares)) == 1:
            reason = "they hold a single value"
        elif not self.asked_for and counts_rows:
            reason = "they count the rows (name them in columns= to use them)"
        elif counts.kind == "category" and are_sentences(counts.distinct, sum(counts.present)):
            self._leave_out_texts(counts.name, f"it holds {counts.distinct:,} different texts", hint)
            return True
        else:
            return False
        self.left_out.setdefault(reason, []).append(counts.name)
        return True

    def _leave_out_texts(self, name: str, texts: str, hint: str) -> None:
        if hint:
            self.not_compared.append(LeftOut(name, f"{texts}; {hint}"))
        else:
            self.notes.append(f"column {name!r} is left out, because {texts}")

    def check_not_empty(self) -> None:
        """Raise a ValueError where no column is left; otherwise note those that were left out."""
        self.notes += [f"left out, because {reason}: {listed(names)}" for reason, names in self.left_out.items()]
        if not self.counts:
            tables = " and ".join(source.name for source in self.sources)
            apart = [f"{column.name!r}: {column.reason}" for column in self.not_compared]
            why = next(iter([*self.notes, *apart]), "all rows are equal")
            raise ValueError(f"{tables}: no column is left that could be compared; {why}")

    def samples(self) -> list[Sample]:
        """The sampled rows of each table."""
        return [
            Sample(Table(source.name, len(picked), tuple(columns)), picked, source)
            for source, picked, columns in zip(self.sources, self.picked, zip(*self.sampled, strict=True), strict=True)
        ]

    def picked_strata(self) -> NDArray[np.intp] | None:
        """The strata of the sampled rows of both tables, one below the other."""
        if self.strata is None:
            return None
        return np.concatenate([labels[rows] for labels, rows in zip(self.strata, self.picked, strict=True)])

    def shared_rows(self) -> tuple[bool, int]:
        """Whether both tables hold the same rows, and how many rows of the second are also in the first."""
        first, second = (np.sort(hashes) for hashes in self.hashes)
        if self.sources[0].n_rows == self.sources[1].n_rows and bool((first == second).all()):
            return not self.not_compared, self.sources[0].n_rows
        if any(count_different(hashes) < 0.99 * len(hashes) for hashes in (first, second)):
            return False, 0  # rows repeat within a table, so that equal rows say nothing
        places = np.searchsorted(first, second).clip(max=len(first) - 1)
        return False, self.group * int((first[places] == second).sum())


def _within(rows: NDArray[np.intp], start: int, part: Column) -> NDArray[np.intp]:
    """Which of the ascending row numbers lie in a part of a column that begins at row ``start``, counted from there."""
    low, high = np.searchsorted(rows, [start, start + len(part.values)])
    return rows[low:high] - start


def _offset(column: Column, start: int) -> float | None:
    """What a column of numbers adds to the numbers of its rows, None where it does not count them."""
    if column.kind != "number" or len(column.values) + start < 3:
        return None
    offsets = column.values - np.arange(start, start + len(column.values))
    return float(offsets[0]) if (offsets == offsets[0]).all() else None


def _values_evidence(counts: ColumnCounts, compressed: ColumnCounts, at_least: float) -> _Evidence:
    if min(counts.present) == 0:
        return _Evidence(0.0, lambda alpha: effects.Interval(0.0, 1.0), 1.0, 1.0)
    ordered = counts.is_ordered
    effect = effects.ks_distance(counts.counts) if ordered else effects.total_variation(counts.counts)
    if len(counts.counts) > 1:
        pvalue = effects.stratified_pvalue(counts.counts, ordered)
    else:
        pvalue = (column_tests.numbers_pvalue if ordered else column_tests.categories_pvalue)(counts.counts[0])
    exceeds = effects.ks_exceeds if ordered else effects.variation_exceeds
    beyond = pvalue if at_least == 0.0 else max(pvalue, exceeds(counts.counts, at_least))
    # all counts of a long column would take much memory until its interval is asked for
    interval = partial(effects.ks_interval, effect) if ordered else effects.variation_interval
    return _Evidence(effect, partial(interval, compressed.counts), pvalue, beyond)


def _missing_evidence(counts: ColumnCounts, at_least: float) -> _Evidence:
    table = np.stack([counts.missing, counts.counts.sum(axis=2)], axis=2)  # missing and known values
    if len(table) > 1:
        pvalue = effects.stratified_pvalue(table, ordered=False)
    else:
        pvalue = column_tests.shares_pvalue(np.asarray(table[0].T))
    exceeds = pvalue if at_least == 0.0 else max(pvalue, effects.share_exceeds(table, at_least))
    return _Evidence(effects.total_variation(table), partial(effects.share_interval, table), pvalue, exceeds)


def _pair_evidence(change: PairChange, at_least: float) -> _Evidence:
    exceeds = change.pvalue if at_least == 0.0 else change.exceeds(at_least)
    return _Evidence(change.effect, change.interval, change.pvalue, exceeds)


def _kinds_agree(tallies: Sequence[Tally]) -> bool:
    """Truth values go with numbers, and columns without values with all."""
    return len({"number" if tally.kind == "boolean" else tally.kind for tally in tallies} - {"missing"}) <= 1


def sampled_rows(source: Source, limit: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Numbers of sampled rows of a table, ascending."""
    if source.n_rows <= limit:
        return np.arange(source.n_rows)
    return np.sort(rng.choice(source.n_rows, limit, replace=False)).astype(np.intp)


def _strata(sources: Sequence[Source], name: str, missing: Sequence[Any]) -> list[NDArray[np.intp]]:
    """The number of the stratum of each row; missing values are a stratum of their own."""
    for source in sources:
        if name not in source.names:
            raise ValueError(f"strata={name!r}: {source.name} has no such column; it has {list(source.names)[:8]}")
    columns = [prepared(source.column(name), missing, categorical=True) for source in sources]
    levels = sorted({level for column in columns for level in column.levels})
    if len(levels) > MOST_STRATA:
        raise ValueError(f"strata={name!r} has {len(levels):,} values; name a column of up to {MOST_STRATA} groups")
    if not set(columns[0].levels) & set(columns[1].levels):
        raise ValueError(f"strata={name!r} has no value in common; strata need rows of both tables")
    rank = {level: k for k, level in enumerate(levels)}
    orders = [np.array([*(rank[level] for level in column.levels), len(levels)], dtype=np.intp) for column in columns]
    return [order[column.values.astype(np.intp)] for order, column in zip(orders, columns, strict=True)]


# ------------------------------------------------------------------------------------------------ columns together


def _joint_test(
    first: Table, second: Table, kernel: Kernel | None, n_resamples: int, rng: np.random.Generator, strata: Any
) -> MMDResult:
    with _without_bandwidth_warnings():
        options: dict[str, Any] = {} if kernel is None else {"unbiased": True, "scale": "columns"}
        return mmd_test(first, second, kernel, n_resamples, rng, strata=strata, **options)


def normalised_squared_mmd(samples: Sequence[Sample], kernel: Kernel | None) -> float:
    """Unbiased MMD² / E‖φ(x) − φ(y)‖² of some rows, between 0 and 1 for a kernel with k(x, x) = 1."""
    rng = np.random.default_rng(0)
    tables = [sample.table.take(rng.permutation(sample.table.n_rows)[:MMD_ROWS]) for sample in samples]
    X, Y = scaled_points(tables)
    with _without_bandwidth_warnings():
        resolved = (kernel or Gaussian()).resolve(np.concatenate([X, Y]))
    within, cross = [resolved(X), resolved(Y)], float(resolved(X, Y).mean())
    means = [mean_off_diagonal(K) for K in within]
    between = 2.0 - 2.0 * cross
    return float(np.clip((sum(means) - 2.0 * cross) / between, 0.0, 1.0)) if between > 0 else 0.0


@contextmanager
def _without_bandwidth_warnings() -> Iterator[None]:
    """Columns of few values are common, and nobody can choose their bandwidths here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", 'bandwidth="median": more than half', UserWarning)
        yield


# ---------------------------------------------------------------------------------------------------- adjusted p-values


def _result(
    scan: _Scan,
    samples: list[Sample],
    joint: MMDResult,
    changes: list[PairChange],
    kernel: Kernel | None,
    level: float,
) -> Comparison:
    identical, shared = scan.shared_rows()
    columns = [*scan.values, *(found for found in scan.missing if found is not None)]
    families = [columns, [_pair_evidence(change, scan.at_least) for change in changes]]
    pvalue, significant = _adjusted([[found.pvalue for found in family] for family in families], joint.pvalue)
    exceeds_pvalue, exceeding = pvalue, significant
    if scan.at_least > 0.0:
        exceeds_pvalue, exceeding = _adjusted([[found.exceeds for found in family] for family in families], None)
    of_columns, of_pairs = (
        _numbers(family, adjusted, exceeds, scan.at_least, level, level / ((1 + bool(changes)) * max(len(family), 1)))
        for family, adjusted, exceeds in zip(families, significant, exceeding, strict=True)
    )
    n, m = (source.n_rows for source in scan.sources)
    return Comparison(
        names=(scan.sources[0].name, scan.sources[1].name),
        tables=tuple(
            TableFacts(sample.table.name, source.n_rows, sample.table.n_rows)
            for sample, source in zip(samples, scan.sources, strict=True)
        ),
        level=level,
        at_least=scan.at_least,
        pvalue=1.0 if identical else exceeds_pvalue,
        significance=1.0 if identical else pvalue,
        columns=_column_results(scan, of_columns),
        pairs=_pair_results(samples[0].table.names, changes, of_pairs),
        joint=joint,
        joint_pvalue=min(1.0, (_QUESTIONS - (not changes)) * joint.pvalue),
        normalised_squared_mmd=normalised_squared_mmd(samples, kernel),
        rows=unusual_rows(samples, scan.counts),
        samples=tuple(sample.table for sample in samples),
        not_compared=tuple(scan.not_compared),
        notes=(*scan.notes, *_notes(scan, samples, changes, shared if not identical else 0)),
        identical=identical,
        columns_can_be_told=2 * len(scan.counts) * column_tests.smallest_pvalue(n, m) <= level,
    )


def _adjusted(families: list[list[float]], joint: float | None) -> tuple[float, list[Array]]:
    """The p-value of the whole, and p-values of columns and pairs that control the error of all names together."""
    adjusted = [effects.holm(family) for family in families]
    smallest = [float(family.min()) for family in adjusted if len(family)]
    asked = len(smallest)
    if joint is not None:
        smallest.append(joint)
    pvalue = min(1.0, len(smallest) * min(smallest))
    return pvalue, [np.clip(asked * family, pvalue, 1.0) for family in adjusted]


_Numbers = tuple[float, effects.Interval, float, float, float]
"""Effect, interval, p-value, adjusted p-value, and that of an effect beyond ``at_least``."""


def _numbers(
    family: list[_Evidence], significant: Array, exceeding: Array, at_least: float, level: float, alpha: float
) -> list[_Numbers]:
    """Effect, interval and p-values of each part of a family.

    Holm's procedure shows a little more than intervals that are corrected by Bonferroni: where an effect is shown to
    exceed ``at_least``, that is the lower end of its interval at least.
    """
    found = []
    for evidence, adjusted, exceeds in zip(family, significant.tolist(), exceeding.tolist(), strict=True):
        interval = evidence.interval(alpha)
        if exceeds <= level:
            interval = interval._replace(low=max(interval.low, at_least))
        found.append((evidence.effect, interval, evidence.pvalue, adjusted, exceeds))
    return found


def _column_results(scan: _Scan, numbers: list[_Numbers]) -> Columns:
    of_values, of_missing = numbers[: len(scan.values)], iter(numbers[len(scan.values) :])
    found = []
    for counts, lost, own in zip(scan.counts, scan.missing, of_values, strict=True):
        missing = None if lost is None else MissingResult(*next(of_missing), shares=tuple(counts.missing_shares))
        found.append(ColumnResult(*own, counts=counts, missing=missing))
    return Columns(sorted(found, key=lambda column: column.order))


def _pair_results(names: list[str], changes: list[PairChange], numbers: list[_Numbers]) -> tuple[PairResult, ...]:
    found = [
        PairResult(*own, (names[change.columns[0]], names[change.columns[1]]), change.parts, change.correlations)
        for change, own in zip(changes, numbers, strict=True)
        if np.isfinite(change.effect)  # a column of one value has no correlations
    ]
    return tuple(sorted(found, key=lambda pair: (pair.exceeds_pvalue, pair.pvalue, -pair.effect)))


def _notes(scan: _Scan, samples: list[Sample], changes: list[PairChange], shared: int) -> list[str]:
    notes = []
    a, b = scan.sources
    small = [f"{source.name} has {plural(source.n_rows, 'row')}" for source in (a, b) if source.n_rows < FEW_ROWS]
    if small:
        notes.append(f"{' and '.join(small)}: with fewer than {FEW_ROWS}, large differences may go unseen too")
    if shared:
        notes.append(
            f"{shared:,} of the {b.n_rows:,} rows of {b.name} are also in {a.name}; the tests take rows as drawn "
            "independently, and shared rows make differences harder to find"
        )
    for sample, source in zip(samples, scan.sources, strict=True):
        if sample.table.n_rows < source.n_rows:
            notes.append(
                f"pairs and all columns together are compared in {sample.table.n_rows:,} of the {source.n_rows:,} rows "
                f"of {source.name}, drawn at random; a larger seconds= or rows= takes more"
            )
    if scan.strata is not None:
        notes.append("rows are compared within strata, and pairs of columns are not compared")
    elif not changes and len(scan.counts) > 1:
        few = min(sample.table.n_rows for sample in samples) < LEAST_ROWS
        where = (
            f"where both tables have {LEAST_ROWS} rows or more"
            if few
            else f"up to {MOST_FEATURES:,} columns and categories"
        )
        notes.append(f"pairs of columns are compared {where}")
    return notes


def _unreachable(joint: MMDResult, n_resamples: int, questions: int, level: float) -> list[str]:
    """A note where no outcome of the joint test could be a finding by itself."""
    smallest = questions * joint.smallest_pvalue
    if smallest <= level:
        return []
    few_rows = len(joint.null_distribution) < n_resamples  # all splits of the rows were taken
    why = "with this few rows" if few_rows else f"with {n_resamples:,} permutations"
    remedy = "" if few_rows else f"; take {int(np.ceil(questions / level)):,} or more (n_resamples=)"
    return [
        f"the test of all columns together cannot find a difference at level {level:g} by itself, because {why} its "
        f"p-value counts as {min(smallest, 1.0):.2g} or more{remedy}"
    ]
