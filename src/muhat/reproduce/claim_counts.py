"""From comparisons to a finding: what the checks of the claims on theory and synthetic data share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite

from muhat.reproduce.claims import Count, Finding, Verdict, count_below
from muhat.reproduce.drawing import LABELS
from muhat.reproduce.statistics import ROUNDING, Estimate

EXACT = 1e-9
"""A relative error that only rounding can explain."""

PAPERS = ("S", "F_theorem4")
"""The estimators as the paper has them."""

ALL = (*PAPERS, "F_deletion")


def decidable(estimates: Iterable[Estimate]) -> list[Estimate]:
    """Those with a standard error, which one repetition does not give; rounding is no difference."""
    return [Estimate(value, max(error, ROUNDING)) for value, error in estimates if isfinite(error)]


def counted(parts: Mapping[str, Iterable[Estimate]], judged: Iterable[str], bound: float, what: str) -> Finding:
    """Verdict by the rule on the judged parts together; the evidence tells all parts."""
    lists = {name: decidable(estimates) for name, estimates in parts.items()}
    names = list(judged)
    together = count_below([estimate for name in names for estimate in lists[name]], bound)
    texts = [f"{LABELS.get(name, name)}: {count_below(each, bound)}, {spanned(each)}" for name, each in lists.items()]
    total = [f"{' and '.join(LABELS.get(name, name) for name in names)} together: {together}"] * (len(names) > 1)
    return Finding(together.verdict, f"{what}. {'; '.join([*total, *texts])}")


def not_above(estimates: Iterable[Estimate], bound: float) -> Count:
    """For claims that nothing is gained or lost: against are the estimates above the bound, for it all others."""
    count = count_below(decidable(estimates), bound)
    return Count(count.total - count.against, count.against, count.total)


def in_parts(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict on a claim with several parts: the one they share, or that it holds in part."""
    different = set(verdicts)
    return different.pop() if len(different) == 1 else "holds in part"


def spanned(estimates: list[Estimate]) -> str:
    """From the least to the greatest."""
    return f"from {min(estimates)} to {max(estimates)}" if estimates else "no standard error with one repetition"


def all_agree(good: list[bool], what: str) -> Finding:
    """Exact statements: each row is for it or against it."""
    count = agreeing(good)
    return Finding(count.verdict, f"{what}; exact comparisons, no standard error: {count}")


def agreeing(good: list[bool]) -> Count:
    """How many rows are for an exact statement, and against it."""
    return Count(sum(good), len(good) - sum(good), len(good))
