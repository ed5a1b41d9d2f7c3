"""The function ``compare``: columns, pairs of columns and all columns together, by one set of permutations."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from muhat._support.progress import progress
from muhat._support.types import RandomState
from muhat._support.validation import check_count, check_number, check_rng
from muhat.apps.compare.design import Design, draw_design
from muhat.apps.compare.features import (
    MOST_PAIRED,
    PairedFeatures,
    PairEvidence,
    evidence,
    pair_evidence,
    paired_features,
    rank_correlations,
)
from muhat.apps.compare.result import ColumnResult, Columns, Comparison, Finding, PairResult, TableFacts
from muhat.apps.compare.scan import Scan
from muhat.apps.compare.sources import chosen_names, open_sources, preparation, unmatched
from muhat.apps.compare.text_report import listed, plural
from muhat.apps.files.tables import Reading, concatenated
from muhat.apps.files.told import told
from muhat.inference.combine import order_pvalue, step_down
from muhat.inference.permutations import permutation_pvalue
from muhat.inference.two_sample import MMDResult, default_test_of
from muhat.linalg.resources import one_blas_thread
from muhat.tables.encoder import encode_samples
from muhat.tables.frames import Column

FEW_ROWS = 20
"""A note says where a table has fewer."""

FEWEST_RESAMPLES, MOST_RESAMPLES = 999, 20_000
"""Bounds of the number of permutations where it is not given."""

ORDER_RESAMPLES, ORDER_LEVEL = 499, 0.002
"""Rows are compared with so many random orders, and a note is made up to this p-value."""


@one_blas_thread()
def compare(
    a: Any,
    b: Any,
    at_least: float = 0.0,
    level: float = 0.05,
    columns: Sequence[str] | None = None,
    exclude: Sequence[str] | None = None,
    strata: str | None = None,
    clusters: str | None = None,
    random_state: RandomState = None,
    *,
    categorical: Sequence[str] | None = None,
    missing: Sequence[Any] = (),
    names: Sequence[str] | None = None,
    n_resamples: int | None = None,
    header: bool | None = None,
    delimiter: str | None = None,
) -> Comparison:
    """Compare two tables: do they come from one distribution, where do they differ, and by how much?

    Three questions are asked on one set of random splits of the rows. Does a column, or the share of its missing
    values, differ? Did the correlation of a pair of columns change? Do the rows as a whole differ? All p-values come
    from the splits, by Westfall and Young's step-down procedure: the probability that anything is named wrongly is at
    most the level, whether or not the tables differ elsewhere, at every number of rows and whatever the columns hold.
    Effects of columns have simultaneous confidence intervals by bounds that hold in finite samples.

    Parameters
    ----------
    a, b : data frame, array, or path
        Data frames of pandas, polars, pyarrow, DuckDB and others; arrays and lists of rows; paths of CSV, Parquet, NPY
        and JSON lines files (also compressed by gzip), or patterns such as ``"jan/*.parquet"``. Columns are matched by
        name. Missing values are allowed everywhere.
    at_least : float, default 0.0
        The smallest effect that matters: with it the tables differ if the confidence interval of an effect lies above
        it. This is conservative. With 0 any significant difference counts, also one that only pairs or all columns
        together show.
    level : float, default 0.05
        P-values up to it are findings, and the intervals of all effects cover them together with one minus this
        probability.
    columns, exclude : sequence of str, optional
        Columns to use, and to leave out: names, or patterns such as ``"price_*"``.
    strata : str, optional
        Name of a column of categories, such as a site: rows are permuted within its values only, and differences are
        weighted means over them. Opposite differences in two strata may cancel.
    clusters : str, optional
        Name of a column, such as a week or a patient: rows with one value change sides together. Rows of different
        clusters have to be independent of each other; without ``clusters`` all rows have to.
    random_state : None, int, Generator, SeedSequence or RandomState
        The seed of the splits and of the rows that are compared as a whole.
    categorical : sequence of str, optional
        Columns of numbers that are categories, such as codes, by name or pattern.
    missing : sequence of str or numbers, optional
        Further values that stand for missing ones, such as ``"n.d."`` or ``-999``.
    names : two str, optional
        What the tables are called in sentences; by default the names of files, or "a" and "b".
    n_resamples : int, optional
        Number of splits besides the observed one. By default 999, and 3 / level where that is more (up to 20,000). No
        p-value is below 1 / (n_resamples + 1).
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
    difference of shares of missing values, and the difference of rank correlations of pairs. Columns that separate the
    tables completely and increase with the rows, such as an index or the column by which the tables were split, are
    listed and not counted; dates that separate them need not increase.

    References
    ----------
    Westfall, Young (1993). Resampling-Based Multiple Testing. Wiley.
    Massart (1990). The tight constant in the Dvoretzky-Kiefer-Wolfowitz inequality. Annals of Probability 18.
    Weissman, Ordentlich, Seroussi, Verdu, Weinberger (2003). Inequalities for the L1 deviation of the empirical
    distribution. Hewlett-Packard Labs HPL-2003-97.

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
    at_least = check_number("at_least", at_least, low=0.0, high=1.0)
    level = check_number("level", level, low=0.0, high=1.0, open_low=True)
    if n_resamples is None:  # as many as let p-values reach the level with room to spare
        n_resamples = int(np.clip(np.ceil(3 / level), FEWEST_RESAMPLES, MOST_RESAMPLES))
    n_resamples = check_count("n_resamples", n_resamples)
    rng = check_rng(random_state)
    reading = Reading(header, delimiter, [str(mark) for mark in missing])
    with open_sources((a, b), names, reading) as sources, progress() as say:
        for source in sources:
            if source.n_rows < 2:
                raise ValueError(f"{source.name} has {plural(source.n_rows, 'row')}, and a comparison needs at least 2")
        chosen = chosen_names(sources, columns, exclude)
        design = draw_design(sources, strata, clusters, missing, n_resamples, rng)
        chosen = [name for name in chosen if name not in (strata, clusters)]
        scan = Scan(sources, preparation(sources, categorical, missing), design, columns is not None)
        scan.not_compared += [] if columns is not None else unmatched(sources, exclude)
        for j, name in enumerate(chosen):
            say(f"column {j + 1:,} of {len(chosen):,}: {name}")
            scan.add(name)
        scan.finish()
        say("pairs of columns, and all columns together")
        first, second = scan.samples()
        with warnings.catch_warnings():  # columns of few values are common, and nobody can choose bandwidths here
            warnings.filterwarnings("ignore", 'bandwidth="median": more than half', UserWarning)
            tables = {first.table.name: first.table, second.table.name: second.table}
            joint_rows = encode_samples(tables, "auto", default=True, told=True)
            joint = default_test_of(joint_rows, design.bins, design.splits, n_resamples, rng)
        return _result(scan, joint, at_least, level, rng)


def _result(scan: Scan, joint: MMDResult, at_least: float, level: float, rng: np.random.Generator) -> Comparison:
    design, samples = scan.design, scan.samples()
    pooled = [concatenated(column.counts.name, column.sampled) for column in scan.found]
    features = paired_features(pooled, design.sampled_strata)
    with_pairs = len(features.parts) <= MOST_PAIRED
    pairs = pair_evidence(features, design.bins.members, design.units, design.splits) if with_pairs else []
    together = evidence(np.array([[joint.statistic, *joint.null_distribution]]))[0]
    lost = [column.missing for column in scan.found if column.missing is not None]
    effects = [*((column.effect, column.evidence) for column in scan.found), *lost]
    every = np.stack([*(row for _, row in effects), *(pair.evidence for pair in pairs), together])
    families = np.repeat([0, 1, 2], [len(effects), len(pairs), 1]).tolist()
    adjusted = step_down(every, families).tolist()
    pvalues = permutation_pvalue(every, 1e-6).tolist()
    identical = scan.equal and not scan.not_compared and not scan.separating
    significance = 1.0 if identical else min(adjusted)
    numbers = []
    for (effect, _), pvalue, corrected in zip(effects, pvalues, adjusted, strict=False):
        own = {"effect": effect.value, "interval": effect.interval(level / len(effects)), "pvalue": pvalue}
        beyond = len(effects) * effect.exceeds(at_least) if at_least else corrected
        exceeding = float(np.clip(beyond, 1.0 / every.shape[1], 1.0))
        numbers.append({**own, "adjusted_pvalue": corrected, "exceeds_pvalue": exceeding})
    of_pairs = slice(len(effects), len(every) - 1)
    names = tuple(source.name for source in scan.sources)
    exceeding = min(row["exceeds_pvalue"] for row in numbers) if at_least else significance
    return Comparison(
        names=(names[0], names[1]),
        tables=tuple(TableFacts(s.table.name, s.source.n_rows, s.table.n_rows) for s in samples),
        level=level,
        at_least=at_least,
        pvalue=1.0 if identical else exceeding,
        significance=significance,
        columns=_column_results(scan, numbers, level),
        pairs=_pair_results(pooled, features, pairs, design, pvalues[of_pairs], adjusted[of_pairs]),
        joint=joint,
        joint_pvalue=adjusted[-1],
        sampled=tuple(samples),
        separating=tuple(scan.separating),
        not_compared=tuple(scan.not_compared),
        notes=(*scan.notes, *_notes(scan, with_pairs, level, rng)),
        identical=identical,
    )


def _column_results(scan: Scan, numbers: list[dict[str, Any]], level: float) -> Columns:
    of_missing = iter(numbers[len(scan.found) :])
    found = []
    for column, own in zip(scan.found, numbers, strict=False):
        shares = column.counts.missing_shares
        missing = None if column.missing is None else Finding(**next(of_missing), shares=shares)
        found.append(ColumnResult(**own, counts=column.counts, change=column.change, missing=missing))

    def order(column: ColumnResult) -> tuple[Any, ...]:
        significant = [part.effect for part in column.parts if part.adjusted_pvalue <= level]
        return not significant, -max(significant, default=column.effect)

    return Columns(sorted(found, key=order))


def _pair_results(
    pooled: list[Column],
    features: PairedFeatures,
    pairs: list[PairEvidence],
    design: Design,
    pvalues: list[float],
    adjusted: list[float],
) -> tuple[PairResult, ...]:
    if not pairs:
        return ()
    first = int(np.searchsorted(design.picked, design.sizes[0]))
    r, s = (
        rank_correlations(pooled, features, rows, design.sampled_strata) for rows in (slice(first), slice(first, None))
    )
    found = []
    for pair, pvalue, corrected in zip(pairs, pvalues, adjusted, strict=True):
        i, j = pair.features
        columns = pooled[features.columns[i]].name, pooled[features.columns[j]].name
        parts, correlations = (features.parts[i], features.parts[j]), (float(r[i, j]), float(s[i, j]))
        effect = abs(correlations[0] - correlations[1])
        found.append(
            PairResult(
                effect=effect,
                pvalue=pvalue,
                adjusted_pvalue=corrected,
                exceeds_pvalue=corrected,
                columns=columns,
                parts=parts,
                correlations=correlations,
            )
        )
    return tuple(sorted(found, key=lambda pair: (pair.adjusted_pvalue, -pair.effect)))


def _notes(scan: Scan, with_pairs: bool, level: float, rng: np.random.Generator) -> Iterator[str]:
    design = scan.design
    what = "rows" if design.clusters is None else "clusters"
    if design.smallest > level:
        few = f"so few {what} and permutations give no p-value below {design.smallest:.2g}"
        start = f"no difference can be found at level {level:g}: {few}; compare more {what}"
        more = ", or take more permutations ({})" if design.drawn else ""
        yield told(lambda write: start + more.format(write("n_resamples")))
    if scan.separating:
        yield told(lambda write: f"{listed(scan.separating)}: name them in {write('columns')} to count them")
    if small := [f"{s.name} has {plural(s.n_rows, 'row')}" for s in scan.sources if s.n_rows < FEW_ROWS]:
        yield f"{' and '.join(small)}: with fewer than {FEW_ROWS}, large differences may go unseen too"
    yield from _note_of_order(scan, rng)
    for which, source in enumerate(scan.sources):
        picked = len(design.picked_of(which))
        if picked < source.n_rows:
            yield (
                f"pairs and all columns together are compared in {picked:,} of the {source.n_rows:,} rows of "
                f"{source.name}, drawn at random"
            )
    if design.strata is not None:
        yield "rows are compared within strata"
    if not with_pairs:
        yield f"pairs of columns are not compared: there are more than {MOST_PAIRED} columns and categories"


def _note_of_order(scan: Scan, rng: np.random.Generator) -> Iterator[str]:
    """A note where neighbouring rows are alike, which permutations of single rows do not allow for."""
    beginnings = [column.beginnings for column in scan.found if column.beginnings]
    if scan.design.clusters is not None or not beginnings:
        return
    for which, source in enumerate(scan.sources):
        columns = [both[which] for both in beginnings]
        labels = None if scan.design.strata is None else scan.design.of_table(which, scan.design.strata)
        labels = None if labels is None else labels[: len(columns[0].values)]
        rows = np.nan_to_num(paired_features(columns, labels).values)
        pvalue = order_pvalue(rows, ORDER_RESAMPLES, rng) if rows.shape[1] and len(rows) > 2 else 1.0
        if pvalue <= ORDER_LEVEL:
            start = (
                f"neighbouring rows of {source.name} are more alike than in random order (p = {pvalue:.2g}). Where "
                "rows depend on each other, as in time series or with several rows per person, p-values are too small "
                "and intervals too narrow: name a column such as week or person by "
            )
            yield told(lambda write: f"{start}{write('clusters')}. Where rows were only sorted, nothing is wrong")  # noqa: B023 - called now
            return
