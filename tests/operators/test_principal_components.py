"""Principal components from a Gram matrix: weights of both signs, the partial solver, indefinite matrices."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.linalg import eigh
from tables import sample

import muhat as mh
from muhat.linalg.centered_gram import center_gram
from muhat.operators import principal_components as module
from muhat.operators.principal_components import principal_components, smallest_ritz_value

ROWS = np.random.default_rng(0).standard_t(4, size=(40, 4))
UNIFORM = np.full(40, 1 / 40)


def centred_gram(rows):
    return center_gram(mh.Gaussian(2.0)(rows))


def test_weights_of_both_signs_solve_the_equation_of_the_paper():
    K, weights = centred_gram(ROWS), np.random.default_rng(3).normal(0.5, 1.0, size=40) / 40
    found = principal_components(mh.Gaussian(2.0)(ROWS), UNIFORM, weights, 6)
    values, c = found.eigenvalues, found.coefficients
    assert_allclose(c.T @ K @ c, np.eye(6), atol=1e-9)
    moved = K @ (40 * weights[:, None] * (K @ c))  # K^c B K^c V = K^c V D
    assert_allclose(moved, K @ c * values, atol=1e-9 * values[0])


def test_the_symmetric_form_gives_the_components_of_positive_weights():
    weights = np.abs(np.random.default_rng(3).normal(0.5, 1.0, size=40))
    positive = module._standard_form(module._whole(mh.Gaussian(2.0)(ROWS), UNIFORM, np.sqrt(weights)), 6)
    symmetric = module._standard_form(module._indefinite(mh.Gaussian(2.0)(ROWS), UNIFORM, weights), 6)
    assert_allclose(positive.values, symmetric.values, rtol=1e-9)
    overlap = positive.coefficients.T @ centred_gram(ROWS) @ symmetric.coefficients
    assert_allclose(np.abs(overlap), np.eye(6), atol=1e-7)


@pytest.mark.parametrize("order", ["C", "F"])
def test_the_partial_solver_finds_eigenpairs(order):
    """Eigenvalues to 1e-12 and residuals of the eigenfunctions to 1e-9, for matrices of either order in memory."""
    X = sample(700, 6, seed=0)
    K = np.asarray(mh.Gaussian(2.0)(X), order=order)
    before, uniform = K.copy(), np.full(700, 1 / 700)
    found, exact = principal_components(K, uniform, uniform, 20), centred_gram(X)
    expected = eigh(exact, eigvals_only=True)[::-1][:20]
    assert_allclose(found.eigenvalues, expected, rtol=1e-12)
    residual = exact @ found.coefficients - found.coefficients * found.eigenvalues
    assert np.abs(residual).max() <= 1e-9 * np.abs(found.coefficients).max() * expected[0]
    assert (before == K).all()


@pytest.mark.parametrize(
    "rows",
    [
        list(product(np.linspace(-1, 1, 9), repeat=3)),  # threefold eigenvalues
        list(product([0.0, 1.0], repeat=10)),  # tenfold and forty-five-fold
        np.repeat(np.eye(30), 20, axis=0),  # twenty-nine-fold, of rank 29
    ],
    ids=["grid", "cube", "categories"],
)
def test_the_partial_solver_finds_all_copies_of_equal_eigenvalues(rows):
    K = mh.Gaussian().resolve(np.array(rows))(np.array(rows))
    uniform = np.full(len(K), 1 / len(K))
    expected = eigh(center_gram(K.copy()), eigvals_only=True)[::-1][:20]
    assert_allclose(principal_components(K, uniform, uniform, 20).eigenvalues, expected, rtol=1e-11)


def test_the_smallest_ritz_value_finds_a_large_negative_eigenvalue():
    K = mh.Gaussian(2.0)(sample(600, 3, seed=0))
    assert smallest_ritz_value(K) >= -1e-10
    direction = np.random.default_rng(1).normal(size=600)
    direction /= np.linalg.norm(direction)
    assert smallest_ritz_value(K - 0.05 * np.trace(K) * np.outer(direction, direction)) < -0.01 * np.trace(K)
    assert smallest_ritz_value(np.ones((600, 600))) >= -1e-9  # of rank one: the iteration ends early


def test_indefinite_matrices_are_refused_by_both_solvers():
    X = sample(600, 3, seed=0)
    squared_distances = ((X[:, None] - X) ** 2).sum(axis=2)
    for n_components in (5, None):
        with pytest.raises(ValueError, match=r"not positive semi-definite .* clip"):
            mh.KernelPCA(n_components, "precomputed").fit(squared_distances)
