"""Statistics of paired comparisons: against the bootstrap, with rounding errors, and for unknown values."""

import numpy as np
import pytest

from paper.comparison import (
    Estimate,
    compared,
    mean_ratio,
    ratio_difference,
    relative,
    share_below,
    shown,
    sign_test,
)


def test_rounding_is_no_improvement():
    base = np.array([1.0, 1.0, 1e9])
    assert share_below(base * (1 - 1e-10), base) == 0.0
    assert share_below(base * (1 - 1e-8), base) == 1.0


def test_ratios_and_their_errors_by_bootstrap():
    rng = np.random.default_rng(0)
    base = rng.gamma(4.0, size=400)
    values, others = base * rng.uniform(0.5, 1.1, 400), base * rng.uniform(0.7, 1.1, 400)
    draws = rng.integers(400, size=(2000, 400))
    ratios = values[draws].mean(axis=1) / base[draws].mean(axis=1)
    gaps = ratios - others[draws].mean(axis=1) / base[draws].mean(axis=1)
    ratio = mean_ratio(values, base)
    assert ratio.value == pytest.approx(values.sum() / base.sum())
    assert ratio.error == pytest.approx(ratios.std(), rel=0.1)
    pairs = [[{"S": v, "KME": b} for v, b in zip(each, base, strict=True)] for each in (values, others)]
    assert ratio_difference(*pairs, "S").error == pytest.approx(gaps.std(), rel=0.1)
    assert relative(pairs[0], "S") == ratio


def test_what_is_unknown_is_none_and_shown_as_such():
    rows = [{"KME": 2.0, "S": 1.0, "F": None}]
    summary = compared(rows, ("S", "F"))
    assert summary["S"] == {"ratio": 0.5, "error": None, "improved": 1.0}
    assert summary["F"] == {"ratio": None, "error": None, "improved": None}
    assert [shown(summary[name]) for name in ("S", "F")] == ["0.500, 100 %", "–"]
    assert shown({"ratio": 0.5, "error": 0.01, "improved": 0.72}) == "0.500 ± 0.010, 72 %"
    assert str(Estimate(0.5, float("nan"))) == "0.500"


@pytest.mark.parametrize(("below", "margin"), [(10, 3.0), (9, 2.0), (8, 1.5), (5, 0.0)])
def test_sign_test_as_a_normal_score(below, margin):
    """Of ten pairs, ten decide at three standard errors, nine at two and eight at one and a half."""
    base = np.arange(10.0)
    values = base + np.where(np.arange(10) < below, -1.0, 1.0)
    score = sign_test(values, base)
    assert score < -margin or below == 5
    assert sign_test(base, values) == -score
    assert sign_test(base, base) == 0.0
