"""Rule that makes verdicts of comparisons, and the registry of claims."""

import pytest
from paper_samples import SHRUNK

from muhat.paper.claim import (
    Claim,
    Count,
    Judgement,
    count_below,
    count_not_above,
    judge,
    judged_together,
    verdict_of_parts,
)
from muhat.paper.comparison import Estimate


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (Count(9, 0, 10), "holds"),
        (Count(8, 0, 10), "holds in part"),
        (Count(99, 1, 100), "holds in part"),
        (Count(5, 5, 10), "does not hold"),
        (Count(0, 0, 10), "does not hold"),
        (Count(0, 0, 0), "cannot be checked"),
    ],
)
def test_rule(count, expected):
    assert count.verdict == expected


def test_judge_says_what_was_not_run():
    claim = Claim("a", "", "", ("figure1", "figure2"), lambda first, second: Judgement("holds", "seen"))
    assert judge(claim, {"figure1": [{}], "figure2": []}) == Judgement("cannot be checked", "not run: figure2")
    assert judge(claim, {"figure1": [{}], "figure2": [{}]}) == Judgement("holds", "seen")


def test_two_standard_errors_decide():
    estimates = [Estimate(0.79, 0.1), Estimate(0.81, 0.1), Estimate(1.19, 0.1), Estimate(1.21, 0.1)]
    assert count_below(estimates, 1.0) == Count(1, 1, 4)
    assert count_not_above(estimates, 1.0) == Count(3, 1, 4)


def test_rounding_and_single_repetitions_decide_nothing():
    estimates = [Estimate(1.0 - 1e-13, 0.0), Estimate(0.5, float("nan"))]
    assert count_below(estimates, 1.0) == Count(0, 0, 1)
    found = judged_together({"S": estimates[1:]}, ["S"], 1.0, "ratio")
    assert found == Judgement(
        "cannot be checked", "ratio. S-KMSE: 0 for, 0 against, of 0, no standard error with one repetition"
    )


def test_evidence_tells_parts_that_are_not_judged():
    parts = {name: [Estimate(value, 0.01)] for name, value in zip(SHRUNK, (0.5, 0.6, 1.5), strict=True)}
    found = judged_together(parts, SHRUNK[:2], 1.0, "ratio")
    assert found.verdict == "holds"
    assert "together: 2 for, 0 against, of 2" in found.evidence
    assert "F-KMSE (deletion): 0 for, 1 against, of 1, from 1.500 ± 0.010" in found.evidence


def test_parts():
    assert verdict_of_parts(["holds", "holds"]) == "holds"
    assert verdict_of_parts(["holds", "does not hold"]) == "holds in part"
