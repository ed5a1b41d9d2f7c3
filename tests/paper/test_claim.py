"""Rule that turns comparisons into verdicts: wording, margins, parts, and what decides nothing."""

from math import inf, nan

import pytest

from paper.claim import Claim, Count, Judgement, Part, exact, judge, judged, paired_part
from paper.comparison import Estimate


def scores(support, against, total):
    return [-inf] * support + [inf] * against + [0.0] * (total - support - against)


@pytest.mark.parametrize(
    ("words", "count", "expected"),
    [
        ("plain", (9, 0, 10), "holds"),
        ("plain", (8, 0, 10), "holds in part"),
        ("plain", (15, 1, 16), "holds in part"),  # one of sixteen is more than chance gives
        ("plain", (79, 1, 80), "holds"),  # one of eighty is not
        ("plain", (5, 5, 10), "does not hold"),
        ("plain", (0, 0, 10), "does not hold"),
        ("plain", (0, 0, 0), "cannot be checked"),
        ("hedged", (15, 1, 16), "holds"),
        ("hedged", (12, 4, 16), "holds"),
        ("hedged", (11, 0, 16), "holds in part"),
        ("hedged", (4, 12, 16), "does not hold"),
        ("exact", (9, 0, 10), "holds in part"),
        ("exact", (10, 0, 10), "holds"),
        ("not worse", (0, 0, 10), "holds"),
        ("not worse", (0, 1, 10), "holds in part"),
        ("not worse", (0, 10, 10), "does not hold"),
        ("exists", (1, 9, 10), "holds"),
        ("exists", (0, 0, 10), "does not hold"),
    ],
)
def test_wording_decides_how_many_comparisons_are_needed(words, count, expected):
    assert Part("part", scores(*count), words).verdict() == expected


def test_margins_decide_what_counts():
    part = paired_part("S", [Estimate(0.8, 0.1), Estimate(0.79, 0.1), Estimate(0.6, 0.1), Estimate(1.21, 0.1)])
    assert [part.count(margin) for margin in (1.5, 2.0, 3.0)] == [Count(3, 1, 4), Count(2, 1, 4), Count(1, 0, 4)]
    assert paired_part("S", [Estimate(0.79, 0.1)]).verdict(3.0) == "does not hold"


def test_rounding_and_single_repetitions_decide_nothing():
    part = paired_part("S", [Estimate(1.0 - 1e-13, 0.0), Estimate(0.5, nan), Estimate(0.9, 0.0)])
    assert part.z == [0.0, -inf]
    assert paired_part("S", [Estimate(0.5, nan)]).verdict() == "cannot be checked"


def test_parts_that_differ_hold_in_part_and_shown_ones_are_not_judged():
    good, bad = exact("good", [True]), exact("bad", [False])
    shown = paired_part("beside", [Estimate(1.5, 0.1)], judged=False)
    assert Judgement([good, shown], "", "").verdict() == "holds"
    assert Judgement([good, bad], "", "").verdict() == "holds in part"
    assert Judgement([bad], "", "").verdict() == "does not hold"
    assert Judgement([shown], "", "").verdict() == "cannot be checked"
    found = judged([good, shown], "What is compared.")
    assert found.number == "good: 1 of 1 for, none against"
    assert found.evidence.startswith("What is compared. good: 1 of 1 for, none against; beside: 0 of 1 for, 1 against")
    assert "from 1.500 ± 0.100" in found.evidence


def test_judge_says_what_was_not_run():
    claim = Claim("a", "", "", ("figure1", "figure2"), lambda first, second: judged([exact("a", [True])], ""))
    assert judge(claim, {"figure1": [{}], "figure2": []}).evidence == "This run does not have figure2."
    assert judge(claim, {"figure1": [{}], "figure2": []}).verdict() == "not run"
    assert judge(claim, {"figure1": [{}], "figure2": [{}]}).verdict() == "holds"
