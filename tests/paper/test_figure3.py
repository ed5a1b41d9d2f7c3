"""Figure 3: errors against plain linear algebra, and the verdicts on its claims."""

import numpy as np
import pytest
from paper_samples import judged, measured, verdict
from sklearn.base import clone
from sklearn.model_selection import train_test_split

from paper.data import UCI_TABLES, load_uci
from paper.experiment import Plan, generator
from paper.figure3 import (
    COLUMNS,
    COMPONENTS,
    EXPERIMENT,
    NAME,
    OPERATOR,
    POINTS,
    READINGS,
    SCENARIO_LABELS,
    SCENARIOS,
    SIZES,
)
from paper.protocol import population_and_sample

SETTING = {"seed": 3, "set": "wine", "repetition": 1}


@pytest.fixture(scope="module")
def rows():
    return EXPERIMENT.run(SETTING, None)


def squared(A, B):
    return ((A[:, None] - B[None]) ** 2).sum(axis=2)


def split():
    X = load_uci("wine").data
    X = X[np.lexsort(X.T)]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    seed = int(generator(NAME, SETTING).integers(2**31))
    return train_test_split(X, test_size=0.3, random_state=seed)


def simple_weights(K):
    n = len(K)
    diagonal, off = np.trace(K) / n, (K.sum() - np.trace(K)) / (n * (n - 1))
    return np.full(n, (1 - (diagonal - off) / (diagonal + (n - 2) * off)) / n)


def explicit_errors(mean, covariance):
    """Errors by explicit centring and eigendecompositions, K^c = LL' and L'BL as in the formulas."""
    train, test = split()
    n = len(train)
    distances = squared(train, train)
    width = np.median(distances[np.triu_indices(n, 1)])
    K, L = np.exp(-distances / 2 / width), np.exp(-squared(test, train) / 2 / width)
    beta = mean(K)
    H = np.eye(n) - np.outer(np.ones(n), beta)
    Kc = H @ K @ H.T
    Lc = (L - np.outer(np.ones(len(L)), beta @ K)) @ H.T
    B = n * covariance(Kc * Kc)
    g, U = np.linalg.eigh(Kc)
    kept = g > 1e-12 * g[-1]
    root = U[:, kept] * np.sqrt(g[kept])
    nu, w = np.linalg.eigh(root.T @ np.diag(B) @ root)
    c = (U[:, kept] / np.sqrt(g[kept]) @ w)[:, ::-1][:, :COMPONENTS]
    length = 1 - 2 * L @ beta + beta @ K @ beta
    literal = (L @ (H.T @ c)) ** 2
    eigenvectors = B[:, None] * (Kc @ c)
    unit = eigenvectors / np.linalg.norm(eigenvectors, axis=0) / np.sqrt(nu[::-1][:COMPONENTS])
    return {
        "E1": (length - ((Lc @ c) ** 2).sum(axis=1)).mean(),
        "E2": (1 - literal.sum(axis=1)).mean(),
        "diagnostic": (length - ((Lc @ unit) ** 2).sum(axis=1)).mean(),
    }


def uniform(K):
    return np.full(len(K), 1 / len(K))


@pytest.mark.parametrize(
    ("scenario", "mean", "covariance"),
    [("KME", uniform, uniform), ("S", simple_weights, uniform), ("S_COSE", uniform, simple_weights)],
)
def test_the_errors_are_those_of_explicit_centring_and_eigendecomposition(rows, scenario, mean, covariance):
    expected = explicit_errors(mean, covariance)
    assert {row["reading"]: row[scenario] for row in rows} == pytest.approx(expected, rel=1e-8)


def test_f_cose_agrees_with_explicit_weights(rows):
    estimator = clone(SCENARIOS["F_theorem4_COSE"]["covariance"]).set_params(kernel="precomputed")
    expected = explicit_errors(uniform, lambda K: estimator.fit(K).weights_)
    assert {row["reading"]: row["F_theorem4_COSE"] for row in rows} == pytest.approx(expected, rel=1e-6)


def test_cells_are_deterministic_and_quick_needs_no_data(rows):
    assert EXPERIMENT.run(SETTING, None) == rows
    assert {cell["set"] for cell in EXPERIMENT.cells(Plan(quick=True))} == {"wine", "wdbc", OPERATOR}
    assert sum(cell["set"] != OPERATOR for cell in EXPERIMENT.cells(Plan())) == 10 * len(UCI_TABLES)


def test_errors_of_the_operator_by_explicit_features():
    """Against the covariance of the population in coordinates, for a kernel that has them."""
    found = EXPERIMENT.run({"seed": 0, "repetition": 0, "set": OPERATOR}, None)
    assert [row["n"] for row in found] == list(SIZES)
    rng = generator(NAME, {"seed": 0, "repetition": 0}, 1)
    _, points = population_and_sample(POINTS, COLUMNS, rng)
    sample = points[rng.integers(POINTS, size=SIZES[-1])][: SIZES[0]]
    distances = squared(sample, sample)
    width = np.median(distances[np.triu_indices(SIZES[0], 1)])
    K = np.exp(-squared(points, points) / 2 / width)
    g, U = np.linalg.eigh(K)
    features = U * np.sqrt(g.clip(0))  # coordinates of the points; sample rows are among them
    places = [int(np.flatnonzero((points == row).all(axis=1))[0]) for row in sample]
    truth, plain = (np.cov(rows, rowvar=False, ddof=0) for rows in (features, features[places]))
    assert found[0]["KME"] == pytest.approx(((plain - truth) ** 2).sum(), rel=1e-6)


def test_a_section_of_one_repetition_has_no_nan(rows):
    operator = EXPERIMENT.run({"seed": 0, "repetition": 0, "set": OPERATOR}, None)
    section = EXPERIMENT.section([*rows, *operator])
    assert [row["reading"] for row in section.summary] == [*READINGS, "HS", "HS"]
    assert section.summary[0]["S"]["error"] is None
    assert "nan" not in section.shown[0].finding
    assert section.shown[0].svg.startswith("<svg")


def constructed(**factors):
    """Two sets of ten repetitions; a scenario's error is its factor times the standard's, with small scatter."""
    rng = np.random.default_rng(0)
    return [
        {
            "set": name, "repetition": i, "reading": reading, "KME": 1.0,
            **{scenario: factors.get(scenario, 1.0) + 1e-4 * rng.normal() for scenario in SCENARIO_LABELS},
        }
        for name in ("a", "b") for reading in READINGS for i in range(10)
    ]  # fmt: skip


CENTRING, COSE = "pca-centring-improves-little", "pca-cose-outperforms"


@pytest.mark.parametrize(
    ("claim", "factors", "expected"),
    [
        (COSE, {"S_COSE": 0.7, "F_theorem4_COSE": 0.8}, "holds"),
        (COSE, {"S_COSE": 0.7, "F_theorem4_COSE": 1.2}, "holds in part"),
        (COSE, {"S_COSE": 1.1, "F_theorem4_COSE": 1.2}, "does not hold"),
        (CENTRING, {"S": 0.99, "F_theorem4": 0.98, "S_COSE": 0.7, "F_theorem4_COSE": 0.8}, "holds"),
        (CENTRING, {"S": 0.99, "F_theorem4": 0.98, "S_COSE": 1.1, "F_theorem4_COSE": 1.1}, "holds in part"),
        (CENTRING, {"S": 1.01, "F_theorem4": 1.02, "S_COSE": 1.1, "F_theorem4_COSE": 1.1}, "holds in part"),
    ],
)
def test_verdicts(claim, factors, expected):
    assert verdict(claim, figure3=constructed(**factors)) == expected


def test_the_operator_is_judged_by_its_own_error():
    def rows(**factors):
        return [{"set": OPERATOR, "reading": "HS", "n": n, **row} for n in SIZES for row in measured(factors)]

    claim = "cose-improves-operator"
    assert verdict(claim, figure3=rows(S=0.9, F_theorem4=0.9, F_loo=0.9)) == "holds"
    assert verdict(claim, figure3=rows(S=0.9, F_theorem4=1.1, F_loo=0.9)) == "holds in part"
    assert verdict(claim, figure3=rows(S=1.1, F_theorem4=1.1, F_loo=0.9)) == "does not hold"


@pytest.mark.parametrize("claim", [CENTRING, COSE])
def test_nothing_is_decided_without_rows_and_by_rounding(claim):
    assert verdict(claim) == "not run"
    same = [{**row, **dict.fromkeys(SCENARIO_LABELS, 1.0 - 1e-15)} for row in constructed()]
    assert judged(claim, figure3=same).parts[0].count()[:2] == (0, 0)
