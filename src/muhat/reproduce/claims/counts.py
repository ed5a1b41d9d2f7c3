"""From comparisons to a finding: what the checks of the claims on theory and synthetic data share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from muhat.reproduce.claims.base import Count, Finding, Verdict, count_below, decidable
from muhat.reproduce.estimator_names import LABELS
from muhat.reproduce.experiments.statistics import Estimate

EXACT = 1e-9
"""A relative error that only rounding can explain."""


PAPERS = ("S", "F_theorem4")
"""The estimators as the paper has them."""


ALL = (*PAPERS, "F_deletion")


def counted(parts: Mapping[str, Sequence[Estimate]], judged: Sequence[str], bound: float, what: str) -> Finding:
    """Verdict by the rule on the judged parts together; the evidence tells all parts."""
    counts = {name: count_below(estimates, bound) for name, estimates in parts.items()}
    together = sum((counts[name] for name in judged), Count())
    texts = [f"{LABELS.get(name, name)}: {counts[name]}, {spanned(each)}" for name, each in parts.items()]
    if len(judged) > 1:
        texts.insert(0, f"{' and '.join(LABELS.get(name, name) for name in judged)} together: {together}")
    return Finding(together.verdict, f"{what}. {'; '.join(texts)}")


def not_above(estimates: Iterable[Estimate], bound: float) -> Count:
    """For claims that nothing is gained or lost: against are the estimates above the bound, for it all others."""
    count = count_below(estimates, bound)
    return Count(count.total - count.against, count.against, count.total)


def in_parts(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict on a claim with several parts: the one they share, or that it holds in part."""
    different = set(verdicts)
    return different.pop() if len(different) == 1 else "holds in part"


def spanned(estimates: Iterable[Estimate]) -> str:
    """From the least to the greatest."""
    known = decidable(estimates)
    return f"from {min(known)} to {max(known)}" if known else "no standard error with one repetition"


def all_agree(good: list[bool], what: str) -> Finding:
    """Exact statements: each row is for it or against it."""
    count = agreeing(good)
    return Finding(count.verdict, f"{what}; exact comparisons, no standard error: {count}")


def agreeing(good: list[bool]) -> Count:
    """How many rows are for an exact statement, and against it."""
    return Count(sum(good), len(good) - sum(good), len(good))
