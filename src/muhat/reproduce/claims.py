"""What the paper claims of its experiments, and the verdict of a run on each claim."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from muhat.reproduce.experiment import Row
from muhat.reproduce.statistics import Estimate

Verdict = Literal["holds", "holds in part", "does not hold", "cannot be checked"]
Rows = dict[str, list[Row]]
"""Rows of the experiments that were run, by the name of the experiment."""

RULE = (
    "Each claim is cut into paired comparisons, and a comparison counts for or against it when the difference exceeds "
    "two standard errors (for table 1: when the paired sign test decides at 5 %). A claim holds when at least nine "
    "comparisons in ten are for it and none is against it; it does not hold when no more are for it than against it; "
    "otherwise it holds in part."
)

_DECISIVE = 2.0
_NEARLY_ALL = 0.9


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

    support: int
    against: int
    total: int

    @property
    def verdict(self) -> Verdict:
        """The verdict by the rule of the report."""
        if self.total == 0:
            return "cannot be checked"
        if self.against == 0 and self.support >= _NEARLY_ALL * self.total:
            return "holds"
        return "does not hold" if self.support <= self.against else "holds in part"

    def __str__(self) -> str:
        return f"{self.support} for, {self.against} against, of {self.total}"


def count_below(estimates: Iterable[Estimate], bound: float) -> Count:
    """Count estimates that lie below a bound by two standard errors, and above it."""
    distances = [(estimate.value - bound, _DECISIVE * estimate.error) for estimate in estimates]
    below = sum(distance < -margin for distance, margin in distances)
    above = sum(distance > margin for distance, margin in distances)
    return Count(below, above, len(distances))


def judge(claim: Claim, rows: Rows) -> Finding:
    """The finding of a run on a claim."""
    missing = [name for name in claim.needs if not rows.get(name)]
    if missing:
        return Finding("cannot be checked", f"not run: {', '.join(missing)}")
    return claim.check(rows)
