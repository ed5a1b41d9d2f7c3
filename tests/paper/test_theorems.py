"""Theorems and remarks: numbers against slow computations in the space itself, and the verdicts on their claims."""

from itertools import product

import numpy as np
import oracles
import pytest
from paper_samples import CELL, drawn, gram, verdict
from scipy.optimize import minimize_scalar

from muhat.datasets import paper_mixture
from paper import theorems
from paper.comparison import select
from paper.experiment import generator


@pytest.fixture(scope="module")
def rows():
    return theorems.EXPERIMENT.run(CELL, None)


def test_scores_are_those_of_refits():
    _, X = drawn("theorems", theorems.N, theorems.D)
    K = gram("LIN", X)
    for share in (1e-3, 0.1, 10.0):
        lam = share * np.linalg.eigvalsh(K)[-1]
        assert theorems.printed_score(K, lam) == pytest.approx(oracles.theorem4_literal(K, lam), rel=1e-9)
        assert theorems.kept_span_score(K, lam) == pytest.approx(oracles.theorem4_score(K, lam), rel=1e-9)
        assert theorems.refit_score(K, lam) == pytest.approx(oracles.deletion_score(K, lam), rel=1e-9)


def test_theorem_3_rows(rows):
    _, X = drawn("theorems", theorems.N, theorems.D)
    K = gram("LIN", X)
    (row,) = select(rows, theorem="3", kernel="LIN")
    least = minimize_scalar(lambda alpha: oracles.simple_score(K, alpha), bounds=(0, 1), method="bounded")
    assert row["refits"] == pytest.approx(least.x, abs=1e-4)
    assert row["printed"] == pytest.approx(oracles.simple_shrinkage(K), rel=1e-9)
    assert row["lam"] == pytest.approx(row["printed"] / (1 - row["printed"]), rel=1e-9)


def test_theorem_4_rows_say_how_far_it_is_from_refits(rows):
    _, X = drawn("theorems", theorems.N, theorems.D)
    K = gram("LIN", X)
    (row,) = select(rows, theorem="4", kernel="LIN")
    lams = np.array(theorems.RIDGES) * np.linalg.eigvalsh(K)[-1]
    distances = [abs(oracles.deletion_score(K, lam) / oracles.theorem4_score(K, lam) - 1) for lam in lams]
    assert row["λ"] == pytest.approx(max(distances), rel=1e-6)
    assert max(row["ours"], row["printed"]) < 1e-9


def test_theorem_1_rows_by_loops_in_the_space_itself(rows):
    rng = generator("theorems", CELL)
    P = paper_mixture(theorems.D, random_state=rng)
    others = generator("theorems", CELL, 1)
    theorems.stein_rows(others)
    points = P.sample(theorems.POINTS, random_state=others)
    population, direction = points[:-1], points[-1]
    mean = population.mean(axis=0)
    for name, factor in theorems.TARGETS.items():
        (row,) = select(rows, theorem="1", kernel="LIN", target=name)

        def risk(alpha, factor=factor):
            pairs = product(population, repeat=2)
            return np.mean(
                [((alpha * factor * direction + (1 - alpha) * (x + y) / 2 - mean) ** 2).sum() for x, y in pairs]
            )

        assert row["KME"] == pytest.approx(risk(0.0), rel=1e-9)
        assert row["1.5"] == pytest.approx(risk(1.5 * row["alpha"]), rel=1e-9)
        assert minimize_scalar(risk, bracket=(0, 1)).x == pytest.approx(row["alpha"], abs=1e-6)


def test_theorem_2_rows_in_coordinates(rows):
    _, X = drawn("theorems", theorems.N, theorems.D)
    lam = np.trace(X @ X.T) / theorems.N
    estimate = X.T @ oracles.tikhonov_weights(X @ X.T, lam)
    (row,) = select(rows, theorem="2", kernel="LIN")
    for reading, C in (("sum", X.T @ X), ("average", X.T @ X / theorems.N)):
        written = C @ np.linalg.solve(C + lam * np.eye(theorems.D), X.mean(axis=0))
        distance = np.linalg.norm(written - estimate) / np.linalg.norm(X.mean(axis=0))
        assert row[reading] == pytest.approx(distance, abs=1e-9)
    assert row["average"] > 0.1


def test_james_stein_risk_by_monte_carlo(rows):
    rng = np.random.default_rng(0)
    for row in select(rows, theorem="stein"):
        theta = np.zeros(row["d"])
        theta[0] = row["length"]
        mean, error = oracles.james_stein_risk(theta, 1.0, 1, 40_000, rng)
        assert row["risk"] == pytest.approx(mean / row["d"], abs=4 * error / row["d"])


def test_entries_that_matter_by_hand():
    K = np.array([[2.0, 0.5, 0.1], [0.5, 1.0, 0.2], [0.1, 0.2, 3.0]])
    assert theorems.entries_that_matter(K) == 6


def test_the_positive_part_gains_near_the_origin_and_the_search_costs_ever_less(rows):
    near = [row for row in select(rows, theorem="positive part") if row["length"] == 0.0]
    assert all(row["positive"] < row["JS"] for row in near)
    shares = [row["share"] for row in select(rows, theorem="search")]
    assert sorted(shares, reverse=True) == shares
    assert [row for row in theorems.EXPERIMENT.run({**CELL, "repetition": 1}, None) if row["theorem"] == "search"] == []


@pytest.mark.parametrize("name", ["F_theorem4", "F_loo"])
def test_the_extreme_weights_are_those_of_all_estimators_and_samples(rows, name):
    repeated = [{**row, "repetition": i} for i in range(3) for row in rows]
    select(repeated, theorem="weights")[1].update({f"{name}_smallest": -100.25, f"{name}_largest": 107.5})
    lines, _ = theorems.inexact_table(repeated)
    assert "from -100.25/n to 107.50/n" in [line["shown"] for line in lines]


def theorem_rows(**changes):
    """Rows of which all that the paper says is true, but for the changes by theorem; one sample in three is left."""
    refits = {"λ": 0.0, "λ/(n−1)": 0.3, "nλ/(n−1)": 0.2}
    true = {
        "stein": {"d": 3, "length": 1.0, "KME": 3.0, "JS": 2.0, "risk": 0.7},
        "1": {"kernel": "LIN", "KME": 1.0, "0.5": 0.8, "1": 0.7, "1.5": 0.8, "2": 1.0, "error": 0.0},
        "2": {"kernel": "LIN", "sum": 0.0, "average": 0.5, "factor_lowest": 0.1, "factor_highest": 0.9},
        "3": {"kernel": "LIN", "error": 0.0, "lam": 0.2, "printed": 0.1},
        "4": {"kernel": "LIN", "printed": 0.0, "ours": 0.0, **refits},
        "weights": {"entries": 20, "error_from_sums": 0.0, "F_theorem4_largest": 0.9, "F_loo_largest": 0.9},
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
    "theorem-3-minimises-loocv": ("theorem3", {"lam": -0.2, "error": 1e-3}),
    "theorem-4-is-loocv": ("theorem4", {"λ": 1e-3}),
    "s-kmse-selection-linear-cost": ("theoremweights", {"entries": 210, "error_from_sums": 1.0}),
}


@pytest.mark.parametrize("claim", THEOREMS)
def test_theorems(claim):
    part, change = THEOREMS[claim]
    assert verdict(claim, theorems=theorem_rows()) == "holds"
    changed = theorem_rows(**{part: change})
    assert verdict(claim, theorems=changed) == "does not hold"
    assert verdict(claim, theorems=[*theorem_rows(), *changed]) == "holds in part"
    assert verdict(claim) == "not run"


def test_samples_of_mean_zero_that_we_added_do_not_judge_lambda():
    ours = {"theorem": "3", "kernel": theorems.MEAN_ZERO, "error": 0.0, "lam": -3.0, "printed": 1.5, "repetition": 0}
    assert verdict("theorem-3-minimises-loocv", theorems=[*theorem_rows(), ours]) == "holds"


def test_the_cost_of_selection_depends_on_what_is_known():
    changed = theorem_rows(theoremweights={"entries": 210})
    assert verdict("s-kmse-selection-linear-cost", theorems=changed) == "holds in part"


def test_theorem_4_is_judged_by_the_nearest_ridge_and_without_singular_matrices():
    claim = "theorem-4-is-loocv"
    other = {"λ": 0.3, "nλ/(n−1)": 0.0}
    assert verdict(claim, theorems=theorem_rows(theorem4=other)) == "holds"
    singular = {"theorem": "4", "kernel": "LIN, singular", "printed": None, "ours": 1.0, "span": 1.0}
    assert verdict(claim, theorems=[*theorem_rows(), singular]) == "holds"


def test_weights_are_judged_by_estimator():
    claim = "weights-below-one-over-n"
    large = {"F_theorem4_largest": 1.1}
    assert verdict(claim, theorems=theorem_rows()) == "holds"
    assert verdict(claim, theorems=theorem_rows(theoremweights=large)) == "holds in part"
    both = theorem_rows(theoremweights=large, theorem3={"printed": -0.1})
    assert verdict(claim, theorems=both) == "does not hold"


def test_the_share_of_the_search_must_fall_and_end_below_one_per_cent():
    def rows(*shares):
        return [{"theorem": "search", "n": 10**i, "scored": 50, "share": share} for i, share in enumerate(shares)]

    claim = "cross-validation-costs-little"
    assert verdict(claim, theorems=rows(0.5, 0.01, 0.001)) == "holds"
    assert verdict(claim, theorems=rows(0.5, 0.4)) == "holds in part"
    assert verdict(claim, theorems=rows(0.1, 0.2)) == "does not hold"
