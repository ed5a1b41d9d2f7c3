"""The function ``compare``: single columns of all rows, pairs of columns and all columns together of a sample."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from muhat.comparison import column_tests, effects
from muhat.comparison.column_counts import ColumnCounts, count_column
from muhat.comparison.formatting import plural
from muhat.comparison.pair_tests import LEAST_ROWS, MOST_FEATURES, PairChange, pair_changes
from muhat.comparison.result import ColumnResult, Comparison, MissingResult, PairResult, TableFacts
from muhat.comparison.sources import Source, chosen_names, listed, matching_names, open_sources, prepared, unmatched
from muhat.comparison.unusual_rows import Sample, scaled_points, unusual_rows
from muhat.files.tables import Reading
from muhat.inference.two_sample import MMDResult, mmd_test
from muhat.kernels.base import Kernel
from muhat.kernels.radial import Gaussian
from muhat.progress import progress
from muhat.tables.frames import KIND_IN_WORDS, Column, LeftOut, Table
from muhat.types import Array, RandomState
from muhat.validation import check_count, check_number, check_rng

LEAST_SAMPLE, MOST_SAMPLE = 200, 20_000
"""Bounds of the number of rows of each table that are compared as a whole."""

MMD_ROWS = 1000
"""The normalised MMD² is that of so many rows of each table."""

MOST_TEXTS = 100
"""A column of more different texts, where they are most rows, holds names or sentences, not categories."""

MOST_STRATA = 500

FEW_ROWS = 20
"""A note says where a table has fewer."""

FEWEST_RESAMPLES, MOST_RESAMPLES = 999, 20_000
"""Bounds of the number of permutations where it is not given."""

_QUESTIONS = 3  # columns, pairs and all columns together
_PAIRS_PER_SECOND = 1.0e6
_SHARE_OF_TEXTS = 0.1
_HASH_FACTOR = np.uint64(0x9E3779B97F4A7C15)


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
        _check_rows(sources)
        chosen = chosen_names(sources, columns, exclude)
        labels = None if strata is None else _strata(sources, strata, missing)
        chosen = [name for name in chosen if name != strata]
        limit = rows or sample_size(seconds, len(chosen))
        scan = _Scan(sources, at_least, labels, columns is not None, sampled_rows(sources, limit, rng))
        scan.not_compared += [] if columns is not None else unmatched(sources, exclude)
        as_category = set(matching_names(sources, categorical, "categorical"))
        for j, name in enumerate(chosen):
            say(f"column {j + 1:,} of {len(chosen):,}: {name}")
            scan.add([prepared(source.column(name), missing, name in as_category) for source in sources])
        scan.check_not_empty()
        first, second = samples = scan.samples()
        say(f"all columns together: {first.table.n_rows:,} and {second.table.n_rows:,} rows")
        picked_strata = (
            None if labels is None else np.concatenate([s[p] for s, p in zip(labels, scan.picked, strict=True)])
        )
        joint = _joint_test(first.table, second.table, kernel, n_resamples, rng, picked_strata)
        say("pairs of columns")
        changes = [] if labels is not None else pair_changes(first.table.columns, second.table.columns)
        if at_least == 0.0:  # otherwise the joint test is no part of the answer
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
    """Effect and p-values of a column or of its missing values: of any difference, and of one beyond ``at_least``."""

    effect: float
    pvalue: float
    exceeds: float


@dataclass
class _Scan:
    """What one pass over the columns collects; no column of all rows is kept."""

    sources: list[Source]
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
        self.hashes = [np.zeros(source.n_rows, dtype=np.uint64) for source in self.sources]

    def add(self, columns: list[Column]) -> None:
        """Test a column of all rows, and keep its counts and its sampled rows."""
        name = columns[0].name
        hint = next((source.hints[name] for source in self.sources if source.hints and name in source.hints), "")
        if not _kinds_agree(columns):
            held = (
                f"{_content(column)} in {source.name}" for column, source in zip(columns, self.sources, strict=True)
            )
            self.not_compared.append(LeftOut(name, f"it holds {' and '.join(held)}{f'; {hint}' if hint else ''}"))
            return
        for hashes, column in zip(self.hashes, columns, strict=True):
            hashes[:] = row_hashes(hashes, column)
        counts = count_column(_of_one_kind(columns), self.strata)
        if self._is_left_out(counts, columns, hint):
            return
        if hint:
            self.notes.append(f"column {name!r} is taken as text; {hint}")
        self.values.append(_values_evidence(counts, self.at_least))
        self.missing.append(_missing_evidence(counts, self.at_least) if counts.missing.any() else None)
        self.counts.append(counts.compressed())
        self.sampled.append([c._replace(values=c.values[p]) for c, p in zip(columns, self.picked, strict=True)])

    def _is_left_out(self, counts: ColumnCounts, columns: list[Column], hint: str) -> bool:
        if not sum(counts.present):
            reason = "all their values are missing"
        elif counts.distinct == 1 and len(set(counts.missing_shares)) == 1:
            reason = "they hold a single value"
        elif not self.asked_for and all(map(_counts_rows, columns)):
            reason = "they count the rows (name them in columns= to use them)"
        elif counts.kind == "category" and counts.distinct > max(MOST_TEXTS, _SHARE_OF_TEXTS * sum(counts.present)):
            texts = f"it holds {counts.distinct:,} different texts"
            if hint:
                self.not_compared.append(LeftOut(counts.name, f"{texts}; {hint}"))
            else:
                self.notes.append(f"column {counts.name!r} is left out, because {texts}")
            return True
        else:
            return False
        self.left_out.setdefault(reason, []).append(counts.name)
        return True

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
            Sample(Table(source.name, len(picked), tuple(columns)), picked + source.first, source.place)
            for source, picked, columns in zip(self.sources, self.picked, zip(*self.sampled, strict=True), strict=True)
        ]

    def shared_rows(self) -> tuple[bool, int]:
        """Whether both tables hold the same rows, and how many rows of the second are also in the first."""
        first, second = (np.sort(hashes) for hashes in self.hashes)
        if len(first) == len(second) and bool((first == second).all()):
            return not self.not_compared, len(first)
        if any(len(np.unique(hashes)) < 0.99 * len(hashes) for hashes in (first, second)):
            return False, 0  # rows repeat within a table, so that equal rows say nothing
        return False, int(np.isin(second, first).sum())


def _values_evidence(counts: ColumnCounts, at_least: float) -> _Evidence:
    if min(counts.present) == 0:
        return _Evidence(0.0, 1.0, 1.0)
    effect = effects.ks_distance(counts.counts) if counts.is_ordered else effects.total_variation(counts.counts)
    if len(counts.counts) > 1:
        pvalue = effects.stratified_pvalue(counts.counts, counts.is_ordered)
    else:
        test = column_tests.numbers_pvalue if counts.is_ordered else column_tests.categories_pvalue
        pvalue = test(counts.counts[0])
    if at_least == 0.0:
        return _Evidence(effect, pvalue, pvalue)
    exceeds = effects.ks_exceeds if counts.is_ordered else effects.variation_exceeds
    return _Evidence(effect, pvalue, max(pvalue, exceeds(counts.counts, at_least)))


def _missing_evidence(counts: ColumnCounts, at_least: float) -> _Evidence:
    table = missing_counts(counts)
    pvalue = (
        effects.stratified_pvalue(table, ordered=False)
        if len(table) > 1
        else column_tests.shares_pvalue(np.asarray(table[0].T))
    )
    exceeds = pvalue if at_least == 0.0 else max(pvalue, effects.share_exceeds(table, at_least))
    return _Evidence(effects.total_variation(table), pvalue, exceeds)


def missing_counts(counts: ColumnCounts) -> effects.Counts:
    """Missing and known values, as counts of two values."""
    return np.stack([counts.missing, counts.counts.sum(axis=2)], axis=2)


def _kinds_agree(columns: list[Column]) -> bool:
    """Truth values go with numbers, and columns without values with all."""
    return len({"number" if column.kind == "boolean" else column.kind for column in columns} - {"missing"}) <= 1


def _of_one_kind(columns: list[Column]) -> list[Column]:
    """Truth values as numbers where the other table has numbers."""
    kinds = {column.kind for column in columns} - {"missing"}
    return [column._replace(kind="number") for column in columns] if len(kinds) > 1 else columns


def _content(column: Column) -> str:
    if column.kind == "category":
        return f"text such as {column.levels[0][:30]!r}"
    return KIND_IN_WORDS[column.kind]


def _counts_rows(column: Column) -> bool:
    return column.kind == "number" and len(column.values) > 2 and bool((np.diff(column.values) == 1).all())


def row_hashes(hashes: NDArray[np.uint64], column: Column) -> NDArray[np.uint64]:
    """Hashes of rows with the values of one more column."""
    if column.kind == "category":
        digests = [blake2b(level.encode(errors="replace"), digest_size=8).digest() for level in column.levels]
        bits = np.frombuffer(b"".join([*digests, bytes(8)]), dtype=np.uint64)[column.values]
    else:
        bits = (np.where(np.isnan(column.values), np.nan, column.values) + 0.0).view(np.uint64)  # one NaN, one zero
    mixed = (hashes ^ bits) * _HASH_FACTOR
    return np.asarray(mixed ^ (mixed >> np.uint64(29)))


def _check_rows(sources: Sequence[Source]) -> None:
    for source in sources:
        if source.n_rows < 2:
            raise ValueError(f"{source.name} has {plural(source.n_rows, 'row')}, and a comparison needs at least 2")


def sampled_rows(sources: Sequence[Source], limit: int, rng: np.random.Generator) -> list[NDArray[np.intp]]:
    """Numbers of the sampled rows of each table, ascending."""
    return [
        np.arange(source.n_rows)
        if source.n_rows <= limit
        else np.sort(rng.choice(source.n_rows, limit, replace=False)).astype(np.intp)
        for source in sources
    ]


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
    means = [(float(K.sum()) - float(np.trace(K))) / (len(K) * (len(K) - 1)) for K in within]
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
    pvalue, significant = _adjusted(scan, changes, lambda evidence: evidence.pvalue, lambda c: c.pvalue, joint.pvalue)
    exceeds_pvalue, exceeding = pvalue, significant
    if scan.at_least > 0.0:
        at_least = scan.at_least
        exceeds_pvalue, exceeding = _adjusted(scan, changes, lambda e: e.exceeds, lambda c: c.exceeds(at_least), None)
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
        columns=_column_results(scan, significant.columns, exceeding.columns, level, 1 + bool(changes)),
        pairs=_pair_results(samples, changes, significant.pairs, exceeding.pairs, level, scan.at_least),
        joint=joint,
        normalised_squared_mmd=normalised_squared_mmd(samples, kernel),
        rows=unusual_rows(samples, scan.counts),
        samples=tuple(sample.table for sample in samples),
        not_compared=tuple(scan.not_compared),
        notes=(*scan.notes, *_notes(scan, samples, changes, shared if not identical else 0)),
        identical=identical,
        columns_can_be_told=2 * len(scan.counts) * column_tests.smallest_pvalue(n, m) <= level,
    )


class _Adjusted(NamedTuple):
    """Adjusted p-values: of the columns and then of their missing values, and of the pairs."""

    columns: Array
    pairs: Array


def _adjusted(
    scan: _Scan,
    changes: list[PairChange],
    of_column: Callable[[_Evidence], float],
    of_pair: Callable[[PairChange], float],
    joint: float | None,
) -> tuple[float, _Adjusted]:
    """The p-value of the whole, and p-values of columns and pairs that control the error of all names together."""
    evidence = [*scan.values, *(found for found in scan.missing if found is not None)]
    columns = effects.holm([of_column(found) for found in evidence])
    pairs = effects.holm([of_pair(change) for change in changes])
    families = 1 + bool(changes)
    smallest = [float(family.min()) for family in (columns, pairs) if len(family)] + ([] if joint is None else [joint])
    pvalue = min(1.0, len(smallest) * min(smallest))
    return pvalue, _Adjusted(*(np.clip(families * family, pvalue, 1.0) for family in (columns, pairs)))


def _lifted(interval: effects.Interval, at_least: float, exceeds_pvalue: float, level: float) -> effects.Interval:
    """The interval, whose lower end is at least ``at_least`` where the effect is shown to exceed it.

    Holm's procedure shows a little more than intervals that are corrected by Bonferroni; these are its lower bounds.
    """
    return interval if exceeds_pvalue > level else interval._replace(low=max(interval.low, at_least))


def _column_results(
    scan: _Scan, significant: Array, exceeding: Array, level: float, families: int
) -> tuple[ColumnResult, ...]:
    alpha = level / (families * len(significant))
    places = iter(range(len(scan.values), len(significant)))
    found = []
    for j, (counts, values, missing) in enumerate(zip(scan.counts, scan.values, scan.missing, strict=True)):
        lost = None
        if missing is not None:
            k = next(places)
            interval = effects.share_interval(missing_counts(counts), alpha)
            interval = _lifted(interval, scan.at_least, exceeding[k], level)
            pvalues = missing.pvalue, float(significant[k]), float(exceeding[k])
            lost = MissingResult(missing.effect, interval, *pvalues, shares=tuple(counts.missing_shares))
        interval = effects.Interval(0.0, 1.0)
        if min(counts.present):
            interval = (
                effects.ks_interval(values.effect, counts.counts, alpha)
                if counts.is_ordered
                else effects.variation_interval(counts.counts, alpha)
            )
        interval = _lifted(interval, scan.at_least, exceeding[j], level)
        pvalues = values.pvalue, float(significant[j]), float(exceeding[j])
        found.append(ColumnResult(values.effect, interval, *pvalues, counts=counts, missing=lost))
    return tuple(sorted(found, key=lambda column: column.order))


def _pair_results(
    samples: list[Sample],
    changes: list[PairChange],
    significant: Array,
    exceeding: Array,
    level: float,
    at_least: float,
) -> tuple[PairResult, ...]:
    names = samples[0].table.names
    alpha = level / (2 * max(len(changes), 1))
    found = [
        PairResult(
            change.effect,
            _lifted(change.interval(alpha), at_least, exceeding[k], level),
            change.pvalue,
            float(significant[k]),
            float(exceeding[k]),
            columns=(names[change.columns[0]], names[change.columns[1]]),
            parts=change.parts,
            correlations=change.correlations,
        )
        for k, change in enumerate(changes)
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
                f"of {source.name}, drawn at random; more seconds (or rows) take more"
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
    remedy = "" if few_rows else f"; take {int(np.ceil(questions / level)):,} or more (n_resamples, --resamples)"
    return [
        f"the test of all columns together cannot find a difference at level {level:g} by itself, because {why} its "
        f"p-value counts as {min(smallest, 1.0):.2g} or more{remedy}"
    ]
