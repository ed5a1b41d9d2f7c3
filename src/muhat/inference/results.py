"""Results of permutation tests: p-values, components with their share of the evidence, and explanations in words."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from html import escape
from importlib import import_module
from typing import Any, ClassVar, NamedTuple

import numpy as np

from muhat._support.types import Array
from muhat.inference.combine import Combined, Component, combine_statistics
from muhat.kernels.base import Kernel
from muhat.kernels.mixed import rescaled
from muhat.tables.encoder import MISSING, Samples

SIGNIFICANT = 0.05
"""Above this p-value a summary says that nothing was found."""

SPECIFIC = ("linear", "dispersion", "distance from the centre", "second moments")
"""Names of components that see one kind of difference, the plainest first; others see every kind, and say less."""

ENOUGH = 0.35
"""A specific component is preferred in a summary where its evidence is at least this part of the largest."""

ALONE = 0.75
"""A column is all that is said where its evidence is at least this part of the largest."""

MOST_CORRELATED = 300
"""Up to this many columns the pair whose correlation changed most is named."""

_GROUPS = {
    "means": "X and Y lie in different places",
    "fine": "X and Y differ in their fine structure",
    "by column": "the shapes of single columns differ",
    "relations": "the relations between the columns differ",
}


def percent(share: float) -> str:
    """A share as text.

    >>> percent(0.1234), percent(0.0), percent(0.0004), percent(0.996)
    ('12 %', '0 %', '0.04 %', '99.6 %')
    """
    shown = f"{100 * share:.1f}" if share > 0.99 else f"{100 * share:.2g}"
    return f"{shown.removesuffix('.0')} %"


class Explanation(NamedTuple):
    """Explanation of a component: in words, and by the kernel, or the column and what changed in it, if it is one."""

    text: str
    kernel: Kernel | None = None
    column: str | None = None
    change: str | None = None


@dataclass(frozen=True)
class ComponentResult:
    """One component of a combined test.

    Attributes
    ----------
    name, group : str
        What the statistic is, and the kind of difference that it is sensitive to.
    pvalue : float
        The p-value of the component alone. It is *not corrected* for the other components: read it as a description.
    share : float
        Its share of the combined statistic.
    evidence : float
        −log p by a gamma approximation, which goes on where permutations no longer tell p-values apart.
    explanation : str
        What it saw, in words.
    kernel : Kernel or None
        The kernel that it is made from, if it is one.
    column : str or None
        The column that it looked at, if it is one.
    change : str or None
        What changed in the column: "location", "scale", "share", or "relation" to the other columns.

    See Also
    --------
    MMDResult : Result of a two-sample test, with its ``components``.
    HSICResult : Result of a test of independence, with its ``components``.

    Examples
    --------
    >>> import numpy as np, muhat as mh
    >>> rng = np.random.default_rng(0)
    >>> part = mh.mmd_test(rng.normal(size=(50, 2)), rng.normal(size=(60, 2)) + 1, random_state=0).components[0]
    >>> part.name, part.explanation
    ('linear', 'X and Y lie in different places')
    """

    name: str
    group: str
    pvalue: float
    share: float
    evidence: float
    explanation: str = ""
    kernel: Kernel | None = None
    column: str | None = None
    change: str | None = None

    @property
    def bandwidth(self) -> float | None:
        """The bandwidth of the kernel, in units of the scaled columns; None where there is none."""
        return getattr(getattr(self.kernel, "kernel", self.kernel), "bandwidth", None)


@dataclass(frozen=True, eq=False, repr=False)
class PermutationResult(ABC):
    """Result of a permutation test that may combine several statistics, which unpacks as scipy's results do.

    The p-value is (b + 1)/(B + 1), where b of the B permutations reach the statistic. It is never 0, and under the
    null hypothesis it is at most α with probability at most α, at every sample size. Where there are no more
    permutations than resamples, B counts all of them but the observed one, and nothing is drawn at random.
    """

    statistic: float
    pvalue: float
    null_distribution: Array
    _explained: Callable[[], tuple[ComponentResult, ...]] = tuple
    method: str = "exact"
    smallest_pvalue: float = field(default=0.0, kw_only=True)
    _nothing: ClassVar[str] = "no difference found"

    def __iter__(self) -> Iterator[float]:
        """``statistic, pvalue = test(X, Y)``."""
        return iter((self.statistic, self.pvalue))

    def __repr__(self) -> str:
        found = f"statistic={self.statistic:.4g}, pvalue={self.pvalue:.4g}"
        return f"{type(self).__name__}({found}, n_resamples={len(self.null_distribution):,}: {self.summary})"

    @cached_property
    def components(self) -> tuple[ComponentResult, ...]:
        """One for each statistic, the strongest first, explained when they are asked for."""
        return self._explained()

    @property
    def share(self) -> dict[str, float]:
        """The share of the evidence of each group of components, the largest first; the shares sum to 1."""
        shares: dict[str, float] = {}
        for part in self.components:
            shares[part.group] = shares.get(part.group, 0.0) + part.share
        return dict(sorted(shares.items(), key=lambda pair: -pair[1]))

    @property
    def summary(self) -> str:
        """Finding in words: the kind of difference, and the column in which it is strongest.

        A column is said to differ where its p-value, by the gamma approximation of the largest statistic over all
        columns, is at most 0.05 after Bonferroni's correction for the number of components. Where none does, the
        column that comes nearest is named as such. A column is all that is said where its evidence is at least three
        quarters of the largest. A share of the evidence is that of the group of components that the words before it
        are about.
        """
        if self.pvalue > SIGNIFICANT:
            if self.smallest_pvalue <= SIGNIFICANT:
                return self._nothing
            return f"{self._nothing}; these rows and resamples give no p-value below {self.smallest_pvalue:.2g}"
        if not self.components:
            return self._of_one_statistic
        leading, share = next(iter(self.share.items()))
        told = self._most_specific(next(part for part in self.components if part.group == leading))
        column = self._clearest_column()
        if column is not None and column.evidence >= ALONE * max(part.evidence for part in self.components):
            told = column
        counted = f" ({share:.0%} of the evidence)".replace("%", " %") if told.group == leading else ""
        return f"{told.explanation}{counted}{self._and_column(told, column)}"

    def _repr_html_(self) -> str:
        """For notebooks: the sentence, the kinds of difference by their evidence, and the null distribution."""
        largest = sorted(self.components, key=lambda part: -part.share)[:5]  # as many as a glance takes in
        cells = "".join(
            f"<tr><td>{escape(part.explanation or part.name)}</td><td>{percent(part.share)}</td></tr>"
            for part in largest
        )
        head = "<tr><th>most evidence</th><th>share</th></tr>"
        table = f"<table>{head}{cells}</table>" if self.components and self.pvalue <= SIGNIFICANT else ""
        picture = _histogram(self.null_distribution, self.statistic)
        return f"<div><p>p = {self.pvalue:.3g}: {escape(self.summary)}</p>{table}{picture}</div>"

    def plot(self, ax: Any = None, **style: Any) -> Any:
        """Draw the evidence of each component; needs matplotlib, and loads :mod:`muhat.plotting` when it is called."""
        return import_module("muhat.plotting").ComponentsDisplay.from_result(self, ax=ax, **style)

    def _clearest_column(self) -> ComponentResult | None:
        """The component of a single column with the most evidence; of plain columns and relations, the plain one.

        A change of a column alone shows in its relation to the others as well.
        """
        of_columns = [part for part in self.components if part.column is not None]
        clearest = max(of_columns, key=lambda part: part.evidence, default=None)
        plain = max((p for p in of_columns if p.change != "relation"), key=lambda p: p.evidence, default=None)
        return plain if plain is not None and clearest and plain.evidence >= ALONE * clearest.evidence else clearest

    def _and_column(self, told: ComponentResult, column: ComponentResult | None) -> str:
        if column is None or column == told or told.column is not None:
            return ""
        beyond_doubt = column.evidence >= np.log(len(self.components) / SIGNIFICANT)
        if told.group in ("second moments", "relations") and not (beyond_doubt and column.change != "relation"):
            return ""  # what changed is no single column
        place = "clearest single column" if beyond_doubt else "most visible, though not significant by itself"
        return f"; {place}: {column.explanation}"

    def _most_specific(self, strongest: ComponentResult) -> ComponentResult:
        """The strongest component, or one that says what differs, where it alone has enough of that evidence."""
        if strongest.name in (*SPECIFIC[:-1], "whitened second moments"):  # plain second moments also see dispersion
            return strongest
        of_relations = strongest.name in ("Hotelling", "residuals")  # whereas sums over residuals see every kind
        for name in ("residuals",) if of_relations else (*SPECIFIC, "residuals"):
            for part in self.components:
                if part.name == name and part.evidence >= ENOUGH * strongest.evidence:
                    return part
        return strongest

    @property
    @abstractmethod
    def _of_one_statistic(self) -> str:
        """Finding of a single statistic, in words."""


def _histogram(null: Array, observed: float) -> str:
    """The permutations' statistics as bars and the observed one as a line, in a box of 300 by 60."""
    edges = np.linspace(min(null.min(), observed), max(null.max(), observed), 41)
    if not np.isfinite(edges).all() or edges[0] == edges[-1]:
        return ""
    counts = np.histogram(null, edges)[0]
    heights = 56 * counts / counts.max()
    bars = "".join(
        f'<rect x="{7.5 * i:.1f}" y="{60 - height:.1f}" width="7" height="{height:.1f}"/>'
        for i, height in enumerate(heights)
    )
    place = 300 * (observed - edges[0]) / (edges[-1] - edges[0])
    line = f'<line x1="{place:.1f}" x2="{place:.1f}" y1="0" y2="60" stroke="#d62728" stroke-width="2"/>'
    label = "statistics of the permutations, and the observed one (red)"
    svg = f'<svg viewBox="-2 0 304 60" width="304" role="img" aria-label="{label}">'
    return f'{svg}<g fill="#999">{bars}</g>{line}</svg><p>{label}</p>'


def combined_fields(
    components: Sequence[Component],
    explain: Callable[[Component], Explanation],
    tolerance: float = 1e-8,
    discount: bool = True,
) -> tuple[float, float, Array, Callable[[], tuple[ComponentResult, ...]]]:
    """Statistic, p-value, null distribution and what makes the components: how the result of a test begins."""
    combined = combine_statistics(components, tolerance, discount)
    made = partial(explained, components, combined, explain)
    return float(combined.statistics[0]), combined.pvalue, np.asarray(combined.statistics[1:]), made


def explained(
    components: Sequence[Component], combined: Combined, explain: Callable[[Component], Explanation]
) -> tuple[ComponentResult, ...]:
    """The components with their shares of the evidence and in words, the strongest first."""
    found = [
        ComponentResult(part.name, part.group, part.pvalue, float(share), float(evidence), *explain(part))
        for part, share, evidence in zip(components, combined.shares, combined.evidence, strict=True)
    ]
    return tuple(sorted(found, key=lambda part: -part.share))


# ---------------------------------------------------------------- what the components of a two-sample test saw


def explain_difference(part: Component, samples: Samples) -> Explanation:
    """Explain a component of :func:`muhat.mmd_test`."""
    if part.name == "residuals":
        return _relation(part, samples)
    if part.group == "columns":
        return _column(part, samples)
    if part.group in ("dispersion", "close pairs"):
        kernel, wider = part.value
        what = "is more spread out" if part.group == "dispersion" else "has fewer close pairs of rows"
        return Explanation(f"{wider} {what}", rescaled(kernel, samples.scales))
    if part.name in ("second moments", "whitened second moments"):
        return Explanation(_correlations(samples))
    kernel = part.value
    if part.group == "means":  # of columns with variance 1
        kernel = rescaled(*part.value)
    kernel = None if kernel is None else rescaled(kernel, samples.scales)
    return Explanation(_GROUPS.get(part.group, f"X and Y differ under {part.group}"), kernel)


def _column(part: Component, samples: Samples) -> Explanation:
    column, kind, larger = part.value
    label = samples.encoder.features[column].label
    if np.isin(samples.pooled[:, column], (0.0, 1.0)).all():
        return Explanation(_share(column, samples), None, label, "share")
    what = "is more spread out" if kind == "scale" else "is higher"
    return Explanation(f"{samples.in_words(column)} {what} in {larger}", None, label, kind)


def _relation(part: Component, samples: Samples) -> Explanation:
    column, kind, larger, partner = part.value
    what = "varies more" if kind == "scale" else "is higher"
    others, given = f"the other columns, above all {samples.in_words(partner)},", "them"
    if samples.pooled.shape[1] == 2:
        others, given = samples.in_words(partner), "it"
    text = f"the relation of {samples.in_words(column)} to {others} changed: given {given}, it {what} in {larger}"
    return Explanation(text, None, samples.encoder.features[column].label, "relation")


def _correlations(samples: Samples) -> str:
    """The two columns whose correlation differs most between the samples, where there are not too many pairs."""
    if samples.pooled.shape[1] > MOST_CORRELATED:
        return "the correlations of the columns differ"
    with np.errstate(divide="ignore", invalid="ignore"):  # of constant columns
        parts = np.split(samples.scaled, samples.sizes[:1])
        found = [np.nan_to_num(np.atleast_2d(np.corrcoef(rows, rowvar=False))) for rows in parts]
    change = np.triu(np.abs(found[1] - found[0]), 1)
    if not change.any():
        return "the correlations of the columns differ"
    i, j = divmod(int(change.argmax()), len(change))
    x, y = (matrix[i, j] for matrix in found)
    pair = f"{samples.in_words(i)} and {samples.in_words(j)}"
    return f"the correlations of the columns differ, most that of {pair}: {x:.2f} → {y:.2f}"


def _share(column: int, samples: Samples) -> str:
    """How often a feature of zeros and ones is 1 in either sample."""
    x, y = (float(rows[:, column].mean()) for rows in samples.parts)
    more, shares = "more" if y > x else "less", f"{percent(x)} → {percent(y)}"
    feature = samples.encoder.features[column]
    name = repr(feature.column) if feature.named else f"column {feature.column}"
    if feature.level == MISSING:
        return f"{name} is missing {more} often in Y: {shares}"
    if feature.level is not None:
        return f"{feature.in_words} is {more} frequent in Y: {shares}"
    return f"{name} is {'true' if feature.kind == 'boolean' else '1'} {more} often in Y: {shares}"
