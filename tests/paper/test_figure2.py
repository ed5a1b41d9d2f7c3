"""Figure 2: losses against refits and explicit features, its sections, and the verdicts on its claims."""

from itertools import product

import numpy as np
import oracles
import pytest
from paper_samples import BETTER, CELL, EQUAL, KERNELS, SHRUNK, WORSE, drawn, feature_loss, gram, measured, verdict
from scipy.optimize import minimize_scalar

from paper import figure2
from paper.comparison import select
from paper.optimisers import READINGS


@pytest.fixture(scope="module")
def rows():
    return figure2.EXPERIMENT.run({**CELL, "d": 10, "n": [6]}, None)


def test_figure2_agrees_with_refits_and_explicit_features(rows):
    P, X = drawn("figure2", figure2.LARGEST, 10, 10)
    X = X[:6]
    for kernel in ("LIN", "POLY2"):
        (row,) = select(rows, kernel=kernel)
        K, uniform = gram(kernel, X), oracles.uniform(6)
        alpha = np.clip(oracles.simple_shrinkage(K), 0, 1)
        assert row["KME"] == pytest.approx(feature_loss(kernel, P, X, uniform), rel=1e-9)
        assert row["S"] == pytest.approx(feature_loss(kernel, P, X, (1 - alpha) * uniform), rel=1e-9)
        for name, pieces in (
            ("F_theorem4", oracles.theorem4_pieces_on),
            ("F_loo", oracles.deletion_pieces_on),
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
    (row,) = select(rows, kernel="LIN")
    assert row["oracle"] == pytest.approx(feature_loss("LIN", P, X[:6], beta), rel=1e-9)


def test_readings_of_the_optimiser_and_fixed_shares(rows):
    """Each reading has the loss of F-KMSE at its own λ; fixed shares are those of the largest eigenvalue."""
    P, X = drawn("figure2", figure2.LARGEST, 10, 10)
    K = gram("LIN", X[:6])
    (row,) = select(rows, kernel="LIN")
    for share, loss in zip(figure2.SHARES, row["F_shares"], strict=True):
        beta = oracles.tikhonov_weights(K, share * np.linalg.eigvalsh(K)[-1])
        assert loss == pytest.approx(feature_loss("LIN", P, X[:6], beta), rel=1e-8)
    bounded = minimize_scalar(lambda lam: oracles.theorem4_score(K, lam), bounds=(0, 1), method="bounded").x
    beta = oracles.tikhonov_weights(K, bounded)
    assert row["F_fminbnd_1"] == pytest.approx(feature_loss("LIN", P, X[:6], beta), rel=1e-4)


NAMES = (*SHRUNK, *READINGS, "oracle")


def figure2_rows(factor, repetitions=8, shares=BETTER):
    """Rows with ``factor(name, n, d)``; two dimensions, which no claim is about, are as bad as can be."""
    settings = [(10, 30), (20, 30), (100, 30), (20, 10), (20, 100)]
    designs = [(name, 20, 30) for name in figure2.DESIGNS]
    rows = []
    for kernel, (design, n, d) in product(KERNELS, [*((None, *each) for each in [*settings, (20, 2)]), *designs]):
        factors = {name: factor(name, n, d) if d > 2 else 9.0 for name in NAMES}
        head = {"design": design, "kernel": kernel, "n": n, "d": d}
        for row in measured(factors, repetitions):
            rows.append({**head, **row, "F_shares": [row["KME"] * shares] * len(figure2.SHARES)})
    return rows


def test_the_section_shows_choices_of_lambda_and_folds_two_dimensions():
    rows = figure2_rows(lambda name, n, d: WORSE if name == "F_theorem4" else BETTER)
    section = figure2.EXPERIMENT.section(rows)
    choices = section.shown[-1]
    assert [row[1] for row in choices.rows] == ["0 : 20", *["20 : 0"] * 6]
    assert len(section.folded) == 3
    assert len(figure2.EXPERIMENT.section([row for row in rows if row["d"] > 2]).folded) == 2


def flexible(name):
    return name.startswith("F_") and name != "F_loo"


FIGURE2 = {
    "figure-2-outperform-kme": {
        "holds": lambda *_: BETTER,
        "holds in part": lambda name, *_: BETTER if name == "S" else WORSE,
        "does not hold": lambda *_: WORSE,
    },
    "figure-2-s-better-than-f": {
        "holds": lambda name, *_: 0.8 if name == "S" else 0.85,
        "holds in part": lambda name, n, d: 0.8 if name == "S" and n < 100 else 0.85,
        "does not hold": lambda name, *_: 0.85 if name == "S" else 0.8,
    },
    "figure-2-large-d-small-n": {
        "holds": lambda name, n, d: 0.7 + 0.002 * n - 0.001 * d,
        "holds in part": lambda name, n, d: 0.7 + 0.002 * n + 0.001 * d,
        "does not hold": lambda name, n, d: 0.7 - 0.002 * n + 0.001 * d,
    },
    "figure-2-worst-case-as-good": {
        "holds": lambda name, n, d: EQUAL if n == 100 else BETTER,
        "holds in part": lambda name, n, d: WORSE if name == "F_theorem4" else EQUAL,  # by one reading alone
        "does not hold": lambda *_: WORSE,
    },
    "various-settings-similar": {
        "holds": lambda name, *_: WORSE if flexible(name) else BETTER,
        "does not hold": lambda *_: WORSE,
    },
}


@pytest.mark.parametrize("claim", FIGURE2)
def test_figure2(claim):
    for expected, factor in FIGURE2[claim].items():
        assert verdict(claim, figure2=figure2_rows(factor)) == expected
    assert verdict(claim, figure2=figure2_rows(lambda *_: BETTER, repetitions=1)) == "cannot be checked"
