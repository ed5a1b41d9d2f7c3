"""Claims of the paper: a sentence, the rule that judges it, and the evidence of a run; the rule counts comparisons."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Literal, get_args

from muhat.paper.comparison import LABELS, ROUNDING, Estimate
from muhat.paper.experiment import Row

Verdict = Literal["holds", "holds in part", "does not hold", "cannot be checked"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)

RULE = (
    "Each claim is cut into paired comparisons, and a comparison counts for or against it when the difference exceeds "
    "two standard errors (for table 1: when the paired sign test decides at 5 %). A claim holds when at least nine "
    "comparisons in ten are for it and none is against it; it does not hold when no more are for it than against it; "
    "otherwise it holds in part."
)

ESTIMATOR_SECTION = "Kernel mean shrinkage estimator"
SYNTHETIC_SECTION = "Synthetic data"
EXPERIMENTS_SUMMARY = "Experiments, summary"
CONCLUSIONS = "Conclusions"
"""Sections of the paper that several files quote."""

NEARLY_ALL = 0.9
"""Share of the comparisons that must be for a claim."""

_DECISIVE = 2.0


@dataclass(frozen=True)
class Judgement:
    """The verdict, and the figures it rests on."""

    verdict: Verdict
    evidence: str


@dataclass(frozen=True)
class Claim:
    """A statement of the paper; ``check`` takes the rows of the experiments it needs, one argument each."""

    id: str
    text: str
    where: str
    needs: tuple[str, ...]
    check: Callable[..., Judgement]


def claim(id: str, text: str, where: str, *needs: str) -> Callable[[Callable[..., Judgement]], Claim]:
    """Decorator that makes a claim of the function below it, which judges the claim."""
    return lambda check: Claim(id, text, where, needs, check)


def judge(claim: Claim, rows: Mapping[str, list[Row]]) -> Judgement:
    """Judgement of a run, whose rows are given by the name of the experiment."""
    missing = [name for name in claim.needs if not rows.get(name)]
    if missing:
        return Judgement("cannot be checked", f"not run: {', '.join(missing)}")
    return claim.check(*(rows[name] for name in claim.needs))


@dataclass(frozen=True)
class Count:
    """Numbers of comparisons that speak for a claim, against it, and in all."""

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
    """Estimates with a standard error, which needs two repetitions; the error is at least that of rounding."""
    return [Estimate(value, max(error, ROUNDING)) for value, error in estimates if isfinite(error)]


def count_below(estimates: Iterable[Estimate], bound: float) -> Count:
    """Count decidable estimates that lie below a bound by two standard errors, and above it."""
    distances = [(estimate.value - bound, _DECISIVE * estimate.error) for estimate in decidable(estimates)]
    below = sum(distance < -margin for distance, margin in distances)
    above = sum(distance > margin for distance, margin in distances)
    return Count(below, above, len(distances))


def count_not_above(estimates: Iterable[Estimate], bound: float) -> Count:
    """Count for claims that nothing is lost: estimates above the bound are against it, all others for it."""
    count = count_below(estimates, bound)
    return Count(count.total - count.against, count.against, count.total)


def count_true(statements: Iterable[bool]) -> Count:
    """Count exact statements, each of which is for a claim or against it."""
    known = list(statements)
    return Count(sum(known), len(known) - sum(known), len(known))


def judged_together(
    parts: Mapping[str, Sequence[Estimate]], judged: Sequence[str], bound: float, what: str
) -> Judgement:
    """Verdict by the rule on the judged parts together; the evidence tells all parts."""
    counts = {name: count_below(estimates, bound) for name, estimates in parts.items()}
    together = sum((counts[name] for name in judged), Count())
    texts = [f"{LABELS.get(name, name)}: {counts[name]}, {spanned(each)}" for name, each in parts.items()]
    if len(judged) > 1:
        texts.insert(0, f"{' and '.join(LABELS.get(name, name) for name in judged)} together: {together}")
    return Judgement(together.verdict, f"{what}. {'; '.join(texts)}")


def judged_exactly(statements: list[bool], what: str) -> Judgement:
    """Verdict on exact statements, one per row."""
    count = count_true(statements)
    return Judgement(count.verdict, f"{what}; exact comparisons, no standard error: {count}")


def verdict_of_parts(verdicts: Iterable[Verdict]) -> Verdict:
    """Verdict on a claim with several parts: the one they share, or that it holds in part."""
    different = set(verdicts)
    return different.pop() if len(different) == 1 else "holds in part"


def spanned(estimates: Iterable[Estimate]) -> str:
    """From the least to the greatest."""
    known = decidable(estimates)
    return f"from {min(known)} to {max(known)}" if known else "no standard error with one repetition"
