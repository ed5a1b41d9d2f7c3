"""The oracles themselves, against numbers from 60-digit arithmetic."""

from functools import partial

import numpy as np
import oracles
import pytest
from numpy.testing import assert_allclose
from reference_cases import every_case


def function_of(case):
    return {
        "LIN": oracles.linear,
        "POLY2": partial(oracles.polynomial, degree=2, constant=1.0),
        "POLY3": partial(oracles.polynomial, degree=3, constant=1.0),
        "RBF": partial(oracles.gaussian, bandwidth=np.sqrt(case["sigma2_median"])),
    }[case["kernel"]]


@every_case
def test_gram_rank_and_median(case):
    X, K = np.array(case["X"]), np.array(case["K"])
    assert_allclose(oracles.gram(function_of(case), X, X), K, rtol=1e-13)
    assert_allclose(oracles.gram(function_of(case), case["X_test"], X), case["L"], rtol=1e-13)
    assert_allclose(oracles.gaussian_median_bandwidth(X) ** 2, case["sigma2_median"], rtol=1e-13)
    assert np.linalg.matrix_rank(K, tol=1e-10 * case["varrho"]) == case["rank"]


@every_case
def test_shrinkage_and_scores(case):
    K, tol = np.array(case["K"]), 1e-13 * case["varrho"]
    # alpha* divides by (n - 2) rho + mean_diag / n, which loses a digit where rho is zero.
    assert_allclose(oracles.simple_shrinkage(K), case["alpha_star"], rtol=1e-13, atol=1e-15)
    for row in case["s_loocv"]:
        assert_allclose(oracles.simple_score(K, row["alpha"]), row["score"], rtol=0, atol=tol)
    for row in case["f_loocv"]:
        lam = row["lam"]
        per_point = oracles.residuals(K, oracles.deletion_refits(K, lam))
        assert_allclose(per_point, row["deletion_per_point"], rtol=0, atol=tol)
        assert_allclose(oracles.deletion_score(K, lam), row["deletion"], rtol=0, atol=tol)
        assert_allclose(oracles.theorem4_score(K, lam), row["theorem4"], rtol=0, atol=tol)
        if case["rank"] == case["n"]:
            assert_allclose(oracles.theorem4_literal(K, lam), row["theorem4"], rtol=0, atol=tol)


@every_case
def test_scores_on_a_grid_are_the_refits(case):
    K, tol = np.array(case["K"]), 1e-13 * case["varrho"]
    lams = [row["lam"] for row in case["f_loocv"]]
    deletion = oracles.scaled_score(K, *oracles.deletion_pieces_on(K, lams))
    theorem4 = oracles.scaled_score(K, *oracles.theorem4_pieces_on(K, lams))
    assert_allclose(deletion, [row["deletion"] for row in case["f_loocv"]], rtol=0, atol=tol)
    assert_allclose(theorem4, [row["theorem4"] for row in case["f_loocv"]], rtol=0, atol=tol)


@every_case
def test_grid_minimum_is_close_above_the_true_one(case):
    K = np.array(case["K"])
    for pieces_on, field in (
        (oracles.deletion_pieces_on, "f_lambda_deletion"),
        (oracles.theorem4_pieces_on, "f_lambda_theorem4"),
    ):
        excess = (oracles.grid_minimum(K, pieces_on) - case[field]["score"]) / case["varrho"]
        # A grid of ratio 1.016 sits off the minimum by at most half a step.
        assert -1e-14 <= excess <= 1e-5


@every_case
def test_limits(case):
    K, tol = np.array(case["K"]), 1e-14 * case["varrho"]
    for score in (oracles.deletion_score, oracles.theorem4_score):
        assert_allclose(score(K, 0.0), case["f_loocv_limit_lam0"], rtol=0, atol=tol)
        assert_allclose(score(K, np.inf), case["f_loocv_limit_laminf"], rtol=0, atol=tol)


@pytest.mark.parametrize("nu", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("n_steps", [1, 2, 5, 20])
def test_nu_method_recursion_is_the_jacobi_polynomial(n_steps, nu):
    d = np.linspace(0, 1, 11)
    weights = oracles.nu_method_weights(np.diag(d), 1.0, n_steps, nu)
    assert_allclose(1 - len(d) * weights, oracles.nu_method_residual(d, n_steps, nu), rtol=0, atol=1e-13)
