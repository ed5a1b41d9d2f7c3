"""Results of combined tests: components, their shares of the evidence, and a summary in words."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from muhat.inference.combine import Combined, Component
from muhat.inference.resampling import PermutationResult
from muhat.kernels.base import Kernel
from muhat.types import Array

SEEN = 0.05
"""Above this p-value the words say that nothing was found."""

SPECIFIC = ("linear", "spread", "distance from the centre", "second moments")
"""Names of components that see one kind of difference, the plainest first; others see every kind, and say less."""

ENOUGH = 0.35
"""A specific component is preferred in words where its evidence is at least this part of the largest."""

ALONE = 0.75
"""A column is all that is said where its evidence is at least this part of the largest."""


def percent(share: float) -> str:
    """A share in words.

    >>> percent(0.1234), percent(0.0), percent(0.0004), percent(0.996)
    ('12 %', '0 %', '0.04 %', '99.6 %')
    """
    shown = f"{100 * share:.1f}" if share > 0.99 else f"{100 * share:.2g}"
    return f"{shown.removesuffix('.0')} %"


@dataclass(frozen=True)
class ComponentResult:
    """One component of a combined test.

    ``pvalue`` is that of the component alone and is *not corrected* for the other components: read it as a description.
    ``share`` is its part of the combined statistic, and ``evidence`` −log p of a gamma approximation, which goes on
    where permutations no longer tell p-values apart. ``kernel`` and ``column`` say what the component looked at, if it
    is one kernel or one column; ``words`` what it saw, and ``change`` what changed in the column.
    """

    name: str
    group: str
    pvalue: float
    share: float
    evidence: float
    kernel: Kernel | None = None
    column: str | None = None
    words: str = ""
    change: str | None = None

    @property
    def bandwidth(self) -> float | None:
        """The bandwidth of the kernel, in units of the scaled columns; None where there is none."""
        return getattr(getattr(self.kernel, "kernel", self.kernel), "bandwidth", None)


@dataclass(frozen=True, eq=False, repr=False)
class CombinedResult(PermutationResult, ABC):
    """A permutation test that may combine several statistics.

    ``components`` has a :class:`ComponentResult` for each of them, the strongest first; it is empty where one statistic
    was asked for. ``method`` says how the statistics were computed. No p-value below ``smallest_pvalue`` is possible
    with these numbers of rows and of resamples.
    """

    components: tuple[ComponentResult, ...] = ()
    method: str = "exact"
    smallest_pvalue: float = field(default=0.0, kw_only=True)
    _nothing: ClassVar[str] = "no difference found"

    @property
    def share(self) -> dict[str, float]:
        """The share of the evidence of each group of components, the largest first; the shares sum to 1."""
        shares: dict[str, float] = {}
        for finding in self.components:
            shares[finding.group] = shares.get(finding.group, 0.0) + finding.share
        return dict(sorted(shares.items(), key=lambda pair: -pair[1]))

    @property
    def summary(self) -> str:
        """What was seen, in words: the kind of difference, and the column in which it is strongest.

        A column is named where it differs beyond doubt: where its p-value, by the gamma approximation of the largest
        statistic over all columns, is at most 0.05 after Bonferroni's correction for the number of components. It is
        all that is said where its evidence is at least three quarters of the largest. A share of the evidence is that
        of the group of components that the words before it are about.
        """
        if self.pvalue > SEEN:
            if self.smallest_pvalue <= SEEN:
                return self._nothing
            return f"{self._nothing}; these rows and resamples give no p-value below {self.smallest_pvalue:.2g}"
        if not self.components:
            return self._in_one_word
        leading, share = next(iter(self.share.items()))
        told = self._specific(next(finding for finding in self.components if finding.group == leading))
        most = max(finding.evidence for finding in self.components)
        of_columns = [finding for finding in self.components if finding.column is not None]
        column = max(of_columns, key=lambda finding: finding.evidence, default=told)
        if column.evidence >= ALONE * most:
            told = column
        counted = f" ({share:.0%} of the evidence)".replace("%", " %") if told.group == leading else ""
        beyond_doubt = column.evidence >= np.log(len(self.components) / SEEN)
        also = f"; clearest single column: {column.words}" if column != told and beyond_doubt else ""
        return f"{told.words}{counted}{also}"

    def _specific(self, strongest: ComponentResult) -> ComponentResult:
        """The strongest component, or one that says what differs, where it alone has enough of that evidence."""
        if strongest.name in SPECIFIC[:-1]:  # second moments also see spread
            return strongest
        for name in SPECIFIC:
            for finding in self.components:
                if finding.name == name and finding.evidence >= ENOUGH * strongest.evidence:
                    return finding
        return strongest

    @property
    @abstractmethod
    def _in_one_word(self) -> str:
        """What a single statistic saw."""

    def __repr__(self) -> str:
        plain = super().__repr__()
        return f"{plain[:-1]}: {self.summary})" if self.components else plain


def observed_and_null(combined: Combined) -> tuple[float, float, Array]:
    """Statistic, p-value and null distribution of a combined test."""
    return float(combined.statistics[0]), combined.pvalue, np.asarray(combined.statistics[1:])


def ranked(components: Sequence[Component], combined: Combined, describe: Any) -> tuple[ComponentResult, ...]:
    """The findings, the strongest first; ``describe(component)`` gives kernel, column, words and change."""
    found = [
        ComponentResult(part.name, part.group, part.pvalue, float(share), float(evidence), *describe(part))
        for part, share, evidence in zip(components, combined.shares, combined.evidence, strict=True)
    ]
    return tuple(sorted(found, key=lambda finding: -finding.share))
