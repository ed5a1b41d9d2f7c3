"""Verdicts on the claims about theory and synthetic data, each on rows made so that the outcome is known."""

from itertools import product

import pytest

from muhat.reproduce.claims.base import Claim, Count, Finding, count_below, judge
from muhat.reproduce.claims.counts import counted, in_parts, not_above
from muhat.reproduce.claims.synthetic import CLAIMS
from muhat.reproduce.experiments import figure1, kernel_choice
from muhat.reproduce.experiments.statistics import Estimate

KERNELS = ("LIN", "POLY2", "POLY3", "RBF")
SHRUNK = ("S", "F_theorem4", "F_deletion")
BETTER, WORSE, EQUAL = 0.8, 1.2, 1.0


def verdict(claim, **rows):
    (chosen,) = [candidate for candidate in CLAIMS if candidate.id == claim]
    finding = judge(chosen, rows)
    assert "nan" not in finding.evidence
    return finding.verdict


def measured(factors, repetitions=8):
    """Rows in which each name has its factor times KME's loss, and a little noise that cancels."""
    rows = []
    for i in range(repetitions):
        base, noise = 1.0 + 0.1 * (i // 2), 0.001 * (-1) ** i
        rows.append({"repetition": i, "KME": base, **{name: base * (f + noise) for name, f in factors.items()}})
    return rows


# ---------------------------------------------------------------- the shared machinery


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
    claim = Claim("a", "", "", ("figure1", "figure2"), lambda rows: Finding("holds", "seen"))
    assert judge(claim, {"figure1": [{}], "figure2": []}) == Finding("cannot be checked", "not run: figure2")
    assert judge(claim, {"figure1": [{}], "figure2": [{}]}) == Finding("holds", "seen")


def test_two_standard_errors_decide():
    estimates = [Estimate(0.79, 0.1), Estimate(0.81, 0.1), Estimate(1.19, 0.1), Estimate(1.21, 0.1)]
    assert count_below(estimates, 1.0) == Count(1, 1, 4)
    assert not_above(estimates, 1.0) == Count(3, 1, 4)


def test_rounding_and_single_repetitions_decide_nothing():
    estimates = [Estimate(1.0 - 1e-13, 0.0), Estimate(0.5, float("nan"))]
    assert count_below(estimates, 1.0) == Count(0, 0, 1)
    finding = counted({"S": estimates[1:]}, ["S"], 1.0, "ratio")
    assert finding == Finding(
        "cannot be checked", "ratio. S-KMSE: 0 for, 0 against, of 0, no standard error with one repetition"
    )


def test_evidence_tells_parts_that_are_not_judged():
    parts = {name: [Estimate(value, 0.01)] for name, value in zip(SHRUNK, (0.5, 0.6, 1.5), strict=True)}
    finding = counted(parts, SHRUNK[:2], 1.0, "ratio")
    assert finding.verdict == "holds"
    assert "together: 2 for, 0 against, of 2" in finding.evidence
    assert "F-KMSE (deletion): 0 for, 1 against, of 1, from 1.500 ± 0.010" in finding.evidence


def test_parts():
    assert in_parts(["holds", "holds"]) == "holds"
    assert in_parts(["holds", "does not hold"]) == "holds in part"


# ---------------------------------------------------------------- the theorems


def theorem_rows(**changes):
    """Rows of which all that the paper says is true, but for the changes by theorem; one sample in three is left."""
    refits = {"λ": 0.0, "λ/(n−1)": 0.3, "nλ/(n−1)": 0.2}
    true = {
        "stein": {"d": 3, "length": 1.0, "KME": 3.0, "JS": 2.0, "risk": 0.7},
        "1": {"kernel": "LIN", "KME": 1.0, "0.5": 0.8, "1": 0.7, "1.5": 0.8, "2": 1.0, "error": 0.0},
        "2": {"kernel": "LIN", "sum": 0.0, "average": 0.5, "factor_lowest": 0.1, "factor_highest": 0.9},
        "3": {"kernel": "LIN", "error": 0.0, "lam": 0.2, "printed": 0.1},
        "4": {"kernel": "LIN", "printed": 0.0, "ours": 0.0, **refits},
        "remarks": {"entries": 20, "F_theorem4_largest": 0.9, "F_deletion_largest": 0.9},
    }
    rows = []
    for i, (theorem, row) in product(range(3), true.items()):
        changed = changes.get(f"theorem{theorem}", {}) if i else {}
        rows.append({"theorem": theorem, "repetition": i, **row, **changed})
    return rows


THEOREMS = {
    "james-stein-dominates": ("theoremstein", {"risk": 1.0}),
    "theorem-1-better-for-any-target": ("theorem1", {"1": 1.0}),
    "theorem-2-form-of-f-kmse": ("theorem2", {"sum": 1e-3}),
    "theorem-3-minimises-loocv": ("theorem3", {"lam": -0.2}),
    "theorem-4-is-loocv": ("theorem4", {"λ": 1e-3}),
    "s-kmse-selection-linear-cost": ("theoremremarks", {"entries": 210}),
}


@pytest.mark.parametrize("claim", THEOREMS)
def test_theorems(claim):
    part, change = THEOREMS[claim]
    assert verdict(claim, theorems=theorem_rows()) == "holds"
    assert verdict(claim, theorems=theorem_rows(**{part: change})) == "does not hold"
    changed = theorem_rows(**{part: change})
    assert verdict(claim, theorems=[*theorem_rows(), *changed]) == "holds in part"
    assert verdict(claim) == "cannot be checked"


def test_theorem_3_needs_the_minimum_too():
    assert verdict("theorem-3-minimises-loocv", theorems=theorem_rows(theorem3={"error": 1e-3})) == "does not hold"


def test_theorem_4_is_judged_by_the_nearest_ridge_and_without_singular_matrices():
    claim = "theorem-4-is-loocv"
    other = {"λ": 0.3, "nλ/(n−1)": 0.0}
    assert verdict(claim, theorems=theorem_rows(theorem4=other)) == "holds"
    singular = {"theorem": "4", "kernel": "LIN, singular", "printed": None, "ours": 1.0, "span": 1.0}
    assert verdict(claim, theorems=[*theorem_rows(), singular]) == "holds"


def test_weights():
    claim = "weights-below-one-over-n"
    large = {"F_theorem4_largest": 1.1}
    assert verdict(claim, theorems=theorem_rows()) == "holds"
    assert verdict(claim, theorems=theorem_rows(theoremremarks=large)) == "holds in part"
    both = theorem_rows(theoremremarks=large, theorem3={"printed": -0.1})
    assert verdict(claim, theorems=both) == "does not hold"


# ---------------------------------------------------------------- which kernels gain


def kernel_rows(factor, spread, repetitions=8):
    """Rows with ``factor(family, width)`` for all estimators."""
    rows = []
    for family, width in product(kernel_choice.FAMILIES, (0.1, 1.0, 10.0)):
        head = {"family": family, "width": width, "spread": spread(family, width)}
        rows += [head | row for row in measured(dict.fromkeys(SHRUNK, factor(family, width)), repetitions)]
    return rows


def falling(family, width):
    """Narrow kernels gain more, and Laplacian ones more than Gaussian ones."""
    return {0.1: 0.5, 1.0: 0.7, 10.0: 0.9}[width] - {"RBF": 0.0, "L1": 0.05, "L2": 0.1}[family]


def rising(family, width):
    return 1.0 - falling(family, width)


@pytest.mark.parametrize("claim", ["slow-decay-gains-more", "narrow-kernels-gain-more", "laplacian-gains-more"])
def test_kernels(claim):
    assert verdict(claim, kernel_choice=kernel_rows(falling, spread=rising)) == "holds"
    assert verdict(claim, kernel_choice=kernel_rows(rising, spread=rising)) == "does not hold"
    assert verdict(claim, kernel_choice=kernel_rows(lambda *_: EQUAL, spread=rising)) == "does not hold"
    assert verdict(claim, kernel_choice=kernel_rows(falling, rising, repetitions=1)) == "cannot be checked"


def test_kernels_in_part():
    def except_wide(family, width):
        return falling(family, width) if width < 10 else 0.7

    for claim in ("slow-decay-gains-more", "narrow-kernels-gain-more", "laplacian-gains-more"):
        assert verdict(claim, kernel_choice=kernel_rows(except_wide, spread=rising)) == "holds in part"


def test_decay_goes_by_the_spread_and_not_by_the_width():
    assert verdict("slow-decay-gains-more", kernel_choice=kernel_rows(falling, spread=falling)) == "does not hold"


# ---------------------------------------------------------------- weights that sum to one


def normalised_rows(repetitions=8, zeros=0.2, **factors):
    names = [f"{name}_normalised" for name in SHRUNK] + ["simplex", "simplex_half", "affine", "affine_half"]
    factors = dict.fromkeys((*SHRUNK, *names), EQUAL) | factors
    return [
        {"kernel": kernel, "n": n, "zeros": zeros, "zeros_half": zeros, **row}
        for kernel, n in product(KERNELS, (10, 20))
        for row in measured(factors, repetitions)
    ]


def test_sum_to_one():
    claim = "sum-to-one-unlikely-to-improve"
    assert verdict(claim, normalisation=normalised_rows(simplex=WORSE)) == "holds"
    assert verdict(claim, normalisation=normalised_rows(simplex=EQUAL, affine=BETTER)) == "holds"
    assert verdict(claim, normalisation=normalised_rows(simplex=BETTER, affine=WORSE)) == "does not hold"
    mixed = [row | {"simplex": row["KME"] * 0.5} if row["kernel"] == "RBF" else row for row in normalised_rows()]
    assert verdict(claim, normalisation=mixed) == "holds in part"
    assert verdict(claim, normalisation=normalised_rows(repetitions=1)) == "cannot be checked"


def test_dividing_by_the_sum():
    claim = "post-normalising-deteriorates"
    shrunk = dict.fromkeys(SHRUNK, BETTER)
    assert verdict(claim, normalisation=normalised_rows(**shrunk)) == "holds"
    assert verdict(claim, normalisation=normalised_rows(**dict.fromkeys(SHRUNK, WORSE))) == "does not hold"
    without_f = shrunk | {"F_theorem4": EQUAL + 0.01}
    assert verdict(claim, normalisation=normalised_rows(**without_f)) == "does not hold"
    some = [row | {"S": row["KME"]} if row["kernel"] == "RBF" else row for row in normalised_rows(**shrunk)]
    assert verdict(claim, normalisation=some) == "holds in part"
    assert verdict(claim, normalisation=normalised_rows(1, **shrunk)) == "cannot be checked"


# ---------------------------------------------------------------- figures 1 and 2


def figure1_rows(factor, repetitions=8):
    """Rows with ``factor(name, kernel, c)``."""
    rows = []
    for kernel, c in product(KERNELS, figure1.FACTORS):
        factors = {name: factor(name, kernel, c) for name in figure1.READINGS}
        rows += [{"kernel": kernel, "factor": c, **row} for row in measured(factors, repetitions)]
    return rows


def test_figure1_tends_to_outperform():
    claim = "figure-1-tend-to-outperform"
    assert verdict(claim, figure1=figure1_rows(lambda *_: BETTER)) == "holds"
    assert verdict(claim, figure1=figure1_rows(lambda *_: WORSE)) == "does not hold"
    only_f = figure1_rows(lambda name, *_: BETTER if name == "F" else EQUAL)
    assert verdict(claim, figure1=only_f) == "holds in part"
    only_scaled = figure1_rows(lambda name, *_: BETTER if name == "S_scaled" else WORSE)
    assert verdict(claim, figure1=only_scaled) == "does not hold"
    assert verdict(claim, figure1=figure1_rows(lambda *_: BETTER, repetitions=1)) == "cannot be checked"


def test_figure1_cases_at_large_lambda():
    claim = "figure-1-large-lambda-deteriorates"

    def once(name, kernel, c):
        return WORSE if (name, kernel, c) == ("F", "LIN", 10.0) else BETTER

    rows = figure1_rows(once)
    assert verdict(claim, figure1=rows) == "holds"
    assert verdict(claim, figure1=figure1_rows(lambda *_: BETTER)) == "does not hold"
    assert verdict(claim, figure1=figure1_rows(lambda *_: WORSE)) == "holds"
    small = figure1_rows(lambda name, kernel, c: WORSE if c < 10 or name == "S_scaled" else BETTER)
    assert verdict(claim, figure1=small) == "does not hold"
    assert verdict(claim, figure1=figure1_rows(once, repetitions=1)) == "cannot be checked"
    (chosen,) = [candidate for candidate in CLAIMS if candidate.id == claim]
    evidence = judge(chosen, {"figure1": rows}).evidence
    assert "F-KMSE: worse in 1 of 4 kernels, from 0.800" in evidence
    assert "worse with it in 25% (LIN 100%)" in evidence


def figure2_rows(factor, repetitions=8):
    """Rows with ``factor(name, n, d)``; two dimensions, which no claim is about, are as bad as can be."""
    settings = [(10, 30), (20, 30), (100, 30), (20, 10), (20, 100)]
    rows = []
    for kernel, (n, d) in product(KERNELS, [*settings, (20, 2)]):
        factors = {name: factor(name, n, d) if d > 2 else 9.0 for name in SHRUNK}
        rows += [{"kernel": kernel, "n": n, "d": d, **row} for row in measured(factors, repetitions)]
    return rows


FIGURE2 = {
    "figure-2-outperform-kme": {
        "holds": lambda *_: BETTER,
        "holds in part": lambda name, n, d: WORSE if (name, n) == ("F_theorem4", 100) else BETTER,
        "does not hold": lambda name, *_: BETTER if name == "S" else WORSE,
    },
    "figure-2-s-better-than-f": {
        "holds": lambda name, *_: 0.8 if name == "S" else 0.85,
        "holds in part": lambda name, n, d: 0.8 if name == "S" and n < 100 else 0.85,
        "does not hold": lambda name, *_: 0.85 if name == "S" else 0.8,
    },
    "figure-2-large-d-small-n": {
        "holds": lambda name, n, d: 0.7 + 0.002 * n - 0.001 * d,
        "holds in part": lambda name, n, d: 0.7 + 0.002 * n + (0.001 * d if name == "S" else -0.001 * d),
        "does not hold": lambda name, n, d: 0.7 - 0.002 * n + 0.001 * d,
    },
    "figure-2-worst-case-as-good": {
        "holds": lambda name, n, d: EQUAL if n == 100 else BETTER,
        "holds in part": lambda name, n, d: WORSE if (name, n) == ("F_theorem4", 100) else EQUAL,
        "does not hold": lambda *_: WORSE,
    },
}


@pytest.mark.parametrize("claim", FIGURE2)
def test_figure2(claim):
    for expected, factor in FIGURE2[claim].items():
        assert verdict(claim, figure2=figure2_rows(factor)) == expected
    assert verdict(claim, figure2=figure2_rows(lambda *_: BETTER, repetitions=1)) == "cannot be checked"


def test_every_claim_has_an_id_of_its_own_and_is_tested_here():
    ids = [claim.id for claim in CLAIMS]
    others = [claim for claim in ids if claim not in THEOREMS and claim not in FIGURE2]
    assert len(set(ids)) == len(ids)
    assert others == [
        "slow-decay-gains-more",
        "narrow-kernels-gain-more",
        "laplacian-gains-more",
        "weights-below-one-over-n",
        "sum-to-one-unlikely-to-improve",
        "post-normalising-deteriorates",
        "figure-1-tend-to-outperform",
        "figure-1-large-lambda-deteriorates",
    ]
