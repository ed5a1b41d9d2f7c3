"""Results of a comparison: effects of columns, missing values and pairs, and the comparison as a whole."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np

from muhat._support.archives import whole_file
from muhat._support.extras import load_extra
from muhat.apps.compare.bounds import Interval
from muhat.apps.compare.column_counts import ColumnCounts, histogram
from muhat.apps.compare.text_report import Report, readable, report, shown
from muhat.apps.compare.unusual_rows import Sample, UnusualRow, unusual_rows
from muhat.inference.results import percent
from muhat.inference.two_sample import MMDResult
from muhat.tables.frames import LeftOut

_COLOURS = ("#2563eb", "#d97706")

MOST_PAIRS = 100
"""JSON has so many pairs, or all significant ones if these are more."""

PLAIN_CHANGE = 2.0
"""A difference of place or spread of so many standard deviations is what a changed column is described by."""


class TableFacts(NamedTuple):
    """A table by its name, with the number of its rows and of those that were compared as a whole."""

    name: str
    rows: int
    rows_together: int


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Finding:
    """An effect with its interval and p-values, as :class:`ColumnResult` describes them; ``shares`` are of missing."""

    effect: float
    interval: Interval | None = None
    pvalue: float
    adjusted_pvalue: float
    exceeds_pvalue: float
    shares: tuple[float, ...] = ()

    effect_name = "difference of shares"

    def __repr__(self) -> str:
        low, high = self.interval or (np.nan, np.nan)
        name = f"{self.name!r}, " if isinstance(self, ColumnResult) else ""
        return (
            f"{type(self).__name__}({name}{self.effect_name} {readable(self.effect)}, {readable(low)} to "
            f"{readable(high)}, adjusted p = {readable(self.adjusted_pvalue)})"
        )

    def numbers(self, level: float) -> dict[str, Any]:
        """Numbers and answers at a level, for JSON."""
        return {
            "effect": self.effect,
            "effect_name": self.effect_name,
            **({} if self.interval is None else {"interval": list(self.interval)}),
            "pvalue": self.pvalue,
            "adjusted_pvalue": self.adjusted_pvalue,
            "exceeds_pvalue": self.exceeds_pvalue,
            "significant": self.adjusted_pvalue <= level,
            "differs": self.exceeds_pvalue <= level,
        }


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ColumnResult(Finding):
    """Result of :func:`muhat.compare` for one column, by all rows of both tables.

    Parameters
    ----------
    effect : float
        KS distance of numbers, dates and durations; total variation of categories and truth values.
    interval : (float, float)
        Confidence interval of the effect, which holds in finite samples. All intervals of a comparison hold together.
    pvalue : float
        Of any difference, by itself.
    adjusted_pvalue : float
        The same, corrected for everything that was looked at.
    exceeds_pvalue : float
        Of an effect beyond ``at_least``, by the interval, corrected; with ``at_least=0`` that is ``adjusted_pvalue``.
    shares : tuple of float
        Of the missing values in each table, in ``missing``.
    counts : ColumnCounts
        The column's values, and how often each occurs in both tables.
    change : (float, float)
        How far the first table lies above the second in place and in spread, in standard deviations of the splits.
    missing : Finding or None
        Comparison of the shares of missing values; None where no value is missing.
    """

    counts: ColumnCounts
    change: tuple[float, float] = (0.0, 0.0)
    missing: Finding | None = None

    @property
    def name(self) -> str:
        """The column's name."""
        return self.counts.name

    @property
    def kind(self) -> str:
        """What the column holds: "number", "boolean", "date", "duration" or "category"."""
        return self.counts.kind

    @property
    def effect_name(self) -> str:  # type: ignore[override]  # a constant above
        """ "KS distance" of numbers, dates and durations, else "total variation"."""
        return "KS distance" if self.counts.is_ordered else "total variation"

    @property
    def parts(self) -> list[Finding]:
        """The findings of the values, and of the missing ones if there are any."""
        return [self] if self.missing is None else [self, self.missing]

    def in_words(self, names: tuple[str, str]) -> str:
        """What differs: place, spread or shape of numbers, or the share of the category that changed most."""
        if not min(self.counts.present):
            return "no values in one table"
        if not self.counts.is_ordered:
            shares = self.counts.shares()
            k = int(np.abs(shares[1] - shares[0]).argmax())
            value = shown(self.counts.kind, self.counts.values[k])
            return f"shares: {value} {percent(float(shares[0, k]))} → {percent(float(shares[1, k]))}"
        place, spread = self.change
        found = []
        if abs(place) >= PLAIN_CHANGE and 2 * abs(place) >= abs(spread):
            found.append(f"place: higher in {names[0] if place > 0 else names[1]}")
        if abs(spread) >= PLAIN_CHANGE and 2 * abs(spread) >= abs(place):
            found.append(f"spread: wider in {names[0] if spread > 0 else names[1]}")
        return "; ".join(found) or "shape"

    def to_dict(self, level: float, names: tuple[str, str]) -> dict[str, Any]:
        """Numbers and texts for JSON."""
        found: dict[str, Any] = {"name": self.name, "kind": self.kind, **self.numbers(level)}
        found["change"] = self.in_words(names) if self.adjusted_pvalue <= level else None
        found["rows"] = self.counts.present
        for j, moment in enumerate(("mean", "standard_deviation", "smallest", "largest")):
            if self.counts.moments:
                found[moment] = [None if np.isnan(m[j]) else m[j] for m in self.counts.moments]
        if not self.counts.is_ordered:
            shares = self.counts.shares().T[:20].tolist()
            found["shares"] = [{"value": str(v), "shares": s} for v, s in zip(self.counts.values, shares, strict=False)]
        if self.missing is not None:
            found["missing"] = {"shares": list(self.missing.shares), **self.missing.numbers(level)}
        return found


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PairResult(Finding):
    """Result of :func:`muhat.compare` for two columns: the change of their dependence.

    Parameters
    ----------
    effect : float
        Difference of the rank correlations.
    interval : None
        There is none, and ``at_least`` does not apply.
    pvalue, adjusted_pvalue, exceeds_pvalue
        As those of a ColumnResult; they are of the correlations of normal scores.
    shares : tuple
        Not used.
    columns : (str, str)
        Names of the columns.
    parts : (str, str)
        The categories that the correlation is of, "" for a column of numbers.
    correlations : (float, float)
        Rank correlation in each table.
    """

    columns: tuple[str, str]
    parts: tuple[str, str]
    correlations: tuple[float, float]

    effect_name = "difference of rank correlations"

    @property
    def names(self) -> tuple[str, str]:
        """The columns, with the category where the correlation is that of one."""
        first, second = (f"{c} = {p}" if p else c for c, p in zip(self.columns, self.parts, strict=True))
        return first, second

    @property
    def in_words(self) -> str:
        """The rank correlations of both tables, such as "0.50 → −0.25"."""
        return " → ".join(f"{value:.2f}".replace("-", "−") for value in self.correlations)

    def __repr__(self) -> str:
        names, p = " and ".join(map(repr, self.names)), readable(self.adjusted_pvalue)
        return f"PairResult({names}, rank correlation {self.in_words}, adjusted p = {p})"

    def to_dict(self, level: float) -> dict[str, Any]:
        """Numbers and texts for JSON."""
        return {"names": list(self.names), "rank_correlations": list(self.correlations), **self.numbers(level)}


class Columns(tuple[ColumnResult, ...]):
    """Results of columns, the most different first; a column is found by its place or by its name."""

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, str):
            return super().__getitem__(key)
        for column in self:
            if column.name == key:
                return column
        raise KeyError(f"{key!r} is none of the columns that were compared: {[c.name for c in self][:8]}")


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Comparison:
    """Result of :func:`muhat.compare`. ``print`` it, or show it in a notebook.

    Parameters
    ----------
    names : (str, str)
        What the tables are called.
    tables : two TableFacts
        Name and numbers of rows of each table.
    level, at_least : float
        As given.
    pvalue : float
        Of the whole: of any difference, or with ``at_least`` of an effect beyond it.
    significance : float
        The p-value of any difference, whatever ``at_least`` is.
    columns : tuple of ColumnResult
        Those that differ significantly first, by their effect; ``columns["income"]``, or ``result["income"]``, is the
        one of that name.
    pairs : tuple of PairResult
        The most changed first.
    joint : MMDResult
        The test of all columns together.
    joint_pvalue : float
        Its p-value, corrected for everything that was looked at.
    sampled : two Samples
        The sampled rows, of which pairs and the joint test are.
    separating : tuple of str
        Columns that separate the tables completely and increase with the rows. They are not counted.
    not_compared : tuple of LeftOut
        Columns that could not be compared, and why.
    notes : tuple of str
        Remarks for the reader, such as what was sampled, or that rows depend on each other.
    identical : bool
        Whether both tables hold the same rows in the same order.
    """

    names: tuple[str, str]
    tables: tuple[TableFacts, ...]
    level: float
    at_least: float
    pvalue: float
    significance: float
    columns: Columns
    pairs: tuple[PairResult, ...]
    joint: MMDResult
    joint_pvalue: float
    sampled: tuple[Sample, ...]
    separating: tuple[str, ...] = ()
    not_compared: tuple[LeftOut, ...] = ()
    notes: tuple[str, ...] = ()
    identical: bool = False

    @property
    def differs(self) -> bool:
        """Whether a difference was found, or with ``at_least`` an effect that exceeds it."""
        return self.pvalue <= self.level

    @property
    def is_significant(self) -> bool:
        """Whether there is any difference, however small."""
        return self.significance <= self.level

    def named(self, findings: Any) -> list[Any]:
        """Those of some findings that the answer rests on: significant ones, or those that exceed ``at_least``."""
        return [found for found in findings if found.exceeds_pvalue <= self.level]

    @property
    def significant_columns(self) -> list[ColumnResult]:
        """Columns whose values differ significantly."""
        return [column for column in self.columns if column.adjusted_pvalue <= self.level]

    @property
    def significant_pairs(self) -> list[PairResult]:
        """Pairs of columns whose dependence changed significantly."""
        return [pair for pair in self.pairs if pair.adjusted_pvalue <= self.level]

    @property
    def missing(self) -> dict[str, Finding]:
        """The comparison of missing values, by the name of the column."""
        return {column.name: column.missing for column in self.columns if column.missing is not None}

    @cached_property
    def rows(self) -> tuple[UnusualRow, ...]:
        """Rows of each table, among the sampled ones, that are most unlike the other table."""
        counts = {column.name: column.counts for column in self.columns}
        return unusual_rows(self.sampled, [counts[name] for name in self.sampled[0].table.names])

    @cached_property
    def report(self) -> Report:
        """What text, HTML and JSON say."""
        return report(self)

    @property
    def joint_explanation(self) -> str:
        """What the joint test saw, in words, with the column in which it is clearest."""
        a, b = self.names
        named = [part for part in self.joint.components if part.column is not None]
        named = [part for part in named if len(named) * part.pvalue <= self.level]
        # a change of a column shows in its relation to the others too, and says less there
        found = max(named, key=lambda part: (part.change != "relation", part.evidence), default=None)
        if found is None:
            return f"the rows of {a} and {b} differ"
        words = re.sub(r"(column )?'(column \d+)'", r"\2", found.explanation)  # of columns without names
        # such as "column 'age' is higher in Y" or "'age' is missing more often in Y: 1 % → 4 %"
        told = re.sub(r" in ([XY])(: [^:]*)?$", lambda m: f" in {a if m[1] == 'X' else b}{m[2] or ''}", words)
        return f"the rows of {a} and {b} differ; most clearly, {told}"

    def __getitem__(self, name: str) -> ColumnResult:
        """The column of that name."""
        column: ColumnResult = self.columns[name]
        return column

    def __str__(self) -> str:
        return self.report.as_text()

    def __repr__(self) -> str:
        return (
            f"Comparison({self.names[0]!r}, {self.names[1]!r}, differs={self.differs}, pvalue={readable(self.pvalue)})"
        )

    def _repr_html_(self) -> str:
        from muhat.apps.compare.html_report import fragment

        return fragment(self.report)

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers and texts as lists and dicts, for JSON."""
        return {
            "differs": self.differs,
            "identical": self.identical,
            "level": self.level,
            "at_least": self.at_least,
            "pvalue": self.pvalue,
            "significant": self.is_significant,
            "significance": self.significance,
            "tables": [table._asdict() for table in self.tables],
            "summary": list(self.report.sentences),
            "columns": [column.to_dict(self.level, self.names) for column in self.columns],
            "pairs": [pair.to_dict(self.level) for pair in self.pairs[: max(MOST_PAIRS, len(self.significant_pairs))]],
            "joint": {
                "pvalue": self.joint.pvalue,
                "adjusted_pvalue": self.joint_pvalue,
                "resamples": len(self.joint.null_distribution),
                "statistic": self.joint.statistic,
                "in_words": self.joint_explanation if self.joint_pvalue <= self.level else "no difference found",
            },
            "rows": [row.to_dict() for row in self.rows],
            "separating": list(self.separating),
            "not_compared": [column._asdict() for column in self.not_compared],
            "notes": list(self.notes),
        }

    def to_frame(self, backend: Literal["pandas", "polars", "pyarrow"] | None = None) -> Any:
        """Return a data frame of pandas, polars or pyarrow (the first that is installed) with one row per column."""
        backend = backend or next((name for name in ("pandas", "polars", "pyarrow") if find_spec(name)), None)
        if backend is None:
            load_extra("pandas", "data", "to_frame()")
        rows = []
        for column in self.columns:
            row = {"column": column.name, "kind": column.kind, **column.numbers(self.level)}
            row["low"], row["high"] = row.pop("interval")
            row["missing_a"], row["missing_b"] = column.counts.missing_shares
            lost = {} if column.missing is None else column.missing.numbers(self.level)
            row["missing_adjusted_pvalue"] = lost.get("adjusted_pvalue")
            row |= {f"missing_{key}": lost.get(key, False) for key in ("significant", "differs")}
            rows.append(row)
        return nw.from_dict({key: [row[key] for row in rows] for key in rows[0]}, backend=backend).to_native()

    def save_html(self, path: str | Path) -> None:
        """Write the report as one HTML page that loads nothing from elsewhere."""
        from muhat.apps.compare.html_report import page

        text = page(self.report)
        with whole_file(Path(path)) as file:
            file.write(text.encode())

    def plot(self, columns: int = 6) -> Any:
        """Draw histograms of the most different columns in both tables, and return the figure of matplotlib."""
        plt = load_extra("matplotlib.pyplot", "plot", "plot()")

        def plain(text: str) -> str:
            return text.replace("$", r"\$")  # which would begin mathematics

        chosen = self.columns[:columns]
        width = min(3, len(chosen))
        height = -(-len(chosen) // width)
        figure, axes = plt.subplots(
            height, width, figsize=(3.2 * width, 2.3 * height), squeeze=False, layout="constrained"
        )
        for ax in axes.flat[len(chosen) :]:
            ax.set_axis_off()
        for ax, column in zip(axes.flat, chosen, strict=False):
            drawn = histogram(column.counts)
            places = np.arange(drawn.heights.shape[1])
            for which, heights in enumerate(drawn.heights):
                label = plain(self.names[which])
                ax.bar(places + 0.4 * which, heights, 0.4, align="edge", color=_COLOURS[which], label=label)
            ends = [plain(shown(column.kind, end, 12, column.counts.are_years)) for end in drawn.ends]
            ax.set_xticks([0.4, len(places) - 0.6], ends)
            ax.set_yticks([])
            ax.set_title(plain(f"{column.name[:28]}: {column.effect_name} {column.effect:.2f}"), fontsize=9)
            ax.spines[["top", "right", "left"]].set_visible(False)
        axes[0, 0].legend(frameon=False, fontsize=8)
        return figure
