"""Figure 3: errors against plain linear algebra, and the verdicts on its claims."""

import re

import numpy as np
import pytest
from paper_samples import judged
from sklearn.base import clone
from sklearn.model_selection import train_test_split

from muhat.datasets import load_uci
from muhat.paper.experiment import Plan, generator
from muhat.paper.figure3 import COMPONENTS, EXPERIMENT, NAME, READINGS, SCENARIO_LABELS, SCENARIOS
from muhat.paper.protocol import UCI_TABLES

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
    assert {cell["set"] for cell in EXPERIMENT.cells(Plan(quick=True))} == {"wine", "wdbc"}
    assert len(EXPERIMENT.cells(Plan())) == 10 * len(UCI_TABLES)


def test_a_section_of_one_repetition_has_no_nan(rows):
    section = EXPERIMENT.section(rows)
    assert [row["reading"] for row in section.summary] == list(READINGS)
    assert section.summary[0]["S"]["error"] is None
    assert "nan" not in section.pictures[0].finding
    assert section.pictures[0].svg.startswith("<svg")


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


@pytest.mark.parametrize(
    ("factors", "verdict"),
    [
        ({"S_COSE": 0.7, "F_theorem4_COSE": 0.8}, "holds"),
        ({"S_COSE": 0.7, "F_theorem4_COSE": 1.0}, "holds in part"),
        ({"S_COSE": 1.1, "F_theorem4_COSE": 1.2}, "does not hold"),
    ],
)
def test_verdicts_on_cose(factors, verdict):
    assert judged("pca-cose-outperforms", figure3=constructed(**factors)).verdict == verdict


def test_the_evidence_has_the_mean_change():
    evidence = judged("pca-cose-outperforms", figure3=constructed(S_COSE=0.7, F_theorem4_COSE=1.2)).evidence
    told = dict(re.findall(r"([^;:]+) E1 \d:\d \(([-+\d.]+)%\)", evidence))
    changes = {name.strip(): float(change) for name, change in told.items()}
    assert changes[SCENARIO_LABELS["S_COSE"]] == pytest.approx(-30, abs=0.1)
    assert changes[SCENARIO_LABELS["F_theorem4_COSE"]] == pytest.approx(20, abs=0.1)


@pytest.mark.parametrize("claim", ["pca-cose-outperforms", "pca-centring-improves-little"])
def test_one_repetition_decides_nothing(rows, claim):
    assert judged(claim, figure3=rows).verdict == "cannot be checked"


def test_nothing_is_said_without_rows():
    assert judged("pca-cose-outperforms").verdict == "cannot be checked"


@pytest.mark.parametrize(
    ("factors", "verdict"),
    [
        ({"S": 0.99, "F_theorem4": 0.98, "S_COSE": 0.7, "F_theorem4_COSE": 0.8}, "holds"),
        ({"S": 1.01, "F_theorem4": 1.02, "S_COSE": 1.1, "F_theorem4_COSE": 1.1}, "does not hold"),
    ],
)
def test_verdicts_on_centring(factors, verdict):
    assert judged("pca-centring-improves-little", figure3=constructed(**factors)).verdict == verdict


def test_rounding_decides_nothing():
    rows = [{**row, "S_COSE": 1.0 - 1e-15, "F_theorem4_COSE": 1.0 - 1e-15} for row in constructed()]
    rows = [{**row, "S": 1.0, "F_theorem4": 1.0} for row in rows]
    assert judged("pca-cose-outperforms", figure3=rows).verdict == "does not hold"
    assert "0 for, 0 against" in judged("pca-cose-outperforms", figure3=rows).evidence
