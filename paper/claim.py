"""Claims of the paper: a sentence, the comparisons that judge it, and the rule that turns counts into a verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from math import inf, isfinite
from typing import Literal, NamedTuple, get_args

from paper.comparison import ROUNDING, Estimate, relative
from paper.experiment import Row

Verdict = Literal["holds", "holds in part", "does not hold", "cannot be checked", "not run"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)

Words = Literal["plain", "hedged", "exact", "not worse", "exists"]
"""How strongly a sentence is worded, which decides how many comparisons must be for it."""

MARGIN = 2.0
"""Standard errors by which a difference must exceed zero to count."""

MARGINS = (1.5, MARGIN, 3.0)
"""Margins at which the verdicts are shown."""

NEARLY_ALL, OFTEN, BY_CHANCE = 0.9, 0.75, 1 / 40
"""Shares of comparisons: for a plain claim, for a hedged one, and against any claim by chance alone."""

RULE = (
    "Each claim is cut into its parts, and each part into paired comparisons. A comparison is for or against the part "
    "when the difference exceeds two standard errors (in table 1, which has ten splits: when the paired sign test of "
    "the paper decides at 5 %). A plain statement (“outperform”, “consistently”) holds when at least nine comparisons "
    "in ten are for it and at most one in forty is against it. A hedged one (“often”, “in general”, “one would "
    "expect”) holds when three in four are for it. An exact one (a theorem) must hold in every case, and “there are "
    "some cases” needs cases. A part does not hold when no more comparisons are for it than against it; otherwise it "
    "holds in part. A claim has the verdict that its parts share, and holds in part when they differ."
)

REASON = (
    "Why these numbers: where two estimators are equal, a difference exceeds two standard errors in one comparison of "
    "forty on either side, so that one in forty against a claim is no evidence against it. A single exception among "
    "few comparisons still counts, because one in forty of them is less than one. Hedges are part of what the authors "
    "say, so that a claim of what happens often is not refuted by an exception. The table shows what other margins "
    "would give."
)

ESTIMATOR_SECTION = "Kernel mean shrinkage estimator"
SYNTHETIC_SECTION = "Synthetic data"
EXPERIMENTS_SUMMARY = "Experiments, summary"
CONCLUSIONS = "Conclusions"
"""Sections of the paper that several files quote."""


class Count(NamedTuple):
    """Numbers of comparisons that speak for a claim, against it, and in all."""

    support: int
    against: int
    total: int

    def __str__(self) -> str:
        return f"{self.support} of {self.total} for, {self.against or 'none'} against"


@dataclass(frozen=True)
class Part:
    """One part of a claim: its comparisons in standard errors, negative where they are for the claim.

    ``span`` tells how large the differences are. A part that is not ``judged`` is shown beside the others.
    """

    label: str
    z: Sequence[float]
    words: Words = "plain"
    span: str = ""
    judged: bool = True

    def count(self, margin: float = MARGIN) -> Count:
        """Comparisons beyond the margin."""
        against = sum(z > margin for z in self.z)
        support = len(self.z) - against if self.words == "not worse" else sum(z < -margin for z in self.z)
        return Count(support, against, len(self.z))

    def verdict(self, margin: float = MARGIN) -> Verdict:
        """Verdict by :data:`RULE`."""
        support, against, total = self.count(margin)
        if total == 0:
            return "cannot be checked"
        holds = {
            "plain": support >= NEARLY_ALL * total and against <= BY_CHANCE * total,
            "hedged": support >= OFTEN * total,
            "exact": support == total,
            "not worse": against <= BY_CHANCE * total,
            "exists": support > BY_CHANCE * total,
        }
        if holds[self.words]:
            return "holds"
        return "does not hold" if support <= against or self.words == "exists" else "holds in part"

    def __str__(self) -> str:
        span = f" ({self.span})" if self.span else ""
        return f"{self.label}: {self.count()}{span}"


@dataclass(frozen=True)
class Judgement:
    """Parts of a claim with one number for the reader, the evidence in sentences, and a note of caution.

    ``run`` says whether the experiments that the claim needs were run.
    """

    parts: Sequence[Part]
    number: str
    evidence: str
    note: str = ""
    run: bool = True

    def verdict(self, margin: float = MARGIN) -> Verdict:
        """Verdict that the judged parts share; "holds in part" where they differ."""
        if not self.run:
            return "not run"
        verdicts = {part.verdict(margin) for part in self.parts if part.judged} - {"cannot be checked"}
        if not verdicts:
            return "cannot be checked"
        return verdicts.pop() if len(verdicts) == 1 else "holds in part"


@dataclass(frozen=True)
class Claim:
    """A statement of the paper; ``check`` takes the rows of the experiments it needs, one argument each."""

    id: str
    text: str
    where: str
    needs: tuple[str, ...]
    check: Callable[..., Judgement]


def claim(id: str, text: str, where: str) -> Callable[[Callable[..., Judgement]], Claim]:
    """Decorator that makes a claim of the function below it, whose arguments name the experiments that judge it."""
    return lambda check: Claim(id, text, where, tuple(signature(check).parameters), check)


def judge(claim: Claim, rows: Mapping[str, list[Row]]) -> Judgement:
    """Judgement of a run, whose rows are given by the name of the experiment."""
    missing = [name for name in claim.needs if not rows.get(name)]
    if missing:
        return Judgement((), "not run", f"This run does not have {' and '.join(missing)}.", run=False)
    return claim.check(*(rows[name] for name in claim.needs))


def judged(parts: Sequence[Part], what: str, number: str = "", note: str = "") -> Judgement:
    """Judgement whose evidence lists the counts of all parts after a sentence on what is compared."""
    shown = number or "; ".join(f"{part.label}: {part.count()}" for part in parts if part.judged)
    return Judgement(parts, shown, f"{what} {'; '.join(map(str, parts))}.", note)


def ratio_parts(
    settings: Iterable[list[Row]], pairs: Iterable[tuple[str, str, str, bool]], words: Words = "plain"
) -> list[Part]:
    """One part per (label, estimator, baseline, judged): losses relative to the baseline's, one per setting."""
    known = list(settings)
    return [
        paired_part(label, [relative(rows, name, baseline) for rows in known], words=words, judged=judged)
        for label, name, baseline, judged in pairs
    ]


def paired_part(
    label: str, estimates: Iterable[Estimate], bound: float = 1.0, words: Words = "plain", judged: bool = True
) -> Part:
    """Part whose comparisons are estimates with a standard error, for the claim where they lie below the bound."""
    known = [estimate for estimate in estimates if isfinite(estimate.error)]
    span = f"from {min(known)} to {max(known)}" if known else ""
    return Part(label, [standardised(estimate, bound) for estimate in known], words, span, judged)


def standardised(estimate: Estimate, bound: float) -> float:
    """Distance from the bound in standard errors; zero where it is a rounding error."""
    distance = estimate.value - bound
    if abs(distance) <= ROUNDING:
        return 0.0
    return distance / estimate.error if estimate.error > 0 else inf if distance > 0 else -inf


def exact(label: str, statements: Iterable[bool], words: Words = "exact") -> Part:
    """Part whose comparisons are statements that are true or false without a standard error."""
    return Part(label, [-inf if statement else inf for statement in statements], words)
