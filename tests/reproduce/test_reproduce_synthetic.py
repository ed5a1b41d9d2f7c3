"""The experiments on synthetic data and on the theorems: cells against other computations, and their sections."""

import json
from itertools import product

import numpy as np
import oracles
import pytest
from scipy.optimize import minimize, minimize_scalar

from muhat.datasets import paper_mixture
from muhat.reproduce.experiment import Plan, generator
from muhat.reproduce.experiments import (
    figure1,
    figure2,
    inexact,
    kernel_choice,
    normalisation,
    theorem_checks,
    theorems,
)
from muhat.reproduce.experiments.comparison import compared, ratio_difference, relative, shown
from muhat.reproduce.experiments.statistics import Estimate, mean_ratio, select, share_below

MODULES = (figure1, figure2, kernel_choice, normalisation, theorems)
CELL = {"seed": 0, "repetition": 0}
CELLS = {
    "figure1": CELL,
    "figure2": {**CELL, "d": 10, "n": [6]},
    "kernel_choice": {**CELL, "width": [0.5]},
    "normalisation": CELL,
    "theorems": CELL,
}
POLYNOMIAL_DEGREES = {"LIN": (1, 0.0), "POLY2": (2, 1.0), "POLY3": (3, 1.0)}


@pytest.fixture(scope="module")
def rows():
    return {module.NAME: module.EXPERIMENT.run(CELLS[module.NAME], None) for module in MODULES}


def drawn(name, n, d, *stream):
    """The distribution of the cell, and its sample."""
    rng = generator(name, CELL, *stream)
    P = paper_mixture(d, random_state=rng)
    return P, P.sample(n, random_state=rng)


def gram(kernel, X, Y=None, bandwidth=None):
    Y = X if Y is None else Y
    if kernel == "RBF":
        return oracles.gram(lambda x, y: oracles.gaussian(x, y, bandwidth), X, Y)
    degree, constant = POLYNOMIAL_DEGREES[kernel]
    return oracles.gram(lambda x, y: oracles.polynomial(x, y, degree, constant), X, Y)


def feature_loss(kernel, P, X, beta):
    """The loss in coordinates: of x for LIN, and of (1, √2 x, x xᵀ) for POLY2."""
    mean = P.weights @ P.means
    linear = ((X.T @ beta - mean) ** 2).sum()
    if kernel == "LIN":
        return linear
    moment = np.einsum("c,cij->ij", P.weights, P.covariances + P.means[:, :, None] * P.means[:, None, :])
    return (beta.sum() - 1) ** 2 + 2 * linear + (((X.T * beta) @ X - moment) ** 2).sum()


@pytest.mark.parametrize("kernel", ["LIN", "POLY2"])
def test_figure1_agrees_with_explicit_features(rows, kernel):
    P, X = drawn("figure1", figure1.N, figure1.D)
    K, uniform = gram(kernel, X), oracles.uniform(figure1.N)
    eigenvalues = np.linalg.eigvalsh(K)
    for row in select(rows["figure1"], kernel=kernel):
        lam = row["factor"] * eigenvalues[0]
        weights = {
            "KME": uniform,
            "S_literal": uniform / (1 + lam),
            "S_scaled": uniform / (1 + lam / eigenvalues[-1]),
            "F": oracles.tikhonov_weights(K, lam),
        }
        for name, beta in weights.items():
            assert row[name] == pytest.approx(feature_loss(kernel, P, X, beta), rel=1e-9)


@pytest.mark.parametrize("kernel", ["POLY3", "RBF"])
def test_figure1_agrees_with_monte_carlo(rows, kernel):
    P, X = drawn("figure1", figure1.N, figure1.D)
    rng = np.random.default_rng(1)
    first, second = (oracles.sample_mixture(P.weights, P.means, P.covariances, 4000, rng) for _ in range(2))
    bandwidth = oracles.gaussian_median_bandwidth(X)
    beta = oracles.uniform(figure1.N)
    inside = beta @ gram(kernel, X, bandwidth=bandwidth) @ beta
    parts = [beta @ gram(kernel, X, Z, bandwidth) for Z in (first, second)]
    if kernel == "RBF":
        between = oracles.gaussian(first, second, bandwidth)
    else:
        between = oracles.polynomial(first, second, 3, 1.0)
    mean, error = oracles.monte_carlo(inside - parts[0] - parts[1] + between)
    assert select(rows["figure1"], kernel=kernel)[0]["KME"] == pytest.approx(mean, abs=4 * error)
    assert error < 0.6 * mean


def test_figure2_agrees_with_refits_and_explicit_features(rows):
    P, X = drawn("figure2", figure2.LARGEST, 10, 10)
    X = X[:6]
    for kernel in ("LIN", "POLY2"):
        (row,) = select(rows["figure2"], kernel=kernel)
        K, uniform = gram(kernel, X), oracles.uniform(6)
        alpha = np.clip(oracles.simple_shrinkage(K), 0, 1)
        assert row["KME"] == pytest.approx(feature_loss(kernel, P, X, uniform), rel=1e-9)
        assert row["S"] == pytest.approx(feature_loss(kernel, P, X, (1 - alpha) * uniform), rel=1e-9)
        for name, pieces in (
            ("F_theorem4", oracles.theorem4_pieces_on),
            ("F_deletion", oracles.deletion_pieces_on),
        ):
            lam = oracles.grid_argmin(K, pieces)
            assert row[name] == pytest.approx(feature_loss(kernel, P, X, oracles.tikhonov_weights(K, lam)), rel=2e-3)


def test_figure2_oracle_is_theorem_1(rows):
    P, X = drawn("figure2", figure2.LARGEST, 10, 10)
    mean = P.weights @ P.means
    spread = sum(
        w * (np.trace(C) + ((m - mean) ** 2).sum()) for w, m, C in zip(P.weights, P.means, P.covariances, strict=True)
    )
    plain = spread / 6
    beta = (1 - plain / (plain + mean @ mean)) * oracles.uniform(6)
    (row,) = select(rows["figure2"], kernel="LIN")
    assert row["oracle"] == pytest.approx(feature_loss("LIN", P, X[:6], beta), rel=1e-9)


def test_kernel_choice_by_brute_force(rows):
    rng = generator("kernel_choice", CELL)
    P = paper_mixture(kernel_choice.D, random_state=rng)
    points = P.sample(kernel_choice.ATOMS, random_state=rng)
    X = points[rng.integers(kernel_choice.ATOMS, size=kernel_choice.N)]
    euclidean, cityblock = oracles.gaussian_median_bandwidth(X), oracles.laplace_median_bandwidth(X)
    width = 0.5
    kernels = {
        "RBF": lambda x, y: np.exp(-((x - y) ** 2).sum(-1) / (2 * width * euclidean**2)),
        "L1": lambda x, y: np.exp(-abs(x - y).sum(-1) / (2 * width * cityblock)),
        "L2": lambda x, y: np.exp(-np.sqrt(((x - y) ** 2).sum(-1)) / (2 * width * euclidean)),
    }
    whole = np.full(len(points), 1 / len(points))
    for family, k in kernels.items():
        (row,) = select(rows["kernel_choice"], family=family)
        K = oracles.gram(k, X, X)
        truth = oracles.gram(k, X, points) @ whole
        norm = np.mean([k(points, point).mean() for point in points])
        shrunk = (1 - np.clip(oracles.simple_shrinkage(K), 0, 1)) * oracles.uniform(len(X))
        for name, beta in (("KME", oracles.uniform(len(X))), ("S", shrunk)):
            assert row[name] == pytest.approx(beta @ K @ beta - 2 * beta @ truth + norm, rel=1e-8)
        eigenvalues = np.linalg.eigvalsh(K)
        assert row["spread"] == pytest.approx(eigenvalues.sum() ** 2 / (len(X) * (eigenvalues**2).sum()))


@pytest.mark.parametrize("kernel", ["LIN", "RBF"])
@pytest.mark.parametrize("alpha", [0.1, 0.5])
def test_programmes_agree_with_slsqp(kernel, alpha):
    _, X = drawn("normalisation", 7, 12)
    K = gram(kernel, X, bandwidth=oracles.gaussian_median_bandwidth(X))
    K = K / np.trace(K)
    n, lam = len(K), alpha / (1 - alpha)

    def least(penalty, bounds):
        found = minimize(
            lambda b: b @ K @ b - 2 * b @ K.mean(axis=1) + lam * b @ penalty @ b,
            oracles.uniform(n),
            jac=lambda b: 2 * (K @ b - K.mean(axis=1) + lam * penalty @ b),
            bounds=bounds,
            constraints={"type": "eq", "fun": lambda b: b.sum() - 1, "jac": np.ones_like},
            method="SLSQP",
            options={"ftol": 1e-15, "maxiter": 1000},
        )
        return found.x

    assert normalisation.affine_weights(K, alpha) == pytest.approx(least(K, None), abs=1e-5)
    assert normalisation.simplex_weights(K, alpha) == pytest.approx(least(K, [(0, None)] * n), abs=1e-5)
    flexible = normalisation.flexible_affine_weights(K, lam)
    assert flexible == pytest.approx(least(np.eye(n), None), abs=1e-6)
    assert flexible == pytest.approx(oracles.uniform(n))


def test_dividing_by_the_sum_undoes_simple_shrinkage(rows):
    for row in rows["normalisation"]:
        assert row["S_normalised"] == pytest.approx(row["KME"], rel=1e-9)
        assert row["flexible_affine"] == pytest.approx(row["KME"], rel=1e-6)
        assert 0 <= row["zeros"] < 1


def test_scores_are_those_of_refits():
    _, X = drawn("theorems", theorems.N, theorems.D)
    K = gram("LIN", X)
    for share in (1e-3, 0.1, 10.0):
        lam = share * np.linalg.eigvalsh(K)[-1]
        assert theorem_checks.printed_score(K, lam) == pytest.approx(oracles.theorem4_literal(K, lam), rel=1e-9)
        assert theorem_checks.kept_span_score(K, lam) == pytest.approx(oracles.theorem4_score(K, lam), rel=1e-9)
        assert theorem_checks.refit_score(K, lam) == pytest.approx(oracles.deletion_score(K, lam), rel=1e-9)


def test_theorem_3_rows(rows):
    _, X = drawn("theorems", theorems.N, theorems.D)
    K = gram("LIN", X)
    (row,) = select(rows["theorems"], theorem="3", kernel="LIN")
    least = minimize_scalar(lambda alpha: oracles.simple_score(K, alpha), bounds=(0, 1), method="bounded")
    assert row["refits"] == pytest.approx(least.x, abs=1e-4)
    assert row["printed"] == pytest.approx(oracles.simple_shrinkage(K), rel=1e-9)
    assert row["lam"] == pytest.approx(row["printed"] / (1 - row["printed"]), rel=1e-9)


def test_theorem_4_rows_say_how_far_it_is_from_refits(rows):
    _, X = drawn("theorems", theorems.N, theorems.D)
    K = gram("LIN", X)
    (row,) = select(rows["theorems"], theorem="4", kernel="LIN")
    lams = np.array(theorem_checks.RIDGES) * np.linalg.eigvalsh(K)[-1]
    distances = [abs(oracles.deletion_score(K, lam) / oracles.theorem4_score(K, lam) - 1) for lam in lams]
    assert row["λ"] == pytest.approx(max(distances), rel=1e-6)
    assert max(row["ours"], row["printed"]) < 1e-9


def test_theorem_1_rows_by_loops_in_the_space_itself(rows):
    rng = generator("theorems", CELL)
    P = paper_mixture(theorems.D, random_state=rng)
    others = generator("theorems", CELL, 1)
    theorem_checks.stein_rows(others)
    points = P.sample(theorems.POINTS, random_state=others)
    population, direction = points[:-1], points[-1]
    mean = population.mean(axis=0)
    for name, factor in theorem_checks.TARGETS.items():
        (row,) = select(rows["theorems"], theorem="1", kernel="LIN", target=name)

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
    (row,) = select(rows["theorems"], theorem="2", kernel="LIN")
    for reading, C in (("sum", X.T @ X), ("average", X.T @ X / theorems.N)):
        written = C @ np.linalg.solve(C + lam * np.eye(theorems.D), X.mean(axis=0))
        distance = np.linalg.norm(written - estimate) / np.linalg.norm(X.mean(axis=0))
        assert row[reading] == pytest.approx(distance, abs=1e-9)
    assert row["average"] > 0.1


def test_james_stein_risk_by_monte_carlo(rows):
    rng = np.random.default_rng(0)
    for row in select(rows["theorems"], theorem="stein"):
        theta = np.zeros(row["d"])
        theta[0] = row["length"]
        mean, error = oracles.james_stein_risk(theta, 1.0, 1, 40_000, rng)
        assert row["risk"] == pytest.approx(mean / row["d"], abs=4 * error / row["d"])


def test_remarks_by_hand():
    K = np.array([[2.0, 0.5, 0.1], [0.5, 1.0, 0.2], [0.1, 0.2, 3.0]])
    assert inexact.entries_that_matter(K) == 6
    assert inexact.shrunken_pca_difference(K, components=1) < 1e-12


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.NAME)
def test_a_cell_is_the_same_again(module, rows):
    again = module.EXPERIMENT.run(CELLS[module.NAME], None)
    assert again == rows[module.NAME]
    json.dumps(again, allow_nan=False)
    other = module.EXPERIMENT.run({**CELLS[module.NAME], "repetition": 1}, None)
    assert [row.get("KME") for row in other] != [row.get("KME") for row in again]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.NAME)
def test_section_of_one_repetition(module):
    plan = Plan(quick=True, repetitions=1)
    cells = module.EXPERIMENT.cells(plan)
    section = module.EXPERIMENT.section([row for cell in cells for row in module.EXPERIMENT.run(cell, None)])
    text = json.dumps(section.summary, allow_nan=False, ensure_ascii=False)
    assert module is theorems or '"error": null' in text
    for table in section.tables:
        assert all(len(line) == len(table.columns) for line in table.rows)
        assert not any("nan" in str(value).lower() for line in table.rows for value in line)
    for picture in section.pictures:
        assert picture.svg.startswith("<svg")
        assert "nan" not in picture.caption + picture.finding
        assert picture.finding.endswith(".")
    assert sum(map(module.EXPERIMENT.seconds, cells)) < 3


def test_settings_of_two_dimensions_have_a_table_of_their_own():
    losses = dict.fromkeys(("KME", "S", "F_theorem4", "F_deletion", "oracle"), 1.0)
    sizes = product(("LIN", "POLY2", "POLY3", "RBF"), ((10, 30), (20, 30), (20, 10), (20, 2)))
    rows = [{"kernel": kernel, "n": n, "d": d, **losses} for kernel, (n, d) in sizes]
    assert len(figure2.EXPERIMENT.section(rows).tables) == 2
    assert len(figure2.EXPERIMENT.section([row for row in rows if row["d"] > 2]).tables) == 1


@pytest.mark.parametrize("name", ["F_theorem4", "F_deletion"])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_the_extreme_weights_are_those_of_all_estimators_and_samples(rows, name, place):
    repeated = [{**row, "repetition": i} for i in range(3) for row in rows["theorems"]]
    remarks = select(repeated, theorem="remarks")
    remarks[place] |= {f"{name}_smallest": -100.25, f"{name}_largest": 107.5}
    lines, _ = inexact.inexact_table(repeated)
    assert "from -100.25/n to 107.50/n" in [line["shown"] for line in lines]


def test_rounding_is_no_improvement():
    base = np.array([1.0, 1.0, 1e9])
    assert share_below(base * (1 - 1e-13), base) == 0.0
    assert share_below(base * (1 - 1e-11), base) == 1.0


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
