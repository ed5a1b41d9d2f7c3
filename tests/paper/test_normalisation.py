"""Weights that sum to one: quadratic programmes against SLSQP, and the verdicts on their claims."""

from itertools import product

import numpy as np
import oracles
import pytest
from paper_samples import BETTER, CELL, EQUAL, KERNELS, SHRUNK, WORSE, drawn, gram, measured, verdict
from scipy.optimize import minimize

from paper import normalisation


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

    for nonnegative, bounds in ((False, None), (True, [(0, None)] * n)):
        weights = normalisation.constrained_weights(K, alpha, nonnegative)
        assert weights == pytest.approx(least(K, bounds), abs=1e-5)
    flexible = normalisation.flexible_affine_weights(K, lam)
    assert flexible == pytest.approx(least(np.eye(n), None), abs=1e-6)
    assert flexible == pytest.approx(oracles.uniform(n))


def test_dividing_by_the_sum_undoes_simple_shrinkage():
    for row in normalisation.EXPERIMENT.run(CELL, None):
        assert row["S_normalised"] == pytest.approx(row["KME"], rel=1e-9)
        assert row["flexible_affine"] == pytest.approx(row["KME"], rel=1e-6)
        assert 0 <= row["zeros"] < 1


def normalised_rows(repetitions=8, zeros=0.2, **factors):
    names = [f"{name}_normalised" for name in SHRUNK]
    names += ["simplex", "simplex_half", "affine", "affine_half", "flexible_affine"]
    factors = dict.fromkeys((*SHRUNK, *names), EQUAL) | factors
    return [
        {"kernel": kernel, "n": n, "zeros": zeros, "zeros_half": zeros, **row}
        for kernel, n in product(KERNELS, (10, 20))
        for row in measured(factors, repetitions)
    ]


@pytest.mark.parametrize(
    ("factors", "expected"),
    [
        ({"simplex": WORSE}, "holds"),
        ({"simplex": EQUAL, "affine": BETTER}, "holds"),  # only β ≥ 0 at the own λ is judged
        ({"simplex": BETTER}, "holds in part"),  # F-KMSE's penalty gives KME and holds
        ({"simplex": BETTER, "flexible_affine": BETTER}, "does not hold"),
    ],
)
def test_sum_to_one(factors, expected):
    claim = "sum-to-one-unlikely-to-improve"
    assert verdict(claim, normalisation=normalised_rows(**factors)) == expected
    assert verdict(claim, normalisation=normalised_rows(repetitions=1, **factors)) == "cannot be checked"


def test_dividing_by_the_sum():
    claim = "post-normalising-deteriorates"
    shrunk = dict.fromkeys(SHRUNK, BETTER)
    assert verdict(claim, normalisation=normalised_rows(**shrunk)) == "holds"
    assert verdict(claim, normalisation=normalised_rows(**dict.fromkeys(SHRUNK, WORSE))) == "does not hold"
    assert verdict(claim, normalisation=normalised_rows(**shrunk | {"F_theorem4": WORSE})) == "holds in part"
    often = [row | {"S": row["KME"]} if row["kernel"] == "RBF" else row for row in normalised_rows(**shrunk)]
    assert verdict(claim, normalisation=often) == "holds"
    assert verdict(claim, normalisation=normalised_rows(1, **shrunk)) == "cannot be checked"
