"""Solvers of matching: gradients in their parameters, and solutions that are never worse than the start."""

import numpy as np
import pytest
from mixtures import assert_gradient, random_mixture, random_target, spherical_and_diag
from numpy.testing import assert_allclose
from tables import CLOSED_FORM, KERNELS

import muhat as mh
from muhat.density.objective import Mixture, matching_objective
from muhat.density.solvers import Settings, _FreeParameters, _Parameters, solve


@pytest.mark.parametrize("parameters", [_Parameters, _FreeParameters])
@spherical_and_diag
@pytest.mark.parametrize("name", CLOSED_FORM)
def test_gradient_in_the_parameters_of_each_solver(name, covariance_type, parameters):
    objective = matching_objective(random_target(KERNELS[name], "both"))
    mixture = random_mixture(4, 3, seed=4, covariance_type=covariance_type)
    settings = Settings(covariance_type == "spherical", floor=1e-3, scale=1.7, size=2.0, tol=1e-6, max_iter=1)
    vector = parameters(mixture, settings)
    x = vector.encode(mixture)
    for part, expected in zip(vector.decode(x), mixture, strict=True):
        assert_allclose(part, expected, rtol=1e-12)
    written = vector.gradient(x, objective.with_gradient(mixture)[1])
    assert_gradient(lambda x: objective.value(vector.decode(x)), x, written)


SETTINGS = Settings(spherical=True, floor=1e-3, scale=1.0, size=1.0, tol=1e-6, max_iter=1)


@pytest.mark.parametrize("solver", ["slsqp", "lbfgs", "weights"])
def test_no_solution_is_worse_than_its_start(solver):
    """The start is the truth, with a component that has no weight: every step away from it is one for the worse."""
    truth = random_mixture(3, 3, seed=8, covariance_type="spherical")
    kernel = mh.Gaussian(1.0)
    objective = matching_objective(mh.embed(kernel, mh.GaussianMixture(*truth)))
    far = Mixture(
        np.append(truth.weights, 0.0),
        np.vstack([truth.means, [[9.0, 9.0, 9.0]]]),
        np.vstack([truth.variances, [[1.0] * 3]]),
    )
    found = solve(objective, far, solver, SETTINGS).mixture
    assert objective.value(found) <= objective.value(far)


def test_weights_that_are_as_good_stay():
    """Two components that are one leave their weights undetermined; those of the start are kept."""
    truth = random_mixture(2, 3, seed=9, covariance_type="spherical")
    objective = matching_objective(mh.embed(mh.Gaussian(1.0), mh.GaussianMixture(*truth)))
    twice = Mixture(
        np.append(truth.weights * [1.0, 0.3], truth.weights[1] * 0.7),
        truth.means[[0, 1, 1]],
        truth.variances[[0, 1, 1]],
    )
    assert_allclose(solve(objective, twice, "weights", SETTINGS).mixture.weights, twice.weights, rtol=0, atol=0)
    moved = twice._replace(weights=np.array([0.2, 0.2, 0.6]))
    better = solve(objective, moved, "weights", SETTINGS).mixture
    assert objective.value(better) < 1e-3 * objective.value(moved)
