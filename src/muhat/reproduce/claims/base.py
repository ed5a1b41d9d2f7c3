"""What the paper claims of its experiments, and the verdict of a run on each claim."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import isfinite
from typing import Literal

from muhat.reproduce.experiment import Row
from muhat.reproduce.experiments.statistics import ROUNDING, Estimate

Verdict = Literal["holds", "holds in part", "does not hold", "cannot be checked"]


Rows = dict[str, list[Row]]
"""Rows of the experiments that were run, by the name of the experiment."""


RULE = (
    "Each claim is cut into paired comparisons, and a comparison counts for or against it when the difference exceeds "
    "two standard errors (for table 1: when the paired sign test decides at 5 %). A claim holds when at least nine "
    "comparisons in ten are for it and none is against it; it does not hold when no more are for it than against it; "
    "otherwise it holds in part."
)


NEARLY_ALL = 0.9
"""Share of the comparisons that must be for a claim."""


_DECISIVE = 2.0


@dataclass(frozen=True)
class Finding:
    """The verdict, and the figures it rests on."""

    verdict: Verdict
    evidence: str


@dataclass(frozen=True)
class Claim:
    """A statement of the paper; ``needs`` names the experiments whose rows ``check`` reads."""

    id: str
    text: str
    where: str
    needs: tuple[str, ...]
    check: Callable[[Rows], Finding]


@dataclass(frozen=True)
class Count:
    """Comparisons that speak for a claim, against it, and that leave it open."""

    support: int = 0
    against: int = 0
    total: int = 0

    @property
    def verdict(self) -> Verdict:
        """The verdict by the rule of the report."""
        if self.total == 0:
            return "cannot be checked"
        if self.against == 0 and self.support >= NEARLY_ALL * self.total:
            return "holds"
        return "does not hold" if self.support <= self.against else "holds in part"

    def __add__(self, other: Count) -> Count:
        return Count(self.support + other.support, self.against + other.against, self.total + other.total)

    def __str__(self) -> str:
        return f"{self.support} for, {self.against} against, of {self.total}"


def decidable(estimates: Iterable[Estimate]) -> list[Estimate]:
    """Those with a standard error, which one repetition does not give; rounding is not a difference."""
    return [Estimate(value, max(error, ROUNDING)) for value, error in estimates if isfinite(error)]


def count_below(estimates: Iterable[Estimate], bound: float) -> Count:
    """Count estimates that lie below a bound by two standard errors, and above it, among those decidable."""
    distances = [(estimate.value - bound, _DECISIVE * estimate.error) for estimate in decidable(estimates)]
    below = sum(distance < -margin for distance, margin in distances)
    above = sum(distance > margin for distance, margin in distances)
    return Count(below, above, len(distances))


def judge(claim: Claim, rows: Rows) -> Finding:
    """The finding of a run on a claim."""
    missing = [name for name in claim.needs if not rows.get(name)]
    if missing:
        return Finding("cannot be checked", f"not run: {', '.join(missing)}")
    return claim.check(rows)
